"""The routes of contests: thin, each one a command and a document."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any, Literal, Self

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.routing import APIRoute
from pydantic import AwareDatetime, BaseModel, StringConstraints, model_validator
from pydantic_core import to_json
from starlette.types import Receive, Scope, Send

from common.answers import inlined
from common.canonical import canonical_json, instant
from common.limits import RateLimited, countable, keep, limited, limits_of
from common.problems import IdempotencyKeyReused, InvalidRequest, Problem, Unauthorized, Unavailable
from common.requests import LARGEST_UPLOAD, BearerKey, IdempotencyKey, TooLarge, credentials, read_body, read_files
from common.requests import idempotency_key as idempotency_key_of
from common.service import Connection, Runtime, RuntimeOf, operator_only, runtime_of
from contests import answers, commands, commitments, documents, guide, importing, intake, rulesets
from contests.answers import ANY_REFUSAL, refusals
from contests.domain import COVERED, MAX_BODY, Agent, Contest, Day, lineup_adapter
from contests.problems import (
    ClockBackwards,
    ClockNotReplay,
    CommitmentMissing,
    ContestCancelled,
    ContestExists,
    ContestLocked,
    ContestNotLocked,
    ContestUnknown,
    FileMalformed,
    GameNotCovered,
    GameUnknown,
    LineupInvalid,
    LineupMissing,
    ModelReserved,
    NoGameLeft,
    NothingToPlay,
    NotYet,
    RulesetUnknown,
    StampMissing,
)
from contests.store import Store

router = APIRouter(responses=ANY_REFUSAL)
operator = APIRouter(
    prefix="/operator/api/v1",
    dependencies=[Depends(operator_only)],
    responses=ANY_REFUSAL | refusals(Unauthorized),
)

_PRIVATE = {"Cache-Control": "no-store"}
_REVALIDATED = {"Cache-Control": "no-cache"}
_FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable"}

_MOST_POOLS = 64


_LINEUP: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": inlined(lineup_adapter(rulesets.load().limits, rulesets.load().projected_score))
            }
        },
    }
}
"""What OpenAPI says of a lineup's body: it is judged from its bytes, not by the framework."""

_AS_AGENT = (Unauthorized, ContestUnknown, Unavailable)
_COMMITTED = (ContestUnknown, ContestCancelled, CommitmentMissing, ContestNotLocked, Unavailable)
_JUDGED = (*_AS_AGENT, ContestLocked, ContestCancelled, ModelReserved, LineupInvalid, TooLarge, RateLimited)


# --- for anyone ---------------------------------------------------------------------------------


@router.get("/api/v1/contests", response_model=answers.Contests)
async def contests(connection: Connection, runtime: RuntimeOf) -> JSONResponse:
    """All contests that are or were open, by id."""
    listed = await Store(connection).contests()
    now = await runtime.clock.now(connection)
    return JSONResponse({"contests": [documents.brief(contest, now) for contest in listed]}, headers=_REVALIDATED)


@router.get("/api/v1/contests/current", response_model=answers.Contest, responses=refusals(ContestUnknown))
async def current(connection: Connection, runtime: RuntimeOf) -> JSONResponse:
    """The contest to play now: of those that take lineups the next to lock, else the last that locked."""
    store = Store(connection)
    contest = await commands.current_contest(store, await runtime.clock.now(connection))
    if contest is None:
        raise ContestUnknown("No contest has been opened yet.", known=[])
    return await _whole(runtime, store, contest)


@router.get("/api/v1/contests/{contest_id}", response_model=answers.Contest, responses=refusals(ContestUnknown))
async def one(contest_id: str, connection: Connection, runtime: RuntimeOf) -> JSONResponse:
    """A contest: state, lock instant, roster, cap, scoring, limits and games."""
    store = Store(connection)
    return await _whole(runtime, store, await commands.public_contest(store, contest_id))


async def _whole(runtime: Runtime, store: Store, contest: Contest) -> JSONResponse:
    judge = await commands.judge_of(runtime, store, contest.contest, contest.version)
    now = await runtime.clock.now(store.connection)
    return JSONResponse(documents.whole(contest, judge.ruleset, judge.games, now), headers=_REVALIDATED)


def _kept(runtime: Runtime) -> dict[str, str]:
    """How long a reader may keep what never changes. A replay may be played anew at the same address."""
    return _REVALIDATED if runtime.clock.replay else _FOR_EVER


def _names(if_none_match: str, etag: str) -> bool:
    known = {tag.strip().removeprefix("W/") for tag in if_none_match.split(",")}
    return etag in known or "*" in known


@router.get(
    "/api/v1/contests/{contest_id}/pool",
    dependencies=[limited("pool-reads")],
    response_model=answers.Pool,
    responses={
        200: {"content": {"text/csv": {"schema": {"type": "string"}}}},
        304: {"description": "The tag in `If-None-Match` still names the pool"},
        **refusals(ContestUnknown, InvalidRequest, RateLimited),
    },
)
async def pool(
    contest_id: str,
    connection: Connection,
    runtime: RuntimeOf,
    wanted: Annotated[Literal["json", "csv"], Query(alias="format")] = "json",
    if_none_match: Annotated[str, Header()] = "",
) -> Response:
    """The players who may be picked, with their prices. The ``ETag`` changes when anything in it does."""
    store = Store(connection)
    contest = await commands.public_contest(store, contest_id)
    kept: dict[tuple[str, int, str], documents.Representation] = runtime.state.setdefault("pools", {})
    name = (contest.contest, contest.version, wanted)
    if name not in kept:
        judge = await commands.judge_of(runtime, store, contest.contest, contest.version)
        while len(kept) >= _MOST_POOLS:
            kept.pop(next(iter(kept)))
        name = (contest.contest, judge.version, wanted)
        kept[name] = documents.pool(contest.contest, judge.games, list(judge.players.values()), as_csv=wanted == "csv")
    shown = kept[name]
    headers = {**_REVALIDATED, "ETag": shown.etag}
    if _names(if_none_match, shown.etag):
        return Response(status_code=304, headers=headers)
    return Response(shown.content, media_type=shown.media_type, headers=headers)


@router.get(
    "/api/v1/contests/{contest_id}/commitment",
    response_model=answers.Commitment,
    responses=refusals(*_COMMITTED),
)
async def commitment(contest_id: str, connection: Connection, runtime: RuntimeOf) -> Response:
    """What a contest committed to at its lock: the signed root over its final revisions."""
    made = await commands.commitment(runtime, Store(connection), contest_id)
    return Response(canonical_json(commitments.document(made)), media_type="application/json", headers=_kept(runtime))


@router.get(
    "/api/v1/contests/{contest_id}/commitment/leaves",
    dependencies=[limited("leaf-reads")],
    response_class=Response,
    responses={
        200: {
            "description": "The hashes of all leaves in order, 32 bytes each",
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        },
        304: {"description": "The tag in `If-None-Match` still names the leaves"},
        **refusals(*_COMMITTED, RateLimited),
    },
)
async def leaves(
    contest_id: str, connection: Connection, runtime: RuntimeOf, if_none_match: Annotated[str, Header()] = ""
) -> Response:
    """The hashes of all leaves, opened or not, so that anybody can make the root of them and count them."""
    store = Store(connection)
    made = await commands.commitment(runtime, store, contest_id)
    headers = {**_kept(runtime), "ETag": f'"{made.root.hex()}"'}
    if _names(if_none_match, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    tree = await commands.tree_of(runtime, store, contest_id)
    return Response(tree.hashes, media_type="application/octet-stream", headers=headers)


@router.get(
    "/api/v1/contests/{contest_id}/commitment/stamp",
    response_class=Response,
    responses={
        200: {
            "description": "An RFC 3161 authority's answer on the statement that is signed, in DER",
            "content": {"application/timestamp-reply": {"schema": {"type": "string", "format": "binary"}}},
        },
        **refusals(*_COMMITTED, StampMissing),
    },
)
async def stamp(contest_id: str, connection: Connection, runtime: RuntimeOf) -> Response:
    """When the root was there by the word of a third party, where one is configured."""
    store = Store(connection)
    await commands.commitment(runtime, store, contest_id)
    response = await store.stamp(contest_id)
    if response is None:
        raise StampMissing(f"The root of {contest_id} has no stamp, or none yet; its signature holds without.")
    return Response(response, media_type="application/timestamp-reply", headers=_kept(runtime))


@router.get(
    "/api/v1/contests/{contest_id}/commitment/redactions",
    response_model=answers.Tombstones,
    responses=refusals(*_COMMITTED),
)
async def redactions(contest_id: str, connection: Connection, runtime: RuntimeOf) -> Response:
    """Which texts of final revisions went for good: the leaf of each stays, with when and why, signed."""
    store = Store(connection)
    await commands.commitment(runtime, store, contest_id)
    signer = commands.keyring(runtime).signer
    listed = [commitments.signed(tombstone, signer) for tombstone in await store.tombstones(contest_id)]
    document = {"contest": contest_id, "redactions": listed}
    return Response(canonical_json(document), media_type="application/json", headers=_REVALIDATED)


@router.get("/api/v1/keys", response_model=answers.Keys)
async def keys(runtime: RuntimeOf) -> Response:
    """The public keys that receipts and roots are and were signed with, signed with the one in use."""
    document = commands.keyring(runtime).document()
    return Response(canonical_json(document), media_type="application/json", headers=_REVALIDATED)


@router.get("/skill.md", include_in_schema=False)
async def skill(connection: Connection, runtime: RuntimeOf) -> PlainTextResponse:
    """How to play, from the rules, the limits and the contest of now."""
    store = Store(connection)
    now = await runtime.clock.now(connection)
    contest = await commands.current_contest(store, now)
    url, limits = runtime.settings.public_url, limits_of(runtime.settings)
    if contest is None:
        text = guide.skill(url, rulesets.load(), None, (), (), limits, now)
    else:
        judge = await commands.judge_of(runtime, store, contest.contest, contest.version)
        text = guide.skill(url, judge.ruleset, contest, judge.games, list(judge.players.values()), limits, now)
    return PlainTextResponse(text, media_type="text/markdown", headers=_REVALIDATED)


@router.get("/llms.txt", include_in_schema=False)
async def llms(connection: Connection, runtime: RuntimeOf) -> PlainTextResponse:
    """What there is here for a language model, and where."""
    contest = await commands.current_contest(Store(connection), await runtime.clock.now(connection))
    return PlainTextResponse(guide.llms(runtime.settings.public_url, contest), headers=_REVALIDATED)


@router.get("/api/v1/openapi.json", include_in_schema=False)
async def openapi(runtime: RuntimeOf) -> JSONResponse:
    """The public API of all services, described."""
    return JSONResponse(guide.openapi(runtime.settings.public_url), headers=_REVALIDATED)


# --- for an agent -------------------------------------------------------------------------------


class _Straight(APIRoute):
    """The way to :func:`submit` in the rush: FastAPI's own, which finds a call's parameters, costs as much again."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            await super().handle(scope, receive, send)
            return
        request = Request(scope, receive)
        runtime = await runtime_of(request)
        try:
            idempotency_key = idempotency_key_of(request)
        except RequestValidationError:
            runtime.metrics.lineups_refused.labels(InvalidRequest.code).inc()
            raise
        key = credentials(request.headers.get("authorization", ""))
        answer = await submit(scope["path_params"]["contest_id"], request, runtime, key, idempotency_key)
        await answer(scope, receive, send)


rush = APIRouter(route_class=_Straight, responses=ANY_REFUSAL)
"""The one route that is hot."""


@rush.post(
    "/api/v1/contests/{contest_id}/lineups",
    status_code=201,
    response_model=answers.Receipt,
    responses=refusals(*_JUDGED, IdempotencyKeyReused, InvalidRequest),
    openapi_extra=_LINEUP,
)
async def submit(
    contest_id: str, request: Request, runtime: RuntimeOf, key: BearerKey, idempotency_key: IdempotencyKey = None
) -> Response:
    """Submit a lineup: the agent's next revision. The last one before the lock counts."""
    try:
        await keep(runtime, request, ("submissions-by-address", "submissions"), key=countable(key))
        body = await read_body(request, MAX_BODY)
        revision, fresh = await intake.submit(runtime, contest_id, key, body, idempotency_key)
    except Problem as problem:
        runtime.metrics.lineups_refused.labels(problem.problem_code).inc()
        raise
    runtime.metrics.lineups_accepted.inc(fresh)
    return Response(to_json(documents.receipt(revision)), 201, headers=_PRIVATE, media_type="application/json")


@router.post(
    "/api/v1/contests/{contest_id}/lineups/check",
    dependencies=[limited("checks-by-address", "checks")],
    response_model=answers.Sound,
    responses=refusals(*_JUDGED),
    openapi_extra=_LINEUP,
)
async def check(contest_id: str, request: Request, runtime: RuntimeOf, key: BearerKey) -> JSONResponse:
    """The judgement that a submission would get now; nothing is stored."""
    body = await read_body(request, MAX_BODY)

    async def judge(store: Store, agent: Agent) -> dict[str, Any]:
        lineup, contest = await commands.check(runtime, contest_id, body, store, agent)
        return {"valid": True, "total_price": lineup.total_price, "locks_at": instant(contest.locks_at)}

    return JSONResponse(await commands.as_agent(runtime, key, judge), headers=_PRIVATE)


@router.get(
    "/api/v1/contests/{contest_id}/lineups/mine",
    response_model=answers.OwnRevision,
    responses=refusals(*_AS_AGENT, LineupMissing),
)
async def mine(contest_id: str, runtime: RuntimeOf, key: BearerKey) -> JSONResponse:
    """The agent's own lineup as it counts now: its last revision."""

    async def last(store: Store, agent: Agent) -> dict[str, Any]:
        revisions = await commands.own_revisions(contest_id, store, agent)
        if not revisions:
            raise LineupMissing(f"You have no lineup in {contest_id}.")
        return documents.own(revisions[-1])

    return JSONResponse(await commands.as_agent(runtime, key, last), headers=_PRIVATE)


@router.get(
    "/api/v1/contests/{contest_id}/lineups/mine/revisions",
    response_model=answers.OwnRevisions,
    responses=refusals(*_AS_AGENT),
)
async def my_revisions(contest_id: str, runtime: RuntimeOf, key: BearerKey) -> JSONResponse:
    """Every revision of the agent's own lineup, the first one first."""

    async def all_of_them(store: Store, agent: Agent) -> list[dict[str, Any]]:
        return [documents.own(revision) for revision in await commands.own_revisions(contest_id, store, agent)]

    revisions = await commands.as_agent(runtime, key, all_of_them)
    return JSONResponse({"contest": contest_id, "revisions": revisions}, headers=_PRIVATE)


@router.get(
    "/api/v1/contests/{contest_id}/lineups/mine/proof",
    response_model=answers.Proof,
    responses=refusals(*_AS_AGENT, LineupMissing, CommitmentMissing, ContestCancelled, ContestNotLocked),
)
async def my_proof(contest_id: str, runtime: RuntimeOf, key: BearerKey) -> Response:
    """That the agent's last revision before the lock is in what the contest committed to: each leaf with its path."""
    proof = await commands.as_agent(runtime, key, partial(commands.own_proof, runtime, contest_id))
    return Response(proof, media_type="application/json", headers=_PRIVATE)


def _answer_heads() -> None:
    """Let what can be got be asked for its head too, under the same limits; the API's document names the one alone."""
    for route in [route for route in router.routes if isinstance(route, APIRoute) and route.methods == {"GET"}]:
        router.add_api_route(
            route.path,
            route.endpoint,
            methods=["HEAD"],
            dependencies=route.dependencies,
            response_model=None,
            include_in_schema=False,
        )


_answer_heads()


# --- for the operator ---------------------------------------------------------------------------


class Move(BaseModel):
    """The instant to move the replay clock to."""

    now: AwareDatetime


class Reschedule(BaseModel):
    """A game and its new kickoff."""

    game_id: str
    kickoff: AwareDatetime


class Drop(BaseModel):
    """A game that leaves: ``cancelled``, or ``moved`` to a day that is not known yet or not covered."""

    game_id: str
    status: Literal["cancelled", "moved"] = "cancelled"


class Restore(BaseModel):
    """A game that comes back, at the kickoff it had where none is given."""

    game_id: str
    kickoff: AwareDatetime | None = None


class GameBecame(BaseModel):
    """What a game came to after the lock, and when it went on where it was suspended; ``played`` takes it back."""

    game_id: str
    became: Literal["cancelled", "postponed", "abandoned", "suspended", "played"]
    resumed_at: AwareDatetime | None = None

    @model_validator(mode="after")
    def _only_what_is_suspended_goes_on(self) -> Self:
        if self.resumed_at is not None and self.became != "suspended":
            raise ValueError("resumed_at is of a game that was suspended")
        return self


class Cancel(BaseModel):
    """Why a contest is called off; everybody reads it."""

    reason: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300, pattern=r"^[^\x00-\x1f\x7f]*$")
    ]


_CHANGEABLE = (ContestUnknown, ContestLocked, ContestCancelled)


async def _upload(request: Request) -> importing.Upload:
    """The files of an import's body. Raises ``TooLarge``, ``InvalidRequest``."""
    parts = await read_files(request, LARGEST_UPLOAD)
    files, schedules = parts.pop("file", []), parts.pop("schedule", [])
    players = parts.pop("players", [])
    if parts:
        raise InvalidRequest(
            f"There is no part {min(parts)[:100]!r}; there are file, schedule and players.", violations=[]
        )
    if len(files) != 1 or not files[0]:
        raise InvalidRequest("Send one file, as it is or as the part `file` of a form.", violations=[])
    if len(schedules) > 1:
        raise InvalidRequest("There is more than one schedule; send one file of it.", violations=[])
    return importing.Upload(files[0], schedules[0] if schedules else None, tuple(players))


@operator.post(
    "/contests/import",
    response_model=answers.ImportReport,
    responses=refusals(
        *(ContestExists, FileMalformed, NothingToPlay, RulesetUnknown),
        *(InvalidRequest, TooLarge),
    ),
)
async def import_file(
    request: Request,
    runtime: RuntimeOf,
    season: int | None = None,
    week: int | None = None,
    ruleset: str | None = None,
    days: Annotated[tuple[Day, ...], Query(description="covered weekdays, US Eastern")] = COVERED,
    dry_run: bool = False,
    force: Annotated[bool, Query(description="change a contest that lineups have come in to")] = False,
) -> JSONResponse:
    """Import salaries (CSV or gzip) as drafts: all weeks of the file, or the one asked for; all or nothing.

    The body is the file as it is, or a form (`multipart/form-data`) of the `file` and, beside it, the league's
    `schedule` and one or more files of `players` to match it to. A contest that is open is changed, and told of again,
    while no lineup has come in; by force also later, and no lineup is touched by it.
    """
    upload = await _upload(request)
    wanted = importing.Wanted(season, week, ruleset, days, dry_run, force)
    async with runtime.database.transaction() as connection:
        known = await Store(connection).known_players()
    file = await importing.read_file(upload, wanted, known)
    async with runtime.database.transaction() as connection:
        done = await importing.import_weeks(runtime, Store(connection), file, wanted)
    runtime.wake(commands.LOCK)
    return JSONResponse({"dry_run": dry_run, **done.document(), **file.report()})


@operator.get("/contests", response_model=answers.AllTotals)
async def totals(connection: Connection, runtime: RuntimeOf) -> dict[str, Any]:
    """All contests, drafts too, with how many lineups and revisions they have; of no agent in particular."""
    store = Store(connection)
    counts, sizes = await store.totals(), await store.pool_sizes()
    now = await runtime.clock.now(connection)
    listed = []
    for contest in await store.contests(drafts=True):
        lineups, revisions = counts.get(contest.contest, (0, 0))
        entries = {"players": sizes.get(contest.contest, 0), "lineups": lineups, "revisions": revisions}
        listed.append({**documents.brief(contest, now), **entries})
    return {"now": instant(now), "contests": listed}


@operator.get("/contests/agents", response_model=answers.KnownAgents)
async def known_agents(connection: Connection) -> dict[str, Any]:
    """The agents whose events have arrived here, with the model and marks that their next revision will bear."""
    return {
        "agents": [
            {"agent_id": str(agent.agent_id), "model": agent.model, "marks": agent.marks.model_dump()}
            for agent in await Store(connection).agents()
        ]
    }


@operator.post("/contests/{contest_id}/open", response_model=answers.Brief, responses=refusals(*_CHANGEABLE))
async def open_contest(contest_id: str, runtime: RuntimeOf) -> dict[str, Any]:
    """Let a draft take lineups."""
    async with runtime.database.transaction() as connection:
        contest = await commands.open_contest(runtime, Store(connection), contest_id)
        now = await runtime.clock.now(connection)
    runtime.wake(commands.LOCK)
    return documents.brief(contest, now)


@operator.post(
    "/contests/{contest_id}/lock",
    response_model=answers.Locked,
    responses=refusals(ContestUnknown, ContestCancelled, NotYet),
)
async def lock_contest(contest_id: str, runtime: RuntimeOf) -> dict[str, Any]:
    """Lock a contest whose instant has come; the clock does it by itself too."""
    async with runtime.database.transaction() as connection:
        contest = await commands.lock_by_operator(runtime, Store(connection), contest_id)
        now = await runtime.clock.now(connection)
    return {**documents.brief(contest, now), "entries": contest.entries}


@operator.post(
    "/contests/{contest_id}/reschedule",
    response_model=answers.ChangedContest,
    responses=refusals(*_CHANGEABLE, GameUnknown, NoGameLeft, InvalidRequest),
)
async def reschedule(contest_id: str, wanted: Reschedule, runtime: RuntimeOf) -> dict[str, Any]:
    """Move a game, and the lock with it, while the contest is not locked; to a day not covered it leaves."""
    moved = partial(commands.reschedule, kickoff=wanted.kickoff)
    return await _changed_game(runtime, moved, contest_id, wanted.game_id)


@operator.post(
    "/contests/reschedule",
    response_model=answers.Followed,
    responses=refusals(FileMalformed, NoGameLeft, InvalidRequest, TooLarge),
)
async def follow_schedule(request: Request, runtime: RuntimeOf, dry_run: bool = False) -> dict[str, Any]:
    """Follow a schedule file (CSV or gzip) in every contest that is not locked; all or nothing."""
    content = await read_body(request, LARGEST_UPLOAD)
    if not content:
        raise InvalidRequest("The body is empty; send the schedule as it is.", violations=[])
    told = await commands.read_schedule(content)
    async with runtime.database.transaction() as connection:
        followed = await commands.follow_schedule(runtime, Store(connection), told, dry_run=dry_run)
    runtime.wake(commands.LOCK)
    return followed


@operator.post(
    "/contests/{contest_id}/drop-game",
    response_model=answers.ChangedContest,
    responses=refusals(*_CHANGEABLE, GameUnknown, NoGameLeft, InvalidRequest),
)
async def drop_game(contest_id: str, wanted: Drop, runtime: RuntimeOf) -> dict[str, Any]:
    """Take a game out of a contest that is not locked: its players can no longer be picked."""
    left = partial(commands.drop_game, status=wanted.status)
    return await _changed_game(runtime, left, contest_id, wanted.game_id)


@operator.post(
    "/contests/{contest_id}/restore-game",
    response_model=answers.ChangedContest,
    responses=refusals(*_CHANGEABLE, GameUnknown, GameNotCovered, InvalidRequest),
)
async def restore_game(contest_id: str, wanted: Restore, runtime: RuntimeOf) -> dict[str, Any]:
    """Let a game that has left come back, at a new kickoff or the one it had."""
    back = partial(commands.restore_game, kickoff=wanted.kickoff)
    return await _changed_game(runtime, back, contest_id, wanted.game_id)


@operator.post(
    "/contests/{contest_id}/became",
    response_model=answers.Contest,
    responses=refusals(ContestUnknown, ContestCancelled, ContestNotLocked, GameUnknown, InvalidRequest),
)
async def game_became(contest_id: str, wanted: GameBecame, runtime: RuntimeOf) -> dict[str, Any]:
    """Say what became of a game after the lock, where it was not played as planned; settlement goes by the policies."""
    became = None if wanted.became == "played" else wanted.became
    async with runtime.database.transaction() as connection:
        store = Store(connection)
        contest = await commands.game_became(runtime, store, contest_id, wanted.game_id, became, wanted.resumed_at)
        rules, games = await store.ruleset(contest_id), await store.games(contest_id)
        return documents.whole(contest, rules, games, await runtime.clock.now(connection))


@operator.post(
    "/contests/{contest_id}/cancel",
    response_model=answers.Brief,
    responses=refusals(ContestUnknown, ContestLocked, InvalidRequest),
)
async def cancel_contest(contest_id: str, wanted: Cancel, runtime: RuntimeOf) -> dict[str, Any]:
    """Call a contest off before its lock, for a reason that everybody reads."""
    return await _changed(runtime, partial(commands.cancel_contest, reason=wanted.reason), contest_id)


async def _changed(runtime: Runtime, change: Callable[..., Awaitable[Contest]], contest_id: str) -> dict[str, Any]:
    async with runtime.database.transaction() as connection:
        contest = await change(runtime, Store(connection), contest_id)
        now = await runtime.clock.now(connection)
    runtime.wake(commands.LOCK)
    return documents.brief(contest, now)


async def _changed_game(
    runtime: Runtime, change: Callable[..., Awaitable[Contest]], contest_id: str, game_id: str
) -> dict[str, Any]:
    async with runtime.database.transaction() as connection:
        store = Store(connection)
        contest, told = await commands.telling(
            store, contest_id, game_id, partial(change, runtime, store, contest_id, game_id)
        )
        now = await runtime.clock.now(connection)
    runtime.wake(commands.LOCK)
    return {**documents.brief(contest, now), **told, "past": now >= contest.locks_at}


@operator.get("/clock", response_model=answers.Now)
async def clock(connection: Connection, runtime: RuntimeOf) -> dict[str, Any]:
    """The time that MAFL goes by."""
    now = await runtime.clock.now(connection)
    return {"now": instant(now), "clock": "replay" if runtime.clock.replay else "system"}


@operator.put(
    "/clock",
    response_model=answers.Now,
    responses=refusals(ClockBackwards, ClockNotReplay, InvalidRequest),
)
async def move_clock(wanted: Move, runtime: RuntimeOf) -> dict[str, Any]:
    """Move the replay clock forwards. The answer comes once every contest that this makes due is locked."""
    async with runtime.database.transaction() as connection:
        await commands.move_clock(runtime, Store(connection), wanted.now)
        now = await runtime.clock.now(connection)
    runtime.wake(commands.LOCK)
    return {"now": instant(now), "clock": "replay"}
