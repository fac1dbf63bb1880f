"""C8: how long an answer takes, and what it reads for it, does not depend on the entries of an open contest.

Two copies of contests run beside each other on two databases that were one: same agents, contest, clock. In the one
nobody has entered, in the other thousands have. Two proofs: each public request does the same statements and touches
the same number of rows in both, which is exact; and the times that answers take, sampled in turn, are told apart by no
test in several rounds, which would catch what no statement shows. Both are shown to notice a call that leaks.
"""

import math
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import zip_longest
from random import Random
from typing import Any

import psycopg
import pytest
from sqlalchemy import event, text

from common import events as ev
from contests.domain import Revision
from contests.store import Rush, Store
from testkit.asking import Ask
from testkit.fixtures import Databases, Start, Started

from .helpers import W04, Player, cheapest, join, ok, player, public_asks, send, week_four_is_open

FIRST, ENTRIES = 30, 5_000
"""Revisions that are submitted, and how many there are once they have been multiplied."""
TRIES = 8
"""How often the work of a call is looked at before it counts as another in the other world."""
PAIRS, ROUNDS, FAR = 30, 4, 2.8
"""In each round so many pairs of answers; a call leaks where all rounds are so many standard deviations away."""


@dataclass(frozen=True)
class Worlds:
    """The same outsider before a contest without entries and before one with thousands."""

    without: Player
    entered: Player


@pytest.fixture(params=[ENTRIES])
async def worlds(request: pytest.FixtureRequest, start: Start, databases: Databases) -> AsyncIterator[Worlds]:
    async with start("contests", clock="replay") as first:
        await week_four_is_open(first)
        await join(first, 1, 2, 3, 4)
        one = first.database_url
    name = one.rpartition("/")[2]
    databases.server.clone(name, f"{name}_entered")
    other = databases.server.url("contests", f"{name}_entered")
    async with start("contests", clock="replay", database_url=other) as entering:
        for number in range(FIRST):
            await ok(await player(entering, 1 + number % 3).submit(cheapest(number=number), key=str(number)))
        await entering.settle()
    if request.param > FIRST:
        _multiply(other, request.param // FIRST)
    for url in (one, other):
        with psycopg.connect(_plain(url), autocommit=True) as connection:
            connection.execute("ANALYZE")
    # Both begin anew: PostgreSQL plans a statement otherwise that a connection has made often.
    async with (
        start("contests", clock="replay", database_url=one) as without,
        start("contests", clock="replay", database_url=other) as entered,
    ):
        yield Worlds(player(without, 4), player(entered, 4))


def _plain(url: str) -> str:
    return url.replace("postgresql+psycopg://", "postgresql://", 1)


def _multiply(url: str, copies: int) -> None:
    """Many more entries like those that there are, of agents that nobody knows."""
    with psycopg.connect(_plain(url)) as connection:
        for table in ("lineups", "revisions"):
            connection.execute(
                f"INSERT INTO {table} SELECT (jsonb_populate_record(one, jsonb_build_object("
                "'lineup_id', md5(one.lineup_id::text || n)::uuid, 'agent_id', md5(one.agent_id::text || n)::uuid))).* "
                f"FROM {table} one, generate_series(1, {copies}) n".encode()
            )
        (count,) = connection.execute("SELECT count(*) FROM revisions").fetchone() or (0,)
    assert count == FIRST * (copies + 1)


# --- what is read -------------------------------------------------------------------------------------

_asking: ContextVar[bool] = ContextVar("asking", default=False)

_TOUCHED = """
SELECT relname, seq_tup_read, idx_tup_fetch, n_tup_ins, n_tup_upd, n_tup_del
FROM pg_stat_xact_user_tables
"""


@contextmanager
def watched(service: Started) -> Iterator[list[Any]]:
    """What the requests of this task have the database do: each statement, and what each transaction touched."""
    engine = service.runtime.database.engine.sync_engine
    done: list[Any] = []
    before: dict[Any, dict[str, list[int]]] = {}

    def touched(connection: Any) -> dict[str, list[int]]:
        return {name: counts for name, *counts in connection.exec_driver_sql(_TOUCHED)}

    def begins(connection: Any) -> None:
        # PostgreSQL counts on from what this session touched before and has not handed in yet.
        if _asking.get() and connection.get_execution_options().get("isolation_level") != "AUTOCOMMIT":
            before[connection] = touched(connection)

    def statement(_: Any, __: Any, statement: str, *more: Any) -> None:
        if _asking.get() and statement != _TOUCHED:
            done.append(statement)

    def ends(connection: Any) -> None:
        if connection in before:
            done.append(_more(before.pop(connection), touched(connection)))

    listeners = (
        *(("begin", begins), ("before_cursor_execute", statement)),
        *(("commit", ends), ("rollback", ends)),
    )
    turn = Rush.turn

    async def watched_turn(rush: Rush, *given: Any) -> Any:
        """A group's own connection, which SQLAlchemy knows nothing of, before and after what it reads."""
        was = {name: counts for name, *counts in await rush.connection.fetch(_TOUCHED)}
        try:
            return await turn(rush, *given)
        finally:
            now = {name: counts for name, *counts in await rush.connection.fetch(_TOUCHED)}
            done.append(_more(was, now))

    Rush.turn = watched_turn  # type: ignore[method-assign]
    for name, listener in listeners:
        event.listen(engine, name, listener)
    token = _asking.set(True)
    try:
        yield done
    finally:
        Rush.turn = turn  # type: ignore[method-assign]
        _asking.reset(token)
        for name, listener in listeners:
            event.remove(engine, name, listener)


def _more(was: dict[str, list[int]], now: dict[str, list[int]]) -> dict[str, list[int]]:
    """What was touched between two counts, by table."""
    counts = {
        name: [(a or 0) - (b or 0) for a, b in zip(now[name], was.get(name, [0] * 5), strict=True)] for name in now
    }
    return {name: some for name, some in sorted(counts.items()) if any(some)}


async def work_of(outsider: Player, ask: Ask) -> list[Any]:
    with watched(outsider.service) as done:
        await send(outsider, ask)
    return done


async def differing(worlds: Worlds) -> list[str]:
    """The calls that never do the same work in both worlds.

    PostgreSQL plans a statement otherwise once a connection has made it often, and calls take connections in turn: so
    one that differs is tried again, and has to have done in the one world what it did in the other.
    """
    found = []
    for ask in public_asks():
        for outsider in (worlds.without, worlds.entered):
            await send(outsider, ask)  # What is kept in the process is made now.
        before: list[list[Any]] = []
        after: list[list[Any]] = []
        while len(before) < TRIES and not any(work in before for work in after):
            before.append(await work_of(worlds.without, ask))
            after.append(await work_of(worlds.entered, ask))
        if not any(work in before for work in after):
            told = [(one, other) for one, other in zip_longest(before[-1], after[-1]) if one != other]
            found.append(f"{ask.name}: {told}")
    return found


@pytest.mark.rule("C8")
@pytest.mark.parametrize("worlds", [FIRST, ENTRIES], indirect=True)
async def test_every_public_call_does_the_same_work_however_many_have_entered(worlds: Worlds) -> None:
    assert await differing(worlds) == []
    work = await work_of(worlds.entered, Ask("GET", f"/api/v1/contests/{W04}/lineups/mine", who="the outsider"))
    assert [rows for rows in work if isinstance(rows, dict) and "agents" in rows], "what is touched is seen"
    refused = Ask("POST", f"/api/v1/contests/{W04}/lineups", (), b"{}", "the outsider")
    assert [rows for rows in await work_of(worlds.entered, refused) if "agent_keys" in rows], "of a group too"


@pytest.mark.rule("C8")
async def test_a_call_that_counted_the_entries_of_others_would_be_noticed(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaking = Ask("GET", f"/api/v1/contests/{W04}/lineups/mine/revisions", who="the outsider")
    revisions = Store.revisions

    async def counting(store: Store, contest: str, agent_id: Any) -> list[Revision]:
        await store.connection.execute(text("SELECT sum(length(body)) FROM revisions WHERE contest = '2017-W04'"))
        return await revisions(store, contest, agent_id)

    monkeypatch.setattr(Store, "revisions", counting)
    noticed = await differing(worlds)
    assert any(leaking.name in one for one in noticed)
    assert all("/lineups/mine" in one for one in noticed)
    assert await told_apart(worlds, leaking)


# --- how long it takes ----------------------------------------------------------------------------------


async def told_apart(worlds: Worlds, ask: Ask, pairs: int = PAIRS) -> list[float]:
    """How far apart the times of the two worlds are in each round, where every round says so; else nothing."""
    rounds: list[float] = []
    for _ in range(ROUNDS):
        differences = []
        for pair in range(pairs):
            took = {}
            for outsider in (worlds.without, worlds.entered)[:: 1 if pair % 2 else -1]:
                began = time.perf_counter()
                await send(outsider, ask)
                took[outsider is worlds.entered] = time.perf_counter() - began
            differences.append(math.log(took[True] / took[False]))
        far = signed_rank(differences)
        # One round that sees nothing is enough: a leak would be there in each.
        if abs(far) < FAR or (rounds and far * rounds[0] < 0):
            return []
        rounds.append(far)
    return rounds


def signed_rank(differences: list[float]) -> float:
    """Wilcoxon's signed-rank statistic in standard deviations; pairs that are equal count for neither side."""
    ranked = sorted((value for value in differences if value), key=abs)
    n = len(ranked)
    if not n:
        return 0.0
    above = sum(rank for rank, value in enumerate(ranked, 1) if value > 0)
    return (above - n * (n + 1) / 4) / math.sqrt(n * (n + 1) * (2 * n + 1) / 24)


@pytest.mark.rule("C8")
@pytest.mark.timeout(300)
async def test_nobody_can_tell_by_the_time_an_answer_takes_whether_others_have_entered(worlds: Worlds) -> None:
    """Each call in one form of each outcome, by whoever it lets in: many forms are the same to the clock."""
    by_outcome: dict[tuple[str, str, int], Ask] = {}
    for ask in (one for one in public_asks() if W04 in one.target or "{" not in one.target):
        answer = await send(worlds.entered, ask)
        by_outcome[ask.method, ask.target, answer.status_code] = ask
    timed = [
        ask for (method, _, status), ask in by_outcome.items() if method != "HEAD" and status not in (401, 404, 405)
    ]
    assert len(timed) >= 10
    for ask in timed:
        for outsider in (worlds.without, worlds.entered):
            await send(outsider, ask)
    slow = {ask.name: found for ask in timed if (found := await told_apart(worlds, ask))}
    assert slow == {}


@pytest.mark.parametrize("seed", range(5))
def test_the_comparison_of_times_sees_a_half_more_and_nothing_where_nothing_is(
    seed: int,
) -> None:
    random = Random(seed)

    def sample(shift: float) -> list[float]:
        return [random.gauss(shift, 0.12) + (random.random() < 0.05) * random.gauss(0, 2) for _ in range(PAIRS)]

    assert all(signed_rank(sample(math.log(1.5))) > FAR for _ in range(ROUNDS))
    assert any(abs(signed_rank(sample(0))) < FAR for _ in range(ROUNDS))


def _keyed(service: Started, number: int) -> Player:
    """An agent with a key that a limit by key counts."""
    return replace(player(service, number), key=f"mafl_sk_{number:049}")


# --- limits ---------------------------------------------------------------------------------------------


@pytest.mark.rule("C8", "A11")
@pytest.mark.parametrize("busy", [0, 3])
async def test_what_is_left_of_a_limit_does_not_tell_what_others_at_the_same_address_submit(
    start: Start, busy: int
) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        service.runtime.settings.limits.update(
            dict.fromkeys(("submissions", "checks", "submissions-by-address", "checks-by-address"), "8/3600")
        )
        one, two = [_keyed(service, number) for number in (1, 2)]
        for agent in (one, two):
            await service.publish(ev.AgentRegistered(agent_id=agent.agent_id, agent_name="agent", model="openai/gpt-5"))
            await service.publish(ev.AgentKeyChanged(agent_id=agent.agent_id, key_hash=agent.key_hash))
        await service.settle()
        for number in range(busy):
            await ok(await two.submit(cheapest(number=number)))
            await ok(await two.submit(cheapest(number=number), call="/check"))
        for call, name in (("", "submissions"), ("/check", "checks")):
            answer = await one.submit(b"{}", call=call)
            assert answer.status_code == 422
            left = answer.headers["ratelimit"].split(", ")
            assert left == [f'"{name}";r=7;t=0'], "its own key's, as if it were alone"
            assert f'"{name}-by-address";q=8;w=3600' in answer.headers["ratelimit-policy"]
        for _ in range(7 - busy):
            assert (await one.submit(b"{}")).status_code == 422
        refused = await one.submit(b"{}")
        assert refused.status_code == 429
        assert '"submissions-by-address";r=0' in refused.headers["ratelimit"], "a refusal says why"
