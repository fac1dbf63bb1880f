"""The corpus of moderation and what the pipeline makes of it: ``./run moderation-report``.

./run moderation-report [--failures] [--json | --table]

The corpus is in two halves (``corpus/README.md`` says how it is written). Whoever works on the detectors reads the
*tuning* half alone; the *held-out* half tells whether what was learnt there holds. So ``--failures`` shows sentences of
the tuning half and never of the other, of which nothing but counts is printed.
"""

from __future__ import annotations

import argparse
import codecs
import csv
import gzip
import hashlib
import itertools
import json
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Any

from common.events import State
from moderation import detectors
from moderation.pipeline import Context, Detector, Pipeline

HERE = Path(__file__).parent / "corpus"
DATA = Path(__file__).parents[3] / "data"

TUNING, HELD_OUT = HALVES = ("tuning", "held_out")

DETECTORS: Mapping[str, frozenset[str]] = {
    "personal-data": frozenset({"personal-data"}),
    "secrets": frozenset({"secrets"}),
    "links": frozenset({"links"}),
    "profanity": frozenset({"profanity"}),
    "slurs": frozenset({"profanity", "slurs"}),
    "threats": frozenset({"threats", "harassment"}),
    "harassment": frozenset({"harassment", "threats"}),
    "self-harm": frozenset({"self-harm"}),
    "dehumanising": frozenset({"dehumanising", "slurs"}),
    "injection": frozenset({"injection"}),
    "invisible": frozenset({"invisible"}),
    "length": frozenset({"length", "repetition"}),
}
"""The kinds of what must be flagged, and the names of the detectors that are there for each."""

AUTHORS: Mapping[str, str] = {
    "": "",
    "own": ", by the author of the rules",
    "others": ", by two who knew neither rules nor corpus",
}
"""By whom a file's texts are (``flagged-own.jsonl``), and what is said of them: of those by others most were tuned on,
of either half, and whoever wrote rules knows them; so no figure of either is what the rules are worth elsewhere."""

TEXTS_OF_A_LINEUP = 19
"""Nine rationales, nine main factors and the thesis."""
LINEUPS = 40
"""Lineups that are made of a half's ordinary sentences to be timed."""


# --- the corpus -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """A text of the corpus. ``kind``: what must be flagged in it, or what an ordinary one is about."""

    kind: str
    text: str
    ordinary: bool
    by: str = ""
    """Who wrote it, one of ``AUTHORS``."""


def half(text: str) -> str:
    """Which half a text belongs to: held out where the first bit of the SHA-256 of its UTF-8 bytes is set."""
    return HALVES[hashlib.sha256(text.encode("utf-8")).digest()[0] >> 7]


def read(which: str) -> list[Entry]:
    """The texts of a half, ordinary ones first, in each those of ``AUTHORS`` one after the other.

    Raises ``ValueError`` with the file and line of what is no entry, is of no known kind, stands in the wrong half
    or is there twice.
    """
    entries: list[Entry] = []
    seen: dict[str, str] = {}
    for name, by in itertools.product(("ordinary", "flagged"), AUTHORS):
        path = HERE / which / (f"{name}-{by}.jsonl" if by else f"{name}.jsonl")
        if by and not path.exists():
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            place = f"{path.parent.name}/{path.name}, line {number}"
            try:
                written = json.loads(line)
                kind, text = written.pop("kind"), spoken(written)
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(f"{place}: is no entry of the corpus: {error!r}") from error
            if name == "flagged" and kind not in DETECTORS:
                raise ValueError(f"{place}: the kind {kind!r} is none of {', '.join(DETECTORS)}")
            if half(text) != which:
                raise ValueError(f"{place}: by its hash it belongs to {half(text)}/{path.name}")
            if text in seen:
                raise ValueError(f"{place}: stands in {seen[text]} already")
            seen[text] = place
            entries.append(Entry(kind, text, ordinary=name == "ordinary", by=by))
    return entries


def spoken(written: Mapping[str, Any]) -> str:
    """The text that an entry stands for; it has exactly one of ``text``, ``rot13``, ``repeat`` and ``slur``.

    Raises ``ValueError`` for anything else.
    """
    match dict(written):
        case {"text": str(text), **rest} if not rest:
            return text
        case {"rot13": str(text), **rest} if not rest:
            return codecs.decode(text, "rot13")
        case {"repeat": str(text), **rest} if not rest:
            return re.sub(r"\{(.+?)\|(\d+)\}", lambda found: found[1] * int(found[2]), text, flags=re.DOTALL)
        case {"slur": str(text), **rest} if not rest:
            return re.sub(r"\{(\d+)((?::\w+)*)\}", lambda found: _slur(int(found[1]), found[2].split(":")[1:]), text)
    raise ValueError("give exactly one of text, rot13, repeat and slur")


@cache
def _slurs() -> list[str]:
    return codecs.decode((HERE / "slurs.rot13").read_text(encoding="ascii"), "rot13").splitlines()


def _slur(number: int, ways: Iterable[str]) -> str:
    word = _slurs()[number - 1]
    for way in ways:
        word = WAYS[way](word)
    return word


WAYS: Mapping[str, Callable[[str], str]] = {
    "plural": lambda word: f"{word}s",
    "upper": str.upper,
    "leet": lambda word: word.translate(str.maketrans("aeios", "43105")),
    "spaced": " ".join,
    "dotted": ".".join,
    "starred": lambda word: f"{word[0]}*{word[2:]}",
    "stretched": lambda word: re.sub(r"([aeiou])", r"\1\1\1", word, count=1),
    "wide": lambda word: "".join(chr(ord(letter) + 0xFEE0) if "!" <= letter <= "~" else letter for letter in word),
    "cyrillic": lambda word: word.translate(str.maketrans("aeiopcyx", "аеіорсух")),
}
"""The ways in which a word of the coded list is written or hidden."""


@cache
def pool_names() -> frozenset[str]:
    """Every player's name in the pools of two seasons, as a contest's own pool gives them."""
    names = set()
    for season in (2017, 2020):
        with gzip.open(DATA / f"pool_{season}_dk.csv.gz", "rt", encoding="utf-8") as file:
            names |= {row["name"] for row in csv.DictReader(file)}
    return frozenset(names)


# --- what the pipeline makes of it -----------------------------------------------------------------


@dataclass(frozen=True)
class Judged:
    """An entry and the detectors that found something in it, each with its rule and what it found."""

    entry: Entry
    found: tuple[tuple[str, str, str], ...]

    @property
    def detectors(self) -> frozenset[str]:
        return frozenset(detector for detector, _, _ in self.found)


@dataclass(frozen=True)
class Kind:
    """How well one kind is found, in texts. ``withheld``: flagged by whatever detector; ``found``: by one of the
    kind; ``false_alarms``: ordinary texts in which a detector of the kind finds something."""

    texts: int
    withheld: int
    found: int
    false_alarms: int

    @property
    def recall(self) -> float | None:
        return self.found / self.texts if self.texts else None

    @property
    def precision(self) -> float | None:
        """Of the texts of the kind and the ordinary ones in which a detector of the kind finds something, the
        part that is of the kind. What it finds in texts of other kinds is counted nowhere: a threat may be profane."""
        return self.found / (self.found + self.false_alarms) if self.found + self.false_alarms else None


@dataclass(frozen=True)
class Figures:
    """What is known of a half. ``missed`` and ``alarms`` hold sentences: they are for the tuning half's eyes."""

    half: str
    ordinary: int
    flagged: int
    kinds: Mapping[str, Kind]
    topics: Mapping[str, int] = field(default_factory=dict)
    missed: Sequence[Judged] = ()
    alarms: Sequence[Judged] = ()

    @property
    def false_positive_rate(self) -> float:
        return self.flagged / self.ordinary


def judge(pipeline: Pipeline, text: str, context: Context) -> tuple[tuple[str, str, str], ...]:
    """What is found in a text: detector, rule and the words. A detector that raises ends the report."""
    verdict = pipeline.judge(text, context, _raise)
    assert (verdict.state is State.FLAGGED) == bool(verdict.findings), f"neither cleared nor flagged: {verdict}"
    return tuple((found.detector, found.rule, text[found.start : found.end]) for found in verdict.findings)


def _raise(detector: Detector, error: Exception) -> None:
    raise RuntimeError(f"the detector {detector.name} cannot judge a text of the corpus") from error


def measure(pipeline: Pipeline, which: str, *, by: str = "") -> Figures:
    """Judge a half: what was written apart from the rules, or what one of the other ``AUTHORS`` wrote."""
    context = Context(pool_names())
    judged = [Judged(entry, judge(pipeline, entry.text, context)) for entry in read(which) if entry.by == by]
    ordinary = [one for one in judged if one.entry.ordinary]
    alarms = [one for one in ordinary if one.found]
    kinds: dict[str, Kind] = {}
    missed: list[Judged] = []
    for kind, of_kind in DETECTORS.items():
        texts = [one for one in judged if one.entry.kind == kind and not one.entry.ordinary]
        found = [one for one in texts if one.detectors & of_kind]
        missed += [one for one in texts if not one.detectors & of_kind]
        kinds[kind] = Kind(
            len(texts),
            sum(bool(one.found) for one in texts),
            len(found),
            sum(bool(one.detectors & of_kind) for one in alarms),
        )
    topics = Counter(one.entry.kind for one in alarms)
    return Figures(which, len(ordinary), len(alarms), kinds, topics, missed, alarms)


# --- how long it takes -----------------------------------------------------------------------------


def lineups(which: str) -> Iterator[list[str]]:
    """The texts of lineups of about 3 KB, made of a half's ordinary sentences in their order."""
    sentences = [entry.text for entry in read(which) if entry.ordinary and not entry.by]
    longer, short = cycle(sentences), cycle([text for text in sentences if len(text) <= 40])
    for _ in range(LINEUPS):
        texts = [_of(longer, 200) for _ in range(9)] + [next(short) for _ in range(9)] + [_of(longer, 600)]
        assert len(texts) == TEXTS_OF_A_LINEUP
        yield texts


def _of(sentences: Iterator[str], length: int) -> str:
    text = next(sentences)
    while len(text) < length:
        text += " " + next(sentences)
    return text


@dataclass(frozen=True)
class Timed:
    """Milliseconds a lineup in one process, and the mean size of its texts in bytes of UTF-8."""

    median: float
    p95: float
    longest: float
    size: float


def timed(pipeline: Pipeline, which: str) -> Timed:
    """Judge lineups one after the other, after one that warms up."""
    context = Context(pool_names())
    made = list(lineups(which))
    taken: list[float] = []
    for texts in (made[0], *made):
        begun = time.perf_counter()
        for text in texts:
            judge(pipeline, text, context)
        taken.append((time.perf_counter() - begun) * 1_000)
    ranked = sorted(taken[1:])
    size = statistics.mean(sum(len(text.encode()) for text in texts) for texts in made)
    return Timed(statistics.median(ranked), ranked[int(len(ranked) * 0.95) - 1], ranked[-1], size)


# --- the report ------------------------------------------------------------------------------------


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def _printed(figures: Figures, time_taken: Timed | None, by: str = "") -> Iterator[str]:
    yield f"{figures.half.replace('_', '-')} half{AUTHORS[by]}"
    yield f"  {'kind':<14}{'texts':>6}{'withheld':>10}{'recall':>9}{'precision':>11}"
    for name, kind in figures.kinds.items():
        withheld = _share(kind.withheld / kind.texts if kind.texts else None)
        yield f"  {name:<14}{kind.texts:>6}{withheld:>10}{_share(kind.recall):>9}{_share(kind.precision):>11}"
    rate = figures.false_positive_rate
    yield f"  ordinary: {figures.flagged} of {figures.ordinary} flagged, false-positive rate {rate:.2%}"
    if figures.topics:
        yield "    about: " + ", ".join(f"{topic} {count}" for topic, count in sorted(figures.topics.items()))
    if time_taken is None:
        return
    yield (
        f"  time per lineup ({TEXTS_OF_A_LINEUP} texts, {time_taken.size / 1_000:.1f} KB): median"
        f" {time_taken.median:.1f} ms, 95th percentile {time_taken.p95:.1f} ms, longest {time_taken.longest:.1f} ms"
    )


BEGINS, ENDS = "<!-- figures of the corpus: ./run moderation-report --table -->", "<!-- end of the figures -->"
"""What stands around the table in ``docs/moderation.md``."""


def table(columns: Sequence[Figures]) -> str:
    """The figures of the document, which a test holds against the corpus: without times, which no test asserts.

    ``columns``: both halves, then both halves of what each of the other ``AUTHORS`` wrote.
    """
    lines = [
        "| kind | tuning: recall | precision | held out: recall | own, tuning: recall | own, held out: recall"
        " | others: recall |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind in DETECTORS:
        tuning, held_out, own_tuning, own_held_out, *others = (figures.kinds[kind] for figures in columns)
        cells = [
            *(_part(tuning), _share(tuning.precision), _part(held_out)),
            *(_part(own_tuning), _part(own_held_out), _part(_both(*others))),
        ]
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    pairs = [(one.flagged, one.ordinary) for one in columns[:4]]
    pairs.append((sum(one.flagged for one in columns[4:]), sum(one.ordinary for one in columns[4:])))
    alarms = [f"{flagged} of {ordinary} ({flagged / ordinary:.1%})" for flagged, ordinary in pairs]
    lines.append(f"| *ordinary, flagged* | {alarms[0]} | | {' | '.join(alarms[1:])} |")
    return "\n".join(lines)


def _both(one: Kind, other: Kind) -> Kind:
    return Kind(*(getattr(one, name) + getattr(other, name) for name in ("texts", "withheld", "found", "false_alarms")))


def _part(kind: Kind) -> str:
    return f"{kind.found}/{kind.texts}, {_share(kind.recall)}" if kind.texts else "–"


def _document(figures: Figures, time_taken: Timed) -> dict[str, Any]:
    return {
        "ordinary": {
            "texts": figures.ordinary,
            "flagged": figures.flagged,
            "false_positive_rate": figures.false_positive_rate,
            "topics": dict(sorted(figures.topics.items())),
        },
        "kinds": {
            name: {
                "texts": kind.texts,
                "withheld": kind.withheld,
                "found": kind.found,
                "false_alarms": kind.false_alarms,
                "recall": kind.recall,
                "precision": kind.precision,
            }
            for name, kind in figures.kinds.items()
        },
        "milliseconds_per_lineup": {
            "median": time_taken.median,
            "p95": time_taken.p95,
            "longest": time_taken.longest,
            "bytes": time_taken.size,
        },
    }


def _failures(figures: Figures) -> Iterator[dict[str, Any]]:
    assert figures.half == TUNING, "sentences of the held-out half are shown to nobody"
    for one in figures.alarms:
        found = [{"detector": detector, "rule": rule, "words": words} for detector, rule, words in one.found]
        yield {"ordinary": one.entry.kind, "text": one.entry.text, "found": found}
    for one in figures.missed:
        text = one.entry.text
        if one.entry.kind in ("slurs", "profanity"):
            shown = {"rot13": codecs.encode(text, "rot13")}
        else:
            shown = {"text": text if len(text) <= 300 else f"{text[:200]}… ({len(text)} characters)"}
        yield {"missed": one.entry.kind, **shown, "found_instead": sorted(one.detectors)}


def main(given: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="./run moderation-report",
        description="Precision and recall of moderation on its corpus, by kind and half, false alarms and time.",
    )
    parser.add_argument(
        "--failures", action="store_true", help="show each failing sentence of the tuning half (never of the other)"
    )
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--json", action="store_true", help="print one JSON document on standard output")
    forms.add_argument("--table", action="store_true", help="print the table of docs/moderation.md alone")
    options = parser.parse_args(given)
    pipeline = detectors.load()
    if options.table:
        print(table([measure(pipeline, which, by=by) for by in AUTHORS for which in HALVES]))
        return 0
    halves = [(measure(pipeline, which), timed(pipeline, which)) for which in HALVES]
    failures = list(_failures(halves[0][0])) if options.failures else []
    if options.json:
        document: dict[str, Any] = {"pipeline": pipeline.version}
        document |= {figures.half: _document(figures, time_taken) for figures, time_taken in halves}
        if options.failures:
            document["failures"] = failures
        print(json.dumps(document, ensure_ascii=True))
        return 0
    print(f"pipeline: {pipeline.version}")
    for figures, time_taken in halves:
        print("\n".join(("", *_printed(figures, time_taken))))
    for by, which in itertools.product(("own", "others"), HALVES):
        print("\n".join(("", *_printed(measure(pipeline, which, by=by), None, by))))
    if options.failures:
        print("\nfailures of the tuning half")
        for failure in failures:
            # As ASCII, so that what cannot be seen is seen.
            print(f"  {json.dumps(failure, ensure_ascii=True)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
