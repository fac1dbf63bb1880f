"""What routes read off a request: a bounded body, the caller's key, the key that makes a retry safe."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Header, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, StringConstraints, TypeAdapter, ValidationError
from python_multipart.exceptions import MultipartParseError
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect

from common.problems import InvalidRequest, Problem

B = TypeVar("B", bound=BaseModel)

LARGEST_UPLOAD = 16 << 20
"""Bytes of a file that an operator sends; a whole season is under two million, packed under 250,000."""


MOST_FILES = 10
"""Files of one form."""


_FORGOTTEN = 1 << 20
"""Bytes beyond what a body may have that are read all the same."""


class TooLarge(Problem):
    status = 413
    code = "body-too-large"
    title = "The body is too large"


async def read_body(request: Request, most: int, advice: str = "") -> bytes:
    """The body, at most ``most`` bytes. Raises :class:`TooLarge` where it is longer.

    Call it before a connection of the database is taken, however slowly the body comes. What is too much is read and
    forgotten, within bounds: whoever is still sending when the connection closes sees a failure in the answer's place.
    """
    body = bytearray()
    length = 0
    more = True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk, more = message.get("body", b""), message.get("more_body", False)
        length += len(chunk)
        if length <= most:
            body += chunk
        elif length > most + _FORGOTTEN:
            break
    if length > most:
        detail = f"The body may have {most} bytes. {advice}".strip()
        raise TooLarge(detail, headers={"Connection": "close"}, limit=most)
    return bytes(body)


async def read_files(request: Request, most: int, name: str = "file", advice: str = "") -> dict[str, list[bytes]]:
    """The files of a body, together at most ``most`` bytes, by the names of a form's parts.

    A body that is no form (``multipart/form-data``) is one file, called ``name``. Raises :class:`TooLarge`, and
    :class:`InvalidRequest` for a form that cannot be read.
    """
    body = await read_body(request, most, advice)
    if not request.headers.get("Content-Type", "").lower().startswith("multipart/form-data"):
        return {name: [body]}

    async def stream() -> AsyncGenerator[bytes, None]:
        yield body

    try:
        form = await MultiPartParser(request.headers, stream(), max_files=MOST_FILES, max_fields=0).parse()
    except (MultiPartException, MultipartParseError) as error:
        raise InvalidRequest(f"The form cannot be read: {error}", violations=[]) from None
    files: dict[str, list[bytes]] = {}
    try:
        for part, value in form.multi_items():
            if isinstance(value, UploadFile):
                files.setdefault(part, []).append(await value.read())
    finally:
        await form.close()
    return files


async def read_json(request: Request, kind: type[B], most: int) -> B:
    """The body as JSON of a kind, parsed once, straight from its bytes.

    Raises :class:`TooLarge`, and ``RequestValidationError`` with every fault at once.
    """
    body = await read_body(request, most)
    faults: list[dict[str, Any]] = []
    made: B | None = None
    try:
        made = kind.model_validate_json(body)
    except ValidationError as error:
        faults += [{**fault, "loc": ("body", *fault["loc"])} for fault in error.errors(include_url=False)]
    if not any(fault["type"] == "json_invalid" for fault in faults):
        faults += [
            {"type": "key_repeated", "loc": ("body", key), "msg": "the key stands there twice", "input": key}
            for key in _repeated(body)
        ]
    if made is None or faults:
        raise RequestValidationError(faults)
    return made


def _repeated(body: bytes) -> list[str]:
    """Keys that stand twice in one object: which of the two was meant nobody can know."""
    found: list[str] = []

    def look(pairs: list[tuple[str, Any]]) -> None:
        keys = [key for key, _ in pairs]
        found.extend(key for key in dict.fromkeys(keys) if keys.count(key) > 1)

    with contextlib.suppress(ValueError, RecursionError):
        json.loads(body, object_pairs_hook=look)
    return found


def parsed(kind: type[B], most: int) -> Any:
    """A route's parameter that is its JSON body: ``Annotated[Kind, parsed(Kind, most)]``.

    Declare it before the connection: parameters are made in order, and a body that trickles in must not
    hold a connection of the database meanwhile.
    """

    async def read(request: Request) -> B:
        return await read_json(request, kind, most)

    return Depends(read)


def json_body(kind: type[BaseModel]) -> dict[str, Any]:
    """``openapi_extra`` of a route that reads its body with :func:`read_json`."""
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": kind.model_json_schema()}}}}


def credentials(authorization: str) -> str:
    """The credentials of an ``Authorization: Bearer`` header; empty where there are none."""
    scheme, _, key = authorization.partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


async def bearer(authorization: Annotated[str, Header()] = "") -> str:
    """See :func:`credentials`; a route's dependency."""
    return credentials(authorization)


BearerKey = Annotated[str, Depends(bearer)]
"""The key of ``Authorization: Bearer <key>``; empty where there is none."""

_IDEMPOTENCY_KEY = "Idempotency-Key"
_LONGEST_KEY = 255

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias=_IDEMPOTENCY_KEY,
        min_length=1,
        max_length=_LONGEST_KEY,
        description="A random text, new for each new request and kept secret: sent again with the same body, "
        "nothing is done twice. Where the first answer held a key, the second holds a fresh one.",
    ),
]

_KEY_ADAPTER: TypeAdapter[str] = TypeAdapter(Annotated[str, StringConstraints(min_length=1, max_length=_LONGEST_KEY)])


def idempotency_key(request: Request) -> str | None:
    """The request's idempotency key, as :data:`IdempotencyKey` gives it to a route.

    Raises ``RequestValidationError``.
    """
    key = request.headers.get(_IDEMPOTENCY_KEY)
    if key is None or 1 <= len(key) <= _LONGEST_KEY:
        return key
    try:
        return _KEY_ADAPTER.validate_python(key)
    except ValidationError as error:
        faults = error.errors(include_url=False)
        raise RequestValidationError([{**fault, "loc": ("header", _IDEMPOTENCY_KEY)} for fault in faults]) from None
