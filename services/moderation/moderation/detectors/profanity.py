"""Profanity and slurs: glin-profanity's English list with its de-obfuscation, our own forms, and what football means.

The library knows ``word`` and not ``words`` or ``worded``; ``more_words.rot13`` holds such forms and a few words
that it lacks, coded so that nobody has to read them. Words of its list that football uses are allowed; a
word that is also a player's name passes where it is written as a name.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable
from importlib import resources

from glin_profanity import Filter

from moderation.pipeline import Context, Detector, Match

ALLOWED = (
    *("ball kicking", "ball sack", "bareback", "big black", "bs", "cornhole", "dingleberry", "domination"),
    *("double penetration", "escort", "girl on", "hard core", "hardcore", "hot chick", "how to kill", "how to murder"),
    *("huge fat", "jelly donut", "leather restraint", "lemon party", "mf", "mr hands", "pegging", "poof", "santorum"),
    *("scat", "shrimping", "simp", "skeet", "snatch", "snowballing", "spunk", "strap on", "strip club", "suck"),
    *("sucks", "swinger", "sexy", "tainted love", "taste my", "tied up", "tight white", "tongue in a", "xx", "xxx"),
)
"""Entries of the library's list that football uses (*scat back, snatch the ball, Super Bowl XXX, how to kill a zone*)
or that mean nothing by themselves."""

SURNAMES = frozenset({"butt", "butts", "cock", "cocks", "coon", "coons", "dick", "dicks", "dyke", "hoe", "hooker"})
"""Words of the list that are surnames too. They pass as one only after a capitalised first name or initial."""

_FIRST_NAME = re.compile(r"(?:[A-Z][\w'’-]+ |[A-Z]\.(?:[A-Z]\.)? ?)$")


class Profanity(Detector):
    name = "profanity"
    version = "1"

    def __init__(self) -> None:
        coded = resources.files("moderation.detectors").joinpath("more_words.rot13").read_text(encoding="ascii")
        self._filter = Filter(
            {
                "languages": ["english"],
                "detect_leetspeak": True,
                "leetspeak_level": "basic",
                "custom_words": codecs.decode(coded, "rot13").split(),
                "ignore_words": list(ALLOWED),
            }
        )

    def judge(self, text: str, context: Context) -> Iterable[Match]:
        for match in self._filter.check_profanity(text).get("matches") or ():
            start, word = match["index"], match["word"]
            end = _end_of(text, start, word)
            if not _is_a_name(text, start, start + len(word), context):
                yield Match("profanity", start, end)


def _end_of(text: str, start: int, word: str) -> int:
    """Where a word that is found at ``start`` ends: it may be written with spaces, signs or repeated letters in it."""
    wanted = sum(not character.isspace() for character in word)
    end = start
    while wanted and end < len(text):
        wanted -= text[end].isalnum() or text[end] in "*@$!"
        end += 1
    while end < len(text) and not text[end].isspace():
        end += 1
    return end


def _is_a_name(text: str, start: int, end: int, context: Context) -> bool:
    written = text[start:end]
    if not written[:1].isupper() or written.isupper():
        return False
    if any(written in name.replace(".", " ").split() for name in context.names):
        return True
    return written.lower() in SURNAMES and _FIRST_NAME.search(text, 0, start) is not None
