"""Watches a service from within: durables, how much they hold back, and whether the event loop turns."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import nats

from common.bus import Bus, Consumer
from common.metrics import Metrics

STALE_SECONDS = 10.0
_INTERVAL = 2.0


class Watch:
    """Asks the server about each durable every two seconds; ``ping`` alone stays true while one is dead."""

    def __init__(self, bus: Bus, consumers: Sequence[Consumer], metrics: Metrics) -> None:
        self._bus = bus
        self._consumers = consumers
        self._metrics = metrics

    async def run(self) -> None:
        """Keep the gauges current until cancelled."""
        while True:
            for consumer in self._consumers:
                try:
                    waiting = await self.waiting(consumer)
                except (nats.errors.Error, nats.js.errors.Error, TimeoutError, OSError):
                    continue
                self._metrics.consumer_waiting.labels(consumer.durable.stream).set(waiting)
            before = time.monotonic()
            await asyncio.sleep(_INTERVAL)
            self._metrics.loop_delay_seconds.set(max(0.0, time.monotonic() - before - _INTERVAL))

    async def waiting(self, consumer: Consumer) -> int:
        """Events of the durable that are not applied yet: not delivered, or delivered and not answered."""
        info = await self._bus.js.consumer_info(consumer.durable.stream, consumer.durable.service)
        return (info.num_pending or 0) + (info.num_ack_pending or 0)

    def faults(self) -> list[str]:
        """Why the service cannot do its whole work now; empty when it can."""
        faults = [] if self._bus.connected else ["bus: not connected"]
        for consumer in self._consumers:
            if consumer.broken:
                faults.append(f"durable {consumer.durable.stream}: cannot be read")
            elif time.monotonic() - consumer.heard_at > STALE_SECONDS:
                faults.append(f"durable {consumer.durable.stream}: nothing heard for {STALE_SECONDS:.0f} s")
        return faults
