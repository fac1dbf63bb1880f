"""The same thing over and over: letters, words or sentences that fill a page and say nothing."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable

from moderation.pipeline import Context, Detector, Match

LETTERS = 40
"""A character may stand so often in a row, less one. Rules drawn with dashes and the like are no matter."""

UNITS = 8
"""A word or phrase may be said so often in a row, less one, where it then fills a line (``FILLS`` characters)."""

FILLS = 100

LONG_UNITS = 4
"""The same for a phrase of 40 to 240 characters."""

LINES, SPACES = 12, 80
"""So many empty lines, or spaces in a row, are an empty page."""

COMPRESSES_TO = 0.4
"""Only a text that ``zlib`` makes smaller than this part of itself is looked at for repeated phrases: prose of a few
hundred characters stays over a half, and looking costs time."""

_ONE = re.compile(rf"([^\s\-=_.*#~+\u2010-\u2015\u2500-\u257f])\1{{{LETTERS - 1},}}")
_PHRASE = re.compile(rf"(\S.{{1,79}}?)\1{{{UNITS - 1},}}", re.S)
_LONG_PHRASE = re.compile(rf"(\S.{{39,239}}?)\1{{{LONG_UNITS - 1},}}", re.S)
_BLANK = re.compile(rf"\n(?:[^\S\n]{{0,200}}\n){{{LINES},}}|[^\S\n]{{{SPACES},}}")


class Repetition(Detector):
    name = "repetition"
    version = "1"
    raw = True

    def judge(self, text: str, context: Context) -> Iterable[Match]:
        for run in _BLANK.finditer(text):
            yield Match("blank", run.start(), run.end())
        for run in _ONE.finditer(text):
            yield Match("character", run.start(), run.end())
        encoded = text.encode("utf-8", "surrogatepass")
        if len(text) < FILLS or len(zlib.compress(encoded, 1)) > COMPRESSES_TO * len(encoded):
            return
        for pattern in (_PHRASE, _LONG_PHRASE):
            for run in pattern.finditer(text):
                if run.end() - run.start() >= FILLS:
                    yield Match("phrase", run.start(), run.end())
