"""Several processes of contests on a PostgreSQL and a NATS that write to the disk, for tests that kill them.

They are started with the command of the embedded stack. Agents call them over connections of their own that do little
beside sending and reading, so that thousands of calls leave the machine to the processes that are tested.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx

from common import events as ev
from common.clock import wall
from common.migrate import upgrade
from common.provision import provision
from embedded.nats import Nats
from embedded.parts import HttpService, log_of
from embedded.postgres import Postgres
from embedded.process import free_port, log_tail, spawn
from testkit.fixtures import OPERATOR_TOKEN, admin

FIRST, RUSH = "2026-W04", "2026-W05"
"""Two contests: one that stays open, and one that locks when a test says so."""

SLOTS = ("QB", "RB1", "RB2", "WR1", "WR2", "WR3", "TE", "FLEX", "DST")
_POSITIONS = {"QB": 3, "RB": 12, "WR": 12, "TE": 3, "DST": 2}
_PLAYS = {"RB1": "RB", "RB2": "RB", "WR1": "WR", "WR2": "WR", "WR3": "WR", "FLEX": "RB"}
_NUMBER = b"@@@@@@@"
_WORDS = (
    "He has had seven targets or more in each of his last three games and costs less than receivers with half his "
    "share of the passes; the other side gives up the third most yards to his position and starts two new corners. "
)


class Lost(Exception):
    """No answer came: the connection was refused or broke. Whether the call was done is not known."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, and between which instants of this machine's clock it was asked for and there."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    asked: datetime
    there: datetime

    @property
    def document(self) -> Any:
        return json.loads(self.content)


class Line:
    """One client's kept connection to one port of this machine."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def call(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"", *, patience: float = 60.0
    ) -> Answer:
        """One call. Raises ``Lost``, also where no answer comes in ``patience`` seconds."""
        lines = [f"{method} {path} HTTP/1.1", "Host: mafl.test", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        asked = datetime.now(UTC)
        try:
            async with asyncio.timeout(patience):
                if self._streams is None:
                    self._streams = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 22)
                reader, writer = self._streams
                writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                given = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:-2])}
                content = await reader.readexactly(int(given.get("content-length", 0)))
        except (OSError, EOFError, TimeoutError) as error:
            self.close()
            raise Lost(repr(error)) from error
        if given.get("connection") == "close":
            self.close()
        return Answer(int(head[0].split()[1]), given, content, asked, datetime.now(UTC))

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


class Copy:
    """One process of contests."""

    def __init__(self, number: int, environment: Mapping[str, str], folder: Path) -> None:
        self.name = f"contests-{number}"
        self.port = free_port()
        self.folder = folder
        self._service = HttpService(self.name, "contests.main:app", self.port, environment, folder)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def spawn(self) -> None:
        """Start it; from the thread of the event loop, with whose end it would die."""
        self._process = spawn(self._service.command())

    async def ready(self, patience: float = 40.0) -> None:
        """Wait until it can do its whole work."""
        deadline = time.monotonic() + patience
        while not await asyncio.to_thread(self._service.is_ready):
            assert self._process is not None
            assert self._process.poll() is None, self.log()
            assert time.monotonic() < deadline, self.log()
            await asyncio.sleep(0.05)

    def send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """End it with -9."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()
            try:
                self._process.wait(15)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def log(self) -> str:
        return f"{self.name}:\n{log_tail(log_of(self.folder, self.name), 40)}"


@dataclass
class Agent:
    """An agent with its key, and its connections."""

    number: int
    agent_id: UUID = field(default_factory=uuid4)
    key: str = field(default_factory=lambda: f"mafl_sk_{uuid4().hex}")
    lines: dict[int, Line] = field(default_factory=dict)

    async def call(
        self, port: int, method: str, path: str, body: bytes = b"", *, key: str | None = None, patience: float = 60.0
    ) -> Answer:
        """A call of the public API of contests. Raises ``Lost``."""
        headers = {"Authorization": f"Bearer {self.key}"} | ({"Idempotency-Key": key} if key else {})
        line = self.lines.setdefault(port, Line(port))
        return await line.call(method, f"/api/v1/contests/{path}", headers, body, patience=patience)

    async def submit(
        self, port: int, body: bytes, contest: str = FIRST, *, key: str | None = None, patience: float = 60.0
    ) -> Answer:
        return await self.call(port, "POST", f"{contest}/lineups", body, key=key, patience=patience)

    async def revisions(self, port: int, contest: str = FIRST) -> list[dict[str, Any]]:
        """Every revision that the agent has in a contest, in order; asked again where the database was just away."""
        deadline = time.monotonic() + 10
        while True:
            answer = await self.call(port, "GET", f"{contest}/lineups/mine/revisions")
            if answer.status != 503 or time.monotonic() > deadline:
                break
        assert answer.status == 200, answer.content
        found: list[dict[str, Any]] = answer.document["revisions"]
        return found

    def hang_up(self) -> None:
        for line in self.lines.values():
            line.close()


class Intake:
    """Contests with its servers and agents. Made by :func:`intake`."""

    def __init__(self, folder: Path, postgres: Postgres, bus: Nats, settings: Mapping[str, str], copies: int) -> None:
        self.folder = folder
        self.postgres = postgres
        self.bus = bus
        self.database_url = postgres.url("contests")
        environment = {
            "MAFL_DATABASE_URL": self.database_url,
            "MAFL_NATS_URL": bus.url("contests"),
            "MAFL_OPERATOR_TOKEN": OPERATOR_TOKEN,
            "MAFL_ENVIRONMENT": "embedded",
            "MAFL_LOG_LEVEL": "warning",
            **settings,
        }
        self.copies = [Copy(number, environment, folder) for number in range(1, copies + 1)]
        self.agents: list[Agent] = []

    @property
    def ports(self) -> list[int]:
        return [copy.port for copy in self.copies]

    async def operator(self, method: str, path: str, **options: Any) -> Any:
        """A call of the operator's API on the first copy, which must succeed."""
        headers = {"Authorization": f"Bearer {OPERATOR_TOKEN}"}
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{self.ports[0]}", headers=headers, timeout=60) as call:
            answer = await call.request(method, f"/operator/api/v1/{path}", **options)
        assert answer.is_success, answer.text
        return answer.json()

    async def register(self, many: int) -> list[Agent]:
        """So many new agents, whose events have arrived."""
        new = [Agent(number) for number in range(len(self.agents), len(self.agents) + many)]
        self.agents += new
        events = [
            event
            for agent in new
            for event in (
                ev.AgentRegistered(agent_id=agent.agent_id, agent_name=f"agent {agent.number}", model="rush/model-1"),
                ev.AgentKeyChanged(agent_id=agent.agent_id, key_hash=hashlib.sha256(agent.key.encode()).hexdigest()),
            )
        ]
        await self.publish(*((event, 1) for event in events))
        for agent in new:
            await self.known(agent)
        return new

    async def known(self, agent: Agent, patience: float = 30.0) -> None:
        """Wait until the key of an agent lets it in."""
        deadline = time.monotonic() + patience
        while (await agent.call(self.ports[0], "GET", f"{FIRST}/lineups/mine")).status in (401, 503):
            assert time.monotonic() < deadline, "the agent's events do not arrive"
            await asyncio.sleep(0.05)

    async def publish(self, *events: tuple[ev.Event, int]) -> None:
        """Put events on the bus as their owners would: pairs of event and version."""
        async with admin(self.bus) as client:
            js = client.jetstream(timeout=30)
            packed = [
                ev.pack(event, event_id=uuid4(), aggregate_version=version, correlation_id="test", time=wall())
                for event, version in events
            ]
            for envelope in packed:
                await js.publish(envelope.type, envelope.model_dump_json().encode())

    async def told(self, kind: type[ev.Event], at_least: int = 0, patience: float = 60.0) -> list[Any]:
        """Every event of a kind on the bus, in order and each once, as soon as there are so many."""
        deadline = time.monotonic() + patience
        async with admin(self.bus) as client:
            js = client.jetstream()
            reader = await js.pull_subscribe(kind.subject(), stream=kind.stream)
            found: dict[UUID, ev.Event] = {}
            while True:
                try:
                    for message in await reader.fetch(500, timeout=0.5):
                        envelope = ev.Envelope.model_validate_json(message.data)
                        found[envelope.id] = kind.model_validate(envelope.data)
                        await message.ack()
                except TimeoutError:  # The client raises its own kind or the plain one.
                    if len(found) >= at_least:
                        return list(found.values())
                    assert time.monotonic() < deadline, f"{len(found)} of {at_least} {kind.subject()} are on the bus"

    async def contest(self, contest: str, locks_at: datetime) -> None:
        """Open a contest of one game that locks at this instant."""
        await self.operator("POST", "contests/import", content=pool(contest, locks_at), params={"days": _days()})
        await self.operator("POST", f"contests/{contest}/open")
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{self.ports[0]}", timeout=60) as client:
            shown = (await client.get(f"/api/v1/contests/{contest}")).json()
        assert datetime.fromisoformat(shown["locks_at"]) == locks_at


def _days() -> list[str]:
    return ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


_COLUMNS = "season,week,source_player_id,player_id,name,position,team,opponent,home_away,game_id,kickoff,salary"


def pool(contest: str, kickoff: datetime) -> bytes:
    """A pool file of one game, with players enough."""
    season, week = int(contest[:4]), int(contest[-2:])
    rows = [
        f"{season},{week},{position}-{number},{position}-{number},{position} Number {number},{position},NE,BUF,home,"
        f"{season}_{week:02}_BUF_NE,{kickoff.isoformat()},{4000 + 100 * number}"
        for position, many in _POSITIONS.items()
        for number in range(many)
    ]
    return "\r\n".join([_COLUMNS, *rows, ""]).encode()


def lineup() -> dict[str, Any]:
    """A legal lineup of the pool, some 3 KB, with a place in its words for a number of its own."""
    taken: dict[str, int] = {}
    picks = []
    for slot in SLOTS:
        position = _PLAYS.get(slot, slot)
        number = taken.get(position, 0)
        taken[position] = number + 1
        picks.append(
            {
                "slot": slot,
                "player_id": f"{position}-{number}",
                "rationale": f"{_WORDS} ({_NUMBER.decode()})",
                "confidence": 0.41,
                "main_factor": "volume at a low price",
            }
        )
    return {"picks": picks, "thesis": _WORDS, "projected_score": 88.5, "confidence": 0.5}


_SOUND = json.dumps(lineup()).encode()


def body(number: int) -> bytes:
    """A sound lineup whose words are its own."""
    return _SOUND.replace(_NUMBER, b"%07d" % number)


def far(days: int = 300) -> datetime:
    """An instant long after the test."""
    return (datetime.now(UTC) + timedelta(days=days)).replace(microsecond=0)


@contextlib.asynccontextmanager
async def servers(folder: Path, service: str, *, durable: bool) -> AsyncIterator[tuple[Postgres, Nats]]:
    """A database server with a service's database as its migrations leave it, and a bus with all streams."""
    postgres, bus = Postgres(folder / "postgres", durable=durable), Nats(folder / "nats", durable=durable)
    with contextlib.ExitStack() as stack:
        postgres.start()
        stack.callback(postgres.stop)
        bus.start()
        stack.callback(bus.stop)
        async with admin(bus) as client:
            await provision(client.jetstream())
        postgres.create_service_database(service)
        await asyncio.to_thread(upgrade, postgres.url(service), service)
        yield postgres, bus


@contextlib.asynccontextmanager
async def intake(
    folder: Path, *, copies: int = 2, durable: bool = True, settings: Mapping[str, str] | None = None
) -> AsyncIterator[Intake]:
    """Start all, with the first contest open; ``durable`` servers write each thing to the disk before they say so."""
    async with servers(folder, "contests", durable=durable) as (postgres, bus), contextlib.AsyncExitStack() as stack:
        made = Intake(folder, postgres, bus, settings or {}, copies)
        for copy in made.copies:
            copy.spawn()
            stack.callback(copy.stop)
        await asyncio.gather(*(copy.ready() for copy in made.copies))
        await made.contest(FIRST, far())
        try:
            yield made
        finally:
            for agent in made.agents:
                agent.hang_up()


def rows_of(address: str) -> str:
    """The address as psycopg itself takes it."""
    return address.replace("+psycopg", "")
