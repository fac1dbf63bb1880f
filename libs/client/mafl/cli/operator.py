"""How operator commands find the operator's address and token, and call it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from mafl.cli.output import CommandError

if TYPE_CHECKING:
    from mafl.operator import OperatorClient

T = TypeVar("T")

DEFAULT_STATE = Path(".mafl")

State = Annotated[
    Path,
    typer.Option(
        "--state",
        envvar="MAFL_STATE",
        help="State directory of the stack: its stack.json has the operator's address and token.",
        show_default=True,
    ),
]


@dataclass(frozen=True)
class Operated:
    """The operator's address and token; ``state`` is the directory that told them, if one did."""

    url: str
    token: str = field(repr=False)
    state: Path | None = None


def find(state: Path) -> Operated:
    """Whom to operate: as the environment says, else the stack that runs on this state.

    ``mafl demo`` keeps its state in a directory of its own below, which is looked at second.
    """
    url, token = os.environ.get("MAFL_OPERATOR_URL"), os.environ.get("MAFL_OPERATOR_TOKEN")
    if url and token:
        return Operated(url, token)
    tried = [state / "stack.json", state / "demo" / "stack.json"]
    for path in tried:
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            return Operated(document["operator_url"], document["operator_token"], path.parent)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise CommandError("state-unreadable", f"{path} cannot be read", error.strerror or str(error)) from error
        except (ValueError, KeyError, TypeError) as error:
            raise CommandError("state-unreadable", f"{path} is not what a stack writes", repr(error)) from error
    raise CommandError(
        "no-stack",
        "No MAFL found to operate",
        f"there is no {' or '.join(map(str, tried))}. Start one with `mafl up`, name its directory with --state, "
        "or set MAFL_OPERATOR_URL and MAFL_OPERATOR_TOKEN.",
    )


def public_url(state: Path) -> str:
    """The public address of the stack that runs on this state."""
    tried = [state / "stack.json", state / "demo" / "stack.json"]
    for path in tried:
        try:
            return str(json.loads(path.read_text(encoding="utf-8"))["public_url"])
        except FileNotFoundError:
            continue
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CommandError("state-unreadable", f"{path} is not what a stack writes", repr(error)) from error
    raise CommandError(
        "no-stack",
        "No MAFL found to ask",
        f"there is no {' or '.join(map(str, tried))}. Give the public address with --url, or set MAFL_URL.",
    )


def operate(state: Path, work: Callable[[OperatorClient], Awaitable[T]]) -> T:
    """Call the operator's API: ``work`` gets the client."""
    from mafl.client import Retry
    from mafl.operator import OperatorClient

    operated = find(state)

    async def session() -> T:
        async with OperatorClient(operated.url, token=operated.token, retry=Retry(patience=10.0)) as client:
            return await work(client)

    return asyncio.run(session())


def read_file(path: Path) -> bytes:
    """The bytes of a file that the caller named."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise CommandError("file-unreadable", f"{path} cannot be read", error.strerror or str(error)) from error
