"""The embedded stack: PostgreSQL, NATS, Caddy and the services as child processes of one supervisor.

    async with Stack(StackOptions(state=Path(".mafl"))) as stack:
        print(stack.public_url)
        await stack.wait()

Everything is kept in the state directory:

    .mafl/
      stack.json      addresses, ports and processes of the running stack; see `read_state`
      secrets.json    operator token, passwords and the signing key, mode 0600; made once
      lock            held by the running supervisor
      log/            one log for each process, and stack.log: what the supervisor did
      postgres/ nats/ caddy/

No process outlives the stack: on Linux the kernel ends them with the supervisor; elsewhere the next start
ends what it finds in ``stack.json``, by number and start time.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import fcntl
import os
import secrets
import shutil
import signal
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from common import topology
from embedded.caddy import Caddy
from embedded.databases import Databases
from embedded.errors import AlreadyRunning, Interrupted, PortTaken, ProcessFailed, StackError
from embedded.keeper import Keeper, Patience, State
from embedded.nats import Nats, new_passwords
from embedded.parts import HttpService, Part, PythonWorker, log_of, read_json, write_private
from embedded.postgres import Postgres
from embedded.process import Identity, free_port, log_tail, port_trouble, reachable
from embedded.processes import DEPLOYMENT, Deployment

__all__ = [
    "AlreadyRunning",
    "Interrupted",
    "Patience",
    "PortTaken",
    "Ports",
    "ProcessFailed",
    "ProcessState",
    "Stack",
    "StackError",
    "StackOptions",
    "StackState",
    "read_state",
]

_GRACE = {"caddy": 4.0, "postgres": 20.0}
_USUAL_GRACE = 8.0
_ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_OURS = ("postgres", "nats", "caddy", "log", "outbox", "secrets.json", "stack.json")


@dataclass(frozen=True)
class Ports:
    """The ports that people type. All others are free ones, chosen at each start."""

    public: int = 8000
    operator: int = 8001

    @classmethod
    def free(cls) -> Self:
        """Ports that were free a moment ago."""
        public = free_port()
        return cls(public, free_port({public}))


@dataclass(frozen=True)
class StackOptions:
    """What a stack is started with.

    ``clock`` "replay" lets an operator move the time. ``fresh`` begins with an empty state: what an earlier
    stack left there is deleted. ``bind`` is the interface of the public origin; operators' origin and
    all else stay on 127.0.0.1. ``public_url`` is the address that people and agents use where it differs.
    ``database_url`` (of an administrator) and ``nats_url`` name existing servers, which are then not started.
    ``durable`` False gives up safety against power loss, for tests. ``on_state`` is told (name, state) of
    each process, in the thread of the event loop.
    """

    state: Path = Path(".mafl")
    ports: Ports = field(default_factory=Ports)
    clock: Literal["system", "replay"] = "system"
    fresh: bool = False
    bind: str = "127.0.0.1"
    public_url: str | None = None
    database_url: str | None = None
    nats_url: str | None = None
    durable: bool = True
    deployment: Deployment = DEPLOYMENT
    environment: Mapping[str, str] = field(default_factory=dict)
    patience: Patience = field(default_factory=Patience)
    on_state: Callable[[str, State], None] = lambda name, state: None


@dataclass(frozen=True)
class ProcessState:
    """One process of a stack, as ``stack.json`` tells of it."""

    pid: int
    alive: bool
    state: str
    restarts: int


@dataclass(frozen=True)
class StackState:
    """A stack as its state directory tells of it. ``running`` is whether its supervisor lives."""

    running: bool
    supervisor: int
    started_at: datetime
    public_url: str
    operator_url: str
    operator_token: str
    ports: Mapping[str, int]
    processes: Mapping[str, ProcessState]


class Stack:
    """A running stack; use it as an async context manager, in a program's main thread.

    Entering starts everything and returns when all processes are ready (5 s on two quiet cores).
    Raises `AlreadyRunning`, `PortTaken`, `ProcessFailed` (with the process's last log lines) or another
    `StackError`. SIGINT, SIGTERM and SIGHUP end it: `wait` returns, and anything else in the block is
    cancelled and the block raises `Interrupted`. A second signal kills what has not ended yet.
    """

    def __init__(self, options: StackOptions) -> None:
        self.options = options
        self.state = options.state.absolute()
        host = reachable(options.bind)
        self.local_url = f"http://{f'[{host}]' if ':' in host else host}:{options.ports.public}"
        """Where this machine reaches the public origin, whatever address people use."""
        self.public_url = options.public_url or self.local_url
        self.operator_url = f"http://127.0.0.1:{options.ports.operator}"
        self.operator_token = ""
        self.ports: dict[str, int] = {"public": options.ports.public, "operator": options.ports.operator}
        self._keepers: dict[str, Keeper] = {}
        self._executor = ThreadPoolExecutor(max_workers=24, thread_name_prefix="embedded")
        self._started_at = datetime.now(UTC)
        self._lock: int | None = None
        self._bus: Nats | None = None
        self._ending = False
        self._ended = asyncio.Event()
        self._hurry = asyncio.Event()
        self._waiting = False
        self._owner: asyncio.Task[Any] | None = None

    # --- use ----------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        self._owner = asyncio.current_task()
        self._take_lock()
        self._listen_to_signals()
        try:
            await self._start()
        except BaseException as error:
            await self._end()
            if self._ended.is_set() and isinstance(error, asyncio.CancelledError):
                self._absorb_cancellation()
                raise Interrupted("interrupted while starting") from None
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()
        if self._ended.is_set() and isinstance(error, asyncio.CancelledError):
            self._absorb_cancellation()
            raise Interrupted("interrupted") from None

    async def wait(self) -> None:
        """Wait for a signal that ends the stack."""
        self._waiting = True
        try:
            await self._ended.wait()
        finally:
            self._waiting = False

    def kill(self, name: str) -> int:
        """Kill one process with SIGKILL, for tests of faults; it is started again. Returns its number."""
        return self._keeper(name).kill()

    def _keeper(self, name: str) -> Keeper:
        if name not in self._keepers:
            raise StackError(f"there is no process {name}; there are {', '.join(self._keepers)}")
        return self._keepers[name]

    async def stop(self, name: str) -> None:
        """Stop one process and leave it stopped until :meth:`start`, as in an outage that lasts."""
        await self._keeper(name).stop(_GRACE.get(name, _USUAL_GRACE), self._hurry)

    async def start(self, name: str) -> None:
        """Start a process that was stopped and wait until it is ready. Raises `ProcessFailed` as entering does."""
        await self._keeper(name).start()

    @property
    def restarts(self) -> dict[str, int]:
        """How often each process was started again."""
        return {name: keeper.restarts for name, keeper in self._keepers.items()}

    # --- start --------------------------------------------------------------------------------

    async def _start(self) -> None:
        await self._blocking(self._clear)
        if self.ports["public"] == self.ports["operator"]:
            raise StackError(
                f"port {self.ports['public']} cannot be both the public one and the operator's; choose another with "
                "--port or --operator-port, or take any that are free with --free-ports"
            )
        for name, bind, purpose, option, variable in (
            ("public", self.options.bind, "the public pages and API", "--port", "MAFL_PORT"),
            ("operator", "127.0.0.1", "the operator API", "--operator-port", "MAFL_OPERATOR_PORT"),
        ):
            if trouble := port_trouble(self.ports[name], bind):
                remedy = f"choose another with {option} (or {variable}), or take any that is free with --free-ports"
                raise PortTaken(self.ports[name], purpose, trouble, remedy)
        passwords = self._secrets()
        services = {service.name: service for service in self.options.deployment.services}
        for name in services:
            self._choose_port(name)
        self._write()

        databases, bus, _ = await _all(
            self._start_databases(passwords["databases"]), self._start_bus(passwords["bus"]), self._start_gateway()
        )
        common = {
            "MAFL_PUBLIC_URL": self.public_url,
            "MAFL_OPERATOR_TOKEN": self.operator_token,
            "MAFL_CLOCK": self.options.clock,
            "MAFL_ENVIRONMENT": "embedded",
            # Where no mail server is named, links to sign in with are kept here and shown by `mafl mail`.
            "MAFL_MAIL_OUTBOX": str(self.state / "outbox"),
            **self.options.environment,
        }
        parts: dict[str, Part] = {}
        for name, service in services.items():
            addresses = {"MAFL_DATABASE_URL": databases.url(name), "MAFL_NATS_URL": bus(name)}
            own = {"MAFL_SIGNING_KEY": passwords["signing"]["key"]} if name == "contests" else {}
            environment = own | common | addresses
            parts[name] = HttpService(name, service.app, self.ports[name], environment, self.state)
        await _all(self._await_streams(), *(self._keep(name, part) for name, part in parts.items()))
        self._journal("stack", "ready", self.public_url)
        self._write()

    async def _start_databases(self, passwords: Mapping[str, str]) -> Databases:
        if self.options.database_url is not None:
            databases = Databases(self.options.database_url)
            if not await self._blocking(databases.answer):
                raise StackError("the PostgreSQL server of MAFL_DATABASE_URL does not answer, or not to this role")
        else:
            server = Postgres(
                self.state / "postgres",
                self._choose_port("postgres"),
                durable=self.options.durable,
                log=log_of(self.state, "postgres"),
            )
            await self._keep("postgres", server)
            databases = server.databases
        for name, password in passwords.items():
            await self._blocking(partial(databases.create_service_database, name, password))
        return databases

    async def _start_bus(self, passwords: Mapping[str, str]) -> Callable[[str], str]:
        existing = self.options.nats_url
        if existing is not None:

            def address(user: str) -> str:
                return existing
        else:
            server = Nats(
                self.state / "nats",
                self._choose_port("nats"),
                passwords,
                durable=self.options.durable,
                log=log_of(self.state, "nats"),
            )
            await self._keep("nats", server)
            self._bus = server
            address = server.url
        # At once, beside PostgreSQL: the streams are then there before the first service looks for them.
        for worker in self.options.deployment.workers:
            environment = {"MAFL_NATS_URL": address(worker.user), **self.options.environment}
            part = PythonWorker(worker.name, worker.module, worker.arguments, environment, self.state)
            await self._keep(worker.name, part)
        return address

    async def _await_streams(self) -> None:
        """Wait until the provisioner has made every durable. Of an existing bus that is not asked."""
        if self._bus is None:
            return
        wanted = {(durable.stream, durable.service) for durable in topology.DURABLES}
        deadline = asyncio.get_running_loop().time() + self.options.patience.start
        while missing := wanted - await self._blocking(self._bus.durables):
            if asyncio.get_running_loop().time() > deadline:
                names = ", ".join(f"{stream}/{service}" for stream, service in sorted(missing))
                words = log_tail(log_of(self.state, "provisioner"))
                raise ProcessFailed("provisioner", f"did not make the durables {names}", words)
            await asyncio.sleep(0.05)

    async def _start_gateway(self) -> None:
        upstreams = {service.name: self.ports[service.name] for service in self.options.deployment.services}
        gateway = Caddy(
            self.state / "caddy",
            upstreams,
            self.ports["public"],
            self.ports["operator"],
            bind=self.options.bind,
            log=log_of(self.state, "caddy"),
        )
        await self._keep("caddy", gateway)

    def _choose_port(self, name: str) -> int:
        self.ports[name] = free_port(self.ports.values())
        return self.ports[name]

    async def _keep(self, name: str, part: Part) -> None:
        keeper = Keeper(name, part, patience=self.options.patience, executor=self._executor, report=self._on_state)
        self._keepers[name] = keeper
        await keeper.start()

    # --- end ----------------------------------------------------------------------------------

    async def _end(self) -> None:
        """Stop in reverse: the gateway, then services and workers, then the bus, then the databases."""
        self._ending = True
        ending = asyncio.create_task(self._stop_all())
        while not ending.done():
            # A cancelled owner still owes the end of its processes.
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(ending)
        self._stop_listening_to_signals()
        await asyncio.to_thread(self._executor.shutdown)
        (self.state / "stack.json").unlink(missing_ok=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        ending.result()

    async def _stop_all(self) -> None:
        servers = ("caddy", "nats", "postgres")
        middle = tuple(name for name in self._keepers if name not in servers)
        for names in (("caddy",), middle, ("nats",), ("postgres",)):
            keepers = [self._keepers[name] for name in names if name in self._keepers]
            await asyncio.gather(*(k.stop(_GRACE.get(k.name, _USUAL_GRACE), self._hurry) for k in keepers))

    # --- signals ------------------------------------------------------------------------------

    def _listen_to_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in _ENDING_SIGNALS:
            # What is ignored on purpose, as under nohup, stays so. Only the main thread can listen to signals.
            if signal.getsignal(number) is not signal.SIG_IGN:
                with contextlib.suppress(ValueError, RuntimeError):
                    loop.add_signal_handler(number, self._on_signal, number)

    def _stop_listening_to_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in _ENDING_SIGNALS:
            with contextlib.suppress(ValueError, RuntimeError):
                loop.remove_signal_handler(number)

    def _on_signal(self, number: signal.Signals) -> None:
        self._journal("stack", "stopping", number.name)
        if self._ending:
            self._hurry.set()
        elif not self._ended.is_set():
            self._ended.set()
            if not self._waiting and self._owner is not None:
                self._owner.cancel()

    def _absorb_cancellation(self) -> None:
        if self._owner is not None:
            self._owner.uncancel()

    # --- state on the disk --------------------------------------------------------------------

    def _take_lock(self) -> None:
        try:
            self.state.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.state / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StackError(f"the state directory {self.state} cannot be used: {error.strerror}") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise AlreadyRunning(_who_holds(self.state)) from None
        self._lock = lock

    def _clear(self) -> None:
        """End what a killed supervisor left behind; delete the state where a fresh one is wanted."""
        _end_leftovers(self.state)
        (self.state / "stack.json").unlink(missing_ok=True)
        if self.options.fresh:
            elsewhere = self.state / "postgres" / "data"
            if elsewhere.is_symlink():
                shutil.rmtree(elsewhere.resolve().parent, ignore_errors=True)
            for name in _OURS:
                path = self.state / name
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
        (self.state / "log").mkdir(exist_ok=True)

    def _secrets(self) -> dict[str, dict[str, str]]:
        """The passwords of databases and bus by user, the key that receipts and roots are signed with; the
        operator's token. What is missing is made."""
        path = self.state / "secrets.json"
        known: Any = read_json(path) or {}
        names = [service.name for service in self.options.deployment.services]
        token = known.get("operator_token") or f"mafl_op_{secrets.token_urlsafe(32)}"
        databases = {name: secrets.token_urlsafe(24) for name in names} | known.get("databases", {})
        bus = new_passwords() | known.get("bus", {})
        # Any 32 random bytes are the seed of an Ed25519 key.
        signing = known.get("signing_key") or base64.b64encode(secrets.token_bytes(32)).decode()
        kept = {"operator_token": token, "signing_key": signing, "databases": databases, "bus": bus}
        write_private(path, kept)
        self.operator_token = token
        return {"databases": {name: databases[name] for name in names}, "bus": bus, "signing": {"key": signing}}

    def _write(self) -> None:
        write_private(
            self.state / "stack.json",
            {
                "public_url": self.public_url,
                "operator_url": self.operator_url,
                "operator_token": self.operator_token,
                "started_at": self._started_at.isoformat(),
                "ports": self.ports,
                "supervisor": _as_json(Identity.of(os.getpid())),
                "processes": {
                    name: {**_as_json(keeper.identity), "state": keeper.state, "restarts": keeper.restarts}
                    for name, keeper in self._keepers.items()
                    if keeper.identity is not None
                },
            },
        )

    def _on_state(self, name: str, state: State, detail: str) -> None:
        self._journal(name, state, detail)
        self._write()
        self.options.on_state(name, state)

    def _journal(self, name: str, state: str, detail: str) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        with log_of(self.state, "stack").open("a") as log:
            log.write(f"{now} {name} {state}{': ' if detail else ''}{detail}\n")

    async def _blocking(self, call: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)


def read_state(state: Path) -> StackState | None:
    """What the state directory tells of its stack; None where none was started or it was stopped in good order."""
    told: Any = read_json(state / "stack.json")
    if told is None:
        return None
    supervisor = _from_json(told["supervisor"])
    return StackState(
        running=supervisor.is_alive(),
        supervisor=supervisor.pid,
        started_at=datetime.fromisoformat(told["started_at"]),
        public_url=told["public_url"],
        operator_url=told["operator_url"],
        operator_token=told["operator_token"],
        ports=told["ports"],
        processes={
            name: ProcessState(
                pid=process["pid"],
                alive=_from_json(process).is_alive(),
                state=process["state"],
                restarts=process["restarts"],
            )
            for name, process in told["processes"].items()
        },
    )


def _who_holds(state: Path) -> str:
    holder = read_state(state)
    if holder is None:
        return f"another process holds {state / 'lock'}; it is just starting or stopping"
    return (
        f"a stack already runs from {state}: process {holder.supervisor}, since "
        f"{holder.started_at:%Y-%m-%d %H:%M:%S} UTC, at {holder.public_url}. Stop it with Ctrl-C where it runs, or "
        f"with `kill {holder.supervisor}`; or choose another state directory"
    )


def _end_leftovers(state: Path) -> None:
    told: Any = read_json(state / "stack.json")
    if told is None:
        return
    for name, process in reversed(list(told["processes"].items())):
        fast_shutdown = signal.SIGINT if name == "postgres" else signal.SIGTERM
        _from_json(process).end(fast_shutdown, _GRACE.get(name, _USUAL_GRACE))


def _as_json(identity: Identity | None) -> dict[str, float]:
    return {} if identity is None else {"pid": identity.pid, "started": identity.started}


def _from_json(told: Mapping[str, Any]) -> Identity:
    return Identity(told["pid"], told["started"])


async def _all(*work: Coroutine[Any, Any, Any]) -> Iterable[Any]:
    """Run everything at once; the first error ends the rest and is raised by itself, not in a group."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
