"""The operators' pages: who gets in, what they see, and that two at once never overwrite each other."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID, uuid4

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select, update

from common import events as ev
from moderation import desk, pages
from moderation.desk import Filters, Key
from moderation.store import JUDGEMENTS, NOTES, SESSIONS, TEXTS, Store
from testkit.fixtures import OPERATOR_TOKEN, Start, Started

from .moderation_helpers import CLEAN, MIXED, all_judged, final, locked, opened, query, submitted, told

CONTEST = "2017-W01"
FLAGGED = "/picks/0/rationale"
HOME = "/operator/moderation"
ORIGIN = "http://mafl.test"


class Operator:
    """A browser of an operator's own, without script: it follows links and sends forms as the pages have them."""

    def __init__(self, service: Started) -> None:
        self.client = httpx.AsyncClient(
            transport=httpx.ASGITransport(service.app, raise_app_exceptions=False), base_url=ORIGIN
        )
        self.page = ""

    async def get(self, path: str) -> httpx.Response:
        answer = await self.client.get(path)
        self.page = answer.text
        return answer

    async def post(self, path: str, *, origin: str | None = ORIGIN, **fields: Any) -> httpx.Response:
        csrf = re.search(r'name="csrf" value="([^"]+)"', self.page)
        given = {"csrf": csrf[1] if csrf else "", **fields}
        return await self.client.post(path, data=given, headers={} if origin is None else {"Origin": origin})

    async def sign_in(self, who: str, token: str = OPERATOR_TOKEN) -> httpx.Response:
        answer = await self.post("/operator/signin", who=who, token=token, next=HOME)
        await self.get(HOME)
        return answer

    def forms(self) -> list[dict[str, str]]:
        """The hidden fields of each text's form, in the order of the page."""
        found = re.findall(r'<form class="judge".*?</form>', self.page, re.S)
        return [
            {name: html.unescape(value) for name, value in re.findall(r'name="(\w+)" value="([^"]*)"', form)}
            for form in found
        ]

    async def judge(self, act: str, which: int = 0, note: str = "", **changes: str) -> httpx.Response:
        """Press a button of a text's form, as the page has it."""
        form = {**self.forms()[which], "act": act, "note": note, **changes}
        answer = await self.client.post(f"{HOME}/judge", data=form, headers={"Origin": ORIGIN})
        if answer.status_code == 303:
            await self.get(answer.headers["location"])
        return answer


@asynccontextmanager
async def at_the_desk(service: Started, who: str) -> AsyncIterator[Operator]:
    operator = Operator(service)
    async with operator.client:
        answer = await operator.sign_in(who)
        assert answer.status_code == 303, answer.text
        yield operator


async def lock(service: Started, *lineups: tuple[UUID, dict[str, str]], contest: str = CONTEST) -> None:
    """A locked contest with lineups, all judged and told."""
    await service.publish(opened(contest))
    for lineup, words in lineups:
        registered = ev.AgentRegistered(agent_id=lineup, agent_name=f"Agent {lineup.hex[:6]}", model="m", claimed=True)
        await service.publish(registered)
        await service.publish(submitted(contest, words, lineup_id=lineup))
        await service.publish(final(contest, lineup))
    await service.publish(locked(contest, len(lineups)), version=2)
    await all_judged(service)


async def acts(service: Started) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await service.operator.get("/operator/api/v1/audit/moderation")).json()["acts"]
    return found[::-1]


async def test_nobody_gets_in_without_the_token_and_whoever_has_it_stays_a_day_at_most(start: Start) -> None:
    async with start("moderation") as service:
        stranger = Operator(service)
        async with stranger.client:
            for path in (HOME, f"{HOME}/case?lineup={uuid4()}&pointer=/thesis", f"{HOME}/audit"):
                answer = await stranger.get(path)
                assert answer.status_code == 303
                wanted = parse_qs(urlsplit(answer.headers["location"]).query)["next"]
                assert wanted == [path]
            assert (await stranger.get("/operator/")).headers["location"] == HOME
            bearer = {"Authorization": f"Bearer {OPERATOR_TOKEN}"}
            assert (await stranger.client.get(HOME, headers=bearer)).status_code == 303, "pages take no bearer token"
            for act in ("judge", "take-back"):
                assert (await stranger.post(f"{HOME}/{act}")).status_code == 401
            for token in ("", "x", OPERATOR_TOKEN[:-1], OPERATOR_TOKEN + "x", "é"):
                answer = await stranger.sign_in("Ada", token)
                assert answer.status_code == 401
                assert "not the operator&#39;s token" in answer.text
                assert "set-cookie" not in answer.headers
            for who in ("", "  ", "x" * 61, "a\x00b", "a\u202eb"):
                assert (await stranger.sign_in(who)).status_code == 422
            answer = await stranger.sign_in("  Ada   Op ")
            assert answer.status_code == 303
            cookie = answer.headers["set-cookie"].lower()
            assert "httponly" in cookie
            assert "samesite=strict" in cookie
            assert OPERATOR_TOKEN not in cookie
            assert (await stranger.get(HOME)).status_code == 200
            assert "Ada Op" in stranger.page
            assert (await stranger.get("/operator/signin")).status_code == 303
            with_cookie = await stranger.client.get("/operator/api/v1/moderation/queue")
            assert with_cookie.status_code == 401, "the API takes no cookie"
            kept = [value for row in await query(service, select(SESSIONS)) for value in row]
            assert stranger.client.cookies["mafl-operator"].split(".")[0] not in kept, "only its hash is kept"

            # A day is over, or nothing was done for long.
            now = (await query(service, select(SESSIONS.c.seen_at)))[0][0]
            for column, at in (
                (SESSIONS.c.until, now - timedelta(seconds=1)),
                (SESSIONS.c.seen_at, now - desk.SESSION_IDLES),
            ):
                async with service.runtime.database.transaction() as connection:
                    await connection.execute(update(SESSIONS).values({column.name: at}))
                assert (await stranger.get(HOME)).status_code == 303
                async with service.runtime.database.transaction() as connection:
                    await connection.execute(update(SESSIONS).values(until=now + timedelta(hours=1), seen_at=now))
                assert (await stranger.get(HOME)).status_code == 200

            session = dict(stranger.client.cookies)
            assert (await stranger.post("/operator/signout")).status_code == 303
            stranger.client.cookies.update(session)
            assert (await stranger.get(HOME)).status_code == 303, "the cookie is worth nothing, wherever it is kept"
            found = [(act["who"], act["what"]) for act in await acts(service)]
            refused = [("somebody", "sign in refused")] * 5
            assert found == [*refused, ("Ada Op", "sign in"), ("Ada Op", "sign out")]
            assert OPERATOR_TOKEN[:-1] not in str(await acts(service)), "what was tried is nobody's to read"
            assert all(act["after"]["via"].startswith("page from ") for act in await acts(service))


async def test_with_tls_the_cookie_is_secure_and_bound_to_the_host(start: Start) -> None:
    async with start("moderation") as service:
        operator = Operator(service)
        async with operator.client:
            answer = await operator.client.post(
                "https://mafl.test/operator/signin",
                data={"who": "Ada", "token": OPERATOR_TOKEN},
                headers={"Origin": "https://mafl.test"},
            )
            cookie = answer.headers["set-cookie"]
            assert cookie.startswith("__Host-mafl-operator=")
            assert "Secure" in cookie
            assert "Path=/" in cookie
            assert (await operator.client.get(f"https://mafl.test{HOME}")).status_code == 200


async def test_too_many_attempts_to_sign_in_are_told_when_the_next_is_possible(start: Start) -> None:
    async with start("moderation") as service:
        service.runtime.settings.limits.update({"sign-ins": "2/600"})
        operator = Operator(service)
        async with operator.client:
            assert [(await operator.sign_in("Eve", "no")).status_code for _ in range(3)] == [401, 401, 429]


async def test_an_operator_goes_on_to_these_pages_and_never_to_another_site(start: Start) -> None:
    async with start("moderation") as service:
        for wanted, to in (
            (f"{HOME}?show=all", f"{HOME}?show=all"),
            ("https://evil.example/operator/moderation", HOME),
            ("//evil.example/operator/moderation", HOME),
            ("/\\evil.example", HOME),
            ("/me", HOME),
            (f"{HOME}\r\nX: y", HOME),
            ("", HOME),
        ):
            operator = Operator(service)
            async with operator.client:
                answer = await operator.post("/operator/signin", who="Ada", token=OPERATOR_TOKEN, next=wanted)
                assert answer.headers["location"] == to


@pytest.mark.rule("M4")
async def test_forms_are_taken_from_these_pages_alone(start: Start) -> None:
    lineup = uuid4()
    async with start("moderation") as service, at_the_desk(service, "Ada") as ada, at_the_desk(service, "Bob") as bob:
        await lock(service, (lineup, MIXED))
        await ada.get(HOME)
        await bob.get(HOME)
        (form,) = ada.forms()
        good = {**form, "act": "approve", "note": "A careful note."}
        for origin in (None, "null", "https://mafl.test:444", "http://evil.example", "http://mafl.test.evil.example"):
            assert (await ada.post(f"{HOME}/judge", **good, origin=origin)).status_code == 403
        fetched = {"Origin": ORIGIN, "Sec-Fetch-Site": "cross-site"}
        assert (await ada.client.post(f"{HOME}/judge", data=good, headers=fetched)).status_code == 403
        for csrf in ("", "x", bob.forms()[0]["csrf"]):
            answer = await ada.client.post(f"{HOME}/judge", data={**good, "csrf": csrf}, headers={"Origin": ORIGIN})
            assert answer.status_code == 403
            assert "A careful note." in answer.text, "what was typed is not lost"
        for content, kind in ((b"{}", "application/json"), (b"\xff=1", "application/x-www-form-urlencoded")):
            headers = {"Origin": ORIGIN, "Content-Type": kind}
            assert (await ada.client.post(f"{HOME}/judge", content=content, headers=headers)).status_code == 422
        headers = {"Origin": ORIGIN, "Content-Type": "application/x-www-form-urlencoded"}
        large = b"note=" + b"x" * pages.LARGEST_FORM
        assert (await ada.client.post(f"{HOME}/judge", content=large, headers=headers)).status_code == 413
        assert await query(service, select(JUDGEMENTS)) == []

        # Signed out in another window: the note is shown again, to be taken along.
        async with service.runtime.database.transaction() as connection:
            await connection.execute(update(SESSIONS).values(until=datetime.fromisoformat("2020-01-01T00:00:00Z")))
        answer = await ada.client.post(f"{HOME}/judge", data=good, headers={"Origin": ORIGIN})
        assert answer.status_code == 401
        assert "A careful note." in answer.text


@pytest.mark.rule("M2", "M4")
async def test_an_operator_approves_flags_notes_and_takes_back_by_forms_alone(start: Start) -> None:
    lineup = uuid4()
    async with start("moderation") as service, at_the_desk(service, "Ada") as ada:
        await lock(service, (lineup, MIXED))
        await service.publish(asks(lineup, "It is <b>my</b> own page."))
        await service.settle()
        await ada.get(HOME)
        assert "Its owner asks for a review" in ada.page
        assert "It is &lt;b&gt;my&lt;/b&gt; own page." in ada.page
        assert f"Agent {lineup.hex[:6]}" in ada.page
        assert "rationale of pick 1, WR1 Kareem Hunt" in ada.page
        assert f"<code>{FLAGGED}</code> (WR1 Kareem Hunt)" in ada.page
        assert len(ada.forms()) == 1

        assert (await ada.judge("note", note="Asked a colleague.")).status_code == 303
        assert "Asked a colleague." in ada.page
        assert (await query(service, select(TEXTS.c.state).where(TEXTS.c.pointer == FLAGGED))) == [("flagged",)]
        empty = await ada.judge("note", note=" ")
        assert (empty.status_code, "The note is empty" in empty.text) == (422, True)
        back_to = re.search(r'href="([^"]+at=[^"]+#current)"', empty.text)
        assert back_to is not None, "the place is not lost"
        await ada.get(html.unescape(back_to[1]))
        assert re.search(r'<article [^>]*tabindex="-1"[^>]* id="current".*rationale of pick 1', ada.page, re.S)
        await ada.get(f"{HOME}/case?lineup={lineup}&pointer={FLAGGED}")
        assert (await ada.judge("else", note="Kept.")).status_code == 422

        await ada.get(HOME)
        assert (await ada.judge("approve")).status_code == 303
        assert "You approved: rationale of pick 1" in ada.page
        assert f"by <bdi>Agent {lineup.hex[:6]}</bdi>" in ada.page
        assert "Nothing waits for you" in ada.page
        await service.settle()
        judged, released = await told(service)
        assert {word.pointer for word in released[-1].words} == set(MIXED)
        assert {field.pointer: field.reviewed for field in judged[-1].fields}[FLAGGED] == 1

        position = re.search(r'name="position" value="(\d+)"', ada.page)
        assert position is not None
        back = await ada.post(f"{HOME}/take-back", position=position[1])
        assert back.status_code == 303
        await service.settle()
        judged, released = await told(service)
        assert {word.pointer for word in released[-1].words} == set(MIXED) - {FLAGGED}
        assert judged[-1].reasons == {FLAGGED: ("links",)}, "what the check found holds again"
        assert {field.pointer: field.reviewed for field in judged[-1].fields}[FLAGGED] == 0
        await ada.get(HOME)
        assert "Its owner asks for a review" in ada.page, "the request that was answered is open again"
        again = await ada.post(f"{HOME}/take-back", position=position[1])
        assert again.status_code == 409

        assert (await ada.judge("flag", note="It sells something.")).status_code == 303
        await service.settle()
        assert (await told(service))[0][-1].reasons == {FLAGGED: ("operator",)}
        history = await query(service, select(JUDGEMENTS).order_by(JUDGEMENTS.c.position))
        assert [(row.was, row.state, row.note, row.judged_by) for row in history] == [
            ("flagged", "cleared", pages.NO_NOTE, "Ada"),
            ("cleared", "flagged", f"Takes back: {pages.NO_NOTE}", "Ada"),
            ("flagged", "flagged", "It sells something.", "Ada"),
        ]
        assert [(row.note, row.noted_by, row.version) for row in await query(service, select(NOTES))] == [
            ("Asked a colleague.", "Ada", 1)
        ]
        assert [act["what"] for act in await acts(service)] == ["sign in", "note", "judge", "take back", "judge"]
        await ada.get(f"{HOME}/case?lineup={lineup}&pointer={FLAGGED}")
        for said in ("Asked a colleague.", "It sells something.", "took a judgement back", "Beside it in the lineup"):
            assert said in ada.page
        await ada.get(f"{HOME}/audit")
        assert "take back" in ada.page
        assert "It sells something." not in ada.page, "notes stay with their texts"


ASKED = datetime.fromisoformat("2017-09-12T09:00:00Z")


def asks(lineup: UUID, sentence: str | None = None, *pointers: str, at: datetime = ASKED) -> ev.ReviewRequested:
    return ev.ReviewRequested(
        agent_id=lineup,
        lineup_id=lineup,
        contest=CONTEST,
        revision=1,
        pointers=pointers or (FLAGGED,),
        judged_version=1,
        requested_at=at,
        sentence=sentence,
    )


@pytest.mark.rule("M6")
async def test_of_a_redacted_text_the_pages_show_that_it_is_gone_and_no_note_on_it(start: Start) -> None:
    lineup = uuid4()
    async with start("moderation") as service, at_the_desk(service, "Ada") as ada:
        await lock(service, (lineup, MIXED))
        await ada.get(HOME)
        assert (await ada.judge("note", note="It says evil.example.")).status_code == 303
        await ada.get(HOME)
        form = ada.forms()[0]
        order = {"lineup_id": str(lineup), "pointer": FLAGGED, "reason": "decency", "note": "Case 17", "by": "Bob"}
        redacted = await service.operator.post("/operator/api/v1/moderation/redactions", json=order)
        assert redacted.status_code == 200, redacted.text
        for act in ("approve", "note"):
            late = {**form, "act": act, "note": "Late."}
            answer = await ada.client.post(f"{HOME}/judge", data=late, headers={"Origin": ORIGIN})
            assert answer.status_code == 409
            assert "gone for good" in answer.text
            assert "Late." in answer.text
        assert (await ada.get(HOME)).status_code == 200
        assert ada.forms() == []
        for path in (f"{HOME}?show=all", f"{HOME}/case?lineup={lineup}&pointer={FLAGGED}"):
            assert (await ada.get(path)).status_code == 200
            assert "its words are gone for good" in ada.page
            assert "evil.example" not in ada.page
        assert FLAGGED not in {form.get("pointer") for form in ada.forms()}
        kept = str(await query(service, select(NOTES)))
        assert "evil.example" not in kept


@pytest.mark.rule("M4")
async def test_of_two_operators_the_second_is_told_what_became_of_it_and_keeps_the_note(start: Start) -> None:
    lineup, agent = uuid4(), uuid4()
    async with start("moderation") as service, at_the_desk(service, "Ada") as ada, at_the_desk(service, "Bob") as bob:
        await service.publish(ev.AgentRegistered(agent_id=agent, agent_name="winners.bet", model="m"))
        await lock(service, (lineup, MIXED))
        for about in (f"lineup={lineup}&pointer={FLAGGED}", f"agent_id={agent}"):
            for who in (ada, bob):
                assert (await who.get(f"{HOME}/case?{about}")).status_code == 200
            assert (await ada.judge("approve", note="Harmless.")).status_code == 303
            late = await bob.judge("flag", note="An <advertisement>.")
            assert late.status_code == 409
            bob.page = late.text
            assert "Judged meanwhile" in late.text
            assert re.search(r"<bdi>Ada</bdi> approved it", late.text)
            assert "Harmless." in late.text
            assert "An &lt;advertisement&gt;.</textarea>" in late.text
            assert bob.forms()[0]["version"] == "2"
            assert (await bob.judge("flag", note="An advertisement.")).status_code == 303, "having looked again"
        states = await query(service, select(JUDGEMENTS.c.state, JUDGEMENTS.c.judged_by))
        assert states == [("cleared", "Ada"), ("flagged", "Bob")] * 2
        # A name that changed is not the one that was looked at.
        await ada.get(f"{HOME}/case?agent_id={agent}")
        await service.publish(ev.AgentUpdated(agent_id=agent, agent_name="losers.bet", model="m"), version=2)
        await all_judged(service)
        answer = await ada.judge("approve")
        assert answer.status_code == 409
        assert "losers.bet" in answer.text
        assert "about other words" in answer.text


@pytest.mark.rule("M4", "A10")
async def test_a_models_label_is_judged_at_the_desk_and_of_two_operators_the_second_is_told(start: Start) -> None:
    label = "best-picks.bet/free:<b>"
    async with start("moderation") as service, at_the_desk(service, "Ada") as ada, at_the_desk(service, "Bob") as bob:
        # Registry takes no label like it; one that came from elsewhere is shown as text all the same.
        await service.publish(ev.AgentRegistered(agent_id=uuid4(), agent_name="Quiet Agent", model=label))
        await all_judged(service)
        for who in (ada, bob):
            await who.get(f"{HOME}?kind=model")
            (form,) = who.forms()
            assert form["model"] == label
            assert "<b>" not in who.page
        assert (await ada.judge("flag", note="An advertisement.")).status_code == 303
        assert "You flagged: model&#39;s label" in ada.page
        late = await bob.judge("approve", note="Fine.")
        assert late.status_code == 409
        assert re.search(r"<bdi>Ada</bdi> flagged it", late.text)
        bob.page = late.text
        assert (await bob.judge("approve", note="Fine <after all>.")).status_code == 303
        position = re.search(r'name="position" value="(\d+)"', bob.page)
        assert position is not None
        await bob.get((await bob.post(f"{HOME}/take-back", position=position[1])).headers["location"])
        for said in ("An advertisement.", "took a judgement back", "a label as agents claim it"):
            assert said in bob.page
        await bob.get(f"{HOME}?kind=model&show=hand")
        assert len(bob.forms()) == 1
        for elsewhere in ("kind=name", "agent=best", "contest=2017-W01", "asked=yes"):
            await bob.get(f"{HOME}?show=all&{elsewhere}")
            assert label not in [form.get("model") for form in bob.forms()]
        await bob.get(f"{HOME}/audit")
        case = re.search(r'href="([^"]+)">model(?:&#39;|\')s label</a>', bob.page)
        assert case is not None
        assert (await bob.get(html.unescape(case[1]))).status_code == 200
        assert (await bob.get(f"{HOME}/case?model=nobody")).status_code == 404
        told = [event.state for event in await service.published(ev.ModelJudged)]
        assert told == ["flagged", "flagged", "cleared", "flagged"]


@pytest.mark.rule("M4")
async def test_the_pages_of_the_queue_lose_and_repeat_nothing_while_others_judge(start: Start) -> None:
    many = [uuid4() for _ in range(desk.PAGE + 7)]
    words = {"/thesis": "See https://evil.example/a", FLAGGED: "See https://evil.example/b"}
    async with start("moderation") as service, at_the_desk(service, "Ada") as ada, at_the_desk(service, "Bob") as bob:
        await lock(service, *((lineup, words) for lineup in many))
        for number, lineup in enumerate(many[:2]):
            await service.publish(asks(lineup, str(number), at=ASKED + timedelta(hours=number)))
        await service.publish(ev.AgentRegistered(agent_id=uuid4(), agent_name="Quiet", model="best-picks.bet/free"))
        await all_judged(service)
        await in_one_order_everywhere(service)
        await ada.get(HOME)
        seen: list[tuple[str, str]] = []
        turned = 0
        while True:
            seen += [(form.get("lineup", ""), form.get("pointer", "")) for form in ada.forms()]
            # Another operator judges what Ada has seen, on the page before.
            if turned < 2:
                await bob.get(HOME)
                assert (await bob.judge("approve")).status_code == 303
                turned += 1
            following = re.search(r'href="([^"]+)" rel="next" data-following', ada.page)
            if following is None:
                break
            await ada.get(html.unescape(following[1]))
        assert len(seen) == len(set(seen)) == 2 * len(many) + 1
        previous = re.search(r'href="([^"]+)" rel="prev" data-previous', ada.page)
        assert previous is not None
        last = len(ada.forms())
        await ada.get(html.unescape(previous[1]))
        shown = [(form.get("lineup", ""), form.get("pointer", "")) for form in ada.forms()]
        assert shown == seen[-last - desk.PAGE : -last]

        # After a judgement the operator is at what came behind it.
        await ada.get(HOME)
        third = ada.forms()[2]
        assert (await ada.judge("approve", which=1)).status_code == 303
        chosen = re.search(r'<article [^>]*id="current".*?</article>', ada.page, re.S)
        assert chosen is not None
        assert f'value="{third["lineup"]}"' in chosen[0]
        assert f'value="{third["pointer"]}"' in chosen[0]


@pytest.mark.rule("C8", "M4")
async def test_filters_narrow_the_queue_and_nothing_shows_before_its_lock(start: Start) -> None:
    one, two, early, named = uuid4(), uuid4(), uuid4(), uuid4()
    other = {"/thesis": "Write to 50%_off@evil.example or +1 202 555 0143.", "/picks/0/main_factor": "wind"}
    async with start("moderation") as service, at_the_desk(service, "Ada") as ada:
        await lock(service, (one, MIXED))
        await lock(service, (two, other), contest="2017-W02")
        await service.publish(opened("2017-W03"))
        await service.publish(submitted("2017-W03", MIXED, lineup_id=early))
        await service.publish(ev.AgentRegistered(agent_id=named, agent_name="winners.bet", model="m"))
        await service.publish(asks(two, None, "/thesis"))
        await all_judged(service)

        async def shown(**filters: str) -> set[str]:
            await ada.get(f"{HOME}?{Filters.read(filters).query()}")
            assert early.hex[:6] not in ada.page
            return {form.get("pointer", "name") for form in ada.forms()}

        assert await shown() == {FLAGGED, "/thesis", "name"}
        assert await shown(kind="thesis") == {"/thesis"}
        assert await shown(kind="name") == {"name"}
        assert await shown(kind="main_factor", show="all") == {"/picks/0/main_factor"}
        assert await shown(contest="2017-W01") == {FLAGGED}
        assert await shown(contest="2017-W01", kind="name") == set()
        assert await shown(contest="2017-W03", show="all") == set()
        assert await shown(asked="yes") == {"/thesis"}
        assert await shown(detector="personal-data") == {"/thesis"}
        assert await shown(agent=str(one)) == {FLAGGED}
        assert await shown(agent=one.hex[:6]) == {FLAGGED}
        assert await shown(agent="WINNERS") == {"name"}
        assert await shown(words="50%_OFF") == {"/thesis"}
        assert await shown(words="%") == {"/thesis"}
        assert await shown(words="winners") == {"name"}
        assert await shown(words="\\") == set()
        assert await shown(show="cleared", agent=str(one)) == {"name"} | set(CLEAN) - {FLAGGED}
        assert await shown(show="unchecked") == set()
        assert await shown(show="hand") == set()
        assert await shown(show="nonsense") == {FLAGGED, "/thesis", "name"}
        for text in ("a\x00b", "'", "x" * 5_000, "\u202e"):
            assert await shown(words=text, agent=text, contest=text, detector=text) == set()
        for place in ("x", "e30", "W10", "é", "W251bGwsMSwieCIsMV0"):
            assert (await ada.get(f"{HOME}?after={place}&before={place}&done={place}&did={place}")).status_code == 200
        for path in (
            f"{HOME}/case?lineup={early}&pointer=/thesis",
            f"{HOME}/case?lineup=x",
            f"{HOME}/case",
            f"{HOME}/x",
        ):
            assert (await ada.get(path)).status_code == 404


async def in_one_order_everywhere(service: Started) -> None:
    """The order of a key is the order of the database, and each place is between what stands before and behind it."""
    async with service.runtime.database.transaction() as connection:
        store = Store(connection)
        items = await store.desk(Filters(), limit=1_000)
        keys = [Key.of(item) for item in items]
        assert keys == sorted(keys)
        assert [item["review_sentence"] for item in items[:3]] == ["0", "1", None]
        for n in (0, 1, 2, len(keys) // 2, len(keys) - 1):
            behind = await store.desk(Filters(), after=keys[n], limit=1_000)
            before = await store.desk(Filters(), before=keys[n], limit=1_000)
            assert [Key.of(item) for item in (*before, *behind)] == keys[:n] + keys[n + 1 :]


HOSTILE = {
    "/thesis": '<script>alert(1)</script> "quoted" &amp; https://evil.example/?a=1&b=<i>\nsecond line\r\nthird',
    FLAGGED: "abc\u202edef\u200bghi\u2066 עברית \U000e0041\U000e0042 https://evil.example" + "e\u0301" * 40,
    "/picks/0/main_factor": "\u0000".replace("\u0000", "\u2029") + "x" * 900 + " https://evil.example",
}


@pytest.mark.rule("M4")
async def test_hostile_words_are_text_on_the_page_with_what_is_hidden_in_them_written_out(start: Start) -> None:
    lineup = uuid4()
    async with start("moderation") as service, at_the_desk(service, "Ada <b>Op</b>") as ada:
        await lock(service, (lineup, HOSTILE))
        for path in (HOME, f"{HOME}/case?lineup={lineup}&pointer=/thesis"):
            answer = await ada.get(path)
            assert answer.status_code == 200
            for raw in ("<script>alert", "<i>", "<b>Op", "\u202e", "\u200b", "\u2066", "\U000e0041", "\u2029", "\r"):
                assert raw not in ada.page
            for sign in (">RLO<", ">ZWSP<", ">LRI<", ">U+E0041<", ">PARA SEP<", ">CR<", "↵"):
                assert sign in ada.page
            plain = re.sub(r"<sup.*?</sup>|</?mark[^>]*>", "", ada.page)
            assert "&lt;script&gt;alert(1)&lt;/script&gt;" in plain
            assert "עברית" in ada.page, "a script of its own is no trick"
            assert 'style="' not in ada.page
            assert not re.search(r"<script(?![^>]*src=\"/operator/static/)", ada.page)
            assert not re.search(r"\son\w+=", ada.page)
            policy = answer.headers["content-security-policy"]
            assert "unsafe" not in policy
            assert "default-src 'none'" in policy
            assert answer.headers["cache-control"] == "no-store"
        marked = re.findall(r"<mark>([^<]*)</mark>", ada.page)
        assert any("evil.example" in html.unescape(text) for text in marked)


@pytest.mark.rule("M4")
@given(
    st.builds(
        Key,
        st.integers(-(2**62), 2**62),
        st.integers(-(2**62), 2**62),
        st.uuids(),
        st.from_regex(r"\A(/[a-z0-9_é]{1,9}){0,4}\Z"),
    ),
    st.text(max_size=60),
)
def test_a_place_in_the_queue_is_read_as_it_was_written_and_anything_else_is_none(key: Key, text: str) -> None:
    assert Key.read(key.write()) == key
    Key.read(text)


@given(
    st.builds(
        Filters,
        words=st.text(st.characters(min_codepoint=33, exclude_categories=["Cs", "Zs", "Zl", "Zp", "Cc"]), max_size=30),
        asked=st.booleans(),
    )
)
def test_filters_survive_their_address(filters: Filters) -> None:
    read = Filters.read({name: values[0] for name, values in parse_qs(filters.query()).items()})
    assert read == Filters.read({"words": filters.words, "asked": "yes" if filters.asked else ""})
