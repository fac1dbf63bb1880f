"""The inbox: what is applied, how often, and in which company."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from uuid import uuid4

import pytest
from probe import locked
from sqlalchemy.ext.asyncio import AsyncConnection

from common import events as ev
from common.clock import wall
from common.inbox import Delivery, Handlers, apply
from common.poison import Poison
from testkit.fixtures import Started

Run = Callable[..., AbstractAsyncContextManager[Started]]


def delivery(event: ev.Event) -> Delivery:
    return Delivery(ev.pack(event, event_id=uuid4(), aggregate_version=1, correlation_id="test", time=wall()), event)


def moved() -> Delivery:
    return delivery(ev.ClockMoved(now=wall()))


@pytest.mark.rule("O4")
async def test_events_of_a_kind_that_follow_each_other_are_applied_together_and_each_once(run: Run) -> None:
    seen: list[list[str]] = []
    handlers = Handlers()

    @handlers.on_many(ev.ContestLocked)
    async def many(connection: AsyncConnection, events: Sequence[ev.ContestLocked]) -> None:
        seen.append([event.contest for event in events])

    @handlers.on(ev.ClockMoved)
    async def one(connection: AsyncConnection, event: ev.ClockMoved, envelope: ev.Envelope) -> None:
        seen.append(["clock"])

    first, second, third = (delivery(locked(f"2017-W0{week}")) for week in (1, 2, 3))
    async with run() as service, service.runtime.database.transaction() as connection:
        assert await apply(connection, [first], handlers) == {first.id}
        batch = [moved(), moved(), second, first, second, third, moved(), second]
        assert await apply(connection, batch, handlers) == {one.id for one in batch} - {first.id}
        assert await apply(connection, batch, handlers) == set()
    assert seen == [["2017-W01"], ["clock"], ["clock"], ["2017-W02", "2017-W03"], ["clock"]]


async def test_an_event_has_one_handler_of_either_kind(run: Run) -> None:
    handlers = Handlers()

    @handlers.on_many(ev.ContestLocked)
    async def many(connection: AsyncConnection, events: Sequence[ev.ContestLocked]) -> None: ...

    with pytest.raises(ValueError, match="has a handler already"):
        handlers.on(ev.ContestLocked)(lambda *_: None)  # type: ignore[arg-type,return-value]
    assert ev.ContestLocked in handlers.copy()
    assert ev.ClockMoved not in handlers
    async with run() as service, service.runtime.database.transaction() as connection:
        with pytest.raises(Poison, match=r"nothing here takes clock\.moved\.v1"):
            await apply(connection, [moved()], handlers)
