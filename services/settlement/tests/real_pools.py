"""Pools of real weeks, with what their players scored."""

from __future__ import annotations

from typing import Any

from common.events import Scoring
from common.points import hundredths
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


def lines_worth(week: Any) -> dict[str, dict[str, int]]:
    """Statistics lines that are worth what the data says; no line for who is worth nothing."""
    return {player_id: {"rec": hundredths(text)} for player_id, text in week.worth.items() if hundredths(text)}
