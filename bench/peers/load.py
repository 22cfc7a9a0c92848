"""Send questions to a server from a number of clients, and measure response times and throughput.

Each client has a connection of its own and an address of its own, and sends its next question when it has
the answer to the last. The clients do as little as possible because they share the processors with the server.
"""

import asyncio
import statistics
import time

# Not measured: connections are opened, and libraries allocate what they need for so many threads.
WARM_UP = 1.0


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
    times, seconds = asyncio.run(run(system, port, questions, clients, seconds))
    if not times:
        raise SystemExit(f"{system.label}: no response within {seconds:.0f} s with {clients} clients; use --seconds")
    return statistics.median(times) * 1000, len(times) / seconds


async def run(system, port, questions, clients, seconds):
    loop = asyncio.get_running_loop()
    failed = loop.create_future()
    begun = time.perf_counter() + WARM_UP
    times, done = [], False

    def next_request():
        return encode(*system.request(next(questions)))

    def finished(sent_at, response):
        now = time.perf_counter()
        if done or failed.done():
            return
        if not response.startswith(b"HTTP/1.1 200"):
            failed.set_exception(SystemExit(f"{system.label}: {bytes(response[:500])}"))
        elif now >= begun:
            times.append(now - sent_at)

    transports = []
    for number in range(clients):
        address = (f"127.0.1.{number + 1}", 0)
        transport, _ = await loop.create_connection(
            lambda: Client(next_request, finished), "127.0.0.1", port, local_addr=address
        )
        transports.append(transport)
    await asyncio.wait([failed], timeout=WARM_UP + seconds)
    done = True
    elapsed = time.perf_counter() - begun
    for transport in transports:
        transport.abort()
    if failed.done():
        failed.result()
    return times, elapsed


def encode(method, path, body):
    content = body.encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    return head.encode() + content
