"""Differences, two-way resampling, how often a row is best, and how much hangs on one agent."""

from __future__ import annotations

import math
from itertools import islice, permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_draw import plain_ends, plain_words

from boards.comparisons import (
    AgentWeek,
    Weeks,
    all_pairs,
    concentration,
    difference,
    pair_series,
    times_best,
    two_way,
)
from boards.draw import EXACT, DrawError, Interval, interval, intervals

CONTESTS = [f"2017-W{number:02}" for number in range(1, 8)]
VALUES = st.dictionaries(
    st.sampled_from(CONTESTS), st.tuples(st.integers(-5_000, 200_000), st.integers(1, 9)), max_size=7
)
PARTS = st.lists(
    st.builds(
        AgentWeek,
        st.sampled_from("abcdef"),
        st.sampled_from(CONTESTS),
        st.integers(-5_000, 200_000),
        st.integers(1, 3),
    ),
    max_size=24,
    unique_by=lambda part: (part.agent, part.contest),
)


def times_drawn(stream: Any, span: int) -> list[int]:
    """How often each of so many things is drawn, from a fresh word on; from the specification."""
    lanes = [lane for word in islice(stream, math.ceil(span / 2)) for lane in (word // 2**32, word % 2**32)]
    drawn = [lane * span // 2**32 for lane in lanes[:span]]
    return [drawn.count(thing) for thing in range(span)]


def plain_two_way(label: str, parts: list[AgentWeek]) -> tuple[float, float] | None:
    """The ends by a full sort, written from the specification; None under two weeks or two agents."""
    contests = sorted({part.contest for part in parts})
    agents = sorted(
        sorted((part.contest, part.sum, part.count) for part in parts if part.agent == agent)
        for agent in {part.agent for part in parts}
    )
    if len(contests) < 2 or len(agents) < 2:
        return None
    stream, means = plain_words("twoway:" + label), []
    while len(means) < 2000:
        of_week = dict(zip(contests, times_drawn(stream, len(contests)), strict=True))
        of_agent = times_drawn(stream, len(agents))
        total = lineups = 0
        for times, weeks in zip(of_agent, agents, strict=True):
            for contest, value, count in weeks:
                total += times * of_week[contest] * value
                lineups += times * of_week[contest] * count
        if lineups:
            means.append(total / lineups)
    return plain_ends(means)


def plain_times_best(label: str, rows: list[Weeks]) -> dict[str, int]:
    """From the specification: all rows over the same drawn weeks."""
    rows = sorted((row for row in rows if len(row.values) > 1), key=lambda row: row.label)
    contests = sorted({contest for row in rows for contest in row.values})
    stream, won = plain_words("best:" + label), {row.label: 0 for row in rows}
    for _ in range(2000 if rows else 0):
        drawn = dict(zip(contests, times_drawn(stream, len(contests)), strict=True))
        means = {}
        for row in rows:
            count = sum(drawn[contest] * n for contest, (_, n) in row.values.items())
            if count:
                means[row.label] = sum(drawn[contest] * value for contest, (value, _) in row.values.items()) / count
        if means:
            won[max(means, key=lambda name: means[name])] += 1
    return won


@pytest.mark.rule("B6")
def test_a_difference_takes_shared_luck_out_of_the_weeks() -> None:
    """Weeks that swing by fifty points, the one always exactly two points ahead: the difference is known exactly."""
    swings = [9_000, 14_000, 11_000, 16_000]
    other = Weeks("model:b", {week: (value, 1) for week, value in zip(CONTESTS, swings, strict=False)})
    one = Weeks("model:a", {week: (2 * (value + 200), 2) for week, value in zip(CONTESTS, swings, strict=False)})
    series = pair_series(one, other)
    (found,) = intervals([series])
    assert (found.mean, found.low, found.high) == (200.0, 200.0, 200.0)
    ahead = difference(one, other, found)
    assert ahead.apart
    behind = difference(other, one, found)
    assert (behind.interval.mean, behind.interval.low, behind.interval.high) == (-200.0, -200.0, -200.0)
    assert ahead.label == behind.label == "pair:model:a|model:b"
    assert interval(series.label, series.sums, series.counts) == found


@pytest.mark.rule("B6")
@given(VALUES, VALUES)
def test_a_pair_has_every_lineup_of_the_one_beside_every_lineup_of_the_other(one: Any, other: Any) -> None:
    series = pair_series(Weeks("model:y", one), Weeks("model:x", other))
    assert series.label == "pair:model:x|model:y"
    both = sorted(one.keys() & other.keys())
    assert series.counts == tuple(one[week][1] * other[week][1] for week in both)
    means = [other[week][0] / other[week][1] - one[week][0] / one[week][1] for week in both]
    assert [value / count for value, count in zip(series.sums, series.counts, strict=True)] == pytest.approx(
        means, abs=1e-6
    )


@pytest.mark.rule("B6")
def test_rows_that_never_met_have_no_difference() -> None:
    one, other = Weeks("cohort:a", {CONTESTS[0]: (1, 1)}), Weeks("cohort:b", {CONTESTS[1]: (1, 1)})
    (found,) = intervals([pair_series(one, other)])
    assert difference(one, other, found).interval == Interval(weeks=0, mean=None, low=None, high=None)
    assert not difference(one, other, found).apart
    third = Weeks("cohort:c", {})
    assert all_pairs([one, other, third]) == [(one, other), (one, third), (other, third)]


@pytest.mark.rule("B6")
def test_more_pairs_than_can_be_added_exactly_are_refused() -> None:
    many = dict.fromkeys(CONTESTS, (10**13, 10**8))
    with pytest.raises(DrawError, match="2\\^53"):
        pair_series(Weeks("model:a", many), Weeks("model:b", many))


@pytest.mark.rule("B4", "B6")
@settings(max_examples=30)
@given(PARTS)
def test_a_second_implementation_draws_the_same_two_way_interval(parts: list[AgentWeek]) -> None:
    found = two_way("model:näme", parts)
    expected = plain_two_way("model:näme", parts)
    assert (None if found.low is None else (found.low, found.high)) == expected
    if expected is not None:
        assert found.mean == sum(part.sum for part in parts) / sum(part.count for part in parts)


@pytest.mark.rule("B6", "B7")
@settings(max_examples=30)
@given(PARTS, st.randoms(use_true_random=False))
def test_neither_ids_nor_order_have_a_part_in_two_way_resampling(parts: list[AgentWeek], chance: Any) -> None:
    renamed = dict(zip("abcdef", chance.sample("uvwxyz", 6), strict=True))
    others = [AgentWeek(renamed[part.agent], part.contest, part.sum, part.count) for part in parts]
    chance.shuffle(others)
    assert two_way("model:x", others) == two_way("model:x", parts)


@pytest.mark.rule("B6")
def test_one_lucky_agent_shows_in_two_way_resampling_and_in_nothing_else() -> None:
    """Nine agents alike and one far ahead: week by week the row hardly moves, agent by agent it does."""
    parts = [
        AgentWeek(str(agent), week, 30_000 if agent == 0 else 10_000, 1) for agent in range(10) for week in CONTESTS
    ]
    by_weeks = interval("model:x", [120_000] * 7, [10] * 7)
    both = two_way("model:x", parts)
    assert by_weeks.low == by_weeks.high == 12_000.0
    assert both.low is not None
    assert both.high is not None
    assert both.low < 11_000 < 14_000 < both.high


@pytest.mark.rule("B6")
def test_two_way_needs_two_weeks_and_two_agents_and_whole_numbers() -> None:
    alone = [AgentWeek("a", week, 100, 1) for week in CONTESTS]
    assert two_way("agent:a", alone).mean is None
    assert two_way("agent:a", []) == Interval(weeks=0, mean=None, low=None, high=None)
    with pytest.raises(DrawError, match="at least 1"):
        two_way("agent:a", [AgentWeek("a", CONTESTS[0], 100, 0)])
    with pytest.raises(DrawError, match="2\\^53"):
        two_way("agent:a", [AgentWeek(agent, week, EXACT, 1) for agent in "ab" for week in CONTESTS[:2]])


@pytest.mark.rule("B4", "B6")
@settings(max_examples=30)
@given(st.lists(VALUES, max_size=5))
def test_a_second_implementation_counts_the_same_bests(values: Any) -> None:
    rows = [Weeks(f"model:{number}", weeks) for number, weeks in enumerate(values)]
    assert times_best("models", rows) == plain_times_best("models", rows)


@pytest.mark.rule("B6")
def test_of_equal_rows_the_first_label_is_best_and_every_resample_is_counted_once() -> None:
    weeks = {week: (number * 100, 1) for number, week in enumerate(CONTESTS)}
    rows = [Weeks("model:b", weeks), Weeks("model:a", weeks), Weeks("model:c", {CONTESTS[0]: (10**6, 1)})]
    for order in permutations(rows):
        assert times_best("models", order) == {"model:a": 2000, "model:b": 0}
    assert times_best("models", []) == {}


@pytest.mark.rule("B6")
def test_the_agent_of_most_lineups_is_left_out_and_the_owners_are_counted() -> None:
    totals = {"many": (280_000, 14), "one": (14_000, 1), "two": (16_000, 1), "nobody's": (15_000, 1)}
    found = concentration(totals, {"many": "ann", "one": "ann", "two": "bob"})
    assert (found.agents, found.owners, found.unclaimed) == (4, 2, 1)
    assert (found.lineups, found.largest) == (17, 14)
    assert found.without == 15_000
    assert found.shift == pytest.approx(15_000 - 325_000 / 17)


@pytest.mark.rule("B6")
def test_of_agents_with_as_many_lineups_the_one_that_moves_the_mean_most_is_left_out() -> None:
    found = concentration({"a": (10, 1), "b": (11, 1), "c": (90, 1)}, {})
    assert found.without == 10.5
    alone = concentration({"a": (10, 1)}, {})
    assert (alone.agents, alone.without, alone.shift) == (1, None, None)
