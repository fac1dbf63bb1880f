"""Moderation is away for a whole week: lineups are taken, locked, scored and shown; the words come when it is back."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from embedded.stack import Ports, Stack, StackOptions
from house.roster import FIELD, Member
from house.season import Season, WeekDone, read_files
from mafl.client import PublicClient
from mafl.operator import OperatorClient
from testkit.contracts import ROOT

WEEK = "2017-W02"
NAMES = ("Reference price greedy", "Gridiron Gail", "Zoë's Sunday Engine", "Second Thoughts", "Talks Too Much")
NOBODYS = ("nobody's bot 1", "nobody's bot 4")
MEMBERS: tuple[Member, ...] = tuple(member for member in FIELD if member.name in (*NAMES, *NOBODYS))
UNCHECKED, FLAGGED, UNCLAIMED = "not checked yet", "flagged", "unclaimed"

pytestmark = pytest.mark.timeout(300)


def texts_of(lineup: dict[str, Any]) -> list[dict[str, Any]]:
    picks = [pick[name] for pick in lineup["picks"] for name in ("rationale", "main_factor")]
    return [lineup["thesis"], *picks]


async def entries(public: PublicClient) -> dict[str, list[dict[str, Any]]]:
    """The texts of the week as anybody reads them, by agent."""
    found = (await public.call("GET", f"/api/v1/contests/{WEEK}/lineups")).json()["lineups"]
    return {lineup["agent"]["name"]: texts_of(lineup) for lineup in found}


class Away(Season):
    """A season before whose second week moderation is stopped."""

    def __init__(self, stack: Stack) -> None:
        files = read_files(ROOT / "data", 2017, 2)
        super().__init__(stack.public_url, stack.operator_url, stack.operator_token, files, members=MEMBERS)
        self._stack = stack

    async def _week(self, week: int) -> WeekDone:
        if week == 2:
            # Names are judged once; this week is about words.
            await self._names_shown(1)
            await self._stack.stop("moderation")
        return await super()._week(week)


@pytest.mark.rule("M2", "M3", "M5", "S1")
async def test_with_moderation_stopped_for_a_week_intake_goes_on_pages_say_so_and_the_words_come_after_its_start(
    tmp_path: Path,
) -> None:
    (talks,) = (member.name for member in MEMBERS if member.aside)
    options = StackOptions(state=tmp_path, ports=Ports.free(), clock="replay", durable=False)
    async with Stack(options) as stack, PublicClient(stack.public_url) as public:
        done = await Away(stack).play()
        assert done.lineups == 2 * len(MEMBERS), "every lineup was taken, and the week was settled and shown"
        during = await entries(public)
        claimed = {name for name in during if not name.startswith("unclaimed-")}
        assert (claimed, len(during)) == (set(NAMES), len(MEMBERS))
        for name, texts in during.items():
            assert [text["text"] for text in texts] == [None] * 19
            assert {text["withheld"] for text in texts} == {UNCHECKED if name in claimed else UNCLAIMED}
        page = (await public.call("GET", f"/contests/{WEEK}")).text
        assert UNCHECKED in page
        results = (await public.call("GET", f"/api/v1/contests/{WEEK}/results")).content

        await stack.start("moderation")
        await until_shown(public)
        after = await entries(public)
        assert after.keys() == during.keys()
        for name, texts in after.items():
            if name not in claimed:
                assert {text["withheld"] for text in texts} == {UNCLAIMED}
                continue
            withheld = [text["withheld"] for text in texts if text["text"] is None]
            assert withheld == ([FLAGGED] if name == talks else []), name
        assert (await public.call("GET", f"/api/v1/contests/{WEEK}/results")).content == results
        async with OperatorClient(stack.operator_url, token=stack.operator_token) as operator:
            backlog = await operator.moderation_backlog()
        assert (backlog["texts"], backlog["names"], backlog["models"], backlog["set_aside"]) == (0, 0, 0, [])


async def until_shown(public: PublicClient, patience: float = 60.0) -> None:
    deadline = time.monotonic() + patience
    while any(text["withheld"] == UNCHECKED for texts in (await entries(public)).values() for text in texts):
        assert time.monotonic() < deadline, "some texts are not checked yet"
        await asyncio.sleep(0.2)
