"""A service of the tests, made of ``libs/common`` alone: it counts what it applies, in a table of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from fastapi import APIRouter, FastAPI
from sqlalchemy import Column, ForeignKey, Integer, MetaData, Table, Text, insert, select

from common import events as ev
from common.inbox import Handlers
from common.service import Connection, Service, Task, create_app
from common.settings import Settings
from testkit.fixtures import Started

Handle = Callable[[ev.ContestLocked], Awaitable[None]]

METADATA = MetaData()

APPLIED = Table(
    "applied",
    METADATA,
    Column("position", Integer, primary_key=True, autoincrement=True),
    Column("contest", Text, nullable=False),
)

PARENT = Table("parent", METADATA, Column("id", Integer, primary_key=True))
CHILD = Table(
    "child",
    METADATA,
    Column("parent", Integer, ForeignKey("parent.id", deferrable=True, initially="DEFERRED"), primary_key=True),
)


def locked(contest: str) -> ev.ContestLocked:
    """An event that the probe counts."""
    return ev.ContestLocked.model_validate({"contest": contest, "locked_at": "2017-09-10T17:00:00Z", "entries": 0})


class Probe:
    """What a test may change: ``before`` runs in the handler before the effect is written."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.before: Handle = self._nothing
        self.handlers = Handlers()
        self.router = APIRouter()
        self.tasks: Sequence[Task] = ()
        self.hot = APIRouter()

        async def ignore(connection: object, event: ev.Event, envelope: ev.Envelope) -> None:
            return None

        self.handlers.on(ev.ContestOpened, ev.ContestRescheduled, ev.ContestCancelled, ev.LineupLocked, ev.ClockMoved)(
            ignore
        )

        @self.handlers.on(ev.ContestLocked)
        async def on_locked(connection: Connection, event: ev.ContestLocked, envelope: ev.Envelope) -> None:
            self.seen.append(event.contest)
            await self.before(event)
            await connection.execute(insert(APPLIED).values(contest=event.contest))

        @self.router.post("/orphan")
        async def orphan(connection: Connection) -> dict[str, str]:
            # The constraint is deferred: only the commit finds it.
            await connection.execute(insert(CHILD).values(parent=404))
            return {"status": "stored"}

    async def _nothing(self, event: ev.ContestLocked) -> None:
        return None

    def app(self, settings: Settings) -> FastAPI:
        """The probe as an application, with settlement's place in the topology."""
        return create_app(
            Service(
                name="settlement",
                package="probe",
                routers=[self.router, self.hot],
                handlers=self.handlers,
                tasks=self.tasks,
                hot=self.hot.routes,
            ),
            settings,
        )


async def applied(service: Started) -> list[str]:
    """What the probe has applied, in order."""
    async with service.runtime.database.transaction() as connection:
        return list((await connection.execute(select(APPLIED.c.contest).order_by(APPLIED.c.position))).scalars())
