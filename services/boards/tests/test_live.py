"""Pages follow a contest while its games are played: many at once, through copies and the gateway, and end cleanly."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import anyio.to_thread
import pytest

from boards import live
from common import events as ev
from embedded.caddy import Caddy
from testkit.fixtures import Start
from testkit.serving import served

Tell = Callable[..., Awaitable[Any]]

PATIENCE = 60


class Follower:
    """A connection that follows a contest, by hand: a browser's EventSource and nothing besides."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.status = 0
        self.headers: dict[str, str] = {}

    @classmethod
    async def at(cls, url: str, path: str, **headers: str) -> Follower:
        parts = urlsplit(url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        follower = cls(reader, writer)
        lines = [f"GET {path} HTTP/1.1", f"Host: {parts.netloc}", "Accept: text/event-stream"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        async with asyncio.timeout(PATIENCE):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
        follower.status = int(head[0].split()[1])
        follower.headers = {
            name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)
        }
        return follower

    async def event(self) -> tuple[str, str] | None:
        """Name and id of the next event; ``None`` when the stream has ended."""
        name, number = "", ""
        async with asyncio.timeout(PATIENCE):
            while line := await self._reader.readline():
                text = line.decode().strip()
                if text == "0":  # The last of the chunks.
                    return None
                if text.startswith("event:"):
                    name = text.partition(": ")[2]
                elif text.startswith("id:"):
                    number = text.partition(": ")[2]
                elif not text and name:
                    return name, number
        return None

    async def beginning(self) -> str:
        """The first comment of the stream."""
        async with asyncio.timeout(PATIENCE):
            while not (line := (await self._reader.readline()).decode().strip()).startswith(":"):
                pass
        return line

    async def rest(self) -> bytes:
        async with asyncio.timeout(PATIENCE):
            return await self._reader.read()

    def close(self) -> None:
        self._writer.close()


@contextlib.asynccontextmanager
async def following(url: str, path: str, **headers: str) -> AsyncIterator[Follower]:
    follower = await Follower.at(url, path, **headers)
    try:
        yield follower
    finally:
        follower.close()


PATH = "/contests/2017-W01/live"


def locked(script: ModuleType, agents: list[Any]) -> list[Any]:
    week = script.Week(1)
    told = [pair for agent in agents for pair in agent.told()] + [(week.opened(), 1), (week.locked(len(agents)), 2)]
    return told + [(week.lineup(agent), 1) for agent in agents]


@pytest.mark.rule("M1", "O2")
async def test_a_page_is_told_of_each_change_through_another_copy_and_the_gateway_until_the_week_is_settled(
    start: Start, script: ModuleType, tell: Tell, tmp_path: Path
) -> None:
    agents = [script.Agent("alice", "m"), script.Agent("bob", "m")]
    week = script.Week(1)
    with socket.socket() as one, socket.socket() as two:
        one.bind(("127.0.0.1", 0))
        two.bind(("127.0.0.1", 0))
        public, operator = one.getsockname()[1], two.getsockname()[1]
    async with (
        start("boards") as taking,
        start("boards", database_url=taking.database_url) as other,
        served(other.app) as url,
    ):
        await tell(taking, [(week.opened(), 1)])
        early = await taking.client.get(PATH)
        assert (early.status_code, early.json()["code"]) == (409, "contest-not-locked")
        for nowhere in ("2017-W09", "%00", "%ED%A0%80"):
            unknown = await taking.client.get(f"/contests/{nowhere}/live")
            assert (unknown.status_code, unknown.json()["code"]) == (404, "contest-unknown")
        await tell(taking, locked(script, agents))
        port = urlsplit(url).port
        assert port is not None
        upstreams = dict.fromkeys(("registry", "contests", "moderation", "settlement", "boards"), port)
        caddy = Caddy(tmp_path / "caddy", upstreams, public, operator)
        await anyio.to_thread.run_sync(caddy.start)
        try:
            gateway = f"http://127.0.0.1:{public}"
            async with following(gateway, PATH) as follower:
                assert follower.status == 200
                assert follower.headers["content-type"].startswith("text/event-stream")
                assert follower.headers["cache-control"] == "no-store"
                name, first = await follower.event() or ("", "")
                assert name == "changed", "it has not said what it has seen"
                await tell(taking, [(week.scores(agents, 1), 1)])
                name, second = await follower.event() or ("", "")
                assert (name, second != first) == ("changed", True)
            async with (
                following(gateway, PATH, Last_Event_ID=second) as again,
                following(url, f"{PATH}?seen={first}") as late,
            ):
                assert await again.beginning() == ": following"
                assert await late.event() == ("changed", second), "it missed what came while it was away"
                await tell(taking, [(event, 1) for event in week.results(agents)])
                name, third = await again.event() or ("", "")
                assert (name, third != second) == ("changed", True), "and was told nothing that it had seen"
                assert await again.event() == ("ended", third)
                assert await again.event() is None
        finally:
            await anyio.to_thread.run_sync(caddy.stop)


@pytest.mark.rule("M1")
async def test_five_hundred_pages_follow_one_process_and_a_stop_ends_them_all(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    agents = [script.Agent("alice", "m")]
    week = script.Week(1)
    async with start("boards") as service:
        await tell(service, locked(script, agents))
        async with served(service.app) as url:
            followers: list[Follower] = []
            for _ in range(10):
                followers += await asyncio.gather(*(Follower.at(url, PATH) for _ in range(50)))
            assert {follower.status for follower in followers} == {200}
            first = {await follower.event() for follower in followers}
            assert len(first) == 1
            assert "mafl_live_watchers 500.0" in (await service.client.get("/metrics")).text
            await tell(service, [(week.scores(agents, 1), 1)])
            second = {await follower.event() for follower in followers}
            assert len(second) == 1
            assert second != first
            # They cost no connection to the database: the pages are served as ever.
            assert (await service.client.get("/contests/2017-W01")).status_code == 200
        for follower in followers:
            assert b"event" not in await follower.rest()
            follower.close()
        assert "mafl_live_watchers 0.0" in (await service.client.get("/metrics")).text


@pytest.mark.rule("A11")
async def test_more_pages_than_there_is_room_for_are_told_when_to_ask_again(
    start: Start, script: ModuleType, tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "MOST_WATCHERS", 2)
    async with start("boards") as service:
        await tell(service, locked(script, [script.Agent("alice", "m")]))
        async with served(service.app) as url:
            two = [await Follower.at(url, PATH) for _ in range(2)]
            for follower in two:
                assert (await follower.event() or ("", ""))[0] == "changed"
            async with following(url, PATH) as refused:
                assert (refused.status, refused.headers["retry-after"]) == (503, "60")
            two[0].close()
            async with asyncio.timeout(PATIENCE):
                while "mafl_live_watchers 1.0" not in (await service.client.get("/metrics")).text:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            async with following(url, PATH) as welcome:
                assert welcome.status == 200
            two[1].close()


@pytest.mark.rule("M1")
async def test_the_page_says_how_much_is_still_to_play_and_its_part_is_what_the_page_has(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    agents = [script.Agent("alice", "m"), script.Agent("bob", "m")]
    week = script.Week(1)
    async with start("boards") as service:
        await tell(service, locked(script, agents))
        page = (await service.client.get("/contests/2017-W01")).text
        assert "/static/live.js" in page
        assert 'data-live="/contests/2017-W01/live?seen=0-0-2"' in page
        scores = week.scores(agents, 1)
        told = scores.model_copy(
            update={
                "lineups": (
                    scores.lineups[0].model_copy(update={"waiting": 3, "playing": 2}),
                    scores.lineups[1].model_copy(update={"waiting": 0, "playing": 0}),
                ),
                "games": (
                    ev.GameProgress(game_id="g1", state="over"),
                    ev.GameProgress(game_id="g2", state="playing"),
                ),
            }
        )
        await tell(service, [(told, 1)])
        page = (await service.client.get("/contests/2017-W01")).text
        assert "2 playing, 3 to come" in page
        assert "all played" in page
        assert "1 game over, 1 game being played." in page
        part = await service.client.get("/contests/2017-W01/scores?page=1&edition=0-1-2")
        assert part.text.strip() in page
        assert "unsafe" not in part.headers["content-security-policy"]
        results = (await service.client.get("/api/v1/contests/2017-W01/results")).json()
        assert {str(one["to_play"]) for one in results["lineups"]} == {
            "{'waiting': 3, 'playing': 2}",
            "{'waiting': 0, 'playing': 0}",
        }
        assert results["games"] == {"g1": "over", "g2": "playing"}
        await tell(service, [(event, 1) for event in week.results(agents)])
        page = (await service.client.get("/contests/2017-W01")).text
        assert "live.js" not in page
        assert "to come" not in page
