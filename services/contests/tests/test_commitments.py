"""What a contest commits to at its lock, and what leads from a revision to it."""

import hashlib
import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
import rfc8785
from sqlalchemy import text

from common import commitment
from common import events as ev
from common.commitment import Tree, is_included, is_signed
from contests.settings import SigningSettings
from testkit.fixtures import Start, Started

from .helpers import LOCK, TICK, W04, cheapest, join, ok, week_four, week_four_is_open


def signed_by_the_service(service: Started, document: dict[str, Any]) -> bool:
    keys = SigningSettings().keyring(service.settings)
    statement = rfc8785.dumps({name: document[name] for name in document if name not in ("key_id", "signature")})
    assert document["key_id"] == keys.signer.key_id
    return is_signed(statement, bytes.fromhex(document["signature"]), keys.signer.public_key)


def leaves_by_the_rule(answer: dict[str, Any], lineup: dict[str, Any]) -> list[bytes]:
    """The leaves of a revision made by the published rule from what its agent was answered, without our code for it."""
    prices = {player.player_id: player.price for player in week_four().players}
    values: dict[str, Any] = {
        "": {
            "picks": [
                {
                    "slot": pick["slot"],
                    "player_id": pick["player_id"],
                    "price": prices[pick["player_id"]],
                    "confidence": pick["confidence"],
                }
                for pick in lineup["picks"]
            ],
            "projected_score": round(lineup["projected_score"] * 100),
            "confidence": lineup["confidence"],
            "total_price": answer["total_price"],
        },
        "/thesis": lineup["thesis"],
    }
    for place, pick in enumerate(lineup["picks"]):
        values |= {f"/picks/{place}/{name}": pick[name] for name in ("rationale", "main_factor")}
    same = {name: answer[name] for name in ("accepted_at", "agent", "contest", "model", "revision")}
    return [
        rfc8785.dumps({**same, "pointer": pointer, "value": values[pointer], "salt": answer["salts"][pointer]})
        for pointer in sorted(values)
    ]


@pytest.mark.rule("C10")
async def test_the_lock_publishes_the_signed_root_over_the_final_revisions_words_included(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        agents = await join(service, 1, 2, 3)
        finals = {}
        for number, agent in enumerate(agents):
            await ok(await agent.submit(cheapest(number=9)))
            lineup = cheapest(number=number)
            finals[str(agent.agent_id)] = (await ok(await agent.submit(lineup)), lineup)
        await service.move_clock(LOCK)
        leaves = [leaf for agent in sorted(finals) for leaf in leaves_by_the_rule(*finals[agent])]
        hashes = b"".join(hashlib.sha256(b"\x00" + leaf).digest() for leaf in leaves)

        answer = await service.client.get(f"/api/v1/contests/{W04}/commitment")
        made = answer.json()
        assert answer.content == rfc8785.dumps(made)
        assert made | {"signature": "", "key_id": ""} == {
            "kind": "mafl-root-1",
            "contest": W04,
            "locked_at": "2017-10-01T17:00:00Z",
            "entries": 3,
            "leaves": 60,
            "root": Tree(hashes).root.hex(),
            "signature": "",
            "key_id": "",
        }
        assert signed_by_the_service(service, made)
        assert answer.headers["cache-control"] == "no-cache", "a replay may be played anew at the same address"

        listed = await service.client.get(f"/api/v1/contests/{W04}/commitment/leaves")
        assert (listed.headers["content-type"], listed.content) == ("application/octet-stream", hashes)
        tag = {"If-None-Match": listed.headers["etag"]}
        again = await service.client.get(f"/api/v1/contests/{W04}/commitment/leaves", headers=tag)
        assert (again.status_code, again.content) == (304, b"")

        await service.settle()
        (locked,) = await service.published(ev.ContestLocked)
        assert (locked.root, locked.leaves) == (made["root"], 60)
        assert (locked.signature, locked.key_id) == (made["signature"], made["key_id"])
        salts = {str(frozen.agent_id): frozen.salt for frozen in await service.published(ev.LineupLocked)}
        assert salts == {agent: final["salts"][""] for agent, (final, _) in finals.items()}


@pytest.mark.rule("C10")
async def test_an_agent_gets_the_proof_of_each_leaf_of_its_final_revision(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        agents = await join(service, 1, 2)
        finals = [await ok(await agent.submit(cheapest(number=number))) for number, agent in enumerate(agents)]
        await service.move_clock(LOCK)
        made = (await service.client.get(f"/api/v1/contests/{W04}/commitment")).json()
        for number, (agent, final) in enumerate(zip(agents, finals, strict=True)):
            answer = await agent.get(f"{W04}/lineups/mine/proof")
            proof = answer.json()
            assert answer.headers["cache-control"] == "no-store"
            assert proof["commitment"] == made
            assert [rfc8785.dumps(leaf["data"]) for leaf in proof["leaves"]] == leaves_by_the_rule(
                final, cheapest(number=number)
            )
            for leaf in proof["leaves"]:
                hashed = commitment.leaf_hash(rfc8785.dumps(leaf["data"]))
                path = [bytes.fromhex(step) for step in leaf["path"]]
                assert is_included(hashed, leaf["index"], made["leaves"], path, bytes.fromhex(made["root"]))
        (without,) = await join(service, 3)
        assert (await without.get(f"{W04}/lineups/mine/proof")).json()["code"] == "lineup-missing"
        nobody = await service.client.get(f"/api/v1/contests/{W04}/lineups/mine/proof")
        assert nobody.status_code == 401


PATHS = ("commitment", "commitment/leaves", "lineups/mine/proof")


@pytest.mark.rule("C8", "C10")
async def test_before_the_lock_nothing_is_told_of_what_will_be_committed_to(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        agent, other = await join(service, 1, 2)

        async def asked() -> list[tuple[int, bytes, dict[str, str]]]:
            answers = [await other.get(f"{W04}/{path}") for path in PATHS]
            return [(answer.status_code, answer.content, dict(answer.headers)) for answer in answers]

        before = await asked()
        for status, content, _ in before:
            problem = json.loads(content)
            assert (status, problem["code"]) == (409, "contest-not-locked")
            assert problem["locks_at"] == "2017-10-01T17:00:00Z"
        for number in range(3):
            await ok(await agent.submit(cheapest(number=number)))
        assert await asked() == before
        await service.move_clock(LOCK - TICK)
        assert await asked() == before
        unknown = await service.client.get("/api/v1/contests/2017-W09/commitment")
        assert (unknown.status_code, unknown.json()["code"]) == (404, "contest-unknown")


async def test_between_the_instant_and_the_lock_one_is_asked_to_come_again(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        await service.move_clock(LOCK - TICK)
        async with service.runtime.database.transaction() as connection:
            # The lock instant is past and nobody has locked.
            await connection.execute(text("UPDATE contests SET locks_at = :at"), {"at": LOCK - timedelta(seconds=1)})
            assert (await connection.execute(text("SELECT state FROM contests"))).scalar_one() == "open"
        answer = await service.client.get(f"/api/v1/contests/{W04}/commitment")
        assert answer.status_code in (200, 503), "the keeper of the lock may have come first"
        if answer.status_code == 503:
            assert (answer.json()["code"], answer.headers["retry-after"]) == ("unavailable", "1")


async def test_a_contest_without_lineups_commits_to_none(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        await service.move_clock(LOCK)
        made = (await service.client.get(f"/api/v1/contests/{W04}/commitment")).json()
        assert (made["entries"], made["leaves"], made["root"]) == (0, 0, hashlib.sha256().hexdigest())
        assert signed_by_the_service(service, made)
        assert (await service.client.get(f"/api/v1/contests/{W04}/commitment/leaves")).content == b""


@pytest.mark.rule("C10")
async def test_the_database_lets_nobody_change_a_commitment(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        await service.move_clock(LOCK)
        for statement in (
            "UPDATE commitments SET entries = 1",
            "DELETE FROM leaves",
            "TRUNCATE commitments CASCADE",
            "UPDATE leaves SET hashes = ''",
        ):
            with pytest.raises(Exception, match="never changed or removed"):
                async with service.runtime.database.transaction() as connection:
                    await connection.execute(text(statement))


async def test_a_contest_that_locked_before_there_were_commitments_says_so(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        (agent,) = await join(service, 1)
        await ok(await agent.submit(cheapest()))
        async with service.runtime.database.transaction() as connection:
            await connection.execute(text("UPDATE contests SET state = 'locked', locked_at = locks_at, entries = 0"))
        for path in PATHS:
            answer = await agent.get(f"{W04}/{path}")
            assert (answer.status_code, answer.json()["code"]) == (404, "commitment-missing")


@pytest.mark.rule("C10")
async def test_the_keys_are_published_signed_by_the_one_in_use(start: Start) -> None:
    async with start("contests") as service:
        answer = await service.client.get("/api/v1/keys")
        document = answer.json()
        assert answer.content == rfc8785.dumps(document)
        assert signed_by_the_service(service, document)
        (key,) = document["keys"]
        assert key["key_id"] == hashlib.sha256(bytes.fromhex(key["public_key"])).hexdigest()[:16]
        assert (key["algorithm"], key["retired_at"]) == ("Ed25519", None)


async def test_a_contest_that_was_called_off_commits_to_nothing_and_says_so(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        (agent,) = await join(service, 1)
        await ok(await agent.submit(cheapest()))
        await ok(await service.operator.post(f"/operator/api/v1/contests/{W04}/cancel", json={"reason": "Snow."}))
        await service.move_clock(LOCK)
        for path in PATHS:
            answer = await agent.get(f"{W04}/{path}")
            assert (answer.status_code, answer.json()["code"]) == (409, "contest-cancelled")


def test_uuids_stand_in_the_order_of_their_text() -> None:
    ids = [UUID(int=number << shift) for number in range(1, 20) for shift in (0, 64, 120)]
    assert sorted(ids) == sorted(ids, key=str)
