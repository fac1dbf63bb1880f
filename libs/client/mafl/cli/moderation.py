"""``mafl moderation``: what is withheld, judging it by hand, and what the pipeline says of texts with no server."""

from __future__ import annotations

import asyncio
import json as jsons
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mafl.cli.audit import show_acts
from mafl.cli.operator import DEFAULT_STATE, State, operate
from mafl.cli.output import CommandError, Json, emit, err, examples, say_wrong

if TYPE_CHECKING:
    from rich.console import Console

    from mafl.operator import OperatorClient

group = typer.Typer(
    name="moderation", help="See what is withheld, judge it by hand, check texts.", no_args_is_help=True
)

Lineup = Annotated[str | None, typer.Option("--lineup", help="The lineup's id; with --pointer.")]
Pointer = Annotated[str | None, typer.Option("--pointer", help="Which text of the lineup, such as /thesis.")]
Agent = Annotated[str | None, typer.Option("--agent", help="The agent's id, for its name.")]
Model = Annotated[str | None, typer.Option("--model", help="A model's label, as agents write it.")]
Version = Annotated[
    int, typer.Option("--version", min=0, help="The version of the verdict that you saw, as the queue shows it.")
]
Note = Annotated[str, typer.Option("--note", help="Why; for operators alone.")]
By = Annotated[str, typer.Option("--by", envvar="MAFL_OPERATOR_NAME", help="Who you are; for the history.")]


def install(app: typer.Typer) -> None:
    """Add the group to the command line."""
    app.add_typer(group)


@group.command("check", epilog=examples("""echo '{"text": "Call 202-555-0143"}' | mafl moderation check"""))
def check(json: Json = False) -> None:
    """Read JSON lines with a member "text" on standard input; write state and findings, one line each.

    The state is cleared, flagged or unchecked. The output is JSON lines, with --json or without. Every line is
    answered; exits with 1 where one could not be read or judged, whose answer has an "error".
    """
    try:
        from moderation.tools import check_lines
    except ImportError as error:
        raise CommandError(
            "not-installed", "This needs the moderation service beside the client", str(error)
        ) from error
    failed = False
    for answer in check_lines(sys.stdin):
        print(jsons.dumps(answer, ensure_ascii=False), flush=True)
        failed = failed or "error" in answer
    if failed:
        raise typer.Exit(1)


@group.command("queue", epilog=examples("mafl moderation queue", "mafl moderation queue --all --json"))
def queue(
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many.")] = 100,
    everything: Annotated[
        bool, typer.Option("--all", help="Also what a person withheld and nobody asks about again.")
    ] = False,
    state: State = DEFAULT_STATE,
    json: Json = False,
) -> None:
    """Texts of locked lineups, names and labels that wait for a person; what owners ask to look at again first.

    That is what is not cleared and no person has judged, or what its owner asks about again.
    """
    items = operate(state, lambda client: client.moderation_queue(limit=limit, only_open=not everything))
    nothing = "Nothing is withheld." if everything else "Nothing waits for you; --all shows what people withheld."
    emit({"items": items}, json, lambda console: _show(console, items, nothing))


@group.command("backlog", epilog=examples("mafl moderation backlog"))
def backlog(state: State = DEFAULT_STATE, json: Json = False) -> None:
    """How much waits to be checked and for how long; what could not be checked, and why."""
    waiting = operate(state, lambda client: client.moderation_backlog())
    emit(waiting, json, lambda console: _show_backlog(console, waiting))


@group.command("again", epilog=examples("mafl moderation again"))
def again(state: State = DEFAULT_STATE, json: Json = False) -> None:
    """Try once more to check what could not be checked, as happens by itself when detectors change."""
    wanted = operate(state, lambda client: client.try_set_aside_again())
    emit({"wanted": wanted}, json, lambda console: console.print(f"{wanted} are tried again."))


@group.command(
    "approve",
    epilog=examples("mafl moderation approve --lineup 0199… --pointer /thesis --version 1 --note 'A quotation'"),
)
def approve(
    version: Version,
    note: Note,
    lineup: Lineup = None,
    pointer: Pointer = None,
    agent: Agent = None,
    model: Model = None,
    by: By = "operator",
    state: State = DEFAULT_STATE,
    json: Json = False,
) -> None:
    """Clear a text of a locked lineup, a name or a label by hand: shown at once (of claimed agents, but a label)."""
    _judge("cleared", version, note, _about(lineup, pointer, agent, model), by, state, json)


@group.command(
    "flag", epilog=examples("mafl moderation flag --agent 0199… --version 1 --note 'Names a person' --by ada")
)
def flag(
    version: Version,
    note: Note,
    lineup: Lineup = None,
    pointer: Pointer = None,
    agent: Agent = None,
    model: Model = None,
    by: By = "operator",
    state: State = DEFAULT_STATE,
    json: Json = False,
) -> None:
    """Withhold a text of a locked lineup, a name or a label by hand: what is public of it is withdrawn."""
    _judge("flagged", version, note, _about(lineup, pointer, agent, model), by, state, json)


@group.command(
    "redact",
    epilog=examples(
        "mafl moderation redact 0199… /thesis --reason personal-data --note 'Case 17' --dry-run",
        "mafl moderation redact 0199… /thesis --reason court-order --note 'Case 18' --by ada --wait",
    ),
)
def redact(
    lineup: Annotated[str, typer.Argument(help="The lineup's id.")],
    pointer: Annotated[str, typer.Argument(help="Which text: /thesis, /picks/0/rationale, /picks/0/main_factor, …")],
    reason: Annotated[
        str,
        typer.Option(
            "--reason", help="personal-data, court-order, unlawful, copyright or decency; everybody reads it."
        ),
    ],
    note: Annotated[str, typer.Option("--note", help="Why, for operators alone. Never repeat the words in it.")],
    revision: Annotated[
        list[int] | None,
        typer.Option("--revision", min=1, help="This revision alone; may be given again. Else all of the lineup's."),
    ] = None,
    by: By = "operator",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; say where the words are.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until every store says that it is rid of them.")] = False,
    patience: Annotated[float, typer.Option(min=0, help="Seconds that --wait waits.")] = 60.0,
    state: State = DEFAULT_STATE,
    json: Json = False,
) -> None:
    """Let the words of a text go for good, from every store; its leaf and a dated tombstone stay. No way back.

    What was downloaded or saved by others cannot be called back, and backups keep what they hold
    (docs/moderation.md).
    """

    def order(*, dry: bool) -> Any:
        return operate(
            state,
            lambda client: client.redact(
                lineup, pointer, reason=reason, note=note, by=by, revisions=revision or (), dry_run=dry
            ),
        )

    if not (dry_run or yes):
        _confirm(order(dry=True), pointer, json)
    answer = order(dry=dry_run)
    if wait and not dry_run:
        answer["redactions"] = _rid_of(lineup, pointer, answer["redactions"], patience, state)
    emit(answer, json, lambda console: _show_answer(console, answer, pointer))
    if wait and not dry_run and not all(one["done"] for one in answer["redactions"]):
        raise CommandError(
            "redaction-unfinished",
            "Not every store is rid of the words yet",
            f"not yet: {', '.join(sorted(set(_not_yet(answer['redactions']))))}. They follow as soon as each runs: "
            f"`mafl moderation redactions --lineup {lineup}`",
        )


@group.command("redactions", epilog=examples("mafl moderation redactions", "mafl moderation redactions --lineup 0199…"))
def redactions(
    lineup: Annotated[str | None, typer.Option("--lineup", help="Of this lineup alone.")] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", help="Of this agent's own name and description alone.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many.")] = 100,
    state: State = DEFAULT_STATE,
    json: Json = False,
) -> None:
    """What was redacted, the newest first, and which stores are rid of the words."""
    found = operate(state, lambda client: client.redactions(lineup, agent_id=agent, limit=limit))
    emit({"redactions": found}, json, lambda console: _show_redactions(console, found))


@group.command(
    "redact-agent",
    epilog=examples(
        "mafl moderation redact-agent 0199… --reason personal-data --by ada",
        "mafl moderation redact-agent 0199… --field description --reason unlawful --yes",
    ),
)
def redact_agent(
    agent: Annotated[str, typer.Argument(help="The agent's id.")],
    reason: Annotated[
        str, typer.Option("--reason", help="personal-data, court-order, unlawful, copyright or decency.")
    ],
    field: Annotated[
        list[str] | None, typer.Option("--field", help="name or description; may be given again. Else both.")
    ] = None,
    by: By = "operator",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    state: State = DEFAULT_STATE,
    json: Json = False,
) -> None:
    """Let an agent's name and description go for good, from every store. No way back.

    Its neutral handle stands for the name until it chooses another; the old one stays taken. `mafl moderation
    redactions --agent` says which stores are rid of them.
    """
    if not yes:
        if json or not sys.stdin.isatty():
            raise CommandError("unconfirmed", "Nothing was redacted", "there is nobody to ask: say --yes")
        (known,) = operate(state, lambda client: client.agents_by_id(agent)) or ({},)
        err().print(f"name: {_plain(str(known.get('name')))}", markup=False, soft_wrap=True)
        err().print(f"description: {_beginning(known.get('description') or 'none')}", markup=False, soft_wrap=True)
        if not typer.confirm("These words go for good. Sure?", err=True):
            raise CommandError("unconfirmed", "Nothing was redacted", "you did not say yes")
    fields = field or ["name", "description"]
    answer = operate(state, lambda client: client.redact_agent(agent, fields=fields, reason=reason, by=by))
    emit(answer, json, lambda console: console.print(f"{agent} is {answer['name']} from now on.", markup=False))


def _confirm(planned: dict[str, Any], pointer: str, json: bool) -> None:
    if json or not sys.stdin.isatty():
        raise CommandError("unconfirmed", "Nothing was redacted", "there is nobody to ask: say --yes, or --dry-run")
    console = err()
    _show_order(console, planned, pointer)
    if not typer.confirm("These words go for good. Sure?", err=True):
        raise CommandError("unconfirmed", "Nothing was redacted", "you did not say yes")


def _rid_of(
    lineup: str, pointer: str, made: list[dict[str, Any]], patience: float, state: Path
) -> list[dict[str, Any]]:
    """The redactions once all are done, or as they are when patience ends."""
    import asyncio
    import time

    wanted = {one["redaction_id"] for one in made}

    async def watch(client: OperatorClient) -> list[dict[str, Any]]:
        until = time.monotonic() + patience
        while True:
            found = [one for one in await client.redactions(lineup, limit=1000) if one["redaction_id"] in wanted]
            if all(one["done"] for one in found) or time.monotonic() > until:
                return found
            await asyncio.sleep(0.2)

    return operate(state, watch)


def _show_order(console: Console, answer: dict[str, Any], pointer: str) -> None:
    if answer["dry_run"]:
        for text in answer["texts"]:
            of = {None: "its contest is not locked", True: "final", False: "not final"}[text["final"]]
            about = f"{pointer}{_pick_of(text)} of revision {text['revision']} ({of})"
            if text["redacted"]:
                console.print(f"{about}: redacted already", markup=False, soft_wrap=True)
                continue
            console.print(f"{about}; its words are in", markup=False, soft_wrap=True)
            if text["text"] is not None:
                console.print(f"  it begins: {_beginning(text['text'])}", markup=False, soft_wrap=True)
            copies = text["copies"]
            console.print("  contests: the revision, its salt, its record of the submission", markup=False)
            console.print(
                f"  moderation: the text, {copies['released']} records of releases, {copies['notes']} notes on it",
                markup=False,
            )
            if copies["released"]:
                console.print("  boards: the text, on its pages where the agent is claimed", markup=False)
            console.print(
                f"  streams: CONTESTS_PRIVATE{', MODERATION' if copies['released'] else ''}, dead letters if any",
                markup=False,
            )


def _beginning(text: str) -> str:
    """The first words of a text, by which an operator sees that it is the one they mean."""
    return _plain(text if len(text) <= _SHOWN else f"{text[:_SHOWN].rstrip()} …")


_SHOWN = 100
"""Characters."""


def _show_answer(console: Console, answer: dict[str, Any], pointer: str) -> None:
    if answer["dry_run"]:
        _show_order(console, answer, pointer)
        console.print("Nothing was changed.")
    else:
        _show_redactions(console, answer["redactions"])


def _not_yet(found: list[dict[str, Any]]) -> list[str]:
    return [store for one in found for store, done in _rid(one).items() if not done]


def _rid(one: dict[str, Any]) -> dict[str, Any]:
    """When each store said that it is rid of the words; nothing where it has not."""
    source = "registry" if one["lineup_id"] is None else "contests"
    return {
        "moderation": one["moderation_at"],
        source: one[f"{source}_at"],
        "boards": "holds nothing" if one["boards_holds_nothing"] else one["boards_at"],
        "streams": one["streams_at"] and f"{one['messages']} messages, {one['looks']} of 2 looks",
    }


def _show_redactions(console: Console, found: list[dict[str, Any]]) -> None:
    if not found:
        console.print("Nothing was redacted.")
    for one in found:
        where = f"{one['contest']} {one['lineup_id']} {one['pointer']} revision {one['revision']}"
        if one["lineup_id"] is None:
            where = f"agent {one['agent_id']} {one['pointer']}"
        how = "done" if one["done"] else "GOING"
        console.print(
            f"{how}  {one['redacted_at']} {one['reason']} by {one['ordered_by'] or 'operator'}: {where}",
            markup=False,
            soft_wrap=True,
        )
        console.print(
            "  " + ", ".join(f"{store}: {done or 'not yet'}" for store, done in _rid(one).items()),
            markup=False,
            soft_wrap=True,
        )


@group.command(
    "rerun",
    epilog=examples(
        "mafl moderation rerun --older --dry-run",
        "mafl moderation rerun --season 2026 --older",
        "mafl moderation rerun --contest 2026-W04 --contest 2026-W05 --dry-run --words",
        "mafl moderation rerun --stop 0199…",
    ),
)
def rerun(
    contest: Annotated[
        list[str] | None, typer.Option("--contest", help="Texts of this contest; again for more.")
    ] = None,
    season: Annotated[list[int] | None, typer.Option("--season", help="Texts of this season; again for more.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All texts, agents' names and models' labels.")] = False,
    older: Annotated[
        bool, typer.Option("--older", help="Only what another version of the pipeline judged; alone: of everything.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")] = False,
    words: Annotated[bool, typer.Option("--words", help="Print the words of what changes too.")] = False,
    limit: Annotated[int, typer.Option(min=0, help="List at most so many changes.")] = 100,
    wait: Annotated[bool, typer.Option(help="Follow it to its end; else it goes on by itself.")] = True,
    stop: Annotated[str | None, typer.Option("--stop", help="End this rerun where it stands.")] = None,
    by: By = "operator",
    state: State = DEFAULT_STATE,
    json: Json = False,
) -> None:
    """Judge old texts again by the pipeline as it is now. What a person judged stays.

    It goes on in the service, after all that waits to be judged for the first time, whether or not this command waits.
    Run the same command again to follow it, or to go on after anything was stopped or killed.
    """
    chosen = {"contests": contest or [], "seasons": season or [], "everything": everything, "older": older}
    if stop is not None and (any(chosen.values()) or dry_run):
        raise CommandError("invalid-request", "Say one thing", "give --stop alone, or say what to judge again")
    if stop is None and not any(chosen.values()):
        raise CommandError("invalid-request", "Say what to judge again", "give --contest, --season, --all or --older")
    if everything and (contest or season):
        raise CommandError("invalid-request", "Say what to judge again", "give --all, or --contest and --season")

    async def work(client: OperatorClient) -> dict[str, Any]:
        if stop is not None:
            run = await client.stop_rerun(stop, by=by)
        else:
            run = await client.rerun(**chosen, dry_run=dry_run, by=by)
            if wait:
                run = await _follow(client, run)
        changes: list[dict[str, Any]] = []
        while len(changes) < limit:
            after = changes[-1]["position"] if changes else 0
            most = min(limit - len(changes), 1000)
            more = await client.rerun_changes(run["rerun"], after=after, limit=most, words=words)
            changes += more
            if len(more) < most:
                break
        return {**run, "changes": changes}

    document = operate(state, work)
    emit(document, json, lambda console: _show_rerun(console, document))
    if stop is None and document["state"] == "stopped":
        say_wrong("The rerun ended before it was done", str(document["why"]))
        raise typer.Exit(1)


async def _follow(client: OperatorClient, run: dict[str, Any]) -> dict[str, Any]:
    """Show how far a rerun is until it ends."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err()) as bar:
        task = bar.add_task("dry run" if run["dry_run"] else "judging again", total=None)
        pause = 0.1
        while run["state"] == "running":
            bar.update(task, total=run["total"], completed=run["done"])
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, 2.0)
            run = await client.rerun_state(run["rerun"])
        bar.update(task, total=run["total"] or run["done"], completed=run["done"])
    return run


def _show_rerun(console: Console, run: dict[str, Any]) -> None:
    from rich.markup import escape

    kind = "Dry run, nothing was changed" if run["dry_run"] else "Rerun"
    of = "?" if run["total"] is None else run["total"]
    ends = f"  --stop {run['rerun']}" if run["state"] == "running" else f"  {run['rerun']}"
    console.print(f"{kind}: {run['state']}, {run['done']} of {of}{ends}", soft_wrap=True)
    console.print(f"  by {escape(str(run['pipeline'] or 'a pipeline that has not begun yet'))}", soft_wrap=True)
    for name, count in sorted(run["counts"].items()):
        console.print(f"  {count:>8}  {_MEANS.get(name, name.replace('_to_', ' → '))}")
    for name, counts in sorted(run["detectors"].items()):
        console.print(f"  {escape(name)}: {counts['newly']} newly, {counts['no_longer']} no longer")
    for change in run["changes"]:
        where = change["model"] and f"label {change['model']}"
        if change["lineup_id"] is not None:
            where = f"{change['contest']}  --lineup {change['lineup_id']} --pointer {change['pointer']}"
            where += f" (revision {change['revision']})"
        elif change["agent_id"] is not None:
            where = f"--agent {change['agent_id']}"
        why = [f"+{name}" for name in change["newly"]] + [f"-{name}" for name in change["no_longer"]]
        console.print(
            f"[bold]{change['was']} → {change['state']}[/] {escape(' '.join(why))}  {escape(_plain(str(where)))}",
            soft_wrap=True,
        )
        if change["text"] is not None:
            console.print(f"  {escape(_plain(change['text']))}", soft_wrap=True)


_MEANS = {
    "reasons": "flagged as before, by other detectors",
    "by_hand": "judged by a person, which stays",
    "failed": "could not be judged again; the old verdict stays",
    "unchanged": "unchanged",
}


@group.command("note", epilog=examples("mafl moderation note --agent 0199… --note 'Asked the league' --by ada"))
def note(
    note: Annotated[str, typer.Option("--note", help="What; for operators alone.")],
    lineup: Lineup = None,
    pointer: Pointer = None,
    agent: Agent = None,
    model: Model = None,
    by: By = "operator",
    state: State = DEFAULT_STATE,
    json: Json = False,
) -> None:
    """Note something of a text of a locked lineup, of an agent's name or a model's label, and judge nothing."""
    about = _about(lineup, pointer, agent, model)
    answer = operate(state, lambda client: client.note_on_text(**about, note=note, by=by))
    emit(answer, json, lambda console: _show_history(console, answer))


@group.command("take-back", epilog=examples("mafl moderation take-back 17 --by ada"))
def take_back(
    position: Annotated[int, typer.Argument(help="The judgement's number, as the history shows it.", min=1)],
    by: By = "operator",
    state: State = DEFAULT_STATE,
    json: Json = False,
) -> None:
    """Undo the newest judgement of a text: what held before holds again, a request that it answered is open again."""
    answer = operate(state, lambda client: client.take_back(position, by=by))
    emit(answer, json, lambda console: _show(console, answer["items"]))


@group.command(
    "history",
    epilog=examples(
        "mafl moderation history --lineup 0199…",
        "mafl moderation history --lineup 0199… --pointer /thesis --json",
        "mafl moderation history --model demo/aurora-1",
    ),
)
def history(
    lineup: Annotated[str | None, typer.Option("--lineup", help="The lineup's id; all of it, or --pointer.")] = None,
    pointer: Pointer = None,
    agent: Agent = None,
    model: Model = None,
    state: State = DEFAULT_STATE,
    json: Json = False,
) -> None:
    """What people judged and noted of a locked lineup's texts, an agent's name or a model's label, oldest first."""
    if [lineup, agent, model].count(None) != 2 or (lineup is None and pointer is not None):
        raise CommandError(
            "invalid-request", "Say whose history", "give --lineup, with --pointer or without, or --agent, or --model"
        )
    about = {"lineup_id": lineup, "agent_id": agent, "model": model}
    answer = operate(state, lambda client: client.moderation_history(**about))
    if pointer is not None:
        answer = {
            part: [one for one in rows if one["pointer"] == pointer] if isinstance(rows, list) else rows
            for part, rows in answer.items()
        }
    emit(answer, json, lambda console: _show_history(console, answer))


@group.command("audit", epilog=examples("mafl moderation audit", "mafl moderation audit --limit 1000 --json"))
def audit(
    limit: Annotated[int, typer.Option("--limit", min=1, max=1_000, help="How many acts, of the newest.")] = 100,
    state: State = DEFAULT_STATE,
    json: Json = False,
) -> None:
    """What operators did in moderation, the newest first: who, when, what, and from where; signing in as well."""
    acts = operate(state, lambda client: client.audit("moderation", limit=limit))
    emit({"acts": acts}, json, lambda console: show_acts(console, acts))


def _judge(
    verdict: str,
    version: int,
    note: str,
    about: dict[str, str | None],
    by: str,
    state: State,
    json: bool,
) -> None:
    judgement = {**about, "version": version, "state": verdict, "note": note, "by": by}
    answer = operate(state, lambda client: client.judge(**judgement))
    emit(answer, json, lambda console: _show(console, answer["items"]))


def _show_backlog(console: Console, waiting: dict[str, Any]) -> None:
    from rich.markup import escape

    console.print(
        f"Waiting: {waiting['texts']} texts, the oldest for {waiting['oldest_seconds']:.0f} s; "
        f"{waiting['names']} names; {waiting['models']} models."
    )
    for one in waiting["set_aside"]:
        detector = one["detector"] or "detector not known"
        console.print(
            f"[bold]set aside[/]: {one['count']} of kind {one['kind']}, the oldest for {one['oldest_seconds']:.0f} s: "
            f"{one['cause']} ({escape(detector)}; {escape(one['error'])})",
            soft_wrap=True,
        )


def _about(lineup: str | None, pointer: str | None, agent: str | None, model: str | None) -> dict[str, str | None]:
    if [lineup, agent, model].count(None) != 2 or (lineup is None) != (pointer is None):
        raise CommandError("invalid-request", "Say which text", "give --lineup with --pointer, or --agent, or --model")
    given = {"lineup_id": lineup, "pointer": pointer, "agent_id": agent, "model": model}
    return {name: value for name, value in given.items() if value is not None}


def _show(console: Console, items: list[dict[str, Any]], nothing: str = "Nothing is withheld.") -> None:
    from rich.markup import escape

    if not items:
        console.print(nothing)
    for item in items:
        where = f"--agent {item['agent_id']}" if item["model"] is None else f"--model {shlex.quote(item['model'])}"
        if item["lineup_id"] is not None:
            where = f"{item['contest']}  --lineup {item['lineup_id']} --pointer {item['pointer']}{_pick_of(item)}"
            where += f"  by agent {item['agent_id']}"
        why = item["judged_by"] or ", ".join(sorted({finding["detector"] for finding in item["findings"]}))
        if item.get("set_aside"):
            why += f"(set aside: {item['set_aside']['cause']}, {item['set_aside']['detector'] or 'detector not known'})"
        asked = f"  [yellow]review requested {item['review_requested_at']}[/]" if item["review_requested_at"] else ""
        console.print(
            f"[bold]{item['state']}[/] {escape(why)}  {escape(_plain(where))} --version {item['version']}{asked}",
            soft_wrap=True,
        )
        gone = item["redacted_at"] and f"redacted {item['redacted_at']}: its words are gone for good"
        console.print(f"  {gone or escape(_plain(item['text']))}", soft_wrap=True)
        if item["review_sentence"]:
            console.print(f"  its owner: {escape(_plain(item['review_sentence']))}", soft_wrap=True)


def _show_history(console: Console, case: dict[str, Any]) -> None:
    from rich.markup import escape

    for item in case["items"]:
        of_it = [one for one in [*case["history"], *case["notes"]] if one["pointer"] == item["pointer"]]
        _show(console, [item])
        for one in sorted(of_it, key=lambda one: str(one.get("judged_at") or one.get("noted_at"))):
            if "judged_at" in one:
                took = f" (takes back {one['takes_back']})" if one["takes_back"] else ""
                did = f"[bold]{one['position']}[/] {one['judged_at']}  {one['was']} → {one['state']}{took}"
            else:
                did = f"  {one['noted_at']}  noted"
            who = one.get("judged_by") or one.get("noted_by")
            console.print(f"    {did}  by {escape(_plain(str(who)))}: {escape(_plain(one['note']))}", soft_wrap=True)


def _pick_of(item: dict[str, Any]) -> str:
    """The slot and the player that a text is about, in brackets; nothing where they are not known."""
    about = " ".join(filter(None, (item.get("slot"), item.get("player"))))
    return about and f" ({_plain(about)})"


def _plain(text: str) -> str:
    """A stranger's text on one line; what a terminal would obey, or not show, is written out."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )
