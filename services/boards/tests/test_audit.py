"""That an operator had the boards made again is kept."""

from __future__ import annotations

import pytest

from testkit.fixtures import Start

BASE = "/operator/api/v1"


@pytest.mark.rule("A8", "B7")
async def test_each_rebuild_leaves_one_line_and_one_that_is_refused_none(start: Start) -> None:
    async with start("boards") as service:
        assert (await service.client.post(f"{BASE}/boards/rebuild")).status_code == 401
        digest = (await service.operator.post(f"{BASE}/boards/rebuild")).json()["digest"]
        (act,) = (await service.operator.get(f"{BASE}/audit/boards")).json()["acts"]
        assert (act["who"], act["what"], act["target"]) == ("operator", "rebuild", "boards")
        assert (act["before"], act["after"]) == ({"digest": digest}, {"digest": digest, "contests": 0})
        assert (await service.client.get(f"{BASE}/audit/boards")).status_code == 401
