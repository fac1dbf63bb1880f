"""Schemathesis over the registry's own OpenAPI document: no server error, no undocumented answer."""

import contextlib
import itertools
import os
from typing import Any

import anyio.to_thread
import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from testkit.fixtures import OPERATOR_TOKEN, Start
from testkit.serving import served

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
EXAMPLES = int(os.environ.get("MAFL_FUZZ", "10"))
"""Of each operation, of each kind of data."""


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
        for result in schema.get_all_operations():
            assert isinstance(result, Ok), result
            operation = result.ok()
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
