"""What a contest commits to at its lock: the leaves of its final revisions, their signed root, proofs of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from common import commitment
from common.canonical import canonical_json, instant
from common.commitment import HASH_BYTES, PICKS, Entry, Signer, Tree, json_string, leaf_hash, picks_value, pointers
from contests.domain import Commitment, Contest, Revision, Tombstone


def leaves_of(final: Revision) -> list[bytes | None]:
    """The data of a revision's leaves, in leaf order; ``None`` of a text that was redacted."""
    body = json.loads(final.body)
    values: dict[str, bytes] = {}
    for pointer in pointers(len(final.picks)):
        if pointer in final.redacted:
            values[pointer] = b"null"
        elif pointer == PICKS:
            values[pointer] = picks_value(
                final.picks,
                total_price=final.total_price,
                projected_score=final.projected_score,
                confidence=final.confidence,
            )
        elif pointer == "/thesis":
            values[pointer] = json_string(body["thesis"]).encode()
        else:
            _, _, place, name = pointer.split("/")
            values[pointer] = json_string(body["picks"][int(place)][name]).encode()
    entry = Entry(final.agent_id, final.contest, final.revision, final.model, final.accepted_at)
    leaves = entry.leaves(values, final.salts)
    return [None if pointer in final.redacted else leaf for pointer, leaf in zip(values, leaves, strict=True)]


def leaf_hashes_of(final: Revision) -> list[bytes]:
    """The hashes of a revision's leaves, in leaf order: of a text that was redacted the one that its tombstone kept."""
    return [
        final.redacted[pointer].leaf if leaf is None else leaf_hash(leaf)
        for pointer, leaf in zip(pointers(len(final.picks)), leaves_of(final), strict=True)
    ]


def hashes_of(finals: Sequence[Revision]) -> bytes:
    """The hashes of the leaves of final revisions, one after the other.

    Blocks: 0.5 s of one core for 10,000 lineups of nine picks, 200,000 leaves.
    """
    return b"".join([hashed for final in finals for hashed in leaf_hashes_of(final)])


def commit(signer: Signer, contest: Contest, entries: int, hashes: bytes) -> Commitment:
    """The commitment of a contest that locks at its lock instant to its final revisions, so many.

    ``hashes`` are those of its leaves in their order: by agent's id, which sorts as its text does; of an agent there
    is one final revision. Blocks: 0.15 s of one core for 200,000 leaves.
    """
    tree = Tree(hashes)
    unsigned = Commitment(
        contest=contest.contest,
        locked_at=contest.locks_at,
        entries=entries,
        size=tree.size,
        root=tree.root,
        signature=b"",
        key_id=signer.key_id,
    )
    return replace(unsigned, signature=signer.sign(statement_of(unsigned)))


def statement_of(made: Commitment) -> bytes:
    """What is signed, and stamped."""
    return commitment.root_statement(document(made))


def document(made: Commitment) -> dict[str, Any]:
    """A commitment as it is published."""
    return {
        "kind": commitment.ROOT_KIND,
        "contest": made.contest,
        "locked_at": instant(made.locked_at),
        "entries": made.entries,
        "leaves": made.size,
        "root": made.root.hex(),
        "key_id": made.key_id,
        "signature": made.signature.hex(),
    }


def proof(made: Commitment, tree: Tree, final: Revision, signer: Signer) -> bytes:
    """The proof of an agent's own final revision, in canonical JSON: each leaf's data with its place and path.

    In the place of the data of a text that was redacted stands its tombstone, signed.
    """
    leaves = leaves_of(final)
    first = _place(tree, leaf_hashes_of(final)[0])
    proven = [
        {
            "index": first + at,
            "path": [step.hex() for step in tree.path(first + at)],
            **({"data": json.loads(data)} if data is not None else {"redacted": signed(final.redacted[name], signer)}),
        }
        for at, (name, data) in enumerate(zip(pointers(len(final.picks)), leaves, strict=True))
    ]
    return canonical_json({"commitment": document(made), "leaves": proven})


def signed(tombstone: Tombstone, signer: Signer) -> dict[str, Any]:
    """A tombstone as it is published, signed with the key in use."""
    said = {
        "kind": commitment.REDACTION_KIND,
        "contest": tombstone.contest,
        "leaf": tombstone.leaf.hex(),
        "pointer": tombstone.pointer,
        "reason": tombstone.reason,
        "redacted_at": instant(tombstone.redacted_at),
    }
    return {**said, "key_id": signer.key_id, "signature": signer.sign(commitment.root_statement(said)).hex()}


def _place(tree: Tree, wanted: bytes) -> int:
    """Where a leaf with this hash stands. Raises ``ValueError`` for one that is not in the tree."""
    found = tree.hashes.find(wanted)
    while found >= 0 and found % HASH_BYTES:
        found = tree.hashes.find(wanted, found + 1)
    if found < 0:
        raise ValueError("a final revision is not in the tree of its contest")
    return found // HASH_BYTES
