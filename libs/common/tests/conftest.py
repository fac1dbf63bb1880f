"""The probe: a service made of ``libs/common`` alone, under the name and rights of a real one."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from common.settings import Settings
from embedded.nats import Nats
from testkit.fixtures import OPERATOR_TOKEN, Databases, Started, ready

sys.path.insert(0, str(Path(__file__).parent))

from probe import Probe


@pytest.fixture
def probe() -> Probe:
    return Probe()


@pytest.fixture
def run(probe: Probe, databases: Databases, nats_server: Nats) -> Callable[..., AbstractAsyncContextManager[Started]]:
    """Start the probe on a database of its own: ``async with run() as service``."""

    @asynccontextmanager
    async def running(*, database_url: str | None = None, nats_url: str | None = None) -> AsyncIterator[Started]:
        settings = Settings.model_validate(
            {
                "database_url": database_url or databases.fresh("probe"),
                "nats_url": nats_url or nats_server.url("settlement"),
                "operator_token": OPERATOR_TOKEN,
                "environment": "embedded",
                "log_level": "warning",
            }
        )
        app = probe.app(settings)
        async with app.router.lifespan_context(app):
            service = Started(app, settings, nats_server)
            async with service.client, service.operator:
                if nats_url is None:
                    await ready(service.client)
                yield service

    return running
