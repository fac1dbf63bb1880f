"""The life of a contest against a simple model of it: any sequence of an operator's acts, submissions and time.

The model below knows the rules in a few lines and no database. After each act the service must say what the model
says: accepted or refused with that code, the same state, lock instant, games and version; and at the end its events
must tell the same story.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import anyio.from_thread
import anyio.to_thread
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from common.canonical import instant
from common.db import OUTBOX
from common.problems import Problem
from contests import intake
from contests.domain import EASTERN
from contests.store import REVISIONS, Store
from testkit.fixtures import Start, Started

from .helpers import SLOTS, TICK, Player, body, join, ok, pool_file, row

ROOT = "/operator/api/v1/contests"
TEAMS = {"A": ("BUF", "NE"), "B": ("KC", "DEN"), "C": ("SEA", "LA")}
POSITIONS = {"QB": 1, "RB": 4, "WR": 4, "TE": 1, "DST": 1}
HOME = {"RB1": "RB", "RB2": "RB", "WR1": "WR", "WR2": "WR", "WR3": "WR", "FLEX": "RB"}

TIMES = {
    "saturday": (-1, 16, 30),
    "overseas": (0, 9, 30),
    "early": (0, 13, 0),
    "late": (0, 16, 25),
    "night": (0, 20, 20),
    "monday": (1, 20, 15),
    "tuesday": (2, 19, 0),
    "week later": (7, 13, 0),
    "week before": (-6, 20, 15),
}
"""Days after the contest's Sunday, hour and minute, US Eastern."""
COVERED = {"overseas", "early", "late", "night", "monday"}
ON_SUNDAY = COVERED - {"monday"}
FIRST = {"A": "early", "B": "late", "C": "monday"}

LATER = (None, "late", "overseas")
"""When a list says that its games kick off: as at first, or all of them then."""

GAMES = st.sampled_from(sorted(TEAMS))
ACTS = st.one_of(
    st.tuples(st.just("reschedule"), GAMES, st.sampled_from(sorted(TIMES))),
    st.tuples(st.just("drop-game"), GAMES, st.sampled_from(["cancelled", "moved"])),
    st.tuples(st.just("restore-game"), GAMES, st.one_of(st.none(), st.sampled_from(sorted(TIMES)))),
    st.tuples(st.just("submit"), st.integers(0, 1), st.text("ABC", min_size=9, max_size=9)),
    st.tuples(st.just("submit"), st.integers(0, 1), st.sampled_from(["A" * 9, "B" * 9, "C" * 9])),
    st.tuples(st.just("clock"), st.sampled_from(sorted(TIMES)), st.integers(-1, 1)),
    st.tuples(st.just("lock"), st.none(), st.none()),
    st.tuples(
        st.just("import"), st.sampled_from(["ABC", "A", "AB", "BC"]), st.tuples(st.sampled_from(LATER), st.booleans())
    ),
)
RARE = st.tuples(st.just("cancel"), st.none(), st.none())
STORIES = st.tuples(
    st.integers(0, 3), st.lists(ACTS, min_size=4, max_size=14), st.one_of(st.none(), st.integers(0, 14))
)

ALL_OUTCOMES = (
    0,
    [
        ("submit", 0, "A" * 9),
        ("import", "AB", (None, True)),
        ("import", "ABC", (None, False)),
        ("lock", None, None),
        ("submit", 1, "A" * 9),
    ],
    None,
)
"""What the stories that chance makes may leave out."""


@dataclass
class Model:
    """What the rules say. Times are aware; ``games`` are by letter, each with its time's name and its status."""

    sunday: datetime
    now: datetime
    state: str = "draft"
    version: int = 0
    locks_at: datetime = field(init=False)
    games: dict[str, tuple[str, str]] = field(default_factory=lambda: {g: (t, "scheduled") for g, t in FIRST.items()})
    listed: str = "".join(FIRST)
    revisions: dict[int, int] = field(default_factory=dict)
    told: list[tuple[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.locks_at = self.lock_by(self.games)

    def at(self, name: str) -> datetime:
        days, hour, minute = TIMES[name]
        local = (self.sunday + timedelta(days=days)).replace(hour=hour, minute=minute)
        return local.astimezone(UTC)

    def lock_by(self, games: dict[str, tuple[str, str]]) -> datetime:
        there = [name for name, status in games.values() if status == "scheduled"]
        return min(map(self.at, [name for name in there if name in ON_SUNDAY] or there))

    def change(self, game: str, became: tuple[str, str]) -> str:
        """A game changes: what the operator is answered."""
        if self.state in ("locked", "cancelled"):
            return f"contest-{self.state}"
        if game not in self.games:
            return "game-unknown"
        if became == self.games[game]:
            return "ok"
        games = self.games | {game: became}
        if not any(status == "scheduled" for _, status in games.values()):
            return "no-game-left"
        self.games, self.locks_at, self.version = games, self.lock_by(games), self.version + 1
        if self.state == "open":
            at_once = self.locks_at <= self.now
            if at_once:
                self.locks_at = self.now + TICK
            self.told.append(("contest.rescheduled.v1", (self.locks_at, dict(games))))
            if at_once:
                self.lock()
        return "ok"

    def drop(self, game: str, status: str) -> str:
        return self.change(game, (self.games.get(game, ("", ""))[0], status))

    def take_list(self, listed: str, name: str | None, *, force: bool) -> str:
        """A list of some games comes: it adds games and takes games away, and moves or brings back none there is."""
        games = {game: was for game, was in self.games.items() if game in listed or was[1] != "scheduled"}
        games = {game: (name or FIRST[game], "scheduled") for game in listed if game not in games} | games
        if not any(status == "scheduled" for _, status in games.values()):
            return "nothing-to-play"
        if (games, listed) == (self.games, self.listed) and self.state != "cancelled":
            return "ok"
        if not any(kind == "contest.opened.v1" for kind, _ in self.told):
            self.state, self.version = "draft", 0
        elif self.state != "open" or self.lock_by(games) <= self.now or (self.revisions and not force):
            return "contest-exists"
        self.games, self.listed, self.locks_at = games, listed, self.lock_by(games)
        if self.state == "open":
            self.version += 1
            self.told.append(("contest.opened.v1", (self.locks_at, dict(games))))
        return "ok"

    def lock(self) -> None:
        self.state, self.version = "locked", self.version + 1
        self.told.append(("contest.locked.v1", (self.locks_at, len(self.revisions))))

    def reschedule(self, game: str, name: str) -> str:
        return self.change(game, (name, "scheduled" if name in COVERED else "moved"))

    def restore(self, game: str, name: str | None) -> str:
        if self.state in ("locked", "cancelled"):
            return f"contest-{self.state}"
        if game not in self.games:
            return "game-unknown"
        name = name or self.games[game][0]
        return self.change(game, (name, "scheduled")) if name in COVERED else "game-not-covered"

    def open(self) -> str:
        if self.state == "cancelled":
            return "contest-cancelled"
        if self.state == "locked" or self.now >= self.locks_at:
            return "contest-locked"
        if self.state == "draft":
            self.state, self.version = "open", self.version + 1
            self.told.append(("contest.opened.v1", (self.locks_at, dict(self.games))))
        return "ok"

    def cancel(self) -> str:
        if self.state == "locked":
            return "contest-locked"
        if self.state != "cancelled":
            if self.state == "open":
                self.told.append(("contest.cancelled.v1", (self.now, None)))
            self.state, self.version = "cancelled", self.version + 1
        return "ok"

    def submit(self, agent: int, games: str) -> str:
        if not self.told:
            return "contest-unknown"
        if self.state in ("locked", "cancelled"):
            return f"contest-{self.state}"
        if any(game not in self.listed or self.games[game][1] != "scheduled" for game in games):
            return "lineup-invalid"
        self.revisions[agent] = self.revisions.get(agent, 0) + 1
        return "ok"

    def lock_now(self) -> str:
        if self.state == "locked":
            return "ok"
        return "contest-cancelled" if self.state == "cancelled" else "not-yet"

    def clock(self, to: datetime) -> str:
        self.now = max(to, self.now)
        if self.state == "open" and self.now >= self.locks_at:
            self.lock()
        return "ok"


@dataclass
class Real:
    """The service, and the contest of one story in it."""

    service: Started
    contest: str
    ids: dict[str, str]
    agents: list[Player]

    async def operator(self, what: str, **wanted: Any) -> str:
        answer = await self.service.operator.post(f"{ROOT}/{self.contest}/{what}", json=wanted)
        return "ok" if answer.is_success else str(answer.json()["code"])

    async def take_list(self, content: bytes, *, force: bool) -> str:
        answer = await self.service.operator.post(f"{ROOT}/import", content=content, params={"force": force})
        return "ok" if answer.is_success else str(answer.json()["code"])

    async def submit(self, agent: int, games: str) -> str:
        used: dict[tuple[str, str], int] = {}
        picks = []
        for slot, game in zip(SLOTS, games, strict=True):
            position = HOME.get(slot, slot)
            number = used[game, position] = used.get((game, position), 0) + 1
            words = {"rationale": "So I say.", "confidence": 0.5, "main_factor": "price"}
            picks.append({"slot": slot, "player_id": f"{self.contest}-{game}-{position}{number}", **words})
        lineup = {"picks": picks, "thesis": "So.", "projected_score": 90, "confidence": 0.5}
        try:
            await intake.submit(self.service.runtime, self.contest, self.agents[agent].key, body(lineup))
        except Problem as problem:
            return problem.problem_code
        return "ok"

    async def clock(self, to: datetime) -> str:
        answer = await self.service.operator.put("/operator/api/v1/clock", json={"now": to.isoformat()})
        return "ok" if answer.is_success else str(answer.json()["code"])

    async def same_as(self, model: Model) -> None:
        """The tables say what the model says, and nothing was accepted at or after the lock."""
        async with self.service.runtime.database.transaction() as connection:
            store = Store(connection)
            contest, games = await store.contest(self.contest), await store.games(self.contest)
            accepted = await connection.execute(select(REVISIONS).where(REVISIONS.c.contest == self.contest))
            rows = accepted.all()
            told = await connection.execute(
                select(OUTBOX.c.envelope)
                .where(OUTBOX.c.envelope["subject"].astext == f"contest/{self.contest}")
                .order_by(OUTBOX.c.position)
            )
            envelopes = list(told.scalars())
        assert contest is not None
        assert (contest.state, contest.version, contest.locks_at) == (model.state, model.version, model.locks_at)
        assert contest.locked_at == (model.locks_at if model.state == "locked" else None)
        there = {self.ids[game.game_id]: (game.kickoff, game.status) for game in games}
        assert there == {game: (model.at(name), status) for game, (name, status) in model.games.items()}
        assert len(rows) == sum(model.revisions.values())
        assert all(row.accepted_at < model.locks_at for row in rows) or model.state == "cancelled"
        assert [envelope["type"] for envelope in envelopes] == [kind for kind, _ in model.told]
        versions = [envelope["aggregateversion"] for envelope in envelopes]
        assert versions == list(range(versions[0], versions[0] + len(versions))) if versions else True
        assert not versions or versions[-1] == model.version
        for envelope, (kind, (at, more)) in zip(envelopes, model.told, strict=True):
            data = envelope["data"]
            if kind in ("contest.opened.v1", "contest.rescheduled.v1"):
                said = {self.ids[game["game_id"]]: (game["kickoff"], game["status"]) for game in data["games"]}
                assert said == {game: (instant(model.at(name)), status) for game, (name, status) in more.items()}
                assert data["locks_at"] == instant(at)
            elif kind == "contest.locked.v1":
                assert (data["locked_at"], data["entries"]) == (instant(at), more)
            else:
                assert data["cancelled_at"] == instant(at)


def pool_of(
    contest: str, season: int, week: int, model: Model, listed: str = "ABC", name: str | None = None
) -> tuple[bytes, dict[str, str]]:
    rows, ids = [], {}
    for letter in listed:
        away, home = TEAMS[letter]
        game_id = f"{season}_{week:02d}_{away}_{home}"
        ids[game_id] = letter
        for position, many in POSITIONS.items():
            rows += [
                row(
                    season=season,
                    week=week,
                    player_id=f"{contest}-{letter}-{position}{number}",
                    name=f"{letter} {position} {number}",
                    position=position,
                    team=home,
                    opponent=away,
                    game_id=game_id,
                    kickoff=model.at(name or FIRST[letter]).isoformat(),
                )
                for number in range(1, many + 1)
            ]
    return pool_file(*rows), ids


async def play(service: Started, agents: list[Player], number: int, seen: Counter[str], story: Any) -> None:
    before_opening, acts, cancelled = story
    season, week = 2030 + number // 17, 1 + number % 17
    contest = f"{season}-W{week:02d}"
    # Each story has weeks of its own, later than those of the story before: the clock never goes back.
    sunday = datetime(2031, 1, 5, 12, tzinfo=EASTERN) + timedelta(weeks=3 * number)
    model = Model(sunday, now=(sunday - timedelta(days=8)).astimezone(UTC))
    content, ids = pool_of(contest, season, week, model)
    await ok(await service.operator.post(f"{ROOT}/import", content=content))
    real = Real(service, contest, ids, [agents[(2 * number + one) % len(agents)] for one in (0, 1)])
    assert await real.clock(model.now) == "ok"
    of = {letter: game_id for game_id, letter in ids.items()}
    todo: list[Any] = list(acts)
    if cancelled is not None:
        todo.insert(cancelled, ("cancel", None, None))
    todo.insert(before_opening, ("open", None, None))
    for act, one, other in todo:
        match act:
            case "reschedule":
                at = model.at(other).isoformat()
                pair = model.reschedule(one, other), await real.operator(act, game_id=of[one], kickoff=at)
            case "drop-game":
                pair = model.drop(one, other), await real.operator(act, game_id=of[one], status=other)
            case "restore-game":
                at = model.at(other).isoformat() if other else None
                pair = model.restore(one, other), await real.operator(act, game_id=of[one], kickoff=at)
            case "submit":
                pair = model.submit(one, other), await real.submit(one, other)
            case "clock":
                to = max(model.at(one) + other * TICK, model.now)
                pair = model.clock(to), await real.clock(to)
            case "import":
                name, force = other
                listed, _ = pool_of(contest, season, week, model, one, name)
                pair = model.take_list(one, name, force=force), await real.take_list(listed, force=force)
            case "open":
                pair = model.open(), await real.operator(act)
            case "lock":
                pair = model.lock_now(), await real.operator(act)
            case _:
                pair = model.cancel(), await real.operator(act, reason="No.")
        assert pair[0] == pair[1], (act, one, other, pair)
        seen[f"{act} {pair[0]}"] += 1
        try:
            await real.same_as(model)
        except AssertionError as error:
            raise AssertionError(f"{error}\nafter {act} {one} {other} of {story}, {model}") from error


@pytest.mark.rule("C1", "C2", "C7")
async def test_a_contest_lives_as_the_rules_say_whatever_is_done_to_it(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        agents = await join(service, *range(20))
        numbers = count()
        seen: Counter[str] = Counter()

        @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
        @given(story=STORIES)
        @example(story=ALL_OUTCOMES)
        def any_story(story: Any) -> None:
            anyio.from_thread.run(play, service, agents, next(numbers), seen, story)

        await anyio.to_thread.run_sync(any_story)
        assert {"submit ok", "submit lineup-invalid", "reschedule ok", "drop-game ok", "open ok", "cancel ok"} <= set(
            seen
        )
        assert {"submit contest-locked", "import ok", "import contest-exists"} <= set(seen)
