"""The files that anyone can hand to ``mafl optimal`` and ``mafl score``."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable
from pathlib import Path

import pytest

from common.events import Scoring
from settlement.domain import InputError
from settlement.optimal import InfeasibleError
from settlement.tables import BadTable
from settlement.tools import optimal_document, score_file

HEADER = "player_id,name,position,team,price,points"


def pool() -> list[str]:
    rows = [
        f"{position}-{n},Name {n},{position},T{n},{3000 + 100 * n},{n}.{n}5"
        for position in ("QB", "RB", "WR", "TE", "DST")
        for n in range(1, 7)
    ]
    return [HEADER, *rows]


def written(folder: Path, lines: list[str], name: str = "pool.csv") -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.rule("S2")
def test_a_file_gives_the_optimum_its_proof_and_the_number_of_lineups(tmp_path: Path) -> None:
    players = ["DST-6", "QB-6", "RB-5", "RB-6", "TE-5", "TE-6", "WR-4", "WR-5", "WR-6"]
    optimum = {"points": 5435, "price": 9 * 3000 + 100 * 49, "players": players}
    path = written(tmp_path, pool())
    document = optimal_document(path)
    assert document == {**optimum, "certified": True, "feasible_lineups": 297_000, "best": []}
    best = optimal_document(path, best=3)["best"]
    assert best[0] == optimum
    assert [lineup["points"] for lineup in best] == [5435, 5325, 5325]
    assert len(optimal_document(path, cap=28_900, best=1000)["best"]) < 1000


@pytest.mark.rule("S2")
def test_columns_may_come_in_any_order_packed_and_with_others_beside_them(tmp_path: Path) -> None:
    rows = list(csv.reader(pool()))
    order = [5, 1, 0, 4, 3, 2]
    text = "\ufeff" + "".join(",".join([*(row[at] for at in order), "x"]) + "\r\n\r\n" for row in rows)
    path = tmp_path / "pool.csv.gz"
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    assert optimal_document(path) == optimal_document(written(tmp_path, pool()))


@pytest.mark.rule("S2")
@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        (",A,QB,T,5000,1", "line 32, column player_id: blank"),
        ("RB-1,A,QB,T,5000,1", "line 32, column player_id: 'RB-1' is on line 8 already"),
        ("x,A,K,T,5000,1", "line 32, column position: 'K' is none of QB RB WR TE DST"),
        ("x,A,QB/,T,5000,1", "line 32, column position: 'QB/' is none of"),
        ("x,A,QB,T,0,1", "line 32, column price: '0' is not a price; it must be a whole number above zero"),
        ("x,A,QB,T,,1", "line 32, column price: ''"),
        ("x,A,QB,T,-5,1", "line 32, column price: '-5'"),
        ("x,A,QB,T,49.5,1", "line 32, column price: '49.5'"),
        ("x,A,QB,T,5000,1.234", "line 32, column points: '1.234' are no points"),
        ("x,A,QB,T,5000,", "line 32, column points: ''"),
        ("x,A,QB,T,5000,nan", "line 32, column points: 'nan'"),
        ("x,A,QB,T,5000,99999999999999999999", "line 32, column points: '99999999999999999999' are no points"),
        ("x,A,QB,T,5000,-1000000.01", "it must be a number from -1,000,000 to 1,000,000 with at most two decimals"),
        ("x,A,QB,T,5000", "line 32: 5 cells, but the header has 6 columns"),
        ('x,"A,QB,T,5000,1', "line 32: not CSV"),
    ],
)
def test_a_bad_row_is_named_with_line_and_column(tmp_path: Path, row: str, complaint: str) -> None:
    with pytest.raises(BadTable) as error:
        optimal_document(written(tmp_path, [*pool(), row]))
    assert complaint in str(error.value)


@pytest.mark.rule("S2")
@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "the file is empty"),
        (b"player_id,name,position,team,price\n", "line 1, column points: is missing"),
        (b"player_id,name,position,team,price,points,name\n", "line 1, column name: is there twice"),
        (b"player_id,name\xff", "not UTF-8"),
        (gzip.compress(b"player_id", mtime=0)[:-4], "starts like gzip but is cut short"),
    ],
)
def test_a_file_that_is_no_pool_is_refused(tmp_path: Path, data: bytes, complaint: str) -> None:
    path = tmp_path / "file.csv"
    path.write_bytes(data)
    with pytest.raises(BadTable, match=complaint):
        optimal_document(path)


@pytest.mark.rule("S2")
def test_a_missing_file_a_bad_cap_and_a_pool_without_lineups_are_clear_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        optimal_document(tmp_path / "none.csv")
    with pytest.raises(InputError, match="above zero"):
        optimal_document(written(tmp_path, pool()), cap=0)
    with pytest.raises(InputError, match="best -1: must be zero to 1,000"):
        optimal_document(written(tmp_path, pool()), best=-1)
    with pytest.raises(InputError, match="best 1001: must be zero to 1,000"):
        optimal_document(written(tmp_path, pool()), best=1001)
    with pytest.raises(InfeasibleError, match="more than the cap of 20000"):
        optimal_document(written(tmp_path, pool()), cap=20_000)
    with pytest.raises(InfeasibleError, match="slot QB"):
        optimal_document(written(tmp_path, [HEADER]))


@pytest.mark.rule("S1")
def test_points_are_added_to_raw_statistics(tmp_path: Path, classic: Scoring) -> None:
    path = written(
        tmp_path,
        ["name,points,rush_yds,rush_td,note", '"Bell, L.",9,32,,a', "Nobody,,,,b", "Fumbler,,-3,0,"],
    )
    scored = score_file(path, classic)
    assert scored.csv() == (
        'name,rush_yds,rush_td,note,points\n"Bell, L.",32,,a,3.20\nNobody,,,b,0.00\nFumbler,-3,0,,-0.30\n'
    )
    assert scored.document()["rows"][0] == {
        "name": "Bell, L.", "rush_yds": "32", "rush_td": "", "note": "a", "points": "3.20"
    }  # fmt: skip


@pytest.mark.rule("S1")
def test_the_files_of_the_data_are_scored_as_they_are(data_path: Callable[[str], Path], classic: Scoring) -> None:
    scored = score_file(data_path("pool_2017_dk.csv.gz"), classic)
    rows = list(csv.DictReader(io.StringIO(scored.csv())))
    assert len(rows) == 6828
    known = [row for row in rows if row["recomputed_dk_points"]]
    assert all(float(row["points"]) == float(row["recomputed_dk_points"]) for row in known)
    assert len(score_file(data_path("weekly_stats_2020.csv.gz"), classic).rows) == 6223


@pytest.mark.rule("S1")
def test_a_fraction_of_a_statistic_is_refused_with_line_and_column(tmp_path: Path, classic: Scoring) -> None:
    with pytest.raises(BadTable, match=r"line 3, column rec: '2\.5' is not a statistic.*; line 4, column rec: 'x'"):
        score_file(written(tmp_path, ["name,rec", "A,1", "B,2.5", "C,x"]), classic)
    with pytest.raises(BadTable, match="no column is a statistic of draftkings-classic-1"):
        score_file(written(tmp_path, ["name,receptions", "A,1"]), classic)
