"""``mafl mail``: the mail of a stack that sends none."""

from __future__ import annotations

from email import message_from_bytes, policy
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mafl.cli.operator import DEFAULT_STATE, State
from mafl.cli.output import CommandError, Json, emit, examples

if TYPE_CHECKING:
    from rich.console import Console

OUTBOX = "outbox"
"""The directory within a stack's state that takes its mail."""


def install(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("mail", epilog=examples("mafl mail", "mafl mail --all", "mafl mail --state .mafl/demo --json"))(mail)


def mail(
    everything: Annotated[
        bool, typer.Option("--all", help="Show all mail, the oldest first, not only the last.")
    ] = False,
    state: State = DEFAULT_STATE,
    json: Json = False,
) -> None:
    """Show the mail of a stack on this machine, which keeps it instead of sending it: links to sign in with.

    A stack that is given a mail server (MAFL_REGISTRY_SMTP) sends its mail, and nothing is to be seen here.
    """
    # The demo keeps its state in a directory of its own below.
    boxes = [state / OUTBOX, state / "demo" / OUTBOX]
    found = next((mails for box in boxes if (mails := sorted(box.glob("*.eml")))), [])
    if not found:
        detail = f"Nothing is in {boxes[0]} or {boxes[1]}. Ask for a link on the page /signin first."
        raise CommandError("no-mail", "There is no mail", detail)
    shown = [_read(path) for path in (found if everything else found[-1:])]

    def show(console: Console) -> None:
        for number, one in enumerate(shown):
            if number:
                console.rule(style="dim")
            console.print(f"[dim]{one['date']}[/]  to [bold]{one['to']}[/]: {one['subject']}\n")
            console.print(one["text"], markup=False, soft_wrap=True)

    emit({"mail": shown}, json, show)


def _read(path: Path) -> dict[str, Any]:
    message = message_from_bytes(path.read_bytes(), policy=policy.default)
    body = message.get_body(("plain",))
    return {
        "to": str(message["To"]),
        "subject": str(message["Subject"]),
        "date": str(message["Date"]),
        "text": "" if body is None else body.get_content().strip(),
    }
