"""Every answer that any test of contests gets is held to the OpenAPI document of contests."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from testkit.fixtures import Start, Started

from .described import Described


@pytest.fixture
def start(start: Start) -> Start:
    """As the test kit's, with each answer checked."""

    @asynccontextmanager
    async def checked(name: str, **options: Any) -> AsyncIterator[Started]:
        async with start(name, **options) as service:
            described = Described(service.app)
            for client in (service.client, service.operator):
                client.event_hooks["response"] = [described.check]
            yield service

    return checked
