"""The real pages in a real browser: boards under uvicorn, told the real season over NATS, looked at by Chromium."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import socket
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import pytest
import uuid_utils
import uvicorn
from fastapi import FastAPI
from playwright.async_api import Browser, Page, async_playwright

from boards.main import app as boards_app
from common import events as ev
from common.clock import wall
from common.provision import provision
from common.settings import Settings
from embedded.nats import Nats
from testkit.fixtures import OPERATOR_TOKEN, Databases, admin

CHROMIUM = Path(os.environ.get("MAFL_CHROMIUM", "/usr/bin/chromium"))
WEEKS = int(os.environ.get("MAFL_SCREENSHOT_WEEKS", "3"))
CLOCK = os.environ.get("MAFL_SCREENSHOT_CLOCK", "system")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

_spec = importlib.util.spec_from_file_location("browser_season", Path(__file__).with_name("season.py"))
assert _spec is not None
assert _spec.loader is not None
season = importlib.util.module_from_spec(_spec)
sys.modules["browser_season"] = season
_spec.loader.exec_module(season)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without a browser there is nothing to look with; CI installs one, and there its absence is a failure."""
    if CHROMIUM.exists() or os.environ.get("CI") == "true":
        return
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=f"no Chromium at {CHROMIUM} (apt-get install chromium)"))


@dataclass
class Site:
    """A running boards service with three settled weeks, one locked and one open."""

    url: str
    app: FastAPI


class Visit:
    """A page in the browser that keeps note of what must not happen: errors and requests to elsewhere."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.errors: list[str] = []
        self.elsewhere: list[str] = []
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on(
            "request",
            lambda request: None if request.url.startswith((url, "data:")) else self.elsewhere.append(request.url),
        )

    async def open(self, path: str) -> None:
        answer = await self.page.goto(self.url + path, wait_until="networkidle")
        assert answer is not None
        assert answer.status == 200, path

    async def overflow(self) -> int:
        """How many pixels the page is wider than the window."""
        width: int = await self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        return width


@pytest.fixture(scope="session")
async def site(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    """Boards on a port of loopback, told by events."""
    bus = Nats(tmp_path_factory.mktemp("nats"), durable=False)
    bus.start()
    async with admin(bus) as client:
        js = client.jetstream()
        await provision(js)
        for event, version in season.told(WEEKS, locked=1, opened=1):
            envelope = ev.pack(
                event,
                event_id=UUID(bytes=uuid_utils.uuid7().bytes),
                aggregate_version=version,
                correlation_id="season",
                time=wall(),
            )
            await js.publish(event.subject(), envelope.model_dump_json().encode())
    settings = Settings.model_validate(
        {
            "database_url": databases.fresh("boards"),
            "nats_url": bus.url("boards"),
            "operator_token": OPERATOR_TOKEN,
            "environment": "embedded",
            "clock": CLOCK,
            "log_level": "warning",
        }
    )
    app = boards_app(settings)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = uvicorn.Server(
        uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning", timeout_graceful_shutdown=5)
    )
    running = asyncio.create_task(server.serve())
    deadline = time.monotonic() + 60
    while not server.started or await _waiting(app):
        assert time.monotonic() < deadline, "boards did not take the season in time"
        await asyncio.sleep(0.1)
    yield Site(f"http://127.0.0.1:{port}", app)
    server.should_exit = True
    await running
    bus.stop()


async def _waiting(app: FastAPI) -> bool:
    for consumer in app.state.consumers:
        if await app.state.watch.waiting(consumer) != 0:
            return True
    return False


@pytest.fixture(scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Debian's Chromium, headless."""
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield launched
        await launched.close()


@pytest.fixture
async def visit(site: Site, browser: Browser) -> AsyncIterator[Visit]:
    """A fresh narrow page: what fits at 360 pixels fits everywhere."""
    context = await browser.new_context(viewport={"width": 360, "height": 740})
    yield Visit(await context.new_page(), site.url)
    await context.close()
