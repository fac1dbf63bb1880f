"""What is written by hand on the hot path is what the slow way would write."""

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common import events as ev
from common.canonical import canonical_json
from contests import intake
from contests.domain import Revision, canonical

from .helpers import cheapest

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
NUMBER = st.one_of(st.floats(0, 1), st.integers(0, 1), st.floats(0, 500), st.decimals(0, 500, places=2).map(float))


@st.composite
def bodies(draw: st.DrawFn) -> dict[str, Any]:
    """Bodies of the shape of a lineup, with any texts and numbers."""
    body = cheapest()
    for pick in body["picks"]:
        pick |= {
            "rationale": draw(TEXT),
            "main_factor": draw(TEXT),
            "player_id": draw(TEXT),
            "confidence": draw(NUMBER),
        }
    return body | {"thesis": draw(TEXT), "projected_score": draw(NUMBER), "confidence": draw(NUMBER)}


@pytest.mark.rule("C10")
@settings(max_examples=60, deadline=None)
@given(bodies())
def test_a_body_in_canonical_form_is_that_of_the_rfc(body: dict[str, Any]) -> None:
    whole, words = canonical(body)
    assert whole.encode() == canonical_json(body)
    expected = [
        (f"/picks/{place}/{name}", pick[name])
        for place, pick in enumerate(body["picks"])
        for name in ("rationale", "main_factor")
    ]
    assert [(pointer, json.loads(text)) for pointer, text in words] == [*expected, ("/thesis", body["thesis"])]


@pytest.mark.rule("M3")
@settings(max_examples=30, deadline=None)
@given(bodies(), st.binary(min_size=640, max_size=640))
def test_the_event_of_a_submission_is_its_model(body: dict[str, Any], salts: bytes) -> None:
    at = datetime(2017, 9, 29, 9, 30, 0, 123456, tzinfo=UTC)
    whole, words = canonical(body)
    revision = Revision(
        lineup_id=UUID(int=1), revision=3, contest="2017-W04", agent_id=UUID(int=2), idempotency_key=None,
        accepted_at=at, locks_at=at, model="a/b", marks=ev.Marks(), picks=[{}] * 9, total_price=1, projected_score=2,
        confidence=0.5, body=whole, receipt="", salts=salts, signature=b"", key_id="",
    )  # fmt: skip
    made = intake._submitted(revision, words, "why")
    envelope = ev.Envelope.model_validate_json(made.envelope)
    event = ev.unpack(envelope)
    assert isinstance(event, ev.LineupSubmitted)
    assert json.loads(made.envelope)["data"] == event.model_dump(mode="json")
    assert (envelope.subject, envelope.aggregateversion, envelope.correlationid) == (event.aggregate(), 3, "why")
    assert [(text.pointer, text.text) for text in event.words] == [(at, json.loads(text)) for at, text in words]
    # Leaf order: the picks' own, then main_factor before rationale.
    assert event.words[0].salt == salts[64:96].hex()
