"""The running service: real PostgreSQL and NATS, events in, events out."""

import asyncio
import itertools
import logging
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import select, text, update

from common import events as ev
from common.db import OUTBOX
from common.events import State
from moderation import commands, judging, workers
from moderation.domain import Stage, Verdict
from moderation.store import FINALS, TEXTS, Place, Store
from testkit.fixtures import Start

from .moderation_helpers import (
    CLEAN,
    LOCKS,
    MIXED,
    Detecting,
    all_judged,
    backlog,
    claim,
    claimed,
    final,
    locked,
    opened,
    query,
    salt,
    submitted,
    told,
    until,
)


@pytest.fixture
def detecting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Detecting:
    """A pipeline of the test's own."""
    return Detecting(tmp_path, monkeypatch)


@pytest.mark.rule("C8", "C10", "M2", "M3")
async def test_a_verdict_before_the_lock_is_told_after_it_and_cleared_words_alone_are_released(start: Start) -> None:
    async with start("moderation") as service:
        lineup = uuid4()
        await service.publish(opened("2017-W01"))
        await claim(service, lineup)
        await service.publish(submitted("2017-W01", MIXED, lineup_id=lineup))
        await all_judged(service)
        assert [row.state for row in await query(service, select(TEXTS.c.state))].count("flagged") == 1
        await service.publish(final("2017-W01", lineup))
        await all_judged(service)
        assert await told(service) == ([], [])
        assert await query(service, select(OUTBOX)) == []
        await service.publish(locked("2017-W01"), version=2)
        await all_judged(service)
        (judged,), (released,) = await told(service)
        assert {field.pointer: field.state for field in judged.fields} == {
            "/thesis": State.CLEARED,
            "/picks/0/rationale": State.FLAGGED,
            "/picks/0/main_factor": State.CLEARED,
        }
        assert {word.pointer: word.text for word in released.words} == {
            "/thesis": "Stack the shootout.",
            "/picks/0/main_factor": "volume",
        }
        assert {word.pointer: word.salt for word in released.words} == {
            pointer: salt(pointer) for pointer in ("/thesis", "/picks/0/main_factor")
        }, "the salt of a text goes out with the text, and with no other"
        assert (judged.lineup_id, judged.contest, judged.revision) == (lineup, "2017-W01", 1)
        assert judged.reasons == {"/picks/0/rationale": ("links",)}
        assert "evil" not in judged.model_dump_json() + released.model_dump_json()


@pytest.mark.rule("C8", "M2", "M3")
async def test_in_whatever_order_the_events_come_the_same_is_told_once(start: Start) -> None:
    async with start("moderation") as service:
        orders = list(itertools.permutations(("opened", "submitted", "locked", "final")))
        lineups = {f"2017-X{number:02}": uuid4() for number in range(len(orders))}
        for step in range(4):
            for (contest, lineup), order in zip(lineups.items(), orders, strict=True):
                kinds: dict[str, ev.Event] = {
                    "opened": opened(contest),
                    "submitted": submitted(contest, MIXED, lineup_id=lineup),
                    "locked": locked(contest),
                    "final": final(contest, lineup),
                }
                await service.publish(kinds[order[step]], version=2 if order[step] == "locked" else 1)
                if int(contest[-2:]) % 4 == step:
                    await claim(service, lineup)
            await service.settle()
        await all_judged(service)
        judged, released = await told(service)
        assert sorted(event.lineup_id for event in judged) == sorted(lineups.values())
        assert sorted(event.lineup_id for event in released) == sorted(lineups.values())
        assert {len(event.words) for event in released} == {2}


@pytest.mark.rule("M2", "M5")
async def test_words_of_every_revision_are_kept_and_of_the_final_one_told(start: Start) -> None:
    async with start("moderation") as service:
        lineup = uuid4()
        await service.publish(opened("2017-W01"))
        await claim(service, lineup)
        for revision in (1, 2, 3):
            words = {pointer: f"{text} {revision}" for pointer, text in MIXED.items()}
            await service.publish(submitted("2017-W01", words, lineup_id=lineup, revision=revision), version=revision)
        await service.publish(locked("2017-W01"), version=2)
        await service.publish(final("2017-W01", lineup, revision=2), version=2)
        await all_judged(service)
        (judged,), (released,) = await told(service)
        assert judged.revision == released.revision == 2
        assert all(word.text.endswith(" 2") for word in released.words)
        kept = {(row.revision, row.pointer): row.text for row in await query(service, select(TEXTS))}
        assert kept == {
            (revision, pointer): f"{text} {revision}" for revision in (1, 2, 3) for pointer, text in MIXED.items()
        }


@pytest.mark.rule("A5", "M2")
async def test_words_are_told_of_the_claimed_alone_with_their_whole_history_and_withdrawn_with_the_claim(
    start: Start,
) -> None:
    async with start("moderation") as service:
        lineups = {"2017-W01": uuid4(), "2017-W02": uuid4(), "2017-W03": uuid4()}
        agent, stranger = uuid4(), lineups["2017-W03"]
        for contest, lineup in lineups.items():
            of = stranger if lineup == stranger else agent
            await service.publish(opened(contest))
            await service.publish(submitted(contest, MIXED, lineup_id=lineup))
            await service.publish(final(contest, lineup).model_copy(update={"agent_id": of}))
            await service.publish(locked(contest), version=2)
        await all_judged(service)
        judged, released = await told(service)
        assert sorted(event.lineup_id for event in judged) == sorted(lineups.values())
        assert released == []
        theirs = sorted(lineup for lineup in lineups.values() if lineup != stranger)
        for version, now in ((2, True), (3, False), (5, True), (4, False)):
            before = len(released)
            await service.publish(claimed(agent, now=now), version=version)
            await all_judged(service)
            again, released = await told(service)
            assert len(again) == len(judged), "a claim is no verdict"
            news = released[before:]
            if version == 4:
                assert news == [], "what is older than what is known says nothing"
                continue
            assert sorted(event.lineup_id for event in news) == theirs
            for event in news:
                flagged, shown = {"/picks/0/rationale"}, {"/thesis", "/picks/0/main_factor"}
                assert {words.pointer for words in event.words} == (shown if now else set())
                assert set(event.withdrawn) == (flagged if now else flagged | shown)


@pytest.mark.rule("M3")
async def test_what_came_while_moderation_was_stopped_is_judged_after_its_start(start: Start) -> None:
    lineup = uuid4()
    async with start("moderation") as before:
        url = before.database_url
        await before.publish(opened("2017-W01"))
        await claim(before, lineup)
        await before.settle()
        publish = before.publish
    # The bus keeps what comes in meanwhile: submission, lock and final revision.
    await publish(submitted("2017-W01", CLEAN, lineup_id=lineup))
    await publish(locked("2017-W01"), version=2)
    await publish(final("2017-W01", lineup))
    async with start("moderation", database_url=url) as after:
        await all_judged(after)
        _, (released,) = await told(after)
        assert len(released.words) == 3


@pytest.mark.rule("M3", "M4")
async def test_texts_of_a_detector_that_raises_stay_unchecked_and_withheld_and_the_rest_goes_on(
    start: Start, detecting: Detecting, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    detecting.use("""
        class Stumbles(One):
            name = "stumbles"

            def judge(self, text, context):
                if "stumble" in text:
                    raise RuntimeError(f"over {text}")
                return ()

        def load():
            return Pipeline((*detectors.load().detectors, Stumbles()))
    """)
    caplog.set_level(logging.DEBUG)
    async with start("moderation") as service:
        one, two = uuid4(), uuid4()
        await service.publish(opened("2017-W01"))
        await service.publish(
            submitted("2017-W01", {**CLEAN, "/thesis": "They stumble over a secretword."}, lineup_id=one)
        )
        await service.publish(submitted("2017-W01", CLEAN, lineup_id=two))
        await service.publish(locked("2017-W01", 2), version=2)
        await claim(service, one, two)
        for lineup in (one, two):
            await service.publish(final("2017-W01", lineup))
        await all_judged(service)
        judged, released = await told(service)
        states = {event.lineup_id: {field.pointer: field.state for field in event.fields} for event in judged}
        assert states[one]["/thesis"] is State.UNCHECKED
        assert set(states[two].values()) == {State.CLEARED}
        words = {event.lineup_id: {word.pointer for word in event.words} for event in released}
        assert words == {one: set(CLEAN) - {"/thesis"}, two: set(CLEAN)}
        metrics = (await service.client.get("/metrics")).text
        assert 'mafl_moderation_detector_errors_total{detector="stumbles"} 1.0' in metrics
    logged = caplog.text + "".join(capfd.readouterr())
    assert "secretword" not in logged


@pytest.mark.rule("M2")
async def test_judged_again_after_the_lock_news_bears_a_higher_version_and_no_news_is_not_told(
    start: Start,
) -> None:
    async with start("moderation") as service:
        lineup = uuid4()
        await claim(service, lineup)
        for event in (opened("2017-W01"), submitted("2017-W01", CLEAN, lineup_id=lineup)):
            await service.publish(event)
        await service.publish(locked("2017-W01"), version=2)
        await service.publish(final("2017-W01", lineup))
        await all_judged(service)

        async def again(state: State) -> None:
            async with service.runtime.database.transaction() as connection:
                store = Store(connection)
                places = {Place(lineup, 1, "/thesis"): Verdict(state)}
                await commands.take_verdicts(store, Stage.LOCAL, places, "another", again=True)
                await connection.execute(update(FINALS).values(stale=True))
            service.runtime.wake("publish")
            await all_judged(service)

        await again(State.CLEARED)
        assert [len(events) for events in await told(service)] == [1, 1]
        await again(State.FLAGGED)
        await again(State.CLEARED)
        envelopes = [*await service.envelopes(ev.ReasoningJudged), *await service.envelopes(ev.ReasoningReleased)]
        versions = sorted(envelope.aggregateversion for envelope, _ in envelopes)
        assert versions == [1, 2, 3, 4, 5, 6]
        _, released = await told(service)
        assert [len(event.words) for event in released] == [3, 2, 3]


@pytest.mark.rule("M2")
async def test_repeated_deliveries_change_nothing(start: Start) -> None:
    async with start("moderation") as service:
        lineup = uuid4()
        await claim(service, lineup)
        events: list[tuple[ev.Event, int]] = [
            (opened("2017-W01"), 1),
            (submitted("2017-W01", CLEAN, lineup_id=lineup), 1),
            (locked("2017-W01"), 2),
            (final("2017-W01", lineup), 1),
        ]
        ids = [await service.publish(event, version) for event, version in events]
        await all_judged(service)
        for (event, version), event_id in zip(events, ids, strict=True):
            await service.publish(event, version, event_id=event_id)
            await service.publish(event, version)
        await all_judged(service)
        assert [len(kind) for kind in await told(service)] == [1, 1]
        assert len(await query(service, select(TEXTS))) == 3
        assert await service.dead_letters() == []


@pytest.mark.rule("A10")
async def test_agents_names_are_judged_once_and_again_only_when_they_change(start: Start) -> None:
    async with start("moderation") as service:
        good, bad = uuid4(), uuid4()
        await service.publish(ev.AgentRegistered(agent_id=good, agent_name="Value Greedy", model="m"))
        await service.publish(ev.AgentRegistered(agent_id=bad, agent_name="winners.bet", model="m"))
        await all_judged(service)
        await service.publish(ev.AgentClaimed(agent_id=good, agent_name="Value Greedy", model="m"), version=3)
        await service.publish(ev.AgentUpdated(agent_id=good, agent_name="Old name", model="m"), version=2)
        await all_judged(service)
        names = await service.published(ev.AgentNameJudged)
        assert {(event.agent_id, event.agent_name, event.state) for event in names} == {
            (good, "Value Greedy", State.CLEARED),
            (bad, "winners.bet", State.FLAGGED),
        }
        assert len(names) == 2
        await service.publish(ev.AgentUpdated(agent_id=bad, agent_name="Winners", model="m"), version=2)
        await all_judged(service)
        envelopes = [pair for pair in await service.envelopes(ev.AgentNameJudged) if pair[1].agent_id == bad]
        assert [(envelope.aggregateversion, event.state) for envelope, event in envelopes] == [
            (1, State.FLAGGED),
            (2, State.CLEARED),
        ]


@pytest.mark.rule("A10")
async def test_each_label_of_a_model_is_judged_and_told_once_whoever_claims_it_and_however_often(start: Start) -> None:
    async with start("moderation") as one, start("moderation", database_url=one.database_url) as two:
        agents = [uuid4() for _ in range(12)]
        labels = ["openai/gpt-5", "qwen/qwen3-coder:free", "see winners.bet/vip", "bob@example.com"]
        for number, agent in enumerate(agents):
            name, model = f"Agent {number}", labels[number % len(labels)]
            await one.publish(ev.AgentRegistered(agent_id=agent, agent_name=name, model=model))
            await one.publish(ev.AgentClaimed(agent_id=agent, agent_name=name, model=model), version=2)
        # A label that an agent has given up stands in the results it had by then, however late the word of it comes.
        late = ev.AgentUpdated(agent_id=agents[0], agent_name="Agent 0", model="mistral/large")
        await one.publish(late, version=1)
        await all_judged(one)
        await all_judged(two)
        told = await one.envelopes(ev.ModelJudged)
        assert {(event.model, event.state, envelope.aggregateversion) for envelope, event in told} == {
            ("openai/gpt-5", State.CLEARED, 1),
            ("qwen/qwen3-coder:free", State.CLEARED, 1),
            ("see winners.bet/vip", State.FLAGGED, 1),
            ("bob@example.com", State.FLAGGED, 1),
            ("mistral/large", State.CLEARED, 1),
        }
        assert len(told) == 5
        await one.publish(ev.AgentUpdated(agent_id=agents[1], agent_name="Agent 1", model="openai/gpt-5"), version=3)
        await all_judged(one)
        assert len(await one.published(ev.ModelJudged)) == 5


@pytest.mark.rule("A10")
async def test_the_label_that_another_is_mapped_to_is_judged_too_though_no_agent_wrote_it(start: Start) -> None:
    async with start("moderation") as service:
        await service.publish(ev.AgentRegistered(agent_id=uuid4(), agent_name="One", model="GPT-5"))
        for version, canonical in enumerate(("openai/gpt-5", "winners.bet/vip", "GPT-5"), start=1):
            await service.publish(ev.ModelMapped(label="GPT-5", canonical=canonical, by="operator"), version=version)
        await all_judged(service)
        told = await service.published(ev.ModelJudged)
        assert sorted((event.model, event.state.value) for event in told) == [
            ("GPT-5", "cleared"),
            ("openai/gpt-5", "cleared"),
            ("winners.bet/vip", "flagged"),
        ]


@pytest.mark.rule("M4")
async def test_a_player_of_the_pool_passes_by_surname_and_the_pool_is_waited_for(start: Start) -> None:
    async with start("moderation") as service:
        lineup = uuid4()
        words = {"/thesis": "Butt is the cheapest starter."}
        await service.publish(submitted("2017-W01", words, lineup_id=lineup))
        await service.settle()
        assert (await backlog(service))["texts"] == 1
        await service.publish(opened("2017-W01", "Jake Butt"))
        await all_judged(service)
        assert [row.state for row in await query(service, select(TEXTS))] == ["cleared"]


@pytest.mark.rule("M3")
@pytest.mark.parametrize("moved", [False, True])
async def test_what_locks_soonest_is_judged_first_also_after_a_reschedule(
    start: Start, detecting: Detecting, monkeypatch: pytest.MonkeyPatch, moved: bool
) -> None:
    monkeypatch.setattr(judging, "SECONDS_AT_ONCE", 0.1)
    monkeypatch.setattr(workers, "_SOON", 60)  # or there would be another process beside the one that is held
    detecting.use(
        """
        class Records(One):
            name = "records"

            def judge(self, text, context):
                with SEEN.open("a") as seen:
                    seen.write(f"{text}\\n")
                while not GATE.exists():
                    time.sleep(0.01)
                return ()

        def load():
            return Pipeline((Records(),))
        """,
        workers=1,
        text_seconds=60,
    )
    async with start("moderation") as service:
        # While this one holds the only process the others come in.
        await service.publish(opened("2017-W00", locks_at=LOCKS + timedelta(days=30)))
        await service.publish(
            submitted("2017-W00", {"/thesis": "first"}, lineup_id=uuid4(), locks_at=LOCKS + timedelta(days=30))
        )

        async def held() -> bool:
            return detecting.seen.exists()

        await until(held)
        weeks = {"2017-W02": LOCKS + timedelta(days=7), "2017-W01": LOCKS}
        for contest, locks_at in weeks.items():
            await service.publish(submitted(contest, {"/thesis": contest}, lineup_id=uuid4(), locks_at=locks_at))
        await service.settle()
        if moved:
            at = LOCKS + timedelta(days=8)
            await service.publish(ev.ContestRescheduled(contest="2017-W01", locks_at=at, games=()), version=2)
            await service.settle()
        # Where the lock has moved, the older word on it comes late and is not believed.
        for contest, locks_at in weeks.items():
            await service.publish(opened(contest, locks_at=locks_at), version=1)
        await service.settle()
        await asyncio.sleep(0.5)  # a batch that was read before all of them were there is over
        detecting.gate.touch()
        await all_judged(service)
    expected = ["2017-W02", "2017-W01"] if moved else ["2017-W01", "2017-W02"]
    assert detecting.seen.read_text().split() == ["first", *expected]


@pytest.mark.rule("C8")
async def test_the_queue_shows_an_operator_final_revisions_after_the_lock_and_strangers_nothing(start: Start) -> None:
    async with start("moderation") as service:
        lineup = uuid4()
        path = "/operator/api/v1/moderation/queue"
        await service.publish(opened("2017-W01"))
        for revision in (1, 2):
            await service.publish(submitted("2017-W01", MIXED, lineup_id=lineup, revision=revision))
        await service.publish(final("2017-W01", lineup, revision=2))
        await all_judged(service)
        assert (await service.operator.get(path)).json() == {"items": []}
        await service.publish(locked("2017-W01"), version=2)
        await all_judged(service)
        (item,) = (await service.operator.get(path)).json()["items"]
        assert (item["pointer"], item["revision"], item["state"]) == ("/picks/0/rationale", 2, "flagged")
        (finding,) = item["findings"]
        assert finding.items() >= {"detector": "links", "rule": "url", "start": 4, "end": 30}.items()
        for refused in (path, "/operator/api/v1/moderation/backlog"):
            assert (await service.client.get(refused)).status_code == 401
        assert (await service.operator.get(path, params={"limit": 0})).status_code == 422


@pytest.mark.rule("M3", "M4")
async def test_the_worst_words_are_kept_as_they_came_and_judged(start: Start) -> None:
    async with start("moderation") as service:
        lineup = uuid4()
        words = {
            "/thesis": "\u202e\u2066\ufeff",
            "/picks/0/rationale": "x" * 200_000,
            "/picks/1/rationale": "🏈" * 4_000,
            "/picks/2/rationale": "",
            "/picks/3/rationale": "'; DROP TABLE texts; --",
            "/picks/4/rationale": "<script>alert(1)</script>",
            "/picks/5/rationale": "a$$" * 1333,
            "/~1/~0": "odd pointer",
        }
        await service.publish(opened("2017-W01"))
        await claim(service, lineup)
        await service.publish(submitted("2017-W01", words, lineup_id=lineup))
        await service.publish(locked("2017-W01"), version=2)
        await service.publish(final("2017-W01", lineup))
        await all_judged(service)
        assert {row.pointer: row.text for row in await query(service, select(TEXTS))} == words
        (judged,), _ = await told(service)
        states = {field.pointer: field.state for field in judged.fields}
        assert states["/thesis"] is State.FLAGGED
        assert states["/picks/0/rationale"] is State.FLAGGED
        assert states["/picks/3/rationale"] is State.CLEARED
        assert await service.dead_letters() == []


@pytest.mark.rule("M3")
async def test_two_copies_share_the_work_and_tell_everything_once(start: Start) -> None:
    async with start("moderation") as one, start("moderation", database_url=one.database_url) as two:
        lineups = [uuid4() for _ in range(60)]
        await one.publish(opened("2017-W01"))
        for number, lineup in enumerate(lineups):
            words = {pointer: f"{text} {number}" for pointer, text in MIXED.items()}
            await one.publish(submitted("2017-W01", words, lineup_id=lineup))
            await one.publish(final("2017-W01", lineup))
            await claim(one, lineup)
        await one.publish(locked("2017-W01", 60), version=2)
        await all_judged(one)
        await all_judged(two)
        judged, released = await told(one)
        assert sorted(event.lineup_id for event in judged) == sorted(lineups)
        assert sorted(event.lineup_id for event in released) == sorted(lineups)


@pytest.mark.rule("M3")
async def test_the_service_answers_while_it_judges_and_in_a_replay_too(start: Start, detecting: Detecting) -> None:
    detecting.use(
        """
        class Waits(One):
            name = "waits"

            def judge(self, text, context):
                SEEN.touch()
                while not GATE.exists():
                    time.sleep(0.01)
                return ()

        def load():
            return Pipeline((Waits(), *detectors.load().detectors))
        """,
        text_seconds=60,
    )
    async with start("moderation", clock="replay") as service:
        try:
            await service.move_clock(LOCKS)
            await service.publish(opened("2017-W01"))
            for number in range(10):
                words = {f"/picks/{pick}/rationale": f"Smash spot {number} {pick}." for pick in range(9)}
                await service.publish(submitted("2017-W01", words, lineup_id=uuid4()))
            await service.settle()

            async def begun() -> bool:
                return detecting.seen.exists()

            await until(begun)
            for _ in range(20):
                for path in ("/healthz", "/readyz", "/metrics"):
                    assert (await service.client.get(path)).status_code == 200
                assert (await backlog(service))["texts"] == 90
        finally:
            detecting.gate.touch()
        await all_judged(service)
        metrics = (await service.client.get("/metrics")).text
        assert 'mafl_moderation_judged_total{state="cleared"} 90.0' in metrics


@pytest.mark.rule("C8", "M5")
async def test_the_texts_of_a_contest_that_was_called_off_are_kept_judged_no_more_and_shown_to_nobody(
    start: Start,
) -> None:
    lineup_id = uuid4()
    async with start("moderation") as service:
        off = ev.ContestCancelled(contest="2017-W01", cancelled_at=LOCKS, reason="Nobody will play.")
        await service.publish(off, version=2)
        await service.publish(submitted("2017-W01", MIXED, lineup_id=lineup_id))
        await service.publish(submitted("2017-W02", CLEAN, lineup_id=uuid4()))
        for contest in ("2017-W01", "2017-W02"):
            await service.publish(opened(contest))
        await service.settle()
        await all_judged(service)
        states = {(row.contest, row.state) for row in await query(service, select(TEXTS))}
        assert states == {("2017-W01", None), ("2017-W02", "cleared")}
        assert {row.text for row in await query(service, select(TEXTS)) if row.contest == "2017-W01"} == set(
            MIXED.values()
        )
        queue = (await service.operator.get("/operator/api/v1/moderation/queue")).json()["items"]
        assert [item for item in queue if item["contest"] == "2017-W01"] == []
        await service.settle()
        assert await service.published(ev.ReasoningJudged) == []


@pytest.mark.rule("M4")
async def test_names_of_every_pool_that_a_contest_has_had_are_names(start: Start) -> None:
    async with start("moderation") as service:
        await service.publish(opened("2017-W01", "New Name", locks_at=LOCKS), version=2)
        await service.publish(opened("2017-W01", "Old Name", locks_at=LOCKS - timedelta(days=1)), version=1)
        await service.settle()
        async with service.runtime.database.transaction() as connection:
            names = await Store(connection).names("2017-W01")
    assert names == {"New Name", "Old Name"}


@pytest.mark.rule("M2", "M3")
async def test_a_verdict_that_is_being_written_while_its_contest_locks_is_waited_for_and_told(start: Start) -> None:
    async with start("moderation") as service:
        lineup = uuid4()
        await service.publish(opened("2017-W01"))
        await claim(service, lineup)
        await service.publish(submitted("2017-W01", CLEAN, lineup_id=lineup))
        await all_judged(service)
        async with service.runtime.database.transaction() as connection:
            verdicts = {Place(lineup, 1, "/thesis"): Verdict(State.FLAGGED)}
            await commands.take_verdicts(Store(connection), Stage.LOCAL, verdicts, "another", again=True)
            # Nobody else sees it yet, and it has seen no final revision that it could mark.
            await service.publish(final("2017-W01", lineup))
            await service.publish(locked("2017-W01"), version=2)
            await service.settle()
            await asyncio.sleep(0.5)
            assert await told(service) == ([], [])
        await all_judged(service)
        (judged,), (released,) = await told(service)
        assert {field.pointer: field.state for field in judged.fields}["/thesis"] is State.FLAGGED
        assert {word.pointer for word in released.words} == set(CLEAN) - {"/thesis"}


@pytest.mark.rule("M3")
async def test_a_lock_that_moves_and_verdicts_take_texts_in_the_same_order(start: Start) -> None:
    async with start("moderation") as service:
        lineup, database = uuid4(), service.runtime.database
        # They lie in this order, which is not that of their keys; no pool is known, so that they wait.
        later, first = Place(lineup, 1, "/thesis"), Place(lineup, 1, "/picks/0/rationale")
        words = {later.pointer: "Volume.", first.pointer: "Smash spot."}
        await service.publish(submitted("2017-W01", words, lineup_id=lineup))
        await service.settle()

        async def move() -> None:
            async with database.transaction() as connection:
                await Store(connection).rescheduled("2017-W01", LOCKS + timedelta(hours=3), 2)

        async def waits() -> bool:
            held_up = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            return bool(await query(service, text(held_up)))

        async with database.transaction() as connection:
            await Store(connection).hold([first])
            moving = asyncio.create_task(move())
            await until(waits)
            assert set(await Store(connection).hold([first, later])) == {first, later}
        await moving
        due = await query(service, select(TEXTS.c.due_at))
        assert {row.due_at for row in due} == {LOCKS + timedelta(hours=3)}
