"""The edge of every service: one commit before the answer, problem documents, health, metrics."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Annotated

import anyio
import anyio.to_thread
import pytest
from fastapi import Depends, Request
from fastapi.responses import StreamingResponse
from probe import APPLIED, CHILD, Probe
from pydantic import BaseModel, Field, ValidationError
from sqlalchemy import select

from common.inbox import Handlers
from common.migrate import upgrade
from common.problems import InvalidRequest, NotFound, pointer, shown
from common.requests import parsed
from common.service import Connection, Runtime, Service, create_app, operator_only
from common.settings import Settings
from testkit.fixtures import Databases, Started

Run = Callable[..., AbstractAsyncContextManager[Started]]


class Body(BaseModel):
    name: str = Field(min_length=3)
    count: int = Field(ge=0)


async def test_the_commit_comes_before_the_answer(run: Run) -> None:
    async with run() as service:
        answer = await service.client.post("/orphan")
        assert answer.status_code == 500, "a commit that fails must not have been answered as a success"
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["code"] == "internal"
        assert answer.json()["correlation_id"]
        assert "child" not in answer.text, "an error of ours tells nothing of its inside"
        async with service.runtime.database.transaction() as connection:
            assert (await connection.execute(select(CHILD))).all() == []


async def test_every_error_is_a_problem_document(probe: Probe, run: Run) -> None:
    @probe.router.post("/things")
    async def things(body: Body) -> None:
        return None

    @probe.router.get("/missing")
    async def missing() -> None:
        raise NotFound("No thing is called so.", known=["this", "that"])

    async with run() as service:
        answer = await service.client.get("/missing")
        assert answer.status_code == 404
        assert answer.json() == {
            "type": "urn:mafl:problem:not-found",
            "title": "There is nothing here",
            "status": 404,
            "code": "not-found",
            "detail": "No thing is called so.",
            "known": ["this", "that"],
        }
        answer = await service.client.post("/things", json={"name": "ab", "count": -1})
        assert answer.status_code == 422
        assert [(v["pointer"], v["value"], v["limit"]) for v in answer.json()["violations"]] == [
            ("/name", "ab", {"min_length": 3}),
            ("/count", -1, {"ge": 0}),
        ]
        for body in (b"{", b"[]", b"null", b'{"name": NaN}'):
            answer = await service.client.post("/things", content=body, headers={"Content-Type": "application/json"})
            assert answer.status_code == 422, body
            assert answer.json()["violations"], body
        answer = await service.client.post("/things", content=b"\xff", headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["detail"]) == (400, "The body is not JSON in UTF-8.")
        answer = await service.client.get("/things")
        assert (answer.status_code, answer.json()["code"]) == (405, "method-not-allowed")
        answer = await service.client.get("/no/such/page")
        assert (answer.status_code, answer.json()["code"]) == (404, "not-found")


async def test_what_a_hot_route_raises_is_answered_as_anywhere(probe: Probe, run: Run) -> None:
    async def words() -> AsyncIterator[bytes]:
        yield b"begun"
        raise RuntimeError("in the middle of the answer")

    async def hot(request: Request) -> StreamingResponse:
        if request.path_params["how"] == "missing":
            raise NotFound("No thing is called so.")
        if request.path_params["how"] == "broken":
            raise RuntimeError("of the inside")
        return StreamingResponse(words())

    probe.hot.add_route("/hot/{how}", hot, methods=["POST"])
    async with run() as service:
        answers = [await service.client.post(f"/hot/{how}") for how in ("missing", "broken")]
        assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [
            (404, "not-found"),
            (500, "internal"),
        ]
        assert "inside" not in answers[1].text
        assert (await service.client.get("/hot/missing")).status_code == 405
        # What has begun is cut off: a second answer into the first would be neither.
        assert (await service.client.post("/hot/cut")).text == "begun"
        assert 'route="/hot/{how}",status="404"' in (await service.client.get("/metrics")).text


async def test_a_body_is_read_once_and_every_fault_of_it_is_listed(probe: Probe, run: Run) -> None:
    @probe.router.post("/bodies")
    async def bodies(body: Annotated[Body, parsed(Body, 100)]) -> Body:
        return body

    async with run() as service:

        async def sent(content: bytes) -> tuple[int, list[tuple[str, str]]]:
            answer = await service.client.post("/bodies", content=content)
            return answer.status_code, [(v["code"], v["pointer"]) for v in answer.json().get("violations", [])]

        assert await sent(b'{"name": "abc", "count": 1}') == (200, [])
        assert await sent(b'{"name": "abc", "name": "abd", "count": 1}') == (422, [("key-repeated", "/name")])
        assert await sent(b'{"count": -1, "count": "x"}') == (
            422,
            [("missing", "/name"), ("int-parsing", "/count"), ("key-repeated", "/count")],
        )
        assert await sent(b"[" * 90) == (422, [("json-invalid", "")])
        assert await sent(b"") == (422, [("json-invalid", "")])
        assert (await sent(b" " * 101))[0] == 413


async def test_a_body_that_trickles_in_holds_no_connection(probe: Probe, run: Run) -> None:
    @probe.router.post("/slow")
    async def slow(body: Annotated[Body, parsed(Body, 100)], connection: Connection) -> Body:
        await connection.execute(select(APPLIED))
        return body

    async with run() as service:
        rest = anyio.Event()

        async def trickling() -> AsyncIterator[bytes]:
            yield b'{"name": "abc",'
            await rest.wait()
            yield b'"count": 1}'

        answers: list[int] = []

        async def send() -> None:
            answers.append((await service.client.post("/slow", content=trickling())).status_code)

        more = service.settings.database_pool + 1
        async with anyio.create_task_group() as group:
            for _ in range(more):
                group.start_soon(send)
            await anyio.sleep(0.1)
            assert (await service.client.get("/readyz")).status_code == 200
            rest.set()
        assert answers == [200] * more


@pytest.mark.rule("O3")
async def test_health_readiness_and_metrics_answer(run: Run) -> None:
    async with run() as service:
        assert (await service.client.get("/healthz")).json() == {"status": "alive"}
        assert (await service.client.get("/readyz")).json() == {"status": "ready", "faults": []}
        await service.client.get("/no/such/page")
        text = (await service.client.get("/metrics")).text
        assert 'mafl_service_info{service="settlement"} 1.0' in text
        assert "mafl_outbox_waiting" in text
        assert 'route="/readyz"' in text
        assert "/no/such/page" not in text, "a path that anybody may make up is no label"


async def test_an_operators_call_takes_the_operators_token(probe: Probe, run: Run) -> None:
    @probe.router.get("/secret", dependencies=[Depends(operator_only)])
    async def secret() -> str:
        return "told"

    async with run() as service:
        assert (await service.operator.get("/secret")).json() == "told"
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": b"Bearer \xff"}):
            answer = await service.client.get("/secret", headers=headers)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"


def test_a_production_stack_refuses_a_replay_clock() -> None:
    values = {
        "database_url": "postgresql+psycopg://x@127.0.0.1/x",
        "nats_url": "nats://127.0.0.1",
        "operator_token": "x",
        "environment": "production",
        "clock": "replay",
    }
    with pytest.raises(ValidationError, match="production stack takes MAFL_CLOCK=system only"):
        Settings.model_validate(values)
    assert Settings.model_validate({**values, "clock": "system"}).clock == "system"


def test_a_service_without_a_handler_for_an_event_that_it_reads_does_not_start() -> None:
    settings = Settings.model_validate(
        {"database_url": "postgresql+psycopg://x", "nats_url": "nats://x", "operator_token": "x"}
    )
    with pytest.raises(ValueError, match=r"settlement reads contest\.opened\.v1 and has no handler for it"):
        create_app(Service(name="settlement", package="probe", routers=[], handlers=Handlers()), settings)


def test_pointers_escape_and_values_are_shown_safely() -> None:
    assert pointer("picks", 3, "a/b~c") == "/picks/3/a~1b~0c"
    assert shown(float("nan")) == "nan"
    assert shown(2**80) == str(2**80)
    assert shown("\ud800") == "?"
    assert len(shown("x" * 10_000)) == 200
    assert shown({"name": ["Zoë", None]}) == '{"name": ["Zoë", null]}'
    assert shown(b"\xff{") == "\ufffd{"
    assert InvalidRequest("why").document()["status"] == 422


@pytest.mark.rule("O4")
async def test_a_service_stops_though_a_task_swallows_its_cancellation(probe: Probe, run: Run) -> None:
    told = []

    async def stubborn(runtime: Runtime) -> None:
        """Ends like a client whose message comes at the very moment of the cancellation: not."""
        for said in ("swallowed", "ended"):
            try:
                told.append("waits")
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                told.append(said)
                if said == "ended":
                    raise

    probe.tasks = (stubborn,)
    async with asyncio.timeout(30), run():
        assert told == ["waits"]
    assert told == ["waits", "swallowed", "waits", "ended"]


@pytest.mark.rule("O4")
@pytest.mark.parametrize("turns", range(4))
async def test_who_is_woken_and_cancelled_at_once_ends(run: Run, turns: int) -> None:
    async with run() as service:

        async def wait_for_ever() -> None:
            while True:
                await service.runtime.woken("test", at_most=3600)

        job = asyncio.create_task(wait_for_ever())
        await asyncio.sleep(0.01)
        service.runtime.wake("test")
        for _ in range(turns):
            await asyncio.sleep(0)
        job.cancel()
        await asyncio.wait({job}, timeout=5)
        assert job.cancelled()


async def test_two_copies_starting_at_once_migrate_once(run: Run, databases: Databases) -> None:
    databases.server.create_service_database("twice")
    url = databases.server.url("twice")
    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(anyio.to_thread.run_sync, upgrade, url, "probe")
    async with run(database_url=url) as service:
        assert (await service.client.get("/readyz")).status_code == 200


async def test_the_connection_of_a_route_is_rolled_back_when_it_raises(probe: Probe, run: Run) -> None:
    @probe.router.post("/changed-its-mind")
    async def changed(connection: Connection) -> None:
        await connection.execute(APPLIED.insert().values(contest="never"))
        raise NotFound("after all")

    async with run() as service:
        assert (await service.client.post("/changed-its-mind")).status_code == 404
        async with service.runtime.database.transaction() as connection:
            assert (await connection.execute(select(APPLIED))).all() == []
