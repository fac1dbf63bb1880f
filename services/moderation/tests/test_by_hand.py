"""Judging by hand: what owners ask for, what operators answer, and what the world hears of it."""

import asyncio
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from common import events as ev
from common.events import State
from testkit.fixtures import Start, Started

from .moderation_helpers import (
    CLEAN,
    MIXED,
    all_judged,
    claim,
    final,
    locked,
    locked_and_judged,
    opened,
    submitted,
    told,
)

CONTEST = "2017-W01"
FLAGGED = "/picks/0/rationale"
PATH = "/operator/api/v1/moderation"
ASKED = datetime(2017, 9, 12, 9, tzinfo=UTC)


def played(start: Start, *lineups: UUID, words: dict[str, str] | None = None) -> AbstractAsyncContextManager[Started]:
    """A locked contest whose lineups are judged and told."""
    return locked_and_judged(start, *lineups, words=words or MIXED, contest=CONTEST)


async def judge(service: Started, **body: Any) -> Any:
    return await service.operator.post(f"{PATH}/judgements", json={"note": "Read it.", **body})


async def queue(service: Started, **asked: str) -> list[dict[str, Any]]:
    answer = await service.operator.get(f"{PATH}/queue", params=asked)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["items"])


def asks(lineup: UUID, *pointers: str, judged: int = 1, at: datetime = ASKED) -> ev.ReviewRequested:
    return ev.ReviewRequested(
        agent_id=lineup,
        lineup_id=lineup,
        contest=CONTEST,
        revision=1,
        pointers=pointers or (FLAGGED,),
        judged_version=judged,
        requested_at=at,
    )


@pytest.mark.rule("M2", "M4")
async def test_what_a_person_clears_is_released_and_what_a_person_flags_after_it_is_withdrawn(start: Start) -> None:
    lineup = uuid4()
    async with played(start, lineup) as service:
        about = {"lineup_id": str(lineup), "pointer": FLAGGED}
        cleared = await judge(service, **about, version=1, state="cleared", note="Its own page.", by="ada")
        assert cleared.status_code == 200, cleared.text
        await service.settle()
        judged, released = await told(service)
        assert {field.state for field in judged[-1].fields} == {State.CLEARED}
        assert judged[-1].reasons == {}
        assert {word.pointer: word.text for word in released[-1].words} == MIXED
        assert await queue(service) == []

        flagged = await judge(service, **about, version=2, state="flagged", note="It is an advertisement.", by="bob")
        assert flagged.status_code == 200, flagged.text
        await service.settle()
        judged, released = await told(service)
        assert {field.pointer: field.state for field in judged[-1].fields}[FLAGGED] is State.FLAGGED
        assert judged[-1].reasons == {FLAGGED: ("operator",)}
        assert {word.pointer for word in released[-1].words} == set(MIXED) - {FLAGGED}
        envelopes = [*await service.envelopes(ev.ReasoningJudged), *await service.envelopes(ev.ReasoningReleased)]
        assert sorted(envelope.aggregateversion for envelope, _ in envelopes) == [1, 2, 3, 4, 5, 6]

        (item,) = await queue(service)
        assert (item["version"], item["state"], item["judged_by"]) == (3, "flagged", "bob")
        assert await queue(service, open="true") == [], "a person has looked at it"
        await service.publish(asks(lineup, judged=3))
        await service.settle()
        assert [one["pointer"] for one in await queue(service, open="true")] == [FLAGGED], "its owner asks again"
        assert [finding["detector"] for finding in item["findings"]] == ["links"], "the pipeline's findings stay"
        case = (await service.operator.get(f"{PATH}/lineups/{lineup}")).json()
        assert {item["pointer"] for item in case["items"]} == set(MIXED)
        assert [
            (entry["pointer"], entry["version"], entry["was"], entry["state"], entry["note"], entry["judged_by"])
            for entry in case["history"]
        ] == [
            (FLAGGED, 2, "flagged", "cleared", "Its own page.", "ada"),
            (FLAGGED, 3, "cleared", "flagged", "It is an advertisement.", "bob"),
        ]
        assert case["history"][0]["judged_at"] < case["history"][1]["judged_at"]
        assert flagged.json()["history"] == case["history"]
        acts = (await service.operator.get("/operator/api/v1/audit/moderation")).json()["acts"]
        assert [
            (act["who"], act["what"], act["target"], act["before"]["state"], act["after"]["state"]) for act in acts
        ] == [
            ("bob", "judge", f"text/{lineup}{FLAGGED}", "cleared", "flagged"),
            ("ada", "judge", f"text/{lineup}{FLAGGED}", "flagged", "cleared"),
        ]
        assert acts[0]["after"]["via"].startswith("api from ")
        assert "advertisement" not in str(acts), "a note may quote what has to go one day"
        assert [item["pointer"] for item in flagged.json()["items"]] == [FLAGGED]
        for event in (*judged, *released):
            assert "advertisement" not in event.model_dump_json(), "notes are for operators alone"


@pytest.mark.rule("M4")
async def test_what_owners_ask_to_look_at_again_comes_first_until_a_person_has_looked(start: Start) -> None:
    one, two, three = uuid4(), uuid4(), uuid4()
    agent = uuid4()
    async with played(start, one, two, three) as service:
        await service.publish(ev.AgentRegistered(agent_id=agent, agent_name="winners.bet", model="m"))
        await service.publish(asks(two))
        # A second request of the same owner counts, however late the first one comes.
        await service.publish(asks(three, at=ASKED - timedelta(hours=1)), version=2)
        await service.publish(asks(three, "/thesis", at=ASKED + timedelta(hours=9)), version=1)
        named = ev.ReviewRequested(agent_id=agent, judged_version=1, requested_at=ASKED + timedelta(hours=1))
        await service.publish(named)
        await all_judged(service)
        items = await queue(service)
        assert [(item["lineup_id"], item["pointer"], item["review_requested_at"]) for item in items] == [
            (str(three), FLAGGED, "2017-09-12T08:00:00Z"),
            (str(two), FLAGGED, "2017-09-12T09:00:00Z"),
            (None, None, "2017-09-12T10:00:00Z"),
            (str(one), FLAGGED, None),
        ]
        assert (items[2]["agent_id"], items[2]["text"], items[2]["state"]) == (str(agent), "winners.bet", "flagged")
        limited = await service.operator.get(f"{PATH}/queue", params={"limit": 3})
        assert limited.json()["items"] == items[:3]

        # Looked at again and flagged again: the owner hears of it, and may ask once more.
        again = await judge(service, lineup_id=str(two), pointer=FLAGGED, version=1, state="flagged")
        assert again.status_code == 200, again.text
        await service.settle()
        envelopes = [pair for pair in await service.envelopes(ev.ReasoningJudged) if pair[1].lineup_id == two]
        assert [(envelope.aggregateversion, event.reasons[FLAGGED]) for envelope, event in envelopes] == [
            (1, ("links",)),
            (3, ("operator",)),
        ]
        assert len([event for event in await service.published(ev.ReasoningReleased) if event.lineup_id == two]) == 1
        asked = {item["lineup_id"] for item in await queue(service) if item["review_requested_at"]}
        assert asked == {str(three), None}
        await service.publish(asks(two, judged=3, at=ASKED + timedelta(days=1)), version=2)
        await service.settle()
        asked = {item["lineup_id"] for item in await queue(service) if item["review_requested_at"]}
        assert asked == {str(three), None, str(two)}
        assert await service.dead_letters() == []


@pytest.mark.rule("M4")
async def test_of_operators_at_once_one_judges_and_the_others_are_told_what_became_of_it(start: Start) -> None:
    lineup, agent = uuid4(), uuid4()
    async with played(start, lineup) as service:
        await service.publish(ev.AgentRegistered(agent_id=agent, agent_name="winners.bet", model="m"))
        await all_judged(service)
        for about in ({"lineup_id": str(lineup), "pointer": FLAGGED}, {"agent_id": str(agent)}):
            states = ["cleared", "flagged"] * 4
            answers = await asyncio.gather(
                *(judge(service, **about, version=1, state=state, by=f"{n}") for n, state in enumerate(states))
            )
            codes = [answer.status_code for answer in answers]
            assert sorted(codes) == [200] + [409] * 7
            (won,) = (answer.json() for answer in answers if answer.status_code == 200)
            (item,), (entry,) = won["items"], won["history"]
            assert (item["version"], item["state"]) == (2, states[codes.index(200)])
            assert (entry["version"], entry["judged_by"]) == (2, str(codes.index(200)))
            for answer in answers:
                if answer.status_code == 409:
                    problem = answer.json()
                    assert (problem["code"], problem["version"]) == ("judged-meanwhile", 2)
                    assert problem["state"] == item["state"]


@pytest.mark.rule("M4")
async def test_judgements_on_different_texts_of_a_lineup_at_once_all_count(start: Start) -> None:
    lineup = uuid4()
    words = {f"/picks/{pick}/rationale": f"See https://evil.example/{pick}" for pick in range(8)}
    async with played(start, lineup, words=words) as service:
        answers = await asyncio.gather(
            *(judge(service, lineup_id=str(lineup), pointer=at, version=1, state="cleared") for at in words)
        )
        assert [answer.status_code for answer in answers] == [200] * 8
        await service.settle()
        newest = max(await service.envelopes(ev.ReasoningReleased), key=lambda pair: pair[0].aggregateversion)[1]
        assert {word.pointer: word.text for word in newest.words} == words
        versions = [envelope.aggregateversion for envelope, _ in await service.envelopes(ev.ReasoningJudged)]
        assert len(versions) == len(set(versions)) == 9


@pytest.mark.rule("C8", "M2")
async def test_nobody_reads_or_judges_words_before_the_lock_nor_of_a_revision_that_is_not_final(start: Start) -> None:
    lineup = uuid4()
    async with start("moderation") as service:
        await service.publish(opened(CONTEST))
        await claim(service, lineup)
        await service.publish(submitted(CONTEST, {**MIXED, "/picks/9/rationale": "Old."}, lineup_id=lineup))
        await service.publish(submitted(CONTEST, MIXED, lineup_id=lineup, revision=2), version=2)
        await service.publish(final(CONTEST, lineup, revision=2))
        await service.publish(asks(lineup))
        await all_judged(service)
        about = {"lineup_id": str(lineup), "pointer": FLAGGED, "version": 1, "state": "cleared"}
        assert (await judge(service, **about)).status_code == 404
        assert (await service.operator.get(f"{PATH}/lineups/{lineup}")).status_code == 404
        assert await queue(service) == []
        await service.publish(locked(CONTEST), version=2)
        await all_judged(service)
        assert (await judge(service, **{**about, "pointer": "/picks/9/rationale"})).status_code == 404
        assert (await judge(service, **about)).status_code == 200
        await service.settle()
        _, released = await told(service)
        assert {event.revision for event in released} == {2}
        assert {
            item["revision"] for item in (await service.operator.get(f"{PATH}/lineups/{lineup}")).json()["items"]
        } == {2}


@pytest.mark.rule("A10", "M4")
async def test_an_agents_name_is_judged_by_hand_and_by_the_pipeline_again_when_it_changes(start: Start) -> None:
    agent = uuid4()
    async with start("moderation") as service:
        await service.publish(ev.AgentRegistered(agent_id=agent, agent_name="winners.bet", model="m"))
        await all_judged(service)
        about = {"agent_id": str(agent)}
        assert (await judge(service, **about, version=1, state="cleared")).status_code == 200
        assert (await judge(service, **about, version=2, state="cleared", note="Still.")).status_code == 200
        await service.publish(ev.AgentUpdated(agent_id=agent, agent_name="losers.bet", model="m"), version=2)
        await all_judged(service)
        late = await judge(service, **about, version=3, state="cleared")
        assert (late.status_code, late.json()["code"]) == (409, "judged-meanwhile"), "nobody has seen this name yet"
        envelopes = await service.envelopes(ev.AgentNameJudged)
        assert [(pair[0].aggregateversion, pair[1].agent_name, pair[1].state.value) for pair in envelopes] == [
            (1, "winners.bet", "flagged"),
            (2, "winners.bet", "cleared"),
            (3, "winners.bet", "cleared"),
            (4, "losers.bet", "flagged"),
        ]
        case = (await service.operator.get(f"{PATH}/agents/{agent}")).json()
        (item,) = case["items"]
        assert (item["text"], item["judged_by"], item["version"]) == ("losers.bet", None, 4)
        assert [entry["note"] for entry in case["history"]] == ["Read it.", "Still."]
        assert case["history"][0]["text_hash"] != item["text_hash"]


@pytest.mark.rule("M4")
async def test_a_judgement_that_makes_no_sense_is_refused_and_changes_nothing(start: Start) -> None:
    lineup = uuid4()
    async with played(start, lineup) as service:
        good: dict[str, Any] = {"lineup_id": str(lineup), "pointer": FLAGGED, "version": 1, "state": "cleared"}
        for change in (
            {"state": "unchecked"},
            {"state": None},
            {"version": None},
            {"version": -1},
            {"note": ""},
            {"note": "a\x00b"},
            {"note": "x" * 2001},
            {"by": ""},
            {"pointer": None},
            {"pointer": "\x00"},
            {"lineup_id": None},
            {"lineup_id": "x"},
            {"agent_id": str(lineup)},
            {"lineup_id": None, "agent_id": str(lineup)},
            {"else": 1},
        ):
            answer = await judge(service, **{**good, **change})
            assert answer.status_code == 422, change
        for raw in (b"", b"{", b"[]", b'{"note": "\\ud800"}', b"\xff"):
            assert (await service.operator.post(f"{PATH}/judgements", content=raw)).status_code == 422, raw
        assert (await judge(service, **{**good, "version": 2**40})).status_code == 409
        for missing in ({"lineup_id": str(uuid4())}, {"pointer": "/nowhere"}):
            assert (await judge(service, **{**good, **missing})).status_code == 404
        nobody = {"agent_id": str(uuid4()), "version": 0, "state": "cleared"}
        assert (await judge(service, **nobody)).status_code == 404
        for path in (f"/lineups/{uuid4()}", f"/agents/{uuid4()}"):
            assert (await service.operator.get(PATH + path)).status_code == 404
            assert (await service.client.get(PATH + path)).status_code == 401
        assert (await service.client.post(f"{PATH}/judgements", json={"note": "n", **good})).status_code == 401
        assert [len(events) for events in await told(service)] == [1, 1]
        assert (await service.operator.get(f"{PATH}/lineups/{lineup}")).json()["history"] == []


@pytest.mark.rule("M2", "M4")
async def test_a_text_that_nobody_doubted_can_be_flagged_and_the_rest_stays_public(start: Start) -> None:
    lineup = uuid4()
    async with played(start, lineup, words=CLEAN) as service:
        flagged = await judge(service, lineup_id=str(lineup), pointer="/thesis", version=1, state="flagged")
        assert flagged.status_code == 200, flagged.text
        await service.settle()
        judged, released = await told(service)
        assert judged[-1].reasons == {"/thesis": ("operator",)}
        assert {word.pointer for word in released[-1].words} == set(CLEAN) - {"/thesis"}


@pytest.mark.rule("M4", "A10")
async def test_a_models_label_is_judged_by_hand_as_a_name_is_and_no_new_pipeline_speaks_over_a_person(
    start: Start,
) -> None:
    label = "best-picks.bet/free"
    agent = uuid4()
    async with start("moderation") as service:
        await service.publish(ev.AgentRegistered(agent_id=agent, agent_name="Quiet Agent", model=label))
        await service.publish(ev.AgentRegistered(agent_id=uuid4(), agent_name="Other Agent", model="gpt-5"))
        await all_judged(service)
        (item,) = await queue(service, open="true")
        assert (item["model"], item["text"], item["state"], item["version"]) == (label, label, "flagged", 1)
        assert [item[name] for name in ("agent_id", "lineup_id", "pointer", "contest")] == [None] * 4

        states = ["cleared", "flagged"] * 3
        answers = await asyncio.gather(
            *(judge(service, model=label, version=1, state=state, by=f"{n}") for n, state in enumerate(states))
        )
        assert sorted(answer.status_code for answer in answers) == [200] + [409] * 5
        (won,) = (answer.json() for answer in answers if answer.status_code == 200)
        first = won["items"][0]["state"]
        await service.settle()
        second = await judge(service, model=label, version=2, state="cleared", note="A name of a house.", by="ada")
        assert second.status_code == 200, second.text
        assert await queue(service) == []
        noted = await service.operator.post(f"{PATH}/notes", json={"model": label, "note": "Asked.", "by": "bob"})
        assert noted.status_code == 200, noted.text

        case = (await service.operator.get(f"{PATH}/models/{label}")).json()
        assert [(one["was"], one["state"], one["version"]) for one in case["history"]] == [
            ("flagged", first, 2),
            (first, "cleared", 3),
        ]
        assert [one["note"] for one in case["notes"]] == ["Asked."]
        assert {finding["detector"] for finding in case["items"][0]["findings"]} == {"links"}, "findings stay"

        # Everything once more: the pipeline still finds what it found, and what the person said holds.
        wanted = {"everything": True, "by": "cy"}
        rerun = (await service.operator.post(f"{PATH}/reruns", json=wanted)).json()["rerun"]
        for _ in range(1500):
            done = (await service.operator.get(f"{PATH}/reruns/{rerun}")).json()
            if done["state"] != "running":
                break
            await asyncio.sleep(0.02)
        assert done["state"] == "done"
        assert (await service.operator.get(f"{PATH}/models/{label}")).json()["items"][0]["state"] == "cleared"

        # Taken back, what was said before holds again; only the newest can be.
        for one, status in zip(reversed(case["history"]), (200, 409), strict=True):
            path = f"{PATH}/judgements/{one['position']}/take-back"
            assert (await service.operator.post(path, json={"by": "ada"})).status_code == status
        await service.settle()
        told = [
            (envelope.aggregateversion, event.state)
            for envelope, event in await service.envelopes(ev.ModelJudged)
            if event.model == label
        ]
        assert told == [(1, State.FLAGGED), (2, State(first)), (3, State.CLEARED), (4, State(first))]
        acts = (await service.operator.get("/operator/api/v1/audit/moderation")).json()["acts"]
        of_label = [(act["who"], act["what"]) for act in acts if act["target"] == f"model/{label}"]
        assert of_label[:-1] == [("ada", "take back"), ("bob", "note"), ("ada", "judge")]
        assert "house" not in str(acts), "notes are no part of the list"

        unknown = await judge(service, model="nobody/claims-it", version=1, state="flagged")
        assert unknown.status_code == 404
        both = await judge(service, model=label, agent_id=str(agent), version=3, state="flagged")
        assert both.status_code == 422
        assert await service.dead_letters() == []
