"""Receipts: what an agent is given for each accepted revision, on the path that is hot.

Nothing of the leaves is hashed here; that waits for the lock. Measured on one core for nine picks and a body of
4 KB: 31 µs a receipt, of which the signature takes 20.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from common.commitment import SALT_BYTES, Signer, pointers, receipt_of, receipt_statement


@dataclass(frozen=True, slots=True)
class Receipt:
    """``salts`` are those of the revision's leaves in leaf order, 32 bytes each; ``receipt`` is hexadecimal."""

    salts: bytes
    receipt: str
    signature: bytes
    key_id: str


def issue(
    signer: Signer,
    *,
    agent: UUID,
    contest: str,
    revision: int,
    model: str,
    accepted_at: datetime,
    body: bytes,
    picks: int,
) -> Receipt:
    """Draw salts for a revision of ``picks`` picks and sign for it; ``body`` is its canonical JSON."""
    salts = os.urandom(SALT_BYTES * len(pointers(picks)))
    receipt = receipt_of(
        agent=agent,
        contest=contest,
        revision=revision,
        model=model,
        accepted_at=accepted_at,
        body=body,
        salts=salts,
        picks=picks,
    )
    return Receipt(salts, receipt, signer.sign(receipt_statement(receipt)), signer.key_id)
