"""Fixtures for every test: a real PostgreSQL and NATS, and services started on them in this process."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Literal, TypeVar
from uuid import UUID

import httpx
import nats
import pytest
import uuid_utils
from fastapi import FastAPI
from nats.aio.client import Client
from nats.js.errors import NotFoundError
from sqlalchemy import func, select

from common import events as ev
from common import topology
from common.bus import Consumer
from common.clock import wall
from common.db import OUTBOX
from common.migrate import upgrade
from common.provision import provision
from common.service import Runtime
from common.settings import Settings
from common.watch import Watch
from embedded.nats import Nats
from embedded.postgres import Postgres

OPERATOR_TOKEN = "operator-token-of-the-tests"
E = TypeVar("E", bound=ev.Event)
_numbers = itertools.count(1)


class Databases:
    """Databases of the tests: each service is migrated once and cloned for each test."""

    def __init__(self, server: Postgres) -> None:
        self.server = server
        self._templates: set[str] = set()

    def fresh(self, service: str) -> str:
        """The address of an empty, migrated database of a service."""
        return self._cloned(service, service)

    def at(self, service: str, revision: str) -> str:
        """The address of an empty database of a service as it was after a migration."""
        url = self._cloned(service, f"{service}_bare")
        upgrade(url, service, revision)
        return url

    def _cloned(self, service: str, template: str) -> str:
        if service not in self._templates:
            self.server.create_service_database(service)
            self.server.clone(service, f"{service}_bare")
            upgrade(self.server.url(service), service)
            self._templates.add(service)
        name = f"{service}_{next(_numbers)}"
        self.server.clone(template, name)
        return self.server.url(service, name)


class Started:
    """One copy of a service, running in this process on real servers."""

    def __init__(self, app: FastAPI, settings: Settings, bus: Nats) -> None:
        self.app = app
        self.settings = settings
        self.runtime: Runtime = app.state.runtime
        self._nats = bus
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        self.client = httpx.AsyncClient(transport=transport, base_url="http://mafl.test")
        self.operator = httpx.AsyncClient(
            transport=transport,
            base_url="http://mafl.test",
            headers={"Authorization": f"Bearer {OPERATOR_TOKEN}"},
        )

    @property
    def database_url(self) -> str:
        return self.settings.database_url.get_secret_value()

    async def publish(self, event: ev.Event, version: int = 1, *, event_id: UUID | None = None) -> UUID:
        """Put an event on the bus as its owner would; its id. The same id again is a repeated delivery."""
        event_id = event_id or UUID(bytes=uuid_utils.uuid7().bytes)
        envelope = ev.pack(event, event_id=event_id, aggregate_version=version, correlation_id="test", time=wall())
        async with admin(self._nats) as client:
            # No Nats-Msg-Id: a repeated id must reach the service, whose inbox is what is tested.
            await client.jetstream().publish(event.subject(), envelope.model_dump_json().encode())
        return event_id

    async def published(self, kind: type[E]) -> list[E]:
        """Every event of a kind that is on the bus, in the order of its stream."""
        return [event for _, event in await self.envelopes(kind)]

    async def told(self, kind: type[E], patience: float = 60.0) -> list[E]:
        """As :meth:`published`, once there is one."""
        deadline = time.monotonic() + patience
        while not (found := await self.published(kind)):
            assert time.monotonic() < deadline, f"no {kind.subject()} in {patience:.0f} s"
            await asyncio.sleep(0.05)
        return found

    async def envelopes(self, kind: type[E]) -> list[tuple[ev.Envelope, E]]:
        """As :meth:`published`, with the envelopes."""
        found = []
        async with admin(self._nats) as client:
            js = client.jetstream()
            last = (await js.stream_info(kind.stream)).state.last_seq
            for sequence in range(1, last + 1):
                try:
                    message = await js.get_msg(kind.stream, sequence)
                except NotFoundError:  # Its words were redacted, and it with them.
                    continue
                if message.subject == kind.subject():
                    envelope = ev.Envelope.model_validate_json(message.data or b"")
                    found.append((envelope, kind.model_validate(envelope.data)))
        return found

    async def dead_letters(self) -> list[tuple[str, str]]:
        """Subject and reason of every dead letter."""
        async with admin(self._nats) as client:
            js = client.jetstream()
            messages = []
            for stream in (topology.DEAD_LETTERS, topology.DEAD_PRIVATE):
                last = (await js.stream_info(stream)).state.last_seq
                for sequence in range(1, last + 1):
                    with contextlib.suppress(NotFoundError):  # Erased, as its words were redacted.
                        messages.append(await js.get_msg(stream, sequence))
        return [(str(message.subject), (message.headers or {}).get("Mafl-Reason", "")) for message in messages]

    async def settle(self, patience: float = 60.0) -> None:
        """Wait until everything on the bus is applied and everything in the outbox is on the bus."""
        watch: Watch = self.app.state.watch
        consumers: list[Consumer] = self.app.state.consumers
        deadline = time.monotonic() + patience
        quiet = 0
        while quiet < 2:
            waiting = [await watch.waiting(consumer) for consumer in consumers]
            async with self.runtime.database.transaction() as connection:
                unsent = (
                    await connection.execute(
                        select(func.count()).select_from(OUTBOX).where(OUTBOX.c.published_at.is_(None))
                    )
                ).scalar_one()
            quiet = quiet + 1 if not any(waiting) and not unsent else 0
            assert time.monotonic() < deadline, f"still waiting: durables {waiting}, outbox {unsent}"
            await asyncio.sleep(0.02)

    async def move_clock(self, now: datetime) -> None:
        """Move the replay clock: contests by its operator call, any other service by ``clock.moved``."""
        if self.runtime.name == "contests":
            answer = await self.operator.put("/operator/api/v1/clock", json={"now": now.isoformat()})
            assert answer.status_code == 200, answer.text
        else:
            await self.publish(ev.ClockMoved(now=now))
        await self.settle()


Start = Callable[..., AbstractAsyncContextManager[Started]]


@asynccontextmanager
async def admin(server: Nats) -> AsyncIterator[Client]:
    """A connection that may do everything."""
    client = await nats.connect(server.url("admin"), inbox_prefix=topology.inbox_prefix("admin").encode())
    try:
        yield client
    finally:
        await client.close()


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    """A PostgreSQL server for the whole run, without fsync."""
    server = Postgres(tmp_path_factory.mktemp("postgres"), durable=False)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def databases(postgres: Postgres) -> Databases:
    """Fresh, migrated databases."""
    return Databases(postgres)


@pytest.fixture
async def nats_server(tmp_path: Path) -> AsyncIterator[Nats]:
    """A NATS server of the test's own, with streams and durables provisioned."""
    server = Nats(tmp_path / "nats", durable=False)
    server.start()
    async with admin(server) as client:
        await provision(client.jetstream())
    yield server
    server.stop()


@pytest.fixture
def start(databases: Databases, nats_server: Nats) -> Start:
    """Start a service: ``async with start("contests", clock="replay") as contests``.

    ``database_url`` of a running copy starts a second copy on the same database.
    """

    @asynccontextmanager
    async def started(
        name: str,
        *,
        clock: Literal["system", "replay"] = "system",
        database_url: str | None = None,
    ) -> AsyncIterator[Started]:
        settings = Settings.model_validate(
            {
                "database_url": database_url or databases.fresh(name),
                "nats_url": nats_server.url(name),
                "operator_token": OPERATOR_TOKEN,
                "environment": "embedded",
                "clock": clock,
                "log_level": "warning",
            }
        )
        app: FastAPI = import_module(f"{name}.main").app(settings)
        async with app.router.lifespan_context(app):
            service = Started(app, settings, nats_server)
            async with service.client, service.operator:
                await ready(service.client)
                yield service

    return started


async def ready(client: httpx.AsyncClient, patience: float = 60.0) -> None:
    """Wait until a service says that it is ready."""
    deadline = time.monotonic() + patience
    while True:
        answer = await client.get("/readyz")
        if answer.status_code == 200:
            return
        assert time.monotonic() < deadline, json.dumps(answer.json())
        await asyncio.sleep(0.02)
