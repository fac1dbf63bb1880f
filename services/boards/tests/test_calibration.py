"""Grades of confidences and projections: what each number is, and that order has no part in it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boards.calibration import (
    MILLION,
    bin_of,
    calibration,
    lineup_came_true,
    pick_came_true,
    projections,
    tally,
)

GRADED = st.lists(st.tuples(st.integers(0, MILLION), st.booleans()), max_size=60)


@pytest.mark.rule("C4", "B6")
@pytest.mark.parametrize(
    ("points", "price", "so"),
    [
        (1500, 5000, True),
        (1499, 5000, False),
        (1530, 5100, True),
        (1529, 5100, False),
        (0, 3000, False),
        (-100, 1, False),
    ],
)
def test_a_pick_comes_true_with_three_points_for_each_thousand_of_price(points: int, price: int, so: bool) -> None:
    assert pick_came_true(points, price) is so


@pytest.mark.rule("C4", "B6")
def test_a_lineup_comes_true_with_at_least_its_projected_score() -> None:
    assert lineup_came_true(14_250, 14_250)
    assert not lineup_came_true(14_249, 14_250)


@pytest.mark.rule("B6")
@pytest.mark.parametrize(
    ("confidence", "place"), [(0, 0), (99_999, 0), (100_000, 1), (620_000, 6), (999_999, 9), (MILLION, 9)]
)
def test_the_bins_are_ten_and_the_last_one_holds_certainty(confidence: int, place: int) -> None:
    assert bin_of(confidence) == place


@pytest.mark.rule("B6")
@given(GRADED)
def test_the_score_is_the_mean_square_between_what_was_said_and_what_happened(graded: Any) -> None:
    found = calibration(tally(graded))
    assert found.decisions == len(graded)
    if not graded:
        assert (found.brier, found.base_rate, found.constant, found.bins) == (None, None, None, ())
        return
    exact = sum((Fraction(said, MILLION) - came) ** 2 for said, came in graded) / len(graded)
    rate = Fraction(sum(came for _, came in graded), len(graded))
    assert (found.brier, found.base_rate) == (float(exact), float(rate))
    assert found.constant == float(rate * (1 - rate))
    assert sum(one.decisions for one in found.bins) == len(graded)
    for one in found.bins:
        inside = [(said, came) for said, came in graded if bin_of(said) == round(one.low * 10)]
        assert one.stated == float(Fraction(sum(said for said, _ in inside), MILLION * len(inside)))
        assert one.came_true == sum(came for _, came in inside) / len(inside)


@pytest.mark.rule("B6", "B7")
@given(GRADED, st.integers(0, 60), st.randoms(use_true_random=False))
def test_neither_the_order_nor_the_weeks_have_a_part_in_the_grades(graded: Any, cut: int, chance: Any) -> None:
    whole = calibration(tally(graded))
    chance.shuffle(graded)
    assert calibration([*tally(graded[:cut]), *tally(graded[cut:])]) == whole


@pytest.mark.rule("B6")
def test_known_grades() -> None:
    """Always sure and always right earns nothing; always one half earns a quarter; sure and wrong earns one."""
    assert calibration(tally([(MILLION, True), (0, False)])).brier == 0
    assert calibration(tally([(500_000, True), (500_000, False)])).brier == 0.25
    assert calibration(tally([(MILLION, False)])).brier == 1
    assert calibration(tally([(700_000, True), (700_000, True), (700_000, False)])).constant == pytest.approx(2 / 9)


@pytest.mark.rule("B6")
def test_projections_are_off_to_one_side_or_off_at_all() -> None:
    found = projections(2, errors=-300 + 500, absolute=300 + 500)
    assert (found.lineups, found.bias, found.absolute) == (2, 100, 400)
    assert projections(0, 0, 0).bias is None
