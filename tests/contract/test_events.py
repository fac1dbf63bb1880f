"""Both sides of every event agree: the committed schema, the golden example, who sends and who takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker

from common import events as ev
from common import topology
from testkit import contracts
from testkit.examples import EXAMPLES
from testkit.fixtures import Start


@pytest.mark.parametrize("path", contracts.files(), ids=lambda path: path.name)
def test_what_is_generated_is_fresh(path: Path) -> None:
    assert path.exists(), f"{path.name} is missing: ./run contracts"
    assert path.read_text() == contracts.files()[path], f"{path.name} is stale: ./run contracts"


def test_nothing_is_left_in_contracts_that_no_code_stands_behind() -> None:
    known = set(contracts.files()) | {contracts.example_path(event) for event in ev.EVENTS}
    assert set(contracts.CONTRACTS.rglob("*.json")) == {path for path in known if contracts.CONTRACTS in path.parents}


@pytest.mark.parametrize("event", ev.EVENTS, ids=lambda event: event.name)
def test_the_golden_example_satisfies_the_schema_and_is_read_back_whole(event: type[ev.Event]) -> None:
    example = json.loads(contracts.example_path(event).read_text())
    Draft202012Validator(contracts.event_schema(event), format_checker=FormatChecker()).validate(example)
    envelope = ev.Envelope.model_validate(example)
    read = ev.unpack(envelope)
    assert type(read) is event
    assert read.aggregate() == envelope.subject
    assert_holds(read.model_dump(mode="json"), example["data"])


def assert_holds(read: Any, example: Any) -> None:
    """What was added since, with a default, is in the event and not in the example; all else is equal."""
    if isinstance(example, dict) and isinstance(read, dict):
        for key, value in example.items():
            assert_holds(read[key], value)
    elif isinstance(example, list) and isinstance(read, list):
        assert len(read) == len(example)
        for one, other in zip(read, example, strict=True):
            assert_holds(one, other)
    else:
        assert read == example


def test_a_field_that_a_newer_publisher_added_is_ignored() -> None:
    for envelope in EXAMPLES:
        newer = envelope.model_copy(update={"data": {**envelope.data, "added_later": 1}})
        assert ev.unpack(newer) == ev.unpack(envelope)


def test_every_event_has_one_example_one_owner_and_a_place() -> None:
    assert [ev.BY_SUBJECT[envelope.type] for envelope in EXAMPLES] == list(ev.EVENTS)
    streams = {stream.name: stream.subjects for stream in topology.STREAMS}
    for event in ev.EVENTS:
        assert event.owner in (*topology.SERVICES, topology.PROVISIONER)
        assert event.subject() in streams[event.stream]
        assert event.__doc__
        assert event.subject().count(".") == 2, "no ids in subjects"


@pytest.mark.rule("C8")
def test_only_moderation_may_read_words_before_the_lock_and_only_contests_key_hashes() -> None:
    def readers(stream: str) -> set[str]:
        return {durable.service for durable in topology.DURABLES if durable.stream == stream}

    assert readers("CONTESTS_PRIVATE") == {"moderation"}
    assert readers("REGISTRY_KEYS") == {"contests"}
    assert readers("MODERATION_PRIVATE") == {"contests"}
    assert readers("ERASURES") == {"moderation"}
    assert readers("REGISTRY_REVIEWS") == {"moderation"}
    for service in topology.SERVICES:
        allowed = topology.permissions(service).publish
        if service != "moderation":
            assert not any("CONTESTS_PRIVATE" in subject for subject in allowed)
        assert not any(subject.startswith("$JS.API.STREAM") for subject in allowed)
        assert not any(subject.startswith("$JS.API.CONSUMER.CREATE") for subject in allowed)


@pytest.mark.parametrize("service", topology.SERVICES)
async def test_each_service_takes_the_example_of_every_event_that_it_reads(start: Start, service: str) -> None:
    taken = {event for durable in topology.durables_of(service) for event in durable.events}
    async with start(service, clock="replay") as running:
        for envelope in EXAMPLES:
            event = ev.BY_SUBJECT[envelope.type]
            if event in taken:
                await running.publish(ev.unpack(envelope), envelope.aggregateversion)
        await running.settle()
        assert await running.dead_letters() == []
        # Any order: what arrives early is kept, what arrives late is not missed.
        for envelope in reversed(EXAMPLES):
            event = ev.BY_SUBJECT[envelope.type]
            if event in taken:
                await running.publish(ev.unpack(envelope), envelope.aggregateversion)
        await running.settle()
        assert await running.dead_letters() == []
