"""Events in, boards out: in any order, any number of times, the same boards."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any

import pytest
from sqlalchemy import delete, select

from boards.consumers import HANDLERS
from boards.store import ROW_WEEKS, SHOWN, WORDS
from common import events as ev
from common import topology
from common.inbox import apply
from common.provision import provision
from embedded.nats import Nats
from testkit.fixtures import Start, admin

Tell = Callable[..., Awaitable[Any]]


async def digest_of(service):
    answer = await service.operator.get("/operator/api/v1/boards/digest")
    assert answer.status_code == 200, answer.text
    return answer.json()["digest"]


def a_season(script):
    agents = [
        script.Agent("alice", "openai/gpt-5", skill=13_000),
        script.Agent("bob", "anthropic/claude"),
        script.Agent("carol", "openai/gpt-5", claimed=False),
        script.Agent("house-1", "openai/gpt-5", marks=script.COHORT, skill=12_000),
        script.Agent("random", "reference/random-legal", marks=script.REFERENCE, skill=7_000),
    ]
    told = [pair for agent in agents for pair in agent.told()]
    for number in (1, 2, 3):
        told += script.Week(number).told(agents)
    told += [(event, 2) for event in script.Week(2).results(agents, version=2)]
    return told


@pytest.mark.rule("B7", "O4")
async def test_the_order_and_the_number_of_deliveries_do_not_matter(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    told = a_season(script)
    async with start("boards") as service:
        await tell(service, told)
        expected = await digest_of(service)
        models = (await service.client.get("/api/v1/boards/models")).json()
        contest = (await service.client.get("/api/v1/contests/2017-W02/lineups")).json()
    assert models["contests"] == ["2017-W01", "2017-W02", "2017-W03"]
    for seed in range(4):
        shuffled = list(told)
        random.Random(seed).shuffle(shuffled)
        async with start("boards") as service:
            deliveries = await tell(service, shuffled, batch=1 + 40 * (seed % 2))
            again = random.Random(seed).sample(deliveries, 60)
            async with service.runtime.database.transaction() as connection:
                assert not await apply(connection, again, HANDLERS)
            assert await digest_of(service) == expected
            assert (await service.client.get("/api/v1/boards/models")).json() == models
            assert (await service.client.get("/api/v1/contests/2017-W02/lineups")).json() == contest


@pytest.mark.rule("B7")
async def test_boards_dropped_and_rebuilt_are_byte_for_byte_the_same(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    async with start("boards") as service:
        await tell(service, a_season(script))
        before = (await service.client.get("/api/v1/boards/models?metric=share")).content
        expected = await digest_of(service)
        async with service.runtime.database.transaction() as connection:
            await connection.execute(delete(ROW_WEEKS).where(ROW_WEEKS.c.contest == "2017-W01"))
            await connection.execute(delete(SHOWN).where(SHOWN.c.contest == "2017-W03"))
        assert await digest_of(service) != expected
        answer = await service.operator.post("/operator/api/v1/boards/rebuild")
        assert answer.status_code == 200, answer.text
        assert (answer.json()["digest"], answer.json()["changed"]) == (expected, True)
        assert (await service.client.get("/api/v1/boards/models?metric=share")).content == before


@pytest.mark.rule("B7")
async def test_an_empty_database_that_reads_the_streams_anew_shows_the_same_boards(
    start: Start, nats_server: Nats, script: ModuleType
) -> None:
    async with start("boards") as service:
        for event, version in a_season(script):
            await service.publish(event, version)
        await service.settle()
        expected = await digest_of(service)
        boards = (await service.client.get("/api/v1/boards/agents")).content
    async with admin(nats_server) as client:
        for durable in topology.durables_of("boards"):
            await client.jetstream().delete_consumer(durable.stream, "boards")
        await provision(client.jetstream())
    async with start("boards") as second:
        await second.settle()
        assert await digest_of(second) == expected
        assert (await second.client.get("/api/v1/boards/agents")).content == boards


@pytest.mark.rule("S4", "B7")
async def test_boards_switch_to_a_version_only_when_all_of_it_is_here(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    agents = [script.Agent("alice", "m"), script.Agent("bob", "m")]
    week = script.Week(1)
    first = [(event, 1) for event in week.results(agents)]
    second = [(event, 2) for event in week.results(agents, version=2)]
    async with start("boards") as service:
        await tell(service, [(week.opened(), 1), *[pair for agent in agents for pair in agent.told()]])
        await tell(service, [(week.locked(2), 2), *[(week.lineup(agent), 1) for agent in agents]])

        async def sums():
            rows = (await service.client.get("/api/v1/boards/models")).json()["rows"]
            return [row["sums"] for row in rows]

        await tell(service, first[:-1])
        assert await sums() == []
        await tell(service, first[-1:])
        assert await sums() == [[sum(week.points(agent) for agent in agents)]]
        await tell(service, second[-1:])
        await tell(service, second[:1])
        assert await sums() == [[sum(week.points(agent) for agent in agents)]]
        assert (await service.client.get("/api/v1/contests/2017-W01/results")).json()["settlement"] == 1
        await tell(service, second[1:-1])
        assert await sums() == [[sum(week.points(agent, 2) for agent in agents)]]
        results = (await service.client.get("/api/v1/contests/2017-W01/results")).json()
        assert (results["settlement"], results["reason"]) == (2, "a statistic was corrected")


@pytest.mark.rule("B7", "S4")
async def test_results_that_are_not_what_their_digest_says_are_not_shown(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    agents, week = [script.Agent("alice", "m"), script.Agent("bob", "m")], script.Week(1)
    first, second, settled = week.results(agents)
    wrong = second.model_copy(update={"points": second.points + 1})
    async with start("boards") as service:
        await tell(service, [*week.told(agents)[:4], *[pair for agent in agents for pair in agent.told()]])
        await tell(service, [(first, 1), (settled, 1), (wrong, 1)])
        assert (await service.client.get("/api/v1/boards/models")).json()["rows"] == []
        assert (await service.client.get("/api/v1/contests/2017-W01/results")).json()["state"] == "locked"
        assert (await service.operator.post("/operator/api/v1/boards/rebuild")).json()["contests"] == 0
        await tell(service, [(event, 2) for event in week.results(agents, version=2)])
        assert (await service.client.get("/api/v1/contests/2017-W01/results")).json()["settlement"] == 2
        assert (await service.operator.post("/operator/api/v1/boards/rebuild")).json()["contests"] == 1


@pytest.mark.rule("M2")
@pytest.mark.parametrize("seed", range(6))
async def test_a_text_stands_only_after_the_last_verdict_that_barred_it(
    start: Start, script: ModuleType, tell: Tell, seed: int
) -> None:
    """Released, then flagged, then cleared and released again, in any order; and flagged for good."""
    agent = script.Agent("alice", "m")
    week, other = script.Week(1), script.Week(2)
    words = [
        (week.judged(agent), 1),
        (week.released(agent), 2),
        (week.judged(agent, ev.State.FLAGGED), 3),
        (week.judged(agent), 4),
        (week.released(agent), 5),
        (other.released(agent), 2),
        (other.judged(agent, ev.State.FLAGGED), 3),
    ]
    random.Random(seed).shuffle(words)
    async with start("boards") as service:
        await tell(service, [*agent.told(), *week.told([agent], words=False), *other.told([agent], words=False)])
        await tell(service, words, batch=1)
        shown = (await service.client.get("/api/v1/contests/2017-W01/lineups")).json()["lineups"][0]["thesis"]
        assert shown == {"text": "alice says at /thesis", "withheld": None}
        barred = (await service.client.get("/api/v1/contests/2017-W02/lineups")).json()["lineups"][0]["thesis"]
        assert barred == {"text": None, "withheld": "flagged"}
        async with service.runtime.database.transaction() as connection:
            kept = (
                await connection.execute(
                    select(WORDS.c.text).where(WORDS.c.lineup_id == other.lineup_id(agent), WORDS.c.text.is_not(None))
                )
            ).all()
        assert kept == [], "boards must not even hold a text that is not cleared"


@pytest.mark.rule("A5", "M2")
@pytest.mark.parametrize("seed", range(4))
async def test_words_that_are_withdrawn_are_not_even_held_until_they_are_released_again(
    start: Start, script: ModuleType, tell: Tell, seed: int
) -> None:
    """Of an agent that was released by its owner (and in another week claimed again), in any order."""
    agent = script.Agent("alice", "m")
    week, other = script.Week(1), script.Week(2)
    words = [
        (event, version)
        for one, last in ((week, 3), (other, 4))
        for event, version in (
            (one.judged(agent), 1),
            (one.released(agent), 2),
            (one.withdrawn(agent), 3),
            (one.released(agent), 4),
        )
        if version <= last
    ]
    random.Random(seed).shuffle(words)
    async with start("boards") as service:
        await tell(service, [*agent.told(), *week.told([agent], words=False), *other.told([agent], words=False)])
        await tell(service, words, batch=1)
        async with service.runtime.database.transaction() as connection:
            kept = await connection.execute(select(WORDS.c.lineup_id).where(WORDS.c.text.is_not(None)).distinct())
        assert kept.scalars().all() == [other.lineup_id(agent)]
        shown = (await service.client.get("/api/v1/contests/2017-W02/lineups")).json()["lineups"][0]["thesis"]
        assert shown == {"text": "alice says at /thesis", "withheld": None}


async def test_the_newest_state_of_an_agent_counts_whatever_comes_last(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    agent = script.Agent("alice", "m")
    week = script.Week(1)
    async with start("boards") as service:
        await tell(service, [(agent.state(ev.AgentClaimed), 3), *week.told([agent])])
        await tell(service, [(agent.state(claimed=False), 1), *agent.told()[1:]])
        rows = (await service.client.get("/api/v1/boards/agents")).json()["rows"]
        assert [row["label"] for row in rows] == ["agent:alice"]


@pytest.mark.rule("C6", "M1")
@pytest.mark.parametrize("older_first", [True, False])
async def test_the_newest_pool_counts_and_who_left_it_keeps_the_name_in_lineups(
    start: Start, script: ModuleType, tell: Tell, older_first: bool
) -> None:
    week, alice = script.Week(1), script.Agent("alice", "openai/gpt-5")
    first = week.opened()
    lineup = week.lineup(alice)
    gone = lineup.picks[0].player_id
    left = tuple(player for player in first.players if player.player_id != gone)
    second = first.model_copy(update={"players": left, "pool": 2, "price_source": "a newer file"})
    pools = [(first, 1), (second, 2)]
    async with start("boards") as service:
        await tell(service, [*alice.told(), *(pools if older_first else reversed(pools))])
        shown = (await service.client.get("/api/v1/contests/2017-W01")).json()
        await tell(service, [(week.locked(1).model_copy(update={"pool": 2}), 3), (lineup, 2)])
        results = (await service.client.get("/api/v1/contests/2017-W01/lineups")).json()
        scores = (await service.client.get("/api/v1/contests/2017-W01/results")).json()
    assert shown.get("price_source", "a newer file") == "a newer file"
    (entry,) = results["lineups"]
    (name,) = (player.player_name for player in first.players if player.player_id == gone)
    assert next(pick["name"] for pick in entry["picks"] if pick["player_id"] == gone) == name
    assert gone not in {player["player_id"] for player in scores["players"]}
    assert len(scores["players"]) == len(left)
