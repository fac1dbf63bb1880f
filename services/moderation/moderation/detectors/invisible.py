"""Characters that change what a reader sees without being seen: bidirectional controls, zero-width characters,
tags, other controls, marks piled upon a letter, letters of two scripts in one word. They hide text from a person that
a machine reads, show it in another order, or show another text than a machine reads."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from moderation.normal import IGNORABLE, normalise, plain
from moderation.pipeline import Context, Detector, Match

_BIDIRECTIONAL = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_TAGS = "\U000e0000-\U000e0fff"
_SELECTORS = "\ufe00-\ufe0f"
_CONTROLS = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
_FOUND = re.compile(
    f"(?P<bidirectional>[{_BIDIRECTIONAL}]+)|(?P<tags>[{_TAGS}]+)|(?P<control>[{_CONTROLS}]+)"
    f"|(?P<annotation>[\ufff9-\ufffb]+)|(?P<selectors>[{_SELECTORS}]+)|(?P<zero_width>[{IGNORABLE}]+)"
    "|(?P<surrogate>[\ud800-\udfff]+)|(?P<private_use>[\ue000-\uf8ff\U000f0000-\U0010ffff]+)"
)
_NATIONS = frozenset(
    "".join(chr(0xE0000 + ord(letter)) for letter in nation) + "\U000e007f" for nation in ("gbeng", "gbsct", "gbwls")
)
_BLACK_FLAG = "\U0001f3f4"

PILED_ON_LATIN = 3
PILED = 6
"""So many combining marks on one letter are no writing. Vietnamese has two on a Latin letter, Hebrew up to four."""

_LATIN = re.compile(r"[A-Za-z]")
_CYRILLIC = re.compile(r"[\u0400-\u052f\u13a0-\u13fd\u0530-\u0586]")
_WORD = re.compile(r"[^\W\d_]{3,}")


class Invisible(Detector):
    name = "invisible"
    version = "2"
    raw = True

    def judge(self, text: str, context: Context) -> Iterable[Match]:
        for found in _FOUND.finditer(text):
            rule = str(found.lastgroup).replace("_", "-")
            if not _has_its_place(text, rule, found):
                yield Match(rule, found.start(), found.end())
        if not text.isascii():
            yield from _piled_marks(text)
            yield from _mixed_letters(text)


def _has_its_place(text: str, rule: str, found: re.Match[str]) -> bool:
    """Whether scripts and emoji need what was found where it stands."""
    start, written = found.start(), found.group()
    if rule == "tags":
        return written in _NATIONS and text[start - 1 : start] == _BLACK_FLAG
    if rule == "selectors":
        return len(written) == 1 and start > 0 and not text[start - 1].isspace() and not text[start - 1].isalpha()
    return written in ("\u200c", "\u200d") and _joins(text, start)


def _joins(text: str, position: int) -> bool:
    """Whether a joiner stands where scripts and emoji need one: between two characters outside Latin writing."""
    before, after = text[position - 1 : position], text[position + 1 : position + 2]
    return bool(before and after) and all(_takes_joiners(character) for character in (before, after))


def _takes_joiners(character: str) -> bool:
    if ord(character) < 0x0600:
        return False
    return unicodedata.category(character) in ("Lo", "Mn", "Mc", "So", "Sk") or character == "\ufe0f"


def _piled_marks(text: str) -> Iterable[Match]:
    """Marks piled upon a letter until it runs into its neighbours, or through it so that only a machine reads on."""
    base, since = "", 0
    for position, character in enumerate(text + "."):
        if unicodedata.category(character) in ("Mn", "Me") and not _SELECTOR.match(character):
            continue
        marks = position - since - 1
        if base and marks >= (PILED_ON_LATIN if base.isascii() else PILED):
            yield Match("piled-marks", since, position)
        base, since = character, position
    for struck in _STRUCK.finditer(text):
        yield Match("piled-marks", *struck.span())


_STRUCK = re.compile("(?:[A-Za-z][\u0334-\u0338\u20d2\u20d3\u20e5\u20eb]){3,}")
_SELECTOR = re.compile(f"[{_SELECTORS}{_TAGS}]")


def _mixed_letters(text: str) -> Iterable[Match]:
    """Words of Latin letters and look-alikes from Cyrillic, Cherokee or Armenian that read as Latin throughout.

    A Cyrillic ending on a Latin abbreviation (``QBшник``) does not. Greek letters stand for quantities (``αEPA``).
    """
    form = normalise(text)
    for word in _WORD.finditer(form.text):
        if not (_LATIN.search(word.group()) and _CYRILLIC.search(word.group())):
            continue
        if plain(normalise(word.group())).text.isascii():
            yield Match("mixed-letters", *form.written(*word.span()))
