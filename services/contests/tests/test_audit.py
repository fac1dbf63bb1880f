"""What an operator does to contests is kept: one line for each act that changed something."""

from datetime import timedelta
from typing import Any

import psycopg
import pytest

from common.clock import ReplayClock
from contests import commands
from contests.store import Store
from testkit.fixtures import Start, Started

from .helpers import LOCK, OPENED, W04, data, ok, week_four, week_four_is_open

BASE = "/operator/api/v1"


async def acts(service: Started, query: str = "") -> list[dict[str, Any]]:
    """What was done, the newest first."""
    found: list[dict[str, Any]] = (await ok(await service.operator.get(f"{BASE}/audit/contests{query}")))["acts"]
    return found


async def said(service: Started) -> list[tuple[str, str]]:
    """What was done to what, the oldest first."""
    return [(act["what"], act["target"]) for act in reversed(await acts(service))]


@pytest.mark.rule("A8")
async def test_each_act_on_contests_leaves_one_line_and_one_that_changes_nothing_none(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        earlier = {"game_id": week_four().games[0].game_id, "kickoff": (LOCK - timedelta(hours=3)).isoformat()}
        moved = {"now": OPENED.isoformat()}
        for _ in range(2):
            await ok(await service.operator.put(f"{BASE}/clock", json=moved))
            for dry_run in ("true", "false"):
                params = {"season": 2017, "week": 4, "dry_run": dry_run}
                content = data("pool_2017_dk.csv.gz")
                await ok(await service.operator.post(f"{BASE}/contests/import", content=content, params=params))
            await ok(await service.operator.post(f"{BASE}/contests/{W04}/open"))
        for _ in range(2):
            await ok(await service.operator.post(f"{BASE}/contests/{W04}/reschedule", json=earlier))
        contest = f"contest/{W04}"
        done = [("move", "clock"), ("import", "contests"), ("open", contest), ("reschedule", contest)]
        assert await said(service) == done
        rescheduled, opened, imported, clock = await acts(service)
        assert {act["who"] for act in (rescheduled, opened, imported, clock)} == {"operator"}
        assert imported["after"]["contests"] == {W04: "created"}
        assert (opened["before"], opened["after"]["state"]) == ({"state": "draft"}, "open")
        assert (clock["before"], clock["after"]) == ({"now": "1970-01-01T00:00:00Z"}, {"now": "2017-09-28T12:00:00Z"})
        assert rescheduled["before"]["locks_at"] == "2017-10-01T17:00:00Z"
        assert rescheduled["after"]["locks_at"] == rescheduled["after"]["kickoff"] == "2017-10-01T14:00:00Z"
        assert await acts(service, f"?limit=1&before={opened['act']}") == [imported]
        assert (await service.client.get(f"{BASE}/audit/contests")).status_code == 401


@pytest.mark.rule("A8")
async def test_a_refused_act_leaves_no_line(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        before = await said(service)
        for refused in (
            await service.operator.put(f"{BASE}/clock", json={"now": (OPENED - timedelta(days=1)).isoformat()}),
            await service.operator.post(f"{BASE}/contests/import", content=b"nothing"),
            await service.operator.post(f"{BASE}/contests/2017-W09/open"),
            await service.operator.post(f"{BASE}/contests/{W04}/lock"),
            await service.operator.post(
                f"{BASE}/contests/{W04}/reschedule", json={"game_id": "x", "kickoff": LOCK.isoformat()}
            ),
        ):
            assert 400 <= refused.status_code < 500, refused.text
        assert await said(service) == before


@pytest.mark.rule("A8", "C7")
async def test_a_lock_is_an_operators_act_only_where_the_clock_had_not_locked_yet(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        before = await said(service)
        async with service.runtime.database.transaction() as connection:
            await ReplayClock().move(connection, LOCK)
            for _ in range(2):
                await commands.lock_by_operator(service.runtime, Store(connection), W04)
        assert await said(service) == [*before, ("lock", f"contest/{W04}")]
        assert (await acts(service))[0]["after"] == {"state": "locked", "entries": 0}
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        await service.move_clock(LOCK)
        await ok(await service.operator.post(f"{BASE}/contests/{W04}/lock"))
        assert "lock" not in {what for what, _ in await said(service)}


@pytest.mark.rule("A8")
async def test_what_was_done_is_never_changed_or_removed(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        before = await acts(service)
        url = service.runtime.settings.database_url.get_secret_value().replace("+psycopg", "")
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            for statement in (
                b"UPDATE operator_acts SET who = 'nobody'",
                b"DELETE FROM operator_acts",
                b"TRUNCATE operator_acts",
            ):
                with pytest.raises(psycopg.errors.RaiseException, match="never changed or removed"):
                    await connection.execute(statement)
        assert await acts(service) == before
