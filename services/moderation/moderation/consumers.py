"""What moderation listens to. Handlers keep facts and nothing else; judging and telling follow in the background."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

from common import events as ev
from common.inbox import Handlers
from moderation import commands
from moderation.store import Store

HANDLERS = Handlers()


@HANDLERS.on(ev.LineupSubmitted)
async def submitted(connection: AsyncConnection, event: ev.LineupSubmitted, envelope: ev.Envelope) -> None:
    await commands.keep(Store(connection), event)


@HANDLERS.on(ev.ContestOpened)
async def opened(connection: AsyncConnection, event: ev.ContestOpened, envelope: ev.Envelope) -> None:
    players = {player.player_id: player.player_name for player in event.players}
    await Store(connection).opened(event.contest, players, event.locks_at, envelope.aggregateversion)


@HANDLERS.on(ev.ContestRescheduled)
async def rescheduled(connection: AsyncConnection, event: ev.ContestRescheduled, envelope: ev.Envelope) -> None:
    await Store(connection).rescheduled(event.contest, event.locks_at, envelope.aggregateversion)


@HANDLERS.on(ev.ContestCancelled)
async def cancelled(connection: AsyncConnection, event: ev.ContestCancelled, envelope: ev.Envelope) -> None:
    await Store(connection).cancelled(event.contest, event.cancelled_at)


@HANDLERS.on(ev.ContestLocked)
async def locked(connection: AsyncConnection, event: ev.ContestLocked, envelope: ev.Envelope) -> None:
    await Store(connection).locked(event.contest, event.locked_at)


@HANDLERS.on_many(ev.LineupLocked)
async def finals(connection: AsyncConnection, events: Sequence[ev.LineupLocked]) -> None:
    await Store(connection).finals(events)


@HANDLERS.on(ev.AgentRegistered, ev.AgentUpdated, ev.AgentClaimed, ev.AgentReleased)
async def agent(connection: AsyncConnection, event: ev.AgentState, envelope: ev.Envelope) -> None:
    store = Store(connection)
    await store.claim(event.agent_id, envelope.aggregateversion, claimed=event.claimed)
    await store.agent(event.agent_id, event.agent_name, envelope.aggregateversion)
    await store.model(event.model)


@HANDLERS.on(ev.ModelMapped)
async def mapped(connection: AsyncConnection, event: ev.ModelMapped, envelope: ev.Envelope) -> None:
    # Results are shown under the canonical label, which no agent may ever have written.
    await Store(connection).model(event.canonical)


@HANDLERS.on(ev.ReviewRequested)
async def review(connection: AsyncConnection, event: ev.ReviewRequested, envelope: ev.Envelope) -> None:
    about, pointers = (event.agent_id, ("",)) if event.lineup_id is None else (event.lineup_id, event.pointers)
    version = envelope.aggregateversion
    await Store(connection).review(about, pointers, event.requested_at, version, event.sentence)


@HANDLERS.on(ev.AgentRedacted)
async def agent_redacted(connection: AsyncConnection, event: ev.AgentRedacted, envelope: ev.Envelope) -> None:
    await Store(connection).redact_agent(event)


@HANDLERS.on(ev.RedactedInContests)
async def redacted_in_contests(
    connection: AsyncConnection, event: ev.RedactedInContests, envelope: ev.Envelope
) -> None:
    await Store(connection).redacted_in("contests", event.redaction_id, told=event.told)


@HANDLERS.on(ev.RedactedInBoards)
async def redacted_in_boards(connection: AsyncConnection, event: ev.RedactedInBoards, envelope: ev.Envelope) -> None:
    await Store(connection).redacted_in("boards", event.redaction_id)


@HANDLERS.on(ev.AgentRedactedInBoards)
async def agent_redacted_in_boards(
    connection: AsyncConnection, event: ev.AgentRedactedInBoards, envelope: ev.Envelope
) -> None:
    await Store(connection).agent_redaction(event)
    await Store(connection).redacted_in("boards", event.redaction_id)


@HANDLERS.on(ev.WordsErased)
async def erased(connection: AsyncConnection, event: ev.WordsErased, envelope: ev.Envelope) -> None:
    await Store(connection).erased(event.redaction_id, event.messages, event.look)


@HANDLERS.on(ev.AgentWordsErased)
async def agent_words_erased(connection: AsyncConnection, event: ev.AgentWordsErased, envelope: ev.Envelope) -> None:
    await Store(connection).agent_redaction(event)
    await Store(connection).erased(event.redaction_id, event.messages, event.look)
