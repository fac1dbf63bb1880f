"""An operator sees a hostile text whole, marked where something was found, with nothing hidden in it."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from moderation.shown import in_line, pieces, sign_of

TEXTS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("\n\t\u200b\u202e\u2066\ufe0f\U000e0041 אب"))
SPANS = st.lists(
    st.tuples(st.integers(-2, 40), st.integers(-2, 40)).map(lambda span: (min(span), max(span))), max_size=6
)


@pytest.mark.rule("M4")
@given(TEXTS, SPANS)
@example("", [(0, 0), (5, 9)])
@example("a\u202eb", [(1, 2), (0, 3), (2, 2)])
def test_nothing_of_a_text_is_lost_and_each_character_bears_the_findings_that_cover_it(
    text: str, spans: list[tuple[int, int]]
) -> None:
    place = 0
    for piece in pieces(text, spans):
        if piece.kind == "point":
            assert all(min(max(spans[number - 1][0], 0), len(text)) == place for number in piece.marks)
            continue
        long = 1 if piece.kind in ("sign", "break") else len(piece.text)
        source = text[place : place + long]
        if piece.kind == "sign":
            assert piece.text == sign_of(source)
            assert piece.title.startswith(f"U+{ord(source):04X}")
        else:
            assert piece.text == source
            assert all(sign_of(one) is None for one in source)
        for number, (start, end) in enumerate(spans, 1):
            assert (number in piece.marks) == (start < end and start <= place and place + long <= min(end, len(text)))
        place += long
    assert place == len(text)


@pytest.mark.rule("M4")
@given(TEXTS, SPANS)
def test_each_finding_has_its_number_written_once(text: str, spans: list[tuple[int, int]]) -> None:
    numbers = [number for piece in pieces(text, spans) for number in piece.ends]
    assert sorted(numbers) == list(range(1, len(spans) + 1))


@pytest.mark.rule("M4")
def test_what_turns_or_hides_becomes_a_sign_and_letters_of_any_script_do_not() -> None:
    for hidden, sign in (
        ("\u202e", "RLO"),
        ("\u200b", "ZWSP"),
        ("\ufe0f", "U+FE0F"),
        ("\U000e0041", "U+E0041"),
        ("\x1b", "U+001B"),
        ("\u3164", "U+3164"),
        ("\u00a0", "NBSP"),
        ("\ue000", "U+E000"),
    ):
        assert sign_of(hidden) == sign
    assert [sign_of(one) for one in "aé中אب👍\u0301 "] == [None] * 8
    assert in_line("a\u202e\n b\x00") == "a[RLO] b[U+0000]"
