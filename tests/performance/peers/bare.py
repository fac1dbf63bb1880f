"""The bare validating route: an ASGI application without a framework, which validates a lineup and stores nothing.

Straight from bytes by pydantic-core, into dictionaries: the least that any route must do which looks at its body.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

Confidence = Annotated[float, Field(ge=0, le=1)]


class Pick(TypedDict):
    __pydantic_config__ = ConfigDict(strict=True, extra="forbid")  # type: ignore[misc]

    slot: str
    player_id: str
    rationale: Annotated[str, Field(min_length=1, max_length=2000)]
    confidence: Confidence
    main_factor: Annotated[str, Field(min_length=1, max_length=200)]


class Lineup(TypedDict):
    __pydantic_config__ = ConfigDict(strict=True, extra="forbid")  # type: ignore[misc]

    picks: list[Pick]
    thesis: Annotated[str, Field(min_length=1, max_length=4000)]
    projected_score: Annotated[float, Field(ge=0, le=500)]
    confidence: Confidence


validate = TypeAdapter(Lineup).validate_json

ACCEPTED = b'{"status":"accepted"}'
REFUSED = b'{"status":"refused"}'


def _start(status: int, body: bytes) -> dict[str, Any]:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    return {"type": "http.response.start", "status": status, "headers": headers}


ANSWERS = {
    status: (_start(status, body), {"type": "http.response.body", "body": body})
    for status, body in ((200, ACCEPTED), (201, ACCEPTED), (422, REFUSED))
}


async def app(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] != "http":
        return
    status = 200
    if scope["method"] == "POST":
        message = await receive()
        body = message["body"]
        while message["more_body"]:
            message = await receive()
            body += message["body"]
        try:
            validate(body)
            status = 201
        except ValidationError:
            status = 422
    start, end = ANSWERS[status]
    await send(start)
    await send(end)
