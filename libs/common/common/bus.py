"""The bus: one NATS connection of a service, publishing, requests, and pull consumers that lose nothing.

Written on nats-py alone (docs/adr/0002): a batch of events is applied in one transaction, an exception
never loses a message, a durable that vanished is waited for and not spun on, and what can never succeed
goes to the dead letters.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import PubAck
from pydantic import ValidationError

from common import topology
from common.db import Database, unavailable
from common.events import BY_SUBJECT, Envelope, unpack
from common.inbox import Delivery, Handlers, apply
from common.logs import correlate, logger
from common.metrics import Metrics
from common.poison import Poison

__all__ = ["Bus", "Consumer", "Poison", "Rpc"]

Rpc = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]

RETRY_DELAYS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds between the deliveries of an event whose handler raises; after the last it is a dead letter."""

ACK_WAIT = 5.0
"""Seconds that the server waits for an answer; what a killed process held comes again after them."""

BATCH = 256
_PULL_SECONDS = 5.0
_HEARTBEAT_SECONDS = 0.5
_BROKEN_PAUSE = 0.5
_PUBLISH_PATIENCE = 5.0
"""Seconds in which a stream acknowledges a batch; a disk that writes each message by itself may be slow."""


_LARGEST_BATCH = 8 << 20
"""Bytes that go into a stream as one; it holds them in memory until it has all."""
_LONGEST_BATCH = 1_000
"""Messages; what a server takes."""
_LARGEST_IN_BATCH = 64 << 10
"""Bytes of a message; a larger one goes by itself, since one that no stream takes would keep out its batch."""

Message = tuple[str, bytes, str]
"""A subject, a body and a message id."""


def _by_stream(messages: Sequence[Message]) -> Iterable[list[int]]:
    """The places of messages that may go into a stream as one, in their order."""
    places: dict[str | int, list[int]] = {}
    for place, (subject, body, _) in enumerate(messages):
        kind = BY_SUBJECT.get(subject)
        stream = kind.stream if kind is not None and len(body) <= _LARGEST_IN_BATCH else place
        places.setdefault(stream, []).append(place)
    for of_stream in places.values():
        for start in range(0, len(of_stream), _LONGEST_BATCH):
            yield of_stream[start : start + _LONGEST_BATCH]


class Bus:
    """A service's connection to NATS. It connects in the background and reconnects for ever."""

    def __init__(self, url: str, user: str) -> None:
        self._url = url
        self._user = user
        self._client = Client()
        self._js = JetStreamContext(self._client)
        self._rpc: dict[str, Rpc] = {}

    async def connect(self) -> None:
        """Connect, trying again until it succeeds, then answer the requests that :meth:`answer` named."""
        options: dict[str, Any] = {
            "name": self._user,
            "inbox_prefix": topology.inbox_prefix(self._user).encode(),
            "max_reconnect_attempts": -1,
            "reconnect_time_wait": 0.2,
            "connect_timeout": 2,
            "ping_interval": 5,
            "max_outstanding_pings": 2,
            "error_cb": self._on_error,
        }
        while True:
            try:
                self._client = await nats.connect(self._url, **options)
                break
            except (OSError, nats.errors.Error, TimeoutError) as error:
                logger.warning("the bus does not answer", server=urlsplit(self._url).hostname, error=repr(error))
                await asyncio.sleep(_BROKEN_PAUSE)
        self._js = self._client.jetstream(timeout=2)
        for subject, handler in self._rpc.items():
            await self._client.subscribe(subject, queue=self._user, cb=_answering(handler))

    def answer(self, subject: str, handler: Rpc) -> None:
        """Answer requests on a subject, shared with the other copies of this service. Call before connecting."""
        self._rpc[subject] = handler

    @property
    def connected(self) -> bool:
        return self._client.is_connected

    @property
    def client(self) -> Client:
        return self._client

    @property
    def js(self) -> JetStreamContext:
        return self._js

    async def publish_all(self, messages: Sequence[Message]) -> list[BaseException | None]:
        """Put messages, each a subject, a body and a message id, into their streams in order, acknowledged together.

        For each, in order, what kept it out of its stream, or None once the stream has it. Raises nothing.
        Those of one stream go in as one, which a disk that writes before it answers does in one go (docs/adr/0027).
        """
        if not self._client.is_connected:
            return [ConnectionError("not connected to the bus") for _ in messages]
        outcomes: list[BaseException | None] = [None] * len(messages)
        one_by_one: list[int] = []
        for of_stream in _by_stream(messages):
            if not await self._publish_as_one([messages[place] for place in of_stream]):
                one_by_one += of_stream
        one_by_one.sort()
        kept_out = await self._publish_one_by_one([messages[place] for place in one_by_one])
        for place, outcome in zip(one_by_one, kept_out, strict=True):
            outcomes[place] = outcome
        return outcomes

    async def _publish_as_one(self, messages: Sequence[Message]) -> bool:
        """Put messages into their stream in order, all or none; whether it has told that it has them all.

        It takes none where it has one of them already, and may have taken all where it told of nothing: they can all
        be published again, one by one, since it drops those that it has.
        """
        if len(messages) < 2 or sum(len(body) for _, body, _ in messages) > _LARGEST_BATCH:
            return False
        batch = {"Nats-Batch-Id": uuid4().hex}
        try:
            for number, (subject, body, message_id) in enumerate(messages[:-1], start=1):
                headers = {**batch, "Nats-Batch-Sequence": str(number), "Nats-Msg-Id": message_id}
                await self._client.publish(subject, body, headers=headers)
            subject, body, message_id = messages[-1]
            headers = {**batch, "Nats-Batch-Sequence": str(len(messages)), "Nats-Msg-Id": message_id}
            headers["Nats-Batch-Commit"] = "1"
            reply = await self._client.request(subject, body, timeout=_PUBLISH_PATIENCE, headers=headers)
            answer = json.loads(reply.data)
        except (nats.errors.Error, OSError, ValueError) as error:
            logger.warning("messages go out one by one", messages=len(messages), error=repr(error))
            return False
        # A server that knows no batches answers for the last message alone.
        if answer.get("count") != len(messages):
            logger.warning("messages go out one by one", messages=len(messages), answer=answer)
            return False
        return True

    async def _publish_one_by_one(self, messages: Sequence[Message]) -> list[BaseException | None]:
        outcomes: list[asyncio.Future[PubAck] | BaseException] = []
        for subject, body, message_id in messages:
            try:
                outcomes.append(await self._js.publish_async(subject, body, headers={"Nats-Msg-Id": message_id}))
            except (nats.errors.Error, OSError) as error:
                outcomes.append(error)
        waiting = [outcome for outcome in outcomes if isinstance(outcome, asyncio.Future)]
        if waiting:
            _, late = await asyncio.wait(waiting, timeout=_PUBLISH_PATIENCE)
            for outcome in late:
                outcome.cancel()
        return [_kept_out(outcome) for outcome in outcomes]

    async def request(self, subject: str, payload: dict[str, Any], *, patience: float = 0.5) -> dict[str, Any]:
        """Ask another service. Raises ``ConnectionError`` when nobody answers in ``patience`` seconds."""
        if not self._client.is_connected:
            raise ConnectionError("not connected to the bus")
        try:
            reply = await self._client.request(subject, json.dumps(payload).encode(), timeout=patience)
            answer: dict[str, Any] = json.loads(reply.data)
        except (nats.errors.Error, TimeoutError, ValueError) as error:
            raise ConnectionError(f"no answer on {subject}: {error!r}") from error
        if "error" in answer:
            raise ConnectionError(f"{subject} failed: {answer['error']}")
        return answer

    async def close(self) -> None:
        if not self._client.is_connected and not self._client.is_reconnecting:
            return
        with contextlib.suppress(nats.errors.Error, TimeoutError, OSError):
            await self._client.close()

    async def _on_error(self, error: Exception) -> None:
        # A refused subject looks like a plain time-out to the caller; only here is the cause to be seen.
        level = "error" if "permissions violation" in str(error).lower() else "warning"
        getattr(logger, level)("bus error", error=repr(error))


def _kept_out(outcome: asyncio.Future[PubAck] | BaseException) -> BaseException | None:
    if isinstance(outcome, BaseException):
        return outcome
    if outcome.cancelled() or not outcome.done():
        return TimeoutError("the stream did not acknowledge it in time")
    return outcome.exception()


def _answering(handler: Rpc) -> Callable[[Msg], Awaitable[None]]:
    async def answer(message: Msg) -> None:
        try:
            reply = await handler(json.loads(message.data))
        except Exception as error:
            logger.exception("a request could not be answered", subject=message.subject)
            reply = {"error": type(error).__name__}
        await message.respond(json.dumps(reply).encode())

    return answer


async def _next(arrived: asyncio.Queue[Msg], patience: float) -> Msg:
    """The next message. Raises ``TimeoutError`` when none comes for ``patience`` seconds."""
    with contextlib.suppress(asyncio.QueueEmpty):
        return arrived.get_nowait()
    async with asyncio.timeout(patience):
        return await arrived.get()


class Consumer:
    """Reads one durable for ever and applies its events in batches, each batch in one transaction."""

    def __init__(
        self,
        durable: topology.Durable,
        *,
        bus: Bus,
        database: Database,
        handlers: Handlers,
        metrics: Metrics,
        after: Callable[[], None] = lambda: None,
    ) -> None:
        self.durable = durable
        self._bus = bus
        self._database = database
        self._handlers = handlers
        self._metrics = metrics
        self._after = after
        self._next = f"$JS.API.CONSUMER.MSG.NEXT.{durable.stream}.{durable.service}"
        self._held: list[Msg] = []
        self.heard_at = time.monotonic()
        self.broken = False

    async def run(self) -> None:
        """Pull and apply until cancelled."""
        inbox = self._bus.client.new_inbox()
        # A queue of our own: the client's own way to wait for a message makes two tasks for each.
        arrived: asyncio.Queue[Msg] = asyncio.Queue()
        subscription = await self._bus.client.subscribe(
            f"{inbox}.*", cb=arrived.put, pending_msgs_limit=-1, pending_bytes_limit=-1
        )
        alive = asyncio.create_task(self._keep_alive())
        try:
            number = 0
            waiting = False
            while True:
                number += 1
                messages = await self._pull(arrived, f"{inbox}.{number}", wait=waiting)
                waiting = not messages
                if messages:
                    self._held = messages
                    try:
                        await self._process(messages)
                    finally:
                        self._held = []
                    self._after()
        finally:
            alive.cancel()
            with contextlib.suppress(nats.errors.Error):
                await subscription.unsubscribe()

    async def _pull(self, arrived: asyncio.Queue[Msg], reply: str, *, wait: bool) -> list[Msg]:
        """One pull request: whatever is there at once, or (``wait``) the next message when it comes.

        A request is always seen to its end, so that no message arrives for a request that nobody
        awaits and everything that this process holds is in one list.
        """
        request: dict[str, int | bool] = {"batch": BATCH, "no_wait": True}
        patience = 2.0
        if wait:
            request = {
                "batch": 1,
                "expires": int(_PULL_SECONDS * 1e9),
                "idle_heartbeat": int(_HEARTBEAT_SECONDS * 1e9),
            }
            patience = _HEARTBEAT_SECONDS * 3
        await self._bus.client.publish(self._next, json.dumps(request).encode(), reply)
        messages: list[Msg] = []
        while len(messages) < int(request["batch"]):
            try:
                message = await _next(arrived, patience)
            except TimeoutError:
                # No heartbeat: the connection was lost, or the durable is gone. Ask anew.
                break
            status = (message.headers or {}).get("Status") if not message.reply else None
            if status == "100":
                self._heard()
            elif status in ("404", "408"):
                if message.subject == reply:
                    self._heard()
                    break
            elif status is not None:
                description = (message.headers or {}).get("Description", "")
                if message.subject == reply:
                    await self._wait_for_repair(f"{status} {description}")
                    break
            else:
                self._heard()
                messages.append(message)
        return messages

    def _heard(self) -> None:
        self.heard_at = time.monotonic()
        if self.broken:
            self.broken = False
            self._metrics.consumer_broken.labels(self.durable.stream).set(0)
            logger.warning("durable can be read again", stream=self.durable.stream)

    async def _wait_for_repair(self, why: str) -> None:
        if not self.broken:
            self.broken = True
            self._metrics.consumer_broken.labels(self.durable.stream).set(1)
            logger.error("durable cannot be read; waiting for the provisioner", stream=self.durable.stream, why=why)
        await asyncio.sleep(_BROKEN_PAUSE)

    async def _keep_alive(self) -> None:
        # While a batch waits for a database that is down, the server must not deliver it again.
        while True:
            await asyncio.sleep(ACK_WAIT / 3)
            for message in list(self._held):
                with contextlib.suppress(nats.errors.Error, OSError):
                    await message.in_progress()

    async def _process(self, messages: list[Msg]) -> None:
        deliveries: list[tuple[Msg, Delivery]] = []
        for message in messages:
            try:
                envelope = Envelope.model_validate_json(message.data)
                deliveries.append((message, Delivery(envelope, unpack(envelope))))
            except (ValidationError, KeyError) as error:
                await self._bury(message, f"unreadable: {error}")
        if not deliveries:
            return
        try:
            await self._apply([delivery for _, delivery in deliveries])
        except Exception as error:
            if len(deliveries) == 1:
                await self._failed(*deliveries[0], error)
                return
            # One bad event fails its batch: find it by taking them one by one.
            for message, delivery in deliveries:
                try:
                    await self._apply([delivery])
                except Exception as single:
                    await self._failed(message, delivery, single)
                else:
                    await message.ack()
        else:
            for message, _ in deliveries:
                await message.ack()

    async def _apply(self, deliveries: list[Delivery]) -> None:
        pause = 0.1
        while True:
            try:
                async with self._database.transaction() as connection:
                    fresh = await apply(connection, deliveries, self._handlers)
            except Exception as error:
                if not unavailable(error):
                    raise
                logger.warning("events wait for the database", stream=self.durable.stream, error=str(error)[:200])
                await asyncio.sleep(pause)
                pause = min(pause * 2, 2.0)
            else:
                for delivery in deliveries:
                    counter = self._metrics.events_applied if delivery.id in fresh else self._metrics.events_repeated
                    counter.labels(delivery.envelope.type).inc()
                return

    async def _failed(self, message: Msg, delivery: Delivery, error: Exception) -> None:
        correlate(delivery.envelope.correlationid)
        count = message.metadata.num_delivered or 1
        if isinstance(error, Poison) or count > len(RETRY_DELAYS):
            await self._bury(message, f"{type(error).__name__}: {error}")
            return
        logger.warning(
            "event failed and is put back",
            type=delivery.envelope.type,
            event_id=str(delivery.id),
            delivery=count,
            exc_info=error,
        )
        self._metrics.events_retried.labels(delivery.envelope.type).inc()
        await message.nak(delay=RETRY_DELAYS[count - 1])

    async def _bury(self, message: Msg, why: str) -> None:
        """Move a message to the dead letters; if even that fails it is put back and comes again."""
        metadata = message.metadata
        logger.error("event moved to the dead letters", subject=message.subject, why=why[:1000])
        try:
            await self._bus.js.publish(
                topology.dead_letter(metadata.stream, message.subject),
                message.data,
                headers={
                    "Nats-Msg-Id": f"dead:{metadata.stream}:{metadata.sequence.stream}:{self.durable.service}",
                    "Mafl-Consumer": self.durable.service,
                    "Mafl-Reason": why[:1000].replace("\r", " ").replace("\n", " "),
                },
            )
        except (nats.errors.Error, TimeoutError, OSError):
            logger.exception("the dead letter could not be written")
            await message.nak(delay=RETRY_DELAYS[-1])
            return
        self._metrics.events_dead.labels(message.subject).inc()
        await message.term()
