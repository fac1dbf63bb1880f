"""What OpenAPI says of refusals: a problem document for every status that a route may answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter

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


Responses = dict[int | str, dict[str, Any]]
"""FastAPI's ``responses`` of a route."""


def refusals(
    *kinds: type[problems.Problem],
    shapes: Mapping[type[problems.Problem], type[BaseModel]] | None = None,
    otherwise: type[BaseModel] = Refusal,
) -> Responses:
    """``responses`` of a route that may refuse in these ways.

    ``shapes`` are the documents with members of their own; any other has the shape ``otherwise``.
    """
    by_status: dict[int | str, list[type[problems.Problem]]] = {}
    for kind in kinds:
        by_status.setdefault(kind.status, []).append(kind)
    return {status: _described(same, shapes or {}, otherwise) for status, same in by_status.items()}


def _described(
    kinds: list[type[problems.Problem]],
    shapes: Mapping[type[problems.Problem], type[BaseModel]],
    otherwise: type[BaseModel],
) -> dict[str, Any]:
    schemas = []
    for kind in kinds:
        schema = inlined(shapes.get(kind, otherwise))
        schema |= {"title": kind.title, "properties": schema["properties"] | {"code": {"const": kind.code}}}
        schemas.append(schema)
    response: dict[str, Any] = {
        "description": "; ".join(f"`{kind.code}`: {kind.title.lower()}" for kind in kinds),
        "content": {problems.CONTENT_TYPE: {"schema": schemas[0] if len(schemas) == 1 else {"oneOf": schemas}}},
    }
    headers: dict[str, Any] = {}
    if RateLimited in kinds:
        headers |= {name: {"schema": {"type": "string"}} for name in ("RateLimit", "RateLimit-Policy")}
    if any(kind.status in (429, 503) for kind in kinds):
        headers["Retry-After"] = {"schema": {"type": "integer"}, "description": "seconds"}
    return response | ({"headers": headers} if headers else {})


def inlined(kind: Any) -> dict[str, Any]:
    """The JSON Schema of a type or adapter in one piece, for what the framework does not fill in by itself."""
    adapter = kind if isinstance(kind, TypeAdapter) else TypeAdapter(kind)
    schema = adapter.json_schema()
    parts = schema.pop("$defs", {})

    def whole(value: Any) -> Any:
        if isinstance(value, dict):
            name = value.get("$ref", "").removeprefix("#/$defs/")
            return whole(parts[name]) if name else {key: whole(part) for key, part in value.items()}
        return [whole(part) for part in value] if isinstance(value, list) else value

    made: dict[str, Any] = whole(schema)
    return made


ALWAYS = refusals(problems.Refused, problems.Unavailable)
"""What every route may answer: a request that the framework itself cannot read, a database that is down."""
