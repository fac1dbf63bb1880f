"""How an import's report is shown to a person: what is offered, and why each other row is not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

MOST_ROWS = 12
"""Rows of one reason that are named singly."""


def show_report(console: Console, report: Mapping[str, Any], name: str) -> None:
    """Print the report of a file's import, week by week."""
    from rich.markup import escape

    weeks = report.get("weeks") or [report]
    outcomes = report.get("outcomes", {})
    console.print(f"{escape(name)}: {report['format']}, {report['rows']} rows", soft_wrap=True)
    for week in weeks:
        _show_week(console, week, outcomes.get(week["contest"]), whole=len(weeks) == 1)
    for note in report.get("notes", []):
        console.print(f"[yellow]Note[/] {escape(note)}", soft_wrap=True)


def _show_week(console: Console, week: Mapping[str, Any], outcome: str | None, *, whole: bool) -> None:
    from rich.markup import escape

    title = week["contest"] or "no week"
    locks = f"locks {week['locks_at']}" if week["locks_at"] else "nothing to play"
    done = f" ({outcome})" if outcome else ""
    console.print(f"[bold]{title}[/]{done} {locks}, by {week['ruleset']}", soft_wrap=True)
    console.print(
        f"  {week['offered']} rows offered ({week['players']} players), {len(week['unmatched'])} unmatched, "
        f"{len(week['refused'])} refused"
    )
    if week["matched"]:
        console.print("  known by " + ", ".join(f"{escape(how)} {many}" for how, many in week["matched"].items()))
    if whole:
        _show_games(console, week)
    for row in week["differences"]:
        console.print(
            f"  [yellow]differs[/] {row['game_id']}: listed {row['what']} {escape(row['listed'])}, "
            f"by the schedule {escape(row['scheduled'])}",
            soft_wrap=True,
        )
    for kind in ("unmatched", "refused"):
        _show_rows(console, kind, week[kind])
    for row in week["duplicates"]:
        lines = ", ".join(map(str, row["lines"]))
        console.print(f"  alike {escape(row['name'])} (lines {lines}): {escape(row['outcome'])}", soft_wrap=True)


def _show_games(console: Console, week: Mapping[str, Any]) -> None:
    from rich.table import Table

    table = Table("game", "day", "kickoff (UTC)", "", box=None, pad_edge=False)
    kinds = (("games", ""), ("outside", "outside the covered days"), ("not_listed", "in the schedule, not in the list"))
    for key, remark in kinds:
        for game in week[key]:
            table.add_row(f"{game['away']}@{game['home']}", game["weekday"], game["kickoff"], remark)
    if table.row_count:
        console.print(table)


def _show_rows(console: Console, kind: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows by their reason, the first of each named."""
    from rich.markup import escape

    for reason, those in _by_reason(rows):
        console.print(f"  [red]{kind}[/] {len(those)}: {escape(reason)}", soft_wrap=True)
        for row in those[:MOST_ROWS]:
            nearest = f"; nearest: {', '.join(row['nearest'])}" if row.get("nearest") else ""
            console.print(f"    line {row['line']} {escape(row['name'] + nearest)}", soft_wrap=True)
        if len(those) > MOST_ROWS:
            console.print(f"    … and {len(those) - MOST_ROWS} more; --json has them all")


def _by_reason(rows: Iterable[Mapping[str, Any]]) -> list[tuple[str, list[Mapping[str, Any]]]]:
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["reason"], []).append(row)
    return sorted(groups.items(), key=lambda group: -len(group[1]))
