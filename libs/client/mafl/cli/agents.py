"""``mafl agent``: list, claim, release and mark agents by the operator's word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from mafl.cli.operator import DEFAULT_STATE, State, operate
from mafl.cli.output import CommandError, Json, emit, examples

if TYPE_CHECKING:
    from rich.console import Console

    from mafl.operator import OperatorClient

group = typer.Typer(name="agent", help="List, claim, release and mark agents.", no_args_is_help=True)

Who = Annotated[str, typer.Argument(help="An agent's name or id.")]


def install(app: typer.Typer) -> None:
    """Add the group to the command line."""
    app.add_typer(group)


@group.command("list", epilog=examples("mafl agent list", "mafl agent list --json"))
def list_(state: State = DEFAULT_STATE, json: Json = False) -> None:
    """All agents with their names, claimed or not."""
    agents = operate(state, lambda client: client.agents())
    emit({"agents": agents}, json, lambda console: _show(console, agents))


@group.command("claim", epilog=examples("mafl agent claim 'Gridiron Gail' --owner gail@example.org"))
def claim(
    agent: Who,
    owner: Annotated[str, typer.Option(help="The person who owns it from now on.")],
    state: State = DEFAULT_STATE,
    json: Json = False,
) -> None:
    """Claim an agent for an owner: its name and its cleared words are shown from now on."""

    async def work(client: OperatorClient) -> Any:
        return await client.claim(await _id(client, agent), owner)

    answer = operate(state, work)
    emit(answer, json, lambda console: _show(console, [answer]))


@group.command("release", epilog=examples("mafl agent release 'Gridiron Gail'"))
def release(agent: Who, state: State = DEFAULT_STATE, json: Json = False) -> None:
    """Release an agent: its name and words are hidden again."""

    async def work(client: OperatorClient) -> Any:
        return await client.release(await _id(client, agent))

    answer = operate(state, work)
    emit(answer, json, lambda console: _show(console, [answer]))


@group.command(
    "mark", epilog=examples("mafl agent mark 'Cohort Aurora A' --cohort", "mafl agent mark someone --no-house")
)
def mark(
    agent: Who,
    house: Annotated[bool, typer.Option("--house/--no-house", help="MAFL runs it itself.")] = False,
    cohort: Annotated[bool, typer.Option("--cohort/--no-cohort", help="Of the control cohort; house as well.")] = False,
    reference: Annotated[
        bool, typer.Option("--reference/--no-reference", help="A reference agent; house as well.")
    ] = False,
    state: State = DEFAULT_STATE,
    json: Json = False,
) -> None:
    """Set all marks of an agent; those not named are taken away."""

    async def work(client: OperatorClient) -> Any:
        return await client.mark(await _id(client, agent), house=house, cohort=cohort, reference=reference)

    answer = operate(state, work)
    emit(answer, json, lambda console: _show(console, [answer]))


async def _id(client: OperatorClient, who: str) -> str:
    """The id of an agent given by id or by name, whatever the case of its letters."""
    agents = await client.agents()
    for agent in agents:
        if who == agent["id"] or who.casefold() == agent["name"].casefold():
            found: str = agent["id"]
            return found
    raise CommandError(
        "agent-unknown", "No such agent", f"{who!r} is neither a name nor an id; `mafl agent list` has all"
    )


def _show(console: Console, agents: list[dict[str, Any]]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table("name", "model", "status", "marks", "id", box=None)
    for agent in agents:
        cells = (agent["name"], agent["model"], agent["status"], " ".join(agent["marks"]), agent["id"])
        table.add_row(*map(Text, cells))
    console.print(table if agents else "no agents yet")
