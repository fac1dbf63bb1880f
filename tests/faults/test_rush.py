"""The moment the system exists for: everybody submits in the last seconds before a lock, and a process is killed.

Two processes of contests on a PostgreSQL and a NATS that write to the disk. 200 agents send one lineup after the other,
each in its own time, until they are told that the contest has locked; one process is killed with -9 in the middle and
started again. Whoever gets no answer, or 503, sends the same again with the same key. Then the record is held against
every answer that was given.

``MAFL_RUSH=10000`` asks for so many submissions, however long before the lock they must begin; without it they begin
some seconds before, and there are as many as this machine takes.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from common import events as ev

from .copies import FIRST, RUSH, Agent, Answer, Intake, Lost, body, far, intake

WANTED = int(os.environ.get("MAFL_RUSH", "0"))
AGENTS = 200
SECONDS = 8.0
"""How long before the lock they begin, unless a number of submissions is wanted."""
FAULTY, REPEATED = 9, 13
"""Every so many submissions of an agent one is faulty, and one is sent again after its answer has come."""

pytestmark = pytest.mark.timeout(300)


@dataclass
class Tally:
    """What was sent and what was answered."""

    accepted: dict[int, dict[int, Answer]] = field(default_factory=dict)
    """By agent and number of the submission: its answer, always 201."""
    faulty: list[Answer] = field(default_factory=list)
    locked: list[Answer] = field(default_factory=list)
    unavailable: list[Answer] = field(default_factory=list)
    other: list[Answer] = field(default_factory=list)
    lost: Counter[int] = field(default_factory=Counter)
    """By port: calls without an answer."""

    @property
    def answered(self) -> int:
        return sum(map(len, self.accepted.values())) + sum(
            map(len, (self.faulty, self.locked, self.unavailable, self.other))
        )


class Rush:
    def __init__(self, running: Intake) -> None:
        self.running = running
        self.tally = Tally()

    def port(self, agent: Agent, turn: int) -> int:
        ports = self.running.ports
        return ports[(agent.number + turn) % len(ports)]

    async def deliver(self, agent: Agent, number: int, sent: bytes) -> Answer:
        """Send one submission, again and again with the same key, until there is an answer other than 503."""
        turn = 0
        while True:
            try:
                answer = await agent.submit(self.port(agent, turn), sent, RUSH, key=f"rush-{number}")
            except Lost:
                self.tally.lost[self.port(agent, turn)] += 1
            else:
                if answer.status != 503:
                    return answer
                self.tally.unavailable.append(answer)
            # The other copy; where that fails too, a moment later.
            turn += 1
            await asyncio.sleep(0.1 if turn > 1 else 0)

    async def play(self, agent: Agent) -> None:
        """One lineup after the other until the contest is locked."""
        mine = self.tally.accepted.setdefault(agent.number, {})
        number = 0
        while True:
            number += 1
            if number % FAULTY == agent.number % FAULTY:
                answer = await self.deliver(agent, number, faulty(number))
                if answer.status == 422:
                    self.tally.faulty.append(answer)
                    continue
            else:
                answer = await self.deliver(agent, number, body(number))
                if answer.status == 201:
                    mine[number] = answer
                    if number % REPEATED == 0:
                        again = await self.deliver(agent, number, body(number))
                        assert (again.status, again.content) == (201, answer.content)
                    continue
            if answer.document["code"] == "contest-locked":
                self.tally.locked.append(answer)
                return
            self.tally.other.append(answer)

    async def after_the_lock(self, agent: Agent) -> None:
        """Each copy refuses what is new, and repeats what it, or the other, had answered."""
        for turn in (0, 1):
            answer = await agent.submit(self.port(agent, turn), body(0), RUSH, key="late")
            assert (answer.status, answer.document["code"]) == (409, "contest-locked")
        if mine := self.tally.accepted[agent.number]:
            last = max(mine)
            answer = await agent.submit(self.port(agent, last), body(last), RUSH, key=f"rush-{last}")
            assert (answer.status, answer.content) == (201, mine[last].content)


def faulty(number: int) -> bytes:
    """A lineup with two faults: its passer is unknown, and its thesis is missing."""
    document = json.loads(body(number))
    document["picks"][0]["player_id"] = "nobody"
    del document["thesis"]
    return json.dumps(document).encode()


async def measured(running: Intake) -> float:
    """How many lineups a second are taken with all agents at once, in the contest that stays open."""
    until = time.monotonic() + 2.0
    done = 0

    async def play(agent: Agent) -> None:
        nonlocal done
        while time.monotonic() < until:
            answer = await agent.submit(running.ports[agent.number % 2], body(agent.number), FIRST)
            assert answer.status == 201, answer.content
            done += 1

    begun = time.monotonic()
    await asyncio.gather(*(play(agent) for agent in running.agents))
    return done / (time.monotonic() - begun)


@pytest.mark.rule("C7", "C9", "O2", "O4")
async def test_in_the_rush_before_a_lock_with_a_process_killed_every_answer_was_true(tmp_path: Path) -> None:
    async with intake(tmp_path) as running:
        await running.register(AGENTS)
        rate = await measured(running)
        seconds = max(SECONDS, 1.4 * WANTED / rate) if WANTED else SECONDS
        locks_at = datetime.now(UTC) + timedelta(seconds=seconds + 1)
        await running.contest(RUSH, locks_at)
        rush = Rush(running)
        begun = time.monotonic()
        playing = [asyncio.create_task(rush.play(agent)) for agent in running.agents]
        victim = running.copies[1]
        await asyncio.sleep(((locks_at - datetime.now(UTC)) / 2).total_seconds())
        before = rush.tally.answered
        victim.kill()
        victim.spawn()
        await asyncio.gather(*playing)
        took = time.monotonic() - begun
        await victim.ready()
        await asyncio.gather(*(rush.after_the_lock(agent) for agent in running.agents))
        tally = rush.tally
        print(
            f"\n{tally.answered} submissions of {AGENTS} agents in {took:.1f} s, {before} of them before the kill: "
            f"{sum(map(len, tally.accepted.values()))} accepted, {len(tally.faulty)} faulty, "
            f"{len(tally.locked)} locked, {len(tally.unavailable)} unavailable, {tally.lost.total()} unanswered; "
            f"measured before: {rate:.0f} lineups a second"
        )

        # The machine's clock is the database's: each answer can be held against the instant of the lock.
        assert tally.other == []
        assert len(tally.locked) == AGENTS
        assert all(answer.there >= locks_at for answer in tally.locked)
        assert all(int(answer.headers["retry-after"]) >= 1 for answer in tally.unavailable)
        assert set(tally.lost) <= {victim.port}, f"only the killed process loses a call\n{running.copies[0].log()}"
        assert tally.lost
        for answer in tally.faulty:
            assert answer.asked < locks_at
            assert [(one["code"], one["pointer"]) for one in answer.document["violations"]] == [
                ("player-unknown", "/picks/0/player_id"),
                ("reasoning-missing", "/thesis"),
            ]

        kept = {agent.number: await record(running, agent) for agent in running.agents}
        submitted = [
            event
            for event in await running.told(ev.LineupSubmitted, at_least=sum(map(len, kept.values())))
            if event.contest == RUSH
        ]
        held_against(tally, kept, locks_at)
        told = {(str(event.agent_id), event.revision): event.accepted_at for event in submitted}
        assert len(told) == len(submitted)
        assert told == {
            (one["agent"], one["revision"]): datetime.fromisoformat(one["accepted_at"])
            for revisions in kept.values()
            for one in revisions
        }

        entered = {agent.agent_id: kept[agent.number] for agent in running.agents if kept[agent.number]}
        frozen = await running.told(ev.LineupLocked, at_least=len(entered))
        (locked,) = await running.told(ev.ContestLocked)
        assert (locked.contest, locked.locked_at, locked.entries) == (RUSH, locks_at, len(entered))
        assert len(frozen) == len(entered)
        for final in frozen:
            last = entered[final.agent_id][-1]
            assert (final.revision, str(final.lineup_id)) == (last["revision"], last["lineup"])
            assert final.accepted_at == datetime.fromisoformat(last["accepted_at"])
        if WANTED:
            assert tally.answered >= WANTED


async def record(running: Intake, agent: Agent) -> list[dict[str, Any]]:
    """An agent's revisions, which both copies must know alike."""
    one, other = [await agent.revisions(port, RUSH) for port in running.ports]
    assert one == other
    return one


def held_against(tally: Tally, kept: dict[int, list[dict[str, Any]]], locks_at: datetime) -> None:
    """Every 201 is in the record as it was told, and nothing else is in the record."""
    for number, revisions in kept.items():
        assert [one["revision"] for one in revisions] == list(range(1, len(revisions) + 1))
        instants = [datetime.fromisoformat(one["accepted_at"]) for one in revisions]
        assert instants == sorted(set(instants)), "the order of revisions is the order of acceptance"
        assert all(instant < locks_at for instant in instants)
        by_revision = {one["revision"]: one for one in revisions}
        accepted = tally.accepted[number]
        for sent, answer in accepted.items():
            given = answer.document
            mine = by_revision.pop(given["revision"])
            assert mine["body"] == json.loads(body(sent))
            assert {name: mine[name] for name in given} == given
            assert datetime.fromisoformat(given["accepted_at"]) <= answer.there
        # An agent sends the next lineup when the last is answered: its answers come in the order of its revisions.
        assert [answer.document["revision"] for _, answer in sorted(accepted.items())] == sorted(
            answer.document["revision"] for answer in accepted.values()
        )
        # What got no answer was sent again until it had one: a refusal of what had been stored would not be true.
        assert by_revision == {}


def test_what_is_held_against_the_record_finds_a_lost_a_late_and_an_invented_revision() -> None:
    """The judge of the rush is itself judged."""
    at = far()

    def revision(number: int, when: datetime) -> dict[str, Any]:
        return {"revision": number, "accepted_at": when.isoformat(), "receipt": f"r{number}"}

    first, second = revision(1, at - timedelta(seconds=2)), revision(2, at - timedelta(seconds=1))
    kept = [{**first, "body": json.loads(body(1))}, {**second, "body": json.loads(body(2))}]

    def answer(document: dict[str, Any]) -> Answer:
        return Answer(201, {}, json.dumps(document).encode(), at - timedelta(seconds=9), at)

    tally = Tally(accepted={1: {1: answer(first), 2: answer(second)}})
    held_against(tally, {1: kept}, at)
    for wrong in (
        {1: kept[:1]},
        {1: kept[1:]},
        {1: [kept[0], {**kept[1], "receipt": "other"}]},
        {1: [kept[0], {**kept[1], "accepted_at": at.isoformat()}]},
        {1: [kept[0], {**kept[1], "accepted_at": kept[0]["accepted_at"]}]},
        {1: [kept[0], {**kept[1], "body": kept[0]["body"]}]},
        {1: [*kept, {**revision(3, at - timedelta(milliseconds=1)), "body": json.loads(body(3))}]},
    ):
        with pytest.raises((AssertionError, KeyError)):
            held_against(tally, wrong, at)
