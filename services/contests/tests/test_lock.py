import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from common import events as ev
from testkit.fixtures import Start, Started

from .helpers import (
    LOCK,
    NEXT_YEAR,
    OPENED,
    TICK,
    W04,
    Player,
    cheapest,
    join,
    kick_off_in,
    next_year_is_open,
    next_years_players,
    ok,
    week_four,
    week_four_is_open,
)


async def locked_lineups(service: Started, contest: str = W04) -> dict[UUID, ev.LineupLocked]:
    """The frozen lineups by agent, once their contest's lock is on the bus; each comes once."""
    await service.settle()
    (locked,) = await service.published(ev.ContestLocked)
    frozen = await service.published(ev.LineupLocked)
    assert locked.contest == contest
    assert locked.entries == len(frozen) == len({one.agent_id for one in frozen})
    return {one.agent_id: one for one in frozen}


@pytest.mark.rule("C7")
async def test_a_lineup_at_the_lock_instant_is_refused_and_one_a_microsecond_before_is_taken(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        early, late = await join(service, 1, 2)
        await service.move_clock(LOCK - TICK)
        assert (await early.submit(cheapest())).status_code == 201
        await service.move_clock(LOCK)
        for refused in (
            await late.submit(cheapest()),
            await early.submit(cheapest(number=1)),
            await late.submit(cheapest(), call="/check"),
            await late.submit(b"{}"),
        ):
            assert (refused.status_code, refused.json()["code"]) == (409, "contest-locked")
            assert refused.json()["locks_at"] == "2017-10-01T17:00:00Z"
        frozen = await locked_lineups(service)
        assert set(frozen) == {early.agent_id}
        assert frozen[early.agent_id].accepted_at == LOCK - TICK


@pytest.mark.rule("C6", "C7", "A3", "A8")
async def test_the_lock_freezes_the_last_revision_of_each_lineup_with_numbers_and_no_words(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        marks = ev.Marks(house=True, reference=True)
        one, two = [*await join(service, 1), *await join(service, 2, marks=marks)]
        for agent, number in ((one, 1), (two, 2), (one, 3)):
            await ok(await agent.submit(cheapest(number=number)))
        await service.move_clock(LOCK + timedelta(hours=5))
        frozen = await locked_lineups(service)
        (locked,) = await service.published(ev.ContestLocked)
        assert locked.locked_at == LOCK
        assert frozen[one.agent_id].revision == 2
        assert frozen[two.agent_id].marks == marks
        last = cheapest(number=3)
        prices = {player.player_id: player.price for player in week_four().players}
        assert [pick.model_dump() for pick in frozen[one.agent_id].picks] == [
            {"slot": p["slot"], "player_id": p["player_id"], "price": prices[p["player_id"]], "confidence": 0.25}
            for p in last["picks"]
        ]
        assert frozen[one.agent_id].projected_score == 8825
        assert all(pick["rationale"] not in frozen[one.agent_id].model_dump_json() for pick in last["picks"])
        order = [type(event).__name__ for event in await everything(service)]
        assert order.index("ContestLocked") < order.index("LineupLocked")
        shown = await ok(await service.client.get(f"/api/v1/contests/{W04}"))
        assert (shown["state"], shown["locked_at"]) == ("locked", "2017-10-01T17:00:00Z")


@pytest.mark.rule("C4", "C6")
async def test_the_words_pointers_lead_to_the_frozen_picks_whatever_order_they_were_sent_in(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        (agent,) = await join(service, 1)
        lineup = cheapest()
        lineup["picks"].reverse()
        for pick in lineup["picks"]:
            pick["rationale"] = f"because of {pick['player_id']}"
        await ok(await agent.submit(lineup))
        await service.move_clock(LOCK)
        frozen = (await locked_lineups(service))[agent.agent_id]
        (submitted,) = await service.published(ev.LineupSubmitted)
        words = {one.pointer: one.text for one in submitted.words}
        for place, locked in enumerate(frozen.picks):
            assert words[f"/picks/{place}/rationale"] == f"because of {locked.player_id}"


async def everything(service: Started) -> list[ev.Event]:
    """Every event of the public stream of contests, in order."""
    kinds = (ev.ContestOpened, ev.ContestRescheduled, ev.ContestLocked, ev.LineupLocked, ev.ClockMoved)
    found: list[tuple[Any, ev.Event]] = []
    for kind in kinds:
        found += [(envelope.id, event) for envelope, event in await service.envelopes(kind)]
    return [event for _, event in sorted(found, key=lambda pair: pair[0])]


@pytest.mark.rule("C7", "O4")
async def test_a_lock_missed_while_everything_was_down_happens_at_start_at_its_own_instant(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        (agent,) = await join(service, 1)
        await ok(await agent.submit(cheapest()))
        address = service.database_url
    async with await psycopg.AsyncConnection.connect(address.replace("+psycopg", "")) as connection:
        await connection.execute("UPDATE replay_clock SET now = %s", [LOCK + timedelta(days=1)])
    async with start("contests", clock="replay", database_url=address) as service:
        (locked,) = await service.told(ev.ContestLocked)
        assert locked.locked_at == LOCK
        assert set(await locked_lineups(service)) == {agent.agent_id}


@pytest.mark.rule("C7")
async def test_an_operator_cannot_lock_before_the_instant(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        url = f"/operator/api/v1/contests/{W04}/lock"
        early = await service.operator.post(url)
        assert (early.status_code, early.json()["code"], early.json()["locks_at"]) == (
            409,
            "not-yet",
            "2017-10-01T17:00:00Z",
        )
        await service.move_clock(LOCK)
        assert (await ok(await service.operator.post(url)))["state"] == "locked"
        assert await locked_lineups(service) == {}


@pytest.mark.rule("C2")
async def test_a_moved_game_moves_the_lock_until_it_is_locked(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        url = f"/operator/api/v1/contests/{W04}/reschedule"
        earlier = {"game_id": week_four().games[0].game_id, "kickoff": (LOCK - timedelta(hours=3)).isoformat()}
        assert (await ok(await service.operator.post(url, json=earlier)))["locks_at"] == "2017-10-01T14:00:00Z"
        await service.settle()
        moved = (await everything(service))[-1]
        assert isinstance(moved, ev.ContestRescheduled)
        assert moved.locks_at == LOCK - timedelta(hours=3)
        assert (await ok(await service.operator.post(url, json=earlier)))["locks_at"] == "2017-10-01T14:00:00Z"
        assert len(await service.published(ev.ContestRescheduled)) == 1
        unknown = await service.operator.post(url, json={**earlier, "game_id": "x"})
        assert (unknown.status_code, unknown.json()["code"]) == (404, "game-unknown")
        back = {**earlier, "kickoff": LOCK.isoformat()}
        assert (await ok(await service.operator.post(url, json=back)))["locks_at"] == "2017-10-01T17:00:00Z"
        await service.move_clock(LOCK)
        assert (await service.operator.post(url, json=earlier)).json()["code"] == "contest-locked"


@pytest.mark.rule("C2", "C7")
async def test_a_game_moved_into_the_past_locks_at_once_after_all_that_was_accepted(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        (agent,) = await join(service, 1)
        await ok(await agent.submit(cheapest()))
        await service.move_clock(LOCK - timedelta(hours=1))
        past = {"game_id": week_four().games[0].game_id, "kickoff": "2017-10-01T09:30:00-04:00"}
        answer = await ok(await service.operator.post(f"/operator/api/v1/contests/{W04}/reschedule", json=past))
        assert answer["state"] == "locked"
        assert (await agent.submit(cheapest(number=1))).json()["code"] == "contest-locked"
        frozen = await locked_lineups(service)
        (locked,) = await service.published(ev.ContestLocked)
        assert OPENED == frozen[agent.agent_id].accepted_at < locked.locked_at


@pytest.mark.rule("C7")
async def test_submissions_racing_with_the_clock_are_wholly_before_the_lock_or_wholly_refused(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        agents = await join(service, *range(50))
        await service.move_clock(LOCK - TICK)

        async def lock() -> None:
            await asyncio.sleep(0.1)
            await ok(await service.operator.put("/operator/api/v1/clock", json={"now": LOCK.isoformat()}))

        locking = asyncio.create_task(lock())
        answers = await asyncio.gather(*(agent.submit(cheapest()) for agent in agents))
        await locking
        taken = {agent.agent_id for agent, answer in zip(agents, answers, strict=True) if answer.status_code == 201}
        refused = Counter(answer.json()["code"] for answer in answers if answer.status_code != 201)
        assert set(refused) <= {"contest-locked"}
        assert len(taken) + refused.total() == 50
        assert set(await locked_lineups(service)) == taken


@pytest.mark.rule("C6", "C7")
async def test_one_agents_submissions_racing_with_the_lock_wait_for_one_another_and_never_for_ever(
    start: Start,
) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        agents = await join(service, 1, 2)
        await service.move_clock(LOCK - TICK)

        async def lock() -> None:
            await asyncio.sleep(0.1)
            await ok(await service.operator.put("/operator/api/v1/clock", json={"now": LOCK.isoformat()}))

        locking = asyncio.create_task(lock())
        answers = await asyncio.gather(*(agents[n % 2].submit(cheapest(number=n)) for n in range(60)))
        await locking
        assert {a.status_code if a.is_success else a.json()["code"] for a in answers} <= {201, "contest-locked"}
        taken = Counter(answer.json()["agent"] for answer in answers if answer.is_success)
        frozen = await locked_lineups(service)
        assert {str(agent): lineup.revision for agent, lineup in frozen.items()} == taken


@pytest.mark.rule("C7", "O2")
async def test_submissions_to_two_copies_racing_with_the_real_clock_all_count_or_are_all_refused(start: Start) -> None:
    async with start("contests") as one, start("contests", database_url=one.database_url) as two:
        await next_year_is_open(one)
        agents = await join(one, *range(50))
        locks_at = await kick_off_in(one, 2.0)
        results: dict[UUID, list[tuple[int, dict[str, Any]]]] = {}

        async def play(number: int) -> None:
            agent = agents[number].at((one, two)[number % 2])
            answers = results.setdefault(agent.agent_id, [])
            while not answers or answers[-1][0] == 201:
                answer = await agent.submit(cheapest(next_years_players(), number), NEXT_YEAR)
                answers.append((answer.status_code, answer.json()))
                await asyncio.sleep(0.01)

        await asyncio.gather(*(play(number) for number in range(50)))
        assert all(answers[-1][1]["code"] == "contest-locked" for answers in results.values())
        await one.settle()
        (locked,) = await one.told(ev.ContestLocked)
        frozen = await locked_lineups(one, NEXT_YEAR)
        assert locked.locked_at == locks_at
        accepted = {agent: len(answers) - 1 for agent, answers in results.items() if len(answers) > 1}
        assert {agent: lineup.revision for agent, lineup in frozen.items()} == accepted
        assert all(lineup.accepted_at < locks_at for lineup in frozen.values())
        assert accepted


@pytest.mark.rule("C7", "O2")
async def test_two_copies_that_lock_at_once_tell_of_it_once(start: Start) -> None:
    async with start("contests", clock="replay") as one:
        await week_four_is_open(one)
        agents = await join(one, *range(8))
        async with start("contests", clock="replay", database_url=one.database_url) as two:
            for agent in agents:
                await ok(await agent.submit(cheapest()))
            moves = [s.operator.put("/operator/api/v1/clock", json={"now": LOCK.isoformat()}) for s in (one, two)]
            locks = [s.operator.post(f"/operator/api/v1/contests/{W04}/lock") for s in (one, two, one, two)]
            await asyncio.gather(*moves, *locks)
            await ok(await two.operator.post(f"/operator/api/v1/contests/{W04}/lock"))
            assert set(await locked_lineups(one)) == {agent.agent_id for agent in agents}


@pytest.mark.rule("C7", "C9", "O4")
async def test_killed_connections_lose_no_acknowledged_revision(start: Start) -> None:
    """The database ends the service's connections again and again while lineups come in."""
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        agents = await join(service, *range(6))
        acknowledged: dict[UUID, list[dict[str, Any]]] = {agent.agent_id: [] for agent in agents}
        failures: Counter[int] = Counter()

        async def kill() -> None:
            plain = service.database_url.replace("+psycopg", "")
            async with await psycopg.AsyncConnection.connect(plain, autocommit=True) as connection:
                while failures.total() < 12:
                    await asyncio.sleep(0.02)
                    await connection.execute(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
                        " AND pid <> pg_backend_pid() AND xact_start IS NOT NULL ORDER BY random() LIMIT 1"
                    )

        async def accepted(agent: Player, number: int) -> dict[str, Any]:
            while True:
                answer = await agent.submit(cheapest(number=number), key=f"lineup {number}")
                if answer.status_code == 201:
                    given: dict[str, Any] = answer.json()
                    return given
                failures[answer.status_code] += 1
                assert answer.headers["retry-after"]
                await asyncio.sleep(0.01)

        async def play(agent: Player) -> None:
            # How many ends it takes until a submission feels one depends on how fast groups commit: go on until then.
            while len(acknowledged[agent.agent_id]) < (6 if failures[503] >= 3 else 50):
                number = len(acknowledged[agent.agent_id])
                acknowledged[agent.agent_id].append(await accepted(agent, number))

        killing = asyncio.create_task(kill())
        await asyncio.gather(*(play(agent) for agent in agents))
        killing.cancel()
        assert set(failures) == {503}
        for agent in agents:
            told = acknowledged[agent.agent_id]
            kept = (await ok(await agent.get(f"{W04}/lineups/mine/revisions")))["revisions"]
            assert [one["revision"] for one in kept] == list(range(1, len(told) + 1))
            assert [{k: v for k, v in one.items() if k != "body"} for one in kept] == told
        await service.move_clock(LOCK)
        frozen = await locked_lineups(service)
        assert {agent: lineup.revision for agent, lineup in frozen.items()} == {
            agent: len(told) for agent, told in acknowledged.items()
        }
