"""The built-in prices: the formula, what it may look at, and the files it reads and writes."""

import csv
import gzip
import hashlib
import io
import json
import random
import re
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.events import Game
from common.points import hundredths
from common.tables import Malformed
from contests import imports, price_files, pricing, rulesets
from contests.domain import Slot
from contests.pricing import Performance, Period, PricedWeek, PricingError, Sighting, price

from .helpers import data

pytestmark = pytest.mark.rule("C11")

ROOT = Path(__file__).resolve().parents[3]
RULES = rulesets.load()
WEEK = Period(2026, 3)
GAME = Game(game_id="2026_03_BUF_NE", away="BUF", home="NE", kickoff=datetime(2026, 9, 27, 17, tzinfo=UTC))


def played(player_id: str, week: int, points: str, team: str = "NE", season: int = 2026) -> Performance:
    return Performance(Period(season, week), player_id, team, hundredths(points))


def seen(
    player_id: str, week: int = 3, position: str = "RB", team: str = "NE", season: int = 2026, **more: Any
) -> Sighting:
    return Sighting(Period(season, week), player_id, f"Name of {player_id}", (position,), team, **more)


def prices(week: PricedWeek) -> dict[str, int]:
    return {player.player_id: player.price for player in week.players}


@cache
def season_of(season: int) -> tuple[list[Performance], list[Sighting]]:
    """What a season's pool file says that its players scored, and where they were."""
    performances = []
    text = gzip.decompress(data(f"pool_{season}_dk.csv.gz")).decode()
    for row in csv.DictReader(io.StringIO(text, newline="")):
        if row["player_id"] and row["recomputed_dk_points"]:
            period = Period(season, int(row["week"]))
            points = hundredths(row["recomputed_dk_points"])
            player_id, team = price_files.identity(row["player_id"]), price_files.franchise(row["team"])
            performances.append(Performance(period, player_id, team, points))
    roster = price_files.read_roster(data(f"pool_{season}_dk.csv.gz"), Period(season, 1))
    return performances, list(roster.sightings)


def schedule_of(season: int, week: int) -> price_files.Schedule:
    return price_files.read_schedule(data(f"pool_{season}_dk.csv.gz"), Period(season, week))


def real(season: int, week: int, performances: list[Performance] | None = None) -> PricedWeek:
    own, sightings = season_of(season)
    return price(
        Period(season, week),
        schedule_of(season, week).games,
        own if performances is None else performances,
        sightings,
        RULES,
    )


# --- the formula --------------------------------------------------------------------------------


def test_the_worked_example_of_the_documentation_is_what_the_function_gives() -> None:
    text = (ROOT / "docs/pricing.md").read_text()
    example = json.loads(re.search(r"```json\n(.*?)```", text, re.DOTALL)[1])  # type: ignore[index]
    performances = [
        played(one["player"], int(week), points) for one in example for week, points in one["points"].items()
    ]
    week = price(WEEK, [GAME], performances, [seen(one["player"]) for one in example], RULES)
    got = {player.player_id: (player.rating, player.price) for player in week.players}
    assert got == {one["player"]: (hundredths(one["rating"]), one["price"]) for one in example}
    by_hand = {"A": (1377, 6300), "B": (1181, 5700), "C": (854, 4600), "D": (0, 3000)}
    assert got == by_hand


def test_the_documentation_states_every_constant() -> None:
    text = (ROOT / "docs/pricing.md").read_text()
    for position, terms in pricing.TERMS.items():
        row = f"| {position} | {terms.floor:,} | {terms.typical:,} | {terms.ceiling:,} | {terms.bench / 100:.2f} |"
        assert row in text
    for name, value in (
        ("recency", f"{pricing.RECENCY}"),
        ("season", f"{pricing.SEASON} weeks"),
        ("prior", f"{pricing.PRIOR_GAMES} game"),
        ("absence", f"{pricing.ABSENCE}"),
        ("seen", f"{pricing.SEASONS_SEEN} season"),
        ("step", f"{pricing.STEP}"),
    ):
        assert f"| {name} | {value} |" in text
    assert f"`{pricing.VERSION}`" in text


def test_the_typical_prices_fill_the_default_roster_to_the_cap() -> None:
    typical = {position: terms.typical for position, terms in pricing.TERMS.items()}
    assert RULES.cap == pricing.CAP
    assert sum(3 * sum(typical[p] for p in slot.positions) // len(slot.positions) for slot in RULES.roster) == 150_000


@pytest.mark.parametrize(("season", "week"), [(2017, 2), (2017, 9), (2017, 17), (2020, 4), (2020, 16)])
def test_a_lineup_of_typical_starters_costs_about_the_cap(season: int, week: int) -> None:
    priced = real(season, week)
    assert abs(priced.typical_lineup - 50_000) <= 500
    for player in priced.players:
        terms = pricing.TERMS[player.positions[0]]
        assert terms.floor <= player.price <= terms.ceiling
        assert player.price % 100 == 0
    by_position: dict[str, list[int]] = {}
    for player in priced.players:
        by_position.setdefault(player.positions[0], []).append(player.price)
    need = {"QB": 1, "RB": 2, "WR": 3, "TE": 1, "DST": 1}
    cheapest = sum(sum(sorted(by_position[p])[:many]) for p, many in need.items()) + 3_000
    dearest = sum(sum(sorted(by_position[p])[-many:]) for p, many in need.items()) + 6_000
    assert cheapest < 35_000
    assert dearest > 60_000, "a cap that any lineup fits under would ask for no choice"


def test_another_cap_scales_the_prices_and_another_roster_shares_it_out() -> None:
    performances, sightings = season_of(2017)
    games = schedule_of(2017, 9).games
    higher = price(Period(2017, 9), games, performances, sightings, RULES.model_copy(update={"cap": 60_000}))
    assert abs(higher.typical_lineup - 60_000) <= 600
    assert {p.player_id: p.rating for p in higher.players} == {p.player_id: p.rating for p in real(2017, 9).players}
    small = RULES.model_copy(update={"roster": RULES.roster[:3]})  # QB, RB, RB
    few = price(Period(2017, 9), games, performances, sightings, small)
    assert {player.positions[0] for player in few.players} == {"QB", "RB"}
    assert abs(few.typical_lineup - 50_000) <= 1_000


def test_a_position_without_terms_is_refused_by_name() -> None:
    slot = RULES.roster[0].model_copy(update={"slot": "K", "positions": ("K",)})
    rules = RULES.model_copy(update={"roster": (*RULES.roster, slot)})
    with pytest.raises(PricingError, match="no prices for K; built-in are QB, RB, WR, TE, DST"):
        price(WEEK, [GAME], [], [], rules)


def test_who_has_not_played_for_long_falls_back_towards_his_position_and_then_is_not_offered() -> None:
    others = [played(f"o{number}", 2, "6.00") for number in range(5)]
    roster = [seen("star"), *(seen(f"o{number}") for number in range(5))]
    ratings = []
    for season, week in ((2026, 2), (2026, 1), (2025, 17), (2025, 1), (2024, 1)):
        star = [played("star", week, "30.00", season=season)]
        dated = price(WEEK, [GAME], star + others, roster, RULES)
        ratings.append(next(player.rating for player in dated.players if player.player_id == "star"))
    assert ratings == sorted(ratings, reverse=True)
    assert ratings[0] > 1800
    assert ratings[-1] < 1000
    gone = price(WEEK, [GAME], others, [*roster[1:], seen("star", 17, season=2024)], RULES)
    assert [(out.player_id, out.reason) for out in gone.left_out] == [("star", "last seen in 2024-W17")]


def test_a_week_missed_lowers_a_rating_and_a_bye_does_not() -> None:
    history = [played("a", 1, "15.00"), played("b", 1, "15.00", team="BUF")]
    roster = [seen("a"), seen("b", team="BUF")]
    ne_played = [*history, played("other", 2, "1.00", team="NE")]
    week = {player.player_id: player for player in price(WEEK, [GAME], ne_played, roster, RULES).players}
    assert week["a"].rating < week["b"].rating == 1500


def test_newcomers_cost_the_floor_and_in_a_first_week_without_history_all_do() -> None:
    roster = [seen(position, position=position) for position in pricing.TERMS]
    week = price(Period(2026, 1), [GAME], [], [seen(one.player_id, 1, one.player_id) for one in roster], RULES)
    assert prices(week) == {position: terms.floor for position, terms in pricing.TERMS.items()}
    last_season = [played(position, 17, "12.00", season=2025) for position in pricing.TERMS]
    week = price(Period(2026, 1), [GAME], last_season, [seen(p, 1, p) for p in pricing.TERMS], RULES)
    assert prices(week) == {position: terms.typical for position, terms in pricing.TERMS.items()}


def test_points_below_zero_count_and_never_make_a_price_below_the_floor() -> None:
    history = [played("bad", 2, "-3.00"), played("nil", 2, "0"), played("good", 2, "9.00")]
    week = price(WEEK, [GAME], history, [seen("bad"), seen("nil"), seen("good")], RULES)
    ratings = {player.player_id: player.rating for player in week.players}
    assert ratings["bad"] < ratings["nil"] < ratings["good"]
    assert prices(week)["bad"] == 3_000
    all_bad = [played("bad", 2, "-3.00"), played("nil", 2, "-4.00")]
    assert set(prices(price(WEEK, [GAME], all_bad, [seen("bad"), seen("nil")], RULES)).values()) == {3_000}


def test_a_team_defence_is_priced_like_every_position() -> None:
    history = [played("DST-NE", 2, "14.00"), played("DST-BUF", 2, "2.00", team="BUF")]
    roster = [seen("DST-NE", position="DST"), seen("DST-BUF", position="DST", team="BUF")]
    got = prices(price(WEEK, [GAME], history, roster, RULES))
    assert got["DST-NE"] == 3_200
    assert got["DST-BUF"] < 3_000


def test_a_player_is_priced_for_the_team_and_position_that_he_was_last_seen_at() -> None:
    roster = [
        Sighting(Period(2026, 1), "a", "Al Moved", ("WR",), "KC"),
        Sighting(Period(2026, 2), "a", "A.Moved", (), "NE", played=True),
        Sighting(Period(2026, 2), "a", "Al Moved", ("RB",), "KC"),  # a list that is out of date
        Sighting(Period(2026, 3), "a", "A.Moved", (), "BUF", played=True),  # not known before the game
        Sighting(Period(2026, 4), "a", "Al Moved", ("TE",), "LA"),
    ]
    (player,) = price(WEEK, [GAME], [], roster, RULES).players
    assert (player.name, player.positions, player.team) == ("Al Moved", ("RB",), "NE")


def test_who_cannot_be_priced_is_left_out_with_the_reason() -> None:
    roster = [
        seen("kicker", position="K"),
        Sighting(WEEK, "nobody knows", "N. Known", (), "NE"),
        seen("idle", team="KC"),
        seen("both"),
        seen("both", position="WR"),
    ]
    week = price(WEEK, [GAME], [], roster, RULES)
    assert [(out.player_id, out.reason) for out in week.left_out] == [
        ("kicker", "no slot of the roster takes K"),
        ("nobody knows", "no source tells his position"),
    ]
    assert week.idle == 1
    assert [player.positions for player in week.players] == [("RB", "WR")]


def test_contradictions_are_refused() -> None:
    with pytest.raises(PricingError, match="a has 100 and 200 hundredths in 2026-W02"):
        price(WEEK, [GAME], [played("a", 2, "1.00"), played("a", 2, "2.00")], [seen("a")], RULES)
    again = GAME.model_copy(update={"game_id": "2026_03_NE_KC", "away": "NE", "home": "KC"})
    with pytest.raises(PricingError, match="NE plays twice in one week: 2026_03_BUF_NE and 2026_03_NE_KC"):
        price(WEEK, [GAME, again], [], [], RULES)
    with pytest.raises(PricingError, match="no game"):
        price(WEEK, [], [], [], RULES)
    twice = [played("a", 2, "1.00")] * 2  # the same file given twice
    assert price(WEEK, [GAME], twice, [seen("a")], RULES) == price(WEEK, [GAME], twice[:1], [seen("a")], RULES)


# --- what holds for any input -------------------------------------------------------------------

histories = st.lists(
    st.tuples(
        st.sampled_from([f"p{number}" for number in range(12)]),
        st.integers(2025, 2026),
        st.integers(1, 6),
        st.integers(-500, 5000),
    ),
    max_size=60,
    unique_by=lambda row: row[:3],
)


def of(rows: list[tuple[str, int, int, int]]) -> tuple[list[Performance], list[Sighting]]:
    """Performances of players whose number says their position and team."""
    positions, teams = list(pricing.TERMS), ("NE", "BUF", "KC")
    performances = [
        Performance(Period(season, week), player_id, teams[int(player_id[1:]) % 3], points)
        for player_id, season, week, points in rows
    ]
    roster = [seen(f"p{n}", position=positions[n % 5], team=teams[n % 3], week=1, season=2026) for n in range(12)]
    return performances, roster


@given(histories, st.randoms())
def test_the_order_of_rows_does_not_matter(rows: list[tuple[str, int, int, int]], shuffle: random.Random) -> None:
    performances, roster = of(rows)
    first = price(WEEK, [GAME], performances, roster, RULES)
    shuffle.shuffle(performances)
    shuffle.shuffle(roster)
    assert price(WEEK, [GAME], performances, roster, RULES) == first


@given(histories, st.integers(-1000, 9000))
def test_nothing_of_the_week_itself_or_later_changes_a_price(
    rows: list[tuple[str, int, int, int]], points: int
) -> None:
    performances, roster = of(rows)
    known = price(WEEK, [GAME], performances, roster, RULES)
    changed = [
        one if one.period < WEEK else Performance(one.period, one.player_id, "NE", points) for one in performances
    ]
    without = [one for one in performances if one.period < WEEK]
    assert price(WEEK, [GAME], changed, roster, RULES) == known
    assert price(WEEK, [GAME], without, roster, RULES) == known
    appeared = [Sighting(one.period, one.player_id, "X", ("TE",), "BUF", played=True) for one in performances]
    later = [one for one in appeared if one.period >= WEEK]
    assert price(WEEK, [GAME], performances, roster + later, RULES) == known


@given(histories, st.lists(st.tuples(st.integers(1, 2), st.integers(-500, 4000), st.integers(0, 2000)), max_size=2))
def test_of_two_with_the_same_games_who_scored_more_never_costs_less(
    rows: list[tuple[str, int, int, int]], pairs: list[tuple[int, int, int]]
) -> None:
    performances, roster = of(rows)
    weeks = {week: (less, less + more) for week, less, more in pairs}
    for week, (less, more) in weeks.items():
        performances += [Performance(Period(2026, week), "less", "NE", less)]
        performances += [Performance(Period(2026, week), "more", "NE", more)]
    got = prices(price(WEEK, [GAME], performances, [*roster, seen("less"), seen("more")], RULES))
    assert got["less"] <= got["more"]


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_a_better_past_game_never_lowers_a_real_players_price(draw: st.DataObject) -> None:
    performances, _ = season_of(2017)
    earlier = [at for at, one in enumerate(performances) if one.period < Period(2017, 9)]
    at = draw.draw(st.sampled_from(earlier))
    one = performances[at]
    better = performances.copy()
    better[at] = Performance(one.period, one.player_id, one.team, one.points + draw.draw(st.integers(1, 3000)))
    before, after = prices(real(2017, 9)), prices(real(2017, 9, better))
    if one.player_id in before:
        assert after[one.player_id] >= before[one.player_id]


# --- real weeks and files ------------------------------------------------------------------------


def test_a_priced_week_is_the_same_on_every_machine() -> None:
    schedule = schedule_of(2017, 9)
    content = price_files.write(real(2017, 9), schedule.neutral)
    assert hashlib.sha256(content).hexdigest() == "c8103b84fc43d34e9f273a50efaf4abedbe3220ee1b258acb63dd9de33a1903a"


def test_a_priced_week_is_a_salary_file_like_any_other() -> None:
    schedule = schedule_of(2017, 9)
    priced = real(2017, 9)
    content = price_files.write(priced, schedule.neutral)
    (week,) = imports.read(content).weeks
    assert week.contest == "2017-W09"
    assert week.rows == len(priced.players)
    assert not week.unmatched
    assert {note.reason.split(":")[0] for note in week.refused} == {"outside the covered days"}
    listed = imports.read(data("pool_2017_dk.csv.gz"), 2017, 9).weeks[0]
    assert (week.games, week.locks_at) == (listed.games, listed.locks_at)
    got = {
        price_files.identity(player.player_id): (player.positions, price_files.franchise(player.team), player.price)
        for player in week.players
    }
    want = {player.player_id: (player.positions, player.team, player.price) for player in priced.players}
    assert {"OAK"} < {player.team for player in week.players}
    assert got.items() <= want.items()
    rows = list(csv.DictReader(io.StringIO(content.decode(), newline="")))
    assert {row["priced_by"] for row in rows} == {pricing.VERSION}
    assert [int(row["salary"]) for row in rows] == sorted((int(row["salary"]) for row in rows), reverse=True)


def test_a_game_on_neutral_ground_stays_so() -> None:
    schedule = schedule_of(2017, 8)
    assert schedule.neutral == {"2017_08_MIN_CLE"}
    (week,) = imports.read(price_files.write(real(2017, 8), schedule.neutral)).weeks
    assert {game.kickoff_zone for game in week.games if game.game_id == "2017_08_MIN_CLE"} == {"UTC"}


def test_a_schedule_and_a_pool_file_give_the_same_games() -> None:
    lines = ["game_id,season,week,kickoff,away_team,home_team,location"]
    for game in schedule_of(2017, 8).games:
        place = "Neutral" if game.game_id == "2017_08_MIN_CLE" else "Home"
        lines.append(f"{game.game_id},2017,8,{game.kickoff.isoformat()},{game.away},{game.home},{place}")
    lines.append("2017_09_BUF_NYJ,2017,9,2017-11-02T20:25:00-04:00,BUF,NYJ,Home")
    schedule = price_files.read_schedule("\n".join(lines).encode(), Period(2017, 8))
    assert schedule == schedule_of(2017, 8)


HEADER = b"game_id,season,week,kickoff,away_team,home_team\n"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            b"season,week\n2026,3\n",
            "line 1: this is no schedule: no column game_id, away_team, home_team; accepted: .*gameday and gametime",
        ),
        (b"", "line 1: this is no schedule: no column game_id, season"),
        (HEADER + b"g,2026,3,tomorrow,BUF,NE\n", "line 2, column kickoff: .*'tomorrow' is not an ISO 8601 time"),
        (HEADER + b"g,2026,3,,BUF,NE\n", "column kickoff: g has none yet; prices need the week's games"),
        (HEADER + b"g,2026,4,2026-10-04T13:00:00Z,BUF,NE\n", "no game of 2026-W03"),
    ],
    ids=["other columns", "empty", "no time", "not set yet", "another week"],
)
def test_a_schedule_that_cannot_be_used_is_refused_with_the_place(content: bytes, said: str) -> None:
    with pytest.raises(Malformed, match=said):
        price_files.read_schedule(content, WEEK)


def test_a_team_that_moved_keeps_its_past_and_is_written_as_it_is_called() -> None:
    statistics = b"season,week,player_id,name,team\n2019,17,00-1,D.Carr,OAK\n2019,17,DST-OAK,OAK,OAK\n"
    appearances = list(price_files.read_appearances(statistics))
    roster = b"player_id,name,position,team,season,week\n00-1,Derek Carr,QB,OAK,2019,17\n,Raiders,DST,OAK,2019,17\n"
    sightings = [*appearances, *price_files.read_roster(roster, Period(2020, 1)).sightings]
    performances = [
        Performance(Period(2019, 17), price_files.identity(player_id), price_files.franchise("OAK"), 1000)
        for player_id in ("00-1", "DST-OAK")
    ]
    content = HEADER + b"2020_01_LV_CAR,2020,1,2020-09-13T13:00:00-04:00,LV,CAR\n"
    schedule = price_files.read_schedule(content, Period(2020, 1))
    priced = price(Period(2020, 1), schedule.games, performances, sightings, RULES)
    rows = list(csv.DictReader(io.StringIO(price_files.write(priced).decode(), newline="")))
    assert {(row["player_id"], row["team"], row["games"]) for row in rows} == {
        ("00-1", "LV", "1"),
        ("DST-LV", "LV", "1"),
    }
    before = price_files.read_schedule(
        HEADER + b"2019_17_OAK_DEN,2019,17,2019-12-29T16:25:00-05:00,OAK,DEN\n", Period(2019, 17)
    )
    known = [one for one in sightings if not one.played]
    rows = list(
        csv.DictReader(
            io.StringIO(price_files.write(price(Period(2019, 17), before.games, [], known, RULES)).decode(), newline="")
        )
    )
    assert {(row["player_id"], row["team"], row["opponent"]) for row in rows} == {
        ("00-1", "OAK", "DEN"),
        ("DST-OAK", "OAK", "DEN"),
    }


def test_a_roster_may_be_undated_and_rows_without_an_id_are_counted() -> None:
    content = b"team,player_id,name,position\nNE,00-1,One,RB/WR\nNE,,Two,WR\nNE,,Patriots,DST\n"
    roster = price_files.read_roster(content, WEEK)
    assert roster.unidentified == 1
    assert [(one.period, one.player_id, one.positions) for one in roster.sightings] == [
        (WEEK, "00-1", ("RB", "WR")),
        (WEEK, "DST-NE", ("DST",)),
    ]
    with pytest.raises(Malformed, match="column position: is missing"):
        price_files.read_roster(b"team,player_id,name\nNE,00-1,One\n", WEEK)


def test_positions_are_read_as_salary_lists_mean_them() -> None:
    content = b"player_id,name,position,team\n00-1,One,FB,NE\n,Patriots,D/ST,NE\n00-2,Two,wr/te,NE\n"
    roster = price_files.read_roster(content, WEEK)
    assert [(one.player_id, one.positions) for one in roster.sightings] == [
        ("00-1", ("RB",)),
        ("DST-NE", ("DST",)),
        ("00-2", ("WR", "TE")),
    ]


def test_the_report_counts_what_was_priced() -> None:
    report = price_files.report(real(2017, 9))
    assert report["contest"] == "2017-W09"
    assert report["players"] == sum(of["players"] for of in report["positions"].values())
    assert report["games"] == 13
    assert report["positions"]["DST"]["players"] == 26
    assert report["positions"]["DST"]["without_history"] == 0


def test_all_games_of_the_week_count_and_slots_that_nobody_fills_are_named() -> None:
    defences = [Sighting(Period(2026, 1), f"DST-{team}", team, ("DST",), team) for team in ("BUF", "NE")]
    backs = [Sighting(Period(2026, 1), f"back-{number}", f"Back {number}", ("RB",), "NE") for number in range(3)]
    week = price(WEEK, [GAME], [], [*defences, *backs], RULES)
    assert pricing.unfilled(week, RULES) == ("QB", "WR1", "WR2", "WR3", "TE")
    assert pricing.unfilled(real(2017, 9), RULES) == ()
    nobody = price(WEEK, [GAME], [], [], RULES)
    assert price_files.report(nobody)["games"] == 1
    with pytest.raises(PricingError, match=r"0 players of 1 games fill no lineup for 2026-W03: .*QB, .*--players"):
        price_files.require_lineup(nobody, RULES)


def test_a_player_of_two_positions_fills_one_slot_and_makes_room_where_he_can() -> None:
    slots = (Slot(slot="RB", positions=("RB",)), Slot(slot="WR", positions=("WR",)))
    small = RULES.model_copy(update={"roster": slots})
    both = Sighting(Period(2026, 1), "a", "A", ("RB", "WR"), "NE")
    back = Sighting(Period(2026, 1), "b", "B", ("RB",), "NE")
    assert pricing.unfilled(price(WEEK, [GAME], [], [both, back], small), small) == ()
    assert pricing.unfilled(price(WEEK, [GAME], [], [both], small), small) == ("WR",)
