"""The season script, loaded by its path since test folders are no packages, and a quick way to tell it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from uuid import UUID

import pytest
import uuid_utils

from boards.consumers import HANDLERS
from common import events as ev
from common.clock import wall
from common.inbox import Delivery, apply

sys.path.insert(0, str(Path(__file__).parent))

_spec = importlib.util.spec_from_file_location("boards_script", Path(__file__).with_name("script.py"))
_script = importlib.util.module_from_spec(_spec)
sys.modules["boards_script"] = _script
_spec.loader.exec_module(_script)


@pytest.fixture
def script():
    """The module that writes seasons."""
    return _script


@pytest.fixture
def tell():
    """Apply events as the durables would, each in a transaction of its own or all in batches; no bus between."""

    async def told(service, events, *, batch=64):
        deliveries = []
        for event, version in events:
            event_id = UUID(bytes=uuid_utils.uuid7().bytes)
            envelope = ev.pack(event, event_id=event_id, aggregate_version=version, correlation_id="t", time=wall())
            deliveries.append(Delivery(envelope, ev.unpack(envelope)))
        for first in range(0, len(deliveries), batch):
            async with service.runtime.database.transaction() as connection:
                await apply(connection, deliveries[first : first + batch], HANDLERS)
        return deliveries

    return told
