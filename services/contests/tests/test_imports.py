import gzip
from collections import Counter
from datetime import timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.tables import MOST_BYTES, Malformed
from contests import imports, stadiums

from .helpers import HEADER, MONDAY, THURSDAY, data, pool_file, row

NEXT_YEAR = MONDAY | {"kickoff": "2027-10-04T13:00:00-04:00"}


@pytest.mark.rule("C1", "C2", "C11")
def test_the_whole_season_of_2017_imports_with_every_row_accounted_for() -> None:
    report = imports.report(data("pool_2017_dk.csv.gz"))
    assert (report["rows"], len(report["weeks"])) == (6828, 17)
    for week in report["weeks"]:
        assert week["rows"] == week["offered"] + len(week["unmatched"]) + len(week["refused"])
        assert {game["weekday"] for game in week["games"]} <= {"Sunday", "Monday"}
        sundays = [game["kickoff"] for game in week["games"] if game["weekday"] == "Sunday"]
        assert week["locks_at"] == min(sundays)
    reasons = Counter(note["reason"].split(":")[0] for note in report["refused"])
    assert reasons == {"outside the covered days": 549, "the price 0 is not above zero": 72, "no price": 12}


@pytest.mark.rule("C11")
def test_rows_of_games_that_moved_to_another_week_are_unmatched() -> None:
    report = imports.report(data("pool_2020_dk.csv.gz"))
    assert len(report["unmatched"]) == 77
    assert {note["reason"].split(" ")[3] for note in report["unmatched"]} == {"DEN", "NE", "PIT", "TEN"}
    assert report["rows"] == report["offered"] + len(report["unmatched"]) + len(report["refused"])


def test_one_week_of_a_file_can_be_asked_for() -> None:
    report = imports.report(data("pool_2017_dk.csv.gz"), 2017, 4)
    assert (report["contest"], report["rows"], report["other_rows"]) == ("2017-W04", 431, 6828 - 431)
    assert report["locks_at"] == "2017-10-01T17:00:00Z"
    with pytest.raises(Malformed, match="it holds 2017-W01"):
        imports.report(data("pool_2017_dk.csv.gz"), 2017, 19)


@pytest.mark.rule("C2")
def test_a_contest_locks_at_its_first_sunday_game_and_else_at_its_first_game() -> None:
    sunday_late = {"kickoff": "2026-10-04T23:59:00-04:00"}  # a Monday in UTC
    (week,) = imports.read(pool_file(row(**MONDAY), row(**sunday_late))).weeks
    assert week.locks_at
    assert week.locks_at.isoformat() == "2026-10-05T03:59:00+00:00"
    (week,) = imports.read(pool_file(row(**MONDAY))).weeks
    assert week.locks_at
    assert week.locks_at.isoformat() == "2026-10-06T00:15:00+00:00"
    (week,) = imports.read(pool_file(row(**THURSDAY))).weeks
    assert week.locks_at is None
    (week,) = imports.read(pool_file(row(**THURSDAY), row()), days=["Thursday", "Sunday"]).weeks
    assert len(week.games) == 2


@pytest.mark.rule("C2")
@pytest.mark.parametrize(
    ("game_id", "zone", "kickoff"),
    [
        ("2017_04_OAK_DEN", "America/Denver", "14:25"),
        ("2017_04_PHI_LAC", "America/Los_Angeles", "13:05"),
        ("2017_04_SF_ARI", "America/Phoenix", "13:05"),
        ("2017_04_IND_SEA", "America/Los_Angeles", "17:30"),
        ("2017_04_LA_DAL", "America/Chicago", "12:00"),
        ("2017_04_TEN_HOU", "America/Chicago", "12:00"),
        ("2017_04_DET_MIN", "America/Chicago", "12:00"),
        ("2017_04_CIN_CLE", "America/New_York", "13:00"),
        ("2017_13_NYG_OAK", "America/Los_Angeles", "13:25"),
        ("2017_08_MIN_CLE", "UTC", "01:30"),  # in London; the file says half past nine in the evening, New York
        ("2017_11_NE_OAK", "UTC", "21:25"),  # in Mexico City
    ],
)
def test_a_kickoff_is_kept_in_utc_with_the_zone_of_its_stadium(game_id: str, zone: str, kickoff: str) -> None:
    weeks = imports.read(data("pool_2017_dk.csv.gz")).weeks
    (game,) = (game for week in weeks for game in week.games if game.game_id == game_id)
    assert game.kickoff.utcoffset() == timedelta(0)
    assert game.kickoff_zone == zone
    assert f"{game.kickoff.astimezone(ZoneInfo(game.kickoff_zone)):%H:%M}" == kickoff


@pytest.mark.rule("C2")
@pytest.mark.parametrize("season", [2017, 2020])
def test_every_home_team_of_the_data_has_a_zone_that_exists(season: int) -> None:
    games = [game for week in imports.read(data(f"pool_{season}_dk.csv.gz")).weeks for game in week.games]
    assert {game.home for game in games} <= set(stadiums.ZONES)
    assert set(stadiums.ZONES.values()) <= available_timezones()


@pytest.mark.rule("C2")
def test_neutral_ground_is_shown_in_utc_whatever_team_is_called_home() -> None:
    elsewhere = row(game_id="2026_04_XYZ_ABC", team="ABC", opponent="XYZ")
    (week,) = imports.read(flagged((row(), "1"), (row(**MONDAY), "0"), (elsewhere, ""))).weeks
    assert {game.home: game.kickoff_zone for game in week.games} == {"NE": "UTC", "DEN": "America/Denver", "ABC": "UTC"}
    assert {game["kickoff_zone"] for game in week.report()["games"]} == {"UTC", "America/Denver"}


@pytest.mark.rule("C11")
@pytest.mark.parametrize(("flag", "reason"), [("yes", "'yes' is neither 0 nor 1"), ("0", "line 2 says otherwise")])
def test_a_file_that_is_not_sure_of_its_ground_is_refused(flag: str, reason: str) -> None:
    with pytest.raises(Malformed) as refusal:
        imports.read(flagged((row(), "1"), (row(), flag)))
    (fault,) = refusal.value.faults
    assert (fault.line, fault.column) == (3, "neutral_site")
    assert reason in fault.reason


def flagged(*rows: tuple[str, str]) -> bytes:
    """A pool file with the column that says whether the ground is neutral."""
    header, *lines = pool_file(*(text for text, _ in rows)).decode().splitlines()
    with_flags = [f"{line},{flag}" for line, (_, flag) in zip(lines, rows, strict=True)]
    return "\r\n".join([f"{header},neutral_site", *with_flags]).encode()


@pytest.mark.rule("C11")
@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"salary": ""}, "no price"),
        ({"salary": "0"}, "not above zero"),
        ({"salary": "-100"}, "not above zero"),
        ({"salary": "5000.5"}, "fractional"),
        ({"position": "K"}, "no slot of the roster takes K"),
        (THURSDAY, "outside the covered days: 2026_04_SEA_LA is on a Thursday"),
    ],
)
def test_a_row_that_cannot_be_offered_is_refused_with_its_reason(cells: dict[str, str], reason: str) -> None:
    report = imports.report(pool_file(row(), row(**cells), row()))
    assert (report["rows"], report["offered"], report["players"]) == (3, 2, 2)
    (note,) = report["refused"]
    assert note["line"] == 3
    assert reason in note["reason"]


@pytest.mark.rule("C11")
def test_a_player_listed_under_two_positions_is_one_player_when_that_is_certain() -> None:
    twice = {"player_id": "00-1", "name": "Taysom Hill"}
    report = imports.report(
        pool_file(row(**twice, position="QB"), row(**twice, position="TE"), row(**twice, position="QB"))
    )
    assert (report["offered"], report["players"], report["merged"]) == (2, 1, [{"line": 3, "into": 2}])
    assert [(note["line"], note["reason"]) for note in report["refused"]] == [(4, "listed twice: the same as line 2")]
    (week,) = imports.read(pool_file(row(**twice, position="QB"), row(**twice, position="TE"))).weeks
    assert week.players[0].positions == ("QB", "TE")


@pytest.mark.rule("C11")
def test_an_id_listed_twice_with_different_prices_is_refused_both_times() -> None:
    report = imports.report(
        pool_file(row(player_id="00-1", name="A", salary=5000), row(player_id="00-1", name="A", salary=6000))
    )
    assert report["offered"] == 0
    assert [note["reason"] for note in report["refused"]] == [
        "00-1 is listed again in line 3 with another price",
        "00-1 is listed again in line 2 with another price",
    ]


@pytest.mark.rule("C11")
def test_two_rows_of_one_name_and_team_are_two_players_only_with_two_certain_ids() -> None:
    lovetts = [row(name="John Lovett", position=position) for position in ("RB", "TE")]
    assert imports.report(pool_file(*lovetts))["offered"] == 2
    unsure = [row(name="John Lovett", position="RB"), row(name="John  lovett", position="TE", player_id="")]
    report = imports.report(pool_file(*unsure, row()))
    assert report["offered"] == 1
    assert ["not certain" in note["reason"] for note in report["refused"]] == [True, True]


def test_ids_come_from_the_player_then_the_source_and_a_defence_is_named_by_its_team() -> None:
    rows = [
        row(player_id="", source_player_id="dk-9"),
        row(player_id="", source_player_id="dk-8", position="DST"),
        row(player_id="00-7", salary="5000.0"),
    ]
    (week,) = imports.read(pool_file(*rows)).weeks
    assert {player.player_id for player in week.players} == {"dk-9", "DST-NE", "00-7"}
    assert {(player.team, player.opponent) for player in week.players} == {("NE", "BUF")}


@pytest.mark.rule("C11")
@pytest.mark.parametrize(
    ("content", "line", "column", "reason"),
    [
        (b"", 1, None, "it has no columns; accepted: a DKSalaries.csv"),
        (b"Entry ID,Contest Name\r\n", 1, None, "no list of players that is known: its columns are 'Entry ID"),
        (b"game_id,season,week,away_team,home_team\n", 1, None, "this is a schedule; give it beside a list"),
        (HEADER.replace("kickoff", "kick").encode(), 1, None, "no column kickoff"),
        (f"{HEADER},week\n".encode(), 1, "week", "comes twice"),
        (pool_file(row(), row(salary="five")), 3, "salary", "'five' is not a price"),
        (pool_file(row(), row(salary="NaN")), 3, "salary", "'NaN' is not a price"),
        (pool_file(row(), row(week="four")), 3, "week", "'four' is not a whole number"),
        (pool_file(row(), row(season="²")), 3, "season", "is not a whole number"),
        (pool_file(row(), row(name="")), 3, "name", "empty"),
        (pool_file(row(), row(name="a\0b")), 3, "name", "do not print"),
        (pool_file(row(), row(player_id="", source_player_id="")), 3, "player_id", "neither"),
        (pool_file(row(), row(kickoff="soon")), 3, "kickoff", "not an ISO 8601 time"),
        (pool_file(row(), row(kickoff="2026-10-04T13:00:00")), 3, "kickoff", "no offset"),
        (pool_file(row(), row(kickoff="2026-10-04T16:25:00-04:00")), 3, "kickoff", "in line 2"),
        (
            pool_file(row(), row(**THURSDAY), row(**(MONDAY | {"kickoff": "2027-10-04T13:00:00-04:00"}))),
            4,
            "kickoff",
            "far from",
        ),
        (pool_file(row(), row(home_away="away")), 3, "team", "BUF at NE in line 2, NE at BUF here"),
        (pool_file(row(), row(home_away="")), 3, "home_away", "neither home nor away"),
        (pool_file(row(), row(opponent="NE")), 3, "opponent", "no opponent"),
        (pool_file(row(), row() + ",more"), 3, None, "13 fields"),
        (pool_file(row(), "2026,4,x"), 3, "player_id", "ends after 3 of 12"),
        (pool_file(row(), '"2026"4,'), 3, None, "not CSV"),
        (pool_file(row()) + b"\xff", 3, None, "not UTF-8"),
        (gzip.compress(pool_file(row()), mtime=0)[:-9], None, None, "cut short"),
        (b"\x1f\x8b nonsense", None, None, "damaged"),
        (gzip.compress(b"\0" * (MOST_BYTES + 1), mtime=0), None, None, "unpacks to more"),
    ],
)
def test_a_malformed_file_imports_nothing_and_says_where(content: bytes, line: int, column: str, reason: str) -> None:
    with pytest.raises(Malformed) as refusal:
        imports.read(content)
    fault = refusal.value.faults[0]
    assert (fault.line, fault.column) == (line, column)
    assert reason in fault.reason


def test_all_bad_rows_of_a_file_are_named_at_once() -> None:
    with pytest.raises(Malformed) as refusal:
        imports.read(pool_file(row(salary="x"), row(), row(week="y")))
    assert [(fault.line, fault.column) for fault in refusal.value.faults] == [(2, "salary"), (4, "week")]


def test_gzip_bom_line_endings_and_blank_lines_make_no_difference() -> None:
    rows = [row(name="Ja’Marr, Chase"), row()]
    plain = pool_file(*rows)
    reports = [
        imports.report(content) | {"source": ""}
        for content in (
            plain,
            gzip.compress(plain, mtime=0),
            b"\xef\xbb\xbf" + plain,
            plain.replace(b"\r\n", b"\n").rstrip(b"\n"),
            plain + b"\r\n\r\n",
        )
    ]
    assert all(report == reports[0] for report in reports)
    assert reports[0]["offered"] == 2


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["5000", "0", "", "12.5", "6000"]),
            st.sampled_from(["A", "B"]),
            st.sampled_from(["", "00-1", "00-2"]),
            st.sampled_from(["QB", "RB", "RB/WR", "K"]),
            st.sampled_from([{}, MONDAY, THURSDAY, {"game_id": ""}]),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_each_row_is_in_exactly_one_of_offered_unmatched_and_refused(
    rows: list[tuple[str, str, str, str, dict[str, str]]],
) -> None:
    content = pool_file(
        *(
            row(salary=price, name=name, player_id=player, position=position, **game)
            for price, name, player, position, game in rows
        )
    )
    (week,) = imports.read(content).weeks
    noted = [note.line for note in (*week.unmatched, *week.refused)]
    assert len(set(noted)) == len(noted)
    assert week.offered + len(noted) == week.rows == len(rows)
    assert len(week.players) + len(week.merged) == week.offered
    assert len({player.player_id for player in week.players}) == len(week.players)
