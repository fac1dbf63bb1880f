"""The league's schedule: which games there are, in which week, and when they kick off.

A schedule file has the columns of nflverse's ``games.csv``. Without one, the week of a kickoff follows from the
calendar: :func:`calendar_week`.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from common import tables
from common.tables import MOST_FAULTS, Fault, Malformed
from contests.domain import EASTERN, contest_id
from contests.imports import teams
from contests.imports.listed import Unreadable, aware, cells_of, team, whole

NEEDED = ("game_id", "season", "week", "away_team", "home_team")
MARKS = frozenset({"game_id", "away_team", "home_team", "week"})
"""Columns by which a schedule is told from a list of players."""

ACCEPTED = (
    f"a CSV (plain or gzip, UTF-8) with the columns {', '.join(NEEDED)} and either kickoff (ISO 8601 with its offset) "
    "or gameday and gametime (US Eastern); location says Neutral where no team is at home"
)

WeekOf = tuple[int, int]
"""A season and a week of it."""


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A game of the schedule; teams are franchises. ``kickoff`` is None while the league has not set the time."""

    game_id: str
    season: int
    week: int
    away: str
    home: str
    kickoff: datetime | None
    neutral: bool

    @property
    def pair(self) -> frozenset[str]:
        return frozenset({self.away, self.home})

    @property
    def of(self) -> WeekOf:
        return self.season, self.week


@dataclass(slots=True)
class Schedule:
    """All games that a file tells of."""

    games: tuple[Scheduled, ...]
    _by_pair: dict[frozenset[str], list[Scheduled]] = field(default_factory=dict)
    _by_team: dict[tuple[WeekOf, str], Scheduled] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for game in self.games:
            self._by_pair.setdefault(game.pair, []).append(game)
            for side in game.pair:
                self._by_team[game.of, side] = game

    def of_team(self, week: WeekOf, franchise: str) -> Scheduled | None:
        """The one game of a team in a week."""
        return self._by_team.get((week, franchise))

    def between(self, pair: frozenset[str], season: int | None = None) -> list[Scheduled]:
        """All games of two teams, or those of a season, in the file's order."""
        return [game for game in self._by_pair.get(pair, ()) if season in (None, game.season)]

    def in_week(self, week: WeekOf) -> list[Scheduled]:
        """The games of a week in the file's order."""
        return [game for game in self.games if game.of == week]

    @property
    def seasons(self) -> tuple[int, ...]:
        return tuple(sorted({game.season for game in self.games}))


def read(content: bytes) -> Schedule:
    """A schedule file. Raises ``Malformed``, with every fault up to some."""
    try:
        return _read(content)
    except Malformed as error:
        raise Malformed([Fault(f.line, f.column, f"of the schedule: {f.reason}") for f in error.faults]) from None


def _read(content: bytes) -> Schedule:
    lines = tables.rows(tables.read_text(content))
    header_line, header = next(lines, (1, []))
    header = [column.strip() for column in header]
    missing = [column for column in NEEDED if column not in header]
    if missing or not ({"kickoff"} <= {*header} or {"gameday"} <= {*header}):
        lacking = ", ".join(missing) or "kickoff, nor gameday"
        raise Malformed([Fault(header_line, None, f"no column {lacking}; accepted: {ACCEPTED}")])
    games: list[Scheduled] = []
    faults: list[Fault] = []
    taken: dict[tuple[int, int, str], int] = {}
    for line, fields in lines:
        try:
            game = _game(cells_of(header, fields, NEEDED))
            for side in sorted(game.pair):
                other = taken.setdefault((*game.of, side), line)
                if other != line:
                    raise Unreadable("week", f"{side} plays twice in this week, in line {other} too")
        except Unreadable as bad:
            faults.append(Fault(line, bad.column, bad.reason))
            if len(faults) == MOST_FAULTS:
                break
        else:
            games.append(game)
    if faults:
        raise Malformed(faults)
    return Schedule(tuple(games))


def _game(cells: dict[str, str]) -> Scheduled:
    if not cells["game_id"]:
        raise Unreadable("game_id", "empty")
    away, home = team(cells["away_team"], "away_team"), team(cells["home_team"], "home_team")
    if away == home:
        raise Unreadable("home_team", f"{cells['home_team']} against itself")
    return Scheduled(
        game_id=cells["game_id"],
        season=whole(cells["season"], "season", 1920, 2199),
        week=whole(cells["week"], "week", 1, 25),
        away=away,
        home=home,
        kickoff=_kickoff(cells),
        neutral=cells.get("location", "").casefold() == "neutral",
    )


def _kickoff(cells: dict[str, str]) -> datetime | None:
    if cells.get("kickoff"):
        return aware(cells["kickoff"], "kickoff")
    day, time = cells.get("gameday", ""), cells.get("gametime", "") or cells.get("gametime_et", "")
    if not day or not time:
        return None
    try:
        local = datetime.strptime(f"{day} {time[:5]}", "%Y-%m-%d %H:%M").replace(tzinfo=EASTERN)
    except ValueError:
        raise Unreadable("gameday", f"{day[:20]!r} at {time[:20]!r} is no time (YYYY-MM-DD and HH:MM)") from None
    if not 1920 <= local.year <= 2199:
        raise Unreadable("gameday", f"{day!r} is in no season")
    return local.astimezone(UTC)


# --- the calendar -------------------------------------------------------------------------------


def season_of(kickoff: datetime) -> int:
    """The season of a kickoff: the year of its September. January and February belong to the year before."""
    day = kickoff.astimezone(EASTERN).date()
    return day.year if day.month >= 3 else day.year - 1


def last_week(season: int) -> int:
    """The last week of a regular season."""
    return 18 if season >= 2021 else 17


def calendar_week(kickoff: datetime) -> WeekOf | None:
    """The season and week in which a kickoff lies by the calendar; None before and after the regular season.

    Weeks go from Tuesday to Monday, US Eastern; week 1 is that of the first Thursday after Labor Day, the first
    Monday of September. A game that was moved from a Monday or Sunday to the Tuesday or Wednesday after lies in
    the next week by the calendar though it belongs to the one before: :func:`belongs`.
    """
    season = season_of(kickoff)
    september = date(season, 9, 1)
    labor_day = september + timedelta(days=-september.weekday() % 7)
    week = (kickoff.astimezone(EASTERN).date() - labor_day - timedelta(days=1)).days // 7 + 1
    return (season, week) if 1 <= week <= last_week(season) else None


def belongs(kickoff: datetime, week: WeekOf) -> bool:
    """Whether a game with this kickoff can be one of the week's: in it, or on the Tuesday or Wednesday after."""
    moved = kickoff - timedelta(days=2)
    return calendar_week(kickoff) == week or (
        kickoff.astimezone(EASTERN).weekday() in (1, 2) and calendar_week(moved) == week
    )


def majority(votes: Counter[WeekOf], voters: int) -> WeekOf | None:
    """The week that more than half of the games are of; None where there is none."""
    leader = max(votes, key=lambda week: (votes[week], week), default=None)
    return leader if leader is not None and votes[leader] * 2 > voters else None


def game_id(week: WeekOf, away: str, home: str) -> str:
    """The id that nflverse gives a game, made of its week and teams."""
    season, number = week
    return f"{season}_{number:02d}_{teams.abbreviation(away, season)}_{teams.abbreviation(home, season)}"


def held(weeks: Iterable[WeekOf]) -> str:
    """Weeks as a sentence names them."""
    return ", ".join(sorted(contest_id(season, week) for season, week in set(weeks))) or "none"
