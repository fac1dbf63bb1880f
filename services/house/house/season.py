"""Directs a season from salary and statistics files: the operator's part. What the agents do is in ``house.field``.

Each step asks first what is already so. So any service may die and come back meanwhile: calls are made again
and have their effect once, and the boards at the end are the same.
"""

from __future__ import annotations

import asyncio
import csv
import gzip
import hmac
import io
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from house.field import Field, Playing, together
from house.moves import Move, as_listed, read_moves
from house.roster import FIELD, Member
from mafl import models
from mafl.client import PublicClient, Retry
from mafl.errors import MaflError
from mafl.operator import OperatorClient

T = TypeVar("T")

EASTERN = ZoneInfo("America/New_York")
BEFORE_LOCK = timedelta(hours=48)
"""How long before its lock a contest is opened."""
BEFORE_NEWS = timedelta(hours=4)
"""How long before the first news of a game that moves its contest is open, where that is earlier."""
AFTER_SUNDAY = timedelta(hours=12)
"""From the lock to when Sunday's games are over."""
AFTER_LAST = timedelta(hours=12)
"""From the last kickoff to when statistics are final."""

PATIENCE = 120.0
"""Seconds that a step may take, with services dying and coming back meanwhile."""

_NOT_YET = frozenset({"lineups-missing", "moving", "not-found"})
"""What settlement says while events are still on their way to it."""


class SeasonError(Exception):
    """The season cannot be played, or does not go on; the message says what to look at."""


@dataclass(frozen=True)
class Files:
    """The files of a season and what they say of its weeks.

    ``pool`` has the games as they were listed; ``moves`` are those that moved afterwards, in the order of the news.
    """

    season: int
    pool: bytes
    weeks: tuple[int, ...]
    statistics: Mapping[int, list[dict[str, str]]]
    sunday_games: frozenset[str]
    moves: tuple[Move, ...] = ()


def seasons_in(data: Path) -> list[int]:
    """The seasons for which the directory has both a salary and a statistics file."""
    found = {int(path.name[5:9]) for path in data.glob("pool_[0-9][0-9][0-9][0-9]_dk.csv.gz")}
    return sorted(season for season in found if (data / f"weekly_stats_{season}.csv.gz").is_file())


def read_files(data: Path, season: int, weeks: int | None = None) -> Files:
    """The files of a season and its weeks, or its first ``weeks``. Raises ``SeasonError`` where they are not there."""
    if season not in seasons_in(data):
        known = ", ".join(map(str, seasons_in(data))) or "none"
        raise SeasonError(f"no season {season} in {data}: it has {known}")
    pool = (data / f"pool_{season}_dk.csv.gz").read_bytes()
    rows = list(_csv(pool))
    known_weeks = sorted({int(row["week"]) for row in rows})
    if weeks is not None and not 1 <= weeks <= len(known_weeks):
        raise SeasonError(f"season {season} has {len(known_weeks)} weeks, so not {weeks}")
    statistics: dict[int, list[dict[str, str]]] = {}
    for row in _csv((data / f"weekly_stats_{season}.csv.gz").read_bytes()):
        statistics.setdefault(int(row["week"]), []).append(row)
    moves = read_moves(data / f"moved_games_{season}.csv")
    return Files(
        season=season,
        pool=as_listed(pool, moves),
        moves=moves,
        statistics=statistics,
        weeks=tuple(known_weeks[:weeks]),
        sunday_games=frozenset(row["game_id"] for row in rows if row["game_id"] and _is_sunday(row["kickoff"])),
    )


def statistics_of(files: Files, week: int, *, sunday_only: bool) -> bytes:
    """The rows of a week as CSV; with ``sunday_only`` what is known before Monday's games."""
    rows = [row for row in files.statistics.get(week, []) if not sunday_only or row["game_id"] in files.sunday_games]
    if not rows:
        raise SeasonError(f"the statistics of {files.season} have no row for week {week}")
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _csv(content: bytes) -> Iterable[dict[str, str]]:
    return csv.DictReader(io.StringIO(gzip.decompress(content).decode()))


def _is_sunday(kickoff: str) -> bool:
    return datetime.fromisoformat(kickoff).astimezone(EASTERN).strftime("%A") == "Sunday"


@dataclass(frozen=True)
class WeekDone:
    """A settled week, as progress reports tell it. Points in hundredths."""

    contest: str
    lineups: int
    optimal: int
    best: int
    seconds: float


@dataclass(frozen=True)
class SeasonDone:
    """A season that was played."""

    season: int
    weeks: int
    agents: int
    lineups: int
    digest: str


class Season:
    """A season in play. ``url`` is the public origin, the operator's client reaches the operator's.

    The operator's token also makes the registrations' idempotency keys, which nobody else may guess.
    ``on_week`` is told of each week as it ends, ``on_step`` of each step as it begins.
    """

    def __init__(
        self,
        url: str,
        operator_url: str,
        operator_token: str,
        files: Files,
        *,
        members: Sequence[Member] = FIELD,
        on_week: Callable[[WeekDone], None] = lambda _: None,
        on_step: Callable[[str], None] = lambda _: None,
        retry: Retry | None = None,
    ) -> None:
        self._files = files
        self._members = members
        self._secret = operator_token.encode()
        self._on_week, self._on_step = on_week, on_step
        retry = retry or Retry(patience=PATIENCE, first_pause=0.05, longest_pause=1.0)
        self._public = PublicClient(url, retry=retry)
        self._operator = OperatorClient(operator_url, token=operator_token, retry=retry)
        self._field = Field(self._public, retry)

    async def play(self) -> SeasonDone:
        """Play the weeks in order; the digest of the boards when they show the last."""
        async with self._public, self._operator:
            await self._import()
            lineups = 0
            for week in self._files.weeks:
                done = await self._week(week)
                lineups += done.lineups
                self._on_week(done)
            self._on_step("boards")
            await self._names_shown(self._files.weeks[-1])
            digest = (await self._operator.digest())["digest"]
            return SeasonDone(self._files.season, len(self._files.weeks), len(self._field.playing), lineups, digest)

    async def _import(self) -> None:
        self._on_step("importing salaries")
        if not {self._contest(week) for week in self._files.weeks} <= (await self._listed()).keys():
            await self._operator.import_contests(self._files.pool, season=self._files.season)

    async def _listed(self) -> dict[str, dict[str, Any]]:
        """All contests as the operator sees them, drafts too."""
        return {row["contest"]: row for row in (await self._operator.operator_contests())["contests"]}

    async def _week(self, week: int) -> WeekDone:
        started, name = time.monotonic(), self._contest(week)
        listed = (await self._listed())[name]
        locks_at = datetime.fromisoformat(listed["locks_at"])
        await self._arrivals(week, locks_at)
        moves = [move for move in self._files.moves if move.week == week]
        if listed["state"] == "draft":
            self._on_step(f"{name} opens")
            await self._clock(min([locks_at - BEFORE_LOCK, *(move.told - BEFORE_NEWS for move in moves)]))
            await self._operator.open(name)
        if listed["state"] != "locked":
            self._on_step(f"{name}: agents submit")
            await self._field.submit(week, name)
            for number, move in enumerate(moves, start=1):
                self._on_step(f"{name}: {move.away} at {move.home} moves")
                await self._clock(move.told)
                await self._operator.move_game(name, move.game_id, move.kickoff)
                await self._field.look_again(week, name, number)
            self._on_step(f"{name} locks")
            await self._clock(locks_at)
            await self._until(f"{name} to be locked", lambda: self._is_locked(name))
        self._on_step(f"{name}: games")
        await self._settle(week, locks_at)
        results = await self._field.read_results(name)
        points = [lineup["points"] for lineup in results.lineups]
        optimal = results.optimal or {}
        return WeekDone(name, len(points), optimal.get("points", 0), max(points, default=0), time.monotonic() - started)

    async def _settle(self, week: int, locks_at: datetime) -> None:
        name, season = self._contest(week), self._files.season
        if await self._shown(name):
            return
        await self._clock(locks_at + AFTER_SUNDAY)
        sunday = statistics_of(self._files, week, sunday_only=True)
        try:
            await self._operator.import_statistics(sunday, season=season, week=week, final=False)
        except MaflError as error:
            if error.code != "statistics-final":
                raise
        contest = await self._public.contest(name)
        # Who moved out of the contest plays when it does not matter any more.
        await self._clock(max(game.kickoff for game in contest.games if game.status == "scheduled") + AFTER_LAST)
        final = statistics_of(self._files, week, sunday_only=False)
        await self._operator.import_statistics(final, season=season, week=week, final=True)
        self._on_step(f"{name} settles")
        await self._until(f"{name} to be settled", lambda: self._try_settle(name))
        await self._until(f"the boards to show {name}", lambda: self._shown(name))

    async def _try_settle(self, name: str) -> models.Settled | None:
        try:
            return await self._operator.settle(name)
        except MaflError as error:
            if error.code in _NOT_YET:
                return None
            raise

    async def _shown(self, name: str) -> bool:
        """Whether the boards show the settled contest. It is asked often, so of the smallest of its documents."""
        try:
            await self._public.optimal(name)
        except MaflError as error:
            # Before the lock, before it is settled, and before its news has arrived, there is none.
            if error.status in (404, 409):
                return False
            raise
        return True

    async def _is_locked(self, name: str) -> bool:
        return (await self._public.contest(name)).state == "locked"

    async def _clock(self, wanted: datetime) -> None:
        """Move the clock on, never back: a season that is played on finds it where it was."""
        if await self._operator.clock() < wanted:
            await self._operator.move_clock(wanted.astimezone(UTC))

    async def _arrivals(self, week: int, locks_at: datetime) -> None:
        """Register who joins by this week, and bring marks and claims to what the roster says of it."""
        newcomers = {
            self._key(member): member
            for member in self._members
            if member.joins <= week and member.name not in self._field.playing
        }
        if newcomers:
            self._on_step("agents register")
            # Who joins late registers late.
            await self._clock(locks_at - BEFORE_LOCK - timedelta(hours=1))
            await self._field.register(newcomers)
        known = {agent["id"]: agent for agent in await self._operator.agents()}
        playing = self._field.playing.values()
        await together(self._as_the_roster_says(one, known[one.agent_id], week) for one in playing)
        if any(any(member.marks.values()) for member in newcomers.values()):
            await self._until("contests to know the marks", self._marks_known)

    def _key(self, member: Member) -> str:
        """The idempotency key of a registration."""
        return hmac.new(self._secret, member.name.encode(), "sha256").hexdigest()

    async def _as_the_roster_says(self, playing: Playing, known: Mapping[str, object], week: int) -> None:
        member = playing.member
        marks = {mark for mark, borne in member.marks.items() if borne}
        if marks != set(known["marks"]):  # type: ignore[call-overload]
            await self._operator.mark(playing.agent_id, **member.marks)
        wanted = _claimed(member, week)
        if wanted and known["status"] == "unclaimed" and member.owner:
            await self._operator.claim(playing.agent_id, member.owner)
        if not wanted and known["status"] == "claimed":
            await self._operator.release(playing.agent_id)

    async def _marks_known(self) -> bool:
        """Whether contests has heard of the marks: a revision freezes those that contests knows."""
        answer = await self._operator.operate("GET", "/contests/agents")
        heard = {agent["agent_id"]: agent["marks"] for agent in answer["agents"]}
        return all(heard.get(playing.agent_id) == playing.member.marks for playing in self._field.playing.values())

    async def _names_shown(self, week: int) -> None:
        """Wait until the boards show every claimed agent and every model that played by its own name.

        Boards show neither before moderation has cleared it; one that moderation flags never comes.
        """
        played = [
            playing.member
            for playing in self._field.playing.values()
            if any(map(playing.member.plays, self._files.weeks))
        ]
        names = {member.name for member in played if _claimed(member, week)}
        models = {member.model for member in played}

        async def shown() -> bool:
            by_name = (await self._public.board("agents", season=self._files.season))["rows"]
            by_model = (await self._public.board("models", season=self._files.season))["rows"]
            return {row["name"] for row in by_name} == names and {row["model"] for row in by_model} == models

        await self._until("the boards to show who played", shown)

    def _contest(self, week: int) -> str:
        return f"{self._files.season}-W{week:02}"

    async def _until(self, what: str, ask: Callable[[], Awaitable[T | None]]) -> T:
        """Ask until there is an answer. Raises ``SeasonError`` after ``PATIENCE`` seconds, saying what was awaited."""
        pause, give_up = 0.02, time.monotonic() + PATIENCE
        while time.monotonic() < give_up:
            answer = await ask()
            if answer:
                return answer
            await asyncio.sleep(pause)
            pause = min(0.25, pause * 1.5)
        raise SeasonError(f"waited {PATIENCE:.0f} s in vain for {what}; the services' logs say why")


def _claimed(member: Member, week: int) -> bool:
    released = member.released_from is not None and week >= member.released_from
    return member.owner is not None and week >= member.claimed_from and not released
