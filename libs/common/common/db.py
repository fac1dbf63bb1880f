"""The database of one service: connections, and the one transaction that the edge opens and commits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import psycopg
from sqlalchemy import BigInteger, Column, DateTime, Identity, Index, Integer, MetaData, SmallInteger, Table, Text, text
from sqlalchemy.dialects.postgresql import JSONB, UUID
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

_HOT_CONNECTIONS = 4
"""Two groups of what is counted and two of what is stored may be under way at once."""

BUS = MetaData()
"""Tables that every service has beside its own: outbox, inbox and the replay clock."""

OUTBOX = Table(
    "outbox",
    BUS,
    Column("position", BigInteger, Identity(always=True), primary_key=True),
    Column("event_id", UUID(as_uuid=True), nullable=False, unique=True),
    Column("subject", Text, nullable=False),
    Column("envelope", JSONB, nullable=False),
    Column("recorded_at", DateTime(timezone=True), nullable=False, server_default=text("clock_timestamp()")),
    Column("published_at", DateTime(timezone=True)),
    Index("outbox_waiting", "position", postgresql_where=text("published_at IS NULL")),
)

INBOX = Table(
    "inbox",
    BUS,
    Column("event_id", UUID(as_uuid=True), primary_key=True),
    Column("received_at", DateTime(timezone=True), nullable=False, server_default=text("clock_timestamp()")),
)

REPLAY_CLOCK = Table(
    "replay_clock",
    BUS,
    Column("one", SmallInteger, primary_key=True, autoincrement=False),
    Column("now", DateTime(timezone=True), nullable=False),
    Column("moves", Integer, nullable=False, server_default=text("0")),
)


class Database:
    """One service's own PostgreSQL database. ``url`` is a ``postgresql+psycopg://`` address.

    With ``by_index`` PostgreSQL reads a whole table only where no index leads to the rows, however small it is.
    """

    def __init__(self, url: str, *, pool: int = 8, by_index: bool = False) -> None:
        self.url = url
        self._planning = {"enable_seqscan": "off"} if by_index else {}
        options = " ".join(f"-c {name}={value}" for name, value in self._planning.items())
        self.engine = create_async_engine(
            url,
            pool_size=pool,
            max_overflow=0,
            pool_timeout=5,
            # A failed statement is logged; lineups' words and hashes of keys are its parameters.
            hide_parameters=True,
            connect_args={"connect_timeout": 3, "options": options},
        )
        self._hot: asyncpg.Pool | None = None
        self._hot_opening = asyncio.Lock()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """One transaction: committed when the block ends, rolled back when it raises."""
        async with self.engine.begin() as connection:
            yield connection

    @asynccontextmanager
    async def hot(self) -> AsyncIterator[asyncpg.Connection]:
        """A connection of asyncpg in the place of SQLAlchemy's, for the few statements that a rush is made of.

        Each statement is a transaction of its own unless ``connection.transaction()`` says otherwise (docs/adr/0014).
        """
        async with self._hot_opening:
            if self._hot is None:
                self._hot = await asyncpg.create_pool(
                    self.url.replace("postgresql+psycopg://", "postgresql://", 1),
                    min_size=0,
                    max_size=_HOT_CONNECTIONS,
                    timeout=3,
                    server_settings=self._planning,
                    reset=_nothing,  # Its own would cost a round trip; nothing here outlives a transaction.
                )
        async with self._hot.acquire(timeout=5) as connection:
            yield connection

    async def close(self) -> None:
        if self._hot is not None:
            self._hot.terminate()
        await self.engine.dispose()


async def _nothing(_: asyncpg.Connection) -> None:
    pass


async def driver(connection: AsyncConnection) -> psycopg.AsyncConnection[Any]:
    """The driver's connection under one of SQLAlchemy's, in the same transaction: for arrays of many rows."""
    raw = await connection.get_raw_connection()
    found = raw.driver_connection
    if not isinstance(found, psycopg.AsyncConnection):
        raise TypeError(f"{type(found).__name__} is no connection of psycopg")
    return found


_UNREACHABLE = (
    PoolTimeout,
    ConnectionError,
    psycopg.OperationalError,
    psycopg.InterfaceError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.exceptions.OperatorInterventionError,
    asyncpg.exceptions.InsufficientResourcesError,
)


def unavailable(error: BaseException) -> bool:
    """Whether an error says that the database cannot be reached now, so that trying again later helps.

    A statement that the database refused (a constraint, a type) is not of this kind.
    """
    if isinstance(error, _UNREACHABLE):
        return True
    if isinstance(error, DBAPIError):
        return error.connection_invalidated or isinstance(error, OperationalError | InterfaceError)
    return False
