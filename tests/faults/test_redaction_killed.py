"""Texts that go for good while processes die: in the end no database, stream, log or data file holds a word of them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from embedded.postgres import SUPERUSER
from embedded.process import Identity
from embedded.stack import Patience, Ports, Stack, StackOptions, read_state
from house.field import view
from house.strategies import Strategy, Style, play
from mafl.client import AgentClient, PublicClient, register
from mafl.errors import MaflError
from mafl.operator import OperatorClient
from testkit.contracts import ROOT
from testkit.searching import in_database, in_files

WEEK = "2017-W01"
VICTIMS = ("moderation", "contests", "boards", "provisioner", "nats", "postgres")
"""Who is killed within the redaction of a text of its own, each time as soon as the order is answered."""
POINTERS = {victim: f"/picks/{place}/rationale" for place, victim in enumerate(VICTIMS)}
WORDS = {victim: f"Zebrafinch {victim} runs." for victim in VICTIMS}
STAYS = "Kingfisher stays."
PATIENCE = 120.0
"""Seconds: what failed is tried again after up to half a minute."""
REWRITTEN = {
    "contests": ("revisions", "outbox"),
    "moderation": (
        *("agents", "texts", "outbox", "judgements", "notes", "former_verdicts", "reviews"),
        *("rerun_changes", "external_verdicts"),
    ),
    "boards": ("words", "outbox", "agents", "agent_names"),
    "registry": ("reviews", "outbox", "agents", "agent_names", "answers", "operator_acts"),
}
"""The tables that docs/moderation.md has an operator rewrite."""

pytestmark = pytest.mark.timeout(300)


@dataclass
class World:
    stack: Stack
    public: PublicClient
    operator: OperatorClient
    lineup: str = ""
    agent: str = ""

    def database(self, service: str) -> str:
        password = json.loads((self.stack.state / "secrets.json").read_text())["databases"][service]
        return f"postgresql://{service}:{quote(password, safe='')}@127.0.0.1:{self.stack.ports['postgres']}/{service}"

    async def shown(self) -> dict[str, Any]:
        """The lineup's texts on the boards, by pointer; none where it is not there yet."""
        try:
            lineups = (await self.public.call("GET", f"/api/v1/contests/{WEEK}/lineups")).json()["lineups"]
        except MaflError as error:
            if error.code not in ("contest-not-locked", "contest-unknown"):
                raise
            return {}
        picks = [pick for one in lineups if one["lineup"] == self.lineup for pick in one["picks"]]
        return {f"/picks/{pick['index']}/rationale": pick["rationale"] for pick in picks}

    async def until_shown(self, *words: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            texts = json.dumps(await self.shown())
            if all(word in texts for word in words):
                return
            assert time.monotonic() < deadline, texts
            await asyncio.sleep(0.1)

    async def mafl(self, *arguments: str, status: int = 0) -> Any:
        """The command line, as an operator calls it; with another status what it complains of."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "mafl", "moderation", *arguments, "--state", str(self.stack.state), "--json"),
            env=dict(os.environ),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        output, complaint = await process.communicate()
        assert process.returncode == status, complaint.decode()
        return json.loads(output)

    def identity(self, name: str) -> Identity:
        """A process as it runs now."""
        state = read_state(self.stack.state)
        assert state is not None
        identity = Identity.of(state.processes[name].pid)
        assert identity is not None, f"{name} does not run"
        return identity

    @contextmanager
    def frozen(self, name: str) -> Iterator[None]:
        """A process stands still, and goes on afterwards where it has not been killed."""
        identity = self.identity(name)
        os.kill(identity.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            if identity.is_alive():
                os.kill(identity.pid, signal.SIGCONT)

    async def kill(self, victim: str) -> None:
        identity = self.identity(victim)
        assert self.stack.kill(victim) == identity.pid
        # On a busy machine it takes its time to die, and must not be taken for its own successor.
        await asyncio.to_thread(identity.end, signal.SIGKILL, 10.0)
        assert not identity.is_alive()

    async def all_ready(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            state = read_state(self.stack.state)
            assert state is not None
            waiting = [name for name, one in state.processes.items() if not one.alive or one.state != "ready"]
            if not waiting:
                return
            assert time.monotonic() < deadline, f"{waiting} did not come back"
            await asyncio.sleep(0.05)

    async def until_done(self) -> list[dict[str, Any]]:
        """All redactions, once every store has said that it is rid of the words."""
        deadline = time.monotonic() + PATIENCE
        while True:
            found = await self.operator.redactions(self.lineup)
            of_agent = await self.operator.redactions(agent_id=self.agent)
            if of_agent and all(one["done"] for one in [*found, *of_agent]):
                return found
            waiting = {one["pointer"]: [name for name, at in one.items() if at is None] for one in found}
            assert time.monotonic() < deadline, waiting
            await asyncio.sleep(0.1)

    def at_databases(self, statement: str, *, as_superuser: bool = False) -> None:
        """Run a statement in the database of each service that keeps words; ``{tables}`` are those that hold some."""
        password = (self.stack.state / "postgres" / "password").read_text().strip()
        for service, tables in REWRITTEN.items():
            address = self.database(service)
            if as_superuser:
                address = make_conninfo(address, user=SUPERUSER, password=password)
            with psycopg.connect(address, autocommit=True) as connection:
                connection.execute(statement.format(tables=", ".join(tables)).encode())


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    # Durable, as it is in use: a killed PostgreSQL would else forget what it has said is done.
    options = StackOptions(state=tmp_path / "stack", ports=Ports.free(), clock="replay", patience=Patience(steady=1.0))
    async with (
        Stack(options) as stack,
        PublicClient(stack.public_url) as public,
        OperatorClient(stack.operator_url, token=stack.operator_token) as operator,
    ):
        made = World(stack, public, operator)
        await operator.move_clock(datetime.fromisoformat("2017-09-09T12:00:00+00:00"))
        await operator.import_contests((ROOT / "data" / "pool_2017_dk.csv.gz").read_bytes(), season=2017, week=1)
        await operator.open(WEEK)
        registered = await register(public, "Zebrafinch Writer", "demo/one", description="Zebrafinch keeps a diary.")
        made.agent = str(registered.agent.id)
        await operator.claim(registered.agent.id, "Ann")
        async with AgentClient(stack.public_url, key=registered.api_key) as agent:
            entry = play(
                "somebody", Style(Strategy.RANDOM), view(await agent.contest(WEEK), await agent.pool(WEEK), {})
            )
            body = entry.body()
            for place, victim in enumerate(VICTIMS):
                body["picks"][place]["rationale"] = WORDS[victim]
            body["picks"][-1]["rationale"] = STAYS
            made.lineup = str(
                (await agent.call("POST", f"/api/v1/contests/{WEEK}/lineups", body=body)).json()["lineup"]
            )
        await operator.move_clock(datetime.fromisoformat("2017-09-10T17:00:00+00:00"))
        yield made


@pytest.mark.rule("M6", "O4")
async def test_whoever_is_killed_within_a_redaction_the_words_go_from_everywhere(world: World) -> None:
    await world.until_shown(*WORDS.values(), STAYS)
    assert in_files(world.stack.state / "nats", ["Zebrafinch"])
    # The planner looks at everything while the words are there.
    world.at_databases("ANALYZE")

    refused = await world.mafl("redact", world.lineup, "/thesis", "--reason", "decency", "--note", "Case.", status=1)
    assert refused["code"] == "unconfirmed"
    about = {"reason": "court-order", "note": "Case 18.", "by": "ada"}
    options = ("--reason", "court-order", "--note", "Case 18.", "--by", "ada")
    dry = await world.mafl("redact", world.lineup, POINTERS["nats"], *options, "--dry-run")
    assert (dry["dry_run"], dry["redactions"], dry["texts"][0]["final"]) == (True, [], True)

    for victim in VICTIMS:
        # Contests stands still, so that the order is under way when its victim dies.
        with world.frozen("contests"):
            made = await world.operator.redact(world.lineup, POINTERS[victim], **about)
            assert [one["done"] for one in made["redactions"]] == [False]
            await world.kill(victim)
        await world.all_ready()
    # The agent's own words: registry dies before it can tell, and so does whoever would hear of it next.
    unconfirmed = await world.mafl("redact-agent", world.agent, "--reason", "decency", status=1)
    assert unconfirmed["code"] == "unconfirmed"
    with world.frozen("boards"):
        named = await world.mafl("redact-agent", world.agent, "--reason", "court-order", "--by", "ada", "--yes")
        assert "Zebrafinch" not in json.dumps(named)
        for victim in ("registry", "moderation", "boards", "provisioner"):
            await world.kill(victim)
    await world.all_ready()
    ordered = ("redact", world.lineup, POINTERS[VICTIMS[-1]], *options, "--yes", "--wait", "--patience", str(PATIENCE))
    assert [one["done"] for one in (await world.mafl(*ordered))["redactions"]] == [True]
    found = await world.until_done()
    assert {one["pointer"] for one in found} == set(POINTERS.values())

    shown = await world.shown()
    assert {pointer: shown[pointer]["withheld"] for pointer in POINTERS.values()} == dict.fromkeys(
        POINTERS.values(), "redacted"
    )
    assert STAYS in json.dumps(shown)
    for service in (*REWRITTEN, "settlement"):
        assert in_database(world.database(service), ["Zebrafinch"]) == []
    assert in_files(world.stack.state / "nats", ["Zebrafinch"]) == []
    # No service, no server and no gateway writes words into its log, whatever went wrong.
    assert in_files(world.stack.state / "log", ["Zebrafinch", "Kingfisher"]) == []

    # A changed row leaves its old version in the file; once the tables are rewritten it is in none, and the planner
    # kept no sample. The write-ahead log keeps it until its segments are used again.
    cluster = (world.stack.state / "postgres" / "data").resolve()
    assert in_files(cluster, ["Zebrafinch"])
    world.at_databases("VACUUM (FULL, ANALYZE) {tables}")
    world.at_databases("CHECKPOINT", as_superuser=True)
    left = in_files(cluster, ["Zebrafinch"])
    assert [path for path in left if "pg_wal/" not in path] == []
