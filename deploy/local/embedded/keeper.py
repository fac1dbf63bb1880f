"""Keeps one process running: starts it, waits until it is ready, starts it again when it dies or hangs."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeVar

from embedded.errors import ProcessFailed, StackError
from embedded.parts import HttpService, Part
from embedded.process import Command, Identity, exit_words, log_tail, spawn

State = Literal["starting", "ready", "died", "unresponsive", "stopped"]
T = TypeVar("T")

_TICK = 0.05
_LONGEST_PAUSE = 10.0


@dataclass(frozen=True)
class Patience:
    """How long a supervisor waits, in seconds.

    ``start``: until a process is ready. ``answer``: until ``/healthz`` answers; it is asked every
    ``interval``, and after ``misses`` times in a row without answer the process is killed. The product of the three
    must be longer than the longest that a healthy event loop stands still, such as while code is compiled.
    ``steady``: a process that ran so long is started again without a pause.
    """

    start: float = 60.0
    interval: float = 2.0
    answer: float = 5.0
    misses: int = 4
    steady: float = 30.0


class Keeper:
    """Supervises one process. ``report(name, state, detail)`` is told of each change.

    ``executor`` runs what blocks; processes are forked in the thread of the event loop, with whose end the
    kernel ends them.
    """

    def __init__(
        self,
        name: str,
        part: Part,
        *,
        patience: Patience,
        executor: Executor,
        report: Callable[[str, State, str], None],
    ) -> None:
        self.name = name
        self.state: State = "stopped"
        self.restarts = 0
        self.identity: Identity | None = None
        self._part = part
        self._patience = patience
        self._executor = executor
        self._report = report
        self._process: subprocess.Popen[bytes] | None = None
        self._command: Command | None = None
        self._spawned_at = 0.0
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the process, wait until it is ready, and keep it running from then on.

        Raises `ProcessFailed` when it ends or is not ready in time.
        """
        await self._spawn()
        process, command = self._process, self._command
        if process is None or command is None:
            raise RuntimeError("spawned, and yet there is no process")
        deadline = self._spawned_at + self._patience.start
        while not await self._blocking(self._part.is_ready):
            code = process.poll()
            if code is not None:
                raise ProcessFailed(self.name, exit_words(code), log_tail(command.log))
            if time.monotonic() > deadline:
                what = f"was not ready after {self._patience.start:.0f} s"
                if isinstance(self._part, HttpService) and self._part.fault:
                    what += f" ({self._part.fault})"
                raise ProcessFailed(self.name, what, log_tail(command.log))
            await asyncio.sleep(_TICK)
        self._change("ready")
        self._task = asyncio.create_task(self._keep(), name=f"keep {self.name}")

    def kill(self) -> int:
        """Kill the process with SIGKILL, as a fault would. Returns its number; raises `StackError` if there is none."""
        if self._process is None or self._process.poll() is not None:
            raise StackError(f"{self.name} does not run at this moment")
        self._process.kill()
        return self._process.pid

    async def stop(self, grace: float, hurry: asyncio.Event) -> None:
        """Ask the process to end; after ``grace`` seconds, or when ``hurry`` is set, kill it."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        if self._process is None or self._command is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(self._command.stop_signal)
            deadline = time.monotonic() + grace
            while self._process.poll() is None and time.monotonic() < deadline and not hurry.is_set():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
        self._process = None
        self.identity = None
        self._change("stopped")

    # --- the work -----------------------------------------------------------------------------

    async def _spawn(self) -> None:
        await self._blocking(self._part.prepare)
        self._command = self._part.command()
        self._process = spawn(self._command)
        self._spawned_at = time.monotonic()
        self.identity = Identity.of(self._process.pid)
        self._change("starting")

    async def _keep(self) -> None:
        asked_at, misses, answered, pause = time.monotonic(), 0, True, 0.0
        while True:
            await asyncio.sleep(_TICK)
            code = None if self._process is None else self._process.poll()
            if self._process is None or code is not None:
                steady = time.monotonic() - self._spawned_at > self._patience.steady
                pause = 0.0 if steady else min(max(2 * pause, 0.1), _LONGEST_PAUSE)
                if code is not None:
                    self._change("died", exit_words(code))
                await self._start_again(pause)
                misses, answered = 0, False
                continue
            if self.state == "starting" and await self._blocking(self._part.is_ready):
                self._change("ready")
            if isinstance(self._part, HttpService) and time.monotonic() - asked_at > self._patience.interval:
                alive = await self._blocking(partial(self._part.is_alive, self._patience.answer))
                asked_at = time.monotonic()
                answered = answered or alive
                misses = 0 if alive or not answered else misses + 1
                never = not answered and asked_at - self._spawned_at > self._patience.start
                if misses >= self._patience.misses or never:
                    self._change("unresponsive", f"no answer on /healthz, {misses} times in a row; it is killed")
                    self._process.send_signal(signal.SIGKILL)

    async def _start_again(self, pause: float) -> None:
        await asyncio.sleep(pause)
        self.restarts += 1
        self._process = None
        try:
            await self._spawn()
        except (OSError, StackError) as error:
            # Tried again after a longer pause: what is missing may come back.
            self._spawned_at = time.monotonic()
            self._change("died", f"could not be started again: {error}")

    async def _blocking(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    def _change(self, state: State, detail: str = "") -> None:
        self.state = state
        self._report(self.name, state, detail)
