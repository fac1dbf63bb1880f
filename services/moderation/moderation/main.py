"""Moderation: keeps the words of lineups, judges them, and tells after the lock what may be read."""

from __future__ import annotations

import asyncio
import time

from fastapi import FastAPI

from common import audit
from common.clock import SystemClock
from common.limits import forget_old_counts, limits_of
from common.service import Runtime, Service, create_app
from common.settings import Settings
from moderation import api, asking, commands, operators, pages
from moderation.consumers import HANDLERS
from moderation.judging import judge
from moderation.settings import ExternalSettings, JudgingSettings
from moderation.store import KINDS, Store

_BACKLOG_EVERY_SECONDS = 1.0
_FORGET_EVERY_SECONDS = 3_600
_SHARE_OF_THE_TIME = 0.1
"""Counting a long backlog takes a moment of the database: it is counted the more rarely."""


async def publish(runtime: Runtime) -> None:
    """Tell what may be told, as soon as it may."""
    while True:
        async with runtime.database.transaction() as connection:
            told = await commands.publish(Store(connection))
        if not told:
            await runtime.woken("publish")


async def measure_the_backlog(runtime: Runtime) -> None:
    """Show what waits and for how long, and what is set aside."""
    metrics = runtime.metrics
    while True:
        began = time.monotonic()
        async with runtime.database.transaction() as connection:
            store = Store(connection)
            backlog = await store.backlog()
            aside = await store.set_aside_counts()
        metrics.moderation_backlog.set(backlog.texts)
        metrics.moderation_backlog_age_seconds.set(backlog.oldest_seconds)
        metrics.moderation_waiting.labels("name").set(backlog.names)
        metrics.moderation_waiting.labels("model").set(backlog.models)
        metrics.moderation_waiting.labels("text").set(backlog.texts)
        for kind in KINDS:
            metrics.moderation_set_aside_now.labels(kind).set(sum(one.count for one in aside if one.kind == kind))
        metrics.moderation_set_aside_age_seconds.set(max((one.oldest_seconds for one in aside), default=0))
        await asyncio.sleep(max(_BACKLOG_EVERY_SECONDS, (time.monotonic() - began) / _SHARE_OF_THE_TIME))


async def forget_sessions(runtime: Runtime) -> None:
    """Forget operators' sessions that are over."""
    while True:
        async with runtime.database.transaction() as connection:
            await operators.forget(Store(connection), now=await SystemClock().now(connection))
        await asyncio.sleep(_FORGET_EVERY_SECONDS)


def app(settings: Settings | None = None) -> FastAPI:
    """The application; settings come from the environment unless given."""
    settings = settings or Settings()
    limits_of(settings)  # A wrong one stops the start, not the first call.
    external = ExternalSettings.read()
    application = create_app(
        Service(
            name="moderation",
            package="moderation",
            routers=(api.operator, audit.routes("moderation"), pages.router),
            handlers=HANDLERS,
            tasks=(
                judge,
                publish,
                measure_the_backlog,
                forget_sessions,
                forget_old_counts,
                *asking.tasks(external),
            ),
            state={"judging": JudgingSettings(), asking.SETTINGS: external},
        ),
        settings,
    )
    for kind in pages.REFUSALS:
        application.add_exception_handler(kind, pages.refused)
    return application
