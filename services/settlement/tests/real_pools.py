"""Pools of real weeks, with what their players scored."""

from __future__ import annotations

from common.events import Scoring
from settlement import domain
from settlement.optimal import Player


def line_of(row: dict[str, str]) -> dict[str, int]:
    cells = {name: domain.statistic(row.get(name, ""), name) for name in domain.STATISTICS}
    return {name: value for name, value in cells.items() if value is not None}


def pool_of(rows: list[dict[str, str]], week: int, scoring: Scoring) -> list[Player]:
    """Sunday and Monday players that are offered at a price."""
    return [
        Player(
            row["player_id"] or row["source_player_id"],
            (row["position"],),
            int(row["salary"]),
            domain.points(line_of(row), scoring),
        )
        for row in rows
        if row["week"] == str(week) and row["weekday"] in ("Sunday", "Monday") and row["salary"] not in ("", "0")
    ]
