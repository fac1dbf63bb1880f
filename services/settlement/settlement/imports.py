"""Statistics as they come in a file: the data's own columns, a whole season or a part of it. No database."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial

from settlement.domain import STATISTICS, BadCell, statistic
from settlement.tables import read_table

Line = dict[str, int]
"""The known statistics of one player in one week, by name."""

_NUMBER = re.compile(r"0*([0-9]{1,4})", re.ASCII)
LONGEST_ID = 64
"""Characters of a player's id."""


@dataclass(frozen=True, slots=True)
class Week:
    """A week of a season; weeks sort as they are played."""

    season: int
    week: int

    def __lt__(self, other: Week) -> bool:
        return (self.season, self.week) < (other.season, other.week)

    def __str__(self) -> str:
        return f"{self.season}-W{self.week:02d}"


@dataclass(slots=True)
class Statistics:
    """What a file holds.

    ``rows`` counts the rows of the wanted weeks, ``blank`` those of them on which no statistic is known:
    they tell nothing of a player and leave no line. ``ignored_columns`` are those that are no statistic.
    """

    lines: dict[Week, dict[str, Line]] = field(default_factory=dict)
    rows: int = 0
    blank: int = 0
    ignored_columns: tuple[str, ...] = ()


def read_statistics(data: bytes, *, season: int | None = None, week: int | None = None) -> Statistics:
    """Read a CSV, gzip or plain, with ``season``, ``week``, ``player_id`` and columns of ``STATISTICS``.

    ``season`` and ``week`` keep only those rows, and stand in for a column that is not there. An id is
    ``player_id`` or, where that is blank, ``source_player_id``, as in a contest's pool. Rows of one
    player in one week are put together (a kicker who also ran); they must not contradict each other.

    Raises ``BadTable`` with every fault's line and column; nothing of a bad file is used.
    """
    table = read_table(data)
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

    named = {"season", "week", "player_id", *(column for column, _, _ in known)}
    found = Statistics(ignored_columns=tuple(column for column in table.columns if column not in named))
    first_line: dict[tuple[Week, str], int] = {}
    for number, cells in table.rows:
        of_season = faults.read(number, "season", _season, cells[at["season"]]) if "season" in at else season
        of_week = faults.read(number, "week", _week, cells[at["week"]]) if "week" in at else week
        if of_season is None or of_week is None:
            continue
        if season not in (None, of_season) or week not in (None, of_week):
            continue
        of = Week(of_season, of_week)
        found.rows += 1
        line = {}
        for column, place, parse in known:
            value = faults.read(number, column, parse, cells[place])
            if value is not None:
                line[column] = value
        if not line:
            found.blank += 1
            continue
        written = cells[at["player_id"]].strip()
        if not written and "source_player_id" in at:
            written = cells[at["source_player_id"]]
        player_id = faults.read(number, "player_id", _player_id, written)
        if player_id is None:
            continue
        of_player = found.lines.setdefault(of, {}).setdefault(player_id, {})
        first = first_line.setdefault((of, player_id), number)
        for column, value in line.items():
            if of_player.setdefault(column, value) != value:
                reason = f"{player_id} has {value} here and {of_player[column]} on line {first} for the same week"
                faults.add(number, column, reason)
    faults.check()
    return found


def _season(text: str) -> int:
    return _number(text, "season", 2017)


def _week(text: str) -> int:
    return _number(text, "week", 4)


def _number(text: str, kind: str, example: int) -> int:
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        raise BadCell(f"{text[:40]!r} is not a {kind}, such as {example}")
    return int(match[1])


def _player_id(text: str) -> str:
    text = text.strip()
    if not text or len(text) > LONGEST_ID or not text.isprintable():
        raise BadCell(f"{text[:40]!r} is not an id of 1 to {LONGEST_ID} printable characters")
    return text
