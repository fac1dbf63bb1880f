"""Schemathesis over moderation's own OpenAPI document: no server error, no undocumented answer."""

import asyncio
import contextlib
import itertools
import os
from typing import Any
from uuid import uuid4

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from testkit.fixtures import OPERATOR_TOKEN, Start
from testkit.serving import served

from .moderation_helpers import MIXED, all_judged, final, locked, opened, submitted

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
EXAMPLES = int(os.environ.get("MAFL_FUZZ", "10"))
"""Of each operation, of each kind of data."""


@pytest.mark.rule("M4")
@pytest.mark.timeout(240)
async def test_no_call_of_the_description_fails_or_answers_what_it_does_not_say(start: Start) -> None:
    lineup = uuid4()
    async with start("moderation") as service, served(service.app) as url:
        await service.publish(opened("2017-W01"))
        await service.publish(submitted("2017-W01", MIXED, lineup_id=lineup))
        await service.publish(final("2017-W01", lineup))
        await service.publish(locked("2017-W01"), version=2)
        await all_judged(service)
        document = service.app.openapi()
        done = await asyncio.to_thread(fuzz, document, url, str(lineup))
        assert done == {(method.upper(), path) for path, item in document["paths"].items() for method in item}


def fuzz(document: dict[str, Any], url: str, lineup: str) -> set[tuple[str, str]]:
    """Call every operation with data that fits and data that does not, with and without the token."""
    done = set()
    results: Any = schemathesis.openapi.from_dict(document).get_all_operations()
    for operation in (result.ok() for result in results):
        done.add((operation.method.upper(), operation.path))
        for mode in schemathesis.GenerationMode:
            wrong = mode is schemathesis.GenerationMode.NEGATIVE
            # A call without parameters cannot be made wrongly.
            with contextlib.suppress(*((Unsatisfiable,) if wrong else ())):
                call(operation, mode, url, lineup)
    return done


def call(operation: Any, mode: Any, url: str, lineup: str) -> None:
    tokens = itertools.cycle([OPERATOR_TOKEN, OPERATOR_TOKEN, OPERATOR_TOKEN, "wrong"])
    ids = itertools.cycle([lineup, None])

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def one(case: Any) -> None:
        known = next(ids)
        if known and "lineup_id" in case.path_parameters:
            case.path_parameters["lineup_id"] = known
        if known and isinstance(case.body, dict) and case.body.get("lineup_id") is not None:
            case.body |= {"lineup_id": known, "pointer": "/thesis"}
        case.call_and_validate(base_url=url, headers={"Authorization": f"Bearer {next(tokens)}"}, checks=CHECKS)

    one()
