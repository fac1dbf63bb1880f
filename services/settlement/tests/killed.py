"""Settles contests in processes that kill themselves (SIGKILL) at a named step: a real death, at an exact place.

Run as a program it reads lines of JSON, ``[database, contest, reason, step]``, and answers each with the exit status
of the process that it forked for it. It imports everything once, so that a death costs a fork.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn

from common import audit
from common.clock import SystemClock
from common.db import Database
from common.metrics import Metrics
from settlement import commands
from settlement.store import Store


def _die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise SystemExit("unreachable")


def _before(owner: Any, name: str) -> Callable[[], None]:
    return lambda: setattr(owner, name, lambda *_, **__: _die())


def _after(owner: Any, name: str) -> Callable[[], None]:
    """Die when the call has been made once, and its statements with it."""

    def set_trap() -> None:
        called = getattr(owner, name)

        @wraps(called)
        async def trapped(*arguments: Any, **named: Any) -> NoReturn:
            await called(*arguments, **named)
            _die()

        setattr(owner, name, trapped)

    return set_trap


STEPS: dict[str, Callable[[], None]] = {
    "nothing is read": _before(commands, "_inputs"),
    "all is read": _after(commands, "_inputs"),
    "the week is being worked out": _before(commands, "work_out"),
    "the week is worked out": _after(commands, "worked_out"),
    "the contest is held": _after(Store, "lock_contest"),
    "the version and its results are written": _after(Store, "keep_settlement"),
    "a part of the events is written": _after(commands, "record"),
    "everything is written and not committed": _after(audit, "record"),
    "everything is committed and nobody has heard": _after(commands, "settle"),
}


async def _settle(url: str, contest: str, reason: str) -> None:
    await commands.settle(Database(url), SystemClock(), Metrics("settlement"), contest, reason)


def main() -> None:
    commands._PORTION = 2  # A few lineups make several portions.
    for line in sys.stdin:
        url, contest, reason, step = json.loads(line)
        child = os.fork()
        if child == 0:
            STEPS[step]()
            asyncio.run(_settle(url, contest, reason))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
