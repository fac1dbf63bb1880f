"""Commitments (docs/commitments.md): leaves, the Merkle tree of RFC 9162 over them, and what is signed with Ed25519.

Pure: bytes and values in, values out. Who publishes and who checks a commitment both go by this module, and
nothing else here computes a hash of either.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache
from json.encoder import encode_basestring
from typing import Any
from uuid import UUID

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from common.canonical import canonical_json, instant, sha256_hex

HASH_BYTES = 32
SALT_BYTES = 32
KEY_BYTES = 32

RECEIPT_KIND = "mafl-receipt-1"
ROOT_KIND = "mafl-root-1"
KEYS_KIND = "mafl-keys-1"
REDACTION_KIND = "mafl-redaction-1"
"""What the signed statements say that they are, so that none can ever pass for another."""

PICKS = ""
"""The pointer of the leaf that holds picks and numbers: the whole of a lineup, less its texts."""


# --- leaves ---------------------------------------------------------------------------------------


@cache
def pointers(picks: int) -> tuple[str, ...]:
    """The pointers of a revision's leaves in leaf order: by Unicode code points, the picks' leaf first."""
    texts = [f"/picks/{place}/{name}" for place in range(picks) for name in ("rationale", "main_factor")]
    return tuple(sorted([PICKS, "/thesis", *texts]))


# The same escapes: the two-letter ones, else \u00xx in lower case below U+0020, and nothing above it.
json_string: Callable[[str], str] = encode_basestring
"""A string as RFC 8785 writes it. A lone surrogate, which it cannot hold, fails when this is encoded."""


@lru_cache(maxsize=1024)
def json_number(number: float) -> str:
    """A number as RFC 8785 writes it."""
    digits = repr(number)
    # Python and JavaScript write the same shortest digits, and differ in whole numbers and exponents only.
    plain = "e" not in digits and "n" not in digits and not digits.endswith(".0")
    return digits if plain else canonical_json(number).decode()


def picks_value(picks: Iterable[dict[str, Any]], *, total_price: int, projected_score: int, confidence: float) -> bytes:
    """The value of the picks' leaf in canonical JSON: what ``lineup.locked`` tells, in the order of the body.

    ``picks`` have slot, player_id, price and confidence; ``projected_score`` is in hundredths.
    """
    listed = ",".join(
        f'{{"confidence":{json_number(pick["confidence"])},"player_id":{json_string(pick["player_id"])},'
        f'"price":{pick["price"]},"slot":{json_string(pick["slot"])}}}'
        for pick in picks
    )
    return (
        f'{{"confidence":{json_number(confidence)},"picks":[{listed}],'
        f'"projected_score":{projected_score},"total_price":{total_price}}}'
    ).encode()


@dataclass(frozen=True, slots=True)
class Entry:
    """A final revision as each of its leaves names it; ``model`` is the one claimed at its submission."""

    agent: UUID
    contest: str
    revision: int
    model: str
    accepted_at: datetime

    def leaves(self, values: Mapping[str, bytes], salts: bytes) -> list[bytes]:
        """The data of leaves in canonical JSON, in the order of ``values``: by pointer, in canonical JSON already.

        ``salts`` stand in the same order, one after the other.
        """
        before = (
            f'{{"accepted_at":"{instant(self.accepted_at)}","agent":"{self.agent}",'
            f'"contest":{json_string(self.contest)},"model":{json_string(self.model)},"pointer":'
        ).encode()
        if len(salts) != SALT_BYTES * len(values):
            raise ValueError(f"{len(salts)} bytes are not {len(values)} salts of {SALT_BYTES}")
        given = salts.hex().encode()
        return [
            b'%b%b,"revision":%d,"salt":"%b","value":%b}'
            % (before, json_string(pointer).encode(), self.revision, given[at : at + 64], value)
            for at, (pointer, value) in zip(range(0, len(given), 64), values.items(), strict=True)
        ]


# --- the tree of RFC 9162, section 2.1 --------------------------------------------------------------


def leaf_hash(data: bytes) -> bytes:
    """The hash of a leaf's data."""
    return hashlib.sha256(b"\x00" + data).digest()


class Tree:
    """A Merkle tree over leaf hashes, given as one string of bytes, 32 each, in order.

    Where a level has an odd end, it stands on the next one as it is: the split at the largest power of two,
    as the RFC has it, from below.
    """

    def __init__(self, hashes: bytes) -> None:
        if len(hashes) % HASH_BYTES:
            raise ValueError(f"{len(hashes)} bytes are no whole number of hashes of {HASH_BYTES}")
        self.size = len(hashes) // HASH_BYTES
        self._levels = [hashes]
        while len(level := self._levels[-1]) > HASH_BYTES:
            pairs = len(level) // (2 * HASH_BYTES)
            nodes = [hashlib.sha256(b"\x01" + level[at * 64 : at * 64 + 64]).digest() for at in range(pairs)]
            self._levels.append(b"".join(nodes) + level[pairs * 64 :])

    @property
    def hashes(self) -> bytes:
        """The leaf hashes that it was made of."""
        return self._levels[0]

    @property
    def root(self) -> bytes:
        """The root; of no leaves at all the hash of nothing."""
        return self._levels[-1] or hashlib.sha256().digest()

    def path(self, index: int) -> list[bytes]:
        """The inclusion proof of a leaf: what stands beside it and its ancestors, from below."""
        if not 0 <= index < self.size:
            raise IndexError(f"there are {self.size} leaves and none at {index}")
        found = []
        for level in self._levels[:-1]:
            beside = (index ^ 1) * HASH_BYTES
            if beside < len(level):
                found.append(level[beside : beside + HASH_BYTES])
            index //= 2
        return found


def is_included(leaf: bytes, index: int, size: int, path: Sequence[bytes], root: bytes) -> bool:
    """Whether an inclusion proof leads from a leaf's hash to the root of ``size`` leaves (RFC 9162, 2.1.3.2)."""
    if not 0 <= index < size:
        return False
    here, last, found = index, size - 1, leaf
    for beside in path:
        if last == 0:
            return False
        if here & 1 or here == last:
            found = hashlib.sha256(b"\x01" + beside + found).digest()
            while not here & 1 and here:
                here, last = here >> 1, last >> 1
        else:
            found = hashlib.sha256(b"\x01" + found + beside).digest()
        here, last = here >> 1, last >> 1
    return last == 0 and found == root


# --- what is signed ---------------------------------------------------------------------------------


def receipt_of(
    *,
    agent: UUID,
    contest: str,
    revision: int,
    model: str,
    accepted_at: datetime,
    body: bytes,
    salts: bytes,
    picks: int,
) -> str:
    """The receipt: SHA-256 of the canonical JSON of {accepted_at, agent, body, contest, model, revision, salts}.

    ``body`` is the lineup in canonical JSON; ``salts`` those of its leaves in their order, one after the other.
    """
    before = f'{{"accepted_at":"{instant(accepted_at)}","agent":"{agent}","body":'
    after = (
        f',"contest":{json_string(contest)},"model":{json_string(model)},"revision":{revision},"salts":'
        + _salts_template(picks) % _in_digits(salts)
        + "}"
    )
    return sha256_hex(b"%b%b%b" % (before.encode(), body, after.encode()))


@cache
def _salts_template(picks: int) -> str:
    """The object of the salts with ``%s`` in the place of each; pointers are ASCII, so both orders are one."""
    return "{" + ",".join(f'{json_string(pointer)}:"%s"' for pointer in pointers(picks)) + "}"


def salts_by_pointer(salts: bytes, picks: int) -> dict[str, str]:
    """The salts of a revision's leaves, in hexadecimal digits."""
    names = pointers(picks)
    if len(salts) != SALT_BYTES * len(names):
        raise ValueError(f"{len(salts)} bytes are not {len(names)} salts of {SALT_BYTES}")
    return dict(zip(names, _in_digits(salts), strict=True))


def _in_digits(salts: bytes) -> tuple[str, ...]:
    """Each of some salts in hexadecimal digits."""
    digits = salts.hex()
    return tuple([digits[at : at + 2 * SALT_BYTES] for at in range(0, len(digits), 2 * SALT_BYTES)])


def receipt_statement(receipt: str) -> bytes:
    """What the signature of a receipt is over, in canonical JSON."""
    return f'{{"kind":"{RECEIPT_KIND}","receipt":{json_string(receipt)}}}'.encode()


def root_statement(published: Mapping[str, Any]) -> bytes:
    """What the signature of a root, or of a tombstone, is over, in canonical JSON: what is published, less who signed
    and how."""
    return canonical_json({name: said for name, said in published.items() if name not in ("key_id", "signature")})


def keys_statement(keys: Sequence[Mapping[str, Any]]) -> bytes:
    """What the signature of the published keys is over, in canonical JSON."""
    return canonical_json({"kind": KEYS_KIND, "keys": list(keys)})


def key_id(public_key: bytes) -> str:
    """How a public key is named: the first 16 hexadecimal digits of its SHA-256."""
    return sha256_hex(public_key)[:16]


class KeyMalformed(ValueError):
    """Text that is no Ed25519 key, with what would be one."""


class Signer:
    """An Ed25519 private key."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.public_key = key.public_key().public_bytes_raw()
        self.key_id = key_id(self.public_key)

    @classmethod
    def generate(cls) -> Signer:
        """A new key from the system's randomness."""
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def from_seed(cls, seed: bytes) -> Signer:
        """The key that grows from 32 bytes."""
        return cls(Ed25519PrivateKey.from_private_bytes(seed))

    @classmethod
    def read(cls, text: str) -> Signer:
        """A key in PEM (PKCS 8, no password), or its seed of 32 bytes in base64. Raises ``KeyMalformed``."""
        if "-----BEGIN" in text:
            try:
                key = load_pem_private_key(text.replace("\\n", "\n").strip().encode(), password=None)
            except (ValueError, TypeError) as error:
                raise KeyMalformed(f"this is no private key in PEM without a password ({error})") from None
            if not isinstance(key, Ed25519PrivateKey):
                raise KeyMalformed("this private key is of another kind: it must be an Ed25519 key")
            return cls(key)
        return cls.from_seed(_base64(text, "a private key is PEM (PKCS 8), or a seed of 32 bytes in base64"))

    @property
    def pem(self) -> str:
        """The private key in PEM."""
        return self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()

    @property
    def seed(self) -> str:
        """The private key's seed in base64, one line."""
        return base64.b64encode(self._key.private_bytes_raw()).decode()

    def sign(self, statement: bytes) -> bytes:
        """The signature of a statement, 64 bytes; the same statement always has the same one."""
        return self._key.sign(statement)


def public_key(text: str) -> bytes:
    """A public key from its 32 bytes in base64 or 64 hexadecimal digits. Raises ``KeyMalformed``."""
    text = text.strip()
    if len(text) == 2 * KEY_BYTES:
        try:
            return bytes.fromhex(text)
        except ValueError:
            pass
    return _base64(text, "a public key is 32 bytes, in base64 or in hexadecimal digits")


def _base64(text: str, otherwise: str) -> bytes:
    try:
        raw = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if len(raw) != KEY_BYTES:
        raise KeyMalformed(otherwise)
    return raw


def is_signed(statement: bytes, signature: bytes, public_key: bytes) -> bool:
    """Whether a signature over a statement is the public key's."""
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, statement)
    except (InvalidSignature, ValueError):
        return False
    return True
