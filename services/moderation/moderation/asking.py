"""The external model's stage: take texts, ask about them, keep what was answered, judge by it.

Three short transactions with a call between the first two and never inside one. The first holds the model's breaker,
looks what the budget leaves, and leases texts; the second keeps the answer or the failure; the third gives the answer
to all texts that wait for it. Killed before the second, the lease runs out and the text is asked about again; before
the third, the next look finds the answer. So it does for words that came after their answer.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from common.clock import SystemClock
from common.db import Database, unavailable
from common.events import State
from common.logs import logger
from common.metrics import Metrics
from common.service import Runtime, Task
from moderation import breaker as breakers
from moderation import commands
from moderation.breaker import Breaker, Cause, Door
from moderation.domain import Finding, Stage, Verdict
from moderation.external import Answer, Asker, NoAnswer, Opinion, asker, name_of
from moderation.settings import ExternalSettings
from moderation.store import ExternalStore, Opened, Scope, Spent, Store, ToAsk

SETTINGS = "external"
"""Where a runtime's state has the settings of this stage."""
DETECTOR = "external"
"""What findings of the external model are listed under; their version says which model it was."""
TEXTS_OPENED_AT_ONCE = 256
_LARGEST_REQUEST = 64 * 1024
"""Bytes of text in one request, unless one text alone has more."""
_LOOK_AT_LEAST_EVERY = 1.0
_LOOK_AT_MOST_EVERY = 0.2
_SHARE_OF_THE_TIME = 0.1
"""Of one connection's time that may go into looks that find nothing, and into counting."""
_MEASURE_EVERY = 2.0
_LEASE_BEYOND_THE_CALL = 5.0
"""Seconds that a lease outlives the call's own deadline, for its answer to be written down."""


@dataclass(frozen=True)
class Taken:
    """Texts leased for one request, and what was counted for it."""

    lease: UUID
    texts: Sequence[ToAsk]
    at: datetime
    tokens: int


@dataclass(frozen=True)
class Look:
    """What a look at the waiting texts came to: texts for one request, or how many an answer was there for."""

    taken: Taken | None = None
    judged: int = 0


class ExternalStage:
    """One copy's part of the stage: settings, the model's client and where all is kept."""

    def __init__(self, settings: ExternalSettings, model: Asker, runtime: Runtime) -> None:
        self.settings = settings
        self.model = model
        self.database: Database = runtime.database
        self.metrics: Metrics = runtime.metrics
        self.name = name_of(settings)
        self.scope = scope_of(settings, runtime)
        self._broke = False

    async def look(self) -> Look:
        """Judge texts by answers that are there already; where there are none, lease texts for one request, if it may
        be made, and count it."""
        settings = self.settings
        async with self.database.transaction() as connection:
            store = ExternalStore(connection)
            held = await store.hold(self.name)
            now = await SystemClock().now(connection)
            door = held.door(now, settings.breaker_failures)
            found = await self._find(store, now, probing=door is Door.HALF_OPEN)
            opened = [one for one in found if isinstance(one, Opened)]
            if opened:
                return Look(judged=await self._judge(Store(connection), opened))
            left = allowance(settings, await store.spent(periods(now)))
            if not settings.asking or door is Door.OPEN or self._is_broke(left):
                return Look()
            to_ask = [one for one in found if isinstance(one, ToAsk)]
            chosen = choose(to_ask, min(settings.batch, left.texts), left.tokens, self.model)
            # Held, for what is redacted meanwhile is neither sent nor remembered by its hash.
            chosen = await store.hold_to_ask(chosen) if chosen else chosen
            if not chosen:
                return Look()
            until = now + timedelta(seconds=settings.timeout + _LEASE_BEYOND_THE_CALL)
            if door is Door.HALF_OPEN:
                await store.keep_breaker(self.name, held.probing(until))
            taken = Taken(uuid4(), chosen, now, self.model.tokens([text.text for text in chosen]))
            await store.lease(self.name, chosen, taken.lease, until)
            await store.spend(periods(now), Spent(1, len(chosen), taken.tokens))
            await store.forget_minutes(now - timedelta(hours=1))
        return Look(taken)

    async def _find(self, store: ExternalStore, now: datetime, *, probing: bool) -> Sequence[ToAsk | Opened]:
        """Texts of the contest whose lock is nearest and that has any; to try the service, such as never failed first:
        it is not to be taken for dead because of one text that nobody can judge."""
        contests = await store.contests_to_ask(self.scope)
        for untried in (True, False) if probing else (False,):
            for contest, locked in contests:
                limit = 8 * self.settings.batch
                found = await store.to_ask(self.scope, contest, now, limit, locked=locked, untried=untried)
                if found:
                    return found
        return ()

    async def ask(self, taken: Taken) -> None:
        """Make the request and keep what comes of it."""
        self.metrics.moderation_external_asked.inc(len(taken.texts))
        started = time.monotonic()
        answer, failure, error = None, NoAnswer(Cause.INTERNAL), ""
        try:
            answer = await self.model.ask([text.text for text in taken.texts])
        except NoAnswer as none:
            failure = none
        except Exception as other:
            # Whatever it was, it may hold words: its kind is all that is told.
            error = type(other).__name__
        finally:
            self.metrics.moderation_external_seconds.observe(time.monotonic() - started)
        if answer is None:
            await self._failed(taken, failure, error)
        else:
            await self._answered(taken, answer)

    async def _answered(self, taken: Taken, answer: Answer) -> None:
        verdicts = [
            (text, self._verdict(opinion, len(text.text)), {"scores": dict(opinion.scores), "model": answer.model})
            for text, opinion in zip(taken.texts, answer.opinions, strict=True)
        ]
        async with self.database.transaction() as connection:
            store = ExternalStore(connection)
            await store.hold(self.name)
            await store.keep_breaker(self.name, Breaker())
            await store.answered(self.name, verdicts)
            if answer.tokens is not None:
                await store.spend(periods(taken.at), Spent(tokens=answer.tokens - taken.tokens))
        hashes = [text.text_hash for text in taken.texts]
        while True:
            async with self.database.transaction() as connection:
                opened = await ExternalStore(connection).opened(self.scope, hashes, TEXTS_OPENED_AT_ONCE)
                if not opened:
                    break
                await self._judge(Store(connection), opened)
        for state in (State.CLEARED, State.FLAGGED):
            told = sum(verdict.state is state for _, verdict, _ in verdicts)
            self.metrics.moderation_external_answered.labels(state.value).inc(told)

    async def _failed(self, taken: Taken, failure: NoAnswer, error: str) -> None:
        cause, texts = failure.cause, taken.texts
        together = len(texts) > 1 and cause.of_the_text
        async with self.database.transaction() as connection:
            store = ExternalStore(connection)
            held = await store.hold(self.name)
            now = await SystemClock().now(connection)
            after = held.failed(
                now,
                cause,
                threshold=self.settings.breaker_failures,
                first_pause=self.settings.breaker_seconds,
                retry_after=failure.retry_after,
                jitter=_jitter(),
            )
            await store.keep_breaker(self.name, after)
            # What failed in company is asked alone at once: one text of them may be the cause.
            again = [(text, now if together else self._again(now, cause, text)) for text in texts]
            await store.failed(self.name, taken.lease, again, cause)
        self.metrics.moderation_external_failed.labels(cause.value).inc()
        door = after.door(now, self.settings.breaker_failures)
        logger.warning(
            "the external model gave no answer; the texts stay unchecked and are asked about again",
            cause=cause.value,
            **({"error": error} if error else {}),
            status=failure.status,
            texts=len(texts),
            asker=self.name,
            failures=after.failures,
            breaker=door.value,
            asked_again_at=max([at for _, at in again] + ([after.open_until] if after.open_until else [])).isoformat(),
        )

    async def _judge(self, store: Store, opened: Sequence[Opened]) -> int:
        verdicts = {one.place: Verdict(one.state, self._findings(one.rules, one.length)) for one in opened}
        await commands.take_verdicts(store, Stage.EXTERNAL, verdicts, self.name)
        return len(verdicts)

    def _is_broke(self, left: Spent) -> bool:
        """Whether the budget is spent; said once each time."""
        broke = left.requests < 1 or left.texts < 1 or left.tokens < self.model.tokens([""])
        if broke and not self._broke:
            logger.warning("the budget of the external model is spent for now; texts stay unchecked", asker=self.name)
        self._broke = broke
        return broke

    def _again(self, now: datetime, cause: Cause, text: ToAsk) -> datetime:
        first = self.settings.retry_seconds
        return breakers.asked_again(now, cause, text.attempts + 1, first=first, jitter=_jitter())

    def _verdict(self, opinion: Opinion, length: int) -> Verdict:
        if opinion.flagged:
            return Verdict(State.FLAGGED, self._findings(opinion.rules, length))
        return Verdict(State.CLEARED)

    def _findings(self, rules: Sequence[str], length: int) -> tuple[Finding, ...]:
        return tuple(Finding(DETECTOR, self.name, rule, 0, length) for rule in rules)


async def ask(runtime: Runtime) -> None:
    """Ask the external model about what waits for it, so many calls at once as the settings allow."""
    settings: ExternalSettings = runtime.state[SETTINGS]
    model = asker(settings)
    stage = ExternalStage(settings, model, runtime)
    slots = asyncio.Semaphore(settings.concurrency)
    calls: set[asyncio.Task[None]] = set()

    async def one(taken: Taken) -> None:
        try:
            await stage.ask(taken)
        except Exception as error:
            # The answer could not be written down: the lease runs out, and the texts are asked about again.
            if not unavailable(error):
                raise
            logger.warning("an answer of the external model found no database", error=type(error).__name__)
        finally:
            slots.release()
            runtime.wake("publish")
            runtime.wake("ask")

    try:
        while True:
            for call in [call for call in calls if call.done()]:
                calls.remove(call)
                call.result()
            await slots.acquire()
            began = time.monotonic()
            seen = Look()
            try:
                seen = await stage.look()
            finally:
                if seen.taken is None:
                    slots.release()
            if seen.taken is not None:
                calls.add(asyncio.create_task(one(seen.taken)))
            elif seen.judged:
                runtime.wake("publish")
            else:
                await asyncio.sleep(max(_LOOK_AT_MOST_EVERY, (time.monotonic() - began) / _SHARE_OF_THE_TIME))
                await runtime.woken("ask", at_most=_LOOK_AT_LEAST_EVERY)
    finally:
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        await model.close()


async def measure_the_external_model(runtime: Runtime) -> None:
    """Show what waits, what the breaker lets through and what the budget leaves."""
    settings: ExternalSettings = runtime.state[SETTINGS]
    scope = scope_of(settings, runtime)
    metrics = runtime.metrics
    while True:
        began = time.monotonic()
        async with runtime.database.transaction() as connection:
            store = ExternalStore(connection)
            now = await SystemClock().now(connection)
            held = await store.breaker(scope.asker)
            spent = await store.spent(periods(now))
            waiting, oldest = await store.waiting(scope)
        metrics.moderation_external_waiting.set(waiting)
        metrics.moderation_external_waiting_age_seconds.set(oldest)
        door = held.door(now, settings.breaker_failures)
        for state in Door:
            metrics.moderation_external_breaker.labels(state.value).set(state is door)
        for unit, period, limit in limits(settings):
            left = max(limit - getattr(spent[period], unit), 0)
            metrics.moderation_external_budget_left.labels(unit, period).set(left)
        await asyncio.sleep(max(_MEASURE_EVERY, (time.monotonic() - began) / _SHARE_OF_THE_TIME))


def tasks(settings: ExternalSettings) -> tuple[Task, ...]:
    """What runs in the background for these settings: nothing where no model is asked."""
    return (ask, measure_the_external_model) if settings.configured else ()


def scope_of(settings: ExternalSettings, runtime: Runtime) -> Scope:
    """Which texts the settings let be asked about."""
    return Scope(
        asker=name_of(settings),
        together=settings.together,
        before_lock=settings.before_lock,
        unclaimed=settings.unclaimed,
        now=runtime.clock.sql,
    )


def periods(now: datetime) -> Mapping[str, datetime]:
    """The minute and the day of UTC that an instant falls in, by their beginnings."""
    minute = now.replace(second=0, microsecond=0)
    return {"minute": minute, "day": minute.replace(hour=0, minute=0)}


def limits(settings: ExternalSettings) -> Sequence[tuple[str, str, int]]:
    """The budget: unit, period and how much, of what is limited at all."""
    wanted = [
        (unit, period, getattr(settings, f"{unit}_a_{period}"))
        for unit in ("requests", "texts", "tokens")
        for period in ("minute", "day")
    ]
    return [(unit, period, limit) for unit, period, limit in wanted if limit is not None]


def allowance(settings: ExternalSettings, spent: Mapping[str, Spent]) -> Spent:
    """What the budget leaves of each unit, by its tightest period."""
    left = {"requests": _PLENTY, "texts": _PLENTY, "tokens": _PLENTY}
    for unit, period, limit in limits(settings):
        left[unit] = min(left[unit], limit - getattr(spent[period], unit))
    return Spent(**left)


_PLENTY = 2**62


def choose(found: Sequence[ToAsk], most: int, tokens: int, model: Asker) -> Sequence[ToAsk]:
    """Of texts in the order of their urgency those that go into one request: distinct ones, the first among them.

    A text that may have spoilt a request goes alone; where a text could sway the verdicts on others, one author's
    texts go together and nobody else's. Empty where ``tokens`` do not suffice for the first.
    """
    chosen: dict[str, ToAsk] = {}
    size = 0
    for text in found:
        if text.text_hash in chosen:
            continue
        first = next(iter(chosen.values()), text)
        if chosen and (first.alone or text.alone or text.scope != first.scope):
            continue
        bytes_more = len(text.text.encode())
        if len(chosen) >= most or (chosen and size + bytes_more > _LARGEST_REQUEST):
            break
        if model.tokens([other.text for other in (*chosen.values(), text)]) > tokens:
            break
        chosen[text.text_hash] = text
        size += bytes_more
    return list(chosen.values())


def _jitter() -> float:
    return secrets.SystemRandom().random()
