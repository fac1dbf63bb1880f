import asyncio
import csv
import hashlib
import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import rfc8785
from sqlalchemy import text

from common import events as ev
from common.topology import AGENT_BY_KEY
from contests import rulesets
from embedded.nats import Nats
from testkit.fixtures import Start, admin

from .helpers import (
    LOCK,
    OPENED,
    TICK,
    W04,
    cheapest,
    data,
    join,
    ok,
    player,
    pool_file,
    row,
    week_four,
    week_four_is_open,
)

# --- contests and pools ---------------------------------------------------------------------------


@pytest.mark.rule("C1", "C2", "C3")
async def test_a_contest_shows_its_rules_games_and_lock(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        one = await ok(await service.client.get(f"/api/v1/contests/{W04}"))
        assert one == await ok(await service.client.get("/api/v1/contests/current"))
        assert (one["state"], one["locks_at"], one["locked_at"]) == ("open", "2017-10-01T17:00:00Z", None)
        assert (one["cap"], one["ruleset"], len(one["games"]), len(one["roster"])) == (
            50_000,
            "draftkings-classic-1",
            15,
            9,
        )
        assert next(iter(one["scoring"]["per_unit"])) == "pass_yds"
        assert one["units"]["scoring"] == "hundredths of a point"
        assert one["units"]["projected_score"] == "points"
        listed = await ok(await service.client.get("/api/v1/contests"))
        assert [contest["contest"] for contest in listed["contests"]] == [W04]
        (opened,) = await service.published(ev.ContestOpened)
        assert (opened.locks_at, opened.opened_at, len(opened.players)) == (LOCK, OPENED, len(week_four().players))
        assert opened.scoring.per_unit == one["scoring"]["per_unit"]


@pytest.mark.rule("C3")
async def test_the_pool_comes_in_json_and_csv_with_a_tag_that_names_its_bytes(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        as_json = await service.client.get(f"/api/v1/contests/{W04}/pool")
        as_csv = await service.client.get(f"/api/v1/contests/{W04}/pool?format=csv")
        players = as_json.json()["players"]
        rows = list(csv.DictReader(io.StringIO(as_csv.text, newline="")))
        assert [dict(one, positions="/".join(one["positions"]), price=str(one["price"])) for one in players] == rows
        assert {one["player_id"]: one["price"] for one in players} == {
            p.player_id: p.price for p in week_four().players
        }
        assert as_json.headers["etag"] != as_csv.headers["etag"]
        tag = as_json.headers["etag"]
        for known in (tag, f'"other", {tag}', f"W/{tag}", "*"):
            again = await service.client.get(f"/api/v1/contests/{W04}/pool", headers={"If-None-Match": known})
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
        moved = {"game_id": "2017_04_WAS_KC", "kickoff": "2017-10-02T21:00:00-04:00"}
        await ok(await service.operator.post(f"/operator/api/v1/contests/{W04}/reschedule", json=moved))
        changed = await service.client.get(f"/api/v1/contests/{W04}/pool", headers={"If-None-Match": tag})
        assert changed.status_code == 200
        assert "2017-10-03T01:00:00Z" in changed.text
        assert (await service.client.get(f"/api/v1/contests/{W04}/pool?format=xml")).status_code == 422


@pytest.mark.rule("C1")
async def test_an_unknown_contest_is_refused_with_the_known_ones(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        (agent,) = await join(service, 1)
        for name in ("2017-W05", "2017-W99", "w4", "2017-W04%00", "x" * 500):
            for answer in (
                await service.client.get(f"/api/v1/contests/{name}"),
                await service.client.get(f"/api/v1/contests/{name}/pool"),
                await agent.submit(cheapest(), name),
                await agent.get(f"{name}/lineups/mine"),
            ):
                assert (answer.status_code, answer.json()["code"]) == (404, "contest-unknown")
                assert answer.json()["known"] == [W04]
                assert len(answer.text) < 1000


@pytest.mark.rule("C3", "C4", "C5", "D2")
async def test_the_skill_file_tells_the_rules_of_the_contest_of_now(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        before = await service.client.get("/skill.md")
        assert "No contest has been opened yet" in before.text
        await week_four_is_open(service)
        answer = await service.client.get("/skill.md")
        assert answer.headers["content-type"].startswith("text/markdown")
        text = answer.text
        for said in (
            "**2017-W04**, locks at 2017-10-01T17:00:00Z",
            "at most **50000**",
            "| FLEX | RB, WR, TE |",
            "at least 3 points for each 1,000 of price",
            "its final score is at least the projected one",
            "pass_yds 0.04",
            "pass_yds of 300 or more: 3.00",
            "0: 10.00, 1 to 6: 7.00",
            "35 or more: -4.00",
            "1 to 2000 characters",
            "published under your name only once a person has claimed you",
            "goes into the research dataset",
            "`player-ineligible`",
        ):
            assert said in text, said
        (agent,) = await join(service, 1)
        example = json.loads(text.split("```json\n")[1].split("```")[0])
        assert (await ok(await agent.submit(example, call="/check")))["valid"] is True
        await service.move_clock(LOCK)
        locked = (await service.client.get("/skill.md")).text
        assert "locked since 2017-10-01T17:00:00Z" in locked
        assert "It takes no more lineups, and none is open yet" in locked


async def test_the_current_contest_is_the_next_to_lock_and_else_the_last_that_locked(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        assert (await service.client.get("/api/v1/contests/current")).status_code == 404
        await service.move_clock(OPENED)
        await ok(await service.operator.post("/operator/api/v1/contests/import", content=data("pool_2017_dk.csv.gz")))
        for week in ("2017-W05", "2017-W04"):
            await ok(await service.operator.post(f"/operator/api/v1/contests/{week}/open"))
        for now, expected in ((OPENED, W04), (LOCK, "2017-W05"), (LOCK + timedelta(days=7), "2017-W05")):
            await service.move_clock(now)
            assert (await ok(await service.client.get("/api/v1/contests/current")))["contest"] == expected
        too_late = await service.operator.post("/operator/api/v1/contests/2017-W03/open")
        assert (too_late.status_code, too_late.json()["code"]) == (409, "contest-locked")


# --- submissions --------------------------------------------------------------------------------


@pytest.mark.rule("C4", "C6", "C10", "M3")
async def test_a_submission_is_kept_receipted_and_told_to_moderation_alone(start: Start) -> None:
    """Nothing but contests runs here: intake waits for nobody."""
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        (agent,) = await join(service, 1, marks=ev.Marks(house=True, cohort=True))
        lineup = cheapest()
        answer = await agent.submit(lineup)
        assert answer.status_code == 201
        given = answer.json()
        assert (given["revision"], given["locks_at"], given["accepted_at"]) == (
            1,
            "2017-10-01T17:00:00Z",
            "2017-09-28T12:00:00Z",
        )
        committed = {
            "agent": str(agent.agent_id),
            "contest": W04,
            "revision": 1,
            "model": "openai/gpt-5",
            "accepted_at": given["accepted_at"],
            "salts": given["salts"],
            "body": lineup,
        }
        assert given["receipt"] == hashlib.sha256(rfc8785.dumps(committed)).hexdigest()
        mine = await ok(await agent.get(f"{W04}/lineups/mine"))
        assert mine == {**given, "body": lineup}
        await service.settle()
        (submitted,) = await service.published(ev.LineupSubmitted)
        assert {words.pointer: words.text for words in submitted.words} == {
            "/thesis": lineup["thesis"],
            **{
                f"/picks/{n}/{name}": lineup["picks"][n][name]
                for n in range(9)
                for name in ("rationale", "main_factor")
            },
        }
        assert {words.pointer: words.salt for words in submitted.words} == {
            pointer: salt for pointer, salt in given["salts"].items() if pointer
        }
        assert submitted.locks_at == LOCK


@pytest.mark.rule("C6", "A3")
async def test_submitting_again_adds_a_revision_with_the_model_of_its_time(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        (agent,) = await join(service, 1)
        assert (await agent.submit(cheapest(number=1))).json()["revision"] == 1
        changed = ev.AgentUpdated(agent_id=agent.agent_id, agent_name="a", model="other/model")
        await service.publish(changed, version=2)
        await service.settle()
        assert (await agent.submit(cheapest(number=2))).json()["revision"] == 2
        kept = (await ok(await agent.get(f"{W04}/lineups/mine/revisions")))["revisions"]
        assert [(one["revision"], one["model"], one["body"]) for one in kept] == [
            (1, "openai/gpt-5", cheapest(number=1)),
            (2, "other/model", cheapest(number=2)),
        ]
        assert len({one["lineup"] for one in kept}) == 1


@pytest.mark.rule("C6")
async def test_the_database_refuses_to_change_or_remove_a_revision(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        (agent,) = await join(service, 1)
        await agent.submit(cheapest())
        for statement in ("UPDATE revisions SET model = 'x'", "DELETE FROM revisions", "TRUNCATE revisions"):
            with pytest.raises(Exception, match="never changed or removed"):
                async with service.runtime.database.transaction() as connection:
                    await connection.execute(text(statement))


@pytest.mark.rule("C5")
async def test_a_refusal_lists_every_violation_stores_nothing_and_the_dry_run_says_the_same(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        (agent,) = await join(service, 1)
        lineup = cheapest()
        lineup["picks"][0] |= {"confidence": 2, "rationale": "", "player_id": "nobody"}
        del lineup["picks"][8]
        del lineup["thesis"]
        refused = await agent.submit(lineup)
        assert (refused.status_code, refused.headers["content-type"]) == (422, "application/problem+json")
        problem = refused.json()
        assert problem["code"] == "lineup-invalid"
        assert sorted((one["code"], one["pointer"]) for one in problem["violations"]) == [
            ("number-out-of-range", "/picks/0/confidence"),
            ("player-unknown", "/picks/0/player_id"),
            ("reasoning-missing", "/picks/0/rationale"),
            ("reasoning-missing", "/thesis"),
            ("slot-missing", "/picks"),
        ]
        assert all(set(one) == {"code", "pointer", "detail", "value", "limit"} for one in problem["violations"])
        assert (await agent.submit(lineup, call="/check")).json() == problem
        assert (await agent.get(f"{W04}/lineups/mine")).json()["code"] == "lineup-missing"
        dry = await agent.submit(cheapest(), call="/check")
        assert (dry.status_code, set(dry.json())) == (200, {"valid", "total_price", "locks_at"})
        assert (await ok(await agent.get(f"{W04}/lineups/mine/revisions")))["revisions"] == []
        await service.settle()
        assert await service.published(ev.LineupSubmitted) == []


@pytest.mark.rule("C5")
async def test_worst_bodies_get_a_clear_refusal(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        (agent,) = await join(service, 1)
        for sent in (b"", b"nonsense", b"[" * 9999, b'{"thesis": "\\ud800"}', b"\xff"):
            answer = await agent.submit(sent)
            assert (answer.status_code, answer.json()["code"]) == (422, "lineup-invalid")
        huge = await agent.submit(b" " * (600 * 1024))
        assert (huge.status_code, huge.json()["code"], huge.json()["limit"]) == (413, "body-too-large", 512 * 1024)


@pytest.mark.rule("C9")
async def test_a_repeated_submission_gets_the_first_answer_even_after_the_lock(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        first_agent, other_agent = await join(service, 1, 2)
        lineup = cheapest()
        first = await first_agent.submit(lineup, key="k")
        spaced = json.dumps(dict(reversed(lineup.items())), indent=3).encode()
        assert (await first_agent.submit(spaced, key="k")).json() == first.json()
        reused = await first_agent.submit(cheapest(number=1), key="k")
        assert (reused.status_code, reused.json()["code"]) == (409, "idempotency-key-reused")
        assert (await other_agent.submit(cheapest(number=1), key="k")).json()["revision"] == 1
        await service.move_clock(LOCK)
        late = await first_agent.submit(lineup, key="k")
        assert (late.status_code, late.json()) == (201, first.json())
        assert (await first_agent.submit(lineup, key="new")).json()["code"] == "contest-locked"
        assert len((await ok(await first_agent.get(f"{W04}/lineups/mine/revisions")))["revisions"]) == 1
        assert (await first_agent.submit(lineup, key="k" * 256)).status_code == 422


@pytest.mark.rule("C6", "C9")
async def test_concurrent_submissions_of_one_agent_get_revisions_in_one_order(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        (agent,) = await join(service, 1)
        lineups = [cheapest(number=number) for number in range(12)]
        answers = await asyncio.gather(*(agent.submit(lineup) for lineup in lineups))
        assert sorted(answer.json()["revision"] for answer in answers) == list(range(1, 13))
        kept = (await ok(await agent.get(f"{W04}/lineups/mine/revisions")))["revisions"]
        assert {one["revision"]: one["receipt"] for one in kept} == {
            a.json()["revision"]: a.json()["receipt"] for a in answers
        }
        same = await asyncio.gather(*(agent.submit(lineups[0], key="once") for _ in range(12)))
        assert {answer.text for answer in same} == {same[0].text}
        assert same[0].json()["revision"] == 13


# --- who calls ------------------------------------------------------------------------------------


@pytest.mark.rule("A1")
async def test_a_call_without_a_key_is_refused_without_asking_anybody(start: Start) -> None:
    """The registry is not there: whoever had to ask it would say 503."""
    async with start("contests", clock="replay") as service:
        for given in (None, "", "Bearer", "Bearer x", "Basic mafl_sk_a", "Bearer mafl_sk_", "Bearer mafl_sk_\u00e9"):
            headers = {} if given is None else {b"Authorization": given.encode("latin-1")}
            for call in ("lineups", "lineups/check"):
                answer = await service.client.post(f"/api/v1/contests/{W04}/{call}", content=b"{}", headers=headers)
                assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
                assert answer.headers["www-authenticate"] == "Bearer"


async def test_an_unknown_key_is_asked_for_at_the_registry_and_remembered(start: Start, nats_server: Nats) -> None:
    async with start("contests", clock="replay") as service, admin(nats_server) as client:
        await week_four_is_open(service)
        fresh, nobody = player(service, 1), player(service, 2)
        asked: list[str] = []

        async def answer(message: Any) -> None:
            key_hash = json.loads(message.data)["key_hash"]
            asked.append(key_hash)
            state = ev.AgentState(agent_id=fresh.agent_id, agent_name="fresh", model="new/model").model_dump(
                mode="json"
            )
            found = {**state, "version": 3, "key_version": 2} if key_hash == fresh.key_hash else None
            await message.respond(json.dumps({"agent": found}).encode())

        registry = await client.subscribe(AGENT_BY_KEY, cb=answer)
        await client.flush()
        assert (await ok(await fresh.submit(cheapest())))["model"] == "new/model"
        assert (await nobody.submit(cheapest())).status_code == 401
        assert asked == [fresh.key_hash, nobody.key_hash]
        await registry.unsubscribe()
        await client.flush()
        # The registry is down: who is known plays on; of whom it cannot say anything, it says so.
        assert (await ok(await fresh.submit(cheapest(number=1))))["revision"] == 2
        down = await nobody.submit(cheapest())
        assert (down.status_code, down.json()["code"], down.headers["retry-after"]) == (503, "unavailable", "1")
        # What the registry said is not undone by its older events, which arrive now.
        await service.publish(ev.AgentKeyChanged(agent_id=fresh.agent_id, key_hash="0" * 64), version=1)
        await service.publish(
            ev.AgentRegistered(agent_id=fresh.agent_id, agent_name="fresh", model="old/model"), version=1
        )
        await service.settle()
        assert (await ok(await fresh.submit(cheapest(number=2))))["model"] == "new/model"


@pytest.mark.rule("A3")
async def test_a_changed_key_replaces_the_old_one(start: Start, nats_server: Nats) -> None:
    async with start("contests", clock="replay") as service, admin(nats_server) as client:

        async def knows_nobody(message: Any) -> None:
            await message.respond(b'{"agent": null}')

        await client.subscribe(AGENT_BY_KEY, cb=knows_nobody)
        await client.flush()
        await week_four_is_open(service)
        (agent,) = await join(service, 1)
        rotated = player(service, 99)
        await service.publish(ev.AgentKeyChanged(agent_id=agent.agent_id, key_hash=rotated.key_hash), version=2)
        await service.settle()
        assert (await agent.submit(cheapest())).status_code == 401
        assert (await ok(await rotated.submit(cheapest())))["agent"] == str(agent.agent_id)


# --- the operator -----------------------------------------------------------------------------------


async def test_the_operators_calls_take_the_operators_token(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        for method, path in (("GET", "contests"), ("GET", "clock"), ("PUT", "clock"), ("POST", "contests/import")):
            assert (await service.client.request(method, f"/operator/api/v1/{path}")).status_code == 401


@pytest.mark.rule("C11")
async def test_an_import_is_all_or_nothing_and_can_be_tried_first(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        url = "/operator/api/v1/contests/import"
        await service.move_clock(OPENED)
        whole = data("pool_2017_dk.csv.gz")
        dry = await ok(await service.operator.post(url, content=whole, params={"dry_run": True}))
        assert (dry["dry_run"], dry["rows"], dry["offered"], len(dry["weeks"])) == (True, 6828, 6195, 17)
        assert (await ok(await service.operator.get("/operator/api/v1/contests")))["contests"] == []
        assert set((await ok(await service.operator.post(url, content=whole)))["outcomes"].values()) == {"created"}
        assert set((await ok(await service.operator.post(url, content=whole)))["outcomes"].values()) == {"unchanged"}
        listed = (await ok(await service.operator.get("/operator/api/v1/contests")))["contests"]
        assert [(one["contest"], one["state"]) for one in listed][:1] == [("2017-W01", "draft")]
        assert len(listed) == 17
        assert (await ok(await service.client.get("/api/v1/contests")))["contests"] == []
        changed = pool_file(row(season=2017, week=4, kickoff="2017-10-01T13:00:00-04:00"))
        assert (await ok(await service.operator.post(url, content=changed)))["outcomes"] == {W04: "replaced"}
        await ok(await service.operator.post(url, content=whole, params={"season": 2017, "week": 4}))
        await ok(await service.operator.post(f"/operator/api/v1/contests/{W04}/open"))
        (one,) = await join(service, 1)
        await ok(await one.submit(cheapest()))
        fourth_and_fifth = changed + row(season=2017, week=5, game_id="x", kickoff="2017-10-08T13:00:00-04:00").encode()
        refused = await service.operator.post(url, content=fourth_and_fifth)
        assert (refused.status_code, refused.json()["code"], refused.json()["contest"]) == (409, "contest-exists", W04)
        assert (await ok(await service.operator.post(url, content=whole)))["outcomes"][W04] == "unchanged"


@pytest.mark.rule("C1")
async def test_a_contest_can_cover_other_days(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        url = "/operator/api/v1/contests/import?dry_run=true&season=2017&week=4"
        whole = data("pool_2017_dk.csv.gz")
        sunday_only = await ok(await service.operator.post(f"{url}&days=Sunday", content=whole))
        assert {game["weekday"] for game in sunday_only["games"]} == {"Sunday"}
        thursday_too = await ok(await service.operator.post(f"{url}&days=Sunday&days=Thursday", content=whole))
        assert {game["weekday"] for game in thursday_too["games"]} == {"Sunday", "Thursday"}
        assert (await service.operator.post(f"{url}&days=Someday", content=whole)).status_code == 422


@pytest.mark.rule("C11")
async def test_a_file_with_a_bad_row_imports_nothing_and_names_line_and_column(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        url = "/operator/api/v1/contests/import"
        refused = await service.operator.post(url, content=pool_file(row(), row(salary="much"), row(week="x")))
        assert (refused.status_code, refused.json()["code"]) == (422, "file-malformed")
        assert [(one["line"], one["column"]) for one in refused.json()["faults"]] == [(3, "salary"), (4, "week")]
        assert (await service.operator.post(url, content=b"")).status_code == 422
        thursday = pool_file(row(kickoff="2026-10-01T20:15:00-04:00"))
        assert (await service.operator.post(url, content=thursday)).json()["code"] == "nothing-to-play"
        unknown = await service.operator.post(url, content=pool_file(row()), params={"ruleset": "mine"})
        assert (unknown.json()["code"], unknown.json()["known"]) == ("ruleset-unknown", list(rulesets.names()))
        assert (await ok(await service.operator.get("/operator/api/v1/contests")))["contests"] == []


@pytest.mark.rule("C8")
async def test_the_operator_sees_totals_and_which_agents_have_arrived(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        one, two = await join(service, 1, 2, marks=ev.Marks(house=True))
        for agent, number in ((one, 0), (one, 1), (two, 2)):
            await ok(await agent.submit(cheapest(number=number)))
        (contest,) = (await ok(await service.operator.get("/operator/api/v1/contests")))["contests"]
        assert (contest["lineups"], contest["revisions"], contest["players"]) == (2, 3, 401)
        agents = (await ok(await service.operator.get("/operator/api/v1/contests/agents")))["agents"]
        assert {agent["agent_id"] for agent in agents} == {str(one.agent_id), str(two.agent_id)}
        assert agents[0]["marks"] == {"house": True, "cohort": False, "reference": False}


async def test_the_replay_clock_never_goes_backwards_and_the_real_one_cannot_be_moved(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await service.move_clock(LOCK)
        back = await service.operator.put("/operator/api/v1/clock", json={"now": (LOCK - TICK).isoformat()})
        assert (back.status_code, back.json()["code"], back.json()["now"]) == (
            409,
            "clock-backwards",
            "2017-10-01T17:00:00Z",
        )
        naive = await service.operator.put("/operator/api/v1/clock", json={"now": "2017-10-01T17:00:00"})
        assert naive.status_code == 422
        await service.move_clock(LOCK + TICK)
        told = await service.envelopes(ev.ClockMoved)
        assert [(envelope.aggregateversion, moved.now) for envelope, moved in told] == [(1, LOCK), (2, LOCK + TICK)]
    async with start("contests") as service:
        refused = await service.operator.put("/operator/api/v1/clock", json={"now": LOCK.isoformat()})
        assert (refused.status_code, refused.json()["code"]) == (409, "clock-not-replay")
        clock = await ok(await service.operator.get("/operator/api/v1/clock"))
        assert clock["clock"] == "system"
        assert abs(datetime.fromisoformat(clock["now"]) - datetime.now(UTC)) < timedelta(seconds=30)
