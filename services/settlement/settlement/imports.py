"""Statistics as they come in files, a whole season or a part of it. No database.

A file is known by its columns: the data's own, or those of nflverse (``settlement.nflverse``). Several files of one
import are read together: a defence takes its team's week, its opponent's and the score.
"""

from __future__ import annotations

import re
from functools import partial

from common.tables import Fault
from settlement import nflverse
from settlement.domain import STATISTICS, BadCell, statistic
from settlement.lines import Line, Lines, Person, Statistics, Week
from settlement.tables import BadTable, Table, read_table

__all__ = ["LONGEST_ID", "OWN", "Line", "Statistics", "Week", "read_statistics"]

OWN = "own columns"
_NUMBER = re.compile(r"0*([0-9]{1,4})", re.ASCII)
LONGEST_ID = 64
"""Characters of a player's id."""


def read_statistics(*files: bytes, season: int | None = None, week: int | None = None) -> Statistics:
    """Read files of one import, each CSV, gzip or plain, or Parquet, of any of the kinds that are known.

    ``season`` and ``week`` keep only those rows; for the data's own columns they stand in for a column that is not
    there. Raises ``BadTable`` with every fault's line and column of the first file that has any; nothing of a bad
    file is used, nor of those beside it.
    """
    lines, teams = Lines(), nflverse.Found()
    rows = blank = 0
    ignored: list[str] = []
    formats: list[str] = []

    def wanted(of_season: int | None, of_week: int | None) -> Week | None:
        if of_season is None or of_week is None or season not in (None, of_season) or week not in (None, of_week):
            return None
        return Week(of_season, of_week)

    for place, data in enumerate(files, start=1):
        try:
            table = read_table(data)
            kind = nflverse.kind_of(table.columns) or OWN
            formats.append(kind)
            if kind == nflverse.GAMES:
                nflverse.read_games(table, wanted, teams)
                continue
            if kind == nflverse.TEAMS:
                rows += nflverse.read_teams(table, wanted, teams)
                continue
            if kind == nflverse.PLAYERS:
                read, nothing, unused = nflverse.read_players(table, wanted, lines, teams)
            else:
                read, nothing, unused = _read_own(table, season, week, lines)
        except BadTable as error:
            raise _of_file(error, place) if len(files) > 1 else error from None
        rows, blank = rows + read, blank + nothing
        ignored += unused
    notes = nflverse.add_defences(teams, lines)
    scored: dict[Week, set[str]] = {}
    for of, team in teams.scores:
        scored.setdefault(of, set()).add(team)
    return Statistics(
        lines=lines.lines(),
        people=lines.people(),
        rows=rows,
        blank=blank,
        ignored_columns=tuple(dict.fromkeys(ignored)),
        scored={week: frozenset(of_week) for week, of_week in scored.items()},
        formats=tuple(formats),
        notes=tuple(notes),
    )


def _of_file(error: BadTable, place: int) -> BadTable:
    return BadTable([Fault(one.line, one.column, f"{one.reason} (file {place})") for one in error.faults], error.count)


def _read_own(table: Table, season: int | None, week: int | None, lines: Lines) -> tuple[int, int, tuple[str, ...]]:
    """Read ``season``, ``week``, ``player_id`` and columns of ``STATISTICS``; rows, blank ones, unused columns.

    An id is ``player_id`` or, where that is blank, ``source_player_id``, as in a contest's pool.
    """
    faults = table.faults
    at = {column: place for place, column in enumerate(table.columns)}
    if "player_id" not in at:
        faults.add(1, "player_id", "is missing; every row needs its player")
    for column, given in (("season", season), ("week", week)):
        if column not in at and given is None:
            faults.add(1, column, f"is missing; add it, or say which {column} the file is of")
    known = [(column, at[column], partial(statistic, name=column)) for column in STATISTICS if column in at]
    if not known:
        faults.add(1, None, f"no column is a statistic; the first ones known are {', '.join(STATISTICS[:6])}")
    faults.check()

    rows = blank = 0
    for number, cells in table.rows:
        of_season = faults.read(number, "season", _season, cells[at["season"]]) if "season" in at else season
        of_week = faults.read(number, "week", _week, cells[at["week"]]) if "week" in at else week
        if of_season is None or of_week is None:
            continue
        if season not in (None, of_season) or week not in (None, of_week):
            continue
        rows += 1
        line = {}
        for column, place, parse in known:
            value = faults.read(number, column, parse, cells[place])
            if value is not None:
                line[column] = value
        if not line:
            blank += 1
            continue
        written = cells[at["player_id"]].strip()
        if not written and "source_player_id" in at:
            written = cells[at["source_player_id"]]
        player_id = faults.read(number, "player_id", _player_id, written)
        if player_id is None:
            continue
        who = (cells[at[column]].strip() if column in at else "" for column in ("name", "position", "team"))
        lines.add(Week(of_season, of_week), Person(player_id, *who), line, number, faults)
    faults.check()
    named = {"season", "week", "player_id", *(column for column, _, _ in known)}
    return rows, blank, tuple(column for column in table.columns if column not in named)


def _season(text: str) -> int:
    return _number(text, "season", 2017)


def _week(text: str) -> int:
    return _number(text, "week", 4)


def _number(text: str, kind: str, example: int) -> int:
    match = _NUMBER.fullmatch(text.strip().removesuffix(".0"))
    if match is None:
        raise BadCell(f"{text[:40]!r} is not a {kind}, such as {example}")
    return int(match[1])


def _player_id(text: str) -> str:
    text = text.strip()
    if not text or len(text) > LONGEST_ID or not text.isprintable():
        raise BadCell(f"{text[:40]!r} is not an id of 1 to {LONGEST_ID} printable characters")
    return text
