"""Databases, a bus and clients that are slow, hung or gone: intake says so in time, loses nothing, and recovers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta

import psutil
import psycopg
import pytest

from common import events as ev
from embedded.parts import log_of

from .copies import FIRST, RUSH, Agent, Answer, Copy, Intake, Line, Lost, body, intake, rows_of

pytestmark = pytest.mark.timeout(180)

PATIENCE = 1.0
BOUND = 14.0
"""Seconds within which every call must have its answer, on a machine that is busy with other tests: a place in the
pool (5), a connection (3), and the patience."""
MEBIBYTE = 1 << 20
PROBLEM = "application/problem+json"


@pytest.fixture(scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Intake]:
    settings = {"MAFL_DATABASE_PATIENCE": str(PATIENCE)}
    async with intake(tmp_path_factory.mktemp("dead"), copies=2, settings=settings) as made:
        await made.register(40)
        _acknowledged.clear()
        yield made


def tree(pid: int) -> list[psutil.Process]:
    parent = psutil.Process(pid)
    return [parent, *parent.children(recursive=True)]


@contextlib.contextmanager
def frozen(pid: int) -> Iterator[None]:
    """A process and all its children stand still."""
    stopped = tree(pid)
    for process in stopped:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.suspend()
    try:
        yield
    finally:
        for process in stopped:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()


async def ask(port: int, path: str) -> Answer:
    """What anyone gets there, in time."""
    line = Line(port)
    try:
        return await line.call("GET", path, {}, patience=BOUND)
    finally:
        line.close()


_acknowledged: dict[tuple[int, int], Answer] = {}
"""By agent and number every lineup that was accepted in the first contest, with its answer."""
_numbers = iter(range(1, 1 << 30))


async def everybody(running: Intake, contest: str = FIRST) -> dict[tuple[int, int], Answer]:
    """One lineup of each agent at once, over both copies; the answer by agent and number."""

    async def one(agent: Agent, number: int) -> tuple[tuple[int, int], Answer]:
        port = running.ports[agent.number % 2]
        return (agent.number, number), await agent.submit(port, body(number), contest, key=f"n{number}")

    return dict(await asyncio.gather(*(one(agent, next(_numbers)) for agent in running.agents)))


async def until_accepted(running: Intake, answers: dict[tuple[int, int], Answer], patience: float = 30.0) -> None:
    """Send again what was told 503, until it is accepted; put the answers in their place."""
    deadline = time.monotonic() + patience

    async def again(agent: Agent) -> None:
        for of, number in [place for place in answers if place[0] == agent.number]:
            while answers[of, number].status == 503:
                assert time.monotonic() < deadline, "it does not recover"
                await asyncio.sleep(0.1)
                port = running.ports[agent.number % 2]
                answers[of, number] = await agent.submit(port, body(number), key=f"n{number}")

    await asyncio.gather(*(again(agent) for agent in running.agents))
    assert {answer.status for answer in answers.values()} == {201}
    _acknowledged.update(answers)


def all_unavailable(answers: dict[tuple[int, int], Answer]) -> None:
    for answer in answers.values():
        assert (answer.status, answer.document["code"]) == (503, "unavailable"), answer.content
        assert int(answer.headers["retry-after"]) >= 1
        assert answer.headers["content-type"] == PROBLEM
        assert (answer.there - answer.asked).total_seconds() < BOUND


async def in_the_record(running: Intake) -> None:
    """Every lineup that was ever acknowledged is there as it was told, and nothing else is."""
    for agent in running.agents:
        revisions = await agent.revisions(running.ports[0])
        assert [one["revision"] for one in revisions] == list(range(1, len(revisions) + 1))
        mine = {number: answer.document for (of, number), answer in _acknowledged.items() if of == agent.number}
        assert len(mine) == len(revisions)
        for number, given in mine.items():
            kept = revisions[given["revision"] - 1]
            assert kept["body"] == json.loads(body(number))
            assert {name: kept[name] for name in given} == given


async def usual(running: Intake) -> None:
    """All is well, or soon is by itself: both copies are ready and take everybody's lineups."""
    for agent in running.agents:
        agent.hang_up()
    for copy in running.copies:
        await copy.ready()
    await until_accepted(running, await everybody(running))


@pytest.mark.rule("O4", "C7", "C9")
async def test_a_database_that_stands_still_is_given_up_in_time_and_nothing_is_lost(running: Intake) -> None:
    await usual(running)
    assert running.postgres.pid is not None
    with frozen(running.postgres.pid):
        answers = await everybody(running)
        all_unavailable(answers)
        # Whatever asks the database has an end, and what does not ask it goes on.
        paths = ("/healthz", "/readyz", "/api/v1/contests", f"/api/v1/contests/{FIRST}/pool")
        told = await asyncio.gather(*(ask(copy.port, path) for copy in running.copies for path in paths))
        assert [answer.status for answer in told] == [200, 503, 503, 503] * 2
        assert all(answer.headers["retry-after"] for answer in told if answer.headers["content-type"] == PROBLEM)
        for copy in running.copies:
            counted = (await ask(copy.port, "/metrics")).content.decode()
            assert 'status="503"' in counted
            assert 'status="500"' not in counted
            assert "Traceback" not in log_of(running.folder, copy.name).read_text()
    await until_accepted(running, answers)
    await in_the_record(running)
    await usual(running)


@pytest.mark.rule("O4", "C7", "C9")
async def test_a_database_killed_among_submissions_and_started_again_has_lost_nothing(running: Intake) -> None:
    await usual(running)
    sending = asyncio.create_task(everybody(running))
    await asyncio.sleep(0.05)
    assert running.postgres.pid is not None
    for process in tree(running.postgres.pid):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    first = await sending
    assert {answer.status for answer in first.values()} <= {201, 503}
    # Its port refuses connections now.
    while_down = await everybody(running)
    all_unavailable(while_down)
    await asyncio.to_thread(running.postgres.start)
    answers = first | while_down
    await until_accepted(running, answers)
    await in_the_record(running)
    await usual(running)


@pytest.mark.rule("O4", "C9")
async def test_a_statement_that_hangs_is_given_up_and_its_connection_with_it(running: Intake) -> None:
    await usual(running)
    async with await psycopg.AsyncConnection.connect(rows_of(running.database_url)) as other:
        await other.execute("LOCK TABLE revisions IN ACCESS EXCLUSIVE MODE")
        answers = await everybody(running)
        all_unavailable(answers)
        # What reads no revision is served although some wait: no call keeps the pool for itself.
        assert (await ask(running.ports[0], f"/api/v1/contests/{FIRST}")).status == 200
    await until_accepted(running, answers)
    await in_the_record(running)
    await usual(running)
    # Nothing of ours waits on in the database for an answer that nobody wants any more.
    async with await psycopg.AsyncConnection.connect(rows_of(running.database_url), autocommit=True) as other:
        for _ in range(100):
            waiting = await (
                await other.execute("SELECT count(*) FROM pg_locks WHERE NOT granted AND database IS NOT NULL")
            ).fetchone()
            if waiting == (0,):
                break
            await asyncio.sleep(0.1)
        assert waiting == (0,)


@pytest.mark.rule("C7", "O2", "O4")
async def test_a_copy_that_stops_in_the_middle_of_a_transaction_does_not_hold_up_the_lock(running: Intake) -> None:
    """It is frozen while it takes lineups, and holds what the lock waits for; the other copy locks all the same."""
    await usual(running)
    still, other = running.copies
    locks_at = await _soon(running, 5.0)
    accepted: list[Answer] = []

    async def play(agent: Agent) -> None:
        while True:
            try:
                answer = await agent.submit(still.port, body(next(_numbers)), RUSH, patience=1.0)
            except Lost:
                return
            if answer.status == 201:
                accepted.append(answer)

    playing = [asyncio.create_task(play(agent)) for agent in running.agents]
    while not accepted:
        assert datetime.now(UTC) < locks_at, "nothing was accepted"
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.5)
    still.send(signal.SIGSTOP)
    try:
        await asyncio.gather(*playing)
        entered = {answer.document["agent"] for answer in accepted}
        frozen_lineups = await running.told(ev.LineupLocked, at_least=len(entered), patience=60)
        (locked,) = await running.told(ev.ContestLocked)
        assert (locked.contest, locked.locked_at) == (RUSH, locks_at)
        finals = {str(one.agent_id): one for one in frozen_lineups}
        assert entered <= set(finals)
        assert all(one.accepted_at < locks_at for one in frozen_lineups)
        for answer in accepted:
            assert answer.document["revision"] <= finals[answer.document["agent"]].revision
    finally:
        still.send(signal.SIGCONT)
    # Awake again it accepts nothing and has not forgotten what it accepted.
    for agent in running.agents[:4]:
        for copy in (still, other):
            answer = await agent.submit(copy.port, body(next(_numbers)), RUSH)
            assert (answer.status, answer.document["code"]) == (409, "contest-locked"), answer.content
    await usual(running)


async def _soon(running: Intake, seconds: float) -> datetime:
    locks_at = datetime.now(UTC) + timedelta(seconds=seconds)
    await running.contest(RUSH, locks_at)
    return locks_at


async def of_the_first(running: Intake) -> list[ev.LineupSubmitted]:
    return [one for one in await running.told(ev.LineupSubmitted) if one.contest == FIRST]


@pytest.mark.rule("O4", "M3")
async def test_without_a_bus_intake_goes_on_and_everything_is_told_afterwards(running: Intake) -> None:
    await usual(running)
    running.bus.stop()
    answers = {}
    for _ in range(3):
        answers |= await everybody(running)
    await until_accepted(running, answers)
    deadline = asyncio.get_running_loop().time() + 60
    while (await ask(running.ports[0], "/readyz")).status != 503:
        assert asyncio.get_running_loop().time() < deadline, "it says that it is ready, without a bus"
        await asyncio.sleep(0.05)
    await asyncio.to_thread(running.bus.start)
    await in_the_record(running)
    for _ in range(120):  # Others are told of too, in whatever order.
        submitted = await of_the_first(running)
        if len(submitted) >= len(_acknowledged):
            break
        await asyncio.sleep(0.5)
    assert len(submitted) == len(_acknowledged)
    await usual(running)


def resident(copy: Copy) -> float:
    """Mebibytes that a process holds in memory."""
    size: int = psutil.Process(copy.pid).memory_info().rss
    return size / MEBIBYTE


@contextlib.asynccontextmanager
async def _trickling(running: Intake, many: int, length: int, sent: int) -> AsyncIterator[list[asyncio.StreamReader]]:
    """So many clients that have sent the head and ``sent`` bytes of a body of ``length``, and then wait."""
    writers = []
    readers = []
    for number in range(many):
        agent = running.agents[number % len(running.agents)]
        reader, writer = await asyncio.open_connection("127.0.0.1", running.ports[0])
        head = [f"POST /api/v1/contests/{FIRST}/lineups HTTP/1.1", "Host: mafl.test"]
        head += [f"Authorization: Bearer {agent.key}", f"Content-Length: {length}", "", ""]
        writer.write("\r\n".join(head).encode() + b" " * sent)
        await writer.drain()
        readers.append(reader)
        writers.append(writer)
    try:
        yield readers
    finally:
        for writer in writers:
            writer.close()


@pytest.mark.rule("O4")
async def test_bodies_that_trickle_hold_no_connection_of_the_database_and_hold_up_nobody(running: Intake) -> None:
    await usual(running)
    async with _trickling(running, 200, 3000, 100):
        await asyncio.sleep(0.5)
        async with await psycopg.AsyncConnection.connect(rows_of(running.database_url), autocommit=True) as other:
            for _ in range(300):  # Of what waits for a processor only, another look finds nothing.
                row = await (
                    await other.execute(
                        "SELECT count(*) FROM pg_stat_activity WHERE usename = 'contests' AND pid <> pg_backend_pid()"
                        " AND state LIKE 'idle in transaction%' AND now() - state_change > '100 ms'"
                    )
                ).fetchone()
                if row == (0,):
                    break
                await asyncio.sleep(0.1)
        assert row == (0,)
        begun = time.monotonic()
        await until_accepted(running, await everybody(running))
        assert time.monotonic() - begun < BOUND


@pytest.mark.rule("C5", "O4")
async def test_many_huge_bodies_at_once_are_refused_or_judged_in_bounded_memory(running: Intake) -> None:
    await usual(running)
    before = resident(running.copies[0])
    too_large, largest = b" " * (2 * MEBIBYTE), b" " * (512 * 1024)

    async def one(agent: Agent, number: int) -> Answer | None:
        try:
            return await agent.submit(running.ports[0], too_large if number % 2 else largest)
        except Lost:
            # It is refused before it has sent all: the answer may be lost with the connection.
            assert number % 2
            return None

    agents = [Agent(n, key=running.agents[n % 40].key) for n in range(160)]
    answers = await asyncio.gather(*(one(agent, n) for n, agent in enumerate(agents)))
    for agent in agents:
        agent.hang_up()
    found = Counter(answer.status for answer in answers if answer is not None)
    assert set(found) <= {413, 422, 503}, found
    assert found[422] > 0
    assert all(answer.headers["retry-after"] for answer in answers if answer is not None and answer.status == 503)
    assert resident(running.copies[0]) - before < 200
    await usual(running)


@pytest.mark.rule("O4")
async def test_thousands_who_wait_for_a_dead_database_are_told_so_in_bounded_memory(running: Intake) -> None:
    await usual(running)
    before = resident(running.copies[0])
    agents = [Agent(n, key=running.agents[n % 40].key) for n in range(2000)]
    assert running.postgres.pid is not None
    most = 0.0

    async def watch() -> None:
        nonlocal most
        while True:
            most = max(most, resident(running.copies[0]))
            await asyncio.sleep(0.05)

    watching = asyncio.create_task(watch())
    with frozen(running.postgres.pid):
        begun = time.monotonic()
        answers = await asyncio.gather(
            *(agent.submit(running.ports[0], body(agent.number), patience=60) for agent in agents)
        )
        took = time.monotonic() - begun
    watching.cancel()
    for agent in agents:
        agent.hang_up()
    print(f"\n{len(answers)} told 503 in {took:.1f} s; memory {before:.0f} MiB, at most {most:.0f} MiB")
    assert {(answer.status, answer.document["code"]) for answer in answers} == {(503, "unavailable")}
    assert all(answer.headers["retry-after"] for answer in answers)
    assert took < 3 * BOUND
    assert most - before < 150
    await usual(running)
