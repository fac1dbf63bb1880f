"""The public pages: server-rendered, complete without script, and nothing in them from anywhere else."""

from __future__ import annotations

import asyncio
import json
import time
import unicodedata
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.resources import files
from typing import Annotated, Any
from urllib.parse import quote
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from fastapi import APIRouter, FastAPI, Header, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.staticfiles import StaticFiles

from boards import coverage, ledger, live, plot, views
from boards.api import MetricName, Season, Settlement, Version, boards_of
from boards.comparisons import Difference, turned
from boards.domain import (
    COHORT,
    FEW_WEEKS,
    HOUSE,
    NO_INTERVAL_YET,
    OVERLAPS_LEADER,
    REFERENCE,
    SMALL_SAMPLE,
    Kind,
    Metric,
    Row,
    Withheld,
    is_handle,
)
from boards.draw import LEAST_WEEKS, RESAMPLES
from boards.method import METHOD
from boards.store import Store
from common import events as ev
from common.pages import StaticContent
from common.points import as_points
from common.service import Connection, Runtime, RuntimeOf

LINEUPS_A_PAGE = 25
ROWS_A_PAGE = 50
VERSIONS_A_PAGE = 20
_MOVED = 50
"""Lineups and rows that a correction's page shows; its JSON has them all."""
_LEADERS = 5

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}

WHY_WITHHELD = {
    Withheld.REDACTED: "its words are gone for good",
    Withheld.UNCLAIMED: "nobody has claimed this agent, and words are published for claimed agents only",
    Withheld.FLAGGED: "moderation flagged this text",
    Withheld.NOT_CHECKED: "moderation has not cleared this text yet",
}

WHY_REDACTED = {
    "personal-data": "it held personal data",
    "court-order": "by order of a court",
    "unlawful": "it was against the law",
    "copyright": "it was somebody else's work",
    "decency": "for decency's sake",
}
"""What each reason of ``common.events.RedactionReason`` says."""

MARKS = {
    OVERLAPS_LEADER: "this interval and that of the board's first row overlap, so the two cannot be told apart",
    HOUSE: "run by MAFL itself",
    COHORT: "in the control cohort: agents alike in everything but the model",
    REFERENCE: "a fixed strategy and no model, to read the other means against",
    SMALL_SAMPLE: f"fewer than {FEW_WEEKS} settled weeks, so the interval is much too narrow",
    NO_INTERVAL_YET: f"fewer than {LEAST_WEEKS} settled weeks: no mean and no interval",
}
"""What each mark says, in the order of a legend."""

STATISTICS = {
    "pass_yds": "Passing yards",
    "pass_td": "Passing touchdown",
    "pass_int": "Interception thrown",
    "pass_2pt": "Passing two-point conversion",
    "rush_yds": "Rushing yards",
    "rush_td": "Rushing touchdown",
    "rush_2pt": "Rushing two-point conversion",
    "rec": "Reception",
    "rec_yds": "Receiving yards",
    "rec_td": "Receiving touchdown",
    "rec_2pt": "Receiving two-point conversion",
    "fum_lost": "Fumble lost",
    "ret_td": "Return touchdown",
    "off_fum_rec_td": "Own fumble recovered for a touchdown",
    "dst_sacks": "Defence: sack",
    "dst_int": "Defence: interception",
    "dst_fum_rec": "Defence: fumble recovered",
    "dst_td": "Defence: touchdown",
    "dst_safety": "Defence: safety",
    "dst_blk": "Defence: kick blocked",
    "dst_2pt_ret": "Defence: conversion returned",
    "dst_points_allowed": "Defence: points allowed",
}
"""What the statistics are called on the rules page; one that is not here is shown by its own name."""

_STATIC = StaticContent("boards", "style.css", "countdown.js", "live.js", "mark.svg")
_VECTORS = json.loads((files("boards") / "interval_draw.json").read_text("utf-8"))


def static() -> StaticFiles:
    """The stylesheet, the few lines of script, the mark."""
    return StaticFiles(packages=[("boards", "static")])


# --- how values read ------------------------------------------------------------------------------


def reading(value: float | None, metric: Metric) -> str:
    """A mean or an end for people: points with two decimals, share of the optimum in per cent."""
    if value is None:
        return "–"
    return f"{value / 100:.2f}" if metric is Metric.POINTS else f"{value / 10_000:.2f}%"


def signed(value: float | None, metric: Metric) -> str:
    """A difference for people: always with its sign, a true minus."""
    if value is None:
        return "–"
    # What is shown as nothing has no sign.
    text = reading(abs(value), metric)
    sign = "" if not text.strip("0.%") else "+" if value > 0 else "−"
    return sign + text


def best_in(resamples: int | None) -> str:
    """In how many of the resamples a row is best, as per cent; never 0% or 100% where it is not all of them."""
    if resamples is None:
        return "–"
    if resamples in (0, RESAMPLES):
        return f"{100 * resamples // RESAMPLES}%"
    part = 100 * resamples / RESAMPLES
    return "<1%" if part < 1 else ">99%" if part > 99 else f"{part:.0f}%"


def against(board: views.Board) -> list[tuple[Row, list[Difference | None]]]:
    """The cohort's matrix: each row with its differences to all, in the order of the table; to itself none."""
    found = {(one.one, one.other): one for one in board.differences}
    found |= {(one.other, one.one): turned(one) for one in board.differences}
    return [(row, [found.get((row.label, other.label)) for other in board.cohort.rows]) for row in board.cohort.rows]


def tick(value: float, metric: Metric) -> str:
    """An axis label, as short as it is exact."""
    return f"{value / 100:g}" if metric is Metric.POINTS else f"{value / 10_000:g}%"


def points(hundredths: int | None) -> str:
    return "–" if hundredths is None else as_points(hundredths).replace("-", "−")


def share(millionths: int | None) -> str:
    return "–" if millionths is None else f"{millionths / 10_000:.1f}%"


_HIGH = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_EXACT = 10**9
"""Up to this a number of lineups is written out; above it, two digits and a power of ten say as much to a person."""


def lineups(count: int) -> str:
    """A number of lineups for people: ``1,234,567`` or ``3.2 × 10¹³``, rounded down."""
    if count < _EXACT:
        return f"{count:,}"
    digits = str(count)
    return f"{digits[0]}.{digits[1]} × 10{str(len(digits) - 1).translate(_HIGH)}"


def better_than(percentile: int) -> str:
    """Millionths as per cent, rounded down: one decimal, and four where the first would only be nines."""
    tenths, rest = divmod(percentile, 1_000)
    return f"{percentile // 10_000}.{percentile % 10_000:04}%" if tenths >= 999 and rest else f"{tenths / 10:.1f}%"


def price(value: int) -> str:
    return f"{value:,}"


def moment(at: datetime, zone: str = "America/New_York") -> str:
    """A time where the games are played, with its zone; UTC where the zone's data is missing."""
    try:
        local = at.astimezone(ZoneInfo(zone))
    except (ZoneInfoNotFoundError, ValueError):
        local = at
    return f"{local:%a} {local.day} {local:%b %Y, %H:%M} {local.tzname()}"


def day(at: datetime) -> str:
    """A date, UTC."""
    return f"{at.astimezone(UTC):%-d %b %Y}"


def left(until: datetime, now: datetime) -> str:
    """The time left in words, rounded down to what matters."""
    rest = until - now
    if rest <= timedelta(0):
        return "now"
    days, minutes = rest.days, rest.seconds // 60
    if days:
        return f"in {days} d {minutes // 60} h"
    return f"in {minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"in {max(minutes, 1)} min"


def statistic(name: str) -> str:
    """A statistic's name for people."""
    return STATISTICS.get(name, name.replace("_", " "))


def at(path: str, *names: str) -> str:
    """A link with names in it, each quoted; a model keeps its slashes."""
    return path + "/".join(quote(name, safe="/" if path.endswith("/models/") else "") for name in names)


def spoken(row: Row, metric: Metric) -> str:
    """What an interval's drawing shows, for who does not see it."""
    found = row.interval
    if found.mean is None:
        return "no interval yet"
    unit = " points" if metric is Metric.POINTS else " of the optimum"
    text = (
        f"mean {reading(found.mean, metric)}{unit}, 95% interval {reading(found.low, metric)} "
        f"to {reading(found.high, metric)}"
    )
    return text + (", overlaps the leader's" if "overlap #1" in row.marks else "")


_TEMPLATES = Environment(
    loader=PackageLoader("boards"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters.update(
    day=day, points=points, share=share, price=price, lineups=lineups, moment=moment, statistic=statistic
)
_TEMPLATES.filters["better_than"] = better_than
_TEMPLATES.globals.update(
    reading=reading,
    tick=tick,
    signed=signed,
    best_in=best_in,
    against=against,
    spoken=spoken,
    left=left,
    at=at,
    bar=plot.bar,
    scale_of=plot.scale_of,
    method=METHOD,
    why_withheld=WHY_WITHHELD,
    why_redacted=WHY_REDACTED,
    meaning=MARKS,
    static_version=_STATIC.version,
    POINTS=Metric.POINTS,
    SHARE=Metric.SHARE,
)


Page = Annotated[int, Query(ge=1, le=1_000_000, description="a page of a long table")]


@dataclass(frozen=True, slots=True)
class _Shown:
    """Which part of a long table is shown."""

    page: int
    pages: int
    first: int
    last: int

    @classmethod
    def of(cls, rows: int, page: int, most: int) -> _Shown:
        """The part on a page; the last one where there is no such page."""
        pages = max(1, -(-rows // most))
        page = min(page, pages)
        return cls(page, pages, (page - 1) * most, min(page * most, rows))


def _shown(made: views.Board, page: int) -> _Shown:
    return _Shown.of(len(made.table.rows), page, ROWS_A_PAGE)


def _render(runtime: Runtime, template: str, status: int = 200, **context: Any) -> HTMLResponse:
    page = _TEMPLATES.get_template(template).render(replay=runtime.clock.replay, **context)
    return HTMLResponse(page, status, HEADERS)


Answer = Callable[[Request, Any], Awaitable[Response]]


def explain_errors(app: FastAPI) -> None:
    """Answer errors with a page where a browser asks for one; everybody else gets the problem document."""
    for kind, plain in list(app.exception_handlers.items()):
        app.add_exception_handler(kind, _explained(plain))


def _explained(plain: Any) -> Answer:
    async def answer(request: Request, error: Any) -> Response:
        response: Response = await plain(request, error)
        if not _for_a_person(request):
            return response
        kept = {
            name: value for name, value in response.headers.items() if name not in ("content-length", "content-type")
        }
        page = _render(
            request.app.state.runtime,
            "problem.html",
            response.status_code,
            here="",
            problem=json.loads(bytes(response.body)),
        )
        page.headers.update(kept)
        return page

    return answer


def _for_a_person(request: Request) -> bool:
    wants_page = "text/html" in request.headers.get("accept", "")
    return wants_page and not request.url.path.startswith(("/api/", "/operator/"))


router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
_page = partial(router.api_route, methods=["GET", "HEAD"])


# --- pages ----------------------------------------------------------------------------------------


@_page("/")
async def front(connection: Connection, runtime: RuntimeOf) -> Response:
    """Who leads, whether that means anything, and the week now."""
    store = Store(connection)
    models = await boards_of(runtime).get(store, Kind.MODEL, Metric.POINTS, None)
    agents = await boards_of(runtime).get(store, Kind.AGENT, Metric.POINTS, None)
    contests = await views.contests(store)
    week = _week_now(contests)
    now = await runtime.clock.now(connection)
    return _render(
        runtime,
        "front.html",
        here="/",
        models=models,
        agents=agents,
        settled_season=await store.last_settled_season() if not models.contests else None,
        week=week,
        pool=len((await views.pool(store, week.contest))[1]) if week and week.left else week and week.pool,
        called_off=[one for one in contests if one.state is views.State.CANCELLED and one.locks_at > now],
        now=now,
        metric=Metric.POINTS,
        leaders=_LEADERS,
    )


def _week_now(contests: list[views.Contest]) -> views.Contest | None:
    """The contest that matters now: the first that is not final, else the last one that was played."""
    played = [contest for contest in contests if contest.state is not views.State.CANCELLED]
    pending = [contest for contest in played if contest.state is not views.State.FINAL]
    if pending:
        return min(pending, key=lambda contest: contest.locks_at)
    return played[0] if played else None


@_page("/contests")
async def contests(connection: Connection, runtime: RuntimeOf) -> Response:
    """Every contest, newest first."""
    found = await views.contests(Store(connection))
    return _render(runtime, "contests.html", here="/contests", contests=found, now=await runtime.clock.now(connection))


@_page("/contests/{contest}")
async def contest(
    contest: str, connection: Connection, runtime: RuntimeOf, page: Page = 1, settlement: Settlement = None
) -> Response:
    """One contest: the pool and the countdown before its lock, lineups and scores after it."""
    store = Store(connection)
    found, pool = await views.pool(store, contest)
    if found.state is views.State.CANCELLED:
        return _render(runtime, "contest_cancelled.html", here="/contests", contest=found)
    if found.state is views.State.OPEN:
        now = await runtime.clock.now(connection)
        return _render(
            runtime,
            "contest_open.html",
            here="/contests",
            contest=found,
            pool=pool,
            now=now,
            ticking=not runtime.clock.replay and found.locks_at > now,
        )
    follows = found.state in _LIVE
    # Before the scores: what changes while they are read is told again.
    edition = (await store.live_editions([contest]))[contest][0] if follows else ""
    results = await views.results(store, contest, settlement=settlement)
    return _render(
        runtime,
        "contest.html",
        here="/contests",
        edition=edition,
        **_of_contest(results, page),
    )


_LIVE = (views.State.LOCKED, views.State.PROVISIONAL)
"""States of a contest whose page follows what happens."""
_PARTS_KEPT = 64
_PART_SECONDS = 5.0
_LAST_EVENT = Header(alias="Last-Event-ID", max_length=100)


def _of_contest(results: views.Results, page: int) -> dict[str, Any]:
    shown = _Shown.of(len(results.lineups), page, LINEUPS_A_PAGE)
    return {"results": results, "contest": results.contest, "shown": shown}


@router.get("/contests/{contest}/live", response_class=Response)
async def contest_live(
    contest: str,
    runtime: RuntimeOf,
    seen: Annotated[str | None, Query(max_length=100)] = None,
    last_event_id: Annotated[str | None, _LAST_EVENT] = None,
) -> Response:
    """Server-sent events: that the scores of a contest changed, until it is settled."""
    watchers = live.watchers_of(runtime)
    watchers.check_room()
    await watchers.edition(contest)
    return EventSourceResponse(
        watchers.follow(contest, last_event_id or seen),
        headers={**HEADERS, "Cache-Control": "no-store"},
        ping=live.HEARTBEAT_SECONDS,
        ping_message_factory=lambda: ServerSentEvent(comment="still here"),
    )


@router.get("/contests/{contest}/scores")
async def contest_scores(
    contest: str, runtime: RuntimeOf, page: Page = 1, edition: Annotated[str, Query(max_length=100)] = ""
) -> Response:
    """The part of a contest's page that changes while games are played, for the page itself.

    All who follow a contest ask for it at once: one answer does for them all, for a few seconds.
    """
    parts: dict[tuple[str, int, str], asyncio.Future[tuple[float, bytes]]] = runtime.state.setdefault("parts", {})
    key = (contest, page, edition)
    known = parts.get(key)
    if known is None or (known.done() and (known.exception() or known.result()[0] < time.monotonic())):
        while len(parts) >= _PARTS_KEPT:
            del parts[next(iter(parts))]
        known = parts[key] = asyncio.ensure_future(_scores(runtime, contest, page))
    _, content = await asyncio.shield(known)
    return Response(content, 200, {**HEADERS, "Cache-Control": "no-store"}, "text/html; charset=utf-8")


async def _scores(runtime: Runtime, contest: str, page: int) -> tuple[float, bytes]:
    """The part, and until when it may be given to others who ask for it."""
    async with runtime.database.transaction() as connection:
        results = await views.results(Store(connection), contest)
    content = _TEMPLATES.get_template("contest_scores.html").render(**_of_contest(results, page))
    return time.monotonic() + _PART_SECONDS, content.encode()


@_page("/corrections")
async def corrections(connection: Connection, runtime: RuntimeOf, page: Page = 1) -> Response:
    """Every settlement version of every week: why it came, and which statistics changed."""
    found = await ledger.versions(Store(connection))
    shown = _Shown.of(len(found), page, VERSIONS_A_PAGE)
    return _render(runtime, "corrections.html", here="/corrections", versions=found, shown=shown)


@_page("/corrections/{contest}/{settlement}")
async def correction(contest: str, settlement: Version, connection: Connection, runtime: RuntimeOf) -> Response:
    """One settlement version with the lineups and rows that it moved."""
    found = await ledger.correction(Store(connection), contest, settlement)
    return _render(
        runtime, "correction.html", here="/corrections", found=found, version=found.version, most=_MOVED, kinds=_TABLES
    )


_TABLES = {Kind.COHORT: "Control cohort", Kind.MODEL: "Models, pooled", Kind.AGENT: "Agents"}


@_page("/models")
async def models(
    connection: Connection, runtime: RuntimeOf, metric: MetricName = "points", season: Season = None, page: Page = 1
) -> Response:
    """The control cohort first, all models below."""
    chosen = views.metric_named(metric)
    made = await boards_of(runtime).get(Store(connection), Kind.MODEL, chosen, season)
    return _render(runtime, "models.html", here="/models", board=made, metric=chosen, shown=_shown(made, page))


@_page("/models/{model:path}")
async def model(model: str, connection: Connection, runtime: RuntimeOf) -> Response:
    """One model's rows and weeks. A label that stands for another one leads to it."""
    history = await views.model(Store(connection), model, boards_of(runtime))
    if history.model != unicodedata.normalize("NFC", model):
        return RedirectResponse(at("/models/", history.model), 302, HEADERS)
    return _render(runtime, "model.html", here="/models", history=history, chart=_chart_of_model(history))


@_page("/agents")
async def agents(
    connection: Connection, runtime: RuntimeOf, metric: MetricName = "points", season: Season = None, page: Page = 1
) -> Response:
    """The agent board."""
    chosen = views.metric_named(metric)
    made = await boards_of(runtime).get(Store(connection), Kind.AGENT, chosen, season)
    return _render(runtime, "agents.html", here="/agents", board=made, metric=chosen, shown=_shown(made, page))


@_page("/agents/{name:path}")
async def agent(name: str, connection: Connection, runtime: RuntimeOf) -> Response:
    """One agent's rows and weeks. A handle leads to the name once that is shown."""
    history = await views.agent(Store(connection), name, boards_of(runtime))
    if history.card.shown != name and is_handle(name):
        return RedirectResponse(at("/agents/", history.card.shown), 302, HEADERS)
    return _render(runtime, "agent.html", here="/agents", history=history, chart=_chart_of_agent(history))


@_page("/method")
async def method(runtime: RuntimeOf) -> Response:
    """What the numbers mean."""
    return _render(
        runtime, "method.html", here="/method", coverage=coverage.committed(), trials=coverage.TRIALS, vectors=_VECTORS
    )


@_page("/rules")
async def rules(connection: Connection, runtime: RuntimeOf) -> Response:
    """Roster, cap, scoring and policies of the newest contest, from that contest's own data."""
    found = await Store(connection).rules()
    policies = ev.Policies.model_validate(found.policies if found else {})
    said = [(field.description, getattr(policies, name)) for name, field in ev.Policies.model_fields.items()]
    return _render(runtime, "rules.html", here="/rules", rules=found, policies=said)


# --- charts of weeks ------------------------------------------------------------------------------


def _chart_of_agent(history: views.AgentHistory) -> dict[str, Any] | None:
    settled = [entry for entry in history.entries if entry.points is not None]
    values = [value for entry in settled for value in (entry.points, entry.projected_score) if value is not None]
    scale = plot.scale_over(values)
    if scale is None:
        return None
    return {
        "scale": scale,
        "dots": plot.weekly(((entry.points, entry.projected_score) for entry in settled), scale),
        "weeks": settled,
    }


def _chart_of_model(history: views.ModelHistory) -> dict[str, Any] | None:
    settled = [week for week in history.weeks if week.points is not None and week.settled]
    means = [round((week.points or 0) / week.settled) for week in settled]
    scale = plot.scale_over(means)
    if scale is None:
        return None
    return {"scale": scale, "dots": plot.weekly(((mean, None) for mean in means), scale), "weeks": settled}
