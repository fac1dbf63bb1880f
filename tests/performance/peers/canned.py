"""Answers every request with the same bytes and looks at none: how fast the load generator itself can go.

python canned.py PORT
"""

from __future__ import annotations

import asyncio
import re
import sys

import uvloop

ANSWER = b"HTTP/1.1 201 Created\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"


class Canned(asyncio.Protocol):
    """One connection. Requests of one connection are of one length, which is read off the first."""

    def __init__(self) -> None:
        self._length = self._got = 0
        self._first = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if not self._length:
            self._first += data
            head, end, _ = self._first.partition(b"\r\n\r\n")
            if not end:
                return
            told = re.search(rb"content-length: (\d+)", head.lower())
            self._length = len(head) + 4 + (int(told[1]) if told else 0)
            self._got, self._first = len(self._first) - len(data), b""
        self._got += len(data)
        while self._got >= self._length:
            self._got -= self._length
            self._transport.write(ANSWER)  # type: ignore[attr-defined]


async def main(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Canned, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
