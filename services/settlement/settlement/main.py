"""Settlement: statistics in, results out."""

from __future__ import annotations

import asyncio

import anyio.to_thread
from fastapi import FastAPI

from common import audit
from common.service import Runtime, Service, create_app
from common.settings import Settings
from settlement import api, feed
from settlement.certify import certify
from settlement.consumers import HANDLERS
from settlement.optimal import Player, optimal
from settlement.ranks import standing
from settlement.settings import FeedSettings
from settlement.tools import DEFAULT_CAP, DEFAULT_ROSTER


async def be_ready_to_solve(runtime: Runtime) -> None:
    """Load the solvers before the first week needs them: seconds at the first start of all, then a fraction."""
    await anyio.to_thread.run_sync(_solve_something)
    await asyncio.Event().wait()


def _solve_something() -> None:
    pool = [
        Player(f"{slot.slot}{number}", slot.positions[:1], 1000, number) for slot in DEFAULT_ROSTER for number in (1, 2)
    ]
    standing(pool, DEFAULT_ROSTER, DEFAULT_CAP)
    certify(pool, DEFAULT_ROSTER, DEFAULT_CAP, optimal(pool, DEFAULT_ROSTER, DEFAULT_CAP).points)


def app(settings: Settings | None = None) -> FastAPI:
    """The application; settings come from the environment unless given."""
    following = FeedSettings()
    return create_app(
        Service(
            name="settlement",
            package="settlement",
            routers=(api.router, api.operator, audit.routes("settlement")),
            handlers=HANDLERS,
            tasks=(be_ready_to_solve, *feed.tasks(following)),
            state={feed.FEED: following},
        ),
        settings,
    )
