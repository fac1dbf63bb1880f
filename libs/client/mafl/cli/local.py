"""``mafl up``, ``mafl demo`` and ``mafl status``: the whole of MAFL on this machine."""

from __future__ import annotations

import asyncio
import json as jsons
import os
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from mafl.cli.operator import DEFAULT_STATE, State, find
from mafl.cli.output import CommandError, Json, emit, err, examples, out

if TYPE_CHECKING:
    from rich.console import Console

    from embedded.stack import Ports, Stack, StackOptions
    from house.season import Season, SeasonDone, WeekDone

DEMO_STATE = "demo"
"""Where the demo keeps its state, within the directory of ``MAFL_STATE``."""
PUBLIC_PORT, OPERATOR_PORT = 8000, 8001

Port = Annotated[
    int, typer.Option("--port", envvar="MAFL_PORT", min=1, max=65535, help="Port of the pages and the public API.")
]
OperatorPort = Annotated[
    int,
    typer.Option(
        "--operator-port",
        envvar="MAFL_OPERATOR_PORT",
        min=1,
        max=65535,
        help="Port of the operator's API, on loopback.",
    ),
]
FreePorts = Annotated[bool, typer.Option("--free-ports", help="Take ports that are free instead.")]


class ClockName(StrEnum):
    """Which clock MAFL goes by."""

    SYSTEM = "system"
    REPLAY = "replay"


def _origin(value: str | None) -> str | None:
    """An address that pages and claim links can begin with."""
    if value is None:
        return None
    parts = urlsplit(value)
    try:
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is none
        usable = False
    if not usable or parts.username or parts.path.strip("/") or parts.query or parts.fragment:
        raise typer.BadParameter(f"{value!r} is no address such as https://mafl.example")
    return value.rstrip("/")


def install(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command("up", epilog=examples("mafl up", "mafl up --free-ports --state /tmp/mafl"))(up)
    app.command(
        "demo",
        epilog=examples(
            "mafl demo", "mafl demo --weeks 3 --exit --json demo.json --free-ports", "mafl demo --season 2020"
        ),
    )(demo)
    app.command("status", epilog=examples("mafl status", "mafl status --json"))(status)


def up(
    port: Port = PUBLIC_PORT,
    operator_port: OperatorPort = OPERATOR_PORT,
    free_ports: FreePorts = False,
    bind: Annotated[
        str, typer.Option(help="Interface of the public origin; all else stays on loopback.")
    ] = "127.0.0.1",
    public_url: Annotated[
        str | None,
        typer.Option(
            envvar="MAFL_PUBLIC_URL",
            callback=_origin,
            help="Address that people use, where it differs: https://mafl.example. It need not answer from here.",
        ),
    ] = None,
    clock: Annotated[
        ClockName, typer.Option(help="The system's clock, or one that an operator moves.")
    ] = ClockName.SYSTEM,
    state: State = DEFAULT_STATE,
    json: Json = False,
) -> None:
    """Start MAFL on this machine and keep it up until Ctrl-C: PostgreSQL, NATS, gateway and services.

    Nothing needs to be installed and nothing needs root. What is kept is in the state directory.
    MAFL_DATABASE_URL and MAFL_NATS_URL name servers to use instead of starting some: of an administrator of
    PostgreSQL, who makes a role for each service, and one user of NATS for all services. The NATS that MAFL starts
    gives each service a user of its own, who reads and publishes no more than it must; an existing one has no such
    walls between the services unless you build them.
    """
    _embedded()
    from embedded.stack import StackOptions

    options = StackOptions(
        state=state,
        ports=_ports(port, operator_port, free_ports),
        clock=clock.value,
        bind=bind,
        public_url=public_url,
        database_url=os.environ.get("MAFL_DATABASE_URL"),
        nats_url=os.environ.get("MAFL_NATS_URL"),
    )

    async def work() -> None:
        async with AsyncExitStack() as exit_stack:
            if options.nats_url is not None:
                err().print(
                    "[yellow]All services share the one user of MAFL_NATS_URL, and may read all that it may.[/]"
                )
            stack = await _start(exit_stack, options, Laps())
            addresses = {"public_url": stack.public_url, "operator_url": stack.operator_url, "state": str(stack.state)}
            emit(addresses, json, lambda _: None)
            _tell_operators(stack)
            err().print("Ctrl-C stops everything.")
            await stack.wait()
            err().print("stopping")

    _run(work())


def demo(
    season: Annotated[int, typer.Option(help="The season to play, of those in the data directory.")] = 2017,
    weeks: Annotated[int | None, typer.Option(min=1, help="Only so many weeks from the first.")] = None,
    exit_: Annotated[bool, typer.Option("--exit", help="Stop when the season is over.")] = False,
    json: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Write what happened as one JSON document to this file."),
    ] = None,
    port: Port = PUBLIC_PORT,
    operator_port: OperatorPort = OPERATOR_PORT,
    free_ports: FreePorts = False,
    state: Annotated[
        Path | None,
        typer.Option(
            help="The demo's own state directory, emptied first; "
            f"where not given {DEMO_STATE} within that of MAFL_STATE, or within {DEFAULT_STATE}."
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(envvar="MAFL_DATA", help="Directory of the seasons; the repository's where not given."),
    ] = None,
) -> None:
    """Play a whole real season through the public API: registrations, lineups, locks, scores, boards.

    The agents are MAFL's reference strategies and simulated ones; no language model plays. The pages' address
    is printed as soon as they answer; afterwards both boards are, and the pages stay up until Ctrl-C.
    """
    laps = Laps()
    _embedded()
    from embedded.stack import StackOptions
    from house.season import Season, SeasonError, read_files

    options = StackOptions(
        state=state or Path(os.environ.get("MAFL_STATE") or DEFAULT_STATE) / DEMO_STATE,
        ports=_ports(port, operator_port, free_ports),
        clock=ClockName.REPLAY.value,
        fresh=True,
    )

    async def work() -> None:
        files = read_files(data or _data(), season, weeks)
        if json is not None:
            _writable(json)
        progress = Progress(len(files.weeks))
        async with AsyncExitStack() as exit_stack:
            stack = await _start(exit_stack, options, laps)
            playing = Season(
                stack.public_url,
                stack.operator_url,
                stack.operator_token,
                files,
                on_week=progress.week,
                on_step=progress.step,
            )
            with progress:
                document = await _play(playing, stack, laps)
            if json is not None:
                json.write_text(jsons.dumps(document, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
            _show_boards(out(), document)
            if not exit_:
                _tell_operators(stack)
                err().print(f"The pages stay at [bold]{stack.public_url}[/] until Ctrl-C.")
                await stack.wait()
            err().print("stopping")

    try:
        _run(work())
    except SeasonError as error:
        raise CommandError("season", "The season was not played", str(error)) from error


def status(state: State = DEFAULT_STATE, json: Json = False) -> None:
    """What runs, whether it is ready, and how far the contests are. Fails unless everything is ready."""
    document = asyncio.run(_status(state))
    emit(document, json, lambda console: _show_status(console, document))
    if not document["ready"]:
        raise typer.Exit(1)


# --- starting -----------------------------------------------------------------------------------


class Laps:
    """Seconds since this process began, the interpreter's start included."""

    def __init__(self) -> None:
        import psutil

        self._began = psutil.Process().create_time()
        self.first_page = 0.0

    def now(self) -> float:
        return round(time.time() - self._began, 2)


def _embedded() -> None:
    """Say what is missing where the client is installed alone."""
    try:
        for module in ("embedded.stack", "house.season"):
            import_module(module)
    except ImportError as error:
        raise CommandError(
            "not-installed",
            "This needs the whole of MAFL, not the client alone",
            f"{error}; run it from the repository",
        ) from error


def _ports(port: int, operator_port: int, free: bool) -> Ports:
    from embedded.stack import Ports

    return Ports.free() if free else Ports(public=port, operator=operator_port)


def _run(work: Any) -> None:
    from embedded.errors import Interrupted

    try:
        asyncio.run(work)
    except Interrupted:
        raise typer.Exit(130) from None


async def _start(exit_stack: AsyncExitStack, options: StackOptions, laps: Laps) -> Stack:
    """Start the stack, telling of each process, and print the pages' address when they answer."""
    from dataclasses import replace

    from embedded.stack import Stack

    console = err()
    if not console.is_terminal:
        console.print(f"starting MAFL in {options.state}", soft_wrap=True)
    waiting: dict[str, str] = {}
    with console.status("starting") as line:

        def told(name: str, state: str) -> None:
            waiting[name] = state
            line.update("starting " + " ".join(sorted(one for one, at in waiting.items() if at != "ready")))

        stack = await exit_stack.enter_async_context(Stack(replace(options, on_state=told)))
        await _first_page(stack.local_url)
    laps.first_page = laps.now()
    console.print(f"MAFL is at [bold]{stack.public_url}[/] ({laps.first_page:.1f} s)")
    return stack


def _tell_operators(stack: Stack) -> None:
    """Where operators go and where their token is kept; the token itself never stands in a terminal or a log."""
    err().print(
        f"Operators sign in at {stack.operator_url}/operator/ with the token that {stack.state / 'secrets.json'} keeps "
        'as "operator_token".',
        soft_wrap=True,
        markup=False,
    )


async def _first_page(url: str) -> None:
    from mafl.client import PublicClient, Retry

    async with PublicClient(url, retry=Retry(patience=30.0, longest_pause=0.3)) as client:
        await client.call("GET", "/")


def _writable(file: Path) -> None:
    """Say before a season is played, not after it, that its document could not be written."""
    try:
        with file.open("a"):
            pass
    except OSError as error:
        raise CommandError("file-unwritable", f"{file} cannot be written", error.strerror or str(error)) from error


def _data() -> Path:
    """The data directory of the repository, else of the working directory."""
    for directory in (*Path(__file__).resolve().parents, Path.cwd()):
        if any((directory / "data").glob("pool_*_dk.csv.gz")):
            return directory / "data"
    raise CommandError("no-data", "No season to play", "there is no data directory here; name one with --data")


# --- the season ---------------------------------------------------------------------------------


class Progress:
    """The weeks as they pass: a bar on a terminal, a line for each week everywhere."""

    def __init__(self, weeks: int) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        console = err()
        columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
        self._bar = Bar(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task("", total=weeks)

    def __enter__(self) -> None:
        self._bar.start()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._bar.stop()

    def step(self, what: str) -> None:
        """Something has begun."""
        self._bar.update(self._task, description=what)

    def week(self, done: WeekDone) -> None:
        """A week is settled and shown."""
        self._bar.advance(self._task)
        self._bar.console.print(
            f"{done.contest}  {done.lineups:>3} lineups  best {done.best / 100:6.2f} "
            f"of {done.optimal / 100:6.2f} possible  {done.seconds:4.1f} s"
        )


async def _play(season: Season, stack: Stack, laps: Laps) -> dict[str, Any]:
    """Play the season; the document that ``--json`` writes."""
    from mafl.client import PublicClient

    done: SeasonDone = await season.play()
    seconds = {"first_page": laps.first_page, "season": laps.now()}
    async with PublicClient(stack.public_url) as client:
        models = await client.board("models", season=done.season)
        agents = await client.board("agents", season=done.season)
    return {
        "season": done.season,
        "weeks": done.weeks,
        "agents": done.agents,
        "lineups": done.lineups,
        "boards": {"models": models["rows"], "agents": agents["rows"], "cohort": models["cohort"]["rows"]},
        "digest": done.digest,
        "seconds": seconds,
    }


@dataclass(frozen=True)
class _Board:
    title: str
    key: str
    who: str


def _show_boards(console: Console, document: dict[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    for board in (
        _Board("Control cohort", "cohort", "model"),
        _Board("Models (observational)", "models", "model"),
        _Board("Agents", "agents", "name"),
    ):
        table = Table(title=f"{board.title}, points a lineup", title_justify="left", box=None, pad_edge=False)
        table.add_column("#", justify="right")
        table.add_column(board.who)
        for heading in ("mean", "95% interval", "weeks", "lineups"):
            table.add_column(heading, justify="right")
        table.add_column("marks")
        for row in document["boards"][board.key]:
            table.add_row(
                str(row["rank"] or "–"),
                Text(row[board.who]),
                _points(row["mean"]),
                f"{_points(row['low'])} – {_points(row['high'])}" if row["mean"] is not None else "–",
                str(row["weeks"]),
                str(row["lineups"]),
                ", ".join(row["marks"]),
            )
        console.print(table)
        console.print()
    seconds = document["seconds"]
    console.print(
        f"{document['weeks']} weeks of {document['season']}, {document['agents']} agents, "
        f"{document['lineups']} lineups; "
        f"first page after {seconds['first_page']:.1f} s, season after {seconds['season']:.1f} s"
    )
    console.print(f"digest {document['digest']}")


def _points(hundredths: float | None) -> str:
    return "–" if hundredths is None else f"{hundredths / 100:.2f}"


# --- status -------------------------------------------------------------------------------------


def _local(state: Path | None) -> Any:
    """What a state directory tells of its stack; ``None`` where the operator is elsewhere or nothing tells."""
    if state is None:
        return None
    try:
        from embedded.stack import read_state
    except ImportError:
        return None
    return read_state(state)


async def _status(directory: Path) -> dict[str, Any]:
    from mafl.client import PublicClient, Retry
    from mafl.operator import OperatorClient

    operated = find(directory)
    local = _local(operated.state)
    once = Retry(patience=0.0)
    processes: dict[str, Any] = {}
    services: dict[str, Any] = {}
    if local is not None:
        processes = {
            name: {"pid": one.pid, "alive": one.alive, "state": one.state, "restarts": one.restarts}
            for name, one in local.processes.items()
        }
        for name, port in local.ports.items():
            if name in ("public", "operator", "postgres", "nats"):
                continue
            async with PublicClient(f"http://127.0.0.1:{port}", retry=once, timeout=5.0) as client:
                services[name] = await _ready(client)
    async with OperatorClient(operated.url, token=operated.token, retry=once, timeout=10.0) as operator:
        contests = (await operator.operator_contests())["contests"]
        boards = await operator.digest()
    ready = all(one["alive"] for one in processes.values()) and all(one["ready"] for one in services.values())
    return {
        "ready": ready,
        "state": None if operated.state is None else str(operated.state),
        "public_url": local.public_url if local is not None else None,
        "operator_url": operated.url,
        "processes": processes,
        "services": services,
        "contests": contests,
        "boards": boards,
    }


async def _ready(client: Any) -> dict[str, Any]:
    from mafl.errors import MaflError

    try:
        return {"ready": True, **(await client.call("GET", "/readyz")).json()}
    except MaflError as error:
        return {**error.document, "ready": False}


def _show_status(console: Console, document: dict[str, Any]) -> None:
    from rich.table import Table

    whose = f"the stack of {document['state']}" if document["state"] else "the stack of MAFL_OPERATOR_URL"
    console.print(f"{whose}: pages {document['public_url'] or '?'}, operator {document['operator_url']}")
    table = Table("process", "pid", "state", "restarts", "ready", box=None)
    for name, one in document["processes"].items():
        service = document["services"].get(name)
        ready = "" if service is None else "yes" if service["ready"] else "[red]no[/]"
        table.add_row(
            name, str(one["pid"]), one["state"] if one["alive"] else "[red]dead[/]", str(one["restarts"]), ready
        )
    if document["processes"]:
        console.print(table)
    states: dict[str, int] = {}
    for contest in document["contests"]:
        states[contest["state"]] = states.get(contest["state"], 0) + 1
    console.print("contests: " + (", ".join(f"{number} {state}" for state, number in sorted(states.items())) or "none"))
