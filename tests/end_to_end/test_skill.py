"""A newcomer plays a week of a running stack with nothing but what ``/skill.md`` says.

All that the newcomer does is in :class:`Newcomer`, which reads that one document and runs its calls as they are
written. What an operator does beside it (opening, locking, statistics, settlement) is in the test.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from common.problems import Problem
from contests import guide
from embedded.stack import Ports, Stack, StackOptions
from house.season import read_files, statistics_of
from mafl.client import PublicClient
from mafl.errors import MaflError
from mafl.operator import OperatorClient
from mafl.verify import verify
from testkit import public_api
from testkit.contracts import ROOT
from testkit.fixtures import Start

pytestmark = pytest.mark.timeout(300)

WEEK = "2017-W01"


@dataclass
class Newcomer:
    """Knows the text of skill.md; ``ran`` are the calls that it has tried."""

    skill: str
    directory: Path
    environment: dict[str, str] = field(default_factory=dict)
    ran: set[str] = field(default_factory=set)

    @property
    def front(self) -> dict[str, str]:
        """The front matter."""
        told: dict[str, str] = yaml.safe_load(self.skill.split("---\n")[1])
        return told

    @property
    def calls(self) -> dict[str, str]:
        """The calls, by the comment that each begins with."""
        scripts = re.findall(r"^```bash\n# (.+)\n((?:.*\n)*?)```$", self.skill, re.MULTILINE)
        return dict(scripts)

    def run(self, name: str) -> Any:
        """Run a call as it is written; its answer, parsed."""
        self.ran.add(name)
        done = subprocess.run(
            ["bash", "-euc", self.calls[name]],
            cwd=self.directory,
            env={"PATH": os.environ["PATH"], "NO_PROXY": "*", **self.environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return json.loads(done.stdout) if done.stdout else None

    def write(self, name: str, document: Any) -> None:
        """A file that a call sends."""
        (self.directory / name).write_text(json.dumps(document), encoding="utf-8")

    def table(self, heading: str) -> list[list[str]]:
        """The rows of the first table under a heading."""
        found = re.search(r"(?:^\|.*\|\n)+", self.skill.split(f" {heading}\n", 1)[1], re.MULTILINE)
        assert found is not None, heading
        return [[cell.strip(" `") for cell in row.strip("|").split(" | ")] for row in found[0].splitlines()[2:]]

    @property
    def cap(self) -> int:
        """What the picks may cost together."""
        found = re.search(r"prices together at most \*\*(\d+)\*\*", self.skill)
        assert found is not None
        return int(found[1])

    @property
    def example(self) -> dict[str, Any]:
        """The body that is shown."""
        found = re.search(r"^```json\n((?:.*\n)*?)```$", self.skill, re.MULTILINE)
        assert found is not None
        body: dict[str, Any] = json.loads(found[1])
        return body

    def lineup(self, players: list[dict[str, Any]]) -> dict[str, Any]:
        """Its own lineup: by the roster's table and the cap, in each slot the dearest player that leaves enough."""
        roster = [(slot, set(positions.split(", "))) for slot, positions in self.table("3. Pick")]
        free = sorted(players, key=lambda player: (player["price"], player["player_id"]))
        cheapest: list[dict[str, Any]] = []
        for _, takes in roster:
            player = next(one for one in free if takes & set(one["positions"]) and one not in cheapest)
            cheapest.append(player)
        left = self.cap - sum(player["price"] for player in cheapest)
        picks = list(cheapest)
        for place, (_, takes) in enumerate(roster):
            fits = [
                one
                for one in free
                if takes & set(one["positions"]) and one not in picks and one["price"] <= picks[place]["price"] + left
            ]
            if fits and fits[-1]["price"] > picks[place]["price"]:
                left -= fits[-1]["price"] - picks[place]["price"]
                picks[place] = fits[-1]
        return {
            "picks": [
                {
                    "slot": slot,
                    "player_id": player["player_id"],
                    "rationale": f"{player['name']} is priced at {player['price']}, the most that was left.",
                    "confidence": 0.4,
                    "main_factor": "price",
                }
                for (slot, _), player in zip(roster, picks, strict=True)
            ],
            "thesis": "Dear players at the first slots.",
            "projected_score": 101.25,
            "confidence": 0.45,
        }


@pytest.mark.skipif(
    not shutil.which("curl") and os.environ.get("CI") != "true", reason="the calls of skill.md are curl's"
)
@pytest.mark.rule("A1", "A3", "A11", "C3", "C4", "C5", "C6", "C9", "C10", "D2", "M1")
async def test_a_newcomer_who_reads_skill_md_alone_plays_a_week_and_reads_its_result(tmp_path: Path) -> None:
    files = read_files(ROOT / "data", 2017, 1)
    options = StackOptions(state=tmp_path / "state", ports=Ports.free(), clock="replay", fresh=True, durable=False)
    async with Stack(options) as stack:
        operator = OperatorClient(stack.operator_url, token=stack.operator_token)
        public = PublicClient(stack.public_url)
        async with operator, public:
            await operator.import_contests(files.pool, season=2017, week=1)
            (contest,) = (await operator.operator_contests())["contests"]
            locks_at = datetime.fromisoformat(contest["locks_at"])
            await operator.move_clock(locks_at - timedelta(hours=48))
            await operator.open(WEEK)

            text = (await asyncio.to_thread(httpx.get, f"{stack.public_url}/skill.md")).text
            (tmp_path / "newcomer").mkdir()
            newcomer = Newcomer(text, tmp_path / "newcomer")
            receipt = await asyncio.to_thread(_until_the_lock, newcomer, stack.public_url)

            await operator.move_clock(locks_at)
            await operator.lock(WEEK)
            last = max(game.kickoff for game in (await public.contest(WEEK)).games)
            await operator.move_clock(last + timedelta(hours=12))
            statistics = statistics_of(files, 1, sunday_only=False)
            await operator.import_statistics(statistics, season=2017, week=1, final=True)
            settled = await _soon(lambda: operator.settle(WEEK))
            await _soon(lambda: public.optimal(WEEK))

            await asyncio.to_thread(_after_the_lock, newcomer, receipt, settled.optimal["points"])
            assert newcomer.ran == set(newcomer.calls), "a call of skill.md that nobody tries may be wrong"


def _until_the_lock(newcomer: Newcomer, url: str) -> dict[str, Any]:
    """Register, read, check, submit, submit again; the last receipt."""
    assert newcomer.front["api_base"] == f"{url}/api/v1"
    assert WEEK in newcomer.skill

    newcomer.run("prepare")
    lost = newcomer.run("register")
    registered = newcomer.run("register")
    assert registered["agent"] == lost["agent"], "a lost answer costs nothing"
    assert registered["api_key"] != lost["api_key"]
    assert "dataset" in registered["deal"]
    newcomer.environment["MAFL_KEY"] = registered["api_key"]
    assert newcomer.run("who am I") == registered["agent"]
    assert newcomer.run("change what you state")["model"] == "openai/gpt-5-mini"
    assert newcomer.run("another claim link")["claim_url"] != registered["claim_url"]
    unheard = newcomer.run("another key")
    newcomer.environment["MAFL_KEY"] = newcomer.run("another key")["api_key"]
    assert newcomer.environment["MAFL_KEY"] not in (registered["api_key"], unheard["api_key"])

    assert newcomer.run("the contest now")["contest"] == WEEK
    players = newcomer.run("the pool")["players"]

    newcomer.write("lineup.json", newcomer.example)
    assert newcomer.run("check")["valid"] is True
    first = newcomer.run("submit")
    assert (first["revision"], first["model"]) == (1, "openai/gpt-5-mini")

    mine = newcomer.lineup(players)
    newcomer.write("lineup.json", mine | {"confidence": 2, "thesis": ""})
    refused = newcomer.run("check")
    advice = {code: what for _, code, what in newcomer.table("Refusals")}
    assert "`violations`" in advice[refused["code"]]
    assert {fault["pointer"] for fault in refused["violations"]} == {"/confidence", "/thesis"}
    newcomer.write("lineup.json", mine)
    second = newcomer.run("submit")
    assert (second["lineup"], second["revision"]) == (first["lineup"], 2)
    assert second["total_price"] <= newcomer.cap
    assert newcomer.run("my lineup") == {**second, "body": mine}
    early = newcomer.run("results")
    assert (early["status"], early["code"]) == (409, "contest-not-locked")
    with pytest.raises(subprocess.CalledProcessError):
        newcomer.run("keep the proof")
    assert not (newcomer.directory / "proof" / "proof.json").exists(), "a refusal is kept as no proof"
    assert early["code"] in advice
    return dict(second)


def _after_the_lock(newcomer: Newcomer, receipt: dict[str, Any], optimal: int) -> None:
    """Read what the lineup of the receipt has scored."""
    results = newcomer.run("results")
    assert results["state"] == "final"
    assert results["optimal"]["points"] == optimal
    (entry,) = [one for one in results["lineups"] if one["lineup"] == receipt["lineup"]]
    assert entry["points"] == sum(pick["points"] for pick in entry["picks"])
    assert entry["regret"] == optimal - entry["points"]
    assert entry["share"] == entry["points"] * 10**6 // optimal
    assert 0 < entry["points"] < optimal
    newcomer.run("keep the proof")
    report = verify(newcomer.directory / "proof")
    assert report.failures == []
    assert [(one["receipt"], one["committed"]) for one in report.receipts] == [(receipt["receipt"], True)]
    board = newcomer.run("the board of models")
    assert [(row["model"], row["lineups"]) for row in board["rows"]] == [(receipt["model"], 1)]


async def _soon(call: Callable[[], Awaitable[Any]]) -> Any:
    """The answer once the news has arrived that it needs."""
    for _ in range(200):
        try:
            return await call()
        except MaflError as error:
            if error.status not in (404, 409):
                raise
            await asyncio.sleep(0.1)
    return await call()


# --- what may be refused ------------------------------------------------------------------------

NOT_FOR_AGENTS = {
    # Operators' calls.
    *("clock-backwards", "clock-not-replay", "contest-exists", "file-malformed", "game-unknown", "not-yet"),
    *("game-not-covered", "no-game-left", "nothing-to-play", "ruleset-unknown"),
    # Pages, which people read.
    *("claim-link-expired", "claim-link-unknown", "claim-link-used"),
    *("nothing-to-review", "sentence-too-long", "too-many-watchers"),
}
"""Codes of the three public services that no call of an agent is answered with."""


def test_no_refusal_of_the_public_services_is_kept_from_agents() -> None:
    told = {problem["code"] for problem in guide.openapi("")["x-problems"]}
    for name in public_api.SERVICES:
        import_module(f"{name}.main")

    def kinds(kind: type[Problem]) -> set[type[Problem]]:
        return {kind}.union(*(kinds(narrower) for narrower in kind.__subclasses__()))

    codes = {kind.code for kind in kinds(Problem) if kind.__module__.split(".")[0] in ("common", *public_api.SERVICES)}
    assert codes == told | NOT_FOR_AGENTS


async def test_every_fault_of_a_request_that_services_find_is_one_that_skill_md_tells_of(start: Start) -> None:
    told = guide.openapi("")["x-faults"]["invalid-request"]
    found: set[str] = set()

    def note(answer: httpx.Response) -> None:
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request"), answer.text
        faults = {fault["code"] for fault in answer.json()["violations"]}
        assert faults <= set(told), answer.text
        found.update(faults)

    good = {"name": "A Good Name", "model": "openai/gpt-5"}
    async with start("registry") as service:
        for body in (
            *(
                {"name": "A Good Name"},
                {**good, "more": 1},
                {**good, "name": 3},
                {**good, "name": None},
                [],
                "text",
                None,
            ),
            *(
                {**good, "name": name}
                for name in ("x", "x" * 33, "admin", "a\u200bbc", "a/b/c", "Unclaimed 1", "\ud800abc")
            ),
            *({**good, "model": model} for model in ("", "a//b", "a\nb", "x" * 101, 5, {})),
            *({**good, "description": text} for text in ("x" * 1001, "a\0b", 7, ["x"])),
            *({**good, member: text} for member in ("harness", "provider") for text in ("x" * 101, "a\nb", False)),
        ):
            note(await service.client.post("/api/v1/agents", content=json.dumps(body)))
        for raw in (b"", b"{", b"\xff", b'{"name": "A Good Name", "name": "Another", "model": "m"}', b"[" * 9999):
            note(await service.client.post("/api/v1/agents", content=raw))
        for key in ("", "x" * 256):
            note(await service.client.post("/api/v1/agents", json=good, headers={"Idempotency-Key": key}))
    async with start("boards") as service:
        for season in ("x", "1.5", ""):
            note(await service.client.get("/api/v1/boards/models", params={"season": season}))
    async with start("contests") as service:
        note(await service.client.get("/api/v1/contests/2017-W04/pool?format=xml"))
        note(await service.client.post("/api/v1/contests/2017-W04/lineups", headers={"Idempotency-Key": ""}))
    assert found == set(told), "told of, and never found"
