"""The live feed: nflverse's releases, fetched while games are played and imported like an operator's files.

It asks only for weeks that have a locked contest and no final statistics, from their first kickoff on. A file that has
not changed is not sent again (``ETag``); nothing is imported unless one has. Whatever goes wrong is counted, logged
when it begins and when it is over, and tried again at the next look: a week can always be imported by hand.
Decision 25 says why this is no client library.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

import anyio.to_thread
import httpx

from common.events import ContestOpened
from common.logs import logger
from common.problems import Problem
from common.requests import LARGEST_UPLOAD
from common.service import Runtime, Task
from settlement import commands
from settlement.imports import read_statistics
from settlement.lines import Week
from settlement.policies import counts, is_open
from settlement.settings import FeedSettings
from settlement.store import Store

FEED = "feed"
"""Where a runtime's state has the settings of the feed."""
_GIVE_UP_AFTER = timedelta(days=10)
"""After the last kickoff of a week that nobody made final."""


class FeedError(Exception):
    """A look failed; the message says which address and what it answered. ``cause`` is what it is counted as."""

    def __init__(self, cause: str, detail: str) -> None:
        super().__init__(detail)
        self.cause = cause


@dataclass
class Files:
    """What the server gave last, by path: its tag and the bytes."""

    client: httpx.AsyncClient
    kept: dict[str, tuple[str, bytes]] = field(default_factory=dict)

    async def bring(self, paths: Sequence[str]) -> bool:
        """Bring files up to date; whether any is another than before. Raises ``FeedError``; nothing is half taken."""
        fresh = {path: found for path in paths if (found := await self._bring(path)) is not None}
        self.kept |= fresh
        return bool(fresh)

    async def _bring(self, path: str) -> tuple[str, bytes] | None:
        tag, before = self.kept.get(path, ("", b""))
        try:
            async with self.client.stream("GET", path, headers={"If-None-Match": tag} if tag else {}) as answer:
                if answer.status_code == httpx.codes.NOT_MODIFIED and tag:
                    return None
                if answer.status_code != httpx.codes.OK:
                    raise FeedError("refused", f"{answer.url} answers {answer.status_code}")
                body = bytearray()
                async for chunk in answer.aiter_bytes():
                    body += chunk
                    if len(body) > LARGEST_UPLOAD:
                        raise FeedError("too-large", f"{answer.url} sends more than {LARGEST_UPLOAD} bytes")
        except httpx.HTTPError as error:
            said = str(error) or type(error).__name__
            raise FeedError("unreachable", f"{self.client.base_url}{path} cannot be fetched: {said}") from error
        content = bytes(body)
        return None if content == before else (answer.headers.get("ETag", ""), content)


@dataclass
class Feed:
    """A feed at work: what it has fetched, which weeks it has imported from that, and what is wrong with it."""

    settings: FeedSettings
    files: Files
    imported: set[Week] = field(default_factory=set)
    wrong: str = ""

    async def look(self, runtime: Runtime) -> list[Week]:
        """Fetch what is due and import it; the weeks that were imported. Raises nothing that a later look may mend."""
        outcome = "nothing-due"
        done: list[Week] = []
        try:
            now, due = await self._due(runtime)
            for season, weeks in due.items():
                outcome = "unchanged"
                if await self.files.bring(paths_of(season)):
                    self.imported = {week for week in self.imported if week.season != season}
                for week, contests in weeks.items():
                    if await self._import(runtime, week, contests, now):
                        done.append(week)
            outcome = "imported" if done else outcome
        except (FeedError, Problem) as error:
            outcome = error.cause if isinstance(error, FeedError) else error.code
            if str(error) != self.wrong:
                logger.warning("the feed of statistics fails; weeks can be imported by hand", error=str(error)[:300])
            self.wrong = str(error)
        else:
            if self.wrong:
                logger.info("the feed of statistics works again")
            self.wrong = ""
        runtime.metrics.feed_looks.labels(outcome).inc()
        runtime.metrics.feed_failing.set(bool(self.wrong))
        return done

    async def _due(self, runtime: Runtime) -> tuple[datetime, dict[int, dict[Week, list[ContestOpened]]]]:
        """The time, and the weeks to be asked for, by season, with their locked contests."""
        async with runtime.database.transaction() as connection:
            now = await runtime.clock.now(connection)
            contests = await Store(connection).contests_without_final_statistics()
        due: dict[int, dict[Week, list[ContestOpened]]] = {}
        for contest in contests:
            kickoffs = [game.kickoff for game in contest.games]
            if min(kickoffs) <= now <= max(kickoffs) + _GIVE_UP_AFTER:
                week = Week(contest.season, contest.week)
                due.setdefault(contest.season, {}).setdefault(week, []).append(contest)
        return now, due

    async def _import(self, runtime: Runtime, week: Week, contests: Iterable[ContestOpened], now: datetime) -> bool:
        """Import a week as it was fetched, unless it was already and is not final now."""
        files = [self.files.kept[path][1] for path in paths_of(week.season)]
        final = await self._is_final(week, contests, now, files)
        if week in self.imported and not final:
            return False
        await commands.import_statistics(
            runtime.database, runtime.clock, *files, season=week.season, week=week.week, final=final
        )
        self.imported.add(week)
        logger.info("the feed brought statistics", week=str(week), final=final)
        return True

    async def _is_final(
        self, week: Week, contests: Iterable[ContestOpened], now: datetime, files: Sequence[bytes]
    ) -> bool:
        """Whether all that counts has been played, by the scores, and long enough ago for the league to have looked."""
        if self.settings.feed_final_after_hours is None:
            return False
        counting = [(game, contest) for contest in contests for game in contest.games if counts(game, contest.policies)]
        last = max((game.kickoff for game, _ in counting), default=now)
        if now < last + timedelta(hours=self.settings.feed_final_after_hours):
            return False
        read = partial(read_statistics, *files, season=week.season, week=week.week)
        found = await anyio.to_thread.run_sync(read)
        # A release is replaced file by file: the scores may be there before the teams' weeks are.
        told = {team for team in found.scored.get(week, ()) if f"DST-{team}" in found.lines.get(week, {})}
        return all({game.away, game.home} <= told and not is_open(game, contest.policies) for game, contest in counting)


def paths_of(season: int) -> tuple[str, ...]:
    """Where nflverse's releases have a season: players' weeks, teams' weeks, the games with their scores."""
    return (
        f"stats_player/stats_player_week_{season}.parquet",
        f"stats_team/stats_team_week_{season}.parquet",
        "schedules/games.parquet",
    )


def tasks(settings: FeedSettings) -> tuple[Task, ...]:
    """The feed's task; none where it is off."""
    return () if settings.feed == "off" else (follow_feed,)


async def follow_feed(runtime: Runtime) -> None:
    """Look every so often, for ever."""
    settings: FeedSettings = runtime.state[FEED]
    async with httpx.AsyncClient(
        base_url=settings.feed_url,
        timeout=settings.feed_timeout,
        follow_redirects=True,
        headers={"User-Agent": "mafl"},
    ) as client:
        feed = Feed(settings, Files(client))
        while True:
            await feed.look(runtime)
            await asyncio.sleep(settings.feed_seconds)
