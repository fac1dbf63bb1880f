"""Texts too long to be judged or read."""

from __future__ import annotations

from collections.abc import Iterable

from moderation.pipeline import Context, Detector, Match

LONGEST = 4_000
"""Characters: the longest text that a lineup may have. The other detectors' time is bounded for texts up to it."""


class Length(Detector):
    name = "length"
    version = "1"
    raw = True
    stops = True

    def judge(self, text: str, context: Context) -> Iterable[Match]:
        if len(text) > LONGEST:
            yield Match("too-long", LONGEST, len(text))
