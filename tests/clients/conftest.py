"""Where the servers are: `crates/docent/tests/clients.rs` starts them and says so."""

import os

import pytest


@pytest.fixture
def url() -> str:
    """A server without keys and limits, as `http://127.0.0.1:PORT`."""
    return os.environ["DOCENT_TEST_URL"]


@pytest.fixture
def locked_url() -> str:
    """A server that takes one key."""
    return os.environ["DOCENT_TEST_LOCKED_URL"]


@pytest.fixture
def key() -> str:
    """The key of the locked server."""
    return os.environ["DOCENT_TEST_KEY"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
