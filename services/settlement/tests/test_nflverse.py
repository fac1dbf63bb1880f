"""Files as nflverse publishes them: the columns of each year, CSV and Parquet, the two defences of a game."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from common.tables import MOST_BYTES
from settlement import nflverse
from settlement.imports import OWN, read_statistics
from settlement.lines import Week, line_of
from settlement.tables import MOST_CELLS, BadTable

from .nflverse_made import as_csv, as_parquet, game

HERE = Path(__file__).parent / "data"
TEAMS = (HERE / "stats_team_week_2025_EXCERPT.csv").read_bytes()
PLAYERS = (HERE / "stats_player_week_2025_EXCERPT.csv").read_bytes()
FIRST = Week(2025, 1)
Rows = Callable[[str], list[dict[str, str]]]

NEW = {
    "pass_att": "attempts", "pass_cmp": "completions", "pass_yds": "passing_yards", "pass_td": "passing_tds",
    "pass_int": "passing_interceptions", "pass_2pt": "passing_2pt_conversions", "rush_att": "carries",
    "rush_yds": "rushing_yards", "rush_td": "rushing_tds", "rush_2pt": "rushing_2pt_conversions",
    "targets": "targets", "rec": "receptions", "rec_yds": "receiving_yards", "rec_td": "receiving_tds",
    "rec_2pt": "receiving_2pt_conversions", "fum_lost": "fumbles_lost_total", "ret_td": "special_teams_tds",
}  # fmt: skip
OLD = {**NEW, "pass_int": "interceptions", "fum_lost": "rushing_fumbles_lost"}


def changed(file: bytes, team: str, **changes: object) -> bytes:
    """A file of teams or players with other cells in one team's row."""
    rows = list(csv.DictReader(io.StringIO(file.decode())))
    return as_csv({**row, **changes} if row["team"] == team else row for row in rows)


def defence(team: str, *files: bytes) -> dict[str, int]:
    return read_statistics(*files).lines[FIRST][f"DST-{team}"]


def games(*results: tuple[str, str, tuple[int, int] | None]) -> bytes:
    return as_csv(game(2025, 1, away, home, score) for away, home, score in results)


@pytest.mark.rule("S1")
def test_the_defences_of_real_games_are_made_of_both_teams_weeks() -> None:
    found = read_statistics(TEAMS)
    assert (found.formats, found.rows, found.notes) == ((nflverse.TEAMS,), 6, ())
    names = ("sacks", "int", "fum_rec", "td", "safety", "blk", "points_against", "points_allowed")
    assert {
        player_id: tuple(line[f"dst_{name}"] for name in names) for player_id, line in found.lines[FIRST].items()
    } == {
        "DST-CHI": (3, 1, 0, 1, 0, 0, 27, 27),
        "DST-MIN": (2, 0, 1, 0, 0, 0, 24, 18),  # Chicago's interception return is no fault of Minnesota's defence.
        "DST-DEN": (6, 0, 2, 0, 0, 0, 12, 12),
        "DST-TEN": (1, 2, 2, 0, 0, 0, 20, 20),
        "DST-SEA": (1, 2, 0, 0, 0, 1, 17, 17),  # They blocked a field goal.
        "DST-SF": (1, 0, 2, 0, 0, 0, 13, 13),
    }


@pytest.mark.rule("S1")
def test_they_are_what_the_data_has_of_the_season_of_2025() -> None:
    path = Path(__file__).resolve().parents[4] / "shared" / "data" / "weekly_stats_2025.csv.gz"
    if not path.is_file():
        pytest.skip("the statistics of 2025 are not given out with the repository")
    theirs = read_statistics(path.read_bytes(), week=1).lines[FIRST]
    ours = read_statistics(TEAMS).lines[FIRST]
    assert ours == {player_id: theirs[player_id] for player_id in ours}
    players = read_statistics(PLAYERS).lines[Week(2025, 15)]
    known = read_statistics(path.read_bytes(), week=15).lines[Week(2025, 15)]
    compared = {player_id: line for player_id, line in players.items() if player_id in known}
    assert len(compared) == 5
    for player_id, line in compared.items():
        assert {name: line.get(name, 0) for name in known[player_id]} == known[player_id]


@pytest.mark.rule("S1")
@pytest.mark.parametrize(
    ("score", "touchdowns", "safeties", "allowed_by_tennessee", "said"),
    [
        (20, 0, 0, 20, []),
        (22, 0, 1, 20, ["2025-W01 DEN: its columns add up to 20 points, its score is 22; taken for a safety"]),
        (26, 1, 0, 20, ["2025-W01 DEN: its columns add up to 20 points, its score is 26; taken for 1 touchdown of the "
                        "defence"]),
        (32, 2, 0, 20, ["2025-W01 DEN: its columns add up to 20 points, its score is 32; taken for 2 touchdowns of the "
                        "defence"]),
        (21, 0, 0, 21, ["2025-W01 DEN: its columns add up to 20 points, its score is 21; nothing explains it"]),
    ],
)  # fmt: skip
def test_the_score_of_the_game_decides_what_no_column_has(
    score: int, touchdowns: int, safeties: int, allowed_by_tennessee: int, said: list[str]
) -> None:
    found = read_statistics(TEAMS, games(("TEN", "DEN", (12, score)), ("SF", "SEA", None)))
    denver, tennessee = (found.lines[FIRST][f"DST-{team}"] for team in ("DEN", "TEN"))
    assert (denver["dst_td"], denver["dst_safety"]) == (touchdowns, safeties)
    assert (tennessee["dst_points_against"], tennessee["dst_points_allowed"]) == (score, allowed_by_tennessee)
    assert list(found.notes) == said


@pytest.mark.rule("S1")
def test_points_of_special_teams_count_as_allowed_those_of_a_defence_do_not() -> None:
    returned = changed(TEAMS, "DEN", special_teams_tds=1)
    assert (defence("DEN", returned)["dst_td"], defence("TEN", returned)["dst_points_allowed"]) == (1, 26)
    recovered = changed(TEAMS, "DEN", fumble_recovery_tds=1)
    assert (defence("DEN", recovered)["dst_td"], defence("TEN", recovered)["dst_points_allowed"]) == (1, 20)
    safety = changed(TEAMS, "DEN", def_safeties=1)
    assert (defence("DEN", safety)["dst_safety"], defence("TEN", safety)["dst_points_allowed"]) == (1, 20)


@pytest.mark.rule("S1")
def test_one_fumble_return_in_two_columns_is_one_touchdown() -> None:
    both = changed(TEAMS, "DEN", def_tds=1, fumble_recovery_tds=1)
    score = games(("TEN", "DEN", (12, 26)))
    assert (defence("DEN", both)["dst_td"], defence("DEN", both, score)["dst_td"]) == (2, 1)
    assert defence("TEN", both, score)["dst_points_allowed"] == 20


@pytest.mark.rule("S1")
def test_a_fumble_that_the_offence_carries_over_the_line_is_no_touchdown_of_the_defence() -> None:
    own = changed(TEAMS, "CHI", fumble_recovery_tds=1, fumble_recovery_own=1)
    assert defence("CHI", own)["dst_td"] == 1  # Chicago recovered no other fumble, so it was its own.
    both = changed(own, "CHI", fumble_recovery_opp=1)
    assert defence("CHI", both)["dst_td"] == 2
    player = {"player_id": "00-1", "season": 2025, "week": 1, "team": "CHI", "passing_yards": 0,
              "fumble_recovery_tds": 1, "fumble_recovery_own": 1}  # fmt: skip
    found = read_statistics(both, as_csv([player]))
    assert found.lines[FIRST]["DST-CHI"]["dst_td"] == 1
    assert found.lines[FIRST]["00-1"]["off_fum_rec_td"] == 1
    assert found.lines[FIRST]["DST-MIN"]["dst_points_allowed"] == 24  # The offence's six points are allowed.


@pytest.mark.rule("S1")
def test_newer_files_tell_of_blocked_punts_and_returned_conversions() -> None:
    rows = list(csv.DictReader(io.StringIO(TEAMS.decode())))
    newer = as_csv({**row, "def_2pt_made": int(row["team"] == "SF"), "def_punt_blocks": 1} for row in rows)
    assert defence("SEA", newer)["dst_blk"] == 2
    assert (defence("SF", newer)["dst_2pt_ret"], defence("SEA", newer)["dst_points_against"]) == (1, 19)
    assert "dst_2pt_ret" not in defence("SF", TEAMS)


@pytest.mark.rule("S1")
def test_while_games_are_played_a_team_without_its_opponent_waits() -> None:
    alone = as_csv(row for row in csv.DictReader(io.StringIO(TEAMS.decode())) if row["team"] != "SEA")
    found = read_statistics(alone)
    assert set(found.lines[FIRST]) == {"DST-CHI", "DST-DEN", "DST-MIN", "DST-TEN"}
    assert found.notes == ("2025-W01 SF: no row of its opponent SEA, so no line of its defence yet",)


@pytest.mark.rule("S1")
def test_players_of_a_real_week_are_read_with_their_names_and_kickers_with_their_kicks() -> None:
    found = read_statistics(PLAYERS)
    week = Week(2025, 15)
    assert (found.formats, found.rows, found.blank) == ((nflverse.PLAYERS,), 6, 0)
    kelce, folk, bellore = (found.lines[week][one] for one in ("00-0030506", "00-0025565", "00-0028292"))
    assert (kelce["targets"], kelce["rec"], kelce["rec_yds"], kelce["fum_lost"]) == (9, 7, 70, 0)
    assert (folk["fg_made_40_49"], folk["fg_made_50_59"], folk["pat_made"]) == (1, 1, 2)
    assert not any(bellore.values())
    assert not any(name.startswith(("fg_", "pat_")) for name in kelce)
    person = found.people[week]["00-0026498"]
    assert (person.name, person.position, person.team) == ("Matthew Stafford", "QB", "LA")


@pytest.mark.rule("S1")
@pytest.mark.parametrize("written", [as_csv, as_parquet], ids=["csv", "parquet"])
@pytest.mark.parametrize(("names", "team"), [(NEW, "team"), (OLD, "recent_team")], ids=["since 2024", "before"])
def test_a_season_is_the_same_under_the_column_names_of_any_year(
    read_data: Rows, written: Callable[[Iterable[Mapping[str, Any]]], bytes], names: dict[str, str], team: str
) -> None:
    rows = [row for row in read_data("weekly_stats_2017.csv.gz") if row["kind"] == "offence" and int(row["week"]) < 4]
    theirs = [
        {
            "season": int(row["season"]),
            "week": int(row["week"]),
            "player_id": row["player_id"],
            "player_display_name": row["name"],
            "position": row["position"],
            team: row["team"],
            "sack_fumbles_lost": 0,
            "receiving_fumbles_lost": 0,
            **{column: float(row[ours]) if row[ours] else None for ours, column in names.items()},
        }
        for row in rows
    ]
    own = read_statistics(as_csv(rows))
    found = read_statistics(written(theirs))
    assert (found.formats, own.formats) == ((nflverse.PLAYERS,), (OWN,))
    assert found.people == own.people
    assert found.lines == {
        week: {player: {name: line[name] for name in names if name in line} for player, line in lines.items()}
        for week, lines in own.lines.items()
    }


@pytest.mark.rule("S1")
def test_own_columns_come_as_parquet_too(read_data: Rows) -> None:
    rows = [row for row in read_data("weekly_stats_2017.csv.gz") if row["week"] == "4"]
    numbers = [
        {
            column: None if cell == "" else int(cell) if cell.lstrip("-").isdigit() else cell
            for column, cell in row.items()
            if column != "nflverse_ppr_points"
        }
        for row in rows
    ]
    assert read_statistics(as_parquet(numbers)).lines == read_statistics(as_csv(rows)).lines


@pytest.mark.rule("S1")
@pytest.mark.parametrize(
    ("season", "written", "called"),
    [(2017, "LV", "OAK"), (2019, "OAK", "OAK"), (2020, "OAK", "LV"), (2017, "LAR", "LA"), (2015, "LA", "STL"),
     (2016, "LAC", "SD"), (2020, "JAC", "JAX"), (2025, "WSH", "WAS"), (2025, "kc", "KC")],
)  # fmt: skip
def test_teams_are_called_as_contests_of_that_season_call_them(season: int, written: str, called: str) -> None:
    assert nflverse.team_of(written, season) == called


@pytest.mark.rule("S1")
def test_a_player_with_lines_of_two_teams_in_a_week_has_that_of_his_team_in_the_pool() -> None:
    row = {"season": 2025, "week": 9, "player_id": "00-7", "team": "KC", "carries": 3, "rushing_yards": 12}
    other = {**row, "team": "DEN", "carries": 9, "rushing_yards": 51}
    lines = read_statistics(as_csv([row, other, row])).lines[Week(2025, 9)]
    assert {player: line["rush_yds"] for player, line in lines.items()} == {"00-7/KC": 12, "00-7/DEN": 51}
    assert [(line_of(lines, "00-7", team) or {}).get("rush_yds") for team in ("DEN", "KC", "NYJ")] == [51, 12, None]
    with pytest.raises(BadTable, match="column rush_yds: 00-7 has 13 here and 12 on line 2 for the same week"):
        read_statistics(as_csv([row, {**row, "rushing_yards": 13}]))


@pytest.mark.rule("S1")
def test_a_player_who_was_traded_between_weeks_goes_by_his_id_whatever_the_list_says() -> None:
    lines = read_statistics(PLAYERS).lines[Week(2025, 15)]
    assert line_of(lines, "00-0022942", "LAC") == lines["00-0022942"]


def parquet_of(values: pa.Array) -> bytes:
    """A file of one player's line, which has these for his id."""
    made = io.BytesIO()
    pq.write_table(pa.table({"player_id": values, "season": [2025], "week": [4], "rec": [1]}), made)
    return made.getvalue()


@pytest.mark.rule("S1")
@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ([b"player_id,season,passing_yards,games\n00-1,2025,300,17\n"], "column week: is missing; weeks are in"),
        ([b"player_id,season,week,def_tds\n00-1,2025,4,1\n"], "no column is a statistic that MAFL keeps"),
        ([b"team,opponent_team,season,week,def_sacks\nKC,DEN,2025,4,1\n"], "column passing_tds: is missing; teams'"),
        ([PLAYERS.replace(b",120,1,1,1,-2,", b",120.5,1,1,1,-2,")], "line 2, column passing_yards: '120.5' is not a"),
        ([TEAMS, TEAMS + b"2025,1,SF,REG" + b"," * 96 + b"\n"], r"cells, but the header has 103 columns \(file 2\)"),
        ([b"PAR1" + b"\0" * 64], "starts like Parquet but cannot be read"),
        ([as_parquet([{"a": 1}])[:-20]], "starts like Parquet but cannot be read"),
        ([parquet_of(pa.array([b"\xff"]).view(pa.string()))], "starts like Parquet but cannot be read"),
        ([parquet_of(pa.array([2**62], pa.timestamp("ms")))], "starts like Parquet but cannot be read"),
        ([parquet_of(pa.array([0], pa.timestamp("ms", "No/Where")))], "starts like Parquet but cannot be read"),
        ([changed(TEAMS, "SF", opponent_team="NA")], "column opponent_team: is blank"),
        ([TEAMS, b"season,week,player_id,dst_td\n2025,1,DST-SF,3\n"], "DST-SF has 0 here and 3 on line 2"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file_of_nflverse_is_named(files: list[bytes], complaint: str) -> None:
    with pytest.raises(BadTable, match=complaint):
        read_statistics(*files)


@pytest.mark.rule("S1")
def test_a_small_parquet_file_of_too_many_equal_cells_is_refused() -> None:
    rows = MOST_CELLS // 40 + 1
    table = pa.table({f"c{n}": pa.array([0], pa.int8()).take(pa.array([0] * rows)) for n in range(40)})
    file = pa.BufferOutputStream()
    pq.write_table(table, file, compression="gzip")
    assert len(bytes(file.getvalue())) < MOST_BYTES // 20
    with pytest.raises(BadTable, match=f"more than {MOST_BYTES} bytes or {MOST_CELLS} cells"):
        read_statistics(bytes(file.getvalue()))
