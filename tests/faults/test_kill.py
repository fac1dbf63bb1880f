"""Kill any one process with -9 in the middle of a season: the boards come out the same, to the byte."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from embedded.stack import Ports, Stack, StackOptions
from house.season import Season, SeasonDone, read_files
from testkit.contracts import ROOT

WEEKS = 2
VICTIMS = ("registry", "contests", "moderation", "settlement", "boards", "nats", "postgres", "caddy", "provisioner")
MOMENTS = ("agents register", "agents submit", "locks", "settles")
"""Steps of a season in which the victim dies, a moment after the step has begun."""


async def season(state: Path, victim: str | None = None) -> tuple[SeasonDone, int]:
    """Two weeks on a fresh stack, the victim killed at each moment; what came of it, and how often it was killed."""
    options = StackOptions(state=state, ports=Ports.free(), clock="replay")
    kills = 0
    async with Stack(options) as stack:
        loop = asyncio.get_running_loop()

        def kill() -> None:
            nonlocal kills
            assert victim is not None
            stack.kill(victim)
            kills += 1

        def on_step(step: str) -> None:
            if victim and any(moment in step for moment in MOMENTS):
                loop.call_later(0.08, kill)

        played = Season(
            stack.public_url,
            stack.operator_url,
            stack.operator_token,
            read_files(ROOT / "data", 2017, WEEKS),
            on_step=on_step,
        )
        done = await played.play()
        if victim:
            assert stack.restarts[victim] >= 1
        return done, kills


@pytest.fixture(scope="session")
async def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> SeasonDone:
    """The same two weeks with nobody killed."""
    done, _ = await season(tmp_path_factory.mktemp("undisturbed"))
    return done


@pytest.mark.rule("O4", "S5", "C7")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("victim", VICTIMS)
async def test_a_process_that_is_killed_in_the_middle_changes_nothing(
    victim: str, undisturbed: SeasonDone, tmp_path: Path
) -> None:
    done, kills = await season(tmp_path, victim)
    assert kills >= len(MOMENTS)
    assert done.lineups == undisturbed.lineups
    assert done.digest == undisturbed.digest
