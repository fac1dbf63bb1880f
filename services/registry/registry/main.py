"""The registry: agents, their keys and who answers for them."""

from __future__ import annotations

import asyncio

from fastapi import FastAPI

from common import audit
from common.clock import SystemClock
from common.limits import forget_old_counts, limits_of
from common.service import Runtime, Service, create_app
from common.settings import Settings
from common.topology import AGENT_BY_KEY
from registry import api, commands, pages, people
from registry.consumers import HANDLERS
from registry.domain import REPLAYABLE_FOR
from registry.settings import PeopleSettings
from registry.store import Store

_PRUNE_EVERY_SECONDS = 3_600


async def apply_catalogue(runtime: Runtime) -> None:
    """Bring the labels of models up to the catalogue that this release comes with, once."""
    async with runtime.database.transaction() as connection:
        await commands.apply_catalogue(Store(connection))
    await asyncio.Event().wait()


async def forget_old_answers(runtime: Runtime) -> None:
    """Forget idempotency keys whose 24 hours are over."""
    while True:
        async with runtime.database.transaction() as connection:
            await Store(connection).forget(before=await SystemClock().now(connection) - REPLAYABLE_FOR)
        await asyncio.sleep(_PRUNE_EVERY_SECONDS)


async def forget_people(runtime: Runtime) -> None:
    """Forget sessions, sign-ins and mailed links that are over."""
    while True:
        async with runtime.database.transaction() as connection:
            await people.forget(Store(connection), now=await SystemClock().now(connection))
        await asyncio.sleep(_PRUNE_EVERY_SECONDS)


def app(settings: Settings | None = None) -> FastAPI:
    """The application; settings come from the environment unless given."""
    settings = settings or Settings()
    limits_of(settings)  # A wrong one stops the start, not the first call.
    signing_in = PeopleSettings().check(settings)
    application = create_app(
        Service(
            name="registry",
            package="registry",
            routers=(api.router, api.operator, audit.routes(), pages.api, pages.router),
            handlers=HANDLERS,
            tasks=(apply_catalogue, forget_old_answers, forget_people, forget_old_counts),
            rpc={AGENT_BY_KEY: api.agent_by_key},
        ),
        settings,
    )
    application.state.people = pages.People(signing_in)
    application.add_exception_handler(pages.Refusal, pages.refused)
    return application
