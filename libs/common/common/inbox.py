"""The inbox: every event is applied once, in the same transaction as its effect."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from common.db import driver
from common.events import Envelope, Event
from common.logs import correlate
from common.poison import Poison

E = TypeVar("E", bound=Event)
Handler = Callable[[AsyncConnection, E, Envelope], Awaitable[None]]
HandlerOfMany = Callable[[AsyncConnection, Sequence[E]], Awaitable[None]]


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
        self._of_many: dict[type[Event], HandlerOfMany[Any]] = {}

    def on(self, *events: type[E]) -> Callable[[Handler[E]], Handler[E]]:
        """Register a function for events. Raises ``ValueError`` if one is taken already."""

        def register(handler: Handler[E]) -> Handler[E]:
            for event in events:
                self._is_free(event)
                self._table[event] = handler
            return handler

        return register

    def on_many(self, event: type[E]) -> Callable[[HandlerOfMany[E]], HandlerOfMany[E]]:
        """As :meth:`on`, a function that takes those of an event that come one after the other, all at once."""

        def register(handler: HandlerOfMany[E]) -> HandlerOfMany[E]:
            self._is_free(event)
            self._of_many[event] = handler
            return handler

        return register

    def _is_free(self, event: type[Event]) -> None:
        if event in self:
            raise ValueError(f"{event.subject()} has a handler already")

    def copy(self) -> Handlers:
        """The same table, to which more can be added without changing this one."""
        other = Handlers()
        other._table = dict(self._table)
        other._of_many = dict(self._of_many)
        return other

    def __contains__(self, event: type[Event]) -> bool:
        return event in self._table or event in self._of_many

    async def handle(self, connection: AsyncConnection, kind: type[Event], deliveries: Sequence[Delivery]) -> None:
        """Apply events of one kind, in order. Raises :class:`Poison` where nothing takes them."""
        if (handler_of_many := self._of_many.get(kind)) is not None:
            correlate(deliveries[0].envelope.correlationid)
            await handler_of_many(connection, [delivery.event for delivery in deliveries])
            return
        handler = self._table.get(kind)
        if handler is None:
            raise Poison(f"nothing here takes {kind.subject()}")
        for delivery in deliveries:
            correlate(delivery.envelope.correlationid)
            await handler(connection, delivery.event, delivery.envelope)


_TAKE = """
INSERT INTO inbox (event_id) SELECT event_id FROM unnest(%b::uuid[]) AS given (event_id) ORDER BY event_id
ON CONFLICT DO NOTHING RETURNING event_id
"""


async def apply(connection: AsyncConnection, deliveries: Sequence[Delivery], handlers: Handlers) -> set[UUID]:
    """Apply what was not applied before, in order; the ids that were new."""
    taken = await (await driver(connection)).execute(_TAKE, [[delivery.id for delivery in deliveries]])
    fresh = {event_id for (event_id,) in await taken.fetchall()}
    pending = {delivery.id: delivery for delivery in deliveries if delivery.id in fresh}.values()
    for kind, of_kind in groupby(pending, key=lambda delivery: type(delivery.event)):
        await handlers.handle(connection, kind, list(of_kind))
    return fresh
