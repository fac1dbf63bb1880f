"""What a call of MAFL may raise.

The tree::

    MaflError               the server refused; carries the whole problem document (RFC 9457)
    └── Unreachable         no answer within the patience of the client
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class MaflError(Exception):
    """A problem document, raised.

    ``status`` is the HTTP status (``None`` where there was no answer), ``code`` the stable code to branch on
    (``contest-locked``), ``title`` and ``detail`` are for people. ``violations`` lists every fault of a refused
    lineup: ``code``, ``pointer``, ``detail``, ``value``, ``limit``. ``retry_after`` is in seconds, where the
    server named a time. ``document`` is the whole answer.
    """

    def __init__(
        self,
        code: str,
        title: str,
        detail: str = "",
        *,
        status: int | None = None,
        violations: Sequence[Mapping[str, Any]] = (),
        retry_after: float | None = None,
        document: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(f"{title}: {detail}" if detail else title)
        self.code = code
        self.title = title
        self.detail = detail
        self.status = status
        self.violations = tuple(violations)
        self.retry_after = retry_after
        self.document = dict(document or {"code": code, "title": title, "detail": detail, "status": status})


class Unreachable(MaflError):
    """No answer came: nobody listens there, or the connection broke until the client's patience ended."""

    def __init__(self, detail: str) -> None:
        super().__init__("unreachable", "MAFL does not answer", detail)
