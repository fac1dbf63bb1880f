"""Retries, races and sizes: the same request many times at once, one agent at two clients, nobody and everybody."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from common import events as ev
from contests import imports
from testkit.fixtures import Start, Started

from .helpers import (
    LOCK,
    NEXT_YEAR,
    OPENED,
    TICK,
    W04,
    Player,
    cheapest,
    data,
    join,
    kick_off_in,
    next_year_is_open,
    next_years_players,
    ok,
    player,
    pool_file,
    row,
    week_four_is_open,
)

Copies = tuple[Started, Started]


@asynccontextmanager
async def two_copies(start: Start) -> AsyncIterator[Copies]:
    """Two copies on one database, with 2017-W04 open."""
    async with (
        start("contests", clock="replay") as one,
        start("contests", clock="replay", database_url=one.database_url) as two,
    ):
        await week_four_is_open(one)
        yield one, two


async def kept(agent: Player, contest: str = W04) -> list[dict[str, Any]]:
    revisions: list[dict[str, Any]] = (await ok(await agent.get(f"{contest}/lineups/mine/revisions")))["revisions"]
    return revisions


@pytest.mark.rule("C9", "O2")
async def test_the_same_submission_twenty_times_at_once_over_two_copies_is_one_revision(start: Start) -> None:
    async with two_copies(start) as copies:
        (agent,) = await join(copies[0], 1)
        for round_ in range(3):
            lineup = cheapest(number=round_)
            sending = [agent.at(copies[n % 2]).submit(lineup, key=f"once {round_}") for n in range(20)]
            answers = await asyncio.gather(*sending)
            assert {answer.status_code for answer in answers} == {201}
            assert len({answer.content for answer in answers}) == 1
            assert answers[0].json()["revision"] == round_ + 1
        assert len(await kept(agent)) == 3
        await copies[0].settle()
        assert [event.revision for event in await copies[0].published(ev.LineupSubmitted)] == [1, 2, 3]


@pytest.mark.rule("C9", "O2")
async def test_of_different_lineups_at_once_with_one_key_one_is_taken_and_the_others_are_told(start: Start) -> None:
    async with two_copies(start) as copies:
        (agent,) = await join(copies[0], 1)
        lineups = [cheapest(number=number) for number in range(10)] * 2
        answers = await asyncio.gather(
            *(agent.at(copies[n % 2]).submit(lineup, key="one") for n, lineup in enumerate(lineups))
        )
        (revision,) = await kept(agent)
        for lineup, answer in zip(lineups, answers, strict=True):
            if lineup == revision["body"]:
                assert (answer.status_code, answer.json()["receipt"]) == (201, revision["receipt"])
            else:
                assert (answer.status_code, answer.json()["code"]) == (409, "idempotency-key-reused")


@pytest.mark.rule("C9", "A3")
async def test_a_first_answer_outlives_a_new_key_a_new_model_a_new_process_and_the_lock(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        (agent,) = await join(service, 1)
        first = await agent.submit(cheapest(), key="k")
        assert first.status_code == 201
        rotated = Player(service, agent.agent_id, player(service, 99).key)
        await service.publish(ev.AgentKeyChanged(agent_id=agent.agent_id, key_hash=rotated.key_hash), version=2)
        # A model that it could not submit with any more.
        changed = ev.AgentUpdated(agent_id=agent.agent_id, agent_name="a", model="reference/cheapest")
        await service.publish(changed, version=2)
        await service.settle()
        assert (await rotated.submit(cheapest(), key="other")).json()["code"] == "model-reserved"
        for now in (OPENED, LOCK - TICK, LOCK, LOCK + timedelta(days=400)):
            await service.move_clock(now)
            again = await rotated.submit(cheapest(), key="k")
            assert (again.status_code, again.content) == (201, first.content)
            reused = await rotated.submit(cheapest(number=1), key="k")
            assert (reused.status_code, reused.json()["code"]) == (409, "idempotency-key-reused")
            faulty = await rotated.submit(cheapest() | {"thesis": ""}, key="k")
            assert faulty.status_code in (409, 422)
        address = service.database_url
    async with start("contests", clock="replay", database_url=address) as service:
        again = await rotated.at(service).submit(cheapest(), key="k")
        assert (again.status_code, again.content) == (201, first.content)
        assert len(await kept(rotated.at(service))) == 1


@pytest.mark.rule("C9")
async def test_a_key_belongs_to_one_agent_and_one_contest_and_may_be_any_odd_text(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        params = {"season": 2017, "week": 5}
        whole = data("pool_2017_dk.csv.gz")
        await ok(await service.operator.post("/operator/api/v1/contests/import", content=whole, params=params))
        await ok(await service.operator.post("/operator/api/v1/contests/2017-W05/open"))
        fifth = imports.read(whole, 2017, 5).weeks[0].players
        one, other = await join(service, 1, 2)
        chance = random.Random(9)
        odd = "".join(chr(chance.choice([*range(0x21, 0x7F), *range(0xA1, 0x100)])) for _ in range(254))
        url = "/api/v1/contests/{}/lineups"

        async def send(agent: Player, key: str, lineup: Any, contest: str = W04) -> Any:
            headers = {b"Authorization": f"Bearer {agent.key}".encode(), b"Idempotency-Key": key.encode("latin-1")}
            return await service.client.post(url.format(contest), json=lineup, headers=headers)

        for agent in (one, other):
            # Keys that differ in their last character alone, or in their case, are different keys.
            for number, key in enumerate((odd + "a", odd + "A", odd + "\xe4", "k", "K", "'; --", '"', "%s", "\\", "0")):
                first = await send(agent, key, cheapest(number=number))
                assert (first.status_code, first.json()["revision"]) == (201, number + 1)
                assert (await send(agent, key, cheapest(number=number))).content == first.content
        elsewhere = await send(one, odd + "a", cheapest(fifth), "2017-W05")
        assert (elsewhere.status_code, elsewhere.json()["revision"]) == (201, 1)
        for wrong in ("", odd + "ab"):
            answer = await send(one, wrong, cheapest(number=99))
            assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")
        assert len(await kept(one)) == len(await kept(other)) == 10


@pytest.mark.rule("C6", "O2")
async def test_one_agent_at_two_clients_gets_revisions_in_one_order_without_a_gap(start: Start) -> None:
    async with two_copies(start) as copies:
        agents = await join(copies[0], 1, 2)
        orders: dict[tuple[int, int], list[int]] = {}
        answers: list[dict[str, Any]] = []

        async def client(agent: int, copy: int) -> None:
            mine = orders.setdefault((agent, copy), [])
            for number in range(15):
                given = await ok(await agents[agent].at(copies[copy]).submit(cheapest(number=100 * copy + number)))
                mine.append(given["revision"])
                answers.append(given)

        await asyncio.gather(*(client(agent, copy) for agent in (0, 1) for copy in (0, 1)))
        await copies[0].move_clock(LOCK)
        finals = {final.agent_id: final for final in await copies[0].published(ev.LineupLocked)}
        for number, agent in enumerate(agents):
            revisions = await kept(agent)
            assert [one["revision"] for one in revisions] == list(range(1, 31))
            instants = [one["accepted_at"] for one in revisions]
            assert instants == sorted(instants)
            told = {one["revision"]: one for one in answers if one["agent"] == str(agent.agent_id)}
            assert {one["revision"]: one["receipt"] for one in revisions} == {n: a["receipt"] for n, a in told.items()}
            # What one client sent later comes later; both clients' together are all.
            one, other = (orders[number, copy] for copy in (0, 1))
            assert one == sorted(one)
            assert other == sorted(other)
            assert sorted(one + other) == list(range(1, 31))
            assert finals[agent.agent_id].revision == 30


@pytest.mark.rule("C7")
async def test_nothing_is_taken_after_the_instant_though_nobody_locks_until_a_copy_does(start: Start) -> None:
    """The task that locks is stopped: the instant decides by itself, and another copy makes up for it."""
    async with start("contests") as service:
        await next_year_is_open(service)
        (agent,) = await join(service, 1)
        for task in asyncio.all_tasks():
            if task.get_name() == "keep_the_lock":
                task.cancel()
        locks_at = await kick_off_in(service, 4.0)
        lineups = [cheapest(next_years_players(), number) for number in range(2)]
        first = await ok(await agent.submit(lineups[0], NEXT_YEAR, key="k"))
        await asyncio.sleep((locks_at - datetime.now(UTC)).total_seconds() + 0.01)
        for call in ("", "/check"):
            late = await agent.submit(lineups[1], NEXT_YEAR, call=call)
            assert (late.status_code, late.json()["code"]) == (409, "contest-locked")
        assert (await agent.submit(lineups[0], NEXT_YEAR, key="k")).json() == first
        shown = await ok(await service.client.get(f"/api/v1/contests/{NEXT_YEAR}"))
        assert shown["state"] == "locked"
        await service.settle()
        assert await service.published(ev.ContestLocked) == []
        async with start("contests", database_url=service.database_url) as second:
            (final,) = await second.told(ev.LineupLocked)
            (locked,) = await second.told(ev.ContestLocked)
        assert (locked.locked_at, locked.entries) == (locks_at, 1)
        assert (final.revision, final.accepted_at) == (1, datetime.fromisoformat(first["accepted_at"]))


@pytest.mark.rule("C6", "C7")
async def test_a_clock_that_is_put_back_opens_nothing_and_changes_no_order(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        (agent,) = await join(service, 1)
        await service.move_clock(LOCK - TICK)
        await ok(await agent.submit(cheapest(number=0)))

        async def put_back(now: datetime) -> None:
            plain = service.database_url.replace("+psycopg", "")
            async with await psycopg.AsyncConnection.connect(plain, autocommit=True) as connection:
                await connection.execute("UPDATE replay_clock SET now = %s", [now])

        await put_back(OPENED)
        assert (await ok(await agent.submit(cheapest(number=1))))["revision"] == 2
        await service.move_clock(LOCK)
        await put_back(OPENED)
        late = await agent.submit(cheapest(number=2))
        assert (late.status_code, late.json()["code"]) == (409, "contest-locked")
        (final,) = await service.published(ev.LineupLocked)
        assert final.revision == 2, "the last revision counts, whatever the clock said"
        assert [one["body"] for one in await kept(agent)] == [cheapest(number=0), cheapest(number=1)]


# --- sizes ------------------------------------------------------------------------------------------


@pytest.mark.rule("C7")
async def test_a_week_in_which_nobody_plays_locks_with_no_entries(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        (agent,) = await join(service, 1)
        await service.move_clock(LOCK)
        (locked,) = await service.published(ev.ContestLocked)
        assert (locked.contest, locked.locked_at, locked.entries) == (W04, LOCK, 0)
        assert await service.published(ev.LineupLocked) == []
        shown = await ok(await service.client.get(f"/api/v1/contests/{W04}"))
        assert (shown["state"], shown["locked_at"]) == ("locked", "2017-10-01T17:00:00Z")
        assert (await agent.get(f"{W04}/lineups/mine")).json()["code"] == "lineup-missing"
        assert await kept(agent) == []


@pytest.mark.rule("C3", "C6", "C7")
async def test_a_pool_of_two_thousand_and_an_agent_with_two_hundred_revisions(start: Start) -> None:
    many = {"QB": 250, "RB": 550, "WR": 750, "TE": 418, "DST": 32}
    rows = [row(position=position, salary=3000 + 10 * n) for position, of in many.items() for n in range(of)]
    async with start("contests", clock="replay") as service:
        await service.move_clock(datetime(2026, 10, 1, tzinfo=UTC))
        await ok(await service.operator.post("/operator/api/v1/contests/import", content=pool_file(*rows)))
        await ok(await service.operator.post(f"/operator/api/v1/contests/{NEXT_YEAR}/open"))
        pool = (await ok(await service.client.get(f"/api/v1/contests/{NEXT_YEAR}/pool")))["players"]
        assert Counter(one["positions"][0] for one in pool) == Counter(many)
        players = imports.read(pool_file(*rows)).weeks[0].players
        (agent,) = await join(service, 1)
        for number in range(200):
            given = await ok(await agent.submit(cheapest(players, number), NEXT_YEAR))
            assert given["revision"] == number + 1
        revisions = await kept(agent, NEXT_YEAR)
        assert [one["revision"] for one in revisions] == list(range(1, 201))
        assert len({one["receipt"] for one in revisions}) == 200
        await service.move_clock(datetime(2026, 10, 4, 17, tzinfo=UTC))
        (final,) = await service.published(ev.LineupLocked)
        assert final.revision == 200
        mine = await ok(await agent.get(f"{NEXT_YEAR}/lineups/mine"))
        assert mine["body"] == cheapest(players, 199)
