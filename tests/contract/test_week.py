"""A small week through all five services in this process: everything that any of them sends satisfies the contract."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import time
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from uuid import UUID

from jsonschema import Draft202012Validator, FormatChecker
from nats.js.errors import NotFoundError

from common import events as ev
from common import topology
from common.erasure import erase_redacted
from embedded.nats import Nats
from house.field import view
from house.strategies import Strategy, Style, play
from mafl.models import Contest, Pool
from registry import people
from registry.store import Store
from testkit import contracts
from testkit.fixtures import Start, Started, admin

DATA = contracts.ROOT / "data"


async def test_every_event_that_is_sent_satisfies_its_schema_and_is_taken(start: Start, nats_server: Nats) -> None:
    async with AsyncExitStack() as stack:
        running = {name: await stack.enter_async_context(start(name, clock="replay")) for name in topology.SERVICES}
        await _a_week(running)
        await _a_redaction(running, nats_server)
        for service in running.values():
            assert await service.dead_letters() == []

        sent = await _everything_on_the_bus(nats_server)
        for envelope in sent:
            event = ev.BY_SUBJECT[envelope["type"]]
            schema = contracts.event_schema(event)
            Draft202012Validator(schema, format_checker=FormatChecker()).validate(envelope)
        assert {envelope["type"] for envelope in sent} == {event.subject() for event in ev.EVENTS}

        board = (await running["boards"].client.get("/api/v1/boards/models")).json()
        assert {row["model"] for row in board["rows"]} == {"demo/one", "demo/two"}
        agents = (await running["boards"].client.get("/api/v1/boards/agents")).json()
        assert [row["name"] for row in agents["rows"]] == ["Contract Claimed"]


async def _waits(moderation: Started) -> bool:
    waiting = (await moderation.operator.get("/operator/api/v1/moderation/backlog")).json()
    return bool(waiting["texts"] or waiting["names"] or waiting["models"])


async def _a_week(running: dict[str, Started]) -> None:
    registry, contests, settlement = running["registry"], running["contests"], running["settlement"]

    async def quiet() -> None:
        for _ in range(2):
            for service in running.values():
                await service.settle()
            # What waits to be judged is on no bus.
            deadline = time.monotonic() + 30
            while await _waits(running["moderation"]):
                assert time.monotonic() < deadline
                await asyncio.sleep(0.02)
        for service in running.values():
            await service.settle()

    async def ok(answer) -> dict:
        assert answer.status_code in (200, 201), answer.text
        return answer.json()

    keys = {}
    for name, model in (("Contract Claimed", "demo/one"), ("Contract Unclaimed", "demo/two")):
        made = await ok(await registry.client.post("/api/v1/agents", json={"name": name, "model": model}))
        keys[made["agent"]["id"]] = made["api_key"]
    claimed, released = keys
    head = {"Authorization": f"Bearer {keys[claimed]}"}
    await ok(await registry.client.patch("/api/v1/agents/me", json={"description": "Plays."}, headers=head))
    for agent in (claimed, released):
        await ok(await registry.operator.post(f"/operator/api/v1/agents/{agent}/claim", json={"owner": "Someone"}))
    await ok(await registry.operator.post(f"/operator/api/v1/agents/{released}/release"))
    await ok(await registry.operator.put("/operator/api/v1/models/demo/two", json={"canonical": "demo/two"}))

    # A name that moderation flags, and whose owner asks a person to look at it.
    named = {"name": "Call 212-555-0147", "model": "demo/one"}
    flagged = (await ok(await registry.client.post("/api/v1/agents", json=named)))["agent"]["id"]
    owner = await ok(await registry.operator.post(f"/operator/api/v1/agents/{flagged}/claim", json={"owner": "Ann"}))
    await quiet()
    async with registry.runtime.database.transaction() as connection:
        now = await registry.runtime.clock.now(connection)
        await people.ask_review(Store(connection), UUID(owner["owner_id"]), UUID(flagged), None, now=now)

    # Noon of the Sunday: a pool of one file, one week of it.
    pool_file = (DATA / "pool_2017_dk.csv.gz").read_bytes()
    await ok(
        await contests.operator.post(
            "/operator/api/v1/contests/import", params={"season": 2017, "week": 1}, content=pool_file
        )
    )
    await contests.move_clock(datetime.fromisoformat("2017-09-09T12:00:00+00:00"))
    await ok(await contests.operator.post("/operator/api/v1/contests/2017-W01/open"))
    # The week after is called off.
    await ok(
        await contests.operator.post(
            "/operator/api/v1/contests/import", params={"season": 2017, "week": 2}, content=pool_file
        )
    )
    for call, body in (("open", None), ("cancel", {"reason": "Nobody will play."})):
        await ok(await contests.operator.post(f"/operator/api/v1/contests/2017-W02/{call}", json=body))
    await quiet()

    contest = Contest.model_validate(await ok(await contests.client.get("/api/v1/contests/2017-W01")))
    pool = Pool.model_validate(await ok(await contests.client.get("/api/v1/contests/2017-W01/pool")))
    for agent, key in keys.items():
        entry = play(agent, Style(Strategy.RANDOM), view(contest, pool, {}))
        await ok(
            await contests.client.post(
                "/api/v1/contests/2017-W01/lineups",
                json=entry.body(),
                headers={"Authorization": f"Bearer {key}"},
            )
        )
    monday = max(pool.players, key=lambda player: player.kickoff)
    game = next(
        player
        for player in (await contests.client.get("/api/v1/contests/2017-W01/pool")).json()["players"]
        if player["player_id"] == monday.player_id
    )["game_id"]
    later = monday.kickoff + timedelta(minutes=15)
    await ok(
        await contests.operator.post(
            "/operator/api/v1/contests/2017-W01/reschedule",
            json={"game_id": game, "kickoff": later.isoformat()},
        )
    )
    await contests.move_clock(contest.locks_at)
    await quiet()

    statistics = gzip.decompress((DATA / "weekly_stats_2017.csv.gz").read_bytes())
    for final in ("false", "true"):
        await ok(
            await settlement.operator.post(
                "/operator/api/v1/statistics",
                params={"season": 2017, "week": 1, "final": final},
                content=statistics,
            )
        )
        await quiet()
    settled = await ok(await settlement.operator.post("/operator/api/v1/contests/2017-W01/settle", json={}))
    assert settled["lineups"] == 2
    await quiet()


async def _a_redaction(running: dict[str, Started], server: Nats) -> None:
    """A text of a locked lineup goes for good, and an agent's name; the provisioner erases the messages with them."""
    lineups = (await running["boards"].client.get("/api/v1/contests/2017-W01/lineups")).json()["lineups"]
    order = {"lineup_id": lineups[0]["lineup"], "pointer": "/thesis", "reason": "decency", "note": "Case 1."}
    answer = await running["moderation"].operator.post("/operator/api/v1/moderation/redactions", json=order)
    assert answer.status_code == 200, answer.text
    agents = (await running["registry"].operator.get("/operator/api/v1/agents")).json()["agents"]
    (named,) = (agent["id"] for agent in agents if agent["name"].startswith("Call "))
    wanted = {"fields": ["name"], "reason": "personal-data"}
    answer = await running["registry"].operator.post(f"/operator/api/v1/agents/{named}/redactions", json=wanted)
    assert answer.status_code == 200, answer.text
    for _ in range(3):
        for service in running.values():
            await service.settle()
        async with admin(server) as client:
            await erase_redacted(client, client.jetstream(), second_look=timedelta(hours=1))


async def _everything_on_the_bus(server: Nats) -> list[dict]:
    found = []
    async with admin(server) as client:
        js = client.jetstream()
        for stream in topology.STREAMS:
            if stream.name in (topology.DEAD_LETTERS, topology.DEAD_PRIVATE, topology.ADVISORIES):
                continue
            last = (await js.stream_info(stream.name)).state.last_seq
            for sequence in range(1, last + 1):
                with contextlib.suppress(NotFoundError):  # Erased, for its words were redacted.
                    message = await js.get_msg(stream.name, sequence)
                    found.append(json.loads(message.data or b""))
    return found
