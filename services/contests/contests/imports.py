"""Reading salary files: bytes in, contests and a report out. Nothing is stored here and nothing guessed.

Accepted today: MAFL's own pool format (``pool_2017_dk.csv``, plain or gzip), one week or many in a
file. Games, kickoffs and so the lock are derived from the file itself.

A file that contradicts its own format is malformed and imports nothing (``Malformed`` names line and
column). In a sound file each row ends up in exactly one of three places: *offered* (its player may be
picked), *unmatched* (no game to put it in) or *refused* (with the reason).
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from common import tables
from common.canonical import instant
from common.events import Game, PoolPlayer
from common.tables import MOST_FAULTS, Fault, Malformed
from contests import rulesets, stadiums
from contests.domain import COVERED, Ruleset, contest_id, lock_instant, weekday

FORMAT = "mafl-pool"
COLUMNS = (
    "season",
    "week",
    "source_player_id",
    "player_id",
    "name",
    "position",
    "team",
    "opponent",
    "home_away",
    "game_id",
    "kickoff",
    "salary",
)
"""The columns that a file must have, in any order."""

NEUTRAL = "neutral_site"
"""A column that a file may have: 1 where neither team is at home, else 0 or blank. Others are passed over."""

ACCEPTED = f"a CSV (plain or gzip, UTF-8) with the columns {', '.join(COLUMNS)}"
MAX_PRICE = 10_000_000

_FOREIGN = {
    "a DKSalaries file": {"Name + ID", "Roster Position", "Salary"},
    "a FanDuel player list": {"First Name", "Nickname", "FPPG"},
}
_PRICE = re.compile(r"(-?\d{1,15})(?:\.(\d{1,15}))?")


@dataclass(frozen=True, slots=True)
class Note:
    """A row that is not offered, and why."""

    line: int
    column: str | None
    name: str
    reason: str

    def as_dict(self) -> dict[str, Any]:
        return {"line": self.line, "column": self.column, "name": self.name, "reason": self.reason}


@dataclass(slots=True)
class Week:
    """One week of a file: what its contest would be, and what became of each row."""

    contest: str
    season: int
    week: int
    games: tuple[Game, ...] = ()
    outside: tuple[Game, ...] = ()
    players: tuple[PoolPlayer, ...] = ()
    locks_at: datetime | None = None
    rows: int = 0
    offered: int = 0
    unmatched: list[Note] = field(default_factory=list)
    refused: list[Note] = field(default_factory=list)
    merged: list[tuple[int, int]] = field(default_factory=list)

    def report(self) -> dict[str, Any]:
        """The import report of this week, as JSON. ``offered`` counts rows, ``players`` the players they make."""
        return {
            "contest": self.contest,
            "season": self.season,
            "week": self.week,
            "format": FORMAT,
            "rows": self.rows,
            "offered": self.offered,
            "players": len(self.players),
            "unmatched": [note.as_dict() for note in self.unmatched],
            "refused": [note.as_dict() for note in self.refused],
            "merged": [{"line": line, "into": into} for line, into in self.merged],
            "games": [_game_report(game) for game in self.games],
            "outside": [_game_report(game) for game in self.outside],
            "locks_at": instant(self.locks_at) if self.locks_at else None,
        }


@dataclass(frozen=True, slots=True)
class Import:
    """What a file holds. ``source`` names it by content; ``other_rows`` are of weeks that were not asked for."""

    source: str
    weeks: tuple[Week, ...]
    other_rows: int

    def report(self) -> dict[str, Any]:
        """The import report as JSON: of the one week, or the sums of several with each in ``weeks``."""
        reports = [week.report() for week in self.weeks]
        if len(reports) == 1:
            whole = dict(reports[0])
        else:
            whole = {"contest": None, "season": None, "week": None, "format": FORMAT}
            for key in ("rows", "offered", "players"):
                whole[key] = sum(report[key] for report in reports)
            for key in ("unmatched", "refused", "merged", "games", "outside"):
                whole[key] = [entry for report in reports for entry in report[key]]
            whole["locks_at"] = None
        return whole | {"source": self.source, "other_rows": self.other_rows, "weeks": reports}


def report(
    source: bytes | Path,
    season: int | None = None,
    week: int | None = None,
    *,
    ruleset: Ruleset | None = None,
    days: Sequence[str] = COVERED,
) -> dict[str, Any]:
    """The import report of a file or its bytes; see ``Import.report``. Raises ``Malformed``, ``OSError``."""
    content = source if isinstance(source, bytes) else source.read_bytes()
    return read(content, season, week, ruleset=ruleset, days=days).report()


def read(
    content: bytes,
    season: int | None = None,
    week: int | None = None,
    *,
    ruleset: Ruleset | None = None,
    days: Sequence[str] = COVERED,
) -> Import:
    """All weeks of a file, or the one asked for, in order. Raises ``common.tables.Malformed``.

    ``ruleset`` says which positions there are (the default one where not given); ``days`` are the
    covered weekdays, US Eastern.
    """
    ruleset = ruleset or rulesets.load()
    rows = _rows(content)
    wanted = [row for row in rows if season in (None, row.season) and week in (None, row.week)]
    if not wanted:
        held = ", ".join(sorted({contest_id(row.season, row.week) for row in rows})) or "none"
        raise Malformed([Fault(None, None, f"the file has no row of the week asked for; it holds {held}")])
    by_week: dict[tuple[int, int], list[_Row]] = {}
    for row in wanted:
        by_week.setdefault((row.season, row.week), []).append(row)
    weeks = tuple(_week(of_week, ruleset, days) for _, of_week in sorted(by_week.items()))
    return Import(f"sha256:{hashlib.sha256(content).hexdigest()}", weeks, len(rows) - len(wanted))


# --- bytes to rows ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of the file as read. ``price`` is None, and ``price_fault`` says why, where there is no usable one."""

    line: int
    season: int
    week: int
    player_id: str
    certain_id: bool
    name: str
    positions: tuple[str, ...]
    team: str
    game: Game | None
    price: int | None
    price_fault: str


class _Bad(Exception):
    def __init__(self, column: str | None, reason: str) -> None:
        self.column = column
        self.reason = reason


def _rows(content: bytes) -> list[_Row]:
    lines = tables.rows(tables.read_text(content))
    header_line, header = next(lines, (1, []))
    _check_header(header_line, header)
    read: list[_Row] = []
    faults: list[Fault] = []
    games: dict[tuple[int, int, str], tuple[int, Game]] = {}
    for line, fields in lines:
        try:
            read.append(_row(line, header, fields, games))
        except _Bad as bad:
            faults.append(Fault(line, bad.column, bad.reason))
            if len(faults) == MOST_FAULTS:
                break
    faults += _scattered(games) if not faults else []
    if faults:
        raise Malformed(faults)
    return read


def _check_header(line: int, header: list[str]) -> None:
    for kind, marks in _FOREIGN.items():
        if marks <= set(header):
            raise Malformed([Fault(line, None, f"this is {kind}, which is not read yet; accepted: {ACCEPTED}")])
    missing = [column for column in COLUMNS if column not in header]
    if missing:
        raise Malformed([Fault(line, None, f"no column {', '.join(missing)}; accepted: {ACCEPTED}")])
    twice = sorted({column for column in (*COLUMNS, NEUTRAL) if header.count(column) > 1})
    if twice:
        raise Malformed([Fault(line, twice[0], "the column comes twice")])


def _row(line: int, header: list[str], fields: list[str], games: dict[tuple[int, int, str], tuple[int, Game]]) -> _Row:
    if len(fields) < len(header):
        raise _Bad(header[len(fields)], f"the row ends after {len(fields)} of {len(header)} fields")
    if len(fields) > len(header):
        raise _Bad(None, f"the row has {len(fields)} fields, the header {len(header)}")
    cells = dict(zip(header, fields, strict=True))
    for column in COLUMNS:
        cells[column] = cells[column].strip()
        if len(cells[column]) > 100 or not cells[column].isprintable():
            raise _Bad(column, "longer than 100 characters, or holding characters that do not print")
    season = _whole(cells, "season", 1920, 2199)
    week = _whole(cells, "week", 1, 25)
    for column in ("name", "position", "team"):
        if not cells[column]:
            raise _Bad(column, "empty")
    player_id = cells["player_id"] or (f"DST-{cells['team']}" if cells["position"] == "DST" else "")
    if not player_id and not cells["source_player_id"]:
        raise _Bad("player_id", "neither a player_id nor a source_player_id")
    price, price_fault = _price(cells["salary"])
    return _Row(
        line=line,
        season=season,
        week=week,
        player_id=player_id or cells["source_player_id"],
        certain_id=bool(player_id),
        name=cells["name"],
        positions=tuple(dict.fromkeys(cells["position"].split("/"))),
        team=cells["team"],
        game=_game(line, season, week, cells, games),
        price=price,
        price_fault=price_fault,
    )


def _whole(cells: dict[str, str], column: str, low: int, high: int) -> int:
    text = cells[column]
    if not (text.isascii() and text.isdigit() and len(text) <= 4 and low <= int(text) <= high):
        raise _Bad(column, f"{text!r} is not a whole number from {low} to {high}")
    return int(text)


def _price(text: str) -> tuple[int | None, str]:
    if not text:
        return None, "no price"
    number = _PRICE.fullmatch(text) if text.isascii() else None
    if number is None:
        raise _Bad("salary", f"{text!r} is not a price")
    price = int(number[1])
    if (number[2] or "").strip("0"):
        return None, f"the price {text} is fractional"
    if price <= 0:
        return None, f"the price {text} is not above zero"
    if price > MAX_PRICE:
        raise _Bad("salary", f"{text} is above {MAX_PRICE}, no price of any site")
    return price, ""


def _game(
    line: int,
    season: int,
    week: int,
    cells: dict[str, str],
    games: dict[tuple[int, int, str], tuple[int, Game]],
) -> Game | None:
    """The game a row says it is in; None where it names none. Rows of one game must agree about it."""
    game_id = cells["game_id"]
    if not game_id:
        return None
    if not cells["opponent"] or cells["opponent"] == cells["team"]:
        raise _Bad("opponent", f"{cells['opponent']!r} is no opponent of {cells['team']}")
    if cells["home_away"] not in ("home", "away"):
        raise _Bad("home_away", f"{cells['home_away']!r} is neither home nor away")
    try:
        kickoff = datetime.fromisoformat(cells["kickoff"])
    except ValueError:
        raise _Bad("kickoff", f"{cells['kickoff']!r} is not an ISO 8601 time") from None
    if kickoff.tzinfo is None:
        raise _Bad("kickoff", f"{cells['kickoff']!r} has no offset from UTC")
    away, home = (cells["team"], cells["opponent"])[:: 1 if cells["home_away"] == "away" else -1]
    zone = stadiums.zone(home, neutral=_neutral(cells))
    game = Game(game_id=game_id, away=away, home=home, kickoff=kickoff.astimezone(UTC), kickoff_zone=zone)
    first_line, first = games.setdefault((season, week, game_id), (line, game))
    if first.kickoff != game.kickoff:
        reason = f"{game_id} kicks off at {instant(first.kickoff)} in line {first_line}, at {instant(kickoff)} here"
        raise _Bad("kickoff", reason)
    if (first.away, first.home) != (away, home):
        raise _Bad("team", f"{game_id} is {first.away} at {first.home} in line {first_line}, {away} at {home} here")
    if first.kickoff_zone != zone:
        raise _Bad(NEUTRAL, f"line {first_line} says otherwise of {game_id}")
    return first


def _neutral(cells: dict[str, str]) -> bool:
    said = cells.get(NEUTRAL, "").strip()
    if said not in ("", "0", "1"):
        raise _Bad(NEUTRAL, f"{said[:100]!r} is neither 0 nor 1")
    return said == "1"


def _scattered(games: dict[tuple[int, int, str], tuple[int, Game]]) -> Iterator[Fault]:
    """A week's games lie within seven days; a kickoff further off would move the lock by its mistake."""
    weeks: dict[tuple[int, int], list[tuple[int, Game]]] = {}
    for (season, week, _), entry in games.items():
        weeks.setdefault((season, week), []).append(entry)
    for (season, week), entries in weeks.items():
        middle = sorted(game.kickoff for _, game in entries)[len(entries) // 2]
        for line, game in entries:
            if abs(game.kickoff - middle) > timedelta(days=7):
                at, contest = instant(game.kickoff), contest_id(season, week)
                yield Fault(line, "kickoff", f"{game.game_id} kicks off at {at}, far from the other games of {contest}")


# --- rows to a week -----------------------------------------------------------------------------


def _week(rows: list[_Row], ruleset: Ruleset, days: Sequence[str]) -> Week:
    week = Week(contest_id(rows[0].season, rows[0].week), rows[0].season, rows[0].week, rows=len(rows))
    games = {row.game.game_id: row.game for row in rows if row.game}
    ordered = sorted(games.values(), key=lambda game: (game.kickoff, game.game_id))
    week.games = tuple(game for game in ordered if weekday(game.kickoff) in days)
    week.outside = tuple(game for game in ordered if weekday(game.kickoff) not in days)
    week.locks_at = lock_instant(week.games) if week.games else None
    candidates: list[_Row] = []
    for row in rows:
        if row.game is None:
            week.unmatched.append(Note(row.line, "game_id", row.name, f"no game for {row.team} in this week"))
        elif weekday(row.game.kickoff) not in days:
            reason = f"outside the covered days: {row.game.game_id} is on a {weekday(row.game.kickoff)}"
            week.refused.append(Note(row.line, "kickoff", row.name, reason))
        elif row.price is None:
            week.refused.append(Note(row.line, "salary", row.name, row.price_fault))
        elif not ruleset.positions.issuperset(row.positions):
            reason = f"no slot of the roster takes {'/'.join(row.positions)}"
            week.refused.append(Note(row.line, "position", row.name, reason))
        else:
            candidates.append(row)
    _offer(week, candidates)
    week.refused.sort(key=lambda note: note.line)
    return week


def _offer(week: Week, candidates: list[_Row]) -> None:
    """Make players of the rows: one each, save where two rows are, or may be, one player."""
    players: list[PoolPlayer] = []
    doubtful = _doubtful(candidates)
    for rows in _grouped(candidates, lambda row: row.player_id):
        first = rows[0]
        if first.line in doubtful:
            for row in rows:
                others = ", ".join(str(line) for line in doubtful[first.line] if line != row.line)
                reason = f"not certain whether line {others} lists the same player or another of that name and team"
                week.refused.append(Note(row.line, "name", row.name, reason))
            continue
        differing = next((row for row in rows if _identity(row) != _identity(first)), None)
        if differing is not None:
            what = _difference(first, differing)
            for row in rows:
                other = differing if row is first else first
                reason = f"{row.player_id} is listed again in line {other.line} with another {what}"
                week.refused.append(Note(row.line, "player_id", row.name, reason))
            continue
        positions = dict.fromkeys(first.positions)
        week.offered += 1
        for row in rows[1:]:
            if set(row.positions) <= positions.keys():
                reason = f"listed twice: the same as line {first.line}"
                week.refused.append(Note(row.line, "player_id", row.name, reason))
            else:
                positions |= dict.fromkeys(row.positions)
                week.merged.append((row.line, first.line))
                week.offered += 1
        players.append(_player(first, tuple(positions)))
    week.players = tuple(sorted(players, key=lambda player: player.player_id))


def _doubtful(candidates: list[_Row]) -> dict[int, list[int]]:
    """Lines of rows that share name and team under different ids, where not every id is certain."""
    doubtful: dict[int, list[int]] = {}
    for rows in _grouped(candidates, lambda row: (" ".join(row.name.casefold().split()), row.team)):
        if len({row.player_id for row in rows}) > 1 and not all(row.certain_id for row in rows):
            lines = [row.line for row in rows]
            doubtful |= dict.fromkeys(lines, lines)
    return doubtful


def _grouped(rows: Iterable[_Row], key: Any) -> Iterable[list[_Row]]:
    groups: dict[Any, list[_Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups.values()


def _identity(row: _Row) -> tuple[Any, ...]:
    return (row.name, row.team, row.game, row.price)


def _difference(one: _Row, other: _Row) -> str:
    pairs = zip(_identity(one), _identity(other), strict=True)
    return next(what for what, (a, b) in zip(("name", "team", "game", "price"), pairs, strict=True) if a != b)


def _player(row: _Row, positions: tuple[str, ...]) -> PoolPlayer:
    if row.game is None or row.price is None:
        raise ValueError(f"line {row.line} is no candidate")
    return PoolPlayer(
        player_id=row.player_id,
        player_name=row.name,
        positions=positions,
        team=row.team,
        opponent=row.game.home if row.team == row.game.away else row.game.away,
        game_id=row.game.game_id,
        price=row.price,
    )


def _game_report(game: Game) -> dict[str, Any]:
    return {
        "game_id": game.game_id,
        "away": game.away,
        "home": game.home,
        "kickoff": instant(game.kickoff),
        "kickoff_zone": game.kickoff_zone,
        "weekday": weekday(game.kickoff),
    }
