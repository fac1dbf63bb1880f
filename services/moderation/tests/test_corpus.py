"""Ordinary football talk passes; what must be flagged is flagged by the detector of its kind."""

import codecs
import csv
import gzip
import json
from pathlib import Path

import pytest

from common.events import State
from moderation import detectors
from moderation.detectors import profanity
from moderation.pipeline import Context, Detector, Pipeline

HERE = Path(__file__).parent / "corpus"
DATA = Path(__file__).parents[3] / "data"
ORDINARY = (HERE / "ordinary.txt").read_text().splitlines()
FLAGGED = [json.loads(line) for line in (HERE / "flagged.jsonl").read_text().splitlines()]
DETECTOR = {"slur": "profanity"}


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


def pool_names() -> set[str]:
    names = set()
    for season in (2017, 2020):
        with gzip.open(DATA / f"pool_{season}_dk.csv.gz", "rt") as file:
            names |= {row["name"] for row in csv.DictReader(file)}
    return names


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
