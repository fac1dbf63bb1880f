"""MAFL's own pool format (``pool_2017_dk.csv``): one week or many in a file, with its games and certain ids.

It is written by programs: a file that contradicts itself is malformed and imports nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from common.canonical import instant
from common.tables import MOST_FAULTS, Fault, Malformed, Row
from contests.domain import contest_id
from contests.imports.listed import Listed, Unreadable, aware, check_text, price, whole

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
"""A column that a file may have: 1 where neither team is at home, else 0 or blank."""

SITE = "salary_site"
"""A column that a file may have: whose prices they are, ``draftkings`` or ``fanduel``. Others are passed over."""

SITES = ("draftkings", "fanduel")

ACCEPTED = f"the columns {', '.join(COLUMNS)}"


@dataclass(frozen=True, slots=True)
class Pool:
    """The rows of a file, and for weeks that say so the site whose prices they are."""

    rows: tuple[Listed, ...]
    sites: dict[tuple[int, int], str]


@dataclass(frozen=True, slots=True)
class _Game:
    """A game as the first of its rows tells of it."""

    line: int
    away: str
    home: str
    kickoff: datetime
    neutral: bool


_Games = dict[tuple[int, int, str], _Game]


def read(header_line: int, header: Sequence[str], lines: Iterator[Row]) -> Pool:
    """The rows of a file whose header is that of a pool. Raises ``Malformed``, with every fault up to some."""
    twice = sorted({column for column in (*COLUMNS, NEUTRAL, SITE) if header.count(column) > 1})
    if twice:
        raise Malformed([Fault(header_line, twice[0], "the column comes twice")])
    found: list[Listed] = []
    faults: list[Fault] = []
    games: _Games = {}
    sites: dict[tuple[int, int], tuple[int, str]] = {}
    for line, fields in lines:
        try:
            found.append(_row(line, header, fields, games, sites))
        except Unreadable as bad:
            faults.append(Fault(line, bad.column, bad.reason))
            if len(faults) == MOST_FAULTS:
                break
    faults += _scattered(games) if not faults else []
    if faults:
        raise Malformed(faults)
    return Pool(tuple(found), {week: site for week, (_, site) in sites.items() if site})


def _row(
    line: int,
    header: Sequence[str],
    fields: Sequence[str],
    games: _Games,
    sites: dict[tuple[int, int], tuple[int, str]],
) -> Listed:
    if len(fields) < len(header):
        raise Unreadable(header[len(fields)], f"the row ends after {len(fields)} of {len(header)} fields")
    if len(fields) > len(header):
        raise Unreadable(None, f"the row has {len(fields)} fields, the header {len(header)}")
    cells = dict(zip(header, fields, strict=True))
    for column in COLUMNS:
        cells[column] = cells[column].strip()
        check_text(cells[column], column)
    season = whole(cells["season"], "season", 1920, 2199)
    week = whole(cells["week"], "week", 1, 25)
    for column in ("name", "position", "team"):
        if not cells[column]:
            raise Unreadable(column, "empty")
    if not cells["player_id"] and not cells["source_player_id"] and cells["position"] != "DST":
        raise Unreadable("player_id", "neither a player_id nor a source_player_id")
    site = cells.get(SITE, "").strip()
    if site not in ("", *SITES):
        raise Unreadable(SITE, f"{site[:100]!r} is neither {' nor '.join(SITES)}")
    first_line, first_site = sites.setdefault((season, week), (line, site))
    if first_site != site:
        raise Unreadable(SITE, f"line {first_line} of the same week says {first_site!r}")
    amount, price_fault = price(cells["salary"], "salary")
    game = _game(line, season, week, cells, games)
    return Listed(
        line=line,
        season=season,
        week=week,
        player_id=cells["player_id"],
        source_id=cells["source_player_id"],
        name=cells["name"],
        positions=tuple(dict.fromkeys(cells["position"].split("/"))),
        team=cells["team"],
        opponent=cells["opponent"] if game else "",
        away=game.away if game else "",
        home=game.home if game else "",
        kickoff=game.kickoff if game else None,
        neutral=bool(game and game.neutral),
        game_id=cells["game_id"],
        price=amount,
        price_fault=price_fault,
    )


def _game(line: int, season: int, week: int, cells: dict[str, str], games: _Games) -> _Game | None:
    """The game a row says it is in; None where it names none. Rows of one game must agree about it."""
    game_id = cells["game_id"]
    if not game_id:
        return None
    if not cells["opponent"] or cells["opponent"] == cells["team"]:
        raise Unreadable("opponent", f"{cells['opponent']!r} is no opponent of {cells['team']}")
    if cells["home_away"] not in ("home", "away"):
        raise Unreadable("home_away", f"{cells['home_away']!r} is neither home nor away")
    kickoff = aware(cells["kickoff"], "kickoff")
    away, home = (cells["team"], cells["opponent"])[:: 1 if cells["home_away"] == "away" else -1]
    neutral = _neutral(cells)
    first = games.setdefault((season, week, game_id), _Game(line, away, home, kickoff, neutral))
    if first.kickoff != kickoff:
        was = f"{game_id} kicks off at {instant(first.kickoff)} in line {first.line}"
        raise Unreadable("kickoff", f"{was}, at {instant(kickoff)} here")
    if (first.away, first.home) != (away, home):
        was = f"{game_id} is {first.away} at {first.home} in line {first.line}"
        raise Unreadable("team", f"{was}, {away} at {home} here")
    if first.neutral != neutral:
        raise Unreadable(NEUTRAL, f"line {first.line} says otherwise of {game_id}")
    return first


def _neutral(cells: dict[str, str]) -> bool:
    said = cells.get(NEUTRAL, "").strip()
    if said not in ("", "0", "1"):
        raise Unreadable(NEUTRAL, f"{said[:100]!r} is neither 0 nor 1")
    return said == "1"


def _scattered(games: _Games) -> Iterator[Fault]:
    """A week's games lie within seven days; a kickoff further off would move the lock by its mistake."""
    weeks: dict[tuple[int, int], list[tuple[str, _Game]]] = {}
    for (season, week, game_id), game in games.items():
        weeks.setdefault((season, week), []).append((game_id, game))
    for (season, week), entries in weeks.items():
        middle = sorted(game.kickoff for _, game in entries)[len(entries) // 2]
        for game_id, game in entries:
            if abs(game.kickoff - middle) > timedelta(days=7):
                at, contest = instant(game.kickoff), contest_id(season, week)
                yield Fault(game.line, "kickoff", f"{game_id} kicks off at {at}, far from the other games of {contest}")
