"""Moderation: keeps the words of lineups, judges them, and tells after the lock what may be read."""

from __future__ import annotations

import asyncio

from fastapi import FastAPI

from common import audit
from common.service import Runtime, Service, create_app
from common.settings import Settings
from moderation import api, commands, detectors
from moderation.consumers import HANDLERS
from moderation.pipeline import Context, Pipeline
from moderation.store import Store

_BACKLOG_EVERY_SECONDS = 1.0


async def judge(runtime: Runtime) -> None:
    """Judge what waits, in batches."""
    pipeline: Pipeline = await asyncio.to_thread(detectors.load)
    pools: dict[str, Context] = {}
    while True:
        async with runtime.database.transaction() as connection:
            names = await commands.judge_names(Store(connection), pipeline, runtime.metrics)
        async with runtime.database.transaction() as connection:
            models = await commands.judge_models(Store(connection), pipeline, runtime.metrics)
        async with runtime.database.transaction() as connection:
            texts = await commands.judge_texts(Store(connection), pipeline, pools, runtime.metrics)
        if texts:
            runtime.wake("publish")
        if not names and not models and not texts:
            await runtime.woken("judge")


async def publish(runtime: Runtime) -> None:
    """Tell what may be told, as soon as it may."""
    while True:
        async with runtime.database.transaction() as connection:
            told = await commands.publish(Store(connection))
        if not told:
            await runtime.woken("publish")


async def measure_the_backlog(runtime: Runtime) -> None:
    """Show what waits and for how long."""
    while True:
        async with runtime.database.transaction() as connection:
            backlog = await Store(connection).backlog()
        runtime.metrics.moderation_backlog.set(backlog.texts)
        runtime.metrics.moderation_backlog_age_seconds.set(backlog.oldest_seconds)
        await asyncio.sleep(_BACKLOG_EVERY_SECONDS)


def app(settings: Settings | None = None) -> FastAPI:
    """The application; settings come from the environment unless given."""
    return create_app(
        Service(
            name="moderation",
            package="moderation",
            routers=(api.operator, audit.routes("moderation")),
            handlers=HANDLERS,
            tasks=(judge, publish, measure_the_backlog),
        ),
        settings,
    )
