"""Statistics as they come in a file: the data's own columns, a whole season or a part of it. No database."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from settlement.domain import STATISTICS, InputError, statistic
from settlement.tables import read_table, read_text

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


def read_statistics(data: bytes, name: str, *, season: int | None = None, week: int | None = None) -> Statistics:
    """Read a CSV, gzip or plain, with ``season``, ``week``, ``player_id`` and columns of ``STATISTICS``.

    ``season`` and ``week`` keep only those rows, and stand in for a column that is not there. An id is
    ``player_id`` or, where that is blank, ``source_player_id``, as in a contest's pool. Rows of one
    player in one week are put together (a kicker who also ran); they must not contradict each other.

    Raises ``InputError`` with line and column; nothing of a bad file is used.
    """
    table = read_table(read_text(data, name), name)
    _, columns = next(table)
    at = {column: place for place, column in enumerate(columns)}
    if "player_id" not in at:
        raise InputError("is missing; every row needs its player", line=1, column="player_id")
    for column, given in (("season", season), ("week", week)):
        if column not in at and given is None:
            raise InputError(f"is missing; add it, or say which {column} the file is of", line=1, column=column)
    known = [column for column in STATISTICS if column in at]
    if not known:
        raise InputError(f"no column is a statistic; the first ones known are {', '.join(STATISTICS[:6])}", line=1)

    found = Statistics(
        ignored_columns=tuple(c for c in columns if c not in {*known, "season", "week", "player_id"}),
    )
    first_line: dict[tuple[Week, str], int] = {}
    for number, cells in table:
        of = Week(
            _number(cells[at["season"]], number, "season") if "season" in at else season or 0,
            _number(cells[at["week"]], number, "week") if "week" in at else week or 0,
        )
        if season not in (None, of.season) or week not in (None, of.week):
            continue
        found.rows += 1
        line = {}
        for column in known:
            value = statistic(cells[at[column]], line=number, column=column)
            if value is not None:
                line[column] = value
        if not line:
            found.blank += 1
            continue
        player_id = cells[at["player_id"]].strip()
        if not player_id and "source_player_id" in at:
            player_id = cells[at["source_player_id"]].strip()
        if not player_id or len(player_id) > LONGEST_ID or not player_id.isprintable():
            raise InputError(
                f"{player_id[:40]!r} is not an id of 1 to {LONGEST_ID} printable characters",
                line=number,
                column="player_id",
            )
        of_player = found.lines.setdefault(of, {}).setdefault(player_id, {})
        first = first_line.setdefault((of, player_id), number)
        for column, value in line.items():
            if of_player.setdefault(column, value) != value:
                raise InputError(
                    f"{player_id} has {value} here and {of_player[column]} on line {first} for the same week",
                    line=number,
                    column=column,
                )
    return found


def _number(text: str, line: int, column: str) -> int:
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        raise InputError(
            f"{text[:40]!r} is not a {column}, such as {2017 if column == 'season' else 4}", line=line, column=column
        )
    return int(match[1])
