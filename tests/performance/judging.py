"""How fast moderation judges: a lineup, a backlog with one and two processes, 200 lineups at once.

    ./run bench moderation [--rounds 3] [--lineups 500] [--at-once 200] [--json]

A lineup is 19 texts, some 3 KB, each with a number of its own, so that none is judged twice. PostgreSQL and NATS are as
``mafl up`` starts them. In each round, in turn and each on an empty database:

  one        a backlog of so many lineups, cleared by moderation with one process that judges
  two        the same with two
  at_once    contests takes lineups of so many agents over 32 connections while moderation runs: from the first one sent
             until the last one is taken, and until the last text is judged; the age of the oldest text that waited, as
             moderation itself shows it

A backlog is timed from the first verdict to the last: what the start of the processes takes is ``start``, by itself.
The time for a lineup is that of the detectors alone, in one process, one text after the other.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import psycopg
from intake import CONTEST, NAMES, ROOT, TOKEN, WORDS, Copy, Stand, processor_time, send_each, stand, uvicorn
from measuring import machine, median, say
from psycopg.types.json import Jsonb

from common import logs
from common.migrate import upgrade
from moderation import detectors
from moderation.domain import text_hash
from moderation.pipeline import Context

TEXTS = 19
PATIENCE = 1800.0
Figures = dict[str, float]


def texts(number: int) -> dict[str, str]:
    """The texts of a lineup by JSON pointer."""
    words = {"/thesis": f"{WORDS}{WORDS} ({number})"}
    for pick, slot in enumerate(NAMES):
        words[f"/picks/{pick}/rationale"] = f"{slot} of lineup {number}: {WORDS} ({number}, {pick})"
        words[f"/picks/{pick}/main_factor"] = f"volume at a low price, {number}.{pick}"
    return words


def one_by_one(lineups: int) -> float:
    """Milliseconds of the detectors for a lineup, the median."""
    pipeline, context = detectors.load(), Context(names=frozenset(f"Player Number{number}" for number in range(450)))
    took = []
    for number in range(lineups + 5):
        begun = time.perf_counter()
        for text in texts(number).values():
            pipeline.judge(text, context, lambda detector, error: None)
        took.append(1000 * (time.perf_counter() - begun))
    return median(took[5:])  # the first ones compile and fill caches


class Place:
    """Databases of moderation on the servers of the load on intake."""

    def __init__(self, servers: Stand) -> None:
        self._servers = servers
        self._made = 0
        self.url = ""

    @contextlib.asynccontextmanager
    async def moderation(self, workers: int | None = None) -> AsyncIterator[Copy]:
        """A process of moderation on the newest database."""
        environment = {
            "MAFL_DATABASE_URL": self.url,
            "MAFL_NATS_URL": self._servers.bus.url("moderation"),
            "MAFL_OPERATOR_TOKEN": TOKEN,
            "MAFL_ENVIRONMENT": "embedded",
            "MAFL_LOG_LEVEL": "warning",
            **({} if workers is None else {"MAFL_MODERATION_WORKERS": str(workers)}),
        }
        async with uvicorn("moderation.main:app", "--factory", environment=environment) as copy:
            yield copy

    def fresh(self) -> None:
        """An empty database."""
        self._made += 1
        name = f"moderation_{self._made}"
        self._servers.server.clone("moderation", name)
        self.url = self._servers.server.url("moderation", name)

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.url.replace("+psycopg", ""), autocommit=True)

    def fill(self, lineups: int) -> None:
        """A backlog, as the events of submissions leave it."""
        due = datetime.now(UTC) + timedelta(days=3)
        with self.connect() as connection:
            names = [f"Player Number{number}" for number in range(450)]
            connection.execute(
                "INSERT INTO contests (contest, names, version, locks_at) VALUES (%s, %s, 1, %s)",
                (CONTEST, Jsonb(names), due),
            )
            columns = "lineup_id, revision, pointer, contest, agent_id, accepted_at, due_at, text, text_hash"
            with connection.cursor().copy(f"COPY texts ({columns}) FROM STDIN") as rows:
                for number in range(lineups):
                    lineup = uuid4()
                    for pointer, text in texts(number).items():
                        rows.write_row(
                            (lineup, 1, pointer, CONTEST, lineup, datetime.now(UTC), due, text, text_hash(text))
                        )
            connection.execute("ANALYZE texts")

    def judged(self) -> int:
        with self.connect() as connection:
            row = connection.execute("SELECT count(*) FROM texts WHERE pipeline_state IS NOT NULL").fetchone()
        return 0 if row is None else int(row[0])


async def cleared(place: Place, lineups: int, workers: int) -> Figures:
    """Clear a backlog."""
    await asyncio.to_thread(place.fresh)
    await asyncio.to_thread(place.fill, lineups)
    begun = time.perf_counter()
    async with place.moderation(workers) as copy:
        first = 0
        while not first:
            await asyncio.sleep(0.02)
            first = await asyncio.to_thread(place.judged)
        started = time.perf_counter()
        before = processor_time([copy.pid])
        while (done := await asyncio.to_thread(place.judged)) < lineups * TEXTS:
            if time.perf_counter() - started > PATIENCE:
                raise SystemExit(f"{done} of {lineups * TEXTS} texts are judged after {PATIENCE:.0f} s")
            await asyncio.sleep(0.05)
        seconds = time.perf_counter() - started
        spent = processor_time([copy.pid]) - before
    judged = lineups - first / TEXTS
    return {
        "rate": judged / seconds,
        "start": started - begun,
        "seconds": seconds,
        "processor": 1000 * spent / judged,
    }


async def at_once(servers: Stand, place: Place) -> Figures:
    """Lineups of all agents at once, through contests."""
    await asyncio.to_thread(place.fresh)
    async with place.moderation() as judging, servers.ours(ROOT, 1) as (taking, *_):
        requests = servers.requests()
        headers = {"Authorization": f"Bearer {TOKEN}"}
        address = f"http://127.0.0.1:{judging.port}"
        ages: list[float] = []
        depths: list[int] = []

        async def watch(operator: httpx.AsyncClient) -> None:
            while True:
                answer = (await operator.get("/operator/api/v1/moderation/backlog")).json()
                ages.append(answer["oldest_seconds"])
                depths.append(answer["texts"])
                await asyncio.sleep(0.1)

        async with httpx.AsyncClient(base_url=address, headers=headers, timeout=30) as operator:
            watching = asyncio.create_task(watch(operator))
            begun = time.perf_counter()
            await send_each(taking.port, requests)
            taken = time.perf_counter() - begun
            while await asyncio.to_thread(place.judged) < len(requests) * TEXTS:
                if time.perf_counter() - begun > PATIENCE:
                    raise SystemExit(f"not everything is judged after {PATIENCE:.0f} s")
                await asyncio.sleep(0.02)
            judged = time.perf_counter() - begun
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
    return {"taken": taken, "judged": judged, "oldest": max(ages, default=0.0), "deepest": max(depths, default=0)}


async def measure(rounds: int, lineups: int, agents: int) -> dict[str, list[Figures]]:
    """Every measurement in turn, round by round."""
    measured: dict[str, list[Figures]] = {"one": [], "two": [], "at_once": []}
    async with stand(agents) as servers:
        await asyncio.to_thread(servers.server.create_service_database, "moderation")
        await asyncio.to_thread(upgrade, servers.server.url("moderation"), "moderation")
        place = Place(servers)
        for number in range(rounds):
            for name, workers in (("one", 1), ("two", 2)):
                figures = await cleared(place, lineups, workers)
                measured[name].append(figures)
                say(f"round {number + 1}  {name:8} {_cleared(figures)}")
            figures = await at_once(servers, place)
            measured["at_once"].append(figures)
            say(f"round {number + 1}  at once  {_at_once(figures)}")
    return measured


def _cleared(figures: Figures) -> str:
    return (
        f"{figures['rate']:7.1f} lineups/s   cleared in {figures['seconds']:7.1f} s, after {figures['start']:.1f} s to "
        f"the first verdict   processor {figures['processor']:5.1f} ms a lineup"
    )


def _at_once(figures: Figures) -> str:
    return (
        f"taken in {figures['taken']:.2f} s, judged after {figures['judged']:.2f} s; the oldest text waited "
        f"{figures['oldest']:.2f} s, {figures['deepest']:.0f} texts waited at most"
    )


def run(rounds: int, lineups: int, agents: int) -> dict[str, Any]:
    """Measure, and give the result: ``ratios`` has what the second process brings, ``seconds`` what each took."""
    logs.configure("bench", "warning")  # standard output is the result's
    alone = one_by_one(100)
    measured = asyncio.run(measure(rounds, lineups, agents))
    medians = {name: {figure: median(one[figure] for one in of) for figure in of[0]} for name, of in measured.items()}
    return {
        "name": "moderation",
        "ratios": {
            "two_workers": median(
                two["rate"] / one["rate"] for one, two in zip(measured["one"], measured["two"], strict=True)
            )
        },
        "seconds": {
            "lineup": alone / 1000,
            "backlog_one": medians["one"]["seconds"],
            "backlog_two": medians["two"]["seconds"],
            "at_once_taken": medians["at_once"]["taken"],
            "at_once_judged": medians["at_once"]["judged"],
        },
        "measured": medians,
        "rounds": [dict(zip(measured, of, strict=True)) for of in zip(*measured.values(), strict=True)],
        "load": {"lineups": lineups, "at_once": agents, "texts": TEXTS},
        "machine": machine(),
    }


def show(found: dict[str, Any]) -> None:
    """The result for a person."""
    print(
        f"the detectors take {1000 * found['seconds']['lineup']:.1f} ms for a lineup of {found['load']['texts']} texts"
    )
    for name in ("one", "two"):
        print(f"median  {name:8} {_cleared(found['measured'][name])}")
    print(f"median  at once  {_at_once(found['measured']['at_once'])}")
    print(f"two processes judge {found['ratios']['two_workers']:.2f} x as fast as one")


def arguments(parser: argparse.ArgumentParser) -> None:
    """What may be said on the command line."""
    parser.add_argument("--rounds", type=int, default=3, help="everything in turn, so many times (3)")
    parser.add_argument("--lineups", type=int, default=500, help="of a backlog (500)")
    parser.add_argument("--at-once", type=int, default=200, help="agents that submit at once (200)")


def main(given: argparse.Namespace) -> tuple[dict[str, Any], Callable[[dict[str, Any]], None]]:
    """What ``./run bench moderation`` does."""
    return run(given.rounds, given.lineups, given.at_once), show
