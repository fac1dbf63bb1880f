"""Games of a season that moved after the lists of salaries came out, and the lists as they were before."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path


@dataclass(frozen=True)
class Move:
    """A game of a week's list: the kickoff listed, and at ``told`` the news of another. Times are aware."""

    week: int
    game_id: str
    away: str
    home: str
    listed: datetime
    told: datetime
    kickoff: datetime


def read_moves(path: Path) -> tuple[Move, ...]:
    """The moves of a season in the order of the news; none where there is no such file."""
    if not path.is_file():
        return ()
    with path.open(newline="", encoding="utf-8") as file:
        moves = [
            Move(
                week=int(row["week"]),
                game_id=row["game_id"],
                away=row["away"],
                home=row["home"],
                listed=datetime.fromisoformat(row["listed"]),
                told=datetime.fromisoformat(row["told"]),
                kickoff=datetime.fromisoformat(row["kickoff"]),
            )
            for row in csv.DictReader(file)
        ]
    return tuple(sorted(moves, key=lambda move: move.told))


def as_listed(pool: bytes, moves: Sequence[Move]) -> bytes:
    """A season's pool file, gzip, with the games that moved as they were listed: at the kickoff of then.

    The file has every game's final kickoff, and no game where it moved to another week.
    """
    if not moves:
        return pool
    rows = list(csv.DictReader(io.StringIO(gzip.decompress(pool).decode())))
    moved = {(str(move.week), team): move for move in moves for team in (move.away, move.home)}
    for row in rows:
        move = moved.get((row["week"], row["team"]))
        if move is None or row["game_id"] not in ("", move.game_id):
            continue
        away = row["team"] == move.away
        row |= {
            "game_id": move.game_id,
            "opponent": move.home if away else move.away,
            "home_away": "away" if away else "home",
            "kickoff": move.listed.isoformat(),
            "weekday": move.listed.strftime("%A"),
        }
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return gzip.compress(text.getvalue().encode(), mtime=0)
