"""The pages for people: signing in, claiming an agent, and their own agents. Forms and links alone, no script.

Two cookies, both signed, ``HttpOnly`` and ``SameSite=Lax``, with the ``__Host-`` prefix where the site has TLS: one
holds the session's token, the other tells this browser from others and says where it wanted to go. Every form
carries a token that is bound to one of them, and must come from this site by its ``Origin``.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qsl
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from itsdangerous import BadSignature, Signer, URLSafeSerializer
from jinja2 import Environment, PackageLoader, StrictUndefined
from pydantic import BaseModel

from common import events as ev
from common.answers import ALWAYS, refusals
from common.clock import SystemClock, wall
from common.limits import RateLimited, keep, limited
from common.logs import logger
from common.pages import StaticContent, private_headers
from common.problems import Problem, Unauthorized
from common.reasons import explained
from common.requests import BearerKey, read_body
from common.service import Connection, Runtime, RuntimeOf
from registry import commands, domain, people, signin
from registry.settings import PeopleSettings
from registry.signin import Identity, Providers, Secrets
from registry.store import Field, LockedLineup, Review, Session, Store

LARGEST_FORM = 8 * 1024
"""Bytes; an address and two tokens are a small part of it."""

CLOCK = SystemClock()
"""Real time, also in a replay: a session is a person's."""

BROWSER_COOKIE_SECONDS = 24 * 3_600

router = APIRouter(include_in_schema=False)
api = APIRouter(responses=ALWAYS)

_STATIC = StaticContent("registry", "style.css", "mark.svg")
HEADERS = private_headers()

_pages = Environment(
    loader=PackageLoader("registry"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)
_pages.globals.update(
    version=_STATIC.version, State=ev.State, explained=explained, longest_sentence=domain.LONGEST_SENTENCE
)

R = TypeVar("R")


class Refusal(Exception):
    """A page that says why something was not done."""

    def __init__(
        self,
        status: int,
        title: str,
        text: str,
        *,
        again: str | None = None,
        label: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(title)
        self.headers = headers or {}
        self.status = status
        self.title = title
        self.text = text
        self.again = again
        self.label = label


class People:
    """What the pages need of the configuration, one for each application."""

    def __init__(self, settings: PeopleSettings) -> None:
        self.settings = settings
        self.providers = Providers(settings)
        self._secrets: Secrets | None = None

    async def secrets(self, runtime: Runtime) -> Secrets:
        """The two secrets: configured, or kept in the database by an embedded stack."""
        if self._secrets is None:
            session, identity = self.settings.session_secret, self.settings.identity_secret
            async with runtime.database.transaction() as connection:
                store = Store(connection)
                self._secrets = Secrets(
                    session=(
                        await store.secret("session", secrets.token_urlsafe(32))
                        if session is None
                        else session.get_secret_value()
                    ).encode(),
                    identity=(
                        await store.secret("identity", secrets.token_urlsafe(32))
                        if identity is None
                        else identity.get_secret_value()
                    ).encode(),
                )
        return self._secrets


# --- the visitor ---------------------------------------------------------------------------------


@dataclass
class Visitor:
    """The browser that asks: ``browser`` tells it from others, ``token`` is its session's, which may have ended.

    ``wanted`` is where it goes after signing in; ``fresh`` is whether it has no cookie yet.
    """

    request: Request
    runtime: Runtime
    people: People
    secrets: Secrets
    browser: str
    wanted: str
    token: str | None
    fresh: bool

    @property
    def origin(self) -> str:
        return self.runtime.settings.public_url

    @property
    def secure(self) -> bool:
        return self.origin.startswith("https://")

    @property
    def csrf(self) -> str:
        """A token for a form; another one each time, so that no compression can betray it."""
        return self._csrf_signer().sign(secrets.token_urlsafe(12)).decode("ascii")

    def own_form(self, token: str) -> bool:
        """Whether a form's token was made for this visitor."""
        return self._csrf_signer().validate(token)

    def _csrf_signer(self) -> Signer:
        bound = self.token or self.browser
        return _signer(self.secrets, f"form/{domain.digest(bound)}")

    def page(self, template: str, status: int = 200, *, to: str | None = None, **values: object) -> Response:
        """A page, with this browser's cookie where it had none or is to go on ``to`` another page."""
        signed_in = values.pop("session", None)
        content = _pages.get_template(template).render(
            **values, session=signed_in, csrf=self.csrf, public_url=self.origin
        )
        response = HTMLResponse(content, status, HEADERS)
        if self.fresh or to is not None:
            self.remember(response, to)
        return response

    def go(self, path: str) -> Response:
        return RedirectResponse(path, 303, HEADERS)

    def remember(self, response: Response, wanted: str | None = None) -> None:
        """Give this browser its cookie, with where it wants to go."""
        value = _browser_serializer(self.secrets).dumps([self.browser, wanted or self.wanted])
        self._cookie(response, "browser", str(value), BROWSER_COOKIE_SECONDS)

    def enter(self, response: Response, token: str) -> None:
        """Give this browser its session, and a new name."""
        value = _signer(self.secrets, "session").sign(token).decode("ascii")
        self._cookie(response, "session", value, int(domain.SESSION_LIVES.total_seconds()))
        self.browser = secrets.token_urlsafe(32)
        self.remember(response, domain.HOME)

    def leave(self, response: Response) -> None:
        response.delete_cookie(_cookie_name("session", self.secure), secure=self.secure, httponly=True, samesite="lax")

    def _cookie(self, response: Response, kind: str, value: str, seconds: int) -> None:
        name = _cookie_name(kind, self.secure)
        response.set_cookie(name, value, seconds, path="/", secure=self.secure, httponly=True, samesite="lax")


def _cookie_name(kind: str, secure: bool) -> str:
    return f"__Host-mafl-{kind}" if secure else f"mafl-{kind}"


def _signer(keys: Secrets, purpose: str) -> Signer:
    return Signer(keys.session, salt=f"mafl.{purpose}", key_derivation="hmac", digest_method=hashlib.sha256)


def _browser_serializer(keys: Secrets) -> URLSafeSerializer:
    options = {"key_derivation": "hmac", "digest_method": hashlib.sha256}
    return URLSafeSerializer(keys.session, salt="mafl.browser", signer_kwargs=options)


async def _visitor(request: Request, runtime: RuntimeOf) -> Visitor:
    found: People = request.app.state.people
    keys = await found.secrets(runtime)
    secure = runtime.settings.public_url.startswith("https://")
    browser, wanted, fresh = secrets.token_urlsafe(32), domain.HOME, True
    with suppress(KeyError, BadSignature):
        browser, wanted = _browser_serializer(keys).loads(request.cookies[_cookie_name("browser", secure)])
        fresh = False
    token: str | None = None
    with suppress(KeyError, BadSignature):
        token = _signer(keys, "session").unsign(request.cookies[_cookie_name("session", secure)]).decode("ascii")
    return Visitor(request, runtime, found, keys, browser, domain.destination(wanted), token, fresh)


VisitorOf = Annotated[Visitor, Depends(_visitor)]


async def _form(request: Request, visitor: VisitorOf) -> Mapping[str, str]:
    """The fields of a form of this site, read before a connection of the database is taken."""
    origin = request.headers.get("origin")
    if origin is None and request.headers.get("sec-fetch-site") == "same-origin":
        origin = visitor.origin
    if origin != visitor.origin:
        raise Refusal(
            403,
            "This form came from another address",
            f"Forms are taken from {visitor.origin} alone. Open that address and try again.",
        )
    body = await read_body(request, LARGEST_FORM)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        fields = dict(parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=16))
    except ValueError:
        fields = {}
    if kind != "application/x-www-form-urlencoded" or not visitor.own_form(fields.get("csrf", "")):
        raise Refusal(
            403,
            "This form is no longer good",
            "You signed in or out since the page was opened, or it stood open for long. Open it again and try again.",
        )
    return fields


FormOf = Annotated[Mapping[str, str], Depends(_form)]


async def _session(visitor: Visitor, connection: Any) -> Session | None:
    if visitor.token is None:
        return None
    return await people.session(Store(connection), visitor.token, now=await CLOCK.now(connection))


async def _signed_in(visitor: VisitorOf, connection: Connection) -> Session:
    found = await _session(visitor, connection)
    if found is None:
        raise Refusal(401, "You are not signed in", "Your session has ended.", again="/signin", label="Sign in")
    return found


SessionOf = Annotated[Session, Depends(_signed_in)]


async def refused(request: Request, error: Exception) -> Response:
    """The page for a :class:`Refusal`."""
    if not isinstance(error, Refusal):
        raise error
    visitor = await _visitor(request, request.app.state.runtime)
    response = visitor.page("refusal.html", error.status, refusal=error)
    response.headers.update(error.headers)
    return response


async def _or_refuse(work: Awaitable[R], *, again: str | None = domain.HOME, label: str = "Your agents") -> R:
    """What a command gives, or the page for the problem that it raises."""
    try:
        return await work
    except Problem as problem:
        raise Refusal(
            problem.status_code,
            problem.problem_title,
            problem.detail,
            again=again,
            label=label,
            headers=problem.headers,
        ) from problem


def _limited(name: str) -> Any:
    """As ``limited``, with a page for an answer."""

    async def check(request: Request, runtime: RuntimeOf) -> None:
        try:
            await keep(runtime, request, [name])
        except RateLimited as problem:
            text = f"One more is possible in {problem.headers['Retry-After']} seconds."
            raise Refusal(429, "Too many attempts", text, headers=problem.headers) from None

    return Depends(check)


_ATTEMPT = [_limited("sign-ins")]
_CLAIM_PAGE = [_limited("claim-pages")]
_ACT = [_limited("page-acts")]


# --- signing in ----------------------------------------------------------------------------------


@router.get("/signin")
async def sign_in_page(
    visitor: VisitorOf, connection: Connection, wanted: Annotated[str | None, Query(alias="next")] = None
) -> Response:
    """The ways to sign in. ``next`` is a page of ours to go on to; anything else leads to one's own page."""
    to = visitor.wanted if wanted is None else domain.destination(wanted)
    if await _session(visitor, connection) is not None:
        return visitor.go(to)
    settings = visitor.people.settings
    return visitor.page("signin.html", to=to, people=settings, claiming=to != domain.HOME, minutes=_minutes())


def _minutes() -> int:
    return int(domain.MAIL_LINK_LIVES.total_seconds()) // 60


@router.get("/signin/with/{name}", dependencies=_ATTEMPT)
async def depart(name: str, visitor: VisitorOf) -> Response:
    """Off to a provider. A link and not a form: a form may not lead to another site."""
    provider = visitor.people.providers.get(name)
    if provider is None:
        raise Refusal(404, "This way to sign in is unknown", "", again="/signin", label="All ways to sign in")
    async with visitor.runtime.database.transaction() as connection:
        now = await CLOCK.now(connection)
        state = await people.depart(Store(connection), name, visitor.browser, now=now)
    address = await _asked(
        visitor.people.providers.address(
            provider, redirect_uri=_callback(visitor, name), state=state, secrets=visitor.secrets
        )
    )
    response = visitor.go(address)
    visitor.remember(response)
    return response


def _callback(visitor: Visitor, name: str) -> str:
    return f"{visitor.origin}/signin/callback/{name}"


async def _asked(work: Awaitable[R]) -> R:
    try:
        return await work
    except signin.ProviderDown as error:
        logger.warning("sign-in is not possible", error=str(error))
        status, title, text = 503, "Sign-in is not possible at this moment", "Try again, or another way."
    except signin.SignInFailed as error:
        logger.warning("a sign-in was refused", error=str(error))
        status, title, text = 400, "You could not be signed in", "The provider's answer proves nothing."
    raise Refusal(status, title, text, again="/signin", label="Try again")


@router.get("/signin/callback/{name}", dependencies=_ATTEMPT)
async def came_back(
    name: str,
    visitor: VisitorOf,
    state: str = "",
    code: str = "",
    error: str = "",
    iss: str | None = None,
) -> Response:
    """Back from a provider, in the browser that went there, with an answer that is used once."""
    database = visitor.runtime.database
    provider = visitor.people.providers.get(name)
    known = False
    if provider is not None:
        async with database.transaction() as connection:
            now = await CLOCK.now(connection)
            known = await people.came_back(Store(connection), name, state, visitor.browser, now=now)
    if provider is None or not known:
        raise Refusal(
            400,
            "This sign-in is not known",
            "It was started in another browser, it took too long, or it was answered before.",
            again="/signin",
            label="Start again",
        )
    if error or not code:
        raise Refusal(
            400, "You were not signed in", "The provider refused, or you did.", again="/signin", label="Try again"
        )
    identity = await _asked(
        visitor.people.providers.identity(
            provider,
            code=code,
            issuer=iss,
            redirect_uri=_callback(visitor, name),
            state=state,
            secrets=visitor.secrets,
            now=int(wall().timestamp()),
        )
    )
    async with database.transaction() as connection:
        now = await CLOCK.now(connection)
        token = await people.sign_in(
            Store(connection), identity, visitor.secrets, way=provider.shown, before=visitor.token, now=now
        )
    return _entered(visitor, token)


def _entered(visitor: Visitor, token: str) -> Response:
    response = visitor.go(visitor.wanted)
    visitor.enter(response, token)
    return response


@router.post("/signin/mail", dependencies=_ATTEMPT)
async def ask_by_mail(form: FormOf, visitor: VisitorOf) -> Response:
    """Send a link. The answer is the same whether the address has an owner, or had too many links."""
    if not visitor.people.settings.by_mail:
        raise Refusal(404, "This way to sign in is unknown", "", again="/signin", label="All ways to sign in")
    address = signin.mail_address(form.get("address", ""))
    if address is None:
        raise Refusal(
            422, "This is no mail address", "It should look like name@example.org.", again="/signin", label="Back"
        )
    async with visitor.runtime.database.transaction() as connection:
        token = await people.ask_by_mail(
            Store(connection),
            Identity(signin.MAIL_ISSUER, address),
            visitor.secrets,
            visitor.browser,
            now=await CLOCK.now(connection),
        )
    if token is not None:
        link = f"{visitor.origin}/signin/mail/{token}"
        try:
            await signin.send(
                visitor.people.settings, signin.message(visitor.people.settings, address, link, _minutes())
            )
        except signin.ProviderDown as error:
            logger.warning("a mail could not be sent", error=str(error))
            async with visitor.runtime.database.transaction() as connection:
                await people.not_mailed(Store(connection), token)
            raise Refusal(
                503, "No mail can be sent at this moment", "Try again, or another way.", again="/signin", label="Back"
            ) from None
    return visitor.page("mailed.html", minutes=_minutes(), outbox=visitor.people.settings.smtp is None)


@router.get("/signin/mail/{token}", dependencies=_ATTEMPT)
async def mail_link(token: str, visitor: VisitorOf, connection: Connection) -> Response:
    """The page behind a mailed link. Opening it uses nothing: programs that look at mail open links too."""
    own = await people.mail_link(Store(connection), token, visitor.browser, now=await CLOCK.now(connection))
    if own is None:
        raise _dead_link()
    if not own:
        raise Refusal(
            403,
            "Open this link in the browser that asked for it",
            "A link signs in only there, so that a mail that somebody else asked for cannot sign them in. "
            "Copy it there, or ask for another one here.",
            again="/signin",
            label="Ask for another link",
        )
    return visitor.page("mail_link.html", token=token)


def _dead_link() -> Refusal:
    return Refusal(
        410, "This link is no longer good", "It was used, or it has expired.", again="/signin", label="Ask for another"
    )


@router.post("/signin/mail/{token}", dependencies=_ATTEMPT)
async def use_mail_link(form: FormOf, token: str, visitor: VisitorOf, connection: Connection) -> Response:
    """Sign in by a mailed link."""
    entered = await people.sign_in_by_mail(
        Store(connection),
        token,
        visitor.browser,
        issuer=signin.MAIL_ISSUER,
        way="a link by mail",
        before=visitor.token,
        now=await CLOCK.now(connection),
    )
    if entered is None:
        raise _dead_link()
    return _entered(visitor, entered)


@router.post("/signin/out", dependencies=_ACT)
async def sign_out(form: FormOf, visitor: VisitorOf, connection: Connection) -> Response:
    """End the session, here and on the server."""
    if visitor.token is not None:
        await people.sign_out(Store(connection), visitor.token)
    response = visitor.go("/signin")
    visitor.leave(response)
    return response


@router.get("/signin/static/{name}")
async def static(name: str) -> Response:
    """The look of these pages, which are served beside the boards' and not by them."""
    return _STATIC.answer(name) or await nothing(name)


# --- claiming ------------------------------------------------------------------------------------


@router.get("/claim/{token:path}", dependencies=_CLAIM_PAGE)
async def claim_page(token: str, visitor: VisitorOf, connection: Connection) -> Response:
    """Who the agent behind a claim link is and what claiming does. A used or unknown link shows neither (A6)."""
    agent = await _or_refuse(people.agent_to_claim(Store(connection), token), again=None)
    return visitor.page(
        "claim.html",
        agent=agent,
        token=token,
        session=await _session(visitor, connection),
        people=visitor.people.settings,
        missing=False,
    )


@router.post("/claim/{token}", dependencies=_CLAIM_PAGE)
async def claim(form: FormOf, token: str, visitor: VisitorOf, connection: Connection) -> Response:
    """Claim the agent, with consent, for whoever is signed in."""
    store = Store(connection)
    session = await _session(visitor, connection)
    if session is None:
        return visitor.go(f"/signin?next={domain.destination(f'/claim/{token}')}")
    if form.get("consent") != "yes":
        agent = await _or_refuse(people.agent_to_claim(store, token), again=None)
        people_settings = visitor.people.settings
        return visitor.page(
            "claim.html", 422, agent=agent, token=token, session=session, people=people_settings, missing=True
        )
    agent = await _or_refuse(people.claim(store, token, session.owner_id, now=await CLOCK.now(connection)), again=None)
    return visitor.go(f"{domain.HOME}#{agent.agent_id}")


class ClaimLinkAnswer(BaseModel):
    """The link is shown this once."""

    claim_url: str


@api.post(
    "/api/v1/agents/me/claim-link",
    status_code=201,
    dependencies=[limited("agent-calls", "claim-links")],
    responses=refusals(Unauthorized, commands.AlreadyClaimed, RateLimited),
)
async def new_claim_link(
    response: Response, connection: Connection, runtime: RuntimeOf, key: BearerKey
) -> ClaimLinkAnswer:
    """A new claim link for the unclaimed agent that asks; the one before is dead. Asking again is safe."""
    now = await runtime.clock.now(connection)
    _, token = await people.new_claim_link(Store(connection), key, now=now)
    response.headers.update({"Cache-Control": "no-store"})
    return ClaimLinkAnswer(claim_url=f"{runtime.settings.public_url}/claim/{token}")


# --- one's own agents ----------------------------------------------------------------------------


@router.get("/me")
async def me(visitor: VisitorOf, connection: Connection) -> Response:
    """A person's agents, and what can be done with them."""
    session = await _session(visitor, connection)
    if session is None:
        return visitor.go(f"/signin?next={domain.HOME}")
    agents = await people.owned(Store(connection), session.owner_id)
    return visitor.page("me.html", session=session, agents=agents, grouped=_grouped, name_asked=people.name_asked)


@dataclass(frozen=True)
class _Text:
    """A flagged, reviewed or redacted text as its owner's page has it. ``asked``: for a review, with no answer yet."""

    name: str
    field: Field
    review: Review | None
    asked: bool
    redacted: tuple[str, datetime] | None


def _grouped(lineup: LockedLineup) -> list[tuple[str, list[_Text]]]:
    """The texts of a lineup under what became of them; a heading with no text is left out."""
    texts = _reviewed(lineup)
    withheld = [text for text in texts if text.redacted or text.field.state == ev.State.FLAGGED]
    rest = [text for text in texts if text not in withheld]
    return [(heading, group) for heading, group in (("Withheld", withheld), ("Reviewed", rest)) if group]


def _reviewed(lineup: LockedLineup) -> list[_Text]:
    """The texts of a lineup that are flagged or redacted, or that a review was asked for."""
    texts = []
    for field in lineup.fields:
        review = lineup.reviews.get(field.pointer)
        redacted = lineup.redacted.get(field.pointer)
        if field.state == ev.State.FLAGGED or review is not None or redacted is not None:
            name = domain.field_name(field.pointer, lineup.slots)
            texts.append(_Text(name, field, review, people.asked(field, review), redacted))
    return texts


@router.get("/me/agents/{agent_id}/{act}")
async def confirm(agent_id: UUID, act: str, visitor: VisitorOf, connection: Connection, session: SessionOf) -> Response:
    """Ask before a key is replaced or an agent released: neither can be taken back."""
    if act not in ("key", "release"):
        raise Refusal(404, "There is nothing here", "", again=domain.HOME, label="Your agents")
    agent = await _or_refuse(people.own(Store(connection), session.owner_id, agent_id))
    return visitor.page(f"confirm_{act}.html", session=session, agent=agent)


@router.post("/me/agents/{agent_id}/key", dependencies=_ACT)
async def new_key(form: FormOf, agent_id: UUID, visitor: VisitorOf) -> Response:
    """A new key, shown this once. No connection is held while contests is asked to take it."""

    async def admit(agent: domain.Agent) -> None:
        await keep(visitor.runtime, visitor.request, ["new-keys"], agent=agent.agent_id)

    async with visitor.runtime.database.transaction() as connection:
        session = await _signed_in(visitor, connection)
    issued = await _or_refuse(people.new_key(visitor.runtime, session.owner_id, agent_id, admit=admit))
    return visitor.page("key.html", session=session, agent=issued.agent, key=issued.key)


@router.post("/me/agents/{agent_id}/release", dependencies=_ACT)
async def release(
    form: FormOf, agent_id: UUID, visitor: VisitorOf, connection: Connection, session: SessionOf
) -> Response:
    """Release an agent."""
    await _or_refuse(people.release(Store(connection), session.owner_id, agent_id))
    return visitor.go(domain.HOME)


@router.post("/me/agents/{agent_id}/review", dependencies=_ACT)
async def review(form: FormOf, agent_id: UUID, visitor: VisitorOf) -> Response:
    """Ask for another look at a flagged text of a lineup, or at the name, in the owner's own words or in none."""
    try:
        lineup = UUID(form["lineup"]) if form.get("lineup") else None
    except ValueError:
        raise Refusal(404, "There is nothing here", "", again=domain.HOME, label="Your agents") from None
    async with visitor.runtime.database.transaction() as connection:
        session = await _signed_in(visitor, connection)
        await _or_refuse(people.own(Store(connection), session.owner_id, agent_id))
    await _or_refuse(keep(visitor.runtime, visitor.request, ["reviews"], agent=agent_id))
    async with visitor.runtime.database.transaction() as connection:
        await _or_refuse(
            people.ask_review(
                Store(connection),
                session.owner_id,
                agent_id,
                lineup,
                form.get("pointer"),
                sentence=form.get("sentence", ""),
                now=await CLOCK.now(connection),
            )
        )
    return visitor.go(f"{domain.HOME}#{agent_id}")


@router.get("/me/{rest:path}")
@router.get("/signin/{rest:path}")
async def nothing(rest: str) -> Response:
    """A page for what is not there."""
    raise Refusal(404, "There is nothing here", "", again=domain.HOME, label="Your agents")
