"""A text judged by hand at the command line: moderation and boards as they run, and what a reader sees of it."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
import uvicorn

from common import events as ev
from testkit.examples import EXAMPLES
from testkit.fixtures import OPERATOR_TOKEN, Start, Started

WEEK = {type(event): event for event in map(ev.unpack, EXAMPLES)}
THESIS = "Their own page, https://blog.example/week-1, says it best."


@asynccontextmanager
async def served(service: Started) -> AsyncIterator[str]:
    """The address of a running service on a free port of this machine."""
    server = uvicorn.Server(uvicorn.Config(service.app, lifespan="off", log_config=None, access_log=False))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            await serving


@pytest.mark.timeout(300)
@pytest.mark.rule("M2", "M4")
async def test_a_text_cleared_by_hand_is_read_on_the_boards_and_no_more_once_it_is_flagged(start: Start) -> None:
    async with start("moderation") as moderation, start("boards") as boards, served(moderation) as url:
        submitted = WEEK[ev.LineupSubmitted]
        assert isinstance(submitted, ev.LineupSubmitted)
        words = tuple(word for word in submitted.words if word.pointer != "/thesis")
        submitted = submitted.model_copy(update={"words": (ev.Words(pointer="/thesis", text=THESIS), *words)})
        lineup = str(submitted.lineup_id)
        for version, kind in enumerate((ev.AgentRegistered, ev.AgentUpdated, ev.AgentClaimed), start=1):
            await moderation.publish(WEEK[kind], version)
        for event, version in (
            (WEEK[ev.ContestOpened], 1),
            (submitted, 1),
            (WEEK[ev.ContestLocked], 3),
            (WEEK[ev.LineupLocked], 1),
        ):
            await moderation.publish(event, version)

        async def thesis() -> Any:
            answer = await boards.client.get(f"/api/v1/contests/{submitted.contest}/lineups")
            if answer.status_code != 200:
                return None
            return next((entry["thesis"] for entry in answer.json()["lineups"] if entry["lineup"] == lineup), None)

        async def shown(wanted: Any) -> None:
            for _ in range(1500):
                if await thesis() == wanted:
                    return
                await asyncio.sleep(0.02)
            raise AssertionError(f"boards show {await thesis()}")

        async def mafl(*arguments: str, status: int = 0) -> Any:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "mafl", "moderation", *arguments, "--json"),
                env={**os.environ, "MAFL_OPERATOR_URL": url, "MAFL_OPERATOR_TOKEN": OPERATOR_TOKEN},
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            output, complaint = await process.communicate()
            assert process.returncode == status, complaint.decode()
            return json.loads(output)

        def withheld(reason: str) -> dict[str, Any]:
            return {"text": None, "withheld": reason}

        await shown(withheld("flagged"))
        review = ev.ReviewRequested(
            agent_id=submitted.agent_id,
            lineup_id=submitted.lineup_id,
            contest=submitted.contest,
            revision=1,
            pointers=("/thesis",),
            judged_version=1,
            requested_at=datetime(2017, 9, 12, 9, tzinfo=UTC),
        )
        await moderation.publish(review)
        await moderation.settle()
        (item,) = (await mafl("queue"))["items"]
        assert (item["text"], item["review_requested_at"]) == (THESIS, "2017-09-12T09:00:00Z")

        about = ("--lineup", lineup, "--pointer", "/thesis")
        await mafl("approve", *about, "--version", "1", "--note", "It quotes a page.", "--by", "ada")
        await shown({"text": THESIS, "withheld": None})
        assert (await mafl("queue"))["items"] == []
        late = await mafl("flag", *about, "--version", "1", "--note", "Late.", status=1)
        assert late["code"] == "judged-meanwhile"

        flagged = await mafl("flag", *about, "--version", "2", "--note", "It sells something.", "--by", "bob")
        assert [entry["judged_by"] for entry in flagged["history"]] == ["ada", "bob"]
        await shown(withheld("flagged"))
        noted = await mafl("note", *about, "--note", "Asked the owner.", "--by", "bob")
        assert [(entry["note"], entry["version"]) for entry in noted["notes"]] == [("Asked the owner.", 3)]
        back = await mafl("take-back", str(flagged["history"][-1]["position"]), "--by", "ada")
        assert back["items"][0]["state"] == "cleared"
        await shown({"text": THESIS, "withheld": None})
        await mafl("flag", *about, "--version", "4", "--note", "It does sell something.", "--by", "bob")
        await shown(withheld("flagged"))
        history = await mafl("history", *about)
        assert [entry["state"] for entry in history["history"]] == ["cleared", "flagged", "cleared", "flagged"]
        assert [entry["note"] for entry in history["notes"]] == ["Asked the owner."]
        acts = (await mafl("audit"))["acts"]
        assert [(act["who"], act["what"]) for act in reversed(acts)] == [
            ("ada", "judge"),
            ("bob", "judge"),
            ("bob", "note"),
            ("ada", "take back"),
            ("bob", "judge"),
        ]
        page = await boards.client.get(f"/contests/{submitted.contest}")
        assert page.status_code == 200
        assert "blog.example" not in page.text
        for service in (moderation, boards):
            assert await service.dead_letters() == []
