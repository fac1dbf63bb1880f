"""``mafl contest``: import a week's salaries, open it, follow the league's schedule, lock it, list all."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mafl.cli.imported import show_report
from mafl.cli.operator import DEFAULT_STATE, State, operate, public_url, read_file
from mafl.cli.output import CommandError, Json, emit, err, examples

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from mafl.operator import OperatorClient

group = typer.Typer(
    name="contest",
    help="Import a week's salaries, open a contest, move its games, call it off, lock it, list all.",
    no_args_is_help=True,
)


def _contest_id(value: str) -> str:
    if not re.fullmatch("[0-9]{4}-W[0-9]{2}", value):
        raise typer.BadParameter(f"{value!r} is no contest's id, such as 2017-W04")
    return value


Contest = Annotated[str, typer.Argument(callback=_contest_id, help="A contest's id, such as 2017-W04.")]


def install(app: typer.Typer) -> None:
    """Add the group to the command line."""
    app.add_typer(group)


@group.command(
    "import",
    epilog=examples(
        "mafl contest import data/pool_2017_dk.csv.gz --season 2017 --week 4",
        "mafl contest import DKSalaries.csv --dry-run --json",
        "mafl contest import FanDuel-NFL-players-list.csv --dry-run --schedule games.csv --players players.csv",
    ),
)
def import_(
    file: Annotated[
        Path,
        typer.Argument(help="DKSalaries.csv, a FanDuel players list, a plain CSV or a pool of MAFL's; plain or gzip."),
    ],
    season: Annotated[int | None, typer.Option(help="Only this season of the file.")] = None,
    week: Annotated[
        int | None, typer.Option(help="Only this week of the file; where not given, the games tell.")
    ] = None,
    ruleset: Annotated[
        str | None, typer.Option(help="Ruleset of the contests; where not given, the one that the prices are made for.")
    ] = None,
    schedule: Annotated[
        Path | None, typer.Option(help="The league's schedule, CSV in nflverse's columns: it counts for the games.")
    ] = None,
    players: Annotated[
        list[Path] | None,
        typer.Option(
            help="Known players, CSV with player_id, name, position, team: rows are matched to them. May be repeated."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Report what an import would do; needs no server.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Change a contest that lineups have come in to; no lineup is touched.")
    ] = False,
    against: Annotated[
        bool,
        typer.Option("--compare", help="With --dry-run: ask the server what would change of the contest it has."),
    ] = False,
    state: State = DEFAULT_STATE,
    json: Json = False,
) -> None:
    """Import salaries as contests: every week of the file, or one. All or nothing, and nothing is guessed.

    The report counts the rows that are offered and lists every row that is not, with the reason.
    """
    content = read_file(file)
    beside: dict[str, Any] = {}
    if schedule is not None:
        beside["schedule"] = read_file(schedule)
    if players:
        beside["players"] = [read_file(path) for path in players]
    if against and not dry_run:
        raise typer.BadParameter("--compare goes with --dry-run: it changes nothing")
    if dry_run and not against:
        report = _dry(content, season, week, ruleset, beside)
    else:
        with err().status(f"importing {file.name}"):
            report = operate(
                state,
                lambda client: client.import_contests(
                    content, season=season, week=week, ruleset=ruleset, dry_run=dry_run, force=force, **beside
                ),
            )
    emit(report, json, lambda console: show_report(console, report, file.name))


def _dry(content: bytes, season: int | None, week: int | None, ruleset: str | None, beside: Mapping[str, Any]) -> Any:
    try:
        from contests import imports, rulesets
    except ImportError as error:
        raise CommandError("not-installed", "This needs the contests service beside the client", str(error)) from error
    try:
        rules = rulesets.load(ruleset) if ruleset else None
        return imports.report(content, season, week, ruleset=rules, **beside)
    except (ValueError, LookupError) as error:
        raise CommandError("import-malformed", "The file cannot be imported", str(error)) from error


@group.command("open", epilog=examples("mafl contest open 2017-W04"))
def open_(contest: Contest, state: State = DEFAULT_STATE, json: Json = False) -> None:
    """Let a contest take lineups."""
    answer = operate(state, lambda client: client.open(contest))
    emit(answer, json, lambda console: console.print(f"{contest} is open; it locks at {answer.get('locks_at')}"))


@group.command("lock", epilog=examples("mafl contest lock 2017-W04"))
def lock(contest: Contest, state: State = DEFAULT_STATE, json: Json = False) -> None:
    """Lock a contest whose time has come. MAFL does so by itself; this is for when it did not."""
    answer = operate(state, lambda client: client.lock(contest))
    emit(answer, json, lambda console: console.print(f"{contest} is locked; lineups: {answer.get('entries', '?')}"))


@group.command(
    "reschedule",
    epilog=examples(
        "mafl contest reschedule --schedule games.csv --dry-run", "mafl contest reschedule --schedule games.csv"
    ),
)
def reschedule(
    schedule: Annotated[Path, typer.Option(help="The league's schedule as nflverse has it, CSV or gzip.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would change, and change nothing.")] = False,
    state: State = DEFAULT_STATE,
    json: Json = False,
) -> None:
    """Follow the league's schedule in every contest that is not locked, drafts too: all of it or nothing.

    Kickoffs move and the lock with them; a game that moved to a day or week that its contest does not cover leaves it.
    A game that the schedule does not have stays: `mafl contest drop-game` takes it out.
    """
    content = read_file(schedule)
    answer = operate(state, lambda client: client.follow_schedule(content, dry_run=dry_run))
    emit(answer, json, lambda console: _show_followed(console, answer))


def _show_followed(console: Console, answer: Any) -> None:
    for contest in answer["contests"]:
        lock = contest["locks_at"]
        moves = "" if lock["before"] == lock["after"] else f" -> {lock['after']}"
        at_once = ": that is past, so it locks at once" if contest["at_once"] else ""
        same = ": unchanged" if not moves and not contest["games"] else ""
        console.print(f"{contest['contest']} ({contest['state']}) locks at {lock['before']}{moves}{at_once}{same}")
        for game in contest["games"]:
            kickoff, status = game["kickoff"], game["status"]
            became = "" if status["before"] == status["after"] else f", {status['before']} -> {status['after']}"
            console.print(
                f"  {game['game_id']} kicks off {kickoff['before']} -> {kickoff['after']}{became}", markup=False
            )
        for kind, says in (
            ("missing", "is not in the schedule; if it is cancelled, drop it"),
            ("undecided", "has no kickoff in the schedule yet"),
            ("cancelled", "is in the schedule though it is cancelled here; if it is played, restore it"),
        ):
            for game_id in contest[kind]:
                console.print(f"  {game_id} {says}", markup=False)
    for contest in answer["untouched"]:
        console.print(f"{contest['contest']} is {contest['state']} and stays as it is")
    if not answer["contests"] and not answer["untouched"]:
        console.print("no contest is of a season of this schedule")
    elif answer["dry_run"]:
        console.print("nothing was changed: this was a dry run")


Game = Annotated[str, typer.Argument(help="A game's id, such as 2020_04_PIT_TEN.")]


def _kickoff(value: str) -> datetime:
    try:
        kickoff = datetime.fromisoformat(value)
    except ValueError:
        raise typer.BadParameter(f"{value!r} is no time, such as 2020-10-05T19:05:00-04:00") from None
    if kickoff.tzinfo is None:
        raise typer.BadParameter(f"{value!r} has no offset from UTC, such as -04:00 or Z")
    return kickoff


@group.command("move-game", epilog=examples("mafl contest move-game 2020-W04 2020_04_NE_KC 2020-10-05T19:05:00-04:00"))
def move_game(
    contest: Contest,
    game: Game,
    kickoff: Annotated[str, typer.Argument(help="Its new kickoff, with the offset from UTC.")],
    state: State = DEFAULT_STATE,
    json: Json = False,
) -> None:
    """Give a game another kickoff before the lock; the lock moves with it.

    Moved to a day or a week that the contest does not cover, the game leaves it: its players can no longer be picked,
    and who picked one scores zero with him. With a kickoff that is covered it is there again.
    """
    at = _kickoff(kickoff)
    _tell(operate(state, lambda client: client.move_game(contest, game, at)), json)


@group.command(
    "drop-game",
    epilog=examples(
        "mafl contest drop-game 2022-W17 2022_17_BUF_CIN", "mafl contest drop-game 2020-W04 2020_04_PIT_TEN --moved"
    ),
)
def drop_game(
    contest: Contest,
    game: Game,
    moved: Annotated[bool, typer.Option("--moved", help="It is not cancelled: it moves, to no day known yet.")] = False,
    state: State = DEFAULT_STATE,
    json: Json = False,
) -> None:
    """Take a game out of a contest before its lock: its players can no longer be picked."""
    _tell(operate(state, lambda client: client.drop_game(contest, game, moved=moved)), json)


@group.command("restore-game", epilog=examples("mafl contest restore-game 2020-W04 2020_04_PIT_TEN"))
def restore_game(
    contest: Contest,
    game: Game,
    kickoff: Annotated[str | None, typer.Option(help="Its new kickoff; else the one it had.")] = None,
    state: State = DEFAULT_STATE,
    json: Json = False,
) -> None:
    """Let a game that has left come back before the lock: its players can be picked again."""
    at = None if kickoff is None else _kickoff(kickoff)
    _tell(operate(state, lambda client: client.restore_game(contest, game, at)), json)


class Became(StrEnum):
    """What a game can come to after the lock."""

    CANCELLED = "cancelled"
    POSTPONED = "postponed"
    ABANDONED = "abandoned"
    SUSPENDED = "suspended"
    PLAYED = "played"


@group.command(
    "became",
    epilog=examples(
        "mafl contest became 2022-W17 2022_17_BUF_CIN abandoned",
        "mafl contest became 2022-W17 2022_17_BUF_CIN suspended --resumed 2023-01-04T20:15:00-05:00",
    ),
)
def became(
    contest: Contest,
    game: Game,
    what: Annotated[Became, typer.Argument(help="What it came to; `played` takes that back.")],
    resumed: Annotated[str | None, typer.Option(help="When a suspended game went on.")] = None,
    state: State = DEFAULT_STATE,
    json: Json = False,
) -> None:
    """Say after the lock what became of a game that was not played as planned.

    The rules of the contest say what it is worth then: nothing to all who picked of it, or what is counted of it.
    Settle the contest after it, with a reason where it was settled before.
    """
    at = None if resumed is None else _kickoff(resumed)
    answer = operate(state, lambda client: client.game_became(contest, game, what.value, at))

    def show(console: Console) -> None:
        (of,) = (one for one in answer["games"] if one["game_id"] == game)
        worth = "counted as played" if of["became"] is None else f"{of['became']}: {_worth(of, answer['policies'])}"
        console.print(f"{contest}: {of['away']} at {of['home']} ({game}) {worth}", markup=False)

    emit(answer, json, show)


def _worth(game: Any, policies: Any) -> str:
    if game["became"] != "suspended":
        rule = policies[game["became"]]
    elif game["resumed_at"] is None:
        return f"not settled before it has gone on; then {policies['suspended']}, or {policies['resumed_late']} if late"
    else:
        rule = policies["suspended" if game["in_week"] else "resumed_late"]
    return "zero for all who picked of it" if rule == "zero" else "what is counted of it counts"


def _tell(answer: Any, json: bool) -> None:
    emit(answer, json, lambda console: console.print(_told(answer), markup=False))


def _told(answer: Any) -> str:
    """What a change of a game did: to the game, to those who can be picked, and to the lock."""
    game, lock, players = answer["game"], answer["lock"], answer["players"]
    kickoff, status = game["kickoff"], game["status"]
    did = []
    if kickoff["before"] != kickoff["after"]:
        did.append(f"kicks off {kickoff['before']} -> {kickoff['after']}")
    of_game = f"{players} player{'' if players == 1 else 's'}"
    if status["before"] != status["after"]:
        if status["after"] == "scheduled":
            did.append(f"is back in the contest: {of_game} can be picked again")
        elif status["before"] == "scheduled":
            did.append(f"left the contest ({status['after']}): {of_game} can no longer be picked")
        else:
            did.append(f"stays out of the contest, {status['before']} -> {status['after']}")
    at_once = answer["state"] == "locked"
    moves = f"{lock['before']} -> {lock['after']}" if lock["before"] != lock["after"] else f"{lock['after']} as before"
    locks = "locked at once, its lock" if at_once else "locks at"
    late = "; that is past, and a draft cannot be opened then" if answer["past"] and not at_once else ""
    return f"{game['game_id']} {', '.join(did) or 'is unchanged'}; {answer['contest']} {locks} {moves}{late}"


@group.command("cancel", epilog=examples('mafl contest cancel 2020-W04 --reason "No game of the week will be played."'))
def cancel(
    contest: Contest,
    reason: Annotated[str, typer.Option(help="Why; everybody reads it.")],
    state: State = DEFAULT_STATE,
    json: Json = False,
) -> None:
    """Call a contest off before its lock: it takes no more lineups, never locks, and nothing of it is ever shown."""
    reason = reason.strip()
    if not reason:
        raise typer.BadParameter("a reason is needed, and everybody reads it", param_hint="--reason")
    answer = operate(state, lambda client: client.cancel(contest, reason))
    kept = answer["cancelled_because"]
    says = (
        f"{contest} is cancelled: {kept}"
        if kept == reason
        else f"{contest} was called off already, at {answer['cancelled_at']}, and that reason stays: {kept}"
    )
    emit(answer, json, lambda console: console.print(says, markup=False))


@group.command(
    "download",
    epilog=examples("mafl contest download 2017-W04 week-4", "mafl verify week-4 --key 3d4017c3e843…"),
)
def download(
    contest: Contest,
    folder: Annotated[Path, typer.Argument(help="Where to write; a new or empty directory.")],
    url: Annotated[
        str | None, typer.Option(envvar="MAFL_URL", help="The public address; that of the stack here where not given.")
    ] = None,
    state: State = DEFAULT_STATE,
    json: Json = False,
) -> None:
    """Save what a contest committed to at its lock, and all that opens it, for `mafl verify`; by public calls alone."""
    try:
        from mafl.export import download as fetch
        from mafl.verify import MISMATCHED, OPENINGS
    except ImportError as error:
        raise CommandError("not-installed", "This needs mafl-common beside the client", str(error)) from error
    from mafl.client import PublicClient

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CommandError("folder-in-use", f"{folder} is not empty", "name a new directory")
    address = url or public_url(state)

    async def session() -> dict[str, bytes]:
        async with PublicClient(address) as client:
            return await fetch(client, contest)

    with err().status(f"downloading {contest}"):
        files = asyncio.run(session())
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)
    except OSError as error:
        raise CommandError("file-unwritable", f"{folder} cannot be written", error.strerror or str(error)) from error
    lines = files[OPENINGS].splitlines()
    document = {
        "contest": contest,
        "folder": str(folder),
        "files": sorted(files),
        "leaves": len(lines),
        "opened": sum(line != b"null" for line in lines),
        "mismatched": len(files.get(MISMATCHED, b"").splitlines()),
    }

    def show(console: Console) -> None:
        console.print(f"{contest}: {document['opened']} of {document['leaves']} leaves are opened, in {folder}")
        if document["mismatched"]:
            console.print(f"[bold red]{document['mismatched']} published values were never committed to[/]")
        console.print(f"check it: mafl verify {folder}", markup=False)

    emit(document, json, show)


def table_of(contests: Iterable[Mapping[str, Any]]) -> Table:
    """The table of ``mafl contest list``. What was called off has no lock."""
    from rich.table import Table

    table = Table("contest", "state", "locks at", "players", "lineups", "settled", box=None)
    for contest in contests:
        row = {**contest, "locks_at": "never"} if contest["state"] == "cancelled" else contest
        cells = (row.get(key, "") for key in ("contest", "state", "locks_at", "players", "lineups"))
        settled = "" if row["state"] != "locked" else f"version {row['settlement']}" if row["settlement"] else "no"
        table.add_row(*map(str, cells), settled)
    return table


@group.command("list", epilog=examples("mafl contest list", "mafl contest list --json"))
def list_(state: State = DEFAULT_STATE, json: Json = False) -> None:
    """All contests with their state, lock, totals, and the version in which they are settled."""

    async def work(client: OperatorClient) -> Any:
        listed, versions = await client.operator_contests(), await client.operate("GET", "/settlements")
        newest = {row["contest"]: row["settlement"] for row in versions}
        return {"contests": [{**row, "settlement": newest.get(row["contest"])} for row in listed["contests"]]}

    answer = operate(state, work)

    def show(console: Console) -> None:
        table = table_of(answer["contests"])
        console.print(table if answer["contests"] else "no contests yet: `mafl contest import FILE` makes some")

    emit(answer, json, show)
