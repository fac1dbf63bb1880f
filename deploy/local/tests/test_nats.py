"""NATS as the embedded stack runs it: a real server, and what each of its users may do."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import stat
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import nats
import nats.errors
import psutil
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import AckPolicy, ConsumerConfig, StreamConfig

from common import events as ev
from common import topology
from embedded.errors import PortTaken
from embedded.nats import ADMIN, Nats

SUBMITTED = ev.LineupSubmitted.subject()
DEAD_SUBMITTED = topology.dead_letter("CONTESTS_PRIVATE", SUBMITTED)


@pytest.fixture(scope="module")
def server(new_directory: Callable[[], Path]) -> Iterator[Nats]:
    with Nats(new_directory()) as server:
        asyncio.run(provision(server))
        yield server


async def provision(server: Nats) -> None:
    async with user(server, ADMIN) as (client, _):
        js = client.jetstream()
        for stream in topology.STREAMS:
            await js.add_stream(StreamConfig(name=stream.name, subjects=list(stream.subjects)))
        for durable in topology.DURABLES:
            await js.add_consumer(
                durable.stream,
                ConsumerConfig(
                    durable_name=durable.service,
                    filter_subjects=list(durable.subjects),
                    ack_policy=AckPolicy.EXPLICIT,
                ),
            )


@asynccontextmanager
async def user(server: Nats, name: str) -> AsyncIterator[tuple[Client, list[str]]]:
    """A connected client and the list of what the server refused it."""
    refused: list[str] = []

    async def note(error: Exception) -> None:
        refused.append(str(error).lower())

    client = await nats.connect(
        server.url(name), inbox_prefix=topology.inbox_prefix(name).encode(), error_cb=note, max_reconnect_attempts=0
    )
    try:
        yield client, refused
    finally:
        await client.close()


async def settled(client: Client) -> None:
    with contextlib.suppress(nats.errors.Error):
        await client.flush(1)
    await asyncio.sleep(0.05)


@pytest.mark.parametrize("service", topology.SERVICES)
async def test_a_service_publishes_its_own_events_and_no_other(server: Nats, service: str) -> None:
    async with user(server, service) as (client, refused):
        for event in ev.EVENTS:
            refused.clear()
            await client.publish(event.subject(), b"{}")
            await settled(client)
            assert bool(refused) == (event.owner != service), event.subject()


async def test_moderation_reads_a_submitted_lineup_and_boards_cannot(server: Nats) -> None:
    async with user(server, "contests") as (client, _):
        await client.jetstream().publish(SUBMITTED, b'{"words": "secret"}', stream="CONTESTS_PRIVATE")

    async with user(server, "moderation") as (client, refused):
        subscription = await client.jetstream().pull_subscribe_bind("moderation", "CONTESTS_PRIVATE")
        (message,) = await subscription.fetch(1, timeout=2)
        await message.ack()
        await settled(client)
        assert message.subject == SUBMITTED
        assert refused == []

    async with user(server, "boards") as (client, refused):
        for subject in (SUBMITTED, ">", f"{topology.inbox_prefix('moderation')}.>", "_INBOX.>", "$JS.ACK.>"):
            refused.clear()
            await client.subscribe(subject)
            await settled(client)
            assert refused, f"boards could subscribe to {subject}"
        js = client.jetstream(timeout=0.3)
        for reads in (
            js.get_msg("CONTESTS_PRIVATE", 1),
            js.get_msg("CONTESTS_PRIVATE", subject=SUBMITTED, direct=True),
            js.stream_info("CONTESTS_PRIVATE"),
            js.consumer_info("CONTESTS_PRIVATE", "moderation"),
            js.add_consumer("CONTESTS_PRIVATE", ConsumerConfig(durable_name="boards")),
            js.add_consumer("CONTESTS", ConsumerConfig(durable_name="greedy")),
            js.add_stream(StreamConfig(name="THEFT", sources=[])),
            js.delete_consumer("CONTESTS_PRIVATE", "moderation"),
            js.purge_stream("CONTESTS"),
        ):
            with pytest.raises(nats.errors.TimeoutError):
                await reads
        refused.clear()
        await client.publish("$JS.API.CONSUMER.MSG.NEXT.CONTESTS_PRIVATE.moderation", b"1", reply=client.new_inbox())
        await settled(client)
        assert refused


async def test_a_private_streams_key_hashes_reach_contests_alone(server: Nats) -> None:
    async with user(server, "contests") as (client, refused):
        await client.jetstream().pull_subscribe_bind("contests", "REGISTRY_KEYS")
        await settled(client)
        assert refused == []
    for service in ("moderation", "settlement", "boards"):
        async with user(server, service) as (client, _):
            with pytest.raises(nats.errors.TimeoutError):
                await client.jetstream(timeout=0.3).consumer_info("REGISTRY_KEYS", "contests")


async def test_registry_answers_the_question_of_contests_and_writes_to_no_inbox_unasked(server: Nats) -> None:
    async with user(server, "registry") as (registry, refused), user(server, "contests") as (contests, _):

        async def answer(message: Msg) -> None:
            await message.respond(b"alice")

        await registry.subscribe(topology.AGENT_BY_KEY, cb=answer)
        await settled(registry)
        assert (await contests.request(topology.AGENT_BY_KEY, b"hash", timeout=1)).data == b"alice"
        assert refused == []
        await registry.publish(f"{topology.inbox_prefix('contests')}.guess", b"forged")
        await settled(registry)
        assert refused


async def test_a_service_dead_letters_what_it_reads_and_nothing_else(server: Nats) -> None:
    async with user(server, "boards") as (client, refused):
        await client.publish(topology.dead_letter("SETTLEMENT", ev.WeekSettled.subject()), b"{}")
        await settled(client)
        assert refused == []
        await client.publish(DEAD_SUBMITTED, b"{}")
        await settled(client)
        assert refused


@pytest.mark.rule("C8")
@pytest.mark.parametrize("service", topology.SERVICES)
async def test_no_service_reads_the_dead_letters_where_words_before_the_lock_may_lie(
    server: Nats, service: str
) -> None:
    async with user(server, "moderation") as (client, _):
        await client.publish(DEAD_SUBMITTED, b'{"words": "secret"}')
        await settled(client)
    async with user(server, service) as (client, refused):
        await client.subscribe("dead.>")
        await settled(client)
        assert refused
        js = client.jetstream(timeout=0.2)
        for stream in (topology.DEAD_LETTERS, topology.DEAD_PRIVATE):
            for reads in (
                js.get_msg(stream, 1),
                js.get_msg(stream, subject=DEAD_SUBMITTED, direct=True),
                js.stream_info(stream),
                js.add_consumer(stream, ConsumerConfig(durable_name=service)),
            ):
                with pytest.raises(nats.errors.TimeoutError):
                    await reads


async def test_a_dead_letter_of_a_type_that_nobody_knows_any_more_is_kept_too(server: Nats) -> None:
    async with user(server, "moderation") as (client, _):
        js = client.jetstream()
        for stream, kept_in in (("CONTESTS", topology.DEAD_LETTERS), ("CONTESTS_PRIVATE", topology.DEAD_PRIVATE)):
            kept = await js.publish(topology.dead_letter(stream, "lineup.forgotten.v9"), b"{}")
            assert kept.stream == kept_in


@pytest.mark.rule("C8")
async def test_the_number_of_a_dead_letter_does_not_count_those_of_submissions(server: Nats) -> None:
    async def bury(service: str, subject: str) -> int:
        async with user(server, service) as (client, _):
            return (await client.jetstream().publish(subject, b"{}")).seq

    settled_week = topology.dead_letter("SETTLEMENT", ev.WeekSettled.subject())
    first = await bury("boards", settled_week)
    for _ in range(3):
        await bury("moderation", DEAD_SUBMITTED)
    assert await bury("boards", settled_week) == first + 1


@pytest.mark.rule("C8")
@pytest.mark.parametrize("service", topology.SERVICES)
async def test_no_service_asks_the_bus_about_anything_but_its_own_durables(server: Nats, service: str) -> None:
    """Neither the account's sums, nor the server's, nor a stream's or another's numbers, nor who is connected."""
    own = {(durable.stream, durable.service) for durable in topology.durables_of(service)}
    questions = [
        *("INFO", "STREAM.NAMES", "STREAM.LIST", "ACCOUNT.PURGE.$G", "META.LEADER.STEPDOWN", "SERVER.REMOVE"),
        *(f"{call}.{one.name}" for one in topology.STREAMS for call in _ABOUT_STREAMS),
        *(f"DIRECT.GET.{one.name}.{subject}" for one in topology.STREAMS for subject in one.subjects[:1]),
        *(
            f"{call}.{durable.stream}.{durable.service}"
            for durable in topology.DURABLES
            for call in _ABOUT_DURABLES
            if (durable.stream, durable.service) not in own or call not in ("CONSUMER.INFO", "CONSUMER.MSG.NEXT")
        ),
    ]
    asked = [*(f"$JS.API.{question}" for question in questions), *_OF_THE_SERVER]
    listened = (
        "$SYS.>",
        "$JS.>",
        "$JS.API.>",
        "$JS.EVENT.>",
        "$JS.ACK.>",
        "$JS.FC.>",
        "$KV.>",
        "$O.>",
        "_INBOX_admin.>",
        SUBMITTED,
    )
    async with user(server, service) as (client, refused):
        for subject in asked:
            await client.publish(subject, b"{}", reply=client.new_inbox())
        await settled(client)
        assert [subject for subject in asked if not _names(refused, subject)] == []
        for subject in listened:
            await client.subscribe(subject)
        await settled(client)
        assert [subject for subject in listened if not _names(refused, subject)] == []


_ABOUT_STREAMS = (
    *("STREAM.INFO", "STREAM.MSG.GET", "STREAM.PURGE", "STREAM.DELETE", "STREAM.UPDATE", "STREAM.SNAPSHOT"),
    *("DIRECT.GET", "CONSUMER.NAMES", "CONSUMER.LIST", "CONSUMER.CREATE", "STREAM.LEADER.STEPDOWN"),
)
_ABOUT_DURABLES = ("CONSUMER.INFO", "CONSUMER.MSG.NEXT", "CONSUMER.DELETE", "CONSUMER.PAUSE", "CONSUMER.DURABLE.CREATE")
_OF_THE_SERVER = (
    *("$SYS.REQ.SERVER.PING", "$SYS.REQ.SERVER.PING.JSZ", "$SYS.REQ.ACCOUNT.$G.INFO", "$SYS.REQ.ACCOUNT.PING.STATZ"),
    *("$SYS.REQ.ACCOUNT.PING.CONNZ", "$SYS.REQ.USER.INFO"),
)


def _names(refused: list[str], subject: str) -> bool:
    """Whether one of the refusals is of a subject."""
    return any(f'"{subject.lower()}"' in one for one in refused)


@pytest.mark.rule("C8")
def test_it_listens_for_clients_alone_so_that_nobody_counts_messages_without_a_password(server: Nats) -> None:
    assert server.pid is not None
    listening = [c.laddr for c in psutil.Process(server.pid).net_connections("tcp") if c.status == "LISTEN"]
    assert listening == [("127.0.0.1", server.port)]


@pytest.mark.rule("C8")
def test_no_other_account_reads_what_the_streams_hold(server: Nats) -> None:
    for path in (server.directory / "store", *(server.directory / "store").rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) & 0o007 == 0, path


def test_the_server_tells_which_durables_there_are(server: Nats) -> None:
    assert server.durables() == {(durable.stream, durable.service) for durable in topology.DURABLES}


async def test_nobody_connects_without_a_password(server: Nats) -> None:
    with pytest.raises(nats.errors.Error, match="Authorization Violation"):
        await nats.connect(f"nats://127.0.0.1:{server.port}", allow_reconnect=False, error_cb=_ignore)


async def _ignore(error: Exception) -> None:
    del error


def test_the_configuration_with_its_passwords_is_for_its_owner_only(server: Nats) -> None:
    assert stat.S_IMODE((server.directory / "nats.conf").stat().st_mode) == 0o600


@pytest.mark.rule("O4")
async def test_acknowledged_messages_survive_a_kill_and_the_port_stays(tmp_path: Path) -> None:
    server = Nats(tmp_path)
    server.start()
    port = server.port
    async with user(server, ADMIN) as (client, _):
        await client.jetstream().add_stream(name="KEPT", subjects=["kept"])
        await client.jetstream().publish("kept", b"7")
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    server.stop()
    with server:
        assert server.port == port
        async with user(server, ADMIN) as (client, _):
            assert (await client.jetstream().get_msg("KEPT", 1)).data == b"7"


def test_a_taken_port_is_named(tmp_path: Path, server: Nats) -> None:
    with pytest.raises(PortTaken, match=str(server.port)):
        Nats(tmp_path, server.port).start()
