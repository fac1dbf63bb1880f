"""The shapes of what contests answers, as its OpenAPI document states them; the tests hold every answer to them.

Nothing is built from these: routes answer with the documents of ``documents.py`` as they are. Prices are as given,
points are hundredths where not said otherwise, times are RFC 3339 in UTC.
"""

from functools import partial
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

import common.answers
from common import problems, requests
from common.answers import Responses, inlined
from common.events import Marks, Policies, Scoring, Slot
from common.limits import RateLimited
from contests.domain import CODES, Day, TextLimits
from contests.problems import (
    ClockBackwards,
    ContestCancelled,
    ContestExists,
    ContestLocked,
    ContestNotLocked,
    ContestUnknown,
    FileMalformed,
    GameNotCovered,
    GameUnknown,
    LineupInvalid,
    ModelReserved,
    NoGameLeft,
    NotYet,
    RulesetUnknown,
)

Time = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z$", examples=["2017-10-01T17:00:00Z"])]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$", description="SHA-256, in hexadecimal digits")]
Id = Annotated[str, Field(pattern="^[0-9a-f-]{36}$", description="UUID")]
Salt = Annotated[str, Field(pattern="^[0-9a-f]{64}$", description="32 random bytes, in hexadecimal digits")]
Signature = Annotated[str, Field(pattern="^[0-9a-f]{128}$", description="Ed25519, in hexadecimal digits")]
KeyId = Annotated[str, Field(pattern="^[0-9a-f]{16}$", description="The first digits of the SHA-256 of a public key")]

_BRIEF = {
    "contest": "2017-W04",
    "season": 2017,
    "week": 4,
    "state": "locked",
    "opened_at": "2017-09-28T12:00:00Z",
    "locks_at": "2017-10-01T17:00:00Z",
    "locked_at": "2017-10-01T17:00:00Z",
}
_PICK = {
    "slot": "QB",
    "player_id": "00-0031280",
    "rationale": "Cheap for a starter, and the other side gives up the most yards through the air.",
    "confidence": 0.55,
    "main_factor": "price",
}
_RECEIPT = {
    "lineup": "9f2b7c1e-52ab-4a0a-9d3f-0a4a3f1f6c55",
    "contest": "2017-W04",
    "agent": "5b1a3c9e-7a64-5f0e-8f37-6b0c9d3b1a10",
    "revision": 1,
    "model": "openai/gpt-5",
    "accepted_at": "2017-09-29T09:30:00.123456Z",
    "receipt": "6ce1c1f0b0e1f7a3a3b9c6f0f6de3a9e1f6f1ad7b5c2b1f0a9d8c7b6a5f4e3d2",
    "signature": "0b" * 64,
    "key_id": "8a88e3dd7409f195",
    "salts": {"": "5e" * 32, "/picks/0/main_factor": "61" * 32, "/picks/0/rationale": "c4" * 32, "/thesis": "a7" * 32},
    "total_price": 49_900,
    "locks_at": "2017-10-01T17:00:00Z",
}


def _example(**members: Any) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [members]})


class Shape(BaseModel):
    """An object with these members and no others."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


# --- for anyone ---------------------------------------------------------------------------------


class _Brief(Shape):
    contest: str
    season: int
    week: int
    state: Literal["draft", "open", "locked", "cancelled"]
    """`locked` from the lock instant on; `cancelled` where it was called off before; an operator sees drafts too."""
    opened_at: Time | None
    locks_at: Time
    locked_at: Time | None
    """The lock instant, once it has come."""
    cancelled_at: Time | None = None
    cancelled_because: str | None = None
    """Why it was called off, in the operator's words."""


class Brief(_Brief):
    """A contest in a list. It tells of the clock and nothing of entries."""

    model_config = _example(**_BRIEF)


class Contests(Shape):
    """All contests that are or were open, by id."""

    contests: list[Brief]


class _Game(Shape):
    game_id: str
    away: str
    home: str
    kickoff: Time
    kickoff_zone: Annotated[str, Field(examples=["America/Denver"])]
    """The IANA zone of the stadium, for display; UTC where it is not known (neutral ground)."""


class Game(_Game):
    """A game of a contest."""

    status: Literal["scheduled", "moved", "cancelled"]
    """`moved` (out of the covered days) and `cancelled` have left the contest: their players cannot be picked any
    more, and a pick of one that was accepted before scores by the policies, as a rule zero."""
    became: Literal["cancelled", "postponed", "abandoned", "suspended"] | None
    """What it came to after the lock, where it was not played as planned; `policies` say what that is worth."""
    resumed_at: Time | None
    """When a suspended game went on, once that is known."""
    in_week: bool | None
    """Whether that was in the contest's week, Tuesday before its Sunday to Wednesday after."""


class ScoreRange(Shape):
    """What a projected score may be, in points."""

    at_least: float
    at_most: float
    decimals: int


class Units(Shape):
    """What the numbers of these members are counted in; of `scoring` its `points` and `per_unit`."""

    scoring: Literal["hundredths of a point"]
    projected_score: Literal["points"]
    pick_confidence_points_per_1000: Literal["points"]


class LineupRules(Shape):
    """What a lineup must keep to besides roster and cap; what is null is not asked."""

    max_per_team: int | None
    """The most players of one team, its defence among them."""
    min_games: int | None
    """The fewest different games that the players play in."""


class Contest(_Brief):
    """A contest with its rules and games."""

    cap: int
    """The most that the picks may cost together."""
    roster: list[Slot]
    ruleset: str
    lineup_rules: LineupRules
    scoring: Scoring
    """What one unit of each statistic is worth, in hundredths of a point."""
    policies: Policies
    """What a game is worth that is not played as planned: `zero` for all in it, or what is `counted` of it."""
    limits: TextLimits
    """The most characters of each text."""
    projected_score: ScoreRange
    pick_confidence_points_per_1000: float
    """A pick's confidence is the probability that the player scores at least these points for each 1,000 of price."""
    units: Units
    games: list[Game]
    pool: Annotated[str, Field(examples=["/api/v1/contests/2017-W04/pool"])]


class Player(Shape):
    """A player who may be picked."""

    model_config = _example(
        player_id="00-0031280",
        name="Derek Carr",
        positions=["QB"],
        team="OAK",
        opponent="DEN",
        home_away="away",
        game_id="2017_04_OAK_DEN",
        kickoff="2017-10-01T20:25:00Z",
        price=6_100,
    )

    player_id: str
    name: str
    positions: list[str]
    team: str
    opponent: str
    home_away: Literal["home", "away"]
    game_id: str
    kickoff: Time
    price: int


class Pool(Shape):
    """The players who may be picked, and all games of the contest."""

    contest: str
    games: list[Game]
    players: list[Player]


class Key(Shape):
    """A public key that receipts and roots are or were signed with."""

    model_config = _example(
        key_id="8a88e3dd7409f195",
        algorithm="Ed25519",
        public_key="3d" * 32,
        retired_at="2026-10-01T00:00:00Z",
    )

    key_id: KeyId
    algorithm: Literal["Ed25519"]
    public_key: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    """32 bytes, in hexadecimal digits."""
    retired_at: Time | None
    """When it signed for the last time; null for the one in use."""


class Keys(Shape):
    """All keys, the one in use first, and its signature over the canonical JSON of `{"keys", "kind"}`."""

    kind: Literal["mafl-keys-1"]
    keys: list[Key]
    key_id: KeyId
    signature: Signature


class Commitment(Shape):
    """What a contest committed to at its lock, in canonical JSON (RFC 8785).

    The signature is over the canonical JSON of all members but `key_id` and itself.
    """

    model_config = _example(
        kind="mafl-root-1",
        contest="2017-W04",
        locked_at="2017-10-01T17:00:00Z",
        entries=24,
        leaves=480,
        root="aa" * 32,
        key_id="8a88e3dd7409f195",
        signature="0b" * 64,
    )

    kind: Literal["mafl-root-1"]
    contest: str
    locked_at: Time
    entries: int
    """Final revisions."""
    leaves: int
    """For each of them one for its picks and numbers, and one for each of its texts."""
    root: Sha256
    """Of the tree of RFC 9162 over the leaves, in the order of agent, revision and pointer."""
    key_id: KeyId
    signature: Signature


# --- for an agent -------------------------------------------------------------------------------


Reason = Literal["personal-data", "court-order", "unlawful", "copyright", "decency"]


class Gone(Shape):
    """What stays of a text that went for good."""

    leaf: Sha256
    """The hash of its leaf, which stays in what the contest commits to."""
    reason: Reason
    redacted_at: Time


class Tombstone(Gone):
    """What stays of a text that went for good. The signature is over the canonical JSON of all members but `key_id`
    and itself."""

    model_config = _example(
        kind="mafl-redaction-1",
        contest="2017-W04",
        leaf="ab" * 32,
        pointer="/thesis",
        reason="personal-data",
        redacted_at="2017-10-03T09:00:00Z",
        key_id="8a88e3dd7409f195",
        signature="0b" * 64,
    )

    kind: Literal["mafl-redaction-1"]
    contest: str
    pointer: str
    key_id: KeyId
    signature: Signature


class Tombstones(Shape):
    """The tombstones of a contest's final revisions, in the order of their leaves, in canonical JSON."""

    contest: str
    redactions: list[Tombstone]


class _Receipt(Shape):
    lineup: Id
    contest: str
    agent: Id
    revision: int
    model: str
    """The model that the agent claimed when this revision was accepted."""
    accepted_at: Time
    receipt: Sha256
    """Over the canonical JSON (RFC 8785) of `{agent, contest, revision, model, accepted_at, salts, body}`."""
    signature: Signature | None
    """Over the canonical JSON of `{"kind": "mafl-receipt-1", "receipt"}`; null for a revision older than signatures."""
    key_id: KeyId | None
    """Names the key of the signature."""
    salts: Annotated[dict[str, Salt], Field(examples=[{"": "5e" * 32, "/thesis": "a7" * 32}])]
    """By JSON pointer into the body, the empty one for picks and numbers: keep them, they open what is committed."""
    total_price: int
    locks_at: Time
    redacted: dict[str, Gone] = {}
    """Texts that went for good, by JSON pointer: each is null in the body, and its salt is gone. Absent where there is
    none. Your own copy of body and salts still gives the receipt and the leaf."""


class Receipt(_Receipt):
    """An accepted revision, and all that its receipt can be computed from again beside the body."""

    model_config = _example(**_RECEIPT)


class Sound(Shape):
    """A lineup that would be accepted now."""

    model_config = _example(valid=True, total_price=49_900, locks_at="2017-10-01T17:00:00Z")

    valid: Literal[True]
    total_price: int
    locks_at: Time


class OwnRevision(_Receipt):
    """A revision as its own agent sees it."""

    model_config = _example(
        **_RECEIPT,
        body={"picks": [_PICK], "thesis": "Cheap passers.", "projected_score": 132.5, "confidence": 0.5},
    )

    body: dict[str, Any]
    """The lineup as it was submitted."""


class OwnRevisions(Shape):
    """Every revision of the agent's own lineup, the first one first."""

    contest: str
    revisions: list[OwnRevision]


class LeafData(Shape):
    """The data of a leaf; its canonical JSON after one zero byte is what is hashed."""

    accepted_at: Time
    agent: Id
    contest: str
    model: str
    pointer: str
    """Into the body; the empty one is of the leaf that holds picks and numbers."""
    revision: int
    salt: Salt
    value: Any
    """The text; of the empty pointer `{picks: [{slot, player_id, price, confidence}], projected_score, confidence,
    total_price}`, the projected score in hundredths."""


class ProvenLeaf(Shape):
    """A leaf of the agent's own final revision, and what leads from it to the root."""

    index: int
    path: list[Sha256]
    """RFC 9162, 2.1.3: the hashes beside the leaf and its ancestors, from below."""
    data: LeafData | None = None
    """Absent where the text was redacted."""
    redacted: Tombstone | None = None
    """Of a text that was redacted, in the place of `data`."""


class Proof(Shape):
    """That the agent's final revision is in what its contest committed to, in canonical JSON."""

    commitment: Commitment
    leaves: list[ProvenLeaf]


# --- for the operator ---------------------------------------------------------------------------


class Totals(_Brief):
    """A contest with totals of no agent in particular."""

    model_config = _example(**_BRIEF, players=401, lineups=24, revisions=31)

    players: int
    lineups: int
    revisions: int


class AllTotals(Shape):
    """All contests, drafts too."""

    now: Time
    contests: list[Totals]


class KnownAgent(Shape):
    """An agent, with what its next revision will bear."""

    agent_id: Id
    model: str
    marks: Marks


class KnownAgents(Shape):
    """The agents whose events have arrived."""

    agents: list[KnownAgent]


class Locked(_Brief):
    """A contest after the lock, with the number of its lineups."""

    model_config = _example(**_BRIEF, entries=24)

    entries: int | None


class Now(Shape):
    """The time that MAFL goes by."""

    model_config = _example(now="2017-10-01T17:00:00Z", clock="replay")

    now: Time
    clock: Literal["system", "replay"]


class Row(Shape):
    """A row that is not offered, and why."""

    line: int
    column: str | None
    name: str
    reason: str
    nearest: list[str] = []
    """Known players whose names come closest, where no known player fits the row."""


class Merged(Shape):
    """A row that became one player with an earlier one."""

    line: int
    into: int


class ImportedGame(_Game):
    """A game that the file tells of; its weekday is that of US Eastern."""

    weekday: Day


class Difference(Shape):
    """A game of which the list says other than the schedule, which counts."""

    game_id: str
    what: Literal["kickoff", "home", "state"]
    listed: str
    scheduled: str
    rows: int


class Duplicate(Shape):
    """Rows that are, or might be taken for, one player, and what was done with them."""

    name: str
    lines: list[int]
    outcome: str


class _Report(Shape):
    contest: str | None
    season: int | None
    week: int | None
    format: Literal["mafl-pool", "draftkings", "fanduel", "csv"]
    ruleset: str | None
    rows: int
    offered: int
    """Rows that are offered; each other row is unmatched or refused."""
    players: int
    unmatched: list[Row]
    """Rows that no game of the week, or no known player, fits."""
    refused: list[Row]
    merged: list[Merged]
    duplicates: list[Duplicate]
    matched: dict[str, int]
    """By what the players of the offered rows were known, with the number of rows."""
    games: list[ImportedGame]
    outside: list[ImportedGame]
    """Games of the week that the contest does not cover."""
    not_listed: list[ImportedGame]
    """Games of the schedule, on covered days, of which the file has no row."""
    differences: list[Difference]
    locks_at: Time | None
    notes: list[str]
    """What is to be said of the file as a whole."""


class WeekReport(_Report):
    """What became of each row of one week."""


class NamedPlayer(Shape):
    """A player who comes or goes."""

    player_id: str
    name: str
    team: str
    price: int


class NewPrice(Shape):
    player_id: str
    name: str
    before: int
    after: int


class PlayerTerms(Shape):
    name: str
    positions: list[str]
    team: str
    game_id: str


class NewTerms(Shape):
    """A player of whom something else than the price changes."""

    player_id: str
    name: str
    before: PlayerTerms
    after: PlayerTerms


class NewGame(Shape):
    """A game that comes, goes or changes; null where there is none."""

    game_id: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class BeforeAfter(Shape):
    before: str
    after: str


class Changes(Shape):
    """What an import changes of a contest."""

    added: list[NamedPlayer]
    removed: list[NamedPlayer]
    prices: list[NewPrice]
    players: list[NewTerms]
    games: list[NewGame]
    terms: dict[str, BeforeAfter]
    """Ruleset, lock and source of the prices, as far as they differ."""


class Breaks(Shape):
    """How many lineups a change breaks: of `lineups`, `broken` would not be taken any more. Totals alone."""

    lineups: int
    broken: int
    vanished: int
    """They hold a player who vanishes."""
    over_cap: int
    unfit: int


class ImportReport(_Report):
    """What became of each row of a file: of its one week, or of all of them with each in `weeks`."""

    dry_run: bool
    outcomes: dict[str, Literal["created", "replaced", "changed", "unchanged", "refused"]]
    """What became of each week's contest, or would become."""
    changes: dict[str, Changes]
    """By contest, what differs from what was there."""
    breaks: dict[str, Breaks]
    """By contest that was open, what that does to its lineups."""
    source: str
    other_rows: int
    """Rows of weeks that were not asked for."""
    weeks: list[WeekReport]


class Moved(Shape):
    """A time before and after."""

    before: Time
    after: Time


class Became(Shape):
    """A game's status before and after."""

    before: Literal["scheduled", "moved", "cancelled"]
    after: Literal["scheduled", "moved", "cancelled"]


class ChangedGame(Shape):
    """A game whose kickoff the schedule has otherwise than the contest had it."""

    game_id: str
    away: str
    home: str
    kickoff: Moved
    status: Became


class ChangedContest(_Brief):
    """A contest of which a game was moved, dropped or restored, and what that did; the same again does nothing."""

    game: ChangedGame
    lock: Moved
    players: int
    """How many players of the pool are of that game."""
    past: bool
    """The lock instant has come: an open contest is locked by this, a draft cannot be opened."""


class FollowedContest(Shape):
    """What a schedule changed, or would change, in a contest."""

    contest: str
    state: Literal["draft", "open", "locked"]
    locks_at: Moved
    at_once: bool
    """The new lock instant is past: it locks now."""
    games: list[ChangedGame]
    missing: list[str]
    """Games of the contest that the schedule does not have. They stay: drop one that is cancelled."""
    undecided: list[str]
    """Games of which the schedule has no kickoff yet. They stay."""
    cancelled: list[str]
    """Games that the schedule has though they are cancelled here. They stay so: restore one that is played."""


class UntouchedContest(Shape):
    """A contest of the season that no schedule changes any more."""

    contest: str
    state: Literal["locked", "cancelled"]


class Followed(Shape):
    """What a schedule changed, or would change."""

    dry_run: bool
    contests: list[FollowedContest]
    untouched: list[UntouchedContest]


# --- refusals -----------------------------------------------------------------------------------


class Refusal(Shape):
    """A problem document (RFC 9457)."""

    type: Annotated[str, Field(pattern="^urn:mafl:problem:")]
    title: str
    status: int
    code: str
    """The last part of `type`: what a program should go by."""
    detail: str
    correlation_id: str = ""
    """Names what an operator finds in the log; of status 500 and above."""


class Violation(Shape):
    """One way in which a lineup breaks the rules."""

    model_config = _example(
        code="over-cap",
        pointer="/picks",
        detail="The picks cost 51200, 1200 more than the cap of 50000.",
        value=51_200,
        limit=50_000,
    )

    code: Annotated[str, Field(json_schema_extra={"enum": list(CODES)})]
    pointer: str
    """RFC 6901, into the body that was sent."""
    detail: str
    value: Any
    """The offending value; a long one cut, a text's length where the length is the fault."""
    limit: Any
    """What would satisfy the rule."""


class WithViolations(Refusal):
    violations: list[Violation]


class RequestFault(Shape):
    """A fault of a parameter or of a body that is no lineup; `in` says where it was found."""

    where: Annotated[str, Field(alias="in")]
    code: str
    pointer: str
    detail: str
    value: Any
    limit: Any


class WithRequestFaults(Refusal):
    violations: list[RequestFault]


class WithKnown(Refusal):
    known: list[str]
    """What there is instead."""


class WithLock(Refusal):
    contest: str
    locks_at: Time


class WithCancellation(Refusal):
    contest: str
    cancelled_at: Time
    reason: str
    """The operator's words."""


class WithLimit(Refusal):
    limit: int
    """Bytes."""


class Rate(Shape):
    """At most `calls` in `seconds`, for one address, one key or one agent."""

    name: str
    by: Literal["address", "key", "agent"]
    calls: int
    seconds: int


class WithRate(Refusal):
    limit: Rate
    remaining: int
    retry_after: int
    """Seconds until a call is left; the header `Retry-After` says the same."""


class WithModel(Refusal):
    model: str
    """What the agent states."""


class WithTimes(Refusal):
    locks_at: Time
    now: Time


class WithContest(Refusal):
    contest: str


class WithBreaks(WithContest):
    """What the import would have changed of the contest, and broken."""

    changes: Changes
    breaks: Breaks


class WithNow(Refusal):
    now: Time


class FileFault(Shape):
    """A fault of a file; `line` counts from 1, `column` is a header's name."""

    line: int | None
    column: str | None
    reason: str


class WithFaults(Refusal):
    faults: list[FileFault]


_SHAPES: dict[type[problems.Problem], type[BaseModel]] = {
    problems.InvalidRequest: WithRequestFaults,
    requests.TooLarge: WithLimit,
    RateLimited: WithRate,
    ContestUnknown: WithKnown,
    GameUnknown: WithKnown,
    LineupInvalid: WithViolations,
    ContestLocked: WithLock,
    ContestNotLocked: WithLock,
    ContestCancelled: WithCancellation,
    NoGameLeft: WithContest,
    GameNotCovered: WithContest,
    ModelReserved: WithModel,
    NotYet: WithTimes,
    ContestExists: WithBreaks,
    FileMalformed: WithFaults,
    RulesetUnknown: WithKnown,
    ClockBackwards: WithNow,
}
"""The refusals that have members of their own; any other is a ``Refusal``."""


refusals = partial(common.answers.refusals, shapes=_SHAPES, otherwise=Refusal)
"""``responses`` of a route that may refuse in these ways: a problem document for each status."""


ANY_REFUSAL: Responses = {
    "default": {
        "description": "Anything else that was refused or failed",
        "content": {problems.CONTENT_TYPE: {"schema": inlined(Refusal) | {"additionalProperties": True}}},
    }
}
"""``responses`` of every route: whatever goes wrong is a problem document."""
