"""What the tests of settlement share: the classic rules, the roster, the real seasons, a week to settle."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import random
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

import httpx
import pytest

from common import events as ev
from common.events import Band, Bonus, Scoring, Slot
from settlement.tools import DEFAULT_ROSTER


@pytest.fixture(scope="session")
def classic() -> Scoring:
    """The classic DraftKings rules, as the README of the data states them."""
    return Scoring(
        scoring="draftkings-classic-1",
        per_unit={
            "pass_yds": 4, "pass_td": 400, "pass_int": -100, "pass_2pt": 200,
            "rush_yds": 10, "rush_td": 600, "rush_2pt": 200,
            "rec": 100, "rec_yds": 10, "rec_td": 600, "rec_2pt": 200,
            "fum_lost": -100, "ret_td": 600, "off_fum_rec_td": 600,
            "dst_sacks": 100, "dst_int": 200, "dst_fum_rec": 200, "dst_td": 600,
            "dst_safety": 200, "dst_blk": 200, "dst_2pt_ret": 200,
        },
        bonuses=(
            Bonus(statistic="pass_yds", at_least=300, points=300),
            Bonus(statistic="rush_yds", at_least=100, points=300),
            Bonus(statistic="rec_yds", at_least=100, points=300),
        ),
        bands={
            "dst_points_allowed": (
                Band(up_to=0, points=1000),
                Band(up_to=6, points=700),
                Band(up_to=13, points=400),
                Band(up_to=20, points=100),
                Band(up_to=27, points=0),
                Band(up_to=34, points=-100),
                Band(up_to=None, points=-400),
            )
        },
    )  # fmt: skip


@pytest.fixture(scope="session")
def roster() -> Sequence[Slot]:
    return DEFAULT_ROSTER


@pytest.fixture(scope="session")
def data_path() -> Callable[[str], Path]:
    """Where a file of the repository's ``data`` folder is."""
    root = next(folder for folder in Path(__file__).resolve().parents if (folder / "uv.lock").exists())
    return lambda name: root / "data" / name


@pytest.fixture(scope="session")
def read_data(data_path: Callable[[str], Path]) -> Callable[[str], list[dict[str, str]]]:
    """The rows of a file of the repository's ``data`` folder."""

    def read(name: str) -> list[dict[str, str]]:
        with gzip.open(data_path(name), "rt", encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    return read


@dataclass
class PlayedWeek:
    """A real week as the contest service tells of it, with lineups drawn at random from its pool."""

    opened: ev.ContestOpened
    locked: ev.ContestLocked
    lineups: list[ev.LineupLocked]
    worth: dict[str, str]
    """The points that the data itself gives for each player of the pool, as text."""
    events: list[ev.Event] = field(init=False)

    def __post_init__(self) -> None:
        self.events = [self.opened, self.locked, *self.lineups]


@pytest.fixture(scope="session")
def play_week(
    read_data: Callable[[str], list[dict[str, str]]], classic: Scoring, roster: Sequence[Slot]
) -> Callable[..., PlayedWeek]:
    """``play_week(4, entries=20)``: week 4 of 2017 with its Sunday and Monday games, locked with 20 lineups."""

    def play(week: int, *, entries: int = 5) -> PlayedWeek:
        rows = [
            row
            for row in read_data("pool_2017_dk.csv.gz")
            if row["week"] == str(week) and row["weekday"] in ("Sunday", "Monday") and row["salary"] not in ("", "0")
        ]
        players = tuple(
            ev.PoolPlayer(
                player_id=row["player_id"] or row["source_player_id"],
                player_name=row["name"],
                positions=(row["position"],),
                team=row["team"],
                opponent=row["opponent"],
                game_id=row["game_id"],
                price=int(row["salary"]),
            )
            for row in rows
        )
        games = {
            row["game_id"]: ev.Game(
                game_id=row["game_id"],
                away=row["team"] if row["home_away"] == "away" else row["opponent"],
                home=row["team"] if row["home_away"] == "home" else row["opponent"],
                kickoff=datetime.fromisoformat(row["kickoff"]),
            )
            for row in rows
        }
        locks_at = min(game.kickoff for game in games.values())
        contest = f"2017-W{week:02d}"
        opened = ev.ContestOpened(
            contest=contest,
            season=2017,
            week=week,
            opened_at=locks_at - timedelta(days=4),
            locks_at=locks_at,
            cap=50_000,
            roster=tuple(roster),
            ruleset="draftkings-classic-1",
            scoring=classic,
            price_source="draftkings",
            games=tuple(games.values()),
            players=players,
        )
        chance = random.Random(week)
        return PlayedWeek(
            opened=opened,
            locked=ev.ContestLocked(contest=contest, locked_at=locks_at, entries=entries),
            lineups=[_lineup(opened, chance, number) for number in range(entries)],
            worth={row["player_id"] or row["source_player_id"]: row["recomputed_dk_points"] or "0" for row in rows},
        )

    return play


def _lineup(contest: ev.ContestOpened, chance: random.Random, number: int) -> ev.LineupLocked:
    while True:
        picks: dict[str, ev.PoolPlayer] = {}
        for slot in contest.roster:
            open_to = [
                player
                for player in contest.players
                if set(player.positions) & set(slot.positions) and player not in picks.values()
            ]
            picks[slot.slot] = chance.choice(open_to)
        price = sum(player.price for player in picks.values())
        if price <= contest.cap:
            break
    return ev.LineupLocked(
        contest=contest.contest,
        lineup_id=UUID(int=chance.getrandbits(128), version=4),
        agent_id=UUID(int=chance.getrandbits(128), version=4),
        revision=1,
        accepted_at=contest.locks_at - timedelta(hours=1),
        model=("openai/gpt-5", "anthropic/claude", "google/gemini")[number % 3],
        marks=ev.Marks(house=number % 2 == 0),
        picks=tuple(
            ev.LockedPick(slot=slot, player_id=player.player_id, price=player.price, confidence=0.5)
            for slot, player in picks.items()
        ),
        total_price=price,
        projected_score=12_000,
        confidence=0.5,
    )


@pytest.fixture(scope="session")
def statistics_file(read_data: Callable[[str], list[dict[str, str]]]) -> Callable[..., bytes]:
    """``statistics_file(4, {"00-0030496": {"rush_yds": "200"}}, leave_out={…})``: a week of 2017, with changes."""

    def make(week: int, changes: dict[str, dict[str, str]] | None = None, *, leave_out: Sequence[str] = ()) -> bytes:
        rows = [dict(row) for row in read_data("weekly_stats_2017.csv.gz") if row["week"] == str(week)]
        text = io.StringIO()
        writer = csv.DictWriter(text, rows[0])
        writer.writeheader()
        for row in rows:
            if row["player_id"] not in leave_out:
                writer.writerow({**row, **(changes or {}).get(row["player_id"], {})})
        return text.getvalue().encode()

    return make


@pytest.fixture
async def http_client() -> AsyncIterator[Callable[[str], httpx.AsyncClient]]:
    """``http_client("http://127.0.0.1:80/releases")``: clients that are closed when the test ends."""
    async with contextlib.AsyncExitStack() as opened:

        def client(base_url: str) -> httpx.AsyncClient:
            made = httpx.AsyncClient(base_url=base_url, timeout=10)
            opened.push_async_callback(made.aclose)
            return made

        yield client
