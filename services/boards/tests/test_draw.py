"""The interval draw: the published vectors, a second implementation, and what it refuses."""

from __future__ import annotations

import json
import math
import unicodedata
from importlib.resources import files
from itertools import islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_draw import plain_ends, plain_words

from boards.draw import DrawError, Interval, Series, first_words, interval, intervals

VECTORS = json.loads(files("boards").joinpath("interval_draw.json").read_text("utf-8"))

WEEKS = st.lists(st.tuples(st.integers(-50_000, 3_000_000), st.integers(1, 400)), min_size=0, max_size=19)


def plain_draw(label, sums, counts):
    """Mean, low and high by a full sort, written from the specification; None under two weeks."""
    weeks = len(sums)
    if weeks < 2:
        return None
    stream = plain_words(label)
    means = []
    for _ in range(2000):
        lanes = [lane for word in islice(stream, math.ceil(weeks / 2)) for lane in (word // 2**32, word % 2**32)]
        drawn = [lane * weeks // 2**32 for lane in lanes[:weeks]]
        means.append(sum(sums[i] for i in drawn) / sum(counts[i] for i in drawn))
    return sum(sums) / sum(counts), *plain_ends(means)


@pytest.mark.rule("B4")
@pytest.mark.parametrize("label", VECTORS["first_words"])
def test_the_published_first_words_come_from_the_label_alone(label: str) -> None:
    assert first_words(label) == [int(word) for word in VECTORS["first_words"][label]]


@pytest.mark.rule("B3", "B4")
@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: f"{case['label']}/{len(case['sums'])}")
def test_the_published_vectors_are_reproduced_to_the_last_digit(case: dict[str, Any]) -> None:
    found = interval(case["label"], case["sums"], case["counts"])
    assert (found.mean, found.low, found.high) == (case["mean"], case["low"], case["high"])


@pytest.mark.rule("B4")
@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), WEEKS)
def test_a_second_implementation_draws_the_same_interval(label: str, weeks: Any) -> None:
    sums, counts = [week[0] for week in weeks], [week[1] for week in weeks]
    found = interval(label, sums, counts)
    expected = plain_draw(unicodedata.normalize("NFC", label), sums, counts)
    assert (None if found.mean is None else (found.mean, found.low, found.high)) == expected


@pytest.mark.rule("B4")
def test_many_rows_in_one_pass_give_what_each_gives_alone() -> None:
    random = np.random.default_rng(7)
    rows = [
        Series(
            f"agent:{number}",
            tuple(random.integers(0, 300_000, weeks).tolist()),
            tuple(random.integers(1, 30, weeks).tolist()),
        )
        for number, weeks in enumerate(random.integers(0, 19, 300).tolist())
    ]
    assert intervals(rows) == [interval(row.label, row.sums, row.counts) for row in rows]
    assert intervals([]) == []


@pytest.mark.rule("B4")
def test_a_label_is_normalised_before_it_seeds_the_draw() -> None:
    sums, counts = [9_000, 12_500, 30_100, 41_000, 12_345], [1, 1, 2, 3, 1]
    assert interval("agent:Zoe\u0308", sums, counts) == interval("agent:Zo\u00eb", sums, counts)
    assert interval("agent:Zoe", sums, counts) != interval("agent:Zo\u00eb", sums, counts)


@pytest.mark.rule("B5")
@pytest.mark.parametrize("weeks", [0, 1])
def test_fewer_than_two_weeks_have_no_mean_and_no_interval(weeks: Any) -> None:
    assert interval("agent:a", [1] * weeks, [1] * weeks) == Interval(weeks=weeks, mean=None, low=None, high=None)


@pytest.mark.rule("B3")
def test_two_weeks_give_the_two_weekly_means_as_the_ends() -> None:
    """A resample of two equal-sized weeks has three possible means; each outer one is a quarter of the draws."""
    found = interval("agent:a", [10_000, 14_000], [1, 1])
    assert (found.low, found.mean, found.high) == (10_000.0, 12_000.0, 14_000.0)


@pytest.mark.parametrize(
    ("sums", "counts", "says"),
    [
        ([1, 2], [1], "sums has 2 weeks and counts has 1"),
        ([1, 2], [1, 0], "week 2 has 0 lineups"),
        ([1, 2], [-1, 1], "week 1 has -1 lineups"),
        ([1.5, 2], [1, 1], "sums: week 1 is 1.5"),
        ([1, "2"], [1, 1], "sums: week 2 is '2'"),
        ([1, 2], [1, True], "counts: week 2 is True"),
        ([2**53, 1], [1, 1], "2^53"),
    ],
)
def test_input_that_the_draw_is_not_specified_for_is_refused_with_the_reason(
    sums: list[Any], counts: list[Any], says: str
) -> None:
    with pytest.raises(DrawError) as refused:
        interval("agent:a", sums, counts)
    assert says in str(refused.value)


def test_a_label_that_is_not_text_is_refused() -> None:
    with pytest.raises(DrawError, match="surrogate"):
        interval("agent:\ud800", [1, 2], [1, 1])
