"""``mafl verify``: what is whole passes, and whatever is changed is found."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from common import commitment
from common.commitment import Entry, Signer, Tree, leaf_hash, pointers
from mafl.cli import run
from mafl.verify import NothingToVerify, Report, openings, placed, verify
from testkit import vectors

SIGNER, OLD = Signer.from_seed(b"n" * 32), Signer.from_seed(b"o" * 32)
CONTEST, LOCK = "2017-W04", "2017-10-01T17:00:00Z"


def keys_document(signer: Signer = SIGNER, retired: str | None = "2017-08-01T00:00:00Z") -> bytes:
    def key(one: Signer, at: str | None) -> dict[str, Any]:
        return {"key_id": one.key_id, "algorithm": "Ed25519", "public_key": one.public_key.hex(), "retired_at": at}

    listed = [key(signer, None), key(OLD, retired)]
    signature = signer.sign(commitment.keys_statement(listed)).hex()
    return rfc8785.dumps({"kind": "mafl-keys-1", "keys": listed, "key_id": signer.key_id, "signature": signature})


def published(number: int, *, picks: int = 2, cleared: bool = True, model_cleared: bool = True) -> dict[str, Any]:
    """A lineup as ``GET /api/v1/contests/{contest}/lineups`` shows it, with more in it than is committed to."""
    salts = {name: f"{number:02x}{at:02x}" * 16 for at, name in enumerate(pointers(picks))}
    text = {"text": f"Words of {number}\nwith “quotes” and \u2028.", "withheld": None}
    withheld = {"text": None, "withheld": "unclaimed"}
    shown = text if cleared else withheld
    return {
        "lineup": str(UUID(int=1000 + number)),
        "agent": {"name": f"agent {number}", "claimed": cleared, "marks": []},
        "model": "shown/label",
        "revision": number + 1,
        "total_price": 10_000,
        "projected_score": 9250,
        "confidence": 0.5,
        "points": 4400,
        "thesis": shown,
        "opening": {
            "agent": str(UUID(int=(number + 1) << 64)),
            "model": "as/written",
            "accepted_at": "2017-09-30T12:00:00.000001Z",
            "salts": salts if cleared else {"": salts[""]},
        }
        if model_cleared
        else None,
        "picks": [
            {
                "index": index,
                "slot": f"S{index}",
                "player_id": f"P{index}",
                "name": "A Player",
                "price": 5000,
                "confidence": 0.25,
                "points": 2200,
                "rationale": shown,
                "main_factor": shown,
            }
            for index in reversed(range(picks))
        ],
    }


def all_leaves(lineups: list[dict[str, Any]]) -> list[bytes]:
    """Every leaf of the lineups, as the lock made them, opened or not."""
    made = []
    for lineup in sorted(lineups, key=lambda lineup: str(lineup["lineup"])):
        number = lineup["revision"] - 1
        made += openings(CONTEST, [published(number, picks=len(lineup["picks"]))])
    return made


def export(lineups: list[dict[str, Any]], leaves: list[bytes] | None = None) -> dict[str, bytes]:
    """The files of a contest, as a download writes them."""
    leaves = all_leaves(lineups) if leaves is None else leaves
    hashes = b"".join(map(leaf_hash, leaves))
    said = {
        "kind": "mafl-root-1",
        "contest": CONTEST,
        "locked_at": LOCK,
        "entries": len(lineups),
        "leaves": len(leaves),
        "root": Tree(hashes).root.hex(),
    }
    signed = {**said, "key_id": SIGNER.key_id, "signature": SIGNER.sign(rfc8785.dumps(said)).hex()}
    lines, strange = placed(openings(CONTEST, lineups), hashes)
    files = {
        "commitment.json": rfc8785.dumps(signed),
        "leaves.bin": hashes,
        "keys.json": keys_document(),
        "openings.jsonl": lines,
    }
    return files | ({"mismatched.jsonl": b"".join(data + b"\n" for data in strange)} if strange else {})


LINEUPS = [published(0), published(1, picks=3, cleared=False), published(2, picks=1, model_cleared=False)]
FILES = export(LINEUPS)


def checked(files: dict[str, bytes], folder: Path, key: bytes | None = None) -> Report:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return verify(folder, key)


def codes(report: Report) -> set[str]:
    return {failure.code for failure in report.failures}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("verify") / "export"


@pytest.mark.rule("C10")
def test_a_whole_export_passes_and_what_was_never_opened_is_counted(place: Path) -> None:
    report = checked(FILES, place)
    assert report.failures == []
    assert report.document()["contests"] == [
        {
            "contest": CONTEST,
            "locked_at": LOCK,
            "root": json.loads(FILES["commitment.json"])["root"],
            "key_id": SIGNER.key_id,
            "entries": 3,
            "entries_opened": 2,
            "leaves": 6 + 8 + 4,
            "opened": 6 + 1,
            "redacted": 0,
            "never_opened": 7 + 4,
            "stamp": None,
        }
    ]


@pytest.mark.rule("C10")
@settings(max_examples=400, deadline=None)
@given(st.data())
def test_whatever_byte_of_whatever_file_is_changed_it_is_found(place: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(FILES)), label="file")
    content = FILES[name]
    at = data.draw(st.integers(0, len(content) - 1), label="at")
    how = data.draw(st.sampled_from(["flip", "drop", "insert", "cut"]), label="how")
    if how == "flip":
        changed = content[:at] + bytes([content[at] ^ data.draw(st.integers(1, 255), label="by")]) + content[at + 1 :]
    elif how == "drop":
        changed = content[:at] + content[at + 1 :]
    elif how == "insert":
        changed = content[:at] + data.draw(st.binary(min_size=1, max_size=3), label="what") + content[at:]
    else:
        changed = content[:at]
    assert not checked({**FILES, name: changed}, place).ok


@pytest.mark.rule("C10")
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_an_entry_that_is_removed_repeated_or_moved_is_found(place: Path, data: st.DataObject) -> None:
    name, size = data.draw(st.sampled_from([("openings.jsonl", 0), ("leaves.bin", 32)]), label="file")
    content = FILES[name]
    if size:
        entries = [content[at : at + size] for at in range(0, len(content), size)]
    else:
        entries = [line + b"\n" for line in content.split(b"\n")[:-1]]
    one = data.draw(st.integers(0, len(entries) - 1), label="one")
    other = data.draw(st.integers(0, len(entries) - 1), label="other")
    how = data.draw(st.sampled_from(["remove", "repeat", "swap"]), label="how")
    changed = list(entries)
    if how == "remove":
        del changed[one]
    elif how == "repeat":
        changed.insert(other, entries[one])
    else:
        changed[one], changed[other] = changed[other], changed[one]
    same = changed == entries
    assert checked({**FILES, name: b"".join(changed)}, place).ok == same


@pytest.mark.rule("C10")
@pytest.mark.parametrize("name", sorted(FILES))
def test_a_file_that_is_missing_is_named(place: Path, name: str) -> None:
    files = {other: content for other, content in FILES.items() if other != name}
    if name == "commitment.json":
        with pytest.raises(NothingToVerify):
            checked(files, place)
    else:
        assert [(failure.code, failure.file) for failure in checked(files, place).failures if failure.file == name] == [
            ("file-missing", name)
        ]


@pytest.mark.rule("C10")
def test_a_text_that_was_changed_after_the_lock_is_kept_as_evidence_and_named(place: Path) -> None:
    lineups = json.loads(json.dumps(LINEUPS))
    lineups[0]["thesis"]["text"] = "I said so all along."
    files = export(lineups, all_leaves(LINEUPS))
    assert b"all along" in files["mismatched.jsonl"]
    report = checked(files, place)
    assert [(failure.code, failure.line) for failure in report.failures] == [("never-committed", 1)]
    assert "'/thesis' of 00000000-0000-0001-0000-000000000000, revision 1" in report.failures[0].detail


def changed_leaves(change: Callable[[list[bytes]], None]) -> dict[str, bytes]:
    """An export whose operator committed to, and signed, something that no honest lock makes."""
    leaves = all_leaves([LINEUPS[0], published(1, picks=3)])
    change(leaves)
    files = export([published(0), published(1, picks=3)], leaves)
    return files | {"openings.jsonl": b"".join(leaf + b"\n" for leaf in leaves)}


@pytest.mark.rule("C10")
@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda leaves: leaves.reverse(), "leaf-misplaced"),
        (lambda leaves: leaves.insert(1, leaves[1]), "leaf-misplaced"),
        (lambda leaves: leaves.append(leaves[0]), "leaf-misplaced"),
        (lambda leaves: leaves.pop(), "entries-wrong"),
        (lambda leaves: leaves.pop(3), "leaf-misplaced"),
        (lambda leaves: leaves.__setitem__(0, leaves[0].replace(b"2017-W04", b"2017-W05")), "leaf-misplaced"),
        (lambda leaves: leaves.__setitem__(7, leaves[7].replace(b'"revision":2', b'"revision":3')), "leaf-misplaced"),
        (lambda leaves: leaves.__setitem__(0, leaves[0].replace(b'"price":5000', b'"price":"free"')), "malformed"),
        (lambda leaves: leaves.__setitem__(2, b" " + leaves[2]), "not-canonical"),
        (lambda leaves: leaves.__setitem__(2, b"\xff"), "malformed"),
        (lambda leaves: leaves.__setitem__(2, b'{"a":1,"a":1}'), "malformed"),
    ],
    ids=["order", "twice", "again", "short", "gap", "contest", "revisions", "shape", "spaced", "bytes", "keys"],
)
def test_an_operator_who_signs_what_no_lock_makes_is_found_out(
    place: Path, change: Callable[[list[bytes]], None], code: str
) -> None:
    assert checked(changed_leaves(lambda leaves: None), place).ok
    assert code in codes(checked(changed_leaves(change), place))


@pytest.mark.rule("C10")
def test_more_lineups_than_were_counted_at_the_lock_are_found(place: Path) -> None:
    files = changed_leaves(lambda leaves: None)
    document = json.loads(files["commitment.json"])
    document["entries"] = 1
    document["signature"] = SIGNER.sign(commitment.root_statement(document)).hex()
    assert codes(checked(files | {"commitment.json": rfc8785.dumps(document)}, place)) == {"entries-wrong"}


# --- keys -----------------------------------------------------------------------------------------


def signed_by(signer: Signer, files: dict[str, bytes] = FILES) -> bytes:
    document = json.loads(files["commitment.json"])
    document |= {"signature": signer.sign(commitment.root_statement(document)).hex(), "key_id": signer.key_id}
    return rfc8785.dumps(document)


@pytest.mark.rule("C10")
def test_it_is_said_why_a_key_is_believed(place: Path) -> None:
    assert checked(FILES, place).keys == {SIGNER.key_id: "first use"}
    assert checked(FILES, place, SIGNER.public_key).keys == {SIGNER.key_id: "given"}
    alone = {name: content for name, content in FILES.items() if name != "keys.json"}
    assert checked(alone, place, SIGNER.public_key).ok
    before = {**FILES, "commitment.json": signed_by(OLD), "keys.json": keys_document(retired="2018-01-01T00:00:00Z")}
    report = checked(before, place, SIGNER.public_key)
    assert (report.ok, report.keys) == (True, {OLD.key_id: "vouched for by the given key"})


@pytest.mark.rule("C10")
def test_another_hands_key_is_not_believed(place: Path) -> None:
    forger = Signer.from_seed(b"f" * 32)
    forged = {**FILES, "commitment.json": signed_by(forger), "keys.json": keys_document(forger)}
    assert checked(forged, place).keys == {forger.key_id: "first use"}, "who has no key sees that one hand made it all"
    assert codes(checked(forged, place, SIGNER.public_key)) == {"key-unknown"}
    assert codes(checked({**FILES, "commitment.json": signed_by(forger)}, place)) == {"key-unknown"}
    assert codes(checked({**FILES, "commitment.json": signed_by(OLD)}, place)) == {"key-retired"}
    listed = json.loads(FILES["keys.json"])
    listed["keys"][0]["public_key"] = forger.public_key.hex()
    assert "key-misnamed" in codes(checked({**FILES, "keys.json": rfc8785.dumps(listed)}, place))


# --- an agent's own -------------------------------------------------------------------------------


def own(number: int = 0, revision: int | None = None) -> dict[str, bytes]:
    """The receipt and the proof of one agent, beside others."""
    lineups = [published(0), published(1, picks=3)]
    leaves = all_leaves(lineups)
    tree = Tree(b"".join(map(leaf_hash, leaves)))
    mine = [at for at, leaf in enumerate(leaves) if json.loads(leaf)["revision"] == number + 1]
    files = export(lineups)
    proof = {
        "commitment": json.loads(files["commitment.json"]),
        "leaves": [
            {"index": at, "path": [step.hex() for step in tree.path(at)], "data": json.loads(leaves[at])} for at in mine
        ],
    }
    lineup = lineups[number]
    opening = lineup["opening"]
    body = {
        "picks": [
            {
                "slot": pick["slot"],
                "player_id": pick["player_id"],
                "rationale": pick["rationale"]["text"],
                "confidence": pick["confidence"],
                "main_factor": pick["main_factor"]["text"],
            }
            for pick in reversed(lineup["picks"])
        ],
        "thesis": lineup["thesis"]["text"],
        "projected_score": 92.5,
        "confidence": 0.5,
    }
    said = {
        "agent": opening["agent"],
        "contest": CONTEST,
        "revision": revision or lineup["revision"],
        "model": opening["model"],
        "accepted_at": opening["accepted_at"],
    }
    receipt = commitment.sha256_hex(rfc8785.dumps({**said, "body": body, "salts": opening["salts"]}))
    answer = {
        **said,
        "lineup": lineup["lineup"],
        "receipt": receipt,
        "signature": SIGNER.sign(commitment.receipt_statement(receipt)).hex(),
        "key_id": SIGNER.key_id,
        "salts": opening["salts"],
        "total_price": lineup["total_price"],
        "locks_at": LOCK,
        "body": body,
    }
    files = {"proof.json": rfc8785.dumps(proof), "keys.json": keys_document()}
    return files | {"receipt.json": json.dumps(answer, ensure_ascii=False).encode()}


OWN = own()
NOT_COVERED = ("lineup", "locks_at", "total_price")
"""Members of a receipt's answer that the receipt does not cover; the last is in the leaf of the picks."""


@pytest.mark.rule("C10")
def test_an_agent_checks_its_own_receipt_and_proof(place: Path) -> None:
    report = checked(OWN, place)
    assert report.failures == []
    assert [(one["contest"], one["revision"], one["committed"]) for one in report.receipts] == [(CONTEST, 1, True)]
    assert [(one["contest"], one["revision"], one["leaves"]) for one in report.proofs] == [(CONTEST, 1, 6)]
    alone = {name: content for name, content in OWN.items() if name != "proof.json"}
    assert [one["committed"] for one in checked(alone, place).receipts] == [None]


@pytest.mark.rule("C10")
@settings(max_examples=250, deadline=None)
@given(st.data())
def test_whatever_is_changed_in_a_receipt_or_a_proof_is_found(place: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(OWN)), label="file")
    content = OWN[name]
    at = data.draw(st.integers(0, len(content) - 1), label="at")
    flip = data.draw(st.integers(1, 255), label="by")
    changed = content[:at] + bytes([content[at] ^ flip]) + content[at + 1 :]
    ok = checked({**OWN, name: changed}, place).ok
    if name == "receipt.json" and ok:
        # A receipt is no canonical JSON: only what it says counts, and of that what it covers.
        said, was = json.loads(changed), json.loads(content)
        assert {key: said[key] for key in was if key not in NOT_COVERED} == {
            key: was[key] for key in was if key not in NOT_COVERED
        }
        assert said.get("total_price", was["total_price"]) == was["total_price"]
    else:
        assert not ok


REFUSAL = {
    "type": "urn:mafl:problem:contest-not-locked",
    "title": "The contest is not locked yet",
    "status": 409,
    "code": "contest-not-locked",
    "detail": "2017-W04 locks at 2017-10-01T17:00:00Z.",
    "locks_at": LOCK,
}


@pytest.mark.rule("C10")
@pytest.mark.parametrize("name", ["proof.json", "receipt.json"])
def test_a_refusal_that_was_saved_in_a_files_place_is_called_one(
    place: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    report = checked({**OWN, name: json.dumps(REFUSAL).encode()}, place)
    (failure,) = report.failures
    assert (failure.code, failure.file) == ("refused", name)
    assert REFUSAL["detail"] in failure.detail
    assert failure.detail.endswith(f"fetch it again after {LOCK}")
    assert run(["verify", str(place)]) == 1
    told = capsys.readouterr().out
    assert "NOT all of it could be checked" in told
    assert "NOT as it was committed to" not in told


@pytest.mark.rule("C10")
def test_an_opened_line_that_was_tampered_with_is_named_and_is_not_counted_as_closed(place: Path) -> None:
    lines = FILES["openings.jsonl"].split(b"\n")
    at = next(at for at, line in enumerate(lines) if b'"/thesis"' in line)
    agent = json.loads(lines[at])["agent"]
    for line, told in (
        (lines[at].replace(b"Words", b"Wards"), f"'/thesis' of {agent}, revision 1"),
        (lines[at][:-1], f'is no leaf\'s data: pointer "/thesis", agent {agent}'),
        (b"\xff", "pointer illegible, agent illegible"),
    ):
        content = b"\n".join([*lines[:at], line, *lines[at + 1 :]])
        report = checked({**FILES, "openings.jsonl": content}, place)
        assert [(failure.code, failure.line) for failure in report.failures] == [("leaf-wrong", at + 1)]
        assert told in report.failures[0].detail
        assert (report.contests[0]["opened"], report.contests[0]["never_opened"]) == (6, 11)


@pytest.mark.rule("C10")
def test_a_receipt_of_something_else_than_what_was_committed_to_is_found(place: Path) -> None:
    assert codes(checked({**OWN, "receipt.json": own(1)["receipt.json"]}, place)) == {"proof-differs"}
    receipt = json.loads(own(revision=2)["receipt.json"])
    report = checked({**OWN, "receipt.json": json.dumps(receipt).encode()}, place)
    assert codes(report) == {"proof-differs"}, "a later revision than the one that was committed to"
    dearer = json.loads(OWN["receipt.json"]) | {"total_price": 9_999}
    assert codes(checked({**OWN, "receipt.json": json.dumps(dearer).encode()}, place)) == {"proof-differs"}
    later = own()
    proof = json.loads(later["proof.json"])
    for leaf in proof["leaves"]:
        leaf["data"]["revision"] = 5
    assert "leaf-wrong" in codes(checked({**later, "proof.json": rfc8785.dumps(proof)}, place))
    some = json.loads(OWN["proof.json"])
    del some["leaves"][-1]
    assert "leaf-misplaced" in codes(checked({**OWN, "proof.json": rfc8785.dumps(some)}, place))


# --- texts that were redacted -----------------------------------------------------------------------


def tombstone(leaf: bytes, *, signer: Signer = SIGNER, **changed: Any) -> dict[str, Any]:
    """What an operator signs in the place of a leaf's data."""
    said = {
        "kind": "mafl-redaction-1",
        "contest": CONTEST,
        "leaf": leaf_hash(leaf).hex(),
        "pointer": json.loads(leaf)["pointer"],
        "reason": "personal-data",
        "redacted_at": "2017-10-03T09:00:00Z",
    } | changed
    return {**said, "key_id": signer.key_id, "signature": signer.sign(rfc8785.dumps(said)).hex()}


def redacted(of: str = "/thesis", *, number: int = 0, opened: bool = False, **how: Any) -> dict[str, bytes]:
    """An export in which a text of a lineup is redacted; ``opened`` where it is published all the same."""
    leaves = all_leaves(LINEUPS)
    (leaf,) = [
        leaf for leaf in leaves if json.loads(leaf)["pointer"] == of and json.loads(leaf)["revision"] == number + 1
    ]
    hashes = b"".join(map(leaf_hash, leaves))
    shown = [data for data in openings(CONTEST, LINEUPS) if opened or data != leaf]
    lines, strange = placed(shown, hashes, [tombstone(leaf, **how)])
    files = {**FILES, "openings.jsonl": lines}
    return files | ({"mismatched.jsonl": b"".join(data + b"\n" for data in strange)} if strange else {})


@pytest.mark.rule("M6", "C10")
def test_a_redacted_text_is_counted_and_never_wrong(place: Path) -> None:
    assert b"Words of 0" in FILES["openings.jsonl"]
    report = checked(redacted(), place, SIGNER.public_key)
    assert report.failures == []
    (made,) = report.contests
    assert (made["opened"], made["redacted"], made["never_opened"]) == (6, 1, 11)
    unclaimed = checked(redacted("/picks/2/rationale", number=1), place)
    assert unclaimed.failures == []
    assert (unclaimed.contests[0]["opened"], unclaimed.contests[0]["redacted"]) == (7, 1)


@pytest.mark.rule("M6", "C10")
@settings(max_examples=200, deadline=None)
@given(st.data())
def test_whatever_byte_of_a_tombstone_is_changed_it_is_found(place: Path, data: st.DataObject) -> None:
    files = redacted()
    content = files["openings.jsonl"]
    start = content.index(b'{"contest":"2017-W04","key_id"')
    at = data.draw(st.integers(start, content.index(b"\n", start) - 1), label="at")
    changed = content[:at] + bytes([content[at] ^ data.draw(st.integers(1, 255), label="by")]) + content[at + 1 :]
    assert not checked({**files, "openings.jsonl": changed}, place).ok


@pytest.mark.rule("M6", "C10")
def test_a_forged_tombstone_is_found(place: Path) -> None:
    forger = Signer.from_seed(b"f" * 32)
    assert codes(checked(redacted(signer=forger), place)) == {"key-unknown"}
    dressed = {**tombstone(all_leaves(LINEUPS)[-1], signer=forger), "key_id": SIGNER.key_id}
    lines = FILES["openings.jsonl"].split(b"\n")
    lines[-2] = rfc8785.dumps(dressed)
    assert codes(checked({**FILES, "openings.jsonl": b"\n".join(lines)}, place)) == {"signature-wrong"}
    for changed, found in (
        ({"contest": "2017-W05"}, "tombstone-wrong"),
        ({"pointer": "/picks/0/rationale"}, "tombstone-wrong"),
        ({"pointer": ""}, "tombstone-wrong"),
        ({"kind": "mafl-root-1"}, "leaf-wrong"),
        ({"redacted_at": "yesterday"}, "malformed"),
    ):
        assert codes(checked(redacted(**changed), place)) == {found}, changed
    # One of another leaf, signed and all: on the line of its own leaf it would be right.
    moved = redacted()["openings.jsonl"].split(b"\n")
    here = next(at for at, line in enumerate(moved) if b"mafl-redaction-1" in line)
    moved[here], moved[here - 1] = moved[here - 1], moved[here]
    assert "tombstone-wrong" in codes(checked({**FILES, "openings.jsonl": b"\n".join(moved)}, place))
    # Too old for its key.
    assert codes(checked(redacted(signer=OLD), place)) == {"key-retired"}


@pytest.mark.rule("M6", "C10")
def test_a_tombstone_of_a_text_that_is_published_is_kept_as_evidence(place: Path) -> None:
    files = redacted(opened=True)
    assert b"mafl-redaction-1" in files["mismatched.jsonl"]
    report = checked(files, place)
    assert [(failure.code, failure.file) for failure in report.failures] == [("tombstone-wrong", "mismatched.jsonl")]
    assert report.contests[0]["opened"] == 7


@pytest.mark.rule("M6", "C10")
def test_the_published_vectors_have_a_tombstone(place: Path) -> None:
    document = json.loads(vectors.PATH.read_text())
    (gone,) = document["redactions"]
    lines = [leaf["data"].encode() for leaf in document["leaves"]]
    lines[1] = rfc8785.dumps(gone)
    files = {
        "commitment.json": rfc8785.dumps(document["commitment"]),
        "leaves.bin": b"".join(bytes.fromhex(leaf["hash"]) for leaf in document["leaves"]),
        "openings.jsonl": b"".join(line + b"\n" for line in lines),
        "keys.json": rfc8785.dumps(document["keys"]),
    }
    report = checked(files, place)
    assert report.failures == []
    assert report.contests[0]["redacted"] == 1


# --- the published vectors ------------------------------------------------------------------------


@pytest.mark.rule("C10")
def test_the_published_vectors_are_what_a_second_program_makes_and_what_ours_makes() -> None:
    """Two programs that share no line agree with the published file, value by value."""
    document = json.loads(vectors.PATH.read_text())
    assert document == json.loads(json.dumps(vectors.vectors()))
    signer = Signer.from_seed(bytes.fromhex(document["seed"]))
    leaves: list[bytes] = []
    for given_ in document["receipts"]:
        body = given_["body"]
        count = len(body["picks"])
        salts = b"".join(bytes.fromhex(given_["salts"][name]) for name in pointers(count))
        entry = Entry(
            UUID(given_["agent"]), given_["contest"], given_["revision"], given_["model"], _at(given_["accepted_at"])
        )
        assert (
            commitment.receipt_of(
                agent=entry.agent,
                contest=entry.contest,
                revision=entry.revision,
                model=entry.model,
                accepted_at=entry.accepted_at,
                body=rfc8785.dumps(body),
                salts=salts,
                picks=count,
            )
            == given_["receipt"]
        )
        assert signer.sign(commitment.receipt_statement(given_["receipt"])).hex() == given_["signature"]
        picks = [
            {"slot": pick["slot"], "player_id": pick["player_id"], "price": price, "confidence": pick["confidence"]}
            for pick, price in zip(body["picks"], given_["prices"], strict=True)
        ]
        values = {}
        for name in pointers(count):
            parts = name.split("/")[1:]
            if not parts:
                values[name] = commitment.picks_value(
                    picks,
                    total_price=given_["total_price"],
                    projected_score=round(body["projected_score"] * 100),
                    confidence=body["confidence"],
                )
            else:
                text = body["thesis"] if parts == ["thesis"] else body["picks"][int(parts[1])][parts[2]]
                values[name] = commitment.json_string(text).encode()
        leaves += entry.leaves(values, salts)
    assert [leaf.decode() for leaf in leaves] == [leaf["data"] for leaf in document["leaves"]]
    assert [leaf_hash(leaf).hex() for leaf in leaves] == [leaf["hash"] for leaf in document["leaves"]]
    tree = Tree(b"".join(map(leaf_hash, leaves)))
    assert [[step.hex() for step in tree.path(at)] for at in range(tree.size)] == [
        leaf["path"] for leaf in document["leaves"]
    ]
    assert tree.root.hex() == document["commitment"]["root"]


@pytest.mark.rule("C10")
def test_the_published_vectors_verify(place: Path) -> None:
    document = json.loads(vectors.PATH.read_text())
    files = {
        "commitment.json": rfc8785.dumps(document["commitment"]),
        "leaves.bin": b"".join(bytes.fromhex(leaf["hash"]) for leaf in document["leaves"]),
        "openings.jsonl": b"".join(leaf["data"].encode() + b"\n" for leaf in document["leaves"]),
        "keys.json": rfc8785.dumps(document["keys"]),
    }
    for number, receipt in enumerate(document["receipts"]):
        files[f"receipt-{number}.json"] = json.dumps(receipt).encode()
    report = checked(files, place, bytes.fromhex(document["keys"]["keys"][0]["public_key"]))
    assert report.failures == []
    assert (len(report.receipts), report.contests[0]["never_opened"]) == (2, 0)
    for number, receipt in enumerate(document["receipts"]):
        mine = [
            {"index": at, "path": leaf["path"], "data": json.loads(leaf["data"])}
            for at, leaf in enumerate(document["leaves"])
            if json.loads(leaf["data"])["agent"] == receipt["agent"]
        ]
        proof = rfc8785.dumps({"commitment": document["commitment"], "leaves": mine})
        own_files = {
            "proof.json": proof,
            "keys.json": files["keys.json"],
            "receipt.json": files[f"receipt-{number}.json"],
        }
        report = checked(own_files, place)
        assert (report.failures, [one["committed"] for one in report.receipts]) == ([], [True])


def _at(instant: str) -> Any:
    from datetime import datetime

    return datetime.fromisoformat(instant)


# --- the command ----------------------------------------------------------------------------------


def test_the_command_says_what_is_wrong_and_exits_by_it(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checked(FILES, place)
    assert run(["verify", str(place), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["ok"], document["keys"]) == (True, [{"key_id": SIGNER.key_id, "trust": "first use"}])
    assert run(["verify", str(place)]) == 0
    assert "never opened" in capsys.readouterr().out
    assert run(["verify", str(place), "--key", SIGNER.public_key.hex(), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["keys"] == [{"key_id": SIGNER.key_id, "trust": "given"}]

    (place / "leaves.bin").write_bytes(FILES["leaves.bin"][::-1])
    assert run(["verify", str(place), "--json"]) == 1
    broken = json.loads(capsys.readouterr().out)
    assert (broken["ok"], [failure["code"] for failure in broken["failures"]]) == (False, ["root-wrong"])
    assert run(["verify", str(place)]) == 1
    told = capsys.readouterr().out
    assert "WRONG root-wrong in leaves.bin" in told
    assert "what is opened was not checked" in told
    assert "never opened" not in told
    assert [broken["contests"][0][name] for name in ("entries_opened", "opened", "never_opened")] == [None] * 3

    assert run(["verify", str(place), "--key", "short", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["code"] == "key-malformed"
    (place / "commitment.json").unlink()
    assert run(["verify", str(place), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["code"] == "nothing-to-verify"


def test_a_whole_season_is_checked_at_once(place: Path) -> None:
    for week in ("week-1", "week-2"):
        checked(FILES, place / week)
    assert len(verify(place).contests) == 2
    (place / "week-2" / "leaves.bin").write_bytes(b"")
    assert {failure.file for failure in verify(place).failures} == {"week-2/leaves.bin"}
    (place / "week-2" / "leaves.bin").write_bytes(FILES["leaves.bin"])
    for week in ("week-1", "week-2"):
        (place / week / "keys.json").unlink()
    (place / "keys.json").write_bytes(FILES["keys.json"])
    assert verify(place).ok


def test_a_key_is_made_and_kept_from_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["key", "generate", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    signer = Signer.read(made["signing_key"])
    assert (signer.key_id, signer.public_key.hex()) == (made["key_id"], made["public_key"])
    path = tmp_path / "signing.pem"
    assert run(["key", "generate", "--out", str(path), "--json"]) == 0
    printed = capsys.readouterr().out
    assert Signer.read(path.read_text()).key_id == json.loads(printed)["key_id"]
    assert "signing_key" not in printed
    assert path.stat().st_mode & 0o777 == 0o600
    assert run(["key", "generate", "--out", str(path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["code"] == "file-unwritable"
