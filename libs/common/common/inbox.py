"""The inbox: every event is applied once, in the same transaction as its effect."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from common.db import INBOX
from common.events import Envelope, Event
from common.logs import correlate
from common.poison import Poison

E = TypeVar("E", bound=Event)
Handler = Callable[[AsyncConnection, E, Envelope], Awaitable[None]]


@dataclass(frozen=True)
class Delivery:
    """An event with the envelope it came in."""

    envelope: Envelope
    event: Event

    @property
    def id(self) -> UUID:
        return self.envelope.id


class Handlers:
    """Which function takes which event: a service's whole intake in one table."""

    def __init__(self) -> None:
        self._table: dict[type[Event], Handler[Any]] = {}

    def on(self, *events: type[E]) -> Callable[[Handler[E]], Handler[E]]:
        """Register a function for events. Raises ``ValueError`` if one is taken already."""

        def register(handler: Handler[E]) -> Handler[E]:
            for event in events:
                if event in self._table:
                    raise ValueError(f"{event.subject()} has a handler already")
                self._table[event] = handler
            return handler

        return register

    def copy(self) -> Handlers:
        """The same table, to which more can be added without changing this one."""
        other = Handlers()
        other._table = dict(self._table)
        return other

    def __contains__(self, event: type[Event]) -> bool:
        return event in self._table

    def handler(self, event: type[Event]) -> Handler[Any]:
        """The function for an event. Raises :class:`Poison` where there is none."""
        try:
            return self._table[event]
        except KeyError:
            raise Poison(f"nothing here takes {event.subject()}") from None


async def apply(connection: AsyncConnection, deliveries: Sequence[Delivery], handlers: Handlers) -> set[UUID]:
    """Apply what was not applied before, in order; the ids that were new."""
    statement = (
        insert(INBOX)
        .values([{"event_id": delivery.id} for delivery in sorted(deliveries, key=lambda d: d.id)])
        .on_conflict_do_nothing()
        .returning(INBOX.c.event_id)
    )
    fresh = set((await connection.execute(statement)).scalars())
    pending = set(fresh)
    for delivery in deliveries:
        if delivery.id in pending:
            pending.remove(delivery.id)
            correlate(delivery.envelope.correlationid)
            await handlers.handler(type(delivery.event))(connection, delivery.event, delivery.envelope)
    return fresh
