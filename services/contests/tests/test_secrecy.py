"""C8: before the lock, two worlds that differ only in entries look the same from outside."""

import json
from typing import Any

import pytest

from common import events as ev
from embedded.nats import Nats
from testkit.fixtures import Start, admin

from .helpers import Player, cheapest, join, ok, public_asks, send, week_four_is_open

_OF_THE_MOMENT = {"id", "time", "correlationid"}
_VARYING = {"date", "x-correlation-id", "x-request-id"}


async def seen_by_the_public(outsider: Player) -> dict[str, Any]:
    """Every answer that anyone, or an agent without a lineup, can get: status, headers and bytes."""
    seen = {}
    for ask in public_asks():
        answer = await send(outsider, ask)
        kept = {name: value for name, value in answer.headers.items() if name not in _VARYING}
        seen[ask.name] = (answer.status_code, kept, answer.content)
    return seen


async def seen_on_the_bus(nats_server: Nats) -> dict[str, Any]:
    """Every stream but the two private ones, with its sequence numbers; ids and wall-clock times left out."""
    seen: dict[str, Any] = {}
    async with admin(nats_server) as client:
        js = client.jetstream()
        for info in await js.streams_info():
            name = info.config.name
            if name in (ev.LineupSubmitted.stream, ev.AgentKeyChanged.stream):
                continue
            seen[str(name)] = (info.state.last_seq, info.state.messages, info.state.bytes)
            for sequence in range(1, info.state.last_seq + 1):
                message = await js.get_msg(str(name), sequence)
                event = json.loads(message.data or b"{}")
                seen[f"{name} {sequence}"] = {
                    k: v for k, v in event.items() if k not in ("id", "time", "correlationid")
                }
    return seen


@pytest.mark.rule("C8")
async def test_two_worlds_that_differ_in_entries_look_the_same_before_the_lock(start: Start) -> None:
    """On one service, one after the other; all services behind the gateway are looked at in tests/end_to_end."""
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        *players, outsider = await join(service, 1, 2, 3, 4)
        await seen_by_the_public(outsider)
        without = await seen_by_the_public(outsider)
        for number in range(5):
            agent = players[number % len(players)]
            await ok(await agent.submit(cheapest(number=number), key=str(number)))
            assert (await agent.submit(b"{}")).status_code == 422
        await service.settle()
        assert await seen_by_the_public(outsider) == without
    for name, (_, headers, content) in without.items():
        assert headers.get("content-length", "0") == str(len(content)) or "HEAD" in name, name


@pytest.mark.rule("C8")
async def test_the_metrics_name_no_agent_no_lineup_and_no_player(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        agents = await join(service, 1, 2)
        for agent in agents:
            answer = await ok(await agent.submit(cheapest()))
            await agent.submit(b"{}")
            metrics = (await service.client.get("/metrics")).text
            assert "mafl_lineups_accepted_total" in metrics
            told = (answer[name] for name in ("agent", "lineup", "receipt", "signature", "model"))
            secrets = (agent.key, agent.key_hash, *told, *answer["salts"].values())
            players = (pick["player_id"] for pick in cheapest()["picks"])
            assert not [word for word in (*secrets, *players) if word in metrics]


@pytest.mark.rule("C8")
@pytest.mark.parametrize("entries", [0, 3])
async def test_the_public_streams_say_nothing_of_entries_before_the_lock(
    start: Start, nats_server: Nats, entries: int
) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        agents = await join(service, 1, 2, 3)
        for number in range(entries):
            await ok(await agents[number].submit(cheapest(number=number)))
        await service.settle()
        seen = await seen_on_the_bus(nats_server)
        told = [event["type"] for name, event in seen.items() if name.startswith("CONTESTS ")]
        assert told == [ev.ClockMoved.subject(), ev.ContestOpened.subject()]
        assert seen["CONTESTS"][:2] == (2, 2)
        assert seen["MODERATION"][0] == seen["SETTLEMENT"][0] == seen["DEAD"][0] == 0
        assert len(await service.published(ev.LineupSubmitted)) == entries
