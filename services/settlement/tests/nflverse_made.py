"""Files shaped as nflverse's, made in tests."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

OF_A_TEAM = (
    *("passing_tds", "rushing_tds", "passing_2pt_conversions", "rushing_2pt_conversions", "fg_made", "pat_made"),
    *("sacks_suffered", "fg_blocked", "pat_blocked", "special_teams_tds", "def_sacks", "def_interceptions"),
    *("def_tds", "def_safeties", "fumble_recovery_opp", "fumble_recovery_tds"),
)


def as_csv(rows: Iterable[Mapping[str, Any]]) -> bytes:
    rows = list(rows)
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def as_parquet(rows: Iterable[Mapping[str, Any]]) -> bytes:
    file = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), file)
    return bytes(file.getvalue())


def team(season: int, week: int, name: str, opponent: str, **counts: int) -> dict[str, Any]:
    """A team's week: what is not given is zero."""
    of = {"season": season, "week": week, "team": name, "opponent_team": opponent}
    return of | {column: counts.get(column, 0) for column in OF_A_TEAM}


def game(season: int, week: int, away: str, home: str, score: tuple[int, int] | None) -> dict[str, Any]:
    """A game of the schedule, with its score once it has one."""
    return {
        "game_id": f"{season}_{week:02}_{away}_{home}", "season": season, "week": week, "away_team": away,
        "home_team": home, "away_score": score and score[0], "home_score": score and score[1],
    }  # fmt: skip
