"""Week 4 of 2020 as it was lived: a game that the list still had moved to week 7 before the lock.

DraftKings had listed Pittsburgh at Tennessee for Sunday; three days before, it was moved. New England at Kansas City
moved too, to the Monday, which is covered. The contest follows the schedule file, and settlement and boards follow
the contest.
"""

from __future__ import annotations

import csv
import gzip
import io
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from common import events as ev
from house.field import view
from house.moves import as_listed, read_moves
from house.strategies import Strategy, Style, play
from mafl.models import Contest, Pool
from testkit.contracts import ROOT
from testkit.fixtures import Start, Started

CONTEST = "2020-W04"
MOVED = "2020_04_PIT_TEN"
NOW = {"PIT@TEN": "2020-10-25T13:00:00-04:00", "NE@KC": "2020-10-05T19:05:00-04:00"}

pytestmark = pytest.mark.timeout(180)


MOVES = read_moves(ROOT / "data" / "moved_games_2020.csv")


def as_listed_in(week: int) -> tuple[bytes, dict[str, tuple[str, str, str]]]:
    """A week's list with its kickoffs as they were announced, and its games: away, home, kickoff by id."""
    whole = as_listed((ROOT / "data" / "pool_2020_dk.csv.gz").read_bytes(), MOVES)
    rows = [row for row in csv.DictReader(io.StringIO(gzip.decompress(whole).decode())) if row["week"] == str(week)]
    games = {}
    for row in rows:
        sides = (row["opponent"], row["team"]) if row["home_away"] == "home" else (row["team"], row["opponent"])
        games[row["game_id"]] = (*sides, row["kickoff"])
    out = io.StringIO()
    writer = csv.DictWriter(out, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode(), games


def as_moved(games: dict[str, tuple[str, str, str]]) -> bytes:
    """The league's schedule afterwards: the game of week 7 has another id."""
    lines = ["game_id,season,week,away_team,home_team,kickoff"]
    for game_id, (away, home, kickoff) in games.items():
        week, of = (7, game_id.replace("_04_", "_07_")) if game_id == MOVED else (4, game_id)
        lines.append(f"{of},2020,{week},{away},{home},{NOW.get(f'{away}@{home}', kickoff)}")
    return "\n".join(lines).encode()


async def ok(answer: httpx.Response) -> Any:
    assert answer.is_success, answer.text
    return answer.json()


@pytest.mark.rule("C1", "C2", "C6", "S1", "S3")
async def test_a_listed_game_that_moved_before_the_lock_is_followed_from_the_pool_to_the_boards(start: Start) -> None:
    names = ("registry", "contests", "settlement", "boards")
    async with AsyncExitStack() as stack:
        running = {name: await stack.enter_async_context(start(name, clock="replay")) for name in names}
        contests, settlement, boards = running["contests"], running["settlement"], running["boards"]

        async def quiet() -> None:
            for _ in range(2):
                for service in running.values():
                    await service.settle()

        listed, games = as_listed_in(4)
        root = "/operator/api/v1/contests"
        days = {"season": 2020, "week": 4}
        await ok(await contests.operator.post(f"{root}/import", content=listed, params=days))
        await contests.move_clock(datetime(2020, 9, 30, 12, tzinfo=UTC))
        await ok(await contests.operator.post(f"{root}/{CONTEST}/open"))
        keys = [await registered(running["registry"], number) for number in range(12)]
        await quiet()

        # Before the news: some have players of the game.
        contest, pool = await read(contests)
        held = {player.player_id for player in pool.players if player.team in ("PIT", "TEN")}
        assert len(held) > 20
        bodies = [play(f"agent {n}", Style(Strategy.RANDOM), view(contest, pool, {})).body() for n in range(12)]
        receipts = [await ok(await submit(contests, key, body)) for key, body in zip(keys, bodies, strict=True)]
        holding = [{pick["player_id"] for pick in body["picks"]} & held for body in bodies]
        assert any(holding)
        assert not all(holding)

        # The news comes as a new schedule file.
        await contests.move_clock(datetime(2020, 10, 1, 18, tzinfo=UTC))
        followed = await ok(await contests.operator.post(f"{root}/reschedule", content=as_moved(games)))
        (of_week,) = followed["contests"]
        assert {game["game_id"]: game["status"]["after"] for game in of_week["games"]} == {
            MOVED: "moved",
            "2020_04_NE_KC": "scheduled",
        }
        assert of_week["locks_at"]["after"] == of_week["locks_at"]["before"] == "2020-10-04T17:00:00Z"
        _, pool = await read(contests)
        assert not held & {player.player_id for player in pool.players}
        for key, body, has in zip(keys, bodies, holding, strict=True):
            again = await submit(contests, key, body)
            assert (again.status_code, again.json().get("code")) == ((422, "lineup-invalid") if has else (201, None))
        await quiet()
        page = (await boards.client.get(f"/contests/{CONTEST}")).text
        assert "moved to another day" in page
        assert "Derrick Henry" not in page

        # The lock, and the statistics of the week.
        await contests.move_clock(contest.locks_at)
        await quiet()
        statistics = (ROOT / "data" / "weekly_stats_2020.csv.gz").read_bytes()
        final = {"season": 2020, "week": 4, "final": "true"}
        await ok(await settlement.operator.post("/operator/api/v1/statistics", params=final, content=statistics))
        settled = await ok(await settlement.operator.post(f"{root}/{CONTEST}/settle", json={}))
        assert settled["lineups"] == 12
        assert not held & set(settled["optimal"]["players"])
        await quiet()
        (week,) = await settlement.published(ev.WeekSettled)
        assert {player.points for player in week.players if player.player_id in held} == {0}
        shown = await ok(await boards.client.get(f"/api/v1/contests/{CONTEST}/results"))
        assert shown["state"] == "final"
        points = {row["lineup"]: {p["player_id"]: p["points"] for p in row["picks"]} for row in shown["lineups"]}
        for receipt, body, has in zip(receipts, bodies, holding, strict=True):
            of_picks = points[receipt["lineup"]]
            assert set(of_picks) == {pick["player_id"] for pick in body["picks"]}
            assert {of_picks[player] for player in has} <= {0}
        for service in running.values():
            assert await service.dead_letters() == []


@pytest.mark.rule("C1", "C2", "S1", "S3")
async def test_games_that_move_twice_or_to_a_tuesday_are_followed_at_the_day_they_moved(start: Start) -> None:
    """Week 5: Denver at New England went to the Monday, which is covered, and out of the week hours before the lock."""
    async with start("contests", clock="replay") as contests, start("settlement", clock="replay") as settlement:
        listed, _ = as_listed_in(5)
        root, name = "/operator/api/v1/contests", "2020-W05"
        await ok(await contests.operator.post(f"{root}/import", content=listed, params={"season": 2020, "week": 5}))
        await contests.move_clock(datetime(2020, 10, 7, 12, tzinfo=UTC))
        await ok(await contests.operator.post(f"{root}/{name}/open"))
        became = []
        for move in (move for move in MOVES if move.week == 5):
            await contests.move_clock(move.told)
            moved = {"game_id": move.game_id, "kickoff": move.kickoff.isoformat()}
            told = await ok(await contests.operator.post(f"{root}/{name}/reschedule", json=moved))
            became.append((move.game_id, told["game"]["status"]["after"]))
            assert told["lock"]["after"] == "2020-10-11T17:00:00Z"
        assert became == [
            ("2020_05_DEN_NE", "scheduled"),
            ("2020_05_BUF_TEN", "moved"),
            ("2020_05_DEN_NE", "moved"),
        ]
        await contests.settle()
        assert len(await contests.published(ev.ContestRescheduled)) == 3
        await contests.move_clock(datetime(2020, 10, 11, 17, tzinfo=UTC))
        await contests.settle()
        await settlement.settle()
        statistics = (ROOT / "data" / "weekly_stats_2020.csv.gz").read_bytes()
        final = {"season": 2020, "week": 5, "final": "true"}
        await ok(await settlement.operator.post("/operator/api/v1/statistics", params=final, content=statistics))
        settled = await ok(await settlement.operator.post(f"{root}/{name}/settle", json={}))
        worth = (await ok(await settlement.operator.get(f"/operator/api/v1/settlements/{name}/1")))["players"]
        (opened,) = await contests.published(ev.ContestOpened)
        teams = {player.player_id: player.team for player in opened.players}
        gone = {player_id for player_id, team in teams.items() if team in ("DEN", "NE", "BUF", "TEN")}
        assert {worth[player_id] for player_id in gone} == {0}
        assert not gone & set(settled["optimal"]["players"])
        # Buffalo and Tennessee played that Tuesday, and their statistics are there.
        played = {row["player_id"] for row in csv.DictReader(io.StringIO(gzip.decompress(statistics).decode()))
                  if row["week"] == "5" and row["team"] in ("BUF", "TEN")}  # fmt: skip
        assert len(played & gone) > 15


async def registered(registry: Started, number: int) -> str:
    wanted = {"name": f"Mover {number}", "model": "demo/one"}
    key: str = (await ok(await registry.client.post("/api/v1/agents", json=wanted)))["api_key"]
    return key


async def read(contests: Started) -> tuple[Contest, Pool]:
    contest = await ok(await contests.client.get(f"/api/v1/contests/{CONTEST}"))
    pool = await ok(await contests.client.get(f"/api/v1/contests/{CONTEST}/pool"))
    return Contest.model_validate(contest), Pool.model_validate(pool)


async def submit(contests: Started, key: str, body: dict[str, Any]) -> httpx.Response:
    headers = {"Authorization": f"Bearer {key}"}
    return await contests.client.post(f"/api/v1/contests/{CONTEST}/lineups", json=body, headers=headers)
