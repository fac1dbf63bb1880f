"""Saving a contest's commitment and all that opens it, through the public API alone."""

from __future__ import annotations

from mafl.client import PublicClient, part
from mafl.errors import MaflError
from mafl.verify import COMMITMENT, KEYS, LEAVES, MISMATCHED, OPENINGS, STAMP, openings, placed


async def download(client: PublicClient, contest: str) -> dict[str, bytes]:
    """The files that ``mafl verify`` checks, by name. Raises ``MaflError``.

    What is published and was not committed to is a file of its own, so that it can be shown to others.
    """
    address = f"/api/v1/contests/{part(contest)}"
    made = await client.call("GET", f"{address}/commitment")
    leaves = (await client.call("GET", f"{address}/commitment/leaves")).content
    keys = (await client.call("GET", "/api/v1/keys")).content
    lineups = (await client.call("GET", f"{address}/lineups")).json()["lineups"]
    lines, strange = placed(openings(contest, lineups), leaves)
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
