"""C8: before the lock, two worlds that differ only in entries look the same from outside."""

import json
from typing import Any

import pytest

from common import events as ev
from embedded.nats import Nats
from testkit.fixtures import Start, Started, admin

from .helpers import W04, cheapest, join, ok, week_four_is_open

_OF_THE_MOMENT = {"id", "time", "correlationid"}
_VARYING = {"date", "x-correlation-id", "x-request-id"}


async def seen_by_the_public(service: Started, outsider_key: str) -> dict[str, Any]:
    """Every answer that anyone, or an agent without a lineup, can get: status, headers and bytes."""
    as_agent = {"Authorization": f"Bearer {outsider_key}"}
    calls: list[tuple[str, str, dict[str, str], bytes]] = [
        ("GET", path, {}, b"")
        for path in (
            "/api/v1/contests",
            "/api/v1/contests/current",
            f"/api/v1/contests/{W04}",
            f"/api/v1/contests/{W04}/pool",
            f"/api/v1/contests/{W04}/pool?format=csv",
            f"/api/v1/contests/{W04}/lineups",
            f"/api/v1/contests/{W04}/lineups/mine",
            f"/api/v1/contests/{W04}/lineups/mine/revisions",
            "/api/v1/contests/2017-W09",
            "/skill.md",
            "/llms.txt",
            "/api/v1/openapi.json",
            "/healthz",
            "/readyz",
            "/nowhere",
        )
    ]
    calls += [
        ("POST", f"/api/v1/contests/{W04}/lineups", {}, b"{}"),
        ("POST", f"/api/v1/contests/{W04}/lineups/check", {}, b"{}"),
        ("GET", f"/api/v1/contests/{W04}/pool", {"If-None-Match": "*"}, b""),
        ("HEAD", f"/api/v1/contests/{W04}/pool", {}, b""),
        ("OPTIONS", f"/api/v1/contests/{W04}/lineups", {}, b""),
        ("POST", f"/api/v1/contests/{W04}/lineups/check", as_agent, json.dumps(cheapest()).encode()),
        ("POST", f"/api/v1/contests/{W04}/lineups", as_agent, b'{"picks": []}'),
        ("GET", f"/api/v1/contests/{W04}/lineups/mine", as_agent, b""),
        ("GET", f"/api/v1/contests/{W04}/lineups/mine/revisions", as_agent, b""),
        ("DELETE", f"/api/v1/contests/{W04}/lineups/mine", as_agent, b""),
    ]
    seen = {}
    for method, path, headers, content in calls:
        answer = await service.client.request(method, path, headers=headers, content=content)
        kept = {name: value for name, value in answer.headers.items() if name not in _VARYING}
        seen[f"{method} {path} {bool(headers)}"] = (answer.status_code, kept, answer.content)
    return seen


def public_calls(service: Started) -> set[tuple[str, str]]:
    """Method and path of every call that the public can reach, with the contest's id in its place."""
    return {
        (method.upper(), path.replace("{contest_id}", W04))
        for path, operations in service.app.openapi()["paths"].items()
        if not path.startswith("/operator/")
        for method in operations
    }


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
async def test_two_worlds_that_differ_in_entries_look_the_same_before_the_lock(start: Start, nats_server: Nats) -> None:
    worlds: list[dict[str, Any]] = []
    for entries in (0, 5):
        async with start("contests", clock="replay") as service:
            await week_four_is_open(service)
            *players, outsider = await join(service, 1, 2, 3, 4)
            for number in range(entries):
                agent = players[number % len(players)]
                await ok(await agent.submit(cheapest(number=number), key=str(number)))
                assert (await agent.submit(b"{}")).status_code == 422
            await service.settle()
            seen = await seen_by_the_public(service, outsider.key)
            await service.settle()
            worlds.append(seen)
            called = {(method, path) for method, path, _ in (name.split(" ") for name in seen)}
            assert public_calls(service) <= called
    assert worlds[0] == worlds[1]
    for name, (status, headers, content) in worlds[0].items():
        assert headers.get("content-length", "0") == str(len(content)) or name.startswith("HEAD"), name
        assert ("etag" in headers) == ("/pool" in name and status in (200, 304)), name


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
