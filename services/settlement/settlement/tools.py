"""What ``mafl optimal`` and ``mafl score`` do with a file. No server, no database.

InputError (ValueError)   the file cannot be used; names line and column and what would be right
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.events import Scoring, Slot
from common.points import as_points, hundredths
from settlement.certify import certify
from settlement.domain import InputError, statistic, statistics_of
from settlement.domain import points as score
from settlement.optimal import Player, best_lineups, count_lineups, optimal
from settlement.tables import read_table, read_text

DEFAULT_CAP = 50_000

DEFAULT_ROSTER: tuple[Slot, ...] = tuple(
    Slot(slot=slot, positions=positions)
    for slot, positions in (
        ("QB", ("QB",)),
        ("RB1", ("RB",)),
        ("RB2", ("RB",)),
        ("WR1", ("WR",)),
        ("WR2", ("WR",)),
        ("WR3", ("WR",)),
        ("TE", ("TE",)),
        ("FLEX", ("RB", "WR", "TE")),
        ("DST", ("DST",)),
    )
)

MOST_POINTS = 1_000_000_00
"""Hundredths; no player ever scores a million points."""

_COLUMNS = ("player_id", "name", "position", "team", "price", "points")
_PRICE = re.compile(r"0*([1-9][0-9]{0,8})", re.ASCII)


@dataclass(frozen=True, slots=True)
class ScoredFile:
    """A statistics file with its points. ``rows`` are the cells as they were, the points last."""

    scoring: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def csv(self) -> str:
        """The file as CSV, lines ended by a line feed."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return text.getvalue()

    def document(self) -> dict[str, Any]:
        """The file as one JSON document: ``{scoring, rows: [{column: text, …}]}``."""
        return {"scoring": self.scoring, "rows": [dict(zip(self.columns, row, strict=True)) for row in self.rows]}


def optimal_document(path: str | Path, cap: int = DEFAULT_CAP, best: int = 0) -> dict[str, Any]:
    """Solve a file of ``player_id,name,position,team,price,points`` for the default roster.

    Returns ``{points, price, players, certified, feasible_lineups, best}``: points in hundredths, players
    as sorted ids, ``certified`` whether CP-SAT proved the same points, ``best``
    that many best lineups in order as ``{points, price, players}``, the optimum first, empty unless asked for.

    Raises ``InputError``, and ``InfeasibleError`` where no lineup fills the roster under the cap.
    """
    if cap < 1:
        raise InputError(f"cap {cap}: must be above zero, such as {DEFAULT_CAP}")
    if best < 0:
        raise InputError(f"best {best}: must be zero or more")
    players = list(_players(Path(path)))
    winner = optimal(players, DEFAULT_ROSTER, cap)
    ranked = best_lineups(players, DEFAULT_ROSTER, cap, best)
    return {
        "points": winner.points,
        "price": winner.price,
        "players": list(winner.players),
        "certified": certify(players, DEFAULT_ROSTER, cap, winner.points).agrees,
        "feasible_lineups": count_lineups(players, DEFAULT_ROSTER, cap),
        "best": [{"points": one.points, "price": one.price, "players": list(one.players)} for one in ranked],
    }


def score_file(path: str | Path, scoring: Scoring) -> ScoredFile:
    """Add a column ``points`` (decimal, two places) to raw statistics in the data's column names.

    Every column is kept; one already called ``points`` is replaced. A row without any known statistic
    scores zero, as a player who did not play does. Raises ``InputError`` and ``BadStatistic``.
    """
    wanted = statistics_of(scoring)
    lines = _table(Path(path))
    _, columns = next(lines)
    known = [(at, column) for at, column in enumerate(columns) if column in wanted]
    if not known:
        raise InputError(f"no column is a statistic of {scoring.scoring}; it looks at {', '.join(wanted)}", line=1)
    kept = [at for at, column in enumerate(columns) if column != "points"]
    rows = []
    for number, cells in lines:
        line = {}
        for at, column in known:
            value = statistic(cells[at], line=number, column=column)
            if value is not None:
                line[column] = value
        rows.append((*(cells[at] for at in kept), as_points(score(line, scoring))))
    return ScoredFile(scoring.scoring, (*(columns[at] for at in kept), "points"), tuple(rows))


def _table(path: Path) -> Iterator[tuple[int, list[str]]]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    return read_table(read_text(data, str(path)), str(path))


def _players(path: Path) -> Iterator[Player]:
    lines = _table(path)
    _, columns = next(lines)
    missing = [column for column in _COLUMNS if column not in columns]
    if missing:
        raise InputError(f"is missing; needed are {','.join(_COLUMNS)}", line=1, column=missing[0])
    at = {column: columns.index(column) for column in _COLUMNS}
    first_seen: dict[str, int] = {}
    for line, cells in lines:
        player_id, position, price, points = (
            cells[at[c]].strip() for c in ("player_id", "position", "price", "points")
        )
        if not player_id:
            raise InputError("blank; every player needs an id of his own", line=line, column="player_id")
        if player_id in first_seen:
            raise InputError(
                f"{player_id!r} is on line {first_seen[player_id]} already; "
                "list each player once, two positions as RB/WR",
                line=line,
                column="player_id",
            )
        first_seen[player_id] = line
        yield Player(player_id, _positions(position, line), _price(price, line), _points(points, line))


def _positions(text: str, line: int) -> tuple[str, ...]:
    allowed = dict.fromkeys(position for slot in DEFAULT_ROSTER for position in slot.positions)
    positions = tuple(dict.fromkeys(part.strip() for part in text.split("/")))
    if not set(positions) <= set(allowed):
        raise InputError(
            f"{text[:40]!r} is none of {' '.join(allowed)}, nor several of them joined by /",
            line=line,
            column="position",
        )
    return positions


def _price(text: str, line: int) -> int:
    whole = _PRICE.fullmatch(text)
    if whole is None:
        raise InputError(
            f"{text[:40]!r} is not a price; it must be a whole number above zero, such as 5600",
            line=line,
            column="price",
        )
    return int(whole[1])


def _points(text: str, line: int) -> int:
    try:
        points = hundredths(text[:40])
    except ValueError:
        points = MOST_POINTS + 1
    if abs(points) > MOST_POINTS:
        raise InputError(
            f"{text[:40]!r} are no points; it must be a number with at most two decimals, such as 17.3 or -1",
            line=line,
            column="points",
        )
    return points
