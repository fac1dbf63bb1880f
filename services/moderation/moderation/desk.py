"""What an operator sees of the queue and in which order: filters, and a place in it that stays where others judge.

Pure. The queue is ordered by what its items are, never by how many stand before them: requests of owners first, the one
that waits longest before all; then the newest verdict. A page begins behind an item, so that one which somebody else
judges meanwhile makes nobody skip another.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, get_args
from urllib.parse import urlencode
from uuid import UUID

PAGE = 20
"""Items of a page."""

SESSION_IDLES = timedelta(hours=2)
SESSION_LIVES = timedelta(hours=12)
"""An operator signs in for a day's work and no longer."""

LONGEST_NAME = 60
LONGEST_FILTER = 200

Show = Literal["open", "flagged", "unchecked", "hand", "cleared", "all"]
# Open is what is withheld and nobody has judged by hand, or its owner asks to look at again.
SHOWS: Mapping[Show, str] = {
    "open": "open",
    "flagged": "flagged",
    "unchecked": "not checked",
    "hand": "judged by hand",
    "cleared": "cleared",
    "all": "everything",
}
Kind = Literal["", "name", "model", "thesis", "rationale", "main_factor"]
KINDS: Mapping[Kind, str] = {
    "": "any",
    "name": "agents' names",
    "model": "models' labels",
    "thesis": "theses",
    "rationale": "rationales",
    "main_factor": "main factors",
}


@dataclass(frozen=True)
class Filters:
    """What an operator wants to see. ``agent`` is an id or a part of a name; ``words`` a part of the text."""

    show: Show = "open"
    kind: Kind = ""
    asked: bool = False
    detector: str = ""
    contest: str = ""
    agent: str = ""
    words: str = ""

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Filters:
        """The filters of a page's address; what makes no sense there is as if it were not."""
        show, kind = query.get("show", ""), query.get("kind", "")
        texts = {name: _plain(query.get(name, "")) for name in ("detector", "contest", "agent", "words")}
        return cls(
            show=show if show in get_args(Show) else "open",  # type: ignore[arg-type]
            kind=kind if kind in get_args(Kind) else "",  # type: ignore[arg-type]
            asked=query.get("asked") == "yes",
            **texts,
        )

    def query(self, **more: str | None) -> str:
        """As the query of an address, with ``more`` where that is not ``None``."""
        given = {
            "show": "" if self.show == "open" else self.show,
            "kind": self.kind,
            "asked": "yes" if self.asked else "",
            "detector": self.detector,
            "contest": self.contest,
            "agent": self.agent,
            "words": self.words,
            **{name: value or "" for name, value in more.items()},
        }
        return urlencode({name: value for name, value in given.items() if value})

    @property
    def narrowed(self) -> bool:
        """Whether anything but ``show`` is asked for."""
        return self != Filters(show=self.show)


def _plain(text: str) -> str:
    return text.replace("\x00", "").strip()[:LONGEST_FILTER]


NEVER = 2**62
"""Microseconds after every time: where there is none, an item stands last."""


@dataclass(frozen=True, order=True)
class Key:
    """Where an item stands in the queue: ``asked`` and ``judged`` are microseconds, the latter negative.

    ``about`` is the id of its lineup or agent; of a model's label, which has none, half of its hash.
    """

    asked: int
    judged: int
    about: UUID
    pointer: str

    @classmethod
    def of(cls, item: Mapping[str, Any]) -> Key:
        """The place of an item."""
        asked, judged = item["review_requested_at"], item["judged_at"]
        return cls(
            asked=NEVER if asked is None else _micros(asked),
            judged=NEVER if judged is None else -_micros(judged),
            about=item["lineup_id"] or item["agent_id"] or UUID(hex=item["text_hash"][:32]),
            pointer=item["pointer"] or "",
        )

    def write(self) -> str:
        """As it stands in an address."""
        told = json.dumps([self.asked, self.judged, self.about.hex, self.pointer], separators=(",", ":"))
        return base64.urlsafe_b64encode(told.encode()).decode().rstrip("=")

    @classmethod
    def read(cls, written: str) -> Key | None:
        """What :meth:`write` wrote; ``None`` for anything else."""
        try:
            asked, judged, about, pointer = json.loads(
                base64.b64decode(written + "=" * (-len(written) % 4), altchars=b"-_", validate=True)
            )
            key = cls(asked, judged, UUID(hex=about), pointer)
            fits = all(type(time) is int and abs(time) <= NEVER for time in (asked, judged))
            return (
                key if fits and isinstance(pointer, str) and "\x00" not in pointer and pointer.isprintable() else None
            )
        except (binascii.Error, ValueError, TypeError, AttributeError):
            return None


_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


def _micros(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1)


def waited(since: datetime, now: datetime) -> str:
    """How long something waits, in the largest two units that say it."""
    minutes = max(0, int((now - since).total_seconds()) // 60)
    days, hours, minutes = minutes // 1_440, minutes // 60 % 24, minutes % 60
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def called(item: Mapping[str, Any]) -> str:
    """What an operator calls a text, from its JSON ``pointer``, or what has none: a name, or a ``model``'s label.

    Of a pick with the ``slot`` and the ``player``'s name, where the item has them.
    """
    pointer = item["pointer"]
    if pointer is None:
        return "name" if item["model"] is None else "model's label"
    parts = pointer.split("/")
    what = parts[-1].replace("_", " ")
    if len(parts) != 4 or not parts[2].isdecimal():
        return what or str(pointer)
    about = " ".join(filter(None, (item.get("slot"), item.get("player"))))
    return f"{what} of pick {int(parts[2]) + 1}{about and f', {about}'}"
