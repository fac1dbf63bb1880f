"""The `mafl contest` commands of the schedule, run as an operator runs them against a served contests."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest
from rich.console import Console

from mafl.cli import run
from mafl.cli.contests import table_of
from mafl.operator import OperatorClient
from testkit.contracts import ROOT
from testkit.fixtures import OPERATOR_TOKEN, Start
from testkit.serving import served

POOL = ROOT / "data" / "pool_2017_dk.csv.gz"
W04 = "2017-W04"
SCHEDULE = """game_id,season,week,away_team,home_team,kickoff
2017_04_WAS_KC,2017,4,WAS,KC,2017-10-03T19:00:00-04:00
2017_04_BUF_ATL,2017,4,BUF,ATL,2017-10-01T09:30:00-04:00
"""

SAME = """game_id,season,week,away_team,home_team,kickoff
2017_04_BUF_ATL,2017,4,BUF,ATL,2017-10-01T13:00:00-04:00
"""

pytestmark = pytest.mark.timeout(120)


async def listed(url: str) -> list[dict[str, Any]]:
    """All contests as contests itself lists them: `mafl contest list` asks settlement too, which is not served."""
    async with OperatorClient(url, token=OPERATOR_TOKEN) as client:
        rows: list[dict[str, Any]] = (await client.operator_contests())["contests"]
    return rows


async def test_an_operator_follows_the_schedule_from_the_command_line(
    start: Start, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    games = tmp_path / "games.csv"
    games.write_text(SCHEDULE)
    same = tmp_path / "same.csv"
    same.write_text(SAME)

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
        assert (await mafl("contest", "reschedule", "--schedule", str(same), "--dry-run")).startswith(
            f"{W04} (open) locks at 2017-10-01T17:00:00Z: unchanged"
        )
        assert "2017_04_NO_MIA is not in the schedule; if it is cancelled, drop it" in dry
        assert "nothing was changed" in dry
        done = await answer("contest", "reschedule", "--schedule", str(games))
        assert done["contests"][0]["locks_at"]["after"] == "2017-10-01T13:30:00Z"

        moved = await mafl("contest", "move-game", W04, "2017_04_BUF_ATL", "2017-10-01T13:00:00-04:00")
        assert "2017_04_BUF_ATL kicks off 2017-10-01T13:30:00Z -> 2017-10-01T17:00:00Z;" in moved
        assert f"{W04} locks at 2017-10-01T13:30:00Z -> 2017-10-01T17:00:00Z" in moved
        again = await mafl("contest", "move-game", W04, "2017_04_BUF_ATL", "2017-10-01T13:00:00-04:00")
        assert f"2017_04_BUF_ATL is unchanged; {W04} locks at 2017-10-01T17:00:00Z as before" in again

        async def offered() -> int:
            pool = (await contests.client.get(f"/api/v1/contests/{W04}/pool")).json()["players"]
            [row] = await listed(url)
            assert row["players"] == len(pool)
            return len(pool)

        whole = await offered()
        dropped = await answer("contest", "drop-game", W04, "2017_04_BUF_ATL")
        assert dropped["state"] == "open"
        gone = dropped["players"]
        assert gone > 0
        assert await offered() == whole - gone
        restored = await mafl("contest", "restore-game", W04, "2017_04_BUF_ATL")
        assert f"is back in the contest: {gone} players can be picked again; {W04} locks at" in restored
        assert await offered() == whole
        left = await mafl("contest", "drop-game", W04, "2017_04_BUF_ATL")
        assert f"left the contest (cancelled): {gone} players can no longer be picked; {W04} locks at" in left
        await mafl("contest", "restore-game", W04, "2017_04_BUF_ATL")
        monday = ("--kickoff", "2017-10-02T20:30:00-04:00")
        await mafl("contest", "restore-game", W04, "2017_04_WAS_KC", *monday)
        shown = (await contests.client.get(f"/api/v1/contests/{W04}")).json()["games"]
        assert {game["status"] for game in shown} == {"scheduled"}

        unknown = await answer("contest", "drop-game", W04, "2017_04_X_Y", status=1)
        assert unknown["code"] == "game-unknown"
        assert "Its games: " in unknown["detail"]
        assert "2017_04_BUF_ATL" in unknown["detail"]
        other = await answer("contest", "cancel", "2017-W09", "--reason", "Nobody plays.", status=1)
        assert (other["code"], f"Known: {W04}." in other["detail"]) == ("contest-unknown", True)
        assert "a reason is needed" in await mafl("contest", "cancel", W04, "--reason", " ", status=2)
        wrong = await mafl("contest", "move-game", W04, "2017_04_BUF_ATL", "2017-10-01T13:00:00", status=2)
        assert "no offset from UTC" in wrong

        assert f"{W04} is cancelled: Nobody plays." in await mafl("contest", "cancel", W04, "--reason", "Nobody plays.")
        twice = await mafl("contest", "cancel", W04, "--reason", "Snow.")
        assert f"{W04} was called off already, at 2017-09-28T12:00:00Z, and that reason stays: Nobody plays." in twice
        [row] = await listed(url)
        assert row["state"] == "cancelled"
        console = Console(width=200)
        with console.capture() as capture:
            console.print(table_of([row]))
        assert f"{W04} cancelled never {row['players']} 0" in " ".join(capture.get().split())
        late = await answer("contest", "drop-game", W04, "2017_04_BUF_ATL", status=1)
        assert late["code"] == "contest-cancelled"
        after = await mafl("contest", "reschedule", "--schedule", str(games))
        assert f"{W04} is cancelled and stays as it is" in after

        await contests.move_clock(datetime.fromisoformat("2017-10-08T14:00:00Z"))
        await mafl("contest", "import", str(POOL), "--season", "2017", "--week", "5")
        early = ("contest", "move-game", "2017-W05", "2017_05_BUF_CIN", "2017-10-08T09:30:00-04:00")
        assert "-> 2017-10-08T13:30:00Z; that is past, and a draft cannot be opened then" in await mafl(*early)
        assert "past" not in await mafl(*early[:-1], "2017-10-08T13:00:00-04:00")
        await mafl("contest", "open", "2017-W05")
        at_once = "2017-W05 locked at once, its lock 2017-10-08T17:00:00Z -> 2017-10-08T14:00:00.000001Z"
        assert at_once in await mafl(*early)

        monday = ("contest", "became", "2017-W05", "2017_05_MIN_CHI")
        said = "2017-W05: MIN at CHI (2017_05_MIN_CHI)"
        assert f"{said} abandoned: zero for all who picked of it" in await mafl(*monday, "abandoned")
        assert "not settled before it has gone on; then counted, or zero if late" in await mafl(*monday, "suspended")
        resumed = ("suspended", "--resumed")
        in_time = await mafl(*monday, *resumed, "2017-10-11T19:00:00-04:00")
        assert f"{said} suspended: what is counted of it counts" in in_time
        late = await mafl(*monday, *resumed, "2017-10-12T19:00:00-04:00")
        assert f"{said} suspended: zero for all who picked of it" in late
        assert f"{said} counted as played" in await mafl(*monday, "played")
        assert (await answer(*monday[:3], "2017_05_X_Y", "abandoned", status=1))["code"] == "game-unknown"
