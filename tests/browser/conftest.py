"""The real pages in a real browser: boards under uvicorn, told the real season over NATS, looked at by Chromium."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import pytest
import uuid_utils
from fastapi import FastAPI
from playwright.async_api import Browser, Page, async_playwright

from boards.consumers import HANDLERS
from boards.main import app as boards_app
from common import events as ev
from common.clock import wall
from common.inbox import Delivery, apply
from testkit.fixtures import Databases
from testkit.serving import served_alone

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

    async def tell_scores(self) -> None:
        """Let the games of the locked week begin: most are over, one is being played, one is to come."""
        [locked] = [week for week in season.weeks(WEEKS + 1) if week.number == WEEKS + 1]
        event_id = UUID(bytes=uuid_utils.uuid7().bytes)
        envelope = ev.pack(
            locked.scores(), event_id=event_id, aggregate_version=1, correlation_id="the browser", time=wall()
        )
        async with self.app.state.runtime.database.transaction() as connection:
            await apply(connection, [Delivery(envelope, ev.unpack(envelope))], HANDLERS)
        self.app.state.runtime.wake_all()


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
        # A page that follows a contest is never idle.
        answer = await self.page.goto(self.url + path, wait_until="load")
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
    told = season.told(WEEKS, locked=1, opened=1)
    folder = tmp_path_factory.mktemp("nats")
    async with served_alone(
        "boards", boards_app, told, databases=databases, folder=folder, waits=_nothing, clock=CLOCK
    ) as (url, app):
        yield Site(url, app)


async def _nothing(_: FastAPI) -> bool:
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
