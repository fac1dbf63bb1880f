"""Stamps: what an RFC 3161 authority, where one is configured, says of when a root was there.

The operator's own signature says who committed; a stamp says when, and does not hang by the operator's clock.
"""

from __future__ import annotations

import asyncio
import hashlib
from datetime import UTC, datetime

import httpx
from rfc3161_client import HashAlgorithm, TimestampRequestBuilder, decode_timestamp_response

from common.canonical import instant
from common.commitment import root_statement
from common.logs import logger
from common.service import Runtime
from contests.store import Commitment, Store

STAMP_URL = "stamp url"
"""The name under which the runtime's state has the authority's address."""

_PAUSE, _PAUSE_AFTER_FAILURE = 2.0, 60.0
_PATIENCE = 20.0
_MOST_BYTES = 64 * 1024


class StampRefused(Exception):
    """The authority's answer is no stamp of what it was asked for."""


def statement_of(made: Commitment) -> bytes:
    """What is signed, and stamped."""
    return root_statement(
        contest=made.contest,
        locked_at=instant(made.locked_at),
        entries=made.entries,
        leaves=made.size,
        root=made.root.hex(),
    )


async def stamp(url: str, statement: bytes, client: httpx.AsyncClient) -> tuple[bytes, datetime]:
    """The authority's answer in DER, and the time it states. Raises ``StampRefused``, ``httpx.HTTPError``."""
    request = TimestampRequestBuilder().data(statement).hash_algorithm(HashAlgorithm.SHA256).build()
    headers = {"Content-Type": "application/timestamp-query"}
    answer = await client.post(url, content=request.as_bytes(), headers=headers)
    answer.raise_for_status()
    if len(answer.content) > _MOST_BYTES:
        raise StampRefused(f"the answer has {len(answer.content)} bytes")
    try:
        response = decode_timestamp_response(answer.content)
        if response.status != 0:
            raise StampRefused(f"status {response.status}: {' '.join(response.status_string)}")
        info = response.tst_info
        said, nonce, at = info.message_imprint.message, info.nonce, info.gen_time
    except ValueError as error:
        raise StampRefused(f"the answer is no timestamp: {error}") from None
    if said != hashlib.sha256(statement).digest() or nonce != request.nonce:
        raise StampRefused("the answer is of another request")
    return answer.content, at if at.tzinfo else at.replace(tzinfo=UTC)


async def stamp_roots(runtime: Runtime) -> None:
    """Have each root stamped as soon as it is there; where the authority does not answer, until it does.

    Any number of copies may do so: the first stamp that is stored stays.
    """
    url: str = runtime.state[STAMP_URL]
    async with httpx.AsyncClient(timeout=_PATIENCE) as client:
        while True:
            pause = _PAUSE
            async with runtime.database.transaction() as connection:
                unstamped = await Store(connection).unstamped()
            for made in unstamped:
                try:
                    content, at = await stamp(url, statement_of(made), client)
                except (httpx.HTTPError, StampRefused) as error:
                    runtime.metrics.task_failures.labels("stamp_roots").inc()
                    logger.warning("a root was not stamped", contest=made.contest, error=str(error)[:200])
                    pause = _PAUSE_AFTER_FAILURE
                    continue
                async with runtime.database.transaction() as connection:
                    await Store(connection).add_stamp(made.contest, content, at)
            await asyncio.sleep(pause)
