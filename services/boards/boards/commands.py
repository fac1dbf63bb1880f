"""What boards does with its record: one function a use case."""

from __future__ import annotations

from collections.abc import Sequence

import anyio.to_thread

from boards.store import Progress, Record, Store
from common import events as ev
from common.logs import logger
from common.outbox import emit
from common.settled import digest, lineup_form


async def take_results(store: Store, events: Sequence[ev.LineupSettled]) -> None:
    """Keep lineups' results; switch to their settlement versions where those are whole."""
    for progress in await store.put_results(events):
        await _switch_if_whole(store, progress)


async def take_week(store: Store, event: ev.WeekSettled) -> None:
    """Keep a settlement version's summary; switch to it when all of its results are here."""
    await _switch_if_whole(store, await store.put_week(event))


async def redact(store: Store, event: ev.TextRedacted) -> None:
    """Let a text go for good, and tell that it is gone (M6)."""
    await store.put_redaction(event)
    about = event.model_dump(exclude={"leaf", "reason", "redacted_at"})
    await emit(store.connection, ev.RedactedInBoards(**about), 1)


async def redact_agent(store: Store, event: ev.AgentRedacted) -> None:
    """Let an agent's name go for good, and tell that it is gone (M6); a description boards never has."""
    if "name" in event.fields:
        await store.redact_name(event)
    about = event.model_dump(include=set(ev.AgentRedaction.model_fields))
    await emit(store.connection, ev.AgentRedactedInBoards(**about), 1)


async def _switch_if_whole(store: Store, progress: Progress) -> None:
    contest, settlement = progress.contest, progress.settlement
    if progress.complete and await _proven(store, contest, settlement) and await store.show(contest, settlement):
        await store.make_row_weeks(contest)


async def _proven(store: Store, contest: str, settlement: int) -> bool:
    """Whether the results of a version are those that its digest names.

    One that are is marked so, and is readable from then on, also once a later one is shown. A version that is not
    stays kept and unshown, and counted among the weeks that wait; a person must look.
    """
    week = await store.settled(contest, settlement)
    forms: list[bytes] = []
    async for results in store.results(contest, settlement):
        forms += await anyio.to_thread.run_sync(_forms, results)
    optimal = ev.OptimalLineup.model_validate(week.optimal)
    found = await anyio.to_thread.run_sync(digest, contest, week.scoring, optimal, week.players, forms)
    if found != week.digest:
        logger.error("results do not have their digest", contest=contest, settlement=settlement, found=found)
        return False
    await store.prove(contest, settlement)
    return True


def _forms(results: Sequence[Record]) -> list[bytes]:
    return [
        lineup_form(
            result.model,
            ev.Marks(house=result.house, cohort=result.cohort, reference=result.reference),
            result.points,
            result.share,
            result.regret,
            ((pick["slot"], pick["player_id"], pick["price"], pick["points"]) for pick in result.picks),
        )
        for result in results
    ]


async def rebuild(store: Store) -> int:
    """Drop the boards and make them again from the record, in the caller's transaction; the number of contests.

    Readers see the old boards until the transaction commits.
    """
    await store.drop_boards()
    shown: set[str] = set()
    for contest, settlement in await store.complete_settlements():
        if await _proven(store, contest, settlement) and contest not in shown:
            await store.show(contest, settlement)
            shown.add(contest)
    await store.make_row_weeks()
    return len(shown)
