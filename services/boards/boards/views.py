"""What is shown, to programs and to people alike: the store's facts under the rules of ``domain``.

The errors of asking for what is not there:

    Problem
    ├── ContestUnknown      404 contest-unknown
    ├── ContestCancelled    409 contest-cancelled
    ├── ContestNotLocked    409 contest-not-locked
    ├── ContestNotSettled   409 contest-not-settled
    ├── SettlementUnknown   404 settlement-unknown
    ├── SeasonUnknown       404 season-unknown
    ├── MetricUnknown       422 metric-unknown
    ├── AgentUnknown        404 agent-unknown
    └── ModelUnknown        404 model-unknown
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from anyio.to_thread import run_sync as in_thread

from boards.beside import Beside, Parts, Source, beside, matrix, pooled_parts
from boards.comparisons import Difference, two_way
from boards.domain import (
    AgentCard,
    Draw,
    Kind,
    Metric,
    Row,
    RowWeek,
    Table,
    Tombstone,
    Withheld,
    is_handle,
    label_of,
    table,
    withheld,
)
from boards.draw import DrawError, Interval, Memory
from boards.store import Record, Store
from common.canonical import instant
from common.handles import handle
from common.problems import Problem


class ContestUnknown(Problem):
    status = 404
    code = "contest-unknown"
    title = "There is no such contest"


class ContestCancelled(Problem):
    status = 409
    code = "contest-cancelled"
    title = "The contest is cancelled"


class ContestNotLocked(Problem):
    status = 409
    code = "contest-not-locked"
    title = "The contest is not locked yet"


class ContestNotSettled(Problem):
    status = 409
    code = "contest-not-settled"
    title = "The contest is not settled yet"


class SettlementUnknown(Problem):
    status = 404
    code = "settlement-unknown"
    title = "There is no such settlement version"


class SeasonUnknown(Problem):
    status = 404
    code = "season-unknown"
    title = "There is no contest in that season"


class MetricUnknown(Problem):
    status = 422
    code = "metric-unknown"
    title = "There is no such metric"


class AgentUnknown(Problem):
    status = 404
    code = "agent-unknown"
    title = "There is no such agent here"


class ModelUnknown(Problem):
    status = 404
    code = "model-unknown"
    title = "There is no such model here"


class State(StrEnum):
    """Where a contest stands."""

    OPEN = "open"
    CANCELLED = "cancelled"
    LOCKED = "locked"
    PROVISIONAL = "provisional"
    FINAL = "final"


@dataclass(frozen=True, slots=True)
class Board:
    """One board: ``cohort`` is the control cohort's own table and belongs to the model board alone."""

    kind: Kind
    metric: Metric
    season: int | None
    seasons: tuple[int, ...]
    contests: tuple[str, ...]
    table: Table
    cohort: Table
    models: Mapping[str, str]
    """The model that an agent runs now, by row label (agent board only)."""
    beside: Mapping[str, Beside]
    """What stands beside each row of ``table`` and of ``cohort``, by its label."""
    differences: tuple[Difference, ...]
    """Every two rows of the cohort, the one that stands higher less the other."""


@dataclass(frozen=True, slots=True)
class Player:
    """A player of a pool; ``points`` in hundredths once there are any."""

    player_id: str
    name: str
    positions: tuple[str, ...]
    team: str
    opponent: str
    price: int
    points: int | None


@dataclass(frozen=True, slots=True)
class Contest:
    """A contest's own data; nothing in it depends on who entered, but ``entries`` once it is locked."""

    contest: str
    season: int
    week: int
    state: State
    locks_at: datetime
    locked_at: datetime | None
    cancelled_because: str | None
    """What the operator said who called it off before its lock."""
    entries: int | None
    cap: int
    ruleset: str
    price_source: str
    pool: int
    games: tuple[Mapping[str, Any], ...]
    """By the newest schedule; one whose ``status`` is not ``scheduled`` has left the contest."""
    best: int | None
    """Points of the best lineup, once settled; ``optimum`` those of the best possible one."""
    optimum: int | None

    @property
    def left(self) -> frozenset[str]:
        """The ids of the games that left the contest before its lock."""
        return frozenset(game["game_id"] for game in self.games if game.get("status", "scheduled") != "scheduled")


@dataclass(frozen=True, slots=True)
class Text:
    """A text, or the reason why it is not shown; of one that was redacted its tombstone."""

    text: str | None
    withheld: Withheld | None
    tombstone: Tombstone | None = None


@dataclass(frozen=True, slots=True)
class Opening:
    """What opens the leaves of a lineup in its contest's commitment, of all that is shown of it.

    ``model`` is the label as the agent wrote it; ``salts`` are by JSON pointer into the submitted body.
    """

    agent_id: UUID
    model: str
    accepted_at: datetime
    salts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Pick:
    """A pick with its words; ``index`` is its place in the submitted body."""

    index: int
    slot: str
    player: Player
    price: int
    confidence: float
    points: int | None
    rationale: Text
    main_factor: Text


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a lineup stands among all ``of`` that the pool allowed: its rank, how many have its score, and the
    millionths of all that score less (``percentile``)."""

    rank: int
    tied: int
    of: int
    percentile: int


@dataclass(frozen=True, slots=True)
class ToPlay:
    """How many picks of a lineup wait for their game to begin, and how many are in one that is going on."""

    waiting: int
    playing: int


@dataclass(frozen=True, slots=True)
class Lineup:
    """A locked lineup. ``points`` (hundredths) may be provisional; share (millionths) and regret come at settlement.

    ``rank`` is among the lineups that were handed in, ``standing`` among all that could have been.
    """

    lineup_id: UUID
    agent: AgentCard
    model: str
    revision: int
    total_price: int
    projected_score: int
    confidence: float
    thesis: Text
    picks: tuple[Pick, ...]
    opening: Opening | None
    rank: int | None
    points: int | None
    share: int | None
    regret: int | None
    standing: Standing | None
    to_play: ToPlay | None = None
    """While games are played, where settlement has told it."""


@dataclass(frozen=True, slots=True)
class Optimal:
    """The hindsight-optimal lineup under the settlement version shown."""

    settlement: int
    points: int
    price: int
    players: tuple[Player, ...]


@dataclass(frozen=True, slots=True)
class Results:
    """A locked contest whole: lineups by rank, every pool player, and the optimum once it is settled.

    ``settlement`` is the version that all of it is of, ``latest`` the one that the boards show.
    """

    contest: Contest
    settlement: int | None
    latest: int | None
    reason: str | None
    lineups: tuple[Lineup, ...]
    players: tuple[Player, ...]
    optimal: Optimal | None
    feasible_lineups: int | None
    no_ranks: str | None
    games: Mapping[str, str]
    """How far each game is while they are played, by id: ``waiting``, ``playing``, ``over``; empty where not known."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One contest in an agent's history."""

    contest: str
    season: int
    week: int
    lineup_id: UUID
    model: str
    projected_score: int
    confidence: float
    points: int | None
    share: int | None
    regret: int | None
    standing: Standing | None


@dataclass(frozen=True, slots=True)
class AgentHistory:
    """An agent's locked lineups, and its rows by season and metric where it stands on the agent board."""

    card: AgentCard
    model: str | None
    """What it runs now, as shown."""
    entries: tuple[Entry, ...]
    rows: Mapping[int, Mapping[Metric, Row]]


@dataclass(frozen=True, slots=True)
class ModelWeek:
    """All locked lineups of a model in one contest; the sums are over the settled ones."""

    contest: str
    season: int
    week: int
    lineups: int
    cohort_lineups: int
    settled: int
    points: int | None
    share: int | None


@dataclass(frozen=True, slots=True)
class ModelHistory:
    """A model's weeks and rows; no agent and no word is in it."""

    model: str
    weeks: tuple[ModelWeek, ...]
    rows: Mapping[int, Mapping[Metric, Row]]
    cohort_rows: Mapping[int, Mapping[Metric, Row]]


# --- boards ---------------------------------------------------------------------------------------


def metric_named(text: str) -> Metric:
    """The metric of that name. Raises :class:`MetricUnknown`."""
    try:
        return Metric(text)
    except ValueError:
        allowed = [metric.value for metric in Metric]
        raise MetricUnknown(f"A board is made of {' or '.join(allowed)}.", value=text[:100], allowed=allowed) from None


class _Season:
    """The agents' parts of a season's rows, and the two-way intervals that were drawn of them.

    Both are of one edition of its results and go together: what is still drawn of an older one lands with that one.
    """

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self._drawn: dict[tuple[str, Metric, tuple[Source, ...]], Interval | None] = {}

    def both_ways(self, label: str, metric: Metric, sources: tuple[Source, ...]) -> Interval | None:
        """The two-way interval of a row, drawn once; ``None`` where it would not be exact."""
        key = label, metric, sources
        if key not in self._drawn:
            try:
                self._drawn[key] = two_way(label, pooled_parts(self.parts, sources, metric))
            except DrawError:
                self._drawn[key] = None
        return self._drawn[key]


class Boards:
    """The boards as last made, and a draw that remembers its rows. One for each process.

    A board is made again when the record has changed what it shows; a fresh ``Boards()`` makes everything anew.
    """

    def __init__(self) -> None:
        self._draw: Draw = Memory()
        self._made: dict[tuple[Kind, Metric, int | None], tuple[tuple[int, ...], Board]] = {}
        self._parts: dict[int, tuple[tuple[int, ...], _Season]] = {}

    async def get(self, store: Store, kind: Kind, metric: Metric, season: int | None = None) -> Board:
        """The model board (``Kind.MODEL``) or the agent board of a season, by default the newest.

        Raises :class:`SeasonUnknown`. Where there is no season at all the board is empty.
        """
        edition = await store.edition()
        known = self._made.get((kind, metric, season))
        if known is not None and known[0] == edition:
            return known[1]
        made = await self._make(store, kind, metric, season)
        self._made[kind, metric, season] = (edition, made)
        return made

    async def _make(self, store: Store, kind: Kind, metric: Metric, season: int | None) -> Board:
        seasons = tuple(await store.seasons())
        if season is not None and season not in seasons:
            raise SeasonUnknown(f"No contest of {season} was opened.", season=season, seasons=list(seasons))
        season = season if season is not None else (seasons[0] if seasons else None)
        contests = tuple(await store.settled_contests(season)) if season is not None else ()
        empty = table([], metric, self._draw)
        if season is None:
            return Board(kind, metric, season, seasons, contests, empty, empty, {}, {}, ())
        labels = await store.labels()
        if kind is Kind.AGENT:
            agents = await store.agent_weeks(season)
            cards = {label_of(Kind.AGENT, agent.card.shown): agent.card for agent in agents}
            made = await self._table(
                [week for agent in agents for week in agent.weeks],
                metric,
                entrants=[(Kind.AGENT, card.shown) for card in cards.values()],
                roles={label: card.marks for label, card in cards.items()},
            )
            models = {label: labels.shown(card.model or "", reference=card.reference) for label, card in cards.items()}
            told = await in_thread(lambda: beside("agents", made, metric, self._draw))
            return Board(kind, metric, season, seasons, contests, made, empty, models, told, ())
        written = await store.model_weeks(season)
        weeks = [replace(week, name=labels.shown(week.name, reference=week.reference)) for week in written]
        pooled = await self._table([week for week in weeks if week.kind is Kind.MODEL], metric)
        cohort = await self._table([week for week in weeks if week.kind is Kind.COHORT], metric)
        sources: dict[str, set[Source]] = {}
        for week, shown in zip(written, weeks, strict=True):
            sources.setdefault(label_of(shown.kind, shown.name), set()).add((week.kind, week.name, week.reference))
        pooled_of = {label: tuple(sorted(of_row)) for label, of_row in sources.items()}
        of_season, owners = await self._season(store, season), await store.owners()

        def all_beside() -> tuple[dict[str, Beside], list[Difference]]:
            told: dict[str, Beside] = {}
            for name, of_table in (("models", pooled), ("cohort", cohort)):
                told |= beside(
                    name,
                    of_table,
                    metric,
                    self._draw,
                    sources=pooled_of,
                    parts=of_season.parts,
                    owners=owners,
                    two_way=of_season.both_ways,
                )
            return told, matrix(cohort, self._draw)

        told, differences = await in_thread(all_beside)
        return Board(kind, metric, season, seasons, contests, pooled, cohort, {}, told, tuple(differences))

    async def _season(self, store: Store, season: int) -> _Season:
        """A season's parts; read again when a week of it is settled or corrected."""
        edition = await store.settled_edition(season)
        known = self._parts.get(season)
        if known is None or known[0] != edition:
            known = self._parts[season] = edition, _Season(Parts.of(await store.parts(season)))
        return known[1]

    async def _table(self, weeks: Sequence[RowWeek], metric: Metric, **how: Any) -> Table:
        # The first draw of a process compiles, and a large one takes a while.
        return await in_thread(lambda: table(weeks, metric, self._draw, **how))


async def _rows_labelled(
    store: Store, kind: Kind, seasons: Iterable[int], boards: Boards, label: str, *, cohort: bool = False
) -> dict[int, dict[Metric, Row]]:
    found: dict[int, dict[Metric, Row]] = {}
    for season in seasons:
        for metric in Metric:
            made = await boards.get(store, kind, metric, season)
            for row in (made.cohort if cohort else made.table).rows:
                if row.label == label:
                    found.setdefault(season, {})[metric] = row
    return found


async def agent(store: Store, name: str, boards: Boards) -> AgentHistory:
    """An agent by the name or the neutral handle that it is shown by. Raises :class:`AgentUnknown`.

    An unclaimed agent is not to be found by the name it chose, one with no locked lineup not at all.
    """
    name = unicodedata.normalize("NFC", name)
    card = await store.card_by_name(name) if storable(name) else None
    if card is None and is_handle(name):
        # By either form, so that an address stays good when its agent is claimed or released.
        ids = [
            agent_id
            for agent_id in await store.agents_with_a_locked_lineup()
            if name in (handle(agent_id), handle(agent_id, claimed=True))
        ]
        card = await store.card(ids[0]) if ids else None
    if card is None:
        raise AgentUnknown("No agent is shown by that name; one appears once it is claimed and has a locked lineup.")
    labels = await store.labels()
    entries = tuple(
        Entry(
            contest=row.contest,
            season=row.season,
            week=row.week,
            lineup_id=row.lineup_id,
            model=labels.shown(row.model, reference=row.reference),
            projected_score=row.projected_score,
            confidence=row.confidence,
            points=row.points,
            share=row.share,
            regret=row.regret,
            standing=_standing(row),
        )
        for row in await store.lineups_of(card.agent_id)
    )
    seasons = sorted({entry.season for entry in entries}, reverse=True) if card.shown_by_name else []
    rows = await _rows_labelled(store, Kind.AGENT, seasons, boards, label_of(Kind.AGENT, card.shown))
    model = labels.shown(card.model, reference=card.reference) if card.model else None
    return AgentHistory(card, model, entries, rows)


async def model(store: Store, name: str, boards: Boards) -> ModelHistory:
    """A model by its name; a label that stands for another one leads to that one's history.

    Raises :class:`ModelUnknown` where no locked lineup counts for it.
    """
    name = unicodedata.normalize("NFC", name)
    labels = await store.labels()
    shown = {(known, mark): labels.shown(known, reference=mark) for known, mark in await store.models()}
    if name not in shown.values() and name in labels.canonical:
        name = labels.shown(name, reference=False)
    spellings = [known for known in shown if shown[known] == name]
    weeks = tuple(
        ModelWeek(
            contest=row.contest,
            season=row.season,
            week=row.week,
            lineups=row.lineups,
            cohort_lineups=row.cohort_lineups,
            settled=row.settled,
            points=int(row.points) if row.points is not None else None,
            share=int(row.share) if row.share is not None else None,
        )
        for row in (await store.model_history(spellings) if spellings else [])
    )
    if not weeks:
        raise ModelUnknown("No locked lineup carries that model.")
    seasons = sorted({week.season for week in weeks}, reverse=True)
    return ModelHistory(
        model=name,
        weeks=weeks,
        rows=await _rows_labelled(store, Kind.MODEL, seasons, boards, label_of(Kind.MODEL, name)),
        cohort_rows=await _rows_labelled(store, Kind.MODEL, seasons, boards, label_of(Kind.COHORT, name), cohort=True),
    )


# --- contests -------------------------------------------------------------------------------------


def storable(text: str) -> bool:
    """Whether the database could hold a text; where not, nothing there can be called so."""
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def _contest(row: Record) -> Contest:
    state = State.OPEN if row.cancelled_at is None else State.CANCELLED
    if row.locked_at is not None:
        state = State.FINAL if row.settlement is not None else State.PROVISIONAL if row.scored else State.LOCKED
    return Contest(
        contest=row.contest,
        season=row.season,
        week=row.week,
        state=state,
        locks_at=row.locks_at,
        locked_at=row.locked_at,
        cancelled_because=row.cancelled_because,
        entries=row.entries,
        cap=row.cap,
        ruleset=row.ruleset,
        price_source=row.price_source,
        pool=row.pool,
        games=tuple(row.games),
        best=row.best,
        optimum=row.optimum,
    )


async def contests(store: Store, season: int | None = None) -> list[Contest]:
    """All contests, newest first."""
    return [_contest(row) for row in await store.contests(season)]


async def _found(store: Store, name: str) -> Record:
    row = await store.contest(name) if storable(name) else None
    if row is None:
        raise ContestUnknown("No contest of that name was opened; `/api/v1/contests` lists them.", contest=name[:100])
    return row


def _players(row: Record, points: Mapping[str, int] | None) -> dict[str, Player]:
    return _pool(row.players, points)


def _pool(players: Iterable[Mapping[str, Any]], points: Mapping[str, int] | None) -> dict[str, Player]:
    return {
        player["player_id"]: Player(
            player_id=player["player_id"],
            name=player["player_name"],
            positions=tuple(player["positions"]),
            team=player["team"],
            opponent=player["opponent"],
            price=player["price"],
            points=None if points is None else points.get(player["player_id"], 0),
        )
        for player in players
    }


async def contest_of(store: Store, name: str) -> Contest:
    """One contest. Raises :class:`ContestUnknown`."""
    return _contest(await _found(store, name))


async def players_of(store: Store, name: str) -> dict[str, Player]:
    """Everybody who has been in a pool of a contest, by id, without points. Raises :class:`ContestUnknown`."""
    players = _players(await _found(store, name), None)
    for pool in await store.pools(name):
        players = {**_pool(pool, None), **players}
    return players


async def pool(store: Store, name: str) -> tuple[Contest, list[Player]]:
    """A contest and who may be picked in it, dearest first: all that there is to see before the lock.

    Raises :class:`ContestUnknown`.
    """
    row = await _found(store, name)
    contest = _contest(row)
    gone = {player["player_id"] for player in row.players if player["game_id"] in contest.left}
    return contest, _by_price(player for player in _players(row, None).values() if player.player_id not in gone)


def _by_price(players: Iterable[Player]) -> list[Player]:
    return sorted(players, key=lambda player: (-player.price, player.name, player.player_id))


def _by_position(players: Iterable[Player], roster: Sequence[Mapping[str, Any]]) -> list[Player]:
    """In the roster's order of positions, dearest first."""
    order = {position: place for place, slot in reversed(list(enumerate(roster))) for position in slot["positions"]}
    return sorted(
        _by_price(players), key=lambda player: min((order.get(at, 99) for at in player.positions), default=99)
    )


async def _settled(store: Store, contest: Contest, settlement: int | None) -> Record | None:
    """The version named, else the one that the boards show, if any. Raises :class:`SettlementUnknown`."""
    found = await store.settlement(contest.contest, settlement)
    if found is None and settlement is not None:
        raise SettlementUnknown(
            f"{contest.contest} has no settlement version {settlement} on the boards; `/api/v1/corrections` lists "
            "those there are.",
            contest=contest.contest,
        )
    return found


async def results(store: Store, name: str, *, settlement: int | None = None, words: bool = True) -> Results:
    """A locked contest with its lineups, best first; without ``words`` every text is withheld as not checked.

    ``settlement`` is the version shown, the newest unless one is named. Raises :class:`ContestUnknown`,
    :class:`ContestCancelled`, :class:`ContestNotLocked`, :class:`SettlementUnknown`.
    """
    row = await _found(store, name)
    contest = _locked(row)
    settled = await _settled(store, contest, settlement)
    provisional = await store.provisional(name) if settled is None else None
    points: Mapping[str, int] | None = None
    totals: Mapping[str, int] = {}
    if settled is not None:
        points = settled.players
    elif provisional is not None:
        points, totals = provisional.players, provisional.lineups
    left = provisional.to_play if provisional is not None else {}
    players = _players(row, points)
    order = {slot["slot"]: place for place, slot in enumerate(row.roster)}
    cards = await store.cards_of(name)
    released = await store.words(name) if words else {}
    labels = await store.labels()
    lineups = await store.lineups(name, settled.settlement if settled is not None else None)
    named = {**await _former(store, name, lineups, players), **players}
    unranked = [
        replace(
            made,
            model=labels.shown(lineup.model, reference=lineup.reference),
            # Each leaf holds the label as it was written: where that may not be shown, nothing can be opened.
            opening=made.opening if labels.as_written(lineup.model, reference=lineup.reference) else None,
            to_play=ToPlay(*left[str(lineup.lineup_id)]) if str(lineup.lineup_id) in left else None,
        )
        for lineup in lineups
        for made in [
            _lineup(lineup, named, cards.get(lineup.agent_id), released.get(lineup.lineup_id, {}), totals, order)
        ]
    ]
    return Results(
        contest=contest,
        settlement=settled.settlement if settled is not None else None,
        latest=settled.latest if settled is not None else None,
        reason=settled.reason if settled is not None else None,
        lineups=_ranked(unranked),
        players=tuple(_by_price(players.values())),
        optimal=_optimal(row, settled, players) if settled is not None else None,
        feasible_lineups=int(settled.feasible_lineups) if settled is not None and settled.feasible_lineups else None,
        no_ranks=settled.no_ranks if settled is not None else None,
        games=provisional.games if provisional is not None else {},
    )


async def _former(
    store: Store, name: str, lineups: Iterable[Record], players: Mapping[str, Player]
) -> dict[str, Player]:
    """Who is picked and no longer in the pool, as an earlier pool of the contest had them: each scores zero."""
    gone = {pick["player_id"] for lineup in lineups for pick in lineup.picks} - players.keys()
    if not gone:
        return {}
    found: dict[str, Player] = {}
    for pool in await store.pools(name):
        found = {one: player for one, player in _pool(pool, {}).items() if one in gone} | found
    return found


def _locked(row: Record) -> Contest:
    contest = _contest(row)
    if contest.state is State.CANCELLED:
        raise ContestCancelled(
            f"{contest.contest} was called off before its lock: {contest.cancelled_because} "
            "Nothing of what was entered is shown.",
            contest=contest.contest,
            reason=contest.cancelled_because,
        )
    if contest.state is State.OPEN:
        raise ContestNotLocked(
            f"Entries of {contest.contest} are shown from its lock on.",
            contest=contest.contest,
            locks_at=instant(contest.locks_at),
        )
    return contest


def _optimal(row: Record, settled: Record, players: Mapping[str, Player]) -> Optimal:
    of_week = settled.optimal
    return Optimal(
        settlement=settled.settlement,
        points=of_week["points"],
        price=of_week["price"],
        players=tuple(_by_position((_player(players, one) for one in of_week["players"]), row.roster)),
    )


async def optimal(store: Store, name: str, settlement: int | None = None) -> tuple[Contest, Optimal]:
    """The optimum of a settled contest, under the newest version unless one is named.

    Raises :class:`ContestUnknown`, :class:`ContestCancelled`, :class:`ContestNotLocked`,
    :class:`ContestNotSettled`, :class:`SettlementUnknown`.
    """
    row = await _found(store, name)
    contest = _locked(row)
    settled = await _settled(store, contest, settlement)
    if settled is None:
        raise ContestNotSettled(
            f"The optimum of {contest.contest} is known once its games are final.", contest=contest.contest
        )
    return contest, _optimal(row, settled, _players(row, settled.players))


def _player(players: Mapping[str, Player], player_id: str) -> Player:
    known = players.get(player_id)
    return known or Player(player_id, player_id, (), "", "", 0, None)


def _lineup(
    row: Record,
    players: Mapping[str, Player],
    card: AgentCard | None,
    words: Mapping[str, Record],
    provisional: Mapping[str, int],
    order: Mapping[str, int],
) -> Lineup:
    agent_card = card or AgentCard(row.agent_id)

    salts: dict[str, str] = {"": row.salt}

    def text(pointer: str) -> Text:
        known = words.get(pointer)
        if known is not None and known.redacted_at is not None:
            tombstone = Tombstone(known.redacted_at, known.redaction)
            return Text(None, withheld(agent_card, None, arrived=False, redacted=True), tombstone)
        state, released = (known.state, known.text) if known is not None else (None, None)
        reason = withheld(agent_card, state, arrived=released is not None)
        if reason is None and known is not None and known.salt is not None:
            salts[pointer] = known.salt
        return Text(released if reason is None else None, reason)

    by_slot = {pick["slot"]: pick["points"] for pick in row.settled_picks or ()}

    def pick(index: int, picked: Mapping[str, Any]) -> Pick:
        player = _player(players, picked["player_id"])
        return Pick(
            index=index,
            slot=picked["slot"],
            player=player,
            price=picked["price"],
            confidence=picked["confidence"],
            points=by_slot.get(picked["slot"], player.points),
            rationale=text(f"/picks/{index}/rationale"),
            main_factor=text(f"/picks/{index}/main_factor"),
        )

    return Lineup(
        lineup_id=row.lineup_id,
        agent=agent_card,
        model=row.model,
        revision=row.revision,
        total_price=row.total_price,
        projected_score=row.projected_score,
        confidence=row.confidence,
        thesis=text("/thesis"),
        picks=tuple(
            sorted(
                (pick(index, picked) for index, picked in enumerate(row.picks)),
                key=lambda made: order.get(made.slot, len(order)),
            )
        ),
        opening=Opening(row.agent_id, row.model, row.accepted_at, salts) if row.salt is not None else None,
        rank=None,
        points=row.points if row.points is not None else provisional.get(str(row.lineup_id)),
        share=row.share,
        regret=row.regret,
        standing=_standing(row),
    )


def _standing(row: Record) -> Standing | None:
    if row.rank is None or row.feasible_lineups is None:
        return None
    return Standing(int(row.rank), int(row.tied), int(row.feasible_lineups), row.percentile)


def _ranked(lineups: Sequence[Lineup]) -> tuple[Lineup, ...]:
    """Best first, equal points sharing a rank; lineups without points last."""
    ordered = sorted(
        lineups,
        key=lambda lineup: (
            lineup.points is None,
            -(lineup.points or 0),
            lineup.agent.shown,
            str(lineup.lineup_id),
        ),
    )
    ranked: list[Lineup] = []
    for place, lineup in enumerate(ordered, start=1):
        before = ranked[-1] if ranked else None
        tied = before is not None and before.points == lineup.points
        rank = None if lineup.points is None else before.rank if tied and before is not None else place
        ranked.append(replace(lineup, rank=rank))
    return tuple(ranked)
