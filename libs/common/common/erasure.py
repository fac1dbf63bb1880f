"""Erasing from the streams: the provisioner, who alone may, overwrites the messages that carried redacted words.

JetStream's secure erase writes random bytes over a message where it lies in its file (measured in
``libs/common/tests/test_erasure.py``); the rest of the stream stays as it is, and the message's number stays unused.
What else such a message said is in its stream again: its owner published it anew without the words.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from uuid import NAMESPACE_URL, uuid5

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
from nats.js.errors import APIError
from pydantic import ValidationError

from common import events as ev
from common import topology
from common.clock import wall
from common.logs import correlate, logger
from common.redaction import AGENT_STATES, WITH_WORDS

Order = ev.RedactedInContests | ev.AgentRedacted
"""What has messages erased: the source of the words holds them no more, and has told the rest anew."""

LOOKS = 2
SECOND_LOOK = timedelta(minutes=2)
"""A publication that had timed out may still arrive, and a consumer that held the message may bury it: longer than
the retries of either."""

_BATCH = 500
_WORKING = 10.0
"""Seconds after which an order that a killed provisioner held comes again."""


async def erase_redacted(client: Client, js: JetStreamContext, *, second_look: timedelta = SECOND_LOOK) -> int:
    """Erase what contests and registry say is redacted, and say so; how many messages went.

    At least once: a provisioner killed at any point looks again when it is back.
    """
    return sum([await _erase_by(client, js, kind, second_look) for kind in (ev.RedactedInContests, ev.AgentRedacted)])


async def _erase_by(client: Client, js: JetStreamContext, kind: type[Order], second_look: timedelta) -> int:
    orders = await js.pull_subscribe(
        kind.subject(),
        durable=topology.PROVISIONER,
        stream=kind.stream,
        config=ConsumerConfig(ack_policy=AckPolicy.EXPLICIT, ack_wait=_WORKING, max_deliver=-1),
    )
    erased = 0
    try:
        while True:
            try:
                (order,) = await orders.fetch(1, timeout=0.2)
            except (nats.errors.TimeoutError, TimeoutError):
                return erased
            erased += await _carry_out(client, js, kind, order, second_look)
    finally:
        with contextlib.suppress(nats.errors.Error):
            await orders.unsubscribe()


async def _carry_out(
    client: Client, js: JetStreamContext, kind: type[Order], order: Msg, second_look: timedelta
) -> int:
    try:
        envelope = ev.Envelope.model_validate_json(order.data)
        done = kind.model_validate(envelope.data)
    except ValidationError as error:
        logger.error("an order to erase cannot be read", why=str(error)[:1000])
        await order.term()
        return 0
    correlate(envelope.correlationid)
    # By its age and not by the number of its deliveries: one may have been lost on the way.
    left = second_look - (wall() - order.metadata.timestamp)
    look = 1 if left > timedelta() else LOOKS
    erased = await erase(js, done, order)
    counted = {"messages": erased, "look": look}
    told: ev.Event = (
        ev.AgentWordsErased(**done.model_dump(include=set(ev.AgentRedaction.model_fields)), **counted)
        if isinstance(done, ev.AgentRedacted)
        else ev.WordsErased(**done.model_dump(exclude={"told"}), **counted)
    )
    # The same look has the same id: a repeated one is one to the stream and to every inbox.
    told_id = uuid5(NAMESPACE_URL, f"{told.aggregate()}/erased/{look}")
    packed = ev.pack(told, event_id=told_id, aggregate_version=look, correlation_id=envelope.correlationid, time=wall())
    await js.publish(told.subject(), packed.model_dump_json().encode(), headers={"Nats-Msg-Id": str(told_id)})
    logger.info("redacted words erased", redaction=str(done.redaction_id), messages=erased, look=look)
    if look < LOOKS:
        await order.nak(delay=left.total_seconds())
    else:
        await order.ack()
    await client.flush()
    return erased


async def erase(js: JetStreamContext, text: ev.Redaction | ev.AgentRedacted, order: Msg | None = None) -> int:
    """Erase every message that carries the words of a text, dead letters too, or what its owner said for it; how many.

    Or that carries an agent's name or description. ``order`` is kept from being delivered again meanwhile.
    """
    erased = 0
    kinds: tuple[type[ev.Event], ...]
    carries: Callable[[bytes], bool]
    if isinstance(text, ev.AgentRedacted):
        kinds, carries = (*AGENT_STATES, ev.AgentNameJudged), partial(_carries_agent, gone=text)
    else:
        kinds, carries = WITH_WORDS, partial(_carries, text=text)
    for kind in (*kinds, ev.ReviewRequested):
        dead = topology.DEAD_PRIVATE if kind.stream in topology.PRIVATE_STREAMS else topology.DEAD_LETTERS
        for stream, subject in (
            (kind.stream, kind.subject()),
            (dead, topology.dead_letter(kind.stream, kind.subject())),
        ):
            for sequence in await _carrying(js, stream, subject, carries, order):
                try:
                    await js.delete_msg(stream, sequence)
                    erased += 1
                except APIError as error:
                    # Another provisioner was faster.
                    logger.info("a message is erased already", stream=stream, sequence=sequence, why=str(error)[:200])
    return erased


async def _carrying(
    js: JetStreamContext, stream: str, subject: str, carries: Callable[[bytes], bool], order: Msg | None
) -> list[int]:
    """The numbers of the messages of a subject whose bodies carry the words."""
    config = ConsumerConfig(ack_policy=AckPolicy.NONE, deliver_policy=DeliverPolicy.ALL, inactive_threshold=30.0)
    reading = await js.pull_subscribe(subject, stream=stream, config=config)
    found: list[int] = []
    try:
        left = (await reading.consumer_info()).num_pending or 0
        while left:
            messages = await reading.fetch(min(_BATCH, left), timeout=5)
            found += [message.metadata.sequence.stream for message in messages if carries(message.data)]
            left = messages[-1].metadata.num_pending
            if order is not None:
                await order.in_progress()
    finally:
        with contextlib.suppress(nats.errors.Error):
            await reading.unsubscribe()
    return found


def _carries(data: bytes, text: ev.Redaction) -> bool:
    if str(text.lineup_id).encode() not in data:
        return False
    try:
        said = json.loads(data)["data"]
        if "pointers" in said:
            # A request for a review: its sentence may quote the text, of whichever revision.
            return said["lineup_id"] == str(text.lineup_id) and text.pointer in said["pointers"]
        return bool(
            said["lineup_id"] == str(text.lineup_id)
            and said["revision"] == text.revision
            and any(word["pointer"] == text.pointer for word in said["words"])
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        # It names the lineup and cannot be read: nobody can say that the words are not in it.
        return True


def _carries_agent(data: bytes, gone: ev.AgentRedacted) -> bool:
    """Whether a message carries an agent's words of before; what was told anew of the same states has none."""
    if str(gone.agent_id).encode() not in data:
        return False
    try:
        envelope = json.loads(data)
        said, version = envelope["data"], envelope["aggregateversion"]
        if said["agent_id"] != str(gone.agent_id):
            return False
        if "requested_at" in said:
            asked = ev.ReviewRequested.model_validate(said)
            of_name = asked.lineup_id is None and asked.sentence is not None
            return "name" in gone.fields and of_name and asked.requested_at <= gone.redacted_at
        named = "name" in gone.fields and said["agent_name"] != gone.agent_name
        if "state" in said:
            return named and said.get("agent_version", 0) < gone.before
        described = "description" in gone.fields and said.get("description") is not None
        return (named or described) and version < gone.before
    except (ValueError, KeyError, TypeError, RecursionError):
        # It names the agent and cannot be read: nobody can say that the words are not in it.
        return True
