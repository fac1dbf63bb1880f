"""What a contest is made of and how a lineup is judged. Pure: bytes and values in, values out.

The judgement has two ways to one answer. A sound body goes straight from bytes through pydantic and a
short loop over its picks. Any other goes through ``_Inquest``, which reads the body tolerantly and
lists every violation at once; it is the authority, the first way only a shortcut for what it would accept.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, cast, get_args
from uuid import UUID
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator
from pydantic.types import PositiveInt
from typing_extensions import TypedDict

from common.canonical import canonical_json
from common.commitment import SALT_BYTES, json_number, json_string, pointers
from common.events import Game, LineupRules, Marks, Policies, PoolPlayer, Scoring, Slot

EASTERN = ZoneInfo("America/New_York")
Day = Literal["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
DAYS: tuple[Day, ...] = get_args(Day)
COVERED: tuple[Day, ...] = ("Sunday", "Monday")
"""The weekdays, US Eastern, whose games a contest covers unless it is told otherwise."""

# --- rules --------------------------------------------------------------------------------------


class _Rule(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TextLimits(_Rule):
    """The most characters (Unicode code points) that each text of a lineup may have."""

    rationale: PositiveInt
    main_factor: PositiveInt
    thesis: PositiveInt


class ScoreBounds(_Rule):
    """The range of a projected score, both ends included, in hundredths of a point."""

    at_least: int
    at_most: int


class Ruleset(_Rule):
    """The rules of a contest: roster, cap, scoring, policies, and the limits of what is written with the picks.

    ``pick_confidence_points_per_1000`` fixes what a pick's confidence means: the probability that the
    player scores at least that many hundredths of a point for each 1,000 of price. A ruleset from before there were
    policies has the usual ones.
    """

    ruleset: str
    cap: PositiveInt
    roster: tuple[Slot, ...]
    limits: TextLimits
    projected_score: ScoreBounds
    pick_confidence_points_per_1000: PositiveInt
    scoring: Scoring
    policies: Policies = Policies()
    lineup_rules: LineupRules = LineupRules()

    @model_validator(mode="after")
    def _coherent(self) -> "Ruleset":
        slots = [slot.slot for slot in self.roster]
        if not slots or len(set(slots)) != len(slots):
            raise ValueError("a roster needs slots, each with a name of its own")
        if any(not slot.positions or len(set(slot.positions)) != len(slot.positions) for slot in self.roster):
            raise ValueError("each slot needs the positions that may fill it, each once")
        if self.projected_score.at_least > self.projected_score.at_most:
            raise ValueError("the bounds of a projected score are the wrong way round")
        if (self.lineup_rules.min_games or 0) > len(self.roster):
            raise ValueError("a lineup cannot touch more games than it has players")
        for statistic, bands in self.scoring.bands.items():
            ends = [band.up_to for band in bands]
            finite = [end for end in ends[:-1] if end is not None]
            if not ends or ends[-1] is not None or len(finite) != len(ends) - 1 or finite != sorted(set(finite)):
                raise ValueError(f"the bands of {statistic} must ascend, and the last alone has no end")
        return self

    @property
    def positions(self) -> frozenset[str]:
        """Every position that some slot takes."""
        return frozenset(position for slot in self.roster for position in slot.positions)


# --- weeks and locks ----------------------------------------------------------------------------


def contest_id(season: int, week: int) -> str:
    """The id of a week's contest, as ``2017-W04``."""
    return f"{season}-W{week:02d}"


def weekday(kickoff: datetime) -> Day:
    """The weekday of an aware time in US Eastern, as the league counts its days."""
    return DAYS[kickoff.astimezone(EASTERN).weekday()]


def sunday_of(kickoffs: Sequence[datetime]) -> date:
    """The Sunday of the week that games with these kickoffs are of, at least one: by the middle one.

    The league's weeks go from Wednesday or Thursday to Monday, Tuesday or Wednesday; a Wednesday by itself is taken
    for the first day of its week.
    """
    day = sorted(kickoffs)[len(kickoffs) // 2].astimezone(EASTERN).date()
    ahead = (6 - day.weekday()) % 7
    return day + timedelta(days=ahead if ahead <= 4 else ahead - 7)


@dataclass(frozen=True, slots=True)
class Coverage:
    """Which kickoffs a contest covers: those on its weekdays, US Eastern, in the week of its Sunday.

    That week goes from the Tuesday before to the Wednesday after: the league has begun one on a Wednesday (Christmas
    2024) and ended one on a Wednesday (2020-12-02).
    """

    days: tuple[Day, ...]
    sunday: date

    FIRST, LAST = timedelta(days=-5), timedelta(days=3)

    def covers(self, kickoff: datetime) -> bool:
        """Whether a game with this kickoff, an aware time, is the contest's."""
        return weekday(kickoff) in self.days and self.in_week(kickoff)

    def in_week(self, at: datetime) -> bool:
        """Whether an aware time is in the week of the contest's Sunday, on whichever day."""
        return self.FIRST <= at.astimezone(EASTERN).date() - self.sunday <= self.LAST

    def moved(self, game: Game, kickoff: datetime) -> Game:
        """The game at another kickoff: ``scheduled``, or ``moved`` where it is not covered there."""
        status = "scheduled" if self.covers(kickoff) else "moved"
        return game.model_copy(update={"kickoff": kickoff.astimezone(UTC), "status": status})

    def __str__(self) -> str:
        first, last = self.sunday + self.FIRST, self.sunday + self.LAST
        return f"{' and '.join(self.days)} from {first} to {last}, US Eastern"


def staying(games: Iterable[Game]) -> tuple[Game, ...]:
    """The games that have not left their contest."""
    return tuple(game for game in games if game.status == "scheduled")


def lock_instant(games: Sequence[Game]) -> datetime:
    """When a contest locks: the kickoff of its first Sunday game, else of its first game.

    ``games`` are the covered ones. Those that have left do not count; at least one has not.
    """
    kickoffs = [game.kickoff for game in staying(games)]
    return min([kickoff for kickoff in kickoffs if weekday(kickoff) == "Sunday"] or kickoffs)


# --- agents -------------------------------------------------------------------------------------

RESERVED_MODELS = "reference"
"""What stands before the first ``/`` of the labels of MAFL's own reference agents (B8)."""


def is_reserved(model: str) -> bool:
    """Whether a model's label is kept for reference agents, however it is spelt."""
    first, slash, _ = model.partition("/")
    return bool(slash) and first.strip().casefold() == RESERVED_MODELS


# --- what there is --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Contest:
    """A contest as stored. ``state`` is draft, open, locked or cancelled; ``version`` counts its changes.

    ``days`` are the weekdays it covers, US Eastern, ``sunday`` the one of its week. Once it is open, each version has
    an event of its own; ``pool`` counts those that brought a pool. ``cancelled_because`` is what the operator said.
    """

    contest: str
    season: int
    week: int
    state: str
    version: int
    price_source: str
    days: Sequence[Day]
    sunday: date
    opened_at: datetime | None
    locks_at: datetime
    locked_at: datetime | None
    entries: int | None
    cancelled_at: datetime | None = None
    cancelled_because: str | None = None
    pool: int = 1

    @property
    def coverage(self) -> Coverage:
        """Which kickoffs it covers."""
        return Coverage(tuple(self.days), self.sunday)

    @property
    def was_public(self) -> bool:
        """Whether it is or was open, so that everybody may know of it."""
        return self.opened_at is not None

    def is_locked(self, now: datetime) -> bool:
        """Whether it takes no more lineups: from its lock instant on, processed or not."""
        return self.state == "locked" or (self.state == "open" and now >= self.locks_at)


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent as the registry last told of it."""

    agent_id: UUID
    model: str
    marks: Marks


@dataclass(frozen=True, slots=True)
class Tombstone:
    """What stays of a text that went for good: the hash of its leaf, 32 bytes, when it went and why."""

    contest: str
    pointer: str
    leaf: bytes
    reason: str
    redacted_at: datetime


@dataclass(frozen=True, slots=True)
class Revision:
    """An accepted revision. ``body`` is the submitted body as canonical JSON; ``projected_score`` in hundredths.

    ``salts`` are those of its leaves in their order, 32 bytes each. ``signature`` and ``key_id`` are of the receipt;
    none where it was accepted before receipts were signed. ``redacted`` are the texts that went for good, by pointer:
    null in the body, with zero bytes in their salts' place.
    """

    lineup_id: UUID
    revision: int
    contest: str
    agent_id: UUID
    idempotency_key: str | None
    accepted_at: datetime
    locks_at: datetime
    model: str
    marks: Marks
    picks: list[dict[str, Any]]
    total_price: int
    projected_score: int
    confidence: float
    body: str
    receipt: str
    salts: bytes
    signature: bytes | None
    key_id: str | None
    redacted: Mapping[str, Tombstone] = field(default_factory=dict)

    def without(self, pointer: str) -> tuple[str, bytes]:
        """Body and salts once a text has gone. Raises ``KeyError``, ``IndexError`` where there is no such text."""
        names = pointers(len(self.picks))
        at = SALT_BYTES * names.index(pointer)
        return redacted_body(self.body, [pointer]), self.salts[:at] + bytes(SALT_BYTES) + self.salts[at + SALT_BYTES :]


def redacted_body(body: str, gone: Iterable[str]) -> str:
    """A lineup's canonical body with null in the place of some of its texts, which it has."""
    document = json.loads(body)
    for pointer in gone:
        *way, name = pointer.split("/")[1:]
        there = document
        for part in way:
            there = there[int(part)] if isinstance(there, list) else there[part]
        there[name] = None
    return canonical_json(document).decode()


@dataclass(frozen=True, slots=True)
class Commitment:
    """What a contest committed to at its lock: ``size`` leaves of ``entries`` final revisions, and the signed root."""

    contest: str
    locked_at: datetime
    entries: int
    size: int
    root: bytes
    signature: bytes
    key_id: str


@dataclass(frozen=True, slots=True)
class Known:
    """What a directory says of a player as of a week. ``position`` is empty where it does not say."""

    player_id: str
    name: str
    position: str
    team: str
    season: int
    week: int


# --- a lineup and what may be wrong with it -------------------------------------------------------


class Pick(NamedTuple):
    """A judged pick; ``price`` is the contest's."""

    slot: str
    player_id: str
    price: int
    confidence: float


@dataclass(frozen=True, slots=True)
class Lineup:
    """A lineup that breaks no rule. ``projected_score`` is in hundredths of a point.

    ``body`` is as submitted, and ``picks`` stand in its order.
    """

    picks: tuple[Pick, ...]
    total_price: int
    projected_score: int
    confidence: float
    body: dict[str, Any]


CONTRACT: dict[str, str] = {
    "slot-missing": "no pick fills a slot of the roster, or a pick does not say which it fills",
    "slot-unknown": "the roster has no such slot",
    "slot-repeated": "an earlier pick fills the same slot",
    "player-unknown": "no such player_id in this contest's pool, a player whose game has left the contest, or a pick "
    "without one",
    "player-repeated": "an earlier pick names the same player",
    "player-ineligible": "the player's positions do not fit the slot",
    "over-cap": "the prices of the picks add up to more than the cap",
    "reasoning-missing": "a rationale, main_factor, thesis, confidence or projected_score is absent, null or blank",
    "text-too-long": "a text has more characters than its limit",
    "number-out-of-range": "a number lies outside its range, has too many decimals, or is not finite",
}
"""The codes of the rules of play. Another version of the API would be needed to change one."""

OF_SOME_CONTESTS: dict[str, str] = {
    "team-crowded": "more players of one team, its defence among them, than this contest allows",
    "games-too-few": "the players are of fewer different games than this contest asks for",
}
"""The codes of rules that a contest may have and most have not (``lineup_rules``)."""

STRUCTURAL: dict[str, str] = {
    "json-malformed": "the body is not one JSON document in UTF-8",
    "wrong-type": "a member has another JSON type than it must",
    "field-unknown": "a member that a lineup does not have",
    "key-repeated": "one object has the same key twice",
    "text-invalid": "a text holds a lone surrogate or the character U+0000",
    "picks-too-many": "there are more than three times as many picks as slots; only the first of them were judged",
}
"""The codes of a body that is not shaped like a lineup (decision 7). What is merely absent has a contract code."""

CODES = CONTRACT | OF_SOME_CONTESTS | STRUCTURAL
"""Every code a violation may have, with its meaning. The codes are stable."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One way in which a body breaks the rules.

    ``pointer`` is the RFC 6901 pointer of the offending value in the body, ``value`` that value (a long
    one cut, a text's length where the length is the fault) and ``limit`` what would satisfy the rule.
    """

    code: str
    pointer: str
    detail: str
    value: Any
    limit: Any

    def as_dict(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "pointer": self.pointer,
            "detail": self.detail,
            "value": self.value,
            "limit": self.limit,
        }


class LineupRefused(Exception):
    """A body breaks rules; ``violations`` are all of them, never none."""

    def __init__(self, violations: Sequence[Violation]) -> None:
        self.violations = tuple(violations)
        super().__init__(f"{len(self.violations)} violations")


MAX_BODY = 512 * 1024
"""Bytes that are read of a lineup. The longest one the rules allow, every character escaped as a surrogate pair, takes
some 290,000."""

PICK_FIELDS = ("slot", "player_id", "rationale", "confidence", "main_factor")
LINEUP_FIELDS = ("picks", "thesis", "projected_score", "confidence")

Confidence = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


@cache
def lineup_adapter(limits: TextLimits, bounds: ScoreBounds) -> TypeAdapter[dict[str, Any]]:
    """The shape of a lineup's body, strict, with the limits of a ruleset built in. Also gives its JSON Schema."""

    class Pick(TypedDict):
        __pydantic_config__ = ConfigDict(strict=True, extra="forbid")  # type: ignore[misc]

        slot: Annotated[str, Field(description="A slot of the roster")]
        player_id: Annotated[str, Field(description="A player_id of the contest's pool")]
        rationale: Annotated[str, Field(min_length=1, max_length=limits.rationale)]
        confidence: Confidence
        main_factor: Annotated[str, Field(min_length=1, max_length=limits.main_factor)]

    class Lineup(TypedDict):
        __pydantic_config__ = ConfigDict(strict=True, extra="forbid")  # type: ignore[misc]

        picks: Annotated[list[Pick], Field(description="One pick for each slot of the roster, in any order")]
        thesis: Annotated[str, Field(min_length=1, max_length=limits.thesis)]
        projected_score: Annotated[
            float,
            Field(
                ge=bounds.at_least / 100,
                le=bounds.at_most / 100,
                allow_inf_nan=False,
                description="Points, with at most two decimals",
            ),
        ]
        confidence: Confidence

    return cast("TypeAdapter[dict[str, Any]]", TypeAdapter(Lineup))


def canonical(body: dict[str, Any]) -> tuple[str, list[tuple[str, str]]]:
    """A sound lineup's body in the form of RFC 8785, and its texts in that form, each with its JSON pointer.

    What ``common.canonical`` would give, at a tenth of its cost: the members are known and stand here in their order.
    """
    words: list[tuple[str, str]] = []
    picks: list[str] = []
    for place, pick in enumerate(body["picks"]):
        rationale, main_factor = json_string(pick["rationale"]), json_string(pick["main_factor"])
        words.append((f"/picks/{place}/rationale", rationale))
        words.append((f"/picks/{place}/main_factor", main_factor))
        picks.append(
            f'{{"confidence":{json_number(pick["confidence"])},"main_factor":{main_factor},'
            f'"player_id":{json_string(pick["player_id"])},"rationale":{rationale},"slot":{json_string(pick["slot"])}}}'
        )
    thesis = json_string(body["thesis"])
    words.append(("/thesis", thesis))
    whole = (
        f'{{"confidence":{json_number(body["confidence"])},"picks":[{",".join(picks)}],'
        f'"projected_score":{json_number(body["projected_score"])},"thesis":{thesis}}}'
    )
    return whole, words


_KEY = re.compile(rb'"[ \t\n\r]*:')
"""The end of an object's key. Also matches inside some texts: it counts keys only when the count is right."""


class Judge:
    """Judges lineups by one contest's rules and pool. Built once for each of its versions, then used for every body.

    >>> lineup = Judge("2017-W04", ruleset, players)(body)
    """

    def __init__(
        self,
        contest: str,
        ruleset: Ruleset,
        players: Iterable[PoolPlayer],
        games: Iterable[Game] = (),
        version: int = 0,
    ) -> None:
        self.contest = contest
        self.version = version
        self.games = tuple(games)
        self.ruleset = ruleset
        left = {game.game_id: game for game in self.games if game.status != "scheduled"}
        listed = {player.player_id: player for player in players}
        self.players = {name: player for name, player in listed.items() if player.game_id not in left}
        """Who may be picked."""
        self.left = {name: left[player.game_id] for name, player in listed.items() if player.game_id in left}
        """The games, by player, of those who were in the pool until their game left the contest."""
        self.slots = {slot.slot: slot for slot in ruleset.roster}
        self._prices = {
            slot.slot: {
                player.player_id: player.price
                for player in self.players.values()
                if not set(player.positions).isdisjoint(slot.positions)
            }
            for slot in ruleset.roster
        }
        slots = len(ruleset.roster)
        self._keys = len(LINEUP_FIELDS) + len(PICK_FIELDS) * slots
        # Of a pick all members but its confidence are strings, of the lineup the thesis.
        self._quotes = 2 * (self._keys + (len(PICK_FIELDS) - 1) * slots + 1)
        self._adapter = lineup_adapter(ruleset.limits, ruleset.projected_score)

    def __call__(self, body: bytes) -> Lineup:
        """The lineup that a body holds. Raises ``LineupRefused`` with every violation."""
        return self.at_once(body) or _Inquest(self).hear(body)

    def at_once(self, body: bytes) -> Lineup | None:
        """The lineup of a sound body; None for any doubt, which a call of the judge settles."""
        # With no unknown key and none missing, the right number of keys means that none is repeated, which the parser
        # would not tell. Where nothing is escaped, each quotation mark begins or ends a string, and counting those
        # is quicker than finding the keys. PostgreSQL's JSON cannot hold U+0000.
        if b"\\" not in body:
            if body.count(b'"') != self._quotes:
                return None
        elif b"\\u0000" in body or len(_KEY.findall(body)) != self._keys:
            return None
        try:
            document = self._adapter.validate_json(body)
        except ValidationError:
            return None
        picks = document["picks"]
        if len(picks) != len(self.slots):
            return None
        seen_slots: set[str] = set()
        seen_players: set[str] = set()
        for pick in picks:
            slot, player_id = pick["slot"], pick["player_id"]
            prices = self._prices.get(slot)
            if prices is None or player_id not in prices or slot in seen_slots or player_id in seen_players:
                return None
            if pick["rationale"].isspace() or pick["main_factor"].isspace():
                return None
            seen_slots.add(slot)
            seen_players.add(player_id)
        if document["thesis"].isspace() or not _has_two_decimals(document["projected_score"]):
            return None
        if not self.ruleset.lineup_rules.none:
            picked = [self.players[pick["player_id"]] for pick in picks]
            if crowded(picked, self.ruleset.lineup_rules) or games_lacking(picked, self.ruleset.lineup_rules):
                return None
        lineup = self._lineup(document)
        return lineup if lineup.total_price <= self.ruleset.cap else None

    def _lineup(self, document: dict[str, Any]) -> Lineup:
        """Put together what has been found sound."""
        prices = self._prices
        picks = tuple(
            [
                Pick(
                    pick["slot"], pick["player_id"], prices[pick["slot"]][pick["player_id"]], float(pick["confidence"])
                )
                for pick in document["picks"]
            ]
        )
        return Lineup(
            picks=picks,
            total_price=sum([pick.price for pick in picks]),
            projected_score=round(document["projected_score"] * 100),
            confidence=float(document["confidence"]),
            body=document,
        )


def crowded(players: Iterable[PoolPlayer], rules: LineupRules) -> dict[str, int]:
    """The teams of whom a lineup has more players than it may, with how many."""
    if rules.max_per_team is None:
        return {}
    counts = Counter(player.team for player in players)
    return {team: many for team, many in counts.items() if many > rules.max_per_team}


def games_lacking(players: Iterable[PoolPlayer], rules: LineupRules) -> int:
    """How many different games a lineup is short of."""
    return max(0, (rules.min_games or 0) - len({player.game_id for player in players}))


def _has_two_decimals(number: float) -> bool:
    return round(number, 2) == number


# --- the inquest: every violation of a body that is not sound ---------------------------------------


class _Object(dict[str, Any]):
    """A JSON object that remembers which of its keys came more than once."""

    repeated: tuple[str, ...] = ()


def _object(members: list[tuple[str, Any]]) -> _Object:
    made = _Object(members)
    if len(made) != len(members):
        counts: dict[str, int] = {}
        for key, _ in members:
            counts[key] = counts.get(key, 0) + 1
        made.repeated = tuple(key for key, count in counts.items() if count > 1)
    return made


def _integer(digits: str) -> int | float:
    # Far beyond any limit of ours, and Python refuses to convert thousands of digits.
    return int(digits) if len(digits) <= 18 else float(digits)


def _printable(text: str, most: int = 100) -> str:
    cut = text if len(text) <= most else text[: most - 1] + "…"
    return cut.encode("utf-8", "backslashreplace").decode("utf-8")


def _shown(value: Any) -> Any:
    """A value as a violation may repeat it: bounded, and always valid JSON."""
    match value:
        case bool() | None:
            return value
        case int() | float():
            if math.isnan(value):
                return "NaN"
            if math.isinf(value):
                return "Infinity" if value > 0 else "-Infinity"
            return value
        case str():
            return _printable(value)
        case dict():
            return f"an object of {len(value)} members"
        case _:
            return f"an array of {len(value)} items"


def _pointer(*parts: str | int) -> str:
    return "".join("/" + _printable(str(part)).replace("~", "~0").replace("/", "~1") for part in parts)


@dataclass(slots=True)
class _Inquest:
    """Reads one body tolerantly and lists all that is wrong with it."""

    judge: Judge
    found: list[Violation] = field(default_factory=list)

    MOST_UNKNOWN = 20
    """Unknown members of one object that are listed singly."""

    def hear(self, body: bytes) -> Lineup:
        document = self._parse(body)
        if not self.found:
            if isinstance(document, _Object):
                self._lineup(document)
            else:
                self._add("wrong-type", "", "The body must be an object.", _shown(document), "object")
        if self.found:
            raise LineupRefused(self.found)
        return self.judge._lineup(document)

    def _add(self, code: str, pointer: str, detail: str, value: Any, limit: Any) -> None:
        self.found.append(Violation(code, pointer, detail, value, limit))

    def _parse(self, body: bytes) -> Any:
        if not body.strip():
            self._malformed("The body is empty.", None, "a JSON object")
            return None
        try:
            text = body.decode("utf-8")
            if text.startswith("\ufeff"):
                self._malformed("The body begins with a byte order mark, U+FEFF; JSON has none.", None, "JSON")
                return None
            return json.loads(text, object_pairs_hook=_object, parse_int=_integer)
        except UnicodeDecodeError as error:
            self._malformed(f"The body is not UTF-8: byte {error.start} fits nowhere.", None, "UTF-8")
        except json.JSONDecodeError as error:
            self._malformed(
                f"The body is not JSON: {error.msg} in line {error.lineno}, column {error.colno}.", None, "JSON"
            )
        except RecursionError:
            self._malformed("The body is nested too deeply.", None, "a lineup is three levels deep")
        return None

    def _malformed(self, detail: str, value: Any, limit: Any) -> None:
        self._add("json-malformed", "", detail, value, limit)

    def _lineup(self, document: _Object) -> None:
        limits = self.judge.ruleset.limits
        self._members(document, LINEUP_FIELDS)
        self._picks(document.get("picks"))
        self._text(document, ("thesis",), limits.thesis)
        self._projected_score(document)
        self._confidence(document, ("confidence",))

    def _members(self, found: _Object, known: Sequence[str], *at: str | int) -> None:
        for key in found.repeated[: self.MOST_UNKNOWN]:
            detail = f"The key {_printable(key)!r} comes more than once; which one counts would be a guess."
            self._add("key-repeated", _pointer(*at, key), detail, _shown(found[key]), "each key once")
        unknown = [key for key in found if key not in known]
        for place, key in enumerate(unknown[: self.MOST_UNKNOWN], start=1):
            detail = f"There is no member {_printable(key)!r} here."
            if place == self.MOST_UNKNOWN < len(unknown):
                detail += f" {len(unknown) - place} more unknown members follow."
            self._add("field-unknown", _pointer(*at, key), detail, _shown(found[key]), list(known))

    def _picks(self, picks: Any) -> None:
        if picks is None:
            picks = []
        if not isinstance(picks, list):
            self._add("wrong-type", "/picks", "The picks must be an array.", _shown(picks), "array")
            return
        slots = len(self.judge.slots)
        most = 3 * slots
        if len(picks) > most:
            detail = f"There are {len(picks)} picks for {slots} slots; only the first {most} were judged."
            self._add("picks-too-many", "/picks", detail, len(picks), slots)
        first_slot: dict[str, int] = {}
        first_player: dict[str, int] = {}
        homeless: list[PoolPlayer | None] = []
        total = 0
        filled: dict[str, PoolPlayer] = {}
        for place, pick in enumerate(picks[:most]):
            if not isinstance(pick, _Object):
                self._add("wrong-type", _pointer("picks", place), "A pick must be an object.", _shown(pick), "object")
                homeless.append(None)
                continue
            self._members(pick, PICK_FIELDS, "picks", place)
            slot = self._slot(pick, place, first_slot)
            player = self._player(pick, place, first_player)
            if not isinstance(pick.get("slot"), str):
                homeless.append(player)
            if slot and player:
                if set(slot.positions).isdisjoint(player.positions):
                    plays, takes = "/".join(player.positions), "/".join(slot.positions)
                    self._add(
                        "player-ineligible",
                        _pointer("picks", place, "player_id"),
                        f"{player.player_name} plays {plays}; {slot.slot} takes {takes}.",
                        player.player_id,
                        list(slot.positions),
                    )
                if first_slot[slot.slot] == place:
                    total += player.price
                    filled[player.player_id] = player
            self._text(pick, ("picks", place, "rationale"), self.judge.ruleset.limits.rationale)
            self._confidence(pick, ("picks", place, "confidence"))
            self._text(pick, ("picks", place, "main_factor"), self.judge.ruleset.limits.main_factor)
        self._unfilled([slot for name, slot in self.judge.slots.items() if name not in first_slot], homeless)
        cap = self.judge.ruleset.cap
        if total > cap:
            detail = f"The picks cost {total}, {total - cap} more than the cap of {cap}."
            self._add("over-cap", "/picks", detail, total, cap)
        self._teams_and_games(list(filled.values()))

    def _teams_and_games(self, players: list[PoolPlayer]) -> None:
        """Note teams of whom there are too many, and of a lineup that is whole that its games are too few."""
        rules = self.judge.ruleset.lineup_rules
        for team, many in crowded(players, rules).items():
            names = ", ".join(player.player_name for player in players if player.team == team)
            detail = f"{many} players are of {team} ({names}); at most {rules.max_per_team} of one team are taken."
            self._add("team-crowded", "/picks", detail, many, rules.max_per_team)
        if len(players) == len(self.judge.slots) and games_lacking(players, rules):
            games = sorted({player.game_id for player in players})
            detail = (
                f"The players are of {len(games)} games ({', '.join(games)}); at least {rules.min_games} are asked for."
            )
            self._add("games-too-few", "/picks", detail, len(games), rules.min_games)

    def _unfilled(self, slots: list[Slot], homeless: list[PoolPlayer | None]) -> None:
        """Note the slots that no pick fills, less one for each pick without a readable slot: that is noted there."""
        for player in sorted(homeless, key=lambda player: player is None)[: len(slots)]:
            positions = set(player.positions if player else ())
            slots.remove(next((slot for slot in slots if positions & set(slot.positions)), slots[0]))
        for slot in slots:
            detail = f"No pick fills {slot.slot}, which takes {'/'.join(slot.positions)}."
            self._add("slot-missing", "/picks", detail, None, slot.slot)

    def _name(self, pick: _Object, place: int, name: str, code: str, what: Any) -> str | None:
        """A slot or player_id as a string; None, noted, where there is none."""
        value = pick.get(name)
        pointer = _pointer("picks", place, name)
        if value is None:
            self._add(code, pointer, f"The pick does not say its {name}.", None, what)
        elif not isinstance(value, str):
            self._add("wrong-type", pointer, f"The {name} must be a string.", _shown(value), "string")
        else:
            return value
        return None

    def _slot(self, pick: _Object, place: int, first: dict[str, int]) -> Slot | None:
        name = self._name(pick, place, "slot", "slot-missing", list(self.judge.slots))
        if name is None:
            return None
        pointer = _pointer("picks", place, "slot")
        slot = self.judge.slots.get(name)
        if slot is None:
            detail = f"The roster has no slot {_printable(name)!r}."
            self._add("slot-unknown", pointer, detail, _printable(name), list(self.judge.slots))
        elif name in first:
            detail = f"/picks/{first[name]} already fills {name}."
            self._add("slot-repeated", pointer, detail, name, "each slot once")
        else:
            first[name] = place
        return slot

    def _player(self, pick: _Object, place: int, first: dict[str, int]) -> PoolPlayer | None:
        pool = f"a player_id from /api/v1/contests/{self.judge.contest}/pool"
        name = self._name(pick, place, "player_id", "player-unknown", pool)
        if name is None:
            return None
        pointer = _pointer("picks", place, "player_id")
        player = self.judge.players.get(name)
        left = self.judge.left.get(name)
        if left is not None:
            what = {"cancelled": "is cancelled", "moved": "was moved out of this contest's days"}[left.status]
            detail = (
                f"{_printable(name)!r} is in the pool no more: his game, {left.away} at {left.home} ({left.game_id}), "
                f"{what}. /api/v1/contests/{self.judge.contest} has the status of every game."
            )
            self._add("player-unknown", pointer, detail, _printable(name), pool)
        elif player is None:
            detail = f"The pool of {self.judge.contest} has no player {_printable(name)!r}."
            self._add("player-unknown", pointer, detail, _printable(name), pool)
        elif name in first:
            detail = f"/picks/{first[name]} already names {player.player_name}."
            self._add("player-repeated", pointer, detail, name, "each player once")
        else:
            first[name] = place
        return player

    def _text(self, holder: _Object, at: tuple[str | int, ...], most: int) -> None:
        text = holder.get(str(at[-1]))
        pointer = _pointer(*at)
        allowed = f"1 to {most} characters"
        if text is None or (isinstance(text, str) and not text.strip()):
            self._add("reasoning-missing", pointer, f"The {at[-1]} is missing.", _shown(text), allowed)
            return
        if not isinstance(text, str):
            self._add("wrong-type", pointer, f"The {at[-1]} must be a string.", _shown(text), "string")
            return
        if len(text) > most:
            detail = f"The {at[-1]} has {len(text)} characters; at most {most} are taken."
            self._add("text-too-long", pointer, detail, len(text), most)
        if any(character == "\0" or "\ud800" <= character <= "\udfff" for character in text):
            detail = f"The {at[-1]} holds a lone surrogate or U+0000, which are no characters."
            self._add("text-invalid", pointer, detail, _shown(text), "Unicode characters other than U+0000")

    def _number(self, holder: _Object, at: tuple[str | int, ...], limit: Any) -> float | None:
        """A number as given; None, noted, where there is none."""
        number = holder.get(str(at[-1]))
        pointer = _pointer(*at)
        if number is None:
            self._add("reasoning-missing", pointer, f"The {at[-1]} is missing.", None, limit)
        elif isinstance(number, bool) or not isinstance(number, int | float):
            self._add("wrong-type", pointer, f"The {at[-1]} must be a number.", _shown(number), "number")
        else:
            return number
        return None

    def _confidence(self, holder: _Object, at: tuple[str | int, ...]) -> None:
        limit = {"at_least": 0, "at_most": 1}
        number = self._number(holder, at, limit)
        if number is not None and not 0 <= number <= 1:
            self._add(
                "number-out-of-range",
                _pointer(*at),
                "A confidence is a probability: 0 to 1.",
                _shown(number),
                limit,
            )

    def _projected_score(self, document: _Object) -> None:
        bounds = self.judge.ruleset.projected_score
        low, high = bounds.at_least / 100, bounds.at_most / 100
        limit = {"at_least": low, "at_most": high, "decimals": 2}
        number = self._number(document, ("projected_score",), limit)
        if number is not None and not (low <= number <= high and _has_two_decimals(number)):
            detail = f"A projected score is {low:g} to {high:g} points, with at most two decimals."
            self._add("number-out-of-range", "/projected_score", detail, _shown(number), limit)
