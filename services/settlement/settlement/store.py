"""Tables of settlement and every query on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    RowMapping,
    Table,
    Text,
    Uuid,
    and_,
    func,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy import insert as plain_insert
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from common import events as ev
from common.db import adding_rows, as_rows, driver
from settlement.lines import Line, Week
from settlement.playing import GameState
from settlement.results import Entry, Outcome, Pick, Result

METADATA = MetaData()

_CHUNK = 1_000
"""Rows of one statement: PostgreSQL takes 65,535 parameters, and a thousand rows take the event loop some 50 ms."""

# What is known of a contest arrives in any order, so each part may be there without the others.
CONTESTS = Table(
    "contests",
    METADATA,
    Column("contest", Text, primary_key=True),
    Column("season", Integer),
    Column("week", Integer),
    Column("opened", JSONB),
    Column("opened_version", Integer, nullable=False, server_default=text("0")),
    Column("games", JSONB),
    Column("games_version", Integer, nullable=False, server_default=text("0")),
    Column("locked_at", DateTime(timezone=True)),
    Column("locked_version", Integer),
    Column("locked_pool", Integer, nullable=False, server_default=text("1")),
    Column("entries", Integer),
    Column("cancelled_because", Text),
    Column("scores_sequence", Integer, nullable=False, server_default=text("0")),
    Index("contests_of_week", "season", "week"),
)

LINEUPS = Table(
    "lineups",
    METADATA,
    Column("lineup_id", Uuid, primary_key=True),
    Column("contest", Text, nullable=False),
    Column("agent_id", Uuid, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("model", Text, nullable=False),
    Column("marks", JSONB, nullable=False),
    Column("picks", JSONB, nullable=False),
    Index("lineups_of_contest", "contest"),
)

STATISTICS = Table(
    "statistics",
    METADATA,
    Column("season", Integer, primary_key=True, autoincrement=False),
    Column("week", Integer, primary_key=True, autoincrement=False),
    Column("player_id", Text, primary_key=True),
    Column("line", JSONB, nullable=False),
)

WEEKS = Table(
    "statistics_weeks",
    METADATA,
    Column("season", Integer, primary_key=True, autoincrement=False),
    Column("week", Integer, primary_key=True, autoincrement=False),
    Column("final", Boolean, nullable=False),
    Column("imports", Integer, nullable=False),
    Column("imported_at", DateTime(timezone=True), nullable=False),
)

TOLD_GAMES = Table(
    "told_games",
    METADATA,
    Column("game_id", Text, primary_key=True),
    Column("state", Text, nullable=False),
)
"""What imports said of games while they were played."""

SETTLEMENTS = Table(
    "settlements",
    METADATA,
    Column("contest", Text, primary_key=True),
    Column("settlement", Integer, primary_key=True, autoincrement=False),
    Column("reason", Text, nullable=False),
    Column("scoring", Text, nullable=False),
    Column("settled_at", DateTime(timezone=True), nullable=False),
    Column("optimal", JSONB, nullable=False),
    Column("players", JSONB, nullable=False),
    Column("lineups", Integer, nullable=False),
    Column("digest", Text, nullable=False),
    Column("feasible_lineups", Text),
    Column("no_ranks", Text),
    # What it was settled by, of the pool's players; of versions from before this was kept there is none.
    Column("lines", JSONB),
    Column("corrected", JSONB, nullable=False, server_default=text("'[]'")),
    Column("moved", Integer, nullable=False, server_default=text("0")),
)

RESULTS = Table(
    "results",
    METADATA,
    Column("contest", Text, primary_key=True),
    Column("settlement", Integer, primary_key=True, autoincrement=False),
    Column("lineup_id", Uuid, primary_key=True),
    Column("agent_id", Uuid, nullable=False),
    Column("model", Text, nullable=False),
    Column("marks", JSONB, nullable=False),
    Column("points", Integer, nullable=False),
    Column("share", BigInteger, nullable=False),
    Column("regret", Integer, nullable=False),
    Column("picks", JSONB, nullable=False),
    Column("rank", Text),
    Column("tied", Text),
    Column("percentile", Integer),
    ForeignKeyConstraint(["contest", "settlement"], ["settlements.contest", "settlements.settlement"]),
)


@dataclass(frozen=True, slots=True)
class Known:
    """What has arrived of a contest so far. ``entries`` is how many lineups the lock announced.

    ``opened`` is None until the pool has arrived by which it locked; its games are those of the newest schedule, and
    ``scheduled`` says whether that is the one by which it locked.
    """

    contest: str
    opened: ev.ContestOpened | None
    entries: int | None
    scheduled: bool
    cancelled_because: str | None


@dataclass(frozen=True, slots=True)
class Imported:
    """The state of a week's statistics; ``imports`` grows with each import."""

    final: bool
    imports: int


@dataclass(frozen=True, slots=True)
class Settled:
    """A settlement version, without its rows; ``no_ranks`` says why it has no ``feasible_lineups``.

    A version made before there were ranks has neither. ``corrected`` and ``moved``, how many lineups score differently,
    are against the version before; of the first there is nothing to correct.
    """

    contest: str
    settlement: int
    reason: str
    scoring: str
    settled_at: datetime
    optimal: ev.OptimalLineup
    lineups: int
    digest: str
    feasible_lineups: str | None
    no_ranks: str | None
    corrected: tuple[ev.CorrectedPlayer, ...] = ()
    moved: int = 0


@dataclass(frozen=True, slots=True)
class Basis:
    """What a version's successor is compared with: points by player and by lineup, and the lines it was settled by."""

    players: dict[str, int]
    lineups: dict[UUID, int]
    lines: dict[str, Line] | None


_KEEP_LINEUPS = f"""
{adding_rows(LINEUPS)}
ON CONFLICT (lineup_id) DO UPDATE
SET revision = excluded.revision, model = excluded.model, marks = excluded.marks, picks = excluded.picks
WHERE lineups.revision < excluded.revision
"""


class Store:
    """All queries, in the transaction of one connection."""

    def __init__(self, connection: AsyncConnection) -> None:
        self.connection = connection

    # --- what the contest service tells ----------------------------------------------------------

    async def keep_opened(self, event: ev.ContestOpened, version: int) -> None:
        """Keep a contest as it was opened last; the games only where no later schedule is known."""
        games = [game.model_dump(mode="json") for game in event.games]
        newest = {"season": event.season, "week": event.week, "opened": event.model_dump(mode="json")}
        newest["opened_version"] = version
        statement = insert(CONTESTS).values(contest=event.contest, games=games, games_version=version, **newest)
        older = CONTESTS.c.opened_version < version
        await self.connection.execute(
            statement.on_conflict_do_update(index_elements=[CONTESTS.c.contest], set_=newest, where=older)
        )
        await self._keep_games(event.contest, games, version)

    async def keep_schedule(self, event: ev.ContestRescheduled, version: int) -> None:
        """Keep the newest schedule of a contest."""
        await self._keep_games(event.contest, [game.model_dump(mode="json") for game in event.games], version)

    async def _keep_games(self, contest: str, games: list[dict[str, Any]], version: int) -> None:
        statement = insert(CONTESTS).values(contest=contest, games=games, games_version=version)
        await self.connection.execute(
            statement.on_conflict_do_update(
                index_elements=[CONTESTS.c.contest],
                set_={"games": statement.excluded.games, "games_version": statement.excluded.games_version},
                where=CONTESTS.c.games_version < statement.excluded.games_version,
            )
        )

    async def keep_cancelled(self, event: ev.ContestCancelled) -> None:
        """Keep that a contest was called off, and why."""
        fixed = {"cancelled_because": event.reason}
        await self.connection.execute(
            insert(CONTESTS)
            .values(contest=event.contest, **fixed)
            .on_conflict_do_update(index_elements=[CONTESTS.c.contest], set_=fixed)
        )

    async def keep_locked(self, event: ev.ContestLocked, version: int) -> None:
        """Keep the lock of a contest and how many lineups it announced."""
        fixed = {"locked_at": event.locked_at, "locked_version": version, "entries": event.entries}
        fixed["locked_pool"] = event.pool
        await self.connection.execute(
            insert(CONTESTS)
            .values(contest=event.contest, **fixed)
            .on_conflict_do_update(index_elements=[CONTESTS.c.contest], set_=fixed)
        )

    async def keep_lineups(self, events: Sequence[ev.LineupLocked]) -> None:
        """Keep frozen lineups, whether their contest is known yet or not; of a lineup the newest revision."""
        newest = {event.lineup_id: event for event in sorted(events, key=lambda event: event.revision)}
        rows = [
            {
                "lineup_id": event.lineup_id,
                "contest": event.contest,
                "agent_id": event.agent_id,
                "revision": event.revision,
                "model": event.model,
                "marks": event.marks,
                "picks": [(pick.slot, pick.player_id, pick.price) for pick in event.picks],
            }
            for _, event in sorted(newest.items())
        ]
        await (await driver(self.connection)).execute(_KEEP_LINEUPS, [as_rows(rows)])

    async def contest(self, contest: str) -> Known | None:
        """What is known of a contest."""
        row = (await self.connection.execute(select(CONTESTS).where(CONTESTS.c.contest == contest))).first()
        if row is None:
            return None
        # Each version of an open contest has one event, and the lock's is the last: the schedule's is at least the
        # one before it once all have arrived.
        scheduled = row.locked_version is None or row.games_version >= row.locked_version - 1
        opened = _opened(row)
        if opened is not None and opened.pool < row.locked_pool:
            opened = None  # An earlier pool than the one by which it locked.
        return Known(contest, opened, row.entries, scheduled, row.cancelled_because)

    async def count_lineups(self, contest: str) -> int:
        """How many frozen lineups of a contest have arrived."""
        return (
            await self.connection.execute(select(func.count()).select_from(LINEUPS).where(LINEUPS.c.contest == contest))
        ).scalar_one()

    async def lineups(self, contest: str) -> list[Entry]:
        """The frozen lineups of a contest, by id."""
        found: list[Entry] = []
        rows = await self.connection.stream(
            select(LINEUPS).where(LINEUPS.c.contest == contest).order_by(LINEUPS.c.lineup_id)
        )
        async for portion in rows.partitions(_CHUNK):
            found += [
                Entry(
                    row.lineup_id,
                    row.agent_id,
                    row.model,
                    ev.Marks.model_validate(row.marks),
                    tuple(Pick(slot, player_id, price) for slot, player_id, price in row.picks),
                )
                for row in portion
            ]
        return found

    # --- statistics ------------------------------------------------------------------------------

    async def lock_statistics(self) -> None:
        """Let one import at a time write, until the transaction ends."""
        await self.connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended("statistics", 0))))

    async def imported(self, weeks: Iterable[Week], *, hold: bool = False) -> dict[Week, Imported]:
        """The state of weeks, of those that have any statistics; ``hold`` makes imports of them wait for us."""
        statement = select(WEEKS).where(
            tuple_(WEEKS.c.season, WEEKS.c.week).in_([(one.season, one.week) for one in weeks])
        )
        if hold:
            statement = statement.with_for_update(read=True)
        rows = await self.connection.execute(statement)
        return {Week(row.season, row.week): Imported(row.final, row.imports) for row in rows}

    async def keep_statistics(self, week: Week, lines: Mapping[str, Line], *, final: bool, at: datetime) -> int:
        """Insert or replace a week's lines by player; how many of them are new or changed."""
        changed = 0
        rows = [
            {"season": week.season, "week": week.week, "player_id": player_id, "line": line}
            for player_id, line in sorted(lines.items())
        ]
        for start in range(0, len(rows), _CHUNK):
            statement = insert(STATISTICS).values(rows[start : start + _CHUNK])
            written = await self.connection.scalars(
                statement.on_conflict_do_update(
                    index_elements=[STATISTICS.c.season, STATISTICS.c.week, STATISTICS.c.player_id],
                    set_={"line": statement.excluded.line},
                    where=STATISTICS.c.line.is_distinct_from(statement.excluded.line),
                ).returning(STATISTICS.c.player_id)
            )
            changed += len(written.all())
        state = insert(WEEKS).values(season=week.season, week=week.week, final=final, imports=1, imported_at=at)
        await self.connection.execute(
            state.on_conflict_do_update(
                index_elements=[WEEKS.c.season, WEEKS.c.week],
                set_={"final": final, "imports": WEEKS.c.imports + 1, "imported_at": at},
            )
        )
        return changed

    async def statistics(self, week: Week) -> dict[str, Line]:
        """Every line of a week, by player."""
        rows = await self.connection.execute(
            select(STATISTICS.c.player_id, STATISTICS.c.line).where(
                STATISTICS.c.season == week.season, STATISTICS.c.week == week.week
            )
        )
        return {row.player_id: row.line for row in rows}

    async def keep_told(self, games: Mapping[str, GameState]) -> None:
        """Keep how far games are, in the place of what was said of them before."""
        if games:
            statement = insert(TOLD_GAMES).values([{"game_id": name, "state": state} for name, state in games.items()])
            newer = {"state": statement.excluded.state}
            await self.connection.execute(
                statement.on_conflict_do_update(index_elements=[TOLD_GAMES.c.game_id], set_=newer)
            )

    async def told(self) -> dict[str, GameState]:
        """What was said of games, by id."""
        return {row.game_id: row.state for row in await self.connection.execute(select(TOLD_GAMES))}

    async def weeks(self) -> Sequence[RowMapping]:
        """Every week that has statistics, in order."""
        rows = await self.connection.execute(select(WEEKS).order_by(WEEKS.c.season, WEEKS.c.week))
        return rows.mappings().all()

    async def contests_of(self, weeks: Iterable[Week]) -> list[tuple[ev.ContestOpened, bool]]:
        """The opened contests of weeks, in order, and whether each is locked."""
        rows = await self.connection.execute(
            select(CONTESTS.c.opened, CONTESTS.c.games, CONTESTS.c.entries.is_not(None).label("locked"))
            .where(
                CONTESTS.c.opened.is_not(None),
                tuple_(CONTESTS.c.season, CONTESTS.c.week).in_([(one.season, one.week) for one in weeks]),
            )
            .order_by(CONTESTS.c.contest)
        )
        return [(opened, row.locked) for row in rows if (opened := _opened(row)) is not None]

    async def contests_without_final_statistics(self) -> list[ev.ContestOpened]:
        """The locked contests of weeks that have no final statistics, in order."""
        final = and_(WEEKS.c.season == CONTESTS.c.season, WEEKS.c.week == CONTESTS.c.week, WEEKS.c.final)
        rows = await self.connection.execute(
            select(CONTESTS.c.opened, CONTESTS.c.games)
            .where(
                CONTESTS.c.opened.is_not(None),
                CONTESTS.c.entries.is_not(None),
                ~select(WEEKS).where(final).exists(),
            )
            .order_by(CONTESTS.c.contest)
        )
        return [opened for row in rows if (opened := _opened(row)) is not None]

    async def next_scores(self, contest: str) -> int:
        """The next number of a contest's provisional scores; holds the contest's row until the transaction ends."""
        statement = (
            update(CONTESTS)
            .where(CONTESTS.c.contest == contest)
            .values(scores_sequence=CONTESTS.c.scores_sequence + 1)
            .returning(CONTESTS.c.scores_sequence)
        )
        sequence: int = (await self.connection.execute(statement)).scalar_one()
        return sequence

    # --- settlements -----------------------------------------------------------------------------

    async def lock_contest(self, contest: str) -> None:
        """Let one settlement of a contest at a time write, until the transaction ends."""
        await self.connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"settle:{contest}", 0))))

    async def latest(self, contest: str) -> Settled | None:
        """The newest settlement version of a contest."""
        row = (
            await self.connection.execute(
                _SETTLED.where(SETTLEMENTS.c.contest == contest).order_by(SETTLEMENTS.c.settlement.desc()).limit(1)
            )
        ).first()
        return None if row is None else _settled(row._mapping)

    async def settlements(self, contest: str | None = None) -> list[Settled]:
        """Every settlement version, of one contest or of all, oldest first."""
        statement = _SETTLED.order_by(SETTLEMENTS.c.contest, SETTLEMENTS.c.settlement)
        if contest is not None:
            statement = statement.where(SETTLEMENTS.c.contest == contest)
        return [_settled(row) for row in (await self.connection.execute(statement)).mappings()]

    async def settlement(self, contest: str, settlement: int) -> tuple[Settled, dict[str, int]] | None:
        """One version and the points of the whole pool under it."""
        row = (
            await self.connection.execute(
                _SETTLED.add_columns(SETTLEMENTS.c.players).where(
                    SETTLEMENTS.c.contest == contest, SETTLEMENTS.c.settlement == settlement
                )
            )
        ).first()
        return None if row is None else (_settled(row._mapping), row.players)

    async def basis(self, contest: str, settlement: int) -> Basis:
        """What the version after this one is compared with. The version must be there."""
        of_version = SETTLEMENTS.c.contest == contest, SETTLEMENTS.c.settlement == settlement
        statement = select(SETTLEMENTS.c.players, SETTLEMENTS.c.lines).where(*of_version)
        row = (await self.connection.execute(statement)).one()
        worth = select(RESULTS.c.lineup_id, RESULTS.c.points).where(
            RESULTS.c.contest == contest, RESULTS.c.settlement == settlement
        )
        lineups = {of.lineup_id: of.points for of in await self.connection.execute(worth)}
        return Basis(row.players, lineups, row.lines)

    async def results(self, contest: str, settlement: int) -> Sequence[RowMapping]:
        """The lineups' results of one version, the best first."""
        rows = await self.connection.execute(
            select(RESULTS)
            .where(RESULTS.c.contest == contest, RESULTS.c.settlement == settlement)
            .order_by(RESULTS.c.points.desc(), RESULTS.c.lineup_id)
        )
        return rows.mappings().all()

    async def keep_settlement(self, settled: Settled, outcome: Outcome, lines: Mapping[str, Line]) -> None:
        """Write a version with all its rows, and the lines that it was settled by."""
        await self.connection.execute(
            plain_insert(SETTLEMENTS).values(
                contest=settled.contest,
                settlement=settled.settlement,
                reason=settled.reason,
                scoring=settled.scoring,
                settled_at=settled.settled_at,
                optimal=settled.optimal.model_dump(mode="json"),
                players=outcome.players,
                lineups=settled.lineups,
                digest=settled.digest,
                feasible_lineups=settled.feasible_lineups,
                no_ranks=settled.no_ranks,
                lines=lines,
                corrected=[player.model_dump(mode="json") for player in settled.corrected],
                moved=settled.moved,
            )
        )
        # In portions, so that other requests are answered between them.
        raw = await driver(self.connection)
        for start in range(0, len(outcome.results), _CHUNK):
            rows = [_result_row(settled, result) for result in outcome.results[start : start + _CHUNK]]
            await raw.execute(adding_rows(RESULTS), [as_rows(rows)])


def _opened(row: Any) -> ev.ContestOpened | None:
    """A contest as opened, with its games by the newest schedule."""
    return ev.ContestOpened.model_validate({**row.opened, "games": row.games}) if row.opened is not None else None


def _result_row(settled: Settled, result: Result) -> dict[str, Any]:
    return {
        "contest": settled.contest,
        "settlement": settled.settlement,
        "lineup_id": result.entry.lineup_id,
        "agent_id": result.entry.agent_id,
        "model": result.entry.model,
        "marks": result.entry.marks,
        "points": result.points,
        "share": result.share,
        "regret": result.regret,
        "picks": [
            [pick.slot, pick.player_id, pick.price, points]
            for pick, points in zip(result.entry.picks, result.picks, strict=True)
        ],
        "rank": result.rank,
        "tied": result.tied,
        "percentile": result.percentile,
    }


_SETTLED = select(
    SETTLEMENTS.c.contest,
    SETTLEMENTS.c.settlement,
    SETTLEMENTS.c.reason,
    SETTLEMENTS.c.scoring,
    SETTLEMENTS.c.settled_at,
    SETTLEMENTS.c.optimal,
    SETTLEMENTS.c.lineups,
    SETTLEMENTS.c.digest,
    SETTLEMENTS.c.feasible_lineups,
    SETTLEMENTS.c.no_ranks,
    SETTLEMENTS.c.corrected,
    SETTLEMENTS.c.moved,
)


def _settled(row: RowMapping) -> Settled:
    return Settled(
        row["contest"],
        row["settlement"],
        row["reason"],
        row["scoring"],
        row["settled_at"],
        ev.OptimalLineup.model_validate(row["optimal"]),
        row["lineups"],
        row["digest"],
        row["feasible_lineups"],
        row["no_ranks"],
        tuple(ev.CorrectedPlayer.model_validate(player) for player in row["corrected"]),
        row["moved"],
    )
