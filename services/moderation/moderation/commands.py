"""What moderation does: one function a use case, each inside the caller's transaction."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from common import audit
from common import events as ev
from common.events import State
from common.logs import logger
from common.metrics import Metrics
from common.outbox import emit_all
from common.problems import NotFound, Problem
from moderation import domain
from moderation.domain import Judgement, Stage, Standing, Verdict
from moderation.pipeline import Context, Detector, Pipeline
from moderation.store import DueLineup, Held, Judged, Place, Store, WaitingText

TEXTS_AT_ONCE = 256
NAMES_AT_ONCE = 256
MODELS_AT_ONCE = 256
LINEUPS_AT_ONCE = 256
SECONDS_AT_ONCE = 2.0
"""After this long a batch is written as far as it got: one slow text does not hold up what is judged already."""


class JudgedMeanwhile(Problem):
    status = 409
    code = "judged-meanwhile"
    title = "The verdict is not the one that you saw"


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


async def judge_texts(store: Store, pipeline: Pipeline, pools: dict[str, Context], metrics: Metrics) -> int:
    """Judge a batch of waiting texts, what locks soonest first; how many.

    ``pools`` remembers what is known of contests' pools from batch to batch. The detectors run in a
    thread, so that the event loop goes on.
    """
    waiting = await store.waiting_texts(TEXTS_AT_ONCE)
    if not waiting:
        return 0
    for contest in {text.contest for text in waiting} - pools.keys():
        pools[contest] = Context(names=await store.names(contest))
    failures = _Failures()
    verdicts = await asyncio.to_thread(_judge_all, pipeline, waiting, pools, failures)
    judged = {text.place: verdict for text, verdict in zip(waiting, verdicts, strict=False)}
    await take_verdicts(store, Stage.LOCAL, judged, pipeline.version)
    _count(metrics, verdicts, failures)
    return len(verdicts)


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
) -> Sequence[Taken]:
    """Keep what a stage, at a version, said of texts: the one way in which a verdict of a stage is written.

    Whatever happened since the texts were read counts: they are held here, and ``Standing.judged`` says what becomes
    of each, for which ``again`` and ``asks_external`` are meant. Returns those that changed. Whoever calls wakes
    "publish" after the commit.
    """
    held = await store.hold(verdicts)
    taken: list[Taken] = []
    news: list[tuple[Held, Standing]] = []
    for place, text in held.items():
        after = text.standing.judged(stage, verdicts[place], again=again, asks_external=asks_external)
        if after != text.standing:
            news.append((text, after))
            taken.append(Taken(place, text.standing, after))
    await store.keep_verdicts(stage, version, news)
    return taken


async def judge_names(store: Store, pipeline: Pipeline, metrics: Metrics) -> int:
    """Judge a batch of agents' names and tell what became of them; how many."""
    waiting = await store.waiting_names(NAMES_AT_ONCE)
    if not waiting:
        return 0
    failures = _Failures()
    context = Context()
    verdicts = await asyncio.to_thread(
        lambda: [pipeline.judge(agent.name, context, failures.note) for agent in waiting]
    )
    told: list[tuple[ev.Event, int]] = []
    for agent, verdict in zip(waiting, verdicts, strict=True):
        await store.judged_name(agent, verdict, pipeline.version)
        event = ev.AgentNameJudged(
            agent_id=agent.agent_id,
            agent_name=agent.name,
            state=verdict.state,
            reasons=domain.reasons(verdict.state, (one.detector for one in verdict.findings), by_hand=False),
            reviewed=agent.reviewed,
        )
        told.append((event, agent.told_version + 1))
    await emit_all(store.connection, told)
    _count(metrics, verdicts, failures)
    return len(waiting)


async def judge_models(store: Store, pipeline: Pipeline, metrics: Metrics) -> int:
    """Judge a batch of models' labels and tell what became of them, of each once; how many."""
    waiting = await store.waiting_models(MODELS_AT_ONCE)
    if not waiting:
        return 0
    failures = _Failures()
    verdicts = await asyncio.to_thread(lambda: {model: pipeline.judge_label(model, failures.note) for model in waiting})
    await store.judged_models(verdicts, pipeline.version)
    told = [(ev.ModelJudged(model=model, state=verdict.state), 1) for model, verdict in verdicts.items()]
    await emit_all(store.connection, told)
    _count(metrics, list(verdicts.values()), failures)
    return len(waiting)


async def judge_by_hand(store: Store, wanted: Judgement, *, via: str) -> Judged:
    """Keep and tell what a person says of a text of a final revision, after its lock, or of an agent's name.

    ``via`` is the way by which they came, for the list of operators' acts. Returns what was judged, as it was before.

    It is told though the state stays what it was: whoever asked for a review hears that there was one. Words that
    were public and are flagged now are withdrawn with it. Raises ``NotFound``, ``JudgedMeanwhile``.
    """
    held: Judged | None = None
    if wanted.agent_id is not None:
        held = await store.name(wanted.agent_id)
    elif wanted.lineup_id is not None and wanted.pointer is not None:
        held = await store.final_text(wanted.lineup_id, wanted.pointer)
    if held is None:
        raise NotFound("There is no such agent, or no such text of a lineup whose contest is locked.")
    # A name that waits to be judged is not the name that the verdict of this version was about; a text never changes.
    if held.version != wanted.version or (held.state is None and held.place is None):
        raise JudgedMeanwhile(
            f"You saw version {wanted.version}, the verdict is at version {held.version}. Look again.",
            version=held.version,
            state=held.state,
        )
    await store.judged_by_hand(held, wanted.state, wanted.note, wanted.by)
    # The note stays with the judgement: it may quote what has to go one day, and a line of this list stays.
    await audit.record(
        store.connection,
        who=wanted.by,
        what="judge",
        target=domain.target(held.agent_id, held.lineup_id, held.pointer),
        before={"state": held.state.value if held.state else None, "version": held.version},
        after={"state": wanted.state.value, "version": held.version + 1, "via": via},
    )
    if held.place is None:
        named = ev.AgentNameJudged(
            agent_id=held.agent_id,
            agent_name=held.text,
            state=wanted.state,
            reasons=domain.reasons(wanted.state, (), by_hand=True),
            reviewed=held.review,
        )
        await emit_all(store.connection, [(named, held.version + 1)])
    else:
        await publish(store, held.place.lineup_id)
    return held


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
        events.append((ev.ReasoningReleased(**about, words=words), news.words.version))
    return events


class _Failures:
    """Which detectors raised, and what: never the text, which nobody may read before the lock."""

    def __init__(self) -> None:
        self.by_detector: Counter[str] = Counter()
        self.errors: dict[str, str] = {}

    def note(self, detector: Detector, error: Exception) -> None:
        self.by_detector[detector.name] += 1
        self.errors[detector.name] = type(error).__name__


def _judge_all(
    pipeline: Pipeline, texts: Sequence[WaitingText], pools: Mapping[str, Context], failures: _Failures
) -> list[Verdict]:
    """Verdicts on the first of the texts, on one at least."""
    until = time.monotonic() + SECONDS_AT_ONCE
    # Agents that write from a template repeat themselves within a batch.
    known: dict[tuple[str, str], Verdict] = {}
    verdicts: list[Verdict] = []
    for waiting in texts:
        key = waiting.contest, waiting.text
        if key not in known:
            known[key] = pipeline.judge(waiting.text, pools[waiting.contest], failures.note)
        verdicts.append(known[key])
        if time.monotonic() > until:
            break
    return verdicts


def _count(metrics: Metrics, verdicts: Sequence[Verdict], failures: _Failures) -> None:
    for state in State:
        metrics.moderation_judged.labels(state.value).inc(sum(verdict.state is state for verdict in verdicts))
    for verdict in verdicts:
        for detector in {finding.detector for finding in verdict.findings}:
            metrics.moderation_findings.labels(detector).inc()
    for detector, count in failures.by_detector.items():
        metrics.moderation_detector_errors.labels(detector).inc(count)
        logger.warning(
            "a detector could not judge; the texts stay unchecked",
            detector=detector,
            texts=count,
            error=failures.errors[detector],
        )
