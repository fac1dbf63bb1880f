"""``mafl audit``: what operators did, in all services."""

from __future__ import annotations

import json as encoding
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mafl.cli.operator import DEFAULT_STATE, State, operate
from mafl.cli.output import Json, emit, examples

if TYPE_CHECKING:
    from rich.console import Console


def install(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("audit", epilog=examples("mafl audit", "mafl audit --limit 1000 --json"))(audit)


def audit(
    limit: Annotated[int, typer.Option("--limit", min=1, max=1_000, help="How many acts, of the newest.")] = 100,
    state: State = DEFAULT_STATE,
    json: Json = False,
) -> None:
    """What operators did, the newest first: to agents, models, contests, the clock, texts, statistics, results, boards.

    Notes on texts are no part of it: each text keeps its own, see `mafl moderation history`.
    """
    acts = operate(state, lambda client: client.all_acts(limit=limit))
    emit({"acts": acts}, json, lambda console: show_acts(console, acts))


def show_acts(console: Console, acts: list[dict[str, Any]]) -> None:
    """A table of acts."""
    from rich.table import Table
    from rich.text import Text

    table = Table("at", "who", "what", "target", "became", box=None)
    for act in acts:
        became = encoding.dumps(act["after"], ensure_ascii=False) if act["after"] is not None else ""
        table.add_row(*map(Text, (act["at"], act["who"], act["what"], act["target"], became)))
    console.print(table if acts else "none")
