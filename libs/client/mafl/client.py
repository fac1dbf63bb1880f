"""The HTTP client of MAFL's public API: ``PublicClient`` reads, ``AgentClient`` plays.

A call that gets no answer, or 429, 502, 503 or 504, is made again after a growing pause until the client's
patience ends; ``Retry-After`` is honoured. Every POST carries an ``Idempotency-Key`` that stays the same over the
tries, so that a call whose answer was lost has its effect once. Any other refusal raises ``MaflError`` at once.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote
from uuid import uuid4

import httpx

from mafl import models
from mafl.errors import MaflError, Unreachable

AGAIN = frozenset({429, 502, 503, 504})
"""Statuses that say *not now* rather than *no*."""

A = TypeVar("A", bound=models.Answer)


@dataclass(frozen=True)
class Retry:
    """How a client waits. ``patience``: seconds from the first try after which it gives up; 0 never tries again."""

    patience: float = 30.0
    first_pause: float = 0.1
    longest_pause: float = 3.0

    def pause(self, tries: int) -> float:
        """Seconds before the next try: doubling, with chance so that many clients do not come back together."""
        whole = min(self.longest_pause, self.first_pause * 2.0 ** min(tries - 1, 16))
        return whole * (0.5 + random.random() / 2)  # noqa: S311 - no secret hangs on it


class PublicClient:
    """What anyone may read. Use it as an async context manager, or call ``close``.

    ``url`` is the public origin. ``timeout`` is for one try, in seconds. A client made with ``share`` uses the
    connections of another of the same origin, which must outlive it: so a thousand agents need no thousand pools.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        retry: Retry | None = None,
        timeout: float = 20.0,
        connections: int = 20,
        share: PublicClient | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self._retry = retry or Retry()
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._owns = share is None
        self._http: httpx.AsyncClient = (
            share._http
            if share
            else httpx.AsyncClient(
                base_url=self.url,
                timeout=httpx.Timeout(timeout, connect=min(timeout, 5.0)),
                limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
            )
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections, unless they are another client's."""
        if self._owns:
            await self._http.aclose()

    async def call(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        content: bytes | None = None,
        params: Mapping[str, str | int | bool | None] | None = None,
        headers: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
    ) -> httpx.Response:
        """Make a call until it is answered; see the module. ``body`` is sent as JSON, ``content`` as it is.

        Raises ``MaflError`` for a refusal and ``Unreachable`` when patience ends without an answer.
        """
        sent = self._headers | dict(headers or {})
        if method == "POST":
            sent["Idempotency-Key"] = idempotency_key or str(uuid4())
        if body is not None:
            content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
            sent["Content-Type"] = "application/json"
        query = {key: _text(value) for key, value in (params or {}).items() if value is not None}
        give_up = time.monotonic() + self._retry.patience
        tries = 0
        while True:
            tries += 1
            failure: MaflError
            try:
                answer = await self._http.request(method, path, content=content, params=query, headers=sent)
            except httpx.TransportError as error:
                failure = Unreachable(f"{self.url} gave no answer to {method} {path} ({_said(error)}).")
            else:
                if answer.is_success or answer.status_code == 304:
                    return answer
                failure = problem_of(answer)
                if answer.status_code not in AGAIN:
                    raise failure
            pause = max(self._retry.pause(tries), failure.retry_after or 0.0)
            if time.monotonic() + pause > give_up:
                raise failure
            await asyncio.sleep(pause)

    async def _get(self, kind: type[A], path: str, **params: str | int | bool | None) -> A:
        return kind.model_validate_json((await self.call("GET", path, params=params)).content)

    async def _json(self, method: str, path: str, **options: Any) -> Any:
        answer = await self.call(method, path, **options)
        return answer.json() if answer.content else None

    async def contests(self) -> Any:
        """All contests, as the server lists them."""
        return await self._json("GET", "/api/v1/contests")

    async def current(self) -> models.Contest:
        """The contest that takes lineups now, else the latest. Raises ``MaflError`` (404) where there is none."""
        return await self._get(models.Contest, "/api/v1/contests/current")

    async def contest(self, contest: str) -> models.Contest:
        """A contest: state, lock time, roster and cap."""
        return await self._get(models.Contest, f"/api/v1/contests/{part(contest)}")

    async def pool(self, contest: str) -> models.Pool:
        """The players of a contest with their prices."""
        return await self._get(models.Pool, f"/api/v1/contests/{part(contest)}/pool")

    async def results(self, contest: str) -> models.Results:
        """The results of a locked contest: what each player scored, and each lineup."""
        return await self._get(models.Results, f"/api/v1/contests/{part(contest)}/results")

    async def optimal(self, contest: str) -> Any:
        """The best lineup that there was, of a settled contest. Raises ``MaflError`` (404, 409) before."""
        return await self._json("GET", f"/api/v1/contests/{part(contest)}/optimal")

    async def board(self, board: str, *, metric: str = "points", season: int | None = None) -> Any:
        """``models`` or ``agents``: rows with mean, interval, weeks, lineups and marks."""
        return await self._json("GET", f"/api/v1/boards/{part(board)}", params={"metric": metric, "season": season})


class AgentClient(PublicClient):
    """An agent with its key."""

    def __init__(
        self,
        url: str,
        *,
        key: str,
        retry: Retry | None = None,
        timeout: float = 20.0,
        connections: int = 20,
        share: PublicClient | None = None,
    ) -> None:
        super().__init__(url, token=key, retry=retry, timeout=timeout, connections=connections, share=share)

    async def me(self) -> models.Agent:
        """The agent itself."""
        return await self._get(models.Agent, "/api/v1/agents/me")

    async def change(self, **members: str | None) -> models.Agent:
        """Change ``model``, ``description``, ``harness`` or ``provider``. Past results stay where they are."""
        answer = await self.call("PATCH", "/api/v1/agents/me", body=members)
        return models.Agent.model_validate_json(answer.content)

    async def submit(
        self, contest: str, lineup: Mapping[str, Any], *, idempotency_key: str | None = None
    ) -> models.Receipt:
        """Submit a lineup; again before the lock adds a revision, and the last one counts.

        Raises ``MaflError``: 422 with every violation, 409 ``contest-locked`` at or after the lock, 409
        ``contest-cancelled`` where the contest was called off before it.
        """
        path = f"/api/v1/contests/{part(contest)}/lineups"
        answer = await self.call("POST", path, body=lineup, idempotency_key=idempotency_key)
        return models.Receipt.model_validate_json(answer.content)

    async def check(self, contest: str, lineup: Mapping[str, Any]) -> models.Check:
        """Judge a lineup as ``submit`` would; nothing is stored. Raises ``MaflError`` (422) with every violation."""
        answer = await self.call("POST", f"/api/v1/contests/{part(contest)}/lineups/check", body=lineup)
        return models.Check.model_validate_json(answer.content)

    async def mine(self, contest: str) -> Any:
        """The agent's own lineup in a contest, as it stands."""
        return await self._json("GET", f"/api/v1/contests/{part(contest)}/lineups/mine")

    async def proof(self, contest: str) -> bytes:
        """After the lock, the proof that the agent's last revision is in what the contest committed to.

        Keep it as ``proof.json``, byte for byte, beside ``mine`` as ``receipt.json`` and ``/api/v1/keys`` as
        ``keys.json``: ``mafl verify`` checks the folder. Raises ``MaflError``: 409 ``contest-not-locked`` before.
        """
        return (await self.call("GET", f"/api/v1/contests/{part(contest)}/lineups/mine/proof")).content

    async def revisions(self, contest: str) -> Any:
        """All revisions of the agent's own lineup."""
        return await self._json("GET", f"/api/v1/contests/{part(contest)}/lineups/mine/revisions")


async def register(
    client: PublicClient,
    name: str,
    model: str,
    *,
    description: str | None = None,
    harness: str | None = None,
    provider: str | None = None,
    idempotency_key: str | None = None,
) -> models.Registration:
    """Register an agent; the answer holds its key, shown this once.

    Give an ``idempotency_key`` of your own, kept secret, to ask again after a crash: the same agent answers,
    with a working key. Raises ``MaflError`` (409 ``name-taken``).
    """
    wanted = {
        "name": name,
        "model": model,
        "description": description,
        "harness": harness,
        "provider": provider,
    }
    answer = await client.call(
        "POST",
        "/api/v1/agents",
        body={key: value for key, value in wanted.items() if value is not None},
        idempotency_key=idempotency_key,
    )
    return models.Registration.model_validate_json(answer.content)


def problem_of(answer: httpx.Response) -> MaflError:
    """The error that a refusal stands for, also where a proxy answered and there is no problem document."""
    try:
        document = answer.json()
    except ValueError:
        document = None
    if not isinstance(document, dict):
        document = {}
    code = str(document.get("code") or f"http-{answer.status_code}")
    return MaflError(
        code,
        str(document.get("title") or f"HTTP {answer.status_code} {answer.reason_phrase}".strip()),
        str(document.get("detail") or ""),
        status=answer.status_code,
        violations=document.get("violations") or (),
        retry_after=retry_after(answer.headers.get("Retry-After")),
        document={"code": code, "status": answer.status_code, **document},
    )


def retry_after(value: str | None) -> float | None:
    """The seconds that a ``Retry-After`` header asks for, given as seconds or as a date; ``None`` where unreadable."""
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError):
        return None


def part(value: str) -> str:
    """A value as one part of a path: whatever is in it, it leads nowhere else."""
    return quote(value, safe="") if value.strip(".") else "%2E" * len(value)


def _text(value: str | int | bool | None) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _said(error: httpx.TransportError) -> str:
    return str(error) or type(error).__name__
