"""Errors that a caller can do something about, and their one translation to RFC 9457 documents.

The tree::

    Problem                     any answer that is not a success; subclasses stand beside their use
    ├── NotFound              404   what was asked for does not exist
    ├── Unauthorized          401   no credentials, or unknown ones
    ├── MethodNotAllowed      405   the path is right, the method is not
    ├── InvalidRequest        422   the request is malformed; every fault is listed
    ├── IdempotencyKeyReused  409   the key was used for another request
    ├── Refused               4xx   what the web framework itself refuses
    └── Unavailable           503   something that is needed is down; try again

``type`` is ``urn:mafl:problem:<code>``; ``code`` repeats the last part for machines.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, ClassVar

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from common.db import MAY_BE_UNAVAILABLE, unavailable
from common.logs import correlation_id, logger

CONTENT_TYPE = "application/problem+json"
_LONGEST_VALUE = 200
_PYTHON = ("class_name", "error")
"""What pydantic tells of itself and not of the request."""


class Problem(Exception):
    """A problem document that can be raised.

    A subclass sets ``status``, ``code`` and ``title``; ``detail`` says what was wrong, where, and what
    would be right. Further keyword arguments become members of the document.
    """

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal"
    title: ClassVar[str] = "Something went wrong"

    def __init__(
        self,
        detail: str = "",
        *,
        status: int | None = None,
        code: str | None = None,
        title: str | None = None,
        headers: Mapping[str, str] | None = None,
        **members: Any,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status_code = status or self.status
        self.problem_code = code or self.code
        self.problem_title = title or self.title
        self.headers = dict(headers or {})
        self.members = members

    def document(self) -> dict[str, Any]:
        """The members of the problem document."""
        return {
            "type": f"urn:mafl:problem:{self.problem_code}",
            "title": self.problem_title,
            "status": self.status_code,
            "code": self.problem_code,
            "detail": self.detail,
            **self.members,
        }


class NotFound(Problem):
    status = 404
    code = "not-found"
    title = "There is nothing here"


class Unauthorized(Problem):
    status = 401
    code = "unauthorized"
    title = "Valid credentials are needed"

    def __init__(self, detail: str, **members: Any) -> None:
        super().__init__(detail, headers={"WWW-Authenticate": "Bearer"}, **members)


class MethodNotAllowed(Problem):
    status = 405
    code = "method-not-allowed"
    title = "Wrong method"


class Refused(Problem):
    status = 400
    code = "refused"
    title = "The request was refused"


class InvalidRequest(Problem):
    status = 422
    code = "invalid-request"
    title = "The request is not valid"


class IdempotencyKeyReused(Problem):
    status = 409
    code = "idempotency-key-reused"
    title = "The idempotency key belongs to another request"


class Unavailable(Problem):
    status = 503
    code = "unavailable"
    title = "Not possible at this moment"

    def __init__(self, detail: str, *, retry_after: int = 1, **members: Any) -> None:
        super().__init__(detail, headers={"Retry-After": str(retry_after)}, **members)


def pointer(*parts: str | int) -> str:
    """An RFC 6901 JSON pointer."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def shown(value: Any) -> Any:
    """An offending value, made safe to repeat: short, and nothing that JSON cannot hold."""
    if value is None or isinstance(value, bool | int):
        return value if not isinstance(value, int) or abs(value) < 2**53 else str(value)[:_LONGEST_VALUE]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = text.encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"


def respond(problem: Problem) -> JSONResponse:
    """The answer that carries a problem."""
    document = problem.document()
    if problem.status_code >= 500:
        document["correlation_id"] = correlation_id()
    return JSONResponse(document, problem.status_code, problem.headers, CONTENT_TYPE)


def install(app: FastAPI) -> None:
    """Make every error of an application a problem document."""

    @app.exception_handler(Problem)
    async def on_problem(request: Request, error: Problem) -> JSONResponse:
        return respond(error)

    @app.exception_handler(RequestValidationError)
    async def on_invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        violations = [
            {
                "code": fault["type"].replace("_", "-"),
                "in": str(fault["loc"][0]) if fault["loc"] else "body",
                "pointer": pointer(*fault["loc"][1:]),
                "detail": fault["msg"],
                "value": shown(fault.get("input")),
                "limit": {key: shown(limit) for key, limit in fault.get("ctx", {}).items() if key not in _PYTHON}
                or None,
            }
            for fault in error.errors()
        ]
        count = len(violations)
        return respond(
            InvalidRequest(f"{count} fault{'s' if count != 1 else ''}, listed in `violations`.", violations=violations)
        )

    @app.exception_handler(HTTPException)
    async def on_http(request: Request, error: HTTPException) -> JSONResponse:
        status, headers = error.status_code, error.headers
        if status == 404:
            return respond(NotFound(f"No page or call answers to {shown(request.url.path)}."))
        if status == 405:
            allowed = (headers or {}).get("allow") or (headers or {}).get("Allow") or "another method"
            detail = f"{request.method} is not possible here; possible: {allowed}."
            return respond(MethodNotAllowed(detail, headers=headers))
        detail = str(error.detail)
        if status == 400 and "parsing the body" in detail:
            detail = "The body is not JSON in UTF-8."
        return respond(Refused(detail, status=status, headers=headers))

    async def on_database(request: Request, error: Exception) -> JSONResponse:
        if not unavailable(error):
            raise error
        logger.warning("database unavailable", error=str(error)[:300])
        return respond(
            Unavailable(
                "The database does not answer at this moment. A change that was asked for may have been made: ask "
                "again with the same Idempotency-Key."
            )
        )

    # By kind, not among all exceptions: after those the server logs a whole trace, of every call while it is down.
    for kind in MAY_BE_UNAVAILABLE:
        app.exception_handler(kind)(on_database)

    @app.exception_handler(Exception)
    async def on_error(request: Request, error: Exception) -> JSONResponse:
        # The pattern and not the path, which may hold a claim link's secret.
        logger.exception("unhandled error", route=getattr(request.scope.get("route"), "path", "none"))
        return respond(Problem("An error of ours; it has been logged under `correlation_id`."))
