"""``mafl moderation``: what the pipeline says of texts, with no server."""

from __future__ import annotations

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
    """Read JSON lines with a member `text` on standard input; write state and findings, one line each.

    The state is `cleared`, `flagged` or `unchecked`. The output is JSON lines with or without --json.
    """
    try:
        from moderation.tools import check_lines
    except ImportError as error:
        raise CommandError(
            "not-installed", "This needs the moderation service beside the client", str(error)
        ) from error
    try:
        for line in check_lines(sys.stdin):
            print(line, flush=True)
    except ValueError as error:
        raise CommandError("bad-input", "The input cannot be used", str(error)) from error
