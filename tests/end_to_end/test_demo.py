"""The demo as anyone starts it: one command, real servers, the season's first weeks, and the document it writes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from house.roster import FIELD, MODELS, Member
from house.strategies import Strategy

WEEKS = 3
PLAYING = [member for member in FIELD if member.joins <= WEEKS]
CLAIMED = {member.name for member in PLAYING if member.owner is not None and member.claimed_from <= WEEKS}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "mafl", *arguments]


def environment() -> dict[str, str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("MAFL_")}
    return {**clean, "NO_COLOR": "1"}


@dataclass(frozen=True)
class Run:
    """One run of the demo to its end."""

    document: dict[str, Any]
    printed: str
    told: str


def demo(directory: Path) -> Run:
    file = directory / "demo.json"
    done = subprocess.run(
        command(
            "demo", "--weeks", str(WEEKS), "--exit", "--free-ports", "--json", str(file), "--state", str(directory)
        ),
        capture_output=True,
        text=True,
        env=environment(),
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return Run(json.loads(file.read_text(encoding="utf-8")), done.stdout, done.stderr)


@pytest.fixture(scope="module")
def runs(kept: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run]:
    """The same three weeks twice, each from nothing; the pages of the second stay up."""
    document = json.loads((kept / "demo.json").read_text(encoding="utf-8"))
    return demo(tmp_path_factory.mktemp("one")), Run(document, "", (kept / "told").read_text())


pytestmark = pytest.mark.timeout(600)


@pytest.mark.rule("O1", "B4")
def test_two_runs_of_the_demo_end_in_the_same_boards(runs: tuple[Run, Run]) -> None:
    one, two = (run.document for run in runs)
    assert len(one["digest"]) == 64
    assert one["digest"] == two["digest"]
    assert one["boards"] == two["boards"]


@pytest.mark.rule("O1", "B1", "B9")
def test_the_demo_writes_what_happened(runs: tuple[Run, Run]) -> None:
    found = runs[0].document
    assert list(found) == ["season", "weeks", "agents", "lineups", "boards", "digest", "seconds"]
    assert (found["season"], found["weeks"], found["agents"]) == (2017, WEEKS, len(PLAYING))
    assert found["lineups"] == sum(member.plays(week) for member in PLAYING for week in range(1, WEEKS + 1))
    assert set(found["boards"]) == {"models", "agents", "cohort"}
    assert 0 < found["seconds"]["first_page"] < found["seconds"]["season"]
    for board, who in (("models", "model"), ("agents", "name"), ("cohort", "model")):
        for row in found["boards"][board]:
            whose = [one for one in PLAYING if getattr(one, who) == row[who] and (board != "cohort" or one.cohort)]
            lineups = {week: sum(one.plays(week) for one in whose) for week in range(1, WEEKS + 1)}
            played = {f"2017-W{week:02}": number for week, number in lineups.items() if number}
            assert dict(zip(row["contests"], row["counts"], strict=True)) == played, row[who]
            assert row["contests"] == sorted(played)
            assert (row["weeks"], row["lineups"]) == (len(played), sum(played.values()))
            assert row["low"] <= row["mean"] <= row["high"]
    assert sum(row["lineups"] for row in found["boards"]["models"]) == found["lineups"]


@pytest.mark.rule("A4", "A5", "A8", "A10", "B2", "B8")
def test_the_boards_show_who_may_be_shown_and_mark_whose_they_are(runs: tuple[Run, Run]) -> None:
    boards = runs[0].document["boards"]
    assert {row["name"] for row in boards["agents"]} == CLAIMED
    assert {row["model"] for row in boards["models"]} == {member.model for member in PLAYING}
    assert {row["model"] for row in boards["cohort"]} == {member.model for member in FIELD if member.cohort}
    marks = {row["name"]: set(row["marks"]) for row in boards["agents"]}
    for member in PLAYING:
        if member.name in CLAIMED:
            assert ("HOUSE" in marks[member.name]) == member.house, member.name
            assert ("reference" in marks[member.name]) == member.reference, member.name
    told = runs[0].printed
    assert all(name in told for name in CLAIMED)
    assert not any(member.name in told for member in PLAYING if member.name not in CLAIMED)


@pytest.mark.rule("O1")
def test_the_demo_says_where_its_pages_are_and_how_it_goes(runs: tuple[Run, Run]) -> None:
    told = runs[0].told
    assert "MAFL is at http://127.0.0.1:" in told
    assert [line for line in ("2017-W01", "2017-W02", "2017-W03") if line in told] == [
        "2017-W01",
        "2017-W02",
        "2017-W03",
    ]
    assert runs[0].document["digest"] in runs[0].printed


def test_the_field_is_as_large_and_as_mixed_as_a_demo_should_show() -> None:
    def some(what: str, wanted: list[Member]) -> None:
        assert wanted, what

    assert len(FIELD) >= 24
    assert len({member.model for member in FIELD}) >= 8
    assert len({member.name for member in FIELD}) == len(FIELD)
    assert {member.style.strategy for member in FIELD if member.reference} == set(Strategy)
    cohort = [member for member in FIELD if member.cohort]
    assert len({member.style for member in cohort}) == 1, "one configuration, the model the only variable"
    assert len({member.model for member in cohort}) >= 3
    some("unclaimed", [member for member in FIELD if member.owner is None])
    some("joins in week 6", [member for member in FIELD if member.joins == 6])
    some("skips weeks", [member for member in FIELD if member.skips])
    some("resubmits", [member for member in FIELD if member.resubmits])
    some("says what moderation flags", [member for member in FIELD if member.aside])
    some("a name with accents", [member for member in FIELD if not member.name.isascii()])
    for member in FIELD:
        fictional = member.model in MODELS and member.model.startswith("demo/")
        assert fictional or member.model == f"reference/{member.style.strategy}", "no real model is credited"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A demo whose pages stay up: the state directory that its commands look in."""
    state = tmp_path_factory.mktemp("kept")
    process = subprocess.Popen(
        command(
            "demo", "--weeks", str(WEEKS), "--free-ports", "--json", str(state / "demo.json"), "--state", str(state)
        ),
        stdout=subprocess.DEVNULL,
        stderr=(log := (state / "told").open("w")),
        env=environment(),
    )
    try:
        deadline = time.monotonic() + 240
        while "pages stay" not in (state / "told").read_text():
            assert process.poll() is None, (state / "told").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.2)
        yield state
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=40) == 0
        log.close()


def operate(state: Path, *arguments: str) -> tuple[int, Any]:
    done = subprocess.run(
        command(*arguments, "--state", str(state), "--json"),
        capture_output=True,
        text=True,
        env=environment(),
        timeout=60,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.mark.rule("M1", "M2", "M3", "A10")
def test_words_are_shown_of_claimed_agents_and_only_what_moderation_cleared(kept: Path) -> None:
    public = json.loads((kept / "stack.json").read_text())["public_url"]
    deadline = time.monotonic() + 60
    reasons: dict[str, list[str | None]] = {"not checked yet": []}
    # Moderation runs beside the lock, not before it: its last verdicts may still be on their way.
    while any("not checked yet" in of_one for of_one in reasons.values()) or len(reasons) < 2:
        assert time.monotonic() < deadline, reasons
        lineups = httpx.get(f"{public}/api/v1/contests/2017-W01/lineups").json()["lineups"]
        reasons = {
            lineup["agent"]["name"]: [lineup["thesis"]["withheld"]]
            + [pick[text]["withheld"] for pick in lineup["picks"] for text in ("rationale", "main_factor")]
            for lineup in lineups
        }
        time.sleep(0.2)
    playing = [member for member in FIELD if member.plays(1)]
    claimed = {member.name: member for member in playing if member.owner is not None and member.claimed_from == 1}
    assert len(reasons) == len(playing)
    for name, withheld in reasons.items():
        if name not in claimed:
            assert name.startswith("unclaimed-")
            assert set(withheld) == {"unclaimed"}
        else:
            assert sorted(filter(None, withheld)) == ["flagged"] * bool(claimed[name].aside), name


@pytest.mark.rule("O1", "O3")
def test_an_operator_sees_that_everything_is_ready(kept: Path) -> None:
    code, found = operate(kept, "status")
    assert (code, found["ready"], found["state"]) == (0, True, str(kept))
    assert set(found["services"]) == {"registry", "contests", "moderation", "settlement", "boards"}
    assert len(found["boards"]["digest"]) == 64


def test_an_operator_lists_contests_and_agents(kept: Path) -> None:
    _, contests = operate(kept, "contest", "list")
    states = {row["contest"]: (row["state"], row["settlement"]) for row in contests["contests"]}
    assert states["2017-W03"] == ("locked", 1)
    assert states["2017-W04"] == ("draft", None)
    _, agents = operate(kept, "agent", "list")
    assert {agent["name"] for agent in agents["agents"]} == {member.name for member in PLAYING}


def test_an_operator_moves_the_replay_clock_and_only_forwards(kept: Path) -> None:
    _, before = operate(kept, "clock")
    assert before["clock"] == "replay"
    later = (datetime.fromisoformat(before["now"]) + timedelta(minutes=1)).isoformat()
    code, moved = operate(kept, "clock", later)
    assert code == 0
    assert datetime.fromisoformat(moved["now"]) == datetime.fromisoformat(later)
    code, problem = operate(kept, "clock", "2017-01-01T00:00:00Z")
    assert code == 1
    assert "backward" in problem["code"]


@pytest.mark.rule("S5")
def test_settling_again_changes_nothing(kept: Path) -> None:
    code, found = operate(kept, "settle", "2017-W01")
    assert (code, found["changed"], found["settlement"]) == (0, False, 1)


@pytest.mark.rule("A5", "A8")
def test_an_operator_claims_marks_and_releases_by_name(kept: Path) -> None:
    code, claimed = operate(kept, "agent", "claim", "NOBODY'S BOT 1", "--owner", "Somebody")
    assert (code, claimed["status"]) == (0, "claimed")
    _, marked = operate(kept, "agent", "mark", "nobody's bot 1", "--reference")
    assert set(marked["marks"]) == {"house", "reference"}
    _, unmarked = operate(kept, "agent", "mark", claimed["id"])
    assert unmarked["marks"] == []
    _, released = operate(kept, "agent", "release", claimed["id"])
    assert released["status"] == "unclaimed"
    code, problem = operate(kept, "agent", "release", "no such agent")
    assert (code, problem["code"]) == (1, "agent-unknown")


@pytest.mark.rule("C2")
def test_what_the_server_refuses_is_printed_as_it_said(kept: Path) -> None:
    code, problem = operate(kept, "contest", "lock", "2017-W99")
    assert (code, problem["code"], problem["status"]) == (1, "contest-unknown", 404)
    code, opened = operate(kept, "contest", "open", "2017-W04")
    assert (code, opened["state"]) == (0, "open")
    code, problem = operate(kept, "contest", "lock", "2017-W04")
    assert (code, problem["code"]) == (1, "not-yet")


@pytest.mark.rule("C11")
def test_an_import_that_would_change_a_contest_is_refused(kept: Path, tmp_path: Path) -> None:
    file = tmp_path / "pool.csv"
    file.write_text("season,week\n2017,1\n")
    code, problem = operate(kept, "contest", "import", str(file))
    assert (code, problem["code"]) == (1, "file-malformed")


def test_a_second_stack_on_the_same_state_says_who_holds_it(kept: Path) -> None:
    done = subprocess.run(
        command("up", "--free-ports", "--state", str(kept), "--json"),
        capture_output=True,
        text=True,
        env=environment(),
        timeout=60,
    )
    assert done.returncode == 1
    assert "a stack already runs from" in json.loads(done.stdout)["detail"]
