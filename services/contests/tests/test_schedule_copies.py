"""Several copies of contests and one contest that changes: no copy judges or shows by what was."""

from datetime import timedelta

import psycopg
import pytest

from testkit.fixtures import Start

from .helpers import LOCK, W04, cheapest, join, ok, week_four, week_four_is_open


@pytest.mark.rule("C3", "O2")
async def test_no_copy_judges_by_a_pool_that_another_copy_has_changed(start: Start) -> None:
    async with (
        start("contests", clock="replay") as one,
        start("contests", clock="replay", database_url=one.database_url) as two,
    ):
        await week_four_is_open(one)
        (agent,) = await join(one, 1)
        lineup = cheapest()
        first = await ok(await agent.at(two).submit(lineup))
        plain = one.database_url.replace("+psycopg", "")
        async with await psycopg.AsyncConnection.connect(plain, autocommit=True) as connection:
            await connection.execute(
                "WITH c AS (UPDATE contests SET version = version + 1) UPDATE players SET price = price + 100"
                " WHERE player_id = %s",
                [lineup["picks"][0]["player_id"]],
            )
        assert (await ok(await agent.at(two).submit(lineup)))["total_price"] == first["total_price"] + 100
        assert (await ok(await agent.submit(lineup, call="/check")))["total_price"] == first["total_price"] + 100


@pytest.mark.rule("C2", "O2")
async def test_every_copy_shows_a_kickoff_that_another_copy_moved(start: Start) -> None:
    async with (
        start("contests", clock="replay") as one,
        start("contests", clock="replay", database_url=one.database_url) as two,
    ):
        await week_four_is_open(one)
        game, moved = week_four().games[0].game_id, LOCK - timedelta(hours=3)
        for service in (one, two):
            shown = await ok(await service.client.get(f"/api/v1/contests/{W04}"))
            assert shown["games"][0]["kickoff"] != "2017-10-01T14:00:00Z"
        change = {"game_id": game, "kickoff": moved.isoformat()}
        await ok(await one.operator.post(f"/operator/api/v1/contests/{W04}/reschedule", json=change))
        for service in (one, two):
            shown = await ok(await service.client.get(f"/api/v1/contests/{W04}"))
            assert shown["games"][0]["kickoff"] == shown["locks_at"] == "2017-10-01T14:00:00Z"
            pool = await ok(await service.client.get(f"/api/v1/contests/{W04}/pool"))
            assert {p["kickoff"] for p in pool["players"] if p["game_id"] == game} == {"2017-10-01T14:00:00Z"}
