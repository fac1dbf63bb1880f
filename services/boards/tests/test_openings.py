"""What opens a lineup's leaves in its contest's commitment is shown with what is shown, and no more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any

import pytest
import rfc8785
from pydantic import TypeAdapter
from sqlalchemy import text

from boards import answers
from common import events as ev
from common.commitment import Entry, pointers
from mafl.verify import openings
from testkit.fixtures import Start, Started

Tell = Callable[..., Awaitable[Any]]


async def shown(service: Started, contest: str) -> dict[str, dict[str, Any]]:
    """The lineups of a contest by their id."""
    answer = await service.client.get(f"/api/v1/contests/{contest}/lineups")
    TypeAdapter(answers.Lineups).validate_json(answer.content, strict=True)
    return {lineup["lineup"]: lineup for lineup in answer.json()["lineups"]}


@pytest.mark.rule("C10", "M1", "M2")
async def test_picks_open_at_the_lock_and_words_with_the_words(start: Start, script: ModuleType, tell: Tell) -> None:
    week = script.Week(1)
    claimed, unclaimed = script.Agent("claimed", "m"), script.Agent("unclaimed", "m", claimed=False)
    agents = [claimed, unclaimed]
    told = [pair for agent in agents for pair in agent.told()] + week.told(agents, words=False)
    async with start("boards") as service:
        await tell(service, told)
        for lineup in (await shown(service, week.contest)).values():
            assert set(lineup["opening"]["salts"]) == {""}
        for agent in agents:
            await tell(service, [(week.judged(agent), 1), (week.released(agent), 2)])
        found = await shown(service, week.contest)
        one, other = (found[str(week.lineup_id(agent))] for agent in agents)
        assert set(one["opening"]["salts"]) == {"", *script.pointers()}
        assert set(other["opening"]["salts"]) == {""}, (
            "the words of an unclaimed agent are not shown, nor what opens them"
        )
        assert other["agent"]["name"].startswith("unclaimed-")

        # What is shown suffices to make every leaf again, byte for byte.
        locked = week.lineup(claimed)
        entry = Entry(claimed.id, week.contest, 1, "m", locked.accepted_at)
        words = {said.pointer: said for said in week.released(claimed).words}
        picks = [pick.model_dump() for pick in locked.picks]
        numbers = {name: getattr(locked, name) for name in ("total_price", "projected_score", "confidence")}
        values = {
            name: rfc8785.dumps(words[name].text if name else {"picks": picks, **numbers})
            for name in pointers(len(picks))
        }
        salts = b"".join(bytes.fromhex(words[name].salt if name else locked.salt) for name in values)
        assert openings(week.contest, [one]) == entry.leaves(values, salts)

        await tell(service, [(claimed.state(ev.AgentReleased, claimed=False), 2)])
        assert set((await shown(service, week.contest))[one["lineup"]]["opening"]["salts"]) == {""}
        await tell(service, [(claimed.state(ev.AgentClaimed), 3)])
        assert (await shown(service, week.contest))[one["lineup"]]["opening"] == one["opening"]


@pytest.mark.rule("C10", "M2")
async def test_a_text_that_is_flagged_again_takes_its_salt_with_it_and_one_cleared_later_opens_later(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    week, agent = script.Week(1), script.Agent("one", "m")
    without_thesis = week.released(agent)
    without_thesis = without_thesis.model_copy(
        update={"words": tuple(said for said in without_thesis.words if said.pointer != "/thesis")}
    )
    flagged = week.judged(agent).model_copy(
        update={
            "fields": tuple(
                ev.FieldState(pointer=pointer, state=ev.State.FLAGGED if pointer == "/thesis" else ev.State.CLEARED)
                for pointer in script.pointers()
            )
        }
    )

    async def salts() -> dict[str, str]:
        (lineup,) = (await shown(service, week.contest)).values()
        opened: dict[str, str] = lineup["opening"]["salts"]
        return opened

    async with start("boards") as service:
        await tell(service, [*agent.told(), *week.told([agent], words=False)])
        # Whatever comes first: the words of a version, or the states.
        await tell(service, [(without_thesis, 2), (flagged, 1)])
        assert "/thesis" not in await salts()
        await tell(service, [(week.judged(agent), 3), (week.released(agent), 4)])
        assert (await salts())["/thesis"] == week.salt(agent, "/thesis")
        await tell(service, [(without_thesis, 6), (flagged, 5)])
        assert "/thesis" not in await salts()
        async with service.runtime.database.transaction() as connection:
            kept = await connection.execute(text("SELECT text, salt FROM words WHERE pointer = '/thesis'"))
            assert kept.one() == (None, None)


@pytest.mark.rule("C10", "A10")
async def test_nothing_of_a_lineup_opens_while_the_label_of_its_model_is_withheld(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    week = script.Week(1)
    unknown = script.Agent("unknown", "Not/Judged", model_state=None)
    bad = script.Agent("bad", "Bad/Label", model_state=ev.State.FLAGGED)
    posing = script.Agent("posing", "reference/mine")
    mapped = script.Agent("mapped", "Raw/Label", model_state=None)
    agents = [unknown, bad, posing, mapped]
    mapping = ev.ModelMapped(label="Raw/Label", canonical="known/label")
    async with start("boards") as service:
        await tell(service, [*(pair for agent in agents for pair in agent.told()), (mapping, 1), *week.told(agents)])
        await tell(service, [(ev.ModelJudged(model="known/label", state=ev.State.CLEARED), 1)])
        found = await shown(service, week.contest)
        assert [lineup["opening"] for lineup in found.values()] == [None] * 4
        assert found[str(week.lineup_id(mapped))]["model"] == "known/label"
        assert "Raw/Label" not in str(found)
        await tell(service, [(ev.ModelJudged(model="Raw/Label", state=ev.State.CLEARED), 1)])
        opened = (await shown(service, week.contest))[str(week.lineup_id(mapped))]
        assert (opened["model"], opened["opening"]["model"]) == ("known/label", "Raw/Label")
        await tell(service, [(ev.ModelJudged(model="Not/Judged", state=ev.State.CLEARED), 1)])
        assert (await shown(service, week.contest))[str(week.lineup_id(unknown))]["opening"]["model"] == "Not/Judged"


async def test_a_lineup_from_before_there_were_commitments_has_nothing_to_open(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    week, agent = script.Week(1), script.Agent("old", "m")
    old = week.lineup(agent).model_copy(update={"salt": None})
    async with start("boards") as service:
        await tell(service, [*agent.told(), (week.opened(), 1), (week.locked(1), 2), (old, 1)])
        (lineup,) = (await shown(service, week.contest)).values()
        assert lineup["opening"] is None
