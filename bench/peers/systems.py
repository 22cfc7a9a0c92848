"""What is compared: how each system ingests a book, serves it, is asked and answers."""

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import environments

# Servers and ingests see nothing of the caller's settings and keys, and load no model over the network.
BASE_ENVIRONMENT = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HF_HUB_OFFLINE": "1"}


@dataclass
class System:
    name: str
    label: str
    variables: dict = field(default_factory=dict)
    ingests: bool = True

    # Of the server only.
    serving_variables: dict = field(default_factory=dict)

    def environment(self, work, serving=False):
        """The environment variables of its processes."""
        home = work / "home"
        home.mkdir(parents=True, exist_ok=True)
        extra = self.serving_variables if serving else {}
        return {**BASE_ENVIRONMENT, "HOME": str(home), **self.variables, **extra}


@dataclass
class Docent(System):
    program: Path = None
    route: str = "search"
    index_name: str = "docent"

    def prepare(self, work):
        if not self.program.is_file():
            hint = "build it with `cargo build --release -p docent`, or use --docent"
            raise SystemExit(f"{self.program} is missing; {hint}")

    def fingerprint(self):
        return digest(self.program.read_bytes())

    def installed(self):
        return {"size": self.program.stat().st_size / 1e6, "packages": 1}

    def ingest_command(self, book, index):
        return [self.program, "--data-dir", index, "ingest", book]

    def serve_command(self, index, port):
        return [self.program, "--data-dir", index, "serve", "--listen", f"127.0.0.1:{port}"]

    def request(self, question, top_k=5):
        body = {"query": question} if self.route == "ask" else {"query": question, "top_k": top_k}
        return "POST", f"/api/v1/{self.route}", json.dumps(body)

    def pages(self, response):
        """The pages of the passages, best first."""
        return [passage["document_id"] for passage in response["sources" if self.route == "ask" else "chunks"]]


@dataclass
class Peer(System):
    stack: str = ""
    script: str = ""
    python: Path = None
    folder: Path = None

    @property
    def index_name(self):
        return self.name

    def prepare(self, work):
        self.folder = environments.prepare(work, self.stack)
        self.python = self.folder / "bin" / "python"

    def fingerprint(self):
        files = [f"{self.stack}.txt", self.script, "pages.py"]
        return digest(b"".join((environments.STACKS / file).read_bytes() for file in files))

    def installed(self):
        return {
            "size": environments.installed_size(self.folder),
            "packages": environments.installed_packages(self.folder),
        }

    def ingest_command(self, book, index):
        return [self.python, environments.STACKS / self.script, "ingest", book, index]

    def serve_command(self, index, port):
        return [self.python, environments.STACKS / self.script, "serve", index, str(port)]

    def request(self, question, top_k=5):
        return "POST", "/search", json.dumps({"query": question, "top_k": top_k})

    def pages(self, response):
        return [passage["page"] for passage in response["results"]]


class Txtai(Peer):
    """Has an HTTP API of its own; the id of a passage is `PAGE#NUMBER`."""

    def request(self, question, top_k=5):
        return "GET", f"/search?{urlencode({'query': question, 'limit': top_k})}", ""

    def pages(self, response):
        return [passage["id"].rsplit("#", 1)[0] for passage in response]


def all_systems(program, peer_threads=1):
    """All systems, Docent first. `peer_threads` is the number of threads a Python server uses for one question."""
    # As in the peers, questions are not limited per minute, and wait for as long as it takes when the server is busy.
    # An answer is never repeated from the cache. All else is as shipped.
    docent = {
        "DOCENT_SERVE__REQUESTS_PER_MINUTE": "0",
        "DOCENT_SERVE__QUEUE": "1000",
        "DOCENT_SERVE__QUEUE_SECONDS": "600",
        "DOCENT_AGENT__CACHED_ANSWERS": "0",
    }
    no_reader = {**docent, "DOCENT_READER__KIND": "none"}
    threads = {"OMP_NUM_THREADS": str(peer_threads)} if peer_threads else {}
    return [
        Docent("docent", "Docent", docent, program=program),
        Docent("docent-no-reader", "Docent, reader off", no_reader, ingests=False, program=program),
        Docent("docent-answer", "Docent, full answer", docent, ingests=False, program=program, route="ask"),
        Peer(
            "fastapi-qdrant",
            "FastAPI + Qdrant local",
            stack="fastapi_qdrant",
            script="fastapi_qdrant.py",
            serving_variables=threads,
        ),
        Peer("llamaindex", "LlamaIndex", stack="llamaindex", script="llamaindex.py", serving_variables=threads),
        Txtai("txtai", "txtai", stack="txtai", script="txtai_stack.py", serving_variables=threads),
    ]


def digest(data):
    return hashlib.sha256(data).hexdigest()[:12]
