"""A week that no salary file prices: priced by MAFL from the weeks before, imported, opened and locked."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from contests import pricing
from mafl.cli import run
from testkit.contracts import ROOT
from testkit.fixtures import Start

DATA = ROOT / "data"
OPENED = datetime(2017, 11, 2, 12, tzinfo=UTC)


@pytest.mark.rule("C11")
async def test_a_week_priced_from_past_points_is_imported_opened_and_locked(
    start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    priced = tmp_path / "priced.csv"
    options = {
        "--season": "2017",
        "--week": "9",
        "--statistics": str(DATA / "weekly_stats_2017.csv.gz"),
        "--players": str(DATA / "pool_2017_dk.csv.gz"),
        "--schedule": str(DATA / "pool_2017_dk.csv.gz"),
        "--output": str(priced),
    }
    assert run(["contest", "price", *(part for option in options.items() for part in option), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    async with start("contests", clock="replay") as contests:
        await contests.move_clock(OPENED)
        report = (await contests.operator.post("/operator/api/v1/contests/import", content=priced.read_bytes())).json()
        assert (report["contest"], report["source"]) == ("2017-W09", f"mafl-pool {document['source']}")
        opened = await contests.operator.post("/operator/api/v1/contests/2017-W09/open")
        assert opened.is_success, opened.text
        players = (await contests.client.get("/api/v1/contests/2017-W09/pool")).json()["players"]
        assert len(players) == report["players"]
        assert {player["price"] % pricing.STEP for player in players} == {0}
        assert "2017-W09" in (await contests.client.get("/skill.md")).text
        await contests.move_clock(OPENED + timedelta(days=4))
        state = (await contests.client.get("/api/v1/contests/2017-W09")).json()
        assert state["state"] == "locked"
