"""Work that is cheaper together: all who wait for it at one moment have it done as one group.

A commit waits for a disk however many rows it holds. Here whatever arrives while groups are under way forms the next
group, so that a lone call waits for nobody and a rush shares its commits; no timer is involved.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Generic, TypeVar

from common.db import unavailable
from common.logs import logger
from common.problems import Unavailable

Item = TypeVar("Item")
Done = TypeVar("Done")

_LOOKS = 10
"""How often, within one patience, it is looked whether somebody's is at its end."""

_MOMENT = 0.1
"""Seconds. In a rush the last group often ends a little before the next call comes."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much may be under way. ``largest`` items make a group, ``abreast`` groups run at once.

    Up to ``room`` of what the items weigh may wait; ``patience`` is how many seconds one may take altogether, within
    a tenth.
    """

    largest: int
    abreast: int
    room: int
    patience: float


@dataclass(slots=True, eq=False)
class _Waiting(Generic[Item, Done]):
    item: Item
    until: float
    outcome: asyncio.Future[Done]


class Grouped(Generic[Item, Done]):
    """Has ``work`` done for many items at once; each caller gets the outcome of its own.

    ``work`` takes a list and gives for each item its outcome or the exception to raise, in order. Where it raises,
    the items are done again one by one, so that one bad item fails nobody else; where the database cannot be reached
    nothing is tried again.
    """

    def __init__(
        self,
        work: Callable[[Sequence[Item]], Awaitable[Sequence[Done | Exception]]],
        bounds: Bounds,
        *,
        kind: Callable[[Item], Hashable] = lambda _: None,
    ) -> None:
        """Items of different kinds never share a group: what is one transaction succeeds or fails as one."""
        self._work = work
        self._bounds = bounds
        self._kind = kind
        self._waiting: OrderedDict[_Waiting[Item, Done], None] = OrderedDict()
        self._asked: dict[_Waiting[Item, Done], None] = {}
        self._watching: asyncio.TimerHandle | None = None
        self._weight = 0
        self._running: set[asyncio.Task[None]] = set()
        self._starting = False
        self._full = -math.inf

    async def __call__(self, item: Item, weight: int = 1) -> Done:
        """The outcome of one item, which is done once this returns.

        Raises what the work found for it, and ``Unavailable`` where too much waits or it takes too long: then
        the work may have been done all the same.
        """
        if self._weight + weight > self._bounds.room:
            raise Unavailable("More is waiting than can be done at this moment; try again.")
        loop = asyncio.get_running_loop()
        waiting = _Waiting[Item, Done](item, loop.time() + self._bounds.patience, loop.create_future())
        self._waiting[waiting] = None
        self._asked[waiting] = None
        self._weight += weight
        if not self._starting:
            # Not at once: what arrived together shall go together.
            self._starting = True
            loop.call_soon(self._start)
        if self._watching is None:
            self._watching = loop.call_later(self._bounds.patience / _LOOKS, self._watch)
        try:
            return await waiting.outcome
        finally:
            # Also where nobody has come to do it: what has given up takes no room.
            self._waiting.pop(waiting, None)
            del self._asked[waiting]
            self._weight -= weight

    def _watch(self) -> None:
        """Give up what has waited too long. One timer for all: one for each would cost more than the rest of this."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        for waiting in self._asked:
            if waiting.until > now:
                break
            if not waiting.outcome.done():
                waiting.outcome.set_exception(_too_late())
        self._watching = loop.call_later(self._bounds.patience / _LOOKS, self._watch) if self._asked else None

    @property
    def busy(self) -> bool:
        """Whether as many groups are under way as may be, or were a moment ago."""
        full = len(self._running) >= self._bounds.abreast
        return full or asyncio.get_running_loop().time() - self._full < _MOMENT

    def _start(self) -> None:
        self._starting = False
        while self._waiting and len(self._running) < self._bounds.abreast:
            group = self._next()
            if group:
                task = asyncio.get_running_loop().create_task(self._do(group))
                self._running.add(task)
                task.add_done_callback(self._ended)

    def _next(self) -> list[_Waiting[Item, Done]]:
        """The next group: what has waited longest, and what of its kind came after."""
        kind = self._kind(next(iter(self._waiting)).item)
        group = list(islice((one for one in self._waiting if self._kind(one.item) == kind), self._bounds.largest))
        for waiting in group:
            del self._waiting[waiting]
        return [waiting for waiting in group if not waiting.outcome.done()]

    def _ended(self, task: asyncio.Task[None]) -> None:
        if len(self._running) >= self._bounds.abreast:
            self._full = asyncio.get_running_loop().time()
        self._running.discard(task)
        self._start()

    async def _do(self, group: list[_Waiting[Item, Done]]) -> None:
        try:
            async with asyncio.timeout(self._bounds.patience):
                outcomes = await self._work([waiting.item for waiting in group])
        except Exception as error:
            await self._failed(group, error)
            return
        except BaseException:
            for waiting in group:
                waiting.outcome.cancel()
            raise
        for waiting, outcome in zip(group, outcomes, strict=True):
            if waiting.outcome.done():
                continue
            if isinstance(outcome, Exception):
                waiting.outcome.set_exception(outcome)
            else:
                waiting.outcome.set_result(outcome)

    async def _failed(self, group: list[_Waiting[Item, Done]], error: Exception) -> None:
        if len(group) > 1 and not isinstance(error, TimeoutError) and not unavailable(error):
            logger.warning("a group failed and is done one by one", items=len(group), error=repr(error)[:300])
            for waiting in group:
                if not waiting.outcome.done():
                    await self._do([waiting])
            return
        for waiting in group:
            if not waiting.outcome.done():
                waiting.outcome.set_exception(_too_late() if isinstance(error, TimeoutError) else error)


def _too_late() -> Unavailable:
    return Unavailable("It took too long, and may have been done all the same; try again.")
