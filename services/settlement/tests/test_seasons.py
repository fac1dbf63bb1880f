"""The real season of 2017: the best lineups of every week, every row's points against an independent source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

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


def why(gap: int, line: dict[str, int]) -> str:
    """The cause of a difference, as far as its size and the line tell; ``gap`` is the source less ours."""
    lost, yards = line.get("fum_lost", 0), abs(gap) < 100
    if yards:
        return "yards that one of the two counts otherwise"
    if gap == -100 and not lost:
        return "a fumble lost that no column has: on a kick or a punt"
    if gap == -190:
        return "such a fumble, and nine yards"
    if gap == 100:
        return "a fumble that the source does not count as lost" if lost else "a catch of none or ten yards more"
    if gap == 600:
        return "a fumble of his own team, recovered and carried in: no column of 2017 has it"
    if gap == -600 and line.get("ret_td"):
        return "a touchdown on special teams that the source does not count"
    return "not known"


def exceptions(rows: list[dict[str, str]], scoring: Scoring) -> list[tuple[dict[str, str], int, str]]:
    """Offence rows that the data calls checkable and that differ: the row, the source less ours, the cause."""
    found = []
    for row in rows:
        line = line_of(row)
        gap = hundredths(row["source_dk_points"]) - domain.points(line, scoring)
        if gap:
            found.append((row, gap, why(gap, line)))
    return sorted(found, key=lambda one: (one[2], int(one[0]["week"]), one[0]["name"]))


@pytest.mark.rule("S1")
def test_the_offence_of_2017_agrees_with_an_independent_source_where_the_data_is_checkable(
    read_data: Rows, classic: Scoring, data_path: Callable[[str], Path]
) -> None:
    """docs/settlement.md has the rate and every exception with its cause; this is what it must say."""
    rows = [
        row
        for row in read_data("pool_2017_dk.csv.gz")
        if row["position"] != "DST" and row["stat_status"] == "matched" and row["source_dk_points"]
    ]
    found = exceptions(rows, classic)
    agree = len(rows) - len(found)
    assert (agree, len(rows)) == (4969, 5019)
    causes = Counter(cause for _, _, cause in found)
    assert "not known" not in causes
    told = [f"**{agree:,} of {len(rows):,} rows are equal to the hundredth, {100 * agree / len(rows):.2f} %.**", ""]
    told += ["| cause | rows |", "|---|---|"]
    told += [f"| {cause} | {many} |" for cause, many in causes.most_common()]
    told += ["", "| week | player | ours | source | cause |", "|---|---|---|---|---|"]
    for row, gap, cause in found:
        theirs = hundredths(row["source_dk_points"])
        told.append(f"| {row['week']} | {row['name']} | {as_points(theirs - gap)} | {as_points(theirs)} | {cause} |")
    page = (data_path("README.md").parents[1] / "docs" / "settlement.md").read_text(encoding="utf-8")
    expected = "\n".join(told)
    assert expected in page, f"docs/settlement.md must have:\n{expected}"
