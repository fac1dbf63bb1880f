"""A person's walk through the public pages, in Chromium."""

from __future__ import annotations

from typing import Any

import pytest

PAGES = (
    "/",
    "/contests",
    "/contests/2017-W02",
    "/contests/2017-W04",
    "/contests/2017-W05",
    "/contests/2017-W02?settlement=1",
    "/corrections",
    "/corrections/2017-W02/2",
    "/models",
    "/models?metric=share",
    "/models/openai/gpt-6",
    "/agents",
    "/agents?metric=share",
    "/agents/gridiron-oracle",
    "/agents/waiver_wire_warrior_of_the_north",
    "/method",
    "/rules",
)


async def test_from_the_front_page_to_a_contest_an_agent_and_the_method(visit: Any) -> None:
    page = visit.page
    await visit.open("/")
    assert await page.locator("h1").inner_text() in ("No winner so far.", "anthropic/claude-opus-5 leads.")
    await page.get_by_role("navigation", name="Main").get_by_role("link", name="Contests").click()
    await page.get_by_role("link", name="Week 2, 2017").click()
    assert "possible points" in await page.locator(".lead").inner_text()

    entry = page.locator(".entries details").filter(has_text="gridiron-oracle")
    await entry.locator("summary").click()
    assert await entry.locator(".picks tbody").count() == 9
    assert await entry.locator(".thesis").inner_text()
    await entry.get_by_role("link", name="All weeks of gridiron-oracle").click()
    assert await page.locator("h1").inner_text() == "gridiron-oracle"
    assert await page.get_by_role("row").filter(has_text="2017-W03").count() == 1

    await page.get_by_role("navigation", name="Main").get_by_role("link", name="Method").click()
    assert await page.locator("h1").inner_text() == "What the numbers mean"
    await page.get_by_role("link", name="Rules", exact=True).first.click()
    assert "No prizes" in await page.locator("article").inner_text()
    assert visit.errors == []
    assert visit.elsewhere == []


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_fits_a_narrow_window_and_asks_nobody_else(visit: Any, path: str) -> None:
    await visit.open(path)
    assert await visit.overflow() <= 0
    assert visit.errors == []
    assert visit.elsewhere == []
    assert await visit.page.locator("html").get_attribute("lang") == "en"
    assert await visit.page.locator("h1").count() == 1
    assert await visit.page.title()


@pytest.mark.rule("B2", "B5")
async def test_the_cohort_stands_above_the_pooled_models_and_rows_say_their_marks(visit: Any) -> None:
    await visit.open("/models")
    headings = await visit.page.locator("h2").all_inner_texts()
    assert headings[0] == "Control cohort"
    assert "observational" in headings[1]
    text = await visit.page.locator("main").inner_text()
    assert "small sample" in text
    drawings = visit.page.locator("svg[role=img]")
    assert "95% interval" in (await drawings.first.get_attribute("aria-label") or "")


@pytest.mark.rule("A10", "M2")
async def test_hostile_names_are_shown_as_text_and_withheld_words_say_why(visit: Any) -> None:
    await visit.open("/contests/2017-W02")
    main = visit.page.locator("main")
    assert await main.locator("bdi > b").count() == 0
    assert await main.get_by_text("<b>bold</b>").count() >= 1
    content = await visit.page.content()
    for hidden in ("my-secret-name", "nobody-owns-me", "unspeakable"):
        assert hidden not in content
    await main.locator(".entries details").filter(has_text="loudmouth").locator("summary").click()
    assert "moderation flagged this text" in await main.inner_text()


@pytest.mark.rule("C8")
async def test_before_the_lock_a_contest_shows_its_pool_and_nothing_else(visit: Any) -> None:
    await visit.open("/contests/2017-W05")
    assert await visit.page.locator(".entries").count() == 0
    rows = visit.page.get_by_role("region", name="Pool").locator("tbody tr")
    assert await rows.count() > 250


async def test_the_first_stop_of_the_keyboard_skips_to_the_content(visit: Any) -> None:
    await visit.open("/models")
    await visit.page.keyboard.press("Tab")
    await visit.page.keyboard.press("Enter")
    assert await visit.page.evaluate("document.activeElement.id") == "content"


@pytest.mark.rule("M1")
async def test_a_contests_page_follows_the_scores_and_keeps_what_a_reader_has_open(visit: Any, site: Any) -> None:
    page = visit.page
    await visit.page.goto(f"{visit.url}/contests/2017-W04")
    entry = page.locator(".entries details").filter(has_text="gridiron-oracle")
    await entry.locator("summary").click()
    await page.get_by_text("This page follows the scores by itself.").wait_for()
    assert "No game has been scored yet." in await page.locator("main").inner_text()
    await site.tell_scores()
    await page.get_by_text("Scores are provisional").wait_for()
    assert await page.locator(".entries details[open]").count() == 1
    assert await entry.locator(".picks tbody").count() == 9
    assert await page.evaluate("document.activeElement.closest('details').textContent.includes('gridiron-oracle')")
    assert await visit.overflow() <= 0
    assert "3 to come" in await page.locator("main").inner_text()
    assert visit.errors == []
    assert visit.elsewhere == []
