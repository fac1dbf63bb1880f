"""Checking commitments (docs/commitments.md) with no server: exports of contests, an agent's own receipts and proofs.

A *contest's folder* has ``commitment.json``, ``leaves.bin``, ``openings.jsonl`` and ``keys.json``; an *agent's folder*
has ``receipt.json`` (or several: ``receipt-….json``), ``proof.json``, or both, and ``keys.json``. Files are taken
byte by byte: what MAFL publishes in canonical JSON must be canonical JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from common import commitment
from common.canonical import canonical_json, sha256_hex
from common.commitment import (
    HASH_BYTES,
    PICKS,
    Tree,
    is_included,
    is_signed,
    key_id,
    leaf_hash,
    pointers,
    root_statement,
)

COMMITMENT, LEAVES, OPENINGS, KEYS = "commitment.json", "leaves.bin", "openings.jsonl", "keys.json"
MISMATCHED = "mismatched.jsonl"
PROOF = "proof.json"
REFUSED = "refused"
"""Code of a failure: in a file's place stands a refusal."""
STAMP = "commitment.tsr"
"""What an RFC 3161 authority answered of the root's statement, where the root was stamped."""

Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Signature = Annotated[str, Field(pattern="^[0-9a-f]{128}$")]
KeyId = Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
Instant = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z$")]
Uuid = Annotated[str, Field(pattern="^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]
Count = Annotated[int, Field(ge=0)]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Commitment(_Shape):
    """``commitment.json``: what a contest committed to at its lock."""

    kind: Literal["mafl-root-1"]
    contest: str
    locked_at: Instant
    entries: Count
    leaves: Count
    root: Hash
    key_id: KeyId
    signature: Signature


class Key(_Shape):
    """A public key of the operator."""

    key_id: KeyId
    algorithm: Literal["Ed25519"]
    public_key: Hash
    retired_at: Instant | None


class Keys(_Shape):
    """``keys.json``: the keys, signed with the one that was in use."""

    kind: Literal["mafl-keys-1"]
    keys: list[Key]
    key_id: KeyId
    signature: Signature


class LeafData(_Shape):
    """The data of a leaf."""

    accepted_at: Instant
    agent: Uuid
    contest: str
    model: str
    pointer: str
    revision: Annotated[int, Field(ge=1)]
    salt: Hash
    value: Any


class Tombstone(_Shape):
    """What stays of a text that was redacted, in the place of its leaf's data."""

    kind: Literal["mafl-redaction-1"]
    contest: str
    leaf: Hash
    pointer: str
    reason: str
    redacted_at: Instant
    key_id: KeyId
    signature: Signature


class PickValue(_Shape):
    slot: str
    player_id: str
    price: int
    confidence: float


class PicksValue(_Shape):
    """The value of a leaf of picks and numbers; ``projected_score`` in hundredths."""

    picks: list[PickValue]
    projected_score: int
    confidence: float
    total_price: int


class ProvenLeaf(_Shape):
    index: Count
    path: list[Hash]
    data: LeafData | None = None
    redacted: Tombstone | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> ProvenLeaf:
        if (self.data is None) == (self.redacted is None):
            raise ValueError("a leaf has its data, or a tombstone in the data's place")
        return self

    @property
    def pointer(self) -> str:
        return self.data.pointer if self.data is not None else self.redacted.pointer if self.redacted else ""

    @property
    def hashed(self) -> bytes:
        """The hash of the leaf: of its data, or as the tombstone has it."""
        if self.data is None:
            return bytes.fromhex(self.redacted.leaf if self.redacted else "")
        return leaf_hash(canonical_json(self.data.model_dump()))


class Proof(_Shape):
    """``proof.json``: that an agent's final revision is in what its contest committed to."""

    commitment: Commitment
    leaves: list[ProvenLeaf]


class Receipt(BaseModel):
    """``receipt.json``: a submission's answer with the body that it is for. Other members are not covered by it.

    ``redacted`` are the texts that were gone when it was fetched, by pointer: null in the body and without a salt.
    """

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    accepted_at: Instant
    agent: Uuid
    body: dict[str, Any]
    contest: str
    model: str
    revision: Annotated[int, Field(ge=1)]
    salts: dict[str, Hash]
    receipt: Hash
    signature: Signature
    key_id: KeyId
    total_price: int | None = None
    redacted: dict[str, Any] = {}


S = TypeVar("S", bound=BaseModel)


@dataclass(frozen=True)
class Failure:
    """Something that is not as it was committed to. ``code`` is stable; ``line`` counts from 1."""

    code: str
    file: str
    detail: str
    line: int | None = None

    def document(self) -> dict[str, Any]:
        return {"code": self.code, "file": self.file, "line": self.line, "detail": self.detail}


class _Broken(Exception):
    """A file cannot be gone on with; what is wrong is in the report."""


@dataclass
class Report:
    """What was checked and what was found. ``ok`` where nothing failed and something was checked."""

    contests: list[dict[str, Any]] = field(default_factory=list)
    receipts: list[dict[str, Any]] = field(default_factory=list)
    proofs: list[dict[str, Any]] = field(default_factory=list)
    keys: dict[str, str] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.failures

    def fail(self, code: str, file: str, detail: str, line: int | None = None) -> None:
        self.failures.append(Failure(code, file, detail, line))

    def document(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "contests": self.contests,
            "receipts": self.receipts,
            "proofs": self.proofs,
            "keys": [{"key_id": name, "trust": trust} for name, trust in sorted(self.keys.items())],
            "failures": [failure.document() for failure in self.failures],
        }


GIVEN, VOUCHED, FIRST_USE = "given", "vouched for by the given key", "first use"


class NothingToVerify(ValueError):
    """A folder holds none of the files that could be checked."""


def verify(folder: Path, key: bytes | None = None, stamp_roots: Sequence[Any] = ()) -> Report:
    """Check a folder and those below it. ``key`` is the operator's public key, from somewhere else than the folder.

    ``stamp_roots`` are certificates (``cryptography.x509``) of authorities whose stamps are believed; without any a
    stamp is said to be unchecked. Without ``key`` the keys of the folder are believed, which shows that all of it
    comes from one hand and not whose.
    Raises ``NothingToVerify``, and ``OSError`` where the folder cannot be read.
    """
    report = Report()
    # Not Path.walk: the oldest Python that MAFL runs on has none.
    folders = sorted({path.parent for name in (COMMITMENT, PROOF, "receipt*.json") for path in folder.rglob(name)})
    if not folders:
        raise NothingToVerify(
            f"{folder} holds neither {COMMITMENT} (of a contest: `mafl contest download`) nor {PROOF} or receipt.json "
            "(an agent's own)"
        )
    for one in folders:
        keys = _Keys.read(one, folder, key, report)
        if (one / COMMITMENT).exists():
            _Contest(one, _name(one, folder), keys, report, stamp_roots).check()
        if (one / PROOF).exists() or any(one.glob("receipt*.json")):
            _Agent(one, _name(one, folder), keys, report).check()
    return report


def _name(path: Path, root: Path) -> str:
    name = path.relative_to(root).as_posix()
    return "" if name == "." else f"{name}/"


# --- reading --------------------------------------------------------------------------------------


def _read(path: Path, name: str, report: Report) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        report.fail("file-missing", name, f"it cannot be read: {error.strerror or error}")
        raise _Broken from None


def _canonical(content: bytes, shape: type[S], name: str, report: Report, line: int | None = None) -> S:
    """A document of a shape, whose bytes must be its canonical JSON."""
    try:
        document = _parsed(content)
        same = canonical_json(document) == content
    except (ValueError, RecursionError) as error:
        report.fail("malformed", name, f"it is no JSON: {error}", line)
        raise _Broken from None
    _unless_refused(document, name, report)
    if not same:
        report.fail("not-canonical", name, "it is not in canonical JSON (RFC 8785), byte for byte", line)
        raise _Broken
    return _shaped(document, shape, name, report, line)


def _parsed(content: bytes) -> Any:
    def once(members: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(members)
        if len(made) != len(members):
            raise ValueError("an object has a key twice")
        return made

    return json.loads(content.decode("utf-8"), object_pairs_hook=once)


def _unless_refused(document: Any, name: str, report: Report) -> None:
    """A problem document (RFC 9457) that was saved in a file's place says nothing of what was committed to."""
    if not isinstance(document, dict) or not {"code", "status", "title"} <= document.keys():
        return
    again = f"after {document['locks_at']}" if document.get("locks_at") else "once what it says is done"
    told = f"{document['status']} {document['code']}: {document.get('detail') or document['title']}"
    report.fail(REFUSED, name, f"it is a refusal that was saved ({told}); fetch it again {again}")
    raise _Broken


def _shaped(document: Any, shape: type[S], name: str, report: Report, line: int | None = None) -> S:
    try:
        return shape.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        where = "/".join(map(str, first["loc"])) or "the whole"
        report.fail("malformed", name, f"{where}: {first['msg'].lower()}", line)
        raise _Broken from None


_AT: TypeAdapter[datetime] = TypeAdapter(AwareDatetime)


def _at(instant: str) -> datetime:
    return _AT.validate_python(instant)


# --- keys -----------------------------------------------------------------------------------------


class _Keys:
    """The public keys that are believed, each with why."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._keys: dict[str, tuple[bytes, str, datetime | None]] = {}
        self._unbelieved: set[str] = set()

    @classmethod
    def read(cls, folder: Path, root: Path, given: bytes | None, report: Report) -> _Keys:
        keys = cls(report)
        path = next((at / KEYS for at in (folder, *folder.parents) if (at / KEYS).exists()), None)
        if path is not None and path.is_relative_to(root):
            keys._listed(path, path.relative_to(root).as_posix(), given)
        elif given is None:
            report.fail(
                "file-missing", _name(folder, root) + KEYS, "no public keys: give one, or save /api/v1/keys there"
            )
        if given is not None:
            _, _, retired_at = keys._keys.get(key_id(given), (b"", "", None))
            keys._keys[key_id(given)] = (given, GIVEN, retired_at)
        return keys

    def _listed(self, path: Path, name: str, given: bytes | None) -> None:
        try:
            document = _canonical(_read(path, name, self._report), Keys, name, self._report)
        except _Broken:
            return
        raw = {key.key_id: bytes.fromhex(key.public_key) for key in document.keys}
        for named, public in raw.items():
            if key_id(public) != named:
                self._report.fail("key-misnamed", name, f"the key called {named} is {key_id(public)}")
                return
        signer = raw.get(document.key_id)
        signed = canonical_json({"kind": document.kind, "keys": [key.model_dump() for key in document.keys]})
        if len(raw) != len(document.keys):
            self._report.fail("malformed", name, "a key is listed twice")
        elif signer is None or not is_signed(signed, bytes.fromhex(document.signature), signer):
            self._report.fail("signature-wrong", name, "the list of keys is not signed by the key that it names")
        elif given is not None and signer != given:
            # Somebody else's list: what it says of keys is worth nothing, and the given key stands for itself.
            self._unbelieved |= raw.keys()
        else:
            trust = FIRST_USE if given is None else VOUCHED
            for key in document.keys:
                retired = _at(key.retired_at) if key.retired_at is not None else None
                self._keys[key.key_id] = (raw[key.key_id], trust, retired)

    def check(
        self, statement: bytes, signature: str, named: str, at: str, name: str, what: str, line: int | None = None
    ) -> bool:
        """Whether a statement of the instant ``at`` is signed by a key that is believed; else it is reported."""
        if named not in self._keys:
            why = "is not one that the given key vouches for" if named in self._unbelieved else "is not known"
            self._report.fail("key-unknown", name, f"{what} names the key {named}, which {why}", line)
            return False
        public, trust, retired_at = self._keys[named]
        if not is_signed(statement, bytes.fromhex(signature), public):
            self._report.fail("signature-wrong", name, f"{what} is not what the key {named} signed", line)
            return False
        if retired_at is not None and _at(at) > retired_at:
            self._report.fail("key-retired", name, f"{what} is of {at}; the key {named} was retired before that", line)
            return False
        self._report.keys[named] = trust
        return True


# --- a contest's folder ---------------------------------------------------------------------------


@dataclass
class _Contest:
    folder: Path
    name: str
    keys: _Keys
    report: Report
    stamp_roots: Sequence[Any]

    def check(self) -> None:
        file = self.name + COMMITMENT
        try:
            made = _canonical(_read(self.folder / COMMITMENT, file, self.report), Commitment, file, self.report)
        except _Broken:
            return
        self.keys.check(
            root_statement(made.model_dump()), made.signature, made.key_id, made.locked_at, file, "the root"
        )
        opened: list[tuple[int, LeafData]] | None = None
        closed = gone = None
        try:
            hashes = self._leaves(made)
            opened, closed, gone = self._openings(made, hashes)
        except _Broken:
            pass
        self._published_otherwise()
        self.report.contests.append(
            {
                "contest": made.contest,
                "locked_at": made.locked_at,
                "root": made.root,
                "key_id": made.key_id,
                "entries": made.entries,
                # None: not counted, since the leaves or the openings as a whole are wrong.
                "entries_opened": None if opened is None else sum(data.pointer == PICKS for _, data in opened),
                "leaves": made.leaves,
                "opened": None if opened is None else len(opened),
                "redacted": gone,
                "never_opened": closed,
                "stamp": self._stamp(made),
            }
        )

    def _stamp(self, made: Commitment) -> dict[str, Any] | None:
        """When an authority says that the root was there, and whether that was checked."""
        path, name = self.folder / STAMP, self.name + STAMP
        if not path.exists():
            return None
        from common.stamps import StampWrong, stamped_at

        try:
            at = stamped_at(path.read_bytes(), root_statement(made.model_dump()), self.stamp_roots)
        except StampWrong as error:
            self.report.fail("stamp-wrong", name, f"it is no stamp of this root: {error}")
            return None
        return {"at": at.isoformat().replace("+00:00", "Z"), "checked": bool(self.stamp_roots)}

    def _leaves(self, made: Commitment) -> bytes:
        name = self.name + LEAVES
        hashes = _read(self.folder / LEAVES, name, self.report)
        if len(hashes) != HASH_BYTES * made.leaves:
            detail = f"it has {len(hashes)} bytes; {made.leaves} leaves of {HASH_BYTES} bytes are committed to"
            self.report.fail("leaves-wrong", name, detail)
        elif (root := Tree(hashes).root.hex()) != made.root:
            self.report.fail("root-wrong", name, f"the root of these leaves is {root}, the signed one {made.root}")
        else:
            return hashes
        raise _Broken

    def _openings(self, made: Commitment, hashes: bytes) -> tuple[list[tuple[int, LeafData]], int, int]:
        """The leaves that are opened rightly, each with its place, and of how many lines there is no more to see.

        Those that are ``null``, never opened, and those that hold a tombstone: redacted.
        """
        name = self.name + OPENINGS
        content = _read(self.folder / OPENINGS, name, self.report)
        lines = content.split(b"\n")
        if lines.pop() != b"" or len(lines) != made.leaves:
            detail = f"it has {len(lines)} whole lines; there is one for each of the {made.leaves} leaves"
            self.report.fail("openings-wrong", name, detail)
            raise _Broken
        opened: list[tuple[int, LeafData]] = []
        gone: list[tuple[int, Tombstone]] = []
        for index, line in enumerate(lines):
            if line == b"null":
                continue
            if _is_tombstone(line):
                tombstone = self._tombstone(made, hashes, index, line)
                gone += [(index, tombstone)] if tombstone is not None else []
                continue
            if leaf_hash(line) != hashes[index * HASH_BYTES : (index + 1) * HASH_BYTES]:
                detail = f"this is not what leaf {index} committed to{_said(line)}"
                self.report.fail("leaf-wrong", name, detail, index + 1)
                continue
            try:
                data = _canonical(line, LeafData, name, self.report, index + 1)
                if data.pointer == PICKS:
                    _shaped(data.value, PicksValue, name, self.report, index + 1)
            except _Broken:
                continue
            opened.append((index, data))
        self._order(made, opened, gone, name)
        return opened, lines.count(b"null"), len(gone)

    def _tombstone(self, made: Commitment, hashes: bytes, index: int, line: bytes) -> Tombstone | None:
        """The tombstone on a line, where it is the operator's word on that very leaf."""
        name, number = self.name + OPENINGS, index + 1
        try:
            found = _canonical(line, Tombstone, name, self.report, number)
        except _Broken:
            return None
        if found.contest != made.contest or bytes.fromhex(found.leaf) != hashes[index * 32 : index * 32 + 32]:
            detail = f"the tombstone is of leaf {found.leaf} in {found.contest}, and stands in another one's place"
            self.report.fail("tombstone-wrong", name, detail, number)
            return None
        statement = root_statement(found.model_dump())
        if not self.keys.check(
            statement, found.signature, found.key_id, found.redacted_at, name, "the tombstone", number
        ):
            return None
        return found

    def _order(
        self,
        made: Commitment,
        opened: Sequence[tuple[int, LeafData]],
        gone: Sequence[tuple[int, Tombstone]],
        name: str,
    ) -> None:
        """The leaves of a contest stand by agent, revision and pointer; of each agent there is one revision.

        What was committed to in another way was committed to wrongly by the operator. A text alone is redacted, and
        only one of a lineup whose picks are opened can be seen to stand in its place.
        """
        before: tuple[str, int, str] | None = None
        whole: list[range] = []
        names: tuple[str, ...] = ()
        owner = ("", 0)
        for index, data in opened:
            here = (data.agent, data.revision, data.pointer)
            if data.contest != made.contest:
                self.report.fail("leaf-misplaced", name, f"it is a leaf of {data.contest}", index + 1)
            if before is not None and (here <= before or (here[0] == before[0] and here[1] != before[1])):
                detail = (
                    f"{here[2]!r} of {here[0]}, revision {here[1]}, cannot stand after {before[2]!r} of {before[0]}"
                )
                self.report.fail("leaf-misplaced", name, detail, index + 1)
            before = here
            inside = bool(whole) and index in whole[-1]
            if data.pointer == PICKS and not inside:
                names, owner = pointers(len(data.value["picks"])), here[:2]
                whole.append(range(index, index + len(names)))
            elif inside != (here[:2] == owner) or (inside and names[index - whole[-1].start] != data.pointer):
                detail = f"{here[2]!r} of {here[0]}, revision {here[1]}, does not stand where its lineup has it"
                self.report.fail("leaf-misplaced", name, detail, index + 1)
        for index, tombstone in gone:
            of = next((lineup for lineup in whole if index in lineup), None)
            named = None if of is None else pointers(len(of) // 2 - 1)[index - of.start]
            if tombstone.pointer == PICKS or named not in (None, tombstone.pointer):
                detail = f"a tombstone of {tombstone.pointer!r} stands where its lineup has {named!r}"
                self.report.fail("tombstone-wrong", name, detail, index + 1)
        if len(whole) > made.entries:
            self.report.fail("entries-wrong", name, f"{len(whole)} lineups are opened of {made.entries} committed to")
        elif len(whole) == made.entries and sum(map(len, whole)) != made.leaves:
            detail = f"the {made.entries} lineups have {sum(map(len, whole))} leaves, not {made.leaves}"
            self.report.fail("entries-wrong", name, detail)

    def _published_otherwise(self) -> None:
        """What was published and is not what was committed to; the download kept it as evidence."""
        path = self.folder / MISMATCHED
        if not path.exists():
            return
        name = self.name + MISMATCHED
        for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], start=1):
            if _is_tombstone(line):
                detail = "this text is said to be redacted, and was still published; or it is no text of this contest"
                self.report.fail("tombstone-wrong", name, detail, number)
                continue
            detail = f"this was published and is no leaf of what was committed to{_said(line)}"
            self.report.fail("never-committed", name, detail, number)


def _is_tombstone(line: bytes) -> bool:
    """Whether a line says of itself that it is a tombstone; a leaf's data has no such member."""
    return b'"kind":"mafl-redaction-1"' in line and b'"salt":' not in line


def _said(line: bytes) -> str:
    """Whose a line says that it is, as far as it can be read."""
    try:
        data = json.loads(line)
        return f": {data['pointer']!r} of {data['agent']}, revision {data['revision']}"
    except (ValueError, KeyError, TypeError, RecursionError):
        legible = [pattern.search(line) for pattern in (_POINTER_SAID, _AGENT_SAID)]
        pointer, agent = (found[1].decode("ascii") if found else "illegible" for found in legible)
        return f", and is no leaf's data: pointer {pointer}, agent {agent}"


# In canonical JSON both stand before what an agent wrote.
_POINTER_SAID = re.compile(rb'"pointer":("[/0-9a-z_]*")')
_AGENT_SAID = re.compile(rb'"agent":"([0-9a-f-]{36})"')


# --- an agent's folder ----------------------------------------------------------------------------


@dataclass
class _Agent:
    folder: Path
    name: str
    keys: _Keys
    report: Report

    def check(self) -> None:
        proof = self._proof() if (self.folder / PROOF).exists() else None
        for path in sorted(self.folder.glob("receipt*.json")):
            try:
                self._receipt(path, proof)
            except _Broken:
                continue

    def _proof(self) -> Proof | None:
        name = self.name + PROOF
        try:
            proof = _canonical(_read(self.folder / PROOF, name, self.report), Proof, name, self.report)
        except _Broken:
            return None
        made = proof.commitment
        before = len(self.report.failures)
        self.keys.check(
            root_statement(made.model_dump()), made.signature, made.key_id, made.locked_at, name, "the root"
        )
        for leaf in proof.leaves:
            path = [bytes.fromhex(step) for step in leaf.path]
            if not is_included(leaf.hashed, leaf.index, made.leaves, path, bytes.fromhex(made.root)):
                detail = f"leaf {leaf.index}, {leaf.pointer!r}, is not under the signed root"
                self.report.fail("leaf-wrong", name, detail)
            self._tombstone(leaf, made, name)
        opened = [leaf.data for leaf in proof.leaves if leaf.data is not None]
        whose = {(data.agent, data.revision, data.contest, data.model) for data in opened}
        named = [leaf.pointer for leaf in proof.leaves]
        places = [leaf.index for leaf in proof.leaves]
        if len(whose) != 1 or {data.contest for data in opened} != {made.contest}:
            self.report.fail("leaf-misplaced", name, "the leaves are not those of one revision in this contest")
        elif tuple(named) != pointers(len(named) // 2 - 1) or places != list(range(places[0], places[0] + len(places))):
            self.report.fail("leaf-misplaced", name, "the leaves are not all those of one lineup, in their order")
        if len(self.report.failures) > before:
            return None
        first = opened[0]
        self.report.proofs.append(
            {
                "contest": made.contest,
                "agent": first.agent,
                "revision": first.revision,
                "root": made.root,
                "key_id": made.key_id,
                "leaves": len(proof.leaves),
                "redacted": sum(leaf.redacted is not None for leaf in proof.leaves),
            }
        )
        return proof

    def _tombstone(self, leaf: ProvenLeaf, made: Commitment, name: str) -> None:
        found = leaf.redacted
        if found is None:
            return
        if found.contest != made.contest or found.pointer == PICKS:
            detail = f"the tombstone of leaf {leaf.index} is of {found.pointer!r} in {found.contest}"
            self.report.fail("tombstone-wrong", name, detail)
        self.keys.check(
            root_statement(found.model_dump()), found.signature, found.key_id, found.redacted_at, name, "the tombstone"
        )

    def _receipt(self, path: Path, proof: Proof | None) -> None:
        name = self.name + path.name
        try:
            document = _parsed(_read(path, name, self.report))
        except (ValueError, RecursionError) as error:
            self.report.fail("malformed", name, f"it is no JSON: {error}")
            raise _Broken from None
        _unless_refused(document, name, self.report)
        given = _shaped(document, Receipt, name, self.report)
        covered = ("accepted_at", "agent", "body", "contest", "model", "revision", "salts")
        made = sha256_hex(canonical_json({member: document[member] for member in covered}))
        # Of a text that was gone when this was fetched neither words nor salt are left to compute the receipt with:
        # its signature and the proof alone speak for it then. Whoever kept the first answer can check all of it.
        if made != given.receipt and not self._is_redacted(given):
            self.report.fail("receipt-wrong", name, f"the receipt of what stands here is {made}, not {given.receipt}")
            return
        statement = commitment.receipt_statement(given.receipt)
        if not self.keys.check(statement, given.signature, given.key_id, given.accepted_at, name, "the receipt"):
            return
        committed = None
        if proof is not None and proof.commitment.contest == given.contest:
            committed = self._committed(given, proof, name)
        self.report.receipts.append(
            {
                "file": name,
                "contest": given.contest,
                "agent": given.agent,
                "revision": given.revision,
                "receipt": given.receipt,
                "key_id": given.key_id,
                # True: this revision is under the root. None: another one is, or there is no proof here.
                "committed": committed,
                "redacted": sorted(given.redacted),
            }
        )

    @staticmethod
    def _is_redacted(given: Receipt) -> bool:
        """Whether what is said to be redacted is: null in the body, without a salt, and a text."""
        return bool(given.redacted) and all(
            pointer != PICKS and pointer not in given.salts and _at_pointer(given.body, pointer) is None
            for pointer in given.redacted
        )

    def _committed(self, given: Receipt, proof: Proof, name: str) -> bool | None:
        final = next(leaf.data for leaf in proof.leaves if leaf.data is not None)
        if final.agent != given.agent:
            self.report.fail(
                "proof-differs", name, f"the proof is of the agent {final.agent}, the receipt of {given.agent}"
            )
            return False
        if given.revision < final.revision:
            return None
        same = {"accepted_at": given.accepted_at, "model": given.model, "revision": given.revision}
        for leaf in proof.leaves:
            if leaf.data is None:
                if leaf.pointer not in given.redacted and leaf.hashed != _leaf_of(given, leaf.pointer):
                    detail = f"{leaf.pointer!r} is redacted, and its leaf is not that of what the receipt has"
                    self.report.fail("proof-differs", name, detail)
                    return False
                continue
            data = leaf.data
            wrong = [member for member, value in same.items() if getattr(data, member) != value]
            if given.salts.get(data.pointer) != data.salt:
                wrong.append("salt")
            if not _same_value(given, data):
                wrong.append("value")
            if wrong:
                detail = f"{data.pointer!r} was committed to with another {' and '.join(wrong)} than the receipt has"
                self.report.fail("proof-differs", name, detail)
                return False
        return True


def _at_pointer(body: dict[str, Any], pointer: str) -> Any:
    """What stands under a pointer of a body; of one that it has not something that is no text and not null."""
    found: Any = body
    try:
        for part in pointer.split("/")[1:]:
            found = found[int(part)] if isinstance(found, list) else found[part]
    except (LookupError, TypeError, ValueError):
        return ()
    return found


def _leaf_of(given: Receipt, pointer: str) -> bytes:
    """The hash of the leaf of a text as a receipt has it; of nothing where it has it not."""
    if pointer not in given.salts:
        return b""
    return leaf_hash(
        canonical_json(
            {
                **{name: getattr(given, name) for name in ("accepted_at", "agent", "contest", "model", "revision")},
                "pointer": pointer,
                "salt": given.salts[pointer],
                "value": _at_pointer(given.body, pointer),
            }
        )
    )


def _same_value(given: Receipt, data: LeafData) -> bool:
    """Whether a leaf holds what the receipt's body says at its pointer; a body has no prices."""
    try:
        if data.pointer != PICKS:
            return bool(_at_pointer(given.body, data.pointer) == data.value)
        picks = [{name: pick[name] for name in ("slot", "player_id", "confidence")} for pick in given.body["picks"]]
        value = data.value
        return bool(
            picks == [{name: pick[name] for name in ("slot", "player_id", "confidence")} for pick in value["picks"]]
            and round(given.body["projected_score"] * 100) == value["projected_score"]
            and given.body["confidence"] == value["confidence"]
            and given.total_price in (None, value["total_price"])
        )
    except (KeyError, IndexError, TypeError, ValueError):
        return False


# --- openings, from what is published ---------------------------------------------------------------


def openings(contest: str, lineups: Iterable[Mapping[str, Any]]) -> list[bytes]:
    """The data of every leaf that the published lineups of a contest open, in canonical JSON.

    ``lineups`` are those of ``GET /api/v1/contests/{contest}/lineups``.
    """
    found = []
    for lineup in lineups:
        opening = lineup.get("opening")
        if opening is None:
            continue
        picks = sorted(lineup["picks"], key=lambda pick: pick["index"])
        values: dict[str, Any] = {
            PICKS: {
                "picks": [
                    {name: pick[name] for name in ("slot", "player_id", "price", "confidence")} for pick in picks
                ],
                **{name: lineup[name] for name in ("projected_score", "confidence", "total_price")},
            },
            "/thesis": lineup["thesis"]["text"],
        }
        for pick in picks:
            values |= {f"/picks/{pick['index']}/{name}": pick[name]["text"] for name in ("rationale", "main_factor")}
        same = {name: opening[name] for name in ("agent", "model", "accepted_at")}
        found += [
            canonical_json(
                {
                    **same,
                    "contest": contest,
                    "revision": lineup["revision"],
                    "pointer": pointer,
                    "value": values[pointer],
                    "salt": salt,
                }
            )
            for pointer, salt in sorted(opening["salts"].items())
        ]
    return found


def placed(
    leaves: Iterable[bytes], hashes: bytes, tombstones: Iterable[Mapping[str, Any]] = ()
) -> tuple[bytes, list[bytes]]:
    """``openings.jsonl`` of leaves' data and tombstones, each on the line of its leaf, and what belongs on no line.

    That is data that no leaf committed to, and a tombstone of no leaf, or of one that is opened all the same.
    """
    places = {hashes[at : at + HASH_BYTES]: at // HASH_BYTES for at in range(0, len(hashes), HASH_BYTES)}
    lines = [b"null"] * (len(hashes) // HASH_BYTES)
    strange = []
    for data in leaves:
        place = places.get(leaf_hash(data))
        if place is None:
            strange.append(data)
        else:
            lines[place] = data
    for tombstone in tombstones:
        place = places.get(bytes.fromhex(tombstone["leaf"]))
        if place is None or lines[place] != b"null":
            strange.append(canonical_json(tombstone))
        else:
            lines[place] = canonical_json(tombstone)
    return b"".join(line + b"\n" for line in lines), strange
