"""What can go wrong with the embedded stack, said so that the reader knows what to do.

StackError
├── PortTaken        a port is in use; names the port and the option that changes it
├── AlreadyRunning   another supervisor holds the same state
├── ProcessFailed    a process ended or did not become ready; carries its last log lines
└── Unreadable       the account that must run PostgreSQL cannot reach a directory
"""

from __future__ import annotations


class StackError(Exception):
    """Base of all of them. The message is meant for a person at a terminal."""


class PortTaken(StackError):
    """A port that the stack needs cannot be had; ``trouble`` says why, as "is already in use"."""

    def __init__(self, port: int, purpose: str, trouble: str, remedy: str) -> None:
        super().__init__(f"port {port}, needed for {purpose}, {trouble}; {remedy}")
        self.port = port


class AlreadyRunning(StackError):
    """Another supervisor holds the lock of the same state directory."""


class ProcessFailed(StackError):
    """A process ended, or was not ready in time."""

    def __init__(self, name: str, what: str, log_tail: str = "") -> None:
        super().__init__(f"{name} {what}" + (f"; its last words:\n{log_tail}" if log_tail else "; it logged nothing"))
        self.name = name


class Unreadable(StackError):
    """PostgreSQL's unprivileged account cannot reach a directory that it needs."""


class Interrupted(StackError):
    """SIGINT, SIGTERM or SIGHUP ended the stack while its user was busy with something else than waiting."""
