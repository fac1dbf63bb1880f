"""What the outbox keeps of an event is its envelope, made in one go."""

import json
from uuid import UUID

import pytest

from common import events as ev
from common.outbox import recorded
from testkit.examples import EXAMPLES


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example.type} {example.aggregateversion}")
def test_the_recorded_envelope_is_the_packed_one_also_of_plain_values(example: ev.Envelope) -> None:
    event = ev.unpack(example)
    for data in (event, event.model_dump()):
        made = recorded(type(event), event.aggregate(), data, example.aggregateversion, correlation="c")
        envelope = ev.Envelope.model_validate_json(made.envelope)
        packed = ev.pack(
            event,
            event_id=made.event_id,
            aggregate_version=example.aggregateversion,
            correlation_id="c",
            time=envelope.time,
        )
        assert (made.subject, json.loads(made.envelope)) == (event.subject(), packed.model_dump(mode="json"))
        assert UUID(str(made.event_id)).version == 7
