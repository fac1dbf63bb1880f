"""How long a week takes from its lock until the boards show it settled. ``./run bench week`` runs it.

    ./run bench week [--lineups 1000,10000,50000] [--rounds 1] [--json]

Week 4 of 2017 as it was offered and played, in a replay, on PostgreSQL and NATS as ``mafl up`` starts them (fsync on),
each measurement from an empty directory. Contests, settlement and boards run, each one process; the other two listen
to the lock as well, and nothing here waits for what they do with it.

Before the clock starts: agents are written into contests' and boards' own tables in bulk, as the events of so many
registrations would leave them, half of them claimed, under 40 models; each sends one random legal lineup with words of
some 3 KB through contests' own intake, and what is due to moderation is on the bus; the final statistics are imported.

Then an operator moves the clock to the lock, asks settlement to settle until it has all lineups and does, and asks
boards until they show the settled week. All the while somebody asks each service for a sign of life, and boards for
their first page. In the end the results are counted: every lineup must be there, once, under one settlement version.

``marks`` are the seconds from the clock's start until each part was done. The parts overlap but for ``lock`` and
``settle``, which have their own seconds in ``took``. ``processor`` has seconds of processor time, ``memory`` peaks in
MB: of a service its resident memory, of PostgreSQL that of all its processes less what they share.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import json
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import httpx
import psutil
import psycopg
from intake import CONTEST, NAMES, ROOT, TOKEN, WORDS, Copy, processor_time, request, send_each, stand, uvicorn
from measuring import machine, median, say

from common import logs
from house.season import read_files, statistics_of

SERVICES = ("contests", "settlement", "boards")
MODELS = 40
MARKS = ("lock", "contests_relay", "settlement_intake", "settle", "settlement_relay", "boards_intake", "shown")
BEFORE_THE_LOCK = "2017-10-01T10:00:00Z"
PATIENCE = 900.0
Figures = dict[str, Any]


# --- before the clock starts ----------------------------------------------------------------------


@dataclass(frozen=True)
class Agent:
    """The agent of a number."""

    number: int

    @property
    def id(self) -> UUID:
        return UUID(bytes=hashlib.sha256(b"agent %d" % self.number).digest()[:16], version=4)

    @property
    def key(self) -> str:
        return f"mafl_sk_{self.id.hex}"

    @property
    def model(self) -> str:
        return f"load-{self.number % MODELS // 4}/model-{self.number % 4}"


def register(agents: list[Agent], contests: str, boards: str) -> None:
    """What the events of registrations, claims and cleared names leave in two databases."""
    with psycopg.connect(contests) as connection, connection.cursor() as cursor:
        with cursor.copy("COPY agents (agent_id, version, model, house, cohort, reference) FROM STDIN") as rows:
            for one in agents:
                rows.write_row((one.id, 1, one.model, False, False, False))
        with cursor.copy("COPY agent_keys (agent_id, version, key_hash) FROM STDIN") as rows:
            for one in agents:
                rows.write_row((one.id, 1, hashlib.sha256(one.key.encode()).hexdigest()))
    with psycopg.connect(boards) as connection, connection.cursor() as cursor:
        columns = "agent_id, version, name, model, claimed, house, cohort, reference"
        with cursor.copy(f"COPY agents ({columns}) FROM STDIN") as rows:
            for one in agents:
                rows.write_row((one.id, 1, f"agent {one.number}", one.model, one.number % 2 == 0, False, False, False))
        with cursor.copy("COPY agent_names (agent_id, version, name, state) FROM STDIN") as rows:
            for one in agents:
                rows.write_row((one.id, 1, f"agent {one.number}", "cleared"))
        with cursor.copy("COPY model_names (model, version, state) FROM STDIN") as rows:
            for model in sorted({one.model for one in agents}):
                rows.write_row((model, 1, "cleared"))


def lineups(roster: list[dict[str, Any]], players: list[dict[str, Any]], agents: list[Agent]) -> Iterator[bytes]:
    """One random legal lineup of each agent, as it goes over the wire."""
    dice = random.Random(4)
    may_play = {slot["slot"]: [p for p in players if set(p["positions"]) & set(slot["positions"])] for slot in roster}
    for agent in agents:
        while True:
            picked = [dice.choice(may_play[slot]) for slot in NAMES]
            if len({p["player_id"] for p in picked}) == len(NAMES) and sum(p["price"] for p in picked) <= 50_000:
                break
        picks = [
            {
                "slot": slot,
                "player_id": player["player_id"],
                "rationale": f"{player['name']}: {WORDS} ({agent.number})",
                "confidence": round(dice.random(), 2),
                "main_factor": "volume at a low price",
            }
            for slot, player in zip(NAMES, picked, strict=True)
        ]
        body = {"picks": picks, "thesis": WORDS, "projected_score": dice.randint(600, 1600) / 10, "confidence": 0.5}
        yield request(json.dumps(body).encode(), agent.key)


# --- who is measured ------------------------------------------------------------------------------


@dataclass
class Week:
    """The running services of one measurement, and PostgreSQL and NATS under them, by name."""

    copies: dict[str, Copy]
    addresses: dict[str, str]
    operators: dict[str, httpx.AsyncClient]
    pids: dict[str, int]

    async def contest(self) -> str:
        """Open the contest, and let the time be a while before its lock; when it locks."""
        files = read_files(ROOT / "data", 2017)
        contests, settlement = self.operators["contests"], self.operators["settlement"]
        await call(contests, "PUT", "/operator/api/v1/clock", json={"now": BEFORE_THE_LOCK})
        await call(contests, "POST", "/operator/api/v1/contests/import?season=2017&week=4", content=files.pool)
        await call(contests, "POST", f"/operator/api/v1/contests/{CONTEST}/open")
        statistics = statistics_of(files, 4, sunday_only=False)
        wanted = "/operator/api/v1/statistics?season=2017&week=4&final=true"
        await call(settlement, "POST", wanted, content=statistics)
        locks_at: str = (await call(contests, "GET", f"/api/v1/contests/{CONTEST}"))["locks_at"]
        return locks_at

    async def enter(self, agents: list[Agent]) -> None:
        """Let each agent enter one lineup, and wait until all that is due to moderation is on the bus."""
        await asyncio.to_thread(register, agents, self.addresses["contests"], self.addresses["boards"])
        contests = self.operators["contests"]
        roster = (await call(contests, "GET", f"/api/v1/contests/{CONTEST}"))["roster"]
        players = (await call(contests, "GET", f"/api/v1/contests/{CONTEST}/pool"))["players"]
        await send_each(self.copies["contests"].port, lineups(roster, players, agents))
        await self.until("the outbox to be empty", lambda: self._none("contests", "outbox WHERE published_at IS NULL"))
        await self.until("boards to have the contest", lambda: self._some("boards", "contests"))
        for name, address in self.addresses.items():
            await asyncio.to_thread(maintain, address)
            say(f"  {name} is ready")

    async def settle(self) -> bool:
        """Settle where all lineups have arrived."""
        answer = await self.operators["settlement"].post(f"/operator/api/v1/contests/{CONTEST}/settle")
        if answer.status_code == 409 and answer.json()["code"] in ("lineups-missing", "moving"):
            return False
        answer.raise_for_status()
        return True

    async def is_shown(self) -> bool:
        """Whether boards answer with the settled week."""
        boards = self.operators["boards"]
        if not (await boards.get(f"/api/v1/contests/{CONTEST}/optimal")).is_success:
            return False
        return CONTEST in (await call(boards, "GET", "/api/v1/boards/models"))["contests"]

    async def until(self, what: str, so: Callable[[], Any], pause: float = 0.05) -> None:
        """Wait; raises ``SystemExit`` where it does not come."""
        deadline = time.monotonic() + PATIENCE
        while not await so():
            if time.monotonic() > deadline:
                raise SystemExit(f"waited {PATIENCE:.0f} s for {what}")
            await asyncio.sleep(pause)

    async def _none(self, name: str, rows: str) -> bool:
        return await asyncio.to_thread(ask, self.addresses[name], f"SELECT NOT EXISTS (SELECT FROM {rows})")

    async def _some(self, name: str, rows: str) -> bool:
        return await asyncio.to_thread(ask, self.addresses[name], f"SELECT EXISTS (SELECT FROM {rows})")

    def marks(self, begun: float) -> Figures:
        """When the parts were done of which the databases tell."""
        sent = "SELECT extract(epoch FROM max(published_at)) - {} FROM outbox"
        taken = "SELECT extract(epoch FROM max(received_at)) - {} FROM inbox"
        return {
            mark: float(ask(self.addresses[name], query.format(begun)))
            for mark, name, query in (
                ("contests_relay", "contests", sent),
                ("settlement_intake", "settlement", taken),
                ("settlement_relay", "settlement", sent),
                ("boards_intake", "boards", taken),
            )
        }

    async def count(self, wanted: int) -> None:
        """Raises ``SystemExit`` unless every lineup has one result, everywhere."""
        for name in ("settlement", "boards"):
            query = "SELECT array[count(*), count(DISTINCT lineup_id), max(settlement)] FROM results"
            found = await asyncio.to_thread(ask, self.addresses[name], query)
            if found != [wanted, wanted, 1]:
                raise SystemExit(f"{name} has {found} results, lineups, versions in place of {[wanted, wanted, 1]}")
        shown = await call(self.operators["boards"], "GET", f"/api/v1/contests/{CONTEST}/results")
        if (shown["state"], shown["settlement"], len(shown["lineups"])) != ("final", 1, wanted):
            raise SystemExit(f"boards show {len(shown['lineups'])} lineups as {shown['state']}")


async def call(client: httpx.AsyncClient, method: str, path: str, **more: Any) -> Any:
    """The JSON of an answer; raises where it is none of success."""
    answer = await client.request(method, path, **more)
    if not answer.is_success:
        raise SystemExit(f"{method} {path}: {answer.status_code} {answer.text[:1000]}")
    return answer.json()


def ask(address: str, query: str) -> Any:
    """The one value of a query."""
    with psycopg.connect(address) as connection:
        row = connection.execute(query).fetchone()  # type: ignore[arg-type]
    return None if row is None else row[0]


def maintain(address: str) -> None:
    """What autovacuum would have done by now."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")


@contextlib.asynccontextmanager
async def running() -> AsyncIterator[Week]:
    """The services on servers of their own, from an empty directory, for as long as it lasts."""
    async with contextlib.AsyncExitStack() as stack:
        servers = await stack.enter_async_context(stand(0))
        week = Week({}, {}, {}, {"postgresql": servers.server.pid or 0, "nats": servers.bus.pid or 0})
        for name in SERVICES:
            if name != "contests":
                await asyncio.to_thread(servers.server.create_service_database, name)
            url = servers.server.url(name)
            environment = {
                "MAFL_DATABASE_URL": url,
                "MAFL_NATS_URL": servers.bus.url(name),
                "MAFL_OPERATOR_TOKEN": TOKEN,
                "MAFL_ENVIRONMENT": "embedded",
                "MAFL_CLOCK": "replay",
                "MAFL_LOG_LEVEL": "warning",
            }
            copy = await stack.enter_async_context(uvicorn(f"{name}.main:app", "--factory", environment=environment))
            operator = httpx.AsyncClient(
                base_url=f"http://127.0.0.1:{copy.port}",
                headers={"Authorization": f"Bearer {TOKEN}"},
                timeout=PATIENCE,
                limits=httpx.Limits(keepalive_expiry=1),  # the servers close what is idle for five seconds
            )
            week.operators[name] = await stack.enter_async_context(operator)
            week.copies[name] = copy
            week.addresses[name] = url.replace("+psycopg", "")
            week.pids[name] = copy.pid
        yield week


# --- measuring ------------------------------------------------------------------------------------


@dataclass
class Watch:
    """How long the services took to answer meanwhile (seconds, the longest), and the memory that they took (MB)."""

    week: Week
    waited: dict[str, float] = field(default_factory=dict)
    memory: dict[str, float] = field(default_factory=dict)

    async def ask_for_signs(self) -> None:
        pages = {name: (name, "/healthz") for name in SERVICES} | {"page": ("boards", "/")}
        await asyncio.gather(*(self._ask(of, *where) for of, where in pages.items()))

    async def _ask(self, of: str, name: str, path: str) -> None:
        address = str(self.week.operators[name].base_url)
        async with httpx.AsyncClient(base_url=address, timeout=PATIENCE) as client:
            while True:
                begun = time.perf_counter()
                (await client.get(path)).raise_for_status()
                self.waited[of] = max(self.waited.get(of, 0.0), time.perf_counter() - begun)
                await asyncio.sleep(1.0 if of == "page" else 0.1)

    async def weigh(self) -> None:
        while True:
            for name, pid in self.week.pids.items():
                whole = psutil.Process(pid)
                taken = 0.0
                for one in (whole, *whole.children(recursive=True)):
                    with contextlib.suppress(psutil.NoSuchProcess):
                        memory = one.memory_info()
                        taken += memory.rss - (getattr(memory, "shared", 0) if name == "postgresql" else 0)
                self.memory[name] = max(self.memory.get(name, 0.0), taken / 1e6)
            await asyncio.sleep(0.1)


@contextlib.asynccontextmanager
async def watched(week: Week) -> AsyncIterator[Watch]:
    """A watch over the services for as long as it lasts; raises what it met with."""
    watch = Watch(week)
    async with asyncio.TaskGroup() as group:
        watching = [group.create_task(watch.ask_for_signs()), group.create_task(watch.weigh())]
        yield watch
        for task in watching:
            task.cancel()


async def measure(number: int) -> Figures:
    """One week of so many lineups."""
    async with running() as week:
        locks_at = await week.contest()
        await week.enter([Agent(one) for one in range(number)])
        before = {name: processor_time([pid]) for name, pid in week.pids.items()}
        async with watched(week) as watch:
            begun, started = time.time(), time.perf_counter()
            await call(week.operators["contests"], "PUT", "/operator/api/v1/clock", json={"now": locks_at})
            marks: Figures = {"lock": time.perf_counter() - started}
            asked = started

            async def settled() -> bool:
                nonlocal asked
                asked = time.perf_counter()
                return await week.settle()

            await week.until("settlement to settle", settled, 0.1)
            marks["settle"] = time.perf_counter() - started
            settling = time.perf_counter() - asked
            await week.until("boards to show it", week.is_shown, 0.1)
            marks["shown"] = time.perf_counter() - started
            processor = {name: processor_time([pid]) - before[name] for name, pid in week.pids.items()}
        marks |= await asyncio.to_thread(week.marks, begun)
        await week.count(number)
    return {
        "seconds": marks["shown"],
        "marks": {mark: round(marks[mark], 3) for mark in MARKS},
        "took": {"lock": marks["lock"], "settle": settling},
        "processor": {name: round(seconds, 2) for name, seconds in processor.items()},
        "memory": {name: round(taken, 1) for name, taken in watch.memory.items()},
        "waited": {name: round(seconds, 3) for name, seconds in watch.waited.items()},
    }


def run(numbers: list[int], rounds: int) -> dict[str, Any]:
    """Measure, and give the result.

    ``ratios`` tell what a lineup takes, in seconds and in processor time, in a week of so many beside one of the
    fewest: 1 or less where the time is linear.
    """
    logs.configure("bench", "warning")  # standard output is the result's
    measured: dict[str, list[Figures]] = {str(number): [] for number in numbers}
    for turn in range(rounds):
        for number in numbers:
            figures = asyncio.run(measure(number))
            measured[str(number)].append(figures)
            say(f"round {turn + 1}  {number:6}  {shown(figures)}")
    least = str(min(numbers))

    def each(figures: Figures, number: str, what: str) -> float:
        whole = figures["seconds"] if what == "seconds" else sum(figures["processor"].values())
        return float(whole) / int(number)

    def ratio(number: str, what: str) -> float:
        pairs = zip(measured[number], measured[least], strict=True)
        return median(each(one, number, what) / each(other, least, what) for one, other in pairs)

    return {
        "name": "week",
        "ratios": {number: ratio(number, "seconds") for number in measured if number != least},
        "processor_ratios": {number: ratio(number, "processor") for number in measured if number != least},
        "seconds": {number: median(one["seconds"] for one in of) for number, of in measured.items()},
        "rounds": [dict(zip(measured, of, strict=True)) for of in zip(*measured.values(), strict=True)],
        "machine": machine(),
    }


def shown(figures: Figures) -> str:
    """What one measurement gave, for a person."""

    def listed(of: dict[str, float], digits: int) -> str:
        return ", ".join(f"{name.replace('_', ' ')} {value:.{digits}f}" for name, value in of.items())

    return (
        f"{figures['seconds']:7.2f} s from the lock to the boards\n"
        f"  done after (s): {listed(figures['marks'], 2)}\n"
        f"  took (s): {listed(figures['took'], 2)}\n"
        f"  processor (s): {listed(figures['processor'], 2)}; in all {sum(figures['processor'].values()):.2f}\n"
        f"  memory (MB): {listed(figures['memory'], 0)}\n"
        f"  the longest wait for a sign of life (s): {listed(figures['waited'], 2)}"
    )


def show(found: dict[str, Any]) -> None:
    """The result for a person."""
    for number, seconds in found["seconds"].items():
        print(f"median  {number:>6} lineups  {seconds:7.2f} s from the lock to the boards")
    for number, ratio in found["ratios"].items():
        print(f"a lineup of {number} takes {ratio:.2f} x what one of the fewest does", end="")
        print(f", and {found['processor_ratios'][number]:.2f} x the processor time")


def numbers(text: str) -> list[int]:
    """Numbers of lineups, ascending."""
    given = text.split(",")
    if not all(one.isdecimal() and int(one) for one in given):
        raise argparse.ArgumentTypeError("must be numbers of one or more, with commas between them")
    return sorted({int(one) for one in given})


def arguments(parser: argparse.ArgumentParser) -> None:
    """What may be said on the command line."""
    parser.add_argument("--lineups", type=numbers, default=[1000, 10000, 50000], help="1000,10000,50000")
    parser.add_argument("--rounds", type=int, default=1, help="all numbers in turn, so many times (1)")


def main(given: argparse.Namespace) -> tuple[dict[str, Any], Callable[[dict[str, Any]], None]]:
    """What ``./run bench week`` does."""
    return run(given.lineups, given.rounds), show
