"""What FINDINGS measured, held: nothing is lost, nothing is applied twice, what is broken heals."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest
from probe import Probe, applied, locked
from sqlalchemy import func, select

from common import events as ev
from common import topology
from common.bus import BATCH
from common.db import OUTBOX
from common.outbox import Relay, emit, emit_all
from common.poison import Poison
from common.provision import bury_exhausted, consumer_config, provision
from embedded.nats import Nats
from embedded.postgres import Postgres
from testkit.fixtures import Started, admin

Run = Callable[..., AbstractAsyncContextManager[Started]]


@pytest.mark.rule("O4")
async def test_an_exception_does_not_lose_a_message(probe: Probe, run: Run) -> None:
    failures = iter([True, True, False])

    async def twice(event: ev.ContestLocked) -> None:
        if next(failures):
            raise RuntimeError("not yet")

    probe.before = twice
    async with run() as service:
        await service.publish(locked("2017-W01"))
        await service.settle()
        assert await applied(service) == ["2017-W01"]
        assert probe.seen == ["2017-W01"] * 3
        assert await service.dead_letters() == []


@pytest.mark.rule("O4")
async def test_one_bad_event_does_not_hold_up_its_batch(probe: Probe, run: Run) -> None:
    async def refuse(event: ev.ContestLocked) -> None:
        if event.contest == "2017-W03":
            raise Poison("this week cannot be")

    probe.before = refuse
    async with run() as service:
        for week in range(1, 7):
            await service.publish(locked(f"2017-W0{week}"))
        await service.settle()
        assert await applied(service) == [f"2017-W0{week}" for week in (1, 2, 4, 5, 6)]
        assert await service.dead_letters() == [("dead.CONTESTS.contest.locked.v1", "Poison: this week cannot be")]


@pytest.mark.rule("O4")
async def test_an_event_that_is_delivered_twice_is_applied_once(run: Run) -> None:
    async with run() as service:
        first = await service.publish(locked("2017-W01"))
        await service.publish(locked("2017-W01"), event_id=first)
        await service.settle()
        await service.publish(locked("2017-W01"), event_id=first)
        await service.settle()
        assert await applied(service) == ["2017-W01"]


async def test_what_cannot_be_read_is_a_dead_letter_at_once(run: Run, nats_server: Nats) -> None:
    async with run() as service:
        async with admin(nats_server) as client:
            for body in (b"0", b"", b"\xff", b"{}", b'{"specversion":"1.0","type":"contest.locked.v1"}', b"[" * 10_000):
                await client.jetstream().publish("contest.locked.v1", body)
        await service.publish(locked("2017-W01"))
        await service.settle()
        assert await applied(service) == ["2017-W01"]
        assert [subject for subject, _ in await service.dead_letters()] == ["dead.CONTESTS.contest.locked.v1"] * 6


async def test_more_events_than_a_batch_arrive_in_order(run: Run, nats_server: Nats) -> None:
    async with run() as service:
        contests = [f"c{number}" for number in range(BATCH * 2 + 7)]
        async with service.runtime.database.transaction() as connection:
            for contest in contests:
                # Settlement may not publish this one, so the test's own hand carries it over.
                await emit(connection, locked(contest), 1)
        async with admin(nats_server) as client, service.runtime.database.transaction() as connection:
            rows = (await connection.execute(select(OUTBOX.c.envelope).order_by(OUTBOX.c.position))).scalars().all()
            for row in rows:
                await client.jetstream().publish(
                    "contest.locked.v1", ev.Envelope.model_validate(row).model_dump_json().encode()
                )
            await connection.execute(OUTBOX.delete())
        await service.settle()
        assert await applied(service) == contests


@pytest.mark.rule("O4")
async def test_a_deleted_durable_heals_and_nothing_is_applied_twice(run: Run, nats_server: Nats) -> None:
    async with run() as service, admin(nats_server) as client:
        js = client.jetstream()
        await service.publish(locked("2017-W01"))
        await service.settle()

        await js.delete_consumer("CONTESTS", "settlement")
        await service.publish(locked("2017-W02"))
        await until(lambda: service.app.state.consumers[0].broken)
        readiness = await service.client.get("/readyz")
        assert readiness.status_code == 503
        assert "durable CONTESTS" in readiness.text

        sent = service.runtime.bus.client.stats["out_msgs"]
        await asyncio.sleep(1.5)
        asked = service.runtime.bus.client.stats["out_msgs"] - sent
        assert asked < 20, "a missing durable is asked for now and then, not spun on"

        assert await provision(js) == 1
        await service.settle()
        assert await applied(service) == ["2017-W01", "2017-W02"]
        await until(lambda: not service.app.state.consumers[0].broken)
        assert (await service.client.get("/readyz")).status_code == 200


@pytest.mark.rule("O4")
async def test_a_stream_that_was_deleted_and_made_again_is_read_again(run: Run, nats_server: Nats) -> None:
    async with run() as service, admin(nats_server) as client:
        js = client.jetstream()
        await service.publish(locked("2017-W01"))
        await service.settle()
        await js.delete_stream("CONTESTS")
        await asyncio.sleep(0.2)
        await provision(js)
        await service.publish(locked("2017-W02"))
        await service.settle()
        assert await applied(service) == ["2017-W01", "2017-W02"]


@pytest.mark.rule("O4")
async def test_a_killed_bus_is_found_again(run: Run, nats_server: Nats) -> None:
    async with run() as service:
        await service.publish(locked("2017-W01"))
        await service.settle()
        pid = nats_server.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        nats_server.stop()
        await asyncio.sleep(0.5)
        nats_server.start()
        await service.publish(locked("2017-W02"))
        await until(lambda: service.runtime.bus.connected)
        await service.settle()
        assert await applied(service) == ["2017-W01", "2017-W02"]


@pytest.mark.rule("O4")
async def test_events_wait_for_a_database_that_is_down(
    probe: Probe, run: Run, tmp_path_factory: pytest.TempPathFactory
) -> None:
    server = Postgres(tmp_path_factory.mktemp("other"), durable=False)
    server.start()
    try:
        server.create_service_database("probe")
        async with run(database_url=server.url("probe")) as service:
            await service.publish(locked("2017-W01"))
            await service.settle()
            server.stop()
            await service.publish(locked("2017-W02"))
            await asyncio.sleep(1)
            assert (await service.client.get("/readyz")).status_code == 503
            assert (await service.client.get("/healthz")).status_code == 200
            server.start()
            await until(lambda: probe.seen.count("2017-W02") > 0)
            await service.settle()
            assert await applied(service) == ["2017-W01", "2017-W02"]
            assert await service.dead_letters() == []
    finally:
        server.stop()


async def test_an_event_that_kills_its_consumer_each_time_is_a_dead_letter(nats_server: Nats) -> None:
    async with admin(nats_server) as client:
        js = client.jetstream()
        config = consumer_config(topology.durables_of("settlement")[0])
        config.max_deliver, config.ack_wait = 1, 0.1
        await js.add_consumer("CONTESTS", config)
        await js.publish("contest.locked.v1", b"deadly")
        reader = await js.pull_subscribe_bind("settlement", "CONTESTS")
        await reader.fetch(1, timeout=2)
        await asyncio.sleep(0.3)
        with pytest.raises(asyncio.TimeoutError):
            await reader.fetch(1, timeout=0.3)
        assert await bury_exhausted(client, js) == 1
        letter = await js.get_msg(topology.DEAD_LETTERS, 1)
        assert (letter.subject, letter.data) == ("dead.CONTESTS.contest.locked.v1", b"deadly")


async def test_provisioning_corrects_what_drifted_and_then_changes_nothing(nats_server: Nats) -> None:
    async with admin(nats_server) as client:
        js = client.jetstream()
        assert await provision(js) == 0
        config = consumer_config(topology.durables_of("settlement")[0])
        config.max_deliver = 3
        await js.add_consumer("CONTESTS", config)
        assert await provision(js) == 1
        assert await provision(js) == 0


async def test_the_outbox_publishes_what_was_committed_and_nothing_else(run: Run) -> None:
    async with run() as service:
        with contextlib.suppress(RuntimeError):
            async with service.runtime.database.transaction() as connection:
                await emit(connection, scores("2017-W01", 1), 1)
                raise RuntimeError("changed its mind")
        async with service.runtime.database.transaction() as connection:
            await emit(connection, scores("2017-W02", 1), 1)
            await emit(connection, scores("2017-W02", 2), 2)
        await service.settle()
        assert [(e.contest, e.sequence) for e in await service.published(ev.ScoresUpdated)] == [
            ("2017-W02", 1),
            ("2017-W02", 2),
        ]


@pytest.mark.rule("O4")
async def test_an_event_that_the_bus_never_takes_holds_up_no_other(run: Run) -> None:
    async with run() as service:
        async with service.runtime.database.transaction() as connection:
            await emit(connection, scores("2017-W01" + "!" * 2_000_000, 1), 1)
            await emit_all(connection, [(scores("2017-W02", number), number) for number in range(1, BATCH * 3)])
        async with asyncio.timeout(60):
            while len(await service.published(ev.ScoresUpdated)) < BATCH * 3 - 1:  # noqa: ASYNC110 - looks at the bus
                await asyncio.sleep(0.05)
        async with service.runtime.database.transaction() as connection:
            waiting = await connection.scalar(
                select(func.count()).select_from(OUTBOX).where(OUTBOX.c.published_at.is_(None))
            )
        assert waiting == 1, "it is kept, and the metric tells of it"
        assert "mafl_outbox_waiting 1.0" in (await service.client.get("/metrics")).text


@pytest.mark.rule("O4")
async def test_a_relay_that_dies_between_publishing_and_committing_doubles_nothing(run: Run) -> None:
    async with run() as service:
        async with service.runtime.database.transaction() as connection:
            await emit(connection, scores("2017-W01", 1), 1)
        await service.settle()
        async with service.runtime.database.transaction() as connection:
            await connection.execute(OUTBOX.update().values(published_at=None))
        await Relay(service.runtime.database, service.runtime.bus, service.runtime.metrics).drain()
        assert len(await service.published(ev.ScoresUpdated)) == 1


@pytest.mark.rule("O4")
async def test_messages_go_into_a_stream_as_one_or_else_one_by_one_and_each_once(run: Run, nats_server: Nats) -> None:
    def message(number: int, size: int = 2) -> tuple[str, bytes, str]:
        return ev.ScoresUpdated.subject(), b"x" * size, f"id-{number}"

    async with run() as service, admin(nats_server) as client:
        bus = service.runtime.bus
        assert await bus.publish_all([message(1), message(2)]) == [None, None]
        # The stream has one of these already, so it takes none of them as one.
        assert await bus.publish_all([message(2), message(3), message(1)]) == [None, None, None]
        too_large = message(4, 2_000_000)
        first, refused, last = await bus.publish_all([message(5), too_large, message(6)])
        assert (first, last) == (None, None)
        assert "MaxPayload" in repr(refused)
        js = client.jetstream()
        stream = ev.ScoresUpdated.stream
        assert (await js.stream_info(stream)).state.messages == 5
        headers = [(await js.get_msg(stream, number)).headers or {} for number in range(1, 6)]
        assert [each["Nats-Msg-Id"] for each in headers] == [f"id-{number}" for number in (1, 2, 3, 5, 6)]
        batches = [each.get("Nats-Batch-Id") for each in headers]
        assert batches[0] == batches[1] != batches[3] == batches[4]
        assert batches[2] is None


@pytest.mark.rule("O4")
async def test_events_wait_in_the_outbox_while_the_bus_is_down(run: Run, nats_server: Nats) -> None:
    async with run() as service:
        nats_server.stop()
        async with service.runtime.database.transaction() as connection:
            await emit(connection, scores("2017-W01", 1), 1)
        await asyncio.sleep(0.5)
        async with service.runtime.database.transaction() as connection:
            waiting = await connection.scalar(
                select(func.count()).select_from(OUTBOX).where(OUTBOX.c.published_at.is_(None))
            )
        assert waiting == 1
        nats_server.start()
        await until(lambda: service.runtime.bus.connected)
        await service.settle()
        assert len(await service.published(ev.ScoresUpdated)) == 1


@pytest.mark.rule("O4")
async def test_a_service_starts_and_answers_without_the_bus(run: Run) -> None:
    async with run(nats_url="nats://settlement:nobody@127.0.0.1:9") as service:
        assert (await service.client.get("/healthz")).status_code == 200
        readiness = await service.client.get("/readyz")
        assert readiness.status_code == 503
        assert "bus: not connected" in readiness.text


def scores(contest: str, sequence: int) -> ev.ScoresUpdated:
    return ev.ScoresUpdated(contest=contest, sequence=sequence, players=(), lineups=())


async def until(condition: Callable[[], bool], patience: float = 60.0) -> None:
    async with asyncio.timeout(patience):
        while not condition():  # noqa: ASYNC110 - it looks at state that has no event
            await asyncio.sleep(0.02)
