"""The one place where time is asked for.

In production it is the database's clock at the moment of the question, so that one clock decides for
any number of copies. In a replay, contests owns the time: an operator moves it there, and
``clock.moved`` carries it to the other services' own databases.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal, Protocol

from sqlalchemy import ColumnElement, DateTime, func, literal, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from common.db import REPLAY_CLOCK

BEFORE_THE_FIRST_MOVE = datetime(1970, 1, 1, tzinfo=UTC)


def wall() -> datetime:
    """This process's own clock, for what is only recorded and decides nothing (an event's envelope)."""
    return datetime.now(UTC)


class Clock(Protocol):
    """What every service asks for the time.

    ``sql`` is the present instant as an expression, for a statement that reads the time together with other
    things and so saves a round trip.
    """

    replay: bool
    sql: ColumnElement[datetime]

    async def now(self, connection: AsyncConnection) -> datetime:
        """The present instant, aware, in UTC."""
        ...


async def _read(connection: AsyncConnection, sql: ColumnElement[datetime]) -> datetime:
    now: datetime = (await connection.execute(select(sql))).scalar_one()
    return now.astimezone(UTC)


class SystemClock:
    """The database's own clock, read at the question and not at the start of the transaction."""

    replay = False
    sql: ColumnElement[datetime] = func.clock_timestamp(type_=DateTime(timezone=True))

    async def now(self, connection: AsyncConnection) -> datetime:
        return await _read(connection, self.sql)


class ReplayClock:
    """A clock that stands still until it is moved, and is never moved backwards."""

    replay = True
    sql: ColumnElement[datetime] = func.coalesce(
        select(REPLAY_CLOCK.c.now).scalar_subquery(), literal(BEFORE_THE_FIRST_MOVE, DateTime(timezone=True))
    )

    async def now(self, connection: AsyncConnection) -> datetime:
        return await _read(connection, self.sql)

    async def move(self, connection: AsyncConnection, now: datetime) -> int | None:
        """Move to ``now``; the number of moves so far, or ``None`` where that would be backwards."""
        statement = insert(REPLAY_CLOCK).values(one=1, now=now, moves=1)
        statement = statement.on_conflict_do_update(
            index_elements=[REPLAY_CLOCK.c.one],
            set_={"now": now, "moves": REPLAY_CLOCK.c.moves + 1},
            where=REPLAY_CLOCK.c.now <= statement.excluded.now,
        )
        moves: int | None = (await connection.execute(statement.returning(REPLAY_CLOCK.c.moves))).scalar_one_or_none()
        return moves


def clock(kind: Literal["system", "replay"]) -> SystemClock | ReplayClock:
    """The clock that the settings ask for."""
    return ReplayClock() if kind == "replay" else SystemClock()
