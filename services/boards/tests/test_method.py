"""The method as it is written is the method as it runs."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from boards.coverage import TRIALS, committed
from boards.method import METHOD
from testkit.fixtures import Start

Tell = Callable[..., Awaitable[Any]]

DOCUMENT = Path(__file__).parents[3] / "docs" / "method.md"
VECTORS = json.loads(files("boards").joinpath("interval_draw.json").read_text("utf-8"))


def words_table():
    rows = ["| label | 1st | 2nd | 3rd | 4th |", "|---|---|---|---|---|"]
    for label, words in VECTORS["first_words"].items():
        rows.append(f"| `{label}` | {' | '.join(words)} |")
    return "\n".join(rows)


def cases_table():
    rows = ["| label | sums | counts | mean | low | high |", "|---|---|---|---|---|---|"]
    for case in VECTORS["cases"]:
        ends = " | ".join("none" if case[end] is None else repr(case[end]) for end in ("mean", "low", "high"))
        sums, counts = (", ".join(map(str, case[key])) for key in ("sums", "counts"))
        rows.append(f"| `{case['label']}` | {sums} | {counts} | {ends} |")
    return "\n".join(rows)


def coverage_table():
    rows = ["| settled weeks | normal | long-tailed |", "|---|---|---|"]
    rows += [f"| {entry.weeks} | {entry.normal:.1%} | {entry.skewed:.1%} |" for entry in committed()]
    return "\n".join(rows)


@pytest.mark.rule("B4", "B5")
@pytest.mark.parametrize(
    ("name", "table"), [("words", words_table), ("cases", cases_table), ("coverage", coverage_table)]
)
def test_the_document_prints_the_vectors_and_the_coverage_as_they_are(name: str, table: Any) -> None:
    text = DOCUMENT.read_text("utf-8")
    printed = text.split(f"<!-- {name} -->")[1].split(f"<!-- /{name} -->")[0].strip()
    assert printed == table()


@pytest.mark.rule("B10")
def test_the_method_has_a_version_and_a_hash_over_its_statement() -> None:
    assert METHOD.version == "1"
    assert METHOD.hash == "e8bdbd87f82f9b9d1ac755fd68a54a90a1cc9767d71a7c4b64867f72a3ae55f5", (
        "a changed statement is a new version"
    )


@pytest.mark.rule("B4", "B5", "B8", "B10")
async def test_the_method_page_prints_vectors_coverage_version_and_hash(start: Start) -> None:
    async with start("boards") as service:
        page = (await service.client.get("/method")).text
        assert 'id="check"' in page, "the pages of contests link there"
        for command in ("./run mafl contest download", "./run mafl verify"):
            assert command in page
    for label, words in VECTORS["first_words"].items():
        assert label in page
        assert all(word in page for word in words)
    for case in VECTORS["cases"]:
        assert str(case["low"] if case["low"] is not None else "none") in page
    for entry in committed():
        assert f"{entry.normal * 100:.1f}%" in page
    assert f"{TRIALS:,} simulated rows" in page
    assert METHOD.hash in page
    assert 'href="/skill.md"' in page
    assert "about half of the time" in page
    explained = (
        "no interval yet",
        "small sample",
        "overlap #1",
        "HOUSE",
        "cohort",
        "reference",
        "observational",
        "No winner",
    )
    assert [word for word in explained if word not in page] == []


@pytest.mark.rule("B10", "C3")
async def test_the_rules_page_says_why_there_are_no_prizes_and_shows_the_contests_own_rules(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    async with start("boards") as service:
        await tell(service, [(script.Week(1).opened(), 1)])
        page = (await service.client.get("/rules")).text
    assert "No prizes" in page
    for expected in (
        "50,000",
        "FLEX",
        "RB, WR, TE",
        "test-1",
        "Passing yards, 300 or more",
        "points allowed, at most 0",
    ):
        assert expected in page
