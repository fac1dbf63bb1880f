"""The live feed, against a server that gives out files shaped and named as nflverse's releases."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from fastapi import FastAPI, Request, Response

from common import events as ev
from settlement.feed import FEED, Feed, Files, paths_of, tasks
from settlement.lines import Week
from settlement.settings import FeedSettings
from testkit.fixtures import Start, Started
from testkit.serving import served

from .nflverse_made import as_parquet, game, team

Play = Callable[..., Any]
PLAYERS, TEAMS, GAMES = paths_of(2017)
BELL = "00-0030496"
FOURTH = Week(2017, 4)


@dataclass
class Releases:
    """Release files behind HTTP: what is asked for and how it was answered is kept."""

    files: dict[str, bytes] = field(default_factory=dict)
    answered: list[tuple[str, int]] = field(default_factory=list)
    broken: int | None = None

    def app(self) -> FastAPI:
        app = FastAPI()

        @app.get("/nflverse/{path:path}")
        async def release(path: str, request: Request) -> Response:
            answer = self._answer(path, request.headers.get("If-None-Match"))
            self.answered.append((path, answer.status_code))
            return answer

        return app

    def _answer(self, path: str, known: str | None) -> Response:
        if self.broken is not None:
            return Response(status_code=self.broken)
        if path not in self.files:
            return Response(status_code=404)
        tag = f'"{hashlib.sha256(self.files[path]).hexdigest()}"'
        if known == tag:
            return Response(status_code=304)
        return Response(self.files[path], headers={"ETag": tag})

    def play(self, week: Any, *, yards: int, over: bool) -> None:
        """Pittsburgh's game of the week, and the others' scores once all is over."""
        self.files[PLAYERS] = as_parquet(
            [
                {"player_id": BELL, "player_display_name": "Le'Veon Bell", "position": "RB", "season": 2017, "week": 4,
                 "team": "PIT", "rushing_yards": yards, "rushing_tds": 0},
            ]
        )  # fmt: skip
        teams = [
            team(2017, 4, one, other, fg_made=1)
            for of in week.opened.games
            for one, other in ((of.away, of.home), (of.home, of.away))
        ]
        self.files[TEAMS] = as_parquet(teams)
        self.files[GAMES] = as_parquet(
            game(2017, 4, of.away, of.home, (3, 3) if over else None) for of in week.opened.games
        )


def settings_of(url: str, **settings: Any) -> FeedSettings:
    return FeedSettings(feed="nflverse", feed_url=f"{url}/nflverse", **settings)


async def finals(settlement: Started) -> list[bool]:
    """Whether each week's statistics are final."""
    return [state["final"] for state in (await settlement.operator.get("/operator/api/v1/statistics")).json()]


async def told(settlement: Started, week: Any) -> None:
    for event in week.events:
        await settlement.publish(event)
    await settlement.settle()


@pytest.mark.rule("M1", "S1")
async def test_a_week_is_imported_while_it_is_played_and_final_when_all_is_over(
    start: Start, play_week: Play, http_client: Callable[..., Any]
) -> None:
    week = play_week(4, entries=2)
    releases = Releases()
    async with start("settlement", clock="replay") as settlement, served(releases.app()) as url:
        runtime = settlement.runtime
        feed = Feed(settings_of(url, feed_final_after_hours=30), Files(http_client(f"{url}/nflverse")))
        await told(settlement, week)
        await settlement.move_clock(week.opened.locks_at - timedelta(hours=1))
        assert await feed.look(runtime) == []
        assert releases.answered == []  # Nobody is asked before the first kickoff.

        releases.play(week, yards=40, over=False)
        await settlement.move_clock(week.opened.locks_at + timedelta(hours=1))
        assert await feed.look(runtime) == [FOURTH]
        assert await feed.look(runtime) == []
        assert [status for _, status in releases.answered] == [200, 200, 200, 304, 304, 304]
        releases.play(week, yards=144, over=False)
        assert await feed.look(runtime) == [FOURTH]
        await settlement.settle()
        scores = await settlement.published(ev.ScoresUpdated)
        assert [next(player.points for player in update.players if player.player_id == BELL) for update in scores] == [
            400,
            1440 + 300,
        ]
        assert {player.points for player in scores[-1].players if player.player_id.startswith("DST-")} == {700}

        last = max(of.kickoff for of in week.opened.games)
        await settlement.move_clock(last + timedelta(hours=31))
        assert await feed.look(runtime) == []  # Games without a score are not over, however late it is.
        releases.play(week, yards=144, over=True)
        await settlement.move_clock(last + timedelta(hours=32))
        whole, releases.files[TEAMS] = releases.files[TEAMS], as_parquet([team(2017, 4, "PIT", "BAL")])
        assert await feed.look(runtime) == [FOURTH]
        assert await finals(settlement) == [False]  # Nor while teams' weeks are missing.
        releases.files[TEAMS] = whole
        assert await feed.look(runtime) == [FOURTH]
        assert await finals(settlement) == [True]
        answered = len(releases.answered)
        assert await feed.look(runtime) == []
        assert len(releases.answered) == answered  # A week that is final is asked for no more.
        settled = await settlement.operator.post("/operator/api/v1/contests/2017-W04/settle")
        assert settled.status_code == 200, settled.text


@pytest.mark.rule("O4")
async def test_whatever_goes_wrong_is_counted_and_told_and_the_next_look_mends_it(
    start: Start, play_week: Play, http_client: Callable[..., Any]
) -> None:
    week = play_week(4, entries=1)
    releases = Releases()
    async with start("settlement", clock="replay") as settlement:
        await told(settlement, week)
        await settlement.move_clock(week.opened.locks_at + timedelta(hours=1))

        async def outcomes() -> dict[str, float]:
            text = (await settlement.client.get("/metrics")).text
            lines = [line.split() for line in text.splitlines() if line.startswith("mafl_feed_looks_total{")]
            failing = next(line.split()[1] for line in text.splitlines() if line.startswith("mafl_feed_failing "))
            return {key.split('"')[1]: float(value) for key, value in lines} | {"failing": float(failing)}

        nowhere = Feed(settings_of("http://127.0.0.1:9"), Files(http_client("http://127.0.0.1:9/nflverse")))
        assert await nowhere.look(settlement.runtime) == []
        assert "http://127.0.0.1:9/nflverse/stats_player/" in nowhere.wrong
        assert await outcomes() == {"unreachable": 1, "failing": 1}
        async with served(releases.app()) as url:
            feed = Feed(settings_of(url), Files(http_client(f"{url}/nflverse")))
            assert await feed.look(settlement.runtime) == []
            assert feed.wrong.endswith("stats_player_week_2017.parquet answers 404")
            releases.play(week, yards=1, over=False)
            good = dict(releases.files)
            releases.files[TEAMS] = b"PAR1 and no more"
            assert await feed.look(settlement.runtime) == []
            assert "starts like Parquet but cannot be read" in feed.wrong
            releases.files[PLAYERS] = b"x" * (17 << 20)
            assert await feed.look(settlement.runtime) == []
            assert await outcomes() == {
                "unreachable": 1, "refused": 1, "statistics-invalid": 1, "too-large": 1, "failing": 1,
            }  # fmt: skip
            releases.files = good
            assert await feed.look(settlement.runtime) == [FOURTH]
            releases.broken = 503
            assert await feed.look(settlement.runtime) == []
            releases.broken = None
            assert await feed.look(settlement.runtime) == []
            assert (feed.wrong, (await outcomes())["unchanged"], (await outcomes())["failing"]) == ("", 1, 0)


@pytest.mark.rule("M1")
async def test_it_is_off_unless_it_is_switched_on_and_runs_beside_the_service_then(
    start: Start, play_week: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert FeedSettings().feed == "off"
    assert tasks(FeedSettings()) == ()
    week = play_week(4, entries=1)
    releases = Releases()
    releases.play(week, yards=77, over=False)
    async with served(releases.app()) as url:
        monkeypatch.setenv("MAFL_SETTLEMENT_FEED", "nflverse")
        monkeypatch.setenv("MAFL_SETTLEMENT_FEED_URL", f"{url}/nflverse")
        monkeypatch.setenv("MAFL_SETTLEMENT_FEED_SECONDS", "1")
        async with start("settlement", clock="replay") as settlement:
            assert settlement.runtime.state[FEED].feed == "nflverse"
            await told(settlement, week)
            await settlement.move_clock(week.opened.locks_at + timedelta(hours=1))
            deadline = time.monotonic() + 60
            while not (states := (await settlement.operator.get("/operator/api/v1/statistics")).json()):
                assert time.monotonic() < deadline, "the feed did not bring the week"
                await asyncio.sleep(0.05)
            assert [(state["week"], state["final"]) for state in states] == [(4, False)]
