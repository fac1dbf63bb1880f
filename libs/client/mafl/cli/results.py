"""``mafl stats`` and ``mafl settle``: statistics in, results out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
    "import", epilog=examples("mafl stats import data/weekly_stats_2017.csv.gz --season 2017 --week 4 --final")
)
def import_(
    file: Annotated[Path, typer.Argument(help="Statistics, CSV or gzip, in the data's column names.")],
    season: Annotated[int | None, typer.Option(help="Only this season of the file.")] = None,
    week: Annotated[int | None, typer.Option(help="Only this week of the file.")] = None,
    final: Annotated[
        bool, typer.Option("--final/--provisional", help="Whether all games are over, or scores may still change.")
    ] = False,
    state: State = DEFAULT_STATE,
    json: Json = False,
) -> None:
    """Import statistics: every week of the file, or one. A bad row imports nothing.

    Provisional ones show scores while games are played; final ones can be settled.
    """
    content = read_file(file)
    with err().status(f"importing {file.name}"):
        answer = operate(state, lambda client: client.import_statistics(content, season=season, week=week, final=final))
    what = "final" if final else "provisional"

    def show(console: Console) -> None:
        for one in answer["weeks"]:
            console.print(
                f"{one['season']} week {one['week']}: {one['lines']} players, {one['changed']} changed, {what}"
            )

    emit(answer, json, show)


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
