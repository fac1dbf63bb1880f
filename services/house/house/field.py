"""The agents of a season as anyone's agents would be: they register, read and submit through the public API alone.

They share what they read (contest, pool, results are the same for all), and submit each for itself. A
submission carries a key made of what it is about, so that one whose answer was lost adds no second revision.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from house import solver
from house.numbers import Week
from house.roster import SIMULATED, Member
from house.strategies import Entry, Strategy, Style, play
from mafl import models
from mafl.client import AgentClient, PublicClient, Retry, register

T = TypeVar("T")

AT_ONCE = 8
"""How many agents submit at the same time."""


@dataclass(frozen=True)
class Playing:
    """An agent that has registered, with its key in its client."""

    member: Member
    agent_id: str
    client: AgentClient


class Field:
    """Everybody who plays. ``public`` reads for all of them and must outlive the field."""

    def __init__(self, public: PublicClient, retry: Retry) -> None:
        self.playing: dict[str, Playing] = {}
        """Who has registered, by name, in the order of the roster."""
        self._public = public
        self._retry = retry
        self._points: dict[str, list[int]] = {}
        self._submitting = asyncio.Semaphore(AT_ONCE)

    async def register(self, newcomers: Mapping[str, Member]) -> None:
        """Register members; each under a key that nobody else can guess and that answers again after a crash."""
        found = await together(self._register(key, member) for key, member in newcomers.items())
        self.playing |= {playing.member.name: playing for playing in found}

    async def _register(self, key: str, member: Member) -> Playing:
        answer = await register(
            self._public,
            member.name,
            member.model,
            description=SIMULATED,
            harness=member.harness,
            idempotency_key=key,
        )
        client = AgentClient(self._public.url, key=answer.api_key, retry=self._retry, share=self._public)
        return Playing(member, answer.agent.id, client)

    async def submit(self, week: int, name: str) -> None:
        """Let everybody who plays in this week of the season enter the contest."""
        contest, pool = await self._public.contest(name), await self._public.pool(name)
        seen = view(contest, pool, self._points)
        await together(self._enter(playing, seen) for playing in self.playing.values() if playing.member.plays(week))

    async def _enter(self, playing: Playing, week: Week) -> None:
        member = playing.member
        async with self._submitting:
            if member.resubmits:
                first = play(member.name, Style(Strategy.RANDOM), week)
                await playing.client.submit(week.contest, first.body(), idempotency_key=f"{week.contest}-1")
            entry = play(member.name, member.eye, week)
            await playing.client.submit(week.contest, body(member, entry), idempotency_key=f"{week.contest}-2")

    async def look_again(self, week: int, name: str, number: int) -> None:
        """After a change of the schedule, the ``number``-th of the contest, let those who submit twice do so anew.

        The others keep what they have, also a player whose game has left.
        """
        contest, pool = await self._public.contest(name), await self._public.pool(name)
        seen = view(contest, pool, self._points)
        await together(
            self._enter_anew(playing, seen, number)
            for playing in self.playing.values()
            if playing.member.plays(week) and playing.member.resubmits
        )

    async def _enter_anew(self, playing: Playing, week: Week, number: int) -> None:
        member = playing.member
        async with self._submitting:
            entry = play(member.name, member.eye, week)
            key = f"{week.contest}-{2 + number}"
            await playing.client.submit(week.contest, body(member, entry), idempotency_key=key)

    async def read_results(self, name: str) -> models.Results:
        """Read what everybody scored in a contest that is final; agents know it from then on. Oldest first."""
        results = await self._public.results(name)
        for player in results.players:
            if player.points is not None:
                self._points.setdefault(player.player_id, []).append(player.points)
        return results


async def together(work: Iterable[Awaitable[T]]) -> list[T]:
    """All at once; the first failure ends the others."""

    async def one(awaitable: Awaitable[T]) -> T:
        return await awaitable

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(awaitable)) for awaitable in work]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from errors
    return [task.result() for task in tasks]


def view(contest: models.Contest, pool: models.Pool, points: Mapping[str, Sequence[int]]) -> Week:
    """What an agent sees of a week: contest, pool and past points, nothing else."""
    return Week(
        contest=contest.contest,
        cap=contest.cap,
        slots=tuple(solver.Slot(slot.slot, frozenset(slot.positions)) for slot in contest.roster),
        players=tuple(
            solver.Player(
                player.player_id, player.name, frozenset(player.positions), player.team, player.opponent, player.price
            )
            for player in pool.players
        ),
        past={player: tuple(scored) for player, scored in points.items()},
    )


def body(member: Member, entry: Entry) -> dict[str, object]:
    """The body that a member submits, with what else it has to say."""
    made = entry.body()
    if member.aside:
        picks = made["picks"]
        assert isinstance(picks, list)  # noqa: S101 - entry.body() has just made it
        picks[0]["rationale"] += f" {member.aside}"
    return made
