"""A running application behind a port, for clients and gateways that are not of this loop."""

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any
from uuid import UUID

import uuid_utils
import uvicorn
from fastapi import FastAPI

from common import events as ev
from common.clock import wall
from common.provision import provision
from common.settings import Settings
from embedded.nats import Nats
from testkit.fixtures import OPERATOR_TOKEN, Databases, admin


@contextlib.asynccontextmanager
async def served(app: FastAPI) -> AsyncIterator[str]:
    """A running application at an address of its own, for a client that is not of this loop."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, lifespan="off", log_level="warning", access_log=False))
    serving = asyncio.create_task(server.serve())
    async with asyncio.timeout(60):
        while not server.started:  # noqa: ASYNC110 (uvicorn tells nobody)
            await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving


@contextlib.asynccontextmanager
async def served_alone(
    name: str,
    create: Callable[[Settings], FastAPI],
    told: Iterable[tuple[ev.Event, int]],
    *,
    databases: Databases,
    folder: Path,
    waits: Callable[[FastAPI], Awaitable[bool]],
    **settings: Any,
) -> AsyncIterator[tuple[str, FastAPI]]:
    """A service with a bus and a database of its own: its address, once it has taken all that it was ``told``.

    ``told`` are events with their versions; ``folder`` is the bus's; ``waits`` whether it has something to do beside
    what waits on the bus. What is written may be lost with a server.
    """
    bus = Nats(folder, durable=False)
    bus.start()
    async with admin(bus) as client:
        js = client.jetstream()
        await provision(js)
        for event, version in told:
            event_id = UUID(bytes=uuid_utils.uuid7().bytes)
            envelope = ev.pack(
                event, event_id=event_id, aggregate_version=version, correlation_id=f"told {name}", time=wall()
            )
            await js.publish(event.subject(), envelope.model_dump_json().encode())
    common = {"environment": "embedded", "log_level": "warning", "operator_token": OPERATOR_TOKEN}
    addresses = {"database_url": databases.fresh(name), "nats_url": bus.url(name)}
    app = create(Settings.model_validate({**common, **addresses, **settings}))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = uvicorn.Server(
        uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning", timeout_graceful_shutdown=5)
    )
    running = asyncio.create_task(server.serve())
    deadline = time.monotonic() + 60
    # It serves before it has reached the bus, of which nothing can be asked until then.
    while not server.started or app.state.watch.faults() or await _has_to_read(app) or await waits(app):
        assert time.monotonic() < deadline, f"{name} did not take in time what it was told"
        await asyncio.sleep(0.1)
    yield f"http://127.0.0.1:{port}", app
    server.should_exit = True
    await running
    bus.stop()


async def _has_to_read(app: FastAPI) -> bool:
    for consumer in app.state.consumers:
        if await app.state.watch.waiting(consumer) != 0:
            return True
    return False
