"""A text that goes for good: where its words were, in every store, every stream and every answer, they are no more."""

from __future__ import annotations

import asyncio
import json
import runpy
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import psycopg
import pytest
from alembic.migration import MigrationContext
from alembic.operations import Operations
from psycopg.conninfo import make_conninfo
from sqlalchemy import create_engine, text

from common import events as ev
from common import topology
from common.clock import wall
from common.erasure import erase_redacted
from common.handles import handle
from common.outbox import emit
from common.provision import provision
from embedded.nats import Nats
from embedded.postgres import SUPERUSER, Postgres
from house.field import view
from house.strategies import Strategy, Style, play
from mafl.errors import MaflError
from mafl.export import download
from mafl.models import Contest, Pool
from mafl.verify import Report, verify
from moderation.domain import text_hash
from registry import people
from registry.domain import name_keys
from registry.store import Store as Registry
from testkit import contracts
from testkit.fixtures import Start, Started, admin
from testkit.searching import columns_with, in_database, in_files, in_samples

WEEK = "2017-W01"
THESIS, RATIONALE, FACTOR = "/thesis", "/picks/0/rationale", "/picks/0/main_factor"
SERVICES = ("registry", "contests", "moderation", "boards")
OPENED, LOCK = "2017-09-09T12:00:00+00:00", "2017-09-10T17:00:00+00:00"


@dataclass
class World:
    """The services that know of words, on one bus, and two agents who play: one claimed, one not."""

    running: dict[str, Started]
    nats: Nats
    start: Start
    keys: list[dict[str, str]] = field(default_factory=list)
    """Headers of the agents; the first one is claimed."""
    boards_of_old: AsyncExitStack = field(default_factory=AsyncExitStack)

    def __getattr__(self, name: str) -> Started:
        try:
            return self.running[name]
        except KeyError:
            raise AttributeError(name) from None

    async def quiet(self, *, second_look: float = 3600) -> None:
        """Everything is judged, told, taken and erased, and said to be."""
        for _ in range(3):
            for service in self.running.values():
                await service.settle()
            async with admin(self.nats) as client:
                await erase_redacted(client, client.jetstream(), second_look=timedelta(seconds=second_look))
            await asyncio.sleep(0.1)

    async def submit(self, agent: int, entry: dict[str, Any], key: str = "") -> dict[str, Any]:
        headers = self.keys[agent] | ({"Idempotency-Key": key} if key else {})
        answer = await self.contests.client.post(f"/api/v1/contests/{WEEK}/lineups", json=entry, headers=headers)
        assert answer.status_code == 201, answer.text
        return dict(answer.json())

    async def own(self, agent: int, what: str = "") -> Any:
        answer = await self.contests.client.get(f"/api/v1/contests/{WEEK}/lineups/mine{what}", headers=self.keys[agent])
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def order(self, lineup: str, pointer: str, status: int = 200, **more: Any) -> Any:
        order = {"lineup_id": lineup, "pointer": pointer, "reason": "personal-data", "note": "Case 17.", **more}
        answer = await self.moderation.operator.post("/operator/api/v1/moderation/redactions", json=order)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def redactions(self, lineup: str) -> list[dict[str, Any]]:
        answer = await self.moderation.operator.get(f"/operator/api/v1/moderation/redactions?lineup_id={lineup}")
        return list(answer.json()["redactions"])

    async def shown(self, lineup: str) -> dict[str, Any]:
        """A lineup's texts as boards shows them, by pointer, with its opening."""
        answer = await self.boards.client.get(f"/api/v1/contests/{WEEK}/lineups")
        assert answer.status_code == 200, answer.text
        (found,) = [one for one in answer.json()["lineups"] if one["lineup"] == lineup]
        picks = {
            f"/picks/{pick['index']}/{name}": pick[name]
            for pick in found["picks"]
            for name in ("rationale", "main_factor")
        }
        return {THESIS: found["thesis"], **picks, "opening": found["opening"]}

    async def whole_text(self, lineup: str, words: list[str]) -> None:
        """Wait until boards shows these words."""
        for _ in range(1500):
            shown = await self.boards.client.get(f"/api/v1/contests/{WEEK}/lineups")
            if shown.status_code == 200 and all(word in shown.text for word in words):
                return
            await asyncio.sleep(0.02)
        raise AssertionError(f"boards never showed {words}")

    async def told(self, kind: type[ev.Event], many: int) -> None:
        """Wait until moderation has published so many events of a kind."""
        for _ in range(1500):
            if len(await self.moderation.published(kind)) >= many:
                return
            await asyncio.sleep(0.02)
        raise AssertionError(f"moderation never told {many} times {kind.__name__}")

    async def ask_review(self, lineup: str, pointer: str, sentence: str) -> None:
        """The owner of the claimed agent asks to look at a text again."""
        async with self.registry.runtime.database.transaction() as connection:
            store = Registry(connection)
            (agent,) = [one for one in await store.agents() if one.claimed]
            assert agent.owner_id is not None
            about = agent.owner_id, agent.agent_id, UUID(lineup), pointer
            await people.ask_review(store, *about, sentence=sentence, now=wall())

    def everywhere(self, *words: str) -> list[str]:
        """Where any of the words is: databases and the files of the streams."""
        found = [
            f"{name}: {where}"
            for name, service in self.running.items()
            for where in in_database(service.database_url, words)
        ]
        return found + [f"streams: {where}" for where in in_files(self.nats.directory / "store", words)]

    async def at_contests(self, statements: str) -> None:
        """Statements in one transaction of contests' database."""
        async with self.contests.runtime.database.transaction() as connection:
            for one in statements.split("; "):
                await connection.execute(text(one.replace("::", "\\:\\:")))

    async def answers(self, lineup: str) -> str:
        """Everything that anybody, the agents and the operator can be told of the contest, one after the other."""
        told = []
        for headers in self.keys:
            for what in ("mine", "mine/revisions", "mine/proof"):
                path = f"/api/v1/contests/{WEEK}/lineups/{what}"
                told.append((await self.contests.client.get(path, headers=headers)).text)
        for path in ("lineups", "results", "commitment", "commitment/leaves", "commitment/redactions"):
            service = self.contests if path.startswith("commitment") else self.boards
            told.append((await service.client.get(f"/api/v1/contests/{WEEK}/{path}")).text)
        pages = (f"/contests/{WEEK}", "/agents", "/models", "/", "/method")
        told += [(await self.boards.client.get(path)).text for path in pages]
        calls = ("queue", f"lineups/{lineup}", "redactions", "backlog")
        operator = self.moderation.operator
        told += [(await operator.get(f"/operator/api/v1/moderation/{call}")).text for call in calls]
        return "\n".join(told)

    async def verified(self, folder: Path, receipt: dict[str, Any] | None = None) -> Report:
        """What ``mafl contest download`` writes, checked, with the first agent's proof and receipt where given."""
        files = await download(Public(self), WEEK)  # type: ignore[arg-type]
        if receipt is not None:
            path = f"/api/v1/contests/{WEEK}/lineups/mine/proof"
            proof = await self.contests.client.get(path, headers=self.keys[0])
            files |= {"own/receipt.json": json.dumps(receipt).encode(), "own/proof.json": proof.content}
        return checked(folder, files)


def checked(folder: Path, files: dict[str, bytes]) -> Report:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return verify(folder)


class Public:
    """The public client's calls, answered by the services of a world."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def call(self, method: str, path: str) -> httpx.Response:
        at_boards = path.endswith("/lineups")
        service = self.world.boards if at_boards else self.world.contests
        answer = await service.client.request(method, path)
        if answer.is_error:
            raise MaflError(answer.json()["code"], answer.text)
        return answer


@asynccontextmanager
async def a_world(start: Start, nats_server: Nats) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        boards = await stack.enter_async_context(AsyncExitStack())
        running = {
            name: await (boards if name == "boards" else stack).enter_async_context(start(name, clock="replay"))
            for name in SERVICES
        }
        world = World(running, nats_server, start, boards_of_old=boards)
        registry, contests = world.registry, world.contests
        for name in ("Contract Claimed", "Contract Unclaimed"):
            made = await registry.client.post("/api/v1/agents", json={"name": name, "model": "demo/one"})
            assert made.status_code == 201, made.text
            world.keys.append({"Authorization": f"Bearer {made.json()['api_key']}"})
            if name == "Contract Claimed":
                agent = made.json()["agent"]["id"]
                claim = await registry.operator.post(f"/operator/api/v1/agents/{agent}/claim", json={"owner": "Ann"})
                assert claim.status_code == 200, claim.text
        pool_file = (contracts.ROOT / "data" / "pool_2017_dk.csv.gz").read_bytes()
        await contests.operator.post(
            "/operator/api/v1/contests/import", params={"season": 2017, "week": 1}, content=pool_file
        )
        await contests.move_clock(datetime.fromisoformat(OPENED))
        opened = await contests.operator.post(f"/operator/api/v1/contests/{WEEK}/open")
        assert opened.status_code == 200, opened.text
        # What is told of the agents' names and of their model is told before a test begins.
        await world.told(ev.AgentNameJudged, 2)
        await world.told(ev.ModelJudged, 1)
        await world.quiet()
        yield world
        for service in running.values():
            assert await service.dead_letters() == []


@pytest.fixture
async def world(start: Start, nats_server: Nats) -> AsyncIterator[World]:
    async with a_world(start, nats_server) as made:
        yield made


async def entry(world: World, **words: str) -> dict[str, Any]:
    """A legal lineup with these words in its thesis and in the texts of its first pick."""
    contest = Contest.model_validate((await world.contests.client.get(f"/api/v1/contests/{WEEK}")).json())
    pool = Pool.model_validate((await world.contests.client.get(f"/api/v1/contests/{WEEK}/pool")).json())
    body = play("somebody", Style(Strategy.RANDOM), view(contest, pool, {})).body()
    body["thesis"] = words.get("thesis", "Stack the shootout.")
    body["picks"][0]["rationale"] = words.get("rationale", "Smash spot.")
    body["picks"][0]["main_factor"] = words.get("factor", "volume")
    return dict(body)


@pytest.mark.rule("M6", "M2", "C10")
async def test_the_words_of_a_text_go_from_every_store_and_its_leaf_and_a_dated_tombstone_stay(
    world: World, tmp_path: Path
) -> None:
    first = await world.submit(0, await entry(world, thesis="Zebrafinch first."))
    body = await entry(world, thesis="Zebrafinch last.", rationale="Kingfisher stays.")
    last = await world.submit(0, body, key="again")
    other = await world.submit(1, await entry(world, thesis="Nightjar is nobody's."))
    await world.contests.move_clock(datetime.fromisoformat(LOCK))
    await world.whole_text(last["lineup"], ["Zebrafinch last.", "Kingfisher stays."])
    lineup, salts = last["lineup"], [made["salts"][THESIS] for made in (first, last)]
    root = (await world.contests.client.get(f"/api/v1/contests/{WEEK}/commitment")).json()
    before = await world.verified(tmp_path / "before")
    assert before.ok
    assert before.contests[0]["redacted"] == 0
    everywhere = world.everywhere("Zebrafinch", *salts)
    assert {where.split(":")[0] for where in everywhere} == {"contests", "moderation", "boards", "streams"}

    planned = await world.order(lineup, THESIS, dry_run=True)
    assert planned["redactions"] == []
    assert [
        (text["revision"], text["final"], text["text"], text["copies"]["released"]) for text in planned["texts"]
    ] == [
        (1, False, None, 0),
        (2, True, "Zebrafinch last.", 1),
    ], "an operator sees which text it is, of the final revision alone"
    assert world.everywhere("Zebrafinch", *salts) == everywhere, "a dry run changes nothing"

    made = await world.order(lineup, THESIS)
    assert "Zebrafinch" not in json.dumps(made)
    assert [(one["revision"], one["done"]) for one in made["redactions"]] == [(1, False), (2, False)]
    await world.quiet()
    (gone_at,) = {one["redacted_at"] for one in await world.redactions(lineup)}
    assert all(one["done"] for one in await world.redactions(lineup)), await world.redactions(lineup)
    assert {(one["revision"], one["boards_holds_nothing"]) for one in await world.redactions(lineup)} == {
        (1, True),
        (2, False),
    }

    # The words, and the salts by which a short text could be guessed from its leaf, are nowhere.
    assert world.everywhere("Zebrafinch", *salts) == []
    answers = await world.answers(lineup)
    assert "Zebrafinch" not in answers
    assert not any(salt in answers for salt in salts)
    assert "Kingfisher stays." in answers

    tombstone = {"redacted_at": gone_at.replace("+00:00", "Z"), "reason": "personal-data"}
    shown = await world.shown(lineup)
    assert shown[THESIS] == {"text": None, "withheld": "redacted", "redacted": tombstone}
    assert shown[RATIONALE] == {"text": "Kingfisher stays.", "withheld": None}
    assert THESIS not in shown["opening"]["salts"]
    assert RATIONALE in shown["opening"]["salts"]
    page = (await world.boards.client.get(f"/contests/{WEEK}")).text
    assert "redacted on" in page
    assert "10 Sep 2017" in page
    assert "personal data" in page

    # Root, proofs and the agent's own copy hold as before; its own view says what went.
    assert (await world.contests.client.get(f"/api/v1/contests/{WEEK}/commitment")).json() == root
    mine = await world.own(0)
    assert mine["body"]["thesis"] is None
    assert THESIS not in mine["salts"]
    assert {name: mine["redacted"][THESIS][name] for name in tombstone} == tombstone
    assert [one["receipt"] for one in (await world.own(0, "/revisions"))["revisions"]] == [
        first["receipt"],
        last["receipt"],
    ]
    kept = {**last, "body": body}
    after = await world.verified(tmp_path / "after", receipt=kept)
    assert after.ok, after.failures
    assert after.contests[0]["redacted"] == 1
    assert after.contests[0]["opened"] == before.contests[0]["opened"] - 1
    assert (after.receipts[0]["committed"], after.proofs[0]["redacted"]) == (True, 1)
    fetched = await world.verified(tmp_path / "fetched", receipt=mine)
    assert fetched.ok
    assert fetched.receipts[0]["redacted"] == [THESIS]
    tampered = {**kept, "body": {**body, "thesis": "Something else."}}
    assert not (await world.verified(tmp_path / "tampered", receipt=tampered)).ok

    # A retry gets the first answer, though nobody knows its thesis any more (C9).
    retried = await world.contests.client.post(
        f"/api/v1/contests/{WEEK}/lineups", json=body, headers=world.keys[0] | {"Idempotency-Key": "again"}
    )
    assert (retried.status_code, retried.json()["receipt"]) == (201, last["receipt"])
    changed = {**body, "confidence": 0.9}
    refused = await world.contests.client.post(
        f"/api/v1/contests/{WEEK}/lineups", json=changed, headers=world.keys[0] | {"Idempotency-Key": "again"}
    )
    assert refused.json()["code"] == "idempotency-key-reused"

    # Ordered again it is as it was, and there is nothing left to judge.
    once_more = await world.order(lineup, THESIS, reason="decency")
    assert {one["reason"] for one in once_more["redactions"]} == {"personal-data"}
    judged = {"lineup_id": lineup, "pointer": THESIS, "version": 1, "state": "cleared", "note": "Fine."}
    answer = await world.moderation.operator.post("/operator/api/v1/moderation/judgements", json=judged)
    assert answer.json()["code"] == "redacted"
    # Who is not claimed has a tombstone in the first place too.
    await world.order(other["lineup"], THESIS, reason="court-order")
    await world.quiet()
    assert (await world.shown(other["lineup"]))[THESIS]["withheld"] == "redacted"
    assert (await world.shown(other["lineup"]))[RATIONALE]["withheld"] == "unclaimed"
    assert world.everywhere("Nightjar") == []


@pytest.mark.rule("M4", "M6")
async def test_what_an_owner_said_for_a_text_goes_with_it(world: World) -> None:
    link = "https://blog.example/turnstone"
    last = await world.submit(0, await entry(world, rationale=f"All on {link}.", factor=f"See {link}/wind."))
    await world.contests.move_clock(datetime.fromisoformat(LOCK))
    lineup = last["lineup"]
    for _ in range(1500):
        if FACTOR in await withheld(world):
            break
        await asyncio.sleep(0.02)
    await world.quiet()

    await world.ask_review(lineup, RATIONALE, "Turnstone is my own page.")
    await world.ask_review(lineup, FACTOR, "Sanderling is another one.")
    await world.quiet()
    places = {where.split(":")[0] for where in world.everywhere("Turnstone is my")}
    assert places == {"registry", "moderation", "streams"}
    await world.order(lineup, RATIONALE)
    await world.quiet()
    assert world.everywhere("Turnstone is my") == []
    assert {where.split(":")[0] for where in world.everywhere("Sanderling is another")} == places
    with pytest.raises(people.NothingToReview):
        await world.ask_review(lineup, RATIONALE, "Once more.")


async def withheld(world: World) -> list[str]:
    """The pointers of the texts in the operators' queue."""
    answer = await world.moderation.operator.get("/operator/api/v1/moderation/queue")
    return [item["pointer"] for item in answer.json()["items"]]


@pytest.mark.rule("M6", "C8", "C10")
async def test_what_is_redacted_before_the_lock_is_told_to_nobody_before_it(world: World, tmp_path: Path) -> None:
    async def public_streams() -> dict[str, int]:
        async with admin(world.nats) as client:
            js = client.jetstream()
            names = [one.name for one in topology.STREAMS if one.name not in topology.PRIVATE_STREAMS]
            return {
                name: (await js.stream_info(name)).state.last_seq
                for name in names
                if name not in (topology.DEAD_PRIVATE, topology.ADVISORIES)
            }

    body = await entry(world, thesis="Zebrafinch early.", factor="Whimbrel.")
    made = await world.submit(0, body)
    await world.quiet()
    before = await public_streams()
    ordered = await world.order(made["lineup"], THESIS)
    assert ordered["texts"] == [
        {
            "revision": 1,
            "final": None,
            "state": None,
            "slot": None,
            "player": None,
            "text": None,
            "redacted": False,
            "copies": {"released": 0, "notes": 0},
        }
    ]
    await world.quiet()
    assert all(one["done"] and one["boards_holds_nothing"] for one in await world.redactions(made["lineup"]))
    assert await public_streams() == before
    assert world.everywhere("Zebrafinch", made["salts"][THESIS]) == []
    mine = await world.own(0)
    assert mine["body"]["thesis"] is None
    assert mine["redacted"].keys() == {THESIS}
    assert (await world.contests.client.get(f"/api/v1/contests/{WEEK}/commitment/redactions")).status_code == 409

    await world.contests.move_clock(datetime.fromisoformat(LOCK))
    await world.whole_text(made["lineup"], ["Whimbrel."])
    await world.quiet()
    assert (await world.shown(made["lineup"]))[THESIS]["withheld"] == "redacted"
    assert (await world.shown(made["lineup"]))[FACTOR] == {"text": "Whimbrel.", "withheld": None}
    checked = await world.verified(tmp_path / "locked", receipt={**made, "body": body})
    assert checked.ok, checked.failures
    assert (checked.receipts[0]["committed"], checked.contests[0]["redacted"]) == (True, 1)
    (one,) = await world.redactions(made["lineup"])
    assert one["boards_at"] is not None
    assert not one["boards_holds_nothing"]


@pytest.mark.rule("M6", "C6")
async def test_one_revision_alone_can_be_redacted_and_none_can_be_changed_in_any_other_way(world: World) -> None:
    first = await world.submit(0, await entry(world, thesis="Zebrafinch draft."))
    await world.submit(0, await entry(world, thesis="Whimbrel final."))
    lineup = first["lineup"]
    await world.quiet()
    missing = await world.order(lineup, THESIS, status=404, revisions=[3])
    assert "revision 3" in missing["detail"]
    await world.order(lineup, "/picks/40/rationale", status=404)
    await world.order(lineup, THESIS, revisions=[1])
    await world.contests.move_clock(datetime.fromisoformat(LOCK))
    await world.whole_text(lineup, ["Whimbrel final."])
    await world.quiet()
    assert world.everywhere("Zebrafinch") == []
    assert (await world.shown(lineup))[THESIS] == {"text": "Whimbrel final.", "withheld": None}
    assert (await world.contests.client.get(f"/api/v1/contests/{WEEK}/commitment/redactions")).json() == {
        "contest": WEEK,
        "redactions": [],
    }
    assert await world.contests.published(ev.TextRedacted) == []

    for statement in (
        "UPDATE revisions SET body = replace(body, 'Whimbrel', 'Redstart')",
        "UPDATE revisions SET salts = overlay(salts PLACING '\\x00' FROM 1 FOR 1)",
        "UPDATE revisions SET body = '{}'",
        "UPDATE revisions SET receipt = 'x' WHERE revision = 1",
        "DELETE FROM revisions",
        # Two texts gone where there is one tombstone; and a tombstone of picks.
        "UPDATE revisions SET body = jsonb_set(body::jsonb, '{picks,0,rationale}', 'null')::text WHERE revision = 1",
        "INSERT INTO redactions SELECT lineup_id, 2, '', redaction_id, contest, agent_id, leaf, reason, redacted_at "
        "FROM redactions; UPDATE revisions SET picks = '[]' WHERE revision = 2",
        "UPDATE redactions SET redacted_at = now()",
        "DELETE FROM redactions",
    ):
        with pytest.raises(Exception, match="never changed or removed"):
            await world.at_contests(statement)


@pytest.mark.rule("M6", "B7")
async def test_boards_made_again_from_the_streams_do_not_bring_the_words_back(world: World) -> None:
    made = await world.submit(0, await entry(world, thesis="Zebrafinch.", rationale="Kingfisher stays."))
    await world.contests.move_clock(datetime.fromisoformat(LOCK))
    await world.whole_text(made["lineup"], ["Zebrafinch.", "Kingfisher stays."])
    await world.quiet()
    (released,) = await world.moderation.published(ev.ReasoningReleased)
    await world.order(made["lineup"], THESIS)
    await world.quiet()
    digest = (await world.boards.operator.get("/operator/api/v1/boards/digest")).json()
    shown = await world.shown(made["lineup"])

    # The release with the words comes once more, by a copy that was on its way; then the next look erases it too.
    await world.moderation.publish(released, 1)
    await world.boards.settle()
    assert in_database(world.boards.database_url, ["Zebrafinch"]) == []
    assert (await world.boards.operator.post("/operator/api/v1/boards/rebuild")).json()["digest"] == digest["digest"]
    await world.boards_of_old.aclose()
    async with admin(world.nats) as client:
        js = client.jetstream()
        for durable in topology.durables_of("boards"):
            await js.delete_consumer(durable.stream, "boards")
        await provision(js)
    async with world.start("boards", clock="replay") as fresh:
        world.running["boards"] = fresh
        await world.whole_text(made["lineup"], ["Kingfisher stays."])
        await fresh.settle()
        assert await world.shown(made["lineup"]) == shown
        assert in_database(fresh.database_url, ["Zebrafinch"]) == []
        assert (await fresh.operator.get("/operator/api/v1/boards/digest")).json() == digest
        assert "Zebrafinch" not in await world.answers(made["lineup"])


@pytest.mark.rule("M6")
async def test_a_release_that_arrives_late_and_a_dead_letter_are_erased_at_the_second_look(world: World) -> None:
    made = await world.submit(0, await entry(world, thesis="Zebrafinch."))
    await world.contests.move_clock(datetime.fromisoformat(LOCK))
    await world.whole_text(made["lineup"], ["Zebrafinch."])
    await world.quiet()
    (released,) = await world.moderation.published(ev.ReasoningReleased)
    (submitted,) = await world.contests.published(ev.LineupSubmitted)
    await world.order(made["lineup"], THESIS)
    await world.quiet(second_look=6)
    assert world.everywhere("Zebrafinch") == []
    async with admin(world.nats) as client:
        js = client.jetstream()
        for event in (released, submitted):
            packed = ev.pack(event, event_id=uuid4(), aggregate_version=1, correlation_id="late", time=wall())
            for subject in (topology.dead_letter(event.stream, event.subject()), event.subject()):
                await js.publish(subject, packed.model_dump_json().encode())
    assert {where.split("/")[3] for where in world.everywhere("Zebrafinch")} == {
        "MODERATION",
        "CONTESTS_PRIVATE",
        "DEAD",
        "DEAD_PRIVATE",
    }, "and in no database"
    (one,) = await world.redactions(made["lineup"])
    assert (one["looks"], one["messages"], one["done"]) == (1, 2, True)
    for _ in range(100):
        await world.quiet(second_look=6)
        (one,) = await world.redactions(made["lineup"])
        if one["looks"] == 2:
            break
    assert (one["looks"], one["messages"]) == (2, 6)
    assert world.everywhere("Zebrafinch") == []


@pytest.mark.rule("M6")
async def test_ordered_twice_at_once_it_is_redacted_once(world: World) -> None:
    made = await world.submit(0, await entry(world, thesis="Zebrafinch."))
    await world.contests.move_clock(datetime.fromisoformat(LOCK))
    await world.whole_text(made["lineup"], ["Zebrafinch."])
    answers = await asyncio.gather(*(world.order(made["lineup"], pointer) for pointer in (THESIS, THESIS, RATIONALE)))
    await world.quiet()
    assert answers[0]["redactions"] == answers[1]["redactions"] != []
    assert [one["done"] for one in await world.redactions(made["lineup"])] == [True, True]
    assert len(await world.contests.published(ev.TextRedacted)) == 2
    assert world.everywhere("Zebrafinch") == []


@pytest.mark.rule("M6", "A10", "A2")
async def test_an_agents_name_and_description_go_from_everywhere_and_a_handle_and_a_tombstone_stay(
    world: World,
) -> None:
    old, diary = "Zebrafinch Writer", "Zebrafinch keeps a diary."
    registry, moderation, boards = world.registry, world.moderation, world.boards
    wanted = {"name": old, "model": "demo/one", "description": diary}
    made = await registry.client.post("/api/v1/agents", json=wanted, headers={"Idempotency-Key": "zebrafinch-1"})
    assert made.status_code == 201, made.text
    agent = made.json()["agent"]["id"]
    key = {"Authorization": f"Bearer {made.json()['api_key']}"}
    of_agent = f"/operator/api/v1/agents/{agent}"
    assert (await registry.operator.post(f"{of_agent}/claim", json={"owner": "Bea"})).status_code == 200
    world.keys.append(key)
    await world.told(ev.AgentNameJudged, 3)
    await world.quiet()
    # What may quote it: a person's note and judgement, and what its owner said.
    judged = {"agent_id": agent, "version": 1, "state": "cleared", "note": "Zebrafinch is a bird."}
    path = "/operator/api/v1/moderation"
    assert (await moderation.operator.post(f"{path}/judgements", json=judged)).status_code == 200
    async with registry.runtime.database.transaction() as connection:
        found = await Registry(connection).agent(UUID(agent))
        assert found is not None
        asked = ev.ReviewRequested(
            agent_id=found.agent_id, judged_version=2, requested_at=wall(), sentence="Zebrafinch!"
        )
        await emit(connection, asked, 1)
    submitted = await world.submit(2, await entry(world, thesis="Kingfisher stays."))
    await world.contests.move_clock(datetime.fromisoformat(LOCK))
    await world.whole_text(submitted["lineup"], ["Kingfisher stays.", old])
    await world.quiet()
    words = ["ebrafinch", *name_keys(old)]
    assert {where.split(":")[0] for where in world.everywhere(*words)} == {
        "registry",
        "moderation",
        "boards",
        "streams",
    }

    order = {"reason": "personal-data", "by": "ada"}
    gone = await registry.operator.post(f"{of_agent}/redactions", json=order)
    assert gone.status_code == 200, gone.text
    neutral = handle(UUID(agent), claimed=True)
    assert (gone.json()["name"], gone.json()["description"]) == (neutral, None)
    await world.told(ev.AgentNameJudged, 5)
    for _ in range(5):
        await world.quiet(second_look=0)
        answer = await moderation.operator.get(f"{path}/redactions", params={"agent_id": agent})
        (row,) = answer.json()["redactions"]
        if row["done"]:
            break
    assert (row["done"], row["pointer"], row["reason"], row["lineup_id"]) == (
        True,
        "name, description",
        "personal-data",
        None,
    ), list(row.items())[-10:]
    assert world.everywhere(*words) == []
    assert "ebrafinch" not in await world.answers(submitted["lineup"])
    shown = (await boards.client.get(f"/api/v1/contests/{WEEK}/lineups")).text
    assert neutral in shown
    assert "Kingfisher stays." in shown, "what it wrote stays"
    acts = (await registry.operator.get("/operator/api/v1/audit")).json()["acts"]
    assert (acts[0]["what"], acts[0]["who"], acts[0]["target"]) == ("redact", "ada", f"agent/{agent}")
    assert acts[0]["after"]["reason"] == "personal-data"

    # Again changes no name; its key still plays; the old name is nobody's any more, and it may choose another once.
    before = (await registry.client.get("/api/v1/agents/me", headers=key)).json()
    again = await registry.operator.post(f"{of_agent}/redactions", json={**order, "fields": ["name"]})
    assert again.json()["name"] == before["name"] == neutral
    assert len(await registry.published(ev.AgentRedacted)) == 1
    for taker, headers in (("post", {}), ("patch", key)):
        path_of = "/api/v1/agents" if taker == "post" else "/api/v1/agents/me"
        body = {"name": "ZEBRAFINCH writer"} | ({"model": "demo/one"} if taker == "post" else {})
        refused = await registry.client.request(taker.upper(), path_of, json=body, headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (409, "name-taken"), refused.text
    renamed = await registry.client.patch("/api/v1/agents/me", json={"name": "Nightjar"}, headers=key)
    assert renamed.status_code == 200, renamed.text
    fixed = await registry.client.patch("/api/v1/agents/me", json={"name": "Third"}, headers=key)
    assert (fixed.status_code, fixed.json()["code"]) == (409, "name-fixed")
    await world.whole_text(submitted["lineup"], ["Nightjar"])
    await world.quiet(second_look=0)
    assert world.everywhere(*words) == []


ROOT = Path(__file__).resolve().parents[2]


def update_as_the_release_did_that_keeps_no_samples(url: str, service: str) -> None:
    """Run that one migration; there are newer ones, which have run already."""
    (path,) = (ROOT / "services" / service / service / "migrations/versions").glob("*_no_samples_of_words.py")
    engine = create_engine(url)
    try:
        with engine.begin() as connection, Operations.context(MigrationContext.configure(connection)):
            runpy.run_path(str(path))["upgrade"]()
    finally:
        engine.dispose()


@pytest.mark.rule("M6")
async def test_the_planner_takes_no_sample_of_words_and_lets_go_of_those_that_it_took(
    world: World, postgres: Postgres
) -> None:
    traces = ["Zebrafinch"]
    for number in range(3):
        for agent in (0, 1):
            link = f"https://zebrafinch.example/{number}{agent}"
            words = {
                "thesis": f"Zebrafinch {number}{agent}.",
                "rationale": f"On {link}.",
                "factor": f"See {link}/wind.",
            }
            made = await world.submit(
                agent, await entry(world, **{name: f"Zebrafinch: {words[name]}" for name in words})
            )
            traces += [made["salts"][pointer] for pointer in (THESIS, RATIONALE, FACTOR)]
            traces += [text_hash(f"Zebrafinch: {words[name]}") for name in words]
    lineup = (await world.own(0))["lineup"]
    await world.contests.move_clock(datetime.fromisoformat(LOCK))
    await world.whole_text(lineup, ["Zebrafinch: Zebrafinch 20.", "flagged"])
    await world.quiet()
    for pointer in (RATIONALE, FACTOR):
        await world.ask_review(lineup, pointer, f"Zebrafinch {pointer}.")
        judged = {
            "lineup_id": lineup,
            "pointer": pointer,
            "version": 1,
            "state": "flagged",
            "note": f"Zebrafinch {pointer}.",
        }
        answer = await world.moderation.operator.post("/operator/api/v1/moderation/judgements", json=judged)
        assert answer.status_code == 200, answer.text
    await world.quiet()

    password = (postgres.directory / "password").read_text().strip()
    for name, service in world.running.items():
        url = service.database_url.replace("postgresql+psycopg://", "postgresql://", 1)
        superuser = make_conninfo(url, user=SUPERUSER, password=password)
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute("ANALYZE")
            assert in_samples(superuser, traces) == []
            holding = columns_with(url, traces)
            assert holding, name
            assert {where: target for where, target in holding.items() if target != 0} == {}, name

            # As a database was that an earlier release made: there are samples, and its update takes them away.
            for table, column in holding:
                owner.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET STATISTICS DEFAULT".encode())
            owner.execute("ANALYZE")
            assert in_samples(superuser, traces), name
            await asyncio.to_thread(update_as_the_release_did_that_keeps_no_samples, service.database_url, name)
            assert in_samples(superuser, traces) == [], name
            owner.execute("ANALYZE")
            assert in_samples(superuser, traces) == [], name
    assert await world.own(0)
    assert "Zebrafinch: Zebrafinch 20." in (await world.boards.client.get(f"/api/v1/contests/{WEEK}/lineups")).text
