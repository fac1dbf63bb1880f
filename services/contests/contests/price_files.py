"""Built-in prices from files and to files: a schedule, statistics and rosters in, a salary file out. Bytes only.

The salary file is MAFL's own pool format, so that ``contests.imports`` takes it like any other.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from common.events import Game
from common.points import as_points
from common.tables import MOST_FAULTS, Fault, Malformed, read_text, rows
from contests import stadiums
from contests.domain import EASTERN, contest_id, weekday
from contests.imports import COLUMNS, NEUTRAL
from contests.pricing import VERSION, Period, PricedWeek, Sighting

SCHEDULE = ("season", "week", "game_id", "away_team", "home_team", "kickoff")
"""The columns that a schedule must have. It may have ``location``, which says ``Neutral`` of neutral ground."""

ROSTER = ("player_id", "name", "position", "team")
"""The columns that a roster must have. ``season`` and ``week`` date its rows; without them they are of today."""

STATISTICS = ("season", "week", "player_id", "name", "team")
"""The columns, statistics apart, that statistics must have. They may have ``position``."""

WRITTEN = (*COLUMNS, NEUTRAL, "weekday", "priced_by", "games", "rating")
"""The columns of a priced week's file; ``rating`` in points."""


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

    Raises ``Malformed`` with every fault's line and column, and where the file has no game of that week.
    """
    reader = _Reader(content)
    listed = "home_away" in reader.columns and "away_team" not in reader.columns
    reader.need(("season", "week", "game_id", "kickoff", "team", "opponent", "home_away") if listed else SCHEDULE)
    games: dict[str, Game] = {}
    neutral = set()
    for line, cells in reader.of(period):
        if not cells["game_id"] and listed:
            continue
        if listed:
            away, home = cells["team"], cells["opponent"]
            if cells["home_away"] == "home":
                away, home = home, away
            is_neutral = cells.get(NEUTRAL) == "1"
        else:
            away, home = cells["away_team"], cells["home_team"]
            is_neutral = cells.get("location", "").casefold() == "neutral"
        kickoff = reader.instant(line, "kickoff", cells["kickoff"])
        for column, value in (("game_id", cells["game_id"]), ("away_team", away), ("home_team", home)):
            if not value:
                reader.fault(line, column, "empty")
        if kickoff is None:
            continue
        zone = stadiums.zone(home, neutral=is_neutral)
        game = Game(game_id=cells["game_id"], away=away, home=home, kickoff=kickoff, kickoff_zone=zone)
        if games.setdefault(game.game_id, game) != game:
            reader.fault(line, "game_id", f"{game.game_id} stands in the file twice, and differently")
        if is_neutral:
            neutral.add(game.game_id)
    reader.check()
    if not games:
        raise Malformed([Fault(None, None, f"no game of {contest_id(*period)}")])
    ordered = sorted(games.values(), key=lambda game: (game.kickoff, game.game_id))
    return Schedule(tuple(ordered), frozenset(neutral))


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
        positions = tuple(part for part in cells["position"].split("/") if part)
        found.append(Sighting(period, player_id, cells["name"], positions, cells["team"]))
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
            positions = tuple(part for part in cells.get("position", "").split("/") if part)
            found.append(Sighting(period, cells["player_id"], cells["name"], positions, cells["team"], played=True))
    reader.check()
    return tuple(found)


def write(priced: PricedWeek, neutral: Collection[str] = frozenset()) -> bytes:
    """The salary file of a priced week: CSV, UTF-8, lines ended by a line feed; the same bytes for the same week."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, WRITTEN, lineterminator="\n")
    writer.writeheader()
    for player in priced.players:
        game = player.game
        at_home = player.team == game.home
        writer.writerow(
            {
                "season": priced.period.season,
                "week": priced.period.week,
                "source_player_id": player.player_id,
                "player_id": player.player_id,
                "name": player.name,
                "position": "/".join(player.positions),
                "team": player.team,
                "opponent": game.away if at_home else game.home,
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
        "games": len({player.game.game_id for player in priced.players}),
        "players": len(priced.players),
        "positions": dict(sorted(positions.items())),
        "idle": priced.idle,
        "left_out": [
            {"player_id": out.player_id, "name": out.name, "team": out.team, "reason": out.reason}
            for out in priced.left_out
        ],
    }


def _defence(cells: dict[str, str]) -> str:
    return f"DST-{cells['team']}" if cells["position"] == "DST" and cells["team"] else ""


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

    def of(self, period: Period) -> Iterator[tuple[int, dict[str, str]]]:
        """The rows of one week."""
        return ((line, cells) for line, cells in self if self.period(line, cells) == period)

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

    def instant(self, line: int, column: str, text: str) -> datetime | None:
        """A time in UTC; ``None``, and a fault, where it is none or does not tell its zone."""
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            self.fault(line, column, f"{text[:40]!r} is not an ISO 8601 time")
            return None
        if time.tzinfo is None:
            self.fault(line, column, f"{text!r} has no offset from UTC")
            return None
        return time.astimezone(UTC)

    def fault(self, line: int | None, column: str | None, reason: str) -> None:
        if len(self._faults) < MOST_FAULTS:
            self._faults.append(Fault(line, column, reason))

    def check(self) -> None:
        """Raise ``Malformed`` if there is any fault."""
        if self._faults:
            raise Malformed(self._faults)
