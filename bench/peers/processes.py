"""Run ingests and servers, and measure their time and memory.

A server listens on a free port of the loopback interface and is stopped when its `with` block ends, however it ends.
"""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

START_LIMIT = 180.0
STOP_LIMIT = 10.0


def ingest(system, work, book, index):
    """Ingests `book` into the folder `index`. Returns the seconds it took and the peak memory in megabytes."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as log:
        begun = time.perf_counter()
        process = start(system.ingest_command(book, index), system.environment(work), folder, log)
        try:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        finally:
            stop(process)
        seconds = time.perf_counter() - begun
        if process.returncode != 0:
            raise SystemExit(f"{system.label} could not ingest {book}:\n{tail(log)}")
        return seconds, usage.ru_maxrss / 1024


class Server:
    """A running server, after its first answer."""

    def __init__(self, process, port, first_answer, seconds):
        self.process = process
        self.port = port
        self.first_answer = first_answer
        self.seconds_to_first_answer = seconds
        self.memory_after_first_answer = resident(process.pid)


@contextlib.contextmanager
def serving(system, work, index, question):
    """Starts a server on an index, and waits until it has answered `question`."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as log:
        port = free_port()
        begun = time.perf_counter()
        process = start(system.serve_command(index, port), system.environment(work, serving=True), folder, log)
        try:
            answer = first_answer(system, process, port, question, log)
            yield Server(process, port, answer, time.perf_counter() - begun)
        finally:
            stop(process)


def first_answer(system, process, port, question, log):
    limit = time.monotonic() + START_LIMIT
    while process.poll() is None and time.monotonic() < limit:
        try:
            answer = ask(system, port, question)
        except ConnectionRefusedError:
            time.sleep(0.005)
            continue
        if not system.pages(answer):
            raise SystemExit(f"{system.label} found nothing for {question!r}")
        return answer
    raise SystemExit(f"{system.label} did not start:\n{tail(log)}")


def ask(system, port, question, top_k=5):
    method, path, body = system.request(question, top_k)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=START_LIMIT)
    with contextlib.closing(connection):
        connection.request(method, path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        text = response.read()
    if response.status != 200:
        raise SystemExit(f"{system.label} answered {response.status}: {text[:500]}")
    return json.loads(text)


def start(command, variables, folder, log):
    # A session of its own, so that `stop` reaches its children too.
    return subprocess.Popen(
        command, env=variables, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
    )


def stop(process):
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_LIMIT)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def resident(pid):
    """Resident memory of a process and its descendants, in megabytes."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            # The name, in parentheses, may contain spaces.
            parents[int(folder.name)] = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
    family = {pid}
    while children := {child for child, parent in parents.items() if parent in family} - family:
        family |= children
    return sum(map(resident_alone, family))


def resident_alone(pid):
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
    return 0.0


def tail(log):
    log.seek(0)
    return log.read().decode(errors="replace")[-2000:]
