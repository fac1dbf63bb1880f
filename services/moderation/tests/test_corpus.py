"""Ordinary football talk passes; what must be flagged is flagged by the detector of its kind."""

import codecs
import json
import re
from collections import Counter
from collections.abc import Iterable

import pytest

from common.events import State
from moderation import detectors
from moderation.detectors import profanity
from moderation.pipeline import Context, Detector, Match, Pipeline

from . import moderation_corpus as corpus
from .moderation_corpus import DETECTORS, HALVES, HELD_OUT, HERE, TUNING, Figures, pool_names

ORDINARY = (HERE / "examples" / "ordinary.txt").read_text().splitlines()
FLAGGED = [json.loads(line) for line in (HERE / "examples" / "flagged.jsonl").read_text().splitlines()]
DETECTOR = {"slur": "profanity"}
BELOW = {"threats": 0.77, "harassment": 0.83, "self-harm": 0.85, "injection": 0.89}
"""The kinds of which fewer than nine in ten are found on one of the halves yet, and the part that must be: to be
raised when the detectors improve, never lowered. See docs/moderation.md."""


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return detectors.load()


def unexpected(detector: Detector, error: Exception) -> None:
    raise error


def judge(pipeline: Pipeline, text: str, *names: str) -> dict[str, str]:
    """What is found, by detector; empty where the text is cleared."""
    verdict = pipeline.judge(text, Context(frozenset(names)), unexpected)
    assert (verdict.state is State.CLEARED) == (not verdict.findings)
    return {found.detector: text[found.start : found.end] for found in verdict.findings}


def written(entry: dict[str, str]) -> str:
    return entry["text"] if "text" in entry else codecs.decode(entry["rot13"], "rot13")


@pytest.mark.rule("M4")
@pytest.mark.parametrize("sentence", ORDINARY)
def test_ordinary_football_talk_passes(pipeline: Pipeline, sentence: str) -> None:
    assert judge(pipeline, sentence) == {}


@pytest.mark.rule("M4")
@pytest.mark.parametrize("entry", FLAGGED, ids=lambda entry: f"{entry['kind']}-{entry.get('text', 'coded')[:20]}")
def test_what_must_not_be_shown_is_flagged_by_the_detector_of_its_kind(
    pipeline: Pipeline, entry: dict[str, str]
) -> None:
    found = judge(pipeline, written(entry))
    assert DETECTOR.get(entry["kind"], entry["kind"]) in found
    assert all(span for span in found.values())


@pytest.mark.rule("M4")
def test_the_name_of_every_player_of_two_seasons_passes(pipeline: Pipeline) -> None:
    names = pool_names()
    assert len(names) > 1_000
    refused = {name: judge(pipeline, f"{name} is underpriced this week.") for name in names}
    assert {name: found for name, found in refused.items() if found} == {}


@pytest.mark.rule("M4")
def test_a_surname_alone_passes_where_the_pool_has_it_and_is_written_as_a_name(pipeline: Pipeline) -> None:
    assert judge(pipeline, "Butt sees six targets.", "Jake Butt") == {}
    assert "profanity" in judge(pipeline, "A kick in the butt.", "Jake Butt")
    assert "profanity" in judge(pipeline, "BUTT", "Jake Butt")
    assert "profanity" in judge(pipeline, "Butt sees six targets.", "Rob Gronkowski")


@pytest.mark.rule("A10")
@pytest.mark.parametrize(
    "label",
    [
        "openai/gpt-5",
        "gpt-4.1-2025-04-14",
        "anthropic/claude-sonnet-4.5",
        "claude-3-5-sonnet-20241022",
        "us.anthropic.claude-3-7-sonnet-20250219-v1:0",
        "vertex_ai/claude-opus-4@20250514",
        "qwen/qwen3-coder:free",
        "@cf/meta/llama-3.1-8b-instruct",
        "meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8",
        "Qwen2.5-72B-Instruct.Q4_0.gguf",
        "cohere/command-r-plus-08-2024",
        "google/gemini-2.5-pro",
        "moonshotai/Kimi-K2-Instruct-0905",
        "demo/aurora-1",
        "My own finetune v2",
    ],
)
def test_a_label_as_models_have_them_passes(pipeline: Pipeline, label: str) -> None:
    assert pipeline.judge_label(label, unexpected).findings == ()


@pytest.mark.rule("A10")
@pytest.mark.parametrize(
    ("label", "detector"),
    [
        ("https://evil.example/x", "links"),
        ("https:evil.com", "links"),
        ("winners.bet", "links"),
        ("openai/winners.bet", "links"),
        ("gpt-5@www.evil.com/x", "links"),
        ("discord.gg/abc123", "links"),
        ("bob@example.com", "personal-data"),
        ("openai/gpt-5:bob@example.com", "personal-data"),
        ("call 415-555-2671", "personal-data"),
        ("+14155552671", "personal-data"),
        ("model_4155552671", "personal-data"),
        ("AKIAIOSFODNN7EXAMPLE", "secrets"),
        ("mafl_sk_abcdefgh1234", "secrets"),
        ("shit/gpt-5", "profanity"),
        ("shit_model", "profanity"),
    ],
)
def test_a_label_that_is_an_address_a_secret_or_abuse_is_flagged_where_it_stands(
    pipeline: Pipeline, label: str, detector: str
) -> None:
    verdict = pipeline.judge_label(label, unexpected)
    assert verdict.state is State.FLAGGED
    assert detector in {found.detector for found in verdict.findings}
    assert all(0 <= found.start < found.end <= len(label) for found in verdict.findings)


@pytest.mark.rule("A10")
@pytest.mark.parametrize(
    "entry", [entry for entry in FLAGGED if entry["kind"] == "slur"], ids=lambda entry: entry["kind"]
)
def test_a_slur_is_flagged_as_a_part_of_a_label_too(pipeline: Pipeline, entry: dict[str, str]) -> None:
    assert pipeline.judge_label(f"lab/{written(entry)}", unexpected).state is State.FLAGGED


def test_every_allowed_word_is_one_that_the_library_would_have_flagged() -> None:
    from glin_profanity import Filter

    listed = Filter({"languages": ["english"]}).words
    assert set(profanity.ALLOWED) <= listed


# --- the two halves: what is in them, and what the pipeline makes of them ---------------------------


class Everything(Detector):
    """Finds the whole of every text."""

    name = "everything"
    version = "1"

    def judge(self, text: str, context: Context) -> Iterable[Match]:
        yield Match("all", 0, len(text))


@pytest.fixture(scope="module")
def figures(pipeline: Pipeline) -> dict[str, Figures]:
    return {half: corpus.measure(pipeline, half) for half in HALVES}


@pytest.fixture(scope="module")
def apart(pipeline: Pipeline) -> dict[tuple[str, str], Figures]:
    """Of what is counted apart: by whoever wrote the rules, and by others who were tuned on."""
    return {(by, half): corpus.measure(pipeline, half, by=by) for by in ("own", "others") for half in HALVES}


def test_the_corpus_is_large_enough_and_each_half_has_its_part_of_every_kind() -> None:
    halves = {half: corpus.read(half) for half in HALVES}
    both = [entry for entries in halves.values() for entry in entries]
    assert len({entry.text for entry in both}) == len(both)
    assert sum(entry.ordinary for entry in both) >= 450
    assert sum(not entry.ordinary for entry in both) >= 240
    for half, entries in halves.items():
        assert sum(entry.ordinary for entry in entries) >= 200, half
        kinds = Counter(entry.kind for entry in entries if not entry.ordinary)
        assert min(kinds[kind] for kind in DETECTORS) >= 12, (half, kinds)


def test_no_word_of_the_coded_list_is_written_out_in_the_corpus() -> None:
    words = codecs.decode((HERE / "slurs.rot13").read_text(), "rot13").splitlines()
    assert len(words) >= 20
    written = re.compile("|".join(rf"\b{word}s?\b" for word in words), re.I)
    assert written.search(f"two {words[0]}s")
    files = [file for file in HERE.rglob("*") if file.is_file() and file.name != "slurs.rot13"]
    found = {file.name for file in files if written.search(file.read_text(encoding="utf-8"))}
    assert found == set()


@pytest.mark.rule("M4")
@pytest.mark.parametrize("half", HALVES)
def test_at_most_one_in_a_hundred_ordinary_sentences_is_flagged(figures: dict[str, Figures], half: str) -> None:
    # One number alone: pytest prints what stands in a failing assertion, and whoever reads it may be tuning.
    rate = figures[half].false_positive_rate
    assert rate <= 0.01


@pytest.mark.rule("M4")
@pytest.mark.parametrize("by", ["own", "others"])
def test_ordinary_sentences_that_are_counted_apart_pass_as_well(apart: dict[tuple[str, str], Figures], by: str) -> None:
    flagged = sum(apart[by, half].flagged for half in HALVES)
    ordinary = sum(apart[by, half].ordinary for half in HALVES)
    assert ordinary > 200
    assert flagged / ordinary <= 0.01


@pytest.mark.rule("M4")
@pytest.mark.parametrize("kind", DETECTORS)
@pytest.mark.parametrize("half", HALVES)
def test_of_each_kind_at_least_nine_in_ten_are_found_or_what_is_held_so_far(
    figures: dict[str, Figures], half: str, kind: str
) -> None:
    recall = figures[half].kinds[kind].recall
    assert recall is not None
    assert recall >= BELOW.get(kind, 0.9)


@pytest.mark.rule("M4")
def test_the_document_tells_the_figures_as_they_are(
    figures: dict[str, Figures], apart: dict[tuple[str, str], Figures]
) -> None:
    document = (HERE.parents[3] / "docs" / "moderation.md").read_text(encoding="utf-8")
    told = document.partition(corpus.BEGINS)[2].partition(corpus.ENDS)[0].strip()
    assert told == corpus.table([*figures.values(), *apart.values()]), (
        "put in what ./run moderation-report --table prints"
    )


@pytest.mark.rule("M4")
def test_the_report_prints_both_halves_and_shows_sentences_of_the_tuning_half_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # A pipeline that is wrong of every ordinary sentence and finds no kind: everything fails.
    monkeypatch.setattr(detectors, "load", lambda: Pipeline((Everything(),)))
    assert corpus.main(["--failures", "--json"]) == 0
    printed = capsys.readouterr().out
    document = json.loads(printed)
    for half in HALVES:
        entries = corpus.read(half)
        assert document[half]["ordinary"]["false_positive_rate"] == 1
        assert {kind["recall"] for kind in document[half]["kinds"].values()} == {0}
        assert document[half]["milliseconds_per_lineup"]["median"] > 0
        texts = {entry.text for entry in entries if entry.ordinary and not entry.by}
        shown = {failure["text"] for failure in document["failures"] if "ordinary" in failure}
        assert shown & texts == (texts if half == TUNING else set())
    assert sum("missed" in failure for failure in document["failures"]) == sum(
        not entry.ordinary and not entry.by for entry in corpus.read(TUNING)
    )
    assert corpus.main(["--failures"]) == 0
    told = capsys.readouterr().out
    assert "false-positive rate 100.00%" in told
    for entry in corpus.read(HELD_OUT):
        if len(entry.text) > 20:  # A word such as `volume` is part of other sentences.
            assert json.dumps(entry.text)[1:-1] not in told


def test_reading_the_corpus_says_where_a_text_belongs(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    here = tmp_path_factory.mktemp("corpus")
    (here / TUNING).mkdir()
    (here / TUNING / "flagged.jsonl").write_text("")
    monkeypatch.setattr(corpus, "HERE", here)
    ordinary = here / TUNING / "ordinary.jsonl"
    # SHA-256 of `abc` begins with the bits 1011, that of `a` with 1100, that of `b` with 0011 (FIPS 180-4).
    ordinary.write_text('{"kind": "letters", "text": "b"}\n')
    assert [entry.text for entry in corpus.read(TUNING)] == ["b"]
    for line, complaint in (
        ('{"kind": "letters", "text": "abc"}', "line 2: by its hash it belongs to held_out/ordinary.jsonl"),
        ('{"kind": "letters", "text": "b"}', "line 2: stands in tuning/ordinary.jsonl, line 1 already"),
        ('{"kind": "letters", "text": "b", "rot13": "o"}', "line 2: is no entry"),
        ('{"text": "b"}', "line 2: is no entry"),
    ):
        ordinary.write_text(f'{{"kind": "letters", "text": "b"}}\n{line}\n')
        with pytest.raises(ValueError, match=complaint):
            corpus.read(TUNING)
    ordinary.write_text("")
    (here / TUNING / "flagged.jsonl").write_text('{"kind": "lettres", "text": "b"}\n')
    with pytest.raises(ValueError, match="'lettres' is none of personal-data"):
        corpus.read(TUNING)
