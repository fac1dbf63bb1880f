"""``mafl clock``: what time MAFL goes by, and the replay clock moved on."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mafl.cli.operator import DEFAULT_STATE, State, operate
from mafl.cli.output import Json, emit, examples

if TYPE_CHECKING:
    from mafl.operator import OperatorClient


def install(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("clock", epilog=examples("mafl clock", "mafl clock 2017-10-01T16:59:00Z"))(clock)


def _instant(value: str | None) -> datetime | None:
    if value is None:
        return None
    try:
        instant = datetime.fromisoformat(value)
    except ValueError:
        raise typer.BadParameter(f"{value!r} is no time such as 2017-10-01T16:59:00Z") from None
    if instant.tzinfo is None:
        raise typer.BadParameter(f"{value!r} does not say its zone; end it with Z for UTC, or with +02:00")
    return instant.astimezone(UTC)


def clock(
    time: Annotated[
        str | None, typer.Argument(help="When it shall be, such as 2017-10-01T16:59:00Z; never earlier than it is.")
    ] = None,
    state: State = DEFAULT_STATE,
    json: Json = False,
) -> None:
    """Tell the time that MAFL goes by; with TIME move the replay clock on to it.

    Contests lock by this clock: one that is due is locked when the command answers. Only a stack started
    with --clock replay has a clock that can be moved.
    """
    wanted = _instant(time)

    async def work(client: OperatorClient) -> Any:
        return await (client.operate("GET", "/clock") if wanted is None else client.move_clock(wanted))

    answer = operate(state, work)
    emit(answer, json, lambda console: console.print(f"{answer['now']} by the {answer['clock']} clock"))
