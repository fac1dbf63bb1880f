"""Moderation's routes: for operators only, and nothing of a contest before its lock (C8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from common import audit, problems
from common.answers import refusals
from common.events import RedactionReason, State
from common.limits import address_of
from common.requests import TooLarge, json_body, parsed
from common.service import Connection, RuntimeOf, operator_only
from moderation import commands, domain, reruns
from moderation.domain import BY_HAND, Cause, Judgement, Noted, RedactionOrder, Rerun, Stage
from moderation.store import Judged, RerunStore, Store

LARGEST_BODY = 32 * 1024
"""Bytes; the longest judgement allowed is a small part of it."""


operator = APIRouter(
    prefix="/operator/api/v1/moderation",
    dependencies=[Depends(operator_only)],
    responses=refusals(problems.Refused, problems.Unauthorized, problems.Unavailable),
)


class SetAsideView(BaseModel):
    """How many texts, agents' names or models' labels (``kind``) could not be judged, for the same cause.

    ``cause``: a detector ``raised``, or the process that judges was ``too-slow`` or ``died``, each time it was tried.
    """

    kind: Literal["text", "name", "model"]
    cause: Cause
    detector: str | None
    error: str
    count: int
    oldest_seconds: float


class BacklogView(BaseModel):
    """What waits to be judged, and what is set aside because it could not be: totals, no agents."""

    texts: int
    oldest_seconds: float
    names: int
    models: int
    set_aside: list[SetAsideView]


class AgainView(BaseModel):
    """How many texts and names are tried again."""

    wanted: int


class FindingView(BaseModel):
    """Why a text is withheld; ``start`` and ``end`` count code points of ``text``."""

    detector: str
    version: str
    rule: str
    start: int
    end: int


class TroubleView(BaseModel):
    """Why the pipeline could not judge: ``cause`` as in :class:`SetAsideView`."""

    cause: Cause
    detector: str | None
    error: str


class ItemView(BaseModel):
    """A text of a locked lineup, an agent's name (then without lineup and pointer) or a model's label (then with
    ``model``, and without agent too), and its verdict.

    ``version`` counts the verdicts. ``findings`` and ``pipeline`` are the pipeline's, ``external_findings`` and
    ``external_version`` the external model's; where a person judged by hand, ``judged_by`` says who.
    ``review_requested_at`` stands where the owner asked to look again and nobody has, with what the owner has to say
    for it. ``slot`` and ``player`` are those of the pick that a text is about, where moderation heard of them.
    """

    contest: str | None
    lineup_id: UUID | None
    agent_id: UUID | None
    revision: int | None
    pointer: str | None
    model: str | None
    slot: str | None
    player: str | None
    text: str
    text_hash: str
    state: State | None
    version: int
    findings: list[FindingView]
    pipeline: str | None
    external_findings: list[FindingView]
    external_version: str | None
    judged_by: str | None
    judged_at: datetime | None
    redacted_at: datetime | None
    """Its words are gone for good since then: ``text`` and ``text_hash`` are empty."""
    review_requested_at: datetime | None
    review_sentence: str | None
    set_aside: TroubleView | None
    """Where the pipeline could not judge it: it is not checked yet, whatever else was found in it."""


class QueueView(BaseModel):
    """What is not cleared: what owners ask to look at again first, then the newest verdict."""

    items: list[ItemView]


class JudgementView(BaseModel):
    """What a person judged: from ``was`` to ``state``, which made ``version`` of the verdict.

    ``takes_back`` is the ``position`` of the judgement that this one took back: what held before it holds again.
    """

    position: int
    takes_back: int | None
    pointer: str | None
    text_hash: str
    version: int
    was: State
    state: State
    note: str
    judged_by: str
    judged_at: datetime


class FormerView(BaseModel):
    """A verdict of a stage that another has replaced: of a rerun, or on an agent's former name."""

    pointer: str | None
    text_hash: str
    stage: Stage
    state: State
    findings: list[FindingView]
    pipeline: str | None
    judged_at: datetime | None
    replaced_at: datetime


class CaseView(BaseModel):
    """Texts of a lineup, an agent's name or a model's label, with what people judged and noted and former verdicts,
    oldest first."""

    items: list[ItemView]
    history: list[JudgementView]
    notes: list[NoteView]
    former: list[FormerView]


class DetectorView(BaseModel):
    """How many texts, names and labels a detector flags now that it did not, and no longer."""

    newly: int
    no_longer: int


class RerunView(BaseModel):
    """What is judged again and how far that is.

    ``pipeline`` and ``total`` are known once it has begun. ``counts`` are texts, names and labels by what became of
    them: two states as in ``cleared_to_flagged``; ``reasons``, flagged as before by other detectors; ``by_hand``, the
    pipeline says something else and a person's word holds; ``failed``, the pipeline could not tell and the old verdict
    stays; ``unchanged``. ``detectors`` are by name.
    """

    rerun: UUID
    contests: list[str]
    seasons: list[int]
    everything: bool
    older: bool
    dry_run: bool
    by: str
    state: Literal["running", "done", "stopped"]
    why: str | None
    pipeline: str | None
    total: int | None
    done: int
    counts: dict[str, int]
    detectors: dict[str, DetectorView]
    created_at: datetime
    finished_at: datetime | None


class RerunList(BaseModel):
    """Reruns, the newest first."""

    reruns: list[RerunView]


class ChangeView(BaseModel):
    """What a rerun changed, or a dry run would have: of a text, a name or a label.

    ``text`` is there on request alone; ``position`` is where it stands in the list.
    """

    position: int
    kind: Literal["text", "name", "model"]
    contest: str | None
    lineup_id: UUID | None
    revision: int | None
    pointer: str | None
    agent_id: UUID | None
    model: str | None
    was: State
    state: State
    newly: list[str]
    no_longer: list[str]
    findings: list[FindingView]
    text: str | None


class ChangeList(BaseModel):
    """Changes in texts of final revisions of locked contests, in names and labels; others are only counted."""

    changes: list[ChangeView]


class Stop(BaseModel):
    """Who stops a rerun."""

    model_config = ConfigDict(extra="forbid")

    by: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00]*$")] = audit.OPERATOR


class NoteView(BaseModel):
    """What a person noted without judging; ``version`` is that of the verdict that stood then."""

    pointer: str | None
    text_hash: str
    version: int
    note: str
    noted_by: str
    noted_at: datetime


class TakeBack(BaseModel):
    """Who takes a judgement back."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    by: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00]*$")] = BY_HAND


class CopiesView(BaseModel):
    """What moderation's own records hold of a text beside it: events that released it, notes and requests about it."""

    released: int
    notes: int


class RedactedTextView(BaseModel):
    """A text that an order is about; ``final`` is null before the lock, ``redacted`` true where it was gone before.

    ``text`` is what a dry run shows of the final revision after the lock, ``slot`` and ``player`` are those of the pick
    that it is about; null of every other.
    """

    revision: int
    slot: str | None
    player: str | None
    final: bool | None
    state: State | None
    text: str | None
    redacted: bool
    copies: CopiesView


class RedactionView(BaseModel):
    """A text that went for good, and when each store said that it is rid of the words; null where it has not yet.

    ``boards_at`` stays null where nothing was ever public: before the lock, and of a revision that is not final; then
    ``boards_holds_nothing``. ``done`` where all have said so. ``messages`` were erased from the streams in ``looks``.

    Of an agent's own words contest, lineup and revision are null, ``pointer`` says which went, and ``registry_at`` when
    registry, who alone was ordered to, let go of them; who ordered it stands in registry's list of acts.
    """

    redaction_id: UUID
    contest: str | None
    lineup_id: UUID | None
    agent_id: UUID
    revision: int | None
    pointer: str
    reason: RedactionReason
    note: str
    ordered_by: str
    redacted_at: datetime
    moderation_at: datetime | None
    registry_at: datetime | None
    contests_at: datetime | None
    boards_at: datetime | None
    boards_holds_nothing: bool
    streams_at: datetime | None
    looks: int
    messages: int
    done: bool


class RedactionsView(BaseModel):
    """What was redacted, the newest first."""

    redactions: list[RedactionView]


class OrderView(RedactionsView):
    """The texts that an order is about, and what is or was redacted of them."""

    dry_run: bool
    texts: list[RedactedTextView]


@operator.get("/backlog")
async def backlog(connection: Connection) -> BacklogView:
    """How many texts, agents' names and models' labels wait to be judged; how long the oldest text has waited."""
    store = Store(connection)
    waiting = await store.backlog()
    return BacklogView(
        texts=waiting.texts,
        oldest_seconds=waiting.oldest_seconds,
        names=waiting.names,
        models=waiting.models,
        set_aside=[SetAsideView.model_validate(asdict(one)) for one in await store.set_aside_counts()],
    )


@operator.post("/set-aside/again")
async def again(request: Request, connection: Connection) -> AgainView:
    """Have everything that could not be judged tried once more, as it is by itself after a change of the pipeline."""
    wanted = await commands.try_again(Store(connection), via=f"api from {address_of(request.scope)}")
    return AgainView(wanted=wanted)


@operator.get("/queue", responses=refusals(problems.InvalidRequest))
async def queue(
    connection: Connection,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    only_open: Annotated[bool, Query(alias="open")] = False,
) -> QueueView:
    """Flagged and unchecked texts of final revisions, once their contest is locked, agents' names, models' labels.

    With ``open`` only those that no person has judged, or whose owner asks for a review.
    """
    items = await Store(connection).withheld(limit, only_open=only_open)
    return QueueView(items=[ItemView.model_validate(row) for row in items])


@operator.get("/lineups/{lineup_id}", responses=refusals(problems.NotFound, problems.InvalidRequest))
async def lineup(lineup_id: UUID, connection: Connection) -> CaseView:
    """All texts of a lineup's final revision, cleared ones too, once its contest is locked."""
    store = Store(connection)
    return await _case(store, await store.lineup(lineup_id), lineup_id=lineup_id)


@operator.get("/agents/{agent_id}", responses=refusals(problems.NotFound, problems.InvalidRequest))
async def agent(agent_id: UUID, connection: Connection) -> CaseView:
    """An agent's name and its verdict."""
    store = Store(connection)
    return await _case(store, await store.agent_name(agent_id), agent_id=agent_id)


@operator.get("/models/{label:path}", responses=refusals(problems.NotFound, problems.InvalidRequest))
async def model(label: str, connection: Connection) -> CaseView:
    """A model's label as agents write it, and its verdict."""
    label = label.replace("\0", "")
    store = Store(connection)
    return await _case(store, await store.model_label(label), model=label)


@operator.post(
    "/judgements",
    openapi_extra=json_body(Judgement),
    responses=refusals(
        problems.NotFound, commands.JudgedMeanwhile, commands.Redacted, TooLarge, problems.InvalidRequest
    ),
)
async def judge(
    request: Request, wanted: Annotated[Judgement, parsed(Judgement, LARGEST_BODY)], connection: Connection
) -> CaseView:
    """Clear or flag a text of a locked lineup, an agent's name or a model's label; at once public, or withdrawn.

    409 ``judged-meanwhile`` where its verdict is no longer the one of ``version``.
    """
    store = Store(connection)
    held, _ = await commands.judge_by_hand(store, wanted, via=_via(request))
    return await _about(store, held)


@operator.post(
    "/judgements/{position}/take-back",
    openapi_extra=json_body(TakeBack),
    responses=refusals(problems.NotFound, commands.JudgedMeanwhile, TooLarge, problems.InvalidRequest),
)
async def take_back(
    request: Request,
    position: Annotated[int, Path(ge=1, le=2**62)],
    wanted: Annotated[TakeBack, parsed(TakeBack, LARGEST_BODY)],
    connection: Connection,
) -> CaseView:
    """Let hold again what held before a judgement, and a request for a review that it answered be open again.

    409 ``judged-meanwhile`` where anything was said of the text since.
    """
    store = Store(connection)
    return await _about(store, await commands.take_back(store, position, by=wanted.by, via=_via(request)))


@operator.post(
    "/notes",
    openapi_extra=json_body(Noted),
    responses=refusals(problems.NotFound, TooLarge, problems.InvalidRequest),
)
async def note(
    request: Request, wanted: Annotated[Noted, parsed(Noted, LARGEST_BODY)], connection: Connection
) -> CaseView:
    """Note something of a text of a locked lineup, an agent's name or a model's label, and judge nothing."""
    store = Store(connection)
    return await _about(store, await commands.note(store, wanted, via=_via(request)))


def _via(request: Request) -> str:
    return f"api from {address_of(request.scope)}"


async def _about(store: Store, held: Judged) -> CaseView:
    if held.model is not None:
        return await _case(store, await store.model_label(held.model), model=held.model)
    if held.place is None and held.agent_id is not None:
        return await _case(store, await store.agent_name(held.agent_id), agent_id=held.agent_id)
    if held.place is None:
        raise ValueError("what is held is no text, no label and no agent's name")
    lineup_id, pointer = held.place.lineup_id, held.place.pointer
    case = await _case(store, await store.lineup(lineup_id), lineup_id=lineup_id)
    return CaseView(
        items=[item for item in case.items if item.pointer == pointer],
        history=[judgement for judgement in case.history if judgement.pointer == pointer],
        notes=[noted for noted in case.notes if noted.pointer == pointer],
        former=[former for former in case.former if former.pointer == pointer],
    )


@operator.post(
    "/redactions",
    openapi_extra=json_body(RedactionOrder),
    responses=refusals(problems.NotFound, TooLarge, problems.InvalidRequest),
)
async def redact(
    request: Request,
    wanted: Annotated[RedactionOrder, parsed(RedactionOrder, LARGEST_BODY)],
    connection: Connection,
    runtime: RuntimeOf,
) -> OrderView:
    """Let the words of a text go for good, from every store; what is gone already stays so. It cannot be undone.

    The answer comes when moderation itself is rid of them; ask for the redactions to see when the others are.
    """
    store = Store(connection)
    now = await runtime.clock.now(connection)
    texts = await commands.redact(store, wanted, now, via=f"api from {address_of(request.scope)}")
    made = _redactions(await store.redactions(lineup_id=wanted.lineup_id, pointer=wanted.pointer))
    meant = {text["revision"] for text in texts}
    return OrderView.model_validate(
        {"dry_run": wanted.dry_run, "texts": texts, "redactions": [one for one in made if one["revision"] in meant]}
    )


@operator.get("/redactions", responses=refusals(problems.InvalidRequest))
async def redactions(
    connection: Connection,
    lineup_id: UUID | None = None,
    agent_id: Annotated[UUID | None, Query(description="an agent's own name and description alone")] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> RedactionsView:
    """What was redacted, the newest first, and which stores are rid of it."""
    found = await Store(connection).redactions(lineup_id=lineup_id, agent_id=agent_id, limit=limit)
    return RedactionsView.model_validate({"redactions": _redactions(found)})


def _redactions(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            **row,
            "boards_holds_nothing": row["contests_at"] is not None and not row["told"] and row["boards_at"] is None,
            "done": row["moderation_at"] is not None
            and domain.is_rid_of(
                row["registry_at"] or row["contests_at"], row["boards_at"], row["streams_at"], told=row["told"]
            ),
        }
        for row in rows
    ]


async def _case(store: Store, items: Sequence[Mapping[str, Any]], **about: Any) -> CaseView:
    """``about`` is what ``Store.history`` and its like take."""
    if not items:
        raise problems.NotFound(commands.NOT_THERE)
    history, notes = await store.history(**about), await store.notes(**about)
    former = await store.former(**about)
    return CaseView.model_validate({"items": items, "history": history, "notes": notes, "former": former})


@operator.post(
    "/reruns",
    openapi_extra=json_body(Rerun),
    responses=refusals(problems.NotFound, TooLarge, problems.InvalidRequest),
)
async def rerun(
    request: Request, wanted: Annotated[Rerun, parsed(Rerun, LARGEST_BODY)], connection: Connection
) -> RerunView:
    """Judge old texts again by the pipeline as it is now, or find out what that would change.

    It goes on in the background, after all that waits to be judged for the first time. Asked for again while it runs,
    the answer is the run that is under way.
    """
    store = RerunStore(connection)
    started = await reruns.start(store, wanted, via=f"api from {address_of(request.scope)}")
    return await _rerun(store, started)


@operator.get("/reruns", responses=refusals(problems.InvalidRequest))
async def rerun_list(connection: Connection, limit: Annotated[int, Query(ge=1, le=1_000)] = 20) -> RerunList:
    """Reruns, the newest first."""
    return RerunList(reruns=[_rerun_view(row) for row in await RerunStore(connection).runs(limit)])


@operator.get("/reruns/{rerun_id}", responses=refusals(problems.NotFound, problems.InvalidRequest))
async def one_rerun(rerun_id: UUID, connection: Connection) -> RerunView:
    """A rerun and how far it is."""
    return await _rerun(RerunStore(connection), rerun_id)


@operator.get("/reruns/{rerun_id}/changes", responses=refusals(problems.NotFound, problems.InvalidRequest))
async def rerun_changes(
    rerun_id: UUID,
    connection: Connection,
    after: Annotated[int, Query(ge=0, le=2**62, description="only changes behind this position")] = 0,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 200,
    words: Annotated[bool, Query(description="with the words of each text")] = False,
) -> ChangeList:
    """What a rerun changed so far, or a dry run would have."""
    store = RerunStore(connection)
    await _rerun(store, rerun_id)
    rows = await store.changes(rerun_id, after, limit, words=words)
    return ChangeList(changes=[ChangeView.model_validate(row) for row in rows])


@operator.post(
    "/reruns/{rerun_id}/stop",
    openapi_extra=json_body(Stop),
    responses=refusals(problems.NotFound, TooLarge, problems.InvalidRequest),
)
async def stop_rerun(
    rerun_id: UUID, request: Request, given: Annotated[Stop, parsed(Stop, LARGEST_BODY)], connection: Connection
) -> RerunView:
    """End a rerun where it stands; what it changed stays changed."""
    store = RerunStore(connection)
    await reruns.stop(store, rerun_id, by=given.by, via=f"api from {address_of(request.scope)}")
    return await _rerun(store, rerun_id)


async def _rerun(store: RerunStore, rerun_id: UUID) -> RerunView:
    found = await store.run(rerun_id)
    if found is None:
        raise problems.NotFound("There is no such rerun.")
    return _rerun_view(found)


def _rerun_view(row: Mapping[str, Any]) -> RerunView:
    detectors = {name: {"newly": newly, "no_longer": gone} for name, (newly, gone) in row["detectors"].items()}
    return RerunView.model_validate({**row["wanted"], **row, "detectors": detectors})
