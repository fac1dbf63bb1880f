"""The database of one service: connections, and the one transaction that the edge opens and commits.

Neither side waits for the other for ever. A server that says nothing, frozen or hung behind a lock, is given up after
the patience of :class:`Database`, and its connection with it: whoever asked can be told to try again. A process of
ours that stops in the middle of a transaction loses it, and the locks that it holds, after some times that.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache, partial
from typing import Any, TypeVar

import asyncpg
import psycopg
from pydantic_core import to_json
from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Dialect,
    Identity,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, UUID
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

_HOT_CONNECTIONS = 5
_HOT_SETTINGS = {
    # No NOTIFY for what is written to the outbox: commits would wait for each other (docs/adr/0014).
    "mafl.wakes": "itself",
    # Else the same statement is planned again for each number of rows.
    "plan_cache_mode": "force_generic_plan",
}
"""A group of what is counted and two of what is stored may be under way at once, and the relay; and one to spare."""

_KNOWN_TO_ASYNCPG = frozenset({"host", "port", "passfile", "target_session_attrs", "application_name"})

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


T = TypeVar("T")

PATIENCE = 15.0
_IDLE_PATIENCES = 4
"""A transaction that does nothing for so many times the patience is ended by the server: others may wait for it."""
_LONGEST_PATIENCES = 40
"""So is one that lasts so many times the patience: after a pipeline of psycopg's the server counts no idleness."""


class _Listening(psycopg.AsyncConnection[Any]):
    """A connection that is closed when the server says nothing for ``patience`` seconds in the middle of its work.

    Cancelling a call is not enough: the driver then waits for the server to confirm it.
    """

    patience = PATIENCE

    async def wait(self, gen: Generator[Any, Any, T], *arguments: Any, **options: Any) -> T:
        try:
            return await super().wait(_heard(gen, self.patience), *arguments, **options)
        except _Silence:
            self.pgconn.finish()
            raise psycopg.OperationalError(f"the database has said nothing for {self.patience:g} seconds") from None


class _Silence(Exception):
    """Nothing was to be read or written for too long."""


def _heard(gen: Generator[Any, Any, T], patience: float) -> Generator[Any, Any, T]:
    """The driver's generator; it is sent what its socket is ready for, and nothing from time to time."""
    heard = time.monotonic()
    try:
        state = next(gen)
        while True:
            ready = yield state
            if ready:
                heard = time.monotonic()
            elif time.monotonic() - heard > patience:
                raise _Silence
            state = gen.send(ready)
    except StopIteration as end:
        found: T = end.value
        return found


async def _connect(patience: float, *arguments: Any, **options: Any) -> psycopg.AsyncConnection[Any]:
    connection = await _Listening.connect(*arguments, **options)
    connection.patience = patience
    return connection


class Database:
    """One service's own PostgreSQL database. ``url`` is a ``postgresql+psycopg://`` address.

    A call that the server leaves without a sign for ``patience`` seconds raises what :func:`unavailable` knows.
    With ``by_index`` PostgreSQL reads a whole table only where no index leads to the rows, however small it is.
    """

    def __init__(self, url: str, *, pool: int = 8, patience: float = PATIENCE, by_index: bool = False) -> None:
        self.url = url
        self._patience = patience
        self._settings = {
            "idle_in_transaction_session_timeout": f"{_IDLE_PATIENCES * patience * 1000:.0f}",
            "transaction_timeout": f"{_LONGEST_PATIENCES * patience * 1000:.0f}",
            # A statement that waits, for a lock say, ends when nobody is there any more to hear of it.
            "client_connection_check_interval": "2000",
        } | ({"enable_seqscan": "off"} if by_index else {})
        self.engine = create_async_engine(
            url,
            pool_size=pool,
            max_overflow=0,
            pool_timeout=5,
            # A failed statement is logged; lineups' words and hashes of keys are its parameters.
            hide_parameters=True,
            connect_args={
                "connect_timeout": 3,
                "async_creator_fn": partial(_connect, patience),
                "options": " ".join(f"-c {name}={value}" for name, value in self._settings.items()),
            },
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
        pool = await self._hot_pool()
        try:
            connection = await pool.acquire(timeout=5)
        except (OSError, TimeoutError) as error:
            raise Unreachable(f"no connection to the database: {error!r}") from error
        try:
            yield connection
        except BaseException as error:
            # One that was cut off in the middle may take the next statement for part of the last.
            if not isinstance(error, asyncpg.PostgresError) or unavailable(error):
                connection.terminate()
            if isinstance(error, Exception) and unavailable(error):
                await pool.expire_connections()  # What befell this one has likely befallen the others.
            if isinstance(error, TimeoutError):
                raise Unreachable(f"the database has said nothing for {self._patience:g} seconds") from error
            raise
        finally:
            await pool.release(connection)

    @asynccontextmanager
    async def hot_transaction(self) -> AsyncIterator[asyncpg.Connection]:
        """As :meth:`hot`, in one transaction: committed when the block ends, rolled back when it raises."""
        async with self.hot() as connection, connection.transaction():
            yield connection

    @asynccontextmanager
    async def listening(self, channel: str, heard: Callable[[], None]) -> AsyncIterator[asyncpg.Connection]:
        """A connection of its own that calls ``heard`` at each NOTIFY of a channel, and when it is closed."""
        try:
            connection = await asyncpg.connect(_for_asyncpg(self.url), timeout=3)
        except (OSError, TimeoutError) as error:
            raise Unreachable(f"no connection to the database: {error!r}") from error
        try:
            connection.add_termination_listener(lambda _: heard())
            await connection.add_listener(channel, lambda *_: heard())
            yield connection
        finally:
            connection.terminate()

    async def _hot_pool(self) -> asyncpg.Pool:
        async with self._hot_opening:
            if self._hot is None:
                self._hot = await asyncpg.create_pool(
                    _for_asyncpg(self.url),
                    min_size=0,
                    max_size=_HOT_CONNECTIONS,
                    timeout=3,
                    # Cancelling is not enough: asyncpg then waits for the server to confirm it, this long at most.
                    command_timeout=self._patience,
                    server_settings={**self._settings, **_HOT_SETTINGS},
                    reset=_nothing,  # Its own would cost a round trip; nothing here outlives a transaction.
                )
        return self._hot

    async def close(self) -> None:
        if self._hot is not None:
            self._hot.terminate()
        await self.engine.dispose()


def _for_asyncpg(url: str) -> str:
    """An address without what libpq alone understands: asyncpg would send it to the server as a setting."""
    parts = make_url(url).set(drivername="postgresql")
    unknown = [name for name in parts.query if not (name.startswith("ssl") or name in _KNOWN_TO_ASYNCPG)]
    return parts.difference_update_query(unknown).render_as_string(hide_password=False)


async def _nothing(_: asyncpg.Connection) -> None:
    pass


async def driver(connection: AsyncConnection) -> psycopg.AsyncConnection[Any]:
    """The driver's connection under one of SQLAlchemy's, in the same transaction: for arrays of many rows."""
    raw = await connection.get_raw_connection()
    found = raw.driver_connection
    if not isinstance(found, psycopg.AsyncConnection):
        raise TypeError(f"{type(found).__name__} is no connection of psycopg")
    return found


PSYCOPG: Dialect = PGDialect_psycopg()  # type: ignore[no-untyped-call]
"""How expressions of SQLAlchemy are written where a statement is text."""


_ADDING = "INSERT INTO {table} ({columns}) SELECT {columns} FROM {rows}"


@cache
def given_rows(table: Table) -> str:
    """A source of rows for statements of psycopg: all that one parameter, made by :func:`as_rows`, gives.

    Its columns are the table's by name and type; one that a row does not give is null.
    """
    columns = ", ".join(f"{column.name} {column.type.compile(dialect=PSYCOPG)}" for column in table.c)
    return f"json_to_recordset(%b::json) AS given ({columns})"


@cache
def adding_rows(table: Table) -> str:
    """A statement that inserts the :func:`given_rows` into their table, to be gone on with ``ON CONFLICT`` and more."""
    columns = ", ".join(column.name for column in table.c)
    return _ADDING.format(table=table.name, columns=columns, rows=given_rows(table))


def as_rows(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows by the names of their columns as one parameter; values are what JSON can be made of, models too."""
    return to_json(rows).decode()


class Unreachable(Exception):
    """The database cannot be reached, or has stopped to answer."""


_UNREACHABLE = (
    Unreachable,
    PoolTimeout,
    ConnectionError,
    psycopg.OperationalError,
    psycopg.InterfaceError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # What it says of a connection that the server ended while it lay in the pool.
    asyncpg.exceptions.OperatorInterventionError,
    asyncpg.exceptions.InsufficientResourcesError,
)

MAY_BE_UNAVAILABLE: tuple[type[Exception], ...] = (*_UNREACHABLE, DBAPIError)
"""The kinds of error that :func:`unavailable` tells apart."""


def unavailable(error: BaseException) -> bool:
    """Whether an error says that the database cannot be reached now, so that trying again later helps.

    A statement that the database refused (a constraint, a type) is not of this kind.
    """
    if isinstance(error, _UNREACHABLE):
        return True
    if isinstance(error, DBAPIError):
        return error.connection_invalidated or isinstance(error, OperationalError | InterfaceError)
    return False
