"""Statistics files: read whole or not at all, every fault named."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from settlement.imports import Week, read_statistics
from settlement.tables import BadTable

HEADER = "season,week,player_id,name,rush_yds,rec\n"


def read(text: str, season: int | None = None, week: int | None = None) -> dict[Week, dict[str, dict[str, int]]]:
    return read_statistics(text.encode(), season=season, week=week).lines


@pytest.mark.rule("S1")
def test_a_whole_season_is_read_and_a_kicker_who_ran_has_one_line(data_path: Callable[[str], Path]) -> None:
    found = read_statistics(data_path("weekly_stats_2017.csv.gz").read_bytes())
    assert found.rows == 6122
    assert [week.week for week in sorted(found.lines)] == list(range(1, 18))
    assert sum(len(lines) for lines in found.lines.values()) + found.blank == 6121
    lutz = found.lines[Week(2017, 17)]["00-0032569"]
    assert (lutz["rush_yds"], lutz["pat_made"]) == (4, 3)
    assert found.ignored_columns == ("kind", "name", "position", "team", "opponent", "game_id", "nflverse_ppr_points")


@pytest.mark.rule("S1")
def test_one_week_of_a_file_can_be_read_alone(data_path: Callable[[str], Path]) -> None:
    found = read_statistics(data_path("weekly_stats_2020.csv.gz").read_bytes(), season=2020, week=5)
    assert list(found.lines) == [Week(2020, 5)]


@pytest.mark.rule("S1")
def test_the_statistics_of_a_pool_file_go_by_the_ids_of_the_pool(data_path: Callable[[str], Path]) -> None:
    season = read_statistics(data_path("weekly_stats_2017.csv.gz").read_bytes(), week=4)
    pool = read_statistics(data_path("pool_2017_dk.csv.gz").read_bytes(), week=4)
    lines, weekly = pool.lines[Week(2017, 4)], season.lines[Week(2017, 4)]
    assert len(lines) > 300
    assert all(weekly[player_id] == line for player_id, line in lines.items())
    assert pool.rows == len(lines) + pool.blank


@pytest.mark.rule("S1")
def test_a_blank_cell_is_unknown_and_a_blank_row_tells_nothing() -> None:
    found = read_statistics((HEADER + "2017,4,a,A,,0\n2017,4,b,B,,\n").encode())
    assert found.lines == {Week(2017, 4): {"a": {"rec": 0}}}
    assert (found.rows, found.blank) == (2, 1)


@pytest.mark.rule("S1")
def test_season_and_week_may_be_said_instead_of_written() -> None:
    assert read("player_id,rec\na,3\n", season=2017, week=4) == {Week(2017, 4): {"a": {"rec": 3}}}
    with pytest.raises(BadTable, match="line 1, column week: is missing; add it, or say which week"):
        read("player_id,rec\na,3\n", season=2017)


@pytest.mark.rule("S1")
@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ("2017,4,a,A,3.5,1\n", "line 2, column rush_yds: '3.5' is not a statistic"),
        ("2017,4,a,A,3,1\n2017,4,b,B,x,1\n", "line 3, column rush_yds: 'x'"),
        ("2017,four,a,A,3,1\n", "line 2, column week: 'four' is not a week, such as 4"),
        (",4,a,A,3,1\n", "line 2, column season: '' is not a season, such as 2017"),
        ("2017,4,,A,3,1\n", "line 2, column player_id: '' is not an id"),
        (f"2017,4,{'x' * 65},A,3,1\n", "line 2, column player_id"),
        ("2017,4,a\x00,A,3,1\n", "line 2, column player_id"),
        ("2017,4,a,A,3,1\n2017,4,a,A,4,1\n", "line 3, column rush_yds: a has 4 here and 3 on line 2"),
        ("2017,4,a,A,3\n", "line 2: 5 cells, but the header has 6 columns"),
    ],
)
def test_a_bad_row_is_named_with_line_and_column(rows: str, complaint: str) -> None:
    with pytest.raises(BadTable) as error:
        read(HEADER + rows)
    assert complaint in str(error.value)


@pytest.mark.rule("S1")
@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "the file is empty"),
        (b"season,week,rec\n", "column player_id: is missing"),
        (b"season,week,player_id,touches\n", "no column is a statistic"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (gzip.compress(bytes(range(256)), mtime=0)[:60], "starts like gzip but is cut short"),
    ],
)
def test_what_is_no_statistics_file_is_refused(data: bytes, complaint: str) -> None:
    with pytest.raises(BadTable, match=complaint):
        read_statistics(data)


@pytest.mark.rule("S1")
def test_a_small_file_that_unpacks_to_a_huge_one_is_refused() -> None:
    bomb = gzip.compress(b"\0" * (65 << 20), 1, mtime=0)
    with pytest.raises(BadTable, match="unpacks to more than 67108864 bytes"):
        read_statistics(bomb)


@pytest.mark.rule("S1")
def test_every_fault_of_a_file_is_named_at_once() -> None:
    rows = [
        "2017,4,a,A,3.5,x",
        "2017,four,b,B,1,1",
        "2017,4,c,C,1",
        "2017,4,d,D,1,1",
        "2017,4,d,D,2,1",
        "2017,4,,E,1,1",
    ]
    with pytest.raises(BadTable) as error:
        read(HEADER + "\n".join(rows) + '\n2017,4,"f,F,1,1\n')
    assert [(fault.line, fault.column) for fault in error.value.faults] == [
        (2, "rush_yds"),
        (2, "rec"),
        (3, "week"),
        (4, None),
        (6, "rush_yds"),
        (7, "player_id"),
        (8, None),
    ]
    assert error.value.count == 7
    with pytest.raises(BadTable) as error:
        read("name\nA\n")
    assert [fault.column for fault in error.value.faults] == ["player_id", "season", "week", None]


@pytest.mark.rule("S1")
def test_of_a_file_that_is_wrong_all_over_fifty_faults_are_listed_and_all_are_counted() -> None:
    with pytest.raises(BadTable) as error:
        read(HEADER + "2017,4,a,A,x,y\n" * 1_000)
    assert (len(error.value.faults), error.value.count) == (50, 2_000)
