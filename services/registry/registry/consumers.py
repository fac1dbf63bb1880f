"""What the registry listens to: what an owner's page shows of the agents. The replay clock common follows itself."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

from common import events as ev
from common.inbox import Handlers
from registry.store import Field, Store

HANDLERS = Handlers()


@HANDLERS.on_many(ev.LineupLocked)
async def locked(connection: AsyncConnection, events: Sequence[ev.LineupLocked]) -> None:
    """Of every agent: one that is claimed later brings its history along (A5)."""
    await Store(connection).put_lineups(events)


@HANDLERS.on(ev.ReasoningJudged)
async def judged(connection: AsyncConnection, event: ev.ReasoningJudged, envelope: ev.Envelope) -> None:
    fields = [
        Field(field.pointer, field.state, event.reasons.get(field.pointer, ()), field.reviewed)
        for field in event.fields
    ]
    version, at = envelope.aggregateversion, envelope.time
    await Store(connection).put_reasoning(event.lineup_id, event.agent_id, fields, version, at=at)


@HANDLERS.on(ev.AgentNameJudged)
async def name_judged(connection: AsyncConnection, event: ev.AgentNameJudged, envelope: ev.Envelope) -> None:
    await Store(connection).put_name_state(
        event.agent_id,
        event.state,
        envelope.aggregateversion,
        reasons=event.reasons,
        reviewed=event.reviewed,
        at=envelope.time,
    )


@HANDLERS.on(ev.TextRedacted)
async def redacted(connection: AsyncConnection, event: ev.TextRedacted, envelope: ev.Envelope) -> None:
    """What owners said for a text that is gone for good goes with it: it may quote it (M6)."""
    await Store(connection).put_redaction(event.lineup_id, event.pointer, event.reason.value, event.redacted_at)
