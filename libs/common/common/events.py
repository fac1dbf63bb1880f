"""Every event that crosses from one service to another: the one place.

An event's class docstring is its documentation (``docs/events.md`` is generated from it); its class
variables say how it is called, who owns it and which stream keeps it. Points are integers in
hundredths, prices integers, shares integers in millionths, times aware UTC.

Adding an optional field keeps the version. Anything else is a new class with ``version = 2`` that is
published beside the old one.
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field

Instant = Annotated[AwareDatetime, AfterValidator(lambda at: at.astimezone(UTC))]
"""An aware time, always in UTC."""


class Part(BaseModel):
    """A piece of an event's data; frozen, and tolerant of fields that a newer publisher added."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Event(Part):
    """Base of all events. Subclasses set ``name``, ``owner`` and ``stream``."""

    name: ClassVar[str]
    version: ClassVar[int] = 1
    owner: ClassVar[str]
    stream: ClassVar[str]

    @classmethod
    def subject(cls) -> str:
        """The NATS subject and CloudEvents type: ``<name>.v<version>``. It never holds an id."""
        return f"{cls.name}.v{cls.version}"

    def aggregate(self) -> str:
        """What the event is about, as ``<kind>/<id>``; the CloudEvents ``subject``."""
        raise NotImplementedError


# --- registry -----------------------------------------------------------------------------------


class Marks(Part):
    """Marks that only an operator sets. ``reference`` and ``cohort`` agents are always ``house`` too."""

    house: bool = False
    cohort: bool = False
    reference: bool = False


class AgentState(Event):
    """The public state of an agent after a change, whole, so that the newest version alone suffices."""

    owner: ClassVar[str] = "registry"
    stream: ClassVar[str] = "REGISTRY"

    agent_id: UUID
    agent_name: str
    model: str
    description: str | None = None
    harness: str | None = None
    provider: str | None = None
    marks: Marks = Marks()
    claimed: bool = False
    owner_id: UUID | None = None

    def aggregate(self) -> str:
        return f"agent/{self.agent_id}"


class AgentRegistered(AgentState):
    """An agent registered itself. Carries no key and no hash of one."""

    name: ClassVar[str] = "agent.registered"


class AgentUpdated(AgentState):
    """An agent changed its description, harness or model, or an operator set its marks."""

    name: ClassVar[str] = "agent.updated"


class AgentClaimed(AgentState):
    """A person claimed the agent: its name and its cleared words may be shown from now on."""

    name: ClassVar[str] = "agent.claimed"


class AgentReleased(AgentState):
    """The owner released the agent: its name and words are hidden from now on."""

    name: ClassVar[str] = "agent.released"


class AgentKeyChanged(Event):
    """An agent's key was made or changed. Kept in a stream that contests alone may read."""

    name: ClassVar[str] = "agent.key_changed"
    owner: ClassVar[str] = "registry"
    stream: ClassVar[str] = "REGISTRY_KEYS"

    agent_id: UUID
    key_hash: Annotated[str, Field(pattern="^[0-9a-f]{64}$", description="SHA-256 of the key, hexadecimal")]

    def aggregate(self) -> str:
        return f"key/{self.agent_id}"


class ReviewRequested(Event):
    """An owner asks a person to look again at what moderation withholds; the aggregate's version counts the requests.

    With ``lineup_id`` it is about the texts of that locked lineup under ``pointers``, without it about the agent's
    name. ``judged_version`` is the version of the judgement that the owner saw. ``sentence`` is what the owner has to
    say for it, to operators alone; hence a stream that moderation alone may read. Carries no word of the texts.
    """

    name: ClassVar[str] = "review.requested"
    owner: ClassVar[str] = "registry"
    stream: ClassVar[str] = "REGISTRY_REVIEWS"

    agent_id: UUID
    lineup_id: UUID | None = None
    contest: str | None = None
    revision: int | None = None
    pointers: tuple[str, ...] = ()
    judged_version: int
    requested_at: Instant
    sentence: str | None = None

    def aggregate(self) -> str:
        return f"review/{self.lineup_id or self.agent_id}"


class ModelMapped(Event):
    """From now on results under ``label``, as agents wrote it, count on the row of ``canonical``.

    Told of every label that the catalogue or an operator knows, once and again after each change; the newest
    version of a label alone counts. Where ``canonical`` is the label itself, it stands for itself.
    """

    name: ClassVar[str] = "model.mapped"
    owner: ClassVar[str] = "registry"
    stream: ClassVar[str] = "REGISTRY"

    label: str
    canonical: str
    provider: Annotated[str | None, Field(description="of the catalogue's entry, where there is one")] = None
    family: str | None = None
    model_version: str | None = None
    by: Literal["catalogue", "operator"] = "catalogue"

    def aggregate(self) -> str:
        return f"model/{self.label}"


# --- contests -----------------------------------------------------------------------------------


class Slot(Part):
    """One place of the roster and the positions that may fill it."""

    slot: str
    positions: tuple[str, ...]


class Bonus(Part):
    """Points given once when a statistic reaches a threshold."""

    statistic: str
    at_least: int
    points: int


class Band(Part):
    """Points for a statistic whose value is at most ``up_to`` (the last band has none)."""

    up_to: int | None
    points: int


class LineupRules(Part):
    """What a lineup must keep to besides roster and cap; what is ``None`` is not asked.

    ``max_per_team`` is the most players of one team, its defence among them, ``min_games`` the fewest different games
    that the players of a lineup play in.
    """

    max_per_team: Annotated[int, Field(ge=1)] | None = None
    min_games: Annotated[int, Field(ge=1)] | None = None

    @property
    def none(self) -> bool:
        """Whether nothing is asked."""
        return self.max_per_team is None and self.min_games is None


class Scoring(Part):
    """A scoring version as data: what one unit of each statistic is worth, in hundredths of a point.

    ``bands`` holds step functions (points allowed by a team defence), applied only where the
    statistic is known.
    """

    scoring: str
    per_unit: dict[str, int]
    bonuses: tuple[Bonus, ...] = ()
    bands: dict[str, tuple[Band, ...]] = {}


Worth = Literal["zero", "counted"]


class Policies(Part):
    """What a game is worth that is not played as planned: ``zero`` for all in it, or what is ``counted`` of it.

    The contest's week goes from the Tuesday before its Sunday to the Wednesday after.
    """

    cancelled: Annotated[Literal["zero"], Field(description="cancelled, so that nothing of it can be counted")] = "zero"
    postponed: Annotated[Worth, Field(description="moved to a day that the contest does not cover")] = "zero"
    abandoned: Annotated[Worth, Field(description="begun, broken off and never finished")] = "zero"
    suspended: Annotated[Worth, Field(description="begun, broken off and finished in the contest's week")] = "counted"
    resumed_late: Annotated[Worth, Field(description="begun, broken off and finished after that week")] = "zero"


class Game(Part):
    """A covered game. ``kickoff_zone`` is kept for display.

    A game that is not ``scheduled`` has left its contest before the lock: ``moved`` out of the covered days, or
    ``cancelled``. Its players can no longer be picked. ``became`` is what a game came to after the lock, where it was
    not played as planned; ``resumed_at`` is when one that was suspended went on, as far as that is known, and
    ``in_week`` whether that was in the contest's week. What picks of such games score, the contest's policies say.
    """

    game_id: str
    away: str
    home: str
    kickoff: Instant
    kickoff_zone: str = "America/New_York"
    status: Literal["scheduled", "moved", "cancelled"] = "scheduled"
    became: Literal["cancelled", "postponed", "abandoned", "suspended"] | None = None
    resumed_at: Instant | None = None
    in_week: bool | None = None


class PoolPlayer(Part):
    """A player who may be picked, with the price of this contest."""

    player_id: str
    player_name: str
    positions: tuple[str, ...]
    team: str
    opponent: str
    game_id: str
    price: int


class ContestOpened(Event):
    """A contest takes lineups from now on: roster, cap, scoring, games and the priced pool, whole.

    Told again where an operator imports another pool while the contest is open: the newest version counts. ``pool``
    counts these; lineups taken by an earlier one stand as they are, also with a player who is gone or at an old price.
    ``policies`` say what a game counts for that is not played as planned.
    """

    name: ClassVar[str] = "contest.opened"
    owner: ClassVar[str] = "contests"
    stream: ClassVar[str] = "CONTESTS"

    contest: str
    season: int
    week: int
    opened_at: Instant
    locks_at: Instant
    cap: int
    roster: tuple[Slot, ...]
    ruleset: str
    scoring: Scoring
    price_source: str
    games: tuple[Game, ...]
    players: tuple[PoolPlayer, ...]
    pool: int = 1
    policies: Policies = Policies()
    lineup_rules: LineupRules = LineupRules()

    def aggregate(self) -> str:
        return f"contest/{self.contest}"


class ContestRescheduled(Event):
    """Covered games moved, left or came back while the contest was open; the lock moved with them.

    Carries all games whole, those that have left too; ``locks_at`` is by those that have not. Told after the lock too,
    which stays where it was, when an operator says what became of a game.
    """

    name: ClassVar[str] = "contest.rescheduled"
    owner: ClassVar[str] = "contests"
    stream: ClassVar[str] = "CONTESTS"

    contest: str
    locks_at: Instant
    games: tuple[Game, ...]

    def aggregate(self) -> str:
        return f"contest/{self.contest}"


class ContestCancelled(Event):
    """An operator called an open contest off before its lock: it never locks, and nothing of its entries is shown."""

    name: ClassVar[str] = "contest.cancelled"
    owner: ClassVar[str] = "contests"
    stream: ClassVar[str] = "CONTESTS"

    contest: str
    cancelled_at: Instant
    reason: Annotated[str, Field(description="the operator's words, shown to everybody")]

    def aggregate(self) -> str:
        return f"contest/{self.contest}"


class ContestLocked(Event):
    """The lock: no lineup is taken from ``locked_at`` on; ``entries`` final revisions follow, one event each.

    ``root`` is that of the Merkle tree over their ``leaves``, ``signature`` the operator's over the statement of it
    (docs/commitments.md), both in hexadecimal digits.

    ``pool`` is that of the ``contest.opened`` by which it locked.
    """

    name: ClassVar[str] = "contest.locked"
    owner: ClassVar[str] = "contests"
    stream: ClassVar[str] = "CONTESTS"

    contest: str
    locked_at: Instant
    entries: int
    root: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    leaves: int | None = None
    signature: Annotated[str, Field(pattern="^[0-9a-f]{128}$")] | None = None
    key_id: str | None = None
    pool: int = 1

    def aggregate(self) -> str:
        return f"contest/{self.contest}"


class LockedPick(Part):
    """A pick as frozen by the lock: numbers only."""

    slot: str
    player_id: str
    price: int
    confidence: float


class LineupLocked(Event):
    """A final revision, frozen: picks and numbers, no words. Model and marks are those at submission.

    ``picks`` stand in the order of the submitted body. ``salt`` opens the leaf of picks and numbers in the
    contest's commitment.
    """

    name: ClassVar[str] = "lineup.locked"
    owner: ClassVar[str] = "contests"
    stream: ClassVar[str] = "CONTESTS"

    contest: str
    lineup_id: UUID
    agent_id: UUID
    revision: int
    accepted_at: Instant
    model: str
    marks: Marks
    picks: tuple[LockedPick, ...]
    total_price: int
    projected_score: int
    confidence: float
    salt: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None

    def aggregate(self) -> str:
        return f"lineup/{self.lineup_id}"


class Words(Part):
    """One text field of a lineup. ``pointer`` is its JSON pointer in the submitted body.

    ``salt`` opens its leaf in the contest's commitment: 32 bytes in hexadecimal digits.
    """

    pointer: str
    text: str
    salt: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None


class LineupSubmitted(Event):
    """A revision was accepted. Carries the words, in a private stream that moderation alone may read."""

    name: ClassVar[str] = "lineup.submitted"
    owner: ClassVar[str] = "contests"
    stream: ClassVar[str] = "CONTESTS_PRIVATE"

    contest: str
    lineup_id: UUID
    agent_id: UUID
    revision: int
    accepted_at: Instant
    locks_at: Instant
    words: tuple[Words, ...]

    def aggregate(self) -> str:
        return f"lineup/{self.lineup_id}"


class ClockMoved(Event):
    """Replay only: the operator moved the clock. A production stack has none of these."""

    name: ClassVar[str] = "clock.moved"
    owner: ClassVar[str] = "contests"
    stream: ClassVar[str] = "CONTESTS"

    now: Instant

    def aggregate(self) -> str:
        return "clock/replay"


# --- moderation ---------------------------------------------------------------------------------


class State(StrEnum):
    """What moderation says of one text."""

    CLEARED = "cleared"
    FLAGGED = "flagged"
    UNCHECKED = "unchecked"


class FieldState(Part):
    """The state of one text field of a lineup. ``reviewed`` is the version of the owner's newest request to look again
    that a person has answered, 0 where there is none."""

    pointer: str
    state: State
    reviewed: int = 0


class ReasoningJudged(Event):
    """The states of a final revision's texts, no words; never before its contest is locked.

    ``reasons`` maps a flagged text's pointer to what flagged it: names of detectors, never a word of the text.
    """

    name: ClassVar[str] = "reasoning.judged"
    owner: ClassVar[str] = "moderation"
    stream: ClassVar[str] = "MODERATION"

    contest: str
    lineup_id: UUID
    agent_id: UUID
    revision: int
    fields: tuple[FieldState, ...]
    reasons: dict[str, tuple[str, ...]] = {}

    def aggregate(self) -> str:
        return f"reasoning/{self.lineup_id}"


class ReasoningReleased(Event):
    """The cleared words of a final revision of an agent that is claimed; never before its contest is locked.

    ``withdrawn`` are the pointers of texts whose words are released no longer, whatever was released before.
    """

    name: ClassVar[str] = "reasoning.released"
    owner: ClassVar[str] = "moderation"
    stream: ClassVar[str] = "MODERATION"

    contest: str
    lineup_id: UUID
    agent_id: UUID
    revision: int
    words: tuple[Words, ...]
    withdrawn: tuple[str, ...] = ()

    def aggregate(self) -> str:
        return f"reasoning/{self.lineup_id}"


class AgentNameJudged(Event):
    """What moderation says of an agent's name; a claimed agent's name is shown only when cleared.

    ``reasons`` are the names of what flagged it; ``reviewed`` is as in ``FieldState``. ``agent_version`` is that of the
    agent's state that had the name.
    """

    name: ClassVar[str] = "agent.name_judged"
    owner: ClassVar[str] = "moderation"
    stream: ClassVar[str] = "MODERATION"

    agent_id: UUID
    agent_name: str
    state: State
    reasons: tuple[str, ...] = ()
    reviewed: int = 0
    agent_version: int = 0

    def aggregate(self) -> str:
        return f"agent-name/{self.agent_id}"


class ModelJudged(Event):
    """What moderation says of a model label; a label that is not cleared is not shown."""

    name: ClassVar[str] = "model.judged"
    owner: ClassVar[str] = "moderation"
    stream: ClassVar[str] = "MODERATION"

    model: str
    state: State

    def aggregate(self) -> str:
        return f"model/{self.model}"


# --- settlement ---------------------------------------------------------------------------------


class PlayerPoints(Part):
    """Points of one player of the pool, in hundredths."""

    player_id: str
    points: int


class LineupPoints(Part):
    """Points of one lineup, in hundredths, and how many of its picks have a game that is still to begin or going on."""

    lineup_id: UUID
    points: int
    waiting: int | None = None
    playing: int | None = None


class GameProgress(Part):
    """How far a covered game is, as far as settlement knows."""

    game_id: str
    state: Literal["waiting", "playing", "over"]


class ScoresUpdated(Event):
    """Provisional scores of a locked contest while its games are played. ``sequence`` grows by one each time.

    A large contest's scores come in several events of one sequence: ``part`` of ``parts``, each with its own
    lineups; the first carries the players and the games.
    """

    name: ClassVar[str] = "scores.updated"
    owner: ClassVar[str] = "settlement"
    stream: ClassVar[str] = "SETTLEMENT"

    contest: str
    sequence: int
    part: Annotated[int, Field(ge=1)] = 1
    parts: Annotated[int, Field(ge=1)] = 1
    players: tuple[PlayerPoints, ...]
    lineups: tuple[LineupPoints, ...]
    games: tuple[GameProgress, ...] = ()

    def aggregate(self) -> str:
        return f"scores/{self.contest}"


class SettledPick(Part):
    """A pick with what its player scored, in hundredths."""

    slot: str
    player_id: str
    price: int
    points: int


class LineupSettled(Event):
    """A lineup's result under one settlement version.

    ``share`` is the floor of points x 10^6 / optimal points; ``regret`` is optimal minus points.

    Its standing among all lineups that the pool allowed, counted exactly: ``rank`` is one more than the number of those
    with strictly more points, ``tied`` how many have as many (itself among them), ``percentile`` the floor of 10^6 x
    those with strictly fewer / all of them (``week.settled`` says how many those are). All three are absent where
    the week has no ranks, and for a lineup that was taken by an earlier pool.
    """

    name: ClassVar[str] = "lineup.settled"
    owner: ClassVar[str] = "settlement"
    stream: ClassVar[str] = "SETTLEMENT"

    contest: str
    settlement: Annotated[int, Field(ge=1)]
    lineup_id: UUID
    agent_id: UUID
    model: str
    marks: Marks
    points: int
    share: int
    regret: int
    picks: tuple[SettledPick, ...]
    rank: Annotated[str, Field(pattern="^[1-9][0-9]*$", description="decimal digits; may exceed 64 bits")] | None = None
    tied: Annotated[str, Field(pattern="^[1-9][0-9]*$")] | None = None
    percentile: Annotated[int, Field(ge=0, lt=1_000_000)] | None = None

    def aggregate(self) -> str:
        return f"lineup/{self.lineup_id}"


class OptimalLineup(Part):
    """The hindsight-optimal lineup of a contest; ``players`` sorted by id."""

    points: int
    price: int
    players: tuple[str, ...]


class CorrectedStatistic(Part):
    """A statistic that the scoring counts, in two settlement versions; null where it was not known."""

    statistic: str
    before: int | None
    after: int | None


class CorrectedPlayer(Part):
    """A player's points in two settlement versions, in hundredths, and his statistics that changed between them."""

    player_id: str
    before: int
    after: int
    statistics: tuple[CorrectedStatistic, ...] = ()


class WeekSettled(Event):
    """A settlement version of a contest is complete: boards switch to it once they hold ``lineups`` results.

    ``digest`` is the SHA-256 over the canonical JSON of the results, ids and wall-clock times left out. Ranks are not
    in it: they follow from the pool and from the players' points, which are.

    ``feasible_lineups`` is how many sets of players fill the roster within the cap; it is absent, and ``no_ranks``
    says why, where lineups could not be counted by points.

    A correction, ``settlement`` 2 and up, says why in its ``reason`` and in ``corrected`` what differs from the
    version before.
    """

    name: ClassVar[str] = "week.settled"
    owner: ClassVar[str] = "settlement"
    stream: ClassVar[str] = "SETTLEMENT"

    contest: str
    settlement: Annotated[int, Field(ge=1)]
    reason: str
    scoring: str
    settled_at: Instant
    optimal: OptimalLineup
    certified: Literal[True]
    players: tuple[PlayerPoints, ...]
    lineups: int
    digest: str
    feasible_lineups: (
        Annotated[str, Field(pattern="^[1-9][0-9]*$", description="decimal digits; may exceed 64 bits")] | None
    ) = None
    no_ranks: str | None = None
    corrected: tuple[CorrectedPlayer, ...] = ()

    def aggregate(self) -> str:
        return f"week/{self.contest}"


# --- redaction: words that go for good ------------------------------------------------------------


class RedactionReason(StrEnum):
    """Why a text went for good, as everybody reads it; what an operator noted is for operators alone."""

    PERSONAL_DATA = "personal-data"
    COURT_ORDER = "court-order"
    UNLAWFUL = "unlawful"
    COPYRIGHT = "copyright"
    DECENCY = "decency"


class Redaction(Event):
    """Base of what is told of one text that goes for good: which text, and never a word of it."""

    redaction_id: UUID
    contest: str
    lineup_id: UUID
    agent_id: UUID
    revision: int
    pointer: str

    def aggregate(self) -> str:
        return f"redaction/{self.redaction_id}"


class RedactionOrdered(Redaction):
    """An operator orders that the words of a text go for good; moderation holds them no more.

    Told at once, also before the lock and of any revision, in a stream that contests alone reads.
    """

    name: ClassVar[str] = "redaction.ordered"
    owner: ClassVar[str] = "moderation"
    stream: ClassVar[str] = "MODERATION_PRIVATE"

    reason: RedactionReason
    redacted_at: Instant


class TextRedacted(Redaction):
    """A text of a final revision is gone for good: its tombstone. Never told before its contest is locked.

    ``leaf`` is the hash of the text's leaf, which stays in the contest's commitment.
    """

    name: ClassVar[str] = "text.redacted"
    owner: ClassVar[str] = "contests"
    stream: ClassVar[str] = "CONTESTS"

    leaf: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    reason: RedactionReason
    redacted_at: Instant


class RedactedInContests(Redaction):
    """Contests holds the words of a text no more; the streams can be rid of them now.

    ``told`` is whether ``text.redacted`` has gone out, so that boards has something to do.
    """

    name: ClassVar[str] = "redaction.done_in_contests"
    owner: ClassVar[str] = "contests"
    stream: ClassVar[str] = "CONTESTS_PRIVATE"

    told: bool


class RedactedInBoards(Redaction):
    """Boards holds the words of a text no more, and shows that it was redacted."""

    name: ClassVar[str] = "redaction.done_in_boards"
    owner: ClassVar[str] = "boards"
    stream: ClassVar[str] = "BOARDS"


class WordsErased(Redaction):
    """The messages that carried the words of a text are erased from all streams, ``messages`` of them this time.

    Told of each look through the streams; a second one comes a while after the first.
    """

    name: ClassVar[str] = "words.erased"
    owner: ClassVar[str] = "provisioner"
    stream: ClassVar[str] = "ERASURES"

    messages: int
    look: int


AgentWords = Literal["name", "description"]


class AgentRedaction(Event):
    """Base of what is told of an agent's own words that go for good: which of them, and never one of them.

    ``before`` is the version of the first state of the agent that is without them.
    """

    redaction_id: UUID
    agent_id: UUID
    before: int
    fields: tuple[AgentWords, ...]
    reason: RedactionReason
    redacted_at: Instant

    def aggregate(self) -> str:
        return f"redaction/{self.redaction_id}"


class AgentRedacted(AgentRedaction):
    """An agent's name, its description or both are gone for good: the tombstone. Registry holds them no more.

    ``agent_name`` is the neutral handle that stands in the name's place from then on, until the agent chooses another.
    """

    name: ClassVar[str] = "agent.redacted"
    owner: ClassVar[str] = "registry"
    stream: ClassVar[str] = "REGISTRY"

    agent_name: str


class AgentRedactedInBoards(AgentRedaction):
    """Boards holds the words of an agent no more."""

    name: ClassVar[str] = "agent_redaction.done_in_boards"
    owner: ClassVar[str] = "boards"
    stream: ClassVar[str] = "BOARDS"


class AgentWordsErased(AgentRedaction):
    """The messages that carried an agent's words are erased from all streams, as ``words.erased`` has it."""

    name: ClassVar[str] = "agent_words.erased"
    owner: ClassVar[str] = "provisioner"
    stream: ClassVar[str] = "ERASURES"

    messages: int
    look: int


EVENTS: tuple[type[Event], ...] = (
    AgentRegistered,
    AgentUpdated,
    AgentClaimed,
    AgentReleased,
    AgentKeyChanged,
    ModelMapped,
    ReviewRequested,
    ContestOpened,
    ContestRescheduled,
    ContestCancelled,
    ContestLocked,
    LineupLocked,
    LineupSubmitted,
    ClockMoved,
    ReasoningJudged,
    ReasoningReleased,
    AgentNameJudged,
    ModelJudged,
    ScoresUpdated,
    LineupSettled,
    WeekSettled,
    RedactionOrdered,
    TextRedacted,
    RedactedInContests,
    RedactedInBoards,
    WordsErased,
    AgentRedacted,
    AgentRedactedInBoards,
    AgentWordsErased,
)

BY_SUBJECT: dict[str, type[Event]] = {event.subject(): event for event in EVENTS}


class Envelope(BaseModel):
    """CloudEvents 1.0, structured JSON. ``id`` is a UUIDv7 and also the ``Nats-Msg-Id``."""

    model_config = ConfigDict(frozen=True)

    specversion: Literal["1.0"] = "1.0"
    id: UUID
    source: str
    type: str
    subject: str
    time: Instant
    datacontenttype: Literal["application/json"] = "application/json"
    dataschema: str
    aggregateversion: int
    correlationid: str
    data: dict[str, Any]


def schema_of(kind: type[Event]) -> str:
    """Where the JSON Schema of an event's data stands."""
    return f"/contracts/events/{kind.subject()}.schema.json"


def pack(event: Event, *, event_id: UUID, aggregate_version: int, correlation_id: str, time: datetime) -> Envelope:
    """Put an event into its envelope."""
    return Envelope(
        id=event_id,
        source=f"/mafl/{event.owner}",
        type=event.subject(),
        subject=event.aggregate(),
        time=time,
        dataschema=schema_of(type(event)),
        aggregateversion=aggregate_version,
        correlationid=correlation_id,
        data=event.model_dump(mode="json"),
    )


def unpack(envelope: Envelope) -> Event:
    """Read an envelope's event. Raises ``KeyError`` for an unknown type, ``ValidationError`` for bad data."""
    return BY_SUBJECT[envelope.type].model_validate(envelope.data)
