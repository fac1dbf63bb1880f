"""Tables of moderation and every query on them.

Each table is written by one stream's events, so that two consumers never wait for each other's rows. Whoever needs
rows of both ``texts`` and ``finals`` locks them in that order, the texts by their key: a verdict is written and then
its lineup marked as stale, so that whoever tells of a lineup holds all its texts before it takes the mark away.
Nobody locks ``reviews``: which request a verdict answers stands beside the verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    DateTime,
    Float,
    Identity,
    Index,
    Integer,
    MetaData,
    Select,
    Subquery,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    and_,
    bindparam,
    case,
    cast,
    delete,
    exists,
    false,
    func,
    literal,
    literal_column,
    null,
    or_,
    select,
    text,
    true,
    tuple_,
    union_all,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB, array, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from common import events as ev
from common import redaction
from common.db import adding_rows, as_rows, driver
from common.events import State
from moderation import domain
from moderation.breaker import Breaker, Cause
from moderation.desk import NEVER, Filters, Key
from moderation.domain import Difference, Finding, Lineup, Rerun, Said, Stage, Standing, Trouble, Verdict

METADATA = MetaData()

CONTESTS = Table(
    "contests",
    METADATA,
    Column("contest", Text, primary_key=True),
    Column("names", JSONB(none_as_null=True)),
    Column("players", JSONB(none_as_null=True)),
    Column("version", Integer, nullable=False),
    Column("locks_at", DateTime(timezone=True)),
    Column("locked_at", DateTime(timezone=True)),
    Column("cancelled_at", DateTime(timezone=True)),
)
"""``names`` are the pool's, known once ``contest.opened`` has arrived, ``players`` the same by the player's id;
``version`` is that of ``locks_at``.

The texts of a contest that was called off are kept and wait for nothing: nobody will ever see them.
"""

_TO_ASK = "asks_external AND state = 'unchecked'"
TEXTS = Table(
    "texts",
    METADATA,
    Column("lineup_id", Uuid, primary_key=True),
    Column("revision", Integer, primary_key=True),
    Column("pointer", Text, primary_key=True),
    Column("contest", Text, nullable=False),
    Column("agent_id", Uuid, nullable=False),
    Column("accepted_at", DateTime(timezone=True), nullable=False),
    Column("due_at", DateTime(timezone=True), nullable=False),
    Column("received_at", DateTime(timezone=True), nullable=False, server_default=text("clock_timestamp()")),
    Column("text", Text, nullable=False),
    Column("text_hash", Text, nullable=False),
    Column("salt", Text),
    Column("state", Text),
    Column("pipeline_state", Text),
    Column("findings", JSONB, nullable=False, server_default=text("'[]'")),
    Column("pipeline", Text),
    Column("pipeline_at", DateTime(timezone=True)),
    Column("asks_external", Boolean, nullable=False, server_default=text("false")),
    Column("external_state", Text),
    Column("external_findings", JSONB, nullable=False, server_default=text("'[]'")),
    Column("external_version", Text),
    Column("external_at", DateTime(timezone=True)),
    Column("hand", Text),
    Column("hand_version", Integer, nullable=False, server_default=text("0")),
    Column("judged_at", DateTime(timezone=True)),
    Column("version", Integer, nullable=False, server_default=text("0")),
    Column("judged_by", Text),
    Column("reviewed", Integer, nullable=False, server_default=text("0")),
    Column("redacted_at", DateTime(timezone=True)),
    Index("texts_waiting", "due_at", "accepted_at", postgresql_where=text("pipeline_state IS NULL")),
    Index("texts_withheld", "judged_at", postgresql_where=text("state <> 'cleared'")),
    Index("texts_to_ask", "contest", "lineup_id", "revision", postgresql_where=text(_TO_ASK)),
    Index("texts_to_ask_by_words", "text_hash", postgresql_where=text(_TO_ASK)),
)
"""Every text of every revision, kept whether or not it is ever published (M5), with its ``domain.Standing``.

``state`` is what follows from the rest by ``Standing.state``, null until anybody said anything. The local stage's
verdict is ``pipeline_state`` (null until the pipeline has been over the text) with ``findings``, ``pipeline`` (its
version) and ``pipeline_at``; the external one's the four that are named so, asked for where ``asks_external``. ``hand``
is what a person said last, ``judged_by`` who, ``hand_version`` which verdict that was, and ``reviewed`` the version of
the owner's request that it answered. ``version`` counts the verdicts and ``judged_at`` is when the last one came.
``salt`` opens the text's leaf in its contest's commitment, and goes out with the text alone. Of one that was redacted
``text`` and ``text_hash`` are empty and the salt is gone, for a short text can be guessed by its hash; no stage waits.
"""

FINALS = Table(
    "finals",
    METADATA,
    Column("lineup_id", Uuid, primary_key=True),
    Column("contest", Text, nullable=False),
    Column("agent_id", Uuid, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("stale", Boolean, nullable=False),
    Column("said_version", Integer, nullable=False),
    Column("said_judged", Text, nullable=False),
    Column("said_released", Text, nullable=False),
    Column("picks", JSONB(none_as_null=True)),
    Index("finals_stale", "contest", "lineup_id", postgresql_where=text("stale")),
    Index("finals_of_contests", "contest", "lineup_id"),
    Index("finals_of_agents", "agent_id"),
)
"""Final revisions and what has been told of them; ``stale`` where there may be something new to tell.

``picks`` are ``[{slot, player_id}]`` in the order of the submitted body, as ``lineup.locked`` told them and never
sooner: for operators, who see by them what a text is about.
"""

AGENTS = Table(
    "agents",
    METADATA,
    Column("agent_id", Uuid, primary_key=True),
    Column("name", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("state", Text),
    Column("pipeline_state", Text),
    Column("findings", JSONB, nullable=False, server_default=text("'[]'")),
    Column("pipeline", Text),
    Column("pipeline_at", DateTime(timezone=True)),
    Column("judged_at", DateTime(timezone=True)),
    Column("told_version", Integer, nullable=False, server_default=text("0")),
    Column("judged_by", Text),
    Column("reviewed", Integer, nullable=False, server_default=text("0")),
    Index("agents_waiting", "agent_id", postgresql_where=text("pipeline_state IS NULL")),
)
"""Agents' names and their verdicts, of which ``told_version`` counts those that were told; the rest as in ``texts``.

A person's word holds, as ``judged_by`` says, until the name changes.
"""

MODELS = Table(
    "models",
    METADATA,
    Column("model", Text, primary_key=True),
    Column("state", Text),
    Column("pipeline_state", Text),
    Column("findings", JSONB, nullable=False, server_default=text("'[]'")),
    Column("pipeline", Text),
    Column("pipeline_at", DateTime(timezone=True)),
    Column("judged_at", DateTime(timezone=True)),
    Column("told_version", Integer, nullable=False, server_default=text("0")),
    Column("judged_by", Text),
    Index("models_waiting", "model", postgresql_where=text("pipeline_state IS NULL")),
)
"""Every label of a model that any agent has ever claimed, for past lineups keep theirs (A3), and every label that
such a one was mapped to; the rest as in ``agents``. A person's word on a label holds for good, for it never changes."""

REVIEWS = Table(
    "reviews",
    METADATA,
    Column("about", Uuid, primary_key=True),
    Column("pointer", Text, primary_key=True),
    Column("version", Integer, nullable=False),
    Column("requested_at", DateTime(timezone=True), nullable=False),
    Column("sentence", Text),
)
"""The newest request of an owner to look again: at a text of a lineup, or (``about`` the agent, ``pointer`` empty) at
its name."""

JUDGEMENTS = Table(
    "judgements",
    METADATA,
    Column("position", BigInteger, Identity(always=True), primary_key=True),
    Column("agent_id", Uuid),
    Column("lineup_id", Uuid),
    Column("revision", Integer),
    Column("pointer", Text),
    Column("model", Text),
    Column("text_hash", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("was", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("note", Text, nullable=False),
    Column("judged_by", Text, nullable=False),
    Column("judged_at", DateTime(timezone=True), nullable=False, server_default=text("clock_timestamp()")),
    Column("was_by", Text),
    Column("was_reviewed", Integer, nullable=False, server_default=text("0")),
    Column("takes_back", BigInteger),
    Index("judgements_of_lineups", "lineup_id", postgresql_where=text("lineup_id IS NOT NULL")),
    Index("judgements_of_names", "agent_id", postgresql_where=text("lineup_id IS NULL")),
    Index("judgements_of_models", "model", postgresql_where=text("model IS NOT NULL")),
)
"""What people judged, never changed: of a lineup's text, of a model's label (``model``), or of an agent's name.

``was_by`` is who had judged it by hand before, null where nobody had, and ``was_reviewed`` the owner's request that was
answered before: what holds again where a later row ``takes_back`` this one.
"""

NOTES = Table(
    "notes",
    METADATA,
    Column("position", BigInteger, Identity(always=True), primary_key=True),
    Column("agent_id", Uuid),
    Column("lineup_id", Uuid),
    Column("revision", Integer),
    Column("pointer", Text),
    Column("model", Text),
    Column("text_hash", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("note", Text, nullable=False),
    Column("noted_by", Text, nullable=False),
    Column("noted_at", DateTime(timezone=True), nullable=False, server_default=text("clock_timestamp()")),
    Index("notes_of_lineups", "lineup_id", postgresql_where=text("lineup_id IS NOT NULL")),
    Index("notes_of_names", "agent_id", postgresql_where=text("lineup_id IS NULL")),
    Index("notes_of_models", "model", postgresql_where=text("model IS NOT NULL")),
)
"""What people noted without judging, of the same things; ``version`` is that of the verdict that stood then."""

SESSIONS = Table(
    "operator_sessions",
    METADATA,
    Column("token_hash", Text, primary_key=True),
    Column("who", Text, nullable=False),
    Column("started_at", DateTime(timezone=True), nullable=False),
    Column("seen_at", DateTime(timezone=True), nullable=False),
    Column("until", DateTime(timezone=True), nullable=False),
)
"""Operators who are signed in to the pages, by what they call themselves."""

FORMER = Table(
    "former_verdicts",
    METADATA,
    Column("position", BigInteger, Identity(always=True), primary_key=True),
    Column("lineup_id", Uuid),
    Column("revision", Integer),
    Column("pointer", Text),
    Column("agent_id", Uuid),
    Column("model", Text),
    Column("text_hash", Text, nullable=False),
    Column("stage", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("findings", JSONB, nullable=False),
    Column("pipeline", Text),
    Column("judged_at", DateTime(timezone=True)),
    Column("replaced_at", DateTime(timezone=True), nullable=False, server_default=text("clock_timestamp()")),
    Index("former_verdicts_of_lineups", "lineup_id", postgresql_where=text("lineup_id IS NOT NULL")),
    Index("former_verdicts_of_names", "agent_id", postgresql_where=text("agent_id IS NOT NULL")),
    Index("former_verdicts_of_models", "model", postgresql_where=text("model IS NOT NULL")),
)
"""Verdicts of a stage that another has replaced, never changed: nothing is overwritten without a trace.

Of a lineup's text (``lineup_id``, ``revision``, ``pointer``), an agent's name (``agent_id``) or a label (``model``).
The verdict that stands is beside the text; what people said is in ``judgements``.
"""

CLAIMS = Table(
    "claims",
    METADATA,
    Column("agent_id", Uuid, primary_key=True),
    Column("claimed", Boolean, nullable=False),
    Column("version", Integer, nullable=False),
)
"""Which agents are claimed now, as the newest event has it: of others no word is told, nor sent away unless so
configured."""

_CLAIMS_LOCK = 0x434C414D
"""The number spells CLAM: an advisory lock on all claims."""

EXTERNAL_VERDICTS = Table(
    "external_verdicts",
    METADATA,
    Column("asker", Text, primary_key=True),
    Column("scope", Text, primary_key=True),
    Column("text_hash", Text, primary_key=True),
    Column("state", Text),
    Column("rules", JSONB, nullable=False, server_default=text("'[]'")),
    Column("scores", JSONB, nullable=False, server_default=text("'{}'")),
    Column("model", Text),
    Column("answered_at", DateTime(timezone=True)),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("cause", Text),
    Column("alone", Boolean, nullable=False, server_default=text("false")),
    Column("ask_after", DateTime(timezone=True)),
    Column("lease", Uuid),
    Column("leased_until", DateTime(timezone=True)),
)
"""What the external model was asked, by the text's hash and without its words. ``state`` is null until it answered.

``asker`` is the detector: kind, model and a digest of what it is told (``external.name_of``); ``model`` is what
the answer calls itself, its version. A rule is a category that the text is flagged for; ``scores`` has every category
that the answer spoke of. ``scope`` is the agent where one author's texts could sway the answer, else empty. While a
copy asks it holds a ``lease`` and no transaction; after a failure with ``cause`` nobody asks before ``ask_after``,
and once the text may itself have been the cause, ``alone``.
"""

EXTERNAL_STATE = Table(
    "external_state",
    METADATA,
    Column("asker", Text, primary_key=True),
    Column("failures", Integer, nullable=False, server_default=text("0")),
    Column("open_until", DateTime(timezone=True)),
    Column("probe_until", DateTime(timezone=True)),
)
"""The circuit breaker, one row that all copies share; whoever asks or has asked holds it for a moment."""

EXTERNAL_SPENT = Table(
    "external_spent",
    METADATA,
    Column("period", Text, primary_key=True),
    Column("begins_at", DateTime(timezone=True), primary_key=True),
    Column("requests", BigInteger, nullable=False),
    Column("texts", BigInteger, nullable=False),
    Column("tokens", BigInteger, nullable=False),
)
"""What was spent on the external model in a ``minute`` and in a ``day`` of UTC, whichever model it was."""

RERUNS = Table(
    "reruns",
    METADATA,
    Column("rerun", Uuid, primary_key=True),
    Column("chosen", Text, nullable=False),
    Column("wanted", JSONB, nullable=False),
    Column("state", Text, nullable=False),
    Column("why", Text),
    Column("pipeline", Text),
    Column("phase", Text, nullable=False),
    Column("after", JSONB(none_as_null=True)),
    Column("total", Integer),
    Column("done", Integer, nullable=False),
    Column("counts", JSONB, nullable=False),
    Column("detectors", JSONB, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=text("clock_timestamp()")),
    Column("touched_at", DateTime(timezone=True), nullable=False, server_default=text("clock_timestamp()")),
    Column("finished_at", DateTime(timezone=True)),
    Index("reruns_unfinished", "chosen", unique=True, postgresql_where=text("state = 'running'")),
)
"""What was or is judged again: ``wanted`` is the ``domain.Rerun``, one at a time of the same choice.

``pipeline`` is the version by which it is judged, null until a copy has begun. ``phase`` is what it is at (texts,
names, models) and ``after`` the last one done there, so that whoever goes on begins behind it. ``counts`` are by
``Difference.kind``, ``detectors`` by name, each ``[newly, no longer]``.
"""

CHANGES = Table(
    "rerun_changes",
    METADATA,
    Column("position", BigInteger, Identity(always=True), primary_key=True),
    Column("rerun", Uuid, nullable=False),
    Column("kind", Text, nullable=False),
    Column("contest", Text),
    Column("lineup_id", Uuid),
    Column("revision", Integer),
    Column("pointer", Text),
    Column("agent_id", Uuid),
    Column("model", Text),
    Column("was", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("newly", JSONB, nullable=False),
    Column("no_longer", JSONB, nullable=False),
    Column("findings", JSONB, nullable=False),
    Index("rerun_changes_of", "rerun", "position"),
)
"""What a rerun changed, or would have: of a text, an agent's name or a model's label, by ``kind``. It holds no word."""


REDACTIONS = Table(
    "redactions",
    METADATA,
    Column("redaction_id", Uuid, primary_key=True),
    Column("lineup_id", Uuid),
    Column("revision", Integer),
    Column("pointer", Text, nullable=False),
    Column("contest", Text),
    Column("agent_id", Uuid, nullable=False),
    Column("reason", Text, nullable=False),
    Column("note", Text, nullable=False),
    Column("ordered_by", Text, nullable=False),
    Column("redacted_at", DateTime(timezone=True), nullable=False),
    Column("moderation_at", DateTime(timezone=True)),
    Column("registry_at", DateTime(timezone=True)),
    Column("contests_at", DateTime(timezone=True)),
    Column("told", Boolean, nullable=False, server_default=text("false")),
    Column("boards_at", DateTime(timezone=True)),
    Column("streams_at", DateTime(timezone=True)),
    Column("looks", Integer, nullable=False, server_default=text("0")),
    Column("messages", Integer, nullable=False, server_default=text("0")),
    UniqueConstraint("lineup_id", "revision", "pointer"),
)
"""Texts that went for good (M6), and when each other store said that it is rid of the words.

``told`` is whether boards has something to do; ``looks`` are those through the streams, ``messages`` what they erased.
Of an agent's own words, which registry lets go of, ``lineup_id`` is null and ``pointer`` says which: name, description.
"""


class Place(NamedTuple):
    """Where a text stands: a field of a revision of a lineup. Places are locked in their order."""

    lineup_id: UUID
    revision: int
    pointer: str


@dataclass(frozen=True)
class Held:
    """A text with its standing, held by the transaction that read it.

    ``pipeline`` and ``external`` are the versions of what the stages' verdicts came from, ``pipeline_at`` is when the
    local one came.
    """

    place: Place
    text_hash: str
    standing: Standing
    pipeline: str | None
    external: str | None
    pipeline_at: datetime | None

    def version_of(self, stage: Stage) -> str | None:
        """The version of what a stage's verdict came from."""
        return self.pipeline if stage is Stage.LOCAL else self.external


SET_ASIDE = Table(
    "set_aside",
    METADATA,
    Column("position", BigInteger, Identity(always=True), primary_key=True),
    Column("kind", Text, nullable=False),
    Column("lineup_id", Uuid),
    Column("revision", Integer),
    Column("pointer", Text),
    Column("agent_id", Uuid),
    Column("model", Text),
    Column("cause", Text, nullable=False),
    Column("detector", Text),
    Column("error", Text, nullable=False),
    Column("pipeline", Text),
    Column("since", DateTime(timezone=True), nullable=False, server_default=text("clock_timestamp()")),
    Index("set_aside_texts", "lineup_id", "revision", "pointer", unique=True, postgresql_where=text("kind = 'text'")),
    Index("set_aside_names", "agent_id", unique=True, postgresql_where=text("kind = 'name'")),
    Index("set_aside_models", "model", unique=True, postgresql_where=text("kind = 'model'")),
)
"""What the pipeline could not judge and why; a row is of a text, an agent's name or a model's label, by ``kind``.

``pipeline`` is the version that could not, null where an operator wants it tried again whatever the version is. A row
stays where a person judged since, and rests: their word holds, and what they take back waits for a verdict again.
"""

Kind = Literal["text", "name", "model"]
KINDS: tuple[Kind, ...] = ("text", "name", "model")
_OF_KIND = {"text": ("lineup_id", "revision", "pointer"), "name": ("agent_id",), "model": ("model",)}


@dataclass(frozen=True)
class Aside:
    """What is set aside: a text (its lineup, revision and pointer), an agent's name, or a model's label."""

    kind: Kind
    lineup_id: UUID | None = None
    revision: int | None = None
    pointer: str | None = None
    agent_id: UUID | None = None
    model: str | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in _OF_KIND[self.kind])


@dataclass(frozen=True)
class AsideCount:
    """How many of a kind are set aside for the same cause; the age is of the oldest, in seconds."""

    kind: str
    cause: str
    detector: str | None
    error: str
    count: int
    oldest_seconds: float


@dataclass(frozen=True)
class WaitingText:
    """A text to be judged, held by the transaction that read it."""

    lineup_id: UUID
    revision: int
    pointer: str
    contest: str
    text: str

    @property
    def place(self) -> Place:
        return Place(self.lineup_id, self.revision, self.pointer)

    @property
    def aside(self) -> Aside:
        return Aside("text", self.lineup_id, self.revision, self.pointer)


@dataclass(frozen=True)
class WaitingName:
    """An agent's name to be judged, held by the transaction that read it; ``version`` is of the agent's state."""

    agent_id: UUID
    name: str
    version: int
    told_version: int
    reviewed: int


@dataclass(frozen=True)
class WaitingModel:
    """A model's label to be judged, held by the transaction that read it."""

    model: str
    told_version: int


@dataclass(frozen=True)
class Judged:
    """A text of a final revision, an agent's name or (``model``) a model's label with its verdict, held for another.

    ``review`` is the version of the owner's newest request to look again, 0 where there is none, ``reviewed`` of the
    newest that was answered; ``judged_by`` who judged it by hand last. ``stages_say`` and ``found`` are of names and
    labels alone: the state where nobody had, and the detectors that found something.
    """

    agent_id: UUID | None
    text: str
    state: State | None
    version: int
    review: int = 0
    place: Place | None = None
    standing: Standing = field(default_factory=Standing)
    redacted: bool = False
    reviewed: int = 0
    judged_by: str | None = None
    stages_say: State | None = None
    found: tuple[str, ...] = ()
    model: str | None = None
    agent_version: int = 0

    @property
    def lineup_id(self) -> UUID | None:
        return self.place.lineup_id if self.place else None

    @property
    def revision(self) -> int | None:
        return self.place.revision if self.place else None

    @property
    def pointer(self) -> str | None:
        return self.place.pointer if self.place else None


@dataclass(frozen=True)
class Counted:
    """What an operator may have to look at: counts, and since when the oldest request of an owner waits."""

    open: int
    asked: int
    asked_since: datetime | None
    flagged: int
    unchecked: int
    waiting: int


@dataclass(frozen=True)
class OperatorSession:
    """An operator who is signed in, by what they call themselves."""

    token_hash: str
    who: str
    seen_at: datetime


@dataclass(frozen=True)
class DueLineup:
    """A lineup of which something may have to be told, held by the transaction that read it."""

    lineup_id: UUID
    contest: str
    agent_id: UUID
    facts: Lineup


@dataclass(frozen=True)
class Backlog:
    """What waits to be judged; the age is of the oldest text, in seconds."""

    texts: int
    oldest_seconds: float
    names: int
    models: int


_PUT_FINALS = f"{adding_rows(FINALS)} ON CONFLICT DO NOTHING"
_KEY = (TEXTS.c.lineup_id, TEXTS.c.revision, TEXTS.c.pointer)
_STANDING = (
    TEXTS.c.pipeline_state,
    TEXTS.c.findings,
    TEXTS.c.pipeline,
    TEXTS.c.pipeline_at,
    TEXTS.c.asks_external,
    TEXTS.c.external_state,
    TEXTS.c.external_findings,
    TEXTS.c.external_version,
    TEXTS.c.hand,
    TEXTS.c.hand_version,
    TEXTS.c.version,
)
_STAGES: Mapping[Stage, tuple[Column[Any], Column[Any], Column[Any], Column[Any]]] = {
    Stage.LOCAL: (TEXTS.c.pipeline_state, TEXTS.c.findings, TEXTS.c.pipeline, TEXTS.c.pipeline_at),
    Stage.EXTERNAL: (
        TEXTS.c.external_state,
        TEXTS.c.external_findings,
        TEXTS.c.external_version,
        TEXTS.c.external_at,
    ),
}
"""Where a stage's verdict stands: state, findings, the version of what judged, and when."""


def _standing(row: Any) -> Standing:
    return Standing(
        local=_verdict(row.pipeline_state, row.findings),
        external=_verdict(row.external_state, row.external_findings),
        asks_external=row.asks_external,
        hand=None if row.hand is None else State(row.hand),
        version=row.version,
        hand_version=row.hand_version,
    )


def _verdict(state: str | None, findings: Sequence[Mapping[str, Any]]) -> Verdict | None:
    if state is None:
        return None
    return Verdict(State(state), tuple(Finding(**finding) for finding in findings))


def _tells(standing: Standing) -> tuple[Any, ...]:
    """What of a standing is told."""
    return standing.state, standing.reasons, standing.hand_version


def _hash_of(column: ColumnElement[str]) -> ColumnElement[str]:
    """``domain.text_hash`` of a column."""
    return func.encode(func.sha256(func.convert_to(column, "UTF8")), "hex")


def _rests() -> ColumnElement[bool]:
    """Whether what is set aside was judged by hand since: nobody waits for the pipeline's word on it."""
    text = exists().where(
        SET_ASIDE.c.kind == "text",
        TEXTS.c.lineup_id == SET_ASIDE.c.lineup_id,
        TEXTS.c.revision == SET_ASIDE.c.revision,
        TEXTS.c.pointer == SET_ASIDE.c.pointer,
        TEXTS.c.hand.is_not(None),
    )
    name = exists().where(
        SET_ASIDE.c.kind == "name", AGENTS.c.agent_id == SET_ASIDE.c.agent_id, AGENTS.c.judged_by.is_not(None)
    )
    label = exists().where(
        SET_ASIDE.c.kind == "model", MODELS.c.model == SET_ASIDE.c.model, MODELS.c.judged_by.is_not(None)
    )
    return or_(text, name, label)


REDACTED_NOTE = "redacted"
"""In the place of a note on a text that was redacted: it may have quoted the words."""


def _of_place(table: Table, place: Place) -> ColumnElement[bool]:
    return tuple_(table.c.lineup_id, table.c.revision, table.c.pointer) == tuple_(*place)


def _about_it(table: Table, lineup_id: UUID | None, agent_id: UUID | None, model: str | None) -> ColumnElement[bool]:
    """Rows about any text of a lineup, about a model's label, or about an agent's name: whichever is given."""
    if lineup_id is not None:
        return table.c.lineup_id == lineup_id
    if model is not None:
        return table.c.model == model
    return and_(table.c.agent_id == agent_id, table.c.lineup_id.is_(None))


def _of_review(place: Place) -> ColumnElement[bool]:
    return and_(REVIEWS.c.about == place.lineup_id, REVIEWS.c.pointer == place.pointer)


def _unplaced(findings: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Findings without where in the text, and by which rule: that tells of the words, and which detector does not."""
    return [{**finding, "rule": "redacted", "start": 0, "end": 0} for finding in findings]


class Store:
    """All reads and writes of moderation, on one connection and so in one transaction."""

    def __init__(self, connection: AsyncConnection) -> None:
        self.connection = connection

    # --- what arrives ---

    async def add_texts(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Keep a revision's texts; what is kept already stays as it is."""
        if rows:
            await self.connection.execute(insert(TEXTS).on_conflict_do_nothing(), list(rows))

    async def opened(self, contest: str, players: Mapping[str, str], locks_at: datetime, version: int) -> None:
        """A contest takes lineups; its pool's names, by id, are known from now on, an earlier pool's with them."""
        names = sorted(set(players.values()))
        await self._contest(contest, version, names=names, players=dict(players), locks_at=locks_at)

    async def rescheduled(self, contest: str, locks_at: datetime, version: int) -> None:
        """A lock moved; what waits for it is judged by the new one."""
        await self._contest(contest, version, locks_at=locks_at)
        locks = select(CONTESTS.c.locks_at).where(CONTESTS.c.contest == contest).scalar_subquery()
        unheard = or_(TEXTS.c.pipeline_state.is_(None), and_(TEXTS.c.asks_external, TEXTS.c.external_state.is_(None)))
        waiting = and_(TEXTS.c.contest == contest, unheard)
        # In the order in which verdicts take them, and not in the one in which they lie there.
        await self.connection.execute(select(TEXTS.c.lineup_id).where(waiting).order_by(*_KEY).with_for_update())
        await self.connection.execute(update(TEXTS).where(waiting).values(due_at=locks))

    async def locked(self, contest: str, locked_at: datetime) -> None:
        """A contest is locked."""
        await self._contest(contest, 0, locked_at=locked_at)

    async def cancelled(self, contest: str, cancelled_at: datetime) -> None:
        """A contest was called off; it never locks."""
        await self._contest(contest, 0, cancelled_at=cancelled_at)

    async def _contest(self, contest: str, version: int, **values: Any) -> None:
        statement = insert(CONTESTS).values(contest=contest, version=version, **values)
        news: dict[str, Any] = {name: statement.excluded[name] for name in values}
        if "locks_at" in values:
            newer = CONTESTS.c.version < version
            news["locks_at"] = case((newer, statement.excluded.locks_at), else_=CONTESTS.c.locks_at)
            news["version"] = func.greatest(CONTESTS.c.version, version)
        if "names" in values:
            # Of every pool that it has had: words may speak of whoever was in one.
            for column, nobody in (("names", cast([], JSONB)), ("players", cast({}, JSONB))):
                news[column] = func.coalesce(CONTESTS.c[column], nobody).op("||")(statement.excluded[column])
        await self.connection.execute(statement.on_conflict_do_update(index_elements=["contest"], set_=news))

    async def finals(self, events: Sequence[ev.LineupLocked]) -> None:
        """Lineups' final revisions with their picks (``slot``, ``player_id``) in their order; they never change."""
        unsaid = {"stale": True, "said_version": 0, "said_judged": "", "said_released": ""}
        rows = [
            {
                "lineup_id": event.lineup_id,
                "contest": event.contest,
                "agent_id": event.agent_id,
                "revision": event.revision,
                "picks": [{"slot": pick.slot, "player_id": pick.player_id} for pick in event.picks],
                **unsaid,
            }
            for event in sorted(events, key=lambda event: event.lineup_id)
        ]
        await (await driver(self.connection)).execute(_PUT_FINALS, [as_rows(rows)])

    async def claim(self, agent_id: UUID, version: int, *, claimed: bool) -> None:
        """Whether an agent is claimed now; where that is news there may be something to tell of all its lineups.

        Nobody tells of any lineup until this is committed: who reads claims to tell by them holds the same lock.
        """
        await self.connection.execute(select(func.pg_advisory_xact_lock(_CLAIMS_LOCK)))
        was = await self.connection.scalar(select(CLAIMS.c.claimed).where(CLAIMS.c.agent_id == agent_id))
        values = {"claimed": claimed, "version": version}
        statement = insert(CLAIMS).values(agent_id=agent_id, **values)
        statement = statement.on_conflict_do_update(
            index_elements=["agent_id"], set_=values, where=CLAIMS.c.version < version
        )
        newest = await self.connection.scalar(statement.returning(CLAIMS.c.claimed))
        if newest is not None and newest is not bool(was):
            of_agent = FINALS.c.agent_id == agent_id
            query = select(FINALS.c.lineup_id).where(of_agent).order_by(FINALS.c.lineup_id).with_for_update()
            if (await self.connection.scalars(query)).all():
                await self.connection.execute(update(FINALS).where(of_agent).values(stale=True))

    async def agent(self, agent_id: UUID, name: str, version: int) -> None:
        """An agent and its name; a name that is not the one judged waits to be judged, and what was said of it goes."""
        renamed = and_(AGENTS.c.agent_id == agent_id, AGENTS.c.version < version, AGENTS.c.name != name)
        await self._former_names(renamed)
        statement = insert(AGENTS).values(agent_id=agent_id, name=name, version=version)
        same = AGENTS.c.name == statement.excluded.name
        said = ("state", "pipeline_state", "judged_by")
        await self.connection.execute(
            statement.on_conflict_do_update(
                index_elements=["agent_id"],
                set_={
                    "name": name,
                    "version": version,
                    **{column: case((same, AGENTS.c[column]), else_=None) for column in said},
                },
                where=AGENTS.c.version < version,
            )
        )

    async def model(self, model: str) -> None:
        """A model's label; one that is not known yet waits to be judged."""
        await self.connection.execute(insert(MODELS).values(model=model).on_conflict_do_nothing())

    async def review(
        self, about: UUID, pointers: Sequence[str], requested_at: datetime, version: int, sentence: str | None
    ) -> None:
        """An owner asks a person to look again; of each text the newest request counts."""
        values = {"requested_at": requested_at, "version": version, "sentence": sentence}
        statement = insert(REVIEWS).on_conflict_do_update(
            index_elements=["about", "pointer"], set_=values, where=REVIEWS.c.version < version
        )
        rows = [{"about": about, "pointer": pointer, **values} for pointer in sorted(set(pointers))]
        if not rows:
            return
        await self.connection.execute(statement, rows)
        # What is said for a text whose words are gone may quote them.
        gone = exists().where(
            TEXTS.c.lineup_id == REVIEWS.c.about,
            TEXTS.c.pointer == REVIEWS.c.pointer,
            TEXTS.c.redacted_at.is_not(None),
        )
        late = update(REVIEWS).where(REVIEWS.c.about == about, REVIEWS.c.sentence.is_not(None), gone)
        await self.connection.execute(late.values(sentence=None))

    # --- judging ---

    async def waiting_texts(self, limit: int) -> Sequence[WaitingText]:
        """Texts to be judged whose contest's pool is known, what locks soonest first; no other copy gets them."""
        query = (
            select(TEXTS.c.lineup_id, TEXTS.c.revision, TEXTS.c.pointer, TEXTS.c.contest, TEXTS.c.text)
            .join(CONTESTS, CONTESTS.c.contest == TEXTS.c.contest)
            .where(TEXTS.c.pipeline_state.is_(None), CONTESTS.c.names.is_not(None), CONTESTS.c.cancelled_at.is_(None))
            .order_by(TEXTS.c.due_at, TEXTS.c.accepted_at)
            .limit(limit)
            .with_for_update(of=TEXTS, skip_locked=True)
        )
        return [WaitingText(**row) for row in (await self.connection.execute(query)).mappings()]

    async def names(self, contest: str) -> frozenset[str]:
        """The names of a contest's pool."""
        query = select(CONTESTS.c.names).where(CONTESTS.c.contest == contest)
        return frozenset((await self.connection.execute(query)).scalar_one())

    async def hold(self, places: Iterable[Place]) -> dict[Place, Held]:
        """Texts with their standings, held in the order of their places; those that are there and not redacted."""
        wanted = [tuple(place) for place in places]
        if not wanted:
            return {}
        query = (
            select(*_KEY, TEXTS.c.text_hash, *_STANDING)
            .where(tuple_(*_KEY).in_(wanted), TEXTS.c.redacted_at.is_(None))
            .order_by(*_KEY)
            .with_for_update()
        )
        held = {}
        for row in await self.connection.execute(query):
            place = Place(row.lineup_id, row.revision, row.pointer)
            held[place] = Held(
                place, row.text_hash, _standing(row), row.pipeline, row.external_version, row.pipeline_at
            )
        return held

    async def keep_verdicts(self, stage: Stage, version: str, news: Sequence[tuple[Held, Standing]]) -> None:
        """Keep what a stage, at a version, said of held texts: each with its standing after it.

        A verdict that is replaced goes to ``former_verdicts``; a lineup about whose final revision there may be
        something new to tell is marked.
        """
        replaced = [held.place for held, _ in news if held.standing.of(stage) is not None]
        if replaced:
            state, findings, by, at = _STAGES[stage]
            kept = select(*_KEY, TEXTS.c.text_hash, literal(stage.value), state, findings, by, at)
            columns = ["lineup_id", "revision", "pointer", "text_hash", "stage"]
            columns += ["state", "findings", "pipeline", "judged_at"]
            moved = kept.where(tuple_(*_KEY).in_([tuple(place) for place in replaced])).order_by(*_KEY)
            await self.connection.execute(insert(FORMER).from_select(columns, moved))
        names = [column.name for column in _STAGES[stage]]
        statement = (
            update(TEXTS)
            .where(
                TEXTS.c.lineup_id == bindparam("of_lineup"),
                TEXTS.c.revision == bindparam("of_revision"),
                TEXTS.c.pointer == bindparam("of_pointer"),
            )
            .values(
                {
                    "state": bindparam("new_state"),
                    names[0]: bindparam("stage_state"),
                    names[1]: bindparam("stage_findings"),
                    names[2]: version,
                    names[3]: func.clock_timestamp(),
                    "asks_external": bindparam("new_asks"),
                    "version": bindparam("new_version"),
                    "judged_at": func.clock_timestamp(),
                }
            )
        )
        rows = []
        for held, after in news:
            said = after.of(stage)
            if said is None:
                raise ValueError(f"the standing of {held.place} holds no verdict of the {stage} stage")
            rows.append(
                {
                    "of_lineup": held.place.lineup_id,
                    "of_revision": held.place.revision,
                    "of_pointer": held.place.pointer,
                    "new_state": str(after.state),
                    "stage_state": said.state.value,
                    "stage_findings": [asdict(finding) for finding in said.findings],
                    "new_asks": after.asks_external,
                    "new_version": after.version,
                }
            )
        if rows:
            await self.connection.execute(statement, rows)
        await self._stale({held.place for held, after in news if _tells(held.standing) != _tells(after)})

    async def _stale(self, places: Iterable[Place]) -> None:
        """Mark lineups that have a held text of their final revision among these; see the module on the order."""
        lineups = sorted({(place.lineup_id, place.revision) for place in places})
        if lineups:
            of_final = tuple_(FINALS.c.lineup_id, FINALS.c.revision).in_(lineups)
            query = select(FINALS.c.lineup_id).where(of_final).order_by(FINALS.c.lineup_id).with_for_update()
            marked = (await self.connection.scalars(query)).all()
            if marked:
                await self.connection.execute(update(FINALS).where(FINALS.c.lineup_id.in_(marked)).values(stale=True))

    async def waiting_names(self, limit: int) -> Sequence[WaitingName]:
        """Agents' names to be judged; no other copy gets them."""
        query = (
            select(AGENTS.c.agent_id, AGENTS.c.name, AGENTS.c.version, AGENTS.c.told_version, AGENTS.c.reviewed)
            .where(AGENTS.c.pipeline_state.is_(None))
            .order_by(AGENTS.c.agent_id)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        return [WaitingName(**row) for row in (await self.connection.execute(query)).mappings()]

    async def judged_name(self, waiting: WaitingName, verdict: Verdict, pipeline: str) -> None:
        """Keep the verdict on a name held by :meth:`waiting_names`, as told once more."""
        await self.connection.execute(
            update(AGENTS)
            .where(AGENTS.c.agent_id == waiting.agent_id)
            .values(
                state=verdict.state.value,
                pipeline_state=verdict.state.value,
                findings=[asdict(finding) for finding in verdict.findings],
                pipeline=pipeline,
                pipeline_at=func.clock_timestamp(),
                judged_at=func.clock_timestamp(),
                told_version=waiting.told_version + 1,
            )
        )

    async def waiting_models(self, limit: int) -> Sequence[WaitingModel]:
        """Models' labels to be judged; no other copy gets them."""
        query = (
            select(MODELS.c.model, MODELS.c.told_version)
            .where(MODELS.c.pipeline_state.is_(None))
            .order_by(MODELS.c.model)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        return [WaitingModel(**row) for row in (await self.connection.execute(query)).mappings()]

    async def judged_models(self, verdicts: Mapping[str, Verdict], pipeline: str) -> None:
        """Keep verdicts on labels held by :meth:`waiting_models`."""
        statement = (
            update(MODELS)
            .where(MODELS.c.model == bindparam("of_model"))
            .values(
                state=bindparam("new_state"),
                pipeline_state=bindparam("new_state"),
                findings=bindparam("new_findings"),
                pipeline=pipeline,
                pipeline_at=func.clock_timestamp(),
                judged_at=func.clock_timestamp(),
                told_version=MODELS.c.told_version + 1,
            )
        )
        if not verdicts:
            return
        rows = [
            {
                "of_model": model,
                "new_state": str(verdict.state),
                "new_findings": [asdict(finding) for finding in verdict.findings],
            }
            for model, verdict in verdicts.items()
        ]
        await self.connection.execute(statement, rows)

    # --- what could not be judged ---

    async def set_aside(self, about: Aside, trouble: Trouble, pipeline: str) -> None:
        """Keep that a version of the pipeline could not judge something, and why; since when stays."""
        values = {"cause": trouble.cause.value, "detector": trouble.detector, "error": trouble.error}
        key = dict(zip(_OF_KIND[about.kind], about.key, strict=True))
        statement = insert(SET_ASIDE).values(kind=about.kind, pipeline=pipeline, **key, **values)
        await self.connection.execute(
            statement.on_conflict_do_update(
                index_elements=list(key),
                index_where=text(f"kind = '{about.kind}'"),
                set_={**values, "pipeline": pipeline},
            )
        )

    async def no_longer_set_aside(self, about: Sequence[Aside]) -> None:
        """Forget what was set aside: there is a verdict now."""
        for kind in {one.kind for one in about}:
            columns = [SET_ASIDE.c[name] for name in _OF_KIND[kind]]
            keys = [one.key for one in about if one.kind == kind]
            await self.connection.execute(delete(SET_ASIDE).where(SET_ASIDE.c.kind == kind, tuple_(*columns).in_(keys)))

    async def any_set_aside(self, kind: Kind) -> bool:
        """Whether anything of a kind is set aside."""
        aside = exists().where(SET_ASIDE.c.kind == kind, ~_rests())
        return bool((await self.connection.execute(select(aside))).scalar_one())

    async def texts_set_aside(self, limit: int, pipeline: str) -> Sequence[WaitingText]:
        """Texts that another version of the pipeline could not judge, or that are wanted again; no other copy gets
        them. What locks soonest comes first."""
        aside = and_(
            SET_ASIDE.c.kind == "text",
            SET_ASIDE.c.lineup_id == TEXTS.c.lineup_id,
            SET_ASIDE.c.revision == TEXTS.c.revision,
            SET_ASIDE.c.pointer == TEXTS.c.pointer,
            SET_ASIDE.c.pipeline.is_distinct_from(pipeline),
        )
        query = (
            select(TEXTS.c.lineup_id, TEXTS.c.revision, TEXTS.c.pointer, TEXTS.c.contest, TEXTS.c.text)
            .join(SET_ASIDE, aside)
            .join(CONTESTS, CONTESTS.c.contest == TEXTS.c.contest)
            .where(
                TEXTS.c.pipeline_state == State.UNCHECKED.value,
                TEXTS.c.hand.is_(None),
                TEXTS.c.redacted_at.is_(None),
                CONTESTS.c.cancelled_at.is_(None),
            )
            .order_by(TEXTS.c.due_at, TEXTS.c.accepted_at)
        )
        held = query.limit(limit).with_for_update(of=TEXTS, skip_locked=True)
        return [WaitingText(**row) for row in (await self.connection.execute(held)).mappings()]

    async def names_set_aside(self, limit: int, pipeline: str) -> Sequence[WaitingName]:
        """As :meth:`texts_set_aside`, of agents' names."""
        aside = and_(
            SET_ASIDE.c.kind == "name",
            SET_ASIDE.c.agent_id == AGENTS.c.agent_id,
            SET_ASIDE.c.pipeline.is_distinct_from(pipeline),
        )
        query = (
            select(AGENTS.c.agent_id, AGENTS.c.name, AGENTS.c.version, AGENTS.c.told_version, AGENTS.c.reviewed)
            .join(SET_ASIDE, aside)
            .where(AGENTS.c.pipeline_state == State.UNCHECKED.value, AGENTS.c.judged_by.is_(None))
            .order_by(AGENTS.c.agent_id)
            .limit(limit)
            .with_for_update(of=AGENTS, skip_locked=True)
        )
        return [WaitingName(**row) for row in (await self.connection.execute(query)).mappings()]

    async def models_set_aside(self, limit: int, pipeline: str) -> Sequence[WaitingModel]:
        """As :meth:`texts_set_aside`, of models' labels."""
        aside = and_(
            SET_ASIDE.c.kind == "model",
            SET_ASIDE.c.model == MODELS.c.model,
            SET_ASIDE.c.pipeline.is_distinct_from(pipeline),
        )
        query = (
            select(MODELS.c.model, MODELS.c.told_version)
            .join(SET_ASIDE, aside)
            .where(MODELS.c.pipeline_state == State.UNCHECKED.value, MODELS.c.judged_by.is_(None))
            .order_by(MODELS.c.model)
            .limit(limit)
            .with_for_update(of=MODELS, skip_locked=True)
        )
        return [WaitingModel(**row) for row in (await self.connection.execute(query)).mappings()]

    async def try_again(self) -> int:
        """Let everything that is set aside be tried once more; how many."""
        return (await self.connection.execute(update(SET_ASIDE).where(~_rests()).values(pipeline=None))).rowcount

    async def set_aside_counts(self) -> Sequence[AsideCount]:
        """How much is set aside, by kind and cause."""
        why = (SET_ASIDE.c.kind, SET_ASIDE.c.cause, SET_ASIDE.c.detector, SET_ASIDE.c.error)
        age = cast(func.extract("epoch", func.clock_timestamp() - func.min(SET_ASIDE.c.since)), Float)
        query = select(*why, func.count(), age).where(~_rests()).group_by(*why).order_by(*why)
        return [AsideCount(*row) for row in await self.connection.execute(query)]

    # --- judging by hand ---

    async def final_text(self, lineup_id: UUID, pointer: str) -> Judged | None:
        """A text of the final revision of a lineup whose contest is locked, held with its lineup; else ``None``."""
        final = (
            select(FINALS.c.revision, FINALS.c.agent_id)
            .join(CONTESTS, CONTESTS.c.contest == FINALS.c.contest)
            .where(
                FINALS.c.lineup_id == lineup_id, CONTESTS.c.locked_at.is_not(None), CONTESTS.c.cancelled_at.is_(None)
            )
        )
        known = (await self.connection.execute(final)).one_or_none()
        if known is None:
            return None
        # All of them, so that judgements on one lineup follow each other and each is told of.
        texts = (
            select(
                TEXTS.c.pointer,
                TEXTS.c.text,
                TEXTS.c.reviewed,
                TEXTS.c.judged_by,
                TEXTS.c.redacted_at,
                *_STANDING,
            )
            .where(TEXTS.c.lineup_id == lineup_id, TEXTS.c.revision == known.revision)
            .order_by(*_KEY)
            .with_for_update()
        )
        row = next((row for row in await self.connection.execute(texts) if row.pointer == pointer), None)
        if row is None:
            return None
        review = await self._review(lineup_id, pointer)
        standing = _standing(row)
        return Judged(
            known.agent_id,
            row.text,
            standing.state,
            standing.version,
            review,
            Place(lineup_id, known.revision, pointer),
            standing,
            redacted=row.redacted_at is not None,
            reviewed=row.reviewed,
            judged_by=row.judged_by,
        )

    async def name(self, agent_id: UUID) -> Judged | None:
        """An agent's name, held; ``None`` for an agent that is not known."""
        query = (
            select(
                AGENTS.c.name,
                AGENTS.c.version,
                AGENTS.c.state,
                AGENTS.c.told_version,
                AGENTS.c.reviewed,
                AGENTS.c.judged_by,
                AGENTS.c.pipeline_state,
                AGENTS.c.findings,
            )
            .where(AGENTS.c.agent_id == agent_id)
            .with_for_update()
        )
        row = (await self.connection.execute(query)).one_or_none()
        if row is None:
            return None
        state, stages = [None if one is None else State(one) for one in (row.state, row.pipeline_state)]
        review = await self._review(agent_id)
        return Judged(
            agent_id,
            row.name,
            state,
            row.told_version,
            review,
            reviewed=row.reviewed,
            judged_by=row.judged_by,
            stages_say=stages,
            found=tuple(finding["detector"] for finding in row.findings),
            agent_version=row.version,
        )

    async def label(self, model: str) -> Judged | None:
        """A model's label, held; ``None`` for one that no agent has claimed."""
        row = (
            await self.connection.execute(select(MODELS).where(MODELS.c.model == model).with_for_update())
        ).one_or_none()
        if row is None:
            return None
        state, stages = [None if one is None else State(one) for one in (row.state, row.pipeline_state)]
        return Judged(None, model, state, row.told_version, judged_by=row.judged_by, stages_say=stages, model=model)

    async def _review(self, about: UUID, pointer: str = "") -> int:
        query = select(func.coalesce(func.max(REVIEWS.c.version), 0)).where(
            REVIEWS.c.about == about, REVIEWS.c.pointer == pointer
        )
        return int((await self.connection.execute(query)).scalar_one())

    async def judged_by_hand(
        self, held: Judged, state: Literal[State.CLEARED, State.FLAGGED], note: str, by: str
    ) -> int:
        """Keep what a person says of what :meth:`final_text`, :meth:`name` or :meth:`label` holds, with its history.

        Returns where in the history.
        """
        after = held.standing.by_hand(state)
        await self._by_hand(held, after, state, by, held.review)
        return await self._judgement(held, state, note, by)

    async def taken_back(self, held: Judged, judgement: Mapping[str, Any], note: str, by: str) -> State | None:
        """Let hold what held before the newest judgement on what is held, and keep that in the history; the state."""
        was_by, was = judgement["was_by"], State(judgement["was"])
        after = held.standing.taken_back(was if was_by is not None else None)
        state = after.state if held.place else was if was_by is not None else held.stages_say
        await self._by_hand(held, after, state, was_by, judgement["was_reviewed"])
        await self._judgement(held, state or State.UNCHECKED, note, by, takes_back=judgement["position"])
        return state

    async def _by_hand(self, held: Judged, after: Standing, state: State | None, by: str | None, reviewed: int) -> None:
        verdict: dict[str, Any] = {
            "state": None if state is None else state.value,
            "judged_by": by,
            "judged_at": func.clock_timestamp(),
        }
        if held.model is not None:
            of_model = update(MODELS).where(MODELS.c.model == held.model)
            await self.connection.execute(of_model.values(**verdict, told_version=held.version + 1))
            return
        verdict["reviewed"] = reviewed
        if held.place is None:
            of_agent = update(AGENTS).where(AGENTS.c.agent_id == held.agent_id)
            await self.connection.execute(of_agent.values(**verdict, told_version=held.version + 1))
            return
        of_text = update(TEXTS).where(tuple_(*_KEY) == tuple_(*held.place))
        hand = None if after.hand is None else after.hand.value
        said = {"hand": hand, "hand_version": after.hand_version, "version": after.version}
        await self.connection.execute(of_text.values(**verdict, **said))
        await self._stale([held.place])

    async def _judgement(self, held: Judged, state: State, note: str, by: str, *, takes_back: int | None = None) -> int:
        statement = insert(JUDGEMENTS).values(
            agent_id=held.agent_id,
            lineup_id=held.lineup_id,
            revision=held.revision,
            pointer=held.pointer,
            model=held.model,
            text_hash=domain.text_hash(held.text),
            version=held.version + 1,
            was=(held.state or State.UNCHECKED).value,
            state=state.value,
            note=note,
            judged_by=by,
            was_by=held.judged_by,
            was_reviewed=held.reviewed,
            takes_back=takes_back,
        )
        return int((await self.connection.execute(statement.returning(JUDGEMENTS.c.position))).scalar_one())

    async def judgement(self, position: int) -> Mapping[str, Any] | None:
        """A judgement of the history."""
        rows = await self._rows(select(JUDGEMENTS).where(JUDGEMENTS.c.position == position))
        return rows[0] if rows else None

    async def add_note(self, held: Judged, note: str, by: str) -> None:
        """Keep what a person notes of what :meth:`final_text`, :meth:`name` or :meth:`label` holds."""
        await self.connection.execute(
            insert(NOTES).values(
                agent_id=held.agent_id,
                lineup_id=held.lineup_id,
                revision=held.revision,
                pointer=held.pointer,
                model=held.model,
                text_hash=domain.text_hash(held.text),
                version=held.version,
                note=note,
                noted_by=by,
            )
        )

    async def former_name(self, agent_id: UUID) -> None:
        """Put aside the pipeline's verdict on an agent's name that is about to be replaced."""
        await self._former_names(AGENTS.c.agent_id == agent_id)

    async def former_models(self, models: Iterable[str]) -> None:
        """Put aside the pipeline's verdicts on labels that are about to be replaced."""
        columns = ["model", "text_hash", "stage", "state", "findings", "pipeline", "judged_at"]
        of = MODELS.c
        local = literal(Stage.LOCAL.value)
        old = select(of.model, _hash_of(of.model), local, of.pipeline_state, of.findings, of.pipeline, of.pipeline_at)
        judged = old.where(of.model.in_(list(models)), of.pipeline_state.is_not(None)).order_by(of.model)
        await self.connection.execute(insert(FORMER).from_select(columns, judged))

    async def _former_names(self, which: ColumnElement[bool]) -> None:
        """Put aside the pipeline's verdicts on agents' names that are about to be replaced."""
        held = select(AGENTS.c.agent_id).where(which, AGENTS.c.pipeline_state.is_not(None)).with_for_update()
        names = (await self.connection.scalars(held)).all()
        if not names:
            return
        kept = select(
            AGENTS.c.agent_id,
            _hash_of(AGENTS.c.name),
            literal(Stage.LOCAL.value),
            AGENTS.c.pipeline_state,
            AGENTS.c.findings,
            AGENTS.c.pipeline,
            AGENTS.c.pipeline_at,
        ).where(AGENTS.c.agent_id.in_(names))
        columns = ["agent_id", "text_hash", "stage", "state", "findings", "pipeline", "judged_at"]
        await self.connection.execute(insert(FORMER).from_select(columns, kept))

    # --- redaction ---

    async def hold_texts(self, lineup_id: UUID, pointer: str, revisions: Sequence[int]) -> Sequence[Mapping[str, Any]]:
        """The texts under a pointer of a lineup, of the revisions named or of all, held in the order of their places.

        Each with whether it is of the ``final`` revision, ``None`` where that is not known; and of that one the
        ``slot`` and the ``player`` that it is about.
        """
        of_final = and_(FINALS.c.lineup_id == TEXTS.c.lineup_id, FINALS.c.revision == TEXTS.c.revision)
        query = (
            select(
                *_KEY,
                *_about_whom(),
                TEXTS.c.contest,
                TEXTS.c.agent_id,
                TEXTS.c.text,
                TEXTS.c.state,
                TEXTS.c.findings,
                TEXTS.c.external_findings,
                TEXTS.c.redacted_at,
            )
            .outerjoin(FINALS, of_final)
            .outerjoin(CONTESTS, CONTESTS.c.contest == TEXTS.c.contest)
            .where(TEXTS.c.lineup_id == lineup_id, TEXTS.c.pointer == pointer)
            .order_by(*_KEY)
            .with_for_update(of=TEXTS)
        )
        if revisions:
            query = query.where(TEXTS.c.revision.in_(revisions))
        texts = await self._rows(query)
        final = select(FINALS.c.revision).where(FINALS.c.lineup_id == lineup_id)
        last = (await self.connection.execute(final)).scalar_one_or_none()
        return [{**row, "final": None if last is None else row["revision"] == last} for row in texts]

    async def copies_of_words(self, place: Place) -> dict[str, int]:
        """How often a text stands in moderation's own log of events, and in how many notes and requests about it."""
        judged = select(func.count()).where(_of_place(JUDGEMENTS, place))
        noted = select(func.count()).where(_of_place(NOTES, place))
        asked = select(func.count()).where(_of_review(place), REVIEWS.c.sentence.is_not(None))
        notes = [int((await self.connection.execute(query)).scalar_one()) for query in (judged, noted, asked)]
        released = await redaction.recorded_with_words(self.connection, ev.ReasoningReleased, *place)
        return {"released": released, "notes": sum(notes)}

    async def redact(self, text: Mapping[str, Any], values: Mapping[str, Any]) -> None:
        """Let the words of a text held by :meth:`hold_texts` go from everything that moderation keeps.

        What quotes them, as people's notes may, goes with them; hashes of them too.
        """
        place = Place(text["lineup_id"], text["revision"], text["pointer"])
        unheard = State.UNCHECKED.value
        asked = case((TEXTS.c.asks_external, func.coalesce(TEXTS.c.external_state, unheard)), else_=null())
        await self._forget_what_was_asked(place)
        await self.connection.execute(
            update(TEXTS)
            .where(tuple_(*_KEY) == tuple_(*place))
            .values(
                text="",
                text_hash="",
                salt=None,
                findings=_unplaced(text["findings"]),
                external_findings=_unplaced(text["external_findings"]),
                # What nobody has judged nobody will.
                state=func.coalesce(TEXTS.c.state, unheard),
                pipeline_state=func.coalesce(TEXTS.c.pipeline_state, unheard),
                external_state=func.coalesce(TEXTS.c.external_state, asked),
                asks_external=False,
                redacted_at=values["redacted_at"],
            )
        )
        judged = update(JUDGEMENTS).where(_of_place(JUDGEMENTS, place))
        await self.connection.execute(judged.values(text_hash="", note=REDACTED_NOTE))
        former = update(FORMER).where(_of_place(FORMER, place))
        await self.connection.execute(former.values(text_hash="", findings=[]))
        changed = update(CHANGES).where(_of_place(CHANGES, place))
        await self.connection.execute(changed.values(findings=[]))
        noted = update(NOTES).where(_of_place(NOTES, place))
        await self.connection.execute(noted.values(text_hash="", note=REDACTED_NOTE))
        await self.connection.execute(update(REVIEWS).where(_of_review(place)).values(sentence=None))
        await self.no_longer_set_aside([Aside("text", *place)])
        await redaction.strip_outbox(self.connection, ev.ReasoningReleased, place.lineup_id, place.revision, [place[2]])
        await self._stale([place])
        of_lineup = {"contest": text["contest"], "agent_id": text["agent_id"]}
        of_lineup["moderation_at"] = values["redacted_at"]
        await self.connection.execute(insert(REDACTIONS).values(**place._asdict(), **of_lineup, **values))

    async def _forget_what_was_asked(self, place: Place) -> None:
        """Let the external model's verdicts on a text's words go, with their hash, unless others wrote the same."""
        other = TEXTS.alias()
        words = select(TEXTS.c.text_hash).where(tuple_(*_KEY) == tuple_(*place)).scalar_subquery()
        same = tuple_(other.c.lineup_id, other.c.revision, other.c.pointer) == tuple_(*place)
        elsewhere = exists().where(other.c.text_hash == words, ~same)
        await self.connection.execute(
            delete(EXTERNAL_VERDICTS).where(EXTERNAL_VERDICTS.c.text_hash == words, ~elsewhere)
        )

    async def agent_redaction(self, gone: ev.AgentRedaction) -> None:
        """Keep that an agent's words are gone from registry, whichever store was the first to tell of it."""
        about = {"redaction_id": gone.redaction_id, "agent_id": gone.agent_id, "pointer": ", ".join(gone.fields)}
        why = {"reason": gone.reason.value, "redacted_at": gone.redacted_at, "note": "", "ordered_by": ""}
        row = insert(REDACTIONS).values(**about, **why, registry_at=gone.redacted_at, told=True)
        await self.connection.execute(row.on_conflict_do_nothing())

    async def redact_agent(self, gone: ev.AgentRedacted) -> None:
        """Let an agent's words go from everything that moderation keeps.

        A name that is still the old one becomes its neutral handle, to be judged as any other.
        """
        await self.agent_redaction(gone)
        await self.redacted_in("moderation", gone.redaction_id)
        if "name" not in gone.fields:
            return
        known = {"name": gone.agent_name, "version": gone.before, "findings": [], "state": None}
        old = update(AGENTS).where(AGENTS.c.agent_id == gone.agent_id, AGENTS.c.version < gone.before)
        await self.connection.execute(old.values(**known, pipeline_state=None, judged_by=None))
        for table, values in (
            (JUDGEMENTS, {"text_hash": "", "note": REDACTED_NOTE}),
            (NOTES, {"text_hash": "", "note": REDACTED_NOTE}),
            (FORMER, {"text_hash": "", "findings": []}),
            (CHANGES, {"findings": []}),
        ):
            of_name = _about_it(table, None, gone.agent_id, None)
            await self.connection.execute(update(table).where(of_name).values(**values))
        of_agent = and_(REVIEWS.c.about == gone.agent_id, REVIEWS.c.pointer == "")
        await self.connection.execute(update(REVIEWS).where(of_agent).values(sentence=None))
        await self.no_longer_set_aside([Aside("name", agent_id=gone.agent_id)])
        await redaction.strip_name(self.connection, gone.agent_id, gone.agent_name, gone.before)

    async def redacted_in(self, store: str, redaction_id: UUID, **values: Any) -> None:
        """A store (``moderation``, ``contests`` or ``boards``) is rid of the words; the first time counts."""
        column = REDACTIONS.c[f"{store}_at"]
        at = func.coalesce(column, func.clock_timestamp())
        of_redaction = update(REDACTIONS).where(REDACTIONS.c.redaction_id == redaction_id)
        await self.connection.execute(of_redaction.values({column.name: at, **values}))

    async def erased(self, redaction_id: UUID, messages: int, look: int) -> None:
        """The streams were looked through."""
        await self.connection.execute(
            update(REDACTIONS)
            .where(REDACTIONS.c.redaction_id == redaction_id)
            .values(
                streams_at=func.coalesce(REDACTIONS.c.streams_at, func.clock_timestamp()),
                looks=func.greatest(REDACTIONS.c.looks, look),
                messages=REDACTIONS.c.messages + messages,
            )
        )

    async def redactions(
        self,
        *,
        lineup_id: UUID | None = None,
        pointer: str | None = None,
        agent_id: UUID | None = None,
        limit: int = 1000,
    ) -> Sequence[Mapping[str, Any]]:
        """What was redacted, the newest first."""
        query = select(REDACTIONS).order_by(
            REDACTIONS.c.redacted_at.desc(), REDACTIONS.c.revision, REDACTIONS.c.pointer
        )
        if lineup_id is not None:
            query = query.where(REDACTIONS.c.lineup_id == lineup_id)
        if pointer is not None:
            query = query.where(REDACTIONS.c.pointer == pointer)
        if agent_id is not None:
            query = query.where(REDACTIONS.c.agent_id == agent_id, REDACTIONS.c.lineup_id.is_(None))
        return await self._rows(query.limit(limit))

    # --- telling ---

    async def due(self, limit: int, lineup_id: UUID | None = None) -> Sequence[DueLineup]:
        """Stale lineups (or one) of locked contests with all their texts, held; no other copy gets them.

        This waits for nobody but a change of claims: a lineup of which somebody else holds a text is left for the next
        time.
        """
        await self.connection.execute(select(func.pg_advisory_xact_lock_shared(_CLAIMS_LOCK)))
        of_final = and_(TEXTS.c.lineup_id == FINALS.c.lineup_id, TEXTS.c.revision == FINALS.c.revision)
        query = (
            select(FINALS, CONTESTS.c.locked_at, CONTESTS.c.cancelled_at, CLAIMS.c.claimed)
            .join(CONTESTS, CONTESTS.c.contest == FINALS.c.contest)
            .outerjoin(CLAIMS, CLAIMS.c.agent_id == FINALS.c.agent_id)
            .where(
                FINALS.c.stale,
                CONTESTS.c.locked_at.is_not(None),
                CONTESTS.c.cancelled_at.is_(None),
                exists().where(of_final),
                *([] if lineup_id is None else [FINALS.c.lineup_id == lineup_id]),
            )
            .order_by(FINALS.c.contest, FINALS.c.lineup_id)
            .limit(limit)
            .with_for_update(of=FINALS, skip_locked=True)
        )
        finals = (await self.connection.execute(query)).all()
        if not finals:
            return ()
        of_these = tuple_(TEXTS.c.lineup_id, TEXTS.c.revision).in_([(row.lineup_id, row.revision) for row in finals])
        held = select(TEXTS.c.text, TEXTS.c.salt, TEXTS.c.reviewed, TEXTS.c.redacted_at, *_KEY, *_STANDING)
        texts: dict[UUID, dict[str, domain.Text]] = {row.lineup_id: {} for row in finals}
        for row in await self.connection.execute(held.where(of_these).with_for_update(skip_locked=True)):
            texts[row.lineup_id][row.pointer] = domain.Text(
                row.text, _standing(row), row.salt, row.reviewed, redacted=row.redacted_at is not None
            )
        counted = select(TEXTS.c.lineup_id, func.count().label("many")).where(of_these).group_by(TEXTS.c.lineup_id)
        whole = {row.lineup_id: row.many for row in await self.connection.execute(counted)}
        return [
            DueLineup(
                final.lineup_id,
                final.contest,
                final.agent_id,
                Lineup(
                    phase=domain.phase(locked=final.locked_at is not None, cancelled=final.cancelled_at is not None),
                    claimed=bool(final.claimed),
                    final=final.revision,
                    revisions={final.revision: texts[final.lineup_id]},
                    said=Said(final.said_version, final.said_judged, final.said_released),
                ),
            )
            for final in finals
            if len(texts[final.lineup_id]) == whole[final.lineup_id]
        ]

    async def told(self, said: Mapping[UUID, Said]) -> None:
        """Keep what has been told of lineups held by :meth:`due`."""
        statement = (
            update(FINALS)
            .where(FINALS.c.lineup_id == bindparam("of_lineup"))
            .values(
                stale=False,
                said_version=bindparam("new_version"),
                said_judged=bindparam("new_judged"),
                said_released=bindparam("new_released"),
            )
        )
        rows = [
            {
                "of_lineup": lineup_id,
                "new_version": now.version,
                "new_judged": now.judged,
                "new_released": now.released,
            }
            for lineup_id, now in said.items()
        ]
        await self.connection.execute(statement, rows)

    # --- for operators ---

    async def any_waiting(self) -> bool:
        """Whether a text, a name or a label waits for the pipeline and could be judged now."""
        text = (
            select(TEXTS.c.lineup_id)
            .join(CONTESTS, CONTESTS.c.contest == TEXTS.c.contest)
            .where(TEXTS.c.pipeline_state.is_(None), CONTESTS.c.names.is_not(None), CONTESTS.c.cancelled_at.is_(None))
        )
        waiting = or_(text.exists(), *(exists().where(one.c.pipeline_state.is_(None)) for one in (AGENTS, MODELS)))
        return bool((await self.connection.execute(select(waiting))).scalar_one())

    async def backlog(self) -> Backlog:
        """What waits to be judged."""
        age = func.extract("epoch", func.clock_timestamp() - func.min(TEXTS.c.received_at))
        off = exists().where(CONTESTS.c.contest == TEXTS.c.contest, CONTESTS.c.cancelled_at.is_not(None))
        query = select(func.count(), func.coalesce(age, 0)).where(TEXTS.c.pipeline_state.is_(None), ~off)
        texts, oldest = (await self.connection.execute(query)).one()
        names, models = [
            (await self.connection.execute(select(func.count()).where(state.is_(None)))).scalar_one()
            for state in (AGENTS.c.pipeline_state, MODELS.c.pipeline_state)
        ]
        return Backlog(texts, float(oldest), names, models)

    async def withheld(self, limit: int, *, only_open: bool = False) -> Sequence[Mapping[str, Any]]:
        """What is not cleared: texts of final revisions of locked contests alone (C8), agents' names, models' labels.

        Those that an owner asked to look at again come first, the oldest request first; then the newest verdict.
        ``only_open`` leaves out what a person judged and nobody asks about again.
        """
        rows: list[dict[str, Any]] = []
        texts, asked = _texts().where(TEXTS.c.redacted_at.is_(None)), REVIEWS.c.requested_at
        for query, table in ((texts, TEXTS), (_names(), AGENTS), (_labels(), MODELS)):
            withheld = query.where(table.c.state != State.CLEARED.value)
            newest = table.c.judged_at.desc().nulls_last()
            # Nobody asks for a review of a label.
            asks = false() if table is MODELS else asked.is_not(None)
            order = [newest] if table is MODELS else [asked.asc().nulls_last(), newest]
            if only_open:
                withheld = withheld.where(or_(table.c.judged_by.is_(None), asks))
            rows += await self._rows(withheld.order_by(*order).limit(limit))
        never = datetime.max.replace(tzinfo=UTC)
        rows.sort(key=lambda row: (str(row["agent_id"] or row["model"]), row["pointer"] or ""))
        rows.sort(key=lambda row: row["judged_at"] or datetime.min.replace(tzinfo=UTC), reverse=True)
        rows.sort(key=lambda row: row["review_requested_at"] or never)
        return rows[:limit]

    async def lineup(self, lineup_id: UUID) -> Sequence[Mapping[str, Any]]:
        """All texts of a lineup's final revision, none before its contest is locked."""
        return await self._rows(_texts().where(TEXTS.c.lineup_id == lineup_id).order_by(TEXTS.c.pointer))

    async def agent_name(self, agent_id: UUID) -> Sequence[Mapping[str, Any]]:
        """An agent's name, in the form of :meth:`lineup`."""
        return await self._rows(_names().where(AGENTS.c.agent_id == agent_id))

    async def model_label(self, model: str) -> Sequence[Mapping[str, Any]]:
        """A model's label, in the form of :meth:`lineup`."""
        return await self._rows(_labels().where(MODELS.c.model == model))

    async def history(
        self, *, lineup_id: UUID | None = None, agent_id: UUID | None = None, model: str | None = None
    ) -> Sequence[Mapping[str, Any]]:
        """What people judged of a lineup's texts, of an agent's name or of a model's label, oldest first."""
        about = _about_it(JUDGEMENTS, lineup_id, agent_id, model)
        return await self._rows(select(JUDGEMENTS).where(about).order_by(JUDGEMENTS.c.position))

    async def former(
        self, *, lineup_id: UUID | None = None, agent_id: UUID | None = None, model: str | None = None
    ) -> Sequence[Mapping[str, Any]]:
        """Verdicts that another replaced, oldest first: of a lineup on its final revision alone."""
        about = _about_it(FORMER, lineup_id, agent_id, model)
        if lineup_id is not None:
            of_final = and_(FINALS.c.lineup_id == FORMER.c.lineup_id, FINALS.c.revision == FORMER.c.revision)
            about = and_(about, exists().where(of_final))
        return await self._rows(select(FORMER).where(about).order_by(FORMER.c.position))

    async def notes(
        self, *, lineup_id: UUID | None = None, agent_id: UUID | None = None, model: str | None = None
    ) -> Sequence[Mapping[str, Any]]:
        """What people noted of a lineup's texts, of an agent's name or of a model's label, oldest first."""
        about = _about_it(NOTES, lineup_id, agent_id, model)
        return await self._rows(select(NOTES).where(about).order_by(NOTES.c.position))

    # --- the operators' pages ---

    async def desk(
        self, filters: Filters, *, after: Key | None = None, before: Key | None = None, limit: int
    ) -> list[dict[str, Any]]:
        """What an operator wants to see, in the order of ``Key``: at most so many items behind, or before, a place."""
        item = _items(filters)
        order = (item.c.asked_key, item.c.judged_key, item.c.about, item.c.at)
        query = select(item)
        if after is not None:
            query = query.where(tuple_(*order) > _place(after))
        if before is not None:
            query = query.where(tuple_(*order) < _place(before))
            rows = await self._rows(query.order_by(*(column.desc() for column in order)).limit(limit))
            return rows[::-1]
        return await self._rows(query.order_by(*order).limit(limit))

    async def called(self, agent_id: UUID) -> str | None:
        """An agent's name, ``None`` while it is not known."""
        query = select(AGENTS.c.name).where(AGENTS.c.agent_id == agent_id)
        return (await self.connection.execute(query)).scalar_one_or_none()

    async def counted(self) -> Counted:
        """How much there is to look at, whatever the filters."""
        withheld = _items(Filters(show="all"), withheld=True)
        query = select(
            func.count().filter(_is_open(withheld)),
            func.count(withheld.c.review_requested_at),
            func.min(withheld.c.review_requested_at),
            func.count().filter(withheld.c.state == State.FLAGGED.value),
            func.count().filter(withheld.c.state == State.UNCHECKED.value),
        )
        to_see, asked, since, flagged, unchecked = (await self.connection.execute(query)).one()
        return Counted(to_see, asked, since, flagged, unchecked, (await self.backlog()).texts)

    async def seen_detectors(self) -> Sequence[str]:
        """The names of detectors that found something in what is withheld, for a filter."""
        item = _items(Filters(show="all"), withheld=True)
        found: set[str] = set()
        for column in (item.c.findings, item.c.external_findings):
            each = func.jsonb_array_elements(column).table_valued("value", name="each")
            name = cast(each.c.value, JSONB)["detector"].astext
            query = select(name).select_from(item).join(each, literal(True)).distinct()
            found.update((await self.connection.scalars(query)).all())
        return sorted(found)

    async def add_session(self, token_hash: str, who: str, *, at: datetime, until: datetime) -> None:
        """An operator signs in."""
        values = {"token_hash": token_hash, "who": who, "started_at": at, "seen_at": at, "until": until}
        await self.connection.execute(insert(SESSIONS).values(**values))

    async def session(self, token_hash: str, *, now: datetime, seen_since: datetime) -> OperatorSession | None:
        """An operator who is signed in, unless the session ran out or idled."""
        query = select(SESSIONS.c.token_hash, SESSIONS.c.who, SESSIONS.c.seen_at).where(
            SESSIONS.c.token_hash == token_hash, SESSIONS.c.until > now, SESSIONS.c.seen_at > seen_since
        )
        row = (await self.connection.execute(query)).one_or_none()
        return None if row is None else OperatorSession(*row)

    async def seen(self, token_hash: str, *, at: datetime) -> None:
        """An operator did something."""
        await self.connection.execute(update(SESSIONS).where(SESSIONS.c.token_hash == token_hash).values(seen_at=at))

    async def end_session(self, token_hash: str) -> None:
        """An operator signs out."""
        await self.connection.execute(delete(SESSIONS).where(SESSIONS.c.token_hash == token_hash))

    async def forget_sessions(self, *, now: datetime, seen_since: datetime) -> None:
        """Forget sessions that are over."""
        await self.connection.execute(
            delete(SESSIONS).where(or_(SESSIONS.c.until <= now, SESSIONS.c.seen_at <= seen_since))
        )

    async def _rows(self, query: Select[Any]) -> list[dict[str, Any]]:
        return [dict(row) for row in (await self.connection.execute(query)).mappings()]


@dataclass(frozen=True)
class Run:
    """A rerun as it stands, held by the transaction that read it; the members are those of ``RERUNS``."""

    rerun: UUID
    wanted: Rerun
    pipeline: str | None
    phase: str
    after: Sequence[Any] | None
    done: int
    counts: Mapping[str, int]
    detectors: Mapping[str, Sequence[int]]
    created_at: datetime


@dataclass(frozen=True)
class Old:
    """What is to be judged again: a text at its place, or an agent's name (``agent_id``), or a model's label."""

    text: str
    contest: str | None = None
    place: Place | None = None
    agent_id: UUID | None = None
    model: str | None = None

    @property
    def key(self) -> Sequence[Any]:
        """Where it stands among its kind, as JSON."""
        if self.place is not None:
            return [str(self.place.lineup_id), self.place.revision, self.place.pointer]
        return [str(self.agent_id) if self.agent_id else self.model]


@dataclass(frozen=True)
class Changed:
    """What a rerun changed about something."""

    old: Old
    difference: Difference
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class HeldName:
    """An agent's name or a model's label with what was said of it, by which version and when, held."""

    text: str
    standing: Standing
    pipeline: str | None
    pipeline_at: datetime | None
    told_version: int
    reviewed: int = 0
    version: int = 0


class RerunStore:
    """All reads and writes about reruns, on one connection and so in one transaction."""

    def __init__(self, connection: AsyncConnection) -> None:
        self.connection = connection

    async def unknown(self, wanted: Rerun) -> Sequence[str]:
        """The contests and seasons among those wanted that moderation has never heard of."""
        known = set((await self.connection.scalars(select(CONTESTS.c.contest))).all())
        seasons = {contest[:4] for contest in known}
        return [*(one for one in wanted.contests if one not in known)] + [
            str(one) for one in wanted.seasons if str(one) not in seasons
        ]

    async def any_running(self) -> bool:
        """Whether a rerun has still something to do."""
        query = select(exists().where(RERUNS.c.state == "running"))
        return bool((await self.connection.execute(query)).scalar_one())

    async def start(self, rerun: UUID, wanted: Rerun) -> tuple[UUID, bool] | None:
        """Begin a rerun, or find the one of the same choice that runs already; whether it is new.

        ``None`` where that one ended between the two.
        """
        statement = insert(RERUNS).values(
            rerun=rerun,
            chosen=wanted.chosen,
            wanted=wanted.model_dump(mode="json"),
            state="running",
            phase="texts",
            done=0,
            counts={},
            detectors={},
        )
        new = statement.on_conflict_do_nothing().returning(RERUNS.c.rerun)
        running = select(RERUNS.c.rerun).where(RERUNS.c.chosen == wanted.chosen, RERUNS.c.state == "running")
        if (await self.connection.execute(new)).scalar_one_or_none() is not None:
            return rerun, True
        found = (await self.connection.execute(running)).scalar_one_or_none()
        return None if found is None else (found, False)

    async def stop(self, rerun: UUID, why: str) -> None:
        """End a rerun that runs, where it stands."""
        running = update(RERUNS).where(RERUNS.c.rerun == rerun, RERUNS.c.state == "running")
        await self.connection.execute(running.values(state="stopped", why=why, finished_at=func.clock_timestamp()))

    async def run(self, rerun: UUID) -> Mapping[str, Any] | None:
        """A rerun as it stands."""
        found = (await self.connection.execute(select(RERUNS).where(RERUNS.c.rerun == rerun))).mappings().one_or_none()
        return None if found is None else dict(found)

    async def runs(self, limit: int) -> Sequence[Mapping[str, Any]]:
        """Reruns, the newest first."""
        query = select(RERUNS).order_by(RERUNS.c.created_at.desc(), RERUNS.c.rerun).limit(limit)
        return [dict(row) for row in (await self.connection.execute(query)).mappings()]

    async def changes(self, rerun: UUID, after: int, limit: int, *, words: bool) -> Sequence[Mapping[str, Any]]:
        """What a rerun changed and an operator may see: of final revisions of locked contests (C8), names, labels."""
        final = exists().where(
            FINALS.c.lineup_id == CHANGES.c.lineup_id,
            FINALS.c.revision == CHANGES.c.revision,
            CONTESTS.c.contest == FINALS.c.contest,
            CONTESTS.c.locked_at.is_not(None),
            CONTESTS.c.cancelled_at.is_(None),
        )
        of_text = and_(
            TEXTS.c.lineup_id == CHANGES.c.lineup_id,
            TEXTS.c.revision == CHANGES.c.revision,
            TEXTS.c.pointer == CHANGES.c.pointer,
        )
        told = func.coalesce(TEXTS.c.text, AGENTS.c.name, CHANGES.c.model) if words else null()
        query = (
            select(CHANGES, told.label("text"))
            .outerjoin(TEXTS, of_text)
            .outerjoin(AGENTS, AGENTS.c.agent_id == CHANGES.c.agent_id)
            .where(CHANGES.c.rerun == rerun, CHANGES.c.position > after, or_(CHANGES.c.kind != "text", final))
            .order_by(CHANGES.c.position)
            .limit(limit)
        )
        return [dict(row) for row in (await self.connection.execute(query)).mappings()]

    # --- going on ---

    async def next(self, version: str) -> Run | None:
        """The oldest rerun that is to go on by this version of the pipeline, held; no other copy gets it."""
        query = (
            select(RERUNS)
            .where(RERUNS.c.state == "running", or_(RERUNS.c.pipeline.is_(None), RERUNS.c.pipeline == version))
            .order_by(RERUNS.c.created_at)
            .limit(1)
            .with_for_update(skip_locked=True)
        )
        row = (await self.connection.execute(query)).one_or_none()
        if row is None:
            return None
        return Run(
            row.rerun,
            Rerun.model_validate(row.wanted),
            row.pipeline,
            row.phase,
            row.after,
            row.done,
            row.counts,
            row.detectors,
            row.created_at,
        )

    async def give_up(self, version: str, seconds: float, why: str) -> int:
        """End reruns by another version that no copy has gone on with for so long; how many."""
        left = func.clock_timestamp() - func.make_interval(0, 0, 0, 0, 0, 0, seconds)
        others = update(RERUNS).where(
            RERUNS.c.state == "running", RERUNS.c.pipeline != version, RERUNS.c.touched_at < left
        )
        ended = await self.connection.execute(
            others.values(state="stopped", why=why, finished_at=func.clock_timestamp())
        )
        return int(ended.rowcount)

    async def begun(self, run: Run, version: str) -> Run:
        """Let a held rerun be by this version from now on, and count what there is to do."""
        total = 0
        for phase in ("texts", "names", "models") if run.wanted.whole else ("texts",):
            counted = select(func.count()).select_from(self._old(replace(run, phase=phase), version).subquery())
            total += int((await self.connection.execute(counted)).scalar_one())
        values = {"pipeline": version, "total": total}
        await self.connection.execute(update(RERUNS).where(RERUNS.c.rerun == run.rerun).values(values))
        return replace(run, pipeline=version)

    async def old(self, run: Run, version: str, limit: int) -> Sequence[Old]:
        """What comes next in a rerun, in the order of the keys of its phase."""
        rows = (await self.connection.execute(self._old(run, version).limit(limit))).all()
        if run.phase == "texts":
            return [Old(row.text, row.contest, Place(row.lineup_id, row.revision, row.pointer)) for row in rows]
        if run.phase == "names":
            return [Old(row.name, agent_id=row.agent_id) for row in rows]
        return [Old(row.model, model=row.model) for row in rows]

    def _old(self, run: Run, version: str) -> Select[Any]:
        """What is judged again and was not judged since the rerun began: by key, after the last one that is done."""
        older = run.wanted.older
        if run.phase == "texts":
            off = exists().where(CONTESTS.c.contest == TEXTS.c.contest, CONTESTS.c.cancelled_at.is_not(None))
            of_season = [TEXTS.c.contest.startswith(f"{season}-", autoescape=True) for season in run.wanted.seasons]
            chosen = [TEXTS.c.contest.in_(run.wanted.contests), *of_season]
            query: Select[Any] = (
                select(*_KEY, TEXTS.c.contest, TEXTS.c.text)
                .where(
                    TEXTS.c.pipeline_state.is_not(None),
                    TEXTS.c.pipeline_at < run.created_at,
                    TEXTS.c.redacted_at.is_(None),
                    ~off,
                    *([] if run.wanted.whole else [or_(*chosen)]),
                    *([TEXTS.c.pipeline != version] if older else []),
                )
                .order_by(*_KEY)
            )
            if run.after is None:
                return query
            lineup_id, revision, pointer = run.after
            return query.where(tuple_(*_KEY) > tuple_(UUID(lineup_id), revision, pointer))
        if run.phase == "names":
            names: Select[Any] = (
                select(AGENTS.c.agent_id, AGENTS.c.name)
                .where(
                    AGENTS.c.pipeline_state.is_not(None),
                    or_(AGENTS.c.pipeline_at.is_(None), AGENTS.c.pipeline_at < run.created_at),
                    *([AGENTS.c.pipeline != version] if older else []),
                )
                .order_by(AGENTS.c.agent_id)
            )
            return names if run.after is None else names.where(AGENTS.c.agent_id > UUID(run.after[0]))
        labels: Select[Any] = (
            select(MODELS.c.model)
            .where(
                MODELS.c.pipeline_state.is_not(None),
                MODELS.c.pipeline_at < run.created_at,
                *([MODELS.c.pipeline != version] if older else []),
            )
            .order_by(MODELS.c.model)
        )
        return labels if run.after is None else labels.where(MODELS.c.model > run.after[0])

    async def went_on(self, run: Run, *, finished: bool) -> None:
        """Keep how far a held rerun has come."""
        values = {
            "phase": run.phase,
            "after": run.after,
            "done": run.done,
            "counts": dict(run.counts),
            "detectors": {name: list(counts) for name, counts in run.detectors.items()},
            "touched_at": func.clock_timestamp(),
        }
        if finished:
            values |= {"state": "done", "finished_at": func.clock_timestamp()}
        await self.connection.execute(update(RERUNS).where(RERUNS.c.rerun == run.rerun).values(values))

    async def keep_changes(self, rerun: UUID, changed: Sequence[Changed]) -> None:
        """Keep what a rerun changed, or would have."""
        rows = [
            {
                "rerun": rerun,
                "kind": "text" if one.old.place else "name" if one.old.agent_id else "model",
                "contest": one.old.contest,
                "lineup_id": one.old.place.lineup_id if one.old.place else None,
                "revision": one.old.place.revision if one.old.place else None,
                "pointer": one.old.place.pointer if one.old.place else None,
                "agent_id": one.old.agent_id,
                "model": one.old.model,
                "was": one.difference.was.value,
                "state": one.difference.state.value,
                "newly": list(one.difference.newly),
                "no_longer": list(one.difference.no_longer),
                "findings": [asdict(finding) for finding in one.findings],
            }
            for one in changed
        ]
        if rows:
            await self.connection.execute(insert(CHANGES), rows)

    # --- names and labels ---

    async def held_names(self, agents: Sequence[UUID]) -> Mapping[UUID, HeldName]:
        """Agents' names with what was said of them, held in the order of their ids."""
        query = select(AGENTS).where(AGENTS.c.agent_id.in_(agents)).order_by(AGENTS.c.agent_id).with_for_update()
        return {
            row.agent_id: HeldName(
                row.name,
                _spoken_of(row),
                row.pipeline,
                row.pipeline_at,
                row.told_version,
                row.reviewed,
                row.version,
            )
            for row in await self.connection.execute(query)
        }

    async def held_models(self, models: Sequence[str]) -> Mapping[str, HeldName]:
        """Models' labels with what was said of them, held in their order."""
        query = select(MODELS).where(MODELS.c.model.in_(models)).order_by(MODELS.c.model).with_for_update()
        return {
            row.model: HeldName(
                row.model,
                _spoken_of(row),
                row.pipeline,
                row.pipeline_at,
                row.told_version,
            )
            for row in await self.connection.execute(query)
        }

    async def keep_name(self, agent_id: UUID, state: State, verdict: Verdict, pipeline: str, told_version: int) -> None:
        """Keep the pipeline's new verdict on a held name, whose state is this, and put the old one aside."""
        await Store(self.connection).former_name(agent_id)
        await self.connection.execute(
            update(AGENTS)
            .where(AGENTS.c.agent_id == agent_id)
            .values(
                state=state.value,
                pipeline_state=verdict.state.value,
                findings=[asdict(finding) for finding in verdict.findings],
                pipeline=pipeline,
                pipeline_at=func.clock_timestamp(),
                told_version=told_version,
            )
        )

    async def keep_model(self, model: str, state: State, verdict: Verdict, pipeline: str, told_version: int) -> None:
        """Keep the pipeline's new verdict on a held label, whose state is this, and put the old one aside."""
        await Store(self.connection).former_models([model])
        await self.connection.execute(
            update(MODELS)
            .where(MODELS.c.model == model)
            .values(
                state=state.value,
                pipeline_state=verdict.state.value,
                findings=[asdict(finding) for finding in verdict.findings],
                pipeline=pipeline,
                pipeline_at=func.clock_timestamp(),
                told_version=told_version,
            )
        )


def _spoken_of(row: Any) -> Standing:
    """Where an agent's name or a model's label stands, by its row."""
    hand = State(row.state) if row.judged_by is not None and row.state is not None else None
    return Standing(local=_verdict(row.pipeline_state, row.findings), hand=hand)


def _texts() -> Select[Any]:
    asked = and_(
        REVIEWS.c.about == TEXTS.c.lineup_id,
        REVIEWS.c.pointer == TEXTS.c.pointer,
        REVIEWS.c.version > TEXTS.c.reviewed,
    )
    return (
        select(
            TEXTS.c.contest,
            TEXTS.c.lineup_id,
            TEXTS.c.agent_id,
            TEXTS.c.revision,
            TEXTS.c.pointer,
            cast(null(), Text).label("model"),
            *_about_whom(),
            TEXTS.c.text,
            TEXTS.c.text_hash,
            TEXTS.c.state,
            TEXTS.c.version,
            TEXTS.c.findings,
            TEXTS.c.pipeline,
            TEXTS.c.external_findings,
            TEXTS.c.external_state,
            TEXTS.c.external_version,
            TEXTS.c.judged_by,
            TEXTS.c.judged_at,
            TEXTS.c.redacted_at,
            REVIEWS.c.requested_at.label("review_requested_at"),
            REVIEWS.c.sentence.label("review_sentence"),
            _why_aside("text", *_KEY),
        )
        .join(FINALS, and_(FINALS.c.lineup_id == TEXTS.c.lineup_id, FINALS.c.revision == TEXTS.c.revision))
        .join(CONTESTS, CONTESTS.c.contest == TEXTS.c.contest)
        .outerjoin(REVIEWS, asked)
        .where(CONTESTS.c.locked_at.is_not(None))
    )


def _about_whom() -> tuple[ColumnElement[Any], ColumnElement[Any]]:
    """The ``slot`` and the name of the ``player`` of the pick that a final revision's text is about, where known."""
    # Of a text that is about no pick the path leads nowhere, and gives null.
    place = func.split_part(TEXTS.c.pointer, "/", 3)
    slot, player_id = (FINALS.c.picks.op("#>>")(array([place, literal(name)])) for name in ("slot", "player_id"))
    player = CONTESTS.c.players.op("->>")(player_id)
    return cast(slot, Text).label("slot"), cast(player, Text).label("player")


def _names() -> Select[Any]:
    asked = and_(REVIEWS.c.about == AGENTS.c.agent_id, REVIEWS.c.pointer == "", REVIEWS.c.version > AGENTS.c.reviewed)
    return (
        _apart(AGENTS, AGENTS.c.agent_id, cast(null(), Text), AGENTS.c.name)
        .add_columns(
            REVIEWS.c.requested_at.label("review_requested_at"),
            REVIEWS.c.sentence.label("review_sentence"),
            _why_aside("name", AGENTS.c.agent_id),
        )
        .outerjoin(REVIEWS, asked)
    )


def _labels() -> Select[Any]:
    return _apart(MODELS, cast(null(), Uuid), MODELS.c.model, MODELS.c.model).add_columns(
        cast(null(), DateTime(timezone=True)).label("review_requested_at"),
        cast(null(), Text).label("review_sentence"),
        _why_aside("model", MODELS.c.model),
    )


def _apart(
    table: Table, agent_id: ColumnElement[Any], model: ColumnElement[Any], words: ColumnElement[str]
) -> Select[Any]:
    """What stands in no lineup, in the columns of :func:`_texts`."""
    return select(
        cast(null(), Text).label("contest"),
        cast(null(), Uuid).label("lineup_id"),
        agent_id.label("agent_id"),
        cast(null(), Integer).label("revision"),
        cast(null(), Text).label("pointer"),
        model.label("model"),
        cast(null(), Text).label("slot"),
        cast(null(), Text).label("player"),
        words.label("text"),
        _hash_of(words).label("text_hash"),
        table.c.state,
        table.c.told_version.label("version"),
        table.c.findings,
        table.c.pipeline,
        cast([], JSONB).label("external_findings"),
        cast(null(), Text).label("external_state"),
        cast(null(), Text).label("external_version"),
        table.c.judged_by,
        table.c.judged_at,
        cast(null(), DateTime(timezone=True)).label("redacted_at"),
    )


def _why_aside(kind: Kind, *key: ColumnElement[Any]) -> ColumnElement[Any]:
    """Why the pipeline could not judge what a row is about, as an object; null where it is not set aside."""
    same = [SET_ASIDE.c[name] == column for name, column in zip(_OF_KIND[kind], key, strict=True)]
    why = [part for name in ("cause", "detector", "error") for part in (literal(name), SET_ASIDE.c[name])]
    query = select(func.jsonb_build_object(*why, type_=JSONB)).where(SET_ASIDE.c.kind == kind, *same)
    return query.scalar_subquery().label("set_aside")


def _items(filters: Filters, *, withheld: bool = False) -> Subquery:
    """The texts, names and labels that filters ask for, each with the columns of its place in the queue.

    The parts are narrowed before they are put together, so that the indices of each serve.
    """
    parts = []
    asked = REVIEWS.c.requested_at
    for query, table, about, pointer, words in (
        (_texts(), TEXTS, TEXTS.c.lineup_id, TEXTS.c.pointer, TEXTS.c.text),
        (_names(), AGENTS, AGENTS.c.agent_id, literal(""), AGENTS.c.name),
        (_labels(), MODELS, _id_of_label(), literal(""), MODELS.c.model),
    ):
        if not _has_any(table, filters):
            continue
        if table is TEXTS:
            query = query.outerjoin(AGENTS, AGENTS.c.agent_id == TEXTS.c.agent_id)
            query = query.where(CONTESTS.c.cancelled_at.is_(None))
            if withheld or filters.show != "all":
                query = query.where(TEXTS.c.redacted_at.is_(None))
            if filters.kind:
                query = query.where(TEXTS.c.pointer.like(f"%/{_literally(filters.kind)}", escape="\\"))
            if filters.contest:
                query = query.where(TEXTS.c.contest == filters.contest)
        state = table.c.state
        if withheld or filters.show == "open":
            query = query.where(state != State.CLEARED.value)
        elif filters.show == "unchecked":
            query = query.where(or_(state == State.UNCHECKED.value, state.is_(None)))
        elif filters.show in ("flagged", "cleared"):
            query = query.where(state == filters.show)
        elif filters.show == "hand":
            query = query.where(table.c.judged_by.is_not(None))
        if filters.words:
            query = query.where(words.ilike(f"%{_literally(filters.words)}%", escape="\\"))
        if filters.agent:
            some = AGENTS.c.name.ilike(f"%{_literally(filters.agent)}%", escape="\\")
            query = query.where(
                or_(some, cast(table.c.agent_id, Text).startswith(filters.agent.lower(), autoescape=True))
            )
        if filters.detector:
            of_it = [{"detector": filters.detector}]
            found = table.c.findings.contains(of_it)
            query = query.where(or_(found, TEXTS.c.external_findings.contains(of_it)) if table is TEXTS else found)
        unasked = literal(NEVER, BigInteger)
        parts.append(
            query.add_columns(
                (cast(null(), Text) if table is MODELS else AGENTS.c.name).label("agent_name"),
                (unasked if table is MODELS else func.coalesce(_micros(asked), unasked)).label("asked_key"),
                func.coalesce(-_micros(table.c.judged_at), NEVER).label("judged_key"),
                about.label("about"),
                pointer.label("at"),
            )
        )
    item = (union_all(*parts) if len(parts) > 1 else parts[0]).subquery("item") if parts else _nothing()
    narrowed = select(item)
    if filters.asked:
        narrowed = narrowed.where(item.c.review_requested_at.is_not(None))
    if filters.show == "open" and not withheld:
        narrowed = narrowed.where(_is_open(item))
    return narrowed.subquery("wanted")


def _has_any(table: Table, filters: Filters) -> bool:
    """Whether filters leave anything of a table: names and labels belong to no contest, and labels to no agent."""
    if table is TEXTS:
        return filters.kind not in ("name", "model")
    if table is MODELS and (filters.agent or filters.asked):
        return False
    return not filters.contest and filters.kind in ("", "name" if table is AGENTS else "model")


def _id_of_label() -> ColumnElement[UUID]:
    """``desk.Key.of`` a label in the place of an id."""
    return cast(func.left(_hash_of(MODELS.c.model), 32), Uuid)


def _nothing() -> Subquery:
    """No item, in the form of :func:`_items`."""
    names = _names().add_columns(AGENTS.c.name.label("agent_name"))
    keys = {"asked_key": literal(0), "judged_key": literal(0), "about": AGENTS.c.agent_id, "at": literal("")}
    return names.add_columns(*(key.label(name) for name, key in keys.items())).where(false()).subquery("item")


def _is_open(item: Subquery) -> ColumnElement[bool]:
    """Whether a person has yet to look at what is withheld."""
    return or_(item.c.judged_by.is_(None), item.c.review_requested_at.is_not(None))


def _micros(at: ColumnElement[Any]) -> ColumnElement[int]:
    return cast(func.extract("epoch", at) * 1_000_000, BigInteger)


def _place(key: Key) -> Any:
    return tuple_(
        literal(key.asked, BigInteger),
        literal(key.judged, BigInteger),
        literal(key.about, Uuid),
        literal(key.pointer, Text),
    )


def _literally(words: str) -> str:
    """Words for a pattern that stand for themselves."""
    return "".join(f"\\{one}" if one in "\\%_" else one for one in words)


# --- the external model ---


@dataclass(frozen=True)
class Scope:
    """About which texts the external model may be asked, and under which name its verdicts are kept.

    ``together``: one verdict on a text holds for whoever wrote it, else for its agent alone. ``now`` is the
    contests' time, which a replay sets.
    """

    asker: str
    together: bool
    before_lock: bool
    unclaimed: bool
    now: ColumnElement[datetime]


@dataclass(frozen=True)
class ToAsk:
    """A text that the external model is to be asked about; ``attempts`` have failed."""

    place: Place
    text_hash: str
    scope: str
    text: str
    attempts: int
    alone: bool


@dataclass(frozen=True)
class Opened:
    """An answer to what a text waits for; ``length`` is the text's, in code points."""

    place: Place
    length: int
    state: State
    rules: Sequence[str]


@dataclass(frozen=True)
class Spent:
    """What was spent in a period."""

    requests: int = 0
    texts: int = 0
    tokens: int = 0


class ExternalStore:
    """All reads and writes about the external model, on one connection and so in one transaction."""

    def __init__(self, connection: AsyncConnection) -> None:
        self.connection = connection

    async def hold(self, asker: str) -> Breaker:
        """The breaker of a model, held: one copy at a time takes texts or tells of an answer."""
        await self.connection.execute(insert(EXTERNAL_STATE).values(asker=asker).on_conflict_do_nothing())
        query = select(EXTERNAL_STATE).where(EXTERNAL_STATE.c.asker == asker).with_for_update()
        row = (await self.connection.execute(query)).one()
        return Breaker(row.failures, row.open_until, row.probe_until)

    async def breaker(self, asker: str) -> Breaker:
        """The breaker of a model, as it is."""
        query = select(EXTERNAL_STATE).where(EXTERNAL_STATE.c.asker == asker)
        row = (await self.connection.execute(query)).one_or_none()
        return Breaker() if row is None else Breaker(row.failures, row.open_until, row.probe_until)

    async def keep_breaker(self, asker: str, breaker: Breaker) -> None:
        """Keep the breaker that :meth:`hold` holds."""
        of_asker = update(EXTERNAL_STATE).where(EXTERNAL_STATE.c.asker == asker)
        await self.connection.execute(of_asker.values(**asdict(breaker)))

    async def spent(self, periods: Mapping[str, datetime]) -> Mapping[str, Spent]:
        """What was spent in periods, given by name and beginning."""
        wanted = tuple_(EXTERNAL_SPENT.c.period, EXTERNAL_SPENT.c.begins_at).in_(list(periods.items()))
        rows = (await self.connection.execute(select(EXTERNAL_SPENT).where(wanted))).all()
        found = {row.period: Spent(row.requests, row.texts, row.tokens) for row in rows}
        return {period: found.get(period, Spent()) for period in periods}

    async def spend(self, periods: Mapping[str, datetime], more: Spent) -> None:
        """Count something in each of these periods; what is negative gives back."""
        adding = insert(EXTERNAL_SPENT)
        news = {
            name: func.greatest(EXTERNAL_SPENT.c[name] + adding.excluded[name], 0)
            for name in ("requests", "texts", "tokens")
        }
        await self.connection.execute(
            adding.on_conflict_do_update(index_elements=["period", "begins_at"], set_=news),
            [{"period": period, "begins_at": at, **asdict(more)} for period, at in periods.items()],
        )

    async def forget_minutes(self, before: datetime) -> None:
        """Forget what was spent in minutes long past; days are kept."""
        past = and_(EXTERNAL_SPENT.c.period == "minute", EXTERNAL_SPENT.c.begins_at < before)
        await self.connection.execute(delete(EXTERNAL_SPENT).where(past))

    async def contests_to_ask(self, scope: Scope) -> Sequence[tuple[str, bool]]:
        """Contests of which texts may be asked about, and whether each is locked: the lock nearest to now first."""
        distance = func.abs(func.extract("epoch", CONTESTS.c.locks_at - scope.now))
        locked = CONTESTS.c.locked_at.is_not(None)
        waits = exists().where(TEXTS.c.contest == CONTESTS.c.contest, _WAITS)
        query = select(CONTESTS.c.contest, locked).where(CONTESTS.c.cancelled_at.is_(None), waits)
        if not scope.before_lock:
            query = query.where(locked)
        rows = await self.connection.execute(query.order_by(distance.asc().nulls_last(), CONTESTS.c.contest))
        return [(row[0], row[1]) for row in rows]

    async def to_ask(
        self, scope: Scope, contest: str, now: datetime, limit: int, *, locked: bool, untried: bool = False
    ) -> Sequence[ToAsk | Opened]:
        """Texts of a contest that may be asked about, an agent's beside each other, and answers that are there already.

        Those that are leased, or that failed and rest until after ``now`` (which is true time), are left out; with
        ``untried`` all that ever failed.
        """
        asked = EXTERNAL_VERDICTS.c
        attempts = func.coalesce(asked.attempts, 0)
        resting = func.coalesce(or_(asked.ask_after > now, asked.leased_until > now), false())
        query = (
            select(
                *_OPENED,
                TEXTS.c.text_hash,
                _of_whom(scope).label("scope"),
                TEXTS.c.text,
                attempts.label("attempts"),
                func.coalesce(asked.alone, false()).label("alone"),
            )
            .where(or_(asked.state.is_not(None), ~resting))
            .order_by(TEXTS.c.lineup_id, TEXTS.c.pointer)
            .limit(limit)
        )
        if untried:
            query = query.where(attempts == 0)
        return [
            _opened(row)
            if row.state is not None
            else ToAsk(
                Place(row.lineup_id, row.revision, row.pointer),
                row.text_hash,
                row.scope,
                row.text,
                row.attempts,
                row.alone,
            )
            for row in await self.connection.execute(_askable(query, scope, contest, locked))
        ]

    async def hold_to_ask(self, texts: Sequence[ToAsk]) -> Sequence[ToAsk]:
        """Those of the texts that :meth:`to_ask` read that may still be asked about, held until they are leased.

        This waits for nobody: what somebody else holds, to let its words go say, is left for the next time.
        """
        query = select(*_KEY).where(tuple_(*_KEY).in_([tuple(of.place) for of in texts]), _WAITS)
        rows = await self.connection.execute(query.with_for_update(skip_locked=True))
        held = {Place(row.lineup_id, row.revision, row.pointer) for row in rows}
        return [of for of in texts if of.place in held]

    async def lease(self, asker: str, texts: Sequence[ToAsk], lease: UUID, until: datetime) -> None:
        """Take texts that :meth:`to_ask` gave while :meth:`hold` holds; nobody else asks about them until then."""
        taking = insert(EXTERNAL_VERDICTS)
        await self.connection.execute(
            taking.on_conflict_do_update(
                index_elements=["asker", "scope", "text_hash"],
                set_={"lease": taking.excluded.lease, "leased_until": taking.excluded.leased_until},
                where=EXTERNAL_VERDICTS.c.state.is_(None),
            ),
            [
                {"asker": asker, "scope": of.scope, "text_hash": of.text_hash, "lease": lease, "leased_until": until}
                for of in texts
            ],
        )

    async def answered(self, asker: str, answers: Sequence[tuple[ToAsk, Verdict, Mapping[str, Any]]]) -> None:
        """Keep answers, each with ``scores`` and ``model``. The first answer on a text stands."""
        statement = (
            update(EXTERNAL_VERDICTS)
            .where(*_of_asked(asker))
            .values(
                state=bindparam("new_state"),
                rules=bindparam("new_rules"),
                scores=bindparam("new_scores"),
                model=bindparam("new_model"),
                answered_at=func.clock_timestamp(),
                cause=None,
                ask_after=None,
                lease=None,
                leased_until=None,
            )
        )
        rows = [
            {
                "of_scope": of.scope,
                "of_hash": of.text_hash,
                "new_state": verdict.state.value,
                "new_rules": [finding.rule for finding in verdict.findings],
                "new_scores": said["scores"],
                "new_model": said["model"],
            }
            for of, verdict, said in answers
        ]
        await self.connection.execute(statement, rows)

    async def failed(self, asker: str, lease: UUID, texts: Sequence[tuple[ToAsk, datetime]], cause: Cause) -> None:
        """Keep that there was no answer about texts under a lease, and after which instant to ask about each again."""
        statement = (
            update(EXTERNAL_VERDICTS)
            .where(*_of_asked(asker), EXTERNAL_VERDICTS.c.lease == lease)
            .values(
                attempts=EXTERNAL_VERDICTS.c.attempts + 1,
                cause=cause.value,
                alone=or_(EXTERNAL_VERDICTS.c.alone, literal(cause.of_the_text)),
                ask_after=bindparam("new_ask_after"),
                lease=None,
                leased_until=None,
            )
        )
        rows = [{"of_scope": of.scope, "of_hash": of.text_hash, "new_ask_after": after} for of, after in texts]
        await self.connection.execute(statement, rows)

    async def opened(self, scope: Scope, hashes: Sequence[str], limit: int) -> Sequence[Opened]:
        """Answers about these words to all texts that wait for them, whoever's and wherever they are."""
        # The planner has no statistics of hashes, for they must be able to go for good (M6): without OFFSET it would
        # rather read all texts in the order of their key. So each hash, and each text of one, is looked up by index.
        given = func.unnest(cast(sorted(set(hashes)), ARRAY(Text))).table_valued("text_hash").render_derived("given")
        word = given.c.text_hash
        held = select(*_KEY, TEXTS.c.agent_id, func.length(TEXTS.c.text).label("length"))
        waiting = held.where(_WAITS, TEXTS.c.text_hash == word).offset(0).lateral("waiting")
        asked = EXTERNAL_VERDICTS.c
        of_whom = literal("", Text) if scope.together else cast(waiting.c.agent_id, Text)
        of_words = (asked.asker == scope.asker, asked.scope == of_whom, asked.text_hash == word)
        answer = select(asked.state, asked.rules).where(*of_words, asked.state.is_not(None)).offset(0).lateral("answer")
        query = (
            select(waiting, answer)
            .select_from(given.join(waiting, true()).join(answer, true()))
            .order_by(*(waiting.c[column.name] for column in _KEY))
            .limit(limit)
        )
        return [_opened(row) for row in await self.connection.execute(query)]

    async def waiting(self, scope: Scope) -> tuple[int, float]:
        """How many texts the model may be asked about now and has not answered; for how many seconds the oldest."""
        texts, oldest = 0, 0.0
        for contest, locked in await self.contests_to_ask(scope):
            since = func.min(func.greatest(TEXTS.c.pipeline_at, CONTESTS.c.locked_at))
            age = func.coalesce(func.extract("epoch", func.clock_timestamp() - since), 0)
            counted: Any = select(func.count().label("texts"), age.label("oldest"))
            query = _askable(counted, scope, contest, locked).join(CONTESTS, CONTESTS.c.contest == TEXTS.c.contest)
            row = (await self.connection.execute(query.where(EXTERNAL_VERDICTS.c.state.is_(None)))).one()
            texts, oldest = texts + row.texts, max(oldest, float(row.oldest))
        return texts, oldest


_WAITS = and_(
    TEXTS.c.asks_external,
    # Written out, so that PostgreSQL sees that the index of these texts has them all.
    TEXTS.c.state == literal_column(f"'{State.UNCHECKED.value}'"),
    TEXTS.c.pipeline_state == State.CLEARED.value,
    TEXTS.c.hand.is_(None),
    TEXTS.c.redacted_at.is_(None),
)
"""Nothing but the want of the external model's word keeps such a text from being cleared."""

_OPENED = (
    *_KEY,
    func.length(TEXTS.c.text).label("length"),
    EXTERNAL_VERDICTS.c.state.label("state"),
    EXTERNAL_VERDICTS.c.rules,
)


def _opened(row: Any) -> Opened:
    return Opened(Place(row.lineup_id, row.revision, row.pointer), row.length, State(row.state), row.rules)


def _of_whom(scope: Scope) -> ColumnElement[str]:
    return literal("", Text) if scope.together else cast(TEXTS.c.agent_id, Text)


def _answers(scope: Scope) -> ColumnElement[bool]:
    return and_(
        EXTERNAL_VERDICTS.c.asker == scope.asker,
        EXTERNAL_VERDICTS.c.scope == _of_whom(scope),
        EXTERNAL_VERDICTS.c.text_hash == TEXTS.c.text_hash,
    )


def _of_asked(asker: str) -> Sequence[ColumnElement[bool]]:
    return (
        EXTERNAL_VERDICTS.c.asker == asker,
        EXTERNAL_VERDICTS.c.scope == bindparam("of_scope"),
        EXTERNAL_VERDICTS.c.text_hash == bindparam("of_hash"),
        EXTERNAL_VERDICTS.c.state.is_(None),
    )


def _askable(query: Select[Any], scope: Scope, contest: str, locked: bool) -> Select[Any]:
    """A query over the texts of a contest that may be asked about: of final revisions, before the lock of the newest.

    It goes out from the lineups, and from those that are claimed: what is never asked about costs nothing here.
    """
    of_contest = TEXTS.c.contest == contest
    if locked:
        of_final = and_(TEXTS.c.lineup_id == FINALS.c.lineup_id, TEXTS.c.revision == FINALS.c.revision)
        query = query.select_from(FINALS).join(TEXTS, and_(of_contest, of_final)).where(FINALS.c.contest == contest)
    else:
        later = TEXTS.alias()
        superseded = exists().where(later.c.lineup_id == TEXTS.c.lineup_id, later.c.revision > TEXTS.c.revision)
        query = query.select_from(TEXTS).where(of_contest, ~superseded)
    if not scope.unclaimed:
        agent = FINALS.c.agent_id if locked else TEXTS.c.agent_id
        query = query.join(CLAIMS, and_(CLAIMS.c.agent_id == agent, CLAIMS.c.claimed))
    return query.outerjoin(EXTERNAL_VERDICTS, _answers(scope)).where(_WAITS)
