"""Changing a key (A3): answered once contests has taken the new one, else the old one is good (docs/adr/0009)."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import httpx
import pytest
from sqlalchemy import select, update

from common import events as ev
from common.topology import AGENT_BY_KEY, KEY_CHANGED_NOW
from embedded.nats import Nats
from registry import domain
from registry.store import AGENTS
from testkit.fixtures import Start, Started, admin


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


async def register(registry: Started, name: str = "Alice") -> str:
    answer = await registry.client.post("/api/v1/agents", json={"name": name, "model": "openai/gpt-5"})
    assert answer.status_code == 201, answer.text
    key: str = answer.json()["api_key"]
    return key


async def rotate(registry: Started, key: str, **headers: str) -> httpx.Response:
    answer: httpx.Response = await registry.client.post(
        "/api/v1/agents/me/key", headers={**bearer(key), **{n.replace("_", "-"): v for n, v in headers.items()}}
    )
    return answer


async def let_in(service: Started, key: str) -> bool:
    """Whether a service takes a key: the registry knows its agent, contests has no lineup of it (404, not 401)."""
    path = "/api/v1/agents/me" if service.runtime.name == "registry" else "/api/v1/contests/2017-W04/lineups/mine"
    answer = await service.client.get(path, headers=bearer(key))
    assert answer.status_code in (200, 401, 404), answer.text
    return answer.status_code != 401


async def one_key_alone(registry: Started, contests: Started, good: str, *dead: str) -> None:
    for service in (registry, contests):
        assert await let_in(service, good), service.runtime.name
        for key in dead:
            assert not await let_in(service, key), service.runtime.name


@asynccontextmanager
async def contests_that(server: Nats, answer: dict[str, Any] | None) -> AsyncIterator[list[dict[str, Any]]]:
    """Whoever answers in contests' place: with ``answer``, or never."""
    heard: list[dict[str, Any]] = []
    async with admin(server) as client:

        async def take(message: Any) -> None:
            heard.append(json.loads(message.data))
            if answer is not None:
                await message.respond(json.dumps(answer).encode())

        await client.subscribe(KEY_CHANGED_NOW, cb=take)
        await client.flush()
        yield heard


@pytest.mark.rule("A3")
async def test_after_the_answer_the_old_key_is_refused_by_contests_at_once(start: Start) -> None:
    async with start("contests") as contests, start("registry") as registry:
        key = await register(registry)
        await registry.settle()
        await contests.settle()
        for _ in range(20):
            answer = await rotate(registry, key)
            assert answer.status_code == 200, answer.text
            new = answer.json()["api_key"]
            # No waiting for an event in between.
            assert not await let_in(contests, key)
            assert await let_in(contests, new)
            assert not await let_in(registry, key)
            key = new
        await registry.settle()
        await contests.settle()
        assert await let_in(contests, key)
        told = await registry.envelopes(ev.AgentKeyChanged)
        versions = [envelope.aggregateversion for envelope, _ in told]
        assert versions == sorted(set(versions))
        assert told[-1][1].key_hash == domain.digest(key)


@pytest.mark.rule("A3")
async def test_with_contests_down_the_answer_is_503_and_the_old_key_stays_good(start: Start) -> None:
    async with start("registry") as registry:
        key = await register(registry)
        answer = await rotate(registry, key)
        assert answer.status_code == 503, answer.text
        assert answer.json()["code"] == "key-not-taken"
        assert "api_key" not in answer.text
        assert int(answer.headers["retry-after"]) > 0
        assert await let_in(registry, key)
        async with start("contests") as contests:
            await contests.settle()
            assert await let_in(contests, key)
            new = (await rotate(registry, key)).json()["api_key"]
            await one_key_alone(registry, contests, new, key)


@pytest.mark.rule("A3")
async def test_with_the_bus_down_the_answer_is_503_and_afterwards_all_is_as_before(
    start: Start, nats_server: Nats
) -> None:
    async with start("contests") as contests, start("registry") as registry:
        key = await register(registry)
        await registry.settle()
        await contests.settle()
        nats_server.stop()
        answer = await rotate(registry, key)
        assert answer.status_code == 503, answer.text
        assert await let_in(registry, key)
        assert await let_in(contests, key)
        nats_server.start()
        async with asyncio.timeout(30):
            while (answer := await rotate(registry, key)).status_code == 503:  # noqa: ASYNC110 (nothing tells)
                await asyncio.sleep(0.2)
        await one_key_alone(registry, contests, answer.json()["api_key"], key)


@pytest.mark.rule("A3")
async def test_a_refusal_by_contests_leaves_the_old_key_good(start: Start, nats_server: Nats) -> None:
    async with start("registry") as registry:
        key = await register(registry)
        async with contests_that(nats_server, {"taken": False}) as heard:
            assert (await rotate(registry, key)).status_code == 503
        assert len(heard) == 1
        async with start("contests") as contests:
            await contests.settle()
            assert await let_in(contests, key)
            # Contests cannot have been told of the refused key under a version that would win.
            await registry.settle()
            await contests.settle()
            await one_key_alone(registry, contests, key)


@pytest.mark.rule("A3")
async def test_an_offer_that_contests_takes_too_late_is_undone_by_the_old_key(start: Start, nats_server: Nats) -> None:
    async with start("registry") as registry:
        key = await register(registry)
        async with contests_that(nats_server, None) as heard:
            assert (await rotate(registry, key)).status_code == 503
        async with start("contests") as contests:
            await contests.settle()
            await registry.settle()
            late = await registry.runtime.bus.request(KEY_CHANGED_NOW, heard[0])
            assert late == {"taken": False}
            assert await let_in(contests, key)


@pytest.mark.rule("A3")
async def test_a_crash_after_contests_took_the_key_leaves_the_old_one_good(start: Start) -> None:
    """The registry dies between contests' word and its own commit: its row says offered, nothing has been told."""
    async with start("contests") as contests, start("registry") as registry:
        key = await register(registry)
        await registry.settle()
        await contests.settle()
        lost = domain.secret(domain.KEY_PREFIX, bytes(32))
        async with registry.runtime.database.transaction() as connection:
            agent_id, version = (await connection.execute(select(AGENTS.c.agent_id, AGENTS.c.key_version))).one()
            await connection.execute(update(AGENTS).values(key_offer=version + 1))
        offer = {"agent_id": str(agent_id), "key_hash": domain.digest(lost), "version": version + 1}
        assert await registry.runtime.bus.request(KEY_CHANGED_NOW, offer) == {"taken": True}
        # The old key's next use puts things right.
        await one_key_alone(registry, contests, key, lost)
        new = (await rotate(registry, key)).json()["api_key"]
        await one_key_alone(registry, contests, new, key, lost)
        await registry.settle()
        await contests.settle()
        await one_key_alone(registry, contests, new, key, lost)


@pytest.mark.rule("A3")
async def test_a_crash_before_contests_heard_of_the_key_changes_nothing(start: Start) -> None:
    async with start("contests") as contests, start("registry") as registry:
        key = await register(registry)
        await registry.settle()
        await contests.settle()
        async with registry.runtime.database.transaction() as connection:
            await connection.execute(update(AGENTS).values(key_offer=AGENTS.c.key_version + 1))
        assert await let_in(contests, key)
        new = (await rotate(registry, key)).json()["api_key"]
        await one_key_alone(registry, contests, new, key)


@pytest.mark.rule("A3")
async def test_rotations_at_once_and_uses_of_the_old_key_in_between_agree_in_the_end(start: Start) -> None:
    async with start("contests") as contests, start("registry") as registry:
        for round_ in range(5):
            key = await register(registry, f"agent {round_}")

            async def use(key: str = key) -> None:
                await contests.client.get("/api/v1/contests/2017-W04/lineups/mine", headers=bearer(key))

            results = await asyncio.gather(*(rotate(registry, key) for _ in range(8)), *(use() for _ in range(8)))
            answers = [answer for answer in results if answer is not None]
            new = [answer.json()["api_key"] for answer in answers if answer.status_code == 200]
            assert len(new) == 1, [answer.status_code for answer in answers]
            await one_key_alone(registry, contests, new[0], key)


@pytest.mark.rule("A3")
async def test_the_registry_tells_no_key_while_a_new_one_is_being_given_out(start: Start, nats_server: Nats) -> None:
    async with start("registry") as registry:
        key = await register(registry)
        async with admin(nats_server) as client, contests_that(nats_server, None) as heard:
            giving = asyncio.create_task(rotate(registry, key))
            async with asyncio.timeout(30):
                while not heard:  # noqa: ASYNC110 (nothing tells)
                    await asyncio.sleep(0.01)
            question = json.dumps({"key_hash": domain.digest(key)}).encode()
            told = json.loads((await client.request(AGENT_BY_KEY, question, timeout=5)).data)
            # It came after the attempt had failed, and stands above what was offered.
            assert giving.done() or (await giving).status_code == 503
            assert told["agent"]["key_version"] == 3
            assert UUID(told["agent"]["agent_id"])


@pytest.mark.rule("A3")
async def test_the_last_use_of_a_key_is_kept_once_in_a_while(start: Start) -> None:
    async with start("registry") as registry:
        key = await register(registry)

        async def used() -> str | None:
            listed = (await registry.operator.get("/operator/api/v1/agents")).json()["agents"]
            found: str | None = listed[0]["key_used_at"]
            return found

        assert await used() is None
        await let_in(registry, key)
        first = await used()
        assert first is not None
        await let_in(registry, key)
        assert await used() == first


@pytest.mark.rule("A3")
async def test_after_the_answer_the_next_lineup_carries_the_new_model(start: Start, nats_server: Nats) -> None:
    async with start("contests") as contests, start("registry") as registry:
        key = await register(registry)
        await registry.settle()
        await contests.settle()
        async with admin(nats_server) as client:
            # No event reaches contests from now on.
            await client.jetstream().delete_consumer("REGISTRY", "contests")
        answer = await registry.client.patch("/api/v1/agents/me", json={"model": "demo/second"}, headers=bearer(key))
        assert answer.status_code == 200, answer.text
        known = (await contests.operator.get("/operator/api/v1/contests/agents")).json()["agents"]
        assert [agent["model"] for agent in known] == ["demo/second"]


@pytest.mark.rule("A3")
async def test_with_contests_down_an_agent_changes_all_the_same(start: Start) -> None:
    async with start("registry") as registry:
        key = await register(registry)
        answer = await registry.client.patch("/api/v1/agents/me", json={"model": "demo/second"}, headers=bearer(key))
        assert (answer.status_code, answer.json()["model"]) == (200, "demo/second")
