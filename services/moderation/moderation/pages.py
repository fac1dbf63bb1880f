"""The operators' pages: signing in, the moderation queue, one case, the list of acts. Forms and links; script only
moves the keyboard.

One cookie, signed, ``HttpOnly`` and ``SameSite=Strict``, with the ``__Host-`` prefix where the site has TLS, holds the
session's token. Its key is the operator's token: a new one signs everybody out. Every form carries a token that is
bound to the session, and must come from this site by its ``Origin``. The API takes no cookie and these pages no
bearer token.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlsplit
from uuid import UUID

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from itsdangerous import BadSignature, Signer
from jinja2 import Environment, PackageLoader, StrictUndefined
from pydantic import ValidationError

from common import audit
from common.clock import SystemClock
from common.events import State
from common.limits import RateLimited, address_of, keep
from common.logs import logger
from common.pages import StaticContent, private_headers
from common.problems import NotFound, Problem, Unauthorized
from common.reasons import explained
from common.requests import read_body
from common.service import Connection, Runtime, RuntimeOf
from moderation import commands, desk, domain, operators, shown
from moderation.commands import JudgedMeanwhile, Redacted
from moderation.desk import Filters, Key
from moderation.domain import Judgement, Noted
from moderation.store import OperatorSession, Store

LARGEST_FORM = 32 * 1024
"""Bytes; the longest note is 24,000 where each of its characters is percent-encoded in full."""

CLOCK = SystemClock()
"""Real time, also in a replay: sessions and waiting owners are people's."""

NO_NOTE = "(no note)"
HOME = "/operator/moderation"
ACTS = 50
"""Acts of a page of the list."""

router = APIRouter(prefix="/operator", include_in_schema=False)

_STATIC = StaticContent("moderation", "style.css", "keys.js", "mark.svg")
HEADERS = {**private_headers(scripts=True), "Cross-Origin-Resource-Policy": "same-origin"}

_pages = Environment(
    loader=PackageLoader("moderation"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def _found(item: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The findings of an item, of both stages, in the order of their places."""
    found = [{**one, "stage": "local"} for one in item["findings"]]
    found += [{**one, "stage": "external"} for one in item["external_findings"]]
    return sorted(
        ({**one, "span": (one["start"], one["end"])} for one in found), key=lambda one: (one["span"], one["detector"])
    )


_pages.filters["found"] = _found
_pages.globals.update(
    version=_STATIC.version,
    State=State,
    Key=Key,
    SHOWS=desk.SHOWS,
    KINDS=desk.KINDS,
    longest_note=domain.LONGEST_NOTE,
    longest_name=desk.LONGEST_NAME,
    hours=int(desk.SESSION_LIVES.total_seconds()) // 3_600,
    called=desk.called,
    waited=desk.waited,
    explained=explained,
    pieces=shown.pieces,
    in_line=shown.in_line,
)


class Refusal(Exception):
    """A page that says why something was not done. ``note`` is what was typed, so that it is not lost."""

    def __init__(
        self,
        status: int,
        title: str,
        text: str,
        *,
        again: str = HOME,
        label: str = "The queue",
        note: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(title)
        self.status = status
        self.title = title
        self.text = text
        self.again = again
        self.label = label
        self.note = note
        self.headers = headers or {}


# --- who asks ------------------------------------------------------------------------------------


@dataclass
class Visitor:
    """The browser that asks; ``token`` is its session's, which may have ended."""

    request: Request
    runtime: Runtime
    token: str | None

    @property
    def via(self) -> str:
        """By which way they came, for the list of acts."""
        return f"page from {address_of(self.request.scope)}"

    @property
    def here(self) -> str:
        """The address of the page that was asked for."""
        url = self.request.url
        return f"{url.path}?{url.query}" if url.query else url.path

    def csrf(self) -> str:
        """A token for a form; another one each time, so that no compression can betray it."""
        return self._forms().sign(secrets.token_urlsafe(12)).decode("ascii") if self.token else ""

    def own_form(self, token: str) -> bool:
        """Whether a form's token was made for this session."""
        return self.token is not None and self._forms().validate(token)

    def _forms(self) -> Signer:
        return _signer(self.runtime, f"form/{domain.text_hash(self.token or '')}")

    def page(self, template: str, status: int = 200, **values: object) -> Response:
        content = _pages.get_template(template).render(csrf=self.csrf, here=self.request.url.path, **values)
        return HTMLResponse(content, status, HEADERS)

    def go(self, path: str) -> Response:
        return RedirectResponse(path, 303, HEADERS)

    def enter(self, response: Response, token: str) -> None:
        """Give this browser its session."""
        # The browser's own word for where it is: a gateway before ours may have ended the TLS.
        secure = self.request.headers.get("origin", "").startswith("https://")
        value = _signer(self.runtime, "session").sign(token).decode("ascii")
        seconds = int(desk.SESSION_LIVES.total_seconds())
        response.set_cookie(
            _cookie(secure=secure), value, seconds, path="/", secure=secure, httponly=True, samesite="strict"
        )

    def leave(self, response: Response) -> None:
        for secure in (False, True):
            response.delete_cookie(_cookie(secure=secure), path="/", secure=secure, httponly=True, samesite="strict")


def _cookie(*, secure: bool) -> str:
    return "__Host-mafl-operator" if secure else "mafl-operator"


def _signer(runtime: Runtime, purpose: str) -> Signer:
    key = runtime.settings.operator_token.get_secret_value().encode()
    return Signer(key, salt=f"mafl.operator.{purpose}", key_derivation="hmac", digest_method=hashlib.sha256)


async def _visitor(request: Request, runtime: RuntimeOf) -> Visitor:
    token: str | None = None
    for secure in (True, False):
        with suppress(KeyError, BadSignature):
            token = token or _signer(runtime, "session").unsign(request.cookies[_cookie(secure=secure)]).decode("ascii")
    return Visitor(request, runtime, token)


VisitorOf = Annotated[Visitor, Depends(_visitor)]


class _SignInFirst(Exception):
    """A page was asked for by nobody who is signed in."""

    def __init__(self, wanted: str) -> None:
        super().__init__(wanted)
        self.wanted = wanted


async def _signed_in(visitor: VisitorOf, connection: Connection) -> OperatorSession:
    found = await _session(visitor, connection)
    if found is None:
        raise _SignInFirst(visitor.here)
    return found


async def _session(visitor: Visitor, connection: Any) -> OperatorSession | None:
    if visitor.token is None:
        return None
    return await operators.session(Store(connection), visitor.token, now=await CLOCK.now(connection))


SessionOf = Annotated[OperatorSession, Depends(_signed_in)]


async def _read_form(visitor: VisitorOf) -> Mapping[str, str]:
    """The fields of a form of this site, read before a connection of the database is taken."""
    headers = visitor.request.headers
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    from_here = origin is not None and urlsplit(origin).netloc == headers.get("host")
    if not (from_here and site in (None, "same-origin")):
        raise Refusal(403, "This form came from another address", "Forms are taken from these pages alone.")
    body = await read_body(visitor.request, LARGEST_FORM)
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    with suppress(ValueError):
        if kind == "application/x-www-form-urlencoded":
            fields = parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=24, errors="strict")
            return {name: value.replace("\r\n", "\n") for name, value in fields}
    raise Refusal(422, "This form cannot be read", "Open the page again and try again.")


FormRead = Annotated[Mapping[str, str], Depends(_read_form)]


async def _form(form: FormRead, visitor: VisitorOf) -> Mapping[str, str]:
    if visitor.token is not None and not visitor.own_form(form.get("csrf", "")):
        raise Refusal(
            403,
            "This form is no longer good",
            "You signed in or out since the page was opened. Open it again and try again.",
            note=form.get("note", ""),
        )
    return form


FormOf = Annotated[Mapping[str, str], Depends(_form)]


async def _signed_in_for(form: FormOf, visitor: VisitorOf, connection: Connection) -> OperatorSession:
    found = await _session(visitor, connection)
    if found is None:
        raise Refusal(
            401,
            "You are not signed in",
            "Your session has ended; nothing was done.",
            again="/operator/signin",
            label="Sign in",
            note=form.get("note", ""),
        )
    return found


ActingAs = Annotated[OperatorSession, Depends(_signed_in_for)]


async def refused(request: Request, error: Exception) -> Response:
    """The page for a :class:`Refusal`, or to where one signs in."""
    visitor = await _visitor(request, request.app.state.runtime)
    if isinstance(error, _SignInFirst):
        return visitor.go("/operator/signin?" + Filters().query(next=error.wanted))
    if not isinstance(error, Refusal):
        raise error
    response = visitor.page("refusal.html", error.status, refusal=error, session=None)
    response.headers.update(error.headers)
    return response


REFUSALS: Sequence[type[Exception]] = (Refusal, _SignInFirst)
"""What :func:`refused` answers."""


# --- signing in ----------------------------------------------------------------------------------


def _destination(wanted: str | None) -> str:
    """Where an operator goes after signing in: a page of these, never another site's address."""
    parts = urlsplit(wanted or "")
    fits = not parts.scheme and not parts.netloc and parts.path.startswith(HOME) and (wanted or "").isprintable()
    return wanted if fits and wanted else HOME


@router.get("")
@router.get("/")
async def root(visitor: VisitorOf) -> Response:
    """The way in."""
    return visitor.go(HOME)


@router.get("/static/{name}")
async def static(name: str) -> Response:
    """The look of these pages."""
    found = _STATIC.answer(name)
    if found is None:
        raise Refusal(404, "There is nothing here", "")
    return found


@router.get("/signin")
async def sign_in_page(visitor: VisitorOf, connection: Connection) -> Response:
    """Asks for the operator's token and a name."""
    to = _destination(visitor.request.query_params.get("next"))
    if await _session(visitor, connection) is not None:
        return visitor.go(to)
    return visitor.page("signin.html", to=to, who="", wrong="", session=None)


@router.post("/signin")
async def sign_in(form: FormRead, visitor: VisitorOf) -> Response:
    """Exchange the token for a session."""
    try:
        await keep(visitor.runtime, visitor.request, ["sign-ins"])
    except RateLimited as problem:
        text = f"One more attempt is possible in {problem.headers['Retry-After']} seconds."
        raise Refusal(429, "Too many attempts", text, headers=problem.headers) from None
    who, to = form.get("who", ""), _destination(form.get("next"))
    try:
        async with visitor.runtime.database.transaction() as connection:
            token = await operators.sign_in(
                Store(connection),
                who,
                form.get("token", "").strip(),
                visitor.runtime.settings.operator_token.get_secret_value(),
                before=visitor.token,
                via=visitor.via,
                now=await CLOCK.now(connection),
            )
    except (Unauthorized, operators.NameMissing) as problem:
        if isinstance(problem, Unauthorized):
            logger.warning("an operator's sign-in was refused", address=address_of(visitor.request.scope))
            async with visitor.runtime.database.transaction() as connection:
                await operators.refused(Store(connection), via=visitor.via)
        return visitor.page(
            "signin.html", problem.status, to=to, who=who[: desk.LONGEST_NAME], wrong=problem.detail, session=None
        )
    response = visitor.go(to)
    visitor.enter(response, token)
    return response


@router.post("/signout")
async def sign_out(form: FormOf, visitor: VisitorOf, connection: Connection, session: ActingAs) -> Response:
    """End the session."""
    await operators.sign_out(Store(connection), session, via=visitor.via)
    response = visitor.go("/operator/signin")
    visitor.leave(response)
    return response


# --- the queue -----------------------------------------------------------------------------------


@router.get("/moderation")
async def queue(visitor: VisitorOf, connection: Connection, session: SessionOf) -> Response:
    """The queue: what filters leave of it, from a place on."""
    return await _queue(visitor, connection, session)


async def _queue(visitor: Visitor, connection: Any, session: OperatorSession) -> Response:
    asked = visitor.request.query_params
    filters = Filters.read(asked)
    after, before, done, at = (Key.read(asked.get(name, "")) for name in ("after", "before", "done", "at"))
    store = Store(connection)
    items = await store.desk(filters, after=after, before=before, limit=desk.PAGE + 1)
    more = len(items) > desk.PAGE
    if before is not None:
        items = items[-desk.PAGE :]
        earlier, later = more, bool(items)
    else:
        items = items[: desk.PAGE]
        earlier, later = after is not None, more
    keys = [Key.of(item) for item in items]
    current = 0
    if done is not None or at is not None:
        behind = (
            n for n, key in enumerate(keys) if (done is not None and key > done) or (at is not None and key >= at)
        )
        current = next(behind, len(items) - 1)
    return visitor.page(
        "queue.html",
        session=session,
        filters=filters,
        back=filters.query(after=_written(after), before=_written(before)),
        items=items,
        keys=keys,
        current=max(current, 0),
        counted=await store.counted(),
        detectors=await store.seen_detectors(),
        previous=filters.query(before=keys[0].write()) if earlier and keys else None,
        following=filters.query(after=keys[-1].write()) if later and keys else None,
        first=after is None and before is None,
        did=await _did(store, asked.get("did", ""), session),
        now=await CLOCK.now(connection),
    )


async def _did(store: Store, written: str, session: OperatorSession) -> Mapping[str, Any] | None:
    """What this operator has just judged, to say so and to offer to take it back."""
    position = int(written) if written.isascii() and written.isdigit() and len(written) < 18 else 0
    judgement = await store.judgement(position) if position else None
    if judgement is None or judgement["judged_by"] != session.who:
        return None
    return {**judgement, "agent_name": await _called(store, judgement)}


async def _called(store: Store, item: Mapping[str, Any]) -> str | None:
    """The name of the agent that an item or a judgement is of, where there is one and it is known."""
    return None if item["agent_id"] is None else await store.called(item["agent_id"])


@router.get("/moderation/case")
async def case_page(visitor: VisitorOf, connection: Connection, session: SessionOf) -> Response:
    """One text, name or label with all that was said of it, and the texts beside it."""
    asked = visitor.request.query_params
    about = _about(asked)
    return await _case(visitor, connection, session, about, Filters.read(asked))


@dataclass(frozen=True)
class _About:
    """A text of a lineup, an agent's name, or a model's label: whichever is given."""

    lineup_id: UUID | None = None
    pointer: str | None = None
    agent_id: UUID | None = None
    model: str | None = None

    @classmethod
    def of(cls, item: Any) -> _About:
        """What an item of the queue, a judgement or what is held is about."""
        named = item if isinstance(item, Mapping) else {name: getattr(item, name) for name in _NAMED}
        if named["lineup_id"] is not None:
            return cls(named["lineup_id"], named["pointer"])
        return cls(agent_id=named["agent_id"], model=named["model"])

    @property
    def whole(self) -> dict[str, Any]:
        """What ``Store.history`` and its like take."""
        return {"lineup_id": self.lineup_id, "agent_id": self.agent_id, "model": self.model}


_NAMED = ("lineup_id", "pointer", "agent_id", "model")


def _about(given: Mapping[str, str]) -> _About:
    with suppress(ValueError):
        if given.get("lineup"):
            return _About(UUID(given["lineup"]), given.get("pointer", "")[:200].replace("\x00", ""))
        if given.get("agent_id"):
            return _About(agent_id=UUID(given["agent_id"]))
        if given.get("model"):
            return _About(model=given["model"][:200].replace("\x00", ""))
    raise Refusal(404, "There is nothing here", "No text, agent or model is named.")


async def _case(
    visitor: Visitor,
    connection: Any,
    session: OperatorSession,
    about: _About,
    filters: Filters,
    status: int = 200,
    *,
    note: str = "",
    meanwhile: bool = False,
) -> Response:
    store = Store(connection)
    items: Sequence[Mapping[str, Any]] = ()
    if about.lineup_id is not None:
        items = await store.lineup(about.lineup_id)
    elif about.agent_id is not None:
        items = await store.agent_name(about.agent_id)
    elif about.model is not None:
        items = await store.model_label(about.model)
    item = next((item for item in items if item["pointer"] == about.pointer), None)
    if item is None:
        raise Refusal(404, "It is not there", commands.NOT_THERE, note=note)
    key = Key.of(item)
    following = await store.desk(filters, after=key, limit=1)
    preceding = await store.desk(filters, before=key, limit=1)
    return visitor.page(
        "case.html",
        status,
        session=session,
        filters=filters,
        item={**item, "agent_name": await _called(store, item)},
        key=key,
        beside=[other for other in items if other is not item],
        history=[one for one in await _history(store, about) if one["pointer"] == about.pointer],
        following=following[0] if following else None,
        preceding=preceding[0] if preceding else None,
        did=await _did(store, visitor.request.query_params.get("did", ""), session),
        note=note,
        meanwhile=meanwhile,
        now=await CLOCK.now(connection),
    )


async def _history(store: Store, about: _About) -> list[dict[str, Any]]:
    """What people judged and noted and what stages said before, oldest first."""
    judged = [{**row, "kind": "judgement", "at": row["judged_at"]} for row in await store.history(**about.whole)]
    noted = [{**row, "kind": "note", "at": row["noted_at"]} for row in await store.notes(**about.whole)]
    former = [{**row, "kind": "verdict", "at": row["replaced_at"]} for row in await store.former(**about.whole)]
    return sorted([*judged, *noted, *former], key=lambda row: row["at"])


@router.post("/moderation/judge")
async def judge(form: FormOf, visitor: VisitorOf, connection: Connection, session: ActingAs) -> Response:
    """Approve or flag, or only note; then on to what comes next."""
    about, filters = _about(form), Filters.read(dict(parse_qsl(form.get("back", ""))))
    store, note = Store(connection), form.get("note", "").strip()
    named = {**about.whole, "pointer": about.pointer, "by": session.who}
    act, version = form.get("act", ""), form.get("version", "")
    try:
        if act == "note" and not note:
            raise Refusal(
                422,
                "The note is empty",
                "Nothing was noted or judged. A note alone needs words; to approve and to flag need none.",
                again=_here(form, filters),
                label="Back to where you were",
            )
        if act == "note":
            await commands.note(store, Noted(**named, note=note), via=visitor.via)
            return visitor.go(f"{_case_path(about, filters)}#history")
        wanted = Judgement(
            **named,
            note=note or NO_NOTE,
            version=int(version) if version.isascii() and version.isdigit() else -1,
            state={"approve": State.CLEARED, "flag": State.FLAGGED}.get(act),
        )
    except ValidationError:
        raise Refusal(
            422,
            "That is no judgement",
            f"It is to approve or to flag, with a note of at most {domain.LONGEST_NOTE} characters; or a note alone.",
            again=_case_path(about, filters),
            label="Back to the text",
            note=note,
        ) from None
    except (NotFound, Redacted) as problem:
        raise _lost(problem, note) from None
    try:
        _, position = await commands.judge_by_hand(store, wanted, via=visitor.via)
    except (NotFound, Redacted) as problem:
        raise _lost(problem, note) from None
    except JudgedMeanwhile:
        return await _case(visitor, connection, session, about, filters, 409, note=note, meanwhile=True)
    return visitor.go(_onwards(form, filters, position))


def _lost(problem: Problem, note: str) -> Refusal:
    return Refusal(problem.status, problem.problem_title, problem.detail, note=note)


def _onwards(form: Mapping[str, str], filters: Filters, position: int) -> str:
    """Where an operator looks next: the page that they came from, at what comes after what they judged."""
    came = dict(parse_qsl(form.get("back", "")))
    done = Key.read(form.get("key", ""))
    place = {name: _written(Key.read(came.get(name, ""))) for name in ("after", "before")}
    return f"{HOME}?{filters.query(**place, done=_written(done), did=str(position))}#current"


def _here(form: Mapping[str, str], filters: Filters) -> str:
    """The page that an operator came from, at the text that they were at."""
    came, key = dict(parse_qsl(form.get("back", ""))), Key.read(form.get("key", ""))
    place = {name: _written(Key.read(came.get(name, ""))) for name in ("after", "before")}
    return f"{HOME}?{filters.query(**place, at=_written(key))}#current"


def _written(key: Key | None) -> str | None:
    return None if key is None else key.write()


def _case_path(about: _About, filters: Filters, **more: str) -> str:
    named: Mapping[str, str | None] = {"model": about.model}
    if about.lineup_id is not None:
        named = {"lineup": str(about.lineup_id), "pointer": about.pointer}
    elif about.agent_id is not None:
        named = {"agent_id": str(about.agent_id)}
    return f"{HOME}/case?{filters.query(**named, **more)}"


_pages.globals.update(case_of=lambda item, filters: _case_path(_About.of(item), filters or Filters()))


@router.post("/moderation/take-back")
async def take_back(form: FormOf, visitor: VisitorOf, connection: Connection, session: ActingAs) -> Response:
    """Take a judgement back, and look at its text again."""
    filters = Filters.read(dict(parse_qsl(form.get("back", ""))))
    written = form.get("position", "")
    position = int(written) if written.isascii() and written.isdigit() and len(written) < 18 else 0
    try:
        held = await commands.take_back(Store(connection), position, by=session.who, via=visitor.via)
    except (NotFound, Redacted) as problem:
        raise _lost(problem, "") from None
    except JudgedMeanwhile:
        judgement = await Store(connection).judgement(position)
        if judgement is None:  # It was there a moment ago, and is never removed.
            raise
        return await _case(visitor, connection, session, _About.of(judgement), filters, 409, meanwhile=True)
    return visitor.go(_case_path(_About.of(held), filters))


# --- the list of acts ----------------------------------------------------------------------------


@router.get("/moderation/audit")
async def acts(visitor: VisitorOf, connection: Connection, session: SessionOf) -> Response:
    """What operators did here, the newest first."""
    written = visitor.request.query_params.get("before", "")
    before = int(written) if written.isascii() and written.isdigit() and 0 < len(written) < 18 else None
    found = await audit.acts(connection, limit=ACTS + 1, before=before)
    return visitor.page(
        "audit.html",
        session=session,
        acts=[(act, _case_of(act.target)) for act in found[:ACTS]],
        older=found[ACTS - 1].act if len(found) > ACTS else None,
        newest=before is None,
    )


def _case_of(target: str) -> str | None:
    """The page of what an act was about, where it has one."""
    kind, _, rest = target.partition("/")
    with suppress(ValueError):
        if kind == "name":
            return _case_path(_About(agent_id=UUID(rest)), Filters())
        if kind == "model":
            return _case_path(_About(model=rest), Filters())
        if kind == "text":
            lineup, slash, pointer = rest.partition("/")
            return _case_path(_About(UUID(lineup), slash + pointer), Filters())
    return None


@router.get("/moderation/{rest:path}")
async def nothing(rest: str) -> Response:
    """A page for what is not there."""
    raise Refusal(404, "There is nothing here", "")
