"""The real season of 2017: the best lineups of every week, every row's points against an independent source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from common.events import Scoring, Slot
from common.points import as_points, hundredths
from settlement import domain
from settlement.optimal import best_lineups, count_lineups, optimal

from .real_pools import line_of, pool_of

Rows = Callable[[str], list[dict[str, str]]]


@pytest.mark.rule("S2")
@pytest.mark.parametrize("week", range(1, 18))
def test_the_hundred_best_lineups_of_each_week_of_2017_stand_in_order_after_the_optimum(
    read_data: Rows, classic: Scoring, roster: Sequence[Slot], week: int
) -> None:
    players = pool_of(read_data("pool_2017_dk.csv.gz"), week, classic)
    ranked = best_lineups(players, roster, 50000, 100)
    assert ranked[0] == optimal(players, roster, 50000)
    assert len(set(ranked)) == 100
    assert ranked == sorted(ranked, key=lambda lineup: (-lineup.points, lineup.price, lineup.players))
    assert count_lineups(players, roster, 50000) > 10**15


@pytest.mark.rule("S1")
@pytest.mark.parametrize("season", [2017, 2020])
def test_every_row_has_the_points_that_the_data_recomputed(read_data: Rows, classic: Scoring, season: int) -> None:
    rows = [row for row in read_data(f"pool_{season}_dk.csv.gz") if row["recomputed_dk_points"]]
    assert len(rows) == {2017: 6817, 2020: 8290}[season]
    wrong = [
        (row["week"], row["name"], ours, row["recomputed_dk_points"])
        for row in rows
        if (ours := domain.points(line_of(row), classic)) != hundredths(row["recomputed_dk_points"])
    ]
    assert wrong == []


@pytest.mark.rule("S1")
def test_the_offence_of_2017_agrees_with_an_independent_source_where_the_data_is_checkable(
    read_data: Rows, classic: Scoring, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        row
        for row in read_data("pool_2017_dk.csv.gz")
        if row["position"] != "DST" and row["stat_status"] == "matched" and row["source_dk_points"]
    ]
    gaps = {
        (row["week"], row["name"]): gap
        for row in rows
        if (gap := hundredths(row["source_dk_points"]) - domain.points(line_of(row), classic))
    }
    agree = len(rows) - len(gaps)
    kinds = Counter(
        "exactly 1.00"
        if abs(gap) == 100
        else "exactly 6.00"
        if abs(gap) == 600
        else "other, under 2.00"
        if abs(gap) < 200
        else "other"
        for gap in gaps.values()
    )
    with capsys.disabled():
        print(
            f"\n2017 offence rows against their source: {agree} of {len(rows)} equal, {100 * agree / len(rows):.2f} %"
        )
        print("  exceptions by size of the gap:", ", ".join(f"{kind}: {many}" for kind, many in kinds.most_common()))
        for (week, name), gap in sorted(gaps.items(), key=lambda item: (-abs(item[1]), int(item[0][0]), item[0][1])):
            print(f"  week {week:>2} {name:<24} source minus ours {as_points(gap):>6}")
    assert (agree, len(rows)) == (4969, 5019)
