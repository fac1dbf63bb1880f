"""What settlement keeps of the events it hears, in whatever order and however often they come."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select

from common import events as ev
from settlement.store import CONTESTS, Store
from testkit.fixtures import Start


@pytest.mark.rule("S5")
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_nothing_is_lost_whatever_the_order_of_arrival(
    start: Start, play_week: Callable[..., Any], statistics_file: Callable[..., bytes], seed: int
) -> None:
    week = play_week(4, entries=6)
    events = list(week.events)
    random.Random(seed).shuffle(events)
    async with start("settlement") as settlement:
        for event in events:
            await settlement.publish(event)
        await settlement.settle()
        await settlement.operator.post("/operator/api/v1/statistics?week=4&final=true", content=statistics_file(4))
        answer = await settlement.operator.post("/operator/api/v1/contests/2017-W04/settle")
        assert answer.status_code == 200, answer.text
        assert answer.json()["lineups"] == 6
        assert await settlement.dead_letters() == []


@pytest.mark.rule("S5")
async def test_a_repeated_delivery_changes_nothing(start: Start, play_week: Callable[..., Any]) -> None:
    week = play_week(4, entries=2)
    async with start("settlement") as settlement:
        for event in week.events:
            event_id = await settlement.publish(event)
            await settlement.publish(event, event_id=event_id)
            await settlement.publish(event)
        await settlement.settle()
        async with settlement.runtime.database.transaction() as connection:
            assert len(await Store(connection).lineups("2017-W04")) == 2


async def test_the_newest_schedule_is_kept_even_when_it_arrives_before_the_contest(
    start: Start, play_week: Callable[..., Any]
) -> None:
    week = play_week(4)
    moved = tuple(game.model_copy(update={"kickoff": game.kickoff.replace(year=2018)}) for game in week.opened.games)
    newer = ev.ContestRescheduled(contest="2017-W04", locks_at=week.opened.locks_at, games=moved)
    older = ev.ContestRescheduled(contest="2017-W04", locks_at=week.opened.locks_at, games=week.opened.games)
    async with start("settlement") as settlement:
        await settlement.publish(newer, version=3)
        await settlement.publish(older, version=2)
        await settlement.publish(week.opened, version=1)
        await settlement.settle()
        async with settlement.runtime.database.transaction() as connection:
            row = (await connection.execute(select(CONTESTS.c.games, CONTESTS.c.games_version))).one()
            known = await Store(connection).contest("2017-W04")
        assert row.games_version == 3
        assert {game["kickoff"][:4] for game in row.games} == {"2018"}
        assert known is not None
        assert known.opened == week.opened.model_copy(update={"games": moved})
        assert known.entries is None


@pytest.mark.rule("S1", "S2")
@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0)])
async def test_a_contest_is_settled_by_the_pool_by_which_it_locked_whatever_comes_first(
    start: Start, play_week: Callable[..., Any], statistics_file: Callable[..., bytes], order: tuple[int, ...]
) -> None:
    week = play_week(4, entries=3)
    held = {pick.player_id for lineup in week.lineups for pick in lineup.picks}
    gone = next(player.player_id for player in week.opened.players if player.player_id in held)
    left = tuple(player for player in week.opened.players if player.player_id != gone)
    again = week.opened.model_copy(update={"players": left, "pool": 2, "price_source": "a newer file"})
    told = [(week.opened, 1), (again, 2), (week.locked.model_copy(update={"pool": 2}), 3)]
    async with start("settlement") as settlement:
        for lineup in week.lineups:
            await settlement.publish(lineup)
        await settlement.operator.post("/operator/api/v1/statistics?week=4&final=true", content=statistics_file(4))
        for place in order:
            await settlement.publish(told[place][0], version=told[place][1])
            await settlement.settle()
            async with settlement.runtime.database.transaction() as connection:
                known = await Store(connection).contest("2017-W04")
            assert known is not None
            seen = set(order[: order.index(place) + 1])
            expected = again if 1 in seen else week.opened if seen == {0} else None
            assert known.opened == expected
        answer = await settlement.operator.post("/operator/api/v1/contests/2017-W04/settle")
        assert answer.status_code == 200, answer.text
        await settlement.settle()
        (settled,) = await settlement.published(ev.WeekSettled)
        assert gone not in {player.player_id for player in settled.players}
