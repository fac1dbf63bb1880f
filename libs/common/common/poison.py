"""The error that says: this event can never succeed."""

from __future__ import annotations


class Poison(Exception):
    """Raised by a handler for an event that no retry can help; it becomes a dead letter at once."""
