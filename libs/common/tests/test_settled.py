"""The digest of a week: what is written out by hand is what the library makes of the document."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from common import events as ev
from common.canonical import canonical_json
from common.settled import lineup_form

NUMBERS = st.integers(-(10**12), 10**12)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(
    TEXTS,
    st.builds(ev.Marks, house=st.booleans(), cohort=st.booleans(), reference=st.booleans()),
    st.tuples(NUMBERS, NUMBERS, NUMBERS),
    st.lists(st.tuples(TEXTS, TEXTS, NUMBERS, NUMBERS)),
)
def test_the_form_of_a_lineup_is_its_canonical_json(
    model: str, marks: ev.Marks, numbers: tuple[int, int, int], picks: list[tuple[str, str, int, int]]
) -> None:
    points, share, regret = numbers
    document = {
        "model": model,
        "marks": {"cohort": marks.cohort, "house": marks.house, "reference": marks.reference},
        "points": points,
        "share": share,
        "regret": regret,
        "picks": [
            {"slot": slot, "player_id": player_id, "price": price, "points": worth}
            for slot, player_id, price, worth in sorted(picks)
        ],
    }
    assert lineup_form(model, marks, points, share, regret, picks) == canonical_json(document)
