"""What boards does while it runs."""

from __future__ import annotations

from datetime import datetime

from boards.store import Store
from common.service import Runtime

_LOOK_SECONDS = 15.0


async def watch_settlements(runtime: Runtime) -> None:
    """Tell by metrics how many settlement versions are shown, how many wait for results, and for how long."""
    seen: set[tuple[str, int]] = set()
    noticed: dict[tuple[str, int], datetime] = {}
    first = True
    while True:
        async with runtime.database.transaction() as connection:
            store = Store(connection)
            shown = await store.shown()
            waiting = await store.waiting_settlements()
            now = await runtime.clock.now(connection)
        if not first:
            runtime.metrics.boards_switched.inc(len(shown - seen))
        seen, first = shown, False
        # Results without their week tell no time: they wait since they were noticed.
        noticed = {version: noticed.get(version, now) for version in waiting}
        since = [settled_at or noticed[version] for version, settled_at in waiting.items()]
        runtime.metrics.boards_incomplete_weeks.set(len(waiting))
        runtime.metrics.boards_behind_seconds.set(max(0.0, (now - min(since, default=now)).total_seconds()))
        await runtime.woken("settlements", at_most=_LOOK_SECONDS)
