"""Salary files as sites give them out: what a person would say of each row."""

import csv
import functools
import gzip
import io
import random
from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.tables import Malformed
from contests import imports, rulesets, stadiums
from contests.imports import players, teams
from contests.imports.schedule import calendar_week

from .helpers import data
from .list_files import DK_HEADER, FD_HEADER, SEA_MIA, SUNDAY, directory, dk, dk_file, fd, lines, schedule

SHARED = next(folder for folder in Path(__file__).resolve().parents if (folder / "uv.lock").exists()) / "../shared/data"


def shared(name: str) -> bytes:
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{path} is not here")
    return path.read_bytes()


HERE = Path(__file__).parent / "data"
FRANCHISES = sorted(set(stadiums.ZONES) - {"OAK", "SD", "STL"})


def downloaded(name: str) -> bytes:
    """A list as it was downloaded: of those in this folder, which every clone reads, else of the shared ones."""
    path = HERE / name
    return path.read_bytes() if path.exists() else shared(f"raw/{name}")


@functools.cache
def league_of_2020() -> bytes:
    """The schedule of 2020 as it was played, as far as the pool of that season has its games."""
    games = {}
    for row in csv.DictReader(io.StringIO(gzip.decompress(data("pool_2020_dk.csv.gz")).decode("utf-8-sig"))):
        pair = [row["team"], row["opponent"]]
        away, home = pair if row["home_away"] == "away" else reversed(pair)
        if row["game_id"]:
            games[row["game_id"]] = f"{row['game_id']},2020,{row['week']},{away},{home},{row['kickoff']},Home"
    return schedule(*games.values())


def only(report: dict[str, Any], kind: str) -> dict[str, Any]:
    (note,) = report[kind]
    accounted(report)
    return note  # type: ignore[no-any-return]


def accounted(report: dict[str, Any]) -> None:
    """Each row is in exactly one of offered, unmatched and refused."""
    noted = [note["line"] for kind in ("unmatched", "refused") for note in report[kind]]
    assert len(set(noted)) == len(noted)
    assert report["offered"] + len(noted) == report["rows"]


# --- the files that people download ---------------------------------------------------------------

RAW: list[tuple[str, bool, dict[str, Any]]] = [
    ("DKSalaries_2020_w04_main.csv", False, {"contest": "2020-W04", "rows": 499, "offered": 499}),
    # PIT@TEN was put off to week 7 after the list came out.
    ("DKSalaries_2020_w04_main.csv", True, {"rows": 499, "offered": 463, "unmatched": 36, "differences": 2}),
    ("DKSalaries_2020_w05_main.csv", False, {"contest": "2020-W05", "rows": 467, "offered": 467}),
    # DEN@NE went to week 6, BUF@TEN to Tuesday.
    (
        "DKSalaries_2020_w05_main.csv",
        True,
        {"contest": "2020-W05", "rows": 467, "offered": 390, "unmatched": 41, "refused": 36, "differences": 1},
    ),
    ("DKSalaries_2020_w12_thanksgiving.csv", False, {"contest": "2020-W12", "rows": 119, "refused": 119}),
    ("DKSalaries_2020_w12_thanksgiving.csv", True, {"contest": "2020-W12", "refused": 119, "differences": 1}),
    ("DKSalaries_2023_w16_christmas_monday.csv", False, {"contest": "2023-W16", "rows": 152, "offered": 152}),
    ("DKSalaries_2023_w16_christmas_monday.csv", True, {"offered": 152, "not_listed": 10}),
    ("DKSalaries_2025_w01_main.csv", False, {"contest": "2025-W01", "rows": 720, "offered": 720}),
    ("DKSalaries_2025_w01_main.csv", True, {"offered": 720, "differences": 0, "not_listed": 2}),
    ("DKSalaries_2026_w04_afternoon_EXCERPT.csv", False, {"contest": "2026-W04", "rows": 11, "offered": 11}),
    ("DKSalaries_2026_w04_afternoon_EXCERPT.csv", True, {"offered": 11, "differences": 0}),
    ("DKSalaries_2026_w05_showdown_EXCERPT.csv", False, {"contest": None, "rows": 8, "refused": 8}),
    ("FanDuel-NFL-2025 EST-12 EST-14 EST-124136-players-list.csv", False, {"rows": 666, "unmatched": 666}),
    (
        "FanDuel-NFL-2025 EST-12 EST-14 EST-124136-players-list.csv",
        True,
        {"contest": "2025-W15", "rows": 666, "offered": 666, "locks_at": "2025-12-14T18:00:00Z"},
    ),
    ("FanDuel-NFL-2026 EST-01 EST-04 EST-124949-players-list.csv", False, {"rows": 679, "unmatched": 679}),
    (
        "FanDuel-NFL-2026 EST-01 EST-04 EST-124949-players-list.csv",
        True,
        {"contest": "2025-W18", "rows": 679, "offered": 679, "locks_at": "2026-01-04T18:00:00Z"},
    ),
]


@pytest.mark.rule("C1", "C2", "C11")
@pytest.mark.parametrize(("name", "with_schedule", "expected"), RAW, ids=range(len(RAW)))
def test_every_row_of_every_downloaded_file_is_accounted_for(
    name: str, with_schedule: bool, expected: dict[str, Any]
) -> None:
    content = downloaded(name)
    league = None
    if with_schedule:
        league = league_of_2020() if (HERE / name).exists() else shared("schedules_2017_2026.csv")
    report = imports.report(content, schedule=league)
    accounted(report)
    counted = {key: len(value) if isinstance(value, list) else value for key, value in report.items()}
    nothing_else = {"unmatched": 0, "refused": 0}
    assert {key: counted[key] for key in nothing_else | expected} == nothing_else | expected
    site = "fanduel" if name.startswith("FanDuel") else "draftkings"
    assert (report["format"], report["ruleset"]) == (site, f"{site}-classic-1")


@pytest.mark.rule("C11")
def test_lists_as_they_were_downloaded_are_in_every_clone() -> None:
    here = {path.name: path.read_bytes() for path in HERE.glob("*.csv")}
    assert here.keys() == {name for name, _, _ in RAW if "_2020_" in name}
    assert all(content.startswith(b"Position,Name + ID,Name,ID") for content in here.values())
    for name, content in here.items():
        assert not (SHARED / "raw").exists() or content == shared(f"raw/{name}"), name


@pytest.mark.rule("C11")
@pytest.mark.parametrize(
    ("year", "rows", "offered"),
    [("2017_dk", 6828, 6195), ("2020_dk", 8314, 8082), ("2023_dk", 9738, 9229), ("2025_mixed", 2532, 2532)],
)
def test_pools_of_all_seasons_import_with_and_without_the_schedule(year: str, rows: int, offered: int) -> None:
    content = shared(f"pool_{year}.csv.gz")
    for league in (None, shared("schedules_2017_2026.csv")):
        report = imports.report(content, schedule=league)
        accounted(report)
        assert (report["rows"], report["offered"], report["differences"]) == (rows, offered, [])


@pytest.mark.rule("C3", "C11")
def test_weeks_of_a_pool_go_by_the_rules_that_their_prices_were_made_for() -> None:
    weeks = imports.read(shared("pool_2025_mixed.csv.gz")).weeks
    assert {week.contest: week.ruleset for week in weeks} == {
        "2025-W01": "draftkings-classic-1",
        "2025-W15": "fanduel-classic-1",
        "2025-W17": "fanduel-classic-1",
        "2025-W18": "fanduel-classic-1",
    }


@pytest.mark.rule("C11")
def test_the_calendar_gives_every_scheduled_game_its_week_but_for_those_that_moved() -> None:
    rows = csv.DictReader(io.StringIO(shared("schedules_2017_2026.csv").decode("utf-8-sig")))
    wrong = []
    for row in rows:
        if row["game_type"] == "REG":
            kickoff = datetime.fromisoformat(row["kickoff"])
            if calendar_week(kickoff) != (int(row["season"]), int(row["week"])):
                wrong.append((row["game_id"], row["weekday"]))
    assert wrong == [
        ("2020_05_BUF_TEN", "Tuesday"),
        ("2020_12_BAL_PIT", "Wednesday"),
        ("2020_13_DAL_BAL", "Tuesday"),
        ("2021_15_SEA_LA", "Tuesday"),
        ("2021_15_WAS_PHI", "Tuesday"),
    ]


@pytest.mark.rule("C11")
def test_a_directory_of_the_season_finds_players_and_names_the_nearest_for_others() -> None:
    report = imports.report(shared("raw/DKSalaries_2025_w01_main.csv"), players=[shared("weekly_stats_2025.csv.gz")])
    accounted(report)
    assert report["matched"] == {"name, team and position": 390, "team defence": 24}
    nearest = {note["name"]: note.get("nearest", [""])[0] for note in report["unmatched"]}
    assert nearest["Cameron Ward"] == "Cam Ward (QB, TEN, 00-0040676)"
    assert nearest["Brian Robinson Jr."] == "Brian Robinson (RB, SF, 00-0037746)"


# --- DraftKings -----------------------------------------------------------------------------------


@pytest.mark.rule("C2", "C11")
def test_a_draftkings_list_of_any_layout_gives_the_same_offer() -> None:
    rows = [dk(), dk("Dolphins", number=2, position="DST", roster="DST", team="MIA", price="3000")]
    blanks = [row.replace(",SEA,", " ,SEA ,").replace("Dolphins,", "Dolphins ,") for row in rows]
    plain = imports.read(dk_file(*rows)).weeks[0]
    for other in (
        b"\xef\xbb\xbf" + dk_file(*rows),
        dk_file(*rows, end="\r\n"),
        dk_file(*blanks),
        dk_file(*(row + ",OUT" for row in rows), header=DK_HEADER + ",Status"),
        dk_file(*rows, ",,,,,,,,"),
    ):
        week = imports.read(other).weeks[0]
        assert (week.players, week.games, week.locks_at) == (plain.players, plain.games, plain.locks_at)
    assert [(p.player_id, p.player_name, p.price, p.opponent) for p in plain.players] == [
        ("DST-MIA", "Dolphins", 3000, "SEA"),
        ("dk-1", "Jo Doe", 5000, "MIA"),
    ]
    (game,) = plain.report()["games"]
    assert (game["game_id"], game["kickoff"]) == ("2020_04_SEA_MIA", "2020-10-04T17:00:00Z")
    assert plain.report()["locks_at"] == "2020-10-04T17:00:00Z"


@pytest.mark.rule("C2")
def test_a_listed_kickoff_is_a_time_of_the_eastern_clock_on_both_sides_of_its_change() -> None:
    for listed, kickoff in (("10/31/2021 01:00PM", "17:00"), ("11/07/2021 01:00PM", "18:00")):
        (game,) = imports.report(dk_file(dk(game=f"SEA@MIA {listed} ET")))["games"]
        assert game["kickoff"].endswith(f"T{kickoff}:00Z")


@pytest.mark.rule("C11")
@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (dk(price="0"), "the price 0 is not above zero"),
        (dk(price=""), "no price"),
        (dk(price="5000.50"), "the price 5000.50 is fractional"),
        (dk(price="N/A"), "'N/A' is not a price"),
        (dk(price="$5,000".replace(",", "")), "'$5000' is not a price"),
        (dk(position="K"), "no slot of the roster takes K"),
        (dk(name=""), "no name"),
        (dk(team="XYZ"), "'XYZ' is no team that is known"),
        (dk(game="SEA@MIA 13/04/2020 01:00PM ET"), "is no time of a clock"),
        (dk(name="Cowboys", position="DST"), "'Cowboys' is the name of DAL, the row's team is SEA"),
        (dk(game="SEA@MIA 10/01/2020 08:20PM ET"), "outside the covered days: 2020_04_SEA_MIA is on a Thursday"),
        ("WR,Jo Doe (1),Jo Doe,2,WR/FLEX,5000," + SUNDAY + ",SEA,1", "the ID is 2, beside the name it is 1"),
        (dk() + ",surplus", "the row has 10 fields, the header 9"),
        ("WR,Jo", "the row ends after 2 of 9 fields"),
    ],
)
def test_a_row_that_draftkings_prices_in_vain_is_refused_alone(row: str, reason: str) -> None:
    other = dk("Al Other", number=9, game="NYG@LAR 10/04/2020 04:05PM ET", team="LAR")
    report = imports.report(dk_file(other, row))
    assert reason in only(report, "refused")["reason"]
    assert report["offered"] == 1


@pytest.mark.rule("C11")
@pytest.mark.parametrize(
    ("game", "reason", "with_schedule"),
    [
        ("SEA@MIA Postponed", "the list says 'Postponed' of SEA@MIA, and no kickoff; give the schedule", True),
        ("Postponed", "the list says 'Postponed' and names no game of SEA; give the schedule", True),
        ("Cancelled", "the list says 'Cancelled' and names no game of SEA", True),
        ("Final", "the list says 'Final' and names no game of SEA", False),
        ("In Progress", "the list says 'In Progress' and names no game of SEA", False),
        ("", "the list says 'nothing' and names no game of SEA", False),
    ],
)
def test_a_game_without_a_kickoff_is_unmatched_unless_the_schedule_has_it(
    game: str, reason: str, with_schedule: bool
) -> None:
    other = dk("Al Other", number=9, game="NYG@LAR 10/04/2020 04:05PM ET", team="LAR")
    content = dk_file(other, dk(game=game))
    assert reason in only(imports.report(content), "unmatched")["reason"]
    league = schedule(SEA_MIA, "2020_04_NYG_LA,2020,4,NYG,LA,2020-10-04T16:05:00-04:00,Home")
    report = imports.report(content, schedule=league)
    assert (report["offered"], report["locks_at"]) == (2, "2020-10-04T17:00:00Z")
    assert [d["what"] for d in report["differences"]] == (["state"] if with_schedule else [])


@pytest.mark.rule("C11")
def test_a_showdown_list_is_refused_row_by_row_and_the_right_file_named() -> None:
    captain, flex = dk(roster="CPT", price="7500"), dk(roster="FLEX", number=2)
    report = imports.report(dk_file(captain, flex))
    accounted(report)
    assert [note["line"] for note in report["refused"]] == [2, 3]
    assert "captain's row (CPT" in report["refused"][0]["reason"]
    assert "captains in line 2" in report["refused"][1]["reason"]
    assert "Download DKSalaries.csv of a classic contest" in report["notes"][0]


@pytest.mark.rule("C11")
def test_rows_that_differ_about_a_game_are_not_believed() -> None:
    late = dk("Al Other", number=2, game="SEA@MIA 10/04/2020 04:05PM ET", team="MIA")
    third = dk("Cy Third", number=3, game="NYG@LAR 10/04/2020 04:05PM ET", team="LAR")
    report = imports.report(dk_file(dk(), late, third))
    accounted(report)
    assert [note["line"] for note in report["unmatched"]] == [2, 3]
    assert "2020-10-04T17:00:00Z and 2020-10-04T20:05:00Z" in report["unmatched"][0]["reason"]
    swapped = dk("Al Other", number=2, game="MIA@SEA 10/04/2020 01:00PM ET", team="MIA")
    report = imports.report(dk_file(dk(), swapped))
    assert {note["reason"].split(";")[0] for note in report["unmatched"]} == {
        "rows of this game differ about who is at home"
    }
    assert imports.report(dk_file(dk(), swapped), schedule=schedule(SEA_MIA))["offered"] == 2


@pytest.mark.rule("C11")
def test_a_team_in_two_games_of_one_week_is_in_neither_without_the_schedule() -> None:
    other = dk("Al Other", number=2, game="SEA@NE 10/04/2020 04:05PM ET")
    report = imports.report(dk_file(dk(), other))
    assert {note["reason"] for note in report["unmatched"]} == {
        "SEA is listed in two games of one week; give the schedule (--schedule)"
    }
    report = imports.report(dk_file(dk(), other), schedule=schedule(SEA_MIA), season=2020, week=4)
    assert "the schedule has no game SEA@NE in 2020" in only(report, "unmatched")["reason"]
    stranger = dk("Al Other", number=2, team="NE")
    assert "NE is no side of SEA@MIA" in only(imports.report(dk_file(dk(), stranger)), "unmatched")["reason"]


# --- the week -------------------------------------------------------------------------------------


def slate(*days: str, start: int = 0) -> list[str]:
    """A row for each kickoff, each in a game of its own."""
    names = [team for team in FRANCHISES if team not in ("LA", "LV", "LAC")]
    pairs = [(names[2 * place], names[2 * place + 1]) for place in range(start, start + len(days))]
    return [
        dk(f"No {away}", number=number + 10 * start, game=f"{away}@{home} {day} ET", team=away)
        for number, (day, (away, home)) in enumerate(zip(days, pairs, strict=True), start=1)
    ]


@pytest.mark.rule("C1", "C11")
def test_the_week_is_that_of_most_games_and_one_that_moved_to_tuesday_stays_in_it() -> None:
    sunday, tuesday = "10/11/2020 01:00PM", "10/13/2020 07:00PM"
    report = imports.report(dk_file(*slate(sunday, sunday, tuesday)))
    assert (report["contest"], report["offered"]) == ("2020-W05", 2)
    assert "is on a Tuesday" in only(report, "refused")["reason"]
    assert report["notes"][-1] == "The week follows from the games of the list: 2020-W05."
    next_sunday = "10/18/2020 01:00PM"
    report = imports.report(dk_file(*slate(sunday, sunday, next_sunday)))
    assert "is listed for Sunday 2020-10-18T17:00:00Z, in 2020-W06" in only(report, "unmatched")["reason"]


@pytest.mark.rule("C11")
def test_a_week_is_not_guessed_where_no_week_has_most_of_the_games() -> None:
    rows = slate("10/11/2020 01:00PM", "10/18/2020 01:00PM")
    with pytest.raises(Malformed, match=r"no week has more than half of the 2 games \(2020-W05 1, 2020-W06 1\)"):
        imports.report(dk_file(*rows))
    report = imports.report(dk_file(*rows), 2020, 6)
    assert (report["contest"], report["offered"], len(report["unmatched"])) == ("2020-W06", 1, 1)
    with pytest.raises(Malformed, match="no row of the week asked for; it holds 2020-W05, 2020-W06"):
        imports.report(dk_file(*rows), 2020, 7)
    assert imports.report(dk_file(*slate("10/13/2020 07:00PM")), 2020, 5)["contest"] == "2020-W05"


@pytest.mark.rule("C11")
@pytest.mark.parametrize(
    ("kickoff", "contest"), [("01/04/2026 01:00PM", "2025-W18"), ("09/09/2026 08:20PM", "2026-W01")]
)
def test_january_belongs_to_the_season_before_and_an_early_opener_to_week_one(kickoff: str, contest: str) -> None:
    assert imports.report(dk_file(*slate(kickoff)))["contest"] == contest


@pytest.mark.rule("C11")
@pytest.mark.parametrize("kickoff", ["08/15/2026 07:00PM", "02/08/2026 06:30PM"])
def test_a_game_before_or_after_the_regular_season_tells_no_week(kickoff: str) -> None:
    report = imports.report(dk_file(*slate(kickoff)))
    accounted(report)
    assert (report["contest"], report["offered"], report["locks_at"]) == (None, 0, None)


@given(st.dates(date(1970, 1, 1), date(2150, 12, 31)))
def test_weeks_of_the_calendar_are_seven_days_from_tuesday_to_monday(day: date) -> None:
    kickoff = datetime.fromisoformat(f"{day}T12:00:00-05:00")
    monday = kickoff + timedelta(days=-day.weekday())
    assert calendar_week(kickoff) == calendar_week(monday + timedelta(days=0 if day.weekday() == 0 else 7))


# --- FanDuel --------------------------------------------------------------------------------------


@pytest.mark.rule("C3", "C11")
def test_a_fanduel_list_needs_the_schedule_and_brings_its_own_rules() -> None:
    content = lines(FD_HEADER, fd(), fd("Seattle Seahawks", number=2, position="D", price="4500"))
    report = imports.report(content)
    accounted(report)
    assert {note["reason"] for note in report["unmatched"]} == {
        "the list has no kickoffs; give the schedule (--schedule)"
    }
    assert (report["contest"], report["offered"]) == (None, 0)
    found = imports.read(content, schedule=schedule(SEA_MIA))
    (week,) = found.weeks
    assert [(p.player_id, p.positions, p.price) for p in week.players] == [
        ("DST-SEA", ("DST",), 4500),
        ("fd-777-1", ("WR",), 7000),
    ]
    assert (week.contest, week.ruleset, rulesets.load(week.ruleset).cap) == ("2020-W04", "fanduel-classic-1", 60_000)
    assert found.source.startswith("fanduel sha256:")


@pytest.mark.rule("C11")
@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (fd(price=""), "no price"),
        (fd("Miami Dolphins", position="D"), "'Miami Dolphins' is the name of MIA"),
        (fd().replace(",MIA,Q", ",NE,Q"), "SEA against NE is not the game SEA@MIA"),
        (fd().replace("777-1", "777"), "'777' is no Id of FanDuel"),
        (fd().replace("WR/FLEX", "MVP - 1.5X Points"), "of a single-game list (MVP)"),
    ],
)
def test_a_row_that_fanduel_prices_in_vain_is_refused_alone(row: str, reason: str) -> None:
    report = imports.report(lines(FD_HEADER, fd("Al Other", number=9), row), schedule=schedule(SEA_MIA))
    assert reason in only(report, "refused")["reason"]
    assert report["offered"] == 1


def test_a_fanduel_list_that_fits_several_seasons_asks_which() -> None:
    league = schedule(SEA_MIA, "2024_03_SEA_MIA,2024,3,SEA,MIA,2024-09-22T13:00:00-04:00,Home")
    report = imports.report(lines(FD_HEADER, fd()), 2024, schedule=league)
    assert report["contest"] == "2024-W03"
    with pytest.raises(Malformed, match="it holds 2020-W04, 2024-W03"):
        imports.report(lines(FD_HEADER, fd()), 2022, 4, schedule=league)


# --- plain CSV ------------------------------------------------------------------------------------


@pytest.mark.rule("C11")
def test_a_plain_csv_is_read_with_little_or_much_in_it() -> None:
    little = lines("name,position,team,price", "Jo Doe,wr,Seahawks,5000", "Dolphins,DST,MIA,3000")
    assert "give the schedule" in imports.report(little)["unmatched"][0]["reason"]
    (week,) = imports.read(little, 2020, 4, schedule=schedule(SEA_MIA)).weeks
    assert [p.player_id for p in week.players] == ["DST-MIA", "csv-jo-doe-sea"]
    much = lines(
        "player_id,name,positions,team,opponent,home_away,kickoff,season,week,price",
        "00-1,Jo Doe,WR/RB,SEA,MIA,away,2020-10-04T13:00:00-04:00,2020,4,5000",
        "00-2,Al Other,QB,MIA,SEA,home,2020-10-04T17:00:00Z,2020,4,6000",
        "00-3,Cy Third,QB,MIA,SEA,,2020-10-04T17:00:00Z,2020,4,6000",
    )
    report = imports.report(much)
    accounted(report)
    assert (report["contest"], report["offered"], report["format"]) == ("2020-W04", 3, "csv")
    assert report["matched"] == {"player_id": 3}


@pytest.mark.rule("C11")
@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("Jo Doe,WR,SEA,5000,SEA,away,", "SEA against itself"),
        ("Jo Doe,WR,SEA,5000,MIA,road,", "'road' is neither home nor away"),
        ("Jo Doe,WR,SEA,5000,MIA,away,2020-10-04 13:00", "has no offset from UTC"),
        ("Jo Doe,,SEA,5000,MIA,away,", "no position"),
        (",WR,SEA,5000,MIA,away,", "no name"),
    ],
)
def test_a_plain_row_that_cannot_be_read_is_refused_alone(row: str, reason: str) -> None:
    content = lines("name,position,team,price,opponent,home_away,kickoff", "Al Other,QB,MIA,6000,SEA,home,", row)
    report = imports.report(content, 2020, 4, schedule=schedule(SEA_MIA))
    assert reason in only(report, "refused")["reason"]
    assert report["offered"] == 1


def test_rows_that_state_their_week_and_rows_that_do_not_make_no_one_contest() -> None:
    content = lines(
        "name,position,team,price,opponent,home_away,kickoff,season,week",
        "Jo Doe,WR,SEA,5000,MIA,away,2020-10-04T13:00:00-04:00,2020,4",
        "Al Other,QB,MIA,6000,SEA,home,2020-10-04T13:00:00-04:00,,",
    )
    with pytest.raises(Malformed, match="state it in all rows or none"):
        imports.report(content)


def test_the_pool_that_a_contest_shows_can_be_imported_again() -> None:
    header = "player_id,name,positions,team,opponent,home_away,game_id,kickoff,price"
    content = lines(header, "00-1,Jo Doe,WR/RB,SEA,MIA,away,2020_04_SEA_MIA,2020-10-04T17:00:00Z,5000")
    (week,) = imports.read(content).weeks
    assert [(p.player_id, p.positions, p.game_id) for p in week.players] == [("00-1", ("WR", "RB"), "2020_04_SEA_MIA")]


# --- the schedule ---------------------------------------------------------------------------------


@pytest.mark.rule("C2", "C11")
def test_the_schedule_counts_and_each_difference_is_told() -> None:
    moved = "2020_04_SEA_MIA,2020,4,SEA,MIA,2020-10-05T19:05:00-04:00,Neutral"
    report = imports.report(dk_file(dk(), dk("Al Other", number=2, team="MIA")), schedule=schedule(moved))
    assert report["differences"] == [
        {
            "game_id": "2020_04_SEA_MIA",
            "what": "kickoff",
            "listed": "2020-10-04T17:00:00Z",
            "scheduled": "2020-10-05T23:05:00Z",
            "rows": 2,
        }
    ]
    (game,) = report["games"]
    assert (game["kickoff"], game["kickoff_zone"], game["weekday"]) == ("2020-10-05T23:05:00Z", "UTC", "Monday")


@pytest.mark.rule("C11")
@pytest.mark.parametrize(
    ("games", "reason"),
    [
        (["2020_07_SEA_MIA,2020,7,SEA,MIA,2020-10-25T13:00:00-04:00,Home"], "the schedule has SEA@MIA in 2020-W07"),
        (["2020_04_SEA_NE,2020,4,SEA,NE,2020-10-04T13:00:00-04:00,Home"], "the schedule has no game SEA@MIA in 2020"),
        (["2020_04_SEA_MIA,2020,4,SEA,MIA,,Home"], "the schedule has no kickoff for 2020_04_SEA_MIA yet"),
    ],
)
def test_a_game_that_the_schedule_has_elsewhere_or_not_at_all_is_unmatched(games: list[str], reason: str) -> None:
    others = [
        "2020_04_NYG_LA,2020,4,NYG,LA,2020-10-04T16:05:00-04:00,Home",
        "2020_04_ARI_CAR,2020,4,ARI,CAR,2020-10-04T16:05:00-04:00,Home",
    ]
    more = [
        dk("Al Other", number=8, game="NYG@LAR 10/04/2020 04:05PM ET", team="LAR"),
        dk("Cy Third", number=9, game="ARI@CAR 10/04/2020 04:05PM ET", team="CAR"),
    ]
    report = imports.report(dk_file(dk(), *more), schedule=schedule(*games, *others))
    assert reason in only(report, "unmatched")["reason"]
    assert report["offered"] == 2


@pytest.mark.rule("C11")
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "of the schedule: no column game_id"),
        (
            schedule(SEA_MIA, "x,2020,4,SEA,NE,2020-10-04T13:00:00-04:00,Home"),
            "SEA plays twice in this week, in line 2",
        ),
        (schedule("x,2020,4,SEA,XYZ,,Home"), "'XYZ' is no team that is known"),
        (schedule("x,2020,4,SEA,SEA,,Home"), "SEA against itself"),
        (schedule("x,2020,4,SEA,MIA,soon,Home"), "'soon' is not an ISO 8601 time"),
        (
            lines("game_id,season,week,away_team,home_team,gameday,gametime", "x,2020,4,SEA,MIA,1.1.2020,12:00"),
            "no time",
        ),
    ],
)
def test_a_schedule_that_cannot_be_read_says_where(content: bytes, reason: str) -> None:
    with pytest.raises(Malformed) as refusal:
        imports.read(dk_file(dk()), schedule=content)
    assert reason in str(refusal.value)


def test_a_schedule_as_nflverse_gives_it_out_has_days_and_eastern_times() -> None:
    league = lines("game_id,season,week,gameday,gametime,away_team,home_team", "g,2020,4,2020-10-04,16:25,SEA,MIA")
    assert imports.report(dk_file(dk()), schedule=league)["locks_at"] == "2020-10-04T20:25:00Z"


@pytest.mark.parametrize(
    ("text", "franchise"),
    [
        ("LAR", "LA"), ("la", "LA"), ("JAC", "JAX"), ("WSH", "WAS"), ("LVR", "LV"), ("OAK", "LV"), ("gnb", "GB"),
        ("SD", "LAC"), ("Seattle Seahawks", "SEA"), ("Seahawks ", "SEA"), ("49ers", "SF"), ("St. Louis Rams", "LA"),
        ("WAS Football Team", "WAS"), ("Redskins", "WAS"), ("New York", None), ("", None),
    ],
)  # fmt: skip
def test_a_team_is_known_by_every_name_it_goes_by_and_no_other(text: str, franchise: str | None) -> None:
    assert teams.franchise(text) == franchise


def test_a_franchise_is_called_what_it_was_called_that_season() -> None:
    names = [teams.abbreviation("LV", 2019), teams.abbreviation("LV", 2020), teams.abbreviation("LAC", 2016)]
    assert names == ["OAK", "LV", "SD"]
    assert {teams.franchise(team) for team in stadiums.ZONES} == set(FRANCHISES)
    (game,) = imports.report(dk_file(dk(game="LVR@MIA 09/24/2017 01:00PM ET", team="LVR")))["games"]
    assert game["game_id"] == "2017_03_OAK_MIA"


# --- players --------------------------------------------------------------------------------------


@pytest.mark.rule("C11")
@pytest.mark.parametrize(
    ("listed", "known"),
    [
        ("Odell Beckham Jr.", "Odell Beckham"),
        ("Kenneth Walker III", "kenneth walker"),
        ("D.J. Moore", "DJ Moore"),
        ("Ja'Marr Chase", "Ja’Marr Chase"),
        ("Amon-Ra St. Brown", "Amon Ra St Brown"),
        ("Audric Estime", "Audric Estimé"),
    ],
)
def test_names_are_one_whatever_their_case_accents_and_suffixes(listed: str, known: str) -> None:
    report = imports.report(dk_file(dk(listed)), players=directory(f"00-1,{known},WR,SEA"))
    assert (report["offered"], report["matched"]) == (1, {"name, team and position": 1})


@pytest.mark.rule("C11")
@pytest.mark.parametrize(
    ("known", "reason", "nearest"),
    [
        (["00-1,Josef Doe,WR,SEA"], "no known player has this name", ["Josef Doe (WR, SEA, 00-1)"]),
        (["00-1,Al Other,QB,NE"], "no known player has this name", []),
        (["00-1,Jo Doe,WR,NE"], "not with this team and position", ["Jo Doe (WR, NE, 00-1)"]),
        (["00-1,Jo Doe,QB,SEA"], "not with this team and position", ["Jo Doe (QB, SEA, 00-1)"]),
        (
            ["00-1,Jo Doe,WR,SEA", "00-2,Jo Doe,WR,SEA"],
            "fits 2 known players",
            ["Jo Doe (WR, SEA, 00-1)", "Jo Doe (WR, SEA, 00-2)"],
        ),
        (["00-1,J.Doe,,SEA"], "known by an initial only", ["J.Doe (SEA, 00-1)"]),
    ],
)
def test_a_row_that_fits_no_one_known_player_is_unmatched_with_the_nearest(
    known: list[str], reason: str, nearest: list[str]
) -> None:
    report = imports.report(dk_file(dk()), players=directory(*known))
    note = only(report, "unmatched")
    assert reason in note["reason"]
    assert note.get("nearest", []) == nearest
    assert "player_id,name,position,team" in report["notes"][0]
    own = lines("player_id,name,position,team", "00-7,Jo Doe,WR,Seattle Seahawks")
    if len(known) == 1:
        (player,) = imports.read(dk_file(dk()), players=[*directory(*known), own]).weeks[0].players
        assert player.player_id in ("00-7", "00-1")


@pytest.mark.rule("C11")
def test_the_team_of_a_player_is_the_last_one_up_to_the_week() -> None:
    header = "season,week,player_id,name,position,team"
    seen = ["2020,3,00-1,Jo Doe,WR,SEA", "2020,6,00-1,Jo Doe,WR,NE"]
    known = players.read(*directory(*seen, header=header))
    assert known.find("Jo Doe", "SEA", ("WR",), (2020, 4)).player_id == "00-1"
    assert known.find("Jo Doe", "NE", ("WR",), (2020, 6)).player_id == "00-1"
    assert known.find("Jo Doe", "NE", ("WR",), (2020, 4)).player_id is None
    assert known.find("Jo Doe", "SEA", ("WR",), (2019, 1)).player_id == "00-1"


@pytest.mark.rule("C11")
def test_two_john_lovetts_are_told_apart_by_the_directory_and_never_guessed() -> None:
    rows = [dk("John Lovett", number=1, position="RB"), dk("John Lovett", number=2, position="TE"), dk(number=3)]
    report = imports.report(dk_file(*rows))
    accounted(report)
    assert [(note["line"], "not certain whether" in note["reason"]) for note in report["refused"]] == [
        (2, True),
        (3, True),
    ]
    (duplicate,) = report["duplicates"]
    assert (duplicate["lines"], duplicate["name"]) == ([2, 3], "John Lovett")
    known = directory("00-1,John Lovett,RB,SEA", "00-2,John Lovett,TE,SEA", "00-3,Jo Doe,WR,SEA")
    report = imports.report(dk_file(*rows), players=known)
    assert report["offered"] == 3
    assert report["duplicates"][0]["outcome"] == "2 players: RB of SEA, TE of SEA"


@pytest.mark.rule("C11")
def test_one_name_on_two_teams_is_two_players_and_said_to_be() -> None:
    report = imports.report(dk_file(dk("Chris Thompson"), dk("Chris Thompson", number=2, team="MIA", position="RB")))
    assert report["offered"] == 2
    assert report["duplicates"] == [
        {"name": "Chris Thompson", "lines": [2, 3], "outcome": "2 players: RB of MIA, WR of SEA"}
    ]


@pytest.mark.rule("C11")
def test_two_rows_that_are_one_known_player_at_two_prices_are_both_refused() -> None:
    rows = [dk("Jo Doe", number=1), dk("Jo Doe", number=2, price="6000")]
    report = imports.report(dk_file(*rows), players=directory("00-1,Jo Doe,WR,SEA"))
    assert [note["reason"] for note in report["refused"]] == [
        "00-1 is listed again in line 3 with another price",
        "00-1 is listed again in line 2 with another price",
    ]
    accounted(report)


@pytest.mark.rule("C11")
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"name,position\nJo,WR\n", "of the players: no column player_id, team"),
        (lines("player_id,name,position,team", "00-1,,WR,SEA"), "of the players: empty"),
        (lines("player_id,name,position,team", "00-1,Jo Doe,WR,XYZ"), "'XYZ' is no team that is known"),
    ],
)
def test_a_players_file_that_cannot_be_read_says_where(content: bytes, reason: str) -> None:
    with pytest.raises(Malformed, match=reason):
        imports.read(dk_file(dk()), players=[content])


# --- whatever comes -------------------------------------------------------------------------------

HEADERS = [
    DK_HEADER,
    DK_HEADER + ",Status",
    FD_HEADER,
    "name,position,team,price,opponent,home_away,kickoff,season,week",
]


def attempt(read: Callable[[], imports.Import]) -> dict[str, Any] | None:
    try:
        report = read().report()
    except Malformed:
        return None
    accounted(report)
    return report


@given(st.binary(max_size=400), st.sampled_from([b"", *(header.encode() + b"\n" for header in HEADERS)]))
@settings(max_examples=300, deadline=None)
def test_no_bytes_break_the_reading(content: bytes, header: bytes) -> None:
    attempt(lambda: imports.read(header + content))
    attempt(lambda: imports.read(dk_file(dk()), schedule=content))
    attempt(lambda: imports.read(dk_file(dk()), players=[b"player_id,name,position,team\n" + content]))


CELL = st.one_of(
    st.sampled_from(
        [
            "", "WR", "QB", "DST", "D", "K", "WR/TE", "CPT", "5000", "0", "-1", "12.5", "1e9", "99999999999999999999",
            "SEA", "MIA", "NE", "LAR", "OAK", "XX", SUNDAY, "NE@SEA 10/04/2020 04:05PM ET", "SEA@MIA Postponed",
            "Final", "SEA@MIA", "SEA@SEA", "1-1", "7", "Jo Doe", "Jo Doe Jr.", "Seahawks", "away", "home",
            "2020-10-04T13:00:00-04:00", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2020", "4",
            "SEA@MIA 10/04/0001 01:00PM ET", "SEA@MIA 12/31/9999 11:00PM ET",
        ]
    ),
    st.text(max_size=8),
)  # fmt: skip


@given(st.sampled_from(HEADERS), st.lists(st.lists(CELL, min_size=7, max_size=18), max_size=8))
@settings(max_examples=300, deadline=None)
def test_any_cells_under_a_known_header_are_each_accounted_for(header: str, rows: list[list[str]]) -> None:
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(header.split(","))
    writer.writerows(row[: len(header.split(","))] for row in rows)
    content = out.getvalue().encode("utf-8", "replace")
    for league in (None, schedule(SEA_MIA)):
        attempt(lambda league=league: imports.read(content, schedule=league, players=directory("1,Jo Doe,WR,SEA")))  # type: ignore[misc]


OFFERS = st.lists(
    st.builds(
        dk,
        st.sampled_from(["Jo Doe", "Jo Doe Jr.", "Al Other", "John Lovett"]),
        number=st.integers(1, 4),
        position=st.sampled_from(["WR", "RB", "RB/WR", "DST"]),
        price=st.sampled_from(["5000", "5000", "6000", "0"]),
        game=st.sampled_from([SUNDAY, "NYG@LAR 10/04/2020 04:05PM ET", "SEA@MIA Postponed"]),
        team=st.sampled_from(["SEA", "MIA", "LAR"]),
    ),
    min_size=1,
    max_size=9,
)


@pytest.mark.rule("C11")
@given(OFFERS, st.integers(0, 2**32), st.booleans())
@settings(max_examples=200, deadline=None)
def test_the_order_of_the_rows_changes_nothing_of_the_offer(rows: list[str], seed: int, known: bool) -> None:
    shuffled = list(rows)
    random.Random(seed).shuffle(shuffled)
    lovett = directory("00-1,John Lovett,RB,SEA", "00-2,Jo Doe,WR,SEA", "00-3,Al Other,WR,MIA") if known else None
    one, other = (imports.read(dk_file(*some), 2020, 4, players=lovett).weeks[0] for some in (rows, shuffled))
    assert (one.players, one.games, one.locks_at, one.offered) == (
        other.players,
        other.games,
        other.locks_at,
        other.offered,
    )
    assert len(one.refused) == len(other.refused)
    assert one.report()["matched"] == other.report()["matched"]
