"""The pipeline's promises, and what each library that it rests on really does."""

import json
import socket
import time
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.events import State
from moderation import detectors
from moderation.pipeline import Context, Detector, Match, Pipeline, normalise
from moderation.tools import check_lines


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return detectors.load()


def unexpected(detector: Detector, error: Exception) -> None:
    raise error


def rules(pipeline: Pipeline, text: str) -> set[str]:
    verdict = pipeline.judge(text, Context(), unexpected)
    return {f"{found.detector}:{found.rule}" for found in verdict.findings}


class Broken(Detector):
    name = "broken"
    version = "1"
    raw = True

    def judge(self, text: str, context: Context) -> Iterable[Match]:
        raise RuntimeError(f"cannot judge {text}")


class Everything(Detector):
    name = "everything"
    version = "7"

    def judge(self, text: str, context: Context) -> Iterable[Match]:
        yield Match("all", 0, len(text))


@pytest.mark.rule("M4")
def test_a_detector_that_raises_makes_the_text_unchecked_and_never_cleared(pipeline: Pipeline) -> None:
    failed: list[str] = []
    broken = Pipeline((*pipeline.detectors, Broken()))
    verdict = broken.judge("Smash spot.", Context(), lambda detector, error: failed.append(detector.name))
    assert verdict.state is State.UNCHECKED
    assert failed == ["broken"]


@pytest.mark.rule("M4")
def test_a_finding_flags_even_where_another_detector_raises() -> None:
    verdict = Pipeline((Broken(), Everything())).judge("abc", Context(), lambda detector, error: None)
    assert verdict.state is State.FLAGGED
    assert [(found.detector, found.version, found.rule, found.start, found.end) for found in verdict.findings] == [
        ("everything", "7", "all", 0, 3)
    ]


@pytest.mark.rule("M4")
@given(st.text(max_size=30), st.data())
def test_a_span_of_the_normal_form_leads_back_to_the_text_as_written(text: str, data: st.DataObject) -> None:
    normal = normalise(text)
    start = data.draw(st.integers(0, len(normal.text)))
    end = data.draw(st.integers(start, len(normal.text)))
    first, last = normal.written(start, end)
    assert 0 <= first <= last <= len(text)
    if start < end:
        assert normal.text[start:end] in normalise(text[first:last]).text


def test_a_word_in_other_letters_or_with_nothing_in_between_is_read_as_it_looks() -> None:
    assert normalise("ｗｗｗ．ｅ\u200bｖｉｌ．ｃｏｍ").text == "www.evil.com"
    assert normalise("ｅ\u200bｖ").written(0, 2) == (0, 3)


@pytest.mark.rule("M4")
@pytest.mark.parametrize(
    "text",
    [
        "300-yard bonus",
        "5,400 at $6,200",
        "2017-W04",
        "24-17",
        "31-28, 17-10 and 24-17",
        "00-0033873",
        "GSIS 00-0029263, 00-0031280 and 00-0033873",
        "3-10-2017 to 4-12-2016",
        "over 250-300 1500",
        "100 200 3000",
        "$7,900 $7,800 $7,700",
        "7900 7800 7700",
        "124136-55043",
        "dk-11191363",
        "10:30:45",
        "a 4-3-3 front",
        "1234567890123456 simulations",
        "19 for 27, 267, 2-0",
        "2,345,678,901 lineups",
        "0.6502530000",
        "std::vector of routes",
    ],
)
def test_numbers_that_football_is_full_of_are_nobodys_data(pipeline: Pipeline, text: str) -> None:
    assert rules(pipeline, text) == set()


@pytest.mark.rule("M4")
@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("a.b@example.co.uk", "email"),
        ("(212) 555-0187", "phone"),
        ("212.555.0187", "phone"),
        ("+1 650 253 0000", "phone"),
        ("6502530000", "phone"),
        ("123-45-6789", "social-security-number"),
        ("ssn: 536 90 4399", "social-security-number"),
        ("5500 0000 0000 0004", "credit-card"),
        ("DE89370400440532013000", "iban"),
        ("2001:db8::8a2e:370:7334", "ip-address"),
        ("198.51.100.4", "ip-address"),
        ("bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq", "crypto-address"),
        ("00:1B:44:11:3A:B7", "mac-address"),
    ],
)
def test_personal_data_is_found_with_and_without_words_around_it(pipeline: Pipeline, text: str, rule: str) -> None:
    assert f"personal-data:{rule}" in rules(pipeline, text)
    assert f"personal-data:{rule}" in rules(pipeline, f"Hey, {text} is it.")


@pytest.mark.rule("M4")
@pytest.mark.parametrize(
    "text",
    [
        "NFL.com",
        "per ESPN.com, he plays",
        "Pro-Football-Reference.com says so.",
        "nextgenstats.nfl.com has it",
        "vs.the Rams",
        "He runs.It works.In space.",
        "no.Game script",
        "St.Louis and A.J.Green",
        "yards/target and/or 9/12",
        "e.g.this",
        "U.S.A. fans",
        "TG:9 data:shows",
        "5.5.yards",
        "top.Top tier",
    ],
)
def test_names_of_sources_and_missing_spaces_are_no_links(pipeline: Pipeline, text: str) -> None:
    assert rules(pipeline, text) == set()


@pytest.mark.rule("M4")
@pytest.mark.parametrize(
    "text",
    [
        "http://a.b",
        "HTTPS://EXAMPLE.COM",
        "www.x.com",
        "nfl.com/x",
        "espn.com.evil.io",
        "bit.ly/3xyz",
        "evil(.)com",
        "evil [dot] com",
        "evil(dot)com",
        "evil dot com",
        "пример.com",
        "data:text/html,hi",
        "mailto:x",
        "ftp://host/file",
        "mypicks.io:8080",
    ],
)
def test_links_are_found_however_they_are_written(pipeline: Pipeline, text: str) -> None:
    assert any(rule.startswith("links:") for rule in rules(pipeline, text))


@pytest.mark.rule("M4")
def test_joiners_pass_where_scripts_and_emoji_need_them(pipeline: Pipeline) -> None:
    assert rules(pipeline, "👨‍👩‍👧 ❤️ می‌خواهم क्‍ष 🏃🏽‍♂️") == set()
    assert rules(pipeline, "touch\u200ddown") == {"invisible:zero-width"}
    assert rules(pipeline, "\u200dx") == {"invisible:zero-width"}


@pytest.mark.rule("M4")
def test_nothing_reaches_for_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **options: object) -> None:
        raise AssertionError("the network was asked for")

    for name in ("getaddrinfo", "create_connection", "gethostbyname"):
        monkeypatch.setattr(socket, name, refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    fresh = detectors.load()
    for text in ("a@example.com", "see nfl.com and evil.example.io/x", "https://x.museum", "+44 20 7946 0958"):
        fresh.judge(text, Context(), unexpected)


WORST = [
    "",
    " ",
    "\0",
    "\x00\x01\x02",
    "\ud7ff\ue000\uffff\U0010ffff",
    "\u202e" * 4000,
    "a." * 2000,
    "a-" * 2000,
    "1" * 4000,
    "1-" * 2000,
    "@" * 4000,
    "a@a." * 1000,
    "::" * 2000,
    "(" * 4000,
    "f " * 2000,
    "*" * 4000,
    "a$$" * 1333,
    "eyJ" * 1333,
    "sk-" * 1333,
    "a://" * 1000,
    "+1 " * 1333,
    "555-555-" * 500,
    "ssn " * 1000,
    "&amp;" * 800,
    "a dot " * 666,
    "é" * 4000,
    "🏈" * 4000,
    "ﷺ" * 4000,
    "a\u200b" * 2000,
    "\n" * 4000,
    "x" * 1_000_000,
]


@pytest.mark.rule("M4")
def test_the_worst_texts_are_judged_without_an_error_and_soon(pipeline: Pipeline) -> None:
    started = time.monotonic()
    for text in WORST:
        verdict = pipeline.judge(text, Context(), unexpected)
        assert verdict.state in (State.CLEARED, State.FLAGGED)
        assert all(0 <= found.start < found.end <= len(text) for found in verdict.findings)
    # Nothing here grows without bounds; the limit is far over what a loaded machine takes.
    assert time.monotonic() - started < 60


@pytest.mark.rule("M4")
@given(st.text(max_size=200))
def test_any_text_gets_a_verdict_whose_spans_lie_within_it(text: str) -> None:
    verdict = _LOADED.judge(text, Context(), unexpected)
    assert all(0 <= found.start < found.end <= len(text) for found in verdict.findings)
    assert (verdict.state is State.CLEARED) == (not verdict.findings)


_LOADED = detectors.load()


@pytest.mark.rule("M4")
def test_check_answers_each_line_with_state_detector_rule_and_span() -> None:
    lines = [
        json.dumps({"text": "Smash spot."}),
        "",
        json.dumps({"text": "See https://evil.example now", "id": 3}),
        "not json",
        json.dumps(["text"]),
        json.dumps({"text": 7}),
        json.dumps({"words": "x"}),
        "[" * 100_000,
        json.dumps({"text": ""}),
    ]
    answers = list(check_lines(lines))
    assert answers[0] == {"state": "cleared", "findings": []}
    assert answers[1] == {
        "state": "flagged",
        "findings": [{"detector": "links", "rule": "url", "span": [4, 24]}],
    }
    assert [answer["state"] for answer in answers[2:]] == ["unchecked"] * 5 + ["cleared"]
    assert all("line" in answer["error"] for answer in answers[2:7])
    assert "line 4" in answers[2]["error"]


def test_check_takes_one_line_at_a_time() -> None:
    taken = []

    def lines() -> Iterable[str]:
        for number in range(3):
            taken.append(number)
            yield json.dumps({"text": f"line {number}"})

    answers = check_lines(lines())
    assert next(iter(answers))["state"] == "cleared"
    assert taken == [0]
