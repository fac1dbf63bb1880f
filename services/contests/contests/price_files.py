"""Built-in prices from files and to files: a schedule, statistics and rosters in, a salary file out. Bytes only.

The salary file is MAFL's own pool format, so that ``contests.imports`` takes it like any other.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from common.events import Game
from common.points import as_points
from common.tables import MOST_FAULTS, Fault, Malformed, read_text, rows
from contests import imports, stadiums
from contests.domain import DAYS, EASTERN, Ruleset, contest_id, weekday
from contests.imports import COLUMNS, NEUTRAL, listed, schedule, teams
from contests.pricing import VERSION, Period, PricedWeek, PricingError, Sighting, unfilled

ROSTER = ("player_id", "name", "position", "team")
"""The columns that a roster must have. ``season`` and ``week`` date its rows; without them they are of today."""

STATISTICS = ("season", "week", "player_id", "name", "team")
"""The columns, statistics apart, that statistics must have. They may have ``position``."""

WRITTEN = (*COLUMNS, NEUTRAL, "weekday", "priced_by", "games", "rating")
"""The columns of a priced week's file; ``rating`` in points."""

SCHEDULES = f"{schedule.ACCEPTED}; or a list of players that has the week's games, such as a pool"

_DEFENCE = "DST-"


def franchise(team: str) -> str:
    """The franchise that a file means, so that a team that moved keeps its past; the text where it is no team."""
    return teams.franchise(team) or team


def identity(player_id: str) -> str:
    """The id of a player from season to season: a defence is its franchise's (``DST-OAK`` is ``DST-LV``)."""
    return _DEFENCE + franchise(player_id.removeprefix(_DEFENCE)) if player_id.startswith(_DEFENCE) else player_id


def franchised(game: Game) -> Game:
    """A game between franchises."""
    return game.model_copy(update={"away": franchise(game.away), "home": franchise(game.home)})


@dataclass(frozen=True, slots=True)
class Schedule:
    """A week's games, and the ids of those on neutral ground."""

    games: tuple[Game, ...]
    neutral: frozenset[str]


@dataclass(frozen=True, slots=True)
class Roster:
    """Who was where. ``unidentified`` counts the rows without a ``player_id``, which no statistics can be tied to."""

    sightings: tuple[Sighting, ...]
    unidentified: int


def read_schedule(content: bytes, period: Period) -> Schedule:
    """The games of one week of a schedule, in order of kickoff, or of a pool file that holds the week's games.

    Teams are franchises. Raises ``Malformed`` with every fault's line and column, where the file has no game of that
    week, and where a kickoff is not set yet.
    """
    line, header = next(rows(read_text(content)), (1, []))
    header = [column.strip() for column in header]
    games: list[Game] = []
    neutral: set[str] = set()
    if schedule.MARKS.issubset(header):
        for planned in schedule.read(content).in_week(period):
            if planned.kickoff is None:
                raise Malformed(
                    [Fault(None, "kickoff", f"{planned.game_id} has none yet; prices need the week's games")]
                )
            zone = stadiums.zone(teams.abbreviation(planned.home, period.season), neutral=planned.neutral)
            games.append(
                Game(
                    game_id=planned.game_id,
                    away=planned.away,
                    home=planned.home,
                    kickoff=planned.kickoff,
                    kickoff_zone=zone,
                )
            )
            neutral |= {planned.game_id} if planned.neutral else set()
    elif not imports.is_list(header):
        missing = [column for column in schedule.NEEDED if column not in header]
        reason = f"this is no schedule: no column {', '.join(missing)}; accepted: {SCHEDULES}"
        raise Malformed([Fault(line, None, reason)])
    else:
        for week in imports.read(content, *period, days=DAYS).weeks:
            games += [franchised(game) for game in week.games]
            neutral |= {game.game_id for game in week.games if game.kickoff_zone == stadiums.UNKNOWN}
    if not games:
        raise Malformed([Fault(None, None, f"no game of {contest_id(*period)}")])
    return Schedule(tuple(sorted(games, key=lambda game: (game.kickoff, game.game_id))), frozenset(neutral))


def read_roster(content: bytes, today: Period) -> Roster:
    """Players with their positions and teams: a directory, a roster, or a pool file of any weeks.

    ``today`` dates the rows of a file without ``season`` and ``week``. Prices in it are not looked at.
    """
    reader = _Reader(content)
    reader.need(ROSTER)
    dated = {"season", "week"} <= set(reader.columns)
    found = []
    unidentified = 0
    for line, cells in reader:
        period = reader.period(line, cells) if dated else today
        if period is None:
            continue
        if not (player_id := cells["player_id"] or _defence(cells)):
            unidentified += 1
            continue
        positions = _positions(cells["position"])
        found.append(Sighting(period, identity(player_id), cells["name"], positions, franchise(cells["team"])))
    reader.check()
    return Roster(tuple(found), unidentified)


def read_appearances(content: bytes) -> tuple[Sighting, ...]:
    """Who stands in statistics: week, name, team and, where it is told, position. The statistics are not looked at."""
    reader = _Reader(content)
    reader.need(STATISTICS)
    found = []
    for line, cells in reader:
        period = reader.period(line, cells)
        if period is not None and cells["player_id"]:
            positions = _positions(cells.get("position", ""))
            player_id, team = identity(cells["player_id"]), franchise(cells["team"])
            found.append(Sighting(period, player_id, cells["name"], positions, team, played=True))
    reader.check()
    return tuple(found)


def write(priced: PricedWeek, neutral: Collection[str] = frozenset()) -> bytes:
    """The salary file of a priced week: CSV, UTF-8, lines ended by a line feed; the same bytes for the same week.

    Teams are written as the league called them in that season.
    """
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, WRITTEN, lineterminator="\n")
    writer.writeheader()
    season = priced.period.season
    for player in priced.players:
        game = player.game
        at_home = player.team == game.home
        team = teams.abbreviation(player.team, season)
        player_id = _DEFENCE + team if player.player_id.startswith(_DEFENCE) else player.player_id
        writer.writerow(
            {
                "season": season,
                "week": priced.period.week,
                "source_player_id": player_id,
                "player_id": player_id,
                "name": player.name,
                "position": "/".join(player.positions),
                "team": team,
                "opponent": teams.abbreviation(game.away if at_home else game.home, season),
                "home_away": "home" if at_home else "away",
                "game_id": game.game_id,
                "kickoff": game.kickoff.astimezone(EASTERN).isoformat(),
                "salary": player.price,
                NEUTRAL: int(game.game_id in neutral),
                "weekday": weekday(game.kickoff),
                "priced_by": VERSION,
                "games": player.games,
                "rating": as_points(player.rating),
            }
        )
    return text.getvalue().encode()


def require_lineup(priced: PricedWeek, ruleset: Ruleset) -> None:
    """Raise ``PricingError`` where no lineup can be picked from a priced week, with the reasons and what to give."""
    if not (empty := unfilled(priced, ruleset)):
        return
    reasons = Counter(out.reason for out in priced.left_out).most_common(3)
    told = "".join(f", {count} left out because: {reason}" for reason, count in reasons)
    raise PricingError(
        f"{len(priced.players)} players of {priced.games} games fill no lineup for {contest_id(*priced.period)}: "
        f"nobody is left for {', '.join(empty)}{told}. Give --players with player_id, name, position and team of who "
        "plays in this week, or --statistics of the weeks before it that tell positions"
    )


def report(priced: PricedWeek) -> dict[str, Any]:
    """What was priced, as JSON: counts and prices of each position, and whoever was left out with the reason."""
    positions: dict[str, dict[str, Any]] = {}
    for player in priced.players:
        of = positions.setdefault(player.positions[0], {"players": 0, "without_history": 0, "dearest": player.price})
        of["players"] += 1
        of["without_history"] += not player.games
        of["cheapest"] = player.price
    return {
        "contest": contest_id(*priced.period),
        "season": priced.period.season,
        "week": priced.period.week,
        "priced_by": VERSION,
        "cap": priced.cap,
        "typical_lineup": priced.typical_lineup,
        "games": priced.games,
        "players": len(priced.players),
        "positions": dict(sorted(positions.items())),
        "idle": priced.idle,
        "left_out": [
            {"player_id": out.player_id, "name": out.name, "team": out.team, "reason": out.reason}
            for out in priced.left_out
        ],
    }


def _positions(text: str) -> tuple[str, ...]:
    """The positions that a cell names, in our words: a fullback is a running back, ``D`` a defence."""
    return listed.positions(text, "position") if text.strip("/ ") else ()


def _defence(cells: dict[str, str]) -> str:
    return _DEFENCE + cells["team"] if _positions(cells["position"]) == ("DST",) and cells["team"] else ""


class _Reader:
    """The rows of a CSV as dictionaries of stripped cells, and what is wrong with them, collected."""

    def __init__(self, content: bytes) -> None:
        self._lines = rows(read_text(content))
        self._header_line, header = next(self._lines, (1, []))
        self.columns = [column.strip() for column in header]
        self._faults: list[Fault] = []

    def need(self, columns: Collection[str]) -> None:
        """Raise ``Malformed`` unless each of these columns is there, once."""
        for column in columns:
            if (times := self.columns.count(column)) != 1:
                said = "is there twice" if times else f"is missing; needed are {', '.join(columns)}"
                self.fault(self._header_line, column, said)
        self.check()

    def __iter__(self) -> Iterator[tuple[int, dict[str, str]]]:
        for line, cells in self._lines:
            if len(cells) != len(self.columns):
                self.fault(line, None, f"{len(cells)} cells, but the header has {len(self.columns)} columns")
                continue
            yield line, {column: cell.strip() for column, cell in zip(self.columns, cells, strict=True)}

    def period(self, line: int, cells: dict[str, str]) -> Period | None:
        """A row's week; ``None``, and a fault, where it does not tell one."""
        numbers = []
        for column, low, high in (("season", 1920, 2199), ("week", 1, 25)):
            text = cells[column]
            if text.isascii() and text.isdigit() and len(text) <= 4 and low <= int(text) <= high:
                numbers.append(int(text))
            else:
                self.fault(line, column, f"{text[:40]!r} is not a whole number from {low} to {high}")
        return Period(*numbers) if len(numbers) == 2 else None

    def fault(self, line: int | None, column: str | None, reason: str) -> None:
        if len(self._faults) < MOST_FAULTS:
            self._faults.append(Fault(line, column, reason))

    def check(self) -> None:
        """Raise ``Malformed`` if there is any fault."""
        if self._faults:
            raise Malformed(self._faults)
