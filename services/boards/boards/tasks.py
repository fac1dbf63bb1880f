"""What boards does while it runs."""

from __future__ import annotations

from boards.store import Store
from common.service import Runtime

_LOOK_SECONDS = 15.0


async def watch_settlements(runtime: Runtime) -> None:
    """Tell by metrics how many settlement versions are shown, and how many wait for results."""
    seen: set[tuple[str, int]] = set()
    first = True
    while True:
        async with runtime.database.transaction() as connection:
            store = Store(connection)
            shown = await store.shown()
            waiting = await store.waiting_settlements()
        if not first:
            runtime.metrics.boards_switched.inc(len(shown - seen))
        seen, first = shown, False
        runtime.metrics.boards_incomplete_weeks.set(waiting)
        await runtime.woken("settlements", at_most=_LOOK_SECONDS)
