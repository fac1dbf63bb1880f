"""What OpenAPI says of the registry's refusals: a problem document for every status that a route may answer."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from common import problems
from common.limits import RateLimited


class Refusal(BaseModel):
    """A problem document (RFC 9457). ``code`` is what a program goes by; further members depend on it."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    code: str
    detail: str


def refusals(*kinds: type[problems.Problem]) -> dict[int | str, dict[str, Any]]:
    """``responses`` of a route that may refuse in these ways."""
    by_status: dict[int | str, list[type[problems.Problem]]] = {}
    for kind in kinds:
        by_status.setdefault(kind.status, []).append(kind)
    return {status: _described(same) for status, same in by_status.items()}


def _described(kinds: list[type[problems.Problem]]) -> dict[str, Any]:
    schema = Refusal.model_json_schema()
    schema["properties"]["code"] |= {"enum": [kind.code for kind in kinds]}
    response: dict[str, Any] = {
        "description": "; ".join(f"`{kind.code}`: {kind.title.lower()}" for kind in kinds),
        "content": {problems.CONTENT_TYPE: {"schema": schema}},
    }
    headers: dict[str, Any] = {}
    if RateLimited in kinds:
        headers |= {name: {"schema": {"type": "string"}} for name in ("RateLimit", "RateLimit-Policy")}
    if any(kind.status in (429, 503) for kind in kinds):
        headers["Retry-After"] = {"schema": {"type": "integer"}, "description": "seconds"}
    return response | ({"headers": headers} if headers else {})


ALWAYS = refusals(problems.Refused, problems.Unavailable)
"""What every route may answer: a request that the framework itself cannot read, a database that is down."""
