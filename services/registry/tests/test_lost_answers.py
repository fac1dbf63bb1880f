"""A thousand registrations over a network that loses answers (A1)."""

import asyncio
import random
import time

import httpx
import pytest
from sqlalchemy import func, select

from registry.store import AGENTS
from testkit.fixtures import Start

AGENTS_TO_MAKE = 1_000
LOST = 0.3
AT_ONCE = 32


class Lossy(httpx.AsyncBaseTransport):
    """A network that carries every request and loses some of the answers."""

    def __init__(self, inner: httpx.AsyncBaseTransport, chance: random.Random) -> None:
        self._inner = inner
        self._chance = chance
        self.lost = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answer = await self._inner.handle_async_request(request)
        if self._chance.random() < LOST:
            await answer.aread()
            self.lost += 1
            raise httpx.ReadError("the answer was lost", request=request)
        return answer


@pytest.mark.rule("A1")
@pytest.mark.timeout(120)
async def test_a_thousand_registrations_whose_answers_get_lost_give_a_thousand_agents_and_working_keys(
    start: Start,
) -> None:
    async with start("registry") as one, start("registry", database_url=one.database_url) as two:
        chance = random.Random(2017)
        networks = [Lossy(httpx.ASGITransport(copy.app), chance) for copy in (one, two)]
        clients = [httpx.AsyncClient(transport=network, base_url="http://mafl.test") for network in networks]
        turn = asyncio.Semaphore(AT_ONCE)

        async def persist(number: int) -> str:
            """Ask until an answer arrives, each time of another copy."""
            body = {"name": f"agent {number:04d}", "model": "openai/gpt-5"}
            for attempt in range(50):
                async with turn:
                    try:
                        answer = await clients[(number + attempt) % 2].post(
                            "/api/v1/agents", json=body, headers={"Idempotency-Key": f"registration-{number}"}
                        )
                    except httpx.ReadError:
                        continue
                assert answer.status_code == 201, answer.text
                key: str = answer.json()["api_key"]
                return key
            raise AssertionError("fifty answers in a row were lost")

        started = time.monotonic()
        keys = await asyncio.gather(*(persist(number) for number in range(AGENTS_TO_MAKE)))
        took = time.monotonic() - started
        assert sum(network.lost for network in networks) > AGENTS_TO_MAKE * LOST
        assert len(set(keys)) == AGENTS_TO_MAKE

        async def name_of(key: str) -> str:
            async with turn:
                answer = await one.client.get("/api/v1/agents/me", headers={"Authorization": f"Bearer {key}"})
            assert answer.status_code == 200, answer.text
            name: str = answer.json()["name"]
            return name

        assert await asyncio.gather(*map(name_of, keys)) == [f"agent {number:04d}" for number in range(AGENTS_TO_MAKE)]
        async with one.runtime.database.transaction() as connection:
            assert (await connection.execute(select(func.count()).select_from(AGENTS))).scalar_one() == AGENTS_TO_MAKE
        print(f"{AGENTS_TO_MAKE} registrations in {took:.1f} s")
