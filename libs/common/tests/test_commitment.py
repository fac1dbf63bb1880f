"""Leaves, the tree, receipts and keys."""

from __future__ import annotations

import base64
import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
import rfc8785
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given
from hypothesis import strategies as st

from common import commitment
from common.commitment import Entry, KeyMalformed, Signer, Tree, is_included, is_signed, key_id, leaf_hash

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
ENTRIES = st.builds(
    Entry,
    agent=st.uuids(),
    contest=st.from_regex(r"\d{4}-W\d{2}", fullmatch=True),
    revision=st.integers(1, 10**6),
    model=TEXT,
    accepted_at=st.datetimes(timezones=st.just(UTC)),
)
CONFIDENCE = st.floats(0, 1)
PICKS = st.lists(
    st.fixed_dictionaries(
        {"slot": TEXT, "player_id": TEXT, "price": st.integers(1, 10**6), "confidence": CONFIDENCE | st.integers(0, 1)}
    ),
    max_size=12,
)

# --- the tree -------------------------------------------------------------------------------------

# The inputs and roots that the Certificate Transparency project has published for RFC 6962 (whose tree is RFC
# 9162's): the roots of the first 0, 1, … 8 of them.
PUBLISHED_LEAVES = [
    bytes.fromhex(data)
    for data in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
PUBLISHED_ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
PUBLISHED_PATHS = {
    # (leaf, size): its path
    (0, 8): [
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ],
    (5, 8): [
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ],
    (2, 3): ["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"],
    (1, 5): [
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    ],
}


def tree_of(leaves: list[bytes]) -> Tree:
    return Tree(b"".join(map(leaf_hash, leaves)))


def root_by_the_rfc(leaves: list[bytes]) -> bytes:
    """MTH of RFC 9162, 2.1.1, word for word: slow, and from above."""
    if not leaves:
        return hashlib.sha256().digest()
    if len(leaves) == 1:
        return hashlib.sha256(b"\x00" + leaves[0]).digest()
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return hashlib.sha256(b"\x01" + root_by_the_rfc(leaves[:split]) + root_by_the_rfc(leaves[split:])).digest()


def path_by_the_rfc(index: int, leaves: list[bytes]) -> list[bytes]:
    """PATH of RFC 9162, 2.1.3.1, word for word."""
    if len(leaves) == 1:
        return []
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    if index < split:
        return [*path_by_the_rfc(index, leaves[:split]), root_by_the_rfc(leaves[split:])]
    return [*path_by_the_rfc(index - split, leaves[split:]), root_by_the_rfc(leaves[:split])]


@pytest.mark.rule("C10")
def test_the_tree_has_the_roots_and_paths_that_were_published_for_it() -> None:
    for size, root in enumerate(PUBLISHED_ROOTS):
        assert tree_of(PUBLISHED_LEAVES[:size]).root.hex() == root, size
    for (index, size), path in PUBLISHED_PATHS.items():
        assert [step.hex() for step in tree_of(PUBLISHED_LEAVES[:size]).path(index)] == path, (index, size)


@pytest.mark.rule("C10")
@given(st.lists(st.binary(max_size=8), max_size=70))
def test_the_tree_is_the_one_that_the_rfc_describes_from_above(leaves: list[bytes]) -> None:
    tree = tree_of(leaves)
    assert tree.size == len(leaves)
    assert tree.root == root_by_the_rfc(leaves)
    for index, leaf in enumerate(leaves):
        path = tree.path(index)
        assert path == path_by_the_rfc(index, leaves)
        assert is_included(leaf_hash(leaf), index, len(leaves), path, tree.root)
    for index in (-1, len(leaves)):
        with pytest.raises(IndexError):
            tree.path(index)


@pytest.mark.rule("C10")
@given(st.integers(1, 40), st.data())
def test_a_proof_proves_nothing_else(size: int, data: st.DataObject) -> None:
    leaves = [bytes([number]) for number in range(size)]
    tree = tree_of(leaves)
    index = data.draw(st.integers(0, size - 1), label="index")
    leaf, path, root = leaf_hash(leaves[index]), tree.path(index), tree.root
    bit = 1 << data.draw(st.integers(0, 255), label="bit")

    def flipped(value: bytes) -> bytes:
        return (int.from_bytes(value) ^ bit).to_bytes(32)

    assert is_included(leaf, index, size, path, root)
    assert not is_included(flipped(leaf), index, size, path, root)
    assert not is_included(leaf, index, size, path, flipped(root))
    for step in range(len(path)):
        assert not is_included(leaf, index, size, [*path[:step], flipped(path[step]), *path[step + 1 :]], root)
        assert not is_included(leaf, index, size, [*path[:step], *path[step + 1 :]], root)
    assert not is_included(leaf, index, size, [*path, root], root)
    for other in range(size):
        assert (other == index) == is_included(leaf, other, size, path, root)
    for wrong in (-1, size, size + 1):
        assert not is_included(leaf, wrong, size, path, root)


def test_what_is_no_whole_number_of_hashes_is_no_tree() -> None:
    with pytest.raises(ValueError, match="33 bytes"):
        Tree(b"x" * 33)


# --- leaves and receipts --------------------------------------------------------------------------


@given(TEXT, st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53) + 1, 2**53 - 1))
def test_strings_and_numbers_are_written_as_rfc_8785_has_them(text: str, number: float) -> None:
    assert commitment.json_string(text).encode() == rfc8785.dumps(text)
    assert commitment.json_number(number).encode() == rfc8785.dumps(number)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_in_json_is_refused(number: float) -> None:
    with pytest.raises(rfc8785.FloatDomainError):
        commitment.json_number(number)


@pytest.mark.rule("C10")
@given(ENTRIES, TEXT, TEXT, st.binary(min_size=32, max_size=32))
def test_a_leaf_is_the_canonical_json_of_its_members(entry: Entry, pointer: str, text: str, salt: bytes) -> None:
    values = {pointer: text, "/other": text + "!"}
    salts = salt + salt[::-1]
    assert entry.leaves({name: rfc8785.dumps(value) for name, value in values.items()}, salts) == [
        rfc8785.dumps(
            {
                "agent": str(entry.agent),
                "contest": entry.contest,
                "revision": entry.revision,
                "model": entry.model,
                "accepted_at": entry.accepted_at.isoformat().replace("+00:00", "Z"),
                "pointer": name,
                "value": value,
                "salt": salts[32 * at : 32 * at + 32].hex(),
            }
        )
        for at, (name, value) in enumerate(values.items())
    ]
    with pytest.raises(ValueError, match="64 bytes are not 1 salts"):
        entry.leaves({pointer: b"1"}, salts)


@pytest.mark.rule("C10")
@given(PICKS, st.integers(0, 10**6), st.integers(-(10**5), 10**5), CONFIDENCE)
def test_the_value_of_the_picks_is_the_canonical_json_of_what_the_lock_tells(
    picks: list[dict[str, Any]], total_price: int, projected_score: int, confidence: float
) -> None:
    numbers: dict[str, Any] = {
        "total_price": total_price,
        "projected_score": projected_score,
        "confidence": confidence,
    }
    assert commitment.picks_value(picks, **numbers) == rfc8785.dumps({"picks": picks, **numbers})


@pytest.mark.rule("C10")
def test_leaves_stand_in_the_order_of_their_pointers() -> None:
    assert commitment.pointers(1) == ("", "/picks/0/main_factor", "/picks/0/rationale", "/thesis")
    many = commitment.pointers(12)
    assert list(many) == sorted(many)
    assert len(many) == 2 + 2 * 12
    assert many.index("/picks/1/rationale") < many.index("/picks/10/main_factor") < many.index("/picks/2/main_factor")


@pytest.mark.rule("C10")
@given(ENTRIES, st.dictionaries(TEXT, TEXT), st.integers(0, 12), st.randoms(use_true_random=False))
def test_a_receipt_is_the_hash_of_the_canonical_json_of_the_whole(
    entry: Entry, body: dict[str, str], picks: int, chance: Any
) -> None:
    salts = chance.randbytes(32 * (2 + 2 * picks))
    whole = {
        "agent": str(entry.agent),
        "contest": entry.contest,
        "revision": entry.revision,
        "model": entry.model,
        "accepted_at": entry.accepted_at.isoformat().replace("+00:00", "Z"),
        "body": body,
        "salts": commitment.salts_by_pointer(salts, picks),
    }
    receipt = commitment.receipt_of(
        agent=entry.agent,
        contest=entry.contest,
        revision=entry.revision,
        model=entry.model,
        accepted_at=entry.accepted_at,
        body=rfc8785.dumps(body),
        salts=salts,
        picks=picks,
    )
    assert receipt == hashlib.sha256(rfc8785.dumps(whole)).hexdigest()


def test_salts_that_are_not_one_for_each_leaf_are_refused() -> None:
    assert set(commitment.salts_by_pointer(b"x" * 128, 1).values()) == {"78" * 32}
    with pytest.raises(ValueError, match="127 bytes are not 4 salts"):
        commitment.salts_by_pointer(b"x" * 127, 1)


# --- keys and signatures --------------------------------------------------------------------------


def test_signatures_are_those_of_rfc_8032() -> None:
    # RFC 8032, 7.1, test 2.
    signer = Signer.from_seed(bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"))
    assert signer.public_key.hex() == "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
    assert signer.sign(b"\x72").hex() == (
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    )
    assert signer.key_id == hashlib.sha256(signer.public_key).hexdigest()[:16] == key_id(signer.public_key)


@pytest.mark.rule("C10")
def test_a_signature_is_of_one_statement_and_one_key() -> None:
    signer, other = Signer.generate(), Signer.generate()
    receipt = commitment.receipt_statement("ab" * 32)
    said = {"contest": "2017-W04", "locked_at": "2017-10-01T17:00:00Z", "entries": 2, "leaves": 40, "root": "ab" * 32}
    root = commitment.root_statement({"kind": "mafl-root-1", **said, "key_id": signer.key_id, "signature": "cd" * 64})
    assert receipt == rfc8785.dumps({"kind": "mafl-receipt-1", "receipt": "ab" * 32})
    assert json.loads(root) == {
        "kind": "mafl-root-1",
        "contest": "2017-W04",
        "locked_at": "2017-10-01T17:00:00Z",
        "entries": 2,
        "leaves": 40,
        "root": "ab" * 32,
    }
    signature = signer.sign(receipt)
    assert is_signed(receipt, signature, signer.public_key)
    assert not is_signed(root, signature, signer.public_key)
    assert not is_signed(receipt, signature, other.public_key)
    assert not is_signed(receipt, signature[:-1], signer.public_key)
    assert not is_signed(receipt, bytes([signature[0] ^ 1]) + signature[1:], signer.public_key)
    assert not is_signed(receipt, signature, signer.public_key[:-1])


def test_a_key_is_read_in_pem_and_as_a_seed_and_nothing_else_is_taken_for_one() -> None:
    signer = Signer.generate()
    for text in (signer.pem, signer.seed, f"\n{signer.seed}\n", signer.pem.replace("\n", "\\n")):
        assert Signer.read(text).public_key == signer.public_key
    assert commitment.public_key(signer.public_key.hex()) == signer.public_key
    assert commitment.public_key(base64.b64encode(signer.public_key).decode()) == signer.public_key
    curve = generate_private_key(SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    for text, said in (
        ("", "seed of 32 bytes"),
        ("secret", "seed of 32 bytes"),
        (base64.b64encode(b"x" * 31).decode(), "seed of 32 bytes"),
        ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----", "no private key in PEM"),
        (curve, "must be an Ed25519 key"),
    ):
        with pytest.raises(KeyMalformed, match=said):
            Signer.read(text)
    for text in ("", "xyz", "ab" * 31, "zz" * 32):
        with pytest.raises(KeyMalformed, match="32 bytes"):
            commitment.public_key(text)


def test_an_entry_says_its_instant_in_utc() -> None:
    zoned = datetime(2017, 10, 1, 13, tzinfo=UTC) + timedelta(microseconds=5)
    entry = Entry(UUID(int=1), "2017-W04", 1, "m", zoned)
    (leaf,) = entry.leaves({"": b"1"}, b"\x07" * 32)
    assert b'"accepted_at":"2017-10-01T13:00:00.000005Z"' in leaf
