"""``mafl moderation``: what the pipeline says of texts, with no server."""

from __future__ import annotations

import json as jsons
import sys

import typer

from mafl.cli.output import CommandError, Json, examples

group = typer.Typer(name="moderation", help="Check texts as the moderation service does.", no_args_is_help=True)


@group.callback()
def _group() -> None:
    """Keep ``check`` a sub-command although it is the only one."""


def install(app: typer.Typer) -> None:
    """Add the group to the command line."""
    app.add_typer(group)


@group.command("check", epilog=examples("""echo '{"text": "Call 202-555-0143"}' | mafl moderation check"""))
def check(json: Json = False) -> None:
    """Read JSON lines with a member "text" on standard input; write state and findings, one line each.

    The state is cleared, flagged or unchecked. The output is JSON lines, with --json or without.
    """
    try:
        from moderation.tools import check_lines
    except ImportError as error:
        raise CommandError(
            "not-installed", "This needs the moderation service beside the client", str(error)
        ) from error
    for answer in check_lines(sys.stdin):
        print(jsons.dumps(answer, ensure_ascii=False), flush=True)
