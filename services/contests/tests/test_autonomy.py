"""Contests with the real registry: it lets agents in whose events are late, and plays on without it."""

from contextlib import AsyncExitStack

import pytest

from common.provision import provision
from embedded.nats import Nats
from testkit.fixtures import Start, Started, admin

from .helpers import W04, Player, cheapest, ok, player, week_four_is_open


async def registered(registry: Started, contests: Started, name: str) -> Player:
    answer = await ok(await registry.client.post("/api/v1/agents", json={"name": name, "model": "openai/gpt-5"}))
    return Player(contests, player(contests).agent_id, answer["api_key"])


async def hold_back_the_registry(server: Nats) -> None:
    """Nothing that registry says reaches contests from now on, until the durables are provisioned again."""
    async with admin(server) as client:
        for stream in ("REGISTRY", "REGISTRY_KEYS"):
            await client.jetstream().delete_consumer(stream, "contests")


@pytest.mark.rule("A1")
async def test_a_new_agents_first_lineup_is_taken_though_its_events_have_not_arrived(
    start: Start, nats_server: Nats
) -> None:
    async with start("contests", clock="replay") as contests, start("registry", clock="replay") as registry:
        await week_four_is_open(contests)
        await hold_back_the_registry(nats_server)
        agent = await registered(registry, contests, "Early Bird")
        await registry.settle()
        taken = await ok(await agent.submit(cheapest()))
        assert (taken["revision"], taken["model"]) == (1, "openai/gpt-5")
        # Its key may change and its model too, and still nothing has arrived.
        headers = agent.headers
        await ok(await registry.client.patch("/api/v1/agents/me", json={"model": "new/model"}, headers=headers))
        key = (await ok(await registry.client.post("/api/v1/agents/me/key", headers=headers)))["api_key"]
        changed = Player(contests, agent.agent_id, key)
        assert (await agent.submit(cheapest(number=1))).status_code == 401
        # The model is that of the last word about the agent that contests has heard.
        assert (await ok(await changed.submit(cheapest(number=1))))["revision"] == 2
        # When all of it arrives, once or twice, nothing is undone.
        async with admin(nats_server) as client:
            await provision(client.jetstream())
        await contests.settle()
        assert await contests.dead_letters() == []
        last = await ok(await changed.submit(cheapest(number=2)))
        assert (last["revision"], last["model"]) == (3, "new/model")
        assert (await agent.submit(cheapest(number=3))).status_code == 401


@pytest.mark.rule("A1")
async def test_known_agents_play_on_while_the_registry_is_down(start: Start) -> None:
    async with start("contests", clock="replay") as contests:
        await week_four_is_open(contests)
        async with AsyncExitStack() as life:
            registry = await life.enter_async_context(start("registry"))
            known = await registered(registry, contests, "Known")
            asked = await registered(registry, contests, "Asked")
            await registry.settle()
            await contests.settle()
            await ok(await asked.submit(cheapest()))
        assert (await ok(await known.submit(cheapest())))["revision"] == 1
        assert (await ok(await asked.submit(cheapest(number=1))))["revision"] == 2
        assert (await known.submit(cheapest(), call="/check")).status_code == 200
        stranger = await player(contests, 9).submit(cheapest())
        assert (stranger.status_code, stranger.headers["retry-after"]) == (503, "1")


@pytest.mark.rule("A11")
async def test_submissions_checks_and_reads_of_pools_and_leaves_have_limits(start: Start) -> None:
    async with start("contests", clock="replay") as contests, start("registry") as registry:
        await week_four_is_open(contests)
        contests.runtime.settings.limits.update(
            {"submissions": "2/3600", "checks": "3/3600", "submissions-by-address": "5/3600", "pool-reads": "2/3600"}
            | {"leaf-reads": "1/3600"}
        )
        one, two, three = [await registered(registry, contests, name) for name in ("One", "Two", "Three")]

        async def statuses(agent: Player, call: str = "", times: int = 3) -> list[int]:
            return [(await agent.submit(cheapest(number=n), call=call)).status_code for n in range(times)]

        assert await statuses(one) == [201, 201, 429]
        assert await statuses(one, "/check", 4) == [200, 200, 200, 429]
        assert await statuses(two, times=2) == [201, 201]
        # The address has had its five by now, whatever the key; one of them was refused by the limit of a key.
        refused = await three.submit(cheapest())
        assert refused.status_code == 429
        assert refused.json()["limit"]["name"] == "submissions-by-address"
        assert int(refused.headers["retry-after"]) == refused.json()["retry_after"] > 0
        pools = [await contests.client.get(f"/api/v1/contests/{W04}/pool") for _ in range(3)]
        assert [pool.status_code for pool in pools] == [200, 200, 429]
        assert pools[0].headers["ratelimit-policy"] == '"pool-reads";q=2;w=3600'
        assert pools[2].headers["ratelimit"].startswith('"pool-reads";r=0;t=')
        leaves = [await contests.client.get(f"/api/v1/contests/{W04}/commitment/leaves") for _ in range(2)]
        assert [answer.status_code for answer in leaves] == [409, 429]
