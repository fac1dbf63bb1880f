"""Limits (A11): honest, the same for every copy, and counted by the address that the gateway saw."""

import asyncio
import time
from pathlib import Path

import anyio.to_thread
import httpx
import pytest
from pydantic import ValidationError
from sqlalchemy import text

from common.limits import EMBEDDED_FACTOR, USUAL, Limit, address_of, count_all, limits_of
from common.settings import Settings
from common.topology import SERVICES
from embedded.caddy import Caddy
from embedded.process import free_port
from registry.main import app as registry_app
from testkit.fixtures import Start, Started
from testkit.serving import served


def limit(service: Started, **rates: str) -> None:
    service.runtime.settings.limits.update({name.replace("_", "-"): rate for name, rate in rates.items()})


async def register(service: Started, name: str) -> httpx.Response:
    answer: httpx.Response = await service.client.post("/api/v1/agents", json={"name": name, "model": "gpt-5"})
    return answer


def settings(**values: object) -> Settings:
    return Settings.model_validate(
        {"database_url": "postgresql+psycopg://x", "nats_url": "nats://x", "operator_token": "x", **values}
    )


@pytest.mark.rule("A11")
async def test_a_refusal_says_which_limit_what_is_left_and_when_to_retry(start: Start) -> None:
    async with start("registry") as registry:
        limit(registry, registrations="3/3600")
        for number in range(3):
            answer = await register(registry, f"agent {number}")
            assert answer.status_code == 201
            assert answer.headers["ratelimit-policy"] == '"registrations";q=3;w=3600'
            assert answer.headers["ratelimit"].startswith(f'"registrations";r={2 - number};t=')
        answer = await register(registry, "agent 3")
        assert answer.status_code == 429
        assert answer.headers["content-type"] == "application/problem+json"
        wait = int(answer.headers["retry-after"])
        assert 1_190 <= wait <= 1_200
        assert answer.headers["ratelimit-policy"] == '"registrations";q=3;w=3600'
        assert answer.headers["ratelimit"] == f'"registrations";r=0;t={wait}'
        assert answer.json() == {
            "type": "urn:mafl:problem:rate-limited",
            "title": "Too many calls",
            "status": 429,
            "code": "rate-limited",
            "detail": answer.json()["detail"],
            "limit": {"name": "registrations", "by": "address", "calls": 3, "seconds": 3600},
            "remaining": 0,
            "retry_after": wait,
        }
        assert "registrations" in answer.json()["detail"]
        # Nothing was stored, and what is asked for elsewhere is not held up by it.
        listed = (await registry.operator.get("/operator/api/v1/agents")).json()["agents"]
        assert len(listed) == 3


@pytest.mark.rule("A11")
async def test_after_the_time_that_it_names_a_call_is_let_through(start: Start) -> None:
    async with start("registry") as registry:
        limit(registry, registrations="2/8")
        assert [(await register(registry, f"agent {n}")).status_code for n in range(3)] == [201, 201, 429]
        refused = await register(registry, "agent 8")
        await asyncio.sleep(int(refused.headers["retry-after"]))
        assert (await register(registry, "agent 9")).status_code == 201


@pytest.mark.rule("A11")
async def test_several_copies_count_together_and_to_the_call(start: Start) -> None:
    async with start("registry") as one, start("registry", database_url=one.database_url) as two:
        for copy in (one, two):
            limit(copy, registrations="20/3600")
        answers = await asyncio.gather(*(register((one, two)[n % 2], f"agent {n}") for n in range(60)))
        assert sorted(answer.status_code for answer in answers) == [201] * 20 + [429] * 40


@pytest.mark.rule("A11")
async def test_an_agent_has_limits_of_its_own_and_neither_a_new_key_nor_a_wrong_one_is_a_way_around(
    start: Start,
) -> None:
    async with start("contests"), start("registry") as registry:
        limit(registry, new_keys="2/3600", agent_calls="10/3600")
        keys = [(await register(registry, name)).json()["api_key"] for name in ("Alice", "Bob")]

        async def rotate(key: str) -> httpx.Response:
            answer: httpx.Response = await registry.client.post(
                "/api/v1/agents/me/key", headers={"Authorization": f"Bearer {key}", "Idempotency-Key": "same"}
            )
            return answer

        answers = [await rotate(keys[0])]
        for _ in range(2):
            answers.append(await rotate(answers[-1].json().get("api_key", "")))
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert answers[2].json()["limit"] == {"name": "new-keys", "by": "agent", "calls": 2, "seconds": 3600}
        both = await rotate(keys[1])
        assert both.status_code == 200
        assert both.headers["ratelimit-policy"] == '"agent-calls";q=10;w=3600, "new-keys";q=2;w=3600'
        for number in range(6):
            assert (await rotate(f"mafl_sk_wrong{number}")).status_code == 401
        assert (await rotate("mafl_sk_another")).json()["limit"]["name"] == "agent-calls"


@pytest.mark.rule("A11")
async def test_no_address_and_no_key_is_kept_to_count_by(start: Start) -> None:
    async with start("registry") as registry:
        await register(registry, "Alice")
        async with registry.runtime.database.transaction() as connection:
            rows = repr((await connection.execute(text("SELECT * FROM rate_limits"))).all())
        assert "127.0.0.1" not in rows
        assert len(rows) > 60


@pytest.mark.rule("A11")
async def test_what_no_key_can_be_counts_by_its_address_alone(start: Start) -> None:
    async with start("registry") as registry:
        made_up = ["", "x", "mafl_sk_", "mafl_sk_wrong", "mafl_sk_" + "a" * 48, "mafl_sk_" + "a" * 50, "a" * 57]
        for key in [*made_up, *(f"mafl_sk_{number}" for number in range(20))]:
            answer = await registry.client.post(
                "/api/v1/agents/me/claim-link", headers={"Authorization": f"Bearer {key}"}
            )
            assert answer.status_code == 401
            assert "claim-links" not in answer.headers["ratelimit-policy"]
        key = (await register(registry, "Alice")).json()["api_key"]
        answer = await registry.client.post("/api/v1/agents/me/claim-link", headers={"Authorization": f"Bearer {key}"})
        assert answer.status_code == 201
        assert "claim-links" in answer.headers["ratelimit-policy"]
        async with registry.runtime.database.transaction() as connection:
            rows = (await connection.execute(text("SELECT count(*) FROM rate_limits"))).scalar_one()
        assert rows == 3, "registrations and agent-calls by address, claim-links by the one real key"


@pytest.mark.rule("A11")
async def test_a_limit_lets_its_rate_through_and_no_more(start: Start) -> None:
    """Calls as fast as they are answered, for two seconds: the burst, and what its rate gives since."""
    rate = Limit("submissions", "key", 20, 1, "")
    async with start("registry") as registry:
        started, admitted = time.monotonic(), 0
        while time.monotonic() - started < 2:
            ((found,),) = await count_all(registry.runtime.database, [[(rate, "somebody")]])
            admitted += found.admitted
            assert found.admitted or (found.remaining == 0 and found.seconds == 1)
        passed = time.monotonic() - started
        assert 20 + 20 * (passed - 0.3) <= admitted <= 20 + 20 * passed + 1


@pytest.mark.rule("A11")
def test_limits_are_data_that_the_operator_may_change() -> None:
    usual = {limit.name: limit for limit in limits_of(settings())}
    assert usual == {limit.name: limit for limit in USUAL}
    changed = {
        limit.name: limit for limit in limits_of(settings(limits={"registrations": "5/60", "pool-reads": "off"}))
    }
    assert (changed["registrations"].calls, changed["registrations"].seconds) == (5, 60)
    assert "pool-reads" not in changed
    assert changed["checks"] == usual["checks"]
    embedded = {limit.name: limit for limit in limits_of(settings(environment="embedded"))}
    assert embedded["registrations"].calls == EMBEDDED_FACTOR * usual["registrations"].calls
    assert limits_of(settings(environment="embedded", limits_factor=1)) == USUAL
    for wrong in ({"registrations": "many"}, {"registrations": "0/60"}, {"regristrations": "5/60"}):
        with pytest.raises(ValueError, match="MAFL_LIMITS"):
            limits_of(settings(limits=wrong))


@pytest.mark.rule("A11")
def test_a_rate_too_high_to_count_is_refused_at_the_start() -> None:
    highest = limits_of(settings(limits={"pool-reads": "100000/1"}))
    assert next(limit.calls for limit in highest if limit.name == "pool-reads") == 100_000
    for wrong in ("100001/1", "999999999/1", "999999999/9999"):
        with pytest.raises(ValueError, match="MAFL_LIMITS: pool-reads would be"):
            limits_of(settings(limits={"pool-reads": wrong}))
        with pytest.raises(ValueError, match="pool-reads"):
            registry_app(settings(limits={"pool-reads": wrong}))
    with pytest.raises(ValueError, match="checks-by-address"):
        limits_of(settings(limits_factor=10_000))
    with pytest.raises(ValidationError, match="limits_factor"):
        settings(limits_factor=10_001)


@pytest.mark.rule("A11")
async def test_behind_the_gateway_a_client_counts_by_its_own_address_whatever_it_claims(
    start: Start, tmp_path: Path
) -> None:
    async with start("registry") as registry, served(registry.app) as url, httpx.AsyncClient() as client:
        limit(registry, registrations="2/3600")
        port = int(url.rpartition(":")[2])
        gateway = Caddy(tmp_path / "caddy", dict.fromkeys(SERVICES, port), free_port(), free_port())
        await anyio.to_thread.run_sync(gateway.start)
        try:

            async def claim_to_be(address: str, origin: str, name: str) -> int:
                answer = await client.post(
                    f"{origin}/api/v1/agents",
                    json={"name": name, "model": "gpt-5"},
                    headers={"X-Forwarded-For": address, "Forwarded": f"for={address}"},
                )
                return answer.status_code

            public = f"http://127.0.0.1:{gateway.public_port}"
            claimed = [await claim_to_be(f"203.0.113.{n}", public, f"agent {n}") for n in range(3)]
            assert claimed == [201, 201, 429]
            # What the gateway itself says of a client is believed: two clients, two counts.
            said = [await claim_to_be(f"203.0.113.{n % 2}", url, f"other {n}") for n in range(6)]
            assert said == [201, 201, 201, 201, 429, 429]
        finally:
            await anyio.to_thread.run_sync(gateway.stop)


@pytest.mark.rule("A11")
@pytest.mark.parametrize(
    ("host", "counted"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("testclient", "testclient"),
    ],
)
def test_an_ipv6_address_counts_with_its_network(host: str, counted: str) -> None:
    assert address_of({"type": "http", "client": (host, 1), "headers": []}) == counted
