"""What ``mafl optimal`` and ``mafl score`` do with a file. No server, no database.

BadTable (ValueError)     the file cannot be used; names lines and columns and what would be right
InputError (ValueError)   there is no such file, or the cap or number of lineups makes no sense
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from common.events import Scoring, Slot
from common.points import as_points, hundredths
from settlement.certify import certify
from settlement.domain import BadCell, InputError, statistic, statistics_of
from settlement.domain import points as score
from settlement.optimal import Player, best_lineups, count_lineups, optimal
from settlement.tables import Table, read_table

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

MOST_BEST = 1_000
"""Best lineups that are listed; a million of them would take minutes and gigabytes."""

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

    Raises ``BadTable``, ``InputError``, and ``InfeasibleError`` where no lineup fills the roster under the cap.
    """
    if cap < 1:
        raise InputError(f"cap {cap}: must be above zero, such as {DEFAULT_CAP}")
    if not 0 <= best <= MOST_BEST:
        raise InputError(f"best {best}: must be zero to {MOST_BEST:,}")
    players = _players(Path(path))
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
    scores zero, as a player who did not play does. Raises ``BadTable`` and ``InputError``.
    """
    wanted = statistics_of(scoring)
    table = _table(Path(path))
    faults = table.faults
    known = [(at, name, partial(statistic, name=name)) for at, name in enumerate(table.columns) if name in wanted]
    if not known:
        faults.add(1, None, f"no column is a statistic of {scoring.scoring}; it looks at {', '.join(wanted)}")
    kept = [at for at, column in enumerate(table.columns) if column != "points"]
    rows = []
    for number, cells in table.rows:
        line = {}
        for at, name, parse in known:
            value = faults.read(number, name, parse, cells[at])
            if value is not None:
                line[name] = value
        rows.append((*(cells[at] for at in kept), as_points(score(line, scoring))))
    faults.check()
    return ScoredFile(scoring.scoring, (*(table.columns[at] for at in kept), "points"), tuple(rows))


def _table(path: Path) -> Table:
    try:
        return read_table(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error


def _players(path: Path) -> list[Player]:
    table = _table(path)
    faults = table.faults
    for column in _COLUMNS:
        if column not in table.columns:
            faults.add(1, column, f"is missing; needed are {','.join(_COLUMNS)}")
    faults.check()
    at = {column: table.columns.index(column) for column in _COLUMNS}
    first_seen: dict[str, int] = {}
    players = []
    for line, cells in table.rows:
        player_id = cells[at["player_id"]].strip()
        if not player_id:
            faults.add(line, "player_id", "blank; every player needs an id of his own")
        elif player_id in first_seen:
            reason = f"{player_id!r} is on line {first_seen[player_id]} already; "
            faults.add(line, "player_id", reason + "list each player once, two positions as RB/WR")
        else:
            first_seen[player_id] = line
        positions = faults.read(line, "position", _positions, cells[at["position"]].strip())
        price = faults.read(line, "price", _price, cells[at["price"]].strip())
        points = faults.read(line, "points", _points, cells[at["points"]].strip())
        if positions is not None and price is not None and points is not None:
            players.append(Player(player_id, positions, price, points))
    faults.check()
    return players


def _positions(text: str) -> tuple[str, ...]:
    allowed = dict.fromkeys(position for slot in DEFAULT_ROSTER for position in slot.positions)
    positions = tuple(dict.fromkeys(part.strip() for part in text.split("/")))
    if not set(positions) <= set(allowed):
        raise BadCell(f"{text[:40]!r} is none of {' '.join(allowed)}, nor several of them joined by /")
    return positions


def _price(text: str) -> int:
    whole = _PRICE.fullmatch(text)
    if whole is None:
        raise BadCell(f"{text[:40]!r} is not a price; it must be a whole number above zero, such as 5600")
    return int(whole[1])


def _points(text: str) -> int:
    try:
        points = hundredths(text[:40])
    except ValueError:
        points = MOST_POINTS + 1
    if abs(points) > MOST_POINTS:
        raise BadCell(
            f"{text[:40]!r} are no points; it must be a number from -{MOST_POINTS // 100:,} to {MOST_POINTS // 100:,} "
            "with at most two decimals, such as 17.3 or -1"
        )
    return points
