"""Rules about words that are data: ``rules/<detector>.toml`` says what is found, why, and what must pass.

A rule has a ``pattern``, or ``together``: patterns that all have to be in one sentence. In a pattern a space is what
may stand between two words (`` ?``: or nothing), a straight apostrophe is either kind, ``{part}`` is a part of the
file's table ``parts``, and a line's beginning does not count. ``unless`` is looked for in the sentence around a find
and takes it back; ``unless_near`` in the find and a few words after it, since harm is often the tail of a long
sentence about play. A group called ``name`` is a person's name: two capitalised words, or one that the contest's pool
has. Rules with ``marks`` are about signs and not words: they read the text in its normal form, where a figure is a
figure.

Figures of speech that mean nothing are in ``rules/idioms.toml``: rules about words read a text in which they are
crossed out.

A rule is tried only where one of its ``needs`` is in the text, if it has any (``@list``: of the file's table
``lists``). They are there for speed: everything that the rule finds must have one. Every repetition has an upper bound,
so that the time is linear in the text; the tests hold that.
"""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib import resources
from typing import Any

from moderation.normal import Form, plain
from moderation.pipeline import Context, Detector, Match

_BETWEEN = r"[\s,\"“”*~()\u2013\u2014-]"
_PART = re.compile(r"\{([a-z_]+)\}")
_NAME = re.compile(r"\(\?P<name>")
_TOKEN = re.compile(r"\\.|\[(?:\\.|[^\]\\])+\]| \??|'")
_QUAD = 4
_NEAR = 30
"""Characters after a find in which ``unless_near`` is looked for too."""
_APOSTROPHES = (
    ("n't", "n'?t"),
    ("i'm", "i'?m"),
    ("|'m", "|'?m"),
    ("(?:'m", "(?:'?m"),
    ("'ve", "'?ve"),
    ("you're", "you'?re"),
)
"""Where an apostrophe may be left out: what is then written is no other word, as ``were`` and ``ill`` would be."""
_LETTER = re.compile(r"\w")
_CROSSED = "\u00b7"
"""Neither a letter nor what may stand between two words."""
_SENTENCE = re.compile(r"(?:[^.!?;\n]|[.!?;](?!\s|$)){1,400}[.!?;]?")


@dataclass(frozen=True)
class Rule:
    """One rule of a file; ``flags`` and ``passes`` are sentences that it must find something in, and must not."""

    name: str
    needs: tuple[str, ...]
    pattern: re.Pattern[str] | None
    together: tuple[re.Pattern[str], ...]
    unless: re.Pattern[str] | None
    unless_near: re.Pattern[str] | None
    marks: bool
    flags: tuple[str, ...]
    passes: tuple[str, ...]

    def matches(self, text: Text, context: Context) -> Iterable[Match]:
        """What the rule finds."""
        if not self._may_find_in(text):
            return
        for start, end, found in self._spans(text):
            if self.unless is not None and self.unless.search(text.sentence_around(start, end)):
                continue
            if self.unless_near is not None and self.unless_near.search(text.written, start, end + _NEAR):
                continue
            if not any(_names_nobody(one, context) for one in found):
                yield Match(self.name, start, end)

    def _may_find_in(self, text: Text) -> bool:
        """Whether one of the ``needs`` is in the text: four letters of each, looked for at once, tell mostly."""
        if not self.needs or any(word in text.lowered for word in self._short):
            return True
        return not self._quads.isdisjoint(text.quads) and any(word in text.lowered for word in self.needs)

    @cached_property
    def _short(self) -> tuple[str, ...]:
        return tuple(word for word in self.needs if len(word) < _QUAD)

    @cached_property
    def _quads(self) -> frozenset[str]:
        return frozenset(word[-_QUAD:] for word in self.needs if len(word) >= _QUAD)

    def _spans(self, text: Text) -> Iterable[tuple[int, int, list[re.Match[str]]]]:
        if self.pattern is not None:
            for one in self.pattern.finditer(text.written):
                yield *one.span(), [one]
            return
        for start, end in text.sentences:
            found: list[re.Match[str]] = []
            for pattern in self.together:
                if (part := pattern.search(text.written, start, end)) is None:
                    break
                found.append(part)
            else:
                yield min(one.start() for one in found), max(one.end() for one in found), found


class Text:
    """A text with what several rules ask of it."""

    def __init__(self, written: str) -> None:
        self.written = written
        self.lowered = written.lower()

    @cached_property
    def quads(self) -> frozenset[str]:
        """Every four characters in a row."""
        return frozenset(self.lowered[start : start + _QUAD] for start in range(len(self.lowered)))

    @cached_property
    def sentences(self) -> list[tuple[int, int]]:
        """Where sentences begin and end; a longer one than 400 characters is several."""
        return [one.span() for one in _SENTENCE.finditer(self.written)]

    def sentence_around(self, start: int, end: int) -> str:
        """The sentences that a span lies in."""
        inside = [span for span in self.sentences if span[0] < end and start < span[1]]
        return self.written[inside[0][0] : inside[-1][1]] if inside else self.written[start:end]


class Phrases(Detector):
    """The rules of one file. Raises ``ValueError`` with the rule where the file is not as it should be."""

    def __init__(self, name: str) -> None:
        file = resources.files("moderation.detectors").joinpath("rules", f"{name}.toml")
        written = tomllib.loads(file.read_text(encoding="utf-8"))
        self.name = name
        self.version = written["version"]
        rules = [_rule(rule, written, file.name) for rule in written["rules"]]
        self.rules = tuple(rules)
        self._of_marks = [rule for rule in rules if rule.marks]
        self._of_words = [rule for rule in rules if not rule.marks]

    def judge(self, text: str, context: Context) -> Iterable[Match]:
        if self._of_marks:
            read = Text(text)
            for rule in self._of_marks:
                yield from rule.matches(read, context)
        if not self._of_words:
            return
        form, read = _read_for_words(text)
        for rule in self._of_words:
            for found in rule.matches(read, context):
                yield Match(found.rule, *form.written(found.start, found.end))


@lru_cache(1)
def _read_for_words(text: str) -> tuple[Form, Text]:
    """The plain form of a text: every file of rules reads the same, one after the other."""
    form = plain(Form(text, range(len(text) + 1)))
    return form, Text(without_idioms(form.text))


@cache
def idioms() -> tuple[Rule, ...]:
    """The figures of speech that nobody means. Raises ``ValueError`` as ``Phrases`` does."""
    return Phrases("idioms").rules


def without_idioms(text: str) -> str:
    """The text, as long as it was, with the letters of idioms crossed out."""
    read, crossed = Text(text), text
    for idiom in idioms():
        for found in idiom.matches(read, Context()):
            crossed = (
                crossed[: found.start] + _LETTER.sub(_CROSSED, text[found.start : found.end]) + crossed[found.end :]
            )
    return crossed


def _rule(written: dict[str, Any], whole: dict[str, Any], file: str) -> Rule:
    try:
        return _built(written, whole.get("parts", {}), whole.get("lists", {}))
    except (KeyError, ValueError, re.error) as error:
        raise ValueError(f"{file}: rule {written.get('name')!r}: {error!r}") from error


def _built(written: dict[str, Any], parts: dict[str, str], lists: dict[str, list[str]]) -> Rule:
    pattern, unless, unless_near = (
        None if written.get(key) is None else _compile(written[key], parts)
        for key in ("pattern", "unless", "unless_near")
    )
    together = tuple(_compile(one, parts) for one in written.get("together", ()))
    if (pattern is None) == (not together):
        raise ValueError("give a pattern, or several together")
    return Rule(
        written["name"],
        tuple(
            word for need in written.get("needs", ()) for word in (lists[need[1:]] if need.startswith("@") else [need])
        ),
        pattern,
        together,
        unless,
        unless_near,
        written.get("marks", False),
        tuple(written["flags"]),
        tuple(written["passes"]),
    )


def _compile(pattern: str, parts: dict[str, str]) -> re.Pattern[str]:
    whole = "".join(line.lstrip() for line in pattern.splitlines())
    while (part := _PART.search(whole)) is not None:
        filled = "".join(line.lstrip() for line in parts[part.group(1)].splitlines())
        whole = whole.replace(part.group(), f"(?:{filled})")
    for written, without in _APOSTROPHES:
        whole = whole.replace(written, without)
    names = itertools.count()
    whole = _NAME.sub(lambda name: f"(?P<name_{next(names)}>", whole)
    return re.compile(_TOKEN.sub(_spelled_out, whole), re.I)


def _spelled_out(token: re.Match[str]) -> str:
    """A token of a pattern as ``re`` knows it; escapes stay, and in a class a space is a space."""
    written = token.group()
    if written.startswith("["):
        return written.replace("'", "'\u2019")
    return {"'": "['\u2019]", " ": _BETWEEN + "{1,3}", " ?": _BETWEEN + "{0,3}"}.get(written, written)


def _names_nobody(found: re.Match[str], context: Context) -> bool:
    """Whether a find's ``name`` is a capitalised word that is nobody's name: ``someone must kill Cover 2``."""
    for name in filter(None, found.groupdict().values()):
        words = re.findall(r"[^\W\d_]+", name)
        if len(words) < 2 and not context.parts.intersection(words):
            return True
    return False
