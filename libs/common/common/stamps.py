"""Stamps of an RFC 3161 authority: what one says, and whether it is its own word. Pure.

Who keeps a stamp and who checks one both go by this module.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast

from cryptography.x509 import Certificate
from rfc3161_client import TimeStampResponse, VerificationError, VerifierBuilder, decode_timestamp_response
from rfc3161_client.tsp import PKIStatus

_GRANTED = (PKIStatus.GRANTED, PKIStatus.GRANTED_WITH_MODS)


class StampWrong(ValueError):
    """Bytes that are no stamp of the statement, or none of an authority that is believed, with why."""


class _Plain:
    """A response whose status counts as granted: the library's verifier knows no other, and modifications of the
    request's policy or extensions take nothing from what is signed."""

    status = PKIStatus.GRANTED

    def __init__(self, response: TimeStampResponse) -> None:
        self._response = response

    def __getattr__(self, name: str) -> Any:
        return getattr(self._response, name)


def stamped_at(
    content: bytes, statement: bytes, roots: Sequence[Certificate] = (), *, nonce: int | None = None
) -> datetime:
    """When the authority says that the statement was there. ``content`` is its answer, in DER. Raises ``StampWrong``.

    The signature is checked up to one of ``roots``; without any it is not. ``nonce`` is that of the request,
    where it is known.
    """
    try:
        response = decode_timestamp_response(content)
        if response.status not in _GRANTED:
            raise StampWrong(f"status {response.status}: {' '.join(response.status_string)}")
        info = response.tst_info
        if info.message_imprint.message != hashlib.sha256(statement).digest():
            raise StampWrong("it is of something else")
        if nonce is not None and info.nonce != nonce:
            raise StampWrong("it answers another request")
        if roots:
            verifier = VerifierBuilder(roots=list(roots)).build()
            verifier.verify_message(cast("TimeStampResponse", _Plain(response)), statement)
        at = info.gen_time
    except StampWrong:
        raise
    except (ValueError, VerificationError) as error:
        raise StampWrong(f"it is no stamp of an authority that is believed: {error}") from None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
