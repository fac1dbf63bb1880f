"""The smallest service that the stack can run: it proves its addresses, and misbehaves when told to."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import nats
import psycopg

from common import topology

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


def registry() -> Any:
    return _application("registry")


def contests() -> Any:
    return _application("contests")


def moderation() -> Any:
    return _application("moderation")


def settlement() -> Any:
    return _application("settlement")


def boards() -> Any:
    return _application("boards")


def broken() -> Any:
    print("the settings are wrong: MAFL_EXAMPLE is missing", file=sys.stderr)
    sys.exit(3)


def deaf() -> Any:
    """Answers, and does not end when asked to."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    application = _application("boards")

    async def stubborn(scope: Scope, receive: Receive, send: Send) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        await application(scope, receive, send)

    return stubborn


def _application(name: str) -> Any:
    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        status, body = 200, {"service": name, "pid": os.getpid(), "clock": os.environ["MAFL_CLOCK"]}
        if scope["path"] == "/readyz":
            status, body = await _ready(name)
        if scope["path"] == "/me/spin":
            while True:
                pass
        content = json.dumps(body).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    return answer


async def _ready(name: str) -> tuple[int, dict[str, Any]]:
    try:
        address = os.environ["MAFL_DATABASE_URL"].replace("+psycopg", "")
        async with await psycopg.AsyncConnection.connect(address, connect_timeout=2) as connection:
            row = await (await connection.execute("SELECT current_user, current_database()")).fetchone()
        client = await nats.connect(
            os.environ["MAFL_NATS_URL"],
            inbox_prefix=topology.inbox_prefix(name).encode(),
            allow_reconnect=False,
            connect_timeout=2,
        )
        js = client.jetstream(timeout=2)
        found = [(await js.consumer_info(d.stream, name)).name for d in topology.durables_of(name)]
        await client.close()
    except Exception as error:
        return 503, {"faults": [repr(error)]}
    return 200, {"database": row, "durables": found}
