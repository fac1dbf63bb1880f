"""What contests listens to: agents and their keys, kept as a projection for submissions; words that go for good."""

from sqlalchemy.ext.asyncio import AsyncConnection

from common import events as ev
from common.inbox import Handlers
from contests import commands
from contests.domain import Agent
from contests.store import Store

HANDLERS = Handlers()


@HANDLERS.on(ev.AgentRegistered, ev.AgentUpdated, ev.AgentClaimed, ev.AgentReleased)
async def agent_changed(connection: AsyncConnection, event: ev.AgentState, envelope: ev.Envelope) -> None:
    """Model and marks, as they will be taken at the agent's next revision."""
    agent = Agent(event.agent_id, event.model, event.marks)
    await Store(connection).learn_agent(agent, envelope.aggregateversion)


@HANDLERS.on(ev.AgentKeyChanged)
async def key_changed(connection: AsyncConnection, event: ev.AgentKeyChanged, envelope: ev.Envelope) -> None:
    """The one key that an agent has from now on."""
    await Store(connection).learn_key(event.agent_id, event.key_hash, envelope.aggregateversion)


@HANDLERS.on(ev.RedactionOrdered)
async def redaction_ordered(connection: AsyncConnection, event: ev.RedactionOrdered, envelope: ev.Envelope) -> None:
    """An operator orders that the words of a text go for good."""
    await commands.redact(Store(connection), event)
