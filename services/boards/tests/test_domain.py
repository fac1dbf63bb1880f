"""The rules of the boards, without a server."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boards.domain import (
    AgentCard,
    Kind,
    Metric,
    Row,
    RowWeek,
    Withheld,
    in_order,
    is_handle,
    label_of,
    ranked,
    table,
    withheld,
)
from boards.draw import Interval, intervals
from boards.tools import interval_document
from common.handles import handle

AGENT = UUID("018f2a3b-0000-7000-8000-000000000001")


def week(name, contest, points, lineups=1, *, kind=Kind.MODEL, **marks):
    return RowWeek(kind, name, contest, points, points * 50, lineups, **marks)


def row(name, low, mean, high, weeks=6):
    found = Interval(weeks=weeks, mean=mean, low=low, high=high)
    contests = tuple(f"2017-W{number:02}" for number in range(1, weeks + 1))
    return Row(Kind.AGENT, f"agent:{name}", name, contests, (0,) * weeks, (1,) * weeks, found, ())


def marks(table_):
    return {entry.name: entry.marks for entry in table_.rows}


@pytest.mark.rule("B5")
def test_a_row_of_one_week_carries_both_marks_and_stands_below_all_others() -> None:
    made = table(
        [week("a", "2017-W01", 99_999_999), *(week("b", f"2017-W0{number}", 100) for number in range(1, 5))],
        Metric.POINTS,
        intervals,
    )
    assert [entry.name for entry in made.rows] == ["b", "a"]
    assert marks(made) == {"b": (), "a": ("no interval yet", "small sample")}
    assert made.rows[1].interval == Interval(weeks=1, mean=None, low=None, high=None)


@pytest.mark.rule("B5")
@pytest.mark.parametrize(("weeks", "expected"), [(2, ("small sample",)), (3, ("small sample",)), (4, ()), (5, ())])
def test_fewer_than_four_settled_weeks_are_marked_small_sample(weeks: Any, expected: Any) -> None:
    made = table([week("a", f"2017-W0{n}", 100 * n) for n in range(1, weeks + 1)], Metric.POINTS, intervals)
    assert made.rows[0].marks == expected


@pytest.mark.rule("B5")
def test_overlap_is_inclusive_on_unrounded_ends_and_never_marked_on_the_leader() -> None:
    made = ranked(
        [
            row("leader", 100.0, 120.0, 140.0),
            row("touches", 60.0, 80.0, 100.0),
            row("just below", 60.0, 80.0, 99.99999999),
            row("none", None, None, None, weeks=1),
        ]
    )
    assert marks(made) == {"leader": (), "just below": (), "touches": ("overlap #1",), "none": ()}
    assert made.leader.name == "leader"


@pytest.mark.rule("B8")
def test_a_board_that_finds_no_winner_says_so() -> None:
    assert table([], Metric.POINTS, intervals).verdict.text == "No winner: nothing is settled yet."
    alone = ranked([row("a", 1.0, 2.0, 3.0)]).verdict
    assert (alone.leader, alone.winner) == ("agent:a", None)
    assert "the only row" in alone.text
    level = ranked([row("a", 1.0, 3.0, 5.0), row("b", 0.0, 2.0, 4.0)]).verdict
    assert (level.winner, level.overlapping, level.compared) == (None, 1, 1)
    assert level.text.startswith("No winner: a has the highest mean")
    clear = ranked([row("a", 5.0, 6.0, 7.0), row("b", 0.0, 2.0, 4.0)]).verdict
    assert (clear.winner, clear.overlapping) == ("agent:a", 0)
    few = ranked([row("a", 5.0, 6.0, 7.0, weeks=2), row("b", 0.0, 2.0, 4.0)]).verdict
    assert few.winner is None
    assert "small sample" in few.text


@pytest.mark.rule("B8")
def test_a_row_is_marked_reference_only_where_all_of_its_lineups_are() -> None:
    made = table(
        [
            week("ref", "2017-W01", 1, house=True, reference=True),
            week("mixed", "2017-W01", 1, house=True, reference=True),
            week("mixed", "2017-W02", 1),
            week("c", "2017-W01", 1, house=True, cohort=True),
        ],
        Metric.POINTS,
        intervals,
    )
    assert marks(made)["ref"][:2] == ("HOUSE", "reference")
    assert marks(made)["c"][:2] == ("HOUSE", "cohort")
    assert marks(made)["mixed"] == ("small sample",)


@pytest.mark.rule("B9")
def test_a_row_carries_what_a_reader_needs_to_draw_its_interval_again() -> None:
    made = table(
        [week("m", "2017-W10", 300, 2), week("m", "2017-W02", 100), week("m", "2017-W03", 250, 3)],
        Metric.SHARE,
        intervals,
    ).rows[0]
    assert made.label == "model:m"
    assert made.contests == ("2017-W02", "2017-W03", "2017-W10")
    assert (made.sums, made.counts) == ((5_000, 12_500, 15_000), (1, 3, 2))
    again = interval_document(made.label, made.sums, made.counts)
    assert (again["low"], again["mean"], again["high"]) == (
        made.interval.low,
        made.interval.mean,
        made.interval.high,
    )
    assert again["marks"] == ["small sample"]


@pytest.mark.rule("B4")
def test_names_that_are_one_in_nfc_are_one_row() -> None:
    made = table([week("Zoe\u0308", "2017-W01", 100), week("Zo\u00eb", "2017-W01", 300)], Metric.POINTS, intervals)
    assert [(entry.label, entry.sums, entry.counts) for entry in made.rows] == [("model:Zo\u00eb", (400,), (2,))]


ROW_WEEKS = st.lists(
    st.builds(
        week,
        st.sampled_from(["a", "b", "c", "openai/gpt-5"]),
        st.integers(1, 12).map(lambda number: f"2017-W{number:02}"),
        st.integers(-500, 30_000),
        st.integers(1, 9),
    ),
    max_size=30,
)


@pytest.mark.rule("B4", "B7")
@settings(max_examples=60, deadline=None)
@given(ROW_WEEKS, st.randoms(use_true_random=False))
def test_the_order_of_weeks_and_rows_does_not_matter(weeks: Any, random: Any) -> None:
    shuffled = list(weeks)
    random.shuffle(shuffled)
    assert table(weeks, Metric.POINTS, intervals) == table(shuffled, Metric.POINTS, intervals)


MEANS = st.one_of(st.none(), st.floats(-1e6, 1e6))


@pytest.mark.rule("B5")
@given(st.lists(MEANS, max_size=12), st.randoms(use_true_random=False))
def test_rows_without_a_mean_stand_below_all_others_whatever_the_order(means: Any, random: Any) -> None:
    rows = [row(f"r{number:02}", mean, mean, mean) for number, mean in enumerate(means)]
    random.shuffle(rows)
    ordered = [entry.interval.mean for entry in in_order(rows)]
    with_mean = [mean for mean in ordered if mean is not None]
    assert ordered == sorted(with_mean, reverse=True) + [None] * (len(ordered) - len(with_mean))


@pytest.mark.rule("B5")
@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100), st.floats(0, 100)), min_size=1, max_size=9))
def test_exactly_the_rows_that_overlap_the_leader_are_marked(ends: Any) -> None:
    rows = [row(f"r{number}", *sorted(triple)) for number, triple in enumerate(ends)]
    made = ranked(rows)
    low, high = made.rows[0].interval.low, made.rows[0].interval.high
    for entry in made.rows[1:]:
        apart = entry.interval.high < low or high < entry.interval.low
        assert ("overlap #1" in entry.marks) != apart
    assert made.verdict.overlapping == sum("overlap #1" in entry.marks for entry in made.rows)
    assert (made.verdict.winner is None) == (made.verdict.overlapping > 0 or len(rows) == 1)


@pytest.mark.rule("A10")
def test_a_name_is_shown_only_for_a_claimed_agent_whose_name_was_cleared() -> None:
    def shown(**state):
        return AgentCard(AGENT, name="alice", **state).shown

    assert shown(claimed=True, name_cleared=True) == "alice"
    neutral = handle(AGENT)
    assert shown(claimed=False, name_cleared=True) == neutral
    assert shown(claimed=True, name_cleared=False) == handle(AGENT, claimed=True), "nothing that is not so"
    assert AgentCard(AGENT, claimed=True, name_cleared=True).shown == handle(AGENT, claimed=True)


@pytest.mark.rule("A10")
def test_a_handle_is_neutral_stable_and_its_own() -> None:
    assert handle(AGENT) == handle(UUID(str(AGENT))) == "unclaimed-cm67s6vhnpxd"
    assert handle(AGENT, claimed=True) == "agent-cm67s6vhnpxd"
    assert is_handle(handle(AGENT))
    assert is_handle(handle(AGENT, claimed=True))
    assert not is_handle("unclaimed-agent-cm67s6vhnpxd")
    assert not is_handle("cm67s6vhnpxd")
    assert not is_handle("agent-smith")
    assert not is_handle("unclaimed-")
    assert not is_handle("unclaimed-ABCDEFGHIJKL")
    assert not is_handle("alice")
    handles = {handle(uuid4()) for _ in range(2_000)}
    assert len(handles) == 2_000
    assert all(is_handle(found) for found in handles)


@pytest.mark.rule("M2")
def test_of_several_reasons_for_withheld_words_the_first_is_given() -> None:
    claimed, unclaimed = AgentCard(AGENT, claimed=True), AgentCard(AGENT)
    assert withheld(unclaimed, "flagged", arrived=False) == "unclaimed"
    assert withheld(unclaimed, "cleared", arrived=True) is Withheld.UNCLAIMED
    assert withheld(claimed, "flagged", arrived=False) == "flagged"
    assert withheld(claimed, "unchecked", arrived=False) == "not checked yet"
    assert withheld(claimed, None, arrived=True) == "not checked yet"
    assert withheld(claimed, "cleared", arrived=False) == "not checked yet"
    assert withheld(claimed, "cleared", arrived=True) is None


def test_labels_are_their_kind_and_name() -> None:
    assert label_of(Kind.MODEL, "openai/gpt-5") == "model:openai/gpt-5"
    assert label_of(Kind.COHORT, "x") == "cohort:x"
    assert label_of(Kind.AGENT, "alice") == "agent:alice"


def test_the_interval_document_gives_null_where_there_is_none() -> None:
    assert interval_document("model:m", [100], [1]) == {
        "mean": None,
        "low": None,
        "high": None,
        "weeks": 1,
        "marks": ["no interval yet", "small sample"],
    }
