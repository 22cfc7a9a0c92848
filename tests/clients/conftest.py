"""The addresses of the servers, which `crates/docent/tests/clients.rs` starts."""

import os

import pytest


@pytest.fixture
def url() -> str:
    """A server without keys and limits: `http://127.0.0.1:PORT`."""
    return os.environ["DOCENT_TEST_URL"]


@pytest.fixture
def locked_url() -> str:
    """A server that requires a key."""
    return os.environ["DOCENT_TEST_LOCKED_URL"]


@pytest.fixture
def key() -> str:
    """The key of the server that requires one."""
    return os.environ["DOCENT_TEST_KEY"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
