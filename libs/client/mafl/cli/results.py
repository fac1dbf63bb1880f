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
    app.command("settle", epilog=examples("mafl settle 2017-W04", 'mafl settle 2017-W04 --reason "league correction"'))(
        settle
    )


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
    state: State = DEFAULT_STATE,
    json: Json = False,
) -> None:
    """Import statistics: every week of the files, or one. A bad row imports nothing.

    Provisional ones show scores while games are played; final ones can be settled. Files of one import are read
    together: a defence takes the weeks of both teams and the score.
    """
    contents = [read_file(file) for file in files]
    with err().status(f"importing {', '.join(file.name for file in files)}"):
        answer = operate(
            state, lambda client: client.import_statistics(*contents, season=season, week=week, final=final)
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
    state: State = DEFAULT_STATE,
    json: Json = False,
) -> None:
    """Score a contest's lineups and find the best lineup that there was, proven. Settling again is harmless."""
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
