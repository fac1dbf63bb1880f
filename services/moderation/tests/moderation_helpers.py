"""What moderation's tests share: the events of a small contest, and waiting until everything is judged and told."""

import asyncio
import hashlib
import textwrap
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from common import events as ev
from moderation.store import Store
from testkit.fixtures import Start, Started
from testkit.small import LOCKS, opened

CLEAN = {"/thesis": "Stack the shootout.", "/picks/0/rationale": "Smash spot.", "/picks/0/main_factor": "volume"}
MIXED = {**CLEAN, "/picks/0/rationale": "See https://evil.example/picks"}


def submitted(
    contest: str, words: Mapping[str, str], *, lineup_id: UUID, revision: int = 1, locks_at: datetime = LOCKS
) -> ev.LineupSubmitted:
    return ev.LineupSubmitted(
        contest=contest,
        lineup_id=lineup_id,
        agent_id=lineup_id,
        revision=revision,
        accepted_at=LOCKS - timedelta(hours=2),
        locks_at=locks_at,
        words=tuple(ev.Words(pointer=pointer, text=text, salt=salt(pointer)) for pointer, text in words.items()),
    )


def salt(pointer: str) -> str:
    """What opens the leaf of a text."""
    return hashlib.sha256(f"salt {pointer}".encode()).hexdigest()


def locked(contest: str, entries: int = 1) -> ev.ContestLocked:
    return ev.ContestLocked(contest=contest, locked_at=LOCKS, entries=entries)


def final(contest: str, lineup_id: UUID, revision: int = 1) -> ev.LineupLocked:
    return ev.LineupLocked(
        contest=contest,
        lineup_id=lineup_id,
        agent_id=lineup_id,
        revision=revision,
        accepted_at=LOCKS - timedelta(hours=2),
        model="gpt-5",
        marks=ev.Marks(),
        picks=(ev.LockedPick(slot="WR1", player_id="P0", price=5000, confidence=0.5),),
        total_price=5000,
        projected_score=14250,
        confidence=0.5,
    )


def claimed(agent: UUID, *, now: bool = True) -> ev.AgentState:
    kind = ev.AgentClaimed if now else ev.AgentReleased
    return kind(agent_id=agent, agent_name=f"agent {agent}", model="m", claimed=now)


async def claim(service: Started, *agents: UUID) -> None:
    """Let agents be claimed, with no name to be judged."""
    async with service.runtime.database.transaction() as connection:
        for agent in agents:
            await Store(connection).claim(agent, 1, claimed=True)


@asynccontextmanager
async def locked_and_judged(
    start: Start, *lineups: UUID, words: Mapping[str, str], contest: str = "2017-W01"
) -> AsyncIterator[Started]:
    """Moderation with a locked contest whose lineups, of claimed agents, are all judged and told."""
    async with start("moderation") as service:
        await service.publish(opened(contest))
        await claim(service, *lineups)
        for lineup in lineups:
            await service.publish(submitted(contest, words, lineup_id=lineup))
            await service.publish(final(contest, lineup))
        await service.publish(locked(contest, len(lineups)), version=2)
        await all_judged(service)
        yield service


class Detecting:
    """A pipeline of a test's own, in the processes that judge: they import it, as an operator's own would be.

    Its source may name ``GATE`` and ``SEEN``, files that the test and the processes both see.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.gate, self.seen = folder / "gate", folder / "seen"
        self._folder = folder
        self._monkeypatch = monkeypatch

    def use(self, source: str, **settings: object) -> None:
        """Judge by ``load()`` of this source, with settings such as ``workers`` and ``text_seconds``."""
        head = f"from pathlib import Path\nGATE, SEEN = Path({str(self.gate)!r}), Path({str(self.seen)!r})\n{HEAD}"
        name = f"detecting_{uuid4().hex}"
        (self._folder / f"{name}.py").write_text(head + textwrap.dedent(source), encoding="utf-8")
        self._monkeypatch.syspath_prepend(self._folder)
        for setting, value in {"pipeline": f"{name}:load", **settings}.items():
            self._monkeypatch.setenv(f"MAFL_MODERATION_{setting.upper()}", str(value))


HEAD = """
import os, signal, time
from moderation import detectors
from moderation.pipeline import Detector, Match, Pipeline

class One(Detector):
    version = "1"
    raw = True

"""


async def until(condition: Callable[[], Awaitable[bool]], patience: float = 30.0) -> None:
    deadline = time.monotonic() + patience
    while not await condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        await asyncio.sleep(0.02)


async def backlog(service: Started) -> dict[str, Any]:
    answer = await service.operator.get("/operator/api/v1/moderation/backlog")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def all_judged(service: Started) -> None:
    """Everything that came in is kept and judged, and what could be told is told."""
    await service.settle()

    async def nothing_waits() -> bool:
        waiting = await backlog(service)
        return not waiting["texts"] and not waiting["names"] and not waiting["models"]

    # The processes that judge start with the first text, which takes long where much else runs.
    await until(nothing_waits, 120.0)

    async def nothing_due() -> bool:
        async with service.runtime.database.transaction() as connection:
            return not await Store(connection).due(1)

    await until(nothing_due)
    await service.settle()


async def query(service: Started, statement: Any) -> list[Any]:
    async with service.runtime.database.transaction() as connection:
        return list((await connection.execute(statement)).all())


async def told(service: Started) -> tuple[list[ev.ReasoningJudged], list[ev.ReasoningReleased]]:
    return await service.published(ev.ReasoningJudged), await service.published(ev.ReasoningReleased)
