"""Groups: every caller gets the outcome of its own item, and nobody waits without end."""

import asyncio
from collections.abc import Sequence

import psycopg
import pytest

from common.grouped import _MOMENT, Bounds, Grouped
from common.problems import Unavailable

USUAL = Bounds(largest=4, abreast=1, room=100, patience=5)


class Bad(Exception):
    pass


async def test_what_waits_together_is_done_together_and_each_gets_its_own() -> None:
    groups: list[list[int]] = []

    async def work(items: Sequence[int]) -> list[int | Exception]:
        groups.append(list(items))
        await asyncio.sleep(0.01)
        return [Bad(str(item)) if item == 5 else item * 10 for item in items]

    grouped = Grouped(work, USUAL)
    outcomes = await asyncio.gather(*(grouped(item) for item in range(10)), return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == ["0", "10", "20", "30", "40", "5", "60", "70", "80", "90"]
    assert groups == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


async def test_one_bad_item_fails_alone() -> None:
    async def work(items: Sequence[int]) -> list[int | Exception]:
        if 2 in items:
            raise Bad("a row that the database refuses")
        return list(items)

    grouped = Grouped(work, USUAL)
    outcomes = await asyncio.gather(*(grouped(item) for item in range(4)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [int, int, Bad, int]


async def test_a_database_that_is_gone_is_asked_once_a_group() -> None:
    calls = 0

    async def work(items: Sequence[int]) -> list[int | Exception]:
        nonlocal calls
        calls += 1
        raise psycopg.OperationalError("the connection is closed")

    grouped = Grouped(work, USUAL)
    outcomes = await asyncio.gather(*(grouped(item) for item in range(4)), return_exceptions=True)
    assert all(isinstance(outcome, psycopg.OperationalError) for outcome in outcomes)
    assert calls == 1


@pytest.mark.rule("O4")
async def test_nobody_waits_longer_than_the_patience_and_the_next_are_served() -> None:
    held = asyncio.Event()

    async def work(items: Sequence[int]) -> list[int | Exception]:
        await held.wait()
        return list(items)

    grouped = Grouped(work, Bounds(largest=2, abreast=1, room=100, patience=0.1))
    outcomes = await asyncio.gather(*(grouped(item) for item in range(5)), return_exceptions=True)
    assert all(isinstance(outcome, Unavailable) and outcome.headers["Retry-After"] for outcome in outcomes)
    held.set()
    assert await grouped(7) == 7


@pytest.mark.rule("O4")
async def test_more_than_the_room_holds_is_refused_at_once() -> None:
    held = asyncio.Event()

    async def work(items: Sequence[int]) -> list[int | Exception]:
        await held.wait()
        return list(items)

    grouped = Grouped(work, USUAL)
    waiting = [asyncio.ensure_future(grouped(item, weight=30)) for item in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(Unavailable):
        await grouped(4, weight=30)
    held.set()
    assert await asyncio.gather(*waiting) == [0, 1, 2]
    assert await grouped(4, weight=100) == 4


async def test_a_caller_that_gives_up_holds_up_nobody() -> None:
    held = asyncio.Event()

    async def work(items: Sequence[int]) -> list[int | Exception]:
        await held.wait()
        return list(items)

    grouped = Grouped(work, USUAL)
    one, two = asyncio.ensure_future(grouped(1)), asyncio.ensure_future(grouped(2))
    await asyncio.sleep(0.01)
    one.cancel()
    held.set()
    assert await two == 2
    with pytest.raises(asyncio.CancelledError):
        await one


async def test_items_of_different_kinds_never_share_a_group() -> None:
    groups: list[list[str]] = []

    async def work(items: Sequence[str]) -> list[str | Exception]:
        groups.append(list(items))
        await asyncio.sleep(0.01)
        return list(items)

    grouped = Grouped(work, USUAL, kind=lambda item: item[0])
    items = ["a1", "b1", "a2", "b2", "a3", "a4", "a5", "c1"]
    assert await asyncio.gather(*(grouped(item) for item in items)) == items
    assert groups == [["a1", "a2", "a3", "a4"], ["b1", "b2"], ["a5"], ["c1"]]


@pytest.mark.rule("O4")
async def test_what_has_given_up_takes_no_room_though_nobody_comes_to_do_it() -> None:
    held = asyncio.Event()
    done: list[int] = []

    async def work(items: Sequence[int]) -> list[int | Exception]:
        done.extend(items)
        try:
            await held.wait()
        except asyncio.CancelledError:
            await held.wait()  # As a driver does that waits for its server to confirm.
            raise
        return list(items)

    grouped = Grouped(work, Bounds(largest=1, abreast=1, room=3, patience=0.05))
    for number in range(5):
        outcomes = await asyncio.gather(*(grouped(3 * number + one) for one in range(3)), return_exceptions=True)
        assert all(isinstance(outcome, Unavailable) for outcome in outcomes)
    assert done == [0]
    held.set()
    await asyncio.sleep(0.01)
    assert await grouped(99) == 99
    assert done == [0, 99]


async def test_it_is_busy_while_as_many_groups_run_as_may_however_long_they_take_and_a_moment_longer() -> None:
    held = asyncio.Event()

    async def work(items: Sequence[int]) -> list[int | Exception]:
        await held.wait()
        return list(items)

    grouped = Grouped(work, USUAL)
    assert not grouped.busy
    calls = [asyncio.ensure_future(grouped(item)) for item in range(2)]
    await asyncio.sleep(3 * _MOMENT)
    assert grouped.busy
    held.set()
    await asyncio.gather(*calls)
    assert grouped.busy
    await asyncio.sleep(3 * _MOMENT)
    assert not grouped.busy
