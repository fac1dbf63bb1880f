"""How many lineups one process of contests takes: a bounded load on real servers. Run it; pytest does not collect it.

    .venv/bin/python tests/performance/intake.py [--clients 32] [--seconds 5] [--rounds 3] [--beside TREE]

PostgreSQL and NATS as ``mafl up`` starts them (fsync on), one uvicorn process, and as many agents as clients, each
sending revision after revision over one connection kept open. Every answer must be a 201. Each round starts from an
empty database. ``--beside`` names another checkout, whose ``contests`` and ``common`` are measured in turn with this
one's: the machine's mood then falls on both. Everything shares the machine, the clients too, so that ratios mean
more than rates.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import csv
import gzip
import hashlib
import io
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import nats

from common import events as ev
from common import topology
from common.clock import wall
from common.provision import provision
from embedded.nats import Nats
from embedded.postgres import Postgres
from embedded.process import free_port

ROOT = Path(__file__).resolve().parents[2]
CONTEST = "2017-W04"
TOKEN = "operator-token-of-the-load"
SLOTS = ("QB", "RB", "RB", "WR", "WR", "WR", "TE", "RB", "DST")
NAMES = ("QB", "RB1", "RB2", "WR1", "WR2", "WR3", "TE", "FLEX", "DST")
WORDS = (
    "He has had seven targets or more in each of his last three games and costs less than receivers with half his "
    "share of the passes; the other side gives up the third most yards to his position and starts two new corners. "
)


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
    """A legal lineup of cheap players, some 5 KB; ``number`` makes its words its own."""
    cheap = sorted(players, key=lambda player: (player["price"], player["player_id"]))
    picks = []
    for slot, position in zip(NAMES, SLOTS, strict=True):
        player = next(player for player in cheap if position in player["positions"])
        cheap.remove(player)
        picks.append(
            {
                "slot": slot,
                "player_id": player["player_id"],
                "rationale": f"{player['name']}: {WORDS * 2} ({number})",
                "confidence": 0.41,
                "main_factor": "volume at a low price",
            }
        )
    return json.dumps({"picks": picks, "thesis": WORDS * 2, "projected_score": 88.5, "confidence": 0.5}).encode()


@dataclass(frozen=True)
class Measured:
    """What one round gave: lineups a second, and the time of one in milliseconds."""

    rate: float
    p50: float
    p99: float


@contextlib.asynccontextmanager
async def contests(tree: Path, database: str, bus: Nats) -> AsyncIterator[int]:
    """One process of a checkout's contests; its port."""
    port = free_port()
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join([str(tree / "services/contests"), str(tree / "libs/common")]),
        "MAFL_DATABASE_URL": database,
        "MAFL_NATS_URL": bus.url("contests"),
        "MAFL_OPERATOR_TOKEN": TOKEN,
        "MAFL_ENVIRONMENT": "embedded",
        "MAFL_LOG_LEVEL": "warning",
    }
    arguments = ["--factory", "contests.main:app", "--port", str(port), "--no-access-log", "--log-level", "warning"]
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "uvicorn", *arguments, env=environment)
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            for _ in range(200):
                with contextlib.suppress(httpx.HTTPError):
                    if (await client.get("/readyz")).is_success:
                        break
                await asyncio.sleep(0.1)
            else:
                raise SystemExit(f"contests of {tree} does not start")
        yield port
    finally:
        process.terminate()
        await process.wait()


async def prepare(port: int, bus: Nats, agents: int) -> tuple[list[str], list[dict[str, Any]]]:
    """Open the contest and let agents register; their keys and the pool."""
    keys = [f"mafl_sk_{uuid4().hex}" for _ in range(agents)]
    client = await nats.connect(bus.url("admin"), inbox_prefix=topology.inbox_prefix("admin").encode())
    for number, key in enumerate(keys):
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
            if len((await operator.get("/operator/api/v1/contests/agents")).json()["agents"]) == agents:
                break
            await asyncio.sleep(0.05)
        players = (await operator.get(f"/api/v1/contests/{CONTEST}/pool")).json()["players"]
    return keys, players


async def play(port: int, key: str, body: bytes, until: float, took: list[float]) -> None:
    """Send one lineup after the other on one connection, and note how long each took."""
    head = (
        f"POST /api/v1/contests/{CONTEST}/lineups HTTP/1.1\r\nHost: load\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while (begun := time.perf_counter()) < until:
        writer.write(head + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        document = await reader.readexactly(length)
        if b" 201 " not in answer.split(b"\r\n", 1)[0]:
            raise SystemExit(f"refused: {document.decode()}")
        took.append(time.perf_counter() - begun)
    writer.close()
    await writer.wait_closed()


async def load(port: int, keys: list[str], bodies: list[bytes], seconds: float) -> Measured:
    """All clients at once for some seconds."""
    took: list[float] = []
    begun = time.perf_counter()
    await asyncio.gather(
        *(play(port, key, body, begun + seconds, took) for key, body in zip(keys, bodies, strict=True))
    )
    rate = len(took) / (time.perf_counter() - begun)
    cuts = statistics.quantiles(took, n=100, method="inclusive")
    return Measured(rate, cuts[49] * 1000, cuts[98] * 1000)


async def measure(trees: list[Path], clients: int, seconds: float, rounds: int) -> dict[Path, list[Measured]]:
    """Each tree in turn, round by round; each round's figures are printed as they come."""
    measured: dict[Path, list[Measured]] = {tree: [] for tree in trees}
    with tempfile.TemporaryDirectory(prefix="mafl-intake-") as folder:
        server, bus = Postgres(Path(folder) / "postgres"), Nats(Path(folder) / "nats")
        server.start()
        bus.start()
        try:
            client = await nats.connect(bus.url("admin"), inbox_prefix=topology.inbox_prefix("admin").encode())
            await provision(client.jetstream())
            await client.close()
            server.create_service_database("contests")
            for number in range(rounds):
                for place, tree in enumerate(trees):
                    name = f"contests_{number}_{place}"
                    server.clone("contests", name)
                    async with contests(tree, server.url("contests", name), bus) as port:
                        keys, players = await prepare(port, bus, clients)
                        bodies = [lineup(players, n) for n in range(clients)]
                        await load(port, keys, bodies, min(1.0, seconds))  # statements and judge are prepared
                        figures = await load(port, keys, bodies, seconds)
                    measured[tree].append(figures)
                    print(f"round {number + 1}  {tree}  {shown(figures)}", flush=True)
        finally:
            bus.stop()
            server.stop()
    return measured


def shown(figures: Measured) -> str:
    return f"{figures.rate:7.0f} lineups/s   p50 {figures.p50:6.1f} ms   p99 {figures.p99:6.1f} ms"


def median(rounds: list[Measured]) -> Measured:
    return Measured(*(statistics.median(getattr(one, name) for one in rounds) for name in ("rate", "p50", "p99")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--beside", type=Path, help="another checkout to measure in turn with this one")
    given = parser.parse_args()
    trees = [ROOT] if given.beside is None else [given.beside.resolve(), ROOT]
    measured = asyncio.run(measure(trees, given.clients, given.seconds, given.rounds))
    for tree, rounds in measured.items():
        print(f"median   {tree}  {shown(median(rounds))}")
    if len(trees) == 2:
        ratio = median(measured[ROOT]).rate / median(measured[trees[0]]).rate
        print(f"this tree takes {ratio:.2f} times as many lineups as {trees[0]}")


if __name__ == "__main__":
    main()
