"""Send questions to a server from a number of clients, and measure response times and throughput.

Each client has a connection of its own and an address of its own, and sends its next question when it has
the answer to the last. The clients do as little as possible because they share the processors with the server.
"""

import asyncio
import statistics
import time

# The first second is not measured, nor the first response to each client: connections are opened, and libraries
# allocate what they need for so many threads.
WARM_UP = 1.0

# A slow server is measured for longer, until there are so many responses per client, so that slow ones count too.
ROUNDS_OF_RESPONSES = 2

# Seconds until the measurement is given up.
LIMIT = 120.0


class Client(asyncio.Protocol):
    def __init__(self, next_request, finished):
        self.next_request = next_request
        self.finished = finished
        self.received = bytearray()
        self.expected = None

    def connection_made(self, transport):
        self.transport = transport
        self.send()

    def send(self):
        self.received.clear()
        self.expected = None
        self.sent_at = time.perf_counter()
        self.transport.write(self.next_request())

    def data_received(self, data):
        self.received += data
        if self.expected is None:
            end = self.received.find(b"\r\n\r\n")
            if end < 0:
                return
            self.expected = end + 4 + content_length(self.received[:end])
        if len(self.received) >= self.expected:
            self.finished(self.sent_at, self.received)
            self.send()

    def connection_lost(self, error):
        self.finished(self.sent_at, b"connection closed")


def content_length(head):
    for line in bytes(head).lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.split(b":")[1])
    raise ValueError(f"response without a length: {head[:200]}")


def measure(system, port, questions, clients, seconds):
    """Returns the median response time in milliseconds and the responses per second."""
    times, elapsed = asyncio.run(run(system, port, questions, clients, seconds))
    return statistics.median(times) * 1000, len(times) / elapsed


async def run(system, port, questions, clients, seconds):
    loop = asyncio.get_running_loop()
    failed = loop.create_future()
    answered = []
    stopped = False

    def next_request():
        return encode(*system.request(next(questions)))

    def finished(sent_at, response):
        if stopped or failed.done():
            return
        if response.startswith(b"HTTP/1.1 200"):
            answered.append(time.perf_counter() - sent_at)
        else:
            failed.set_exception(SystemExit(f"{system.label}: {bytes(response[:500])}"))

    async def until(duration, responses):
        """Waits for this time and at least so many responses. Returns the response times and the time waited."""
        begun = time.perf_counter()
        while (elapsed := time.perf_counter() - begun) < duration or len(answered) < responses:
            await asyncio.wait([failed], timeout=0.01)
            if failed.done():
                failed.result()
            if elapsed > LIMIT:
                raise SystemExit(f"{system.label}: {len(answered)} responses in {LIMIT:.0f} s with {clients} clients")
        times = answered.copy()
        answered.clear()
        return times, elapsed

    transports = []
    try:
        for number in range(clients):
            address = (f"127.0.1.{number + 1}", 0)
            transport, _ = await loop.create_connection(
                lambda: Client(next_request, finished), "127.0.0.1", port, local_addr=address
            )
            transports.append(transport)
        await until(WARM_UP, clients)
        return await until(seconds, ROUNDS_OF_RESPONSES * clients)
    finally:
        stopped = True
        for transport in transports:
            transport.abort()


def encode(method, path, body):
    content = body.encode()
    lines = [
        f"{method} {path} HTTP/1.1",
        "Host: 127.0.0.1",
        "Content-Type: application/json",
        f"Content-Length: {len(content)}",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + content
