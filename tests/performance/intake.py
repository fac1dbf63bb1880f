"""How many lineups contests takes, beside two peers: a bounded load on real servers. ``./run bench intake`` runs it.

    ./run bench intake [--rounds 3] [--seconds 5] [--clients 32] [--beside TREE] [--json]

PostgreSQL and NATS as ``mafl up`` starts them (fsync on). As many agents as clients send a lineup of 3 KB again and
again, each over one connection kept open; every answer must be a 201. In each round, in turn and each from an empty
database:

  ours           one process of contests: authenticated, limited, judged, stored with its outbox row, receipted
  ours_two       two processes of it on one database
  textbook       FastAPI, a pydantic model as body, SQLAlchemy's ORM: lineup, nine picks and an outbox row, one commit
                 each, on the same PostgreSQL; no authentication (``peers/textbook.py``)
  bare           an ASGI application that validates the same body with pydantic-core and stores nothing
                 (``peers/bare.py``)

All servers are uvicorn with the same options (uvloop, httptools). The generator is a process of its own, the same for
all, and its ceiling is measured too: against a server that answers without reading (``peers/canned.py``), and as the
part of a core that it used. Everything shares the machine, generator and PostgreSQL too, so that ratios mean more than
rates, and mean little where the machine has other work (``machine.load``).

``--beside`` names another checkout, whose ``contests`` and ``common`` are measured in turn with this one's.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import csv
import gzip
import hashlib
import io
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import nats
import psutil
from measuring import machine, median, say

from common import events as ev
from common import logs, topology
from common.clock import wall
from common.provision import provision
from embedded.nats import Nats
from embedded.postgres import Postgres
from embedded.process import free_port

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CONTEST = "2017-W04"
TOKEN = "operator-token-of-the-load"
SLOTS = ("QB", "RB", "RB", "WR", "WR", "WR", "TE", "RB", "DST")
NAMES = ("QB", "RB1", "RB2", "WR1", "WR2", "WR3", "TE", "FLEX", "DST")
WORDS = (
    "He has had seven targets or more in each of his last three games and costs less than receivers with half his "
    "share of the passes; the other side gives up the third most yards to his position. "
)
UVICORN = (
    *("--host", "127.0.0.1", "--loop", "uvloop", "--http", "httptools"),
    *("--no-access-log", "--no-server-header", "--log-level", "warning"),
)
TARGETS = {"textbook": 15.0, "bare": 0.3}
"""The ratios that DESIGN.md sets."""

Figures = dict[str, float]
"""What one measurement gave: ``rate`` (lineups a second), ``p50`` and ``p99`` (milliseconds), ``cpu``, the part of a
core that the generator took, and the milliseconds of processor time for each lineup of the server (``server_cpu``), of
PostgreSQL (``database_cpu``) and of NATS (``bus_cpu``), which other work on the machine changes less than the rest."""

SHOWN = ("rate", "p50", "p99", "cpu", "server_cpu", "database_cpu", "bus_cpu")


@dataclass(frozen=True)
class Copy:
    """A server process that is measured."""

    port: int
    pid: int


# --- what is sent ---------------------------------------------------------------------------------


def pool() -> bytes:
    """Week 4 of the 2017 season, played some whole weeks from now."""
    whole = gzip.decompress((ROOT / "data/pool_2017_dk.csv.gz").read_bytes()).decode()
    rows = [row for row in csv.DictReader(io.StringIO(whole, newline="")) if row["week"] == "4"]
    later = timedelta(weeks=(datetime.now(UTC) - datetime(2017, 1, 1, tzinfo=UTC)).days // 7)
    for row in rows:
        row["kickoff"] = row["kickoff"] and (datetime.fromisoformat(row["kickoff"]) + later).isoformat()
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def lineup(players: list[dict[str, Any]], number: int) -> bytes:
    """A legal lineup of cheap players, some 3 KB; ``number`` makes its words its own."""
    cheap = sorted(players, key=lambda player: (player["price"], player["player_id"]))
    picks = []
    for slot, position in zip(NAMES, SLOTS, strict=True):
        player = next(player for player in cheap if position in player["positions"])
        cheap.remove(player)
        picks.append(
            {
                "slot": slot,
                "player_id": player["player_id"],
                "rationale": f"{player['name']}: {WORDS} ({number})",
                "confidence": 0.41,
                "main_factor": "volume at a low price",
            }
        )
    return json.dumps({"picks": picks, "thesis": WORDS, "projected_score": 88.5, "confidence": 0.5}).encode()


def request(body: bytes, key: str) -> bytes:
    """The whole of a submission as it goes over the wire."""
    head = (
        f"POST /api/v1/contests/{CONTEST}/lineups HTTP/1.1\r\nHost: load\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


# --- who is measured ------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def process(*command: str, environment: dict[str, str], ready: Callable[[], Any]) -> AsyncIterator[int]:
    """A child process, from when it is ready; its id."""
    child = await asyncio.create_subprocess_exec(sys.executable, *command, env=environment)
    try:
        for _ in range(300):
            if child.returncode is not None:
                raise SystemExit(f"{' '.join(command[:4])} ended with {child.returncode}")
            with contextlib.suppress(httpx.HTTPError, OSError):
                if await ready():
                    break
            await asyncio.sleep(0.1)
        else:
            raise SystemExit(f"{' '.join(command[:4])} does not become ready")
        yield child.pid
    finally:
        if child.returncode is None:
            child.terminate()
            await child.wait()


@contextlib.asynccontextmanager
async def uvicorn(app: str, *arguments: str, environment: dict[str, str]) -> AsyncIterator[Copy]:
    """An ASGI application with the options that all have."""
    port = free_port()

    async def ready() -> bool:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            return (await client.get("/readyz")).is_success

    command = ("-m", "uvicorn", *arguments, app, "--port", str(port), *UVICORN)
    async with process(*command, environment={"PATH": os.environ["PATH"], **environment}, ready=ready) as pid:
        yield Copy(port, pid)


class Stand:
    """PostgreSQL and NATS under the measured servers, and who those are."""

    def __init__(self, server: Postgres, bus: Nats, clients: int) -> None:
        self.server = server
        self.bus = bus
        self.clients = clients
        self.keys = [f"mafl_sk_{uuid4().hex}" for _ in range(clients)]
        self._databases = 0
        self._bodies: list[bytes] = []

    def _database(self) -> str:
        """An empty database of its own."""
        self._databases += 1
        name = f"contests_{self._databases}"
        self.server.clone("contests", name)
        return self.server.url("contests", name)

    def requests(self) -> list[bytes]:
        """One for each client, to the players of the pool that contests last served; there must have been one."""
        return [request(body, key) for body, key in zip(self._bodies, self.keys, strict=True)]

    @contextlib.asynccontextmanager
    async def ours(self, tree: Path, processes: int) -> AsyncIterator[list[Copy]]:
        """Some processes of a checkout's contests, on one database with an open contest and all agents."""
        environment = {
            "PYTHONPATH": os.pathsep.join([str(tree / "services/contests"), str(tree / "libs/common")]),
            "MAFL_DATABASE_URL": self._database(),
            "MAFL_NATS_URL": self.bus.url("contests"),
            "MAFL_OPERATOR_TOKEN": TOKEN,
            "MAFL_ENVIRONMENT": "embedded",
            "MAFL_LOG_LEVEL": "warning",
        }
        async with contextlib.AsyncExitStack() as stack:
            copies = []
            for _ in range(processes):
                copy = uvicorn("contests.main:app", "--factory", environment=environment)
                copies.append(await stack.enter_async_context(copy))
            players = await self._prepare(copies[0].port)
            self._bodies = [lineup(players, number) for number in range(self.clients)]
            yield copies

    @contextlib.asynccontextmanager
    async def textbook(self) -> AsyncIterator[list[Copy]]:
        """The textbook route on a database of its own."""
        environment = {"PEER_DATABASE_URL": self._database()}
        async with uvicorn("peers.textbook:app", "--app-dir", str(HERE), environment=environment) as copy:
            yield [copy]

    @contextlib.asynccontextmanager
    async def bare(self) -> AsyncIterator[list[Copy]]:
        """The bare validating route."""
        async with uvicorn("peers.bare:app", "--app-dir", str(HERE), environment={}) as copy:
            yield [copy]

    @contextlib.asynccontextmanager
    async def canned(self) -> AsyncIterator[list[Copy]]:
        """The server that answers without reading."""
        port = free_port()

        async def ready() -> bool:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return True

        environment = {"PATH": os.environ["PATH"]}
        async with process(str(HERE / "peers/canned.py"), str(port), environment=environment, ready=ready) as pid:
            yield [Copy(port, pid)]

    async def _prepare(self, port: int) -> list[dict[str, Any]]:
        """Open the contest and let the agents register; the pool's players."""
        client = await nats.connect(self.bus.url("admin"), inbox_prefix=topology.inbox_prefix("admin").encode())
        for number, key in enumerate(self.keys):
            agent = uuid4()
            key_hash = hashlib.sha256(key.encode()).hexdigest()
            for event in (
                ev.AgentRegistered(agent_id=agent, agent_name=f"agent {number}", model="load/model-1"),
                ev.AgentKeyChanged(agent_id=agent, key_hash=key_hash),
            ):
                envelope = ev.pack(event, event_id=uuid4(), aggregate_version=1, correlation_id="load", time=wall())
                await client.jetstream().publish(event.subject(), envelope.model_dump_json().encode())
        await client.close()
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=30) as operator:
            (await operator.post("/operator/api/v1/contests/import", content=pool())).raise_for_status()
            (await operator.post(f"/operator/api/v1/contests/{CONTEST}/open")).raise_for_status()
            for _ in range(200):
                known = (await operator.get("/operator/api/v1/contests/agents")).json()["agents"]
                if len(known) >= self.clients:
                    break
                await asyncio.sleep(0.05)
            players: list[dict[str, Any]] = (await operator.get(f"/api/v1/contests/{CONTEST}/pool")).json()["players"]
        return players


@contextlib.asynccontextmanager
async def stand(clients: int) -> AsyncIterator[Stand]:
    """Servers of our own, from an empty directory, for as long as it lasts."""
    with tempfile.TemporaryDirectory(prefix="mafl-intake-") as folder:
        server, bus = Postgres(Path(folder) / "postgres"), Nats(Path(folder) / "nats")
        server.start()
        try:
            bus.start()
            client = await nats.connect(bus.url("admin"), inbox_prefix=topology.inbox_prefix("admin").encode())
            await provision(client.jetstream())
            await client.close()
            server.create_service_database("contests")
            yield Stand(server, bus, clients)
        finally:
            bus.stop()
            server.stop()


# --- measuring ------------------------------------------------------------------------------------


async def load(ports: list[int], requests: list[bytes], warm: float, seconds: float) -> Figures:
    """Let the generator send for some seconds; raises ``SystemExit`` where an answer was no 201."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, str(HERE / "generator.py"), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    todo = {
        "ports": ports,
        "requests": [base64.b64encode(one).decode() for one in requests],
        "warm": warm,
        "seconds": seconds,
    }
    out, _ = await child.communicate(json.dumps(todo).encode())
    if child.returncode:
        raise SystemExit(f"the load ended with {child.returncode}")
    figures: Figures = json.loads(out)
    return figures


async def send_each(port: int, requests: Iterable[bytes], connections: int = 32) -> None:
    """Send each request once, over some connections; raises ``SystemExit`` where an answer was no 201."""
    left = iter(requests)

    async def one() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for request in left:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            if b" 201 " not in head[:20]:
                raise SystemExit(f"a lineup was not taken: {head[:200].decode()}")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(int(length.partition(b":")[2]))
        writer.close()

    await asyncio.gather(*(one() for _ in range(connections)))


async def measure(
    clients: int, seconds: float, rounds: int, trees: dict[str, tuple[Path, int]], warm: float = 1.0
) -> tuple[dict[str, list[Figures]], int]:
    """Every server in turn, round by round, and the bytes of a lineup. ``trees`` are checkouts and their processes."""
    measured: dict[str, list[Figures]] = {name: [] for name in (*trees, "textbook", "bare", "canned")}
    async with stand(clients) as servers:
        entries: dict[str, Callable[[], AbstractAsyncContextManager[list[Copy]]]] = {
            name: (lambda tree=tree, processes=processes: servers.ours(tree, processes))  # type: ignore[misc]
            for name, (tree, processes) in trees.items()
        }
        entries |= {"textbook": servers.textbook, "bare": servers.bare, "canned": servers.canned}
        for number in range(rounds):
            for name, entry in entries.items():
                async with entry() as copies:
                    watched = {
                        "server_cpu": [copy.pid for copy in copies],
                        "database_cpu": [servers.server.pid],
                        "bus_cpu": [servers.bus.pid],
                    }
                    before = {what: processor_time(pids) for what, pids in watched.items()}
                    figures = await load([copy.port for copy in copies], servers.requests(), warm, seconds)
                    for what, pids in watched.items():
                        spent = processor_time(pids) - before[what]
                        figures[what] = 1000 * spent / figures["answers_in_all"]
                measured[name].append(figures)
                say(f"round {number + 1}  {name:9} {shown(figures)}")
        size = len(servers.requests()[0])
    return measured, size


def processor_time(pids: Iterable[int | None]) -> float:
    """Seconds that processes and their children, ended ones too, have been at work."""
    spent = 0.0
    for pid in pids:
        if pid is not None:
            whole = psutil.Process(pid)
            for one in (whole, *whole.children(recursive=True)):
                with contextlib.suppress(psutil.NoSuchProcess):
                    times = one.cpu_times()
                    spent += times.user + times.system + times.children_user + times.children_system
    return spent


def shown(figures: Figures) -> str:
    return (
        f"{figures['rate']:8.0f} lineups/s   p50 {figures['p50']:7.2f} ms   p99 {figures['p99']:7.2f} ms   "
        f"processor {figures['server_cpu']:6.3f} ms, PostgreSQL {figures['database_cpu']:6.3f} ms   "
        f"generator {figures['cpu']:4.0%} of a core"
    )


def ratios(measured: dict[str, list[Figures]], of: str, figure: str = "rate") -> dict[str, float]:
    """The median over the rounds of one server's figure to the peers' of the same round."""
    return {
        peer: median(one[figure] / other[figure] for one, other in zip(measured[of], measured[peer], strict=True))
        for peer in TARGETS
    }


def document(measured: dict[str, list[Figures]], clients: int, seconds: float, size: int) -> dict[str, Any]:
    """The result: ``ratios`` are of one process of ours, ``seconds`` those that passed for each lineup taken."""
    medians = {name: {figure: median(one[figure] for one in of) for figure in SHOWN} for name, of in measured.items()}
    ceiling = medians.pop("canned")
    return {
        "name": "intake",
        "ratios": ratios(measured, "ours"),
        "ratios_two": ratios(measured, "ours_two"),
        "p99_ratios": ratios(measured, "ours", "p99"),
        "p99_ratios_two": ratios(measured, "ours_two", "p99"),
        "targets": TARGETS,
        "seconds": {name: float(f"{1 / of['rate']:.4g}") for name, of in medians.items()},
        "measured": medians,
        "generator": {"ceiling": ceiling["rate"], "cpu": {name: of["cpu"] for name, of in medians.items()}},
        "rounds": [dict(zip(measured, of, strict=True)) for of in zip(*measured.values(), strict=True)],
        "load": {"clients": clients, "seconds": seconds, "request_bytes": size},
        "machine": machine(),
    }


def show(found: dict[str, Any]) -> None:
    """The result for a person."""
    for name, figures in found["measured"].items():
        print(f"median   {name:9} {shown(figures)}")
    for what, key in (("one process", "ratios"), ("two processes", "ratios_two")):
        print(f"{what}: {found[key]['textbook']:.1f} x the textbook route, {found[key]['bare']:.2f} of the bare one")
    each = [", ".join(f"{one['ours']['rate'] / one[peer]['rate']:.2f}" for one in found["rounds"]) for peer in TARGETS]
    print(f"by round, one process: {each[0]} x the textbook route; {each[1]} of the bare one")
    own, others = found["measured"]["ours"], found["measured"]["textbook"]
    print(
        "processor time of a lineup, server and PostgreSQL: the textbook route's is "
        f"{(others['server_cpu'] + others['database_cpu']) / (own['server_cpu'] + own['database_cpu']):.1f} x ours"
    )
    one, two = (found[key]["textbook"] for key in ("p99_ratios", "p99_ratios_two"))
    print(f"p99 of one process: {one:.2f} of the textbook route's; of two: {two:.2f}")
    generator = found["generator"]
    bare = generator["cpu"]["bare"]
    print(
        f"the generator alone does {generator['ceiling']:.0f} a second, and took {bare:.0%} of a core "
        "against the bare route"
    )
    if bare > 0.95:
        print("so the bare route could do more than is shown, and the ratio to it is flattered")


def run(clients: int, seconds: float, rounds: int, beside: Path | None = None, warm: float = 1.0) -> dict[str, Any]:
    """Measure, and give the result."""
    logs.configure("bench", "warning")  # standard output is the result's
    trees = {"ours": (ROOT, 1), "ours_two": (ROOT, 2)}
    if beside is not None:
        trees["beside"] = (beside.resolve(), 1)
    measured, size = asyncio.run(measure(clients, seconds, rounds, trees, warm))
    return document(measured, clients, seconds, size)


def arguments(parser: argparse.ArgumentParser) -> None:
    """What may be said on the command line."""
    parser.add_argument("--clients", type=int, default=32, help="connections, each with an agent (32)")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement (5)")
    parser.add_argument("--rounds", type=int, default=3, help="every server in turn, so many times (3)")
    parser.add_argument("--beside", type=Path, help="another checkout to measure in turn with this one")


def main(given: argparse.Namespace) -> tuple[dict[str, Any], Callable[[dict[str, Any]], None]]:
    """What ``./run bench intake`` does."""
    return run(given.clients, given.seconds, given.rounds, given.beside), show
