"""The ledger of corrections: every version readable, and what each one changed and moved."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any

import pytest
from pydantic import TypeAdapter
from sqlalchemy import update

from boards import answers
from boards.domain import handle
from boards.store import SETTLEMENTS
from common import events as ev
from common.settled import digest_of
from testkit.fixtures import Start

Tell = Callable[..., Awaitable[Any]]

PLAYER = "QB-0"


def corrected(week: Any, agents: list[Any], version: int, gains: dict[str, int]) -> list[ev.Event]:
    """The week's first results again as another version, in which some agents' lineups gained points."""
    *results, whole = week.results(agents)
    best = whole.optimal.points
    told = []
    for agent, result in zip(agents, results, strict=True):
        points = result.points + gains.get(agent.name, 0)
        told.append(
            result.model_copy(
                update={
                    "settlement": version,
                    "points": points,
                    "share": points * 10**6 // best,
                    "regret": best - points,
                }
            )
        )
    was = week.player_points()[PLAYER]
    change = ev.CorrectedPlayer(
        player_id=PLAYER,
        before=was,
        after=was + 500,
        statistics=(
            ev.CorrectedStatistic(statistic="pass_yds", before=212, after=225),
            ev.CorrectedStatistic(statistic="dst_points_allowed", before=None, after=3),
        ),
    )
    whole = whole.model_copy(
        update={
            "settlement": version,
            "reason": "a pass of 13 yards was <b>missed</b>",
            "corrected": (change,),
            "players": tuple(
                one.model_copy(update={"points": one.points + 500}) if one.player_id == PLAYER else one
                for one in whole.players
            ),
        }
    )
    return [*told, whole.model_copy(update={"digest": digest_of(whole, told)})]


async def got(service: Any, path: str, shape: Any) -> Any:
    answer = await service.client.get(path)
    assert answer.status_code == 200, answer.text
    TypeAdapter(shape).validate_json(answer.content, strict=True)
    return answer.json()


@pytest.mark.rule("S4")
async def test_a_correction_is_told_with_its_reason_what_changed_and_all_that_it_moved(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    first = script.Agent("first", "vendor/one", skill=12_000)
    second = script.Agent("second", "vendor/two", skill=12_000)
    hidden = script.Agent("my-own-name", "vendor/two", claimed=False)
    agents = [first, second, hidden]
    week, other = script.Week(1), script.Week(2)
    # Whoever is behind in the season comes to lead it by the correction.
    sums = {agent.name: week.points(agent) + other.points(agent) for agent in (first, second)}
    behind, ahead = sorted((first, second), key=lambda agent: sums[agent.name])
    gain = sums[ahead.name] - sums[behind.name] + 1_000
    async with start("boards") as service:
        await tell(service, [pair for agent in agents for pair in agent.told()])
        await tell(service, week.told(agents) + other.told(agents))
        ledger = await got(service, "/api/v1/corrections", answers.Ledger)
        assert [(one["contest"], one["settlement"], one["moved"]) for one in ledger["versions"]] == [
            ("2017-W02", 1, 0),
            ("2017-W01", 1, 0),
        ]
        assert {one["reason"] for one in ledger["versions"]} == {"games final"}

        events = corrected(week, agents, 2, {behind.name: gain})
        await tell(service, [(event, 2) for event in random.Random(3).sample(events, len(events))])
        ledger = await got(service, "/api/v1/corrections", answers.Ledger)
        assert [(one["contest"], one["settlement"], one["latest_settlement"]) for one in ledger["versions"]] == [
            ("2017-W02", 1, 1),
            ("2017-W01", 2, 2),
            ("2017-W01", 1, 2),
        ]
        found = await got(service, "/api/v1/corrections/2017-W01/2", answers.Correction)
        assert (found["reason"], found["moved"], found["lineups"]) == ("a pass of 13 yards was <b>missed</b>", 1, 3)
        [player] = found["corrected"]
        was = week.player_points()[PLAYER]
        assert (player["name"], player["points"]) == ("QB Player 0", {"before": was, "after": was + 500})
        assert player["statistics"] == [
            {"statistic": "pass_yds", "before": 212, "after": 225},
            {"statistic": "dst_points_allowed", "before": None, "after": 3},
        ]
        moved = {one["agent"]["name"]: one for one in found["lineups_moved"]}
        assert found["lineups_moved"][0]["agent"]["name"] == behind.name, "who moved most comes first"
        points = week.points(behind)
        assert moved[behind.name]["points"] == {"before": points, "after": points + gain}
        assert all(
            one["points"]["before"] == one["points"]["after"] for name, one in moved.items() if name != behind.name
        )
        assert all(one["rank"]["before"] != one["rank"]["after"] for name, one in moved.items() if name != behind.name)
        assert "my-own-name" not in str(found)

        rows = {(row["label"], row["metric"]): row for row in found["rows_moved"]}
        of_agent = rows[f"agent:{behind.name}", "points"]
        assert of_agent["rank"] == {"before": 2, "after": 1}
        assert of_agent["week"] == {"before": points, "after": points + gain}
        assert of_agent["mean"]["after"] == (sums[behind.name] + gain) / 2
        assert rows[f"agent:{ahead.name}", "points"]["rank"] == {"before": 1, "after": 2}
        assert {row["board"] for row in found["rows_moved"]} == {"models", "agents"}
        assert handle(hidden.id) not in {row["name"] for row in found["rows_moved"]}
        # What the ledger says a row has now is what its board says.
        board = (await service.client.get("/api/v1/boards/agents")).json()
        assert {row["label"]: (row["rank"], row["mean"]) for row in board["rows"]} == {
            row["label"]: (row["rank"]["after"], row["mean"]["after"])
            for row in found["rows_moved"]
            if row["board"] == "agents" and row["metric"] == "points"
        }
        first_version = await got(service, "/api/v1/corrections/2017-W01/1", answers.Correction)
        assert (first_version["lineups_moved"], first_version["rows_moved"]) == ([], [])

        page = (await service.client.get("/corrections")).text
        assert "a pass of 13 yards was &lt;b&gt;missed&lt;/b&gt;" in page
        assert "Passing yards: 212" in page
        detail = (await service.client.get("/corrections/2017-W01/2")).text
        assert "not known" in detail
        assert f"agents/{behind.name}" in detail


@pytest.mark.rule("S4", "B7")
async def test_every_version_stays_readable_and_is_so_after_a_rebuild(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    agents = [script.Agent("alice", "m"), script.Agent("bob", "m")]
    week = script.Week(1)
    paths = [f"/api/v1/contests/2017-W01/{view}" for view in ("results", "lineups", "optimal")]
    async with start("boards") as service:
        await tell(service, [pair for agent in agents for pair in agent.told()])
        await tell(service, week.told(agents))
        before = [(await service.client.get(path)).json() for path in paths]
        await tell(service, [(event, 2) for event in corrected(week, agents, 2, {"bob": 300})])

        async def read() -> list[Any]:
            ledger = [(await service.client.get(f"/api/v1/corrections{path}")).json() for path in ("", "/2017-W01/2")]
            old = [(await service.client.get(f"{path}?settlement=1")).json() for path in paths]
            return [*ledger, *old]

        read_first = await read()
        old = read_first[2:]
        assert old[0].pop("latest_settlement") == 2
        assert before[0].pop("latest_settlement") == 1
        assert old == before
        newest = (await service.client.get(paths[0])).json()
        named = (await service.client.get(f"{paths[0]}?settlement=2")).json()
        assert newest == named
        assert (newest["settlement"], newest["latest_settlement"]) == (2, 2)
        page = (await service.client.get("/contests/2017-W01?settlement=1")).text
        assert "no longer counts" in page
        assert "no longer counts" not in (await service.client.get("/contests/2017-W01")).text
        for path in (*paths, "/contests/2017-W01"):
            unknown = await service.client.get(f"{path}?settlement=3", headers={"Accept": "application/json"})
            assert (unknown.status_code, unknown.json()["code"]) == (404, "settlement-unknown"), path
        for path, code in (("2017-W01/3", "settlement-unknown"), ("2017-W09/1", "contest-unknown")):
            missing = await service.client.get(f"/api/v1/corrections/{path}")
            assert (missing.status_code, missing.json()["code"]) == (404, code)
        assert (await service.client.get("/corrections/2017-W01/0")).status_code == 422

        async with service.runtime.database.transaction() as connection:
            await connection.execute(update(SETTLEMENTS).values(proven=False))
        rebuilt = await service.operator.post("/operator/api/v1/boards/rebuild")
        assert rebuilt.json()["changed"] is False
        assert [one for one in await read() if one.pop("latest_settlement", None) or True] == [
            one for one in read_first if one.pop("latest_settlement", None) or True
        ]


@pytest.mark.rule("S4")
async def test_a_version_is_in_the_ledger_when_the_boards_have_moved_to_it_and_not_before(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    agents = [script.Agent("alice", "m"), script.Agent("bob", "m")]
    week = script.Week(1)
    second = corrected(week, agents, 2, {"bob": 300})
    third = corrected(week, agents, 3, {"bob": 400})
    async with start("boards") as service:
        assert "Nothing is settled yet" in (await service.client.get("/corrections")).text
        await tell(service, [pair for agent in agents for pair in agent.told()])
        await tell(service, week.told(agents))

        async def listed() -> list[int]:
            ledger = await got(service, "/api/v1/corrections", answers.Ledger)
            return [one["settlement"] for one in ledger["versions"]]

        await tell(service, [(event, 2) for event in second[1:]])
        assert await listed() == [1], "a result of the second version is missing"
        assert (await service.client.get("/api/v1/contests/2017-W01/results?settlement=2")).status_code == 404
        await tell(service, [(event, 3) for event in third])
        assert await listed() == [3, 1]
        await tell(service, [(second[0], 2)])
        assert await listed() == [3, 2, 1], "one that is whole after its successor is readable too"
        results = (await service.client.get("/api/v1/contests/2017-W01/results")).json()
        assert results["settlement"] == 3
