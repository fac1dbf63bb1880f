"""Schemathesis over contests' own OpenAPI document: no server error, no undocumented answer."""

import asyncio
import contextlib
import itertools
import os
from collections import Counter
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
)

from testkit.fixtures import OPERATOR_TOKEN, Start
from testkit.serving import served

from .helpers import NEXT_YEAR, Player, cheapest, join, next_year_is_open, next_years_players

CHECKS = [not_a_server_error, content_type_conformance, response_headers_conformance, response_schema_conformance]
EXAMPLES = int(os.environ.get("MAFL_FUZZ", "10"))
"""Of each operation, of each kind of data; four times as many of those that judge a lineup."""


@pytest.mark.rule("C5")
@pytest.mark.timeout(240)
async def test_no_call_of_the_description_fails_or_answers_what_it_does_not_say(start: Start) -> None:
    async with start("contests") as service, served(service.app) as url:
        await next_year_is_open(service)
        (agent,) = await join(service, 1)
        document = service.app.openapi()
        fuzzed = Fuzzed(document, url, agent)
        await asyncio.to_thread(fuzzed.all)
        described = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
        assert set(fuzzed.answers) == described
        lineups, check = (fuzzed.answers["POST", f"/api/v1/contests/{{contest_id}}/{end}"] for end in LINEUPS)
        assert {201, 401, 404, 422} <= set(lineups)
        assert {200, 401, 404, 422} <= set(check)


LINEUPS = ("lineups", "lineups/check")


class Fuzzed:
    """Calls every operation with data that fits and data that does not, with and without credentials."""

    def __init__(self, document: dict[str, Any], url: str, agent: Player) -> None:
        self.document = document
        self.url = url
        self.agent = agent
        self.answers: dict[tuple[str, str], Counter[int]] = {}
        """The statuses of the answers by method and path."""

    def all(self) -> None:
        results: Any = schemathesis.openapi.from_dict(self.document).get_all_operations()
        # The operator's come last: they may lock the contest.
        for operation in sorted((result.ok() for result in results), key=lambda one: "/operator/" in one.path):
            for mode in schemathesis.GenerationMode:
                wrong = mode is schemathesis.GenerationMode.NEGATIVE
                # A call without parameters cannot be made wrongly.
                with contextlib.suppress(*((Unsatisfiable,) if wrong else ())):
                    self.call(operation, mode)

    def call(self, operation: Any, mode: Any) -> None:
        judged = operation.method == "post" and operation.path.endswith(LINEUPS)
        right = OPERATOR_TOKEN if "/operator/" in operation.path else self.agent.key
        secrets = itertools.cycle([right, right, right, right, "wrong"])
        known = itertools.cycle([True, True, True, False])
        sound = itertools.cycle([True, False, False])
        found = self.answers.setdefault((operation.method.upper(), operation.path), Counter())
        documented = operation.definition.raw["responses"]

        @settings(
            max_examples=EXAMPLES * (4 if judged else 1),
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def one(case: Any) -> None:
            if "contest_id" in (case.path_parameters or {}) and next(known):
                case.path_parameters["contest_id"] = NEXT_YEAR
            if judged and isinstance(case.body, dict) and next(sound):
                fitted(case.body)
            response = case.call(base_url=self.url, headers={"Authorization": f"Bearer {next(secrets)}"})
            case.validate_response(response, checks=CHECKS)
            found[response.status_code] += 1
            # Every refusal is described by `default`; what a call itself may refuse is to be described by status.
            assert str(response.status_code) in documented or mode is schemathesis.GenerationMode.NEGATIVE

        one()


def fitted(made: dict[str, Any]) -> None:
    """Give a lineup that fits the description slots and players that there are, and leave its words and numbers."""
    picks = [pick for pick in made.get("picks") or () if isinstance(pick, dict)]
    filler = cheapest(next_years_players())["picks"]
    made["picks"] = [
        {**own, **pick, **{k: own[k] for k in ("slot", "player_id")}}
        for own, pick in zip(filler, [*picks, *({} for _ in filler)], strict=False)
    ]
    if isinstance(made.get("projected_score"), float):
        made["projected_score"] = round(made["projected_score"], 2)
