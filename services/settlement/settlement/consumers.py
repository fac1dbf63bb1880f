"""What settlement listens to: contests, their schedules and locks, and the lineups that were frozen.

Events of different aggregates come in any order, so each is kept as it arrives and asks for no other.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

from common import events as ev
from common.inbox import Handlers
from settlement.store import Store

HANDLERS = Handlers()


@HANDLERS.on(ev.ContestOpened)
async def opened(connection: AsyncConnection, event: ev.ContestOpened, envelope: ev.Envelope) -> None:
    """Keep the pool, roster, cap and scoring that the contest will be settled by."""
    await Store(connection).keep_opened(event, envelope.aggregateversion)


@HANDLERS.on(ev.ContestRescheduled)
async def rescheduled(connection: AsyncConnection, event: ev.ContestRescheduled, envelope: ev.Envelope) -> None:
    """Keep the newest schedule."""
    await Store(connection).keep_schedule(event, envelope.aggregateversion)


@HANDLERS.on(ev.ContestCancelled)
async def cancelled(connection: AsyncConnection, event: ev.ContestCancelled, envelope: ev.Envelope) -> None:
    """Keep that there will be nothing to settle."""
    await Store(connection).keep_cancelled(event)


@HANDLERS.on(ev.ContestLocked)
async def locked(connection: AsyncConnection, event: ev.ContestLocked, envelope: ev.Envelope) -> None:
    """Keep how many lineups there will be to settle, and by which schedule."""
    await Store(connection).keep_locked(event, envelope.aggregateversion)


@HANDLERS.on_many(ev.LineupLocked)
async def lineups_locked(connection: AsyncConnection, events: Sequence[ev.LineupLocked]) -> None:
    """Keep frozen lineups."""
    await Store(connection).keep_lineups(events)
