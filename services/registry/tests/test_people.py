"""People: signing in for real, claiming, and looking after their agents."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import html
import json
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit
from uuid import UUID, uuid4
from wsgiref.types import StartResponse, WSGIEnvironment

import httpx
import oidc_provider_mock
import pytest
import werkzeug.serving
from aiosmtpd.controller import Controller
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, RSAKey
from pydantic import ValidationError
from sqlalchemy import func, select, update

from common import events as ev
from common.reasons import explained
from common.settings import Settings
from embedded.process import free_port
from registry import domain, pages, signin
from registry.settings import PeopleSettings
from registry.store import AGENTS, CLAIM_LINKS, IDENTITIES, MAIL_LINKS, OWNERS, SESSIONS, SIGN_INS, Store
from testkit.contracts import ROOT
from testkit.fixtures import Start, Started
from testkit.fixtures import admin as bus_admin

ORIGIN = "http://127.0.0.1:8000"
"""The public origin of the tests' settings: forms must come from it, and providers send people back to it."""


# --- providers: real servers on loopback ---------------------------------------------------------


@contextmanager
def serve(app: Callable[..., Any]) -> Iterator[str]:
    server = werkzeug.serving.make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class DemandsPkce:
    """RFC 7636 in front of the provider, which does not check it: no code without its verifier."""

    def __init__(self, provider: Any) -> None:
        self.provider = provider
        self.challenges: dict[str, str] = {}

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Any:
        asked = dict(parse_qsl(environ.get("QUERY_STRING", "")))
        if environ["PATH_INFO"] == "/oauth2/token":
            body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
            environ["wsgi.input"] = _Input(body)
            form = dict(parse_qsl(body.decode()))
            digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
            if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != self.challenges.get(form["code"]):
                start_response("400 Bad Request", [("Content-Type", "application/json")])
                return [b'{"error": "invalid_grant"}']

        def noting(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            code = parse_qs(urlsplit(dict(headers).get("Location", "")).query).get("code")
            if code and asked.get("code_challenge_method") == "S256":
                self.challenges[code[0]] = asked["code_challenge"]
            return start_response(status, headers, *rest)

        return self.provider(environ, noting)


class _Input:
    def __init__(self, body: bytes) -> None:
        self.body = body

    def read(self, size: int = -1) -> bytes:
        read = self.body if size < 0 else self.body[:size]
        self.body = self.body[len(read) :]
        return read


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    with serve(DemandsPkce(oidc_provider_mock.app(require_nonce=True))) as url:
        yield url


class GitHubServer:
    """A server that speaks GitHub's OAuth, PKCE included; ``number`` is the account that agrees."""

    def __init__(self) -> None:
        self.number = 4711
        self.codes: dict[str, dict[str, str]] = {}

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        path = environ["PATH_INFO"]
        headers = [("Content-Type", "application/json")]
        document: dict[str, Any] = {}
        if path == "/login/oauth/authorize":
            asked = dict(parse_qsl(environ["QUERY_STRING"]))
            code = uuid4().hex
            self.codes[code] = asked
            answer = urlencode({"code": code, "state": asked["state"]})
            start_response("302 Found", [("Location", f"{asked['redirect_uri']}?{answer}")])
            return [b""]
        if path == "/login/oauth/access_token":
            form = dict(parse_qsl(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])).decode()))
            asked = self.codes.pop(form["code"], {})
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            good = (
                base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == asked.get("code_challenge")
                and form["redirect_uri"] == asked["redirect_uri"]
                and form["client_secret"] == "github-secret"
            )
            # GitHub answers 200 to a bad code as well.
            document = {"access_token": f"gho_{self.number}"} if good else {"error": "bad_verification_code"}
        elif path == "/user" and environ.get("HTTP_AUTHORIZATION", "").startswith("Bearer gho_"):
            document = {"id": int(environ["HTTP_AUTHORIZATION"].rpartition("_")[2]), "login": "renamed-now-and-then"}
        start_response("200 OK", headers)
        return [json.dumps(document).encode()]


@pytest.fixture
def configured(monkeypatch: pytest.MonkeyPatch, issuer: str, tmp_path: Path) -> str:
    """The registry with an OpenID provider and mail into an outbox."""
    provider = {"name": "club", "issuer": issuer, "client_id": "mafl", "client_secret": "s3cret", "title": "The Club"}
    monkeypatch.setenv("MAFL_REGISTRY_ISSUERS", json.dumps([provider]))
    monkeypatch.setenv("MAFL_MAIL_OUTBOX", str(tmp_path / "outbox"))
    return issuer


# --- a person's browser --------------------------------------------------------------------------


class Browser:
    """A person's browser: cookies of its own, forms filled from the page that shows them.

    No page of an error that it meets, in whatever test, may repeat a mail address that the person gave.
    """

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client
        self.page = ""
        self.addresses: set[str] = set()

    async def open(self, path: str) -> httpx.Response:
        return self._read(await self.client.get(path))

    def _read(self, answer: httpx.Response) -> httpx.Response:
        if answer.status_code >= 400:
            for address in self.addresses:
                assert address not in html.unescape(answer.text), (answer.request.url.path, address)
        self.page = answer.text
        return answer

    async def submit(self, path: str, *, origin: str | None = ORIGIN, **fields: str) -> httpx.Response:
        """Send the form of the page that is open; ``csrf`` among the fields overrides the page's."""
        found = re.search(r'name="csrf" value="([^"]+)"', self.page)
        content = {"csrf": found[1] if found else "", **fields}
        headers = {} if origin is None else {"Origin": origin}
        self.addresses |= {address for address in [fields.get("address", "")] if "@" in address.strip("@")}
        return self._read(await self.client.post(path, data=content, headers=headers))

    async def depart(self, way: str = "club") -> str:
        """Off to a provider; its address."""
        answer = await self.open(f"/signin/with/{way}")
        assert answer.status_code == 303, answer.text
        return answer.headers["location"]

    async def sign_in(self, who: str, to: str = "/me") -> httpx.Response:
        self.addresses |= {who} if "@" in who else set()
        await self.open(f"/signin?next={to}")
        back = await agree(await self.depart(), who)
        answer = await self.open(back)
        assert answer.status_code == 303, answer.text
        assert answer.headers["location"] == to
        return answer

    async def sign_in_again(self, who: str) -> None:
        """Sign in while being signed in."""
        assert (await self.open(await agree(await self.depart(), who))).status_code == 303

    @property
    def session(self) -> str | None:
        return self.client.cookies.get("mafl-session")


async def agree(address: str, who: str) -> str:
    """Sign in at the provider as somebody; where it sends the browser, as path and query."""
    async with httpx.AsyncClient() as plain:
        answer = await plain.post(address, data={"sub": who})
    assert answer.status_code == 302, answer.text
    parts = urlsplit(answer.headers["location"])
    assert f"{parts.scheme}://{parts.netloc}" == ORIGIN
    return f"{parts.path}?{parts.query}"


@asynccontextmanager
async def browser(service: Started) -> AsyncIterator[Browser]:
    transport = httpx.ASGITransport(service.app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as client:
        yield Browser(client)


async def register(service: Started, name: str = "Alice") -> dict[str, Any]:
    answer = await service.client.post("/api/v1/agents", json={"name": name, "model": "openai/gpt-5"})
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    body["path"] = urlsplit(body["claim_url"]).path
    return body


async def claimed(service: Started, person: Browser, name: str = "Alice", who: str = "ann") -> dict[str, Any]:
    agent = await register(service, name)
    await person.sign_in(who, agent["path"])
    await person.open(agent["path"])
    answer = await person.submit(agent["path"], consent="yes")
    assert answer.status_code == 303, answer.text
    return agent


async def run(service: Started, statement: Any) -> Any:
    async with service.runtime.database.transaction() as connection:
        return await connection.execute(statement)


async def count(service: Started, table: Any) -> int:
    found: int = (await run(service, select(func.count()).select_from(table))).scalar_one()
    return found


async def owner_of(service: Started, agent: dict[str, Any]) -> UUID | None:
    query = select(AGENTS.c.owner_id).where(AGENTS.c.agent_id == UUID(agent["agent"]["id"]))
    found: UUID | None = (await run(service, query)).scalar_one()
    return found


# --- claiming ------------------------------------------------------------------------------------


@pytest.mark.rule("A4", "A5", "A6", "D2")
async def test_a_person_signs_in_on_the_way_to_a_claim_and_claims_with_consent(start: Start, configured: str) -> None:
    async with start("registry") as service, browser(service) as ann:
        agent = await register(service)
        page = await ann.open(agent["path"])
        assert page.status_code == 200
        for words in ("Alice", "openai/gpt-5", "whole history comes with it", "dataset"):
            assert words in page.text
        assert "<form" not in page.text
        assert f'href="/signin?next={agent["path"]}"' in page.text
        await ann.sign_in("ann@example.org", agent["path"])

        await ann.open(agent["path"])
        refused = await ann.submit(agent["path"])
        assert refused.status_code == 422
        assert "needs your agreement" in refused.text
        assert await owner_of(service, agent) is None

        answer = await ann.submit(agent["path"], consent="yes")
        assert answer.status_code == 303
        assert answer.headers["location"] == f"/me#{agent['agent']['id']}"
        assert "Alice" in (await ann.open("/me")).text
        await service.settle()
        [event] = await service.published(ev.AgentClaimed)
        assert event.claimed
        assert event.owner_id == await owner_of(service, agent)
        assert event.agent_name == "Alice"


@pytest.mark.rule("A6")
async def test_a_claimed_agents_link_says_so_and_shows_nothing_else(start: Start, configured: str) -> None:
    async with start("registry") as service, browser(service) as ann, browser(service) as bob:
        agent = await claimed(service, ann, "Alice-of-the-link")
        await bob.sign_in("bob")
        for person in (ann, bob):
            page = await person.open(agent["path"])
            assert page.status_code == 410
            assert "has been claimed" in page.text
            assert "Alice-of-the-link" not in page.text
            assert "gpt-5" not in page.text
            assert "<form" not in page.text
        await bob.open("/me")
        assert (await bob.submit(agent["path"], consent="yes")).status_code == 410


@pytest.mark.rule("A6")
async def test_of_two_people_who_claim_at_once_one_becomes_the_owner(start: Start, configured: str) -> None:
    async with start("registry") as service, browser(service) as ann, browser(service) as bob:
        for number in range(5):
            agent = await register(service, f"Racer {number}")
            for person, who in ((ann, "ann"), (bob, "bob")):
                if person.session is None:
                    await person.sign_in(who)
                await person.open(agent["path"])
            answers = await asyncio.gather(
                ann.submit(agent["path"], consent="yes"), bob.submit(agent["path"], consent="yes")
            )
            assert sorted(answer.status_code for answer in answers) == [303, 410]
            winner = ann if answers[0].status_code == 303 else bob
            assert f"Racer {number}" in (await winner.open("/me")).text
        await service.settle()
        assert len(await service.published(ev.AgentClaimed)) == 5


@pytest.mark.rule("A6")
async def test_a_claim_link_expires_and_the_agent_makes_a_new_one_with_its_key(start: Start, configured: str) -> None:
    async with start("registry") as service, browser(service) as ann:
        agent = await register(service)
        await ann.sign_in("ann")
        await ann.open(agent["path"])
        past = func.clock_timestamp() - timedelta(seconds=1)
        await run(service, update(CLAIM_LINKS).values(expires_at=past))
        assert (await ann.submit(agent["path"], consent="yes")).status_code == 410
        page = await ann.open(agent["path"])
        assert page.status_code == 410
        assert "Alice" not in page.text

        bearer = {"Authorization": f"Bearer {agent['api_key']}"}
        links = [await service.client.post("/api/v1/agents/me/claim-link", headers=bearer) for _ in range(2)]
        assert [link.status_code for link in links] == [201, 201]
        old, new = (urlsplit(link.json()["claim_url"]).path for link in links)
        assert (await ann.open(agent["path"])).status_code == 404
        assert (await ann.open(old)).status_code == 404
        await ann.open(new)
        assert (await ann.submit(new, consent="yes")).status_code == 303
        after = await service.client.post("/api/v1/agents/me/claim-link", headers=bearer)
        assert (after.status_code, after.json()["code"]) == (409, "already-claimed")


async def test_a_claim_link_needs_the_agents_key(start: Start) -> None:
    async with start("registry") as service:
        answer = await service.client.post("/api/v1/agents/me/claim-link")
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")


@pytest.mark.rule("A6")
async def test_a_claim_link_outlives_a_replayed_season(start: Start, configured: str) -> None:
    async with start("registry", clock="replay") as service, browser(service) as ann:
        agent = await register(service)
        await service.move_clock(pages.wall() + timedelta(days=200))
        assert (await ann.open(agent["path"])).status_code == 200
        await ann.sign_in("ann", agent["path"])
        await ann.open(agent["path"])
        assert (await ann.submit(agent["path"], consent="yes")).status_code == 303


# --- forms ---------------------------------------------------------------------------------------


@pytest.mark.rule("A6")
async def test_a_form_without_its_token_or_from_elsewhere_changes_nothing(start: Start, configured: str) -> None:
    async with start("registry") as service, browser(service) as ann, browser(service) as eve:
        agent = await register(service)
        await ann.sign_in("ann", agent["path"])
        await eve.sign_in("eve", agent["path"])
        await eve.open(agent["path"])
        [foreign] = re.findall(r'name="csrf" value="([^"]+)"', eve.page)
        for origin, fields in (
            (ORIGIN, {"csrf": ""}),
            (ORIGIN, {"csrf": foreign}),
            (ORIGIN, {"csrf": "x.y"}),
            ("https://evil.example", {}),
            ("null", {}),
            (ORIGIN + ".evil.example", {}),
            (None, {}),
        ):
            await ann.open(agent["path"])
            answer = await ann.submit(agent["path"], origin=origin, consent="yes", **fields)
            assert answer.status_code == 403, (origin, fields)
        assert await owner_of(service, agent) is None
        await ann.open(agent["path"])
        as_json = await ann.client.post(agent["path"], json={"consent": "yes"}, headers={"Origin": ORIGIN})
        assert as_json.status_code == 403
        large = await ann.client.post(agent["path"], content=b"x" * 10_000, headers={"Origin": ORIGIN})
        assert large.status_code == 413


async def test_every_post_of_these_pages_takes_a_form_of_this_site(start: Start) -> None:
    async with start("registry") as service:
        posts = [route for route in pages.router.routes if "POST" in route.methods]  # type: ignore[attr-defined]
        assert len(posts) >= 7
        for route in posts:
            path = route.path.replace("{agent_id}", str(uuid4())).replace("{token}", "x")  # type: ignore[attr-defined]
            assert (await service.client.post(path)).status_code == 403, path


@pytest.mark.parametrize(
    "wanted",
    [
        *("https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/me/../agents", "/me#x"),
        *("/claim/", "/claim/x", "//evil.example/claim/x", "/claim//evil.example", "/%2Fevil.example", "\r\nX: y", ""),
    ],
)
async def test_signing_in_leads_nowhere_but_to_a_claim_or_ones_own_page(
    start: Start, configured: str, wanted: str
) -> None:
    assert domain.destination(wanted) == "/me"
    token = domain.secret(domain.CLAIM_PREFIX, b"\7" * 32)
    assert domain.destination(f"/claim/{token}") == f"/claim/{token}"
    assert domain.destination(f"https://evil.example/claim/{token}") == "/me"
    assert domain.destination("/claim/" + domain.secret(domain.KEY_PREFIX, b"\7" * 32)) == "/me"


async def test_after_signing_in_a_foreign_next_leads_to_ones_own_page(start: Start, configured: str) -> None:
    async with start("registry") as service, browser(service) as ann:
        await ann.open("/signin?next=https://evil.example/me")
        answer = await ann.open(await agree(await ann.depart(), "ann"))
        assert answer.headers["location"] == "/me"
        assert (await ann.open("/signin?next=//evil.example")).headers["location"] == "/me"


async def test_the_pages_say_what_a_browser_may_do_with_them(start: Start, configured: str) -> None:
    async with start("registry") as service, browser(service) as ann:
        agent = await register(service)
        for path in ("/signin", agent["path"], "/claim/unknown", "/me"):
            answer = await ann.open(path)
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "script" not in policy
            assert "<script" not in answer.text
            assert answer.headers["cache-control"] == "no-store"
            assert answer.headers["x-frame-options"] == "DENY"
            assert answer.headers["x-content-type-options"] == "nosniff"
        style = await ann.open("/signin/static/style.css")
        assert style.headers["content-type"].startswith("text/css")
        for nothing in ("/signin/static/..%2Fpages.py", "/signin/static/x", "/signin/x", "/me/x/y"):
            answer = await ann.open(nothing)
            assert answer.status_code == 404
            assert answer.headers["content-type"].startswith("text/html")


# --- OpenID Connect ------------------------------------------------------------------------------


async def test_the_provider_is_asked_with_pkce_state_and_nonce_and_for_nothing_but_a_subject(
    start: Start, configured: str
) -> None:
    async with start("registry") as service, browser(service) as ann:
        asked = parse_qs(urlsplit(await ann.depart()).query)
        again = parse_qs(urlsplit(await ann.depart()).query)
        assert asked["code_challenge_method"] == ["S256"]
        assert asked["scope"] == ["openid"]
        assert asked["redirect_uri"] == [f"{ORIGIN}/signin/callback/club"]
        for name in ("state", "nonce", "code_challenge"):
            assert len(asked[name][0]) >= 43
            assert asked[name] != again[name]
        keys = await service.app.state.people.secrets(service.runtime)
        verifier = keys.verifier(asked["state"][0])
        assert 43 <= len(verifier) <= 128
        stored = str((await run(service, select(SIGN_INS))).all())
        for secret in (verifier, asked["state"][0], asked["nonce"][0]):
            assert secret not in stored


@pytest.mark.rule("A6")
async def test_an_answer_that_was_not_asked_for_by_this_browser_signs_nobody_in(start: Start, configured: str) -> None:
    async with start("registry") as service, browser(service) as ann, browser(service) as eve:
        anns = await agree(await ann.depart(), "ann")
        eves = await agree(await eve.depart(), "eve")
        state = parse_qs(urlsplit(anns).query)["state"][0]
        code = parse_qs(urlsplit(anns).query)["code"][0]
        for wrong in (
            eves,  # somebody else's answer: login CSRF
            f"/signin/callback/club?code={code}",
            f"/signin/callback/club?code={code}&state={state[:-1]}x",
            f"/signin/callback/other?code={code}&state={state}",
        ):
            answer = await ann.open(wrong)
            assert answer.status_code == 400, wrong
            assert ann.session is None
        # None of it has spoilt the true answer, which works once.
        assert (await ann.open(anns)).status_code == 303
        session = ann.session
        assert (await ann.open(anns)).status_code == 400
        assert ann.session == session
        assert await count(service, SESSIONS) == 1


async def test_an_answer_that_comes_late_or_says_no_signs_nobody_in(start: Start, configured: str) -> None:
    async with start("registry") as service, browser(service) as ann:
        late = await agree(await ann.depart(), "ann")
        await run(service, update(SIGN_INS).values(created_at=SIGN_INS.c.created_at - timedelta(minutes=10)))
        assert (await ann.open(late)).status_code == 400
        state = parse_qs(urlsplit(await ann.depart()).query)["state"][0]
        denied = await ann.open(f"/signin/callback/club?error=%3Cb%3Eno&state={state}")
        assert denied.status_code == 400
        assert "<b>" not in denied.text
        assert await count(service, SESSIONS) == 0


async def test_another_browsers_state_gives_another_verifier_and_nonce(start: Start, configured: str) -> None:
    """A code that leaked is worth nothing in another sign-in: its verifier and its nonce belong to its state."""
    async with start("registry") as service, browser(service) as ann, browser(service) as eve:
        code = parse_qs(urlsplit(await agree(await ann.depart(), "ann")).query)["code"][0]
        state = parse_qs(urlsplit(await eve.depart()).query)["state"][0]
        answer = await eve.open(f"/signin/callback/club?code={code}&state={state}")
        assert answer.status_code == 400
        assert "proves nothing" in answer.text
        assert await count(service, SESSIONS) == 0
        issued = await eve.depart()
        state = parse_qs(urlsplit(issued).query)["state"][0]
        mixed = await agree(issued, "eve") + "&iss=https://another.example"
        assert (await eve.open(mixed)).status_code == 400
        assert state not in str((await run(service, select(SIGN_INS))).all())


async def test_a_provider_that_is_down_or_lies_is_said_to_be_and_signs_nobody_in(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    def liar(environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        start_response("200 OK", [("Content-Type", "application/json")])
        return [b'{"issuer": "https://somebody.else"}']

    with serve(liar) as url:
        providers = [
            {"name": name, "issuer": issuer, "client_id": "mafl", "client_secret": "s"}
            for name, issuer in (("liar", url), ("down", "http://127.0.0.1:9"))
        ]
        monkeypatch.setenv("MAFL_REGISTRY_ISSUERS", json.dumps(providers))
        async with start("registry") as service, browser(service) as ann:
            for name in ("liar", "down"):
                answer = await ann.open(f"/signin/with/{name}")
                assert answer.status_code == 503
                assert "not possible at this moment" in answer.text
            assert (await ann.open("/signin/with/unknown")).status_code == 404
            assert (await ann.open("/signin/callback/unknown?code=x&state=y")).status_code == 400


RSA = RSAKey.generate_key(2048, {"kid": "one"})
NOW = 1_800_000_000
CLAIMS: dict[str, Any] = {
    "iss": "https://id.example",
    "aud": "mafl",
    "sub": "ann",
    "nonce": "n-1",
    "iat": NOW,
    "exp": NOW + 300,
}


def subject(token: str, keys: Any = RSA, **options: Any) -> str:
    given = {"issuer": "https://id.example", "client_id": "mafl", "nonce": "n-1", "now": NOW, **options}
    return signin.subject_of(token, KeySet([keys]), **given)


def token(key: Any = RSA, header: dict[str, Any] | None = None, **claims: Any) -> str:
    content = {name: value for name, value in (CLAIMS | claims).items() if value is not None}
    header = {"alg": "RS256", "kid": "one"} | (header or {})
    return jwt.encode(header, content, key, algorithms=[header["alg"]])


def test_a_good_id_token_names_its_subject() -> None:
    assert subject(token()) == "ann"
    assert subject(token(aud=["mafl"])) == "ann"
    assert subject(token(aud=["mafl", "other"], azp="mafl")) == "ann"
    assert subject(token(exp=NOW - 30)) == "ann", "clocks may differ a little"
    curve = ECKey.generate_key("P-256", {"kid": "one"})
    assert subject(token(curve, {"alg": "ES256"}), curve, supported=["ES256", "none"]) == "ann"


@pytest.mark.parametrize(
    "wrong",
    [
        {"iss": "https://evil.example"},
        {"iss": "https://id.example/"},
        {"iss": None},
        {"aud": "other"},
        {"aud": ["other"]},
        {"aud": None},
        {"aud": ["mafl", "other"], "azp": "other"},
        {"exp": NOW - 61},
        {"exp": None},
        {"iat": None},
        {"nbf": NOW + 120},
        {"nonce": "n-2"},
        {"nonce": None},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"sub": "x" * 256},
        {"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"},
    ],
    ids=str,
)
def test_an_id_token_with_a_wrong_claim_proves_nothing(wrong: dict[str, Any]) -> None:
    with pytest.raises(signin.SignInFailed) as error:
        subject(token(**wrong), access_token="an access token")
    assert "ann" not in str(error.value)


def test_an_id_token_with_another_signature_proves_nothing() -> None:
    parts = token().split(".")
    none = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
    header = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"one"}').rstrip(b"=").decode()
    mac = hmac.digest(RSA.as_pem(private=False), f"{header}.{parts[1]}".encode(), "sha256")
    shared = f"{header}.{parts[1]}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"
    for forged in (
        f"{none}.{parts[1]}.",
        f"{none}.{parts[1]}.{parts[2]}",
        f"{parts[0]}.{parts[1]}.",
        f"{parts[0]}.{parts[1]}.{parts[2][:-4]}AAAA",
        token(RSAKey.generate_key(2048, {"kid": "one"})),
        shared,  # the public key, taken for a shared secret
        "not.a.token",
        "",
    ):
        with pytest.raises(signin.SignInFailed):
            subject(forged, supported=["RS256", "HS256", "none"])
    with pytest.raises(signin.SignInFailed):
        subject(token(), supported=["none"])
    with pytest.raises(signin.UnknownKey):
        subject(token(RSAKey.generate_key(2048, {"kid": "two"}), {"kid": "two"}))


async def test_a_provider_that_changes_its_keys_is_asked_for_them_again(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = DemandsPkce(oidc_provider_mock.app())
    with serve(lambda environ, start_response: provider(environ, start_response)) as url:
        club = {"name": "club", "issuer": url, "client_id": "mafl", "client_secret": "s"}
        monkeypatch.setenv("MAFL_REGISTRY_ISSUERS", json.dumps([club]))
        async with start("registry") as service, browser(service) as ann:
            await ann.sign_in("ann")
            provider.provider = oidc_provider_mock.app()
            await ann.sign_in_again("ann")
            assert await count(service, OWNERS) == 1


# --- GitHub --------------------------------------------------------------------------------------


@pytest.mark.rule("A6")
async def test_a_github_account_is_known_by_its_number_and_signs_in_with_pkce(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = GitHubServer()
    with serve(server) as url:
        hub = {"client_id": "mafl", "client_secret": "github-secret", "url": url, "api_url": url}
        monkeypatch.setenv("MAFL_REGISTRY_GITHUB", json.dumps(hub))
        async with start("registry") as service, browser(service) as ann, browser(service) as bob:

            async def back(person: Browser) -> str:
                await person.open("/signin?next=/me")
                async with httpx.AsyncClient() as plain:
                    answer = await plain.get(await person.depart("github"))
                parts = urlsplit(answer.headers["location"])
                return f"{parts.path}?{parts.query}"

            for person in (ann, bob):
                assert (await person.open(await back(person))).headers["location"] == "/me"
                assert "Signed in with GitHub" in (await person.open("/me")).text
            assert await count(service, OWNERS) == 1
            server.number = 12
            assert (await bob.open(await back(bob))).status_code == 303
            assert await count(service, OWNERS) == 2

            code = parse_qs(urlsplit(await back(ann)).query)["code"][0]
            state = parse_qs(urlsplit(await bob.depart("github")).query)["state"][0]
            stolen = await bob.open(f"/signin/callback/github?code={code}&state={state}")
            assert stolen.status_code == 400


# --- mail ----------------------------------------------------------------------------------------


def mailed(outbox: Path) -> list[str]:
    """The links in the outbox, oldest first, as paths."""
    texts = [path.read_text() for path in sorted(outbox.glob("*.eml"))]
    return [urlsplit(re.findall(r"http://\S+/signin/mail/\S+", text)[0]).path for text in texts]


@pytest.mark.rule("A6")
async def test_a_mailed_link_signs_in_once_by_a_press_in_the_browser_that_asked(
    start: Start, configured: str, tmp_path: Path
) -> None:
    async with start("registry") as service, browser(service) as ann, browser(service) as eve:
        agent = await register(service)
        await ann.open(f"/signin?next={agent['path']}")
        answer = await ann.submit("/signin/mail", address=" Ann@Example.ORG ")
        assert answer.status_code == 200
        assert "Look at your mail" in answer.text
        [link] = mailed(tmp_path / "outbox")
        [file] = (tmp_path / "outbox").glob("*.eml")
        assert "To: ann@example.org" in file.read_text()
        assert file.stat().st_mode & 0o077 == 0

        # A program that looks at mail, and somebody to whom the mail was forwarded, use nothing up.
        assert (await eve.open(link)).status_code == 403
        await eve.open("/signin")
        assert (await eve.submit(link)).status_code == 410
        for _ in range(2):
            assert (await ann.open(link)).status_code == 200
        entered = await ann.submit(link)
        assert (entered.status_code, entered.headers["location"]) == (303, agent["path"])
        assert "Signed in with a link by mail" in (await ann.open("/me")).text

        assert (await ann.open(link)).status_code == 410
        await ann.open("/me")
        assert (await ann.submit(link)).status_code == 410
        assert await count(service, SESSIONS) == 1


async def test_a_mailed_link_ends_after_fifteen_minutes(start: Start, configured: str, tmp_path: Path) -> None:
    async with start("registry") as service, browser(service) as ann:
        await ann.open("/signin")
        await ann.submit("/signin/mail", address="ann@example.org")
        [link] = mailed(tmp_path / "outbox")
        await ann.open(link)
        await run(service, update(MAIL_LINKS).values(created_at=MAIL_LINKS.c.created_at - timedelta(minutes=15)))
        assert (await ann.submit(link)).status_code == 410
        assert (await ann.open(link)).status_code == 410
        assert ann.session is None


async def test_nobodys_mailbox_is_filled_from_here_and_no_answer_tells_who_is_known(
    start: Start, configured: str, tmp_path: Path
) -> None:
    async with start("registry") as service, browser(service) as ann:
        pages_seen = set()
        for _ in range(5):
            await ann.open("/signin")
            answer = await ann.submit("/signin/mail", address="ann@example.org")
            pages_seen.add((answer.status_code, re.sub(r'value="[^"]+"', "", answer.text)))
        assert len(pages_seen) == 1
        assert len(mailed(tmp_path / "outbox")) == 3
        for wrong in (
            "",
            "ann",
            "ann@",
            "a b@example.org",
            "ann@example.org\r\nBcc: eve@example.org",
            "x" * 250 + "@e.org",
        ):
            await ann.open("/signin")
            assert (await ann.submit("/signin/mail", address=wrong)).status_code == 422, wrong
        assert len(mailed(tmp_path / "outbox")) == 3


@pytest.mark.rule("A6")
async def test_mail_is_handed_to_a_mail_server_and_a_dead_one_is_said_to_be(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Inbox:
        def __init__(self) -> None:
            self.taken: list[Any] = []

        async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
            self.taken.append(envelope)
            return "250 OK"

    inbox = Inbox()
    port = free_port()
    controller = Controller(inbox, hostname="127.0.0.1", port=port)
    controller.start()
    try:
        monkeypatch.setenv("MAFL_REGISTRY_SMTP", f"smtp://127.0.0.1:{port}")
        monkeypatch.setenv("MAFL_REGISTRY_MAIL_FROM", "MAFL <sign-in@mafl.example>")
        async with start("registry") as service, browser(service) as ann:
            await ann.open("/signin")
            assert (await ann.submit("/signin/mail", address="ann@example.org")).status_code == 200
            [envelope] = inbox.taken
            assert envelope.rcpt_tos == ["ann@example.org"]
            assert envelope.mail_from == "sign-in@mafl.example"
            text = envelope.content.decode().replace("\r\n", "\n")
            link = urlsplit(re.findall(r"http://\S+/signin/mail/\S+", text)[0]).path
            await ann.open(link)
            assert (await ann.submit(link)).status_code == 303
            await ann.open("/me")
            await ann.submit("/signin/out")
            controller.stop()
            await ann.open("/signin")
            assert (await ann.submit("/signin/mail", address="bob@example.org")).status_code == 503
            assert await count(service, MAIL_LINKS) == 0
    finally:
        if controller.server is not None:
            controller.stop()


# --- sessions ------------------------------------------------------------------------------------


async def test_signing_out_ends_the_session_wherever_its_cookie_is_kept(start: Start, configured: str) -> None:
    async with start("registry") as service, browser(service) as ann, browser(service) as thief:
        await ann.sign_in("ann")
        thief.client.cookies = httpx.Cookies(ann.client.cookies)
        assert (await thief.open("/me")).status_code == 200
        await ann.open("/me")
        out = await ann.submit("/signin/out")
        assert (out.status_code, out.headers["location"]) == (303, "/signin")
        assert ann.session is None
        for person in (ann, thief):
            assert (await person.open("/me")).headers["location"] == "/signin?next=/me"
        assert await count(service, SESSIONS) == 0


async def test_signing_in_makes_a_new_session_and_ends_the_one_before(start: Start, configured: str) -> None:
    async with start("registry") as service, browser(service) as ann:
        await ann.open("/signin")
        planted = "a-session-that-somebody-else-planted"
        ann.client.cookies.set("mafl-session", planted, domain="127.0.0.1")
        before = ann.client.cookies.get("mafl-browser")
        await ann.sign_in_again("ann")
        first = ann.session
        assert first != planted
        assert ann.client.cookies.get("mafl-browser") != before
        await ann.sign_in_again("ann")
        assert ann.session != first
        assert await count(service, SESSIONS) == 1
        assert await count(service, OWNERS) == 1


@pytest.mark.parametrize(
    "aged",
    [
        {"seen_at": SESSIONS.c.seen_at - domain.SESSION_IDLES},
        {"expires_at": SESSIONS.c.expires_at - domain.SESSION_LIVES},
    ],
    ids=["idle", "old"],
)
async def test_a_session_ends_when_it_idles_and_when_it_is_old(
    start: Start, configured: str, aged: dict[str, Any]
) -> None:
    async with start("registry") as service, browser(service) as ann:
        await ann.sign_in("ann")
        almost = SESSIONS.c.seen_at - domain.SESSION_IDLES + timedelta(minutes=1)
        await run(service, update(SESSIONS).values(seen_at=almost))
        assert (await ann.open("/me")).status_code == 200
        await run(service, update(SESSIONS).values(seen_at=almost))
        assert (await ann.open("/me")).status_code == 200, "being seen keeps it"
        await run(service, update(SESSIONS).values(**aged))
        assert (await ann.open("/me")).status_code == 303
        async with service.runtime.database.transaction() as connection:
            await pages.people.forget(Store(connection), now=await pages.CLOCK.now(connection))
        assert await count(service, SESSIONS) == 0


async def test_one_account_that_signs_in_twice_at_once_is_one_owner(start: Start, configured: str) -> None:
    async with start("registry") as service, browser(service) as ann, browser(service) as also_ann:
        answers = [await agree(await person.depart(), "ann") for person in (ann, also_ann)]
        entered = await asyncio.gather(ann.open(answers[0]), also_ann.open(answers[1]))
        assert [answer.status_code for answer in entered] == [303, 303]
        assert (await count(service, OWNERS), await count(service, SESSIONS)) == (1, 2)


async def test_a_session_cookie_that_was_changed_is_none(start: Start, configured: str) -> None:
    async with start("registry") as service, browser(service) as ann:
        await ann.sign_in("ann")
        good = ann.session
        assert good is not None
        body, _, signature = good.rpartition(".")
        for bad in (f"{body[:-1]}x.{signature}", body, f"{body}.{signature[:-2]}xx", "", "é"):
            headers = {"Cookie": f"mafl-session={bad}".encode()}
            async with httpx.AsyncClient(transport=httpx.ASGITransport(service.app), base_url=ORIGIN) as plain:
                assert (await plain.get("/me", headers=headers)).status_code == 303


async def test_cookies_are_closed_to_scripts_other_sites_and_plain_http(
    start: Start, configured: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with start("registry") as service, browser(service) as ann:
        cookie = (await ann.sign_in("ann")).headers.get_list("set-cookie")
        assert len(cookie) == 2
        assert all("HttpOnly" in line and "SameSite=lax" in line and "Path=/" in line for line in cookie)
        assert not any("Secure" in line or "Domain" in line for line in cookie)
        monkeypatch.setattr(service.runtime.settings, "public_url", "https://mafl.example")
        cookie = (await service.client.get("/signin")).headers.get_list("set-cookie")
        assert len(cookie) == 1
        assert cookie[0].startswith("__Host-mafl-browser=")
        assert "Secure" in cookie[0]


# --- owners --------------------------------------------------------------------------------------


@pytest.mark.rule("A5", "A6")
async def test_an_owner_gives_an_agent_a_new_key_and_releases_it(start: Start, configured: str) -> None:
    async with (
        start("contests"),
        start("registry") as service,
        browser(service) as ann,
        browser(service) as eve,
    ):
        agent = await claimed(service, ann)
        await eve.sign_in("eve")
        path = f"/me/agents/{agent['agent']['id']}"
        for act in ("key", "release"):
            assert (await eve.open(f"{path}/{act}")).status_code == 404
            await eve.open("/me")
            assert (await eve.submit(f"{path}/{act}")).status_code == 404
        assert "Alice" not in (await eve.open("/me")).text

        assert "stops working at once" in (await ann.open(f"{path}/key")).text
        shown = await ann.submit(f"{path}/key")
        [key] = re.findall(r"mafl_sk_\w+", shown.text)
        assert shown.headers["cache-control"] == "no-store"
        old, new = [
            await service.client.get("/api/v1/agents/me", headers={"Authorization": f"Bearer {one}"})
            for one in (agent["api_key"], key)
        ]
        assert (old.status_code, new.status_code) == (401, 200)
        assert key not in (await ann.open("/me")).text

        page = await ann.open(f"{path}/release")
        for hidden in ("row on the agent board", "neutral handle", "published reasoning", "stay public"):
            assert hidden in page.text
        assert (await ann.submit(f"{path}/release")).status_code == 303
        assert "Alice" not in (await ann.open("/me")).text
        assert (await ann.open(f"{path}/release")).status_code == 404
        await service.settle()
        [event] = await service.published(ev.AgentReleased)
        assert (event.claimed, event.owner_id) == (False, None)
        # The link stays used; a new one leads to another claim.
        assert (await ann.open(agent["path"])).status_code == 410
        link = await service.client.post("/api/v1/agents/me/claim-link", headers={"Authorization": f"Bearer {key}"})
        assert (await eve.open(urlsplit(link.json()["claim_url"]).path)).status_code == 200


async def test_a_new_key_that_contests_does_not_take_leaves_the_old_one_good(start: Start, configured: str) -> None:
    async with start("registry") as service, browser(service) as ann:
        agent = await claimed(service, ann)
        path = f"/me/agents/{agent['agent']['id']}/key"
        await ann.open(path)
        answer = await ann.submit(path)
        assert answer.status_code == 503
        assert "The old one is still good" in answer.text
        assert "mafl_sk_" not in answer.text
        bearer = {"Authorization": f"Bearer {agent['api_key']}"}
        assert (await service.client.get("/api/v1/agents/me", headers=bearer)).status_code == 200


@pytest.mark.rule("A10", "M2", "M4")
async def test_an_owner_sees_why_words_and_a_name_are_withheld_and_asks_for_a_review_once(
    start: Start, configured: str
) -> None:
    async with start("registry") as service, browser(service) as ann, browser(service) as eve:
        agent = await claimed(service, ann)
        agent_id, lineup = UUID(agent["agent"]["id"]), uuid4()
        at = pages.wall()
        pick = ev.LockedPick(slot="FLEX", player_id="p", price=1, confidence=0.5)
        locked = ev.LineupLocked(
            contest="2026-W04",
            lineup_id=lineup,
            agent_id=agent_id,
            revision=2,
            accepted_at=at,
            model="openai/gpt-5",
            marks=ev.Marks(),
            picks=(pick,),
            total_price=1,
            projected_score=1,
            confidence=0.5,
        )
        states = {"/thesis": "cleared", "/picks/0/rationale": "flagged", "/picks/0/main_factor": "unchecked"}
        judged = ev.ReasoningJudged(
            contest="2026-W04",
            lineup_id=lineup,
            agent_id=agent_id,
            revision=2,
            fields=tuple(ev.FieldState(pointer=pointer, state=ev.State(state)) for pointer, state in states.items()),
            reasons={"/picks/0/rationale": ("personal-data",)},
        )
        name = ev.AgentNameJudged(agent_id=agent_id, agent_name="Alice", state=ev.State.FLAGGED, reasons=("profanity",))
        await service.publish(judged, 2)
        await service.publish(locked)
        await service.publish(name, 1)
        await service.settle()
        page = (await ann.open("/me")).text
        assert "1 of 3 texts published, 1 flagged, 1 not checked yet" in page
        assert "rationale for FLEX" in page
        assert explained("personal-data") in html.unescape(page)
        assert "The name is withheld" in page
        assert explained("profanity") in page
        assert page.count("<summary>Ask for a review") == 2

        path = f"/me/agents/{agent_id}/review"
        sentence = "  It is the\n<b>club's</b> own number.\x00 "
        about = {"lineup": str(lineup), "pointer": "/picks/0/rationale"}
        assert (await ann.submit(path, **about, sentence="x" * 501)).status_code == 422
        await ann.open("/me")
        assert (await ann.submit(path, **{**about, "pointer": "/thesis"})).status_code == 409, "it is cleared"
        await ann.open("/me")
        assert (await ann.submit(path, **about, sentence=sentence)).status_code == 303
        page = (await ann.open("/me")).text
        assert page.count("You asked for a review on") == 1
        assert "<q><bdi>It is the &lt;b&gt;club&#39;s&lt;/b&gt; own number.</bdi></q>" in page
        assert (await ann.submit(path, lineup=str(lineup))).status_code == 409, "one open request for one text"
        await ann.open("/me")
        assert (await ann.submit(path)).status_code == 303
        await ann.open("/me")
        assert (await ann.submit(path, lineup=str(uuid4()))).status_code == 404
        await ann.open("/me")
        assert (await ann.submit(path, lineup="x")).status_code == 404
        await service.settle()
        words, about_name = await service.published(ev.ReviewRequested)
        assert (words.lineup_id, words.pointers, words.judged_version) == (lineup, ("/picks/0/rationale",), 2)
        assert words.sentence == "It is the <b>club's</b> own number."
        assert (about_name.lineup_id, about_name.agent_id, about_name.sentence) == (None, agent_id, None)

        # Another text was judged again, or an older judgement comes late: nobody has looked at this one yet.
        await service.publish(judged.model_copy(update={"fields": ()}), 1)
        await service.publish(judged, 3)
        await service.settle()
        page = (await ann.open("/me")).text
        assert page.count("A person will look at it.") == 2
        assert (await ann.submit(path, lineup=str(lineup))).status_code == 409

        def answered(state: str, reviewed: int) -> ev.ReasoningJudged:
            states["/picks/0/rationale"] = state
            fields = tuple(
                ev.FieldState(pointer=at, state=ev.State(said), reviewed=reviewed * (said == state))
                for at, said in states.items()
            )
            reasons = {"/picks/0/rationale": ("operator",)} if state == "flagged" else {}
            return judged.model_copy(update={"fields": fields, "reasons": reasons})

        await service.publish(answered("flagged", 1), 4)
        await service.settle()
        page = (await ann.open("/me")).text
        assert page.count("A person will look at it.") == 1
        assert page.count(": it stays withheld.") == 1
        assert explained("operator") in page
        assert (await ann.submit(path, **about)).status_code == 303, "once more, in no words"
        await service.publish(answered("cleared", 2), 5)
        await service.settle()
        page = (await ann.open("/me")).text
        assert page.count(": it is cleared.") == 1
        assert "Reviewed in 2026-W04" in page
        # The operator took the answer back: it is open again.
        await service.publish(answered("flagged", 1), 6)
        await service.settle()
        assert (await ann.open("/me")).text.count("A person will look at it.") == 2
        versions = [envelope.aggregateversion for envelope, _ in await service.envelopes(ev.ReviewRequested)]
        assert versions == [1, 1, 2]

        # What is gone for good can be reviewed by nobody.
        await service.publish(
            ev.TextRedacted(
                redaction_id=uuid4(),
                contest="2026-W04",
                lineup_id=lineup,
                agent_id=agent_id,
                revision=2,
                pointer="/picks/0/main_factor",
                leaf="0" * 64,
                reason=ev.RedactionReason.COURT_ORDER,
                redacted_at=at,
            )
        )
        await service.settle()
        page = (await ann.open("/me")).text
        assert "Its words are gone for good since" in page
        assert "court order" in page
        answer = await ann.submit(path, lineup=str(lineup), pointer="/picks/0/main_factor")
        assert answer.status_code == 409

        # Whoever claims it later reads that somebody asked, and not in what words.
        await ann.open("/me")
        assert (await ann.submit(f"/me/agents/{agent_id}/release")).status_code == 303
        key = {"Authorization": f"Bearer {agent['api_key']}"}
        link = (await service.client.post("/api/v1/agents/me/claim-link", headers=key)).json()["claim_url"]
        again = urlsplit(link).path
        await eve.sign_in("eve", again)
        await eve.open(again)
        assert (await eve.submit(again, consent="yes")).status_code == 303
        page = (await eve.open("/me")).text
        assert "An owner before you asked for a review" in page
        assert "own number" not in page


@pytest.mark.rule("M4", "A11")
async def test_an_owner_can_ask_for_so_many_reviews_of_an_agent_in_a_day(start: Start, configured: str) -> None:
    async with start("registry") as service, browser(service) as ann:
        service.runtime.settings.limits.update({"reviews": "1/86400"})
        agent_id = (await claimed(service, ann))["agent"]["id"]
        path = f"/me/agents/{agent_id}/review"
        await ann.open("/me")
        assert (await ann.submit(path)).status_code == 409
        await ann.open("/me")
        answer = await ann.submit(path)
        assert (answer.status_code, answer.headers["content-type"]) == (429, "text/html; charset=utf-8")
        assert int(answer.headers["retry-after"]) > 80_000


async def test_a_stranger_is_sent_to_sign_in_and_finds_no_agents(start: Start, configured: str) -> None:
    async with start("registry") as service, browser(service) as ann:
        assert (await ann.open("/me")).headers["location"] == "/signin?next=/me"
        assert (await ann.open(f"/me/agents/{uuid4()}/key")).status_code == 401
        await ann.sign_in("ann")
        assert "claimed no agent yet" in (await ann.open("/me")).text
        assert (await ann.open(f"/me/agents/{uuid4()}/key")).status_code == 404


async def test_words_of_an_agent_are_text_on_these_pages(start: Start, configured: str) -> None:
    async with start("registry") as service, browser(service) as ann:
        content = {"name": "Mal & Co", "model": "m/1", "description": "<script>alert(1)</script>", "harness": "<b>h"}
        agent = (await service.client.post("/api/v1/agents", json=content)).json()
        page = (await ann.open(urlsplit(agent["claim_url"]).path)).text
        assert "<script" not in page
        assert "<b>" not in page
        assert "&lt;script&gt;" in page


@pytest.mark.rule("A11")
async def test_too_many_attempts_get_a_page_that_says_when_the_next_is_possible(start: Start, configured: str) -> None:
    async with start("registry") as service, browser(service) as ann:
        service.runtime.settings.limits.update({"sign-ins": "2/600", "claim-pages": "1/60"})
        for _ in range(2):
            assert (await ann.open("/signin/with/club")).status_code == 303
        answer = await ann.open("/signin/with/club")
        assert answer.status_code == 429
        assert f"in {answer.headers['retry-after']} seconds" in answer.text
        assert answer.headers["content-type"].startswith("text/html")
        assert (await ann.open("/claim/x")).status_code == 404
        assert (await ann.open("/claim/x")).status_code == 429
        assert (await ann.open("/signin")).status_code == 200


@pytest.mark.rule("A11")
async def test_a_new_key_on_the_page_counts_with_those_that_the_agent_asks_for_itself(
    start: Start, configured: str
) -> None:
    async with start("contests"), start("registry") as service, browser(service) as ann, browser(service) as eve:
        service.runtime.settings.limits.update({"new-keys": "2/3600"})
        agent = await claimed(service, ann)
        path = f"/me/agents/{agent['agent']['id']}/key"
        await eve.sign_in("eve")
        for _ in range(3):
            await eve.open("/me")
            assert (await eve.submit(path)).status_code == 404, "nobody else uses up what is left"
        bearer = {"Authorization": f"Bearer {agent['api_key']}"}
        assert (await service.client.post("/api/v1/agents/me/key", headers=bearer)).status_code == 200
        await ann.open(path)
        [key] = re.findall(r"mafl_sk_\w+", (await ann.submit(path)).text)
        await ann.open(path)
        refused = await ann.submit(path)
        assert refused.status_code == 429
        assert refused.headers["content-type"].startswith("text/html")
        assert 1_790 <= int(refused.headers["retry-after"]) <= 1_800
        assert "mafl_sk_" not in refused.text
        kept = await service.client.get("/api/v1/agents/me", headers={"Authorization": f"Bearer {key}"})
        assert kept.status_code == 200


@pytest.mark.rule("A11")
@pytest.mark.parametrize("act", ["key", "release", "review", "out"])
async def test_what_an_owner_does_on_the_pages_has_a_limit(start: Start, configured: str, act: str) -> None:
    async with start("registry") as service, browser(service) as ann:
        agent = await claimed(service, ann)
        service.runtime.settings.limits.update({"page-acts": "1/600"})
        service.runtime.state.pop("limits", None)  # They are read once, and some have been counted by already.
        other = f"/me/agents/{uuid4()}/release"
        await ann.open("/me")
        page = ann.page
        assert (await ann.submit(other)).status_code == 404
        ann.page = page
        refused = await ann.submit("/signin/out" if act == "out" else f"/me/agents/{agent['agent']['id']}/{act}")
        assert refused.status_code == 429
        assert f"in {refused.headers['retry-after']} seconds" in refused.text
        assert "Alice" in (await ann.open("/me")).text, "looking is no act"


# --- what is kept --------------------------------------------------------------------------------


@pytest.mark.rule("A6")
async def test_no_address_no_subject_and_no_token_is_readable_in_database_or_events(
    start: Start, configured: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with start("registry") as service, browser(service) as ann, browser(service) as bob:
        agent = await claimed(service, ann, who="ann-the-subject@example.org")
        await bob.open(f"/signin?next={agent['path']}")
        await bob.submit("/signin/mail", address="bob@secret.example")
        [link] = mailed(tmp_path / "outbox")
        departed = await bob.depart()
        await bob.open(link)
        await bob.submit(link)
        await service.settle()
        hidden = [
            *("ann-the-subject", "bob@secret", "secret.example", link.rpartition("/")[2], agent["path"][7:]),
            *(agent["api_key"], parse_qs(urlsplit(departed).query)["state"][0]),
            *(str(person.session).split(".")[0] for person in (ann, bob)),
        ]
        async with service.runtime.database.transaction() as connection:
            dump = await Store(connection).connection.exec_driver_sql(
                "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
            )
            kept = ""
            for (table,) in dump.all():
                rows = await connection.exec_driver_sql(f'SELECT t::text FROM "{table}" AS t')
                kept += f"{table}\n{rows.all()}\n"
        async with bus_admin(service._nats) as client:
            js = client.jetstream()
            for stream in ("REGISTRY", "REGISTRY_KEYS"):
                for sequence in range(1, (await js.stream_info(stream)).state.last_seq + 1):
                    kept += str((await js.get_msg(stream, sequence)).data)
        out, err = capfd.readouterr()
        assert await count(service, IDENTITIES) == 2
        for secret in hidden:
            assert len(secret) > 8
            assert secret not in kept, secret
            assert secret not in out + err, secret


async def test_another_identity_secret_knows_nobody_and_another_session_secret_signs_everybody_out(
    start: Start, configured: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAFL_REGISTRY_IDENTITY_SECRET", "i" * 40)
    monkeypatch.setenv("MAFL_REGISTRY_SESSION_SECRET", "s" * 40)
    async with start("registry") as service, browser(service) as ann:
        await claimed(service, ann)
        monkeypatch.setenv("MAFL_REGISTRY_SESSION_SECRET", "t" * 40)
        async with start("registry", database_url=service.database_url) as second, browser(second) as there:
            there.client.cookies = httpx.Cookies(ann.client.cookies)
            assert (await there.open("/me")).status_code == 303
            await there.sign_in("ann")
            assert "Alice" in (await there.open("/me")).text


async def test_two_copies_of_an_embedded_stack_share_the_secrets_that_it_made(start: Start, configured: str) -> None:
    async with start("registry") as service, browser(service) as ann:
        await ann.sign_in("ann")
        async with start("registry", database_url=service.database_url) as second, browser(second) as there:
            there.client.cookies = httpx.Cookies(ann.client.cookies)
            assert (await there.open("/me")).status_code == 200


# --- settings ------------------------------------------------------------------------------------


def stack(**changed: Any) -> Settings:
    values = {
        "database_url": "postgresql://x",
        "nats_url": "nats://x",
        "operator_token": "t",
        "public_url": "https://mafl.example",
        **changed,
    }
    return Settings.model_validate(values)


@pytest.mark.parametrize(
    "wrong",
    [
        {"issuers": [{"name": "a", "issuer": "http://id.example", "client_id": "c", "client_secret": "s"}]},
        {"issuers": [{"name": "A b", "issuer": "https://id.example", "client_id": "c", "client_secret": "s"}]},
        {"issuers": [{"name": "mail", "issuer": "https://id.example", "client_id": "c", "client_secret": "s"}]},
        {"issuers": [{"name": "a", "issuer": "https://id.example", "client_id": "c", "client_secret": "s"}] * 2},
        {"smtp": "imap://mail.example"},
        {"mail_outbox": "outbox"},
        {"session_secret": None},
        {"session_secret": "short"},
        {"identity_secret": None},
    ],
    ids=str,
)
def test_settings_that_would_be_unsafe_are_refused(wrong: dict[str, Any]) -> None:
    good = {"smtp": "smtps://user:p%40ss@mail.example", "session_secret": "s" * 32, "identity_secret": "i" * 32}
    PeopleSettings.model_validate(good).check(stack())
    with pytest.raises((ValidationError, ValueError)):
        PeopleSettings.model_validate(good | wrong).check(stack())
    with pytest.raises(ValueError, match="https"):
        PeopleSettings.model_validate(good).check(stack(public_url="http://mafl.example"))


def test_every_setting_of_sign_in_is_documented() -> None:
    text = (ROOT / "docs" / "sign-in.md").read_text()
    for name, field in PeopleSettings.model_fields.items():
        variable = field.validation_alias or f"MAFL_REGISTRY_{name.upper()}"
        assert f"`{variable}`" in text, variable


async def test_a_stack_without_sign_in_says_so_and_needs_no_secret(start: Start) -> None:
    PeopleSettings().check(stack(public_url="http://mafl.example"))
    async with start("registry") as service, browser(service) as ann:
        agent = await register(service)
        for path in ("/signin", agent["path"]):
            page = await ann.open(path)
            assert page.status_code == 200
            assert "Sign-in is not configured" in page.text
            assert "<form" not in page.text
