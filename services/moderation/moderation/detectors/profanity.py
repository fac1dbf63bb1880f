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

SURNAMES = frozenset(
    {"butt", "butts", "cock", "cocks", "coon", "coons", "cumming", "dick", "dicks"} | {"dyke", "hoe", "hooker"}
)
"""Words of the list that are surnames too, of players that no pool has any more (*Dick Butkus*, *Jake Butt*). They pass
as one only after a capitalised first name or initial; what else passes as a name the contest's own pool says."""

FIRST_NAMES = frozenset({"dick", "fanny", "gaylord", "randy", "willy"})
"""The same of first names (*Dick LeBeau*), which pass before a capitalised surname."""

_SURNAME = re.compile(r" (?:[A-Z][\w'’-]{1,30})")
_FIRST_NAME = re.compile(r"(?:[A-Z][\w'’-]{1,30} |[A-Z]\.(?:[A-Z]\.)? ?)$")
_TOKEN = re.compile(r"[a-z0-9_]+")
_DOUBLED = re.compile(r"(.)\1+")
_HIDDEN = re.compile(r"[a-z][*#@$%?!_]+[a-z]|[*#@$%_][a-z]{2}|[a-z]{2}[*#@$%_]|([a-z])\1\1|&(?:#|\w{1,8};)|[^\W\d_a-z]")
"""Masked and stretched words, and letters of other scripts."""
_JOINED = re.compile(r"(?<!\S)(?=\S*[a-z])(?=\S*[^a-z\s'’])\S{3,80}(?!\S)")
_NOT_LETTERS = re.compile(r"[^a-z]+")
_LEET = str.maketrans("013457898!|", "oieastbgbil")


class Profanity(Detector):
    name = "profanity"
    version = "2"
    plain = True

    def __init__(self) -> None:
        coded = resources.files("moderation.detectors").joinpath("more_words.rot13").read_text(encoding="ascii")
        self._filter = Filter(
            {
                "languages": ["english"],
                "detect_leetspeak": True,
                "leetspeak_level": "basic",
                "custom_words": codecs.decode(coded, "rot13").splitlines(),
                "ignore_words": list(ALLOWED),
                "enable_context_aware": True,  # else the library tells of the first of two hidden words alone
            }
        )
        listed = {word.lower() for word in self._filter.words} - set(ALLOWED)
        self._words = frozenset(word for word in listed if _TOKEN.fullmatch(word))
        self._phrases: dict[str, list[list[str]]] = {}
        for phrase in listed - self._words:
            first, *rest = _TOKEN.findall(phrase) or [""]
            if rest:  # else it is masked (``a**``), as a text is that has it
                self._phrases.setdefault(first, []).append(rest)
        self._lengths = range(2, max(map(len, self._words)) + 1)

    def judge(self, text: str, context: Context) -> Iterable[Match]:
        if not self._may_hold(text):
            return
        for match in self._filter.check_profanity(text).get("matches") or ():
            start, word = match["index"], match["word"]
            end = _end_of(text, start, word)
            found = text[start:end]
            if any(map(str.isalpha, found)) and not _is_a_name(text, start, start + len(word), context):
                yield Match("profanity", start, end)  # a number alone (``455 yards``) spells nothing

    def _may_hold(self, text: str) -> bool:
        """Whether the library can find anything: asking it takes ten times as long as a look at the words."""
        lowered = text.lower()
        if _HIDDEN.search(lowered) is not None:
            return True
        words = _TOKEN.findall(lowered)
        if not self._words.isdisjoint(words):
            return True
        for position, word in enumerate(words):
            if _DOUBLED.sub(r"\1", word) in self._words:
                return True
            for rest in self._phrases.get(word, ()):
                if words[position + 1 : position + 1 + len(rest)] == rest:
                    return True
        return any(self._holds_a_word(run.group()) for run in _JOINED.finditer(lowered))

    def _holds_a_word(self, run: str) -> bool:
        """Whether a word of the list is in a run of letters, figures and signs once the signs are gone."""
        for read in {run, run.translate(_LEET)}:
            letters = _NOT_LETTERS.sub("", read)
            for bare in {letters, _DOUBLED.sub(r"\1", letters)}:
                for start in range(len(bare)):
                    for length in self._lengths:
                        if bare[start : start + length] in self._words:
                            return True
        return False


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
    """Whether a word is a part of a name of the pool, in whole or written as one, or a surname after a first name."""
    written = text[start:end]
    if _stands_in_a_whole_name(text, start, end, context):
        return True
    if not written[:1].isupper() or written.isupper():
        return False
    if written in context.parts:
        return True
    if written.lower() in FIRST_NAMES and _SURNAME.match(text, end) is not None:
        return True
    return written.lower() in SURNAMES and _FIRST_NAME.search(text, max(0, start - 40), start) is not None


def _stands_in_a_whole_name(text: str, start: int, end: int, context: Context) -> bool:
    """Whether a whole name of the pool stands around a word, in whatever case: ``JAKE BUTT``, ``jake butt``."""
    word = text[start:end].lower()
    for name in context.whole:
        parts = name.split(" ")
        if len(parts) < 2 or word not in parts:
            continue
        whole = re.compile(r"\b" + r"[\W_]{1,3}".join(map(re.escape, parts)) + r"\b", re.I)
        for found in whole.finditer(text, max(0, start - 60), end + 60):
            if found.start() <= start and end <= found.end():
                return True
    return False
