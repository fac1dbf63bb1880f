"""How a stranger's text is shown to an operator: whole, marked where something was found, and with nothing hidden.

Pure. What a browser would draw as nothing, or obey, becomes a sign that says what stands there; so a text can neither
hide words nor turn the page around it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

_SHORT = {
    "\t": "TAB",
    "\r": "CR",
    "\u00a0": "NBSP",
    "\u00ad": "SHY",
    "\u034f": "CGJ",
    "\u061c": "ALM",
    "\u200b": "ZWSP",
    "\u200c": "ZWNJ",
    "\u200d": "ZWJ",
    "\u200e": "LRM",
    "\u200f": "RLM",
    "\u2028": "LINE SEP",
    "\u2029": "PARA SEP",
    "\u202a": "LRE",
    "\u202b": "RLE",
    "\u202c": "PDF",
    "\u202d": "LRO",
    "\u202e": "RLO",
    "\u2060": "WJ",
    "\u2066": "LRI",
    "\u2067": "RLI",
    "\u2068": "FSI",
    "\u2069": "PDI",
    "\ufeff": "BOM",
}
_NO_INK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Drawn as nothing though Unicode calls them letters, marks or symbols."""
_CONTROLS = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})


@dataclass(frozen=True)
class Piece:
    """A run of a text. ``marks`` are the numbers, from 1, of the findings that cover it.

    A ``sign`` stands for one character that nobody would see; ``title`` is what Unicode calls it. A ``break`` is the
    end of a line, a ``point`` the place of a finding that covers nothing.
    """

    kind: Literal["text", "sign", "break", "point"]
    text: str
    marks: tuple[int, ...] = ()
    title: str = ""
    ends: tuple[int, ...] = ()
    """Which findings end here: their numbers are shown behind it."""


def pieces(text: str, spans: Sequence[tuple[int, int]]) -> list[Piece]:
    """A text in pieces, in order. ``spans`` count code points; one that reaches past the text ends with it."""
    size = len(text)
    clipped = [(min(max(start, 0), size), min(max(end, 0), size)) for start, end in spans]
    cuts = sorted({0, size, *(place for span in clipped for place in span)})
    made: list[Piece] = []
    for start, end in zip(cuts, [*cuts[1:], size], strict=True):
        made += _points(clipped, start)
        if start == end:
            continue
        marks = tuple(number for number, (a, b) in enumerate(clipped, 1) if a <= start and end <= b)
        run = list(_split(text[start:end], marks))
        ends = tuple(number for number, (a, b) in enumerate(clipped, 1) if a < b == end)
        if ends:
            last = run[-1]
            run[-1] = Piece(last.kind, last.text, last.marks, last.title, ends)
        made += run
    return made


def _points(spans: Sequence[tuple[int, int]], place: int) -> Iterable[Piece]:
    numbers = tuple(number for number, (start, end) in enumerate(spans, 1) if start == end == place)
    return [Piece("point", "", numbers, ends=numbers)] if numbers else []


def _split(text: str, marks: tuple[int, ...]) -> Iterable[Piece]:
    plain: list[str] = []
    for character in text:
        sign = sign_of(character)
        if sign is None and character != "\n":
            plain.append(character)
            continue
        if plain:
            yield Piece("text", "".join(plain), marks)
            plain = []
        yield Piece("break", "\n", marks) if sign is None else Piece("sign", sign, marks, name_of(character))
    if plain:
        yield Piece("text", "".join(plain), marks)


def sign_of(character: str) -> str | None:
    """What is written in a character's place where it would not be seen as what it is; ``None`` for all others."""
    if character in (" ", "\n"):
        return None
    hidden = unicodedata.category(character) in _CONTROLS or character in _NO_INK or _selects(character)
    return _SHORT.get(character, f"U+{ord(character):04X}") if hidden else None


def _selects(character: str) -> bool:
    """Whether it is a variation selector, of which whole hidden texts can be made."""
    code = ord(character)
    return 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF or 0x180B <= code <= 0x180F


def name_of(character: str) -> str:
    """A character's number and, where it has one, its name in Unicode."""
    return f"U+{ord(character):04X} {unicodedata.name(character, '')}".strip()


def in_line(text: str) -> str:
    """A text on one line of plain characters, for a heading or a table."""
    return " ".join("".join(f"[{sign}]" if (sign := sign_of(one)) else one for one in text).split())
