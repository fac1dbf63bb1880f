"""What happens to words in any order, on the running services: the public pages show what a simple model says.

Agents submit and submit again, judging halts and goes on, games move, the contest locks or is called off, owners claim
and release, people judge by hand, an external verdict comes late, the pipeline changes its mind and is run again over
old texts. After each of these the contest's page and API must come to what rule M2 says, and keep to it.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import anyio.from_thread
import anyio.to_thread
import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from common.events import State
from house.field import view
from house.strategies import Strategy, Style, play
from mafl.models import Contest, Pool
from moderation import commands
from moderation.domain import Finding, Stage, Verdict
from moderation.store import Place, Store
from testkit import contracts
from testkit.fixtures import Start, Started

SERVICES = ("registry", "contests", "moderation", "boards")
POINTERS = ("/thesis", "/picks/0/rationale", "/picks/0/main_factor")
TASTES = ("apple", "pear", "plum")
WEEKS = range(1, 17)
PIPELINE = """
import json, time
from pathlib import Path
from moderation.pipeline import Match, Pipeline

HERE = Path({here!r})

class Taste:
    name, version, raw, stops = "taste", "1", True, False

    def judge(self, text, context):
        taste = text.split()[0]
        while taste in {tastes!r} and (HERE / "gate").exists():
            time.sleep(0.01)
        says = json.loads((HERE / "says.json").read_text()).get(taste, "cleared")
        if says == "unchecked":
            raise RuntimeError
        return [Match("taste", 0, len(taste))] if says == "flagged" else []

def load():
    return Pipeline((Taste(),))
"""


@dataclass
class Written:
    """A lineup as its agent wrote it last, and what was said of each text of that revision."""

    lineup: str
    revision: int
    texts: dict[str, str]
    said: dict[str, dict[str, State]] = field(default_factory=lambda: {pointer: {} for pointer in POINTERS})

    def reason(self, pointer: str, *, claimed: bool) -> str | None:
        """Why the text is not shown, ``None`` where it is: rule M2."""
        said = self.said[pointer]
        final = said.get("person")
        if not claimed:
            return "unclaimed"
        if final is State.FLAGGED or (final is None and State.FLAGGED in said.values()):
            return "flagged"
        return None if State.CLEARED in (final, said.get("local")) else "not checked yet"


class Services:
    """The services, two agents who play, and a pipeline that says what the test wants."""

    def __init__(self, running: dict[str, Started], here: Path) -> None:
        self.running = running
        self.gate, self._says = here / "gate", here / "says.json"
        self.agents: list[tuple[str, dict[str, str]]] = []
        self.week = 0
        self.say({})

    def say(self, says: dict[str, State]) -> None:
        new = self._says.with_suffix(".new")
        new.write_text(json.dumps({taste: state.value for taste, state in says.items()}))
        new.rename(self._says)

    async def ask(self, service: str, method: str, path: str, *, status: int = 200, **options: Any) -> Any:
        """A call as the operator, or as whoever the headers say."""
        answer = await self.running[service].operator.request(method, path, **options)
        assert answer.status_code == status, (path, answer.text)
        return answer.json()

    async def begin(self) -> str:
        """Open the next week; its contest."""
        self.week += 1
        contest = f"2017-W{self.week:02}"
        content = (contracts.ROOT / "data" / "pool_2017_dk.csv.gz").read_bytes()
        params = {"season": 2017, "week": self.week}
        await self.ask("contests", "POST", "/operator/api/v1/contests/import", params=params, content=content)
        listed = (await self.ask("contests", "GET", "/operator/api/v1/contests"))["contests"]
        locks_at = next(one["locks_at"] for one in listed if one["contest"] == contest)
        await self.running["contests"].move_clock(datetime.fromisoformat(locks_at) - timedelta(days=1))
        await self.ask("contests", "POST", f"/operator/api/v1/contests/{contest}/open")
        await self.running["moderation"].settle()
        return contest

    async def settle(self) -> None:
        for name in ("registry", "contests", "moderation", "boards"):
            await self.running[name].settle()


class Words(RuleBasedStateMachine):
    """The rules below; each example is one contest of its own."""

    services: Services
    seen: Counter[str]
    run: Callable[[Coroutine[Any, Any, Any]], Any]

    @initialize()
    def begin(self) -> None:
        self.contest: str = self.run(self.services.begin())
        self.phase = "open"
        self.claimed = [False, False]
        for agent in (0, 1):
            self.run(self.own(agent, claimed=False))
        self.written: dict[int, Written] = {}
        self.waiting: list[tuple[Written, str]] = []
        self.says: dict[str, State] = {}
        self.services.say(self.says)
        self.unfinished: str | None = None
        self.submit(0, ["apple", "pear", "plum"])

    @rule(data=st.data())
    def something_happens(self, data: st.DataObject) -> None:
        """One act of those that are possible now.

        One rule and not one for each: hypothesis leaves whole rules out of an example, and there are few of these.
        """
        agents, pointers = st.sampled_from(sorted(self.written)), st.sampled_from(POINTERS)
        tastes = st.lists(st.sampled_from(TASTES), min_size=3, max_size=3)
        acts: list[Callable[..., None] | tuple[Any, ...]] = [
            (self.claim_or_release, st.integers(0, 1)),
            self.halt_or_go_on,
        ]
        if self.phase == "open":
            acts += [(self.submit, st.integers(0, 1), tastes), self.lock, self.lock]
            acts += [(self.move_a_game, st.sampled_from([-30, 30]))]
            acts += [self.call_off] * (len(self.written) == 2)
        if not self.services.gate.exists() and self.unfinished is None:
            acts += [(self.the_pipeline_changes_its_mind, st.sampled_from(TASTES), st.sampled_from(list(State)))] * 2
        if self.phase != "cancelled" and self.unfinished is None:
            acts += [(self.judge_again, st.sampled_from([False, False, True]))] * 2
        if self.phase != "cancelled" and not self.services.gate.exists():
            acts += [(self.an_external_verdict_comes_late, agents, pointers, st.booleans())]
        if self.phase == "locked":
            acts += [(self.judge_by_hand, agents, pointers, st.booleans())] * 2
        chosen = data.draw(st.sampled_from(acts), label="act")
        act, *given = chosen if isinstance(chosen, tuple) else (chosen,)
        self.seen[act.__name__] += 1
        act(*(data.draw(one) for one in given))

    # --- agents, owners and the contest ---

    def submit(self, agent: int, tastes: list[str]) -> None:
        before = self.written.get(agent)
        revision = before.revision + 1 if before else 1
        texts = {
            pointer: f"{taste} of {agent} in {self.contest} {revision} {number}"
            for number, (pointer, taste) in enumerate(zip(POINTERS, tastes, strict=True))
        }
        made = self.run(self.enter(agent, texts))
        assert made["revision"] == revision
        self.written[agent] = Written(made["lineup"], revision, texts)
        self.waiting += [(self.written[agent], pointer) for pointer in POINTERS]
        self.judge_what_waits()

    async def enter(self, agent: int, texts: dict[str, str]) -> Any:
        contests = self.services.running["contests"].client
        path = f"/api/v1/contests/{self.contest}"
        contest = Contest.model_validate((await contests.get(path)).json())
        pool = Pool.model_validate((await contests.get(f"{path}/pool")).json())
        body = play("somebody", Style(Strategy.RANDOM), view(contest, pool, {})).body()
        body["thesis"] = texts["/thesis"]
        body["picks"][0] |= {"rationale": texts[POINTERS[1]], "main_factor": texts[POINTERS[2]]}
        answer = await contests.post(f"{path}/lineups", json=body, headers=self.services.agents[agent][1])
        assert answer.status_code == 201, answer.text
        return answer.json()

    def claim_or_release(self, agent: int) -> None:
        self.run(self.own(agent, claimed=not self.claimed[agent]))

    async def own(self, agent: int, *, claimed: bool) -> None:
        act = f"/operator/api/v1/agents/{self.services.agents[agent][0]}/{'claim' if claimed else 'release'}"
        body = {"json": {"owner": "Ann"}} if claimed else {}
        answer = await self.services.running["registry"].operator.post(act, **body)
        assert answer.status_code in (200, 409), answer.text
        self.claimed[agent] = claimed

    def lock(self) -> None:
        self.run(self.lock_now())
        self.phase = "locked"

    async def lock_now(self) -> None:
        contest = await self.services.ask("contests", "GET", f"/api/v1/contests/{self.contest}")
        await self.services.running["contests"].move_clock(datetime.fromisoformat(contest["locks_at"]))

    def move_a_game(self, minutes: int) -> None:
        self.run(self.reschedule(minutes))

    async def reschedule(self, minutes: int) -> None:
        contest = await self.services.ask("contests", "GET", f"/api/v1/contests/{self.contest}")
        first = min(contest["games"], key=lambda game: abs(_at(game["kickoff"]) - _at(contest["locks_at"])))
        moved = {
            "game_id": first["game_id"],
            "kickoff": (_at(first["kickoff"]) + timedelta(minutes=minutes)).isoformat(),
        }
        await self.services.ask("contests", "POST", f"/operator/api/v1/contests/{self.contest}/reschedule", json=moved)

    def call_off(self) -> None:
        path = f"/operator/api/v1/contests/{self.contest}/cancel"
        self.run(self.services.ask("contests", "POST", path, json={"reason": "A storm."}))
        self.phase = "cancelled"
        self.waiting.clear()

    # --- moderation ---

    def halt_or_go_on(self) -> None:
        if self.services.gate.exists():
            self.services.gate.unlink()
            self.judge_what_waits()
        else:
            self.services.gate.touch()

    def judge_what_waits(self) -> None:
        """What the pipeline does by itself, unless it is halted."""
        if self.services.gate.exists():
            return
        for written, pointer in self.waiting:
            self.hear(written, pointer)
        self.waiting.clear()
        self.run(self.services.settle())
        self.run(self.nothing_waits())
        if self.unfinished:
            self.run(self.ended(self.unfinished))
            self.hear_again()
            self.unfinished = None

    def hear(self, written: Written, pointer: str, *, again: bool = False) -> None:
        state = self.says.get(written.texts[pointer].split()[0], State.CLEARED)
        if not again or state is not State.UNCHECKED:
            written.said[pointer]["local"] = state

    def hear_again(self) -> None:
        for written in self.written.values():
            for pointer in POINTERS:
                if "local" in written.said[pointer]:
                    self.hear(written, pointer, again=True)

    async def nothing_waits(self) -> None:
        await until(lambda: self.services.ask("moderation", "GET", "/operator/api/v1/moderation/backlog"), not_any)

    def the_pipeline_changes_its_mind(self, taste: str, state: State) -> None:
        self.says[taste] = state
        self.services.say(self.says)

    def judge_again(self, dry_run: bool) -> None:
        wanted = {"contests": [self.contest], "dry_run": dry_run}
        run = self.run(self.services.ask("moderation", "POST", "/operator/api/v1/moderation/reruns", json=wanted))
        if self.services.gate.exists():
            self.unfinished = None if dry_run else run["rerun"]
            return
        self.run(self.ended(run["rerun"]))
        if not dry_run:
            self.hear_again()

    async def ended(self, rerun: str) -> None:
        path = f"/operator/api/v1/moderation/reruns/{rerun}"
        await until(lambda: self.services.ask("moderation", "GET", path), lambda run: bool(run["state"] == "done"))

    def judge_by_hand(self, agent: int, pointer: str, flags: bool) -> None:
        written, state = self.written[agent], State.FLAGGED if flags else State.CLEARED
        self.run(self.by_hand(written, pointer, state))
        written.said[pointer]["person"] = state

    async def by_hand(self, written: Written, pointer: str, state: State) -> None:
        for attempt in range(100):
            case = await self.services.running["moderation"].operator.get(
                f"/operator/api/v1/moderation/lineups/{written.lineup}"
            )
            if case.status_code == 200:
                (item,) = [one for one in case.json()["items"] if one["pointer"] == pointer]
                about = {"lineup_id": written.lineup, "pointer": pointer, "version": item["version"], "note": "Read."}
                answer = await self.services.running["moderation"].operator.post(
                    "/operator/api/v1/moderation/judgements", json={**about, "state": state.value}
                )
                if answer.status_code == 200:
                    return
                assert answer.json()["code"] == "judged-meanwhile", answer.text
            await asyncio.sleep(0.05 * min(attempt, 10))
        raise AssertionError("the lineup could not be judged by hand")

    def an_external_verdict_comes_late(self, agent: int, pointer: str, flags: bool) -> None:
        if "external" in self.written[agent].said[pointer]:
            return
        written, state = self.written[agent], State.FLAGGED if flags else State.CLEARED
        self.run(self.external(written, pointer, state))
        written.said[pointer]["external"] = state

    async def external(self, written: Written, pointer: str, state: State) -> None:
        findings = (Finding("external", "1", "hate", 0, 1),) if state is State.FLAGGED else ()
        place = Place(UUID(written.lineup), written.revision, pointer)
        moderation = self.services.running["moderation"].runtime
        async with moderation.database.transaction() as connection:
            await commands.take_verdicts(Store(connection), Stage.EXTERNAL, {place: Verdict(state, findings)}, "1")
        moderation.wake("publish")

    # --- what everybody reads ---

    @invariant()
    def the_page_and_the_api_show_what_the_rule_says(self) -> None:
        if hasattr(self, "unfinished"):
            self.run(self.read())

    async def read(self) -> None:
        boards = self.services.running["boards"].client
        path = f"/api/v1/contests/{self.contest}/lineups"
        wanted = self.wanted()
        deadline = time.monotonic() + 20
        while True:
            answer = await boards.get(path)
            shown = _texts(answer.json()) if answer.status_code == 200 else {}
            page = (await boards.get(f"/contests/{self.contest}")).text
            every = {text for written in self.written.values() for text in written.texts.values()}
            on_page = {text for text in every if text in page}
            free = {text for texts in wanted.values() for text, reason in texts.values() if reason is None}
            if shown == wanted and on_page == {text for text in free if text is not None}:
                return
            assert time.monotonic() < deadline, f"{self.contest}: shown {shown} {on_page}, wanted {wanted}"
            await asyncio.sleep(0.05)

    def wanted(self) -> dict[str, dict[str, tuple[str | None, str | None]]]:
        if self.phase != "locked":
            return {}
        return {
            written.lineup: {
                pointer: (written.texts[pointer] if reason is None else None, reason)
                for pointer in POINTERS
                for reason in [written.reason(pointer, claimed=self.claimed[agent])]
            }
            for agent, written in self.written.items()
        }

    def teardown(self) -> None:
        """Whatever is halted goes on, what is open locks; at rest the page is still the right one."""
        if not hasattr(self, "unfinished"):
            return
        if self.services.gate.exists():
            self.halt_or_go_on()
        if self.phase == "open":
            self.lock()
        for agent in (0, 1):
            self.run(self.own(agent, claimed=True))
        self.run(self.services.settle())
        self.run(self.read())
        self.run(self.services.settle())
        self.run(self.read())


def _at(instant: str) -> datetime:
    return datetime.fromisoformat(instant)


def _texts(answer: Any) -> dict[str, dict[str, tuple[str | None, str | None]]]:
    shown = {}
    for lineup in answer["lineups"]:
        pick = next(pick for pick in lineup["picks"] if pick["index"] == 0)
        of = dict(zip(POINTERS, (lineup["thesis"], pick["rationale"], pick["main_factor"]), strict=True))
        shown[lineup["lineup"]] = {pointer: (text["text"], text["withheld"]) for pointer, text in of.items()}
    return shown


def not_any(backlog: Any) -> bool:
    return not backlog["texts"]


async def until(ask: Callable[[], Coroutine[Any, Any, Any]], done: Callable[[Any], bool]) -> None:
    deadline = time.monotonic() + 30
    while not done(found := await ask()):
        assert time.monotonic() < deadline, found
        await asyncio.sleep(0.02)


@pytest.fixture
async def services(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Services]:
    source = PIPELINE.format(here=str(tmp_path), tastes=TASTES)
    (tmp_path / "tastes_in_any_order.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("MAFL_MODERATION_PIPELINE", "tastes_in_any_order:load")
    monkeypatch.setenv("MAFL_MODERATION_TEXT_SECONDS", "120")
    async with AsyncExitStack() as stack:
        (tmp_path / "says.json").write_text("{}")
        running = {name: await stack.enter_async_context(start(name, clock="replay")) for name in SERVICES}
        made = Services(running, tmp_path)
        for name in ("Any Order One", "Any Order Two"):
            answer = await running["registry"].client.post("/api/v1/agents", json={"name": name, "model": "demo/one"})
            assert answer.status_code == 201, answer.text
            agent = answer.json()
            made.agents.append((agent["agent"]["id"], {"Authorization": f"Bearer {agent['api_key']}"}))
        yield made
        made.gate.unlink(missing_ok=True)
        for service in running.values():
            assert await service.dead_letters() == []


@pytest.mark.rule("A5", "C8", "M2", "M3", "M4")
@pytest.mark.timeout(400)
async def test_whatever_happens_to_words_in_whatever_order_the_public_reads_what_the_rule_says(
    services: Services,
) -> None:
    async def awaited(work: Coroutine[Any, Any, Any]) -> Any:
        return await work

    class Bound(Words):
        pass

    Bound.services, Bound.seen = services, Counter()
    Bound.run = staticmethod(lambda work: anyio.from_thread.run(awaited, work))
    some = settings(
        max_examples=4,
        stateful_step_count=10,
        deadline=None,
        database=None,
        # A found story is long to live again; it is printed as it was.
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    await anyio.to_thread.run_sync(lambda: run_state_machine_as_test(Bound, settings=some))  # type: ignore[no-untyped-call]
    assert services.week >= 4
    assert sum(Bound.seen.values()) >= 20, Bound.seen
