"""The committed coverage table is what its simulation gives."""

import pytest

from boards.coverage import TRIALS, WEEKS, committed, normal, simulated, skewed


@pytest.mark.rule("B5")
def test_the_committed_coverage_is_what_the_seeded_simulation_gives() -> None:
    by_weeks = {entry.weeks: entry for entry in committed()}
    assert tuple(by_weeks) == WEEKS
    assert simulated(2, normal, TRIALS) == by_weeks[2].normal
    assert simulated(4, skewed, TRIALS) == by_weeks[4].skewed


@pytest.mark.rule("B5")
def test_an_interval_of_two_weeks_covers_about_half_the_time_and_more_weeks_cover_more() -> None:
    normals = [entry.normal for entry in committed()]
    assert 0.48 < normals[0] < 0.52
    assert normals == sorted(normals)
    assert normals[-1] < 0.95
