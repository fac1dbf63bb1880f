"""docs/scoring.md against the rulesets: every worked example is computed, every policy is one that there is."""

from __future__ import annotations

import re

import pytest

from common.events import Policies
from common.points import as_points
from contests import rulesets
from settlement import domain
from testkit.contracts import ROOT

SCORINGS = {ruleset.scoring.scoring: ruleset.scoring for ruleset in map(rulesets.load, rulesets.names())}
"""The scoring versions; several rulesets may have the same one."""
PAGE = (ROOT / "docs" / "scoring.md").read_text()


def tables() -> list[list[list[str]]]:
    """The tables of the page, each a list of rows, the header first."""
    found: list[list[list[str]]] = [[]]
    for line in PAGE.splitlines():
        if line.startswith("|"):
            found[-1].append([cell.strip() for cell in line.strip("|").split("|")])
        elif found[-1]:
            found.append([])
    return [[table[0], *table[2:]] for table in found if table]


def table_with(*columns: str) -> list[list[str]]:
    (table,) = (table for table in tables() if set(columns) <= set(table[0]))
    return table


@pytest.mark.rule("S1")
def test_every_worked_example_of_the_scoring_page_is_what_the_scoring_gives() -> None:
    header, *examples = table_with("statistics")
    names = [name.strip("`") for name in header[2:]]
    assert set(names) == set(SCORINGS)
    assert len(examples) >= 15
    for what, statistics, *points in examples:
        line = {name: int(value) for name, value in re.findall(r"(\w+) (-?\d+)", statistics)}
        assert line.keys() <= set(domain.STATISTICS), what
        computed = [as_points(domain.points(line, SCORINGS[name])) for name in names]
        assert computed == points, what


@pytest.mark.rule("S1")
def test_the_examples_touch_every_statistic_bonus_and_step_that_is_worth_something() -> None:
    _, *examples = table_with("statistics")
    lines = [
        {name: int(value) for name, value in re.findall(r"(\w+) (-?\d+)", statistics)} for _, statistics, *_ in examples
    ]
    for scoring in SCORINGS.values():
        domain.check_scoring(scoring)
        unseen = [name for name in scoring.per_unit if not any(line.get(name) for line in lines)]
        assert set(unseen) <= {"rush_2pt", "rec_2pt"}, "these two are as pass_2pt"
        for bonus in scoring.bonuses:
            values = {line[bonus.statistic] for line in lines if bonus.statistic in line}
            assert max(values) >= bonus.at_least > min(values)


@pytest.mark.rule("C3", "S3")
def test_the_page_states_the_policies_and_their_usual_values() -> None:
    _, *rows = table_with("policy", "usual")
    stated = {row[0].strip("`"): row[2].strip("`") for row in rows}
    assert stated == Policies().model_dump()
    for name in rulesets.names():
        assert rulesets.load(name).policies == Policies()


@pytest.mark.rule("C3")
def test_the_page_states_cap_and_catch_of_each_ruleset() -> None:
    _, *rows = table_with("ruleset", "cap")
    assert [row[0].split("`")[1] for row in rows] == list(rulesets.names())
    for name, cap, catch, costs, *_ in rows:
        ruleset = rulesets.load(re.findall(r"`(.+?)`", name)[0])
        per_unit = ruleset.scoring.per_unit
        assert ruleset.cap == int(cap.replace(",", ""))
        assert per_unit["rec"] == {"1": 100, "½": 50}[catch]
        assert [per_unit["pass_int"], per_unit["fum_lost"]] == [-100 * int(cost) for cost in re.findall(r"\d", costs)]
