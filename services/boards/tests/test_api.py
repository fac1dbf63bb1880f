"""The public API of the boards, on a real database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any

import pytest
from pydantic import TypeAdapter

from boards import answers
from boards.domain import model_shown
from boards.tools import interval_document
from common import events as ev
from common.handles import handle
from common.settled import digest_of
from testkit.fixtures import Start

Tell = Callable[..., Awaitable[Any]]


def weeks_of(script, agents, numbers, **how):
    return [pair for number in numbers for pair in script.Week(number).told(agents, **how)]


def registered(agents):
    return [pair for agent in agents for pair in agent.told()]


SHAPES = {
    "/api/v1/boards/models": answers.ModelBoard,
    "/api/v1/boards/agents": answers.AgentBoard,
    "/api/v1/models/": answers.ModelHistory,
    "/api/v1/agents/": answers.AgentHistory,
    "/lineups": answers.Lineups,
    "/results": answers.Results,
    "/optimal": answers.Optimal,
}


async def get(service, path, status=200):
    """The document at a path; what succeeds must have the shape that the OpenAPI document states, and no more."""
    answer = await service.client.get(path)
    assert answer.status_code == status, answer.text
    if status >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
    else:
        shape = next(shape for part, shape in SHAPES.items() if part in path)
        TypeAdapter(shape).validate_json(answer.content, strict=True)
    return answer.json()


@pytest.mark.rule("B1", "A4")
async def test_the_model_board_pools_all_lineups_and_names_no_agent_and_no_word(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    agents = [
        script.Agent("alice", "openai/gpt-5"),
        script.Agent("sneaky-name", "openai/gpt-5", claimed=False),
        script.Agent("carol", "anthropic/claude"),
    ]
    async with start("boards") as service:
        await tell(service, registered(agents) + weeks_of(script, agents, (1, 2)))
        answer = await service.client.get("/api/v1/boards/models")
        rows = {row["label"]: row for row in answer.json()["rows"]}
        assert set(rows) == {"model:openai/gpt-5", "model:anthropic/claude"}
        assert rows["model:openai/gpt-5"]["counts"] == [2, 2]
        assert rows["model:openai/gpt-5"]["lineups"] == 4
        for text in ("alice", "sneaky", "says at", handle(agents[1].id)):
            assert text not in answer.text


@pytest.mark.rule("B1", "A5")
async def test_the_agent_board_ranks_claimed_agents_by_name_and_follows_the_claim_as_it_stands_now(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    best = script.Agent("best", "m", skill=15_000)
    late = script.Agent("late", "m", claimed=False, skill=9_000)
    house = script.Agent("house-1", "m", marks=script.COHORT, skill=12_000)
    agents = [best, late, house]
    async with start("boards") as service:
        await tell(service, registered(agents) + weeks_of(script, agents, (1, 2, 3, 4)))
        board = await get(service, "/api/v1/boards/agents")
        assert [(row["rank"], row["label"]) for row in board["rows"]] == [(1, "agent:best"), (2, "agent:house-1")]
        assert board["rows"][1]["marks"][:2] == ["HOUSE", "cohort"]
        assert board["rows"][0]["name"] == "best"
        assert board["rows"][0]["model"] == "m"

        await tell(service, [(late.state(ev.AgentClaimed, claimed=True), 2)])
        board = await get(service, "/api/v1/boards/agents")
        arrived = next(row for row in board["rows"] if row["label"] == "agent:late")
        assert arrived["contests"] == ["2017-W01", "2017-W02", "2017-W03", "2017-W04"]

        await tell(service, [(late.state(ev.AgentReleased), 3)])
        board = await get(service, "/api/v1/boards/agents")
        assert "agent:late" not in [row["label"] for row in board["rows"]]


@pytest.mark.rule("A9")
async def test_an_agent_with_no_locked_lineup_appears_nowhere(start: Start, script: ModuleType, tell: Tell) -> None:
    absent = script.Agent("absent", "only-model")
    playing = script.Agent("playing", "m")
    week, following = script.Week(1), script.Week(2)
    async with start("boards") as service:
        await tell(service, [*registered([absent, playing]), *week.told([playing])])
        # Its lineup is known but its contest is not locked yet: events of one stream may come in any order.
        await tell(service, [(following.opened(), 1), (following.lineup(absent), 1)])
        paths = ["/api/v1/boards/agents", "/api/v1/boards/models", "/", "/agents", "/models", "/contests", "/rules"]
        for contest in (week.contest, following.contest):
            paths += [
                f"/contests/{contest}",
                *(f"/api/v1/contests/{contest}/{view}" for view in ("lineups", "results")),
            ]
        for path in paths:
            text = (await service.client.get(path)).text
            for hidden in ("absent", "only-model", handle(absent.id)):
                assert hidden not in text, path
        await get(service, "/api/v1/agents/absent", 404)
        await get(service, f"/api/v1/agents/{handle(absent.id)}", 404)
        await get(service, "/api/v1/models/only-model", 404)
        await get(service, "/api/v1/agents/playing")
        await tell(service, [(following.locked(1), 2)])
        await get(service, "/api/v1/agents/absent")


@pytest.mark.rule("A10")
async def test_an_unclaimed_agent_is_shown_by_its_handle_and_never_by_its_name(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    hidden = script.Agent("HiddenName", "m", claimed=False)
    unchecked = script.Agent("UncheckedName", "m", name_state=None)
    flagged = script.Agent("FlaggedName", "m", name_state=ev.State.FLAGGED)
    other = script.Agent("clear", "m")
    agents = [hidden, unchecked, flagged, other]
    async with start("boards") as service:
        await tell(service, registered(agents) + weeks_of(script, agents, (1, 2), words=False))
        lineups = await get(service, "/api/v1/contests/2017-W01/lineups")
        names = {lineup["agent"]["name"] for lineup in lineups["lineups"]}
        neutral = {handle(agent.id, claimed=True) for agent in (unchecked, flagged)}
        assert names == {handle(hidden.id), *neutral, "clear"}
        for agent in (hidden, unchecked, flagged):
            for claimed in (True, False):
                found = await get(service, f"/api/v1/agents/{handle(agent.id, claimed=claimed)}")
                assert found["agent"]["name"] == handle(agent.id, claimed=agent is not hidden)
        surfaces = [
            "/", "/contests", "/contests/2017-W01", "/models", "/models/m", "/agents", "/agents/clear",
            *(f"/agents/{handle(agent.id, claimed=agent is not hidden)}" for agent in agents[:3]),
            "/api/v1/boards/models", "/api/v1/boards/agents", "/api/v1/models/m", "/api/v1/agents/clear",
            "/api/v1/contests/2017-W01/lineups", "/api/v1/contests/2017-W01/results",
            *(f"/api/v1/agents/{handle(agent.id)}" for agent in agents[:3]),
        ]  # fmt: skip
        for path in surfaces:
            answer = await service.client.get(path)
            assert answer.status_code == 200, path
            for agent in agents[:3]:
                assert agent.name not in answer.text, path
                # The opening of a lineup alone names its agent by id: each leaf of the commitment holds it.
                assert path.endswith("/2017-W01/lineups") or str(agent.id) not in answer.text, path
        for agent in agents[:3]:
            missing = await service.client.get(f"/api/v1/agents/{agent.name}")
            assert missing.status_code == 404
            assert agent.name not in missing.text
            assert (await service.client.get(f"/agents/{agent.name}")).status_code == 404


@pytest.mark.rule("M1", "C8")
async def test_nothing_of_the_entries_shows_before_the_lock_and_everyones_picks_and_scores_after(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    claimed, unclaimed = script.Agent("alice", "m"), script.Agent("bob", "m", claimed=False)
    agents, week = [claimed, unclaimed], script.Week(1)
    paths = [f"/api/v1/contests/{week.contest}/{view}" for view in ("lineups", "results", "optimal")]
    async with start("boards") as service:
        await tell(service, [*registered(agents), (week.opened(), 1)])
        empty = [(await service.client.get(path)).text for path in [*paths, "/contests/2017-W01", "/", "/contests"]]
        await tell(service, [(week.lineup(agent), 1) for agent in agents])
        for path in paths:
            problem = await get(service, path, 409)
            assert problem["code"] == "contest-not-locked"
            assert problem["locks_at"] == "2017-09-10T17:00:00Z"
        full = [(await service.client.get(path)).text for path in [*paths, "/contests/2017-W01", "/", "/contests"]]
        assert empty == full, "what is answered before the lock must not depend on the entries"

        await tell(service, [(week.locked(2), 2)])
        results = await get(service, paths[1])
        assert (results["state"], results["entries"], len(results["lineups"])) == ("locked", 2, 2)
        assert {lineup["points"] for lineup in results["lineups"]} == {None}

        await tell(service, [(week.scores(agents, 5), 5), (week.scores(agents, 2), 2)])
        results = await get(service, paths[1])
        assert results["state"] == "provisional"
        by_name = {lineup["agent"]["name"]: lineup for lineup in results["lineups"]}
        assert by_name["alice"]["points"] == week.points(claimed) * 5 // 10
        assert by_name[handle(unclaimed.id)]["points"] == week.points(unclaimed) * 5 // 10
        assert (await get(service, paths[2], 409))["code"] == "contest-not-settled"

        await tell(service, [(event, 1) for event in week.results(agents)])
        results = await get(service, paths[1])
        assert (results["state"], results["settlement"]) == ("final", 1)
        assert {player["player_id"]: player["points"] for player in results["players"]} == week.player_points()
        for agent in agents:
            lineup = next(found for found in results["lineups"] if found["lineup"] == str(week.lineup_id(agent)))
            assert lineup["points"] == week.points(agent)
            assert lineup["share"] == week.points(agent) * 10**6 // 25_001
            assert lineup["regret"] == 25_001 - week.points(agent)
            assert lineup["standing"] == {
                "rank": str(1 + lineup["regret"] * 10**11),
                "tied": str(1 + lineup["points"] % 2),
                "of": script.FEASIBLE,
                "percentile": lineup["points"] * 10**6 // 25_002,
            }
            assert [pick["slot"] for pick in lineup["picks"]] == ["QB", "RB1", "WR1", "FLEX", "DST"]
        assert (results["feasible_lineups"], results["no_ranks"]) == (script.FEASIBLE, None)
        history = await get(service, "/api/v1/agents/alice")
        assert history["lineups"][0]["standing"] == next(
            found["standing"] for found in results["lineups"] if found["agent"]["name"] == "alice"
        )
        assert [lineup["rank"] for lineup in results["lineups"]] == [1, 2]
        optimal = await get(service, paths[2])
        assert (optimal["points"], optimal["price"]) == (25_001, 49_900)
        assert sorted(player["player_id"] for player in optimal["players"]) == ["DST-1", "QB-1", "RB-1", "TE-1", "WR-1"]


@pytest.mark.rule("M2", "M5", "A5")
async def test_words_are_shown_only_where_locked_claimed_now_and_cleared_else_the_first_reason(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    cleared, flagged = script.Agent("alice", "m"), script.Agent("bob", "m")
    waiting, unclaimed = script.Agent("carol", "m"), script.Agent("dave", "m", claimed=False)
    agents, week = [cleared, flagged, waiting, unclaimed], script.Week(1)
    async with start("boards") as service:
        await tell(service, [*registered(agents), *week.told(agents, words=False)])
        await tell(service, [(week.judged(cleared), 1), (week.released(cleared), 2)])
        await tell(service, [(week.judged(unclaimed), 1), (week.released(unclaimed), 2)])
        await tell(service, [(week.judged(flagged, ev.State.FLAGGED), 1)])

        async def theses():
            found = (await get(service, "/api/v1/contests/2017-W01/lineups"))["lineups"]
            return {lineup["agent"]["name"]: lineup["thesis"] for lineup in found}, found

        by_name, lineups = await theses()
        assert by_name == {
            "alice": {"text": "alice says at /thesis", "withheld": None},
            "bob": {"text": None, "withheld": "flagged"},
            "carol": {"text": None, "withheld": "not checked yet"},
            handle(unclaimed.id): {"text": None, "withheld": "unclaimed"},
        }
        of_alice = next(lineup for lineup in lineups if lineup["agent"]["name"] == "alice")
        assert of_alice["picks"][3]["rationale"]["text"] == "alice says at /picks/3/rationale"
        assert of_alice["picks"][3]["main_factor"]["text"] == "alice says at /picks/3/main_factor"
        page = (await service.client.get("/contests/2017-W01")).text
        assert "alice says at /thesis" in page
        assert "dave says" not in page
        for reason in ("unclaimed", "flagged", "not checked yet"):
            assert reason in page

        await tell(service, [(unclaimed.state(ev.AgentClaimed, claimed=True), 2)])
        by_name, _ = await theses()
        assert by_name["dave"]["text"] == "dave says at /thesis", "kept all along, published once claimed"
        await tell(service, [(cleared.state(ev.AgentReleased, claimed=False), 3)])
        by_name, _ = await theses()
        assert by_name[handle(cleared.id)] == {"text": None, "withheld": "unclaimed"}


@pytest.mark.rule("B2", "B8", "A8")
async def test_the_control_cohort_is_a_table_of_its_own_and_references_are_marked(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    agents = [
        script.Agent("house-a", "openai/gpt-5", marks=script.COHORT, skill=14_000),
        script.Agent("house-b", "anthropic/claude", marks=script.COHORT, skill=6_000),
        script.Agent("byo", "openai/gpt-5", skill=3_000),
        script.Agent("random", "reference/random-legal", marks=script.REFERENCE, skill=1_000),
    ]
    async with start("boards") as service:
        await tell(service, registered(agents) + weeks_of(script, agents, range(1, 6)))
        board = await get(service, "/api/v1/boards/models")
        cohort = {row["label"]: row for row in board["cohort"]["rows"]}
        assert set(cohort) == {"cohort:openai/gpt-5", "cohort:anthropic/claude"}
        assert cohort["cohort:openai/gpt-5"]["counts"] == [1] * 5
        assert board["cohort"]["winner"] == "cohort:openai/gpt-5"
        assert board["cohort"]["verdict"].startswith("openai/gpt-5 leads")
        assert board["observational"] is True
        pooled = {row["label"]: row for row in board["rows"]}
        assert pooled["model:openai/gpt-5"]["counts"] == [2] * 5
        assert pooled["model:openai/gpt-5"]["marks"] == []
        assert pooled["model:reference/random-legal"]["marks"] == ["HOUSE", "reference"]
        page = (await service.client.get("/models")).text
        assert page.index("Control cohort") < page.index("observational")


@pytest.mark.rule("B9", "B3", "B4")
@pytest.mark.parametrize("metric", ["points", "share"])
async def test_a_reader_can_draw_every_interval_again_from_the_json(
    start: Start, script: ModuleType, tell: Tell, metric: str
) -> None:
    agents = [script.Agent(f"agent-{number}", f"model-{number % 2}") for number in range(4)]
    async with start("boards") as service:
        await tell(service, registered(agents) + weeks_of(script, agents, (3, 1, 2)))
        models = await get(service, f"/api/v1/boards/models?metric={metric}")
        by_agent = await get(service, f"/api/v1/boards/agents?metric={metric}&season=2017")
        rows = models["rows"] + by_agent["rows"]
        assert len(rows) == 6
        for row in rows:
            again = interval_document(row["label"], row["sums"], row["counts"])
            assert {key: row[key] for key in ("mean", "low", "high", "weeks")} == {
                key: again[key] for key in ("mean", "low", "high", "weeks")
            }
            assert row["contests"] == ["2017-W01", "2017-W02", "2017-W03"]
        assert models["method"]["version"] == "1"
        assert len(models["method"]["hash"]) == 64


@pytest.mark.rule("B5")
async def test_a_row_of_one_week_stands_last_with_both_marks(start: Start, script: ModuleType, tell: Tell) -> None:
    steady, new = script.Agent("steady", "m", skill=5_000), script.Agent("new", "m", skill=25_000)
    never = script.Agent("never-settled", "m")
    async with start("boards") as service:
        await tell(service, registered([steady, new, never]) + weeks_of(script, [steady], (1, 2, 3, 4)))
        await tell(service, weeks_of(script, [steady, new], (5,)))
        sixth = script.Week(6)
        await tell(service, [(sixth.opened(), 1), (sixth.locked(1), 2), (sixth.lineup(never), 1)])
        rows = (await get(service, "/api/v1/boards/agents"))["rows"]
        assert [row["name"] for row in rows] == ["steady", "never-settled", "new"] or [row["name"] for row in rows] == [
            "steady",
            "new",
            "never-settled",
        ]
        by_name = {row["name"]: row for row in rows}
        assert by_name["new"]["marks"] == ["no interval yet", "small sample"]
        assert (by_name["new"]["rank"], by_name["new"]["mean"], by_name["new"]["weeks"]) == (None, None, 1)
        assert by_name["never-settled"]["weeks"] == 0


async def test_a_lineup_keeps_the_model_of_its_revision(start: Start, script: ModuleType, tell: Tell) -> None:
    agent, week = script.Agent("alice", "new-model"), script.Week(1)
    async with start("boards") as service:
        *results, last = week.results([agent])
        results = [event.model_copy(update={"model": "old-model"}) for event in results]
        settled = [*results, last.model_copy(update={"digest": digest_of(last, results)})]
        await tell(service, [(ev.ModelJudged(model="old-model", state=ev.State.CLEARED), 1)])
        await tell(service, [*registered([agent]), (week.opened(), 1), (week.locked(1), 2)])
        await tell(service, [(week.lineup(agent, model="old-model"), 1), *[(event, 1) for event in settled]])
        rows = (await get(service, "/api/v1/boards/models"))["rows"]
        assert [row["label"] for row in rows] == ["model:old-model"]
        history = await get(service, "/api/v1/agents/alice")
        assert history["agent"]["model"] == "new-model"
        assert history["lineups"][0]["model"] == "old-model"
        assert (await get(service, "/api/v1/models/old-model"))["weeks"][0]["settled"] == 1


async def test_a_model_with_slashes_has_a_page_and_a_document(start: Start, script: ModuleType, tell: Tell) -> None:
    agents = [script.Agent("alice", "openai/gpt-5/mini"), script.Agent("h", "openai/gpt-5/mini", marks=script.COHORT)]
    async with start("boards") as service:
        await tell(service, registered(agents) + weeks_of(script, agents, (1, 2)))
        history = await get(service, "/api/v1/models/openai/gpt-5/mini")
        assert [week["lineups"] for week in history["weeks"]] == [2, 2]
        assert [week["cohort_lineups"] for week in history["weeks"]] == [1, 1]
        assert history["seasons"][0]["points"]["label"] == "model:openai/gpt-5/mini"
        assert history["cohort"][0]["share"]["label"] == "cohort:openai/gpt-5/mini"
        assert (await service.client.get("/models/openai/gpt-5/mini")).status_code == 200


WRONG = (
    ("/api/v1/contests/2031-W01/lineups", 404, "contest-unknown"),
    ("/api/v1/contests/2031-W01/results", 404, "contest-unknown"),
    ("/api/v1/contests/2031-W01/optimal", 404, "contest-unknown"),
    ("/api/v1/contests/%00/optimal", 404, "contest-unknown"),
    ("/api/v1/agents/nobody", 404, "agent-unknown"),
    ("/api/v1/agents/unclaimed-aaaaaaaaaaaa", 404, "agent-unknown"),
    ("/api/v1/agents/a%00b", 404, "agent-unknown"),
    ("/api/v1/models/no/such", 404, "model-unknown"),
    ("/api/v1/boards/models?metric=luck", 422, "metric-unknown"),
    ("/api/v1/boards/agents?season=1999", 404, "season-unknown"),
    ("/api/v1/boards/agents?season=soon", 422, "invalid-request"),
)


async def test_what_is_not_there_is_a_clear_problem(start: Start, script: ModuleType, tell: Tell) -> None:
    async with start("boards") as service:
        await tell(service, [(script.Week(1).opened(), 1)])
        for path, status, code in WRONG:
            problem = await get(service, path, status)
            assert problem["code"] == code, path
            assert problem["detail"], path


async def test_empty_boards_say_so(start: Start) -> None:
    async with start("boards") as service:
        board = await get(service, "/api/v1/boards/models")
        assert (board["season"], board["rows"], board["cohort"]["rows"]) == (None, [], [])
        assert board["verdict"] == "No winner: nothing is settled yet."
        for path in ("/", "/contests", "/models", "/agents", "/method", "/rules"):
            assert (await service.client.get(path)).status_code == 200, path


async def test_only_an_operator_may_rebuild_or_ask_for_the_digest(start: Start) -> None:
    async with start("boards") as service:
        assert (await service.client.get("/operator/api/v1/boards/digest")).status_code == 401
        assert (await service.client.post("/operator/api/v1/boards/rebuild")).status_code == 401
        assert (await service.operator.post("/operator/api/v1/boards/rebuild")).json()["contests"] == 0


@pytest.mark.rule("A10", "B1")
async def test_a_model_label_that_is_not_cleared_is_shown_nowhere_and_its_numbers_stay(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    fine = script.Agent("alice", "fine-model")
    flagged = script.Agent("bob", "call-me-at-evil.example", model_state=ev.State.FLAGGED)
    unknown = script.Agent("carol", "never-judged", model_state=None)
    agents = [fine, flagged, unknown]
    async with start("boards") as service:
        await tell(service, registered(agents) + weeks_of(script, agents, (1, 2)))
        names = {row["model"] for row in (await get(service, "/api/v1/boards/models"))["rows"]}
        neutral = {model_shown(agent.model, cleared=False) for agent in (flagged, unknown)}
        assert names == {"fine-model"} | neutral
        assert all(name.startswith("model-withheld-") for name in neutral)
        paths = [
            "/", "/models", "/agents", "/agents/bob", "/contests/2017-W01",
            "/api/v1/boards/models", "/api/v1/boards/agents", "/api/v1/agents/bob",
            "/api/v1/contests/2017-W01/lineups", "/api/v1/contests/2017-W01/results",
            *(f"/models/{name}" for name in neutral), *(f"/api/v1/models/{name}" for name in neutral),
        ]  # fmt: skip
        for path in paths:
            answer = await service.client.get(path)
            assert answer.status_code == 200, path
            assert "evil" not in answer.text, path
            assert "never-judged" not in answer.text, path
        assert (await get(service, "/api/v1/models/never-judged", 404))["code"] == "model-unknown"
        await tell(service, [(ev.ModelJudged(model="never-judged", state=ev.State.CLEARED), 2)])
        assert (await get(service, "/api/v1/models/never-judged"))["weeks"][0]["lineups"] == 1


@pytest.mark.rule("M1")
async def test_provisional_scores_come_in_parts_in_any_order(start: Start, script: ModuleType, tell: Tell) -> None:
    agents, week = [script.Agent(f"agent-{number}", "m") for number in range(4)], script.Week(1)
    parts = []
    for sequence in (1, 2):
        whole = week.scores(agents, sequence)
        for part in (1, 2):
            changes = {"part": part, "parts": 2, "lineups": whole.lineups[part - 1 :: 2]}
            changes |= {"players": ()} if part == 2 else {}
            parts.append((whole.model_copy(update=changes), 2 * sequence + part))
    async with start("boards") as service:
        await tell(service, [*registered(agents), *week.told(agents, words=False)[:6]])
        for order in ((3, 0), (1,), (2,)):
            await tell(service, [parts[index] for index in order])
        results = await get(service, "/api/v1/contests/2017-W01/results")
        assert results["state"] == "provisional"
        found = {lineup["agent"]["name"]: lineup["points"] for lineup in results["lineups"]}
        assert found == {agent.name: week.points(agent) * 2 // 10 for agent in agents}
        assert results["players"][0]["points"] is not None


@pytest.mark.rule("A5", "A10", "M2")
async def test_a_claim_and_a_release_are_seen_at_once_on_board_contest_and_agent_pages(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    """Over the bus, as the registry tells it; the pages had been asked for before, so nothing may be kept."""
    alice, bob, week = script.Agent("alice", "m", claimed=False), script.Agent("bob", "m"), script.Week(1)
    neutral, words = handle(alice.id), "alice says at /thesis"
    async with start("boards") as service:
        await tell(service, [*registered([alice, bob]), *week.told([alice, bob])])

        async def pages():
            paths = ("/agents", "/contests/2017-W01", f"/agents/{neutral}", "/agents/alice", "/models/m", "/")
            return {path: await service.client.get(path) for path in paths}

        def neutral_everywhere(found):
            for path, answer in found.items():
                assert "alice" not in answer.text.replace("/agents/alice", ""), path
            assert [row["name"] for row in board["rows"]] == ["bob"]
            assert neutral in found["/contests/2017-W01"].text
            assert found[f"/agents/{neutral}"].status_code == 200
            assert found["/agents/alice"].status_code == 404

        board = await get(service, "/api/v1/boards/agents")
        neutral_everywhere(await pages())

        await service.publish(alice.state(ev.AgentClaimed, claimed=True), 2)
        await service.settle()
        board, found = await get(service, "/api/v1/boards/agents"), await pages()
        assert {row["name"] for row in board["rows"]} == {"alice", "bob"}
        assert 'title="agent:alice"' in found["/agents"].text
        assert words in found["/contests/2017-W01"].text
        assert neutral not in found["/contests/2017-W01"].text
        assert found[f"/agents/{neutral}"].headers["location"] == "/agents/alice"
        assert found["/agents/alice"].status_code == 200
        assert (await get(service, "/api/v1/agents/alice"))["seasons"] != []

        await service.publish(alice.state(ev.AgentReleased, claimed=False), 3)
        await service.settle()
        board = await get(service, "/api/v1/boards/agents")
        neutral_everywhere(await pages())


async def test_the_api_is_described_under_its_version_alone_and_answers_heads(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    agents = [script.Agent("alice", "m")]
    async with start("boards") as service:
        await tell(service, registered(agents) + weeks_of(script, agents, (1, 2)))
        assert (await get(service, "/openapi.json", 404))["status"] == 404
        for path in ("boards/models", "boards/agents", "models/m", "agents/alice", "contests/2017-W01/results"):
            head = await service.client.head(f"/api/v1/{path}")
            assert (head.status_code, head.headers["content-type"]) == (200, "application/json")
            assert head.content == b""
        assert (await service.client.head("/api/v1/agents/nobody")).status_code == 404
        units = (await get(service, "/api/v1/contests/2017-W01/lineups"))["units"]
        assert units["projected_score"] == "hundredths of a point"
