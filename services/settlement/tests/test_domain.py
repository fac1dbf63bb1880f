"""What a performance is worth."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.events import Band, Scoring
from settlement import domain


@pytest.mark.rule("S1")
@pytest.mark.parametrize(
    ("line", "points"),
    [
        ({}, 0),
        ({"pass_yds": 299}, 1196),
        ({"pass_yds": 300}, 1500),
        ({"pass_yds": 300, "pass_td": 3, "pass_int": 2}, 2500),
        ({"rush_yds": 99, "rush_td": 1}, 1590),
        ({"rush_yds": 100, "rush_td": 1}, 1900),
        ({"rec": 7, "rec_yds": 100}, 2000),
        ({"rush_yds": -3}, -30),
        ({"pass_int": 3, "fum_lost": 2}, -500),
        ({"pass_2pt": 1, "rush_2pt": 1, "rec_2pt": 1}, 600),
        ({"ret_td": 1, "off_fum_rec_td": 1}, 1200),
        ({"targets": 11, "rush_att": 20}, 0),
        ({"dst_sacks": 4, "dst_int": 1, "dst_fum_rec": 1, "dst_td": 1, "dst_points_allowed": 0}, 2400),
        ({"dst_points_allowed": 35}, -400),
    ],
)
def test_a_statistics_line_is_worth_its_points_to_the_hundredth(
    classic: Scoring, line: dict[str, int], points: int
) -> None:
    assert domain.points(line, classic) == points


@pytest.mark.rule("S1")
@pytest.mark.parametrize(
    ("allowed", "points"),
    [(-2, 1000), (0, 1000), (1, 700), (6, 700), (7, 400), (13, 400), (14, 100), (20, 100), (21, 0), (27, 0), (28, -100),
     (34, -100), (35, -400), (99, -400)],
)  # fmt: skip
def test_points_allowed_fall_into_the_first_band_that_reaches_them(classic: Scoring, allowed: int, points: int) -> None:
    assert domain.points({"dst_points_allowed": allowed}, classic) == points


@pytest.mark.rule("S1")
def test_an_unknown_number_of_points_allowed_is_not_a_shutout(classic: Scoring) -> None:
    assert domain.points({"dst_sacks": 2}, classic) == 200
    assert domain.points({"dst_sacks": 2, "dst_points_allowed": 0}, classic) == 1200


@pytest.mark.rule("S1")
@given(st.dictionaries(st.sampled_from(domain.STATISTICS), st.integers(-50, 600)))
def test_points_are_integers_and_add_up_over_unrelated_statistics(line: dict[str, int]) -> None:
    scoring = Scoring(scoring="plain", per_unit=dict.fromkeys(domain.STATISTICS, 3))
    assert domain.points(line, scoring) == 3 * sum(line.values())


@pytest.mark.rule("S1")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("-3", -3),
        ("0", 0),
        ("", None),
        ("  ", None),
        ("12.0", 12),
        ("+4", 4),
        ("-200", -200),
        ("1000", 1000),
    ],
)
def test_a_cell_is_a_whole_number_or_unknown(text: str, value: int | None) -> None:
    assert domain.statistic(text, "rec_yds") == value


@pytest.mark.rule("S1")
@pytest.mark.parametrize(
    "text", ["0.5", "1e3", "NaN", "inf", "six", "1,000", "٣", "--1", "1001", "-201", "9" * 40, "=1+1"]
)
def test_anything_else_is_refused_with_what_would_be_right(text: str) -> None:
    with pytest.raises(domain.BadStatistic, match="is not a statistic; it must be a whole number"):
        domain.statistic(text, "rec_yds")


@pytest.mark.rule("S1")
@pytest.mark.parametrize(
    ("name", "text"),
    [("pass_td", "-3"), ("pass_att", "-1"), ("pass_td", "31"), ("rec", "201"), ("dst_points_allowed", "-1")],
)
def test_what_no_player_can_have_done_is_refused_by_column(name: str, text: str) -> None:
    with pytest.raises(domain.BadStatistic, match=r"it must be a whole number from 0 to (30|200), or blank"):
        domain.statistic(text, name)


@pytest.mark.rule("S1")
@pytest.mark.parametrize(
    "limits", [[], [3, 1, None], [3], [None, 3], [1, None, 3, None], [3, 3, None]], ids=lambda limits: str(limits)
)
def test_bands_that_leave_gaps_or_overlap_are_refused(limits: list[int | None]) -> None:
    bands = tuple(Band(up_to=limit, points=0) for limit in limits)
    with pytest.raises(domain.BadScoring):
        domain.check_scoring(Scoring(scoring="odd", per_unit={}, bands={"dst_points_allowed": bands}))


@pytest.mark.rule("S1")
def test_the_classic_scoring_is_consistent(classic: Scoring) -> None:
    domain.check_scoring(classic)
    assert domain.statistics_of(classic)[0] == "pass_yds"
    assert domain.statistics_of(classic).count("pass_yds") == 1


@pytest.mark.rule("S2")
@pytest.mark.parametrize(
    ("points", "optimal", "share"),
    [
        (24204, 24204, 1_000_000),
        (0, 24204, 0),
        (12101, 24204, 499_958),
        (1, 3, 333_333),
        (-1, 3, -333_334),
        (-24204, 24204, -1_000_000),
        (0, 0, 1_000_000),
        (-1, 0, 0),
        (-50, -50, 1_000_000),
        (-51, -50, 0),
    ],
)
def test_the_share_is_rounded_towards_minus_infinity(points: int, optimal: int, share: int) -> None:
    assert domain.share(points, optimal) == share


@pytest.mark.rule("S2")
@given(st.integers(-10_000, 50_000), st.integers(-10_000, 50_000))
def test_no_share_exceeds_the_whole_and_regret_is_what_is_missing(one: int, other: int) -> None:
    points, optimal = sorted((one, other))
    assert domain.share(points, optimal) <= domain.SHARE_UNIT
    assert (domain.share(points, optimal) == domain.SHARE_UNIT) == (domain.regret(points, optimal) == 0)
    assert domain.regret(points, optimal) >= 0
