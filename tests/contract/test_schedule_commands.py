"""The `mafl contest` commands of the schedule, run as an operator runs them against a served contests."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from mafl.cli import run
from testkit.contracts import ROOT
from testkit.fixtures import OPERATOR_TOKEN, Start
from testkit.serving import served

POOL = ROOT / "data" / "pool_2017_dk.csv.gz"
W04 = "2017-W04"
SCHEDULE = """game_id,season,week,away_team,home_team,kickoff
2017_04_WAS_KC,2017,4,WAS,KC,2017-10-03T19:00:00-04:00
2017_04_BUF_ATL,2017,4,BUF,ATL,2017-10-01T09:30:00-04:00
"""

pytestmark = pytest.mark.timeout(120)


async def test_an_operator_follows_the_schedule_from_the_command_line(
    start: Start, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    games = tmp_path / "games.csv"
    games.write_text(SCHEDULE)

    async def mafl(*arguments: str, status: int = 0) -> str:
        capsys.readouterr()
        found = await anyio.to_thread.run_sync(run, list(arguments))
        said = capsys.readouterr()
        assert found == status, said
        return " ".join((said.out + said.err).split())

    async def answer(*arguments: str, status: int = 0) -> Any:
        return json.JSONDecoder().raw_decode(await mafl(*arguments, "--json", status=status))[0]

    async with start("contests", clock="replay") as contests, served(contests.app) as url:
        monkeypatch.setenv("MAFL_OPERATOR_URL", url)
        monkeypatch.setenv("MAFL_OPERATOR_TOKEN", OPERATOR_TOKEN)
        await contests.move_clock(datetime.fromisoformat("2017-09-28T12:00:00Z"))
        await mafl("contest", "import", str(POOL), "--season", "2017", "--week", "4")
        await mafl("contest", "open", W04)

        dry = await mafl("contest", "reschedule", "--schedule", str(games), "--dry-run")
        assert f"{W04} (open) locks at 2017-10-01T17:00:00Z -> 2017-10-01T13:30:00Z" in dry
        assert "2017_04_WAS_KC kicks off 2017-10-03T00:30:00Z -> 2017-10-03T23:00:00Z, scheduled -> moved" in dry
        assert "2017_04_NO_MIA is not in the schedule; if it is cancelled, drop it" in dry
        assert "nothing was changed" in dry
        done = await answer("contest", "reschedule", "--schedule", str(games))
        assert done["contests"][0]["locks_at"]["after"] == "2017-10-01T13:30:00Z"

        moved = await mafl("contest", "move-game", W04, "2017_04_BUF_ATL", "2017-10-01T13:00:00-04:00")
        assert f"{W04} locks at 2017-10-01T17:00:00Z" in moved
        assert (await answer("contest", "drop-game", W04, "2017_04_BUF_ATL"))["state"] == "open"
        assert "locks at" in await mafl("contest", "restore-game", W04, "2017_04_BUF_ATL")
        monday = ("--kickoff", "2017-10-02T20:30:00-04:00")
        await mafl("contest", "restore-game", W04, "2017_04_WAS_KC", *monday)
        shown = (await contests.client.get(f"/api/v1/contests/{W04}")).json()["games"]
        assert {game["status"] for game in shown} == {"scheduled"}

        unknown = await answer("contest", "drop-game", W04, "2017_04_X_Y", status=1)
        assert unknown["code"] == "game-unknown"
        wrong = await mafl("contest", "move-game", W04, "2017_04_BUF_ATL", "2017-10-01T13:00:00", status=2)
        assert "no offset from UTC" in wrong

        assert f"{W04} is cancelled: Nobody plays." in await mafl("contest", "cancel", W04, "--reason", "Nobody plays.")
        late = await answer("contest", "drop-game", W04, "2017_04_BUF_ATL", status=1)
        assert late["code"] == "contest-cancelled"
        after = await mafl("contest", "reschedule", "--schedule", str(games))
        assert f"{W04} is cancelled and stays as it is" in after
