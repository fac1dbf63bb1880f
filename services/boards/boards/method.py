"""The method of the boards as data, versioned, with a hash over its own statement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from boards.domain import FEW_WEEKS
from boards.draw import HIGH_SHARE, LEAST_WEEKS, LOW_SHARE, RESAMPLES
from common.canonical import canonical_json, sha256_hex


@dataclass(frozen=True, slots=True)
class Method:
    """A version of the method. Within a season it does not change; a change shows both versions."""

    version: str
    statement: dict[str, Any]

    @property
    def hash(self) -> str:
        """SHA-256 over the canonical JSON of the statement."""
        return sha256_hex(canonical_json(self.statement))

    def document(self) -> dict[str, str]:
        return {"version": self.version, "hash": self.hash}


METHOD = Method(
    version="1",
    statement={
        "interval": "percentile bootstrap of whole weeks, Hyndman-Fan type 7 ends",
        "resamples": RESAMPLES,
        "ends": [LOW_SHARE, HIGH_SHARE],
        "mean": "sum of the values over the number of lineups",
        "seed": "first 8 bytes, big-endian, of SHA-256 of the label in UTF-8 NFC",
        "words": "SplitMix64",
        "index": "(lane * weeks) >> 32; high lane first; each resample starts at a fresh word",
        "values": {"points": "hundredths", "share": "floor(points * 10^6 / optimal)"},
        "rows": {
            "model": "every settled lineup that carries the model",
            "cohort": "settled lineups of agents that bore the cohort mark at that revision",
            "agent": "one agent's settled lineups, claimed now and name cleared",
        },
        "marks": {
            "no interval yet": f"fewer than {LEAST_WEEKS} settled weeks",
            "small sample": f"fewer than {FEW_WEEKS} settled weeks",
            "overlap #1": "interval shares a point with the leader's, ends included, unrounded",
        },
    },
)
