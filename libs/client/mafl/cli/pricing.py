"""``mafl contest price`` and ``mafl contest price-backtest``: prices where there is no salary file. No server."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mafl.cli.contests import group
from mafl.cli.operator import read_file
from mafl.cli.output import CommandError, Json, emit, err, examples

if TYPE_CHECKING:
    from rich.console import Console

    from contests.domain import Ruleset
    from contests.pricing import Performance, Sighting

DEFAULT_RULESET = "draftkings-classic-1"

Statistics = Annotated[
    list[Path], typer.Option("--statistics", help="Statistics, CSV or gzip, of any weeks and seasons; repeatable.")
]
RulesetName = Annotated[str, typer.Option("--ruleset", help="Ruleset that gives scoring, roster and cap.")]


def install(app: typer.Typer) -> None:
    """Add the commands to ``mafl contest``."""
    group.command(
        "price",
        epilog=examples(
            "mafl contest price --season 2017 --week 9 --statistics data/weekly_stats_2017.csv.gz "
            "--players data/pool_2017_dk.csv.gz --schedule data/pool_2017_dk.csv.gz --output priced.csv",
            "mafl contest import priced.csv --dry-run",
        ),
    )(price)
    group.command(
        "price-backtest",
        epilog=examples(
            "mafl contest price-backtest data/pool_2017_dk.csv.gz data/pool_2020_dk.csv.gz "
            "--statistics data/weekly_stats_2017.csv.gz --statistics data/weekly_stats_2020.csv.gz"
        ),
    )(price_backtest)


def price(
    season: Annotated[int, typer.Option(min=1920, max=2199, help="Season of the week to price.")],
    week: Annotated[int, typer.Option(min=1, max=25, help="The week to price.")],
    statistics: Statistics,
    schedule: Annotated[Path, typer.Option(help="Schedule with the week's games, or a pool file that has them.")],
    output: Annotated[Path, typer.Option(help="Salary file to write; plain CSV.")],
    players: Annotated[
        list[Path] | None,
        typer.Option(
            "--players",
            help="Who plays where: CSV with player_id,name,position,team, and season,week where its rows are dated "
            "(a pool file will do); needed where the statistics do not tell positions; repeatable.",
        ),
    ] = None,
    ruleset: RulesetName = DEFAULT_RULESET,
    json: Json = False,
) -> None:
    """Price a week's players from the points of earlier weeks, and write a salary file for `mafl contest import`.

    Nothing that happens in the week or later has any influence, and the same input gives the same file
    everywhere. docs/pricing.md has the formula.
    """
    with _input():
        from contests import price_files, pricing, rulesets

        period = pricing.Period(season, week)
        rules = rulesets.load(ruleset)
        with err().status("pricing"):
            performances, sightings = _past(statistics, rules)
            unidentified = 0
            for path in players or []:
                with _file("--players", path):
                    roster = price_files.read_roster(read_file(path), period)
                sightings += roster.sightings
                unidentified += roster.unidentified
            with _file("--schedule", schedule):
                games = price_files.read_schedule(read_file(schedule), period)
            priced = pricing.price(period, games.games, performances, sightings, rules)
            price_files.require_lineup(priced, rules)
            content = price_files.write(priced, games.neutral)
    try:
        output.write_bytes(content)
    except OSError as error:
        raise CommandError("file-unwritable", f"{output} cannot be written", error.strerror or str(error)) from error
    document = price_files.report(priced) | {
        "ruleset": ruleset,
        "unidentified": unidentified,
        "file": str(output),
        "source": f"sha256:{hashlib.sha256(content).hexdigest()}",
    }
    emit(document, json, lambda console: _show_priced(console, document))


def price_backtest(
    salaries: Annotated[list[Path], typer.Argument(help="Real salary files, CSV or gzip, of whole seasons.")],
    statistics: Statistics,
    players: Annotated[
        list[Path] | None,
        typer.Option(
            "--players",
            help="Whose id is whose: CSV with player_id,name,position,team (a pool file will do); needed where a "
            "salary file has no player_id; repeatable.",
        ),
    ] = None,
    ruleset: RulesetName = DEFAULT_RULESET,
    first_week: Annotated[int, typer.Option(min=1, max=25, help="Weeks before this one are not compared.")] = 4,
    json: Json = False,
) -> None:
    """Price every week of real salary files anew from the weeks before it, and tell how near the prices come.

    Rank correlation (Spearman) and mean absolute difference, by position, season and week.
    """
    with _input():
        from contests import price_backtest as backtests
        from contests import rulesets

        rules = rulesets.load(ruleset)
        with err().status("pricing every week"):
            performances, appearances = _past(statistics, rules)
            contents = [read_file(path) for path in salaries]
            known = [read_file(path) for path in players or []]
            document = backtests.backtest(
                contents, performances, appearances, rules, first_week=first_week, players=known
            )
    emit(document, json, lambda console: _show_backtest(console, document))


def _past(files: list[Path], rules: Ruleset) -> tuple[list[Performance], list[Sighting]]:
    """What everybody scored by the rules, and where he was: settlement's scoring of files that pricing reads."""
    from contests import price_files
    from contests.pricing import Performance, Period
    from settlement.domain import points
    from settlement.imports import read_statistics

    performances: list[Performance] = []
    sightings: list[Sighting] = []
    for path in files:
        content = read_file(path)
        with _file("--statistics", path):
            seen = price_files.read_appearances(content)
            lines = read_statistics(content).lines
        sightings += seen
        teams = {(one.period, one.player_id): one.team for one in sorted(seen, key=lambda one: one.team)}
        for week, of_week in lines.items():
            period = Period(week.season, week.week)
            for written, line in of_week.items():
                player_id = price_files.identity(written)
                team = teams.get((period, player_id), "")
                performances.append(Performance(period, player_id, team, points(line, rules.scoring)))
    return performances, sightings


@contextmanager
def _file(option: str, path: Path) -> Iterator[None]:
    """Name the file whose fault it is, and the option that gave it."""
    try:
        yield
    except ValueError as error:
        raise CommandError("bad-input", f"{option} {path} cannot be used", str(error)) from error


@contextmanager
def _input() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise CommandError(
            "not-installed", "This needs the contests and settlement services beside the client", str(error)
        ) from error
    except (ValueError, LookupError) as error:
        raise CommandError("bad-input", "The input cannot be used", str(error)) from error


def _show_priced(console: Console, document: dict[str, Any]) -> None:
    from rich.table import Table

    console.print(
        f"[bold]{document['contest']}[/] priced by {document['priced_by']}: {document['players']} players of "
        f"{document['games']} games; a typical lineup costs {document['typical_lineup']:,} of {document['cap']:,}"
    )
    table = Table("position", "players", "without history", "cheapest", "dearest", box=None)
    for position, of in document["positions"].items():
        numbers = (of["players"], of["without_history"], of["cheapest"], of["dearest"])
        table.add_row(position, *(f"{number:,}" for number in numbers))
    console.print(table)
    reasons: dict[str, int] = {}
    for out in document["left_out"]:
        reasons[out["reason"]] = reasons.get(out["reason"], 0) + 1
    for reason, count in sorted(reasons.items(), key=lambda entry: (-entry[1], entry[0]))[:10]:
        console.print(f"  left out {count}: {reason}", markup=False)
    if document["unidentified"]:
        console.print(f"  passed over {document['unidentified']} rows of players without a player_id")
    console.print(f"written to {document['file']} ({document['source']})", markup=False, soft_wrap=True)


def _show_backtest(console: Console, document: dict[str, Any]) -> None:
    from rich.table import Table

    for season in document["seasons"]:
        told = "the constants were chosen by this season" if season["tuned"] else "held out"
        console.print(f"[bold]{season['season']}[/] ({told}): rank correlation, and mean absolute difference")
        table = Table("week", *season["positions"], box=None)
        for row in season["weeks"]:
            table.add_row(str(row["week"]), *map(_cell, row["positions"].values()))
        table.add_row("all", *map(_cell, season["positions"].values()), style="bold")
        console.print(table)


def _cell(figures: dict[str, Any]) -> str:
    if not figures["listed"]:
        return "-"
    rank = "-" if figures["spearman"] is None else f"{figures['spearman']:.3f}"
    return f"{rank} {figures['mean_absolute_difference']:>5,}"
