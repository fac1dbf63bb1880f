"""What commands print: documents on standard output; progress, logs and complaints on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")]


class CommandError(Exception):
    """A command cannot do what it was asked; ``detail`` says what to change."""

    def __init__(self, code: str, title: str, detail: str = "") -> None:
        super().__init__(f"{title}: {detail}" if detail else title)
        self.code = code
        self.title = title
        self.detail = detail

    def document(self) -> dict[str, Any]:
        """The error as a problem document."""
        return {"type": f"urn:mafl:problem:{self.code}", "code": self.code, "title": self.title, "detail": self.detail}


def examples(*lines: str) -> str:
    """The end of a command's help: how it is used."""
    return "\n\n".join(["[bold]Examples[/bold]", *(f"[green]{line}[/green]" for line in lines)])


def emit(document: Any, as_json: bool, show: Callable[[Console], None]) -> None:
    """Print a document: as JSON, or as ``show`` prints it for a person."""
    if as_json:
        print(json.dumps(document, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None))
    else:
        show(out())


def emit_problem(problem: Mapping[str, Any]) -> None:
    """Print a problem document as JSON."""
    print(json.dumps({"type": f"urn:mafl:problem:{problem.get('code')}", **problem}, ensure_ascii=False, default=str))


def out() -> Console:
    """Standard output, for people. Where it is no terminal, tables get the room that they need."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=False, width=None if sys.stdout.isatty() else 140)


def err() -> Console:
    """Standard error: progress and complaints."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def say_wrong(title: str, detail: str, violations: Sequence[Mapping[str, Any]] = ()) -> None:
    """Say on standard error what went wrong."""
    from rich.markup import escape

    console = err()
    console.print(f"[bold red]{escape(title)}[/]" + (f": {escape(detail)}" if detail else ""), soft_wrap=True)
    for violation in violations:
        where, what = escape(str(violation.get("pointer", ""))), escape(str(violation.get("detail", "")))
        console.print(f"  [yellow]{escape(str(violation.get('code', '')))}[/] {where} {what}", soft_wrap=True)
