"""Three weeks of a field that changes: late, absent, claimed later, let go, of two minds. And one very long lineup."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from embedded.stack import Ports, Stack, StackOptions
from house.field import view
from house.roster import FIELD, Member
from house.season import Season, SeasonDone, read_files
from house.strategies import Strategy, Style, play
from mafl.cli import run
from mafl.client import PublicClient, register
from mafl.operator import OperatorClient
from testkit.contracts import ROOT

WEEKS = ("2017-W01", "2017-W02", "2017-W03")
ROSTER = {member.name: member for member in FIELD}
LATE, ABSENT, MINDS = "Late Starter", "Every Other Sunday", "Second Thoughts"
CLAIMED_LATER, LET_GO, NOBODY = "Claimed in Week Ten", "Let Go in Week Twelve", "nobody's bot 1"
MEMBERS: tuple[Member, ...] = (
    ROSTER["Reference price greedy"],
    ROSTER["Cohort aurora-1 A"],
    replace(ROSTER[LATE], joins=2),
    replace(ROSTER[ABSENT], skips=frozenset({2})),
    ROSTER[MINDS],
    replace(ROSTER[CLAIMED_LATER], claimed_from=2),
    replace(ROSTER[LET_GO], released_from=3),
    ROSTER[NOBODY],
)
"""The demo's own members, what they do in its later weeks moved into the first three."""

CLAIMED = {member.name for member in MEMBERS} - {LET_GO, NOBODY}

pytestmark = pytest.mark.timeout(180)


@dataclass(frozen=True)
class Played:
    """A stack on which three weeks were played, and what came of them."""

    stack: Stack
    done: SeasonDone
    lineups: dict[str, list[dict[str, Any]]]
    boards: dict[str, list[dict[str, Any]]]
    contests: dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
async def played(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Played]:
    options = StackOptions(state=tmp_path_factory.mktemp("field"), ports=Ports.free(), clock="replay", durable=False)
    async with Stack(options) as stack:
        files = read_files(ROOT / "data", 2017, len(WEEKS))
        season = Season(stack.public_url, stack.operator_url, stack.operator_token, files, members=MEMBERS)
        done = await season.play()
        async with operator(stack) as at_desk, PublicClient(stack.public_url) as public:
            lineups = {
                week: (await public.call("GET", f"/api/v1/contests/{week}/lineups")).json()["lineups"] for week in WEEKS
            }
            boards = {board: (await public.board(board))["rows"] for board in ("agents", "models")}
            contests = {row["contest"]: row for row in (await at_desk.operator_contests())["contests"]}
        yield Played(stack, done, lineups, boards, contests)


def operator(stack: Stack) -> OperatorClient:
    return OperatorClient(stack.operator_url, token=stack.operator_token)


@pytest.mark.rule("M1", "A4", "A10")
def test_each_week_shows_who_played_it_by_name_or_by_handle(played: Played) -> None:
    for week, missing in zip(WEEKS, (LATE, ABSENT, None), strict=True):
        names = [lineup["agent"]["name"] for lineup in played.lineups[week]]
        assert {name for name in names if not name.startswith("unclaimed-")} == CLAIMED - {missing}
        assert len(names) == len(set(names)) == len(MEMBERS) - (missing is not None)
    assert played.done.lineups == sum(map(len, played.lineups.values())) == 3 * len(MEMBERS) - 2


@pytest.mark.rule("A5", "B2")
def test_an_agent_comes_with_its_whole_history_when_it_is_claimed_and_leaves_with_it(played: Played) -> None:
    contests = {row["name"]: tuple(row["contests"]) for row in played.boards["agents"]}
    assert contests.keys() == CLAIMED
    assert contests[CLAIMED_LATER] == WEEKS, "claimed in the second week, and yet there from the first"
    assert contests[LATE] == WEEKS[1:]
    assert contests[ABSENT] == (WEEKS[0], WEEKS[2])
    assert httpx.get(f"{played.stack.public_url}/agents/{LET_GO}").status_code == 404
    assert httpx.get(f"{played.stack.public_url}/agents/{CLAIMED_LATER}").status_code == 200


@pytest.mark.rule("A4", "B1")
def test_the_model_board_counts_everybody_claimed_or_not(played: Played) -> None:
    rows = {row["model"]: row["lineups"] for row in played.boards["models"]}
    expected = dict.fromkeys((member.model for member in MEMBERS), 0)
    for member in MEMBERS:
        expected[member.model] += sum(member.plays(week) for week in range(1, len(WEEKS) + 1))
    assert rows == expected


@pytest.mark.rule("C6")
def test_who_submits_again_has_one_lineup_and_two_revisions(played: Played) -> None:
    for week in WEEKS:
        assert played.contests[week]["revisions"] == played.contests[week]["lineups"] + 1
        assert played.contests[week]["lineups"] == len(played.lineups[week])


@pytest.mark.rule("M2", "A5")
async def test_words_follow_the_claim_as_it_stands_now(played: Played) -> None:
    async with operator(played.stack) as at_desk:
        agents = {agent["name"]: agent for agent in await at_desk.agents()}
    assert {name for name, agent in agents.items() if agent["status"] == "claimed"} == CLAIMED
    for week in WEEKS:
        for lineup in played.lineups[week]:
            named = lineup["agent"]["name"] in CLAIMED
            assert (lineup["thesis"]["withheld"] == "unclaimed") != named


@pytest.mark.rule("C10", "A10", "M2")
async def test_anybody_can_check_with_no_server_that_what_is_shown_was_committed_to(
    played: Played, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the command, from the public address alone: every pick and every word that is shown, and not one more."""
    for week in WEEKS:
        arguments = ["contest", "download", week, str(tmp_path / week), "--url", played.stack.public_url, "--json"]
        assert await asyncio.to_thread(run, arguments) == 0
        written = json.loads(capsys.readouterr().out)
        assert (written["mismatched"], written["files"]) == (0, sorted(written["files"]))
    assert run(["verify", str(tmp_path), "--json"]) == 0
    checked = json.loads(capsys.readouterr().out)
    assert [one["contest"] for one in checked["contests"]] == list(WEEKS)
    for one in checked["contests"]:
        lineups = played.lineups[one["contest"]]
        texts = [
            text["text"]
            for lineup in lineups
            for text in (
                lineup["thesis"],
                *(pick[name] for pick in lineup["picks"] for name in ("rationale", "main_factor")),
            )
        ]
        shown = [text for text in texts if text is not None]
        assert 0 < len(shown) < len(texts)
        assert (one["entries"], one["entries_opened"]) == (len(lineups), len(lineups))
        assert (one["leaves"], one["opened"]) == (20 * len(lineups), len(lineups) + len(shown))
        saved = (tmp_path / one["contest"] / "openings.jsonl").read_text(encoding="utf-8")
        values = [json.loads(line)["value"] for line in saved.split("\n")[:-1] if line != "null"]
        assert sorted(value for value in values if isinstance(value, str)) == sorted(shown)
        for name in (NOBODY, LET_GO, *CLAIMED):
            assert name not in saved, "an agent is named by its id alone"


@pytest.fixture(scope="module")
async def open_contest(played: Played) -> str:
    """The fourth week, opened and not yet locked."""
    contest = "2017-W04"
    async with operator(played.stack) as at_desk:
        locks_at = datetime.fromisoformat(played.contests[contest]["locks_at"])
        await at_desk.move_clock(locks_at - timedelta(hours=1))
        await at_desk.open(contest)
    return contest


async def key_of(url: str, name: str) -> str:
    async with PublicClient(url) as public:
        return (await register(public, name, "demo/example")).api_key


@pytest.mark.rule("C4", "C5")
async def test_the_longest_lineup_that_the_rules_allow_passes_the_gateway(played: Played, open_contest: str) -> None:
    """Every text at its limit, in characters that JSON may write with twelve bytes each."""
    contest, url = open_contest, played.stack.public_url
    async with PublicClient(url) as public:
        rules, pool = await public.contest(contest), await public.pool(contest)
    emoji = "\U0001f3c8"
    body = play("Long Winded", Style(Strategy.CHEAPEST), view(rules, pool, {})).body()
    body["thesis"] = emoji * 4000
    for pick in cast("list[dict[str, object]]", body["picks"]):
        pick |= {"rationale": emoji * 2000, "main_factor": emoji * 200}
    content = json.dumps(body, ensure_ascii=True).encode()
    assert len(content) > 262_144, "more than other calls may send"
    async with httpx.AsyncClient(base_url=url, timeout=30) as client:
        key = await key_of(url, "Long Winded")
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        lineups = f"/api/v1/contests/{contest}/lineups"
        for path, status in ((f"{lineups}/check", 200), (lineups, 201)):
            answer = await client.post(path, content=content, headers=headers)
            assert answer.status_code == status, answer.text
        mine = (await client.get(f"{lineups}/mine", headers=headers)).text
        assert mine.count(emoji) + mine.count("\\ud83c\\udfc8") == 9 * 2200 + 4000
        longer = await client.post(lineups, content=content + b" " * 1_048_576, headers=headers)
        assert (longer.status_code, longer.json()["code"]) == (413, "body-too-large")


@pytest.mark.rule("C4")
async def test_the_programs_of_the_clients_readme_run_as_they_stand_there(played: Played, open_contest: str) -> None:
    readme = (ROOT / "libs" / "client" / "README.md").read_text(encoding="utf-8")
    blocking, with_asyncio = re.findall(r"^```python\n(.+?)^```", readme, re.MULTILINE | re.DOTALL)
    url = played.stack.public_url
    where = {**os.environ, "MAFL_URL": url, "MAFL_KEY": await key_of(url, "Reader of the readme")}
    told = []
    for program in (blocking, with_asyncio):
        done = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-c", program], capture_output=True, text=True, env=where, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, "")
        told.append(done.stdout.split())
    assert told[0][0] == "1"
    assert told[0] == told[1], "revision and receipt, as the server has them"
