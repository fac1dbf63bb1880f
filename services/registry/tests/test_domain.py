import re
import secrets

import pytest
from disarm import grapheme_len
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from registry import domain


def refusal(name: str) -> str:
    with pytest.raises(PydanticCustomError) as refused:
        domain.check_name(name)
    return refused.value.type


@pytest.mark.rule("A2")
@pytest.mark.parametrize(
    "name", ["abc", "Value Greedy", "greedy-7_b.2", "Zoë's Picks", "קבוצה", "選手番号", "ace 🏈", "Ω-squad", "a" * 32]
)
def test_ordinary_names_of_many_scripts_are_kept_as_written(name: str) -> None:
    assert domain.check_name(name) == name


@pytest.mark.rule("A2")
@pytest.mark.parametrize("name", ["", "  ", "ab", "a" * 33, " ab ", "me"])
def test_names_under_3_or_over_32_characters_are_refused(name: str) -> None:
    assert refusal(name) == "name_length"


@pytest.mark.rule("A2")
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("abc\x00", "NUL"),
        ("abc\nd", "line end"),
        ("abc\u202edcba", "right-to-left override"),
        ("ab\u200bcd", "zero-width space"),
        ("ab\u00a0cd", "no-break space"),
        ("abc\u2066x", "isolate"),
        ("abc\ud800", "lone surrogate"),
        ("abc\ue000", "private use"),
        ("abc\u3164", "Hangul filler: a letter drawn as nothing"),
        ("\u2800\u2800\u2800", "blank Braille"),
        ("abc\ufe0f", "variation selector"),
        ("a/b/c", "path"),
        ("<b>abc", "markup"),
        ("a  bc", "two spaces"),
        ("---", "no letter or digit"),
        ("ze\u0302\u0302\u0302\u0302ro", "stacked marks"),
    ],
)
def test_names_that_mislead_or_break_a_page_are_refused(name: str, why: str) -> None:
    assert refusal(name) == "name_characters", why


@pytest.mark.rule("A2", "A10")
@pytest.mark.parametrize(
    "name", ["house", "HOUSE", "ｈｏｕｓｅ", "unclaimed-abcdefgh2345", "Unclaimed", "ADMIN", "Mafl"]
)
def test_reserved_names_are_refused_in_any_case_and_width(name: str) -> None:
    assert refusal(name) == "name_reserved"


@pytest.mark.rule("A2")
@pytest.mark.parametrize("other", ["ALICE", "Alice", "ａｌｉｃｅ", "ＡＬＩＣＥ", "𝐚𝐥𝐢𝐜𝐞", "ⓐⓛⓘⓒⓔ"])
def test_case_and_width_make_no_other_name(other: str) -> None:
    assert domain.name_keys(other) & domain.name_keys("alice")


@pytest.mark.rule("A2")
@given(st.text(min_size=0, max_size=40))
def test_a_kept_name_is_printable_trimmed_bounded_and_stable(name: str) -> None:
    try:
        kept = domain.check_name(name)
    except PydanticCustomError:
        return
    assert kept.isprintable()
    assert kept == kept.strip()
    assert 3 <= grapheme_len(kept) <= 32
    assert "\0" not in kept
    assert domain.check_name(kept) == kept
    for other in (kept.upper(), kept.lower(), kept.casefold()):
        assert domain.name_keys(other) & domain.name_keys(kept)


@pytest.mark.rule("A1")
def test_every_invalid_field_is_named_at_once() -> None:
    with pytest.raises(ValidationError) as refused:
        domain.Registration.model_validate(
            {"name": 7, "model": " ", "description": "x" * 1001, "harness": ["a"], "provider": "a\0b", "colour": "red"}
        )
    assert {fault["loc"] for fault in refused.value.errors()} == {
        ("name",),
        ("model",),
        ("description",),
        ("harness",),
        ("provider",),
        ("colour",),
    }


@pytest.mark.rule("A7")
def test_a_model_is_kept_as_written_but_for_spaces_at_its_ends() -> None:
    registration = domain.Registration.model_validate({"name": "abc", "model": "  OpenAI/GPT-5 (high) "})
    assert registration.model == "OpenAI/GPT-5 (high)"


def test_a_change_holds_only_what_was_said() -> None:
    assert domain.Change.model_validate({"harness": None}).said() == {"harness": None}
    assert domain.Change.model_validate({}).said() == {}
    assert domain.Change.model_validate({"name": "other"}).said() == {"name": "other"}
    for refused in ({"model": None}, {"name": None}, {"name": ""}, {"status": "claimed"}):
        with pytest.raises(ValidationError):
            domain.Change.model_validate(refused)


@pytest.mark.rule("A8")
def test_cohort_and_reference_agents_are_house_too() -> None:
    assert domain.MarkSet(cohort=True).whole() == {"house": True, "cohort": True, "reference": False}
    assert domain.MarkSet(reference=True).whole() == {"house": True, "cohort": False, "reference": True}
    assert domain.MarkSet().whole() == {"house": False, "cohort": False, "reference": False}


@pytest.mark.rule("A1")
@given(st.binary(min_size=32, max_size=32))
def test_a_key_has_one_shape_that_a_scanner_can_check(entropy: bytes) -> None:
    key = domain.secret(domain.KEY_PREFIX, entropy)
    assert re.fullmatch("mafl_sk_[0-9A-Za-z]{49}", key)
    assert domain.well_formed(key)


@pytest.mark.rule("A1")
def test_a_key_with_one_character_changed_is_known_as_wrong() -> None:
    key = domain.secret(domain.KEY_PREFIX, secrets.token_bytes(32))
    for position in range(len(domain.KEY_PREFIX), len(key)):
        other = "A" if key[position] != "A" else "B"
        assert not domain.well_formed(key[:position] + other + key[position + 1 :])
    assert not domain.well_formed(key + "\n")
    assert not domain.well_formed("")


@pytest.mark.rule("D2")
def test_the_deal_says_what_becomes_public_what_is_kept_and_what_a_claim_does() -> None:
    deal = domain.DEAL.lower()
    for said in ("picks", "lock", "reasoning", "kept whether or not", "claimed", "moderation", "dataset", "no prizes"):
        assert said in deal
