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
        name = week["contest"]
        _show_week(console, week, outcomes.get(name), whole=len(weeks) == 1)
        if report.get("changes", {}).get(name):
            _show_changes(console, report["changes"][name], report["breaks"].get(name))
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
            f"{escape(row['scheduled'])} counts",
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


def _show_changes(console: Console, changes: Mapping[str, Any], breaks: Mapping[str, int] | None) -> None:
    """What differs from the contest that was there, before → after."""
    from rich.markup import escape

    for kind in ("added", "removed"):
        named = [f"{row['name']} ({row['team']}, {row['price']})" for row in changes[kind]]
        _show_list(console, kind, named)
    _show_list(console, "prices", [f"{row['name']} {row['before']} → {row['after']}" for row in changes["prices"]])
    _show_list(console, "players", [f"{row['name']} {_other(row)}" for row in changes["players"]])
    _show_list(console, "games", [f"{row['game_id']} {_other(row)}" for row in changes["games"]])
    for what, row in changes["terms"].items():
        console.print(f"  {what} {escape(row['before'])} → {escape(row['after'])}", soft_wrap=True)
    if breaks and breaks["lineups"]:
        console.print(
            f"  [red]breaks[/] {breaks['broken']} of {breaks['lineups']} lineups: {breaks['vanished']} hold a player "
            f"who vanishes, {breaks['over_cap']} are over the cap, {breaks['unfit']} do not fit roster or rules",
            soft_wrap=True,
        )


def _show_list(console: Console, what: str, entries: Sequence[str]) -> None:
    from rich.markup import escape

    if entries:
        more = f" … and {len(entries) - MOST_ROWS} more" if len(entries) > MOST_ROWS else ""
        console.print(f"  {what} {len(entries)}: {escape(', '.join(entries[:MOST_ROWS]))}{more}", soft_wrap=True)


def _other(row: Mapping[str, Any]) -> str:
    """What is another before and after, of a thing with several parts; either may be none at all."""
    before, after = row["before"], row["after"]
    if before is None or after is None:
        return "comes" if before is None else "goes"
    return ", ".join(f"{key} {before[key]} → {after[key]}" for key in after if before.get(key) != after[key])


def _by_reason(rows: Iterable[Mapping[str, Any]]) -> list[tuple[str, list[Mapping[str, Any]]]]:
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["reason"], []).append(row)
    return sorted(groups.items(), key=lambda group: -len(group[1]))
