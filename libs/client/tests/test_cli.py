"""The ``mafl`` command without a server: help, the numbers made again, and how it fails."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pytest

from mafl.cli import moderation, run
from mafl.cli.output import CommandError, emit

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT / "data"

COMMANDS = [
    "",
    "up",
    "demo",
    "status",
    "settle",
    "clock",
    "contest",
    "contest import",
    "contest open",
    "contest lock",
    "contest reschedule",
    "contest move-game",
    "contest drop-game",
    "contest restore-game",
    "contest cancel",
    "contest list",
    "contest price",
    "contest price-backtest",
    "stats import",
    "agent list",
    "agent claim",
    "agent release",
    "agent mark",
    "models list",
    "models map",
    "audit",
    "interval",
    "optimal",
    "score",
    "moderation check",
    "moderation queue",
    "moderation backlog",
    "moderation again",
    "moderation approve",
    "moderation flag",
    "moderation redact-agent",
    "moderation rerun",
    "moderation note",
    "moderation take-back",
    "moderation history",
    "moderation audit",
]

PLAYERS = """player_id,name,position,team,price,points
q1,Q One,QB,PIT,6000,20.5
q2,Q Two,QB,SEA,7000,30
r1,R One,RB,PIT,8000,25
r2,R Two,RB,SEA,4000,10
r3,R Three,RB,CLE,5000,9.99
w1,W One,WR,PIT,7000,18
w2,W Two,WR,SEA,4000,12
w3,W Three,WR,CLE,3000,-0.5
w4,W Four,WR,HOU,3500,7
t1,T One,TE,PIT,3000,6
d1,PIT,DST,PIT,2500,8
"""


@dataclass(frozen=True)
class Done:
    """A command that has ended: its status and what it wrote."""

    returncode: int
    stdout: str
    stderr: str


class Mafl(Protocol):
    """Runs a command; ``cwd`` is where it stands."""

    def __call__(self, *arguments: str, cwd: Path = ROOT) -> Done: ...


@pytest.fixture
def mafl(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Mafl:
    """The command line in this process, with nothing of MAFL in its environment."""
    for name in [name for name in os.environ if name.startswith("MAFL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")

    def call(*arguments: str, cwd: Path = ROOT) -> Done:
        monkeypatch.chdir(cwd)
        capsys.readouterr()
        status = run(list(arguments))
        written = capsys.readouterr()
        return Done(status, written.out, written.err)

    return call


def document(done: Done) -> Any:
    """The one JSON document on standard output, whatever went to standard error."""
    return json.loads(done.stdout)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(mafl: Mafl, command: str) -> None:
    done = mafl(*command.split(), "--help")
    assert done.returncode == 0, done.stderr
    assert f"Usage: mafl {command}".rstrip() in done.stdout
    if command and command != "contest":
        assert "Examples" in done.stdout
        assert "--json" in done.stdout


def test_help_comes_at_once_because_nothing_heavy_is_loaded() -> None:
    program = (
        "import sys, mafl.cli; heavy = {'httpx', 'pydantic', 'numpy', 'ortools', 'embedded.stack', 'house', 'fastapi'}"
        "; print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_installed_command_and_the_module_are_one() -> None:
    for command in ([str(Path(sys.executable).with_name("mafl"))], [sys.executable, "-m", "mafl"]):
        done = subprocess.run([*command, "--help"], capture_output=True, text=True)
        assert (done.returncode, "Usage: mafl [OPTIONS] COMMAND" in done.stdout) == (0, True), done.stderr


@pytest.mark.rule("B4")
def test_an_interval_is_drawn_again_from_its_label_to_the_last_digit(mafl: Mafl) -> None:
    done = mafl("interval", "model:openai/gpt-5", "--sums", "119117,469573", "--counts", "9,37", "--json")
    assert document(done) == {
        "mean": 12797.608695652174,
        "low": 12691.162162162162,
        "high": 13235.222222222223,
        "weeks": 2,
        "marks": ["small sample"],
    }


@pytest.mark.rule("B5")
def test_one_week_has_no_mean_and_says_so(mafl: Mafl) -> None:
    found = document(mafl("interval", "agent:alice", "--sums", "12000", "--counts", "1", "--json"))
    assert (found["mean"], found["low"], found["high"]) == (None, None, None)
    assert "no interval yet" in found["marks"]
    assert "1 week: no interval yet" in mafl("interval", "agent:alice", "--sums", "12000", "--counts", "1").stdout


@pytest.mark.rule("S2")
def test_the_optimum_of_a_file_is_proven_and_the_best_are_listed(mafl: Mafl, tmp_path: Path) -> None:
    file = tmp_path / "week.csv"
    file.write_text(PLAYERS)
    found = document(mafl("optimal", str(file), "--best", "3", "--json"))
    assert found["certified"] is True
    assert found["players"] == sorted(found["players"])
    assert found["best"][0]["players"] == found["players"]
    assert [one["points"] for one in found["best"]] == sorted((one["points"] for one in found["best"]), reverse=True)
    assert found["price"] <= 50_000
    people = mafl("optimal", str(file))
    assert f"{found['points'] / 100:.2f} points" in people.stdout


def test_a_broken_pool_is_refused_with_line_and_column(mafl: Mafl, tmp_path: Path) -> None:
    file = tmp_path / "week.csv"
    file.write_text(PLAYERS.replace("q2,Q Two,QB,SEA,7000", "q2,Q Two,QB,SEA,seven"))
    done = mafl("optimal", str(file), "--json")
    assert done.returncode == 1
    problem = document(done)
    assert problem["code"] == "bad-input"
    assert "line 3, column price" in problem["detail"]
    assert "line 3, column price" in done.stderr


@pytest.mark.rule("S1")
def test_a_season_of_statistics_gets_its_points(mafl: Mafl) -> None:
    done = mafl("score", str(DATA / "weekly_stats_2017.csv.gz"))
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    bell = next(row for row in rows if row["player_id"] == "00-0030496" and row["week"] == "1")
    assert (len(rows), bell["points"]) == (6122, "7.70")
    same = document(mafl("score", str(DATA / "weekly_stats_2017.csv.gz"), "--json"))
    assert same["rows"] == rows


def test_an_unknown_scoring_is_named_with_those_that_exist(mafl: Mafl) -> None:
    problem = document(mafl("score", str(DATA / "weekly_stats_2017.csv.gz"), "--scoring", "nope", "--json"))
    assert "draftkings-classic-1" in problem["detail"]


@pytest.mark.rule("C11")
def test_an_import_can_be_tried_without_a_server(mafl: Mafl) -> None:
    file = str(DATA / "pool_2017_dk.csv.gz")
    found = document(mafl("contest", "import", file, "--dry-run", "--season", "2017", "--week", "4", "--json"))
    assert found["contest"] == "2017-W04"
    assert found["locks_at"] == "2017-10-01T17:00:00Z"
    assert found["rows"] == found["offered"] + len(found["unmatched"]) + len(found["refused"])


@pytest.mark.rule("C11")
def test_an_import_tried_for_a_person_says_why_each_row_is_not_offered(mafl: Mafl, tmp_path: Path) -> None:
    header = "Position,Name + ID,Name,ID,Roster Position,Salary,Game Info,TeamAbbrev,AvgPointsPerGame"
    game = "SEA@MIA 10/04/2020 01:00PM ET,SEA,9"
    rows = [
        f"WR,Jo Doe (1),Jo Doe,1,WR/FLEX,5000,{game}",
        f"WR,Al [b]Other (2),Al [b]Other,2,WR/FLEX,0,{game}",
        f"QB,Cy Thurd (3),Cy Thurd,3,QB,6000,{game}",
    ]
    listed, league, known = tmp_path / "DKSalaries.csv", tmp_path / "games.csv", tmp_path / "players.csv"
    listed.write_text("\n".join([header, *rows]))
    kickoff = "2020-10-05T19:05:00-04:00"
    league.write_text(f"game_id,season,week,away_team,home_team,kickoff\ng,2020,4,SEA,MIA,{kickoff}\n")
    known.write_text("player_id,name,position,team\n00-1,Jo Doe,WR,SEA\n00-3,Cy Third,QB,SEA\n")
    beside = ["--schedule", str(league), "--players", str(known)]
    shown = mafl("contest", "import", str(listed), "--dry-run", *beside)
    assert shown.returncode == 0, shown.stderr
    said = " ".join(shown.stdout.split())
    for part in (
        "2020-W04 locks 2020-10-05T23:05:00Z, by draftkings-classic-1",
        "1 rows offered (1 players), 1 unmatched, 1 refused",
        "differs g: listed kickoff 2020-10-04T17:00:00Z, 2020-10-05T23:05:00Z counts",
        "line 4 Cy Thurd; nearest: Cy Third (QB, SEA, 00-3)",
        "refused 1: the price 0 is not above zero line 3 Al [b]Other",
    ):
        assert part in said


def test_comparing_an_import_is_a_dry_run(mafl: Mafl) -> None:
    problem = mafl("contest", "import", str(DATA / "pool_2017_dk.csv.gz"), "--compare")
    assert problem.returncode != 0
    assert "--compare goes with --dry-run" in problem.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["interval", "x", "--sums", "1,a", "--counts", "1,1"], "bad-input"),
        (["interval", "x", "--sums", "1,2", "--counts", "1"], "bad-input"),
        (["interval", "x", "--sums", "١,2", "--counts", "1,1"], "bad-input"),
        (["interval", "x", "--sums", "9" * 5000, "--counts", "1"], "bad-input"),
        (["contest", "list", "--state", "/etc/passwd"], "state-unreadable"),
        (["clock"], "no-stack"),
        (["optimal", "/nowhere/week.csv"], "bad-input"),
        (["contest", "import", "/nowhere/week.csv"], "file-unreadable"),
        (["contest", "list"], "no-stack"),
        (["settle", "2017-W04"], "no-stack"),
        (["agent", "list"], "no-stack"),
        (["status"], "no-stack"),
    ],
)
def test_a_failure_is_one_problem_document_and_a_sentence(
    mafl: Mafl, arguments: list[str], code: str, tmp_path: Path
) -> None:
    done = mafl(*arguments, "--json", cwd=tmp_path)
    assert done.returncode == 1
    assert document(done)["code"] == code
    assert done.stderr.strip()
    assert "Traceback" not in done.stderr
    plain = mafl(*arguments, cwd=tmp_path)
    assert (plain.returncode, plain.stdout) == (1, "")


@pytest.mark.parametrize(
    "arguments",
    [
        ["interval", "x"],
        ["demoo"],
        ["settle"],
        ["contest", "import"],
        ["contest", "open", ""],
        ["contest", "lock", "../../x"],
        ["settle", "2017-4"],
        ["optimal", "x.csv", "--best", "1000000"],
        ["clock", "yesterday"],
        ["clock", "2017-10-01T16:59:00"],
        *(["up", option, port] for option in ("--port", "--operator-port") for port in ("-1", "0", "65536", "x")),
        *(
            ["up", "--public-url", address]
            for address in (
                "not a url",
                "mafl.example",
                "ftp://mafl.example",
                "https://",
                "https://a:99999",
                "http://a/b",
            )
        ),
    ],
)
def test_a_wrong_call_exits_with_two(mafl: Mafl, arguments: list[str]) -> None:
    done = mafl(*arguments, "--json")
    assert done.returncode == 2
    assert document(done)["code"] == "usage"
    assert "Usage: mafl" in done.stderr


def test_an_operator_elsewhere_is_named_by_the_environment(
    mafl: Mafl, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nobody listens at that port; the command says which address it tried, and not the token."""
    monkeypatch.setenv("MAFL_OPERATOR_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("MAFL_OPERATOR_TOKEN", "mafl_op_secret")
    started = time.monotonic()
    done = mafl("status", "--json", cwd=tmp_path)
    assert time.monotonic() - started < 10
    assert document(done)["code"] == "unreachable"
    assert "http://127.0.0.1:9" in done.stderr
    assert "mafl_op_secret" not in done.stderr + done.stdout


def test_a_stack_file_that_cannot_be_read_is_said_and_not_passed_over(mafl: Mafl, tmp_path: Path) -> None:
    (tmp_path / "stack.json").write_text("{")
    done = mafl("contest", "list", "--state", str(tmp_path), "--json")
    assert document(done)["code"] == "state-unreadable"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--season", "1999"], "no season 1999"),
        (["--weeks", "40"], "has 17 weeks, so not 40"),
        (["--data", "/nowhere"], "no season 2017 in /nowhere"),
        (["--json", "/nowhere/demo.json"], "/nowhere/demo.json cannot be written"),
        (["--json", "/"], "/ cannot be written: Is a directory"),
    ],
)
def test_a_season_that_cannot_be_played_is_refused_before_anything_starts(
    mafl: Mafl, arguments: list[str], said: str, tmp_path: Path
) -> None:
    done = mafl("demo", "--exit", "--free-ports", "--state", str(tmp_path / "state"), *arguments)
    assert done.returncode == 1
    assert said in " ".join(done.stderr.split())
    assert not (tmp_path / "state").exists()


def test_one_port_for_both_origins_is_refused_with_the_options_that_change_it(mafl: Mafl, tmp_path: Path) -> None:
    done = mafl("up", "--port", "23456", "--operator-port", "23456", "--state", str(tmp_path), "--json")
    assert done.returncode == 1
    told = document(done)["detail"]
    assert "port 23456 cannot be both" in told
    assert "--operator-port" in told


def test_help_says_that_an_existing_bus_has_no_walls_between_the_services(mafl: Mafl) -> None:
    told = " ".join(mafl("up", "--help").stdout.split())
    assert "one user of NATS for all services" in told


def test_who_brings_a_bus_is_warned_once_that_services_share_its_user(
    mafl: Mafl, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No database answers, so that nothing has to be waited for."""
    monkeypatch.setenv("MAFL_NATS_URL", "nats://someone:secret@127.0.0.1:9")
    monkeypatch.setenv("MAFL_DATABASE_URL", "postgresql://someone:secret@127.0.0.1:9/postgres")
    done = mafl("up", "--free-ports", "--state", str(tmp_path / "state"))
    assert done.returncode == 1
    told = " ".join(done.stderr.split())
    assert told.count("All services share the one user of MAFL_NATS_URL") == 1
    assert "MAFL_DATABASE_URL does not answer" in told
    assert "secret" not in told


def test_ctrl_c_while_the_command_still_loads_leaves_no_traceback() -> None:
    program = (
        "import sys, mafl.__main__ as entry\n"
        "class Impatient:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'mafl.cli': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Impatient()); entry.main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_what_is_read_by_nobody_is_no_error() -> None:
    command = f"{sys.executable} -m mafl score {DATA / 'weekly_stats_2017.csv.gz'} | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.startswith("season,week")
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


# --- moderation -----------------------------------------------------------------------------------


class Terminal(io.StringIO):
    """What somebody types where there is somebody to ask."""

    def isatty(self) -> bool:
        return True


@pytest.mark.rule("M4")
def test_checking_answers_every_line_and_fails_where_one_could_not_be_read(
    mafl: Mafl, monkeypatch: pytest.MonkeyPatch
) -> None:
    for lines, states, status in (
        (
            ['{"text": "Fine."}', "no JSON", '{"text": "Write to me@example.com"}'],
            ["cleared", "unchecked", "flagged"],
            1,
        ),
        (['{"text": "Fine."}', '{"text": "Write to me@example.com"}'], ["cleared", "flagged"], 0),
    ):
        monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(lines) + "\n"))
        done = mafl("moderation", "check")
        assert [json.loads(line)["state"] for line in done.stdout.splitlines()] == states
        assert done.returncode == status


@pytest.mark.rule("M6")
def test_whoever_does_not_say_yes_is_told_that_nothing_was_redacted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = {
        "revision": 2,
        "final": True,
        "slot": "WR1",
        "player": "Kareem\u202e Hunt",
        "state": "cleared",
        "text": "Words of a thesis\u202e " + "and more " * 40,
        "redacted": False,
        "copies": {"released": 1, "notes": 0},
    }
    planned = {"dry_run": True, "texts": [text], "redactions": []}
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    with pytest.raises(CommandError) as refused:
        moderation._confirm(planned, "/picks/0/rationale", json=False)
    assert "Nothing was redacted" in str(refused.value)
    said = capsys.readouterr().err
    assert "/picks/0/rationale (WR1 Kareem\\u202e Hunt) of revision 2 (final); its words are in" in said, (
        "whom they are about"
    )
    assert "it begins: Words of a thesis\\u202e and more" in said, "which words they are, harmless for a terminal"
    assert "and more " * 12 not in said
    assert "Nothing was changed" not in said, "not before the question"
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    moderation._confirm(planned, "/picks/0/rationale", json=False)


@pytest.mark.rule("M6")
def test_a_redaction_is_one_line_that_says_what_went_and_one_that_says_which_stores_are_rid_of_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = {
        "redaction_id": "r",
        "contest": "2017-W01",
        "lineup_id": "0199",
        "pointer": "/thesis",
        "revision": 2,
        "redacted_at": "2017-09-12T09:00:00Z",
        "reason": "court-order",
        "ordered_by": "ada [red]",
        "done": True,
        "moderation_at": "M",
        "contests_at": "C",
        "boards_at": "B",
        "boards_holds_nothing": False,
        "streams_at": "S",
        "messages": 4,
        "looks": 2,
    }
    going = {**gone, "revision": 1, "done": False, "boards_at": None, "streams_at": None, "contests_at": None}
    held = {**gone, "boards_holds_nothing": True, "boards_at": None, "looks": 1}
    monkeypatch.setenv("COLUMNS", "40")
    of = "2017-09-12T09:00:00Z court-order by ada [red]: 2017-W01 0199 /thesis revision"
    for found, said in (
        ([], ["Nothing was redacted."]),
        ([gone], [f"done  {of} 2", "  moderation: M, contests: C, boards: B, streams: 4 messages, 2 of 2 looks"]),
        (
            [going, held],
            [
                f"GOING  {of} 1",
                "  moderation: M, contests: not yet, boards: not yet, streams: not yet",
                f"done  {of} 2",
                "  moderation: M, contests: C, boards: holds nothing, streams: 4 messages, 1 of 2 looks",
            ],
        ),
    ):
        emit({}, False, partial(moderation._show_redactions, found=found))
        assert capsys.readouterr().out.splitlines() == said
    assert moderation._not_yet([gone, going, held]) == ["contests", "boards", "streams"]


@pytest.mark.rule("M6")
def test_the_queue_and_the_history_say_of_a_redacted_text_that_its_words_are_gone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    item = {
        "contest": "2017-W01",
        "lineup_id": "0199",
        "agent_id": "0198",
        "pointer": "/picks/0/rationale",
        "slot": "WR1",
        "player": "Kareem Hunt",
        "model": None,
        "state": "flagged",
        "version": 2,
        "text": "",
        "judged_by": "ada",
        "findings": [],
        "review_requested_at": None,
        "review_sentence": None,
        "redacted_at": "2017-09-12T09:00:00Z",
        "set_aside": None,
    }
    noted = {"pointer": item["pointer"], "note": "redacted", "noted_by": "ada", "noted_at": "2017-09-11T09:00:00Z"}
    emit(
        {}, False, lambda console: moderation._show_history(console, {"items": [item], "history": [], "notes": [noted]})
    )
    assert capsys.readouterr().out.splitlines() == [
        "flagged ada  2017-W01  --lineup 0199 --pointer /picks/0/rationale (WR1 Kareem Hunt)  by agent 0198"
        " --version 2",
        "  redacted 2017-09-12T09:00:00Z: its words are gone for good",
        "      2017-09-11T09:00:00Z  noted  by ada: redacted",
    ]
