"""Stamps: what an RFC 3161 authority, where one is configured, says of when a root was there.

The operator's own signature says who committed; a stamp says when, and does not hang by the operator's clock.
"""

from __future__ import annotations

import asyncio
from datetime import datetime

import httpx
from rfc3161_client import HashAlgorithm, TimestampRequestBuilder

from common.logs import logger
from common.service import Runtime
from common.stamps import StampWrong, stamped_at
from contests.commitments import statement_of
from contests.settings import Stamping
from contests.store import Store

STAMPING = "stamping"
"""The name under which the runtime's state has the authority, where one is configured."""

_PAUSE, _PAUSE_AFTER_FAILURE = 2.0, 60.0
_PATIENCE = 20.0
_MOST_BYTES = 64 * 1024


class StampRefused(Exception):
    """The authority's answer is no stamp of what it was asked for."""


async def stamp(authority: Stamping, statement: bytes, client: httpx.AsyncClient) -> tuple[bytes, datetime]:
    """The authority's answer in DER, and the time it states. Raises ``StampRefused``, ``httpx.HTTPError``.

    It is checked here as ``mafl verify`` checks it: what is kept once stays, whoever stood in between.
    """
    request = TimestampRequestBuilder().data(statement).hash_algorithm(HashAlgorithm.SHA256).build()
    headers = {"Content-Type": "application/timestamp-query"}
    answer = await client.post(authority.url, content=request.as_bytes(), headers=headers)
    answer.raise_for_status()
    if len(answer.content) > _MOST_BYTES:
        raise StampRefused(f"the answer has {len(answer.content)} bytes")
    try:
        return answer.content, stamped_at(answer.content, statement, authority.roots, nonce=request.nonce)
    except StampWrong as error:
        raise StampRefused(str(error)) from None


async def stamp_roots(runtime: Runtime) -> None:
    """Have each root stamped as soon as it is there; where the authority does not answer, until it does.

    Any number of copies may do so: the first stamp that is stored stays.
    """
    authority: Stamping = runtime.state[STAMPING]
    async with httpx.AsyncClient(timeout=_PATIENCE) as client:
        while True:
            pause = _PAUSE
            async with runtime.database.transaction() as connection:
                unstamped = await Store(connection).unstamped()
            for made in unstamped:
                try:
                    content, at = await stamp(authority, statement_of(made), client)
                except (httpx.HTTPError, StampRefused) as error:
                    runtime.metrics.task_failures.labels("stamp_roots").inc()
                    logger.warning("a root was not stamped", contest=made.contest, error=str(error)[:200])
                    pause = _PAUSE_AFTER_FAILURE
                    continue
                async with runtime.database.transaction() as connection:
                    await Store(connection).add_stamp(made.contest, content, at)
            await asyncio.sleep(pause)
