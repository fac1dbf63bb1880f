"""What moderation does: one function a use case, each inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from common import audit
from common import events as ev
from common.events import State
from common.outbox import emit_all
from common.problems import NotFound, Problem
from moderation import domain
from moderation.domain import Judgement, Noted, RedactionOrder, Stage, Standing, Verdict
from moderation.store import DueLineup, Held, Judged, Place, Store

LINEUPS_AT_ONCE = 256


class JudgedMeanwhile(Problem):
    status = 409
    code = "judged-meanwhile"
    title = "The verdict is not the one that you saw"


class Redacted(Problem):
    status = 409
    code = "redacted"
    title = "The text was redacted"


async def keep(store: Store, event: ev.LineupSubmitted) -> None:
    """Keep the words of a revision, to be judged (M5)."""
    await store.add_texts(
        [
            {
                "lineup_id": event.lineup_id,
                "revision": event.revision,
                "pointer": words.pointer,
                "contest": event.contest,
                "agent_id": event.agent_id,
                "accepted_at": event.accepted_at,
                "due_at": event.locks_at,
                "text": words.text,
                "text_hash": domain.text_hash(words.text),
                "salt": words.salt,
            }
            for words in event.words
        ]
    )


@dataclass(frozen=True)
class Taken:
    """A verdict that changed something: the standing of a text before it and after it."""

    place: Place
    before: Standing
    after: Standing


async def take_verdicts(
    store: Store,
    stage: Stage,
    verdicts: Mapping[Place, Verdict],
    version: str,
    *,
    again: bool = False,
    asks_external: bool | None = None,
    before: datetime | None = None,
    dry_run: bool = False,
) -> Sequence[Taken]:
    """Keep what a stage, at a version, said of texts: the one way in which a verdict of a stage is written.

    Whatever happened since the texts were read counts: they are held here, and ``Standing.judged`` says what becomes of
    each, for which ``again`` and ``asks_external`` are meant. What the pipeline judged at ``before`` or later is left
    as it is, and so is a verdict that says nothing else in the same version and asks no other stage. Returns those that
    changed, or with ``dry_run`` those that would, and then writes nothing. Whoever calls wakes "publish" after the
    commit.
    """
    held = await store.hold(verdicts)
    news: list[tuple[Held, Standing]] = []
    for place, text in held.items():
        verdict = verdicts[place]
        if before is not None and text.pipeline_at is not None and text.pipeline_at >= before:
            continue
        asks = text.standing.asks_external if asks_external is None else asks_external
        known = text.standing.of(stage) == verdict and text.version_of(stage) == version
        if again and known and asks == text.standing.asks_external:
            continue
        after = text.standing.judged(stage, verdict, again=again, asks_external=asks_external)
        if after != text.standing:
            news.append((text, after))
    if not dry_run:
        await store.keep_verdicts(stage, version, news)
    return [Taken(text.place, text.standing, after) for text, after in news]


async def judge_by_hand(store: Store, wanted: Judgement, *, via: str) -> tuple[Judged, int]:
    """Keep and tell what a person says of a text of a final revision, after its lock, of a name or of a label.

    ``via`` is the way by which they came, for the list of operators' acts. Returns what was judged, as it was before,
    and where in the history of judgements it is.

    It is told though the state stays what it was: whoever asked for a review hears that there was one. Words that
    were public and are flagged now are withdrawn with it. Raises ``NotFound``, ``JudgedMeanwhile``, ``Redacted``.
    """
    held = await _held(store, wanted.lineup_id, wanted.pointer, wanted.agent_id, wanted.model)
    # A name that waits to be judged is not the name that the verdict of this version was about; a text never changes.
    if held.version != wanted.version or (held.state is None and held.place is None):
        raise _meanwhile(held, wanted.version)
    position = await store.judged_by_hand(held, wanted.state, wanted.note, wanted.by)
    await _told_by_hand(store, held, wanted.state, by_hand=True, reviewed=held.review)
    await _acted(store, held, "judge", wanted.by, via, state=wanted.state)
    return held, position


async def take_back(store: Store, position: int, *, by: str, via: str) -> Judged:
    """Let hold again what held before a judgement of the history, as long as nothing was said since.

    The owner's request that it had answered is open again. Returns what it was about, as it was before. Raises
    ``NotFound``, ``JudgedMeanwhile``.
    """
    judgement = await store.judgement(position)
    if judgement is None:
        raise NotFound("There is no such judgement.")
    about = (judgement[name] for name in ("lineup_id", "pointer", "agent_id", "model"))
    held = await _held(store, *about)
    if held.version != judgement["version"] or domain.text_hash(held.text) != judgement["text_hash"]:
        raise _meanwhile(held, judgement["version"])
    state = await store.taken_back(held, judgement, f"Takes back: {judgement['note']}"[: domain.LONGEST_NOTE], by)
    await _told_by_hand(store, held, state, by_hand=judgement["was_by"] is not None, reviewed=judgement["was_reviewed"])
    await _acted(store, held, "take back", by, via, state=state)
    return held


async def note(store: Store, wanted: Noted, *, via: str) -> Judged:
    """Keep what a person notes of a text, a name or a label without judging it. Raises ``NotFound``."""
    held = await _held(store, wanted.lineup_id, wanted.pointer, wanted.agent_id, wanted.model)
    await store.add_note(held, wanted.note, wanted.by)
    await _acted(store, held, "note", wanted.by, via)
    return held


NOT_THERE = (
    "There is no such agent, no such text of a lineup whose contest is locked, or no agent has claimed a model of that "
    "label."
)


async def _held(
    store: Store, lineup_id: UUID | None, pointer: str | None, agent_id: UUID | None, model: str | None
) -> Judged:
    held: Judged | None = None
    if model is not None:
        held = await store.label(model)
    elif lineup_id is not None and pointer is not None:
        held = await store.final_text(lineup_id, pointer)
    elif agent_id is not None:
        held = await store.name(agent_id)
    if held is None:
        raise NotFound(NOT_THERE)
    if held.redacted:
        raise Redacted("Its words are gone for good: there is nothing left to judge.")
    return held


def _meanwhile(held: Judged, seen: int) -> JudgedMeanwhile:
    detail = f"You saw version {seen}, the verdict is at version {held.version}. Look again."
    return JudgedMeanwhile(detail, version=held.version, state=held.state)


async def _told_by_hand(store: Store, held: Judged, state: State | None, *, by_hand: bool, reviewed: int) -> None:
    if held.place is not None:
        await publish(store, held.place.lineup_id)
        return
    if held.model is not None:
        labelled = ev.ModelJudged(model=held.model, state=state or State.UNCHECKED)
        await emit_all(store.connection, [(labelled, held.version + 1)])
        return
    if held.agent_id is None:
        raise ValueError("what is held is no text, no label and no agent's name")
    reasons = domain.reasons(state, held.found, by_hand=by_hand)
    named = ev.AgentNameJudged(
        agent_id=held.agent_id,
        agent_name=held.text,
        state=state or State.UNCHECKED,
        reasons=reasons,
        reviewed=reviewed,
        agent_version=held.agent_version,
    )
    await emit_all(store.connection, [(named, held.version + 1)])


async def _acted(store: Store, held: Judged, what: str, who: str, via: str, *, state: State | None = None) -> None:
    # The note stays with the judgement: it may quote what has to go one day, and a line of this list stays.
    was = {"state": held.state.value if held.state else None, "version": held.version}
    now = {"version": held.version} if what == "note" else {"state": state and state.value, "version": held.version + 1}
    await audit.record(
        store.connection,
        who=who,
        what=what,
        target=domain.target(held.agent_id, held.lineup_id, held.pointer, held.model),
        before=was,
        after={**now, "via": via},
    )


async def try_again(store: Store, *, via: str) -> int:
    """Let everything that could not be judged be tried once more; how many texts and names.

    ``via`` is the way by which the operator came, for the list of acts.
    """
    wanted = await store.try_again()
    if wanted:
        after = {"wanted": wanted, "via": via}
        await audit.record(store.connection, what="try again", target="set-aside", after=after)
    return wanted


async def redact(store: Store, wanted: RedactionOrder, now: datetime, *, via: str) -> list[dict[str, Any]]:
    """Let the words of a text go for good (M6); what was redacted already stays as it is.

    Moderation is rid of them when the transaction commits; contests is told with it, and whoever else holds words by
    contests, after the lock alone (C8). Returns the texts that are meant, each with ``revision``, ``final`` (``None``
    before the lock), ``state``, ``redacted`` (already), and how many ``copies`` moderation's own records hold; of the
    final revision after the lock also with the ``slot`` and ``player`` that it is about and, in a dry run, its
    ``text``, so that nobody redacts another one than they mean. ``via`` is as in :func:`judge_by_hand`. Raises
    ``NotFound``.
    """
    texts = await store.hold_texts(wanted.lineup_id, wanted.pointer, wanted.revisions)
    missing = sorted(set(wanted.revisions) - {text["revision"] for text in texts})
    if not texts or missing:
        revisions = f"revision {', '.join(map(str, missing))} of " if missing else ""
        raise NotFound(
            f"There is no text {wanted.pointer} in {revisions}lineup {wanted.lineup_id} here. A revision that was "
            "accepted a moment ago arrives within seconds where moderation runs; texts are /thesis, "
            "/picks/0/rationale, /picks/0/main_factor and so on."
        )
    found = [
        {
            "revision": text["revision"],
            "final": text["final"],
            # Before the lock an operator learns nothing of an entry but that it is there (C8).
            "state": None if text["final"] is None else text["state"],
            "slot": text["slot"],
            "player": text["player"],
            # Of the final revision alone, as the queue shows it; once an order was carried out there are no words.
            "text": text["text"] if wanted.dry_run and text["final"] and text["redacted_at"] is None else None,
            "redacted": text["redacted_at"] is not None,
            "copies": await store.copies_of_words(Place(text["lineup_id"], text["revision"], text["pointer"])),
        }
        for text in texts
    ]
    if wanted.dry_run:
        return found
    told: list[tuple[ev.Event, int]] = []
    for text in texts:
        if text["redacted_at"] is not None:
            continue
        redaction_id = uuid4()
        reason = {"reason": wanted.reason.value, "redacted_at": now}
        await store.redact(text, {"redaction_id": redaction_id, **reason, "note": wanted.note, "ordered_by": wanted.by})
        await audit.record(
            store.connection,
            who=wanted.by,
            what="redact",
            target=domain.target(text["agent_id"], text["lineup_id"], text["pointer"]),
            after={"revision": text["revision"], "reason": wanted.reason.value, "via": via},
        )
        about = {name: text[name] for name in ("contest", "lineup_id", "agent_id", "revision", "pointer")}
        told.append((ev.RedactionOrdered(redaction_id=redaction_id, **about, **reason), 1))
    if told:
        # What is released of the lineup from now on is whole without them; older releases are erased.
        await publish(store, wanted.lineup_id)
        await emit_all(store.connection, told)
    return found


async def publish(store: Store, lineup_id: UUID | None = None) -> int:
    """Tell what may be told of a batch of lineups (or one), each once for the same state of things; how many."""
    due = await store.due(LINEUPS_AT_ONCE, lineup_id)
    if not due:
        return 0
    told: list[tuple[ev.Event, int]] = []
    said: dict[UUID, domain.Said] = {}
    for lineup in due:
        news = domain.publication(lineup.facts)
        said[lineup.lineup_id] = lineup.facts.said if news is None else news.said
        if news is not None:
            told += _events(lineup, news)
    await emit_all(store.connection, told)
    await store.told(said)
    return len(due)


def _events(lineup: DueLineup, news: domain.Publication) -> list[tuple[ev.Event, int]]:
    about = {
        "contest": lineup.contest,
        "lineup_id": lineup.lineup_id,
        "agent_id": lineup.agent_id,
        "revision": news.revision,
    }
    events: list[tuple[ev.Event, int]] = []
    texts = lineup.facts.revisions[news.revision]
    if news.states is not None:
        fields = tuple(
            ev.FieldState(pointer=pointer, state=state, reviewed=texts[pointer].reviewed)
            for pointer, state in news.states.by_pointer.items()
        )
        events.append((ev.ReasoningJudged(**about, fields=fields, reasons=dict(news.reasons)), news.states.version))
    if news.words is not None:
        words = tuple(
            ev.Words(pointer=pointer, text=text, salt=texts[pointer].salt)
            for pointer, text in news.words.by_pointer.items()
        )
        released = ev.ReasoningReleased(**about, words=words, withdrawn=news.withdrawn)
        events.append((released, news.words.version))
    return events
