"""A person claims an agent in a real browser, through a real provider, on the whole stack, and lets it go again."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

import httpx
import oidc_provider_mock
import psycopg
import pytest
import werkzeug.serving
from nats.js.errors import NotFoundError
from playwright.async_api import Browser, Page, expect
from psycopg import sql

from common import topology
from embedded.nats import Nats
from embedded.stack import Ports, Stack, StackOptions
from house.roster import Member
from house.season import Season, read_files
from house.strategies import Strategy, Style
from testkit.contracts import ROOT
from testkit.fixtures import admin

WEEKS = 2
NAME = "Found by Ann"
PLAYERS = (
    Member("Gridiron Gail", "demo/aurora-1", Style(Strategy.VALUE), owner="Gail"),
    Member(NAME, "demo/ember-7b", Style(Strategy.TRAILING), aside="More on https://example.org/picks."),
)
PICTURES = os.environ.get("MAFL_SCREENSHOTS")

pytestmark = pytest.mark.timeout(300)


@dataclass
class Played:
    """A stack with two settled weeks, and the way to an agent that nobody has claimed."""

    url: str
    claim: str
    key: str
    state: Path
    bus: Nats
    database_port: int
    operator: httpx.AsyncClient
    desk: str
    token: str

    @property
    def outbox(self) -> Path:
        return self.state / "outbox"


@contextmanager
def provider() -> Iterator[str]:
    """An OpenID provider on loopback, at which anybody may sign in as anybody."""
    app = oidc_provider_mock.app(require_nonce=True)
    server = werkzeug.serving.make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
async def played(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Played]:
    """The first weeks of 2017, played by one agent that an operator claimed and one that nobody did."""
    state = tmp_path_factory.mktemp("stack")
    with provider() as issuer:
        club = {"name": "club", "title": "The Club", "issuer": issuer, "client_id": "mafl", "client_secret": "s"}
        options = StackOptions(
            state=state,
            ports=Ports.free(),
            clock="replay",
            durable=False,
            environment={
                "MAFL_REGISTRY_ISSUERS": json.dumps([club]),
                "MAFL_MAIL_OUTBOX": str(state / "outbox"),
            },
        )
        async with Stack(options) as stack:
            season = Season(
                stack.public_url,
                stack.operator_url,
                stack.operator_token,
                read_files(ROOT / "data", 2017, WEEKS),
                members=PLAYERS,
            )
            await season.play()
            async with httpx.AsyncClient(base_url=stack.public_url) as agent:
                key = season._field.playing[NAME].client._headers
                link = await agent.post("/api/v1/agents/me/claim-link", headers=key)
            assert link.status_code == 201, link.text
            token = {"Authorization": f"Bearer {stack.operator_token}"}
            async with httpx.AsyncClient(base_url=stack.operator_url, headers=token) as operator:
                assert stack._bus is not None
                yield Played(
                    stack.public_url,
                    link.json()["claim_url"],
                    key["Authorization"].removeprefix("Bearer "),
                    state,
                    stack._bus,
                    stack.ports["postgres"],
                    operator,
                    stack.operator_url,
                    stack.operator_token,
                )


@pytest.fixture
async def person(browser: Browser) -> AsyncIterator[Page]:
    """A browser of a person's own, with script switched off: the pages need none."""
    context = await browser.new_context(viewport={"width": 360, "height": 740}, java_script_enabled=False)
    yield await context.new_page()
    await context.close()


async def until(what: str, ask: Callable[[], Awaitable[bool]]) -> None:
    deadline = time.monotonic() + 30
    while not await ask():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        await asyncio.sleep(0.2)


async def picture(page: Page, name: str) -> None:
    """The page as it is now, narrow and wide, light and dark, where MAFL_SCREENSHOTS names a folder."""
    if PICTURES is None:
        return
    before = page.viewport_size
    for width in (360, 1280):
        for scheme in ("light", "dark"):
            await page.set_viewport_size({"width": width, "height": 800})
            await page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            await page.screenshot(path=Path(PICTURES) / f"{name}-{width}-{scheme}.png", full_page=True)
    assert before is not None
    await page.set_viewport_size(before)


def mailed(played: Played, address: str) -> str:
    """The link in the one mail to an address."""
    [mail] = [text for file in played.outbox.glob("*.eml") if address in (text := file.read_text())]
    return next(line for line in mail.splitlines() if line.startswith(played.url))


def everything_in_files(played: Played) -> dict[str, str]:
    """Every file that the stack keeps, but the mails, its own passwords and the servers' binary stores."""
    not_text = {played.outbox, played.state / "postgres", played.state / "nats"}
    own = {played.state / "stack.json", played.state / "secrets.json"}
    return {
        str(file.relative_to(played.state)): file.read_text(errors="replace")
        for file in played.state.rglob("*")
        if file.is_file() and file not in own and not not_text.intersection(file.parents)
    }


def everything_in_databases(played: Played) -> dict[str, str]:
    """Every row of every table of every schema of each service, as PostgreSQL writes it."""
    passwords = json.loads((played.state / "secrets.json").read_text())["databases"]
    found: dict[str, str] = {}
    for service in topology.SERVICES:
        rows: list[str] = []
        with psycopg.connect(
            host="127.0.0.1",
            port=played.database_port,
            user=service,
            password=passwords[service],
            dbname=service,
        ) as connection:
            tables = connection.execute(
                "SELECT schemaname, tablename FROM pg_tables"
                " WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
            ).fetchall()
            for schema, table in tables:
                query = sql.SQL("SELECT t::text FROM {} t").format(sql.Identifier(schema, table))
                rows += [f"{schema}.{table}: {row}" for (row,) in connection.execute(query)]
        found[f"database {service}"] = "\n".join(rows)
    return found


async def everything_told(played: Played) -> dict[str, str]:
    """Every message of every stream, with its headers."""
    found: dict[str, str] = {}
    async with admin(played.bus) as client:
        js = client.jetstream()
        for info in await js.streams_info():
            name = str(info.config.name)
            messages: list[str] = []
            for sequence in range(max(1, info.state.first_seq), info.state.last_seq + 1):
                with contextlib.suppress(NotFoundError):  # Superseded: no longer kept.
                    message = await js.get_msg(name, sequence)
                    messages.append(f"{message.subject} {message.headers} {(message.data or b'').decode()}")
            found[f"stream {name}"] = "\n".join(messages)
    return found


@pytest.mark.rule("A4", "A5", "A6", "A10", "M2", "M4")
async def test_a_claim_brings_past_reasoning_and_name_and_a_release_takes_both(played: Played, person: Page) -> None:
    board, contest = f"{played.url}/agents", f"{played.url}/contests/2017-W01"

    async def on_the_board() -> bool:
        await person.goto(board)
        return await person.locator(".rows .who").filter(has_text=NAME).count() == 1

    async def with_its_words() -> bool:
        await person.goto(contest)
        entry = person.locator(".entries details").filter(has_text=NAME)
        return await entry.count() == 1 and await entry.locator(".thesis").count() == 1

    async def nowhere() -> bool:
        await person.goto(board)
        listed = NAME in await person.content()
        await person.goto(contest)
        return not listed and NAME not in await person.content() and await person.locator(".thesis").count() == 1

    assert await nowhere(), "unclaimed, it has neither name nor words; the operator's agent has both"
    await person.goto(played.claim)
    await expect(person.get_by_role("heading", level=1)).to_have_text(NAME)
    assert await person.get_by_role("checkbox").count() == 0
    await picture(person, "claim-before")
    await person.get_by_role("link", name="Sign in to claim it").click()
    await picture(person, "signin")
    await person.get_by_role("link", name="Continue with The Club").click()
    assert not person.url.startswith(played.url)
    await person.locator("input[name=sub]").first.fill("ann@example.org")
    await person.get_by_role("button", name="Authorize").first.click()
    assert person.url == played.claim
    await picture(person, "claim")
    await person.get_by_role("checkbox").check()
    await person.get_by_role("button", name="Claim this agent").click()
    assert urlsplit(person.url).path == "/me"
    await expect(person.get_by_role("heading", level=2)).to_have_text(NAME)

    await until("the agent on the board", on_the_board)
    await until("its past reasoning", with_its_words)
    await person.goto(f"{played.url}/me")
    assert await person.get_by_text("2017-W02, revision").count() == 1
    assert await person.get_by_text("18 of 19 texts published, 1 flagged").count() == 1
    withheld = person.locator(".withheld").filter(has_text="Withheld in 2017-W02")
    assert "link" in await withheld.inner_text()
    await withheld.locator("summary").click()
    await withheld.get_by_role("textbox").fill("It is my own page, and about football alone.")
    await picture(person, "me")
    await withheld.get_by_role("button", name="Ask for a review").click()
    assert await person.get_by_text("You asked for a review on").count() == 1
    assert await person.get_by_text("It is my own page, and about football alone.").count() == 1

    async def in_the_queue() -> bool:
        queue = (await played.operator.get("/operator/api/v1/moderation/queue")).json()
        asked = [text for text in queue["items"] if text["review_requested_at"]]
        return [(text["contest"], text["review_sentence"]) for text in asked] == [
            ("2017-W02", "It is my own page, and about football alone.")
        ]

    await until("the request in the moderators' queue", in_the_queue)
    await person.goto(f"{played.desk}/operator/moderation")
    await person.get_by_label("Your name").fill("Ada")
    await person.get_by_label("The operator's token").fill(played.token)
    await person.get_by_role("button", name="Sign in").click()
    asked = person.locator("article").filter(has_text="Its owner asks for a review")
    assert "It is my own page, and about football alone." in await asked.inner_text()
    assert NAME in await asked.inner_text()
    await asked.get_by_label("Note").fill("It is.")
    await asked.get_by_role("button", name="Approve").click()
    await expect(person.get_by_role("status")).to_contain_text("You approved: rationale of pick 1")

    async def answered() -> bool:
        await person.goto(f"{played.url}/me")
        return await person.get_by_text(": it is cleared.").count() == 1

    await until("the owner to read what became of it", answered)
    assert await person.get_by_text("19 of 19 texts published").count() == 1
    assert (await person.goto(f"{played.url}/operator/moderation")).status == 404  # type: ignore[union-attr]
    await person.goto(played.claim)
    await expect(person.get_by_role("heading", level=1)).to_have_text("This claim link has been used")
    await picture(person, "claim-used")

    await person.goto(f"{played.url}/me")
    await person.get_by_role("link", name="New key").click()
    await picture(person, "key")
    await person.get_by_role("link", name="Keep the present key").click()
    await person.get_by_role("link", name="Release").click()
    await picture(person, "release")
    await person.get_by_role("button", name="Release it").click()
    assert urlsplit(person.url).path == "/me"
    assert await person.get_by_text("claimed no agent yet").count() == 1
    await picture(person, "me-empty")
    await until("name and words to go", nowhere)
    await person.goto(f"{played.url}/me")
    await person.get_by_role("button", name="Sign out").click()
    assert urlsplit(person.url).path == "/signin"
    await person.goto(f"{played.url}/me")
    assert urlsplit(person.url).path == "/signin"


@pytest.mark.rule("A6")
async def test_a_person_without_an_account_anywhere_signs_in_by_mail(played: Played, person: Page) -> None:
    await person.goto(f"{played.url}/signin")
    await person.get_by_label("Mail address").fill("bob@example.org")
    await person.get_by_role("button", name="Send me a link").click()
    await expect(person.get_by_role("heading", level=1)).to_have_text("Look at your mail")
    await picture(person, "mailed")
    link = mailed(played, "bob@example.org")
    await person.goto(link)
    await picture(person, "mail-link")
    await person.get_by_role("button", name="Sign in").click()
    assert urlsplit(person.url).path == "/me"
    assert await person.get_by_text("Signed in with a link by mail").count() == 1


async def test_the_pages_for_people_fit_a_narrow_window_and_ask_nobody_else(played: Played, browser: Browser) -> None:
    context = await browser.new_context(viewport={"width": 360, "height": 740})
    page = await context.new_page()
    asked: list[str] = []
    errors: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    for path in ("/signin", "/signin?next=/me"):
        answer = await page.goto(played.url + path, wait_until="networkidle")
        assert answer is not None
        assert answer.status == 200
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert await page.evaluate(wide) <= 0
        assert await page.locator("h1").count() == 1
    assert errors == []
    assert all(url.startswith(played.url) for url in asked)
    await context.close()


@pytest.mark.rule("A1", "A6")
async def test_what_was_secret_is_in_no_log_no_file_no_stream_and_no_database(played: Played, person: Page) -> None:
    """Last, so that all that the tests before left behind is looked through as well."""
    await person.goto(played.claim)
    await person.goto(f"{played.url}/signin")
    await person.get_by_role("link", name="Continue with The Club").click()
    await person.locator("input[name=sub]").first.fill("ann@example.org")
    await person.get_by_role("button", name="Authorize").first.click()
    await person.goto(f"{played.url}/me")
    await person.get_by_role("button", name="Sign out").click()
    await person.get_by_label("Mail address").fill("carol@example.org")
    await person.get_by_role("button", name="Send me a link").click()
    link = mailed(played, "carol@example.org")
    await person.goto(link)
    await person.get_by_role("button", name="Sign in").click()
    assert urlsplit(person.url).path == "/me"
    answer = await person.goto(link)
    assert answer is not None
    assert answer.status == 410
    pages = {"the page of a used link": await person.content()}
    assert len(await person.context.cookies()) == 2

    hidden = {
        "the key": played.key,
        "the claim token": played.claim.rpartition("/")[2],
        "the mail token": link.rpartition("/")[2],
        "the OpenID subject": "ann@example.org",
        "the mail address": "carol@example.org",
        "the address in an address": quote("carol@example.org", safe=""),
        **{f"cookie {cookie['name']}": cookie["value"] for cookie in await person.context.cookies()},
    }
    kept = pages | everything_in_files(played) | await asyncio.to_thread(everything_in_databases, played)
    kept |= await everything_told(played)
    found = [f"{what} in {where}" for what, secret in hidden.items() for where, text in kept.items() if secret in text]
    assert found == []
    # The look-out works: what is meant to be found is.
    assert {f"database {service}" for service in topology.SERVICES} <= kept.keys()
    assert {f"log/{name}.log" for name in (*topology.SERVICES, "caddy", "stack")} <= kept.keys()
    assert hashlib.sha256(played.key.encode()).hexdigest() in kept["database registry"]
    assert NAME in kept["database registry"]
    assert NAME in kept["stream REGISTRY"]
