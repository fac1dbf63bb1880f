"""``mafl stats`` and ``mafl settle``: statistics in, results out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mafl.cli.contests import Contest
from mafl.cli.operator import DEFAULT_STATE, State, operate, read_file
from mafl.cli.output import Json, emit, err, examples

if TYPE_CHECKING:
    from rich.console import Console

group = typer.Typer(name="stats", help="Bring the players' real statistics.", no_args_is_help=True)


def install(app: typer.Typer) -> None:
    """Add the group and ``settle`` to the command line."""
    app.add_typer(group)
    app.command(
        "settle",
        epilog=examples(
            "mafl settle 2017-W04 --dry-run",
            "mafl settle 2017-W04",
            'mafl settle 2017-W04 --reason "league correction"',
        ),
    )(settle)


@group.command(
    "import",
    epilog=examples(
        "mafl stats import data/weekly_stats_2017.csv.gz --season 2017 --week 4 --final",
        "mafl stats import stats_player_week_2026.parquet stats_team_week_2026.parquet games.csv --week 4",
    ),
)
def import_(
    files: Annotated[
        list[Path],
        typer.Argument(help="Statistics, CSV, gzip or Parquet: in the data's column names, or as nflverse has them."),
    ],
    season: Annotated[int | None, typer.Option(help="Only this season of the files.")] = None,
    week: Annotated[int | None, typer.Option(help="Only this week of the files.")] = None,
    final: Annotated[
        bool, typer.Option("--final/--provisional", help="Whether all games are over, or scores may still change.")
    ] = False,
    game: Annotated[
        list[str] | None,
        typer.Option(
            help="How far a game is, where neither kickoff nor lines tell: ID=waiting, ID=playing or ID=over."
        ),
    ] = None,
    state: State = DEFAULT_STATE,
    json: Json = False,
) -> None:
    """Import statistics: every week of the files, or one. A bad row imports nothing.

    Provisional ones show scores while games are played; final ones can be settled. Files of one import are read
    together: a defence takes the weeks of both teams and the score.
    """
    contents = [read_file(file) for file in files]
    games = {name: told for name, _, told in (one.rpartition("=") for one in game or ())}
    with err().status(f"importing {', '.join(file.name for file in files)}"):
        answer = operate(
            state,
            lambda client: client.import_statistics(*contents, season=season, week=week, final=final, games=games),
        )
    what = "final" if final else "provisional"

    def show(console: Console) -> None:
        for one in answer["weeks"]:
            console.print(
                f"{one['season']} week {one['week']}: {one['lines']} players, {one['changed']} changed, {what}"
            )
            for contest in one["contests"]:
                _show_unknown(console, contest)
        for note in answer["notes"]:
            console.print(f"  {note}", markup=False)

    emit(answer, json, show)


def _show_unknown(console: Console, contest: Mapping[str, Any]) -> None:
    if not contest["unknown_players"]:
        return
    console.print(f"  {contest['contest']}: {contest['unknown_players']} with statistics are not in its pool")
    for one in contest["unknown"]:
        near = ", ".join(f"{like['name']} ({like['player_id']}, {like['team']})" for like in one["nearest"])
        who = " ".join(part for part in (one["player_id"], one["name"], one["position"], one["team"]) if part)
        meant = f"; like him in the pool: {near}" if near else ""
        console.print(f"    {who}, {one['points'] / 100:.2f} points{meant}", markup=False)


def settle(
    contest: Contest,
    reason: Annotated[str | None, typer.Option(help="Why it is settled again; kept with the new version.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Settle though games have no statistic; needs a reason.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing: say what would happen, and what is missing.")
    ] = False,
    state: State = DEFAULT_STATE,
    json: Json = False,
) -> None:
    """Score a contest's lineups and find the best lineup that there was, proven. Settling again is harmless.

    With --dry-run it exits with 1 where something is missing or has to be given.
    """
    if dry_run:
        with err().status(f"looking at {contest}"):
            found = operate(state, lambda client: client.settle_preview(contest))
        emit(found, json, lambda console: _show_preview(console, found))
        if not found["ready"]:
            raise typer.Exit(1)
        return
    with err().status(f"settling {contest}"):
        settled = operate(state, lambda client: client.settle(contest, reason=reason, force=force))
    emit(
        settled.model_dump(),
        json,
        lambda console: console.print(
            f"{contest} is settled, version {settled.settlement}{'' if settled.changed else ' (as before)'}: "
            f"{settled.lineups} lineups, best possible {settled.optimal['points'] / 100:.2f}"
        ),
    )


def _show_preview(console: Console, found: Mapping[str, Any]) -> None:
    from rich.markup import escape
    from rich.table import Table

    lineups, outcome = found["lineups"], found["outcome"]
    need = "not locked yet" if lineups["need"] is None else f"{lineups['have']} of {lineups['need']} lineups"
    console.print(f"[bold]{found['contest']}[/]: {need}, statistics: {found['statistics']}")
    for one in found["missing"]:
        console.print(f"[red]missing[/] {one['code']}: {escape(one['detail'])}", soft_wrap=True)
    for one in found["asks"]:
        console.print(f"[yellow]asks for[/] {one['code']}: {escape(one['detail'])}", soft_wrap=True)
    if found["games"]:
        table = Table("game", "kickoff", "state", "players with statistics", box=None)
        for game in found["games"]:
            colour = "green" if game["state"] == "over" and game["with_statistics"] else "yellow"
            told = game["state"] if game["status"] == "scheduled" else f"{game['state']} ({game['status']})"
            table.add_row(
                f"{game['away']} at {game['home']}",
                game["kickoff"],
                f"[{colour}]{told}[/]",
                f"{game['with_statistics']} of {game['players']}",
            )
        console.print(table)
    outside, silent = found["unmatched"], found["without_statistics"]
    if outside["count"]:
        best = ", ".join(f"{one['player_id']} {one['points'] / 100:.2f}" for one in outside["players"][:5])
        console.print(f"{outside['count']} lines of players who are not in the pool, the best of them: {best}")
    if silent["picked"]:
        names = ", ".join(f"{one['name']} ({one['lineups']})" for one in silent["picked"][:10])
        console.print(f"picked and without a statistic, so zero: {escape(names)}")
    if outcome is not None:
        _show_outcome(console, found, outcome)


def _show_outcome(console: Console, found: Mapping[str, Any], outcome: Mapping[str, Any]) -> None:
    optimum = outcome["optimal"]["points"] / 100
    if not outcome["changed"]:
        console.print(f"version {outcome['settlement']} holds these results already: settling makes no new one")
        return
    provisional = ", if these statistics were final" if found["statistics"] == "provisional" else ""
    console.print(f"would be version {outcome['settlement']}{provisional}: best possible {optimum:.2f}")
    if found["current"] is not None:
        console.print(f"against version {found['current']}: {outcome['moved']} lineups would score differently")
    for one in outcome["corrected"]:
        changes = ", ".join(f"{s['statistic']} {s['before']} to {s['after']}" for s in one["statistics"])
        worth = f"{one['before'] / 100:.2f} to {one['after'] / 100:.2f}"
        console.print(f"  {one['player_id']}: {worth}{' by ' if changes else ''}{changes}")
