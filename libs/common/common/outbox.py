"""The outbox: a change and the event that tells of it are one transaction; a relay puts it on the bus.

Rows are never deleted: they are the service's own log. A crash between publish and commit publishes
again under the same ``Nats-Msg-Id``, which the stream drops within its duplicate window and every inbox
drops for good.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import psycopg
import uuid_utils
from pydantic_core import to_json
from sqlalchemy.ext.asyncio import AsyncConnection

from common.bus import Bus
from common.clock import wall
from common.db import Database, Unreachable, driver
from common.events import Event, schema_of
from common.logs import correlation_id, logger
from common.metrics import Metrics

_BATCH = 256
_RELAY_ALONE = "SELECT pg_advisory_xact_lock(x'4F555442'::int)"
"""The number spells OUTB: one relay at a time in a database keeps the order of publication."""
# The envelope as the text that goes out: nothing here looks into it.
_WAITING = """
SELECT position, event_id, subject, envelope::text AS envelope FROM outbox
WHERE published_at IS NULL ORDER BY position LIMIT $1
"""
_PUBLISHED = "UPDATE outbox SET published_at = clock_timestamp() WHERE position = ANY($1::bigint[])"
_POLL_SECONDS = 1.0
_REST = 8.0
"""How long the relay rests after a batch while it gives way, in times of what the batch took."""
_SHORTEST_REST, _LONGEST_REST = 0.5, 1.0
"""Seconds; short batches, one after the other, would cost those it gives way to more than long ones."""


async def emit(connection: AsyncConnection, event: Event, version: int) -> None:
    """Record an event in the caller's transaction. ``version`` is the aggregate's, growing with each change."""
    await emit_all(connection, [(event, version)])


async def emit_all(connection: AsyncConnection, events: Iterable[tuple[Event, int]]) -> None:
    """Record many events, in order, in the caller's transaction: pairs of event and aggregate version."""
    await record(
        await driver(connection),
        [recorded(type(event), event.aggregate(), event, version) for event, version in events],
    )


class Recorded(NamedTuple):
    """An event as the outbox keeps it; ``envelope`` is JSON."""

    event_id: UUID
    subject: str
    envelope: str


def recorded(kind: type[Event], aggregate: str, data: Any, version: int, *, correlation: str = "") -> Recorded:
    """An event to be recorded. ``data`` is the event, or plain values of its shape.

    ``correlation`` is that of the cause, the present one's where not given.
    """
    return recorded_json(kind, aggregate, to_json(data).decode(), version, correlation=correlation)


def recorded_json(kind: type[Event], aggregate: str, data: str, version: int, *, correlation: str = "") -> Recorded:
    """As :func:`recorded`, of data that is JSON already."""
    event_id = UUID(bytes=uuid_utils.uuid7().bytes)
    envelope = to_json(
        {
            "specversion": "1.0",
            "id": event_id,
            "source": f"/mafl/{kind.owner}",
            "type": kind.subject(),
            "subject": aggregate,
            "time": wall(),
            "datacontenttype": "application/json",
            "dataschema": schema_of(kind),
            "aggregateversion": version,
            "correlationid": correlation or correlation_id(),
        }
    ).decode()
    return Recorded(event_id, kind.subject(), f'{envelope[:-1]},"data":{data}}}')


_RECORD = """
INSERT INTO outbox (event_id, subject, envelope)
SELECT event_id, subject, envelope::jsonb
FROM unnest({}::uuid[], {}::text[], {}::text[]) WITH ORDINALITY AS given (event_id, subject, envelope, place)
ORDER BY place
"""
_RECORD_BY_PSYCOPG = _RECORD.format("%b", "%b", "%b")


async def record(connection: psycopg.AsyncConnection[Any], events: Sequence[Recorded]) -> None:
    """Write events, in order, into the outbox, in the transaction of the driver's connection."""
    if events:
        await connection.execute(_RECORD_BY_PSYCOPG, columns_of(events))


def recording(first: int) -> str:
    """The statement that writes events into the outbox, to stand behind others of a hot connection's one statement.

    Its parameters, numbered from ``first``, are the :func:`columns_of` of the events. No NOTIFY tells of them.
    """
    return _RECORD.format(*(f"${number}" for number in range(first, first + 3)))


def columns_of(events: Sequence[Recorded]) -> tuple[list[UUID], list[str], list[str]]:
    """Ids, subjects and envelopes of events, in order."""
    ids, subjects, envelopes = map(list, zip(*events, strict=True))
    return ids, subjects, envelopes


class Relay:
    """Publishes what the outbox holds, in order, as soon as it is committed."""

    def __init__(
        self, database: Database, bus: Bus, metrics: Metrics, *, gives_way_to: Callable[[], bool] = lambda: False
    ) -> None:
        """``gives_way_to`` says whether somebody waits for this process who must not wait for events."""
        self._database = database
        self._bus = bus
        self._metrics = metrics
        self._gives_way_to = gives_way_to
        self._news = asyncio.Event()

    def wake(self) -> None:
        """There is something to publish, of which no NOTIFY tells."""
        self._news.set()

    async def run(self) -> None:
        """Drain, then wait for the outbox's NOTIFY or to be woken; what tells of itself by neither waits a second."""
        async with self._database.listening("outbox", self.wake) as listener:
            while not listener.is_closed():
                self._news.clear()
                began = time.monotonic()
                while await self.drain():
                    if self._gives_way_to():
                        rest = _REST * (time.monotonic() - began)
                        await asyncio.sleep(min(max(rest, _SHORTEST_REST), _LONGEST_REST))
                    began = time.monotonic()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_POLL_SECONDS):
                        await self._news.wait()
            raise Unreachable("the connection that listens to the outbox was closed")

    async def drain(self) -> int:
        """Publish one batch; the number of rows that are on the bus now.

        What could not be published stays for the next round; a later row may then overtake it, which
        consumers bear because each event carries its aggregate's version.
        """
        async with self._database.hot_transaction() as connection:
            await connection.execute(_RELAY_ALONE)
            waiting = await connection.fetch(_WAITING, _BATCH)
            if not waiting:
                self._metrics.outbox_waiting.set(0)
                return 0
            outcomes = await self._bus.publish_all(
                [(row["subject"], row["envelope"].encode(), str(row["event_id"])) for row in waiting]
            )
            sent = [row for row, kept_out in zip(waiting, outcomes, strict=True) if kept_out is None]
            if sent:
                await connection.execute(_PUBLISHED, [row["position"] for row in sent])
            for subject, many in Counter(row["subject"] for row in sent).items():
                self._metrics.outbox_published.labels(subject).inc(many)
            self._metrics.outbox_waiting.set(len(waiting) - len(sent))
        if len(sent) < len(waiting):
            failure = next(kept_out for kept_out in outcomes if kept_out is not None)
            logger.warning("events wait in the outbox", waiting=len(waiting) - len(sent), error=repr(failure))
            if not sent:
                # One event that the bus will never take must not slow down all others.
                await asyncio.sleep(_POLL_SECONDS)
        return len(sent)
