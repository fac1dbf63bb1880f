"""Boards: the leaderboards and the public pages."""

from __future__ import annotations

from fastapi import FastAPI

from boards import api, pages
from boards.consumers import HANDLERS
from boards.live import watch_live
from boards.tasks import watch_settlements
from common import audit
from common.service import Service, create_app
from common.settings import Settings

SERVICE = Service(
    name="boards",
    package="boards",
    routers=(api.router, api.operator, audit.routes("boards"), pages.router),
    handlers=HANDLERS,
    mounts={"/static": pages.static()},
    tasks=(watch_settlements, watch_live),
)


def app(settings: Settings | None = None) -> FastAPI:
    """The application; settings come from the environment unless given."""
    made = create_app(SERVICE, settings)
    pages.explain_errors(made)
    return made
