"""A settlement that is killed at any of its steps is done or not done, and settling again ends with the same."""

from __future__ import annotations

import ast
import asyncio
import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from common import events as ev
from common.settled import digest_of
from settlement.store import RESULTS, SETTLEMENTS
from testkit.fixtures import Start, Started

Play = Callable[..., Any]
File = Callable[..., bytes]

SETTLE = "/operator/api/v1/contests/2017-W04/settle"
FINAL = "/operator/api/v1/statistics?week=4&final=true"
PROGRAM = Path(__file__).with_name("killed.py")
LINEUPS = 5


def steps() -> list[str]:
    """The steps that the program knows, read off its source: importing it would be another module."""
    tree = ast.parse(PROGRAM.read_text())
    [table] = [
        node.value for node in tree.body if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "STEPS"
    ]
    assert isinstance(table, ast.Dict)
    return [ast.literal_eval(key) for key in table.keys if key is not None]


async def versions(settlement: Started) -> dict[int, int]:
    """How many results each version has."""
    statement = (
        select(SETTLEMENTS.c.settlement, func.count(RESULTS.c.lineup_id))
        .select_from(SETTLEMENTS)
        .outerjoin(
            RESULTS, (RESULTS.c.contest == SETTLEMENTS.c.contest) & (RESULTS.c.settlement == SETTLEMENTS.c.settlement)
        )
        .group_by(SETTLEMENTS.c.settlement)
    )
    async with settlement.runtime.database.transaction() as connection:
        return {number: results for number, results in await connection.execute(statement)}  # noqa: C416


@pytest.mark.rule("S4", "S5", "O4")
async def test_a_settlement_killed_at_any_step_and_run_again_gives_each_version_once(
    start: Start, play_week: Play, statistics_file: File
) -> None:
    week = play_week(4, entries=LINEUPS)
    player = week.lineups[0].picks[0].player_id
    program = await asyncio.create_subprocess_exec(
        sys.executable, str(PROGRAM), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert program.stdin is not None
    assert program.stdout is not None
    async with start("settlement") as settlement:
        for event in week.events:
            await settlement.publish(event)
        await settlement.settle()
        for number, step in enumerate(steps(), start=1):
            # The first is the first settlement of the week, each other one a correction of it.
            content = statistics_file(4, {player: {"ret_td": str(number)}})
            assert (await settlement.operator.post(FINAL, content=content)).status_code == 200
            reason = f"{number} returns were touchdowns"
            order = [settlement.database_url, "2017-W04", reason, step]
            program.stdin.write(json.dumps(order).encode() + b"\n")
            async with asyncio.timeout(120):
                assert int(await program.stdout.readline()) == -signal.SIGKILL, step
            done = step.startswith("everything is committed")
            assert await versions(settlement) == dict.fromkeys(range(1, number + done), LINEUPS), step
            answer = await settlement.operator.post(SETTLE, json={"reason": reason})
            assert answer.status_code == 200, answer.text
            assert (answer.json()["settlement"], answer.json()["changed"]) == (number, not done), step
        await settlement.settle()
        told = await settlement.published(ev.WeekSettled)
        assert [one.settlement for one in told] == list(range(1, number + 1))
        lineups = await settlement.published(ev.LineupSettled)
        for whole in told:
            of_version = [lineup for lineup in lineups if lineup.settlement == whole.settlement]
            assert len(of_version) == LINEUPS
            assert digest_of(whole, of_version) == whole.digest
            assert whole.reason == f"{whole.settlement} returns were touchdowns"
    program.stdin.close()
    async with asyncio.timeout(30):
        assert await program.wait() == 0
