"""Schemathesis over the registry's own OpenAPI document: no server error, no undocumented answer."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator
from typing import Any

import anyio.to_thread
import httpx
import pytest
import schemathesis
import uvicorn
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from testkit.fixtures import OPERATOR_TOKEN, Start

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
EXAMPLES = 15
"""Of each operation, of each kind of data."""


@contextlib.asynccontextmanager
async def served(app: FastAPI) -> AsyncIterator[str]:
    """A running application at an address of its own, for a client that is not of this loop."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, lifespan="off", log_level="warning", access_log=False))
    serving = asyncio.create_task(server.serve())
    async with asyncio.timeout(10):
        while not server.started:  # noqa: ASYNC110 (uvicorn tells nobody)
            await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving


@pytest.mark.rule("A1", "A3", "A11")
@pytest.mark.timeout(180)
async def test_no_call_of_the_description_fails_or_answers_what_it_does_not_say(start: Start) -> None:
    async with start("contests"), start("registry") as registry, served(registry.app) as url:
        done = await anyio.to_thread.run_sync(fuzz, registry.app.openapi(), url)
        listed = {(method.upper(), path) for path, item in registry.app.openapi()["paths"].items() for method in item}
        assert done == listed


def fuzz(document: dict[str, Any], url: str) -> set[tuple[str, str]]:
    """Call every operation with data that fits and data that does not, with and without credentials."""
    schema = schemathesis.openapi.from_dict(document)
    numbers = itertools.count()
    done = set()
    with httpx.Client(base_url=url) as client:

        def key() -> str:
            body = {"name": f"Fuzzed {next(numbers):06d}", "model": "openai/gpt-5"}
            answer = client.post("/api/v1/agents", json=body)
            found: str = answer.raise_for_status().json()["api_key"]
            return found

        agents_key = key()
        agent_id = client.get("/api/v1/agents/me", headers={"Authorization": f"Bearer {agents_key}"}).json()["id"]
        for operation in (result.ok() for result in schema.get_all_operations()):
            done.add((operation.method.upper(), operation.path))
            for mode in schemathesis.GenerationMode:
                wrong = mode is schemathesis.GenerationMode.NEGATIVE
                # A call without parameters cannot be made wrongly.
                with contextlib.suppress(*((Unsatisfiable,) if wrong else ())):
                    call(operation, mode, url, agents_key, key, agent_id)
    return done


def call(operation: Any, mode: Any, url: str, agents_key: str, fresh: Any, agent_id: str) -> None:
    secrets = itertools.cycle(["right", "right", "none"])

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def one(case: Any) -> None:
        headers = {}
        if next(secrets) == "right":
            token = OPERATOR_TOKEN
            if operation.path.startswith("/api/"):
                # A new key each time: the call gives the agent another.
                token = fresh() if operation.path.endswith("/key") else agents_key
            headers["Authorization"] = f"Bearer {token}"
            if mode is schemathesis.GenerationMode.POSITIVE and "agent_id" in (case.path_parameters or {}):
                case.path_parameters["agent_id"] = agent_id
        response = case.call(base_url=url, headers=headers)
        case.validate_response(response, checks=CHECKS)

    one()
