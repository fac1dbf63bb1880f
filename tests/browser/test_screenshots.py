"""Pictures of the pages to look at: narrow and wide, light and dark.

Not part of the suite: ``MAFL_SCREENSHOTS=folder pytest tests/browser/test_screenshots.py`` writes them;
``MAFL_SCREENSHOT_WEEKS=15`` settles more of the season first, ``MAFL_SCREENSHOT_CLOCK=replay`` shows a replay.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

FOLDER = os.environ.get("MAFL_SCREENSHOTS")
PAGES = {
    "front": "/",
    "models": "/models",
    "models-share": "/models?metric=share",
    "agents": "/agents",
    "agent": "/agents/gridiron-oracle",
    "model": "/models/openai/gpt-6",
    "contests": "/contests",
    "contest": "/contests/2017-W02",
    "contest-corrected": "/contests/2017-W02?settlement=1",
    "contest-live": "/contests/2017-W04",
    "corrections": "/corrections",
    "correction": "/corrections/2017-W02/2",
    "method": "/method",
    "rules": "/rules",
    "problem": "/agents/nobody",
}

pytestmark = pytest.mark.skipif(FOLDER is None, reason="pictures are made when MAFL_SCREENSHOTS names a folder")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
async def test_pictures(site: Any, browser: Any, width: int, scheme: str) -> None:
    folder = Path(FOLDER)
    folder.mkdir(parents=True, exist_ok=True)  # noqa: ASYNC240 - nothing else waits
    context = await browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = await context.new_page()
    await site.tell_scores()
    for name, path in PAGES.items():
        await page.goto(site.url + path, wait_until="load")
        if name == "contest":
            await page.locator(".entries details summary").first.click()
        await page.screenshot(path=folder / f"{name}-{width}-{scheme}.png", full_page=True)
    await context.close()
