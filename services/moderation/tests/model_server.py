"""An external model on loopback: HTTP/1.1 over a real socket, OpenAI's two shapes, and every way to answer badly.

What a server answers is a function of the test's, given the request and the connection: it may answer honestly, lie,
drip, hang, or cut the line.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

UNFIT = "unfit"
"""Texts with this word in it the server flags, and no others."""
CONTROL = re.compile(r"example\.com|Example Street")
"""What the chat model is given to be flagged, beside the texts of the test."""


@dataclass
class Request:
    """What came in. ``texts`` are those asked about; of a chat without the model's own controls, by id."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def items(self) -> list[dict[str, str]]:
        """The items of a chat, controls included; the markers must hold and hold the JSON alone."""
        message = self.body["messages"][1]["content"]
        found = re.fullmatch(r"nonce: (\w{32})\n--- begin \1 ---\n(.*)\n--- end \1 ---", message, re.DOTALL)
        assert found, message
        items: list[dict[str, str]] = json.loads(found[2])["texts"]
        return items

    @property
    def nonce(self) -> str:
        return str(self.body["messages"][1]["content"].split("\n")[0].removeprefix("nonce: "))

    @property
    def texts(self) -> list[str]:
        if self.path.endswith("/moderations"):
            return list(self.body["input"])
        from moderation import external

        ours = {*external._MUST_BE_FLAGGED, *external._MUST_BE_CLEARED}
        return [item["text"] for item in self.items if item["text"] not in ours]


Answering = Callable[[Request, "Line"], Awaitable[None]]


class Line:
    """One connection, as the test answers on it."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writer = writer

    async def send(self, raw: bytes) -> None:
        self.writer.write(raw)
        await self.writer.drain()

    async def answer(self, status: int, body: bytes, **headers: str) -> None:
        """A whole answer."""
        given = {"content-type": "application/json", "content-length": str(len(body))}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        head = f"HTTP/1.1 {status} X\r\n" + "".join(f"{name}: {value}\r\n" for name, value in given.items())
        await self.send(head.encode() + b"\r\n" + body)

    async def json(self, body: Any, status: int = 200, **headers: str) -> None:
        await self.answer(status, json.dumps(body).encode(), **headers)

    def reset(self) -> None:
        """Cut the line: the other side reads a reset."""
        own: socket.socket = self.writer.get_extra_info("socket")
        own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


def moderations(texts: Sequence[str]) -> dict[str, Any]:
    """The honest answer of the moderation API."""
    return {
        "id": "modr-1",
        "model": "omni-test-2026-01-01",
        "results": [
            {
                "flagged": UNFIT in text,
                "categories": {"harassment": UNFIT in text, "violence": False, "illicit": None},
                "category_scores": {"harassment": 0.9 if UNFIT in text else 0.01, "violence": 0.4, "illicit": 0.0},
            }
            for text in texts
        ],
    }


def verdicts(request: Request) -> dict[str, Any]:
    """What the honest chat model says of a request's items."""
    return {
        "nonce": request.nonce,
        "verdicts": [
            {
                "id": item["id"],
                "flagged": bad,
                "categories": ["personal-data"] if CONTROL.search(item["text"]) else ["harassment"] if bad else [],
                "score": 0.97 if bad else 0.02,
            }
            for item in request.items
            for bad in [bool(UNFIT in item["text"] or CONTROL.search(item["text"]))]
        ],
    }


def completion(content: Any, **choice: Any) -> dict[str, Any]:
    """A chat completion with this content."""
    text = content if isinstance(content, str) or content is None else json.dumps(content)
    whole = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}, **choice}
    return {
        "id": "chat-1",
        "object": "chat.completion",
        "model": "chat-test-7",
        "choices": [whole],
        "usage": {"total_tokens": 700},
    }


async def honest(request: Request, line: Line) -> None:
    """The right answer."""
    if request.path.endswith("/moderations"):
        await line.json(moderations(request.texts))
    else:
        await line.json(completion(verdicts(request)))


@dataclass
class ModelServer:
    """A running server. ``requests`` has what came, ``answering`` is what it does, ``connections`` how many came."""

    url: str = ""
    answering: Answering = honest
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    at_once: int = 0
    most_at_once: int = 0

    @property
    def texts(self) -> list[str]:
        """Every text that was asked about, in order."""
        return [text for request in self.requests for text in request.texts]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                headers = {
                    name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])
                }
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                request = Request(head[0].split(" ")[1], headers, json.loads(body))
                self.requests.append(request)
                self.at_once += 1
                self.most_at_once = max(self.at_once, self.most_at_once)
                try:
                    await self.answering(request, Line(writer))
                finally:
                    self.at_once -= 1
        writer.close()


@asynccontextmanager
async def model_server(answering: Answering = honest) -> AsyncIterator[ModelServer]:
    """A server on a free port of loopback."""
    server = ModelServer(answering=answering)
    lines: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        lines.add(task)
        with contextlib.suppress(asyncio.CancelledError):
            await server.serve(reader, writer)
        writer.transport.abort()

    listening = await asyncio.start_server(connected, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
    try:
        yield server
    finally:
        listening.close()
        for line in lines:
            line.cancel()
        await asyncio.gather(*lines, return_exceptions=True)
