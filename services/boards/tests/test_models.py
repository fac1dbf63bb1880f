"""Models' labels: several spellings are one row, a remap moves past results, and a label may be withheld."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any

import pytest

from boards.domain import Labels, model_shown
from common import events as ev
from testkit.fixtures import Start

Tell = Callable[..., Awaitable[Any]]

CANONICAL = "openai/gpt-5"
SPELLINGS = ("GPT-5", "gpt-5", CANONICAL)


def mapped(label, canonical=CANONICAL, by="catalogue"):
    return ev.ModelMapped(label=label, canonical=canonical, by=by)


def played(script, models, numbers=(1, 2)):
    """Agents, one a model, with their judgements, and their weeks."""
    agents = [script.Agent(f"agent-{number}", model) for number, model in enumerate(models)]
    told = [pair for agent in agents for pair in agent.told()]
    return agents, told + [pair for number in numbers for pair in script.Week(number).told(agents, words=False)]


async def get(service, path, status=200):
    answer = await service.client.get(path)
    assert answer.status_code == status, answer.text
    return answer.json()


async def digest_of(service):
    return (await service.operator.get("/operator/api/v1/boards/digest")).json()["digest"]


@pytest.mark.rule("A7")
async def test_three_spellings_are_one_row_on_every_board_and_page(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    agents, told = played(script, SPELLINGS)
    week = script.Week(1)
    async with start("boards") as service:
        await tell(service, told)
        assert len((await get(service, "/api/v1/boards/models"))["rows"]) == 3, "nothing is guessed"
        await tell(service, [(mapped(label), 1) for label in SPELLINGS])
        (row,) = (await get(service, "/api/v1/boards/models"))["rows"]
        assert (row["label"], row["model"]) == ("model:openai/gpt-5", CANONICAL)
        assert row["counts"] == [3, 3]
        assert row["sums"][0] == sum(week.points(agent) for agent in agents)
        assert {row["model"] for row in (await get(service, "/api/v1/boards/agents"))["rows"]} == {CANONICAL}
        assert (await get(service, "/api/v1/agents/agent-0"))["agent"]["models"] == [CANONICAL]
        for part in ("lineups", "results"):
            lineups = (await get(service, f"/api/v1/contests/2017-W01/{part}"))["lineups"]
            assert {lineup["model"] for lineup in lineups} == {CANONICAL}
        assert [week["lineups"] for week in (await get(service, f"/api/v1/models/{CANONICAL}"))["weeks"]] == [3, 3]
        assert (await get(service, "/api/v1/models/GPT-5"))["model"] == CANONICAL
        moved = await service.client.get("/models/GPT-5")
        assert (moved.status_code, moved.headers["location"]) == (302, "/models/openai/gpt-5")
        for path in ("/", "/models", "/agents", "/agents/agent-0", f"/models/{CANONICAL}", "/contests/2017-W01"):
            page = (await service.client.get(path)).text
            assert CANONICAL in page, path
            assert "GPT-5" not in page, path


@pytest.mark.rule("A7", "A3", "B7")
async def test_a_remap_moves_past_results_and_rebuilt_boards_are_the_same(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    _, told = played(script, ("mystery", CANONICAL))
    async with start("boards") as service:
        await tell(service, [*told, (mapped(CANONICAL), 1)])
        before = await digest_of(service)
        rows = {row["model"]: row for row in (await get(service, "/api/v1/boards/models"))["rows"]}
        assert set(rows) == {"mystery", CANONICAL}
        await tell(service, [(mapped("mystery", by="operator"), 1)])
        (row,) = (await get(service, "/api/v1/boards/models"))["rows"]
        assert row["sums"] == [sum(both) for both in zip(*(row["sums"] for row in rows.values()), strict=True)]
        together = await digest_of(service)
        assert together != before
        answer = (await service.operator.post("/operator/api/v1/boards/rebuild")).json()
        assert (answer["digest"], answer["changed"]) == (together, False)
        await tell(service, [(mapped("mystery", "mystery", by="operator"), 2)])
        assert await digest_of(service) == before, "a remap can be taken back"


@pytest.mark.rule("A7", "B7")
async def test_the_newest_mapping_counts_in_whatever_order_mappings_and_results_come(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    _, told = played(script, SPELLINGS[:2])
    told += [(mapped(label), 1) for label in SPELLINGS[:2]]
    told += [(mapped("GPT-5", "openai/gpt-5-mini"), 2), (mapped("GPT-5", "openai/gpt-5-nano"), 3)]
    digests = set()
    for seed in range(3):
        random.Random(seed).shuffle(told)
        async with start("boards") as service:
            await tell(service, told)
            rows = (await get(service, "/api/v1/boards/models"))["rows"]
            assert {row["model"] for row in rows} == {CANONICAL, "openai/gpt-5-nano"}
            digests.add(await digest_of(service))
    assert len(digests) == 1


@pytest.mark.rule("A7", "A10")
async def test_a_canonical_label_is_judged_too(start: Start, script: ModuleType, tell: Tell) -> None:
    _, told = played(script, ("spelling",))
    async with start("boards") as service:
        await tell(service, [*told, (mapped("spelling", "call-me", by="operator"), 1)])

        async def shown():
            (row,) = (await get(service, "/api/v1/boards/models"))["rows"]
            return row["model"]

        neutral = model_shown("call-me", cleared=False)
        assert await shown() == neutral
        assert "call-me" not in (await service.client.get("/models")).text
        await tell(service, [(ev.ModelJudged(model="call-me", state=ev.State.CLEARED), 1)])
        assert await shown() == "call-me"
        await tell(service, [(ev.ModelJudged(model="call-me", state=ev.State.FLAGGED), 2)])
        assert await shown() == neutral
        await get(service, "/api/v1/models/call-me", 404)


@pytest.mark.rule("A7")
def test_labels_lead_one_step_and_the_catalogues_own_need_no_verdict() -> None:
    labels = Labels(
        canonical={"a": "b", "b": "c", "c": "a"},
        cleared=frozenset({"c", "free"}),
        flagged=frozenset({"a"}),
        catalogued=frozenset({"a", "b"}),
    )
    assert labels.shown("a", reference=False) == "b"
    assert labels.shown("b", reference=False) == "c"
    assert labels.shown("c", reference=False) == model_shown("a", cleared=False), "flagged, though of the catalogue"
    assert labels.shown("free", reference=False) == "free"
    assert labels.shown("new", reference=False) == model_shown("new", cleared=False)


@pytest.mark.rule("B8", "A8")
async def test_who_states_the_label_of_a_reference_strategy_does_not_stand_under_it(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    label = "reference/price-greedy"
    house = script.Agent("greedy", label, marks=script.REFERENCE)
    agents = [house, script.Agent("poser", label), script.Agent("other", "Reference/Random-Legal", claimed=False)]
    week = script.Week(1)
    async with start("boards") as service:
        await tell(service, [pair for agent in agents for pair in agent.told()])
        for number in (1, 2):
            await tell(service, script.Week(number).told(agents, words=False))
        rows = {row["model"]: row for row in (await get(service, "/api/v1/boards/models"))["rows"]}
        withheld = model_shown(label, cleared=False)
        assert set(rows) == {label, withheld, model_shown("Reference/Random-Legal", cleared=False)}
        assert rows[label]["sums"][0] == week.points(house)
        assert "reference" in rows[label]["marks"]
        assert "reference" not in rows[withheld]["marks"]
        assert [week["lineups"] for week in (await get(service, f"/api/v1/models/{label}"))["weeks"]] == [1, 1]
        assert [week["lineups"] for week in (await get(service, f"/api/v1/models/{withheld}"))["weeks"]] == [1, 1]
        lineups = (await get(service, "/api/v1/contests/2017-W01/lineups"))["lineups"]
        assert {lineup["agent"]["name"]: lineup["model"] for lineup in lineups}["poser"] == withheld
        assert (await get(service, "/api/v1/agents/poser"))["agent"]["model"] == withheld
        board = (await get(service, "/api/v1/boards/agents"))["rows"]
        assert {row["name"]: row["model"] for row in board} == {"greedy": label, "poser": withheld}
        before = (await service.operator.get("/operator/api/v1/boards/digest")).json()["digest"]
        assert (await service.operator.post("/operator/api/v1/boards/rebuild")).json()["digest"] == before
