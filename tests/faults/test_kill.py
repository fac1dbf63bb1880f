"""Kill any one process with -9 in the middle of a season: the boards come out the same, to the byte.

Two stacks play the same weeks beside each other. On one nobody dies. On the other each week has two victims, one after
the other killed in each step of that week; the next kill waits until every process is ready again, so that it is always
one process that is missing, and the week tells which two it was where something differs.
"""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from embedded.process import Identity
from embedded.stack import Patience, Ports, Stack, StackOptions, read_state
from house.roster import FIELD, Member
from house.season import Season, SeasonDone, WeekDone, read_files
from mafl.client import PublicClient
from testkit.contracts import ROOT

WEEKS = (
    ("registry", "nats"),
    ("contests", "caddy"),
    ("moderation", "postgres"),
    ("settlement", "provisioner"),
    ("boards",),
)
"""The victims of each week."""
VICTIMS = tuple(victim for victims in WEEKS for victim in victims)
MOMENTS = {"agents register": (4, 5), "agents submit": (6, 12), "locks": (2, 3), "games": (4, 6), "settles": (1, 2)}
"""The steps of a week in which its victims die, and how many calls of the step have been answered by then.

That is among the registrations and what operators do of them, among the submissions, when the clock has moved to the
lock and when the lock has been asked for, after provisional statistics and before the last ones, when settlement has
been asked for and when its answer is there."""

pytestmark = pytest.mark.timeout(900)


def members() -> tuple[Member, ...]:
    """The field with two newcomers in each week, so that each week has registrations, marks and claims."""
    weeks = range(2, len(WEEKS) + 1)
    early = len(FIELD) - 2 * len(weeks)
    late = zip((week for week in weeks for _ in "AB"), FIELD[early:], strict=True)
    return (*FIELD[:early], *(replace(member, joins=week, skips=frozenset()) for week, member in late))


@dataclass
class Killer:
    """Kills a victim of the week within the call that reaches its moment; the season's step cannot end before."""

    stack: Stack
    killed: dict[str, list[tuple[str, Identity]]] = field(default_factory=dict)
    week: int = 1
    moment: str = ""
    answered: int = 0
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    def on_step(self, step: str) -> None:
        """A step of the season begins."""
        self.moment = next((moment for moment in MOMENTS if re.search(rf"\b{moment}$", step)), "")
        self.answered = 0

    def on_week(self, done: WeekDone) -> None:
        """A week is settled and shown."""
        self.week += 1

    async def after_call(self) -> None:
        """A call of the season was answered."""
        self.answered += 1
        if self.answered not in (counts := MOMENTS.get(self.moment, ())):
            return
        # The last week has one victim.
        victims = dict(zip(counts, WEEKS[self.week - 1], strict=False))
        if victim := victims.get(self.answered):
            async with self._one_at_a_time:
                await self.kill(victim)

    async def kill(self, victim: str) -> None:
        """Kill a process when all are ready, and see it dead."""
        moment = self.moment
        identity = await self.all_ready(victim)
        assert (self.moment, identity.is_alive()) == (moment, True)
        assert self.stack.kill(victim) == identity.pid
        # On a busy machine it takes its time to die, and must not be taken for its own successor.
        await asyncio.to_thread(identity.end, signal.SIGKILL, 5.0)
        self.killed.setdefault(victim, []).append((moment, identity))

    async def all_ready(self, victim: str) -> Identity:
        """Wait until every process is ready; the victim as it is then."""
        while True:
            state = read_state(self.stack.state)
            assert state is not None
            if all(process.alive and process.state == "ready" for process in state.processes.values()):
                identity = Identity.of(state.processes[victim].pid)
                assert identity is not None
                return identity
            await asyncio.sleep(0.1)


@dataclass(frozen=True)
class Played:
    """What came of the weeks on one stack: the end, each contest's results, who was killed when."""

    done: SeasonDone
    boards: dict[str, Any]
    results: list[Any]
    killed: dict[str, list[tuple[str, Identity]]]
    restarts: dict[str, int]


async def play(state: Path, watch: Callable[[Stack, Killer], None] = lambda stack, killer: None) -> Played:
    # What has run for a second is started again at once: a season on this machine leaves no time for pauses.
    options = StackOptions(state=state, ports=Ports.free(), clock="replay", patience=Patience(steady=1.0))
    async with Stack(options) as stack:
        killer = Killer(stack)
        watch(stack, killer)
        season = Season(
            stack.public_url,
            stack.operator_url,
            stack.operator_token,
            read_files(ROOT / "data", 2017, len(WEEKS)),
            members=members(),
            on_step=killer.on_step,
            on_week=killer.on_week,
        )
        done = await season.play()
        if killer.killed:
            await killer.all_ready(VICTIMS[-1])
        async with PublicClient(stack.public_url) as public:
            results = [
                without_ids(await public.call("GET", f"/api/v1/contests/2017-W{week:02}/results"))
                for week in range(1, len(WEEKS) + 1)
            ]
            boards = {board: await public.board(board) for board in ("models", "agents")}
        return Played(done, boards, results, killer.killed, stack.restarts)


def without_ids(answer: Any) -> Any:
    """Results without what is new in every run: lineups' ids, and the handles that come of agents' ids."""
    document = answer.json()
    for lineup in document["lineups"]:
        del lineup["lineup"]
        if not lineup["agent"]["claimed"]:
            del lineup["agent"]["name"]
    document["lineups"].sort(key=repr)
    return document


@pytest.fixture(scope="module")
async def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Played, Played]:
    """The weeks undisturbed, and the weeks with their victims."""
    killers: dict[str, Killer] = {}
    call = PublicClient.call

    async def watched(client: PublicClient, *arguments: Any, **options: Any) -> Any:
        try:
            return await call(client, *arguments, **options)
        finally:
            if client.url in killers:
                await killers[client.url].after_call()

    def watch(stack: Stack, killer: Killer) -> None:
        killers.update({stack.public_url: killer, stack.operator_url: killer})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PublicClient, "call", watched)
        return await asyncio.gather(
            play(tmp_path_factory.mktemp("undisturbed")), play(tmp_path_factory.mktemp("disturbed"), watch)
        )


@pytest.mark.rule("O4", "S5", "C7")
def test_killing_one_process_after_the_other_leaves_the_same_boards(both: tuple[Played, Played]) -> None:
    undisturbed, disturbed = both
    assert undisturbed.killed == {}
    assert not any(undisturbed.restarts.values())
    assert disturbed.boards == undisturbed.boards
    assert disturbed.done == undisturbed.done


@pytest.mark.rule("O4", "S5", "C7")
@pytest.mark.parametrize("victim", VICTIMS)
def test_a_process_that_is_killed_in_the_middle_changes_nothing(both: tuple[Played, Played], victim: str) -> None:
    undisturbed, disturbed = both
    (week,) = [number for number, victims in enumerate(WEEKS) if victim in victims]
    assert [moment for moment, _ in disturbed.killed[victim]] == list(MOMENTS)
    assert len({identity.pid for _, identity in disturbed.killed[victim]}) == len(MOMENTS), "each time a new process"
    assert disturbed.restarts[victim] == len(MOMENTS), "and nobody else died of it"
    assert disturbed.results[week] == undisturbed.results[week]
