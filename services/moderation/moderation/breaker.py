"""When the external model may be asked, and when what failed is asked again. Pure: no I/O, no clock, no chance.

The breaker's state is a row that all copies share, and a failed text is a row with a time on it: so a restart
forgets nothing and two copies never take turns at a service that is down (docs/adr says why no library does this).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

LONGEST_RETRY_AFTER = 3600.0
"""Seconds; whoever says ``Retry-After: 1e9`` is asked again after an hour."""
_LONGEST_PAUSE = 600.0
_HOPELESS_PAUSE = 300.0
"""Seconds before a service that refused the key, or does not know the address, is asked again."""
_LATEST_AGAIN = {True: 6 * 3600.0, False: 300.0}
"""Seconds, at most, before one text is asked about again, by whether the text itself may be the cause."""
_OF_THE_TEXT = 6
"""So many times as long rests a text that may itself be the cause: asking again at once mends nothing."""


class Cause(StrEnum):
    """Why there is no answer: the label of the metric and of the log line."""

    TIMEOUT = "timeout"
    CONNECTION = "connection"
    RATE_LIMITED = "rate-limited"
    KEY_REFUSED = "key-refused"
    NOT_FOUND = "not-found"
    REFUSED = "refused"
    SERVER_ERROR = "server-error"
    STATUS = "unexpected-status"
    REDIRECT = "redirect"
    TOO_LARGE = "too-large"
    ENCODED = "encoded"
    NOT_UTF8 = "not-utf8"
    NOT_JSON = "not-json"
    ERROR_BODY = "error-body"
    SHAPE = "shape"
    COVERAGE = "coverage"
    CONTRADICTION = "contradiction"
    CONTROLS = "controls"
    UNFINISHED = "unfinished"
    INTERNAL = "internal"

    @property
    def hopeless(self) -> bool:
        """Whether no second attempt mends it, but only an operator."""
        return self in (Cause.KEY_REFUSED, Cause.NOT_FOUND, Cause.REDIRECT)

    @property
    def of_the_text(self) -> bool:
        """Whether one text of the request may be the cause: its neighbours are then asked without it."""
        return self in (
            Cause.REFUSED,
            Cause.UNFINISHED,
            Cause.NOT_JSON,
            Cause.SHAPE,
            Cause.COVERAGE,
            Cause.CONTRADICTION,
            Cause.CONTROLS,
            Cause.TOO_LARGE,
            Cause.INTERNAL,
        )


class Door(StrEnum):
    """``half-open``: one request at a time, among all copies, until one succeeds."""

    CLOSED = "closed"
    HALF_OPEN = "half-open"
    OPEN = "open"


@dataclass(frozen=True)
class Breaker:
    """``failures`` in a row; nothing is asked before ``open_until``; ``probe_until`` while a lone request is out."""

    failures: int = 0
    open_until: datetime | None = None
    probe_until: datetime | None = None

    def door(self, now: datetime, threshold: int) -> Door:
        """What may be asked at ``now``."""
        if self.open_until is not None and now < self.open_until:
            return Door.OPEN
        if self.failures < threshold:
            return Door.CLOSED
        return Door.OPEN if self.probe_until is not None and now < self.probe_until else Door.HALF_OPEN

    def probing(self, until: datetime) -> Breaker:
        """A lone request is out; if nothing is heard of it, another may go after ``until``."""
        return Breaker(self.failures, self.open_until, until)

    def failed(
        self,
        now: datetime,
        cause: Cause,
        *,
        threshold: int,
        first_pause: float,
        retry_after: float | None,
        jitter: float,
    ) -> Breaker:
        """After a failure.

        From ``threshold`` failures in a row on it opens, for ``first_pause`` seconds and twice as long each time;
        at once for what no second attempt mends, and for as long as ``Retry-After`` asks. ``jitter`` in [0, 1]
        takes up to half of a pause away, so that copies do not come back together; never of a ``Retry-After``.
        """
        # A call that was under way when another one opened it says nothing new.
        is_open = self.open_until is not None and now < self.open_until
        failures = self.failures if is_open else self.failures + 1
        pause = 0.0
        if is_open:
            pass
        elif cause.hopeless:
            failures = max(failures, threshold)
            pause = _HOPELESS_PAUSE
        elif failures >= threshold:
            pause = _doubled(first_pause, failures - threshold, _LONGEST_PAUSE)
        pause *= 1 - jitter / 2
        pause = max(pause, min(retry_after or 0.0, LONGEST_RETRY_AFTER))
        until = now + timedelta(seconds=pause) if pause else self.open_until
        if self.open_until is not None and until is not None:
            until = max(until, self.open_until)
        return Breaker(failures, until, None)


def asked_again(now: datetime, cause: Cause, attempts: int, *, first: float, jitter: float) -> datetime:
    """When a text is asked about again that has failed ``attempts`` times: ever later, and never never."""
    first *= _OF_THE_TEXT if cause.of_the_text else 1
    wait = _doubled(first, attempts - 1, _LATEST_AGAIN[cause.of_the_text])
    return now + timedelta(seconds=wait * (1 - jitter / 2))


def _doubled(first: float, times: int, most: float) -> float:
    return min(first * 2.0 ** min(max(times, 0), 32), most)
