"""``mafl models``: which labels of models agents use, and what each means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from mafl.cli.operator import DEFAULT_STATE, State, operate
from mafl.cli.output import Json, emit, examples

if TYPE_CHECKING:
    from rich.console import Console

group = typer.Typer(name="models", help="List the labels of models, say what one means.", no_args_is_help=True)


def install(app: typer.Typer) -> None:
    """Add the group to the command line."""
    app.add_typer(group)


@group.command("list", epilog=examples("mafl models list", "mafl models list --unknown --json"))
def list_(
    unknown: Annotated[bool, typer.Option("--unknown", help="Only those that nobody knows yet.")] = False,
    state: State = DEFAULT_STATE,
    json: Json = False,
) -> None:
    """Every label that agents have claimed, the row that it counts on, and how many claim it now."""
    models = operate(state, lambda client: client.model_labels(unknown=unknown))
    emit({"models": models}, json, lambda console: _show(console, models))


@group.command(
    "map", epilog=examples("mafl models map 'My GPT' openai/gpt-5", "mafl models map 'My GPT' 'My GPT'  # by itself")
)
def map_(
    label: Annotated[str, typer.Argument(help="The label as agents write it.")],
    canonical: Annotated[str, typer.Argument(help="The label of the row that its results count on.")],
    state: State = DEFAULT_STATE,
    json: Json = False,
) -> None:
    """Let a label mean another model from now on, for past results too; the boards compute again.

    Every mapping is kept. A label mapped to itself stands on a row of its own again.
    """
    answer = operate(state, lambda client: client.map_model(label, canonical))
    emit(answer, json, lambda console: _show_history(console, answer))


def _show(console: Console, models: list[dict[str, Any]]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table("label", "counts as", "by", "agents", box=None)
    for model in models:
        cells = (model["label"], model["canonical"] or "itself", model["by"] or "nobody yet", str(model["agents"]))
        table.add_row(*map(Text, cells))
    console.print(table if models else "none")


def _show_history(console: Console, answer: dict[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table("version", "counts as", "by", "since", box=None, title=Text(answer["model"]["label"]))
    for mapping in answer["history"]:
        table.add_row(*map(Text, (str(mapping["version"]), mapping["canonical"], mapping["by"], mapping["at"])))
    console.print(table)
