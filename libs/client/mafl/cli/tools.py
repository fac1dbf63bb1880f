"""``mafl interval``, ``mafl optimal`` and ``mafl score``: MAFL's numbers made again, with no server."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mafl.cli.output import CommandError, Json, emit, err, examples

if TYPE_CHECKING:
    from rich.console import Console


MOST_BEST = 10_000
"""Every lineup that is listed is kept in memory until all are found."""


def install(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command(
        "interval", epilog=examples("mafl interval model:openai/gpt-5 --sums 119117,469573 --counts 9,37 --json")
    )(interval)
    app.command(
        "optimal", epilog=examples("mafl optimal week.csv", "mafl optimal week.csv --cap 60000 --best 100 --json")
    )(optimal)
    app.command("score", epilog=examples("mafl score data/weekly_stats_2017.csv.gz > scored.csv"))(score)


def interval(
    label: Annotated[str, typer.Argument(help="The row's label, such as model:openai/gpt-5 or agent:alice.")],
    sums: Annotated[str, typer.Option(help="The row's sum for each settled week, in order of contest, such as 1,2,3.")],
    counts: Annotated[str, typer.Option(help="The number of lineups behind each sum.")],
    json: Json = False,
) -> None:
    """Draw a row's 95% interval again from its label: mean and ends, unrounded, in the unit of the sums.

    Fewer than two weeks have no mean and no interval.
    """
    with _input("boards"):
        from boards.tools import interval_document

        document = interval_document(label, _integers("--sums", sums), _integers("--counts", counts))

    def show(console: Console) -> None:
        marks = ", ".join(document["marks"])
        weeks = f"{document['weeks']} week{'' if document['weeks'] == 1 else 's'}"
        if document["mean"] is None:
            console.print(f"{weeks}: {marks}", markup=False)
        else:
            ends = f"mean {document['mean']!r}, 95% from {document['low']!r} to {document['high']!r}"
            console.print(f"{ends}, {weeks}{': ' + marks if marks else ''}", markup=False)

    emit(document, json, show)


def optimal(
    file: Annotated[Path, typer.Argument(help="CSV with the columns player_id,name,position,team,price,points.")],
    cap: Annotated[int, typer.Option(help="The most that a lineup may cost.")] = 50_000,
    best: Annotated[int, typer.Option(min=0, max=MOST_BEST, help="How many of the best lineups to list.")] = 0,
    json: Json = False,
) -> None:
    """Find the best lineup of a pool, proven by two methods, and how many lineups there are."""
    with _input("settlement"):
        from settlement.tools import optimal_document

        with err().status("solving"):
            document = optimal_document(file, cap=cap, best=best)

    def show(console: Console) -> None:
        proof = "certified" if document["certified"] else "NOT certified"
        console.print(f"{document['points'] / 100:.2f} points for {document['price']:,} ({proof})")
        console.print(f"{document['feasible_lineups']:,} lineups fit the roster and the cap")
        console.print(" ".join(document["players"]), markup=False)
        for place, lineup in enumerate(document["best"], start=1):
            line = f"{place:>4} {lineup['points'] / 100:8.2f} {lineup['price']:>7,}  {' '.join(lineup['players'])}"
            console.print(line, markup=False)

    emit(document, json, show)


def score(
    file: Annotated[Path, typer.Argument(help="Statistics, CSV or gzip, in the data's column names.")],
    scoring: Annotated[str, typer.Option(help="Name of the scoring.")] = "draftkings-classic-1",
    json: Json = False,
) -> None:
    """Add a column of points to raw statistics: CSV on standard output, or with --json one document."""
    with _input("settlement"):
        from contests import rulesets
        from settlement.tools import score_file

        scored = score_file(file, rulesets.load(scoring).scoring)
    emit(scored.document() if json else None, json, lambda _: _write(scored.csv()))


def _write(text: str) -> None:
    sys.stdout.write(text)


def _integers(option: str, text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    if not all(re.fullmatch("[+-]?[0-9]+", part) for part in parts):
        raise CommandError("bad-input", f"{option} takes whole numbers with commas between them", repr(text))
    try:
        return [int(part) for part in parts]
    except ValueError as error:  # thousands of digits
        raise CommandError("bad-input", f"{option} has a number that is too long", str(error)) from error


@contextmanager
def _input(service: str) -> Iterator[None]:
    """Turn what a tool says of its input into a command's error, and a missing service into advice."""
    try:
        yield
    except ImportError as error:
        raise CommandError(
            "not-installed", f"This needs the {service} service beside the client", str(error)
        ) from error
    except (ValueError, LookupError) as error:
        raise CommandError("bad-input", "The input cannot be used", str(error)) from error
