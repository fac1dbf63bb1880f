"""Whatever the order in which the facts arrive, the same is said in the end, and never before the lock."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.events import State
from moderation.domain import Lineup, Publication, Said, Text, publication, reasons, text_hash

Fact = Callable[[Lineup], Lineup]
WORDS = {"/thesis": "Stack them.", "/picks/0/rationale": "Cheap.", "/picks/0/main_factor": "price"}


def submitted(revision: int) -> Fact:
    def happen(lineup: Lineup) -> Lineup:
        texts = {pointer: Text(f"{revision}: {text}") for pointer, text in WORDS.items()}
        return replace(lineup, revisions={**lineup.revisions, revision: texts})

    return happen


def judged(revision: int, pointer: str, state: State, by: str = "links") -> Fact:
    def happen(lineup: Lineup) -> Lineup:
        texts = dict(lineup.revisions[revision])
        old = texts[pointer]
        why = reasons(state, [by], by_hand=False)
        texts[pointer] = replace(old, state=state, reasons=why, version=old.version + 1)
        return replace(lineup, revisions={**lineup.revisions, revision: texts})

    return happen


def lock(lineup: Lineup) -> Lineup:
    return replace(lineup, locked=True)


def final(revision: int) -> Fact:
    return lambda lineup: replace(lineup, final=revision)


@dataclass
class World:
    """What others have been told of a lineup, kept as they keep it: the newest version of each."""

    lineup: Lineup = field(default_factory=Lineup)
    versions: list[int] = field(default_factory=list)
    revision: int | None = None
    states: dict[str, State] = field(default_factory=dict)
    reasons: dict[str, tuple[str, ...]] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)

    def learn(self, fact: Fact) -> None:
        self.lineup = fact(self.lineup)
        news = publication(self.lineup)
        if news is None:
            return
        assert self.lineup.locked
        assert news.revision == self.lineup.final
        self.tell(news)
        self.lineup = replace(self.lineup, said=news.said)
        assert publication(self.lineup) is None, "the same is never said twice"

    def tell(self, news: Publication) -> None:
        assert news.states or news.words
        self.revision = news.revision
        if news.states is not None:
            self.versions.append(news.states.version)
            self.states = dict(news.states.by_pointer)
            self.reasons = dict(news.reasons)
        if news.words is not None:
            self.versions.append(news.words.version)
            self.words = dict(news.words.by_pointer)


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Fact], int, dict[str, State], bool]:
    """A history in any order that can happen: a text is judged after it was submitted, nothing else is promised."""
    revisions = draw(st.integers(1, 3))
    last = revisions
    verdicts = {
        (revision, pointer): draw(st.sampled_from(list(State)))
        for revision in range(1, revisions + 1)
        for pointer in WORDS
    }
    lock_comes = draw(st.booleans()) or draw(st.booleans())
    kinds: list[tuple[str, int, str]] = [("final", last, "")]
    kinds += [("lock", 0, "")] * lock_comes
    kinds += [("submitted", revision, "") for revision in range(1, revisions + 1)]
    kinds += [("judged", revision, pointer) for revision, pointer in verdicts]
    order = draw(st.permutations(kinds))
    waiting: list[tuple[str, int, str]] = []
    facts: list[Fact] = []
    known: set[int] = set()
    for kind in order:
        if kind[0] == "judged" and kind[1] not in known:
            waiting.append(kind)
            continue
        facts.append(_fact(kind, verdicts))
        if kind[0] == "submitted":
            known.add(kind[1])
            facts += [_fact(late, verdicts) for late in waiting if late[1] == kind[1]]
            waiting = [late for late in waiting if late[1] != kind[1]]
    return facts, last, {pointer: verdicts[last, pointer] for pointer in WORDS}, lock_comes


def _fact(kind: tuple[str, int, str], verdicts: dict[tuple[int, str], State]) -> Fact:
    name, revision, pointer = kind
    if name == "lock":
        return lock
    if name == "final":
        return final(revision)
    if name == "submitted":
        return submitted(revision)
    return judged(revision, pointer, verdicts[revision, pointer])


@pytest.mark.rule("C8", "M2", "M3")
@given(histories())
def test_every_order_of_facts_ends_in_the_same_words_and_nothing_is_said_before_the_lock(
    history: tuple[list[Fact], int, dict[str, State], bool],
) -> None:
    facts, last, states, lock_comes = history
    world = World()
    for fact in facts:
        world.learn(fact)
        if not world.lineup.locked:
            assert world.revision is None
    if not lock_comes:
        assert world.versions == []
        return
    assert world.revision == last
    assert world.states == states
    assert world.reasons == {pointer: ("links",) for pointer, state in states.items() if state is State.FLAGGED}
    assert world.words == {
        pointer: f"{last}: {text}" for pointer, text in WORDS.items() if states[pointer] is State.CLEARED
    }
    assert world.versions == sorted(set(world.versions))


@pytest.mark.rule("M2")
@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(WORDS)), st.sampled_from(list(State)), st.sampled_from(["links", "personal"])),
        max_size=12,
    )
)
def test_judged_again_after_the_lock_the_world_hears_of_each_verdict_and_versions_grow(
    changes: list[tuple[str, State, str]],
) -> None:
    world = World()
    for fact in (submitted(1), lock, final(1), *(judged(1, pointer, State.CLEARED) for pointer in WORDS)):
        world.learn(fact)
    assert world.words == {pointer: f"1: {text}" for pointer, text in WORDS.items()}
    now = dict.fromkeys(WORDS, State.CLEARED)
    why: dict[str, str] = {}
    for pointer, state, by in changes:
        before = len(world.versions)
        words_change = (state is State.CLEARED) != (now[pointer] is State.CLEARED)
        now[pointer], why[pointer] = state, by
        world.learn(judged(1, pointer, state, by))
        assert len(world.versions) == before + 1 + words_change, "also of a verdict that changes no state"
        assert world.states == now
        assert world.reasons == {pointer: (why[pointer],) for pointer in WORDS if now[pointer] is State.FLAGGED}
        assert set(world.words) == {pointer for pointer in WORDS if now[pointer] is State.CLEARED}
    assert world.versions == sorted(set(world.versions))


@pytest.mark.rule("M2")
def test_words_that_were_never_released_are_not_taken_back() -> None:
    world = World()
    for fact in (submitted(1), lock, final(1), *(judged(1, pointer, State.FLAGGED) for pointer in WORDS)):
        world.learn(fact)
    assert world.versions == [1]
    assert world.lineup.said.released == ""


@pytest.mark.rule("M4")
def test_reasons_are_those_of_flagged_texts_alone_each_detector_once_and_of_a_person_no_more_than_that() -> None:
    assert reasons(State.FLAGGED, ["secrets", "links", "links"], by_hand=False) == ("links", "secrets")
    assert reasons(State.FLAGGED, ["links"], by_hand=True) == ("operator",)
    for state in (State.CLEARED, State.UNCHECKED, None):
        assert reasons(state, ["links"], by_hand=True) == reasons(state, ["links"], by_hand=False) == ()


def test_nothing_known_is_nothing_said() -> None:
    assert publication(Lineup()) is None
    assert publication(Lineup(locked=True, final=1)) is None
    assert publication(Lineup(locked=True, final=2, revisions={1: {"/thesis": Text("x", State.CLEARED)}})) is None
    assert Said() == Lineup().said


def test_a_text_is_known_by_the_sha_256_of_its_utf_8() -> None:
    assert text_hash("é") == "4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c"
