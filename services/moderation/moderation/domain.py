"""What moderation knows of a lineup's words, and what may be said of it when. Pure: no I/O.

The facts about a lineup arrive in any order: its revisions with their words, the lock of its contest,
which revision was final, and the verdicts. Nothing is said before all of them are there, and then it
is said of the final revision alone (C8, M2, M3). Because what is said follows from the facts and not
from their order, every order ends in the same words.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Generic, Literal, TypeVar
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator

from common.events import State

T = TypeVar("T")


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


BY_HAND = "operator"
"""The reason for what a person flagged; what the person noted is for operators alone."""


def reasons(state: State | None, detectors: Iterable[str], *, by_hand: bool) -> tuple[str, ...]:
    """Why a text is flagged, as its owner may read it: names of detectors and never a word; else nothing."""
    if state is not State.FLAGGED:
        return ()
    return (BY_HAND,) if by_hand else tuple(sorted(set(detectors)))


def target(agent_id: UUID, lineup_id: UUID | None, pointer: str | None) -> str:
    """What an operator's act on a text or a name is about, in the list of acts."""
    return f"name/{agent_id}" if lineup_id is None else f"text/{lineup_id}{pointer}"


@dataclass(frozen=True)
class Text:
    """One text field of a revision. ``state`` is ``None`` until the pipeline has been over it.

    ``version`` counts the verdicts on it: whoever judges it again says so even where the state stays.
    """

    text: str
    state: State | None = None
    reasons: tuple[str, ...] = ()
    version: int = 0
    salt: str | None = None


class Judgement(BaseModel):
    """What a person says of one text of a locked lineup (``lineup_id``, ``pointer``) or of an agent's name
    (``agent_id``).

    ``version`` is that of the verdict that the person saw: a verdict that nobody saw is not overwritten. ``note``
    says why and ``by`` who; both are for operators alone.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    lineup_id: UUID | None = None
    agent_id: UUID | None = None
    pointer: Annotated[str, Field(max_length=200, pattern=r"^[^\x00]*$")] | None = None
    version: Annotated[int, Field(ge=0)]
    state: Literal[State.CLEARED, State.FLAGGED]
    note: Annotated[str, Field(min_length=1, max_length=2000, pattern=r"^[^\x00]*$")]
    by: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00]*$")] = BY_HAND

    @model_validator(mode="after")
    def _about_one_thing(self) -> Judgement:
        if (self.lineup_id is None) == (self.agent_id is None):
            raise ValueError("give lineup_id for a text of a lineup, or agent_id for an agent's name")
        if (self.lineup_id is None) != (self.pointer is None):
            raise ValueError("give pointer with lineup_id, and with it alone")
        return self


@dataclass(frozen=True)
class Said:
    """What the world has been told of a lineup last; the digests tell whether there is anything new to say."""

    version: int = 0
    judged: str = ""
    released: str = ""


@dataclass(frozen=True)
class Lineup:
    """Everything known of one lineup. ``revisions`` maps a revision to its texts by JSON pointer."""

    locked: bool = False
    final: int | None = None
    revisions: Mapping[int, Mapping[str, Text]] = field(default_factory=dict)
    said: Said = Said()


@dataclass(frozen=True)
class Told(Generic[T]):
    """One event's content by JSON pointer, and the version it bears."""

    version: int
    by_pointer: Mapping[str, T]


@dataclass(frozen=True)
class Publication:
    """What is to be told of a lineup now; ``said`` is what has been told after it.

    ``states`` and ``words`` where they are news; ``reasons`` of the flagged texts belong to the states. Words are
    the cleared texts only, none where words that were released are released no longer.
    """

    revision: int
    said: Said
    states: Told[State] | None
    words: Told[str] | None
    reasons: Mapping[str, tuple[str, ...]]


def publication(lineup: Lineup) -> Publication | None:
    """What is to be told of a lineup, ``None`` while nothing may be told or nothing is new.

    A new verdict is news even with the old state: whoever asked for a review hears that there was one.
    Versions grow by one with each event of the lineup, so that a reader can drop what is older.
    """
    if not lineup.locked or lineup.final is None:
        return None
    texts = lineup.revisions.get(lineup.final)
    if texts is None:
        return None
    states: dict[str, State] = {}
    words: dict[str, str] = {}
    verdicts: dict[str, str] = {}
    for pointer, text in sorted(texts.items()):
        if text.state is None:
            return None
        states[pointer] = text.state
        verdicts[pointer] = " ".join((text.state, str(text.version), *text.reasons))
        if text.state is State.CLEARED:
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
    why = {pointer: text.reasons for pointer, text in sorted(texts.items()) if text.reasons}
    return Publication(lineup.final, after, tell_states, tell_words, why)


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
