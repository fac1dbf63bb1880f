"""The external model's stage: real service, PostgreSQL and NATS, and a real server that answers well, badly or late."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select

from common import events as ev
from common.clock import wall
from common.events import State
from embedded.nats import Nats
from embedded.parts import HttpService
from embedded.process import free_port, spawn
from moderation import commands
from moderation.domain import RedactionOrder, text_hash
from moderation.store import EXTERNAL_SPENT, EXTERNAL_VERDICTS, TEXTS, Store
from testkit.fixtures import OPERATOR_TOKEN, Start, Started

from .model_lies import KINDS, hangs, lies, status
from .model_server import (
    UNFIT,
    Answering,
    Line,
    ModelServer,
    Request,
    honest,
    model_server,
)
from .moderation_helpers import all_judged, claimed, final, locked, opened, query, submitted, told
from .moderation_helpers import until as patiently

KEY = "sk-of-the-tests-0123456789"
CONTEST = "2026-W04"
WORDS = {
    "/thesis": "Stack the shootout.",
    "/picks/0/rationale": f"An {UNFIT} remark.",
    "/picks/0/main_factor": "volume",
}
CLEAN = {"/thesis": "Stack the shootout.", "/picks/0/rationale": "Smash spot.", "/picks/0/main_factor": "volume"}

Configure = Callable[..., None]
until = partial(patiently, patience=90)


@pytest.fixture
def configure(monkeypatch: pytest.MonkeyPatch) -> Configure:
    """Set the variables of the external model, quick enough for a test."""

    def configured(server: ModelServer, kind: str = "moderations", **settings: Any) -> None:
        usual = {"url": server.url, "key": KEY, "model": "judge-1", "retry_seconds": 0.05, "breaker_seconds": 0.05}
        usual |= {"requests_a_minute": "null", "kind": kind, "timeout": 5, "chat_options": {"temperature": 0}}
        for name, value in {**usual, **settings}.items():
            text = value if isinstance(value, str) else json.dumps(value)
            monkeypatch.setenv(f"MAFL_MODERATION_{name.upper()}", text)

    return configured


async def played(
    service: Started, lineup: UUID, words: dict[str, str] = WORDS, contest: str = CONTEST, *, claim: bool = True
) -> None:
    """A lineup of an agent that is claimed, in a contest that is locked."""
    await service.publish(opened(contest))
    if claim:
        await service.publish(claimed(lineup), version=2)
    await service.publish(submitted(contest, words, lineup_id=lineup))
    await service.publish(final(contest, lineup))
    await service.publish(locked(contest), version=2)
    await service.settle()


async def states(service: Started) -> dict[str, str | None]:
    """Where each text stands, by its words."""
    return {row.text: row.state for row in await query(service, select(TEXTS.c.text, TEXTS.c.state))}


async def come_to(service: Started, **wanted: int) -> None:
    """Wait until so many texts stand so, and no others."""

    async def reached() -> bool:
        standing = list(await query(service, select(TEXTS.c.state)))
        found = [row.state for row in standing]
        return {state: found.count(state) for state in set(found)} == wanted

    await until(reached)


async def asked(server: ModelServer, texts: int = 1) -> None:
    """Wait until the server was asked about so many texts."""

    async def enough() -> bool:
        return len(server.texts) >= texts

    await until(enough)


async def metric(service: Started, name: str) -> float:
    for line in (await service.client.get("/metrics")).text.splitlines():
        if line.startswith(name + " "):
            return float(line.split(" ")[1])
    return 0.0


async def newest(service: Started) -> tuple[dict[str, State], dict[str, tuple[str, ...]], dict[str, str]]:
    """What was told last of the one lineup: states, reasons, words by pointer."""
    await all_judged(service)
    judged, released = await told(service)
    fields = {field.pointer: field.state for field in judged[-1].fields} if judged else {}
    return fields, dict(judged[-1].reasons), {word.pointer: word.text for word in released[-1].words}


# --- what is asked, of whom, and what follows ---


@pytest.mark.rule("M2", "M3", "M4")
@pytest.mark.parametrize("kind", KINDS)
async def test_a_text_is_public_once_the_model_cleared_it_too_and_withheld_where_it_flagged(
    start: Start, configure: Configure, kind: str
) -> None:
    async with model_server() as server:
        configure(server, kind)
        async with start("moderation", clock="replay" if kind == "chat" else "system") as service:
            await played(service, uuid4())
            await come_to(service, cleared=2, flagged=1)
            fields, reasons, words = await newest(service)
            assert fields["/picks/0/rationale"] is State.FLAGGED
            assert reasons == {"/picks/0/rationale": ("external",)}
            assert words == {pointer: WORDS[pointer] for pointer in ("/thesis", "/picks/0/main_factor")}
            assert sorted(server.texts) == sorted(WORDS.values())
            kept = {row.text_hash: row for row in await query(service, select(EXTERNAL_VERDICTS))}
            flagged = kept[text_hash(WORDS["/picks/0/rationale"])]
            assert (flagged.state, flagged.rules) == ("flagged", ["harassment"])
            assert flagged.scores["harassment"] == (0.9 if kind == "moderations" else 0.97)
            assert flagged.model == ("omni-test-2026-01-01" if kind == "moderations" else "chat-test-7")
            assert flagged.asker.startswith(f"{kind}/judge-1/")
            (row,) = await query(service, select(TEXTS).where(TEXTS.c.state == "flagged"))
            (finding,) = row.external_findings
            assert finding == {
                "detector": "external",
                "version": flagged.asker,
                "rule": "harassment",
                "start": 0,
                "end": len(row.text),
            }
            assert row.external_version == flagged.asker
            assert await metric(service, "mafl_moderation_external_asked_total") == 3
            assert await metric(service, 'mafl_moderation_external_answered_total{state="cleared"}') == 2
            assert await metric(service, 'mafl_moderation_external_answered_total{state="flagged"}') == 1


@pytest.mark.rule("C8", "M4")
@pytest.mark.parametrize("kind", KINDS)
async def test_nothing_is_sent_but_texts(start: Start, configure: Configure, kind: str) -> None:
    async with model_server() as server:
        configure(server, kind)
        async with start("moderation") as service:
            lineup = uuid4()
            await played(service, lineup)
            await come_to(service, cleared=2, flagged=1)
        for request in server.requests:
            assert request.headers["authorization"] == f"Bearer {KEY}"
            sent = json.dumps(request.body) + json.dumps(request.headers)
            for never in (str(lineup), CONTEST, "/thesis", 'rationale"', "main_factor", "agent "):
                assert never not in sent.replace("competing AI agents", ""), never
            if kind == "moderations":
                assert request.body.keys() == {"model", "input"}
            else:
                assert all(item.keys() == {"id", "text"} for item in request.items)


@pytest.mark.rule("M4")
async def test_with_no_model_configured_nothing_changes_and_nothing_is_contacted(
    start: Start, configure: Configure
) -> None:
    async with model_server() as server:
        configure(server, kind="none")
        async with start("moderation") as service:
            await played(service, uuid4())
            await come_to(service, cleared=3)
            _, _, words = await newest(service)
            assert words == WORDS
            assert not await query(service, select(TEXTS).where(TEXTS.c.asks_external))
            await asyncio.sleep(0.5)
        assert server.connections == 0


@pytest.mark.rule("M4")
async def test_what_the_pipeline_flagged_is_sent_to_nobody(start: Start, configure: Configure) -> None:
    async with model_server() as server:
        configure(server)
        async with start("moderation") as service:
            words = {**CLEAN, "/picks/0/rationale": "See https://evil.example/picks for a secretword."}
            await played(service, uuid4(), words)
            await come_to(service, cleared=2, flagged=1)
            assert sorted(server.texts) == sorted(text for text in words.values() if "evil" not in text)


@pytest.mark.rule("A5", "M2")
async def test_unclaimed_agents_words_are_sent_once_they_are_claimed_or_if_so_configured(
    start: Start, configure: Configure
) -> None:
    async with model_server() as server:
        configure(server)
        async with start("moderation") as service:
            agent = uuid4()
            await played(service, agent, CLEAN, claim=False)
            await come_to(service, unchecked=3)
            await service.publish(claimed(agent, now=False), version=3)
            await service.settle()
            await asyncio.sleep(0.6)
            assert server.requests == []
            assert await metric(service, "mafl_moderation_external_waiting") == 0
            await service.publish(claimed(agent), version=4)
            await come_to(service, cleared=3)
            assert sorted(server.texts) == sorted(CLEAN.values())
        server.requests.clear()
        configure(server, unclaimed=True)
        async with start("moderation") as service:
            await played(service, uuid4(), CLEAN, "2026-W05", claim=False)
            await come_to(service, cleared=3)
            assert sorted(server.texts) == sorted(CLEAN.values())


@pytest.mark.rule("C8", "M3")
async def test_before_the_lock_nothing_is_sent_and_then_of_final_revisions_alone(
    start: Start, configure: Configure
) -> None:
    async with model_server() as server:
        configure(server)
        async with start("moderation") as service:
            agent = uuid4()
            await service.publish(opened(CONTEST))
            await service.publish(claimed(agent), version=2)
            for revision in (1, 2, 3):
                words = {"/thesis": f"Thesis {revision}."}
                await service.publish(submitted(CONTEST, words, lineup_id=agent, revision=revision), version=revision)
            await service.settle()
            await come_to(service, unchecked=3)
            await asyncio.sleep(0.6)
            assert server.connections == 0
            await service.publish(final(CONTEST, agent, revision=2))
            await service.publish(locked(CONTEST), version=2)
            await come_to(service, cleared=1, unchecked=2)
            await asyncio.sleep(0.5)
            assert server.texts == ["Thesis 2."]


@pytest.mark.rule("M3")
async def test_asked_before_the_lock_what_locks_soonest_goes_first_and_old_revisions_not_at_all(
    start: Start, configure: Configure
) -> None:
    async with model_server() as server:
        configure(server, before_lock=True, asking=False, concurrency=1, batch=1)
        async with start("moderation") as service:
            url = service.database_url
            for contest, hours in (("2026-W06", 50), ("2026-W04", 1), ("2026-W05", 20)):
                agent = uuid4()
                locks = wall() + timedelta(hours=hours)
                await service.publish(opened(contest, locks_at=locks))
                await service.publish(claimed(agent), version=2)
                for revision in (1, 2):
                    words = {"/thesis": f"{contest} {revision}"}
                    about = submitted(contest, words, lineup_id=agent, revision=revision, locks_at=locks)
                    await service.publish(about, version=revision)
            await service.settle()
            await come_to(service, unchecked=6)
            assert server.connections == 0, "MAFL_MODERATION_ASKING=false asks nobody"
        configure(server, before_lock=True, asking=True, concurrency=1, batch=1)
        async with start("moderation", database_url=url) as service:
            await come_to(service, cleared=3, unchecked=3)
            assert server.texts == ["2026-W04 2", "2026-W05 2", "2026-W06 2"]


@pytest.mark.rule("M4")
async def test_what_a_person_said_while_the_model_was_asked_holds(start: Start, configure: Configure) -> None:
    let_go = asyncio.Event()

    async def late(request: Request, line: Line) -> None:
        await let_go.wait()
        await honest(request, line)

    async with model_server(late) as server:
        configure(server)
        async with start("moderation") as service:
            lineup = uuid4()
            await played(service, lineup, {"/thesis": f"An {UNFIT} remark."})
            await asked(server)
            case = (await service.operator.get(f"/operator/api/v1/moderation/lineups/{lineup}")).json()
            body = {
                "lineup_id": str(lineup),
                "pointer": "/thesis",
                "version": case["items"][0]["version"],
                "state": "cleared",
                "note": "Read it.",
            }
            answer = await service.operator.post("/operator/api/v1/moderation/judgements", json=body)
            assert answer.status_code == 200, answer.text
            let_go.set()

            async def kept() -> bool:
                return [row.state for row in await query(service, select(EXTERNAL_VERDICTS.c.state))] == ["flagged"]

            await until(kept)
            await asyncio.sleep(0.5)
            assert await states(service) == {f"An {UNFIT} remark.": "cleared"}
            _, _, words = await newest(service)
            assert words == {"/thesis": f"An {UNFIT} remark."}


@pytest.mark.rule("M4")
async def test_the_same_words_are_asked_about_once_but_a_chat_model_is_asked_for_each_author_apart(
    start: Start, configure: Configure
) -> None:
    async with model_server() as server:
        for kind, contest in (("moderations", "2026-W04"), ("chat", "2026-W05")):
            configure(server, kind)
            server.requests.clear()
            async with start("moderation") as service:
                await service.publish(opened(contest))
                for _ in range(3):
                    await played(service, uuid4(), CLEAN, contest)
                await come_to(service, cleared=9)
                times = 1 if kind == "moderations" else 3
                assert sorted(server.texts) == sorted([*CLEAN.values()] * times)
                if kind == "moderations":
                    # Whoever writes them later finds the answer.
                    await played(service, uuid4(), CLEAN, "2026-W10")
                    await come_to(service, cleared=12)
                    assert len(server.texts) == 3
                if kind == "chat":
                    assert all(len(set(request.texts)) == len(request.texts) for request in server.requests)


# --- answers that are none ---

SOME = (
    *("hangs", "drips", "resets half way", "huge", "401", "429", "500", "redirect", "HTML", "invalid UTF-8"),
    *("error body", "one too few", "flagged is a word", "a score is no number", "everything is fine"),
)
"""Of all bad answers those that the whole service is put through; the client gets them all, in its own test."""


@pytest.mark.rule("M3", "M4")
@pytest.mark.parametrize(("kind", "cause", "answering"), lies(SOME))
async def test_an_answer_that_is_none_clears_nothing_is_named_without_words_and_asked_for_again(
    start: Start,
    configure: Configure,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    kind: str,
    cause: str,
    answering: Answering,
) -> None:
    caplog.set_level(logging.DEBUG)
    async with model_server(answering) as server:
        configure(server, kind, timeout=0.6)
        async with start("moderation") as service:
            await played(service, uuid4(), {"/thesis": "A secretword of the shootout."})
            name = f'mafl_moderation_external_failed_total{{cause="{cause}"}}'

            async def failed() -> bool:
                return await metric(service, name) >= 1

            await until(failed)
            assert await states(service) == {"A secretword of the shootout.": "unchecked"}
            await all_judged(service)
            judged, released = await told(service)
            assert (judged[-1].fields[0].state, released) == (State.UNCHECKED, [])
            server.answering = honest
            async with service.runtime.database.transaction() as connection:
                # What a key that was refused, or a wrong address, waits for is an operator, and five minutes.
                await connection.exec_driver_sql("UPDATE external_state SET open_until = NULL")
            await come_to(service, cleared=1)
            _, _, words = await newest(service)
            assert words == {"/thesis": "A secretword of the shootout."}
        logged = caplog.text + "".join(capsys.readouterr())
        assert f'"cause": "{cause}"' in logged
        assert "secretword" not in logged
        assert KEY not in logged


@pytest.mark.rule("M4")
async def test_a_text_that_spoils_every_request_is_found_and_holds_up_no_other(
    start: Start, configure: Configure
) -> None:
    async def chokes(request: Request, line: Line) -> None:
        if any("poison" in text for text in request.texts):
            await line.answer(400, b'{"error": {"message": "bad input"}}')
        else:
            await honest(request, line)

    async with model_server(chokes) as server:
        configure(server, batch=8)
        async with start("moderation") as service:
            words = {f"/picks/{pick}/rationale": f"Smash spot {pick}." for pick in range(20)}
            await played(service, uuid4(), {**words, "/thesis": "The poison of the week."})
            await come_to(service, cleared=20, unchecked=1)
            assert (await states(service))["The poison of the week."] == "unchecked"
            (row,) = await query(service, select(EXTERNAL_VERDICTS).where(EXTERNAL_VERDICTS.c.state.is_(None)))
            assert (row.cause, row.alone) == ("refused", True)
            # New words do not wait behind it.
            await played(service, uuid4(), {"/thesis": "Another shootout."}, "2026-W05")
            await come_to(service, cleared=21, unchecked=1)


@pytest.mark.rule("M3", "M4")
async def test_while_the_model_is_down_it_is_hardly_asked_and_asked_again_when_it_is_back(
    start: Start, configure: Configure
) -> None:
    async with model_server(status(500)) as server:
        configure(server, batch=1, concurrency=4, breaker_failures=3, breaker_seconds=0.4, retry_seconds=0.01)
        async with start("moderation") as service:
            words = {f"/picks/{pick}/rationale": f"Smash spot {pick}." for pick in range(16)}
            await played(service, uuid4(), words)
            await asked(server, 4)
            await asyncio.sleep(2.5)
            # 3 to open it, at most 3 that were under way, then one each time it is tried: after 0.2-0.4, 0.4-0.8, …
            assert 4 <= len(server.requests) <= 12

            async def opened_it() -> bool:
                return await metric(service, 'mafl_moderation_external_breaker{state="closed"}') == 0

            await until(opened_it)
            before = len(server.requests)
            server.answering = honest
            await come_to(service, cleared=16)
            assert len(server.requests) - before == 16

            async def closed() -> bool:
                return await metric(service, 'mafl_moderation_external_breaker{state="closed"}') == 1

            await until(closed)


@pytest.mark.rule("M4")
async def test_retry_after_is_honoured(start: Start, configure: Configure) -> None:
    heard: list[float] = []

    async def asks_for_time(request: Request, line: Line) -> None:
        heard.append(time.monotonic())
        if len(heard) == 1:
            await line.json({"error": {"message": "slow down"}}, 429, retry_after="2")
        else:
            await honest(request, line)

    async with model_server(asks_for_time) as server:
        configure(server, concurrency=1)
        async with start("moderation") as service:
            await played(service, uuid4(), CLEAN)
            await come_to(service, cleared=3)
            assert heard[1] - heard[0] >= 2


# --- several copies, budgets, deaths ---


@pytest.mark.rule("O2", "M4")
async def test_two_copies_ask_about_each_text_once_and_share_the_work(start: Start, configure: Configure) -> None:
    async def takes_its_time(request: Request, line: Line) -> None:
        await asyncio.sleep(0.5)
        await honest(request, line)

    async with model_server(takes_its_time) as server:
        configure(server, batch=4, concurrency=2)
        async with start("moderation") as one_copy, start("moderation", database_url=one_copy.database_url) as other:
            words = {f"/picks/{pick}/rationale": f"Smash spot {pick}." for pick in range(60)}
            await played(one_copy, uuid4(), words)
            await come_to(one_copy, cleared=60)
            assert sorted(server.texts) == sorted(words.values())
            assert 15 <= len(server.requests) <= 30
            asked = [await metric(copy, "mafl_moderation_external_asked_total") for copy in (one_copy, other)]
            assert sum(asked) == 60
            assert min(asked) > 0
            assert 1 < server.most_at_once <= 4
            judged, released = await told(one_copy)
            assert len(released[-1].words) == 60
            assert {len(event.fields) for event in judged} == {60}


@pytest.mark.rule("M4")
async def test_a_budget_is_shared_by_copies_and_remembered_over_a_restart(start: Start, configure: Configure) -> None:
    async with model_server() as server:
        configure(server, batch=1, requests_a_day=7)
        async with start("moderation") as one_copy, start("moderation", database_url=one_copy.database_url):
            url = one_copy.database_url
            words = {f"/picks/{pick}/rationale": f"Smash spot {pick}." for pick in range(20)}
            await played(one_copy, uuid4(), words)
            await come_to(one_copy, cleared=7, unchecked=13)
            await asyncio.sleep(0.6)
            assert len(server.requests) == 7
        async with start("moderation", database_url=url) as again:
            await asyncio.sleep(0.8)
            assert len(server.requests) == 7
            left = 'mafl_moderation_external_budget_left{period="day",unit="requests"}'
            assert await metric(again, left) == 0
            assert await metric(again, "mafl_moderation_external_waiting") == 13
        configure(server, batch=1, requests_a_day=9)
        async with start("moderation", database_url=url) as again:
            await come_to(again, cleared=9, unchecked=11)
        configure(server, batch=5, requests_a_day=100, texts_a_day=16)
        async with start("moderation", database_url=url) as again:
            await come_to(again, cleared=16, unchecked=4)
        configure(server, requests_a_day=100, texts_a_day="null")
        async with start("moderation", database_url=url) as again:
            await come_to(again, cleared=20)
            assert sorted(server.texts) == sorted(words.values())
            spent = await query(again, select(EXTERNAL_SPENT).where(EXTERNAL_SPENT.c.period == "day"))
            assert sum(row.texts for row in spent) == 20
            assert sum(row.requests for row in spent) == len(server.requests)


@pytest.mark.rule("M4")
async def test_tokens_are_counted_as_the_service_says_it_used_them(start: Start, configure: Configure) -> None:
    async with model_server() as server:
        configure(server, "chat", tokens_a_day=20_000, batch=1)
        async with start("moderation") as service:
            # A request is estimated at some 3,000 tokens and takes 700: by the estimate six would fit.
            words = {f"/picks/{pick}/rationale": f"Smash spot {pick}." for pick in range(12)}
            await played(service, uuid4(), words)
            await come_to(service, cleared=12)
            spent = await query(service, select(EXTERNAL_SPENT).where(EXTERNAL_SPENT.c.period == "day"))
            assert sum(row.tokens for row in spent) == 12 * 700


@pytest.mark.rule("O4", "M3")
async def test_killed_in_the_middle_of_a_call_the_text_is_asked_about_again_and_published_once(
    start: Start, configure: Configure, nats_server: Nats, tmp_path: Path
) -> None:
    async with model_server(hangs) as server:
        configure(server, asking=False, timeout=2)
        async with start("moderation") as service:
            url = service.database_url
            await played(service, uuid4(), CLEAN)
            await come_to(service, unchecked=3)
        configure(server, asking=True, timeout=2)
        environment = {name: value for name, value in os.environ.items() if name.startswith("MAFL_MODERATION_")} | {
            "MAFL_DATABASE_URL": url,
            "MAFL_NATS_URL": nats_server.url("moderation"),
            "MAFL_OPERATOR_TOKEN": OPERATOR_TOKEN,
            "MAFL_ENVIRONMENT": "embedded",
        }
        part = HttpService("moderation", "moderation.main:app", free_port(), environment, tmp_path)
        process = spawn(part.command())
        try:
            await asked(server, 3)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert len(server.texts) == 3
        server.requests.clear()
        server.answering = honest
        async with start("moderation", database_url=url) as service:
            await come_to(service, cleared=3)
            await all_judged(service)
            _, released = await told(service)
            assert {word.text for word in released[-1].words} == set(CLEAN.values())
            assert sorted(server.texts) == sorted(CLEAN.values())


@pytest.mark.rule("M6")
async def test_a_redacted_text_is_not_sent_and_the_hash_of_its_words_goes_with_them(
    start: Start, configure: Configure
) -> None:
    async with model_server() as server:
        configure(server)
        async with start("moderation") as service:
            agents = [uuid4(), uuid4()]
            words = {"/thesis": "Words of one alone.", "/picks/0/main_factor": "volume"}
            await played(service, agents[0], words)
            await played(service, agents[1], {"/picks/0/main_factor": "volume"}, "2026-W05")
            await come_to(service, cleared=3)

            async def redact(agent: UUID, pointer: str) -> None:
                order = {"lineup_id": str(agent), "pointer": pointer, "reason": "decency", "note": "Asked for."}
                answer = await service.operator.post("/operator/api/v1/moderation/redactions", json=order)
                assert answer.status_code in (200, 202), answer.text

            async def kept() -> set[str]:
                return {row.text_hash for row in await query(service, select(EXTERNAL_VERDICTS.c.text_hash))}

            assert await kept() == {text_hash(text) for text in words.values()}
            await redact(agents[0], "/thesis")
            await redact(agents[0], "/picks/0/main_factor")
            assert await kept() == {text_hash("volume")}, "another wrote the same"
            await redact(agents[1], "/picks/0/main_factor")
            assert await kept() == set()
            # One whose turn had not come.
            server.requests.clear()
            late = uuid4()
            await played(service, late, CLEAN, "2026-W06", claim=False)
            await service.settle()
            await redact(late, "/thesis")
            await service.publish(claimed(late), version=2)
            await asked(server, 2)
            await asyncio.sleep(0.6)
            assert sorted(server.texts) == sorted(text for pointer, text in CLEAN.items() if pointer != "/thesis")


@pytest.mark.rule("M6")
async def test_a_text_that_is_being_redacted_is_neither_sent_nor_remembered(start: Start, configure: Configure) -> None:
    async with model_server() as server:
        configure(server)
        async with start("moderation") as service:
            lineup = uuid4()
            await service.publish(opened(CONTEST))
            await service.publish(claimed(lineup), version=2)
            await service.publish(submitted(CONTEST, CLEAN, lineup_id=lineup))
            await all_judged(service)
            wanted = RedactionOrder(lineup_id=lineup, pointer="/thesis", reason=ev.RedactionReason.DECENCY, note="One.")
            async with service.runtime.database.transaction() as connection:
                await commands.redact(Store(connection), wanted, wall(), via="the test")
                await service.publish(final(CONTEST, lineup))
                await service.publish(locked(CONTEST), version=2)
                await asked(server, 2)
                # Longer than it takes until the next look.
                await asyncio.sleep(1.5)
            await service.settle()
            others = {text for pointer, text in CLEAN.items() if pointer != "/thesis"}
            assert set(server.texts) == others
            kept = await query(service, select(EXTERNAL_VERDICTS.c.text_hash))
            assert {row.text_hash for row in kept} == {text_hash(text) for text in others}


@pytest.mark.rule("M4")
async def test_switched_on_or_off_nothing_changes_until_a_rerun_and_then_old_texts_too(
    start: Start, configure: Configure
) -> None:
    async def rerun(service: Started, **choice: Any) -> dict[str, int]:
        answer = await service.operator.post("/operator/api/v1/moderation/reruns", json={"everything": True, **choice})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = {}

        async def done() -> bool:
            one = await service.operator.get(f"/operator/api/v1/moderation/reruns/{answer.json()['rerun']}")
            found.update(one.json())
            return bool(found["state"] != "running")

        await until(done)
        return dict(found["counts"])

    async with model_server() as server:
        configure(server, kind="none")
        async with start("moderation") as service:
            url = service.database_url
            await played(service, uuid4())
            await come_to(service, cleared=3)
        configure(server)
        async with start("moderation", database_url=url) as service:
            await rerun(service, dry_run=True)
            await asyncio.sleep(0.6)
            await come_to(service, cleared=3)
            assert server.connections == 0
            await rerun(service)
            await come_to(service, cleared=2, flagged=1)
            _, _, words = await newest(service)
            assert UNFIT not in "".join(words.values())
            server.answering = status(500)
            await played(service, uuid4(), {"/thesis": "Other words."}, "2026-W05")
            await come_to(service, cleared=2, flagged=1, unchecked=1)
        configure(server, kind="none")
        async with start("moderation", database_url=url) as service:
            await asyncio.sleep(0.6)
            await come_to(service, cleared=2, flagged=1, unchecked=1)
            await rerun(service)
            await come_to(service, cleared=3, flagged=1)
