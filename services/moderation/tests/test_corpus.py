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


def test_every_allowed_word_is_one_that_the_library_would_have_flagged() -> None:
    from glin_profanity import Filter

    listed = Filter({"languages": ["english"]}).words
    assert set(profanity.ALLOWED) <= listed
