"""Moderation lets the words of a text go for good, whatever it knows of the text by then."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import select

from common import events as ev
from common.events import State
from moderation import commands
from moderation.domain import Stage, Verdict
from moderation.store import FORMER, JUDGEMENTS, TEXTS, Place, Store
from testkit.fixtures import Start, Started
from testkit.searching import in_database

from .moderation_helpers import (
    MIXED,
    all_judged,
    backlog,
    claim,
    final,
    locked,
    opened,
    query,
    submitted,
    told,
)

CONTEST = "2017-W01"


async def order(service: Started, lineup: Any, pointer: str, status: int = 200, **more: Any) -> Any:
    wanted = {"lineup_id": str(lineup), "pointer": pointer, "reason": "decency", "note": "Case 17.", **more}
    answer = await service.operator.post("/operator/api/v1/moderation/redactions", json=wanted)
    assert answer.status_code == status, answer.text
    return answer.json()


@pytest.mark.rule("M6", "M3")
async def test_a_text_that_nobody_has_judged_yet_is_judged_no_more_and_holds_back_no_other(start: Start) -> None:
    async with start("moderation") as service:
        lineup = uuid4()
        words = {"/thesis": "Zebrafinch.", "/picks/0/rationale": "Smash spot.", "/picks/0/main_factor": "volume"}
        # Its contest's pool is not known yet: everything waits.
        await service.publish(submitted(CONTEST, words, lineup_id=lineup))
        await service.settle()
        assert (await backlog(service))["texts"] == 3
        await order(service, lineup, "/thesis")
        assert (await backlog(service))["texts"] == 2
        assert in_database(service.database_url, ["Zebrafinch"]) == []
        await claim(service, lineup)
        for event in (opened(CONTEST), locked(CONTEST), final(CONTEST, lineup)):
            await service.publish(event)
        await all_judged(service)
        judged, released = await told(service)
        assert {field.pointer: field.state for field in judged[-1].fields} == {
            "/thesis": State.UNCHECKED,
            "/picks/0/rationale": State.CLEARED,
            "/picks/0/main_factor": State.CLEARED,
        }
        assert {word.pointer for word in released[-1].words} == {"/picks/0/rationale", "/picks/0/main_factor"}


@pytest.mark.rule("M6")
async def test_notes_hashes_and_spans_go_too_and_a_late_verdict_changes_nothing(start: Start) -> None:
    async with start("moderation") as service:
        lineup = uuid4()
        quoted = {**MIXED, "/picks/0/rationale": "Zebrafinch, see https://evil.example/picks"}
        await claim(service, lineup)
        for event in (opened(CONTEST), submitted(CONTEST, quoted, lineup_id=lineup), locked(CONTEST)):
            await service.publish(event)
        await service.publish(final(CONTEST, lineup))
        await all_judged(service)
        place = Place(lineup, 1, "/picks/0/rationale")
        judgement = {
            "lineup_id": str(lineup),
            "pointer": place.pointer,
            "version": 1,
            "state": "cleared",
            "note": "Zebrafinch is a bird.",
        }
        answer = await service.operator.post("/operator/api/v1/moderation/judgements", json=judgement)
        assert answer.status_code == 200, answer.text
        async with service.runtime.database.transaction() as connection:
            cleared = {place: Verdict(State.CLEARED)}
            assert await commands.take_verdicts(Store(connection), Stage.LOCAL, cleared, "newer/1", again=True)
        await all_judged(service)
        (hashed,) = {row.text_hash for row in await query(service, select(FORMER))}
        assert in_database(service.database_url, ["Zebrafinch", hashed]) != []

        await order(service, lineup, place.pointer)
        assert in_database(service.database_url, ["Zebrafinch", hashed]) == []
        (row,) = await query(service, select(TEXTS).where(TEXTS.c.pointer == place.pointer))
        assert (row.text, row.text_hash, row.salt, row.state) == ("", "", None, "cleared")
        assert [(one.note, one.text_hash) for one in await query(service, select(JUDGEMENTS))] == [("redacted", "")]
        assert [one.findings for one in await query(service, select(FORMER))] == [[]]

        async with service.runtime.database.transaction() as connection:
            late = {place: Verdict(State.FLAGGED)}
            assert not await commands.take_verdicts(Store(connection), Stage.LOCAL, late, "newest/1", again=True)
        # The same submission once more, as after a durable was made anew.
        await service.publish(submitted(CONTEST, quoted, lineup_id=lineup))
        await service.settle()
        assert in_database(service.database_url, ["Zebrafinch"]) == []
        _, released = await told(service)
        assert "/picks/0/rationale" not in {word.pointer for word in released[-1].words}
        (ordered,) = await service.published(ev.RedactionOrdered)
        assert (ordered.revision, ordered.pointer, ordered.reason) == (1, place.pointer, "decency")


@pytest.mark.rule("M6", "C8")
async def test_a_text_says_which_pick_it_is_about_after_the_lock_and_of_the_final_revision_alone(start: Start) -> None:
    pick = "/picks/0/rationale"

    def about(items: list[dict[str, Any]]) -> dict[Any, tuple[Any, Any]]:
        return {item["pointer"]: (item["slot"], item["player"]) for item in items}

    async with start("moderation") as service:
        lineup = uuid4()
        pool = opened(CONTEST, "Kareem Hunt", "Tyreek Hill")
        for event in (pool, submitted(CONTEST, MIXED, lineup_id=lineup)):
            await service.publish(event)
        await service.publish(submitted(CONTEST, MIXED, lineup_id=lineup, revision=2), version=2)
        await service.settle()

        async def planned(pointer: str) -> list[tuple[Any, ...]]:
            texts = (await order(service, lineup, pointer, dry_run=True))["texts"]
            return [(text["revision"], text["slot"], text["player"]) for text in texts]

        assert await planned(pick) == [(1, None, None), (2, None, None)], "before the lock nobody knows the picks"
        await service.publish(locked(CONTEST), version=2)
        await service.publish(final(CONTEST, lineup, 2))
        # A pool that came later, as a redelivery may, takes no name away.
        await service.publish(opened(CONTEST, "Kareem Hunt"), version=3)
        await service.settle()
        assert await planned(pick) == [(1, None, None), (2, "WR1", "Kareem Hunt")]
        assert await planned("/thesis") == [(1, None, None), (2, None, None)]
        path = "/operator/api/v1/moderation"
        case = (await service.operator.get(f"{path}/lineups/{lineup}")).json()
        of_pick = ("WR1", "Kareem Hunt")
        assert about(case["items"]) == {"/thesis": (None, None), pick: of_pick, "/picks/0/main_factor": of_pick}


@pytest.mark.rule("M6")
async def test_an_order_that_is_wrong_says_what_is_and_changes_nothing(start: Start) -> None:
    async with start("moderation") as service:
        lineup = uuid4()
        await service.publish(submitted(CONTEST, MIXED, lineup_id=lineup))
        await service.settle()
        assert "no text /nothing" in (await order(service, lineup, "/nothing", 404))["detail"]
        assert (await order(service, uuid4(), "/thesis", 404))["code"] == "not-found"
        for wrong in ({"reason": "because"}, {"pointer": ""}, {"note": ""}, {"revisions": [0]}, {"more": 1}):
            refused = await order(service, lineup, **{"pointer": "/thesis", "status": 422, **wrong})
            assert refused["violations"], refused
        path = "/operator/api/v1/moderation/redactions"
        assert (await service.client.post(path, json={})).status_code == 401
        assert (await service.client.get(path)).status_code == 401
        assert (await service.operator.get(path)).json() == {"redactions": []}
