import pytest

from common import events as ev
from testkit.fixtures import Start

from .helpers import ok, player


@pytest.mark.rule("A3", "A8")
async def test_the_newest_state_of_an_agent_counts_in_whatever_order_it_arrives(start: Start) -> None:
    async with start("contests") as service:
        one = player(service)
        house = ev.Marks(house=True, cohort=True)
        states: list[tuple[ev.AgentState, int]] = [
            (ev.AgentClaimed(agent_id=one.agent_id, agent_name="a", model="new", marks=house, claimed=True), 3),
            (ev.AgentRegistered(agent_id=one.agent_id, agent_name="a", model="old"), 1),
            (ev.AgentUpdated(agent_id=one.agent_id, agent_name="a", model="newer"), 2),
        ]
        for state, version in states:
            await service.publish(state, version)
            await service.settle()
            (known,) = (await ok(await service.operator.get("/operator/api/v1/contests/agents")))["agents"]
            assert known == {"agent_id": str(one.agent_id), "model": "new", "marks": house.model_dump()}
        await service.publish(ev.AgentReleased(agent_id=one.agent_id, agent_name="a", model="last"), 4)
        await service.settle()
        (known,) = (await ok(await service.operator.get("/operator/api/v1/contests/agents")))["agents"]
        assert (known["model"], known["marks"]["house"]) == ("last", False)


async def test_a_key_alone_or_an_agent_alone_lets_nobody_in(start: Start) -> None:
    async with start("contests") as service:
        keyed, unkeyed = player(service, 1), player(service, 2)
        await service.publish(ev.AgentKeyChanged(agent_id=keyed.agent_id, key_hash=keyed.key_hash))
        await service.publish(ev.AgentRegistered(agent_id=unkeyed.agent_id, agent_name="a", model="m"))
        await service.settle()
        for one in (keyed, unkeyed):
            # The registry, which could say, is not there.
            assert (await one.get("2017-W04/lineups/mine")).status_code == 503
