"""No secret is kept, told or logged: everything that was given out is looked for in everything that is left behind."""

import logging
from typing import Any

import pytest
from sqlalchemy import text

from common import topology
from embedded.nats import Nats
from registry import domain
from testkit.fixtures import OPERATOR_TOKEN, Start, Started, admin


async def all_rows(service: Started) -> str:
    """Every row of every table of a service, as PostgreSQL writes it."""
    found = []
    async with service.runtime.database.transaction() as connection:
        tables = await connection.execute(text("SELECT tablename FROM pg_tables WHERE schemaname = 'public'"))
        for table in tables.scalars().all():
            rows = await connection.execute(text(f'SELECT t::text FROM "{table}" t'))
            found += [f"{table}: {row}" for row in rows.scalars()]
    return "\n".join(found)


async def all_messages(server: Nats) -> dict[str, str]:
    """Every message of every stream, with its headers."""
    found: dict[str, str] = {}
    async with admin(server) as client:
        js = client.jetstream()
        for stream in topology.STREAMS:
            last = (await js.stream_info(stream.name)).state.last_seq
            messages = [await js.get_msg(stream.name, sequence) for sequence in range(1, last + 1)]
            found[stream.name] = "\n".join(f"{m.subject} {m.headers} {(m.data or b'').decode()}" for m in messages)
    return found


@pytest.mark.rule("A1")
async def test_no_secret_is_kept_told_or_logged(
    start: Start, nats_server: Nats, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    # The test's own client writes the addresses that it calls.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    answers: list[str] = []
    keys: list[str] = []
    secrets: list[str] = [OPERATOR_TOKEN, "the-secret-of-the-retry"]

    async with start("registry") as registry:

        async def call(method: str, path: str, key: str = "", **options: Any) -> dict[str, Any]:
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            headers |= options.pop("headers", {})
            answer = await registry.client.request(method, path, headers=headers, **options)
            body: dict[str, Any] = answer.json() if "json" in answer.headers["content-type"] else {}
            if "api_key" in body:
                keys.append(body["api_key"])
            if "claim_url" in body:
                secrets.append(body["claim_url"].rpartition("/")[2])
            if answer.status_code >= 400:
                answers.append(f"{answer.headers} {answer.text}")
            return body

        retry = {"Idempotency-Key": "the-secret-of-the-retry"}
        alice = {"name": "Alice", "model": "openai/gpt-5"}
        for _ in range(2):
            await call("POST", "/api/v1/agents", json=alice, headers=retry)
        await call("POST", "/api/v1/agents", json=alice)
        await call("POST", "/api/v1/agents", json=alice | {"name": "Bob"}, headers=retry)
        assert "api_key" not in await call("POST", "/api/v1/agents/me/key", keys[1])
        async with start("contests") as contests:
            for headers in ({}, retry, retry):
                await call("POST", "/api/v1/agents/me/key", keys[-1] if not headers else keys[2], headers=headers)
            newest = keys[-1]
            for key in keys:
                await call("GET", "/api/v1/agents/me", key)
                await call("PATCH", "/api/v1/agents/me", key, json={"model": "", "name": key})
                for path in ("mine", "mine/revisions"):
                    await contests.client.get(
                        f"/api/v1/contests/2017-W04/lineups/{path}", headers={"Authorization": f"Bearer {key}"}
                    )
            await call("POST", "/api/v1/agents/me/claim-link", newest)
            for secret in [secret for secret in secrets if secret.startswith(domain.CLAIM_PREFIX)]:
                await registry.client.get(f"/claim/{secret}")
            await call("GET", "/operator/api/v1/agents", newest)
            # What fails inside is logged.
            await registry.runtime.database.engine.dispose()
            await registry.settle()
            await contests.settle()
            rows = await all_rows(registry) + await all_rows(contests)
        messages = await all_messages(nats_server)
    assert len(keys) == 5
    assert len(secrets) >= 4
    logged = caplog.text + "".join(capfd.readouterr())
    # What a caller sent comes back to that caller alone, and of a key nothing but what was sent as a name.
    told = "".join(answer for answer in answers if '"/name"' not in answer)
    for secret in (*keys, *secrets):
        for where, what in {"rows": rows, "logs": logged, "answers": told, **messages}.items():
            assert secret not in what, where
    hashes = [domain.digest(secret) for secret in (*keys, *secrets)]
    for hashed in hashes:
        for where, what in {"logs": logged, "answers": told, **messages}.items():
            assert hashed not in what or where == "REGISTRY_KEYS", where
    # The look-out works: what is meant to be found is.
    assert domain.digest(newest) in rows
    assert domain.digest(newest) in messages["REGISTRY_KEYS"]
    assert "Alice" in messages["REGISTRY"]


@pytest.mark.rule("A1")
async def test_an_error_of_ours_logs_no_address_of_a_claim_page(
    start: Start, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    async with start("registry") as registry:
        answer = await registry.client.post("/api/v1/agents", json={"name": "Alice", "model": "openai/gpt-5"})
        token = answer.json()["claim_url"].rpartition("/")[2]

        def broken(text: str) -> str:
            raise RuntimeError("out of order")

        monkeypatch.setattr(domain, "digest", broken)
        failed = await registry.client.get(f"/claim/{token}")
        monkeypatch.undo()
        assert failed.status_code == 500
    logged = "".join(capfd.readouterr())
    assert "out of order" in logged
    assert token not in logged
    assert token not in failed.text
