"""The one owner of streams and durables: makes what is missing, corrects what differs, touches nothing else.

``python -m common.provision`` does it once; with ``--watch`` it looks again every second, so that a
stream or durable that somebody deleted comes back (a new durable delivers everything again, which every
inbox bears), it moves what a consumer could not take in all its deliveries to the dead letters, and it erases the
messages whose words were redacted.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
from typing import Any

import nats
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, RetentionPolicy, StorageType, StreamConfig
from nats.js.errors import NotFoundError

from common import logs, topology
from common.bus import ACK_WAIT, BATCH
from common.erasure import erase_redacted
from common.logs import logger

DUPLICATE_WINDOW = 15 * 60.0
MAX_DELIVER = 50
_ADVISORY_DURABLE = "provisioner"


def stream_config(stream: topology.Stream) -> StreamConfig:
    """What a stream should be: a file that keeps everything."""
    return StreamConfig(
        name=stream.name,
        subjects=list(stream.subjects),
        retention=RetentionPolicy.LIMITS,
        storage=StorageType.FILE,
        duplicate_window=DUPLICATE_WINDOW,
        max_age=0,
        allow_atomic=True,
    )


def consumer_config(durable: topology.Durable) -> ConsumerConfig:
    """What a durable should be: from the first event on, explicit acks, a bounded number of deliveries."""
    return ConsumerConfig(
        durable_name=durable.service,
        filter_subjects=list(durable.subjects),
        deliver_policy=DeliverPolicy.ALL,
        ack_policy=AckPolicy.EXPLICIT,
        ack_wait=ACK_WAIT,
        max_deliver=MAX_DELIVER,
        max_ack_pending=BATCH * 4,
    )


def _differs(wanted: Any, actual: Any, fields: tuple[str, ...]) -> dict[str, tuple[Any, Any]]:
    return {
        field: (getattr(actual, field), getattr(wanted, field))
        for field in fields
        if getattr(actual, field) != getattr(wanted, field)
    }


async def provision(js: JetStreamContext) -> int:
    """Make streams and durables as the topology says; the number of things that had to be made or changed."""
    changes = 0
    for stream in topology.STREAMS:
        wanted = stream_config(stream)
        try:
            actual = (await js.stream_info(stream.name)).config
        except NotFoundError:
            await js.add_stream(wanted)
            logger.info("stream made", stream=stream.name)
            changes += 1
            continue
        actual.subjects = sorted(actual.subjects or [])
        if drift := _differs(wanted, actual, ("subjects", "duplicate_window", "max_age", "allow_atomic")):
            await js.update_stream(wanted)
            logger.warning("stream corrected", stream=stream.name, drift=repr(drift))
            changes += 1
    for durable in topology.DURABLES:
        config = consumer_config(durable)
        try:
            present = (await js.consumer_info(durable.stream, durable.service)).config
        except NotFoundError:
            await js.add_consumer(durable.stream, config)
            logger.info("durable made", stream=durable.stream, durable=durable.service)
            changes += 1
            continue
        if present.filter_subject:
            present.filter_subjects = [present.filter_subject]
        present.filter_subjects = sorted(present.filter_subjects or [])
        fields = ("filter_subjects", "ack_wait", "max_deliver", "max_ack_pending")
        if drift := _differs(config, present, fields):
            await js.add_consumer(durable.stream, config)
            logger.warning("durable corrected", stream=durable.stream, durable=durable.service, drift=repr(drift))
            changes += 1
    return changes


async def bury_exhausted(client: Client, js: JetStreamContext) -> int:
    """Move events that used up their deliveries (a consumer died on each) to the dead letters; how many."""
    subject = "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.>"
    config = ConsumerConfig(ack_policy=AckPolicy.EXPLICIT, max_deliver=-1)
    subscription = await js.pull_subscribe(
        subject, durable=_ADVISORY_DURABLE, stream=topology.ADVISORIES, config=config
    )
    count = 0
    try:
        while True:
            try:
                (advisory,) = await subscription.fetch(1, timeout=0.2)
            except (nats.errors.TimeoutError, TimeoutError):
                return count
            told = json.loads(advisory.data)
            stream, sequence, consumer = told["stream"], told["stream_seq"], told["consumer"]
            with contextlib.suppress(NotFoundError):
                message = await js.get_msg(stream, sequence)
                await js.publish(
                    topology.dead_letter(stream, str(message.subject)),
                    message.data or b"",
                    headers={
                        "Nats-Msg-Id": f"dead:{stream}:{sequence}:{consumer}",
                        "Mafl-Consumer": consumer,
                        "Mafl-Reason": f"{told.get('deliveries')} deliveries and no answer",
                    },
                )
                logger.error("event used up its deliveries", stream=stream, sequence=sequence, consumer=consumer)
            await advisory.ack()
            count += 1
    finally:
        await subscription.unsubscribe()


async def _main(*, watch: bool, interval: float) -> None:
    url = os.environ["MAFL_NATS_URL"]
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    client = await nats.connect(
        url,
        name="provisioner",
        inbox_prefix=topology.inbox_prefix("admin").encode(),
        max_reconnect_attempts=-1,
        reconnect_time_wait=0.2,
        connect_timeout=5,
    )
    js = client.jetstream(timeout=5)
    try:
        while not stop.is_set():
            try:
                await provision(js)
                if watch:
                    await bury_exhausted(client, js)
                    await erase_redacted(client, js)
            except (nats.errors.Error, TimeoutError, OSError) as error:
                if not watch:
                    raise
                logger.warning("provisioning waits for the bus", error=repr(error))
            if not watch:
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), interval)
    finally:
        await client.close()


def main() -> None:
    """The command line of this module."""
    parser = argparse.ArgumentParser(prog="python -m common.provision", description=__doc__)
    parser.add_argument("--watch", action="store_true", help="go on looking, and mend what is deleted")
    parser.add_argument("--interval", type=float, default=1.0, help="seconds between two looks")
    arguments = parser.parse_args()
    logs.configure("provisioner", "info")
    asyncio.run(_main(watch=arguments.watch, interval=arguments.interval))


if __name__ == "__main__":
    main()
