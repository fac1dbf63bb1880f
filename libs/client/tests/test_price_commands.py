"""``mafl contest price`` and ``mafl contest price-backtest``, on the repository's own data and without a server."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from mafl.cli import run

pytestmark = pytest.mark.rule("C11")

ROOT = Path(__file__).resolve().parents[3]
STATISTICS = str(ROOT / "data/weekly_stats_2017.csv.gz")
POOL = str(ROOT / "data/pool_2017_dk.csv.gz")
SCHEDULE = ROOT.parent / "shared/data/schedules_2017_2026.csv"
GOLDEN = "sha256:fe01cd59eec8465918d191dd6ee794746f58afa44c1963d40c0eecb977a2521e"


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any, str]:
    """A command in this process: its status, its document and what it said beside it."""
    capsys.readouterr()
    status = run([*arguments, "--json"])
    written = capsys.readouterr()
    return status, json.loads(written.out), written.err


def price(capsys: pytest.CaptureFixture[str], output: Path, *more: str, schedule: str = POOL, week: int = 9) -> Any:
    arguments = ["--season", "2017", "--week", str(week), "--statistics", STATISTICS, "--schedule", schedule]
    status, document, said = call(capsys, "contest", "price", *arguments, "--output", str(output), *more)
    assert status == 0, said
    return document


def test_a_week_is_priced_into_a_salary_file_that_imports(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    output = tmp_path / "priced.csv"
    document = price(capsys, output, "--players", POOL)
    assert document["source"] == GOLDEN
    assert (document["contest"], document["priced_by"], document["games"]) == ("2017-W09", "built-in-1", 13)
    assert abs(document["typical_lineup"] - document["cap"]) <= 500
    status, report, said = call(capsys, "contest", "import", str(output), "--dry-run")
    assert status == 0, said
    assert report["source"] == f"mafl-pool {GOLDEN}"
    assert report["rows"] == document["players"]
    assert (len(report["unmatched"]), report["locks_at"]) == (0, "2017-11-05T18:00:00Z")


@pytest.mark.skipif(not SCHEDULE.exists(), reason="the schedule of all seasons is not part of the repository")
def test_a_schedule_gives_the_same_prices_as_a_list_of_its_games(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    document = price(capsys, tmp_path / "priced.csv", "--players", POOL, schedule=str(SCHEDULE))
    assert document["source"] == GOLDEN


def test_what_happens_in_the_week_or_later_does_not_show(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with gzip.open(STATISTICS, "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    earlier = [row for row in rows if int(row["week"]) < 9]
    for name, kept in (("earlier", earlier), ("changed", earlier + [row for row in rows if row["week"] == "10"])):
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, list(rows[0]))
        writer.writeheader()
        writer.writerows(reversed(kept))
        (tmp_path / name).write_text(text.getvalue())
        arguments = ["--season", "2017", "--week", "9", "--statistics", str(tmp_path / name), "--schedule", POOL]
        status, document, said = call(
            capsys, "contest", "price", *arguments, "--players", POOL, "--output", str(tmp_path / "priced.csv")
        )
        assert (status, document.get("source")) == (0, GOLDEN), said


def test_a_week_without_a_whole_lineup_is_refused_with_what_to_give(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    output = tmp_path / "priced.csv"
    arguments = ["--season", "2017", "--week", "9", "--schedule", POOL, "--output", str(output)]
    status, document, _ = call(capsys, "contest", "price", *arguments, "--statistics", STATISTICS)
    assert (status, document["code"], output.exists()) == (1, "bad-input", False)
    detail = document["detail"]
    assert detail.startswith("26 players of 13 games fill no lineup for 2017-W09: nobody is left for QB, ")
    assert "left out because: no source tells his position" in detail
    assert "Give --players" in detail
    status, document, _ = call(
        capsys, "contest", "price", *arguments, "--statistics", STATISTICS.replace("2017", "2020")
    )
    assert (status, output.exists()) == (1, False)
    assert document["detail"].startswith("0 players of 13 games fill no lineup for 2017-W09: ")


def test_a_list_without_player_ids_is_back_tested_only_with_a_players_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with gzip.open(POOL, "rt", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["week"] in ("8", "9")]
    plain = tmp_path / "plain.csv"
    with plain.open("w", newline="") as out:
        writer = csv.DictWriter(out, [column for column in rows[0] if column != "player_id"], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    plain.write_text(plain.read_text().replace("salary", "price", 1))
    arguments = [str(plain), "--statistics", STATISTICS]
    status, document, _ = call(capsys, "contest", "price-backtest", *arguments)
    assert (status, document["code"]) == (1, "bad-input")
    assert "players listed for 2017, team defences apart" in document["detail"]
    assert "needs --players, a file with player_id, name, position and team" in document["detail"]
    status, document, said = call(capsys, "contest", "price-backtest", *arguments, "--players", POOL)
    assert status == 0, said
    assert all(document["seasons"][0]["positions"][position]["spearman"] > 0.7 for position in ("QB", "RB", "WR"))


def test_wrong_input_names_the_file_and_what_is_wrong(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    def failed(*arguments: str) -> str:
        base = ["--season", "2017", "--week", "9", "--output", str(tmp_path / "out.csv")]
        status, document, _ = call(capsys, "contest", "price", *base, *arguments)
        assert status == 1
        assert not (tmp_path / "out.csv").exists()
        return f"{document['code']} {document['title']} {document['detail']}"

    said = failed("--statistics", STATISTICS, "--schedule", STATISTICS)
    assert f"bad-input --schedule {STATISTICS} cannot be used line 1: this is no schedule: no column away_team" in said
    assert "gameday and gametime" in said
    assert "DraftKings" not in said
    said = failed("--statistics", POOL, "--schedule", POOL, "--ruleset", "no-such")
    assert "no ruleset 'no-such'; known: draftkings-classic-1" in said
    said = failed("--statistics", str(tmp_path / "none.csv"), "--schedule", POOL)
    assert "file-unreadable" in said
    (tmp_path / "bad.csv").write_text("season,week,player_id,name,team,rec\n2017,1,a,A,NE,1.5\n")
    said = failed("--statistics", str(tmp_path / "bad.csv"), "--schedule", POOL)
    assert "bad.csv cannot be used line 2, column rec: '1.5' is not a statistic" in said


def test_the_back_test_is_what_the_documentation_shows(capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(ROOT / f"data/{name}_{season}{end}.csv.gz") for season in (2017, 2020)
             for name, end in (("pool", "_dk"), ("weekly_stats", ""))]  # fmt: skip
    arguments = [files[0], files[2], "--statistics", files[1], "--statistics", files[3]]
    status, document, said = call(capsys, "contest", "price-backtest", *arguments)
    assert status == 0, said
    assert [(season["season"], season["tuned"]) for season in document["seasons"]] == [(2017, True), (2020, False)]
    assert all([week["week"] for week in season["weeks"]] == list(range(4, 18)) for season in document["seasons"])
    text = (ROOT / "docs/pricing.md").read_text()
    for season in document["seasons"]:
        for position, of in season["positions"].items():
            row = (
                f"| {season['season']} | {position} | {of['listed']:,} | {of['spearman']:.3f} | "
                f"{of['least_spearman']:.3f} | {of['spearman_with_history']:.3f} | "
                f"{of['mean_absolute_difference']:,} | {of['mean_difference']:+,} |"
            )
            assert row in text, row
    # Enough of an order to play by: far from chance at every position, whatever the season.
    for season in document["seasons"]:
        for position, of in season["positions"].items():
            assert of["spearman"] > (0.35 if position == "DST" else 0.75)
            assert all(week["positions"][position]["listed"] > 5 for week in season["weeks"])
    assert run(["contest", "price-backtest", *arguments]) == 0
    table = capsys.readouterr().out
    assert "2020 (held out)" in table
    tuned = document["seasons"][0]["positions"]["QB"]
    assert f"{tuned['spearman']:.3f}   {tuned['mean_absolute_difference']:,}" in table
