"""The parts of a stack as its supervisor sees them: how each is prepared, started, and asked how it is."""

from __future__ import annotations

import http.client
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from embedded.process import Command


class Part(Protocol):
    """One process of the stack. The methods block and may be called from any thread."""

    def prepare(self) -> None:
        """Make what it needs on the disk; called before each start."""

    def command(self) -> Command:
        """How to start it; valid after `prepare`."""

    def is_ready(self) -> bool:
        """Whether it can do its whole work."""


class HttpService:
    """An ASGI application run by uvicorn on ``127.0.0.1:port``."""

    def __init__(self, name: str, app: str, port: int, environment: Mapping[str, str], state: Path) -> None:
        self.name = name
        self.port = port
        self._app = app
        self._environment = environment
        self._state = state
        self.fault = ""
        """What it lacked when it was last asked and not ready, in its own words."""

    def prepare(self) -> None:
        """Nothing: it migrates its database by itself."""

    def command(self) -> Command:
        arguments = (
            *("--factory", self._app, "--host", "127.0.0.1", "--port", str(self.port)),
            # The gateway gives up a quiet connection after 60 s; the other way round, requests would be lost.
            *("--timeout-keep-alive", "75", "--timeout-graceful-shutdown", "5"),
            *("--no-access-log", "--no-server-header"),
            # Clients are counted by the address that the gateway gives, and nobody else's word is taken.
            *("--forwarded-allow-ips", "127.0.0.1"),
        )
        return python(self.name, "uvicorn", arguments, self._environment, self._state)

    def is_ready(self) -> bool:
        status, body = self._ask("/readyz", timeout=4)
        if status != http.HTTPStatus.OK:
            self.fault = body[:500]
        return status == http.HTTPStatus.OK

    def is_alive(self, timeout: float) -> bool:
        """Whether its event loop turns: whether ``/healthz`` answers within ``timeout`` seconds."""
        return self._ask("/healthz", timeout)[0] == http.HTTPStatus.OK

    def _ask(self, path: str, timeout: float) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read(4096).decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            return 0, str(error)
        finally:
            connection.close()


class PythonWorker:
    """A Python module that runs for the stack's life and answers nobody."""

    def __init__(
        self, name: str, module: str, arguments: tuple[str, ...], environment: Mapping[str, str], state: Path
    ) -> None:
        self.name = name
        self._module = module
        self._arguments = arguments
        self._environment = environment
        self._state = state

    def prepare(self) -> None:
        """Nothing."""

    def command(self) -> Command:
        return python(self.name, self._module, self._arguments, self._environment, self._state)

    def is_ready(self) -> bool:
        """It answers nobody: running is all that can be said of it."""
        return True


def python(name: str, module: str, arguments: tuple[str, ...], environment: Mapping[str, str], state: Path) -> Command:
    """A module run by this interpreter, with the caller's environment and ``environment`` above it."""
    return Command(
        name=name,
        argv=(sys.executable, "-m", module, *arguments),
        log=log_of(state, name),
        env={
            **os.environ,
            **_bytecode(),
            # What lies in the working directory must not shadow a package.
            "PYTHONSAFEPATH": "1",
            "PYTHONUNBUFFERED": "1",
            "TZ": "UTC",
            **environment,
        },
        cwd=state,
    )


def _bytecode() -> dict[str, str]:
    """Where Python must not write bytecode beside its sources, keep it in the virtual environment.

    Otherwise each service compiles some thousand modules at each start: 2.5 s of a core instead of 1.1 s.
    """
    if not sys.dont_write_bytecode or not os.access(sys.prefix, os.W_OK):
        return {}
    return {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(Path(sys.prefix) / "pycache")}


def log_of(state: Path, name: str) -> Path:
    """Where a process's output goes."""
    return state / "log" / f"{name}.log"


def read_json(path: Path) -> dict[str, object] | None:
    """A JSON object from a file; None where there is none, or a broken one."""
    try:
        value = json.loads(path.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    return value if isinstance(value, dict) else None


def write_private(path: Path, value: object) -> None:
    """Replace a JSON file that only its owner may read, so that a reader sees the old or the new one whole."""
    attempt = path.with_name(f"{path.name}.{os.getpid()}.new")
    with os.fdopen(os.open(attempt, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(value, file, indent=2)
        file.write("\n")
    attempt.replace(path)
