"""Pages that follow a contest while its games are played: who watches, and what they are told.

A page is told *that* something changed, never what: it then asks for its own part anew. So a watcher costs a
connection and nothing else. One query a second, for all watchers of a process together, finds what changed, so that
each copy of boards learns of what any of them has taken; the copy that took it looks at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from sse_starlette import ServerSentEvent

from boards.store import Store
from boards.views import ContestNotLocked, contest_of, storable
from common.canonical import instant
from common.problems import Problem
from common.service import Runtime

MOST_WATCHERS = 1_000
"""Of one process. A watcher holds a file and some ten kilobytes."""
HEARTBEAT_SECONDS = 15
"""Well below the idle time after which anything between here and a browser would close a connection."""
RETRY_SECONDS = 60
"""After which a page that found no room may ask again; it loads its scores by itself meanwhile."""
_RECONNECT_MILLISECONDS = 5_000
_LOOK_SECONDS = 1.0
_REST_SECONDS = 0.2


class TooManyWatchers(Problem):
    status = 503
    code = "too-many-watchers"
    title = "No more pages can be kept up to date"


@dataclass(frozen=True, slots=True)
class Edition:
    """What a contest's page shows, by a text that changes with it; a ``settled`` one is over."""

    id: str
    settled: bool


class Watchers:
    """Who watches which contest in this process, and the newest edition of each that is watched."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._watching: dict[str, set[asyncio.Event]] = {}
        self._editions: dict[str, Edition] = {}
        self._asking = asyncio.Lock()
        self._count = 0

    def check_room(self) -> None:
        """Raises :class:`TooManyWatchers`, 503 with ``Retry-After``, where there is no room for one more."""
        if self._count >= MOST_WATCHERS:
            self._runtime.metrics.live_refused.inc()
            raise TooManyWatchers(
                f"{MOST_WATCHERS} pages are kept up to date already; load the page again to see newer scores.",
                headers={"Retry-After": str(RETRY_SECONDS)},
            )

    async def edition(self, contest: str) -> Edition:
        """The newest edition of a contest. Raises :class:`ContestUnknown`, :class:`ContestNotLocked`.

        Many who come at once ask the database once.
        """
        if contest not in self._editions:
            async with self._asking:
                if contest not in self._editions:
                    await self._look([contest])
        return self._editions[contest]

    async def _look(self, contests: list[str]) -> None:
        async with self._runtime.database.transaction() as connection:
            store = Store(connection)
            found = await store.live_editions([contest for contest in contests if storable(contest)])
            for contest in contests:
                if contest not in found:
                    known = await contest_of(store, contest)
                    raise ContestNotLocked(
                        f"Scores of {known.contest} are told from its lock on.",
                        contest=known.contest,
                        locks_at=instant(known.locks_at),
                    )
        for contest, (edition, settled) in found.items():
            self._editions[contest] = Edition(edition, settled)

    async def follow(self, contest: str, seen: str | None) -> AsyncIterator[ServerSentEvent]:
        """Events of a contest until it is settled: ``changed`` for editions other than ``seen``, then ``ended``."""
        news = asyncio.Event()
        self._watching.setdefault(contest, set()).add(news)
        self._count += 1
        self._runtime.metrics.live_watchers.set(self._count)
        try:
            # The first bytes tell the browser, and whatever is between, that the stream is there.
            yield ServerSentEvent(comment="following", retry=_RECONNECT_MILLISECONDS)
            while True:
                news.clear()
                edition = await self.edition(contest)
                if edition.id != seen:
                    seen = edition.id
                    yield ServerSentEvent(event="changed", data=edition.id, id=edition.id)
                if edition.settled:
                    yield ServerSentEvent(event="ended", data=edition.id, id=edition.id)
                    return
                await news.wait()
        finally:
            self._count -= 1
            self._runtime.metrics.live_watchers.set(self._count)
            watching = self._watching[contest]
            watching.discard(news)
            if not watching:
                # Nobody asks for its newest edition any more, so whoever comes next has to.
                del self._watching[contest]
                self._editions.pop(contest, None)

    async def run(self) -> None:
        """Look for new editions of what is watched, until cancelled."""
        while True:
            await self._runtime.woken("live", at_most=_LOOK_SECONDS)
            if self._watching:
                before = dict(self._editions)
                await self._look(list(self._watching))
                for contest, watching in self._watching.items():
                    if self._editions.get(contest) != before.get(contest):
                        for news in watching:
                            news.set()
                # A week that is being settled wakes with each batch of its results.
                await asyncio.sleep(_REST_SECONDS)


def watchers_of(runtime: Runtime) -> Watchers:
    """The watchers of this process."""
    watchers: Watchers = runtime.state.setdefault("watchers", Watchers(runtime))
    return watchers


async def watch_live(runtime: Runtime) -> None:
    """Tell the pages that follow contests when there is something new."""
    await watchers_of(runtime).run()
