"""What PostgreSQL, NATS and Caddy have in common: a server program that is started, waited for, and stopped.

Each can be run by itself (``with``, or `Server.start` and `Server.stop`), or by a supervisor, which needs
no more than `embedded.parts.Part` asks for.
"""

from __future__ import annotations

import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from embedded.errors import PortTaken, ProcessFailed
from embedded.process import Command, exit_words, log_tail, port_trouble, spawn, stop

_POLL = 0.005


class Server(ABC):
    """A server in ``directory``, with its output in ``log``. The methods block."""

    name: ClassVar[str]
    """What its process and its log are called."""
    title: ClassVar[str]
    """What a person calls it."""
    start_patience: ClassVar[float] = 30.0
    """Seconds until it must be ready."""
    stop_grace: ClassVar[float] = 10.0
    """Seconds that it may take to end before it is killed."""

    def __init__(self, directory: Path, log: Path | None) -> None:
        self.directory = directory.absolute()
        self.log = log or self.directory / f"{self.name}.log"
        self._command: Command | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def prepare(self) -> None:
        """Make what it needs on the disk; called before each start."""

    @abstractmethod
    def command(self) -> Command:
        """How to start it; valid after `prepare`."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Whether it does its whole work."""

    @abstractmethod
    def fixed_ports(self) -> Iterable[int]:
        """The ports that it must have, none of its own choice."""

    @property
    def pid(self) -> int | None:
        """The process id after `start`; for fault tests."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start and wait until it is ready. Raises `PortTaken`, `ProcessFailed`, or what `prepare` raises."""
        # What a killed server left behind may hold the port until it is cleared away.
        self.prepare()
        for port in self.fixed_ports():
            if trouble := port_trouble(port):
                raise PortTaken(port, self.title, trouble, "choose another port")
        self._command = self.command()
        self._process = spawn(self._command)
        deadline = time.monotonic() + self.start_patience
        while not self.is_ready():
            code = self._process.poll()
            if code is not None:
                raise ProcessFailed(self.name, exit_words(code), log_tail(self.log))
            if time.monotonic() > deadline:
                self.stop()
                raise ProcessFailed(self.name, f"was not ready after {self.start_patience:.0f} s", log_tail(self.log))
            time.sleep(_POLL)

    def stop(self) -> None:
        """Ask it to end in good order; past ``stop_grace`` seconds it is killed. Does nothing where none runs."""
        if self._process is not None and self._command is not None:
            stop(self._process, self._command.stop_signal, self.stop_grace)
        self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
