import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common.events import LineupRules
from contests.domain import CODES, CONTRACT, MAX_BODY, STRUCTURAL, Judge, LineupRefused, Violation, _Inquest, canonical

from .helpers import SLOTS, body, cheapest, judge, week_four


def violations(document: Any) -> tuple[Violation, ...]:
    """What is wrong with a body, given as bytes or as a document; nothing for a sound one."""
    try:
        judge()(document if isinstance(document, bytes) else body(document))
    except LineupRefused as refusal:
        return refusal.violations
    return ()


def at(document: Any, pointer: str) -> Any:
    for part in pointer.split("/")[1:]:
        document = document[int(part)] if isinstance(document, list) else document.get(part)
    return document


@pytest.mark.rule("C3", "C4")
def test_a_sound_lineup_is_priced_by_the_contest_and_keeps_its_words() -> None:
    document = cheapest()
    document["picks"].reverse()
    lineup = judge()(body(document))
    assert [pick.slot for pick in lineup.picks] == list(reversed(SLOTS))
    assert lineup.total_price == sum(judge().players[pick.player_id].price for pick in lineup.picks) <= 50_000
    assert (lineup.projected_score, lineup.confidence) == (8825, 0.5)
    assert lineup.body == document
    _, words = canonical(lineup.body)
    assert len(words) == 19
    assert all(at(document, pointer) == json.loads(text) for pointer, text in words)


def _drop(*path: str | int) -> Any:
    def change(document: dict[str, Any]) -> None:
        holder: Any = document
        for part in path[:-1]:
            holder = holder[part]
        del holder[path[-1]]

    return change


def _put(value: Any, *path: str | int) -> Any:
    def change(document: dict[str, Any]) -> None:
        holder: Any = document
        for part in path[:-1]:
            holder = holder[part]
        holder[path[-1]] = value

    return change


def _append(**pick: Any) -> Any:
    def change(document: dict[str, Any]) -> None:
        others = {player.player_id for player in week_four().players if player.positions == ("WR",)}
        spare = sorted(others - {taken["player_id"] for taken in document["picks"]})[0]
        document["picks"].append({**document["picks"][3], "player_id": spare, **pick})

    return change


def _dear(document: dict[str, Any]) -> None:
    """The dearest players of each position that do not break another rule."""
    free = sorted(week_four().players, key=lambda player: -player.price)
    taken: set[str] = set()
    for pick in document["picks"]:
        positions = judge().slots[pick["slot"]].positions
        player = next(p for p in free if p.player_id not in taken and set(p.positions) & set(positions))
        taken.add(player.player_id)
        pick["player_id"] = player.player_id


def _same_player(document: dict[str, Any]) -> None:
    document["picks"][2]["player_id"] = document["picks"][1]["player_id"]


def _ineligible(document: dict[str, Any]) -> None:
    kept = {pick["player_id"] for pick in document["picks"]}
    other = next(p for p in week_four().players if p.positions == ("DST",) and p.player_id not in kept)
    document["picks"][0]["player_id"] = other.player_id


SINGLE = [
    (_drop("picks", 0), "slot-missing", "/picks", None, "QB"),
    (_append(slot="QB2"), "slot-unknown", "/picks/9/slot", "QB2", list(SLOTS)),
    (_append(slot="WR1"), "slot-repeated", "/picks/9/slot", "WR1", "each slot once"),
    (_put("nobody", "picks", 4, "player_id"), "player-unknown", "/picks/4/player_id", "nobody", None),
    (_same_player, "player-repeated", "/picks/2/player_id", None, "each player once"),
    (_ineligible, "player-ineligible", "/picks/0/player_id", None, ["QB"]),
    (_dear, "over-cap", "/picks", None, 50_000),
    (_drop("picks", 1, "rationale"), "reasoning-missing", "/picks/1/rationale", None, "1 to 2000 characters"),
    (_put(" \n", "picks", 1, "main_factor"), "reasoning-missing", "/picks/1/main_factor", " \n", "1 to 200 characters"),
    (_put("", "thesis"), "reasoning-missing", "/thesis", "", "1 to 4000 characters"),
    (_drop("confidence"), "reasoning-missing", "/confidence", None, {"at_least": 0, "at_most": 1}),
    (_put(None, "projected_score"), "reasoning-missing", "/projected_score", None, None),
    (_put(None, "picks", 8, "confidence"), "reasoning-missing", "/picks/8/confidence", None, None),
    (_put("x" * 2001, "picks", 1, "rationale"), "text-too-long", "/picks/1/rationale", 2001, 2000),
    (_put("x" * 201, "picks", 1, "main_factor"), "text-too-long", "/picks/1/main_factor", 201, 200),
    (_put("😀" * 4001, "thesis"), "text-too-long", "/thesis", 4001, 4000),
    (_put(1.01, "picks", 2, "confidence"), "number-out-of-range", "/picks/2/confidence", 1.01, None),
    (_put(-0.01, "confidence"), "number-out-of-range", "/confidence", -0.01, None),
    (_put(float("nan"), "confidence"), "number-out-of-range", "/confidence", "NaN", None),
    (_put(float("inf"), "projected_score"), "number-out-of-range", "/projected_score", "Infinity", None),
    (_put(500.01, "projected_score"), "number-out-of-range", "/projected_score", 500.01, None),
    (_put(99.995, "projected_score"), "number-out-of-range", "/projected_score", 99.995, None),
    (_put(True, "confidence"), "wrong-type", "/confidence", True, "number"),
    (_put("0.5", "picks", 0, "confidence"), "wrong-type", "/picks/0/confidence", "0.5", "number"),
    (_put(["why"], "picks", 0, "rationale"), "wrong-type", "/picks/0/rationale", "an array of 1 items", "string"),
    (_put({"a": 1}, "picks"), "wrong-type", "/picks", "an object of 1 members", "array"),
    (_drop("picks", 3, "slot"), "slot-missing", "/picks/3/slot", None, list(SLOTS)),
    (_put(3, "picks", 3, "slot"), "wrong-type", "/picks/3/slot", 3, "string"),
    (_put("WR1: me", "picks", 3), "wrong-type", "/picks/3", "WR1: me", "object"),
    (_drop("picks", 3, "player_id"), "player-unknown", "/picks/3/player_id", None, None),
    (_put(None, "picks", 3, "player_id"), "player-unknown", "/picks/3/player_id", None, None),
    (_put("me", "a/b~c"), "field-unknown", "/a~1b~0c", "me", None),
    (_put(1, "picks", 3, "price"), "field-unknown", "/picks/3/price", 1, None),
    (_put("a\0b", "thesis"), "text-invalid", "/thesis", "a\0b", None),
    (_put("a\ud800b", "thesis"), "text-invalid", "/thesis", "a\\ud800b", None),
]  # fmt: skip


@pytest.mark.rule("C3", "C4", "C5")
@pytest.mark.parametrize(("change", "code", "pointer", "value", "limit"), SINGLE)
def test_each_single_fault_gives_exactly_its_own_violation(
    change: Any, code: str, pointer: str, value: Any, limit: Any
) -> None:
    document = cheapest()
    change(document)
    (violation,) = violations(document)
    assert (violation.code, violation.pointer) == (code, pointer)
    if value is not None:
        assert violation.value == value
    if limit is not None:
        assert violation.limit == limit
    assert violation.limit is not None
    assert code in CODES


@pytest.mark.rule("C5")
def test_a_lineup_with_eleven_faults_gives_eleven_violations() -> None:
    document = cheapest()
    _dear(document)
    picks = document["picks"]
    pricey = Counter({pick["slot"]: judge().players[pick["player_id"]].price for pick in picks})
    assert pricey.total() - pricey["QB"] - pricey["DST"] > 50_000
    picks[1]["rationale"] = "x" * 2001  # text-too-long
    picks[2]["player_id"] = picks[1]["player_id"]  # player-repeated
    picks[3]["confidence"] = 7  # number-out-of-range
    del picks[4]["main_factor"]  # reasoning-missing
    picks[5]["player_id"] = "nobody"  # player-unknown
    cheap_passer = cheapest()["picks"][0]["player_id"]
    picks[6]["player_id"] = cheap_passer  # player-ineligible
    picks.append({**picks[7], "slot": "BENCH", "player_id": cheapest()["picks"][3]["player_id"]})  # slot-unknown
    picks.append({**picks[7], "player_id": cheapest()["picks"][4]["player_id"]})  # slot-repeated
    del picks[8]  # slot-missing: DST
    document["thesis"] = " "  # reasoning-missing again
    found = violations(document)
    assert len(found) == 11
    assert Counter(violation.code for violation in found) == Counter([*CONTRACT, "reasoning-missing"])


def ruled(**rules: int) -> Judge:
    """The judge of week four under rules on teams and games."""
    week = week_four()
    ruleset = judge().ruleset.model_copy(update={"lineup_rules": LineupRules(**rules)})
    return Judge(week.contest, ruleset, week.players)


def heard(judged: Judge, document: dict[str, Any]) -> list[Violation]:
    """What a judge finds, its short way and its inquest being of one mind."""
    try:
        judged(body(document))
    except LineupRefused as refusal:
        assert judged.at_once(body(document)) is None
        return list(refusal.violations)
    assert judged.at_once(body(document)) is not None
    return []


@pytest.mark.rule("C3", "C5")
def test_a_contest_may_limit_the_players_of_one_team_and_ask_for_games() -> None:
    document = cheapest()
    picked = [judge().players[pick["player_id"]] for pick in document["picks"]]
    teams, games = Counter(player.team for player in picked), {player.game_id for player in picked}
    ((team, most), *_) = teams.most_common()
    assert 1 < most < len(teams)
    for most_allowed, least_games in ((most, len(games)), (9, 1)):
        assert heard(ruled(max_per_team=most_allowed, min_games=least_games), document) == []
    crowded = heard(ruled(max_per_team=most - 1), document)
    assert {one.code for one in crowded} == {"team-crowded"}
    assert len(crowded) == sum(many == most for many in teams.values())
    assert [(one.pointer, one.value, one.limit) for one in crowded] == [("/picks", most, most - 1)] * len(crowded)
    assert all(player.player_name in crowded[0].detail for player in picked if player.team == team)
    (lacking,) = heard(ruled(min_games=len(games) + 1), document) if len(games) < len(SLOTS) else ()
    assert (lacking.code, lacking.pointer) == ("games-too-few", "/picks")
    assert (lacking.value, lacking.limit) == (len(games), len(games) + 1)
    # Both at once, beside any other fault; of a lineup that is not whole only what no other pick could mend.
    document["thesis"] = ""
    both = {one.code for one in heard(ruled(max_per_team=1, min_games=len(games) + 1), document)}
    assert both == {"team-crowded", "games-too-few", "reasoning-missing"}
    gone = next(place for place, player in enumerate(picked) if player.team != team)
    del document["picks"][gone]
    part = {one.code for one in heard(ruled(max_per_team=1, min_games=9), document)}
    assert part == {"team-crowded", "slot-missing", "reasoning-missing"}


@pytest.mark.rule("C5")
def test_structural_faults_are_listed_at_once_and_beside_the_others() -> None:
    document = cheapest() | {"theses": "x", "projected_score": "many"}
    document["picks"][1]["rationale"] = "a\0b"
    document["picks"][2]["confidence"] = 2
    document["picks"] += [document["picks"][0]] * 19
    text = json.dumps(document).replace('"slot": "QB"', '"slot": "TE", "slot": "QB"', 1)
    found = Counter(violation.code for violation in violations(text.encode()))
    assert set(found) & set(STRUCTURAL) == set(STRUCTURAL) - {"json-malformed"}
    assert (found["wrong-type"], found["number-out-of-range"], found["slot-repeated"]) == (1, 1, 18)


@pytest.mark.rule("C5")
def test_a_pick_without_a_slot_is_not_counted_again_as_a_slot_without_a_pick() -> None:
    document = cheapest()
    for place in (1, 6):
        del document["picks"][place]["slot"]
    del document["picks"][4]  # WR2
    assert [(one.code, one.pointer, one.limit) for one in violations(document)] == [
        ("slot-missing", "/picks/1/slot", list(SLOTS)),
        ("slot-missing", "/picks/5/slot", list(SLOTS)),
        ("slot-missing", "/picks", "WR2"),
    ]


@pytest.mark.rule("C5")
def test_an_empty_pick_is_told_all_that_it_lacks() -> None:
    document = cheapest()
    document["picks"][0] = {}
    assert [(one.code, one.pointer) for one in violations(document)] == [
        ("slot-missing", "/picks/0/slot"),
        ("player-unknown", "/picks/0/player_id"),
        ("reasoning-missing", "/picks/0/rationale"),
        ("reasoning-missing", "/picks/0/confidence"),
        ("reasoning-missing", "/picks/0/main_factor"),
    ]


def test_the_longest_lineup_is_read() -> None:
    document = cheapest() | {"thesis": "😀" * 4000}
    for pick in document["picks"]:
        pick |= {"rationale": "😀" * 2000, "main_factor": "😀" * 200}
    assert violations(document) == ()
    assert len(body(document)) < MAX_BODY


@pytest.mark.rule("C5")
@pytest.mark.parametrize(
    ("sent", "detail"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"{", "not JSON"),
        (b"\xff{}", "not UTF-8"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        (b'{"thesis": "\x01"}', "not JSON"),
        (b"{} {}", "not JSON"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_a_body_that_is_no_json_is_refused_clearly(sent: bytes, detail: str) -> None:
    (violation,) = violations(sent)
    assert violation.code == "json-malformed"
    assert detail in violation.detail


@pytest.mark.rule("C5")
@pytest.mark.parametrize("sent", [b"null", b"[]", b'"QB"', b"1e999", b"true", b"-Infinity", b"9" * 5000])
def test_a_body_that_is_no_object_is_refused_clearly(sent: bytes) -> None:
    (violation,) = violations(sent)
    assert (violation.code, violation.pointer, violation.limit) == ("wrong-type", "", "object")
    json.dumps(violation.as_dict(), allow_nan=False)


@pytest.mark.rule("C5")
@pytest.mark.parametrize(
    ("key", "again", "pointer"),
    [
        ('"thesis"', '"thesis"', "/thesis"),
        ('"thesis"', '"\\u0074hesis" ', "/thesis"),
        ('"slot": "QB"', '"slot": "QB", "slot"', "/picks/0/slot"),
    ],
)
def test_a_key_that_comes_twice_is_refused_however_it_is_written(key: str, again: str, pointer: str) -> None:
    sent = json.dumps(cheapest())
    doubled = sent.replace(key, f'{again}: "QB", {key}' if "slot" not in key else f'{again}: "QB"', 1)
    (violation,) = violations(doubled.encode())
    assert (violation.code, violation.pointer) == ("key-repeated", pointer)


@pytest.mark.rule("C5")
def test_a_flood_of_picks_or_members_gets_a_bounded_answer() -> None:
    document = cheapest()
    document["picks"] = document["picks"] + [{}] * 10_000
    found = violations(document)
    assert found[0].code == "picks-too-many"
    assert (found[0].value, found[0].limit) == (10_009, 9)
    assert len(found) <= 200
    flood = cheapest() | {f"extra{number}": "y" * 1000 for number in range(300)}
    found = violations(flood)
    assert len(found) == 20
    assert "280 more" in found[-1].detail
    assert all(len(str(violation.value)) <= 100 for violation in found)


@pytest.mark.rule("C5")
def test_an_empty_object_is_told_all_that_it_lacks() -> None:
    assert [(violation.code, violation.pointer) for violation in violations({})] == [
        *[("slot-missing", "/picks")] * 9,
        ("reasoning-missing", "/thesis"),
        ("reasoning-missing", "/projected_score"),
        ("reasoning-missing", "/confidence"),
    ]
    nothing: list[Any] | None
    for nothing in ([], None):
        found = violations({**cheapest(), "picks": nothing})
        assert [(one.code, one.pointer, one.limit) for one in found] == [("slot-missing", "/picks", s) for s in SLOTS]


@pytest.mark.rule("C4")
@pytest.mark.parametrize("number", [0, 1, 0.0, 1.0, -0.0, 1e-7, 5e-324])
def test_the_ends_of_a_range_are_in_it(number: float) -> None:
    assert violations(cheapest() | {"confidence": number, "projected_score": 500}) == ()


@pytest.mark.rule("C4")
def test_texts_may_be_as_long_as_their_limits_in_any_script_and_speak_of_json() -> None:
    document = cheapest() | {"thesis": "𓀀" * 4000}
    document["picks"][0] |= {"rationale": "é" * 2000, "main_factor": ': "slot": \\" \\u0000 "' + "x" * 100}
    assert violations(document) == ()
    assert violations(json.dumps(document, ensure_ascii=False, indent=4).encode()) == ()


_scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["QB", "RB1", " "])
_values = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)


@st.composite
def tampered(draw: st.DrawFn) -> bytes:
    """A lineup with some values replaced, removed, added or repeated; sometimes sound."""
    document = cheapest(number=draw(st.integers(0, 3)))
    for _ in range(draw(st.integers(0, 3))):
        holder: Any = (
            draw(st.sampled_from([document, *document.get("picks", [])]))
            if isinstance(document.get("picks"), list)
            else document
        )
        if not isinstance(holder, dict) or not holder:
            continue
        key = draw(st.sampled_from(sorted(holder)) | st.text(max_size=3))
        match draw(st.sampled_from(["replace", "remove", "move"])):
            case "replace":
                holder[key] = draw(_values)
            case "remove":
                holder.pop(key, None)
            case "move" if isinstance(document.get("picks"), list):
                document["picks"].append(draw(st.sampled_from(document["picks"])) if document["picks"] else {})
    text = json.dumps(document, indent=draw(st.sampled_from([None, 1])), ensure_ascii=draw(st.booleans()))
    return text.encode("utf-8", "surrogatepass")


@pytest.mark.rule("C5")
@given(tampered())
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_quick_judgement_and_the_full_one_agree(sent: bytes) -> None:
    quick = judge().at_once(sent)
    found = violations(sent)
    assert (quick is None) or not found
    assert quick is None or quick == _Inquest(judge()).hear(sent)
    for violation in found:
        assert violation.code in CODES
        json.dumps(violation.as_dict(), ensure_ascii=False, allow_nan=False).encode("utf-8")


@given(st.binary(max_size=200) | _values.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_at_all_are_judged_without_an_error(sent: bytes) -> None:
    assert violations(sent)


def test_a_player_of_two_positions_fits_the_slots_of_both() -> None:
    players = list(week_four().players)
    document = cheapest()
    both = judge().players[document["picks"][1]["player_id"]]
    players.remove(both)
    two = Judge("2017-W04", judge().ruleset, [*players, both.model_copy(update={"positions": ("RB", "TE")})])
    document["picks"][1]["player_id"], document["picks"][6]["player_id"] = "", both.player_id
    document["picks"][1]["player_id"] = next(
        p.player_id
        for p in players
        if p.positions == ("RB",) and all(p.player_id != q["player_id"] for q in document["picks"])
    )
    assert two(body(document)).total_price > 0
