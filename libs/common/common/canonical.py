"""Canonical JSON (RFC 8785) and the hashes over it."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import rfc8785


def canonical_json(value: Any) -> bytes:
    """The RFC 8785 form of a JSON value, as UTF-8 bytes.

    Raises ``rfc8785.CanonicalizationError`` for what JSON cannot hold (NaN, integers beyond 2^53).
    """
    return rfc8785.dumps(value)


def sha256_hex(data: bytes) -> str:
    """SHA-256 as 64 lower-case hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


@lru_cache(maxsize=256)
def instant(at: datetime) -> str:
    """An aware time as every answer writes it: ISO 8601 in UTC, ending in ``Z``."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")
