"""A contest follows the league's schedule until it locks: games move, leave and come back, and it may be called off."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from common import events as ev
from common.db import OUTBOX
from testkit.fixtures import Start, Started

from .helpers import (
    LOCK,
    OPENED,
    TICK,
    W04,
    Player,
    cheapest,
    data,
    join,
    ok,
    week_four,
    week_four_is_open,
)

BASE = f"/operator/api/v1/contests/{W04}"
FIRST = min(week_four().games, key=lambda game: (game.kickoff, game.game_id))
MONDAY = max(week_four().games, key=lambda game: game.kickoff)
REASON = "Snow has closed every stadium."


async def do(service: Started, what: str, **body: Any) -> Any:
    return await ok(await service.operator.post(f"{BASE}/{what}", json=body))


async def refused(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    document: dict[str, Any] = answer.json()
    return document


async def statuses(service: Started, of: str = "") -> dict[str, str]:
    """The status of each game, by the contest's document or (``/pool``) the pool's."""
    document = await ok(await service.client.get(f"/api/v1/contests/{W04}{of}"))
    return {game["game_id"]: game["status"] for game in document["games"]}


async def pool(service: Started) -> set[str]:
    document = await ok(await service.client.get(f"/api/v1/contests/{W04}/pool"))
    csv = (await service.client.get(f"/api/v1/contests/{W04}/pool?format=csv")).text.splitlines()
    players = {player["player_id"] for player in document["players"]}
    assert {line.split(",")[0] for line in csv[1:]} == players
    return players


def of_game(game_id: str) -> set[str]:
    return {player.player_id for player in week_four().players if player.game_id == game_id}


def lineup_with(game_id: str) -> tuple[dict[str, Any], str]:
    """A sound lineup with a player of the game, and him."""
    for number in range(40):
        lineup = cheapest(number=number)
        found = [pick["player_id"] for pick in lineup["picks"] if pick["player_id"] in of_game(game_id)]
        if len(found) == 1:
            return lineup, found[0]
    raise AssertionError(f"no cheap lineup has one player of {game_id}")


def lineup_without(*game_ids: str) -> dict[str, Any]:
    gone = set().union(*map(of_game, game_ids))
    return cheapest(tuple(player for player in week_four().players if player.player_id not in gone))


@pytest.mark.rule("C1", "C2", "C3", "C5")
async def test_the_players_of_a_cancelled_game_leave_the_pool_and_come_back_with_it(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        (agent,) = await join(service, 1)
        lineup, him = lineup_with(FIRST.game_id)
        everybody = await pool(service)
        await ok(await agent.submit(lineup, call="/check"))
        await do(service, "drop-game", game_id=FIRST.game_id)
        for of in ("", "/pool"):
            assert {k: v for k, v in (await statuses(service, of)).items() if v != "scheduled"} == {
                FIRST.game_id: "cancelled"
            }
        assert await pool(service) == everybody - of_game(FIRST.game_id)
        for call in ("", "/check"):
            document = await refused(await agent.submit(lineup, call=call), 422, "lineup-invalid")
            (violation,) = document["violations"]
            assert (violation["code"], violation["value"]) == ("player-unknown", him)
            assert f"{FIRST.away} at {FIRST.home}" in violation["detail"]
            assert "cancelled" in violation["detail"]
            assert f"/api/v1/contests/{W04} " in violation["detail"]
        await ok(await agent.submit(lineup_without(FIRST.game_id)))
        assert FIRST.game_id in (await service.client.get("/skill.md")).text
        await do(service, "restore-game", game_id=FIRST.game_id)
        assert set((await statuses(service)).values()) == {"scheduled"}
        assert await pool(service) == everybody
        await ok(await agent.submit(lineup))
        assert FIRST.game_id not in (await service.client.get("/skill.md")).text


@pytest.mark.rule("C6", "C7", "S3")
async def test_a_lineup_with_a_player_whose_game_left_stays_accepted_and_is_frozen_as_it_was(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        (agent,) = await join(service, 1)
        lineup, him = lineup_with(FIRST.game_id)
        receipt = await ok(await agent.submit(lineup, key="first"))
        await do(service, "drop-game", game_id=FIRST.game_id)
        assert await ok(await agent.submit(lineup, key="first")) == receipt
        assert (await ok(await agent.get(f"{W04}/lineups/mine")))["body"] == lineup
        await service.move_clock(LOCK + timedelta(days=2))
        (frozen,) = await service.published(ev.LineupLocked)
        assert him in {pick.player_id for pick in frozen.picks}
        (told,) = await service.published(ev.ContestRescheduled)
        assert {game.game_id: game.status for game in told.games}[FIRST.game_id] == "cancelled"
        assert len(told.games) == len(week_four().games)


@pytest.mark.rule("C1", "C2")
async def test_a_game_moved_to_a_day_or_week_that_is_not_covered_leaves_and_moved_back_is_there_again(
    start: Start,
) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        tuesday = "2017-10-03T19:00:00-04:00"
        three_weeks_later = (FIRST.kickoff + timedelta(weeks=3)).isoformat()
        the_monday_before = "2017-09-25T20:30:00-04:00"
        for version, kickoff in enumerate((tuesday, three_weeks_later, the_monday_before), start=1):
            await do(service, "reschedule", game_id=FIRST.game_id, kickoff=kickoff)
            assert (await statuses(service))[FIRST.game_id] == "moved"
            assert not await pool(service) & of_game(FIRST.game_id)
            back = await do(service, "reschedule", game_id=FIRST.game_id, kickoff=FIRST.kickoff.isoformat())
            assert (await statuses(service))[FIRST.game_id] == "scheduled"
            assert (back["state"], back["locks_at"]) == ("open", "2017-10-01T17:00:00Z")
            assert len(await service.published(ev.ContestRescheduled)) <= 2 * version
        monday = "2017-10-02T20:30:00-04:00"
        await do(service, "reschedule", game_id=FIRST.game_id, kickoff=tuesday)
        unfit = await service.operator.post(f"{BASE}/restore-game", json={"game_id": FIRST.game_id})
        assert "Tuesday" in (await refused(unfit, 409, "game-not-covered"))["detail"]
        await do(service, "restore-game", game_id=FIRST.game_id, kickoff=monday)
        assert (await statuses(service))[FIRST.game_id] == "scheduled"


@pytest.mark.rule("C2")
async def test_the_lock_is_that_of_the_games_that_are_left(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        sundays = [game for game in week_four().games if game.kickoff < MONDAY.kickoff - timedelta(hours=12)]
        in_order = sorted(sundays, key=lambda game: (game.kickoff, game.game_id))
        locks = [(await do(service, "drop-game", game_id=game.game_id))["locks_at"] for game in in_order]
        assert locks == sorted(locks)
        assert datetime.fromisoformat(locks[-1]) == MONDAY.kickoff
        last = await service.operator.post(f"{BASE}/drop-game", json={"game_id": MONDAY.game_id})
        assert "mafl contest cancel" in (await refused(last, 409, "no-game-left"))["detail"]
        away = {"game_id": MONDAY.game_id, "kickoff": "2017-10-05T20:30:00-04:00"}
        await refused(await service.operator.post(f"{BASE}/reschedule", json=away), 409, "no-game-left")
        assert (await statuses(service))[MONDAY.game_id] == "scheduled"
        await service.settle()
        told = await service.envelopes(ev.ContestRescheduled)
        assert [envelope.aggregateversion for envelope, _ in told] == list(range(2, 2 + len(sundays)))


@pytest.mark.rule("C2", "C7")
async def test_a_change_a_microsecond_before_the_lock_that_leaves_it_as_it_is_locks_nothing_early(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        (agent,) = await join(service, 1)
        await service.move_clock(LOCK - TICK)
        answer = await do(service, "drop-game", game_id=MONDAY.game_id)
        assert (answer["state"], answer["locks_at"]) == ("open", "2017-10-01T17:00:00Z")
        await ok(await agent.submit(lineup_without(MONDAY.game_id)))
        await service.move_clock(LOCK)
        (locked,) = await service.published(ev.ContestLocked)
        assert (locked.locked_at, locked.entries) == (LOCK, 1)


@pytest.mark.rule("C8", "C7")
async def test_a_cancelled_contest_takes_nothing_never_locks_and_shows_nothing(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        (agent,) = await join(service, 1)
        receipt = await ok(await agent.submit(cheapest(), key="first"))
        for _ in range(2):
            off = await do(service, "cancel", reason=f"  {REASON} ")
            assert (off["state"], off["cancelled_because"]) == ("cancelled", REASON)
        assert (await do(service, "cancel", reason="Another."))["cancelled_because"] == REASON
        for answer in (
            await agent.submit(cheapest(number=1)),
            await agent.submit(cheapest(), call="/check"),
            await agent.submit(b"{}"),
            await agent.submit(b"{}", call="/check"),
            await service.operator.post(f"{BASE}/open"),
            await service.operator.post(f"{BASE}/lock"),
            await service.operator.post(f"{BASE}/drop-game", json={"game_id": FIRST.game_id}),
            await service.operator.post(
                f"{BASE}/reschedule", json={"game_id": FIRST.game_id, "kickoff": LOCK.isoformat()}
            ),
        ):
            document = await refused(answer, 409, "contest-cancelled")
            assert document["reason"] == REASON
            assert REASON in document["detail"]
        # What was told before is told again, and the agent alone sees its own.
        assert await ok(await agent.submit(cheapest(), key="first")) == receipt
        assert (await ok(await agent.get(f"{W04}/lineups/mine")))["receipt"] == receipt["receipt"]
        await service.move_clock(LOCK + timedelta(days=3))
        await service.settle()
        (told,) = await service.envelopes(ev.ContestCancelled)
        assert (told[0].aggregateversion, told[1].reason, told[1].cancelled_at) == (2, REASON, OPENED)
        assert await service.published(ev.ContestLocked) == []
        assert await service.published(ev.LineupLocked) == []
        for path in (f"/api/v1/contests/{W04}", "/api/v1/contests/current"):
            shown = await ok(await service.client.get(path))
            assert (shown["state"], shown["cancelled_because"], shown["locked_at"]) == ("cancelled", REASON, None)
        skill = (await service.client.get("/skill.md")).text
        assert f"is cancelled: {REASON} None is open yet" in skill
        acts = (await ok(await service.operator.get("/operator/api/v1/audit/contests")))["acts"]
        assert [act["after"]["reason"] for act in acts if act["what"] == "cancel"] == [REASON]


@pytest.mark.rule("C7")
async def test_after_its_lock_a_contest_cannot_be_called_off_though_the_lock_is_not_processed_yet(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        await service.move_clock(LOCK)
        late = await service.operator.post(f"{BASE}/cancel", json={"reason": REASON})
        assert (await refused(late, 409, "contest-locked"))["locks_at"] == "2017-10-01T17:00:00Z"
        for game_id in (FIRST.game_id, MONDAY.game_id):
            for call in ("drop-game", "restore-game"):
                await refused(
                    await service.operator.post(f"{BASE}/{call}", json={"game_id": game_id}), 409, "contest-locked"
                )
        assert await service.published(ev.ContestCancelled) == []


async def test_a_draft_that_is_called_off_is_told_to_nobody_and_may_be_imported_again(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await service.move_clock(OPENED)
        params = {"season": 2017, "week": 4}
        imported = f"{BASE.rsplit('/', 1)[0]}/import"
        content = data("pool_2017_dk.csv.gz")
        await ok(await service.operator.post(imported, content=content, params=params))
        await do(service, "drop-game", game_id=MONDAY.game_id)
        await do(service, "cancel", reason=REASON)
        assert (await ok(await service.client.get("/api/v1/contests")))["contests"] == []
        assert (await service.client.get(f"/api/v1/contests/{W04}")).json()["code"] == "contest-unknown"
        again = await ok(await service.operator.post(imported, content=content, params=params))
        assert again["outcomes"] == {W04: "replaced"}
        await do(service, "open")
        await service.settle()
        (opened,) = await service.published(ev.ContestOpened)
        # What the operator took out of it stays out.
        assert [game.game_id for game in opened.games if game.status != "scheduled"] == [MONDAY.game_id]
        await service.settle()
        assert await service.published(ev.ContestCancelled) == await service.published(ev.ContestRescheduled) == []


@pytest.mark.rule("C1")
async def test_a_contest_that_was_called_off_is_played_no_more_where_another_takes_lineups(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        other = {"season": 2017, "week": 5}
        root = "/operator/api/v1/contests"
        await ok(await service.operator.post(f"{root}/import", content=data("pool_2017_dk.csv.gz"), params=other))
        await ok(await service.operator.post(f"{root}/2017-W05/open"))
        assert (await ok(await service.client.get("/api/v1/contests/current")))["contest"] == W04
        await do(service, "cancel", reason=REASON)
        assert (await ok(await service.client.get("/api/v1/contests/current")))["contest"] == "2017-W05"
        listed = (await ok(await service.client.get("/api/v1/contests")))["contests"]
        assert {row["contest"]: row["state"] for row in listed} == {W04: "cancelled", "2017-W05": "open"}


@pytest.mark.parametrize("reason", ["", "   ", "two\nlines", "x" * 301])
async def test_a_contest_is_called_off_for_a_reason_that_people_can_read(start: Start, reason: str) -> None:
    async with start("contests", clock="replay") as service:
        answer = await service.operator.post(f"{BASE}/cancel", json={"reason": reason})
        await refused(answer, 422, "invalid-request")


@pytest.mark.rule("C2", "C7", "O2")
async def test_submissions_and_changes_of_the_schedule_by_two_copies_at_once_have_one_order(start: Start) -> None:
    """Whatever was accepted was sound by the schedule of its moment, and the last word of the copies is one."""
    async with start("contests", clock="replay") as one:
        await week_four_is_open(one)
        agents = await join(one, *range(12))
        lineup, _ = lineup_with(FIRST.game_id)
        async with start("contests", clock="replay", database_url=one.database_url) as two:
            answers: list[httpx.Response] = []

            async def play(agent: Player) -> None:
                answers.extend([await agent.at((one, two)[number % 2]).submit(lineup) for number in range(4)])

            async def change(service: Started, *calls: str) -> None:
                for call in calls:
                    await do(service, call, game_id=FIRST.game_id)

            await asyncio.gather(
                *map(play, agents),
                change(one, *["drop-game", "restore-game"] * 4),
                change(two, *["restore-game", "drop-game"] * 4),
            )
            codes = {answer.status_code if answer.is_success else answer.json()["code"] for answer in answers}
            assert codes <= {201, "lineup-invalid"}
            await do(two, "drop-game", game_id=FIRST.game_id)
            for service in (one, two):
                await refused(await agents[0].at(service).submit(lineup), 422, "lineup-invalid")
                assert (await statuses(service))[FIRST.game_id] == "cancelled"
            await do(one, "cancel", reason=REASON)
            for service in (one, two):
                await refused(await agents[0].at(service).submit(lineup), 409, "contest-cancelled")
            await one.settle()
            told = await one.envelopes(ev.ContestRescheduled)
            versions = [envelope.aggregateversion for envelope, _ in told]
            assert versions == list(range(2, 2 + len(told)))
            states = [{game.game_id: game.status for game in event.games}[FIRST.game_id] for _, event in told]
            assert all(before != after for before, after in zip(["scheduled", *states], states, strict=False))
            # Each revision was accepted while the game was there: the order of the outbox is that of the acts.
            async with one.runtime.database.transaction() as connection:
                acts = select(OUTBOX.c.envelope).order_by(OUTBOX.c.position)
                envelopes = list((await connection.execute(acts)).scalars())
            there, accepted = "scheduled", 0
            for envelope in envelopes:
                if envelope["type"] == ev.ContestRescheduled.subject():
                    there = {game["game_id"]: game["status"] for game in envelope["data"]["games"]}[FIRST.game_id]
                elif envelope["type"] == ev.LineupSubmitted.subject():
                    assert there == "scheduled"
                    accepted += 1
            assert accepted == sum(answer.is_success for answer in answers)


@pytest.mark.rule("C2", "C7", "O2")
async def test_a_contest_is_locked_or_called_off_by_whoever_comes_first_and_by_one_alone(start: Start) -> None:
    async with start("contests", clock="replay") as one:
        await week_four_is_open(one)
        agents = await join(one, 1, 2, 3)
        async with start("contests", clock="replay", database_url=one.database_url) as two:
            for agent in agents:
                await ok(await agent.submit(cheapest()))
            await one.move_clock(LOCK - TICK)
            locks = one.operator.put("/operator/api/v1/clock", json={"now": LOCK.isoformat()})
            off = two.operator.post(f"{BASE}/cancel", json={"reason": REASON})
            gone = two.operator.post(f"{BASE}/drop-game", json={"game_id": FIRST.game_id})
            moved, cancelled, dropped = await asyncio.gather(locks, off, gone)
            assert moved.is_success, moved.text
            assert dropped.status_code in (200, 409)
            await one.settle()
            frozen = await one.published(ev.LineupLocked)
            ended = [*await one.published(ev.ContestLocked), *await one.published(ev.ContestCancelled)]
            assert len(ended) == 1
            if cancelled.is_success:
                assert isinstance(ended[0], ev.ContestCancelled)
                assert frozen == []
            else:
                assert cancelled.json()["code"] == "contest-locked"
                assert len(frozen) == 3
            state = (await ok(await one.client.get(f"/api/v1/contests/{W04}")))["state"]
            assert state == ("cancelled" if cancelled.is_success else "locked")


def test_the_week_of_these_tests_has_what_they_need() -> None:
    assert FIRST.kickoff.astimezone(UTC) == LOCK
    assert MONDAY.kickoff > LOCK + timedelta(hours=20)


@pytest.mark.rule("C7", "S3")
async def test_after_the_lock_an_operator_says_what_became_of_a_game_and_the_lock_stays_where_it_was(
    start: Start,
) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        (agent,) = await join(service, 1)
        lineup, _ = lineup_with(MONDAY.game_id)
        await ok(await agent.submit(lineup))
        abandoned = {"game_id": MONDAY.game_id, "became": "abandoned"}
        early = await service.operator.post(f"{BASE}/became", json=abandoned)
        assert "mafl contest drop-game" in (await refused(early, 409, "contest-not-locked"))["detail"]
        await service.move_clock(LOCK)
        await service.settle()
        locked = await ok(await agent.get(f"{W04}/lineups/mine"))

        for what, resumed_at, in_week in (
            ("abandoned", None, None),
            ("suspended", None, None),
            ("suspended", "2017-10-04T23:59:00-04:00", True),
            ("suspended", "2017-10-05T00:00:00-04:00", False),
            ("postponed", None, None),
            ("cancelled", None, None),
            ("played", None, None),
        ):
            said = {"game_id": MONDAY.game_id, "became": what, "resumed_at": resumed_at}
            answer = await do(service, "became", **said)
            assert await do(service, "became", **said) == answer
            document = await ok(await service.client.get(f"/api/v1/contests/{W04}"))
            (game,) = (game for game in document["games"] if game["game_id"] == MONDAY.game_id)
            assert game["became"] == (None if what == "played" else what)
            assert (game["status"], game["in_week"]) == ("scheduled", in_week)
            assert document["locks_at"] == answer["locks_at"] == "2017-10-01T17:00:00Z"
        await service.settle()
        told = await service.published(ev.ContestRescheduled)
        assert [
            next((game.became, game.in_week) for game in event.games if game.game_id == MONDAY.game_id)
            for event in told
        ] == [
            ("abandoned", None),
            ("suspended", None),
            ("suspended", True),
            ("suspended", False),
            ("postponed", None),
            ("cancelled", None),
            (None, None),
        ]
        assert {event.locks_at for event in told} == {LOCK}
        assert len(await service.published(ev.ContestLocked)) == len(await service.published(ev.LineupLocked)) == 1
        assert await ok(await agent.get(f"{W04}/lineups/mine")) == locked
        acts = (await ok(await service.operator.get("/operator/api/v1/audit/contests")))["acts"]
        assert sum(act["what"] == "became" for act in acts) == 7

        unknown = await service.operator.post(f"{BASE}/became", json={**abandoned, "game_id": "2017_04_XX_YY"})
        await refused(unknown, 404, "game-unknown")
        mixed = {**abandoned, "resumed_at": "2017-10-04T23:59:00-04:00"}
        assert (await service.operator.post(f"{BASE}/became", json=mixed)).status_code == 422


@pytest.mark.rule("C3", "S3")
async def test_the_policies_of_a_contest_are_told_with_it_and_in_skill_md(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        usual = ev.Policies()
        assert (await ok(await service.client.get(f"/api/v1/contests/{W04}")))["policies"] == usual.model_dump()
        (opened,) = await service.published(ev.ContestOpened)
        assert opened.policies == usual
        skill = (await service.client.get("/skill.md")).text
        assert "- begun, broken off and never finished: zero." in skill
        assert "- begun, broken off and finished in the contest's week: what is counted of it." in skill
