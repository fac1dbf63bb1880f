"""The ledger of settlements: each version of each week, why it came, which statistics changed and what moved (S4).

Points in hundredths, share in millionths. Everything is read off the record, so that it is the same after a rebuild.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from boards.domain import AgentCard, Kind, Metric, Row, RowWeek, Table, table
from boards.draw import LEAST_WEEKS, Interval, Series
from boards.store import Record, Store
from boards.views import Contest, Player, SettlementUnknown, contest_of, players_of


@dataclass(frozen=True, slots=True)
class Statistic:
    """A statistic that counts, before and after; ``None`` where it was not known."""

    statistic: str
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class Corrected:
    """A player whose points or statistics a correction changed."""

    player: Player
    before: int
    after: int
    statistics: tuple[Statistic, ...]


@dataclass(frozen=True, slots=True)
class Version:
    """One settlement version of a contest; the numbers before are those of the version before.

    ``moved`` is how many lineups score differently, ``latest`` the version that the boards show.
    """

    contest: str
    season: int
    week: int
    settlement: int
    latest: int
    reason: str
    settled_at: datetime
    digest: str
    lineups: int
    moved: int
    optimum: int
    optimum_before: int | None
    corrected: tuple[Corrected, ...]


@dataclass(frozen=True, slots=True)
class MovedLineup:
    """A lineup whose points or rank are others than under the version before."""

    lineup_id: UUID
    agent: AgentCard
    model: str
    points_before: int
    points: int
    share_before: int
    share: int
    rank_before: int
    rank: int


@dataclass(frozen=True, slots=True)
class MovedRow:
    """A row of a board whose value in the corrected week, or whose rank, is another one.

    ``kind`` says on which table it stands. ``mean`` and ``rank`` are those of the whole season, with every other week
    as the boards show it now; ``week`` is the row's mean in the corrected week. ``None`` where there is none.
    """

    kind: Kind
    label: str
    name: str
    metric: Metric
    week_before: float | None
    week: float | None
    mean_before: float | None
    mean: float | None
    rank_before: int | None
    rank: int | None


@dataclass(frozen=True, slots=True)
class Correction:
    """A version with all that it moved."""

    version: Version
    contest: Contest
    lineups: tuple[MovedLineup, ...]
    rows: tuple[MovedRow, ...]


async def versions(store: Store) -> list[Version]:
    """Every version of every contest that the boards show or have shown, the newest first."""
    rows = await store.versions()
    named = {contest: await players_of(store, contest) for contest in {row.contest for row in rows if row.corrected}}
    return [_version(row, named.get(row.contest, {})) for row in rows]


def _version(row: Record, players: Mapping[str, Player]) -> Version:
    return Version(
        contest=row.contest,
        season=row.season,
        week=row.week,
        settlement=row.settlement,
        latest=row.latest,
        reason=row.reason,
        settled_at=row.settled_at,
        digest=row.digest,
        lineups=row.lineups,
        moved=row.moved,
        optimum=row.optimum,
        optimum_before=row.optimum_before,
        corrected=tuple(_corrected(one, players) for one in row.corrected or ()),
    )


def _corrected(one: Mapping[str, Any], players: Mapping[str, Player]) -> Corrected:
    unknown = Player(one["player_id"], one["player_id"], (), "", "", 0, None)
    return Corrected(
        player=players.get(one["player_id"], unknown),
        before=one["before"],
        after=one["after"],
        statistics=tuple(Statistic(told["statistic"], told["before"], told["after"]) for told in one["statistics"]),
    )


async def correction(store: Store, contest: str, settlement: int) -> Correction:
    """One version with the lineups and rows that it moved; the first version of a contest moved none.

    Raises :class:`ContestUnknown`, :class:`SettlementUnknown`.
    """
    found = await contest_of(store, contest)
    rows = [row for row in await store.versions(contest) if row.settlement == settlement]
    if not rows:
        raise SettlementUnknown(
            f"{found.contest} has no settlement version {settlement} on the boards; `/api/v1/corrections` lists "
            "those there are.",
            contest=found.contest,
        )
    version = _version(rows[0], await players_of(store, contest))
    if settlement == 1:
        return Correction(version, found, (), ())
    labels = await store.labels()
    cards = await store.cards_of(contest)
    lineups = tuple(
        MovedLineup(
            lineup_id=row.lineup_id,
            agent=cards.get(row.agent_id) or AgentCard(row.agent_id),
            model=labels.shown(row.model, reference=row.reference),
            points_before=row.points_before,
            points=row.points,
            share_before=row.share_before,
            share=row.share,
            rank_before=row.place_before,
            rank=row.place,
        )
        for row in await store.moved_lineups(contest, settlement)
    )
    return Correction(version, found, lineups, await _moved_rows(store, found, settlement))


async def _moved_rows(store: Store, contest: Contest, settlement: int) -> tuple[MovedRow, ...]:
    """Rows as they stand with the version and with the one before it in the contest's place, all else alike."""
    labels = await store.labels()
    agents = {str(agent.card.agent_id): agent for agent in await store.agent_weeks(contest.season)}
    others = [
        replace(week, name=labels.shown(week.name, reference=week.reference))
        for week in await store.model_weeks(contest.season)
    ]
    others += [replace(week, name=agent.card.shown) for agent in agents.values() for week in agent.weeks]
    others = [week for week in others if week.contest != contest.contest]

    async def under(number: int) -> list[RowWeek]:
        made = others.copy()
        for key, week in await store.weeks_under(contest.contest, number):
            if week.kind is not Kind.AGENT:
                made.append(replace(week, name=labels.shown(key, reference=week.reference)))
            elif key in agents:
                made.append(replace(week, name=agents[key].card.shown))
        return made

    before, after = await under(settlement - 1), await under(settlement)
    found: list[MovedRow] = []
    for metric in Metric:
        for kind in (Kind.COHORT, Kind.MODEL, Kind.AGENT):
            old, new = (
                table([week for week in weeks if week.kind is kind], metric, _means) for weeks in (before, after)
            )
            found += _moved(kind, metric, contest.contest, old, new)
    return tuple(found)


def _moved(kind: Kind, metric: Metric, contest: str, old: Table, new: Table) -> list[MovedRow]:
    was = {row.label: (place, row) for place, row in enumerate(old.rows, start=1)}
    found = []
    for place, row in enumerate(new.rows, start=1):
        place_before, row_before = was.get(row.label, (place, None))
        ranks = _rank(place_before, row_before), _rank(place, row)
        weeks = _week_mean(row_before, contest), _week_mean(row, contest)
        if weeks[0] == weeks[1] and ranks[0] == ranks[1]:
            continue
        found.append(
            MovedRow(
                kind=kind,
                label=row.label,
                name=row.name,
                metric=metric,
                week_before=weeks[0],
                week=weeks[1],
                mean_before=row_before.interval.mean if row_before is not None else None,
                mean=row.interval.mean,
                rank_before=ranks[0],
                rank=ranks[1],
            )
        )
    return found


def _rank(place: int, row: Row | None) -> int | None:
    return place if row is not None and row.interval.mean is not None else None


def _week_mean(row: Row | None, contest: str) -> float | None:
    if row is None or contest not in row.contests:
        return None
    place = row.contests.index(contest)
    return row.sums[place] / row.counts[place]


def _means(rows: Sequence[Series]) -> list[Interval]:
    """Means alone, by which rows are ordered: the ledger draws no interval."""
    return [
        Interval(len(row.sums), sum(row.sums) / sum(row.counts) if len(row.sums) >= LEAST_WEEKS else None, None, None)
        for row in rows
    ]
