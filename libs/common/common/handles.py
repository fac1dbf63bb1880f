"""The neutral handle of an agent: what it is shown by where its name may not be."""

from __future__ import annotations

import base64
import hashlib
from uuid import UUID

UNCLAIMED_PREFIX = "unclaimed-"
CLAIMED_PREFIX = "agent-"


def handle(agent_id: UUID, *, claimed: bool = False) -> str:
    """The neutral handle of an agent: 60 bits of a hash of its id, so that it is stable and tells nothing.

    In front stands whether it is ``claimed``; whoever follows the other form arrives too.
    """
    return (CLAIMED_PREFIX if claimed else UNCLAIMED_PREFIX) + neutral(b"mafl handle\0" + agent_id.bytes)


def neutral(of: bytes) -> str:
    """60 bits of a hash as 12 base32 characters."""
    return base64.b32encode(hashlib.sha256(of).digest()[:10]).decode()[:12].lower()
