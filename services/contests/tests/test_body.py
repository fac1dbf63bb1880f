"""The body of a lineup, drawn: each fault alone, faults together, and what is odd but sound.

A body is drawn as a document whose objects are lists of members, so that a key may come twice and the order is the
test's, and is written by a writer that uses all the freedom that JSON gives: white space, escapes, spellings.
"""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contests.domain import CODES, MAX_BODY, LineupRefused, _Inquest, canonical
from testkit.fixtures import Start

from .helpers import SLOTS, W04, cheapest, join, judge, ok, week_four, week_four_is_open

LIMITS = judge().ruleset.limits
TEXTS = {"rationale": LIMITS.rationale, "main_factor": LIMITS.main_factor, "thesis": LIMITS.thesis}
SCORES = {"at_least": 0.0, "at_most": 500.0, "decimals": 2}
PROBABILITY = {"at_least": 0, "at_most": 1}
LINEUP_MEMBERS = ["picks", "thesis", "projected_score", "confidence"]
PICK_MEMBERS = ["slot", "player_id", "rationale", "confidence", "main_factor"]
ANOTHER = "another"
"""Stands for a member that there is not."""
POOL = "a player_id from /api/v1/contests/2017-W04/pool"
NO_NUL_NO_SURROGATE = "Unicode characters other than U+0000"

# --- a writer of JSON that uses its freedom ---------------------------------------------------------


@dataclass(frozen=True)
class Raw:
    """A value in its own spelling."""

    text: str


class Members(list[Any]):
    """An object, as its members in order."""

    def put(self, key: str, value: Any) -> None:
        """Change a member in its place, or add it."""
        for place, (known, _) in enumerate(self):
            if known == key:
                self[place] = (key, value)
                return
        self.append((key, value))

    def drop(self, key: str) -> None:
        self[:] = [member for member in self if member[0] != key]

    def __getitem__(self, key: Any) -> Any:
        return dict(self)[key] if isinstance(key, str) else super().__getitem__(key)


def members(document: Any) -> Any:
    """A document with ``Members`` in the place of its objects."""
    if isinstance(document, dict):
        return Members((key, members(value)) for key, value in document.items())
    return [members(one) for one in document] if isinstance(document, list) else document


_SHORT = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


@dataclass
class Writer:
    """Writes a document as JSON; ``choose(n)`` is one of 0 … n-1 and decides wherever JSON leaves a choice."""

    choose: Callable[[int], int]
    spaces: bool = True
    escapes: bool = True

    def write(self, value: Any) -> bytes:
        return (self._space() + self._value(value) + self._space()).encode("utf-8", "surrogatepass")

    def _value(self, value: Any) -> str:
        match value:
            case Raw():
                return value.text
            case Members():
                return self._listed(
                    "{}", [f"{self._text(key)}{self._space()}:{self._space()}{self._value(one)}" for key, one in value]
                )
            case dict():
                return self._value(Members(value.items()))
            case list():
                return self._listed("[]", [self._value(one) for one in value])
            case str():
                return self._text(value)
            case _:
                return json.dumps(value)

    def _listed(self, ends: str, parts: Sequence[str]) -> str:
        inner = ",".join(f"{self._space()}{part}{self._space()}" for part in parts) or self._space()
        return ends[0] + inner + ends[1]

    def _space(self) -> str:
        return ("", "", "", " ", "\n", "\t", "\r\n", "  ")[self.choose(8)] if self.spaces else ""

    def _text(self, text: str) -> str:
        # One way for a whole text: a choice for each character would make an example of thousands.
        way = self.choose(4) if self.escapes else 0
        return '"' + "".join(self._character(character, way) for character in text) + '"'

    @staticmethod
    def _character(character: str, way: int) -> str:
        code = ord(character)
        if character in '"\\' or (character in _SHORT and way in (1, 3)):
            return f"\\u{code:04x}" if way == 3 else _SHORT[character]
        if way == 2 or code < 0x20 or 0xD800 <= code < 0xE000 or (way == 3 and code % 2):
            units = character.encode("utf-16-be", "surrogatepass").hex()
            shown = units.upper() if way == 3 else units
            return "".join(f"\\u{shown[place : place + 4]}" for place in range(0, len(shown), 4))
        return character


def plain(document: Any) -> bytes:
    return Writer(lambda n: 0).write(document)


# --- faults -------------------------------------------------------------------------------------------

Told = tuple[str, str, Any, Any]
"""What a violation tells: code, pointer, value, limit."""


@dataclass
class Body:
    """A sound lineup, its picks in any order, and the violations that have been put into it."""

    document: Members
    picks: list[Any]
    of: dict[str, Members]
    """The pick of each slot, as it was before any fault."""
    expected: list[Callable[[], Told]] = field(default_factory=list)
    touched: set[Any] = field(default_factory=set)

    def tell(self, code: str, at: Any, name: str, value: Any, limit: Any) -> None:
        """Expect a violation of a member of the lineup (``at`` None) or of a pick, wherever it will stand."""
        self.expected.append(lambda: (code, self.pointer(at, name), value, limit))

    def pointer(self, at: Any, name: str) -> str:
        key = name.replace("~", "~0").replace("/", "~1")
        return f"/{key}" if at is None else f"/picks/{self.place(at)}/{key}"

    def place(self, pick: Any) -> int:
        return next(place for place, one in enumerate(self.picks) if one is pick)

    def touch(self, *what: Any) -> bool:
        """Take parts of the lineup for one fault; False where another fault has one of them."""
        if self.touched & set(what):
            return False
        self.touched |= set(what)
        return True


def sound(draw: st.DrawFn) -> Body:
    document = members(cheapest(number=draw(st.integers(0, 9))))
    picks = draw(st.permutations(document["picks"]))
    document.put("picks", picks)
    return Body(document, picks, {pick["slot"]: pick for pick in picks})


def shown(value: Any) -> Any:
    """A value as a violation repeats it."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, str):
        cut = value if len(value) <= 100 else value[:99] + "…"
        return cut.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return f"an object of {len(value)} members"
    return f"an array of {len(value)} items" if isinstance(value, list) else value


_blank = st.text(
    st.sampled_from(" \t\n\r\x0b\x0c\x1c\x1d\x85\xa0\u1680\u2003\u2028\u2029\u202f\u205f\u3000"), max_size=150
)
_numbers = st.integers(-(10**16), 10**16) | st.floats(allow_nan=False, allow_infinity=False)
_containers = st.lists(st.none() | st.text(max_size=3), max_size=3) | st.dictionaries(st.text(), _numbers, max_size=3)
_no_text = st.booleans() | _numbers | _containers
_no_number = st.booleans() | st.text(max_size=120) | st.sampled_from(["0.5", "1", "NaN", ""]) | _containers
_no_list = st.booleans() | _numbers | st.text(max_size=5) | st.dictionaries(st.text(), st.none(), max_size=3)
_no_object = st.booleans() | _numbers | st.text(max_size=5) | st.lists(st.none(), max_size=3)
_characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
_unknown_names = st.text(_characters, max_size=100) | st.sampled_from(["QB2", "qb", " QB", "WR1 ", "ＱＢ", "RB1\u200b"])


def _absent(body: Body, at: Any, name: str, draw: st.DrawFn) -> None:
    holder = body.document if at is None else at
    if draw(st.booleans()):
        holder.drop(name)
    else:
        holder.put(name, None)


def _missing_text(body: Body, at: Any, name: str, draw: st.DrawFn) -> None:
    allowed = f"1 to {TEXTS[name]} characters"
    if draw(st.booleans()):
        text = draw(_blank)
        (body.document if at is None else at).put(name, text)
        body.tell("reasoning-missing", at, name, shown(text), allowed)
    else:
        _absent(body, at, name, draw)
        body.tell("reasoning-missing", at, name, None, allowed)


def _long_text(body: Body, at: Any, name: str, draw: st.DrawFn) -> None:
    length = TEXTS[name] + draw(st.sampled_from([1, 2, 99]))
    (body.document if at is None else at).put(name, draw(_characters.filter(lambda c: not c.isspace())) * length)
    body.tell("text-too-long", at, name, length, TEXTS[name])


def _typed_text(body: Body, at: Any, name: str, draw: st.DrawFn) -> None:
    value = draw(_no_text)
    (body.document if at is None else at).put(name, value)
    body.tell("wrong-type", at, name, shown(value), "string")


def _invalid_text(body: Body, at: Any, name: str, draw: st.DrawFn) -> None:
    text = draw(st.text(_characters, max_size=90)) + "x" + draw(st.sampled_from("\0\ud800\udbff\udc00\udfff"))
    (body.document if at is None else at).put(name, text)
    body.tell("text-invalid", at, name, shown(text), NO_NUL_NO_SURROGATE)


def _missing_number(body: Body, at: Any, name: str, draw: st.DrawFn) -> None:
    _absent(body, at, name, draw)
    body.tell("reasoning-missing", at, name, None, SCORES if name == "projected_score" else PROBABILITY)


def _typed_number(body: Body, at: Any, name: str, draw: st.DrawFn) -> None:
    value = draw(_no_number)
    (body.document if at is None else at).put(name, value)
    body.tell("wrong-type", at, name, shown(value), "number")


def _number_outside(body: Body, at: Any, name: str, draw: st.DrawFn) -> None:
    most = 500 if name == "projected_score" else 1
    beyond = st.floats(min_value=most, exclude_min=True) | st.integers(most + 1, 10**16)
    below = st.floats(max_value=0, exclude_max=True) | st.integers(-(10**16), -1)
    kinds = [beyond, below, st.just(math.nan)]
    if name == "projected_score":
        kinds.append(st.floats(0, 500).filter(lambda number: round(number, 2) != number))
    value = draw(st.one_of(kinds))
    spelt = Raw("1e999" if value > 0 else "-1e999") if math.isinf(value) and draw(st.booleans()) else value
    (body.document if at is None else at).put(name, spelt)
    limit = SCORES if name == "projected_score" else PROBABILITY
    body.tell("number-out-of-range", at, name, shown(value), limit)


def _no_slot(body: Body, at: Any, name: str, draw: st.DrawFn) -> None:
    if draw(st.booleans()):
        value = draw(_no_text)
        at.put(name, value)
        body.tell("wrong-type", at, name, shown(value), "string")
    else:
        _absent(body, at, name, draw)
        body.tell("slot-missing", at, name, None, list(SLOTS))


def _no_player(body: Body, at: Any, name: str, draw: st.DrawFn) -> None:
    kind = draw(st.sampled_from(["absent", "type", "unknown"]))
    if kind == "type":
        value = draw(_no_text)
        at.put(name, value)
        body.tell("wrong-type", at, name, shown(value), "string")
    elif kind == "unknown":
        value = draw(st.text(max_size=150).filter(lambda text: text not in judge().players))
        at.put(name, value)
        body.tell("player-unknown", at, name, shown(value), POOL)
    else:
        _absent(body, at, name, draw)
        body.tell("player-unknown", at, name, None, POOL)


def _wrong_player(body: Body, at: Any, name: str, draw: st.DrawFn) -> None:
    takes = judge().slots[at["slot"]].positions
    there = [dict(pick).get("player_id") for pick in body.picks if isinstance(pick, Members)]
    others = [p.player_id for p in week_four().players if not set(p.positions) & set(takes) and p.price < 4000]
    value = draw(st.sampled_from([player for player in others if player not in there]))
    at.put(name, value)
    body.tell("player-ineligible", at, name, value, list(takes))


def _unknown_member(body: Body, at: Any, draw: st.DrawFn) -> None:
    known = LINEUP_MEMBERS if at is None else PICK_MEMBERS
    key = draw(st.text(_characters, max_size=99).filter(lambda key: key not in known))
    value = draw(st.none() | _no_text | st.text(max_size=120))
    (body.document if at is None else at).insert(draw(st.integers(0, 3)), (key, value))
    body.tell("field-unknown", at, key, shown(value), known)


def _repeated_member(body: Body, at: Any, name: str, draw: st.DrawFn) -> None:
    holder = body.document if at is None else at
    value = holder[name]
    holder.insert(0, (name, draw(st.none() | _no_text | st.just(value))))
    body.tell("key-repeated", at, name, shown(value), "each key once")


def _spare(body: Body, position: str = "WR") -> str:
    there = [dict(pick).get("player_id") for pick in body.picks if isinstance(pick, Members)]
    free = (p for p in week_four().players if p.positions == (position,) and p.player_id not in there)
    return min(free, key=lambda player: (player.price, player.player_id)).player_id


def _more(body: Body, slot: str) -> Members:
    """A further pick, sound but for its slot."""
    pick = members(cheapest()["picks"][3])
    pick.put("slot", slot)
    pick.put("player_id", _spare(body))
    body.picks.append(pick)
    return pick


def _unknown_slot(body: Body, draw: st.DrawFn) -> None:
    name = draw(_unknown_names.filter(lambda name: name not in SLOTS))
    body.tell("slot-unknown", _more(body, name), "slot", shown(name), list(SLOTS))


def _repeated_slot(body: Body, draw: st.DrawFn) -> None:
    slot = draw(st.sampled_from(["WR1", "WR2", "WR3", "FLEX"]))
    body.tell("slot-repeated", _more(body, slot), "slot", slot, "each slot once")


def _empty_slot(body: Body, at: Any, draw: st.DrawFn) -> None:
    body.picks.remove(at)
    slot = at["slot"]
    body.expected.append(lambda: ("slot-missing", "/picks", None, slot))


def _no_pick(body: Body, at: Any, draw: st.DrawFn) -> None:
    value = draw(st.none() | _no_object)
    place = body.place(at)
    body.picks[place] = value
    body.expected.append(lambda: ("wrong-type", f"/picks/{place}", shown(value), "object"))


def _same_player(body: Body, at: Any, draw: st.DrawFn) -> None:
    """Two picks of running backs name one of them."""
    other = next(pick for pick in body.picks if pick is not at and pick["slot"] in ("RB1", "RB2"))
    at.put("player_id", other["player_id"])
    value = other["player_id"]
    body.expected.append(
        lambda: (
            "player-repeated",
            f"/picks/{max(body.place(at), body.place(other))}/player_id",
            value,
            "each player once",
        )
    )


def _too_dear(body: Body, draw: st.DrawFn) -> None:
    dear = sorted(week_four().players, key=lambda player: -player.price)
    taken: set[str] = set()
    total = 0
    for pick in body.picks:
        takes = set(judge().slots[pick["slot"]].positions)
        player = next(p for p in dear if p.player_id not in taken and takes & set(p.positions))
        taken.add(player.player_id)
        total += player.price
        pick.put("player_id", player.player_id)
    body.expected.append(lambda: ("over-cap", "/picks", total, 50_000))


@dataclass(frozen=True)
class Fault:
    """One way to make a body faulty: ``slot`` is of the pick that it is put into, if any."""

    name: str
    slot: str | None
    put: Callable[..., None]
    member: str | None = None
    touches: tuple[Any, ...] = ()
    """What else than its member it changes: two such faults would not be independent."""

    def into(self, body: Body, draw: st.DrawFn) -> bool:
        """Put it in; False where it would touch what another fault has changed."""
        at = body.of[self.slot] if self.slot else None
        whole = (
            [(self.slot, member) for member in (*PICK_MEMBERS, ANOTHER)] if self.slot and self.member is None else []
        )
        own = [(self.slot, self.member)] if self.member else whole
        if not body.touch(*own, *self.touches):
            return False
        arguments = [body] if self.slot is None and self.member is None else [body, at]
        self.put(*arguments, *([self.member] if self.member else []), draw)
        return True

    def __str__(self) -> str:
        return "-".join(part for part in (self.name, self.slot, self.member) if part)


def faults() -> Iterator[Fault]:
    """Each code, in each member, in each place."""
    places: list[str | None] = [None, *SLOTS]
    for slot in places:
        for member in ("thesis",) if slot is None else ("rationale", "main_factor"):
            yield Fault("missing", slot, _missing_text, member)
            yield Fault("too-long", slot, _long_text, member)
            yield Fault("type", slot, _typed_text, member)
            yield Fault("invalid", slot, _invalid_text, member)
            yield Fault("repeated-key", slot, _repeated_member, member)
        for member in ("projected_score", "confidence") if slot is None else ("confidence",):
            yield Fault("missing", slot, _missing_number, member)
            yield Fault("outside", slot, _number_outside, member)
            yield Fault("type", slot, _typed_number, member)
            yield Fault("repeated-key", slot, _repeated_member, member)
        yield Fault("unknown-member", slot, lambda body, at, name, draw: _unknown_member(body, at, draw), ANOTHER)
    for slot in SLOTS:
        yield Fault("no-slot", slot, _no_slot, "slot", ("roster",))
        yield Fault("no-player", slot, _no_player, "player_id")
        yield Fault("ineligible", slot, _wrong_player, "player_id", ((slot, "slot"),))
        yield Fault("empty-slot", slot, _empty_slot, touches=("roster",))
        yield Fault("no-pick", slot, _no_pick, touches=("roster",))
    yield Fault("unknown-slot", None, _unknown_slot, touches=("roster",))
    yield Fault("repeated-slot", None, _repeated_slot, touches=("roster",))
    for slot in ("RB1", "FLEX"):
        yield Fault(
            "same-player",
            slot,
            _same_player,
            touches=("roster", *((one, "player_id") for one in ("RB1", "RB2") if one != slot)),
        )
    yield Fault("too-dear", None, _too_dear, touches=("roster", *((slot, "player_id") for slot in SLOTS)))


FAULTS = list(faults())


def told(sent: bytes) -> list[Told]:
    """What is said of a body; nothing of a sound one."""
    try:
        judge()(sent)
    except LineupRefused as refusal:
        assert judge().at_once(sent) is None
        for one in refusal.violations:
            assert one.code in CODES
            assert one.detail
            json.dumps(one.as_dict(), allow_nan=False, ensure_ascii=False).encode()
        return [(one.code, one.pointer, one.value, one.limit) for one in refusal.violations]
    return []


def counted(found: list[Told]) -> Counter[tuple[str, str, str, str]]:
    # True == 1 == 1.0 in Python, and not in JSON.
    return Counter((code, pointer, json.dumps(value), json.dumps(limit)) for code, pointer, value, limit in found)


def written(document: Any, draw: st.DrawFn) -> bytes:
    """A document in some spelling. One draw decides all: one for each choice would take minutes to shrink."""
    return Writer(random.Random(draw(st.integers(0, 2**16))).randrange, spaces=draw(st.booleans())).write(document)


@pytest.mark.rule("C3", "C4", "C5")
@pytest.mark.parametrize("fault", FAULTS, ids=str)
@given(data=st.data())
@settings(max_examples=6, deadline=None, database=None, suppress_health_check=list(HealthCheck))
def test_each_fault_alone_gives_exactly_its_own_violation(fault: Fault, data: st.DataObject) -> None:
    body = sound(data.draw)
    assert fault.into(body, data.draw)
    (expected,) = (tell() for tell in body.expected)
    assert counted(told(written(body.document, data.draw))) == counted([expected])


@pytest.mark.rule("C3", "C4", "C5")
@given(data=st.data())
@settings(max_examples=150, deadline=None, database=None, suppress_health_check=list(HealthCheck))
def test_independent_faults_together_give_all_their_violations_and_nothing_else(data: st.DataObject) -> None:
    body = sound(data.draw)
    for fault in data.draw(st.lists(st.sampled_from(FAULTS), min_size=2, max_size=25)):
        fault.into(body, data.draw)
    assert counted(told(written(body.document, data.draw))) == counted([tell() for tell in body.expected])


@pytest.mark.rule("C5")
@pytest.mark.parametrize("slot", SLOTS)
def test_a_misspelt_slot_is_told_with_the_slot_that_it_leaves_empty(slot: str) -> None:
    document = members(cheapest())
    place = SLOTS.index(slot)
    document["picks"][place].put("slot", f"{slot}?")
    assert counted(told(plain(document))) == counted(
        [("slot-unknown", f"/picks/{place}/slot", f"{slot}?", list(SLOTS)), ("slot-missing", "/picks", None, slot)]
    )


@pytest.mark.rule("C5")
def test_a_text_that_is_too_long_and_invalid_is_told_both() -> None:
    document = members(cheapest())
    document.put("thesis", "x" * 4000 + "\0")
    assert [(code, pointer) for code, pointer, *_ in told(plain(document))] == [
        ("text-too-long", "/thesis"),
        ("text-invalid", "/thesis"),
    ]


# --- sound, however odd -------------------------------------------------------------------------------

_ODD = (
    '"slot": "QB"', '\\"thesis\\" : ', '{"picks": []}', "\\u0000", "\ufeff", "\u2028\u2029", "\x01\x1f\x7f\x85",
    "\U0010ffff\U000f0000\ufffe\uffff\ue000", "e\u0301\u202e\u2066\u200b", "\U00020000\U0001f469\u200d\U0001f467",
    "a b c", "</script><!--", "'; DROP TABLE revisions; --", "%s %(x)s {} {0}", "\\", '"', "/",
)  # fmt: skip
_words = st.one_of(
    st.text(_characters, min_size=1, max_size=60),
    st.lists(st.sampled_from(_ODD), min_size=1, max_size=4).map("".join),
).filter(lambda text: text.strip() != "")
_probabilities = st.sampled_from(
    ["0", "1", "-0", "0.0", "-0.0", "1e0", "1E+0", "0.50", "5e-1", "50E-2", "0.5000000000000000000000000001", "1.000",
     "0e999", "1e-999", "4.9e-324", "0.1000000000000000055511151231257827021181583404541015625", "10e-1",
     "0.999999999999999999999"]
) | st.floats(0, 1).map(repr)  # fmt: skip
_scores = st.sampled_from(
    ["0", "-0", "-0.0", "500", "5e2", "500.00", "142.5", "142.50", "1.425e2", "14250e-2", "1425E-1", "0.01", "0.010",
     "1e-2", "99.99", "123.4500000000000000000"]
) | st.integers(0, 50_000).map(lambda hundredths: repr(hundredths / 100))  # fmt: skip


def _longest(length: int) -> st.SearchStrategy[str]:
    """A text as long as its limit."""
    return _characters.filter(lambda character: not character.isspace()).map(lambda character: character * length)


@st.composite
def odd(draw: st.DrawFn) -> tuple[dict[str, Any], bytes]:
    """A sound lineup and the bytes that it is written in."""
    document = cheapest(number=draw(st.integers(0, 9)))
    document["picks"] = draw(st.permutations(document["picks"]))
    spelt = members(document)
    holders = [(document, spelt, ("thesis",))]
    holders += [(p, q, ("rationale", "main_factor")) for p, q in zip(document["picks"], spelt["picks"], strict=True)]
    for holder, inner, texts in holders:
        for name in texts:
            holder[name] = draw(st.just(holder[name]) | _words | _longest(TEXTS[name]))
            inner.put(name, holder[name])
        for name, spellings in (("confidence", _probabilities), ("projected_score", _scores)):
            if name in holder:
                number = draw(spellings)
                holder[name] = float(number)
                inner.put(name, Raw(number))
        inner[:] = draw(st.permutations(inner))
    return document, written(spelt, draw)


@pytest.mark.rule("C3", "C4", "C5")
@given(odd())
@settings(max_examples=120, deadline=None, database=None, suppress_health_check=list(HealthCheck))
def test_what_is_odd_but_sound_is_taken_alike_by_both_ways_of_the_judge(drawn: tuple[dict[str, Any], bytes]) -> None:
    document, sent = drawn
    assert len(sent) <= MAX_BODY
    full = _Inquest(judge()).hear(sent)
    quick = judge().at_once(sent)
    assert quick is None or quick == full
    assert judge()(sent) == full
    assert full.body == document
    assert [pick.slot for pick in full.picks] == [pick["slot"] for pick in document["picks"]]
    assert [pick.confidence for pick in full.picks] == [pick["confidence"] for pick in document["picks"]]
    assert full.projected_score == round(document["projected_score"] * 100)
    assert {pointer: json.loads(text) for pointer, text in canonical(full.body)[1]} == {
        "/thesis": document["thesis"],
        **{
            f"/picks/{place}/{name}": pick[name]
            for place, pick in enumerate(document["picks"])
            for name in ("rationale", "main_factor")
        },
    }


def test_most_sound_bodies_take_the_short_way() -> None:
    """The short way must not be a dead one."""
    for number in range(10):
        assert judge().at_once(json.dumps(cheapest(number=number)).encode()) is not None
        assert judge().at_once(json.dumps(cheapest(number=number), indent=2).encode()) is not None


@pytest.mark.rule("C4", "C6", "C10")
async def test_what_is_odd_but_sound_is_stored_as_it_was_sent(start: Start) -> None:
    drawn: list[tuple[dict[str, Any], bytes]] = []

    @given(odd())
    @settings(max_examples=40, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    def draw(one: tuple[dict[str, Any], bytes]) -> None:
        drawn.append(one)

    draw()
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        (agent,) = await join(service, 1)
        for number, (document, sent) in enumerate(drawn, start=1):
            given_back = await ok(await agent.submit(sent, key=f"odd {number}"))
            assert given_back["revision"] == number
            mine = await ok(await agent.get(f"{W04}/lineups/mine"))
            assert mine["body"] == document
            again = await agent.submit(json.dumps(document).encode(), key=f"odd {number}")
            assert (again.status_code, again.json()) == (201, given_back)
