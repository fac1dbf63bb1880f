"""What boards does with its record: one function a use case."""

from __future__ import annotations

from boards.store import Progress, Store
from common import events as ev


async def take_result(store: Store, event: ev.LineupSettled) -> None:
    """Keep a lineup's result; switch to its settlement version when that is whole."""
    await _switch_if_whole(store, event.contest, event.settlement, await store.put_result(event))


async def take_week(store: Store, event: ev.WeekSettled) -> None:
    """Keep a settlement version's summary; switch to it when all of its results are here."""
    await _switch_if_whole(store, event.contest, event.settlement, await store.put_week(event))


async def _switch_if_whole(store: Store, contest: str, settlement: int, progress: Progress) -> None:
    if progress.complete and await store.show(contest, settlement):
        await store.make_row_weeks(contest)


async def rebuild(store: Store) -> int:
    """Drop the boards and make them again from the record, in the caller's transaction; the number of contests.

    Readers see the old boards until the transaction commits.
    """
    await store.drop_boards()
    settlements = await store.complete_settlements()
    for contest, settlement in settlements:
        await store.show(contest, settlement)
    await store.make_row_weeks()
    return len(settlements)
