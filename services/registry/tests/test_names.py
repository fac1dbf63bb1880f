"""Names that would be taken for each other (A2), on the whole of Unicode's table of look-alikes."""

import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from pydantic_core import PydanticCustomError

from common import lookalikes
from common.lookalikes import skeleton
from registry import domain

TABLE = {chr(source): prototype for source, prototype in lookalikes.table().items()}
ALIKE: dict[str, list[str]] = {}
for _source in TABLE:
    ALIKE.setdefault(skeleton(_source), []).append(_source)


def taken_for(one: str, other: str) -> bool:
    return bool(domain.name_keys(one) & domain.name_keys(other))


def accepted(name: str) -> bool:
    try:
        domain.check_name(name)
    except PydanticCustomError:
        return False
    return True


@pytest.mark.rule("A2")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        # The examples of UTS 39 and of its confusables.txt.
        ("paypal", "рауpаl"),
        ("toys-я-us", "toуs-я-us"),
        ("scope", "ѕсоре"),
        ("Harvest", "Ηarvest"),
        ("desparejado", "ԁеѕрагејаԁо"),
        ("ljeto", "ǉeto"),
        ("inteppedia", "ｉｎｔｅｐｐｅｄｉａ"),
        ("so̷s", "søs"),
        ("rn", "m"),
        ("corner", "comer"),
        ("O0O", "OOO"),
        ("l1I|", "llll"),
        ("Ian", "lan"),
        ("IAN", "1an"),
        ("MODERN", "modem"),
        ("e\u0301clair", "éclair"),
        ("ﬁeld", "field"),
        ("STRASSE", "straße"),
        ("Σίσυφος", "ΣΊΣΥΦΟΣ"),
        ("Ｗｉｄｅ", "wide"),
        ("𝐁𝐨𝐥𝐝", "bold"),
        ("ΒΟΒ", "bob"),
        ("вов", "BOB"),
        # A dot above a letter that has one, or is drawn with one.
        ("Ali\u0307ce", "Alice"),
        ("Al\u0131\u0307ce", "Alice"),
        ("Al\u0456\u0307ce", "Alice"),
        ("ALI\u0307CE", "alice"),
        ("Bj\u0307orn", "Bjorn"),
        ("BJ\u0307ORN", "bjorn"),
        ("B\u0237\u0307orn", "Bjorn"),
        ("B\u0458\u0307orn", "Bjorn"),
        ("İstanbul", "istanbul"),
        ("İstanbul", "ISTANBUL"),
        ("Al\u0307ice", "Alice"),
        ("Ali\u0307\u0307ce", "Alice"),
        ("Ali\u0323\u0307ce", "Al\u1ecbce"),
        ("Ali\u0307\u0301ce", "Alíce"),
        ("Al𝐢\u0307ce", "Alice"),
        # Another case of one letter and a look-alike of another's raised form.
        ("Ƙɓʳ", "ƙɓᣴ"),
        ("000\u037a000Ƴ", "000i000y\u0314"),
        # The table takes this dot, above to the right, for the one above.
        ("Ali\u0358ce", "Alice"),
    ],
)
def test_names_that_look_alike_in_any_case_are_one(one: str, other: str) -> None:
    assert taken_for(one, other)


@pytest.mark.rule("A2")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(("bob", "rob"), ("agent 1", "agent 2"), ("cafe", "café"), ("nova", "vona"), ("uno", "yno"), ("cat", "oat")),
        # A dot that shows makes another letter.
        *(("żaba", "zaba"), ("ėjo", "ejo"), ("ċar", "car"), ("a\u0307nna", "anna"), ("Alí\u0307ce", "Alíce")),
    ],
)
def test_names_that_differ_to_the_eye_are_two(one: str, other: str) -> None:
    assert not taken_for(one, other)


@pytest.mark.rule("A2")
def test_every_row_of_unicodes_table_makes_one_name_of_two() -> None:
    """In lower case and in upper case too, since a name is the same in either."""
    assert len(TABLE) > 5_000
    for source, prototype in TABLE.items():
        assert taken_for(f"a{source}b", f"a{prototype}b"), (source, prototype)
        for other in (source.upper(), source.lower(), source.casefold(), unicodedata.normalize("NFKC", source)):
            assert taken_for(f"a{source}b", f"a{other}b"), (source, other)


ASCII = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
LETTERS = ASCII + "".join(
    letter for letter in TABLE if unicodedata.category(letter)[0] in "LN" and accepted(f"a{letter}b")
)
DRAWN_WITH_A_DOT = frozenset("iIjlıȷіјɨʝįịḭɉ𝐢𝐣ⅈⅉ")
NAMES = st.text(st.sampled_from(ASCII) | st.sampled_from(LETTERS), min_size=3, max_size=10).filter(accepted)


@pytest.mark.rule("A2")
@given(
    NAMES, st.sampled_from((str, str.casefold, str.upper)), st.lists(st.integers(0, 2**16), min_size=40, max_size=40)
)
def test_no_two_confusable_names_are_ever_both_accepted(
    name: str, in_case: Callable[[str], str], choices: list[int]
) -> None:
    written = in_case(unicodedata.normalize("NFC", name))
    # Letter by letter another one, or several, that look the same.
    other = ""
    for letter, choice in zip(written, choices, strict=False):
        twins = [letter, skeleton(letter), *ALIKE.get(skeleton(letter), ())]
        other += twins[choice % len(twins)]
        if letter in DRAWN_WITH_A_DOT and choice % 3:
            other += "\u0307"
    assert taken_for(name, other)


@pytest.mark.rule("A2")
@given(NAMES, st.lists(st.sampled_from((str.upper, str.lower, str.title)), max_size=4))
@example("straße", [str.upper, str.lower])
def test_case_never_makes_another_name(name: str, ways: list[Callable[[str], str]]) -> None:
    other = name
    for way in ways:
        other = way(other)
    # A change of case that folding does not undo made another text for Unicode too.
    assume(unicodedata.normalize("NFKC", other.casefold()) == unicodedata.normalize("NFKC", name.casefold()))
    assert taken_for(name, other)


@pytest.mark.rule("A2")
@pytest.mark.parametrize("name", ["hοuse", "0perator", "rnafl", "MAFL", "аdmin", "UncIaimed-x", "υnclaimed"])
def test_reserved_names_are_reserved_in_their_look_alikes_too(name: str) -> None:
    with pytest.raises(PydanticCustomError) as refused:
        domain.check_name(name)
    assert refused.value.type == "name_reserved"


@pytest.mark.rule("A2", "A10")
def test_nobody_is_named_like_the_handle_of_a_claimed_agent_and_other_agents_are_free() -> None:
    for name in ("agent-cm67s6vhnpxd", "Agent-CM67S6VHNPXD", "agent cm67s6vhnpxd", "(agent-cm67s6vhnpxd)"):
        with pytest.raises(PydanticCustomError) as refused:
            domain.check_name(name)
        assert refused.value.type == "name_reserved"
    for free in ("Agent Smith", "agent-47", "agentic", "Double agent-cm67s6vhnpxd"):
        assert domain.check_name(free) == free


@pytest.mark.rule("A2", "A10")
@pytest.mark.parametrize("before", ["", "_", "- ", "·", "(", "∣", "~!", "🏈", "\u0301", "▁"])
@pytest.mark.parametrize(
    "name", ["unclaimed-abc", "Unclaimed", "unclai\u0307med 7", "mafl", "MAFL Official", "maflbot", "rnafI-1"]
)
def test_nothing_before_it_lets_a_name_begin_like_the_leagues_own(before: str, name: str) -> None:
    with pytest.raises(PydanticCustomError) as refused:
        domain.check_name(before + name)
    assert refused.value.type == "name_reserved"


@pytest.mark.rule("A2")
@pytest.mark.parametrize("name", ["Reclaimed", "The unclaimed", "un-claimed", "_under", "~house~boat", "Team MAFL fan"])
def test_a_name_that_only_holds_a_reserved_word_is_free(name: str) -> None:
    assert accepted(name)


@pytest.mark.rule("A2")
@pytest.mark.parametrize(
    ("name", "fits"),
    [
        ("👍🏽ab", True),
        ("ab", False),
        ("🏈🏈a", True),
        ("e\u0301e\u0301", False),
        ("e\u0301" * 32, True),
        ("e\u0301" * 33, False),
        ("각각각", True),
        ("नमस्ते", True),
    ],
)
def test_length_is_counted_as_people_see_it(name: str, fits: bool) -> None:
    assert accepted(name) is fits
