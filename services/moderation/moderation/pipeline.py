"""The pipeline: small detectors behind one protocol, and the verdict that follows from what they find.

Pure: no I/O and no network. A detector that raises makes the text ``unchecked``, never ``cleared`` (M4);
what the others found is kept, and one finding is enough to flag.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

from common.events import State
from moderation.domain import Finding, Verdict
from moderation.normal import Form, normalise, plain


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

    @cached_property
    def parts(self) -> frozenset[str]:
        """The single names of them: ``T.Y. Hilton`` has ``T``, ``Y`` and ``Hilton``."""
        return frozenset(part for name in self.names for part in _PARTS.findall(name))

    @cached_property
    def whole(self) -> frozenset[str]:
        """The names in lower case, their parts joined by single spaces."""
        return frozenset(" ".join(_PARTS.findall(name)).lower() for name in self.names)


class Detector(Protocol):
    """One kind of thing that keeps a text from being shown.

    ``raw`` detectors are given the text as written, ``plain`` ones the form for rules about words, the others the
    normal form (``moderation.normal``). What a ``stops`` detector finds leaves nothing for those after it. A change in
    what a detector finds is a new ``version``.
    """

    name: str
    version: str
    raw: bool = False
    plain: bool = False
    stops: bool = False

    def judge(self, text: str, context: Context) -> Iterable[Match]:
        """Everything found in the text. Must not touch the network, the disk or the clock."""
        ...


Failed = Callable[[Detector, Exception], None]

_PARTS = re.compile(r"[^\W\d_]+")

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
        forms = _Forms(text)
        findings: list[Finding] = []
        failures = 0
        for detector in self.detectors:
            try:
                if detector.raw:
                    matches = list(detector.judge(text, context))
                else:
                    form = forms.plain if detector.plain else forms.normal
                    matches = [
                        Match(match.rule, *form.written(match.start, match.end))
                        for match in detector.judge(form.text, context)
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


class _Forms:
    """The forms of one text, each made when a detector first asks for it."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def normal(self) -> Form:
        return normalise(self._text)

    @cached_property
    def plain(self) -> Form:
        return plain(self.normal)


def _place(finding: Finding) -> tuple[int, int, str, str]:
    return finding.start, finding.end, finding.detector, finding.rule
