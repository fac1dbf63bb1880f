"""Structured logs: one JSON line an event on standard error, each with the correlation id of its cause."""

from __future__ import annotations

import logging
import sys
from contextvars import ContextVar

import structlog
import uuid_utils

_correlation: ContextVar[str] = ContextVar("correlation", default="")

logger: structlog.stdlib.BoundLogger = structlog.get_logger("mafl")


def correlation_id() -> str:
    """The id that ties together everything one request or event caused."""
    current = _correlation.get()
    if not current:
        current = str(uuid_utils.uuid7())
        _correlation.set(current)
    return current


def correlate(value: str) -> None:
    """Go on under a correlation id that came with a request or an event."""
    _correlation.set(value)


def configure(service: str, level: str) -> None:
    """Send every log of the process to standard error as JSON."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            lambda _logger, _name, entry: {"service": service, "correlation_id": _correlation.get(), **entry},
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        # Looked up at each line: whoever takes the place of standard error for a while may close what it put there.
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(
        level=logging.WARNING, format='{"level":"%(levelname)s","logger":"%(name)s","event":"%(message)s"}'
    )
