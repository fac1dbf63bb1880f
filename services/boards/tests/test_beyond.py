"""What stands beside the rows, from the events of a season to the JSON and the pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import pytest
from pydantic import TypeAdapter

from boards import answers
from boards.comparisons import AgentWeek, two_way
from boards.domain import Metric
from boards.draw import interval
from boards.pages import best_in, signed
from common import events as ev
from testkit.fixtures import Start

Tell = Callable[..., Awaitable[Any]]
WEEKS = (1, 2, 3, 4, 5)


async def told_season(service: Any, script: ModuleType, tell: Tell, agents: list[Any]) -> None:
    await tell(service, [pair for agent in agents for pair in agent.told()])
    await tell(service, [pair for number in WEEKS for pair in script.Week(number).told(agents, words=False)])


async def board(service: Any, path: str, shape: Any) -> Any:
    answer = await service.client.get(path)
    assert answer.status_code == 200, answer.text
    TypeAdapter(shape).validate_json(answer.content, strict=True)
    return answer.json()


def cohort(script: ModuleType) -> list[Any]:
    return [
        script.Agent("c-1", "openai/gpt-5", marks=script.COHORT, skill=15_000),
        script.Agent("c-2", "anthropic/claude", marks=script.COHORT, skill=14_000),
        script.Agent("c-3", "google/gemini", marks=script.COHORT, skill=9_000),
    ]


@pytest.mark.rule("B6", "B2", "B9")
async def test_every_two_models_of_the_cohort_are_compared_over_the_weeks_that_both_played(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    agents = cohort(script)
    async with start("boards") as service:
        await told_season(service, script, tell, agents)
        found = await board(service, "/api/v1/boards/cohort/differences", answers.Differences)
        assert found["rows"] == ["cohort:openai/gpt-5", "cohort:anthropic/claude", "cohort:google/gemini"]
        pairs = {(one["one"], one["other"]): one for one in found["differences"]}
        assert set(pairs) == {
            ("cohort:openai/gpt-5", "cohort:anthropic/claude"),
            ("cohort:openai/gpt-5", "cohort:google/gemini"),
            ("cohort:anthropic/claude", "cohort:google/gemini"),
        }
        # Anybody can draw it again from the two agents' weekly points.
        ahead = pairs["cohort:openai/gpt-5", "cohort:anthropic/claude"]
        weekly = [script.Week(number).points(agents[1]) - script.Week(number).points(agents[0]) for number in WEEKS]
        again = interval("pair:cohort:anthropic/claude|cohort:openai/gpt-5", weekly, [1] * 5)
        assert again.mean is not None
        assert again.low is not None
        assert again.high is not None
        assert ahead["label"] == "pair:cohort:anthropic/claude|cohort:openai/gpt-5"
        assert (ahead["mean"], ahead["low"], ahead["high"]) == (-again.mean, -again.high, -again.low)
        assert pairs["cohort:openai/gpt-5", "cohort:google/gemini"]["apart"]
        page = await service.client.get("/models", headers={"accept": "text/html"})
        assert "Each model against each other, week by week" in page.text
        assert page.text.count("<strong>apart</strong>") >= 2


@pytest.mark.rule("B6")
async def test_a_board_says_how_far_behind_each_row_is_and_how_often_it_is_best(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    agents = cohort(script)
    async with start("boards") as service:
        await told_season(service, script, tell, agents)
        models = await board(service, "/api/v1/boards/models", answers.ModelBoard)
        people = await board(service, "/api/v1/boards/agents", answers.AgentBoard)
        for rows in (models["rows"], models["cohort"]["rows"], people["rows"]):
            assert sum(row["best"] for row in rows) == models["resamples"] == 2000
            assert rows[0]["difference"] is None
            assert all(row["difference"]["other"] == rows[0]["label"] for row in rows[1:])
            assert all(row["difference"]["mean"] == pytest.approx(row["mean"] - rows[0]["mean"]) for row in rows[1:])
        assert "two_way" not in people["rows"][0]
        share = await board(service, "/api/v1/boards/models?metric=share", answers.ModelBoard)
        assert share["rows"][1]["difference"]["mean"] != models["rows"][1]["difference"]["mean"]


@pytest.mark.rule("B6", "B1", "A4")
async def test_a_row_says_how_many_agents_and_people_stand_behind_it_and_what_the_busiest_is_worth(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    """Two agents of one person, one of another, one unclaimed; all on one model, written in two ways."""
    agents = [
        script.Agent("ann-1", "openai/gpt-5", skill=15_000),
        script.Agent("ann-2", "GPT-5", skill=9_000),
        script.Agent("bob", "openai/gpt-5", skill=11_000),
        script.Agent("nobody", "openai/gpt-5", claimed=False, skill=10_000),
    ]
    owners = {"ann-1": "ann", "ann-2": "ann", "bob": "bob"}
    async with start("boards") as service:
        await told_season(service, script, tell, agents)
        for agent in agents[:3]:
            owner = uuid5(NAMESPACE_URL, owners[agent.name])
            await tell(service, [(agent.state(ev.AgentClaimed, owner_id=owner), 2)])
        mapped = ev.ModelMapped(label="GPT-5", canonical="openai/gpt-5", by="operator")
        await tell(service, [(mapped, 1)])
        # One agent plays a week more than the others.
        extra = script.Week(6)
        await tell(service, extra.told(agents[:1], words=False))
        answer = await service.client.get("/api/v1/boards/models")
        (row,) = answer.json()["rows"]
        behind = row["behind"]
        assert (behind["agents"], behind["owners"], behind["unclaimed"]) == (4, 2, 1)
        assert (behind["lineups"], behind["largest"]) == (21, 6)
        others = [script.Week(number).points(agent) for number in WEEKS for agent in agents[1:]]
        assert behind["without"] == pytest.approx(sum(others) / 15)
        assert behind["shift"] == pytest.approx(sum(others) / 15 - row["mean"])
        parts = [
            AgentWeek(agent.name, script.Week(number).contest, script.Week(number).points(agent), 1)
            for number in WEEKS
            for agent in agents
        ]
        parts.append(AgentWeek("ann-1", extra.contest, extra.points(agents[0]), 1))
        expected = two_way("model:openai/gpt-5", parts)
        assert (row["two_way"]["low"], row["two_way"]["high"]) == (expected.low, expected.high)
        assert row["two_way"]["mean"] == row["mean"]
        for secret in ("ann", "bob", "nobody", *(str(uuid5(NAMESPACE_URL, owner)) for owner in ("ann", "bob"))):
            assert secret not in answer.text
        # Released, the agent has nobody behind it that is known.
        await tell(service, [(agents[2].state(ev.AgentReleased, claimed=False), 3)])
        (row,) = (await board(service, "/api/v1/boards/models", answers.ModelBoard))["rows"]
        assert (row["behind"]["owners"], row["behind"]["unclaimed"]) == (1, 2)


@pytest.mark.rule("B7", "S4")
async def test_a_correction_moves_what_stands_beside_the_rows_with_them(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    agents = [
        script.Agent("ann", "m", skill=12_000),
        script.Agent("bob", "m", skill=9_000),
        script.Agent("cid", "n", skill=8_000),
    ]
    async with start("boards") as service:
        await told_season(service, script, tell, agents)
        before = await board(service, "/api/v1/boards/models", answers.ModelBoard)
        await tell(service, [(event, 2) for event in script.Week(3).results(agents, version=2)])
        after = await board(service, "/api/v1/boards/models", answers.ModelBoard)
        assert after["rows"][0]["two_way"]["mean"] == after["rows"][0]["mean"] != before["rows"][0]["mean"]
        rebuilt = (await service.operator.post("/operator/api/v1/boards/rebuild")).json()
        assert not rebuilt["changed"]
        assert await board(service, "/api/v1/boards/models", answers.ModelBoard) == after


@pytest.mark.rule("B6")
async def test_a_board_of_nobody_and_one_of_a_single_row_have_nothing_to_compare(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    async with start("boards") as service:
        empty = await board(service, "/api/v1/boards/cohort/differences", answers.Differences)
        assert (empty["rows"], empty["differences"]) == ([], [])
        await told_season(service, script, tell, [script.Agent("alone", "m")])
        (row,) = (await board(service, "/api/v1/boards/models", answers.ModelBoard))["rows"]
        assert (row["difference"], row["best"], row["two_way"]["mean"]) == (None, 2000, None)
        assert (row["behind"]["agents"], row["behind"]["without"]) == (1, None)
        page = await service.client.get("/models", headers={"accept": "text/html"})
        assert "Beyond the interval" not in page.text


@pytest.mark.rule("B6")
@pytest.mark.parametrize(
    ("value", "metric", "text"),
    [
        (312.4, Metric.POINTS, "+3.12"),
        (-312.4, Metric.POINTS, "−3.12"),
        (0.2, Metric.POINTS, "0.00"),
        (-12_345.0, Metric.SHARE, "−1.23%"),
        (None, Metric.POINTS, "–"),
    ],
)
def test_a_difference_always_has_its_sign(value: float | None, metric: Metric, text: str) -> None:
    assert signed(value, metric) == text


@pytest.mark.rule("B6")
@pytest.mark.parametrize(
    ("resamples", "text"),
    [(0, "0%"), (1, "<1%"), (20, "1%"), (1000, "50%"), (1985, ">99%"), (2000, "100%"), (None, "–")],
)
def test_nothing_is_rounded_to_certainty(resamples: int | None, text: str) -> None:
    assert best_in(resamples) == text
