"""The real schedule of ten seasons, with all its oddities, by another reckoning of weekdays, offsets and locks."""

import csv
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.events import Game
from contests.domain import DAYS, Coverage, Day, lock_instant, sunday_of, weekday

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "uv.lock").exists())
REAL = ROOT.parent / "shared" / "data" / "schedules_2017_2026.csv"
needs_the_real_one = pytest.mark.skipif(not REAL.exists(), reason="the schedule of ten seasons is not here")

SLATES: tuple[tuple[Day, ...], ...] = (
    ("Sunday", "Monday"),
    ("Sunday",),
    ("Monday", "Tuesday"),
    ("Wednesday",),
    ("Thursday", "Friday"),
    ("Saturday", "Sunday", "Monday"),
    DAYS,
)


def first_sunday(year: int, month: int) -> date:
    first = date(year, month, 1)
    return first + timedelta(days=(6 - first.weekday()) % 7)


def hours_behind(day: date) -> int:
    """How far US Eastern is behind UTC after two in the morning of a day, by the rule of 2007 and no time zone data."""
    begins, ends = first_sunday(day.year, 3) + timedelta(days=7), first_sunday(day.year, 11)
    return 4 if begins <= day < ends else 5


def by_the_rule(day: date, clock: str) -> datetime:
    """A time of a day in US Eastern, as an aware UTC time."""
    hour, minute = map(int, clock.split(":"))
    return datetime(day.year, day.month, day.day, hour, minute, tzinfo=UTC) + timedelta(hours=hours_behind(day))


def real_weeks() -> Iterator[tuple[str, list[tuple[Game, date]]]]:
    """Each week of ten seasons: its games and the day of each, US Eastern."""
    weeks: dict[str, list[tuple[Game, date]]] = defaultdict(list)
    with REAL.open(newline="") as file:
        for row in csv.DictReader(file):
            game = Game(
                game_id=row["game_id"],
                away=row["away_team"],
                home=row["home_team"],
                kickoff=datetime.fromisoformat(row["kickoff"]),
            )
            weeks[f"{row['season']} {row['week']}"].append((game, date.fromisoformat(row["gameday"])))
    yield from weeks.items()


@needs_the_real_one
@pytest.mark.rule("C1", "C2")
def test_every_real_game_is_of_its_own_week_whatever_its_day_and_no_game_of_another_week_is() -> None:
    seen = 0
    weeks = dict(real_weeks())
    for name, games in weeks.items():
        sunday = sunday_of([game.kickoff for game, _ in games])
        assert sunday.weekday() == 6
        every = Coverage(DAYS, sunday)
        for game, day in games:
            assert every.covers(game.kickoff), game
            assert weekday(game.kickoff) == DAYS[day.weekday()], game
            seen += 1
        usual = Coverage(("Sunday", "Monday"), sunday)
        for other, others in weeks.items():
            if other != name:
                assert not [game for game, _ in others if usual.covers(game.kickoff)], (name, other)
    assert seen == 2766


@needs_the_real_one
@pytest.mark.rule("C1", "C2")
@pytest.mark.parametrize("days", SLATES, ids="-".join)
def test_every_real_week_locks_at_its_first_sunday_kickoff_else_at_its_first(days: tuple[Day, ...]) -> None:
    early_sundays = locks = 0
    with REAL.open(newline="") as file:
        clocks = {row["game_id"]: row["gametime_et"] for row in csv.DictReader(file)}
    for _, games in real_weeks():
        coverage = Coverage(days, sunday_of([game.kickoff for game, _ in games]))
        covered = [game for game, _ in games if coverage.covers(game.kickoff)]
        kickoffs = sorted(
            (DAYS[day.weekday()] != "Sunday", by_the_rule(day, clocks[game.game_id]))
            for game, day in games
            if DAYS[day.weekday()] in days
        )
        assert bool(covered) == bool(kickoffs)
        if not covered:
            continue
        assert lock_instant(covered) == kickoffs[0][1]
        locks += 1
        early_sundays += not kickoffs[0][0] and covered[0].kickoff.hour in (13, 14) and days == ("Sunday", "Monday")
    assert locks > 0
    if days == ("Sunday", "Monday"):
        assert early_sundays >= 25, "kickoffs at 9:30 overseas, in summer time (13:30 UTC) and after it (14:30 UTC)"


@pytest.mark.rule("C1", "C2")
@pytest.mark.parametrize(
    ("kickoffs", "sunday", "lock"),
    [
        # 9:30 in London: before the change of clocks in the United States, and after it.
        (["2017-10-01T09:30:00-04:00", "2017-10-01T13:00:00-04:00"], "2017-10-01", "2017-10-01T13:30:00Z"),
        (["2022-11-13T09:30:00-05:00", "2022-11-13T13:00:00-05:00"], "2022-11-13", "2022-11-13T14:30:00Z"),
        # The Sunday on which summer time ends: one in the afternoon is 18:00 UTC, a week before it was 17:00.
        (["2020-11-01T13:00:00-05:00", "2020-11-02T20:15:00-05:00"], "2020-11-01", "2020-11-01T18:00:00Z"),
        (["2020-10-25T13:00:00-04:00", "2020-10-26T20:15:00-04:00"], "2020-10-25", "2020-10-25T17:00:00Z"),
        # A game that was moved to the Tuesday after, and one to the Wednesday after.
        (["2020-10-11T13:00:00-04:00", "2020-10-13T19:00:00-04:00"], "2020-10-11", "2020-10-11T17:00:00Z"),
        (["2020-11-29T13:00:00-05:00", "2020-12-02T15:40:00-05:00"], "2020-11-29", "2020-11-29T18:00:00Z"),
        # Christmas on a Wednesday, before its Sunday; and a season that opens on one.
        (["2024-12-25T13:00:00-05:00", "2024-12-29T13:00:00-05:00"], "2024-12-29", "2024-12-29T18:00:00Z"),
        (["2026-09-09T20:20:00-04:00", "2026-09-13T13:00:00-04:00"], "2026-09-13", "2026-09-13T17:00:00Z"),
        # No Sunday: Christmas Monday, Thanksgiving, and two Saturday games, each a slate by itself.
        (["2023-12-25T13:00:00-05:00", "2023-12-25T16:30:00-05:00"], "2023-12-24", "2023-12-25T18:00:00Z"),
        (["2020-11-26T12:30:00-05:00", "2020-11-26T16:30:00-05:00"], "2020-11-29", "2020-11-26T17:30:00Z"),
        (["2023-12-16T13:00:00-05:00", "2023-12-16T20:15:00-05:00"], "2023-12-17", "2023-12-16T18:00:00Z"),
        # After midnight in UTC and still Sunday, US Eastern.
        (["2017-10-01T20:30:00-04:00", "2017-10-02T20:30:00-04:00"], "2017-10-01", "2017-10-02T00:30:00Z"),
    ],
)
def test_the_lock_of_an_odd_week(kickoffs: list[str], sunday: str, lock: str) -> None:
    games = [
        Game(game_id=str(number), away="A", home="B", kickoff=datetime.fromisoformat(kickoff))
        for number, kickoff in enumerate(kickoffs)
    ]
    assert Coverage(DAYS, date.fromisoformat(sunday)).covers(games[0].kickoff)
    assert Coverage(DAYS, date.fromisoformat(sunday)).covers(games[1].kickoff)
    assert lock_instant(games) == datetime.fromisoformat(lock)


FROM, TO = datetime(2017, 1, 1), datetime(2026, 12, 31)  # noqa: DTZ001 (hypothesis wants them so)
KICKOFFS = st.datetimes(FROM, TO, timezones=st.just(UTC))


@pytest.mark.rule("C1", "C2")
@settings(max_examples=300, deadline=None)
@given(kickoff=KICKOFFS, weeks=st.integers(-60, 60).filter(bool), days=st.sets(st.sampled_from(DAYS), min_size=1))
def test_a_kickoff_is_covered_in_its_own_week_and_with_the_usual_days_in_no_other(
    kickoff: datetime, weeks: int, days: set[Day]
) -> None:
    sunday = sunday_of([kickoff])
    covered: tuple[Day, ...] = tuple(day for day in DAYS if day in days)
    assert Coverage(covered, sunday).covers(kickoff) == (weekday(kickoff) in days)
    if weekday(kickoff) in ("Sunday", "Monday", "Thursday", "Friday", "Saturday"):
        assert not Coverage(DAYS, sunday + timedelta(weeks=weeks)).covers(kickoff)
