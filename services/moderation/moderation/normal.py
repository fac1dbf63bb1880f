"""The forms of a text that detectors read, and where each of their characters stood as written. Pure.

*Normal*: compatibility forms folded (NFKC: width, ligatures, mathematical letters), what is drawn as nothing
dropped. *Plain*, made of it for rules about words: look-alikes of other scripts and accents read as Latin letters
where the whole word then is Latin, figures and signs inside of words as the letters that they stand for, spelled
letters (``s p e l l e d``) as one word, words.joined.by.dots apart. Both are idempotent.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from common.lookalikes import skeleton

IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Drawn as nothing, or as a change of direction: Unicode's Default_Ignorable_Code_Point and the annotation marks; as a
class of a regular expression."""

_DROPPED = re.compile(f"[{IGNORABLE}]")


@dataclass(frozen=True)
class Form:
    """A form of a text. ``origin`` has, for each character and for the end, its place in the text as written."""

    text: str
    origin: Sequence[int]

    def written(self, start: int, end: int) -> tuple[int, int]:
        """The span as written that a span of this form comes from."""
        if start >= end:
            return self.origin[start], self.origin[start]
        return self.origin[start], self.origin[end - 1] + 1


def normalise(text: str) -> Form:
    """The normal form: a link in full-width letters, or with zero-width spaces in it, reads as the link it is.

    What it drops is itself a finding of the ``invisible`` detector.
    """
    if text.isascii():
        return Form(text, range(len(text) + 1))
    characters: list[str] = []
    origin: list[int] = []
    for position, character in enumerate(text):
        folded = character if character.isascii() else _folded(character)
        characters.append(folded)
        origin += [position] * len(folded)
    origin.append(len(text))
    return Form("".join(characters), origin)


@lru_cache(16_384)
def _folded(character: str) -> str:
    if _ignorable(character):
        return ""
    folded = _BADGES.get(ord(character)) or unicodedata.normalize("NFKC", character)
    return "".join(one for one in folded if not _ignorable(one))


def _ignorable(character: str) -> bool:
    return unicodedata.category(character) == "Cf" or _DROPPED.match(character) is not None


_BADGES = {
    first + letter: chr(ord("A") + letter) for first in (0x1F150, 0x1F170) for letter in range(26)
}  # white letters on black, which Unicode folds to nothing
_LETTERS = re.compile(r"[^\s/\-\u2010-\u2015]+")
_SPELLED = re.compile(r"(?<![\w@$])[A-Za-z0-9@$](?:[ .,*_/+~-]{1,2}[A-Za-z0-9@$]){2,60}(?![\w@$])(?!['\u2019][A-Za-z])")
_DOTTED = re.compile(r"(?<![\w.])(?:[A-Za-z']{1,20}[._]){2,20}[A-Za-z']{2,20}(?![\w.])")
_SEPARATOR = re.compile(r"[^A-Za-z0-9@$]+")
_MIXED = re.compile(
    r"(?<![\w@$!|])(?=[A-Za-z0-9@$!|]{0,24}[A-Za-z])(?=[A-Za-z]{0,24}[0-9@$!|])[A-Za-z0-9@$!|]{2,24}(?![\w@$!|])"
)
_OPENED = re.compile(r"(?<=[A-Za-z])\((?=[A-Za-z]{1,10}(?![\w)]))")
_READ_AS = {"0": "o", "3": "e", "4": "a", "5": "s", "7": "t", "9": "g", "@": "a", "$": "s", "!": "i", "|": "l"}


def plain(normal: Form) -> Form:
    """The plain form of a normal form."""
    form = normal
    if not form.text.isascii():
        form = _latin(form)
    form = _read(_joined(form))
    return Form(_DOTTED.sub(_apart, form.text), form.origin)


def _latin(form: Form) -> Form:
    """Words of look-alikes and accented letters in plain Latin letters; other words as they are."""
    characters: list[str] = []
    origin: list[int] = []
    until = 0
    for word in _LETTERS.finditer(form.text):
        if word.group().isascii():
            continue
        read = [_looks_like(character) for character in word.group()]
        if not all(one.isascii() for one in read if one.isalpha()):
            continue
        characters.append(form.text[until : word.start()])
        origin += form.origin[until : word.start()]
        for position, one in enumerate(read, start=word.start()):
            characters.append(one)
            origin += [form.origin[position]] * len(one)
        until = word.end()
    characters.append(form.text[until:])
    origin += form.origin[until:]
    return Form("".join(characters), origin)


@lru_cache(16_384)
def _looks_like(character: str) -> str:
    """The Latin letters that a character is taken for, nothing for a mark, else the character."""
    if character.isascii():
        return character
    if unicodedata.category(character).startswith("M"):
        return ""
    bare = "".join(_small_capital(one) for one in skeleton(character) if not unicodedata.category(one).startswith("M"))
    if not (bare.isascii() and bare.isalpha() and character.isalpha()):
        return character
    if bare == "rn":  # what the table makes of an m
        return "m"
    return "I" if bare == "l" and character.isupper() else bare


def _small_capital(letter: str) -> str:
    """``к``, ``т`` and ``н`` look like small capitals of Latin, which the table keeps apart from the letters."""
    if letter == "\N{LATIN SMALL LETTER KRA}":
        return "k"
    if letter == "\N{LATIN SMALL LETTER TURNED W}":
        return "m"
    name = unicodedata.name(letter, "").removeprefix("LATIN LETTER SMALL CAPITAL ")
    return name.lower() if len(name) == 1 else letter


def _joined(form: Form) -> Form:
    """Three and more single letters in a row as a word."""
    characters: list[str] = []
    origin: list[int] = []
    until = 0
    for run in _SPELLED.finditer(form.text):
        if not any(character.isalpha() for character in run.group()):
            continue
        for gap in _SEPARATOR.finditer(form.text, *run.span()):
            characters.append(form.text[until : gap.start()])
            origin += form.origin[until : gap.start()]
            until = gap.end()
    if not until:
        return form
    characters.append(form.text[until:])
    origin += form.origin[until:]
    return Form("".join(characters), origin)


def _read(form: Form) -> Form:
    """Figures and signs among the letters of a word as the letters that they stand for; the length stays."""
    text = _MIXED.sub(_as_letters, _OPENED.sub("c", form.text))
    return form if text == form.text else Form(text, form.origin)


def _apart(words: re.Match[str]) -> str:
    """``words.joined.by.dots`` apart."""
    return words.group().replace(".", " ").replace("_", " ")


def _as_letters(word: re.Match[str]) -> str:
    read: list[str] = []
    before = ""
    last = len(word.group()) - 1
    for position, character in enumerate(word.group()):
        if character in "!|" and position in (0, last):  # punctuation
            read.append(character)
        elif character == "1":
            # One sign for two letters: after a vowel it is an l (``ki11``), else an i (``k1ck``).
            read.append(read[-1] if before == "1" else "l" if before.lower() in tuple("aeiou") else "i")
        else:
            read.append(_READ_AS.get(character, character))
        before = character
    return "".join(read)
