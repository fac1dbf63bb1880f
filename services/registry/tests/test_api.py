import asyncio
import json
import uuid
from typing import Any

import httpx
import nats
import pytest
from sqlalchemy import func, select, text, update

from common import events as ev
from common.db import OUTBOX
from common.topology import AGENT_BY_KEY
from registry import commands, domain
from registry.store import AGENTS, ANSWERS, Store
from testkit.fixtures import Start, Started

AGENT = {"name": "Alice", "model": "openai/gpt-5"}


async def register(service: Started, *, idempotency_key: str | None = None, **fields: Any) -> httpx.Response:
    headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
    answer: httpx.Response = await service.client.post("/api/v1/agents", json={**AGENT, **fields}, headers=headers)
    return answer


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


async def me(service: Started, key: str) -> httpx.Response:
    answer: httpx.Response = await service.client.get("/api/v1/agents/me", headers=bearer(key))
    return answer


async def count(service: Started, table: Any) -> int:
    async with service.runtime.database.transaction() as connection:
        found: int = (await connection.execute(select(func.count()).select_from(table))).scalar_one()
        return found


def path_of(claim_url: str) -> str:
    return "/claim/" + claim_url.rpartition("/claim/")[2]


@pytest.mark.rule("A1", "A4", "D2")
async def test_one_request_registers_and_answers_with_key_claim_link_and_deal(start: Start) -> None:
    async with start("registry") as service:
        answer = await register(service, description="Plays by\nthe numbers", harness="loop", provider="me")
        assert answer.status_code == 201, answer.text
        body = answer.json()
        assert body["agent"].items() >= {"name": "Alice", "model": "openai/gpt-5", "status": "unclaimed"}.items()
        assert uuid.UUID(body["agent"]["id"])
        assert domain.well_formed(body["api_key"])
        assert body["api_key"].startswith("mafl_sk_")
        assert body["claim_url"].startswith(service.settings.public_url + "/claim/")
        assert body["deal"] == domain.DEAL
        assert answer.headers["cache-control"] == "no-store"
        assert (await me(service, body["api_key"])).json() == body["agent"]


@pytest.mark.rule("A1")
async def test_every_fault_of_a_registration_is_listed_and_nothing_is_stored(start: Start) -> None:
    async with start("registry") as service:
        answer = await register(service, name="a\0b", model=5, description="x" * 1001, harness=[], colour="red")
        assert answer.status_code == 422
        assert answer.headers["content-type"] == "application/problem+json"
        assert {fault["pointer"] for fault in answer.json()["violations"]} == {
            "/name",
            "/model",
            "/description",
            "/harness",
            "/colour",
        }
        assert all(fault["detail"] and fault["code"] for fault in answer.json()["violations"])
        assert await count(service, AGENTS) == 0
        assert await count(service, OUTBOX) == 0


@pytest.mark.rule("A1", "A2")
async def test_a_taken_name_is_a_conflict_that_names_the_field(start: Start) -> None:
    async with start("registry") as service:
        assert (await register(service)).status_code == 201
        answer = await register(service, name="ＡＬＩＣＥ")
        metrics = (await service.client.get("/metrics")).text
        for outcome in ("created", "refused"):
            assert f'mafl_registrations_total{{outcome="{outcome}"}} 1.0' in metrics
        assert answer.status_code == 409
        assert answer.json()["code"] == "name-taken"
        assert answer.json()["violations"][0]["pointer"] == "/name"


@pytest.mark.rule("A1")
async def test_every_way_to_be_refused_is_counted_once(start: Start) -> None:
    async with start("registry") as service:
        service.runtime.settings.limits["registrations"] = "5/3600"
        answers = [
            await register(service),
            await register(service),
            await register(service, name="x"),
            await register(service, description="x" * 40_000),
            await register(service, name="Bob", idempotency_key="k" * 256),
            await register(service, name="Carol"),
        ]
        assert [answer.status_code for answer in answers] == [201, 409, 422, 413, 422, 429]
        metrics = (await service.client.get("/metrics")).text
        assert 'mafl_registrations_total{outcome="created"} 1.0' in metrics
        assert 'mafl_registrations_total{outcome="refused"} 5.0' in metrics


@pytest.mark.rule("A1")
async def test_a_replay_gives_the_same_agent_with_a_fresh_key_and_link_and_the_old_ones_are_dead(start: Start) -> None:
    async with start("registry") as service:
        first = (await register(service, idempotency_key="9f1c")).json()
        # Written otherwise, the same in content.
        again = await service.client.post(
            "/api/v1/agents",
            content=json.dumps({"model": " openai/gpt-5", "name": "Alice "}),
            headers={"Idempotency-Key": "9f1c"},
        )
        assert again.status_code == 201, again.text
        second = again.json()
        assert second["agent"] == first["agent"]
        assert second["api_key"] != first["api_key"]
        assert (await me(service, first["api_key"])).status_code == 401
        assert (await me(service, second["api_key"])).status_code == 200
        assert (await service.client.get(path_of(first["claim_url"]))).status_code == 404
        assert (await service.client.get(path_of(second["claim_url"]))).status_code == 200
        assert await count(service, AGENTS) == 1
        await service.settle()
        assert len(await service.published(ev.AgentRegistered)) == 1
        keys = await service.envelopes(ev.AgentKeyChanged)
        assert [envelope.aggregateversion for envelope, _ in keys] == [1, 2]
        assert keys[-1][1].key_hash == domain.digest(second["api_key"])


@pytest.mark.rule("A1")
async def test_the_same_idempotency_key_with_another_body_is_a_conflict(start: Start) -> None:
    async with start("registry") as service:
        first = (await register(service, idempotency_key="9f1c")).json()
        answer = await register(service, idempotency_key="9f1c", name="Bob")
        assert answer.status_code == 409
        assert answer.json()["code"] == "idempotency-key-reused"
        assert (await me(service, first["api_key"])).status_code == 200
        assert (await register(service, name="Bob")).status_code == 201


@pytest.mark.rule("A1")
async def test_a_replay_ends_after_24_hours_and_the_key_in_use_stays(start: Start) -> None:
    async with start("registry") as service:
        first = (await register(service, idempotency_key="9f1c")).json()
        async with service.runtime.database.transaction() as connection:
            await connection.execute(
                update(ANSWERS).values(answered_at=ANSWERS.c.answered_at - text("interval '24 hours 1 second'"))
            )
        answer = await register(service, idempotency_key="9f1c")
        assert answer.json()["code"] == "name-taken"
        assert (await me(service, first["api_key"])).status_code == 200
        async with service.runtime.database.transaction() as connection:
            now = await service.runtime.clock.now(connection)
            assert await Store(connection).forget(before=now - domain.REPLAYABLE_FOR) == 1


@pytest.mark.rule("A1", "A5")
async def test_a_replay_never_takes_a_claimed_or_rekeyed_agent_from_its_owner(start: Start) -> None:
    async with start("contests"), start("registry") as service:
        claimed = (await register(service, idempotency_key="one")).json()
        await service.operator.post(f"/operator/api/v1/agents/{claimed['agent']['id']}/claim", json={"owner": "Ann"})
        rekeyed = (await register(service, name="Bob", idempotency_key="two")).json()
        new = (await service.client.post("/api/v1/agents/me/key", headers=bearer(rekeyed["api_key"]))).json()
        for answer in (
            await register(service, idempotency_key="one"),
            await register(service, name="Bob", idempotency_key="two"),
        ):
            assert answer.status_code == 409
            assert answer.json()["code"] == "answer-superseded"
            assert "api_key" not in answer.text
        assert (await me(service, claimed["api_key"])).status_code == 200
        assert (await me(service, new["api_key"])).status_code == 200


@pytest.mark.rule("A1", "A2")
async def test_of_100_concurrent_registrations_of_one_name_one_succeeds(start: Start) -> None:
    async with start("registry") as service:
        names = ["alice", "ALICE", "Alice", "ａｌｉｃｅ"]
        answers = await asyncio.gather(*(register(service, name=names[n % 4]) for n in range(100)))
        assert sorted(answer.status_code for answer in answers) == [201] + [409] * 99
        assert await count(service, AGENTS) == 1
        await service.settle()
        assert len(await service.published(ev.AgentRegistered)) == 1


@pytest.mark.rule("A1")
async def test_concurrent_identical_requests_give_one_agent_and_one_working_key(start: Start) -> None:
    async with start("registry") as service:
        answers = await asyncio.gather(*(register(service, idempotency_key="same") for _ in range(30)))
        assert {answer.status_code for answer in answers} == {201}
        assert len({answer.json()["agent"]["id"] for answer in answers}) == 1
        keys = [answer.json()["api_key"] for answer in answers]
        assert len(set(keys)) == 30
        alive = [key for key in keys if (await me(service, key)).status_code == 200]
        assert len(alive) == 1


@pytest.mark.rule("A1")
async def test_lost_answers_burn_no_name_and_lose_no_agent(start: Start) -> None:
    async with start("registry") as service:

        async def with_lost_answers(number: int) -> str:
            for _ in range(number % 4):
                await register(service, name=f"agent {number}", idempotency_key=f"key-{number}")
            last = await register(service, name=f"agent {number}", idempotency_key=f"key-{number}")
            return str(last.json()["api_key"])

        keys = await asyncio.gather(*(with_lost_answers(number) for number in range(60)))
        assert await count(service, AGENTS) == 60
        answers = [await me(service, key) for key in keys]
        assert [answer.json()["name"] for answer in answers] == [f"agent {number}" for number in range(60)]


@pytest.mark.rule("A1")
async def test_two_copies_on_one_database_give_one_agent(start: Start) -> None:
    async with start("registry") as one, start("registry", database_url=one.database_url) as two:
        answers = await asyncio.gather(
            *(register(copy, idempotency_key="same") for _ in range(10) for copy in (one, two))
        )
        assert {answer.status_code for answer in answers} == {201}
        assert len({answer.json()["agent"]["id"] for answer in answers}) == 1


WORST: list[tuple[bytes, int]] = [
    (b"", 422),
    (b"{", 422),
    (b"[]", 422),
    (b"null", 422),
    (b"[" * 20_000, 422),
    (b'"text"', 422),
    (b'{"name": "abc"}', 422),
    (b'{"name": "\xff\xfe\xfd", "model": "m"}', 422),
    (b'{"name": "ab\\u0000c", "model": "m"}', 422),
    (b'{"name": "ab\\ud800c", "model": "m"}', 422),
    (b'{"name": "abc", "model": "m\\u0000"}', 422),
    (b'{"name": "abc\\u202e", "model": "m"}', 422),
    (b'{"name": ["abc"], "model": {"a": 1}}', 422),
    (b'{"name": 1e999, "model": NaN}', 422),
    (b'{"name": 123456789012345678901234567890, "model": true}', 422),
    (b'{"name": "abc", "model": "m", "description": 0}', 422),
    (b'{"name": "house", "model": "m"}', 422),
    (b'{"name": "unclaimed-abcdefgh2345", "model": "m"}', 422),
    (b'{"name": "' + b"a" * 1_000_000 + b'", "model": "m"}', 413),
    ('{"name": "🏈🏈🏈", "model": "m"}'.encode(), 422),
    ('{"name": "קבוצה 7", "model": "m"}'.encode(), 201),
    ('{"name": "קבוצה 8", "model": "דגם"}'.encode(), 422),
    (b'{"name": "abc", "model": "see https://example.com"}', 422),
    ('{"name": "touchdown 🏈", "model": "m"}'.encode(), 201),
    (b'{"name": "Robert\'); DROP--", "model": "m"}', 422),
    (b'{"name": "Robert\') DROP--", "model": "m"}', 201),
]


@pytest.mark.rule("A1", "A2")
async def test_the_worst_input_gets_a_problem_document_and_never_a_server_error(start: Start) -> None:
    async with start("registry") as service:
        for body, status in WORST:
            answer = await service.client.post("/api/v1/agents", content=body)
            assert answer.status_code == status, (body[:60], answer.text)
            if status != 201:
                assert answer.headers["content-type"] == "application/problem+json"
                assert len(answer.content) < 20_000
        accepted = sum(status == 201 for _, status in WORST)
        assert await count(service, AGENTS) == accepted


@pytest.mark.rule("A1")
@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer ", "Basic abc", "Bearer mafl_sk_short", "Bearer mafl_sk_" + "a" * 49, "Bearer \xff\x00\xe9"],
)
async def test_no_key_or_a_wrong_one_is_refused_by_every_call_of_an_agent(start: Start, authorization: str) -> None:
    async with start("registry") as service:
        headers = [(b"authorization", authorization.encode("latin-1"))]
        for method, path in (
            ("GET", "/api/v1/agents/me"),
            ("PATCH", "/api/v1/agents/me"),
            ("POST", "/api/v1/agents/me/key"),
        ):
            answer = await service.client.request(method, path, headers=headers)
            assert answer.status_code == 401, answer.text
            assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.rule("A3")
async def test_an_agent_changes_its_description_harness_and_model_and_not_its_name(start: Start) -> None:
    async with start("registry") as service:
        body = (await register(service, harness="old", description="kept")).json()
        headers = bearer(body["api_key"])
        changed = await service.client.patch(
            "/api/v1/agents/me", json={"model": "gpt-6", "harness": None}, headers=headers
        )
        assert changed.status_code == 200, changed.text
        assert changed.json() == {**body["agent"], "model": "gpt-6", "harness": None}
        same = await service.client.patch("/api/v1/agents/me", json={"model": "gpt-6"}, headers=headers)
        assert same.json() == changed.json()
        wrong = await service.client.patch("/api/v1/agents/me", json={"model": ""}, headers=headers)
        assert wrong.status_code == 422
        assert {fault["pointer"] for fault in wrong.json()["violations"]} == {"/model"}
        refused = await service.client.patch("/api/v1/agents/me", json={"name": "Other", "model": "x"}, headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (409, "name-fixed")
        await service.settle()
        updates = await service.envelopes(ev.AgentUpdated)
        assert [(envelope.aggregateversion, event.model) for envelope, event in updates] == [(2, "gpt-6")]
        assert updates[0][1].description == "kept"
        assert updates[0][1].harness is None


@pytest.mark.rule("A3")
async def test_a_new_key_works_and_the_old_one_is_dead(start: Start) -> None:
    async with start("contests"), start("registry") as service:
        old = (await register(service)).json()["api_key"]
        answer = await service.client.post("/api/v1/agents/me/key", headers=bearer(old))
        new = answer.json()["api_key"]
        assert (await me(service, old)).status_code == 401
        assert (await me(service, new)).status_code == 200
        assert (await service.client.post("/api/v1/agents/me/key", headers=bearer(old))).status_code == 401


@pytest.mark.rule("A3")
async def test_a_lost_answer_to_a_rotation_locks_nobody_out(start: Start) -> None:
    async with start("contests"), start("registry") as service:
        old = (await register(service)).json()["api_key"]

        async def rotate(key: str, idempotency_key: str = "turn") -> httpx.Response:
            headers = {**bearer(key), "Idempotency-Key": idempotency_key}
            answer: httpx.Response = await service.client.post("/api/v1/agents/me/key", headers=headers)
            return answer

        lost = (await rotate(old)).json()["api_key"]
        got = (await rotate(old)).json()["api_key"]
        assert (await me(service, lost)).status_code == 401
        assert (await me(service, got)).status_code == 200
        # Another idempotency key makes it another request, and the old key is dead.
        assert (await rotate(old, "other")).status_code == 401
        # Once the agent has moved on, the old key is no way back in.
        newest = (await rotate(got, "next")).json()["api_key"]
        assert (await rotate(old)).status_code == 409
        assert (await me(service, newest)).status_code == 200


@pytest.mark.rule("A3")
async def test_of_concurrent_rotations_with_one_key_one_succeeds(start: Start) -> None:
    async with start("contests"), start("registry") as service:
        key = (await register(service)).json()["api_key"]
        answers = await asyncio.gather(
            *(service.client.post("/api/v1/agents/me/key", headers=bearer(key)) for _ in range(20))
        )
        assert sorted(answer.status_code for answer in answers) == [200] + [401] * 19


@pytest.mark.rule("A4", "A5")
async def test_the_claim_page_shows_the_agent_and_what_claiming_does(start: Start) -> None:
    async with start("registry") as service:
        body = (await register(service, name="Ann & 'Co'", description="A <b>bold</b>\nagent")).json()
        page = await service.client.get(path_of(body["claim_url"]))
        assert page.status_code == 200
        assert "Ann &amp; &#39;Co&#39;" in page.text
        assert "openai/gpt-5" in page.text
        assert "<b>bold</b>" not in page.text
        assert "reasoning is published after each lock" in page.text
        assert "mafl agent claim" in page.text
        assert page.headers["cache-control"] == "no-store"
        assert page.headers["referrer-policy"] == "same-origin"
        assert "default-src 'none'" in page.headers["content-security-policy"]


@pytest.mark.rule("A6")
async def test_a_used_or_unknown_claim_link_says_so_and_shows_nothing_else(start: Start) -> None:
    async with start("registry") as service:
        body = (await register(service)).json()
        await service.operator.post(f"/operator/api/v1/agents/{body['agent']['id']}/claim", json={"owner": "Ann"})
        used = await service.client.get(path_of(body["claim_url"]))
        assert used.status_code == 410
        assert "has been used" in used.text
        unknown = domain.secret(domain.CLAIM_PREFIX, bytes(32))
        for path in (f"/claim/{unknown}", "/claim/x", "/claim/a/b", "/claim/%00", "/claim/" + "é" * 300):
            page = await service.client.get(path)
            assert page.status_code == 404, path
            assert "not known" in page.text
            assert "Alice" not in page.text
        assert "Alice" not in used.text
        assert "gpt-5" not in used.text
        # Released, the link stays used.
        await service.operator.post(f"/operator/api/v1/agents/{body['agent']['id']}/release")
        assert (await service.client.get(path_of(body["claim_url"]))).status_code == 410


@pytest.mark.rule("A5")
async def test_an_operator_claims_and_releases_by_word_and_the_same_word_is_the_same_owner(start: Start) -> None:
    async with start("registry") as service:
        one, two = [(await register(service, name=name)).json()["agent"]["id"] for name in ("One", "Two")]

        async def claim(agent_id: str, owner: str) -> httpx.Response:
            answer: httpx.Response = await service.operator.post(
                f"/operator/api/v1/agents/{agent_id}/claim", json={"owner": owner}
            )
            return answer

        first = await claim(one, "house")
        assert first.status_code == 200, first.text
        assert first.json()["status"] == "claimed"
        assert (await claim(two, " house ")).json()["owner_id"] == first.json()["owner_id"]
        assert (await claim(one, "house")).json() == first.json()
        taken = await claim(one, "Ann")
        assert taken.status_code == 409
        assert taken.json()["code"] == "already-claimed"
        released = await service.operator.post(f"/operator/api/v1/agents/{one}/release")
        assert released.json()["status"] == "unclaimed"
        assert (await service.operator.post(f"/operator/api/v1/agents/{one}/release")).json() == released.json()
        assert (await claim(one, "Ann")).json()["owner_id"] != first.json()["owner_id"]
        await service.settle()
        told = [
            (envelope.aggregateversion, kind.name, event.claimed, event.owner_id is not None)
            for kind in (ev.AgentRegistered, ev.AgentClaimed, ev.AgentReleased)
            for envelope, event in await service.envelopes(kind)
            if str(event.agent_id) == one
        ]
        assert sorted(told) == [
            (1, "agent.registered", False, False),
            (2, "agent.claimed", True, True),
            (3, "agent.released", False, False),
            (4, "agent.claimed", True, True),
        ]


@pytest.mark.rule("A5")
async def test_two_operators_claiming_at_once_give_one_owner(start: Start) -> None:
    async with start("registry") as service:
        agent_id = (await register(service)).json()["agent"]["id"]
        answers = await asyncio.gather(
            *(
                service.operator.post(f"/operator/api/v1/agents/{agent_id}/claim", json={"owner": f"owner {n}"})
                for n in range(12)
            )
        )
        assert sorted(answer.status_code for answer in answers) == [200] + [409] * 11


@pytest.mark.rule("A8")
async def test_only_an_operator_sets_marks(start: Start) -> None:
    async with start("registry") as service:
        body = (await register(service)).json()
        path = f"/operator/api/v1/agents/{body['agent']['id']}/marks"
        refused = await service.client.put(path, json={"house": True}, headers=bearer(body["api_key"]))
        assert refused.status_code == 401
        assert (await register(service, name="Bob", marks=["house"])).status_code == 422
        patched = await service.client.patch("/api/v1/agents/me", json={"house": True}, headers=bearer(body["api_key"]))
        assert patched.status_code == 422
        assert (await me(service, body["api_key"])).json()["marks"] == []
        marked = await service.operator.put(path, json={"cohort": True})
        assert marked.json()["marks"] == ["house", "cohort"]
        await service.settle()
        (update_event,) = await service.published(ev.AgentUpdated)
        assert update_event.marks == ev.Marks(house=True, cohort=True)


@pytest.mark.rule("A8")
async def test_the_operator_api_lists_agents_and_refuses_strangers(start: Start) -> None:
    async with start("registry") as service:
        for name in ("One", "Two"):
            await register(service, name=name)
        listed = (await service.operator.get("/operator/api/v1/agents")).json()["agents"]
        assert [agent["name"] for agent in listed] == ["One", "Two"]
        found = (await service.operator.get("/operator/api/v1/agents", params={"name": "TWO"})).json()["agents"]
        assert [agent["name"] for agent in found] == ["Two"]
        assert (await service.operator.get("/operator/api/v1/agents?name=%00")).json()["agents"] == []
        assert (await service.client.get("/operator/api/v1/agents")).status_code == 401
        missing = await service.operator.post(f"/operator/api/v1/agents/{uuid.uuid4()}/claim", json={"owner": "Ann"})
        assert missing.status_code == 404
        assert (await service.operator.post("/operator/api/v1/agents/x/release")).status_code == 422
        bad = await service.operator.post(f"/operator/api/v1/agents/{listed[0]['id']}/claim", json={"owner": "\0"})
        assert bad.status_code == 422


@pytest.mark.rule("A1")
async def test_contests_can_ask_for_an_agent_by_its_keys_hash(start: Start) -> None:
    async with start("registry") as service:
        body = (await register(service)).json()
        async with service.runtime.database.transaction() as connection:
            known = await commands.known_key(Store(connection), domain.digest(body["api_key"]))
            assert known is not None
            assert known["agent_id"] == body["agent"]["id"]
            assert known["version"] == 1
            assert known["key_version"] == 1
            assert ev.AgentState.model_validate(known).agent_name == "Alice"
            strangers: tuple[object, ...] = ("0" * 64, "\0", None, 7, [], {})
            for strange in strangers:
                assert await commands.known_key(Store(connection), strange) is None


@pytest.mark.rule("A1")
async def test_the_answer_by_keys_hash_comes_over_the_bus_to_contests_user(start: Start, nats_server: Any) -> None:
    async with start("registry") as service:
        body = (await register(service)).json()
        client = await nats.connect(nats_server.url("contests"), inbox_prefix=b"_INBOX_contests")
        try:
            question = json.dumps({"key_hash": domain.digest(body["api_key"])}).encode()
            reply = json.loads((await client.request(AGENT_BY_KEY, question, timeout=5)).data)
            assert reply["agent"]["agent_name"] == "Alice"
            unknown = await client.request(AGENT_BY_KEY, json.dumps({"key_hash": "0" * 64}).encode(), timeout=5)
            assert json.loads(unknown.data) == {"agent": None}
        finally:
            await client.close()
