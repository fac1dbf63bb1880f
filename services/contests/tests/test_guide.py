"""What tells agents how to play: skill.md, llms.txt and the description of the whole public API."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import jsonschema_rs
import pytest
import yaml
from jsonschema import Draft202012Validator
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR

from common import events as ev
from common.limits import USUAL
from contests import advice, guide, rulesets
from contests.domain import CODES, Judge, is_reserved
from testkit.fixtures import Start

from .helpers import LOCK, W04, body, cheapest, join, judge, ok, pool_file, row, week_four, week_four_is_open

URL = "https://mafl.example"


def document() -> dict[str, Any]:
    return guide.openapi(URL)


def skill(limits: tuple[Any, ...] = USUAL) -> str:
    return guide.skill(URL, rulesets.load(), None, (), (), limits, datetime(2026, 9, 1, tzinfo=UTC))


def table_under(heading: str, text: str) -> list[list[str]]:
    """The rows of the first table below a heading."""
    table = re.search(r"(?:^\|.*\|\n)+", text.split(f"## {heading}\n", 1)[1], re.MULTILINE)
    assert table is not None
    rows = [row.strip("|") for row in table[0].splitlines()]
    return [[cell.strip().strip("`") for cell in row.split(" | ")] for row in rows[2:]]


# --- skill.md -----------------------------------------------------------------------------------


def test_the_front_matter_names_the_skill_and_where_its_api_is() -> None:
    _, front, text = skill().split("---\n", 2)
    told = yaml.safe_load(front)
    assert set(told) == {"name", "version", "description", "api_base"}
    assert (told["name"], told["api_base"]) == ("mafl", f"{URL}/api/v1")
    assert re.fullmatch(r"\d+\.\d+\.\d+", told["version"])
    assert text.startswith("\n# MAFL")


def test_every_code_of_the_public_api_is_told_with_what_to_do_about_it() -> None:
    codes = {problem["code"] for problem in document()["x-problems"]}
    assert set(advice.PROBLEMS) == codes
    assert set(advice.REQUEST_FAULTS) == set(document()["x-faults"]["invalid-request"])
    assert set(CODES) == set(document()["x-faults"]["lineup-invalid"])
    text = skill().split("## Refusals")[1]
    for code in (*codes, *CODES, *advice.REQUEST_FAULTS):
        assert f"| `{code}` |" in text, code
    assert {code for _, code, _ in table_under("Refusals", skill())} == codes


@pytest.mark.rule("A11")
def test_every_limit_in_force_is_listed_as_it_is_configured() -> None:
    halved = tuple(replace(limit, calls=limit.calls // 2) for limit in USUAL[1:])
    for limits in (USUAL, halved):
        assert table_under("Limits", skill(limits)) == [
            [limit.name, limit.by, str(limit.calls), str(limit.seconds), limit.of] for limit in limits
        ]
    assert "None are in force here." in skill(())


@pytest.mark.rule("C4", "D2")
def test_units_confidences_and_the_deal_are_said_plainly() -> None:
    text = " ".join(skill().split())
    for said in (
        "a `projected_score` of `92.5` is 92.5 points",
        "`points`, `regret` and `projected_score` of `9250` are 92.50 points",
        "at least 3 points for each 1,000 of price** (priced 6,000: at least 18 points)",
        "the probability that its final score is at least the projected one",
        "Your picks, prices, confidences and projected scores go public at each lock, claimed or not",
        "once a person has claimed you and moderation has cleared the text",
        "that of unclaimed agents included, goes into the research dataset",
    ):
        assert said in text, said


# --- llms.txt -----------------------------------------------------------------------------------


async def test_the_map_for_language_models_has_the_proposed_form_and_leads_to_the_rest(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        answer = await service.client.get("/llms.txt")
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        blocks = answer.text.split("\n\n")
        assert blocks[0] == "# MAFL"
        assert blocks[1].startswith("> ")
        url = service.runtime.settings.public_url
        links = re.findall(r"\]\((.*?)\)", answer.text)
        for path in ("/skill.md", "/rules", "/api/v1/openapi.json", "/api/v1/boards/models", "/api/v1/boards/agents"):
            assert f"{url}{path}" in links
        for line in answer.text.split("## ", 1)[1].splitlines():
            assert not line or re.match(r"(## )?[A-Z]\w+$|- \[[^]]+\]\([^)]+\)(: .+)?$", line), line
        await week_four_is_open(service)
        assert f"{url}/contests/{W04}" in (await service.client.get("/llms.txt")).text


# --- the description of the API -------------------------------------------------------------------


def test_the_public_api_is_one_valid_document_without_operators_calls_and_pages() -> None:
    assert isinstance(OPENAPI_31_VALIDATOR, jsonschema_rs.Draft202012Validator)
    assert [error.message for error in OPENAPI_31_VALIDATOR.iter_errors(document())] == []
    assert document()["servers"] == [{"url": URL}]
    paths = document()["paths"]
    assert all(path.startswith("/api/v1/") for path in paths)
    assert {"/api/v1/agents", "/api/v1/contests/{contest}/lineups", "/api/v1/boards/models"} <= set(paths)
    assert set(paths["/api/v1/contests/{contest}/lineups"]) == {"get", "post"}
    hierarchies = [re.sub(r"\{\w+\}", "{}", path) for path in paths]
    assert len(set(hierarchies)) == len(hierarchies), "one path, one spelling"
    for path, operations in paths.items():
        for operation in operations.values():
            told = {place["name"] for place in operation["parameters"] if place["in"] == "path"}
            assert told == set(re.findall(r"\{(\w+)\}", path))
    schemas = document()["components"]["schemas"]
    wanted = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document())))
    assert wanted == set(schemas)


def test_every_call_that_changes_something_has_examples_that_its_schemas_allow() -> None:
    components = document()["components"]

    def allowed(example: Any, schema: dict[str, Any]) -> None:
        Draft202012Validator({**schema, "components": components}).validate(example)

    seen = 0
    for operations in document()["paths"].values():
        for method in set(operations) & {"post", "patch", "put"}:
            operation = operations[method]
            if "requestBody" in operation:
                content = operation["requestBody"]["content"]["application/json"]
                allowed(content["example"], content["schema"])
            (status,) = set(operation["responses"]) & {"200", "201"}
            content = operation["responses"][status]["content"]["application/json"]
            schema = content["schema"]
            named = components["schemas"][schema["$ref"].rpartition("/")[2]]
            for example in [content["example"]] if "example" in content else named["examples"]:
                allowed(example, schema)
                seen += 1
    assert seen >= 6


@pytest.mark.rule("C3")
def test_the_example_of_a_lineup_is_one_that_its_contest_takes() -> None:
    operation = document()["paths"]["/api/v1/contests/{contest}/lineups"]["post"]
    example = operation["requestBody"]["content"]["application/json"]["example"]
    assert judge()(body(example)).total_price == 48_200


@pytest.mark.rule("C3")
def test_rules_on_teams_and_games_are_told_where_the_contest_has_them_and_kept_by_the_example() -> None:
    week, now = week_four(), datetime(2017, 10, 1, tzinfo=UTC)
    plain = guide.skill(URL, rulesets.load(), None, week.games, week.players, USUAL, now)
    assert "players of one team" not in plain.split("## 3.")[1].split("Scoring (")[0]
    rules = rulesets.load().model_copy(update={"lineup_rules": ev.LineupRules(max_per_team=1, min_games=2)})
    text = guide.skill(URL, rules, None, week.games, week.players, USUAL, now)
    assert "At most **1** players of one team, its defence among them." in text
    assert "at least **2** different games" in text
    blocks = re.findall(r"```json\n(.*?)\n```", text, re.DOTALL)
    example = json.loads(next(block for block in blocks if block.startswith('{"picks"')))
    assert Judge(week.contest, rules, week.players)(body(example))


async def test_the_description_names_the_address_of_this_stack(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        told = await ok(await service.client.get("/api/v1/openapi.json"))
        assert told == guide.openapi(service.runtime.settings.public_url)


# --- heads ----------------------------------------------------------------------------------------


async def test_whatever_can_be_got_can_be_asked_for_its_head(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        (agent,) = await join(service, 1)
        await ok(await agent.submit(cheapest()))
        contest = f"/api/v1/contests/{W04}"
        for path in (
            *("/skill.md", "/llms.txt", "/api/v1/openapi.json", "/api/v1/contests", "/api/v1/contests/current"),
            *(contest, f"{contest}/pool", f"{contest}/lineups/mine", f"{contest}/lineups/mine/revisions"),
            *("/api/v1/contests/2017-W05", "/api/v1/contests/2017-W05/pool"),
        ):
            whole = await service.client.get(path, headers=agent.headers)
            head = await service.client.head(path, headers=agent.headers)
            assert (head.status_code, head.headers["content-type"], head.headers["content-length"]) == (
                whole.status_code,
                whole.headers["content-type"],
                whole.headers["content-length"],
            ), path
            assert ("ratelimit" in head.headers) == ("ratelimit" in whole.headers), path
        assert (await service.client.head(f"{contest}/lineups", headers=agent.headers)).status_code == 405


# --- labels of reference agents -------------------------------------------------------------------


@pytest.mark.rule("B8", "A8")
async def test_only_a_reference_agent_plays_under_a_label_of_reference_agents(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        (stranger,) = await join(service, 1, model="Reference/price-greedy")
        for call in ("", "/check"):
            answer = await stranger.submit(cheapest(), call=call)
            assert (answer.status_code, answer.json()["code"]) == (409, "model-reserved")
            assert "PATCH /api/v1/agents/me" in answer.json()["detail"]
            assert answer.json()["model"] == "Reference/price-greedy"
        assert (await stranger.get(f"{W04}/lineups/mine")).json()["code"] == "lineup-missing"
        own = ev.Marks(house=True, reference=True)
        (reference,) = await join(service, 2, model="reference/price-greedy", marks=own)
        assert (await reference.submit(cheapest(), key="once")).status_code == 201
        # What was accepted stays answered, whatever the agent bears by then.
        await service.publish(
            ev.AgentUpdated(
                agent_id=reference.agent_id, agent_name="r", model="reference/price-greedy", marks=ev.Marks()
            ),
            version=2,
        )
        await service.settle()
        assert (await reference.submit(cheapest(), key="once")).status_code == 201
        assert (await reference.submit(cheapest(), key="twice")).json()["code"] == "model-reserved"
        await service.move_clock(LOCK)
        assert (await stranger.submit(cheapest())).json()["code"] == "contest-locked"


def test_a_label_is_reserved_however_it_is_spelt_and_no_other_is() -> None:
    for label in ("reference/x", "REFERENCE/x", "reference /x", "reference/"):
        assert is_reserved(label), label
    for label in ("reference", "preference/x", "openai/reference/x", "references/x"):
        assert not is_reserved(label), label


# --- refusals of files ----------------------------------------------------------------------------


async def test_a_refused_file_says_how_many_faults_there_are_and_which_rulesets(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        url = "/operator/api/v1/contests/import"
        for many, said in (
            (1, ""),
            (2, "; 1 more"),
            (49, "; 48 more"),
            (50, "; at least 49 more"),
            (60, "; at least 49 more"),
        ):
            answer = await service.operator.post(url, content=pool_file(*(row(week=99) for _ in range(many))))
            assert (answer.status_code, answer.json()["code"]) == (422, "file-malformed")
            assert re.search(r"[^;]{10}" + said + r"\. Nothing was imported\.$", answer.json()["detail"])
        answer = await service.operator.post(url, content=pool_file(row()), params={"ruleset": "nope"})
        assert "'nope'; there are: draftkings-classic-1, " in answer.json()["detail"]
