"""The loop that judges: what waits goes to the workers in batches, each read and written by one transaction.

What a batch has read is locked until its verdicts are written, and passed over by other batches: several copies of
the service, and the batches of one, share the work and judge nothing twice. What is judged is written after
``SECONDS_AT_ONCE`` at the latest, or as soon as the rest hangs; what hangs goes on and comes with a later batch. Texts
come in the order of their locks as they stand at each batch; names and labels have batches of their own, so that
neither waits for the other.

What could not be judged (a detector raised; the process was lost twice) is set aside: *not checked yet*, with the
cause. It is tried again once by each new version of the pipeline, and when an operator says so.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from common import events as ev
from common.events import State
from common.logs import logger
from common.metrics import Metrics
from common.outbox import emit_all
from common.service import Runtime
from moderation import commands, reruns
from moderation.domain import Cause, Stage, reasons
from moderation.settings import ExternalSettings, JudgingSettings
from moderation.store import KINDS, Aside, Kind, Store, WaitingModel, WaitingName, WaitingText
from moderation.workers import Job, Outcome, Workers

TEXTS_AT_ONCE = 256
NAMES_AT_ONCE = 256
MODELS_AT_ONCE = 256
AGAIN_AT_ONCE = 64
SECONDS_AT_ONCE = 2.0
"""After this long a batch is written as far as it got."""

_LOOK_FOR_SET_ASIDE_SECONDS = 2.0


@dataclass(frozen=True)
class Batch:
    """How many waited, at most as many as a batch takes, and how many of them are judged."""

    waiting: int
    judged: int


@dataclass
class Judging:
    """What the batches share."""

    workers: Workers
    metrics: Metrics
    asks_external: bool
    """Whether what is judged from now on needs an external model's word too."""
    more: asyncio.Event = field(default_factory=asyncio.Event)
    """Set where there is more than one batch of texts."""
    _pools: dict[str, frozenset[str]] = field(default_factory=dict)

    async def texts(self, store: Store) -> Batch:
        """Judge a batch of waiting texts, what locks soonest first."""
        waiting = await store.waiting_texts(TEXTS_AT_ONCE)
        if len(waiting) == TEXTS_AT_ONCE:
            self.more.set()
        return await self._texts(store, waiting)

    async def names(self, store: Store) -> Batch:
        """Judge a batch of agents' names and tell what became of them."""
        return await self._names(store, await store.waiting_names(NAMES_AT_ONCE))

    async def models(self, store: Store) -> Batch:
        """Judge a batch of models' labels and tell what became of them."""
        return await self._models(store, await store.waiting_models(MODELS_AT_ONCE))

    async def again(self, store: Store, kind: Kind, version: str) -> Batch:
        """Judge what another version of the pipeline than this set aside, or what an operator asked for, once more.

        Of names and labels what changes is told.
        """
        if kind == "text":
            return await self._texts(store, await store.texts_set_aside(AGAIN_AT_ONCE, version))
        if kind == "name":
            return await self._names(store, await store.names_set_aside(AGAIN_AT_ONCE, version), again=True)
        return await self._models(store, await store.models_set_aside(AGAIN_AT_ONCE, version), again=True)

    async def _texts(self, store: Store, waiting: Sequence[WaitingText]) -> Batch:
        for contest in {text.contest for text in waiting}:
            names = await store.names(contest)
            # A pool may change while its contest is open. The same names are the same object: jobs are compared.
            if self._pools.get(contest) != names:
                self._pools[contest] = names
        jobs = {text: Job(text.text, names=self._pools[text.contest]) for text in waiting}
        found = await self.workers.judge(jobs.values(), SECONDS_AT_ONCE)
        outcomes = [(text, found[job]) for text, job in jobs.items() if job in found]
        for pipeline in sorted({outcome.pipeline for _, outcome in outcomes}):
            verdicts = {text.place: outcome.verdict for text, outcome in outcomes if outcome.pipeline == pipeline}
            asks = self.asks_external
            await commands.take_verdicts(store, Stage.LOCAL, verdicts, pipeline, asks_external=asks)
        await self._keep_troubles(store, [(text.aside, outcome) for text, outcome in outcomes])
        return Batch(len(waiting), len(outcomes))

    async def _names(self, store: Store, waiting: Sequence[WaitingName], *, again: bool = False) -> Batch:
        found = await self.workers.judge([Job(agent.name) for agent in waiting], SECONDS_AT_ONCE)
        outcomes = [(agent, found[Job(agent.name)]) for agent in waiting if Job(agent.name) in found]
        told: list[tuple[ev.Event, int]] = []
        for agent, outcome in outcomes:
            verdict = outcome.verdict
            if again and verdict.state is State.UNCHECKED:
                continue
            if again:
                await store.former_name(agent.agent_id)
            await store.judged_name(agent, verdict, outcome.pipeline)
            event = ev.AgentNameJudged(
                agent_id=agent.agent_id,
                agent_name=agent.name,
                state=verdict.state,
                reasons=reasons(verdict.state, (one.detector for one in verdict.findings), by_hand=False),
                reviewed=agent.reviewed,
                agent_version=agent.version,
            )
            told.append((event, agent.told_version + 1))
        await emit_all(store.connection, told)
        asides = [(Aside("name", agent_id=agent.agent_id), outcome) for agent, outcome in outcomes]
        await self._keep_troubles(store, asides)
        return Batch(len(waiting), len(outcomes))

    async def _models(self, store: Store, waiting: Sequence[WaitingModel], *, again: bool = False) -> Batch:
        found = await self.workers.judge([Job(one.model, "label") for one in waiting], SECONDS_AT_ONCE)
        jobs = ((one, Job(one.model, "label")) for one in waiting)
        outcomes = [(one, found[job]) for one, job in jobs if job in found]
        news = [(one, outcome) for one, outcome in outcomes if not (again and outcome.verdict.state is State.UNCHECKED)]
        for pipeline in sorted({outcome.pipeline for _, outcome in news}):
            verdicts = {one.model: outcome.verdict for one, outcome in news if outcome.pipeline == pipeline}
            if again:
                await store.former_models(verdicts)
            await store.judged_models(verdicts, pipeline)
        told: list[tuple[ev.Event, int]] = [
            (ev.ModelJudged(model=one.model, state=outcome.verdict.state), one.told_version + 1)
            for one, outcome in news
        ]
        await emit_all(store.connection, told)
        await self._keep_troubles(store, [(Aside("model", model=one.model), outcome) for one, outcome in outcomes])
        return Batch(len(waiting), len(outcomes))

    async def _keep_troubles(self, store: Store, outcomes: Sequence[tuple[Aside, Outcome]]) -> None:
        """Keep what was set aside and forget what is no longer; count and report all of it."""
        aside = {about: out for about, out in outcomes if out.verdict.state is State.UNCHECKED}
        # What had been set aside before may have been another name, or an older version's failure.
        await store.no_longer_set_aside([about for about, _ in outcomes if about not in aside])
        for about, outcome in aside.items():
            await store.set_aside(about, outcome.troubles[0], outcome.pipeline)
        _count(self.metrics, [outcome for _, outcome in outcomes])


def _count(metrics: Metrics, outcomes: Iterable[Outcome]) -> None:
    states: Counter[State] = Counter()
    troubles: Counter[tuple[Cause, str, str, bool]] = Counter()
    for outcome in outcomes:
        states[outcome.verdict.state] += 1
        for detector in {finding.detector for finding in outcome.verdict.findings}:
            metrics.moderation_findings.labels(detector).inc()
        for trouble in outcome.troubles:
            aside = outcome.verdict.state is State.UNCHECKED
            troubles[trouble.cause, trouble.detector or "unknown", trouble.error, aside] += 1
    for state, count in states.items():
        metrics.moderation_judged.labels(state.value).inc(count)
    for (cause, detector, error, aside), count in troubles.items():
        metrics.moderation_detector_errors.labels(detector).inc(count)
        if aside:
            metrics.moderation_set_aside.labels(cause.value, detector).inc(count)
        logger.warning(
            "a detector could not judge; what no other detector flagged is set aside",
            cause=cause.value,
            detector=detector,
            error=error,
            texts=count,
            set_aside=aside,
        )


async def judge(runtime: Runtime) -> None:
    """Judge what waits, for ever."""
    settings: JudgingSettings = runtime.state["judging"]
    external: ExternalSettings = runtime.state["external"]
    async with Workers(settings, runtime.metrics) as workers:
        judging = Judging(workers, runtime.metrics, external.configured)
        try:
            async with asyncio.TaskGroup() as loops:
                loops.create_task(_what_waits(runtime, judging.texts, "text"))
                if settings.workers > 1:
                    loops.create_task(_more_texts(runtime, judging))
                loops.create_task(_what_waits(runtime, judging.names, "name"))
                loops.create_task(_what_waits(runtime, judging.models, "model"))
                loops.create_task(_again(runtime, judging))
                loops.create_task(reruns.go_on(runtime, workers))
        except BaseExceptionGroup as group:
            # Whoever starts this task again looks at what was raised.
            raise group.exceptions[0] from None


async def _batch(runtime: Runtime, batch: Callable[[Store], Awaitable[Batch]], kind: str) -> Batch:
    began = time.perf_counter()
    async with runtime.database.transaction() as connection:
        done = await batch(Store(connection))
    if done.judged:
        runtime.metrics.moderation_batch_seconds.labels(kind).observe(time.perf_counter() - began)
        if kind == "text":
            runtime.wake("publish")
            runtime.wake("ask")
    return done


async def _more_texts(runtime: Runtime, judging: Judging) -> None:
    """While one batch is read and written the workers have another, where there is more than one batch."""
    while True:
        await judging.more.wait()
        judging.more.clear()
        while (await _batch(runtime, judging.texts, "text")).waiting:
            pass


async def _what_waits(runtime: Runtime, batch: Callable[[Store], Awaitable[Batch]], kind: str) -> None:
    while True:
        if not (await _batch(runtime, batch, kind)).waiting:
            await runtime.woken(f"judge {kind}")


async def _again(runtime: Runtime, judging: Judging) -> None:
    while True:
        async with runtime.database.transaction() as connection:
            kinds = [kind for kind in KINDS if await Store(connection).any_set_aside(kind)]
        for kind in kinds:
            # Not inside a transaction: the processes may take as long to come up as the server lets one be idle.
            version = await judging.workers.version()
            batch = partial(judging.again, kind=kind, version=version)
            while (await _batch(runtime, batch, kind)).waiting:
                pass
        await asyncio.sleep(_LOOK_FOR_SET_ASIDE_SECONDS)
