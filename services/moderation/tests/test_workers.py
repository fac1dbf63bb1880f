"""Texts that a detector cannot judge, in real processes that hang, die and come again."""

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psutil
import pytest
from sqlalchemy import select, text

from common import events as ev
from common.events import State
from common.metrics import Metrics
from moderation.settings import JudgingSettings
from moderation.store import TEXTS
from moderation.workers import Job, Outcome, Workers, WorkersDoNotStart
from testkit.fixtures import Start, Started

from .moderation_helpers import (
    CLEAN,
    Detecting,
    all_judged,
    backlog,
    claim,
    final,
    locked,
    opened,
    query,
    submitted,
    told,
    until,
)

JUDGING = "/operator/api/v1/moderation"
AGAIN = f"{JUDGING}/set-aside/again"

FATAL = """
    import ctypes, re

    class Fatal(One):
        name = "fatal"

        def judge(self, text, context):
            if GATE.exists():
                return ()
            if "hangs" in text:
                re.match(r"(a+)+$", "a" * 60 + "!")
            if "sleeps" in text:
                time.sleep(600)
            if "exits" in text:
                os._exit(3)
            if "faults" in text:
                ctypes.string_at(0)
            if "killed" in text:
                os.kill(os.getpid(), signal.SIGKILL)
            if "swells" in text:
                return [Match("swollen", 0, 1) for _ in range(10) if bytearray(1 << 30)]
            if "leaves" in text:
                raise SystemExit("over " + text)
            return ()

    def load():
        return Pipeline((Fatal(), *detectors.load().detectors))
"""
"""A detector that fails of what a text says, until there is a gate."""


@pytest.fixture
def detecting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Detecting:
    """A pipeline of the test's own."""
    return Detecting(tmp_path, monkeypatch)


async def locked_lineups(service: Started, words: dict[UUID, dict[str, str]]) -> None:
    await service.publish(opened("2017-W01"))
    await claim(service, *words)
    for lineup, texts in words.items():
        await service.publish(submitted("2017-W01", texts, lineup_id=lineup))
        await service.publish(final("2017-W01", lineup))
    await service.publish(locked("2017-W01", len(words)), version=2)


def value(metrics: str, name: str) -> float:
    """A metric as it is written; 0 where it is not there."""
    return next((float(line.split()[-1]) for line in metrics.splitlines() if line.startswith(f"{name} ")), 0.0)


@pytest.mark.rule("M3", "M4", "O3")
@pytest.mark.parametrize(
    ("word", "cause", "error", "lost"),
    [
        ("hangs", "too-slow", "longer than 0.5 s", 2),
        ("sleeps", "too-slow", "longer than 0.5 s", 2),
        ("exits", "died", "ended with exit code 3", 2),
        ("faults", "died", "ended by SIGSEGV", 2),
        ("killed", "died", "ended by SIGKILL", 2),
        ("swells", "raised", "MemoryError", 0),
        ("leaves", "raised", "SystemExit", 0),
    ],
)
async def test_a_text_over_which_a_process_is_lost_is_tried_alone_and_set_aside_and_the_rest_goes_on(
    start: Start,
    detecting: Detecting,
    capfd: pytest.CaptureFixture[str],
    word: str,
    cause: str,
    error: str,
    lost: int,
) -> None:
    detecting.use(FATAL, text_seconds=0.5, worker_memory=256)
    async with start("moderation") as service:
        bad, *good = lineups = [uuid4() for _ in range(6)]
        words = {lineup: {pointer: f"{text} {lineup}" for pointer, text in CLEAN.items()} for lineup in lineups}
        words[bad]["/thesis"] = f"A secretword {word}."
        await locked_lineups(service, words)
        await all_judged(service)
        judged, released = await told(service)
        states = {event.lineup_id: {field.pointer: field.state for field in event.fields} for event in judged}
        assert states.pop(bad) == {
            pointer: State.UNCHECKED if pointer == "/thesis" else State.CLEARED for pointer in CLEAN
        }
        assert all(set(fields.values()) == {State.CLEARED} for fields in states.values())
        assert set(states) == set(good)
        assert "secretword" not in "".join(event.model_dump_json() for event in released)
        (aside,) = (await backlog(service))["set_aside"]
        detector = "pipeline" if word == "leaves" else "fatal"
        assert {key: aside[key] for key in ("kind", "cause", "detector", "error", "count")} == {
            "kind": "text",
            "cause": cause,
            "detector": detector,
            "error": error,
            "count": 1,
        }
        (item,) = (await service.operator.get("/operator/api/v1/moderation/queue")).json()["items"]
        assert (item["pointer"], item["state"]) == ("/thesis", "unchecked")
        assert item["set_aside"] == {"cause": cause, "detector": detector, "error": error}
        await asyncio.sleep(3)  # it is looked for meanwhile, and not tried again
        metrics = (await service.client.get("/metrics")).text
        assert value(metrics, f'mafl_moderation_set_aside_total{{cause="{cause}",detector="{detector}"}}') == 1
        assert value(metrics, f'mafl_moderation_workers_lost_total{{cause="{cause}"}}') == lost

        async def measured() -> bool:
            metrics = (await service.client.get("/metrics")).text
            aside = value(metrics, 'mafl_moderation_set_aside_now{kind="text"}')
            return (aside, value(metrics, "mafl_moderation_backlog")) == (1, 0)

        await until(measured)
        assert await service.dead_letters() == []
    assert "secretword" not in "".join(capfd.readouterr())


@pytest.mark.rule("M3")
async def test_a_text_over_which_a_process_was_lost_by_chance_is_judged_the_second_time(
    start: Start, detecting: Detecting
) -> None:
    detecting.use(
        """
        class Unlucky(One):
            name = "unlucky"

            def judge(self, text, context):
                if "unlucky" in text and not SEEN.exists():
                    SEEN.touch()
                    os._exit(1)
                return ()

        def load():
            return Pipeline((Unlucky(),))
        """
    )
    async with start("moderation") as service:
        lineup = uuid4()
        await locked_lineups(service, {lineup: {**CLEAN, "/thesis": "They were unlucky."}})
        await all_judged(service)
        _, (released,) = await told(service)
        assert {word.pointer for word in released.words} == set(CLEAN)
        assert (await backlog(service))["set_aside"] == []
        metrics = (await service.client.get("/metrics")).text
        assert value(metrics, 'mafl_moderation_workers_lost_total{cause="died"}') == 1


@pytest.mark.rule("M3", "M4", "A10")
async def test_what_was_set_aside_is_tried_again_when_an_operator_says_so_and_by_a_new_version(
    start: Start, detecting: Detecting
) -> None:
    detecting.use(FATAL, text_seconds=0.5)
    lineup, agent = uuid4(), uuid4()
    async with start("moderation") as service:
        await service.publish(ev.AgentRegistered(agent_id=agent, agent_name="It exits", model="m"))
        await locked_lineups(service, {lineup: {**CLEAN, "/thesis": "It exits.", "/picks/0/rationale": "It hangs."}})
        await all_judged(service)
        await until(lambda: _aside(service, 3))
        assert (await service.client.post(AGAIN)).status_code == 401
        assert (await service.operator.post(AGAIN)).json() == {"wanted": 3}
        before = await service.published(ev.ReasoningJudged)

        async def tried() -> bool:
            metrics = (await service.client.get("/metrics")).text
            return value(metrics, 'mafl_moderation_set_aside_total{cause="died",detector="fatal"}') == 4

        await until(tried)
        await until(lambda: _aside(service, 3))
        assert await service.published(ev.ReasoningJudged) == before, "nothing new, and nothing told"
        detecting.gate.touch()
        assert (await service.operator.post(AGAIN)).json() == {"wanted": 3}
        await until(lambda: _aside(service, 0))
        await all_judged(service)
        _, released = await told(service)
        assert {word.pointer for word in released[-1].words} == set(CLEAN)
        names = await service.published(ev.AgentNameJudged)
        assert [(event.agent_id, event.state) for event in names] == [(agent, State.UNCHECKED), (agent, State.CLEARED)]
        acts = (await service.operator.get("/operator/api/v1/audit/moderation")).json()["acts"]
        assert [(act["what"], act["after"]["wanted"]) for act in acts] == [("try again", 3), ("try again", 3)]


async def _aside(service: Started, many: int) -> bool:
    return sum(one["count"] for one in (await backlog(service))["set_aside"]) == many


@pytest.mark.rule("M4")
async def test_a_new_version_of_the_pipeline_tries_what_the_old_one_had_set_aside(
    start: Start, detecting: Detecting
) -> None:
    detecting.use(FATAL, text_seconds=0.5)
    lineup = uuid4()
    async with start("moderation") as before:
        await locked_lineups(before, {lineup: {**CLEAN, "/thesis": "It exits."}})
        await all_judged(before)
        assert await _aside(before, 1)
        url = before.database_url
    async with start("moderation", database_url=url) as same:
        await asyncio.sleep(3)
        assert await _aside(same, 1)
        assert value((await same.client.get("/metrics")).text, 'mafl_moderation_workers_lost_total{cause="died"}') == 0
    detecting.gate.touch()
    detecting.use(FATAL.replace('name = "fatal"', 'name = "fatal"; version = "2"'), text_seconds=0.5)
    async with start("moderation", database_url=url) as after:
        await until(lambda: _aside(after, 0))
        await all_judged(after)
        _, released = await told(after)
        assert {word.pointer for word in released[-1].words} == set(CLEAN)
        (row,) = await query(after, select(TEXTS.c.pipeline).where(TEXTS.c.pointer == "/thesis"))
        assert "fatal/2" in row.pipeline


@pytest.mark.rule("M3", "O3")
async def test_no_transaction_is_open_while_processes_that_judge_come_up(start: Start, detecting: Detecting) -> None:
    detecting.use(FATAL, text_seconds=0.5)
    async with start("moderation") as before:
        await locked_lineups(before, {uuid4(): {**CLEAN, "/thesis": "It exits."}})
        await all_judged(before)
        url = before.database_url
    slow = FATAL.replace("def load():", "def load():\n        while not GATE.exists():\n            time.sleep(0.01)")
    detecting.use(slow.replace('name = "fatal"', 'name = "fatal"; version = "2"'), text_seconds=0.5)
    idle = text(
        "SELECT query FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'"
        " AND xact_start < clock_timestamp() - interval '1.5 seconds'"
    )
    async with start("moderation", database_url=url) as after:
        answer = await after.operator.post(f"{JUDGING}/reruns", json={"everything": True})
        assert answer.status_code == 200, answer.text
        for _ in range(20):
            await asyncio.sleep(0.2)
            assert await query(after, idle) == [], "others may wait for what it holds"
        detecting.gate.touch()
        await until(lambda: _aside(after, 0))

        async def done() -> bool:
            found = await after.operator.get(f"{JUDGING}/reruns/{answer.json()['rerun']}")
            return bool(found.json()["state"] == "done")

        await until(done)


@pytest.mark.rule("M4", "A10")
async def test_what_a_person_judged_is_left_alone_and_tried_again_once_that_is_taken_back(
    start: Start, detecting: Detecting
) -> None:
    detecting.use(FATAL, text_seconds=0.5)
    lineup, agent = uuid4(), uuid4()
    cases = (f"lineups/{lineup}", f"agents/{agent}")

    async def by_hand(service: Started) -> None:
        for about in ({"lineup_id": str(lineup), "pointer": "/thesis"}, {"agent_id": str(agent)}):
            wanted = {**about, "version": 1, "state": "flagged", "note": "For now."}
            answer = await service.operator.post(f"{JUDGING}/judgements", json=wanted)
            assert answer.status_code == 200, answer.text

    async def states(service: Started) -> list[str]:
        found = []
        for case in cases:
            items = (await service.operator.get(f"{JUDGING}/{case}")).json()["items"]
            found += [item["state"] for item in items if item["pointer"] in (None, "/thesis")]
        return found

    async with start("moderation") as before:
        await before.publish(ev.AgentRegistered(agent_id=agent, agent_name="It exits", model="m"))
        await locked_lineups(before, {lineup: {"/thesis": "It exits."}})
        await all_judged(before)
        await until(lambda: _aside(before, 2))
        await by_hand(before)
        assert await _aside(before, 0), "nobody waits for the pipeline's word on them"
        assert (await before.operator.post(AGAIN)).json() == {"wanted": 0}
        url = before.database_url
    detecting.gate.touch()
    detecting.use(FATAL.replace('name = "fatal"', 'name = "fatal"; version = "2"'), text_seconds=0.5)
    async with start("moderation", database_url=url) as after:
        # Longer than the service takes to look at what is set aside.
        await asyncio.sleep(3)
        assert await states(after) == ["flagged", "flagged"]
        for case in cases:
            (judgement,) = (await after.operator.get(f"{JUDGING}/{case}")).json()["history"]
            path = f"{JUDGING}/judgements/{judgement['position']}/take-back"
            answer = await after.operator.post(path, json={"by": "ada"})
            assert answer.status_code == 200, answer.text

        async def cleared() -> bool:
            return await states(after) == ["cleared", "cleared"]

        await until(cleared)
        assert await _aside(after, 0)
        await all_judged(after)
        _, released = await told(after)
        assert {word.pointer for word in released[-1].words} == {"/thesis"}
        assert (await after.published(ev.AgentNameJudged))[-1].state is State.CLEARED


@pytest.mark.rule("M3", "A10")
async def test_names_and_labels_over_which_processes_are_lost_are_set_aside_and_a_backlog_of_texts_keeps_none_waiting(
    start: Start, detecting: Detecting
) -> None:
    detecting.use(
        """
        class Slow(One):
            name = "slow"

            def judge(self, text, context):
                if "exits" in text:
                    os._exit(3)
                time.sleep(0.02)
                return ()

        def load():
            return Pipeline((Slow(),))
        """
    )
    async with start("moderation") as service:
        await service.publish(opened("2017-W01"))
        for number in range(100):
            words = {f"/picks/{pick}/rationale": f"{number} {pick}" for pick in range(20)}
            await service.publish(submitted("2017-W01", words, lineup_id=uuid4()))
        good, bad = uuid4(), uuid4()
        await service.publish(ev.AgentRegistered(agent_id=good, agent_name="Good", model="good/model"))
        await service.publish(ev.AgentRegistered(agent_id=bad, agent_name="It exits", model="it exits"))

        async def named() -> bool:
            return len(await service.published(ev.AgentNameJudged)) == len(await service.published(ev.ModelJudged)) == 2

        await until(named)
        assert (await backlog(service))["texts"] > 0, "the texts take longer than that"
        names = {event.agent_id: event.state for event in await service.published(ev.AgentNameJudged)}
        assert names == {good: State.CLEARED, bad: State.UNCHECKED}
        models = {event.model: event.state for event in await service.published(ev.ModelJudged)}
        assert models == {"good/model": State.CLEARED, "it exits": State.UNCHECKED}
        kinds = {one["kind"] for one in (await backlog(service))["set_aside"]}
        assert kinds == {"name", "model"}


@pytest.mark.rule("M3", "M4")
async def test_where_the_pipeline_cannot_be_built_nothing_is_judged_and_no_text_is_blamed(
    start: Start, detecting: Detecting, monkeypatch: pytest.MonkeyPatch
) -> None:
    detecting.use(
        """
        def load():
            if GATE.exists():
                return detectors.load()
            raise ImportError("no such library")
        """
    )
    async with start("moderation") as service:
        lineup = uuid4()
        await locked_lineups(service, {lineup: CLEAN})

        async def failed() -> bool:
            return value((await service.client.get("/metrics")).text, 'mafl_task_failures_total{task="judge"}') > 0

        await until(failed)
        waiting = await backlog(service)
        assert (waiting["texts"], waiting["set_aside"]) == (3, [])
        detecting.gate.touch()
        await all_judged(service)
        _, (released,) = await told(service)
        assert len(released.words) == 3


# --- the processes by themselves -------------------------------------------------------------------


def workers_of(**settings: Any) -> Workers:
    return Workers(JudgingSettings(**settings), Metrics("moderation"))


async def outcomes_of(workers: Workers, jobs: list[Job]) -> dict[Job, Outcome]:
    """What came of jobs, asked for until all are there, as the batches do."""
    found: dict[Job, Outcome] = {}
    deadline = time.monotonic() + 60
    while len(found) < len(set(jobs)):
        assert time.monotonic() < deadline
        found |= await workers.judge([job for job in jobs if job not in found], 5)
    return found


def processes() -> list[psutil.Process]:
    """Those that judge: children of the template, which is a child of this process."""
    return [
        worker
        for child in psutil.Process().children()
        if "forkserver" in " ".join(child.cmdline())
        for worker in child.children()
    ]


@pytest.mark.rule("M3")
async def test_there_are_no_processes_before_there_is_work_more_with_a_backlog_and_none_after_a_while(
    detecting: Detecting,
) -> None:
    detecting.use(
        """
        class Slow(One):
            name = "slow"

            def judge(self, text, context):
                time.sleep(0.005)
                return ()

        def load():
            return Pipeline((Slow(),))
        """
    )
    before = len(processes())
    async with workers_of(workers=2, worker_idle_seconds=0.5) as workers:
        assert len(processes()) == before
        await outcomes_of(workers, [Job("one")])
        assert len(processes()) == before + 1
        await outcomes_of(workers, [Job(f"many {number}") for number in range(400)])
        assert len(processes()) == before + 2

        async def none() -> bool:
            return len(processes()) == before

        await until(none)
        await outcomes_of(workers, [Job("another")])
    assert len(processes()) == before


@pytest.mark.rule("M3")
async def test_a_text_that_hangs_does_not_hold_up_the_others_and_its_verdict_comes_with_a_later_batch(
    detecting: Detecting,
) -> None:
    detecting.use(
        """
        class Waits(One):
            name = "waits"

            def judge(self, text, context):
                while text == "waits" and not GATE.exists():
                    time.sleep(0.01)
                return ()

        def load():
            return Pipeline((Waits(),))
        """
    )
    async with workers_of(workers=2, text_seconds=60) as workers:
        others = [Job(f"text {number}") for number in range(200)]
        held = Job("waits")
        done: set[Job] = set()
        deadline = time.monotonic() + 30
        while not done >= set(others):
            done |= set(await workers.judge([held, *(job for job in others if job not in done)], 5))
            assert time.monotonic() < deadline
        assert held not in done
        detecting.gate.touch()
        assert (await outcomes_of(workers, [held]))[held].verdict.state is State.CLEARED


@pytest.mark.rule("M3")
async def test_a_text_whose_process_has_had_no_processor_is_given_longer_and_judged(detecting: Detecting) -> None:
    detecting.use(
        """
        class Waits(One):
            name = "waits"

            def judge(self, text, context):
                SEEN.write_text("begun")
                time.sleep(1.5)
                return ()

        def load():
            return Pipeline((Waits(),))
        """
    )
    async with workers_of(workers=1, text_seconds=0.6) as workers:
        found = await outcomes_of(workers, [Job("as if it were stopped")])
        assert found[Job("as if it were stopped")].troubles == ()


@pytest.mark.rule("M3")
async def test_jobs_that_are_wanted_twice_at_once_are_judged_once(detecting: Detecting) -> None:
    detecting.use(
        """
        class Records(One):
            name = "records"

            def judge(self, text, context):
                with SEEN.open("a") as seen:
                    seen.write("x")
                time.sleep(0.05)
                return ()

        def load():
            return Pipeline((Records(),))
        """
    )
    jobs = [Job("one"), Job("two"), Job("one")]
    async with workers_of() as workers:
        answers = await asyncio.gather(outcomes_of(workers, jobs), outcomes_of(workers, jobs))
        assert [set(found) for found in answers] == [set(jobs), set(jobs)]
    assert detecting.seen.read_text() == "xx"


@pytest.mark.rule("M3")
async def test_processes_that_are_killed_from_outside_cost_nothing_but_time(detecting: Detecting) -> None:
    detecting.use(
        """
        class Slow(One):
            name = "slow"

            def judge(self, text, context):
                time.sleep(0.002)
                return ()

        def load():
            return Pipeline((Slow(),))
        """
    )
    jobs = [Job(f"text {number}") for number in range(1000)]
    before = {process.pid for process in processes()}
    async with workers_of(workers=2) as workers:
        judging = asyncio.create_task(outcomes_of(workers, jobs))
        killed = 0
        while not judging.done() and killed < 6:
            await asyncio.sleep(0.1)
            for process in processes():
                if process.pid not in before and killed < 6:
                    process.kill()
                    killed += 1
        found = await judging
        assert killed == 6
        assert {outcome.verdict.state for outcome in found.values()} == {State.CLEARED}


@pytest.mark.rule("M3")
async def test_when_the_template_is_killed_there_is_another(detecting: Detecting) -> None:
    async with workers_of(workers=1) as workers:
        await outcomes_of(workers, [Job("before")])
        (template,) = {process.parent().pid for process in processes()}  # type: ignore[union-attr]
        os.kill(template, signal.SIGKILL)
        found = await outcomes_of(workers, [Job("after")])
        assert found[Job("after")].verdict.state is State.CLEARED


@pytest.mark.rule("M4")
async def test_a_job_is_judged_with_the_names_that_it_came_with() -> None:
    jobs = [
        Job("Butt is the cheapest starter.", names=frozenset(names))
        for names in ({"Jake Butt"}, {"Kareem Hunt"}, {"Jake Butt", "Kareem Hunt"}, set[str]())
    ]
    async with workers_of(workers=1) as workers:
        for _ in range(2):
            found = await outcomes_of(workers, jobs)
            assert [found[job].verdict.state.value for job in jobs] == ["cleared", "flagged", "cleared", "flagged"]


@pytest.mark.rule("M3")
async def test_a_pipeline_that_cannot_be_built_is_named_with_what_is_wrong() -> None:
    async with workers_of(pipeline="no_such_module:load") as workers:
        with pytest.raises(WorkersDoNotStart, match="no_such_module:load cannot be built: ModuleNotFoundError"):
            await workers.judge([Job("text")], 30)
        with pytest.raises(WorkersDoNotStart):
            await workers.version()
