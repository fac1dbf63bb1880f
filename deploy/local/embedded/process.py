"""One child process: started so that it dies with its parent, logged to a file, stopped by signal.

A child leads a session of its own, so that Ctrl-C in the terminal reaches the supervisor alone and the
supervisor chooses the order of the end. On Linux the kernel signals a child when its parent dies in any
way, ``kill -9`` included. Elsewhere the next start ends what is left, by recorded `Identity`.
"""

from __future__ import annotations

import ctypes
import errno
import os
import pwd
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from embedded.errors import StackError

_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1
_LOG_LIMIT = 8 * 1024 * 1024


@dataclass(frozen=True)
class Account:
    """An operating-system account to run a child as."""

    name: str
    uid: int
    gid: int

    @classmethod
    def named(cls, name: str) -> Account:
        """Look an account up by name. Raises KeyError where there is none."""
        entry = pwd.getpwnam(name)
        return cls(entry.pw_name, entry.pw_uid, entry.pw_gid)

    @classmethod
    def numbered(cls, uid: int) -> Account:
        """Look an account up by number. Raises KeyError where there is none."""
        entry = pwd.getpwuid(uid)
        return cls(entry.pw_name, entry.pw_uid, entry.pw_gid)


@dataclass(frozen=True)
class Command:
    """How one process is started and stopped.

    ``stop_signal`` asks it to end; ``orphan_signal`` is what the kernel sends it when the supervisor dies.
    ``account`` is None for the account of the supervisor.
    """

    name: str
    argv: tuple[str, ...]
    log: Path
    env: Mapping[str, str] = field(default_factory=dict)
    account: Account | None = None
    cwd: Path | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    orphan_signal: signal.Signals = signal.SIGKILL


@dataclass(frozen=True)
class Identity:
    """A process that cannot be mistaken for a later one with the same number.

    ``started`` is the kernel's start time in seconds since the epoch.
    """

    pid: int
    started: float

    @classmethod
    def of(cls, pid: int) -> Identity | None:
        """The identity of a live process; None when there is none."""
        try:
            return cls(pid, psutil.Process(pid).create_time())
        except psutil.NoSuchProcess:
            return None

    def is_alive(self) -> bool:
        """Whether this very process still runs (a zombie does not)."""
        try:
            process = psutil.Process(self.pid)
            # The kernel counts in ticks since boot; the conversion wobbles when the wall clock is adjusted.
            same: bool = abs(process.create_time() - self.started) < 2
            return same and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    def end(self, ask: signal.Signals, grace: float) -> None:
        """Signal the process, wait up to ``grace`` seconds, then SIGKILL. Does nothing if it is gone."""
        for number, patience in ((ask, grace), (signal.SIGKILL, 5.0)):
            if not self.is_alive():
                return
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                return
            deadline = time.monotonic() + patience
            while self.is_alive() and time.monotonic() < deadline:
                time.sleep(0.02)


def spawn(command: Command) -> subprocess.Popen[bytes]:
    """Start a process with its output appended to its log.

    Call it from a thread that lives as long as the child should: on Linux the end of the *thread* that
    forked counts as the death of the parent. Raises OSError when the program cannot be run.
    """
    parent = os.getpid()
    orphan_signal = int(command.orphan_signal)

    def bind_to_parent() -> None:
        # Runs after the change of account, which would clear the setting.
        if _LIBC is not None:
            _LIBC.prctl(_PR_SET_PDEATHSIG, orphan_signal)
            if os.getppid() != parent:
                os._exit(1)

    command.log.parent.mkdir(parents=True, exist_ok=True)
    _rotate(command.log)
    with command.log.open("ab") as log:
        account = command.account
        return subprocess.Popen(
            command.argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=dict(command.env),
            cwd=command.cwd,
            start_new_session=True,
            preexec_fn=bind_to_parent,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
        )


def stop(process: subprocess.Popen[bytes], ask: signal.Signals, grace: float) -> int:
    """Ask a process to end, wait ``grace`` seconds, then kill it. Returns its exit code."""
    if process.poll() is None:
        process.send_signal(ask)
        try:
            process.wait(grace)
        except subprocess.TimeoutExpired:
            process.kill()
    return process.wait()


def log_tail(log: Path, lines: int = 12) -> str:
    """The last lines of a log, for error messages; empty where there is no log."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 16_384))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(f"  {line}" for line in text.splitlines()[-lines:])


def exit_words(code: int) -> str:
    """An exit code as a person says it."""
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"


def free_port(avoid: Collection[int] = ()) -> int:
    """A TCP port of 127.0.0.1 that was free a moment ago, none of ``avoid``.

    It lies below the range from which systems take ports for outgoing connections: a server that is started
    again must not find one of those on its port.
    """
    for _ in range(1000):
        port = secrets.randbelow(12_000) + 20_000
        if port not in avoid and not port_trouble(port):
            return port
    raise StackError("no free port found between 20000 and 32000")


def port_trouble(port: int, host: str = "127.0.0.1") -> str:
    """Why a server could not listen there now, to be read after "port N"; empty when it could.

    A connection left in TIME_WAIT does not count as use.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen()
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return "is already in use"
            return f"cannot be used on {host} ({error.strerror})"
    return ""


def reachable(bind: str) -> str:
    """The address at which this machine reaches a server that listens on ``bind``."""
    return "127.0.0.1" if bind in ("0.0.0.0", "::", "") else bind  # noqa: S104 compared, not bound


def _rotate(log: Path) -> None:
    """Keep one predecessor, so that a log that nobody reads cannot fill a disk."""
    try:
        if log.stat().st_size > _LOG_LIMIT:
            log.replace(log.with_suffix(log.suffix + ".1"))
    except FileNotFoundError:
        return
