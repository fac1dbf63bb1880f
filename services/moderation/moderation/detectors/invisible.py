"""Characters that change what a reader sees without being seen: bidirectional controls, zero-width characters,
tags, other controls. They hide text from a person that a machine reads, or show it in another order."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from moderation.pipeline import Context, Detector, Match

_BIDIRECTIONAL = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_ZERO_WIDTH = "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u3164\ufeff\uffa0"
_TAGS = "\U000e0000-\U000e0fff"
_CONTROLS = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
_FOUND = re.compile(
    f"(?P<bidirectional>[{_BIDIRECTIONAL}]+)|(?P<zero_width>[{_ZERO_WIDTH}]+)|(?P<tags>[{_TAGS}]+)"
    f"|(?P<control>[{_CONTROLS}]+)|(?P<annotation>[\ufff9-\ufffb]+)"
)


class Invisible(Detector):
    name = "invisible"
    version = "1"
    raw = True

    def judge(self, text: str, context: Context) -> Iterable[Match]:
        for found in _FOUND.finditer(text):
            if found.group() in "\u200c\u200d" and _joins(text, found.start()):
                continue
            yield Match(str(found.lastgroup).replace("_", "-"), found.start(), found.end())


def _joins(text: str, position: int) -> bool:
    """Whether a joiner stands where scripts and emoji need one: between two characters outside Latin writing."""
    before, after = text[position - 1 : position], text[position + 1 : position + 2]
    return bool(before and after) and all(_takes_joiners(character) for character in (before, after))


def _takes_joiners(character: str) -> bool:
    if ord(character) < 0x0600:
        return False
    return unicodedata.category(character) in ("Lo", "Mn", "Mc", "So", "Sk") or character == "\ufe0f"
