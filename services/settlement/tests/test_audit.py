"""What an operator does in settlement is kept: one line for each act that changed something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from testkit.fixtures import Start, Started

BASE = "/operator/api/v1"
SETTLE = f"{BASE}/contests/2017-W04/settle"
STATISTICS = f"{BASE}/statistics?week=4&final="


async def acts(settlement: Started) -> list[dict[str, Any]]:
    """What was done, the oldest first."""
    answer = await settlement.operator.get(f"{BASE}/audit/settlement")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["acts"]
    return found[::-1]


@pytest.mark.rule("A8", "S5")
async def test_each_import_and_settlement_leaves_one_line_and_what_is_refused_or_changes_nothing_none(
    start: Start, play_week: Callable[..., Any], statistics_file: Callable[..., bytes]
) -> None:
    async with start("settlement") as settlement:
        post = settlement.operator.post
        for event in play_week(4, entries=3).events:
            await settlement.publish(event)
        await settlement.settle()
        assert (await post(SETTLE)).status_code == 409
        assert (await post(STATISTICS + "true", content=b"nothing")).status_code == 422
        assert await acts(settlement) == []
        for final in ("false", "false", "true", "true"):
            assert (await post(STATISTICS + final, content=statistics_file(4))).status_code == 200
        assert (await post(STATISTICS + "false", content=statistics_file(4))).status_code == 409
        for _ in range(2):
            assert (await post(SETTLE)).status_code == 200
        corrected = statistics_file(4, {"00-0030496": {"rush_yds": "200"}})
        assert (await post(STATISTICS + "true", content=corrected)).status_code == 200
        assert (await post(SETTLE)).json()["code"] == "reason-required"
        version = (await post(SETTLE, json={"reason": "a correction"})).json()
        done = await acts(settlement)
        assert [(act["what"], act["target"]) for act in done] == [
            ("import", "statistics"),
            ("import", "statistics"),
            ("settle", "contest/2017-W04"),
            ("import", "statistics"),
            ("settle", "contest/2017-W04"),
        ]
        provisional, ended, first, correction, second = done
        assert (provisional["after"]["final"], ended["after"]["final"]) == (False, True)
        assert ended["after"]["weeks"] == [{"season": 2017, "week": 4, "changed": 0}]
        assert correction["after"]["weeks"] == [{"season": 2017, "week": 4, "changed": 1}]
        assert first["before"] is None
        assert second["before"] == {name: first["after"][name] for name in ("settlement", "digest")}
        expected = {"settlement": 2, "digest": version["digest"], "reason": "a correction", "without": []}
        assert second["after"] == expected
        assert (await settlement.client.get(f"{BASE}/audit/settlement")).status_code == 401
