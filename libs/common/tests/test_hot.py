"""Hot connections: whatever befalls one, whoever waits is told, and the next works again."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import asyncpg
import pytest
from sqlalchemy.engine import make_url

from common.db import Database, unavailable
from common.grouped import Bounds, Grouped
from testkit.fixtures import Databases


@dataclass
class Line:
    """A line to a server that can go dead: it stays open and carries nothing."""

    host: str
    port: int
    carries: asyncio.Event = field(default_factory=asyncio.Event)
    _writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(self.host, self.port)
        self._writers += [writer, back]
        await asyncio.gather(self._pass(reader, back), self._pass(there, writer))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                await self.carries.wait()
                writer.write(data)
                await writer.drain()
            writer.close()

    def cut(self) -> None:
        for writer in self._writers:
            writer.close()


@contextlib.asynccontextmanager
async def line_to(url: str) -> AsyncIterator[tuple[Line, str]]:
    parts = make_url(url)
    line = Line(parts.host or "127.0.0.1", parts.port or 5432)
    line.carries.set()
    server = await asyncio.start_server(line.join, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield line, parts.set(host="127.0.0.1", port=port).render_as_string(hide_password=False)
    finally:
        line.carries.set()
        line.cut()
        server.close()


@pytest.mark.rule("O4")
async def test_a_line_that_goes_dead_in_a_transaction_is_given_up_and_the_next_group_is_done(
    databases: Databases,
) -> None:
    async with line_to(databases.fresh("contests")) as (line, url):
        database = Database(url, patience=0.3)

        async def work(items: Sequence[int]) -> list[int | Exception]:
            async with database.hot_transaction() as connection:
                return [await connection.fetchval("SELECT $1::int", item) for item in items]

        grouped = Grouped(work, Bounds(largest=4, abreast=2, room=100, patience=1))

        async def done() -> None:
            async with asyncio.timeout(60):
                while True:
                    with contextlib.suppress(Exception):
                        assert await grouped(1) == 1
                        return

        await done()
        line.carries.clear()
        for _ in range(3):
            outcomes = await asyncio.gather(*(grouped(item) for item in range(8)), return_exceptions=True)
            assert all(isinstance(outcome, Exception) for outcome in outcomes)
        line.carries.set()
        await done()
        await database.close()


@pytest.mark.parametrize(
    "error",
    [
        socket.gaierror(-3, "Temporary failure in name resolution"),
        FileNotFoundError(2, "No such file or directory"),
        OSError("Multiple exceptions: [Errno 111] Connect call failed"),
        TimeoutError(),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_no_connection_at_all_is_a_database_that_is_gone(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object, **__: object) -> asyncpg.Connection:
        raise error

    monkeypatch.setattr(asyncpg.pool, "connect", refuse, raising=False)
    monkeypatch.setattr(asyncpg.connection, "connect", refuse)
    database = Database("postgresql+psycopg://nobody@127.0.0.1:1/none")
    with pytest.raises(Exception) as told:  # noqa: PT011  (its kind is what is asked)
        async with database.hot():
            pass
    assert unavailable(told.value)


async def test_what_libpq_alone_understands_of_an_address_is_left_to_it(databases: Databases) -> None:
    url = databases.fresh("contests") + "?connect_timeout=3&keepalives=1&application_name=here"
    database = Database(url)
    async with database.hot() as connection:
        assert await connection.fetchval("SHOW application_name") == "here"
    async with database.transaction() as connection:
        assert await connection.exec_driver_sql("SELECT 1") is not None
    await database.close()
