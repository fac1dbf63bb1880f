"""Judging old texts again: a new pipeline over a running service, killed, twice at once, and beside what is new."""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select, text, update

from common import events as ev
from common.events import State
from moderation import reruns
from moderation.store import CHANGES, FORMER, RERUNS, TEXTS
from testkit.fixtures import OPERATOR_TOKEN, Start, Started
from testkit.serving import served

from .moderation_helpers import (
    LOCKS,
    Detecting,
    all_judged,
    claim,
    final,
    locked,
    locked_and_judged,
    opened,
    query,
    submitted,
    told,
    until,
)

PATH = "/operator/api/v1/moderation"
CONTEST = "2017-W01"
WORDS = {"/thesis": "An apple a day.", "/picks/0/rationale": "A pear of aces.", "/picks/0/main_factor": "A plum."}

Use = Callable[..., None]


@pytest.fixture
def use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Use:
    """Let services that start from now on flag texts with these words; at ``fails`` the detector raises.

    Each text that is judged is a line of the file ``seen``; while there is a file ``gate``, texts with ``waits`` wait.
    """
    detecting = Detecting(tmp_path, monkeypatch)

    def pipeline(version: str, *flags: str, fails: str = "", waits: str = "") -> None:
        source = f"""
        class Fruit(One):
            name, version = "fruit", {version!r}

            def judge(self, text, context):
                with SEEN.open("a") as seen:
                    seen.write(text + "\\n")
                while {waits!r} and {waits!r} in text and GATE.exists():
                    time.sleep(0.01)
                if {fails!r} and {fails!r} in text:
                    raise RuntimeError
                return [Match(word, text.index(word), text.index(word) + len(word)) for word in {flags!r}
                        if word in text]

        def load():
            return Pipeline((Fruit(),))
        """
        detecting.use(source, text_seconds=60)

    return pipeline


def played(start: Start, *lineups: UUID, words: dict[str, str] | None = None) -> AbstractAsyncContextManager[Started]:
    """Moderation with a locked contest, all of it judged and told."""
    return locked_and_judged(start, *lineups, words=words or WORDS, contest=CONTEST)


async def wanted(service: Started, **choice: Any) -> dict[str, Any]:
    answer = await service.operator.post(f"{PATH}/reruns", json=choice)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def ended(service: Started, rerun: str) -> dict[str, Any]:
    found: dict[str, Any] = {}

    async def done() -> bool:
        answer = await service.operator.get(f"{PATH}/reruns/{rerun}")
        assert answer.status_code == 200, answer.text
        found.update(answer.json())
        return bool(found["state"] != "running")

    await until(done)
    await all_judged(service)
    return found


async def again(service: Started, **choice: Any) -> dict[str, Any]:
    return await ended(service, (await wanted(service, **choice))["rerun"])


async def changes(service: Started, rerun: str, **params: Any) -> list[dict[str, Any]]:
    answer = await service.operator.get(f"{PATH}/reruns/{rerun}/changes", params=params)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["changes"])


async def states(service: Started, lineup: UUID) -> dict[str, str]:
    rows = await query(service, select(TEXTS.c.pointer, TEXTS.c.state).where(TEXTS.c.lineup_id == lineup))
    return {row.pointer: row.state for row in rows}


@pytest.mark.rule("M2", "M4")
async def test_a_new_pipeline_leaves_old_verdicts_until_a_rerun_which_says_first_what_it_would_change(
    start: Start, use: Use
) -> None:
    lineup, agent = uuid4(), uuid4()
    use("1", "apple")
    async with played(start, lineup) as service:
        url = service.database_url
        await service.publish(ev.AgentRegistered(agent_id=agent, agent_name="plum", model="pear"))
        await all_judged(service)
        before = await told(service)
    use("2", "pear", "plum")
    async with start("moderation", database_url=url) as service:
        await all_judged(service)
        assert await told(service) == before, "a release changes no old verdict"
        assert await states(service, lineup) == {
            "/thesis": "flagged",
            "/picks/0/rationale": "cleared",
            "/picks/0/main_factor": "cleared",
        }
        dry = await again(service, older=True, dry_run=True, by="ada")
        assert (dry["state"], dry["done"], dry["total"], dry["pipeline"]) == ("done", 5, 5, "fruit/2")
        assert dry["counts"] == {"flagged_to_cleared": 1, "cleared_to_flagged": 4}
        assert dry["detectors"] == {"fruit": {"newly": 4, "no_longer": 1}}
        listed = await changes(service, dry["rerun"])
        assert {
            (one["kind"], one["pointer"] or one["model"] or "name", one["was"], one["state"]) for one in listed
        } == {
            ("text", "/thesis", "flagged", "cleared"),
            ("text", "/picks/0/rationale", "cleared", "flagged"),
            ("text", "/picks/0/main_factor", "cleared", "flagged"),
            ("name", "name", "cleared", "flagged"),
            ("model", "pear", "cleared", "flagged"),
        }
        assert not any(word in str(listed) for word in ("apple", "aces")), "no words unless they are asked for"
        assert {one["text"] for one in await changes(service, dry["rerun"], words=True)} >= {*WORDS.values(), "pear"}
        assert await told(service) == before
        assert {row.pipeline for row in await query(service, select(TEXTS))} == {"fruit/1"}
        assert await query(service, select(FORMER)) == []

        real = await again(service, older=True)
        assert (real["counts"], real["detectors"]) == (dry["counts"], dry["detectors"])
        judged, released = await told(service)
        assert {field.pointer: field.state for field in judged[-1].fields} == {
            "/thesis": State.CLEARED,
            "/picks/0/rationale": State.FLAGGED,
            "/picks/0/main_factor": State.FLAGGED,
        }
        assert {word.pointer for word in released[-1].words} == {"/thesis"}
        names = await service.envelopes(ev.AgentNameJudged)
        assert [(envelope.aggregateversion, event.state) for envelope, event in names] == [
            (1, State.CLEARED),
            (2, State.FLAGGED),
        ]
        labels = await service.envelopes(ev.ModelJudged)
        assert [(envelope.aggregateversion, event.state) for envelope, event in labels] == [
            (1, State.CLEARED),
            (2, State.FLAGGED),
        ]
        case = (await service.operator.get(f"{PATH}/lineups/{lineup}")).json()
        assert {item["pipeline"] for item in case["items"]} == {"fruit/2"}
        kept = {one["pointer"]: one for one in case["former"]}
        assert kept.keys() == WORDS.keys(), "nothing is overwritten without a trace"
        thesis = kept["/thesis"]
        assert (thesis["state"], thesis["pipeline"], thesis["stage"]) == ("flagged", "fruit/1", "local")
        assert thesis["findings"] == [{"detector": "fruit", "version": "1", "rule": "apple", "start": 3, "end": 8}]
        of_name = (await service.operator.get(f"{PATH}/agents/{agent}")).json()
        assert [one["state"] for one in of_name["former"]] == ["cleared"]

        assert (await again(service, older=True))["total"] == 0, "nothing is older now"
        nothing = await again(service, everything=True)
        assert nothing["counts"] == {"unchanged": 5}
        assert len(await query(service, select(FORMER))) == 5, (
            "the same verdict in the same version is no other verdict"
        )
        assert [len(events) for events in await told(service)] == [2, 2]


@pytest.mark.rule("M4")
async def test_what_a_person_judged_stays_and_a_pipeline_that_cannot_tell_replaces_nothing(
    start: Start, use: Use
) -> None:
    lineup = uuid4()
    use("1", "apple")
    async with played(start, lineup) as service:
        url = service.database_url
        about = {"lineup_id": str(lineup), "pointer": "/thesis", "version": 1, "state": "cleared", "note": "Fruit."}
        assert (await service.operator.post(f"{PATH}/judgements", json=about)).status_code == 200
        await all_judged(service)
        before = [len(events) for events in await told(service)]
    use("2", "pear", fails="plum")
    async with start("moderation", database_url=url) as service:
        run = await again(service, contests=[CONTEST])
        assert run["counts"] == {"by_hand": 1, "cleared_to_flagged": 1, "failed": 1}
        assert await states(service, lineup) == {
            "/thesis": "cleared",
            "/picks/0/rationale": "flagged",
            "/picks/0/main_factor": "cleared",
        }
        by = {row.pointer: row.pipeline for row in await query(service, select(TEXTS))}
        assert by == {"/thesis": "fruit/2", "/picks/0/rationale": "fruit/2", "/picks/0/main_factor": "fruit/1"}
        judged, _ = await told(service)
        assert [len(events) for events in await told(service)] == [count + 1 for count in before]
        assert judged[-1].reasons == {"/picks/0/rationale": ("fruit",)}
        late = {**about, "version": 2, "state": "flagged"}
        assert (await service.operator.post(f"{PATH}/judgements", json=late)).status_code == 409, "there is a newer one"


@pytest.mark.rule("C8", "M4")
async def test_before_the_lock_changes_are_counted_and_listed_to_nobody(start: Start, use: Use) -> None:
    lineup = uuid4()
    use("1")
    async with start("moderation") as service:
        url = service.database_url
        await service.publish(opened(CONTEST))
        await claim(service, lineup)
        for revision in (1, 2):
            await service.publish(submitted(CONTEST, WORDS, lineup_id=lineup, revision=revision), version=revision)
        await all_judged(service)
    use("2", "pear")
    async with start("moderation", database_url=url) as service:
        run = await again(service, seasons=[2017])
        assert run["counts"] == {"cleared_to_flagged": 2, "unchanged": 4}
        assert await changes(service, run["rerun"], words=True) == []
        assert await told(service) == ([], [])
        await service.publish(final(CONTEST, lineup, revision=2))
        await service.publish(locked(CONTEST), version=2)
        await all_judged(service)
        (judged,), (released,) = await told(service)
        assert judged.reasons == {"/picks/0/rationale": ("fruit",)}
        assert {word.pointer for word in released.words} == {"/thesis", "/picks/0/main_factor"}
        (one,) = await changes(service, run["rerun"], words=True)
        assert (one["revision"], one["text"]) == (2, "A pear of aces."), "of the final revision alone"
        off = ev.ContestCancelled(contest="2017-W02", cancelled_at=LOCKS, reason="No.")
        await service.publish(submitted("2017-W02", WORDS, lineup_id=uuid4()))
        await service.publish(opened("2017-W02"))
        await all_judged(service)
        await service.publish(off, version=2)
        await service.settle()
        assert (await again(service, contests=["2017-W02"]))["total"] == 0, "nobody will ever see them"


@pytest.mark.rule("M4", "O4")
async def test_asked_for_twice_it_is_one_run_which_two_copies_and_a_restart_bring_to_its_end(
    start: Start, use: Use, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reruns, "AT_ONCE", 4)
    lineups = [uuid4() for _ in range(10)]
    use("1", "apple")
    async with played(start, *lineups) as service:
        url = service.database_url
    waits, seen = tmp_path / "gate", tmp_path / "seen"
    waits.touch()
    seen.unlink()
    use("2", "pear", waits="plum")
    async with start("moderation", database_url=url) as one:
        runs = await asyncio.gather(*(wanted(one, everything=True, older=True) for _ in range(8)))
        (rerun,) = {run["rerun"] for run in runs}
        other = await wanted(one, contests=[CONTEST])
        assert other["rerun"] != rerun

        async def has_begun() -> bool:
            return seen.exists() and "plum" in seen.read_text()

        try:
            await until(has_begun)
            # Killed here, its batch is lost whole.
        finally:
            asyncio.get_running_loop().call_later(0.3, waits.unlink)
    # Stopped in the middle of a batch; with the next start two copies go on.
    async with (
        start("moderation", database_url=url) as one,
        start("moderation", database_url=url) as two,
    ):
        done = await ended(one, rerun)
        also = await ended(two, other["rerun"])
        assert (done["state"], also["state"]) == ("done", "done")
        # Neither judges again what the other has judged by the new version first.
        for run in (done, also):
            assert run["done"] == run["total"] <= 30
        for lineup in lineups:
            assert (await states(one, lineup))["/picks/0/rationale"] == "flagged"
        judged, released = await told(one)
        assert {event.lineup_id for event in judged} == set(lineups)
        newest = {event.lineup_id: event for event in released}
        assert all(
            {word.pointer for word in event.words} == WORDS.keys() - {"/picks/0/rationale"} for event in newest.values()
        )
        envelopes = [*await one.envelopes(ev.ReasoningJudged), *await one.envelopes(ev.ReasoningReleased)]
        versions = [(event.lineup_id, envelope.aggregateversion) for envelope, event in envelopes]
        assert len(versions) == len(set(versions))
        assert len(await query(one, select(FORMER))) == 30, "each verdict is replaced once, whoever asked"


@pytest.mark.rule("M3", "M4")
async def test_what_is_new_is_judged_before_what_is_old_and_a_rerun_can_be_stopped(
    start: Start, use: Use, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reruns, "AT_ONCE", 2)
    lineups = [uuid4() for _ in range(8)]
    use("1")
    async with played(start, *lineups, words={"/thesis": "An old apple.", "/picks/0/rationale": "old plum"}) as service:
        url = service.database_url
    (tmp_path / "seen").unlink()
    waits = tmp_path / "gate"
    waits.touch()
    use("2", waits="old")
    async with start("moderation", database_url=url) as service:
        run = await wanted(service, older=True)

        async def begun() -> bool:
            return (tmp_path / "seen").exists()

        await until(begun)
        await service.publish(submitted(CONTEST, {"/thesis": "new"}, lineup_id=uuid4()))
        await service.settle()
        waits.unlink()
        stopped = await service.operator.post(f"{PATH}/reruns/{run['rerun']}/stop", json={"by": "bob"})
        assert (stopped.status_code, stopped.json()["state"]) == (200, "stopped")
        await all_judged(service)
        seen = (tmp_path / "seen").read_text().splitlines()
        assert "new" in seen
        assert len([line for line in seen if line != "new"]) < 16
        assert (await ended(service, run["rerun"]))["why"] == "bob stopped it"
        acts = (await service.operator.get("/operator/api/v1/audit/moderation")).json()["acts"]
        assert [(act["what"], act["who"]) for act in acts] == [("stop rerun", "bob"), ("rerun", "operator")]
        assert (await again(service, older=True))["state"] == "done", "the same choice may be made again"


@pytest.mark.rule("M4")
async def test_a_rerun_of_a_version_that_no_copy_has_any_more_is_ended(
    start: Start, use: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    lineup = uuid4()
    use("1")
    async with played(start, lineup) as service:
        url = service.database_url
        run = await again(service, older=True)
        async with service.runtime.database.transaction() as connection:
            await connection.execute(update(RERUNS).values(state="running", pipeline="fruit/7"))
        await asyncio.sleep(0.2)
        assert (await service.operator.get(f"{PATH}/reruns/{run['rerun']}")).json()["state"] == "running"
    monkeypatch.setattr(reruns, "LEFT_FOR_SECONDS", 0.0)
    async with start("moderation", database_url=url) as service:
        found = await ended(service, run["rerun"])
        assert (found["state"], found["why"]) == ("stopped", "the pipeline has another version now: begin it again")


@pytest.mark.rule("M4")
async def test_a_rerun_of_nothing_or_of_what_nobody_knows_is_refused(start: Start, use: Use) -> None:
    use("1")
    async with played(start, uuid4()) as service:
        for choice, status in (
            ({}, 422),
            ({"dry_run": True}, 422),
            ({"contests": [CONTEST], "everything": True}, 422),
            ({"contests": ["week one"]}, 422),
            ({"contests": ["2099-W01"]}, 404),
            ({"seasons": [1999]}, 404),
            ({"everything": True, "by": ""}, 422),
        ):
            answer = await service.operator.post(f"{PATH}/reruns", json=choice)
            assert answer.status_code == status, (choice, answer.text)
        for path in (f"reruns/{uuid4()}", f"reruns/{uuid4()}/changes"):
            assert (await service.operator.get(f"{PATH}/{path}")).status_code == 404
        assert (await service.operator.post(f"{PATH}/reruns/{uuid4()}/stop", json={})).status_code == 404
        assert (await service.client.post(f"{PATH}/reruns", json={"everything": True})).status_code == 401
        assert (await service.operator.get(f"{PATH}/reruns")).json() == {"reruns": []}


@pytest.mark.rule("M4")
async def test_the_command_follows_a_rerun_and_prints_what_it_changes(start: Start, use: Use) -> None:
    lineup = uuid4()
    use("1", "apple")
    async with played(start, lineup) as service:
        url = service.database_url
    use("2", "pear")
    async with start("moderation", database_url=url) as service, served(service.app) as address:

        async def mafl(*arguments: str, status: int = 0) -> tuple[str, str]:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "mafl", "moderation", "rerun", *arguments),
                env={**os.environ, "MAFL_OPERATOR_URL": address, "MAFL_OPERATOR_TOKEN": OPERATOR_TOKEN},
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            output, complaint = await process.communicate()
            assert process.returncode == status, complaint.decode()
            return output.decode(), complaint.decode()

        shown, progress = await mafl("--older", "--dry-run")
        assert "nothing was changed" in shown
        assert "--stop" not in shown, "what is over cannot be stopped"
        for count in ("1  cleared → flagged", "1  flagged → cleared", "1  unchanged"):
            assert count in shown
        assert f"--lineup {lineup} --pointer /thesis" in shown
        assert "apple" not in shown
        assert "dry run" in progress
        assert "3/3" in progress
        worded, _ = await mafl("--older", "--dry-run", "--words")
        assert "An apple a day." in worded
        assert (await states(service, lineup))["/thesis"] == "flagged"
        document = json.loads((await mafl("--contest", CONTEST, "--older", "--json"))[0])
        assert (document["state"], document["counts"]) == (
            "done",
            {"cleared_to_flagged": 1, "flagged_to_cleared": 1, "unchanged": 1},
        )
        assert len(document["changes"]) == 2
        assert (await states(service, lineup))["/thesis"] == "cleared"
        assert "done, 0 of 0" in (await mafl("--contest", CONTEST, "--older"))[0]
        for wrong in ((), ("--dry-run",), ("--all", "--season", "2017"), ("--stop", "x", "--all")):
            refused = json.loads((await mafl(*wrong, "--json", status=1))[0])
            assert refused["code"] == "invalid-request", wrong


@pytest.mark.rule("M4")
async def test_changes_are_kept_without_words(start: Start, use: Use) -> None:
    use("1")
    async with played(start, uuid4()) as service:
        url = service.database_url
    use("2", "apple", "pear", "plum")
    async with start("moderation", database_url=url) as service:
        await again(service, older=True)
        rows = [dict(row._mapping) for row in await query(service, select(CHANGES))]
        rows += [dict(row._mapping) for row in await query(service, select(FORMER))]
        assert len(rows) == 6
        assert not any(words in str(rows) for words in WORDS.values())
        assert (await query(service, text("SELECT count(*) FROM operator_acts")))[0][0] == 1
