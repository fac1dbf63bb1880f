"""What boards listens to. Each event is kept as it comes; none waits for another."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

from boards import commands
from boards.store import Store
from common import events as ev
from common.inbox import Handlers

HANDLERS = Handlers()


@HANDLERS.on(ev.AgentRegistered, ev.AgentUpdated, ev.AgentClaimed, ev.AgentReleased)
async def agent(connection: AsyncConnection, event: ev.AgentState, envelope: ev.Envelope) -> None:
    await Store(connection).put_agent(event, envelope.aggregateversion)


@HANDLERS.on(ev.AgentNameJudged)
async def name_judged(connection: AsyncConnection, event: ev.AgentNameJudged, envelope: ev.Envelope) -> None:
    await Store(connection).put_name(event, envelope.aggregateversion)


@HANDLERS.on(ev.ModelJudged)
async def model_judged(connection: AsyncConnection, event: ev.ModelJudged, envelope: ev.Envelope) -> None:
    await Store(connection).put_model(event, envelope.aggregateversion)


@HANDLERS.on(ev.ModelMapped)
async def model_mapped(connection: AsyncConnection, event: ev.ModelMapped, envelope: ev.Envelope) -> None:
    await Store(connection).put_mapping(event, envelope.aggregateversion)


@HANDLERS.on(ev.ContestOpened)
async def contest_opened(connection: AsyncConnection, event: ev.ContestOpened, envelope: ev.Envelope) -> None:
    await Store(connection).put_contest(event, envelope.aggregateversion)


@HANDLERS.on(ev.ContestRescheduled)
async def contest_rescheduled(connection: AsyncConnection, event: ev.ContestRescheduled, envelope: ev.Envelope) -> None:
    await Store(connection).put_schedule(event, envelope.aggregateversion)


@HANDLERS.on(ev.ContestCancelled)
async def contest_cancelled(connection: AsyncConnection, event: ev.ContestCancelled, envelope: ev.Envelope) -> None:
    await Store(connection).put_cancellation(event)


@HANDLERS.on(ev.ContestLocked)
async def contest_locked(connection: AsyncConnection, event: ev.ContestLocked, envelope: ev.Envelope) -> None:
    await Store(connection).put_lock(event)


@HANDLERS.on_many(ev.LineupLocked)
async def lineups_locked(connection: AsyncConnection, events: Sequence[ev.LineupLocked]) -> None:
    await Store(connection).put_lineups(events)


@HANDLERS.on(ev.ReasoningJudged)
async def reasoning_judged(connection: AsyncConnection, event: ev.ReasoningJudged, envelope: ev.Envelope) -> None:
    await Store(connection).put_states(event, envelope.aggregateversion)


@HANDLERS.on(ev.ReasoningReleased)
async def reasoning_released(connection: AsyncConnection, event: ev.ReasoningReleased, envelope: ev.Envelope) -> None:
    await Store(connection).put_words(event, envelope.aggregateversion)


@HANDLERS.on(ev.AgentRedacted)
async def agent_redacted(connection: AsyncConnection, event: ev.AgentRedacted, envelope: ev.Envelope) -> None:
    await commands.redact_agent(Store(connection), event)


@HANDLERS.on(ev.TextRedacted)
async def text_redacted(connection: AsyncConnection, event: ev.TextRedacted, envelope: ev.Envelope) -> None:
    await commands.redact(Store(connection), event)


@HANDLERS.on(ev.ScoresUpdated)
async def scores_updated(connection: AsyncConnection, event: ev.ScoresUpdated, envelope: ev.Envelope) -> None:
    await Store(connection).put_provisional(event)


@HANDLERS.on_many(ev.LineupSettled)
async def lineups_settled(connection: AsyncConnection, events: Sequence[ev.LineupSettled]) -> None:
    await commands.take_results(Store(connection), events)


@HANDLERS.on(ev.WeekSettled)
async def week_settled(connection: AsyncConnection, event: ev.WeekSettled, envelope: ev.Envelope) -> None:
    await commands.take_week(Store(connection), event)
