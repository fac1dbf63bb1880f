"""What could not be checked, at the command line: counted with its cause, and tried again when an operator says so."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from common import events as ev
from testkit.examples import EXAMPLES
from testkit.fixtures import OPERATOR_TOKEN, Start
from testkit.serving import served

WEEK = {type(event): event for event in map(ev.unpack, EXAMPLES)}
PIPELINE = """
import os
from pathlib import Path
from moderation import detectors
from moderation.pipeline import Detector, Pipeline

class Faulty(Detector):
    name = "faulty"
    version = "1"
    raw = True

    def judge(self, text, context):
        if not Path(__file__).with_suffix(".mended").exists():
            os._exit(9)
        return ()

def load():
    return Pipeline((Faulty(), *detectors.load().detectors))
"""


@pytest.mark.rule("M3", "M4")
async def test_an_operator_sees_what_is_set_aside_and_why_and_has_it_tried_again(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "faulty_pipeline.py").write_text(PIPELINE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("MAFL_MODERATION_PIPELINE", "faulty_pipeline:load")
    async with start("moderation") as moderation, served(moderation.app) as url:

        async def mafl(*arguments: str) -> Any:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "mafl", "moderation", *arguments),
                env={**os.environ, "MAFL_OPERATOR_URL": url, "MAFL_OPERATOR_TOKEN": OPERATOR_TOKEN},
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            output, complaint = await process.communicate()
            assert process.returncode == 0, complaint.decode()
            return output.decode()

        async def until(names: int, set_aside: int) -> dict[str, Any]:
            deadline = time.monotonic() + 60
            while True:
                waiting: dict[str, Any] = json.loads(await mafl("backlog", "--json"))
                counted = sum(one["count"] for one in waiting["set_aside"] if one["kind"] == "name")
                if (waiting["names"], counted) == (names, set_aside):
                    return waiting
                assert time.monotonic() < deadline, waiting

        await moderation.publish(WEEK[ev.AgentRegistered])
        waiting = await until(0, 1)
        (one,) = [one for one in waiting["set_aside"] if one["kind"] == "name"]
        assert (one["cause"], one["detector"], one["error"]) == ("died", "faulty", "ended with exit code 9")
        told = await mafl("backlog")
        assert "died (faulty; ended with exit code 9)" in told
        assert "set aside: died, faulty" in await mafl("queue")
        (tmp_path / "faulty_pipeline.mended").touch()
        assert json.loads(await mafl("again", "--json"))["wanted"] >= 1
        await until(0, 0)
        assert "Nothing waits for you" in await mafl("queue")
