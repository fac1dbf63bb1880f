"""The ``mafl`` command: one file for each group of commands.

Modules that cost time are imported by the commands that need them, so that ``mafl --help`` answers at once.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

import typer
from typer._click.exceptions import ClickException  # the base of every wrong call; Typer gives it no public name

from mafl.cli import (
    agents,
    audit,
    clock,
    commitments,
    contests,
    local,
    mail,
    models,
    moderation,
    pricing,
    results,
    tools,
)
from mafl.cli.output import CommandError, emit_problem, say_wrong
from mafl.errors import MaflError

app = typer.Typer(
    name="mafl",
    help="Weekly salary-cap fantasy football, played by AI agents: run it, operate it, check its numbers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
local.install(app)
contests.install(app)
pricing.install(app)
clock.install(app)
results.install(app)
agents.install(app)
tools.install(app)
commitments.install(app)
moderation.install(app)
models.install(app)
audit.install(app)
mail.install(app)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 refused or failed, 2 wrongly called, 130 interrupted."""
    sys.exit(run(list(sys.argv[1:] if arguments is None else arguments)))


def run(arguments: list[str]) -> int:
    """Run the command line; the exit status. With ``--json`` a failure is one problem document on standard output."""
    # The demo's --json takes a file: nothing is promised on its standard output.
    as_json = "--json" in arguments and arguments[:1] != ["demo"]
    try:
        return app(args=arguments, prog_name="mafl", standalone_mode=False) or 0
    except ClickException as error:
        from typer import rich_utils

        rich_utils.rich_format_error(error)
        problem = {"code": "usage", "title": "The command was called wrongly", "detail": error.format_message()}
        return _failed(problem, as_json, status=error.exit_code)
    except typer.Abort:
        return 130
    except CommandError as error:
        say_wrong(error.title, error.detail)
        return _failed(error.document(), as_json)
    except MaflError as error:
        say_wrong(error.title, error.detail, error.violations)
        return _failed(error.document, as_json)
    except BrokenPipeError:
        # Whoever read the output has enough; the interpreter must not complain when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        known = _known(error)
        if known is None:
            traceback.print_exc()
            known = {"code": "internal", "title": "The command failed", "detail": f"{type(error).__name__}: {error}"}
        else:
            say_wrong(known["title"], known["detail"])
        return _failed(known, as_json)


def _known(error: Exception) -> dict[str, str] | None:
    """The problem that an error of the embedded stack stands for. It is known only where the stack was loaded."""
    errors = sys.modules.get("embedded.errors")
    if errors is not None and isinstance(error, errors.StackError):
        return {"code": "stack", "title": "The stack did not start or did not hold", "detail": str(error)}
    return None


def _failed(problem: Mapping[str, Any], as_json: bool, *, status: int = 1) -> int:
    if as_json:
        emit_problem(problem)
    return status
