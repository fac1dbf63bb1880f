"""Operators judge in a real browser: by the keyboard, two at once, with hostile words before them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

import pytest
from fastapi import FastAPI
from playwright.async_api import Browser, Page, expect

from common import events as ev
from common.clock import wall
from moderation.main import app as moderation_app
from moderation.store import Store
from testkit.fixtures import OPERATOR_TOKEN, Databases
from testkit.serving import served_alone
from testkit.small import LOCKS, opened

CONTEST = "2017-W01"
PICTURES = os.environ.get("MAFL_SCREENSHOTS")
QUEUE = "/operator/moderation"
CLEAN = {"/thesis": "Stack the shootout and fade the chalk.", "/picks/0/main_factor": "volume"}
ENTRIES: tuple[tuple[str, str], ...] = (
    ("Fourth & Long", "All of it stands on https://touts.example/week-1?ref=mafl, read it there."),
    ("winners", "Call 202-555-0143 or write to picks@touts.example before kickoff."),
    ("<b>bold</b>", '<script>document.title = "owned"</script><img src=x onerror=alert(1)> https://evil.example'),
    ("נבחרת-הפוטבול", "מהלך חזק נגד הגנה רכה, ראו https://evil.example/he לפני המשחק (2 שערים)."),
    (
        "bidi-trick",
        "Start him\u202e .gnihtyna yas ton od \u2066and https://evil.example\u2069 tell\u200b no\u200done\ufeff.",
    ),
    (
        "zalgo",
        "Z" + "\u0313\u0343\u0301\u0342\u0316\u0317" * 30 + "algo " + "x" * 700 + "\nhttps://evil.example\nthird line",
    ),
)


def agent(name: str) -> UUID:
    return uuid5(NAMESPACE_URL, f"moderated/{name}")


def told() -> list[tuple[ev.Event, int]]:
    """A locked contest whose lineups each have one text that moderation withholds."""
    events: list[tuple[ev.Event, int]] = [(opened(CONTEST), 1)]
    for name, text in ENTRIES:
        about = {"contest": CONTEST, "lineup_id": agent(name), "agent_id": agent(name), "revision": 1}
        words = {**CLEAN, "/picks/0/rationale": text}
        events += [
            (ev.AgentRegistered(agent_id=agent(name), agent_name=name, model="demo/aurora-1"), 1),
            (
                ev.LineupSubmitted(
                    **about,
                    accepted_at=LOCKS - timedelta(hours=2),
                    locks_at=LOCKS,
                    words=tuple(
                        ev.Words(pointer=at, text=said, salt=hashlib.sha256(at.encode()).hexdigest())
                        for at, said in words.items()
                    ),
                ),
                1,
            ),
            (
                ev.LineupLocked(
                    **about,
                    accepted_at=LOCKS - timedelta(hours=2),
                    model="demo/aurora-1",
                    marks=ev.Marks(),
                    picks=(ev.LockedPick(slot="WR1", player_id="P0", price=5000, confidence=0.5),),
                    total_price=5000,
                    projected_score=14250,
                    confidence=0.5,
                ),
                1,
            ),
        ]
    events.append((ev.ContestLocked(contest=CONTEST, locked_at=LOCKS, entries=len(ENTRIES)), 2))
    asking = agent(ENTRIES[0][0])
    events.append(
        (
            ev.ReviewRequested(
                agent_id=asking,
                lineup_id=asking,
                contest=CONTEST,
                revision=1,
                pointers=("/picks/0/rationale",),
                judged_version=1,
                requested_at=wall() - timedelta(hours=27, minutes=5),
                sentence="It is my own page, \u202eand about football alone.",
            ),
            1,
        )
    )
    return events


@dataclass
class Desk:
    """A running moderation service with something to judge."""

    url: str
    app: FastAPI


@pytest.fixture(scope="module")
async def desk(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Desk]:
    folder = tmp_path_factory.mktemp("nats")
    async with served_alone(
        "moderation", moderation_app, told(), databases=databases, folder=folder, waits=_waiting
    ) as (url, app):
        yield Desk(url, app)


async def _waiting(app: FastAPI) -> bool:
    async with app.state.runtime.database.transaction() as connection:
        backlog = await Store(connection).backlog()
    return bool(backlog.texts or backlog.names)


class Seat:
    """An operator before a window of their own, in which nothing wrong may happen."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.wrong: list[str] = []
        page.on("console", lambda message: self.wrong.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("request", lambda asked: None if asked.url.startswith(url) else self.wrong.append(asked.url))

    async def sign_in(self, who: str) -> None:
        await self.page.goto(self.url + QUEUE)
        await self.page.get_by_label("Your name").fill(who)
        await self.page.get_by_label("The operator's token").fill(OPERATOR_TOKEN)
        await self.page.get_by_role("button", name="Sign in").click()
        await expect(self.page.get_by_role("heading", level=1)).to_have_text("Moderation queue")

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.page.keyboard.press(key)

    async def chosen(self) -> str:
        """The agent of the text that the keyboard is at."""
        return await self.page.locator("article[data-current] .agent").inner_text()


@asynccontextmanager
async def seat(desk: Desk, browser: Browser, who: str, **options: Any) -> AsyncIterator[Seat]:
    context = await browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    at = Seat(await context.new_page(), desk.url)
    await at.sign_in(who)
    yield at
    await context.close()


WHAT_IS_WRONG = """() => {
  const wrong = [];
  const all = (selector) => [...document.querySelectorAll(selector)];
  const seen = (element) => element.getClientRects().length > 0 && getComputedStyle(element).visibility !== 'hidden';
  const linear = (part) => part <= .04045 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4;
  const light = ([red, green, blue]) => [.2126 * red, .7152 * green, .0722 * blue].reduce((sum, part) => sum + part);
  const luminance = (colour) => light(colour.map((part) => part / 255).map(linear));
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const colour = (text) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const ground = (element) => {
    for (; element; element = element.parentElement) {
      const found = colour(getComputedStyle(element).backgroundColor);
      if (found[3] > 250) return found.slice(0, 3);
    }
    return [255, 255, 255];
  };
  for (const element of all('body *')) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !seen(element) || element.closest('.skip')) continue;
    const written = luminance(colour(getComputedStyle(element).color).slice(0, 3));
    const below = luminance(ground(element));
    const ratio = (Math.max(written, below) + .05) / (Math.min(written, below) + .05);
    if (!(ratio >= 4.5)) wrong.push(`contrast ${ratio}: ${element.outerHTML.slice(0, 90)}`);
  }
  for (const field of all('input:not([type=hidden]), textarea, select'))
    if (seen(field) && !field.labels.length && !field.ariaLabel) wrong.push(`no label: ${field.name}`);
  for (const target of all('button, a[href]'))
    if (!(target.textContent.trim() || target.ariaLabel)) wrong.push(`no name: ${target.outerHTML.slice(0, 90)}`);
  const ids = all('[id]').map((element) => element.id);
  for (const id of new Set(ids)) if (ids.filter((other) => other === id).length > 1) wrong.push(`id twice: ${id}`);
  for (const name of ['aria-labelledby', 'aria-describedby'])
    for (const element of all(`[${name}]`))
      if (!document.getElementById(element.getAttribute(name))) wrong.push(`${name} of nothing`);
  if (all('h1').length !== 1) wrong.push('not one h1');
  if (!document.documentElement.lang) wrong.push('no language');
  const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  if (wide > 0) wrong.push(`${wide} pixels too wide`);
  return wrong;
}"""
"""What WCAG AA can be measured of, in the page itself: contrast, labels, names, references; and that it fits."""


@pytest.mark.rule("M4")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1280])
async def test_the_pages_can_be_read_at_any_width_in_light_and_in_dark_whatever_is_on_them(
    desk: Desk, browser: Browser, width: int, scheme: str
) -> None:
    case = f"{QUEUE}/case?lineup={agent('bidi-trick')}&pointer=/picks/0/rationale"
    size = {"width": width, "height": 800}
    async with seat(desk, browser, "Ada", viewport=size, color_scheme=scheme) as ada:
        for name, path in (("queue", QUEUE), ("case", case), ("acts", f"{QUEUE}/audit"), ("none", f"{QUEUE}?words=no")):
            await ada.page.goto(desk.url + path)
            assert await ada.page.evaluate(WHAT_IS_WRONG) == [], name
            await picture(ada.page, f"desk-{name}-{width}-{scheme}")
        assert await ada.page.title() != "owned"
        await ada.page.goto(f"{desk.url}{QUEUE}/nothing")
        assert await ada.page.evaluate(WHAT_IS_WRONG) == []
        await ada.page.context.clear_cookies()
        await ada.page.goto(desk.url + QUEUE)
        assert await ada.page.evaluate(WHAT_IS_WRONG) == []
        await picture(ada.page, f"desk-signin-{width}-{scheme}")
        assert [wrong for wrong in ada.wrong if "404" not in wrong] == []


async def picture(page: Page, name: str) -> None:
    """A picture to look at, where ``MAFL_SCREENSHOTS`` names a folder."""
    if PICTURES:
        Path(PICTURES).mkdir(parents=True, exist_ok=True)  # noqa: ASYNC240 - nothing else waits
        await page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=True)


@pytest.mark.rule("M4")
async def test_an_operator_goes_through_the_queue_with_the_keyboard_alone(desk: Desk, browser: Browser) -> None:
    async with seat(desk, browser, "Ada") as ada:
        await ada.page.goto(f"{desk.url}{QUEUE}?kind=rationale")
        assert await ada.chosen() == "Fourth & Long", "what an owner asks for comes first"
        await expect(ada.page.locator("article[data-current]")).to_contain_text("waits 1 d 3 h")
        await ada.press("j", "j", "k")
        second = await ada.chosen()
        await ada.press("k", "ArrowDown")
        assert await ada.chosen() == second
        await ada.press("?")
        await expect(ada.page.locator("#keys dl")).to_be_visible()
        await ada.press("?", "n")
        await ada.page.keyboard.type("as far as I can tell")
        await ada.press("Escape", "k", "j")
        assert await ada.chosen() == second, "letters of a note are no commands"
        third = await ada.page.locator("article").nth(2).locator(".agent").inner_text()
        await ada.press("a")
        await expect(ada.page.get_by_role("status")).to_contain_text("You approved")
        assert await ada.chosen() == third, "on to what came behind it"
        await expect(ada.page.locator("article[data-current]")).to_be_focused()
        of_it = ada.page.locator("article").filter(has_text=second).filter(has_text="rationale of pick 1")
        await expect(of_it).to_have_count(0)
        await ada.press("u")
        await expect(ada.page.get_by_text("took a judgement back")).to_be_visible()
        await expect(ada.page.get_by_text("as far as I can tell", exact=True)).to_be_visible()
        await ada.press("f")
        await expect(ada.page.get_by_role("status")).to_contain_text("You flagged")
        await ada.press("/")
        await ada.page.keyboard.type("All of it stands")
        await ada.press("Enter")
        await expect(ada.page.locator("article")).to_have_count(1)
        assert await ada.chosen() == "Fourth & Long"
        await ada.press("o")
        await expect(ada.page.get_by_role("heading", level=1)).to_have_text("Rationale of pick 1, WR1 Kareem Hunt")
        await ada.press("b")
        await expect(ada.page.locator("article")).to_have_count(1)
        await ada.page.locator("#keys summary").click()
        await ada.page.get_by_label("Use these keys").uncheck()
        await ada.page.goto(desk.url + QUEUE)
        first = await ada.chosen()
        await ada.press("j", "a", "f")
        assert await ada.chosen() == first, "keys that are switched off do nothing"
        assert ada.wrong == []


@pytest.mark.rule("M4")
async def test_of_two_operators_at_one_text_the_second_sees_what_the_first_did(desk: Desk, browser: Browser) -> None:
    case = f"{QUEUE}/case?lineup={agent('zalgo')}&pointer=/picks/0/rationale"
    async with seat(desk, browser, "Ada") as ada, seat(desk, browser, "Bob", java_script_enabled=False) as bob:
        for at in (ada, bob):
            await at.page.goto(desk.url + case)
        await ada.page.get_by_label("Note").fill("Only noise.")
        await ada.page.get_by_role("button", name="Approve").click()
        await expect(ada.page.get_by_role("status")).to_contain_text("You approved")
        await bob.page.get_by_label("Note").fill("It names a site.")
        await bob.page.get_by_role("button", name="Flag", exact=True).click()
        alert = bob.page.get_by_role("alert")
        await expect(alert).to_contain_text("Ada approved it")
        await expect(alert).to_contain_text("Only noise.")
        await expect(bob.page.get_by_label("Note")).to_have_value("It names a site.")
        await picture(bob.page, "desk-meanwhile")
        await bob.page.get_by_role("button", name="Flag", exact=True).click()
        await expect(bob.page.get_by_role("status")).to_contain_text("You flagged")
        await ada.page.goto(f"{desk.url}{QUEUE}/audit")
        rows = ada.page.get_by_role("row").filter(has_text="judge")
        assert [await rows.nth(row).locator("td").nth(1).inner_text() for row in range(2)] == ["Bob", "Ada"]
        await ada.page.get_by_role("button", name="Sign out").click()
        await ada.page.goto(f"{desk.url}{QUEUE}/audit")
        await expect(ada.page.get_by_label("Your name")).to_be_visible()
        assert ada.wrong == []
        assert [wrong for wrong in bob.wrong if "409" not in wrong] == []
