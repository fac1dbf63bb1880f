"""Whatever the order in which the facts arrive, the same is said in the end, and never before the lock."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.events import State
from moderation.domain import (
    Finding,
    Lineup,
    Phase,
    Publication,
    Said,
    Stage,
    Standing,
    Text,
    Verdict,
    phase,
    publication,
    reasons,
    text_hash,
)

Fact = Callable[[Lineup], Lineup]
WORDS = {"/thesis": "Stack them.", "/picks/0/rationale": "Cheap.", "/picks/0/main_factor": "price"}


def submitted(revision: int) -> Fact:
    def happen(lineup: Lineup) -> Lineup:
        texts = {pointer: Text(f"{revision}: {text}") for pointer, text in WORDS.items()}
        return replace(lineup, revisions={**lineup.revisions, revision: texts})

    return happen


def verdict(state: State, by: str = "links") -> Verdict:
    return Verdict(state, (Finding(by, "1", "rule", 0, 1),) if state is State.FLAGGED else ())


def changed(revision: int, pointer: str, change: Callable[[Standing], Standing]) -> Fact:
    def happen(lineup: Lineup) -> Lineup:
        texts = dict(lineup.revisions[revision])
        texts[pointer] = replace(texts[pointer], standing=change(texts[pointer].standing))
        return replace(lineup, revisions={**lineup.revisions, revision: texts})

    return happen


def judged(revision: int, pointer: str, state: State, by: str = "links", *, again: bool = False) -> Fact:
    return changed(revision, pointer, lambda text: text.judged(Stage.LOCAL, verdict(state, by), again=again))


def lock(lineup: Lineup) -> Lineup:
    return replace(lineup, phase=Phase.LOCKED)


def final(revision: int) -> Fact:
    return lambda lineup: replace(lineup, final=revision)


@dataclass
class World:
    """What others have been told of a lineup, kept as they keep it: the newest version of each."""

    lineup: Lineup = field(default_factory=lambda: Lineup(claimed=True))
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
        assert self.lineup.phase is Phase.LOCKED
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
        if world.lineup.phase is not Phase.LOCKED:
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


SAYS = st.one_of(
    st.tuples(st.sampled_from(["links", "personal"]), st.sampled_from([State.CLEARED, State.FLAGGED])),
    st.tuples(st.just("a person"), st.sampled_from([State.CLEARED, State.FLAGGED])),
)


@pytest.mark.rule("M2")
@given(st.lists(st.tuples(st.sampled_from(sorted(WORDS)), SAYS), max_size=12))
def test_judged_again_after_the_lock_the_world_hears_of_what_changed_and_of_every_word_of_a_person(
    changes: list[tuple[str, tuple[str, State]]],
) -> None:
    world = World()
    for fact in (submitted(1), lock, final(1), *(judged(1, pointer, State.CLEARED) for pointer in WORDS)):
        world.learn(fact)
    assert world.words == {pointer: f"1: {text}" for pointer, text in WORDS.items()}
    now = dict.fromkeys(WORDS, State.CLEARED)
    why: dict[str, str] = {}
    people: set[str] = set()
    for pointer, (by, state) in changes:
        before, words = len(world.versions), dict(world.words)
        person = by == "a person"
        said = (now[pointer], why.get(pointer))
        if person:
            people.add(pointer)
        if person or pointer not in people:
            now[pointer] = state
            why[pointer] = {"a person": "operator"}.get(by, by) if state is State.FLAGGED else ""
        fact = (
            changed(1, pointer, lambda text, to=state: text.by_hand(to))  # type: ignore[misc]
            if person
            else judged(1, pointer, state, by, again=True)
        )
        world.learn(fact)
        tells = person or said[0] is not now[pointer] or (said[1] or "") != why[pointer]
        assert len(world.versions) == before + tells + (words != world.words)
        assert world.states == now
        assert world.reasons == {pointer: (why[pointer],) for pointer in WORDS if now[pointer] is State.FLAGGED}
        assert set(world.words) == {pointer for pointer in WORDS if now[pointer] is State.CLEARED}
    assert world.versions == sorted(set(world.versions))


@pytest.mark.rule("M2", "M4")
def test_a_field_that_waits_is_told_as_unchecked_and_holds_back_no_other() -> None:
    world = World()
    for fact in (submitted(1), lock, final(1)):
        world.learn(fact)
    assert world.versions == [], "silence means not checked yet"
    world.learn(judged(1, "/thesis", State.CLEARED))
    assert world.words == {"/thesis": "1: Stack them."}
    assert world.states == dict.fromkeys(WORDS, State.UNCHECKED) | {"/thesis": State.CLEARED}
    world.learn(judged(1, "/picks/0/rationale", State.FLAGGED))
    assert world.words == {"/thesis": "1: Stack them."}
    assert world.states["/picks/0/main_factor"] is State.UNCHECKED
    world.learn(judged(1, "/picks/0/main_factor", State.CLEARED))
    assert set(world.words) == {"/thesis", "/picks/0/main_factor"}
    assert world.versions == [1, 2, 3, 4, 5]


@pytest.mark.rule("M4")
@pytest.mark.parametrize("asks", [False, True])
@pytest.mark.parametrize("hand", [None, State.CLEARED, State.FLAGGED])
@pytest.mark.parametrize("external", [None, *State])
@pytest.mark.parametrize("local", [None, *State])
def test_where_a_text_stands(local: State | None, external: State | None, hand: State | None, asks: bool) -> None:
    standing = Standing(
        local and verdict(local, "links"), external and verdict(external, "external"), asks_external=asks, hand=hand
    )
    said = {local, external} - {None}
    if hand is not None:
        wanted: State | None = hand
    elif not said:
        wanted = None
    elif State.FLAGGED in said:
        wanted = State.FLAGGED
    elif local is State.CLEARED and external in ({State.CLEARED} if asks else {State.CLEARED, None}):
        wanted = State.CLEARED
    else:
        wanted = State.UNCHECKED
    assert standing.state is wanted
    why = {"links"} if local is State.FLAGGED else set()
    why |= {"external"} if external is State.FLAGGED else set()
    if hand is not None:
        why = {"operator"}
    assert standing.reasons == (tuple(sorted(why)) if wanted is State.FLAGGED else ())


@pytest.mark.rule("M4")
def test_the_first_verdict_of_a_stage_holds_and_none_is_lost_to_one_that_could_not_tell() -> None:
    cleared = Standing().judged(Stage.LOCAL, verdict(State.CLEARED))
    assert (cleared.state, cleared.version) == (State.CLEARED, 1)
    for late in State:
        assert cleared.judged(Stage.LOCAL, verdict(late)) == cleared, "of another copy, that began before"
    assert cleared.judged(Stage.LOCAL, verdict(State.UNCHECKED), again=True) == cleared
    flagged = cleared.judged(Stage.LOCAL, verdict(State.FLAGGED), again=True)
    assert (flagged.state, flagged.version) == (State.FLAGGED, 2)
    unchecked = Standing().judged(Stage.EXTERNAL, verdict(State.UNCHECKED), asks_external=True)
    assert unchecked.judged(Stage.EXTERNAL, verdict(State.UNCHECKED)) == unchecked
    tried = unchecked.judged(Stage.EXTERNAL, verdict(State.CLEARED))
    assert (tried.state, tried.version) == (State.UNCHECKED, 2), "the pipeline has not been over it"
    assert tried.judged(Stage.LOCAL, verdict(State.CLEARED)).state is State.CLEARED
    by_hand = flagged.by_hand(State.CLEARED)
    assert (by_hand.version, by_hand.hand_version) == (3, 3)
    again = by_hand.judged(Stage.LOCAL, verdict(State.FLAGGED, "personal"), again=True)
    assert (again.state, again.version, again.hand_version) == (State.CLEARED, 4, 3)


def test_a_contest_is_open_until_it_is_locked_or_called_off_and_of_both_nothing_is_said() -> None:
    assert phase(locked=False, cancelled=False) is Phase.OPEN
    assert phase(locked=True, cancelled=False) is Phase.LOCKED
    assert phase(locked=False, cancelled=True) is phase(locked=True, cancelled=True) is Phase.CANCELLED


@pytest.mark.rule("M2")
def test_words_that_were_never_released_are_not_taken_back() -> None:
    world = World()
    for fact in (submitted(1), lock, final(1), *(judged(1, pointer, State.FLAGGED) for pointer in WORDS)):
        world.learn(fact)
    assert world.versions == [1, 2, 3], "of the states alone, field by field"
    assert world.lineup.said.released == ""


@pytest.mark.rule("M4")
def test_reasons_are_those_of_flagged_texts_alone_each_detector_once_and_of_a_person_no_more_than_that() -> None:
    assert reasons(State.FLAGGED, ["secrets", "links", "links"], by_hand=False) == ("links", "secrets")
    assert reasons(State.FLAGGED, ["links"], by_hand=True) == ("operator",)
    for state in (State.CLEARED, State.UNCHECKED, None):
        assert reasons(state, ["links"], by_hand=True) == reasons(state, ["links"], by_hand=False) == ()


def test_nothing_known_is_nothing_said() -> None:
    assert publication(Lineup()) is None
    assert publication(Lineup(Phase.LOCKED, final=1)) is None
    judged = {1: {"/thesis": Text("x", Standing().judged(Stage.LOCAL, verdict(State.CLEARED)))}}
    assert publication(Lineup(Phase.LOCKED, 1, judged)) is not None
    assert publication(Lineup(Phase.LOCKED, 2, judged)) is None
    for other in (Phase.OPEN, Phase.CANCELLED):
        assert publication(Lineup(other, 1, judged)) is None
    assert Said() == Lineup().said


def test_a_text_is_known_by_the_sha_256_of_its_utf_8() -> None:
    assert text_hash("é") == "4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c"


@pytest.mark.rule("A5", "M2")
def test_words_are_told_of_the_claimed_alone_and_withdrawn_with_the_claim() -> None:
    world = World(Lineup())
    for fact in (submitted(1), *(judged(1, pointer, State.CLEARED) for pointer in WORDS), final(1), lock):
        world.learn(fact)
    assert (set(world.states.values()), world.words, world.versions) == ({State.CLEARED}, {}, [1])
    for claimed, version in ((True, 2), (False, 3), (True, 4)):
        news = publication(replace(world.lineup, claimed=claimed))
        assert news is not None
        assert news.states is None, "a claim is no verdict"
        assert sorted(news.withdrawn) == ([] if claimed else sorted(WORDS))
        world.learn(lambda lineup, now=claimed: replace(lineup, claimed=now))  # type: ignore[misc]
        assert world.words == ({pointer: f"1: {text}" for pointer, text in WORDS.items()} if claimed else {})
        assert world.versions[-1] == version
