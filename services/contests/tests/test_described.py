"""The OpenAPI document of contests: whole, with sound examples; the tests' clients check every answer by it."""

import json
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator, ValidationError

from common.settings import Settings
from contests.main import app

from .described import Described


@pytest.fixture(scope="module")
def described() -> Described:
    settings = {"database_url": "postgresql+psycopg://nobody@localhost/none", "nats_url": "nats://localhost:1"}
    return Described(app(Settings.model_validate(settings | {"operator_token": "t", "environment": "embedded"})))


def operations(document: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{method} {path}", operation) for path, of in document["paths"].items() for method, operation in of.items()
    ]


def test_every_call_describes_its_answers_and_its_refusals(described: Described) -> None:
    assert len(operations(described.document)) == 28
    for name, operation in operations(described.document):
        answers = operation["responses"]
        (success,) = (answer for status, answer in answers.items() if status in ("200", "201"))
        if not name.endswith(("/commitment/leaves", "/commitment/stamp")):
            assert "$ref" in success["content"]["application/json"]["schema"], name
        assert "default" in answers, name
        for status, answer in answers.items():
            if status == "default" or int(status) >= 400:
                assert list(answer["content"]) == ["application/problem+json"], (name, status)
        assert ("401" in answers) == ("/operator/" in name or "/lineups" in name), name
        assert ("404" in answers) == ("{contest_id}" in name or "/current" in name), name
    Draft202012Validator.check_schema(described.document["components"])


def test_the_examples_are_what_they_are_examples_of(described: Described) -> None:
    schemas = described.document["components"]["schemas"]
    shown = {name: example for name, schema in schemas.items() for example in schema.get("examples", ())}
    assert {"Receipt", "Sound", "OwnRevision", "Player", "Brief", "Totals", "Now"} <= set(shown)
    for name, example in shown.items():
        Draft202012Validator(schemas[name] | {"components": {"schemas": schemas}}).validate(example)


BRIEF: dict[str, Any] = {
    "contest": "2017-W04",
    "season": 2017,
    "week": 4,
    "state": "open",
    "opened_at": "2017-09-28T12:00:00Z",
    "locks_at": "2017-10-01T17:00:00Z",
    "locked_at": None,
    "cancelled_at": None,
    "cancelled_because": None,
}
REFUSAL = {"type": "urn:mafl:problem:contest-unknown", "title": "t", "status": 404, "code": "contest-unknown"}


@pytest.mark.parametrize(
    ("path", "status", "media", "document"),
    [
        ("", 200, "application/json", {"contests": [BRIEF | {"entries": 3}]}),
        ("", 200, "application/json", {"contests": [BRIEF | {"locks_at": "2017-10-01T17:00:00+00:00"}]}),
        ("", 200, "application/json", {"contests": [{name: BRIEF[name] for name in list(BRIEF)[1:]}]}),
        ("", 202, "application/json", {"contests": []}),
        ("", 200, "text/html", {"contests": []}),
        ("/2017-W09", 404, "application/problem+json", REFUSAL | {"detail": "d"}),
        ("/2017-W09", 404, "application/problem+json", REFUSAL | {"detail": "d", "known": [], "code": "gone"}),
        ("/2017-W09", 404, "application/json", REFUSAL | {"detail": "d", "known": []}),
    ],
)
async def test_an_answer_that_is_not_as_described_is_noticed(
    described: Described, path: str, status: int, media: str, document: Any
) -> None:
    request = httpx.Request("GET", f"http://mafl.test/api/v1/contests{path}")
    answer = httpx.Response(
        status, request=request, content=json.dumps(document).encode(), headers={"Content-Type": media}
    )
    with pytest.raises((ValidationError, AssertionError)):
        await described.check(answer)


async def test_an_answer_as_described_passes(described: Described) -> None:
    for path, status, media, document in (
        ("", 200, "application/json", {"contests": [BRIEF]}),
        ("/2017-W09", 404, "application/problem+json", REFUSAL | {"detail": "d", "known": []}),
    ):
        request = httpx.Request("GET", f"http://mafl.test/api/v1/contests{path}")
        await described.check(
            httpx.Response(
                status, request=request, content=json.dumps(document).encode(), headers={"Content-Type": media}
            )
        )
