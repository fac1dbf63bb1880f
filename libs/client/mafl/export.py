"""Saving a contest's commitment and all that opens it, through the public API alone."""

from __future__ import annotations

import asyncio
from typing import Any

from mafl.client import PublicClient, part
from mafl.errors import MaflError
from mafl.verify import COMMITMENT, KEYS, LEAVES, MISMATCHED, OPENINGS, STAMP, openings, placed

_PATIENCE = 10.0
"""Seconds that a text which was just redacted may still be seen on the pages."""


async def download(client: PublicClient, contest: str) -> dict[str, bytes]:
    """The files that ``mafl verify`` checks, by name. Raises ``MaflError``.

    What is published and was not committed to is a file of its own, so that it can be shown to others.
    """
    address = f"/api/v1/contests/{part(contest)}"
    made = await client.call("GET", f"{address}/commitment")
    leaves = (await client.call("GET", f"{address}/commitment/leaves")).content
    keys = (await client.call("GET", "/api/v1/keys")).content
    for _ in range(round(_PATIENCE)):
        tombstones = await _tombstones(client, address)
        lineups = (await client.call("GET", f"{address}/lineups")).json()["lineups"]
        lines, strange = placed(openings(contest, lineups), leaves, tombstones)
        if not any(b'"kind":"mafl-redaction-1"' in one for one in strange):
            break
        await asyncio.sleep(1)
    try:
        stamp = (await client.call("GET", f"{address}/commitment/stamp")).content
    except MaflError as error:
        if error.code != "stamp-missing":
            raise
        stamp = b""
    files = {COMMITMENT: made.content, LEAVES: leaves, KEYS: keys, OPENINGS: lines}
    if stamp:
        files[STAMP] = stamp
    if strange:
        files[MISMATCHED] = b"".join(data + b"\n" for data in strange)
    return files


async def _tombstones(client: PublicClient, address: str) -> list[dict[str, Any]]:
    """The tombstones of a contest; none where the server is older than redactions."""
    try:
        listed: list[dict[str, Any]] = (await client.call("GET", f"{address}/commitment/redactions")).json()[
            "redactions"
        ]
    except MaflError as error:
        if error.code != "not-found":
            raise
        return []
    return listed
