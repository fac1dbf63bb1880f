"""``docs/vectors/commitments.json``, made by a second program: the rules of docs/commitments.md in other words.

It shares no line with ``common.commitment``, so that each of the two checks the other. The published file is never
changed, only added to: whoever wrote a program against it must find it as it was.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from testkit.rules import ROOT

PATH: Path = ROOT / "docs" / "vectors" / "commitments.json"

_SEED = hashlib.sha256(b"a signing key for test vectors and nothing else").digest()
_CONTEST, _LOCK = "2017-W04", "2017-10-01T17:00:00Z"

_ENTRIES: list[dict[str, Any]] = [
    {
        "agent": "5b1a3c9e-7a64-5f0e-8f37-6b0c9d3b1a10",
        "revision": 2,
        "model": "openai/gpt-5",
        "accepted_at": "2017-09-29T09:30:00.123456Z",
        "prices": [6100, 4800],
        "body": {
            "picks": [
                {
                    "slot": "QB",
                    "player_id": "00-0031280",
                    "rationale": "Cheap for a starter; “the other side” gives up the most yards.\nSo I take him.",
                    "confidence": 0.55,
                    "main_factor": "price",
                },
                {
                    "slot": "TE",
                    "player_id": "00-0027656",
                    "rationale": 'Red zone \U0001f3c8 targets: \\ / " \u0007 \u2028.',
                    "confidence": 1,
                    "main_factor": "volume",
                },
            ],
            "thesis": "Zwei billige, größer gedacht.",
            "projected_score": 92.5,
            "confidence": 0.5,
        },
    },
    {
        "agent": "0d9f2b8a-1f6e-4c57-9a53-2f4a7c1e8b66",
        "revision": 1,
        "model": "reference/cheapest-legal",
        "accepted_at": "2017-10-01T16:59:59Z",
        "prices": [3000],
        "body": {
            "picks": [
                {
                    "slot": "DST",
                    "player_id": "DST-NYJ",
                    "rationale": "x",
                    "confidence": 1e-7,
                    "main_factor": "y",
                }
            ],
            "thesis": "z",
            "projected_score": 0,
            "confidence": 0,
        },
    },
]


def vectors() -> dict[str, Any]:
    """The document: inputs, and every value on the way from them to the signed root."""
    key = Ed25519PrivateKey.from_private_bytes(_SEED)
    public = key.public_key().public_bytes_raw()
    named = hashlib.sha256(public).hexdigest()[:16]

    def signed(statement: Any) -> str:
        return key.sign(rfc8785.dumps(statement)).hex()

    receipts, leaves = [], []
    for entry in sorted(_ENTRIES, key=lambda entry: str(entry["agent"])):
        body, values = entry["body"], {}
        values[""] = {
            "picks": [
                {
                    "slot": pick["slot"],
                    "player_id": pick["player_id"],
                    "price": price,
                    "confidence": pick["confidence"],
                }
                for pick, price in zip(body["picks"], entry["prices"], strict=True)
            ],
            "total_price": sum(entry["prices"]),
            "projected_score": round(body["projected_score"] * 100),
            "confidence": body["confidence"],
        }
        values["/thesis"] = body["thesis"]
        for place, pick in enumerate(body["picks"]):
            for name in ("rationale", "main_factor"):
                values[f"/picks/{place}/{name}"] = pick[name]
        salts = {pointer: hashlib.sha256(f"salt {entry['agent']} {pointer}".encode()).hexdigest() for pointer in values}
        same = {name: entry[name] for name in ("accepted_at", "agent", "model", "revision")} | {"contest": _CONTEST}
        receipt = hashlib.sha256(rfc8785.dumps({**same, "body": body, "salts": salts})).hexdigest()
        receipts.append(
            {
                **same,
                "body": body,
                "prices": entry["prices"],
                "total_price": sum(entry["prices"]),
                "salts": salts,
                "receipt": receipt,
                "key_id": named,
                "signature": signed({"kind": "mafl-receipt-1", "receipt": receipt}),
            }
        )
        leaves += [
            rfc8785.dumps({**same, "pointer": pointer, "value": values[pointer], "salt": salts[pointer]})
            for pointer in sorted(values)
        ]
    root = _head(leaves).hex()
    gone = rfc8785.dumps(
        {
            "kind": "mafl-redaction-1",
            "contest": _CONTEST,
            "leaf": hashlib.sha256(b"\0" + leaves[1]).hexdigest(),
            "pointer": "/picks/0/main_factor",
            "reason": "personal-data",
            "redacted_at": "2017-10-03T09:00:00Z",
        }
    )
    statement = {
        "kind": "mafl-root-1",
        "contest": _CONTEST,
        "locked_at": _LOCK,
        "entries": len(_ENTRIES),
        "leaves": len(leaves),
        "root": root,
    }
    listed = [{"key_id": named, "algorithm": "Ed25519", "public_key": public.hex(), "retired_at": None}]
    return {
        "about": "Test vectors for docs/commitments.md. The seed is published: it signs nothing else.",
        "seed": _SEED.hex(),
        "keys": {
            "kind": "mafl-keys-1",
            "keys": listed,
            "key_id": named,
            "signature": signed({"kind": "mafl-keys-1", "keys": listed}),
        },
        "receipts": receipts,
        "leaves": [
            {"data": leaf.decode(), "hash": hashlib.sha256(b"\0" + leaf).hexdigest(), "path": _path(at, leaves)}
            for at, leaf in enumerate(leaves)
        ],
        "commitment": {**statement, "key_id": named, "signature": signed(statement)},
        "redactions": [{**json.loads(gone), "key_id": named, "signature": key.sign(gone).hex()}],
    }


def _split(leaves: list[bytes]) -> int:
    """The largest power of two below their number."""
    return int(1 << (len(leaves) - 1).bit_length() - 1)


def _head(leaves: list[bytes]) -> bytes:
    if len(leaves) == 1:
        return hashlib.sha256(b"\0" + leaves[0]).digest()
    at = _split(leaves)
    return hashlib.sha256(b"\1" + _head(leaves[:at]) + _head(leaves[at:])).digest()


def _path(index: int, leaves: list[bytes]) -> list[str]:
    if len(leaves) == 1:
        return []
    at = _split(leaves)
    if index < at:
        return [*_path(index, leaves[:at]), _head(leaves[at:]).hex()]
    return [*_path(index - at, leaves[at:]), _head(leaves[:at]).hex()]


def write() -> None:
    """Write the file where there is none yet; a published one stays."""
    if not PATH.exists():
        PATH.parent.mkdir(parents=True, exist_ok=True)
        PATH.write_text(json.dumps(vectors(), ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    write()
