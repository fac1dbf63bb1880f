"""The load generator: a process of its own, the same for every peer, and as cheap as Python allows.

It reads one JSON document from standard input, ``{ports, requests, warm, seconds}``: each request (base64) is sent over
and over on a connection of its own, the next as soon as the answer is there; connections are dealt out to the ports
in turn. It answers with ``{rate, p50, p99, answers, seconds, cpu, answers_in_all}``: answers a second,
milliseconds, and the part of a core that the generator itself took. What came in the first ``warm`` seconds counts in
``answers_in_all`` alone. Any answer but a 201 ends it.
"""

from __future__ import annotations

import asyncio
import base64
import gc
import json
import statistics
import sys
import time
from typing import Any

import uvloop


class Client(asyncio.Protocol):
    """One connection that always has one request under way. ``fault`` is what went wrong, if anything did."""

    def __init__(self, request: bytes, took: list[float], failed: asyncio.Future[None]) -> None:
        self._request = request
        self._took = took
        self._failed = failed
        self._missing = 0
        self._buffer = b""
        self.stopped = False
        self.idle = asyncio.Event()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._send()

    def _send(self) -> None:
        self._begun = time.perf_counter()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if self._missing:
            self._missing -= len(data)
        else:
            if self._buffer:
                data = self._buffer + data
            end = data.find(b"\r\n\r\n")
            if end < 0:
                self._buffer = data
                return
            self._buffer = b""
            head = data[:end].lower()
            at = head.find(b"\r\ncontent-length: ")
            if data[9:12] != b"201" or at < 0:
                self._fail(data)
                return
            stop = head.find(b"\r\n", at + 18)
            self._missing = int(head[at + 18 : stop if stop > 0 else end]) + end + 4 - len(data)
        if self._missing <= 0:
            self._took.append(time.perf_counter() - self._begun)
            self._missing = 0
            if self.stopped:
                self.idle.set()
            else:
                self._send()

    def _fail(self, data: bytes) -> None:
        self.stopped = True
        self.idle.set()
        if not self._failed.done():
            self._failed.set_exception(SystemExit(f"not a 201: {data[:2000].decode(errors='replace')}"))

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.stopped:
            self._fail(f"HTTP/1.1 000 the connection was lost: {exc}".encode())


async def drive(ports: list[int], requests: list[bytes], warm: float, seconds: float) -> dict[str, float]:
    """All connections at once; the figures of the ``seconds`` after the ``warm`` ones."""
    loop = asyncio.get_running_loop()
    took: list[float] = []
    failed: asyncio.Future[None] = loop.create_future()
    clients = [Client(request, took, failed) for request in requests]
    for number, client in enumerate(clients):
        await loop.create_connection(lambda client=client: client, "127.0.0.1", ports[number % len(ports)])  # type: ignore[misc]
    gc.collect()
    gc.disable()
    await asyncio.wait([failed], timeout=warm)
    warmed = len(took)
    took.clear()
    begun, used = time.perf_counter(), time.process_time()
    await asyncio.wait([failed], timeout=seconds)
    passed, used = time.perf_counter() - begun, time.process_time() - used
    measured = took.copy()
    for client in clients:
        client.stopped = True
    for client in clients:  # nobody is left in the middle of a request
        await client.idle.wait()
    if failed.done():
        failed.result()
    if len(measured) < 2:
        raise SystemExit(f"only {len(measured)} answers in {passed:.1f} s")
    cuts = statistics.quantiles(measured, n=100, method="inclusive")
    return {
        "rate": len(measured) / passed,
        "p50": cuts[49] * 1000,
        "p99": cuts[98] * 1000,
        "answers": len(measured),
        "answers_in_all": warmed + len(took),
        "seconds": passed,
        "cpu": used / passed,
    }


if __name__ == "__main__":
    given = json.load(sys.stdin)
    todo = [base64.b64decode(request) for request in given["requests"]]
    print(json.dumps(uvloop.run(drive(given["ports"], todo, given["warm"], given["seconds"]))))
