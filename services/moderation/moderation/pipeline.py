"""The pipeline: small detectors behind one protocol, and the verdict that follows from what they find.

Pure: no I/O and no network. A detector that raises makes the text ``unchecked``, never ``cleared`` (M4);
what the others found is kept, and one finding is enough to flag.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from common.events import State
from moderation.domain import Finding, Verdict


class Match(NamedTuple):
    """What a detector found: a rule of its own and the span, in code points of the text it was given."""

    rule: str
    start: int
    end: int


@dataclass(frozen=True)
class Context:
    """What a detector may know beside the text.

    ``names``: real players' names, as the pool of the contest writes them; they pass as names.
    """

    names: frozenset[str] = frozenset()


class Detector(Protocol):
    """One kind of thing that keeps a text from being shown.

    ``raw`` detectors are given the text as written, the others its normal form. What a ``stops`` detector
    finds leaves nothing for those after it. A change in what a detector finds is a new ``version``.
    """

    name: str
    version: str
    raw: bool = False
    stops: bool = False

    def judge(self, text: str, context: Context) -> Iterable[Match]:
        """Everything found in the text. Must not touch the network, the disk or the clock."""
        ...


Failed = Callable[[Detector, Exception], None]

_APART = str.maketrans("/:@_+", "     ")
"""Separators of a model's label; each becomes one character, so that spans stay where they are."""


class Pipeline:
    """Detectors in order. Safe to use from one thread at a time."""

    def __init__(self, detectors: Sequence[Detector]) -> None:
        self.detectors = tuple(detectors)

    @property
    def version(self) -> str:
        """Which detectors in which versions; a verdict keeps it."""
        return " ".join(f"{detector.name}/{detector.version}" for detector in self.detectors)

    def judge_label(self, label: str, failed: Failed) -> Verdict:
        """The verdict on a model's label, as written and as the words that its separators join.

        ``openai/winners.bet`` is a path like any other, and an address to whoever reads it.
        """
        whole, apart = (self.judge(text, Context(), failed) for text in (label, label.translate(_APART)))
        if whole.findings or apart.findings:
            return Verdict(State.FLAGGED, tuple(sorted({*whole.findings, *apart.findings}, key=_place)))
        return whole if apart.state is State.CLEARED else apart

    def judge(self, text: str, context: Context, failed: Failed) -> Verdict:
        """The verdict on a text.

        ``failed`` is told of every detector that raised.
        """
        normal: Normal | None = None
        findings: list[Finding] = []
        failures = 0
        for detector in self.detectors:
            try:
                if detector.raw:
                    matches = list(detector.judge(text, context))
                else:
                    normal = normal or normalise(text)
                    matches = [
                        Match(match.rule, *normal.written(match.start, match.end))
                        for match in detector.judge(normal.text, context)
                    ]
            except Exception as error:
                failures += 1
                failed(detector, error)
                continue
            findings += (Finding(detector.name, detector.version, *match) for match in matches)
            if matches and detector.stops:
                break
        if findings:
            return Verdict(State.FLAGGED, tuple(sorted(set(findings), key=_place)))
        return Verdict(State.UNCHECKED if failures else State.CLEARED)


def _place(finding: Finding) -> tuple[int, int, str, str]:
    return finding.start, finding.end, finding.detector, finding.rule


@dataclass(frozen=True)
class Normal:
    """A text in the form that detectors read, and where each of its characters stood as written."""

    text: str
    origin: Sequence[int]

    def written(self, start: int, end: int) -> tuple[int, int]:
        """The span as written that a span of the normal form comes from."""
        if start >= end:
            return self.origin[start], self.origin[start]
        return self.origin[start], self.origin[end - 1] + 1


def normalise(text: str) -> Normal:
    """Fold compatibility forms (width, ligatures, mathematical letters) and drop what is drawn as nothing.

    So a link in full-width letters, or with zero-width spaces in it, reads as the link it is. Invisible
    characters are themselves a finding of the ``invisible`` detector.
    """
    if text.isascii():
        return Normal(text, range(len(text) + 1))
    characters: list[str] = []
    origin: list[int] = []
    for position, character in enumerate(text):
        if unicodedata.category(character) == "Cf" or 0xFE00 <= ord(character) <= 0xFE0F:
            continue
        for folded in unicodedata.normalize("NFKC", character):
            characters.append(folded)
            origin.append(position)
    origin.append(len(text))
    return Normal("".join(characters), origin)
