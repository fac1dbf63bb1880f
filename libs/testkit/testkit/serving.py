"""A running application behind a port, for clients and gateways that are not of this loop."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import uvicorn
from fastapi import FastAPI


@contextlib.asynccontextmanager
async def served(app: FastAPI) -> AsyncIterator[str]:
    """A running application at an address of its own, for a client that is not of this loop."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, lifespan="off", log_level="warning", access_log=False))
    serving = asyncio.create_task(server.serve())
    async with asyncio.timeout(10):
        while not server.started:  # noqa: ASYNC110 (uvicorn tells nobody)
            await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving
