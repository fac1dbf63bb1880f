"""What moderation knows of a lineup's words, and what may be said of it when. Pure: no I/O.

The state machine has two levels. A text has a *standing*: what each stage of the check and what a person said of it.

    ============== ======================================================= =====================================
    standing       what was said                                           what is told of it after the lock
    ============== ======================================================= =====================================
    waits          nothing (``state`` is ``None``)                         ``unchecked``
    unchecked      no stage flagged, one that is asked has not cleared     ``unchecked``
    flagged        one stage flagged, or a person                          ``flagged``, with reasons
    cleared        every stage that is asked cleared, or a person          ``cleared``, and its words
    ============== ======================================================= =====================================

A text that was *redacted* has no words any more, wherever it stands, and nothing brings them back (M6).
:meth:`Standing.judged`, :meth:`Standing.by_hand` and :meth:`Standing.taken_back` are all its transitions. A lineup has
the *phase* of its contest, ``open`` until it is ``locked`` or ``cancelled``, both for good; its revisions with their
texts; and, once it is known, which of them was final. These facts arrive in any order. :func:`publication` says what
follows: nothing unless the contest is locked, then of the final revision alone (C8), field by field (M2), each field
by its own standing. Because what is said follows from the facts and not from their order, every order ends in the
same words.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Generic, Literal, Self, TypeVar
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator

from common.events import RedactionReason, State

T = TypeVar("T")


class Stage(StrEnum):
    """Who judges a text: the pipeline of this service, and after it, where one is asked, an external model."""

    LOCAL = "local"
    EXTERNAL = "external"


@dataclass(frozen=True)
class Finding:
    """Why a text is flagged. ``start`` and ``end`` count code points of the text as written; ``end`` is exclusive."""

    detector: str
    version: str
    rule: str
    start: int
    end: int


@dataclass(frozen=True)
class Verdict:
    """The state of a text with every finding. ``unchecked``: a detector could not judge it; it stays withheld."""

    state: State
    findings: tuple[Finding, ...] = ()


class Cause(StrEnum):
    """Why the pipeline could not judge a text."""

    RAISED = "raised"
    TOO_SLOW = "too-slow"
    DIED = "died"


@dataclass(frozen=True)
class Trouble:
    """What kept the pipeline from judging a text: ``detector`` where it is known which one, and never a word of it.

    ``error`` is the kind of what was raised, how the process that judged ended, or how long it was waited for.
    """

    cause: Cause
    detector: str | None
    error: str


BY_HAND = "operator"
"""The reason for what a person flagged; what the person noted is for operators alone."""


def reasons(state: State | None, detectors: Iterable[str], *, by_hand: bool) -> tuple[str, ...]:
    """Why a text is flagged, as its owner may read it: names of detectors and never a word; else nothing."""
    if state is not State.FLAGGED:
        return ()
    return (BY_HAND,) if by_hand else tuple(sorted(set(detectors)))


def target(
    agent_id: UUID | None, lineup_id: UUID | None = None, pointer: str | None = None, model: str | None = None
) -> str:
    """What an operator's act on a text, a name or a model's label is about, in the list of acts."""
    if model is not None:
        return f"model/{model}"
    return f"name/{agent_id}" if lineup_id is None else f"text/{lineup_id}{pointer}"


@dataclass(frozen=True)
class Standing:
    """What has been said of one text, by whom, and so where the text stands.

    ``local`` and ``external`` are the verdicts of the stages, ``None`` where a stage has said nothing;
    ``asks_external`` whether the external stage is asked at all; ``hand`` what a person said last. ``version`` counts
    everything that was said and changed any of this; ``hand_version`` is the one of ``hand``, 0 where there is none.
    """

    local: Verdict | None = None
    external: Verdict | None = None
    asks_external: bool = False
    hand: State | None = None
    version: int = 0
    hand_version: int = 0

    def of(self, stage: Stage) -> Verdict | None:
        """What a stage said."""
        return self.local if stage is Stage.LOCAL else self.external

    @property
    def state(self) -> State | None:
        """Where the text stands, ``None`` while nobody has said anything of it.

        A person's word holds until the words change. Else one stage is enough to flag, and all that are asked must
        clear: a stage that has not run, failed or could not tell leaves the text ``unchecked`` (M4).
        """
        if self.hand is not None:
            return self.hand
        said = {verdict.state for verdict in (self.local, self.external) if verdict is not None}
        if not said:
            return None
        if State.FLAGGED in said:
            return State.FLAGGED
        missing = self.local is None or (self.asks_external and self.external is None)
        return State.UNCHECKED if missing or State.UNCHECKED in said else State.CLEARED

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is flagged, as :func:`reasons` has it, of every stage that flagged it."""
        verdicts = [verdict for verdict in (self.local, self.external) if verdict is not None]
        found = [finding.detector for verdict in verdicts for finding in verdict.findings]
        return reasons(self.state, found, by_hand=self.hand is not None)

    def judged(
        self, stage: Stage, verdict: Verdict, *, again: bool = False, asks_external: bool | None = None
    ) -> Standing:
        """After a stage's verdict; the same standing where the verdict changes nothing.

        The first verdict of a stage holds, so that a late one of another copy changes nothing. One that is asked for
        ``again``, by a newer version over old text, replaces it. ``unchecked`` is the want of a verdict: any verdict
        takes its place, and it takes the place of none.
        """
        had = self.of(stage)
        if had is not None:
            if verdict.state is State.UNCHECKED:
                return self
            if had.state is not State.UNCHECKED and not again:
                return self
        after = replace(self, local=verdict) if stage is Stage.LOCAL else replace(self, external=verdict)
        if asks_external is not None:
            after = replace(after, asks_external=asks_external)
        return replace(after, version=self.version + 1)

    def by_hand(self, state: Literal[State.CLEARED, State.FLAGGED]) -> Standing:
        """After a person's word, which is news though it is what the last one was."""
        return replace(self, hand=state, version=self.version + 1, hand_version=self.version + 1)

    def taken_back(self, before: State | None) -> Standing:
        """After a person's last word was taken back: what was said by hand ``before`` it holds again, if anything."""
        return replace(self, hand=before, version=self.version + 1, hand_version=self.version + 1)


class Phase(StrEnum):
    """Where a contest stands for its entries' words; locked and cancelled are for good."""

    OPEN = "open"
    LOCKED = "locked"
    CANCELLED = "cancelled"


def phase(*, locked: bool, cancelled: bool) -> Phase:
    """The phase by what was heard. A contest is never both; if it were, nothing would be said of it."""
    if cancelled:
        return Phase.CANCELLED
    return Phase.LOCKED if locked else Phase.OPEN


@dataclass(frozen=True)
class Text:
    """One text field of a revision with where it stands; ``salt`` goes out with the words alone.

    ``reviewed`` is the version of the owner's newest request to look again that a person has answered. The words of
    one that is ``redacted`` are gone.
    """

    text: str
    standing: Standing = Standing()
    salt: str | None = None
    reviewed: int = 0
    redacted: bool = False


LONGEST_NOTE = 2_000


class Noted(BaseModel):
    """What a person has to say of one text of a locked lineup (``lineup_id``, ``pointer``), of an agent's name
    (``agent_id``) or of a model's label as agents write it (``model``). ``note`` says what and ``by`` who; both are
    for operators alone.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    lineup_id: UUID | None = None
    agent_id: UUID | None = None
    model: Annotated[str, Field(max_length=200, pattern=r"^[^\x00]*$")] | None = None
    pointer: Annotated[str, Field(max_length=200, pattern=r"^[^\x00]*$")] | None = None
    note: Annotated[str, Field(min_length=1, max_length=LONGEST_NOTE, pattern=r"^[^\x00]*$")]
    by: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00]*$")] = BY_HAND

    @model_validator(mode="after")
    def _about_one_thing(self) -> Self:
        if [self.lineup_id, self.agent_id, self.model].count(None) != 2:
            raise ValueError(
                "give lineup_id for a text of a lineup, agent_id for an agent's name, or model for a model's label"
            )
        if (self.lineup_id is None) != (self.pointer is None):
            raise ValueError("give pointer with lineup_id, and with it alone")
        return self


class Judgement(Noted):
    """What a person judges, and in ``note`` why.

    ``version`` is that of the verdict that the person saw: a verdict that nobody saw is not overwritten.
    """

    version: Annotated[int, Field(ge=0)]
    state: Literal[State.CLEARED, State.FLAGGED]


class RedactionOrder(BaseModel):
    """What an operator orders: the words under ``pointer`` of a lineup go for good (M6).

    Of every revision of the lineup that is known, unless ``revisions`` names some: an earlier one mostly says the
    same in other words. ``reason`` is shown to everybody; ``note`` and ``by`` are for operators alone, and the note
    must not repeat the words. With ``dry_run`` nothing happens, and the answer says where the words are.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    lineup_id: UUID
    pointer: Annotated[str, Field(max_length=200, pattern=r"^/[^\x00]*$")]
    revisions: Annotated[tuple[Annotated[int, Field(ge=1, le=2**31 - 1)], ...], Field(max_length=1000)] = ()
    reason: RedactionReason
    note: Annotated[str, Field(min_length=1, max_length=2000, pattern=r"^[^\x00]*$")]
    by: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00]*$")] = BY_HAND
    dry_run: bool = False


class Rerun(BaseModel):
    """What is judged again by the pipeline as it is now; a ``dry_run`` finds out what that would change.

    ``contests`` and ``seasons`` choose texts of theirs, ``everything`` all texts, agents' names and models' labels;
    ``older`` of these only what another version of the pipeline judged, alone of everything. ``by`` says who asks.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    contests: Annotated[tuple[Annotated[str, Field(pattern=r"^\d{4}-W\d{2}$")], ...], Field(max_length=1_000)] = ()
    seasons: Annotated[tuple[Annotated[int, Field(ge=1900, le=9999)], ...], Field(max_length=100)] = ()
    everything: bool = False
    older: bool = False
    dry_run: bool = False
    by: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00]*$")] = BY_HAND

    @model_validator(mode="after")
    def _about_something(self) -> Rerun:
        some = bool(self.contests or self.seasons)
        if some and self.everything:
            raise ValueError("give contests and seasons, or everything, not both")
        if not some and not self.everything and not self.older:
            raise ValueError("say what to judge again: contests, seasons, everything, or what is older")
        return self

    @property
    def whole(self) -> bool:
        """Whether agents' names and models' labels are judged again too."""
        return not self.contests and not self.seasons

    @property
    def chosen(self) -> str:
        """What is chosen, the same for the same choice: whoever asks for it again asks for the same run."""
        parts = [*sorted(set(self.contests)), *map(str, sorted(set(self.seasons)))] or ["everything"]
        return " ".join(parts + ["older"] * self.older + ["dry-run"] * self.dry_run)


@dataclass(frozen=True)
class Difference:
    """What judging a text again changes: from ``was`` to ``state``, and which detectors flag it now or no longer.

    ``kept`` where the pipeline says something else and a person's word holds.
    """

    was: State
    state: State
    newly: tuple[str, ...]
    no_longer: tuple[str, ...]
    kept: bool

    @property
    def kind(self) -> str:
        """``unchanged``, ``by_hand``, ``reasons``, or the two states as in ``cleared_to_flagged``."""
        if self.was is not self.state:
            return f"{self.was.value}_to_{self.state.value}"
        if self.kept:
            return "by_hand"
        return "reasons" if self.newly or self.no_longer else "unchanged"


def difference(before: Standing, after: Standing) -> Difference:
    """What is different after the local stage judged a text again."""
    had, has = (
        frozenset(finding.detector for finding in standing.local.findings) if standing.local else frozenset()
        for standing in (before, after)
    )
    said = [standing.local.state if standing.local else None for standing in (before, after)]
    return Difference(
        before.state or State.UNCHECKED,
        after.state or State.UNCHECKED,
        tuple(sorted(has - had)),
        tuple(sorted(had - has)),
        kept=before.hand is not None and (said[0] is not said[1] or had != has),
    )


@dataclass(frozen=True)
class Said:
    """What the world has been told of a lineup last; the digests tell whether there is anything new to say."""

    version: int = 0
    judged: str = ""
    released: str = ""


@dataclass(frozen=True)
class Lineup:
    """Everything known of one lineup. ``revisions`` maps a revision to its texts by JSON pointer.

    ``claimed`` is whether its agent is claimed now.
    """

    phase: Phase = Phase.OPEN
    final: int | None = None
    revisions: Mapping[int, Mapping[str, Text]] = field(default_factory=dict)
    said: Said = Said()
    claimed: bool = False


@dataclass(frozen=True)
class Told(Generic[T]):
    """One event's content by JSON pointer, and the version it bears."""

    version: int
    by_pointer: Mapping[str, T]


@dataclass(frozen=True)
class Publication:
    """What is to be told of a lineup now; ``said`` is what has been told after it.

    ``states`` and ``words`` where they are news; ``reasons`` of the flagged texts belong to the states. Words are
    those that may be read now, none where words that were released are released no longer: with them ``withdrawn``
    names all texts whose words may not be.
    """

    revision: int
    said: Said
    states: Told[State] | None
    words: Told[str] | None
    reasons: Mapping[str, tuple[str, ...]]
    withdrawn: tuple[str, ...] = ()


def publication(lineup: Lineup) -> Publication | None:
    """What is to be told of a lineup, ``None`` while nothing may be told or nothing is new.

    Each field is told by its own standing: one that waits holds back none of the others, and is told as ``unchecked``.
    States are told of everybody's lineups; words only while the agent is claimed, and once it is released they are
    withdrawn, so that no event and no other store holds what may not be read (M2).
    While every field waits nothing is told, for not to have heard of a text means that it is not checked yet.
    What a person says is news even with the old state: whoever asked for a review hears that there was one; a stage's
    verdict is news where it changes the state or the reasons. Versions grow by one with each event of the lineup, so
    that a reader can drop what is older.
    """
    if lineup.phase is not Phase.LOCKED or lineup.final is None:
        return None
    texts = lineup.revisions.get(lineup.final)
    if not texts or all(text.standing.state is None for text in texts.values()):
        return None
    states: dict[str, State] = {}
    words: dict[str, str] = {}
    verdicts: dict[str, str] = {}
    why: dict[str, tuple[str, ...]] = {}
    for pointer, text in sorted(texts.items()):
        standing = text.standing
        states[pointer] = state = standing.state or State.UNCHECKED
        verdicts[pointer] = " ".join((state, str(standing.hand_version), *standing.reasons))
        if standing.reasons:
            why[pointer] = standing.reasons
        if state is State.CLEARED and lineup.claimed and not text.redacted:
            words[pointer] = text.text
    said = lineup.said
    judged = _digest(lineup.final, verdicts)
    released = _digest(lineup.final, words)
    tell_states = tell_words = None
    version = said.version
    if judged != said.judged:
        version += 1
        tell_states = Told(version, states)
    if released != said.released and (words or said.released):
        version += 1
        tell_words = Told(version, words)
    if version == said.version:
        return None
    after = Said(version, judged, released if tell_words else said.released)
    withdrawn = tuple(pointer for pointer in states if pointer not in words) if tell_words else ()
    return Publication(lineup.final, after, tell_states, tell_words, why, withdrawn)


def is_rid_of(source: datetime | None, boards: datetime | None, streams: datetime | None, *, told: bool) -> bool:
    """Whether every store has said that it is rid of words, their ``source`` (contests, or registry) first.

    Boards has to where it was ``told`` of it.
    """
    return source is not None and streams is not None and (boards is not None or not told)


def text_hash(text: str) -> str:
    """SHA-256 of a text's UTF-8 bytes, hexadecimal: which words a verdict is about."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _digest(revision: int, by_pointer: Mapping[str, str]) -> str:
    told = hashlib.sha256(str(revision).encode())
    for pointer, value in by_pointer.items():
        for part in (pointer, value):
            encoded = part.encode("utf-8")
            told.update(len(encoded).to_bytes(8, "big") + encoded)
    return told.hexdigest()
