"""Judging old texts again by the pipeline as it is now, or finding out what that would change.

A rerun is a row of the database, and any copy goes on with it, a batch at a time and each batch in a transaction of
its own that keeps how far it came: killed anywhere it goes on behind the last batch. It gives way to whatever waits to
be judged for the first time. What the pipeline says is written as any other verdict is (``commands.take_verdicts``),
so that a person's word, a verdict that came meanwhile and the external stage's all count as they always do, and the
world hears of what changes. A pipeline that cannot tell replaces no verdict.

A release with another pipeline changes no old verdict by itself. A rerun is by one version from its first batch on; a
copy of another release leaves it alone, and ends it when no copy has gone on with it for a while.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol
from uuid import UUID

import uuid_utils

from common import audit
from common import events as ev
from common.events import State
from common.logs import logger
from common.outbox import emit_all
from common.problems import NotFound, Unavailable
from common.service import Runtime
from moderation import commands, domain
from moderation.domain import Difference, Rerun, Stage, Standing, Verdict
from moderation.settings import ExternalSettings
from moderation.store import Aside, Changed, HeldName, Old, RerunStore, Run, Store
from moderation.workers import Job, Workers

AT_ONCE = 128
SECONDS_AT_ONCE = 1.0
"""A batch is written as far as it got in this time: what comes new waits no longer for it."""
LEFT_FOR_SECONDS = 60.0
"""A rerun by another version of the pipeline that nobody went on with for so long is ended."""

NOBODY: frozenset[str] = frozenset()
"""The players whose names pass in an agent's name."""

_PHASES = ("texts", "names", "models")


class Judges(Protocol):
    """Whoever runs the pipeline."""

    async def again(self, old: Sequence[Old], names: Mapping[str, frozenset[str]], seconds: float) -> Sequence[Verdict]:
        """Verdicts on the first of these, on as many as there is time for; ``names`` are those of contests' pools."""
        ...


async def start(store: RerunStore, wanted: Rerun, *, via: str) -> UUID:
    """Begin a rerun, or join the one of the same choice that runs already. Raises ``NotFound``, ``Unavailable``."""
    unknown = await store.unknown(wanted)
    if unknown:
        raise NotFound(f"Nothing was ever entered for {', '.join(unknown)}: no such contest or season was opened.")
    started = await store.start(UUID(bytes=uuid_utils.uuid7().bytes), wanted)
    if started is None:
        raise Unavailable("Another rerun of the same choice ended at this moment. Ask again.")
    rerun, new = started
    if new:
        await audit.record(
            store.connection,
            who=wanted.by,
            what="rerun",
            target=f"rerun/{rerun}",
            after={"chosen": wanted.chosen, "via": via},
        )
    return rerun


async def stop(store: RerunStore, rerun: UUID, *, by: str, via: str) -> None:
    """End a rerun where it stands; what it changed stays changed. Raises ``NotFound``."""
    found = await store.run(rerun)
    if found is None:
        raise NotFound("There is no such rerun.")
    if found["state"] == "running":
        await store.stop(rerun, f"{by} stopped it")
        await audit.record(store.connection, who=by, what="stop rerun", target=f"rerun/{rerun}", after={"via": via})


async def step(store: Store, judges: Judges, version: str, *, asks_external: bool | None = None) -> bool:
    """Go on with the oldest rerun by one batch, by this version of the pipeline; whether there was one.

    ``asks_external``: whether texts need an external model's word from now on; unless given it stays as it was.
    """
    reruns = RerunStore(store.connection)
    run = await reruns.next(version)
    if run is None:
        ended = await reruns.give_up(version, LEFT_FOR_SECONDS, "the pipeline has another version now: begin it again")
        if ended:
            logger.warning("reruns of another version of the pipeline are ended", reruns=ended, version=version)
        return bool(ended)
    if run.pipeline is None:
        run = await reruns.begun(run, version)
    old = await reruns.old(run, version, AT_ONCE)
    names = {contest: await store.names(contest) for contest in {one.contest for one in old if one.contest is not None}}
    verdicts = await judges.again(old, names, SECONDS_AT_ONCE) if old else []
    judged = list(zip(old, verdicts, strict=False))
    if run.phase == "texts":
        changed = await _texts(store, run, version, judged, asks_external)
    else:
        changed = await {"names": _names, "models": _models}[run.phase](store, run, version, judged)
    if not run.wanted.dry_run:
        # What could not be judged and now is lies aside no longer.
        told = [_aside(one) for one, verdict in judged if verdict.state is not State.UNCHECKED]
        await store.no_longer_set_aside(told)
    kinds = Counter(difference.difference.kind for difference in changed)
    kinds["failed"] = sum(verdict.state is State.UNCHECKED for _, verdict in judged)
    kinds["unchanged"] += len(judged) - kinds["failed"] - len(changed)
    counts = {kind: run.counts.get(kind, 0) + kinds[kind] for kind in {*run.counts, *kinds}}
    await reruns.keep_changes(
        run.rerun, [one for one in changed if one.difference.kind not in ("unchanged", "by_hand")]
    )
    run = replace(
        run,
        after=judged[-1][0].key if judged else run.after,
        done=run.done + len(judged),
        counts={kind: count for kind, count in counts.items() if count},
        detectors=_by_detector(run.detectors, [one.difference for one in changed]),
    )
    finished = False
    if len(old) < AT_ONCE and len(judged) == len(old):
        following = _PHASES[_PHASES.index(run.phase) + 1 :] if run.wanted.whole else ()
        finished = not following
        run = run if finished else replace(run, phase=following[0], after=None)
    await reruns.went_on(run, finished=finished)
    return True


def _aside(old: Old) -> Aside:
    if old.place is not None:
        return Aside("text", old.place.lineup_id, old.place.revision, old.place.pointer)
    if old.agent_id is not None:
        return Aside("name", agent_id=old.agent_id)
    return Aside("model", model=old.model)


def _by_detector(so_far: Mapping[str, Sequence[int]], more: Sequence[Difference]) -> dict[str, list[int]]:
    counts = {name: list(found) for name, found in so_far.items()}
    for difference in more:
        for place, names in enumerate((difference.newly, difference.no_longer)):
            for name in names:
                counts.setdefault(name, [0, 0])[place] += 1
    return counts


async def _texts(
    store: Store, run: Run, version: str, judged: Sequence[tuple[Old, Verdict]], asks_external: bool | None
) -> list[Changed]:
    at = {old.place: (old, verdict) for old, verdict in judged if old.place is not None}
    taken = await commands.take_verdicts(
        store,
        Stage.LOCAL,
        {place: verdict for place, (_, verdict) in at.items()},
        version,
        again=True,
        asks_external=asks_external,
        before=run.created_at,
        dry_run=run.wanted.dry_run,
    )
    return [
        Changed(at[one.place][0], domain.difference(one.before, one.after), at[one.place][1].findings) for one in taken
    ]


async def _names(store: Store, run: Run, version: str, judged: Sequence[tuple[Old, Verdict]]) -> list[Changed]:
    reruns = RerunStore(store.connection)
    changed: list[Changed] = []
    told: list[tuple[ev.Event, int]] = []
    held = await reruns.held_names([old.agent_id for old, _ in judged if old.agent_id is not None])
    for old, verdict in judged:
        name = held.get(old.agent_id) if old.agent_id is not None else None
        after = _after(name, old, verdict, run)
        if name is None or after is None or old.agent_id is None:
            continue
        changed.append(Changed(old, domain.difference(name.standing, after), verdict.findings))
        if run.wanted.dry_run:
            continue
        state = after.state or verdict.state
        news = (state, after.reasons) != (name.standing.state, name.standing.reasons)
        await reruns.keep_name(old.agent_id, state, verdict, version, name.told_version + news)
        if news:
            event = ev.AgentNameJudged(
                agent_id=old.agent_id,
                agent_name=name.text,
                state=state,
                reasons=after.reasons,
                reviewed=name.reviewed,
                agent_version=name.version,
            )
            told.append((event, name.told_version + 1))
    await emit_all(store.connection, told)
    return changed


async def _models(store: Store, run: Run, version: str, judged: Sequence[tuple[Old, Verdict]]) -> list[Changed]:
    reruns = RerunStore(store.connection)
    changed: list[Changed] = []
    told: list[tuple[ev.Event, int]] = []
    held = await reruns.held_models([old.text for old, _ in judged])
    for old, verdict in judged:
        label = held.get(old.text)
        after = _after(label, old, verdict, run)
        if label is None or after is None:
            continue
        changed.append(Changed(old, domain.difference(label.standing, after), verdict.findings))
        if run.wanted.dry_run:
            continue
        state = after.state or verdict.state
        news = state is not label.standing.state
        await reruns.keep_model(old.text, state, verdict, version, label.told_version + news)
        if news:
            told.append((ev.ModelJudged(model=old.text, state=state), label.told_version + 1))
    await emit_all(store.connection, told)
    return changed


def _after(held: HeldName | None, old: Old, verdict: Verdict, run: Run) -> Standing | None:
    """Where a name or a label stands after it was judged again, ``None`` where that changes nothing."""
    if held is None or held.text != old.text or held.standing.local is None:
        return None
    if held.pipeline_at is not None and held.pipeline_at >= run.created_at:
        return None
    if held.standing.local == verdict and held.pipeline == run.pipeline:
        return None
    after = held.standing.judged(Stage.LOCAL, verdict, again=True)
    return None if after == held.standing else after


class ByWorkers:
    """The processes that judge what is new, which take the old in its turn."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers

    async def again(self, old: Sequence[Old], names: Mapping[str, frozenset[str]], seconds: float) -> Sequence[Verdict]:
        jobs = [
            Job(one.text, "label")
            if one.model is not None
            else Job(one.text, names=names.get(one.contest or "", NOBODY))
            for one in old
        ]
        outcomes = await self._workers.judge(jobs, seconds)
        return [outcomes[job].verdict for job in itertools.takewhile(outcomes.__contains__, jobs)]


async def go_on(runtime: Runtime, workers: Workers) -> None:
    """Go on with reruns for ever, whenever nothing waits to be judged for the first time."""
    judges = ByWorkers(workers)
    external: ExternalSettings = runtime.state["external"]
    while True:
        async with runtime.database.transaction() as connection:
            goes_on = await RerunStore(connection).any_running() and not await Store(connection).any_waiting()
        if goes_on:
            # Not inside a transaction: the processes may take as long to come up as the server lets one be idle.
            version = await workers.version()
            async with runtime.database.transaction() as connection:
                goes_on = await step(Store(connection), judges, version, asks_external=external.configured)
            runtime.wake("publish")
            runtime.wake("ask")
        if not goes_on:
            await runtime.woken("rerun")
