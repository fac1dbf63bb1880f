"""Moderation and the processes that judge for it, killed in the middle of a backlog: nothing is lost or misjudged."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import textwrap
import time
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psutil
import psycopg
import pytest

from common import events as ev
from common.clock import wall
from embedded.nats import Nats
from embedded.parts import HttpService, log_of
from embedded.postgres import Postgres
from embedded.process import free_port, log_tail, spawn
from testkit.fixtures import OPERATOR_TOKEN, admin
from testkit.small import LOCKS, opened

from .copies import servers

CONTEST = "2017-W01"
TEXTS = 6
"""Texts of a lineup; one of them holds a link, which is flagged."""

PIPELINE = """
    import re, time
    from moderation import detectors
    from moderation.pipeline import Detector, Pipeline

    class Slow(Detector):
        name = "slow"
        version = "1"
        raw = True

        def judge(self, text, context):
            if "hangs" in text:
                re.match(r"(a+)+$", "a" * 80 + "!")
            time.sleep(0.004)
            return ()

    def load():
        return Pipeline((Slow(), *detectors.load().detectors))
"""
"""Our own pipeline after a detector that takes its time, so that there is a middle to be killed in."""

pytestmark = pytest.mark.timeout(240)


class Moderation:
    """One process of the service, as the embedded stack starts it."""

    def __init__(self, number: int, environment: dict[str, str], folder: Path) -> None:
        self.name = f"moderation-{number}"
        self._folder = folder
        self._service = HttpService(self.name, "moderation.main:app", free_port(), environment, folder)
        self._process: subprocess.Popen[bytes] = spawn(self._service.command())

    async def ready(self, patience: float = 60.0) -> None:
        deadline = time.monotonic() + patience
        while not await asyncio.to_thread(self._service.is_ready):
            assert self._process.poll() is None, self.log()
            assert time.monotonic() < deadline, self.log()
            await asyncio.sleep(0.05)

    def descendants(self) -> list[psutil.Process]:
        return psutil.Process(self._process.pid).children(recursive=True)

    def judges(self) -> list[psutil.Process]:
        """The processes that judge: copies of the template."""
        with contextlib.suppress(psutil.NoSuchProcess):
            for child in psutil.Process(self._process.pid).children():
                if "forkserver" in " ".join(child.cmdline()):
                    return child.children()
        return []

    def end(self, how: signal.Signals) -> float:
        """Signal it; the seconds that it took to end."""
        asked = time.monotonic()
        self._process.send_signal(how)
        self._process.wait(30)
        return time.monotonic() - asked

    def log(self) -> str:
        return log_tail(log_of(self._folder, self.name), 60)


class Stand:
    """Servers, the backlog in them, and processes of moderation on it."""

    def __init__(self, folder: Path, postgres: Postgres, bus: Nats) -> None:
        self.folder = folder
        self._postgres = postgres
        self._bus = bus
        self._copies: list[Moderation] = []
        self.expected: dict[tuple[UUID, str], str] = {}

    def start(self, **settings: object) -> Moderation:
        environment = {
            "MAFL_DATABASE_URL": self._postgres.url("moderation"),
            "MAFL_NATS_URL": self._bus.url("moderation"),
            "MAFL_OPERATOR_TOKEN": OPERATOR_TOKEN,
            "MAFL_ENVIRONMENT": "embedded",
            "MAFL_LOG_LEVEL": "warning",
            "MAFL_MODERATION_PIPELINE": "slow_pipeline:load",
            "PYTHONPATH": str(self.folder),
            **{f"MAFL_MODERATION_{name.upper()}": str(value) for name, value in settings.items()},
        }
        copy = Moderation(len(self._copies), environment, self.folder)
        self._copies.append(copy)
        return copy

    async def submit(self, lineups: int, *, hanging: str | None = None) -> None:
        """Lineups of a contest on the bus, as contests would put them there; one text of the first may hang."""
        events: list[ev.Event] = [opened(CONTEST)]
        for number in range(lineups):
            lineup = uuid4()
            words = {f"/picks/{pick}/rationale": f"Seven targets, {number} {pick}." for pick in range(TEXTS - 1)}
            words["/thesis"] = f"See https://evil.example/{number}"
            self.expected |= {
                (lineup, pointer): "flagged" if "evil" in text else "cleared" for pointer, text in words.items()
            }
            if hanging and not number:
                words["/picks/0/rationale"] = hanging
                self.expected[lineup, "/picks/0/rationale"] = "unchecked"
            events.append(
                ev.LineupSubmitted(
                    contest=CONTEST,
                    lineup_id=lineup,
                    agent_id=lineup,
                    revision=1,
                    accepted_at=LOCKS - timedelta(hours=2) + timedelta(seconds=number),
                    locks_at=LOCKS,
                    words=tuple(
                        ev.Words(pointer=pointer, text=text, salt="00" * 32) for pointer, text in words.items()
                    ),
                )
            )
        async with admin(self._bus) as client:
            js = client.jetstream(timeout=30)
            for event in events:
                envelope = ev.pack(event, event_id=uuid4(), aggregate_version=1, correlation_id="test", time=wall())
                await js.publish(event.subject(), envelope.model_dump_json().encode())

    def rows(self, query: str) -> list[Any]:
        address = self._postgres.url("moderation").replace("+psycopg", "")
        with psycopg.connect(address) as connection:
            return connection.execute(query.encode()).fetchall()

    def judged(self) -> int:
        """Texts with a verdict."""
        return int(self.rows("SELECT count(*) FROM texts WHERE pipeline_state IS NOT NULL")[0][0])

    async def until(self, condition: Callable[[], bool], patience: float = 90.0) -> None:
        deadline = time.monotonic() + patience
        while not await asyncio.to_thread(condition):
            assert time.monotonic() < deadline, "\n".join(copy.log() for copy in self._copies)
            await asyncio.sleep(0.05)

    async def all_judged(self) -> None:
        """Wait for every verdict: each is the right one, and each text has been judged once."""
        await self.until(lambda: self.judged() == len(self.expected))
        found = self.rows("SELECT lineup_id, pointer, pipeline_state, version FROM texts")
        assert {(lineup, pointer): state for lineup, pointer, state, _ in found} == self.expected
        assert {version for _, _, _, version in found} == {1}
        assert self.rows("SELECT count(*) FROM former_verdicts")[0][0] == 0

    def stop(self) -> None:
        for copy in self._copies:
            with contextlib.suppress(ProcessLookupError):
                copy.end(signal.SIGKILL)


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    (tmp_path / "slow_pipeline.py").write_text(textwrap.dedent(PIPELINE))
    async with servers(tmp_path, "moderation", durable=False) as (postgres, bus):
        made = Stand(tmp_path, postgres, bus)
        try:
            yield made
        finally:
            made.stop()


async def gone(processes: Sequence[psutil.Process]) -> bool:
    """Whether all of them end soon, by themselves."""
    _, alive = await asyncio.to_thread(psutil.wait_procs, processes, timeout=10)
    return not alive


@pytest.mark.rule("M3", "O4")
async def test_killed_with_all_it_had_in_hand_it_leaves_no_process_and_the_next_one_judges_everything_once(
    stand: Stand,
) -> None:
    await stand.submit(150, hanging="This one hangs.")
    killed = stand.start(workers=2, text_seconds=60)
    await killed.ready()
    await stand.until(lambda: 0 < stand.judged() < len(stand.expected) - TEXTS)
    left = killed.descendants()
    judges = killed.judges()
    assert len(judges) >= 2, "one hangs, and there is another"
    killed.end(signal.SIGKILL)
    assert await gone(left), "whoever starts it again would have them beside the new ones"
    assert 0 < stand.judged() < len(stand.expected)
    stand.start(workers=2, text_seconds=1)
    await stand.all_judged()
    assert stand.rows("SELECT kind, cause, detector FROM set_aside") == [("text", "too-slow", "slow")]


@pytest.mark.rule("M3", "O4")
async def test_two_copies_whose_judging_processes_are_killed_again_and_again_judge_everything_once(
    stand: Stand,
) -> None:
    await stand.submit(150)
    copies = [stand.start(workers=2) for _ in range(2)]
    for copy in copies:
        await copy.ready()
    killed: set[int] = set()
    while len(killed) < 4 and stand.judged() < len(stand.expected) * 3 // 4:
        for judge in [judge for copy in copies for judge in copy.judges()]:
            with contextlib.suppress(psutil.NoSuchProcess):
                # Not one that has just begun: it may judge a text alone that another was killed over, and that text is
                # set aside where both are lost.
                if time.time() - judge.create_time() > 1.5 and judge.pid not in killed:
                    judge.kill()
                    killed.add(judge.pid)
        await asyncio.sleep(0.2)
    assert len(killed) >= 2
    await stand.all_judged()
    assert stand.rows("SELECT * FROM set_aside") == []


@pytest.mark.rule("M3", "O4")
async def test_told_to_stop_it_is_gone_at_once_with_all_its_processes_though_one_hangs(stand: Stand) -> None:
    await stand.submit(20, hanging="This one hangs.")
    stopped = stand.start(workers=2, text_seconds=60)
    await stopped.ready()
    await stand.until(lambda: stand.judged() >= len(stand.expected) - 1)
    left = stopped.descendants()
    assert stopped.end(signal.SIGTERM) < 10
    assert await gone(left)
    stand.start(workers=2, text_seconds=1)
    await stand.all_judged()
