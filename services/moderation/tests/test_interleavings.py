"""Every interleaving of what can happen to a lineup's words ends in the right page: the domain against a simple model.

The model knows rule M2 and three facts of each text, and no order. The machine below lets the facts come in any order,
tells the world whenever it likes, and lets what it tells arrive late, out of order and twice.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from common.events import State
from moderation.domain import Finding, Lineup, Phase, Publication, Stage, Standing, Text, Verdict, phase, publication

POINTERS = ("/thesis", "/picks/0/rationale")
BACK = st.sampled_from([0, 0, 0, 1, 2])
"""How many revisions ago; mostly the newest."""
STATES = st.sampled_from(list(State))
SAID = st.sampled_from([State.CLEARED, State.FLAGGED])


def words_of(revision: int, pointer: str) -> str:
    return f"{revision}: what {pointer} says"


def verdict(state: State, by: str) -> Verdict:
    return Verdict(state, (Finding(by, "1", "rule", 0, 1),) if state is State.FLAGGED else ())


class Model:
    """What was truly said of each text, and what a page must show by it."""

    def __init__(self, external: bool) -> None:
        self.external = external
        self.contest = "open"
        self.claimed = False
        self.submitted = 0
        self.said: dict[tuple[int, str], dict[str, str]] = {}

    def hear(self, place: tuple[int, str], who: str, state: State, *, again: bool = False) -> None:
        told = self.said.setdefault(place, {})
        if state is State.UNCHECKED:
            told.setdefault(who, "cannot tell")
        elif again or told.get(who) in (None, "cannot tell"):
            told[who] = "yes" if state is State.CLEARED else "no"

    def reason(self, place: tuple[int, str]) -> str | None:
        """Why the words at a place are not shown, ``None`` where they are: M2 in one breath."""
        said = self.said.get(place, {})
        if not self.claimed:
            return "unclaimed"
        if said.get("person") == "no" or ("person" not in said and "no" in (said.get("local"), said.get("external"))):
            return "flagged"
        asked = ("local", "external") if self.external else ("local",)
        if said.get("person") == "yes" or all(said.get(who) == "yes" for who in asked):
            return None
        return "not checked yet"


class Reader:
    """Boards in a few lines: of each text the newest state, and words that no newer state bars."""

    def __init__(self) -> None:
        self.states: dict[str, tuple[int, State]] = {}
        self.barred: dict[str, int] = {}
        self.words: dict[str, tuple[int, str]] = {}

    def read(self, version: int, states: dict[str, State] | None, words: dict[str, str] | None, *gone: str) -> None:
        for pointer, state in (states or dict.fromkeys(words or {}, State.CLEARED)).items():
            if version > self.states.get(pointer, (0, State.UNCHECKED))[0]:
                self.states[pointer] = version, state
            if state is not State.CLEARED:
                self.barred[pointer] = max(version, self.barred.get(pointer, 0))
        for pointer in gone:
            self.barred[pointer] = max(version, self.barred.get(pointer, 0))
        for pointer, text in (words or {}).items():
            if version > self.words.get(pointer, (0, ""))[0]:
                self.words[pointer] = version, text

    def page(self, pointer: str, *, claimed: bool) -> str:
        """The words, or the reason in their place."""
        _, state = self.states.get(pointer, (0, State.UNCHECKED))
        version, text = self.words.get(pointer, (0, ""))
        if not claimed:
            return "unclaimed"
        if state is State.FLAGGED:
            return "flagged"
        if state is not State.CLEARED or version <= self.barred.get(pointer, 0):
            return "not checked yet"
        return text


class Interleavings(RuleBasedStateMachine):
    """One lineup with up to three revisions, from its first submission to long after its lock."""

    @initialize(external=st.booleans(), arrives=st.booleans())
    def begin(self, external: bool, arrives: bool = True) -> None:
        self.model = Model(external)
        self.lineup = Lineup()
        self.on_the_way: list[Any] = []
        self.arrived: list[Any] = []
        self.reader = Reader()
        self.versions: list[int] = []
        self.submit(arrives=arrives)

    # --- what happens in the world ---

    @precondition(lambda self: self.model.contest == "open" and self.model.submitted < 3)
    @rule(arrives=st.booleans())
    def submit(self, arrives: bool) -> None:
        self.model.submitted += 1
        if arrives:
            self.hear_of_a_revision(self.model.submitted)

    @precondition(lambda self: self.model.contest == "open" and self.model.submitted)
    @rule()
    def lock(self) -> None:
        self.model.contest = "locked"

    @precondition(lambda self: self.model.contest == "open" and self.model.submitted > 1)
    @rule()
    def cancel(self) -> None:
        self.model.contest = "cancelled"

    @rule()
    def claim_or_release(self) -> None:
        self.model.claimed = not self.model.claimed

    # --- what moderation hears of it, in any order ---

    @rule()
    def hear_of_the_claim(self) -> None:
        self.lineup = replace(self.lineup, claimed=self.model.claimed)

    @precondition(lambda self: self.model.contest != "open")
    @rule()
    def hear_of_the_end(self) -> None:
        over = phase(locked=self.model.contest == "locked", cancelled=self.model.contest == "cancelled")
        self.lineup = replace(self.lineup, phase=over)

    @precondition(lambda self: self.model.contest == "locked")
    @rule()
    def hear_of_the_final_revision(self) -> None:
        self.lineup = replace(self.lineup, final=self.model.submitted)

    @rule(revision=st.integers(1, 3))
    def hear_of_a_revision(self, revision: int) -> None:
        if revision <= self.model.submitted and revision not in self.lineup.revisions:
            asks = self.model.external
            texts = {pointer: Text(words_of(revision, pointer), Standing(asks_external=asks)) for pointer in POINTERS}
            self.lineup = replace(self.lineup, revisions={**self.lineup.revisions, revision: texts})

    def place(self, back: int, pointer: str) -> tuple[int, str]:
        """A place among those that moderation has heard of, if it has heard of any."""
        known = sorted(self.lineup.revisions, reverse=True) or [0]
        return known[min(back, len(known) - 1)], pointer

    def stand(self, place: tuple[int, str], change: Any) -> bool:
        revision, pointer = place
        texts = self.lineup.revisions.get(revision)
        if texts is None:
            return False
        text = replace(texts[pointer], standing=change(texts[pointer].standing))
        self.lineup = replace(self.lineup, revisions={**self.lineup.revisions, revision: {**texts, pointer: text}})
        return True

    @rule(back=BACK, pointer=st.sampled_from(POINTERS), state=STATES, again=st.booleans())
    def judge(self, back: int, pointer: str, state: State, again: bool) -> None:
        place = self.place(back, pointer)
        said = verdict(state, "links")
        if self.stand(place, lambda text: text.judged(Stage.LOCAL, said, again=again)):
            self.model.hear(place, "local", state, again=again)

    @precondition(lambda self: self.model.external)
    @rule(back=BACK, pointer=st.sampled_from(POINTERS), state=STATES)
    def judge_by_a_model_elsewhere(self, back: int, pointer: str, state: State) -> None:
        place = self.place(back, pointer)
        said = verdict(state, "external")
        if self.stand(place, lambda text: text.judged(Stage.EXTERNAL, said)):
            self.model.hear(place, "external", state)

    @precondition(lambda self: self.lineup.phase is Phase.LOCKED and self.lineup.final in self.lineup.revisions)
    @rule(pointer=st.sampled_from(POINTERS), state=SAID)
    def judge_by_hand(self, pointer: str, state: State) -> None:
        assert self.lineup.final is not None
        place = (self.lineup.final, pointer)
        assert self.stand(place, lambda text: text.by_hand(state))
        self.model.hear(place, "person", state, again=True)

    # --- what it tells, and how that arrives ---

    @rule()
    def tell(self) -> None:
        news = publication(self.lineup)
        if news is not None:
            self.send(news)

    def send(self, news: Publication) -> None:
        assert self.model.contest == "locked"
        assert news.revision == self.model.submitted
        for told in (news.states, news.words):
            if told is not None:
                self.versions.append(told.version)
        if news.states is not None:
            self.on_the_way.append((news.states.version, dict(news.states.by_pointer), None))
        if news.words is not None:
            assert self.lineup.claimed or not news.words.by_pointer
            self.on_the_way.append((news.words.version, None, dict(news.words.by_pointer), *news.withdrawn))
        self.lineup = replace(self.lineup, said=news.said)
        assert publication(self.lineup) is None, "the same is never said twice"

    @precondition(lambda self: self.on_the_way)
    @rule(data=st.data(), twice=st.booleans())
    def arrive(self, data: st.DataObject, twice: bool) -> None:
        event = self.on_the_way.pop(data.draw(st.integers(0, len(self.on_the_way) - 1)))
        for _ in range(1 + twice):
            self.reader.read(*event)
        self.arrived.append(event)

    @rule()
    def everything_comes_to_rest(self) -> None:
        """All is heard, told and delivered: now the page must be the one that the rule says."""
        self.hear_of_the_claim()
        if self.model.contest != "open":
            self.hear_of_the_end()
        for revision in range(1, self.model.submitted + 1):
            self.hear_of_a_revision(revision)
        if self.model.contest == "locked":
            self.hear_of_the_final_revision()
        self.tell()
        for event in reversed(self.on_the_way):
            self.reader.read(*event)
        self.arrived += self.on_the_way
        self.on_the_way.clear()
        if self.model.contest != "locked":
            assert self.versions == []
            return
        for pointer in POINTERS:
            place = (self.model.submitted, pointer)
            wanted = self.model.reason(place) or words_of(*place)
            assert self.reader.page(pointer, claimed=self.model.claimed) == wanted
            if not self.model.claimed:
                shown_by_mistake = self.reader.page(pointer, claimed=True)
                assert shown_by_mistake in ("flagged", "not checked yet"), "it holds what nobody may read"

    def teardown(self) -> None:
        if not hasattr(self, "model"):
            return
        if self.model.contest == "open" and self.model.submitted:
            self.lock()
        for _ in range(2):
            self.everything_comes_to_rest()
            self.claim_or_release()

    @invariant()
    def nothing_is_told_before_the_lock_nor_of_a_cancelled_contest(self) -> None:
        if hasattr(self, "model") and self.model.contest != "locked":
            assert self.on_the_way == self.arrived == []

    @invariant()
    def versions_grow_by_one(self) -> None:
        if hasattr(self, "model"):
            assert self.versions == list(range(1, len(self.versions) + 1))

    @invariant()
    def no_page_shows_the_words_of_another_revision(self) -> None:
        if hasattr(self, "model"):
            for pointer in POINTERS:
                page = self.reader.page(pointer, claimed=True)
                assert page in ("flagged", "not checked yet", words_of(self.model.submitted, pointer))


@pytest.mark.rule("C8", "M2", "M3", "M4")
def test_every_interleaving_of_facts_ends_in_the_right_page() -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Interleavings, settings=settings(max_examples=400, stateful_step_count=30, deadline=None)
    )


@pytest.mark.rule("M2")
def test_a_text_flagged_after_its_publication_is_gone_with_the_event_that_says_so_alone() -> None:
    machine = Interleavings()
    machine.begin(external=False)
    machine.claim_or_release()
    machine.hear_of_the_claim()
    for pointer in POINTERS:
        machine.hear_of_a_revision(1)
        machine.judge(0, pointer, State.CLEARED, again=False)
    machine.lock()
    machine.everything_comes_to_rest()
    assert machine.reader.page("/thesis", claimed=True) == words_of(1, "/thesis")
    machine.judge_by_hand("/thesis", State.FLAGGED)
    machine.tell()
    (version, states, words), later = machine.on_the_way
    machine.reader.read(version, states, words)
    assert machine.reader.page("/thesis", claimed=True) == "flagged", "whatever becomes of the other event"
    assert machine.reader.page("/picks/0/rationale", claimed=True) == words_of(1, "/picks/0/rationale")
    assert later[2] is not None
    assert later[3:] == ("/thesis",)
    assert "/thesis" not in later[2]
