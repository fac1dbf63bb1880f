"""Games that moved after the lists came out, and the lists as they were before."""

from __future__ import annotations

import csv
import gzip
import io
from datetime import timedelta
from pathlib import Path

import pytest

from house.moves import as_listed, read_moves
from house.season import read_files

DATA = next(folder for folder in Path(__file__).resolve().parents if (folder / "uv.lock").exists()) / "data"


def rows_of(pool: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(gzip.decompress(pool).decode())))


def test_the_list_has_each_moved_game_at_the_kickoff_that_was_printed_on_it() -> None:
    """The list itself says so in its own words, which nobody changed."""
    moves = read_moves(DATA / "moved_games_2020.csv")
    assert len(moves) == 6
    files = read_files(DATA, 2020)
    assert files.moves == moves
    checked = 0
    for row in rows_of(files.pool):
        if row["slate"] != "sunday-main" or row["game_info"] in ("", "Postponed"):
            continue  # Week 13 had one on the list that had moved before.
        pair, day, clock, _ = row["game_info"].split()
        month, date, year = day.split("/")
        hour = int(clock[:2]) % 12 + 12 * clock.endswith("PM")
        assert row["kickoff"].startswith(f"{year}-{month}-{date}T{hour:02}:{clock[3:5]}"), row
        assert row["home_away"] == ("away" if pair.split("@")[0] == row["team_source"] else "home")
        checked += 1
    assert checked > 7_000


def test_nothing_but_the_moved_games_is_another_than_in_the_file() -> None:
    before = rows_of((DATA / "pool_2020_dk.csv.gz").read_bytes())
    moves = read_moves(DATA / "moved_games_2020.csv")
    after = rows_of(as_listed((DATA / "pool_2020_dk.csv.gz").read_bytes(), moves))
    teams = {(str(move.week), team) for move in moves for team in (move.away, move.home)}
    changed = [(old["week"], old["team"]) for old, new in zip(before, after, strict=True) if old != new]
    assert set(changed) == teams
    assert {row["game_id"] for row in after} >= {move.game_id for move in moves}


def test_every_move_is_news_before_its_kickoffs_and_leads_to_where_the_game_was_played() -> None:
    moves = read_moves(DATA / "moved_games_2020.csv")
    for move in moves:
        assert move.told < move.listed < move.kickoff
        assert move.listed - move.told < timedelta(days=4)
    played = {row["game_id"]: row["kickoff"] for row in rows_of((DATA / "pool_2020_dk.csv.gz").read_bytes())}
    last = {move.game_id: move.kickoff.isoformat() for move in moves}
    assert {game_id: kickoff for game_id, kickoff in last.items() if game_id in played} == {
        game_id: played[game_id] for game_id in last if game_id in played
    }
    assert set(last) - set(played) == {"2020_04_PIT_TEN", "2020_05_DEN_NE"}  # They were played in other weeks.


@pytest.mark.parametrize("season", [2017])
def test_a_season_in_which_none_moved_is_played_as_it_is(season: int) -> None:
    files = read_files(DATA, season)
    assert files.moves == ()
    assert files.pool == (DATA / f"pool_{season}_dk.csv.gz").read_bytes()
