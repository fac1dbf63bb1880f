"""Tables of contests and every query on them."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any
from uuid import UUID

import asyncpg
from pydantic_core import to_json
from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    ColumnElement,
    Date,
    DateTime,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    RowMapping,
    Select,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    bindparam,
    delete,
    func,
    insert,
    literal,
    select,
    tuple_,
    update,
)
from sqlalchemy.dialects import postgresql as pg
from sqlalchemy.ext.asyncio import AsyncConnection

from common.clock import Clock
from common.db import PSYCOPG
from common.events import Game, LineupSubmitted, Marks, PoolPlayer
from common.outbox import Recorded, columns_of, recording
from common.redaction import strip_outbox
from contests.domain import Agent, Commitment, Contest, Known, Revision, Ruleset, Tombstone

METADATA = MetaData()

CONTESTS = Table(
    "contests",
    METADATA,
    Column("contest", Text, primary_key=True),
    Column("season", Integer, nullable=False),
    Column("week", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("pool", Integer, nullable=False, server_default="1"),
    Column("rules", JSON, nullable=False),
    Column("price_source", Text, nullable=False),
    Column("days", pg.ARRAY(Text), nullable=False),
    Column("sunday", Date, nullable=False),
    Column("opened_at", DateTime(timezone=True)),
    Column("locks_at", DateTime(timezone=True), nullable=False),
    Column("locked_at", DateTime(timezone=True)),
    Column("entries", Integer),
    Column("cancelled_at", DateTime(timezone=True)),
    Column("cancelled_because", Text),
    Index("contests_by_lock", "state", "locks_at"),
)

GAMES = Table(
    "games",
    METADATA,
    Column("contest", Text, primary_key=True),
    Column("game_id", Text, primary_key=True),
    Column("away", Text, nullable=False),
    Column("home", Text, nullable=False),
    Column("kickoff", DateTime(timezone=True), nullable=False),
    Column("kickoff_zone", Text, nullable=False),
    Column("status", Text, nullable=False, server_default="scheduled"),
    Column("became", Text),
    Column("resumed_at", DateTime(timezone=True)),
    Column("in_week", Boolean),
)

PLAYERS = Table(
    "players",
    METADATA,
    Column("contest", Text, primary_key=True),
    Column("player_id", Text, primary_key=True),
    Column("player_name", Text, nullable=False),
    Column("positions", pg.ARRAY(Text), nullable=False),
    Column("team", Text, nullable=False),
    Column("opponent", Text, nullable=False),
    Column("game_id", Text, nullable=False),
    Column("price", Integer, nullable=False),
)

AGENTS = Table(
    "agents",
    METADATA,
    Column("agent_id", Uuid, primary_key=True),
    Column("version", Integer, nullable=False),
    Column("model", Text, nullable=False),
    Column("house", Boolean, nullable=False),
    Column("cohort", Boolean, nullable=False),
    Column("reference", Boolean, nullable=False),
)

AGENT_KEYS = Table(
    "agent_keys",
    METADATA,
    Column("agent_id", Uuid, primary_key=True),
    Column("version", Integer, nullable=False),
    Column("key_hash", Text, nullable=False),
    Index("agent_keys_by_hash", "key_hash"),
)

LINEUPS = Table(
    "lineups",
    METADATA,
    Column("lineup_id", Uuid, primary_key=True),
    Column("contest", Text, nullable=False),
    Column("agent_id", Uuid, nullable=False),
    UniqueConstraint("contest", "agent_id"),
)

REVISIONS = Table(
    "revisions",
    METADATA,
    Column("lineup_id", Uuid, primary_key=True),
    Column("revision", Integer, primary_key=True),
    Column("contest", Text, nullable=False),
    Column("agent_id", Uuid, nullable=False),
    Column("idempotency_key", Text),
    Column("accepted_at", DateTime(timezone=True), nullable=False),
    Column("locks_at", DateTime(timezone=True), nullable=False),
    Column("model", Text, nullable=False),
    Column("house", Boolean, nullable=False),
    Column("cohort", Boolean, nullable=False),
    Column("reference", Boolean, nullable=False),
    Column("picks", pg.JSONB, nullable=False),
    Column("total_price", Integer, nullable=False),
    Column("projected_score", Integer, nullable=False),
    Column("confidence", Double, nullable=False),
    Column("body", Text, nullable=False),
    Column("receipt", Text, nullable=False),
    Column("salts", LargeBinary, nullable=False),
    Column("signature", LargeBinary),
    Column("key_id", Text),
    UniqueConstraint("contest", "agent_id", "idempotency_key"),
)

REDACTIONS = Table(
    "redactions",
    METADATA,
    Column("lineup_id", Uuid, primary_key=True),
    Column("revision", Integer, primary_key=True),
    Column("pointer", Text, primary_key=True),
    Column("redaction_id", Uuid, nullable=False),
    Column("contest", Text, nullable=False),
    Column("agent_id", Uuid, nullable=False),
    Column("leaf", LargeBinary, nullable=False),
    Column("reason", Text, nullable=False),
    Column("redacted_at", DateTime(timezone=True), nullable=False),
    Index("redactions_of_contest", "contest"),
)
"""Tombstones of texts that went for good (M6): the database lets a revision lose what has one here, and nothing else,
and a tombstone is never changed."""

KNOWN_PLAYERS = Table(
    "known_players",
    METADATA,
    Column("player_id", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("position", Text, primary_key=True),
    Column("team", Text, primary_key=True),
    Column("season", Integer, nullable=False),
    Column("week", Integer, nullable=False),
)
"""The directory that lists are matched to: what imports said for certain. The week is the last one seen so."""


COMMITMENTS = Table(
    "commitments",
    METADATA,
    Column("contest", Text, primary_key=True),
    Column("locked_at", DateTime(timezone=True), nullable=False),
    Column("entries", Integer, nullable=False),
    Column("size", Integer, nullable=False),
    Column("root", LargeBinary, nullable=False),
    Column("signature", LargeBinary, nullable=False),
    Column("key_id", Text, nullable=False),
)

LEAVES = Table(
    "leaves",
    METADATA,
    Column("contest", Text, primary_key=True),
    Column("hashes", LargeBinary, nullable=False),
)
"""The leaf hashes of a contest's commitment, in order, 32 bytes each."""

STAMPS = Table(
    "stamps",
    METADATA,
    Column("contest", Text, primary_key=True),
    Column("stamped_at", DateTime(timezone=True), nullable=False),
    Column("response", LargeBinary, nullable=False),
)
"""What an RFC 3161 authority answered of the statement of a root, in DER."""


@dataclass(slots=True)
class Submitter:
    """An agent that submits, and what it has so far in the contest: none or ``revisions`` of its one lineup."""

    agent: Agent
    lineup_id: UUID | None
    revisions: int


@dataclass(frozen=True, slots=True)
class Turn:
    """What submissions find when their turn has come: the contest where there is one, the time, and who submits.

    ``submitters`` are by the hash of their key; ``replayed`` are the revisions that idempotency keys have made.
    """

    contest: Contest | None
    now: datetime
    submitters: dict[str, Submitter]
    replayed: dict[tuple[UUID, str], int]


_STANDING = select(*(column for column in CONTESTS.c if column.name != "rules"))
"""A contest without its rules, which are large and asked for by themselves."""

_STANDING_NAMES = tuple(column.name for column in _STANDING.selected_columns)


def _lock(*name: ColumnElement[str]) -> ColumnElement[int]:
    """The number of the advisory lock of this name."""
    return func.hashtextextended(func.concat_ws(":", *name), 0)


# The statements that take submissions, the one path that is hot: for asyncpg, and for many at once.

# The contest's lock first, then the agents' in one order everywhere, so that no two groups wait in a circle.
_ENTER = """
WITH contest AS MATERIALIZED (
    SELECT pg_advisory_xact_lock_shared(hashtextextended(concat_ws(':', 'contest', $1::text), 0))
)
SELECT pg_advisory_xact_lock(lock) FROM contest, (
    SELECT DISTINCT hashtextextended(concat_ws(':', 'lineup', $1::text, agent_id), 0) AS lock
    FROM agent_keys WHERE key_hash = ANY($2::text[]) ORDER BY lock
) AS in_order
"""

# OFFSET keeps the innermost to each one's own: a join might read what all who have entered have, and take longer (C8).
_TURN = """
SELECT {clock} AS now,
    ARRAY(
        SELECT ROW(
            key_hash, agents.agent_id, model, house, cohort, reference, own.lineup_id,
            (SELECT coalesce(max(revision), 0) FROM revisions WHERE revisions.lineup_id = own.lineup_id)
        )
        FROM agent_keys JOIN agents USING (agent_id) LEFT JOIN LATERAL (
            SELECT lineup_id FROM lineups
            WHERE lineups.contest = $1::text AND lineups.agent_id = agents.agent_id OFFSET 0
        ) AS own ON true
        WHERE key_hash = ANY($2::text[])
    ) AS submitters,
    ARRAY(
        SELECT ROW(agent_keys.agent_id, own.idempotency_key, own.revision)
        FROM agent_keys CROSS JOIN LATERAL (
            SELECT idempotency_key, revision FROM revisions
            WHERE revisions.agent_id = agent_keys.agent_id AND revisions.contest = $1::text
              AND revisions.idempotency_key = ANY($3::text[]) OFFSET 0
        ) AS own
        WHERE key_hash = ANY($2::text[]) AND cardinality($3::text[]) > 0
    ) AS replayed,
    {columns}
FROM (SELECT) AS always LEFT JOIN contests ON contest = $1::text
"""

_ADD_REVISIONS = """
WITH lineup AS (
    INSERT INTO lineups (lineup_id, contest, agent_id)
    SELECT lineup_id, $1, agent_id
    FROM unnest($5::uuid[], $6::uuid[], $7::int[]) AS given (lineup_id, agent_id, revision)
    WHERE revision = 1
), revision AS (
    INSERT INTO revisions (
        contest, accepted_at, locks_at, key_id, lineup_id, agent_id, revision, idempotency_key, model, house, cohort,
        reference, picks, total_price, projected_score, confidence, body, receipt, salts, signature
    )
    SELECT $1, $2, $3, $4, lineup_id, agent_id, revision, idempotency_key, model, house, cohort,
           reference, picks::jsonb, total_price, projected_score, confidence, body, receipt, salts, signature
    FROM unnest(
        $5::uuid[], $6::uuid[], $7::int[], $8::text[], $9::text[], $10::bool[], $11::bool[], $12::bool[], $13::text[],
        $14::int[], $15::int[], $16::float8[], $17::text[], $18::text[], $19::bytea[], $20::bytea[]
    ) AS given (
        lineup_id, agent_id, revision, idempotency_key, model, house, cohort, reference, picks, total_price,
        projected_score, confidence, body, receipt, salts, signature
    )
)
"""

_ADD_REVISIONS_AND_TELL = "\n".join((_ADD_REVISIONS, recording(21)))


_PORTION = 500
"""Final revisions that are read at a time: some 3 MB, and other requests are answered in between."""


@cache
def _turn_by(now: ColumnElement[datetime]) -> str:
    clock = now.compile(dialect=PSYCOPG, compile_kwargs={"literal_binds": True})
    return _TURN.format(clock=clock, columns=", ".join(_STANDING_NAMES))


class Store:
    """Every query of the service, on one connection and in its transaction."""

    def __init__(self, connection: AsyncConnection) -> None:
        self.connection = connection

    # contests

    async def contest(self, contest: str) -> Contest | None:
        return next(map(_contest, await self._mappings(_STANDING.where(CONTESTS.c.contest == contest))), None)

    async def contests(self, *, drafts: bool = False) -> list[Contest]:
        """All contests by id; those that were never open only where asked for."""
        wanted = _STANDING.order_by(CONTESTS.c.contest)
        if not drafts:
            wanted = wanted.where(CONTESTS.c.opened_at.is_not(None))
        return [_contest(row) for row in await self._mappings(wanted)]

    async def ruleset(self, contest: str) -> Ruleset:
        """The rules that a contest is played by, as they were when it was imported."""
        wanted = select(CONTESTS.c.rules).where(CONTESTS.c.contest == contest)
        return Ruleset.model_validate((await self.connection.execute(wanted)).scalar_one())

    async def hold(self, contest: str) -> None:
        """Take the contest's lock alone until the transaction ends, to change the contest; submissions share it.

        Whoever takes several takes them in the order of their ids, so that nobody waits for who waits for him.

        PostgreSQL queues for it in order, so that a stream of shared holders cannot starve the exclusive one.
        What the lock guards must be read in a later statement than this one.
        """
        await self.connection.execute(select(func.pg_advisory_xact_lock(_lock(literal("contest"), literal(contest)))))

    async def replace_contest(
        self,
        contest: Contest,
        ruleset: Ruleset,
        games: Sequence[Game],
        players: Sequence[PoolPlayer],
    ) -> None:
        """Store a contest whole, in the place of what was there; its lineups are not touched."""
        of = {"contest": contest.contest}
        await self.connection.execute(delete(PLAYERS).where(PLAYERS.c.contest == contest.contest))
        await self.connection.execute(delete(GAMES).where(GAMES.c.contest == contest.contest))
        values = {
            "season": contest.season,
            "week": contest.week,
            "state": contest.state,
            "version": contest.version,
            "pool": contest.pool,
            "rules": ruleset.model_dump(mode="json"),
            "price_source": contest.price_source,
            "days": list(contest.days),
            "sunday": contest.sunday,
            "opened_at": contest.opened_at,
            "locks_at": contest.locks_at,
            "cancelled_at": contest.cancelled_at,
            "cancelled_because": contest.cancelled_because,
        }
        statement = pg.insert(CONTESTS).values(of | values)
        await self.connection.execute(statement.on_conflict_do_update(index_elements=[CONTESTS.c.contest], set_=values))
        await self.connection.execute(insert(GAMES), [of | game.model_dump() for game in games])
        await self.connection.execute(
            insert(PLAYERS), [of | player.model_dump() | {"positions": list(player.positions)} for player in players]
        )

    async def change_contest(self, contest: str, **values: Any) -> Contest:
        """Set columns of a contest and count its version up."""
        statement = update(CONTESTS).where(CONTESTS.c.contest == contest)
        statement = statement.values(version=CONTESTS.c.version + 1, **values)
        changed = await self.connection.execute(statement.returning(*_STANDING.selected_columns))
        return _contest(changed.mappings().one())

    async def put_games(self, contest: str, games: Sequence[Game]) -> None:
        """Take over kickoff, status and what became of games that the contest has."""
        names = ("kickoff", "status", "became", "resumed_at", "in_week")
        this = (GAMES.c.contest == contest) & (GAMES.c.game_id == bindparam("of_game"))
        statement = update(GAMES).where(this).values({name: bindparam(f"new_{name}") for name in names})
        values = [{"of_game": game.game_id, **{f"new_{name}": getattr(game, name) for name in names}} for game in games]
        await self.connection.execute(statement, values)

    async def games(self, contest: str) -> tuple[Game, ...]:
        """The games of a contest by kickoff, those that have left it too."""
        wanted = select(GAMES).where(GAMES.c.contest == contest).order_by(GAMES.c.kickoff, GAMES.c.game_id)
        return tuple(Game.model_validate(dict(row)) for row in await self._mappings(wanted))

    async def players(self, contest: str) -> tuple[PoolPlayer, ...]:
        """The pool of a contest by player id."""
        wanted = select(PLAYERS).where(PLAYERS.c.contest == contest).order_by(PLAYERS.c.player_id)
        return tuple(PoolPlayer.model_validate(dict(row)) for row in await self._mappings(wanted))

    async def next_locks(self) -> list[tuple[str, datetime]]:
        """Open contests with the instants at which they lock, the next first."""
        wanted = select(CONTESTS.c.contest, CONTESTS.c.locks_at).where(CONTESTS.c.state == "open")
        rows = await self.connection.execute(wanted.order_by(CONTESTS.c.locks_at, CONTESTS.c.contest))
        return [(row.contest, row.locks_at) for row in rows]

    async def pool_sizes(self) -> dict[str, int]:
        """How many players of each contest may be picked: those of games that have not left it."""
        of_game = (GAMES.c.contest == PLAYERS.c.contest) & (GAMES.c.game_id == PLAYERS.c.game_id)
        wanted = (
            select(PLAYERS.c.contest, func.count().label("players"))
            .join(GAMES, of_game)
            .where(GAMES.c.status == "scheduled")
            .group_by(PLAYERS.c.contest)
        )
        return {row["contest"]: row["players"] for row in await self._mappings(wanted)}

    async def totals(self) -> dict[str, tuple[int, int]]:
        """Lineups and revisions of each contest that has any; for the operator alone."""
        wanted = select(
            REVISIONS.c.contest, func.count(REVISIONS.c.lineup_id.distinct()), func.count(REVISIONS.c.revision)
        )
        rows = (await self.connection.execute(wanted.group_by(REVISIONS.c.contest))).all()
        return {contest: (lineups, revisions) for contest, lineups, revisions in rows}

    # agents

    async def agent_by_key(self, key_hash: str) -> Agent | None:
        wanted = select(AGENTS).join(AGENT_KEYS, AGENT_KEYS.c.agent_id == AGENTS.c.agent_id)
        return next(map(_agent, await self._mappings(wanted.where(AGENT_KEYS.c.key_hash == key_hash))), None)

    async def agents(self) -> list[Agent]:
        return [_agent(row) for row in await self._mappings(select(AGENTS).order_by(AGENTS.c.agent_id))]

    async def learn_agent(self, agent: Agent, version: int) -> None:
        """Take over an agent's state unless a newer one is known."""
        values = {"version": version, "model": agent.model, **agent.marks.model_dump()}
        await self._newest(AGENTS, agent.agent_id, values)

    async def learn_key(self, agent_id: UUID, key_hash: str, version: int) -> None:
        """Take over the hash of an agent's key unless a newer one is known."""
        await self._newest(AGENT_KEYS, agent_id, {"version": version, "key_hash": key_hash})

    async def key_of(self, agent_id: UUID) -> str | None:
        """The hash of the one key that an agent has, as far as is known."""
        found = await self.connection.execute(select(AGENT_KEYS.c.key_hash).where(AGENT_KEYS.c.agent_id == agent_id))
        key_hash: str | None = found.scalar_one_or_none()
        return key_hash

    async def _newest(self, table: Table, agent_id: UUID, values: Mapping[str, Any]) -> None:
        statement = pg.insert(table).values(agent_id=agent_id, **values)
        statement = statement.on_conflict_do_update(
            index_elements=[table.c.agent_id],
            set_=dict(values),
            where=table.c.version < statement.excluded.version,
        )
        await self.connection.execute(statement)

    # lineups

    async def revision(self, lineup_id: UUID, number: int) -> Revision:
        """One revision, which exists."""
        wanted = select(REVISIONS).where(REVISIONS.c.lineup_id == lineup_id, REVISIONS.c.revision == number)
        gone = await self._tombstones(REDACTIONS.c.lineup_id == lineup_id)
        return next(_revision(row, gone) for row in await self._mappings(wanted))

    async def revisions(self, contest: str, agent_id: UUID) -> list[Revision]:
        """An agent's revisions in a contest, in order."""
        wanted = select(REVISIONS).where(REVISIONS.c.contest == contest, REVISIONS.c.agent_id == agent_id)
        rows = await self._mappings(wanted.order_by(REVISIONS.c.revision))
        gone = await self._tombstones(REDACTIONS.c.lineup_id == rows[0]["lineup_id"]) if rows else {}
        return [_revision(row, gone) for row in rows]

    async def final_revisions(self, contest: str) -> AsyncIterator[list[Revision]]:
        """The last revision of each lineup of a contest, by agent, portion by portion: all together may be much."""
        gone = await self._tombstones(REDACTIONS.c.contest == contest)
        async for portion in self._finals(contest, *REVISIONS.c):
            yield [_revision(row, gone) for row in portion]

    async def final_numbers(self, contest: str) -> AsyncIterator[list[RowMapping]]:
        """As :meth:`final_revisions`, and of each what everybody may read after the lock, and its salts."""
        left_out = ("idempotency_key", "locks_at", "body", "receipt", "signature", "key_id")
        async for portion in self._finals(contest, *(column for column in REVISIONS.c if column.name not in left_out)):
            yield portion

    async def _finals(self, contest: str, *columns: Column[Any]) -> AsyncIterator[list[RowMapping]]:
        wanted = (
            select(*columns)
            .ext(pg.distinct_on(REVISIONS.c.agent_id))
            .where(REVISIONS.c.contest == contest)
            .order_by(REVISIONS.c.agent_id, REVISIONS.c.revision.desc())
            .limit(_PORTION)
        )
        portion = await self._mappings(wanted)
        while portion:
            yield list(portion)
            portion = await self._mappings(wanted.where(REVISIONS.c.agent_id > portion[-1]["agent_id"]))

    async def _tombstones(self, where: ColumnElement[bool]) -> dict[tuple[UUID, int], dict[str, Tombstone]]:
        found: dict[tuple[UUID, int], dict[str, Tombstone]] = {}
        for row in await self._mappings(select(REDACTIONS).where(where)):
            of = found.setdefault((row["lineup_id"], row["revision"]), {})
            of[row["pointer"]] = _tombstone(row)
        return found

    # redactions

    async def share(self, contest: str) -> None:
        """Share the contest's lock with submissions, so that its lock comes before or after this transaction."""
        key = _lock(literal("contest"), literal(contest))
        await self.connection.execute(select(func.pg_advisory_xact_lock_shared(key)))

    async def held_revision(self, lineup_id: UUID, number: int) -> Revision | None:
        """One revision with its row held, ``None`` where there is none."""
        wanted = select(REVISIONS.c.revision).where(REVISIONS.c.lineup_id == lineup_id, REVISIONS.c.revision == number)
        held = (await self.connection.execute(wanted.with_for_update())).scalar_one_or_none()
        # Read by a statement of its own: another redaction of the same revision may have been waited for.
        return None if held is None else await self.revision(lineup_id, number)

    async def last_revision(self, lineup_id: UUID) -> int:
        """The number of a lineup's last revision, 0 where there is none."""
        last = select(func.coalesce(func.max(REVISIONS.c.revision), 0)).where(REVISIONS.c.lineup_id == lineup_id)
        return int((await self.connection.execute(last)).scalar_one())

    async def redact(self, revision: Revision, tombstone: Tombstone, redaction_id: UUID) -> None:
        """Put a tombstone in the place of a text of a revision that is held, and let its words go, and its salt.

        From the revision and from the record of events; what is published of them is not of this database.
        """
        of = {"lineup_id": revision.lineup_id, "revision": revision.revision}
        said = {"redaction_id": redaction_id, "contest": revision.contest, "agent_id": revision.agent_id}
        tomb = {name: getattr(tombstone, name) for name in ("pointer", "leaf", "reason", "redacted_at")}
        await self.connection.execute(insert(REDACTIONS).values(**of, **said, **tomb))
        body, salts = revision.without(tombstone.pointer)
        this = (REVISIONS.c.lineup_id == revision.lineup_id) & (REVISIONS.c.revision == revision.revision)
        await self.connection.execute(update(REVISIONS).where(this).values(body=body, salts=salts))
        await strip_outbox(self.connection, LineupSubmitted, revision.lineup_id, revision.revision, [tombstone.pointer])

    async def redactions_to_tell(self, contest: str) -> Sequence[Mapping[str, Any]]:
        """The redactions of the final revisions of a contest, in the order of the leaves."""
        last = (
            select(REVISIONS.c.lineup_id, func.max(REVISIONS.c.revision).label("revision"))
            .where(REVISIONS.c.contest == contest)
            .group_by(REVISIONS.c.lineup_id)
            .subquery()
        )
        final = (last.c.lineup_id == REDACTIONS.c.lineup_id) & (last.c.revision == REDACTIONS.c.revision)
        wanted = select(REDACTIONS).join(last, final).where(REDACTIONS.c.contest == contest)
        rows = await self._mappings(wanted)
        return sorted((dict(row) for row in rows), key=lambda row: (str(row["agent_id"]), row["pointer"]))

    async def tombstones(self, contest: str) -> list[Tombstone]:
        """The tombstones of the final revisions of a contest, in the order of the leaves."""
        return [_tombstone(row) for row in await self.redactions_to_tell(contest)]

    async def final_picks(self, contest: str) -> list[list[dict[str, Any]]]:
        """The picks of the last revision of each lineup of a contest, and not whose they are."""
        last = (
            select(REVISIONS.c.picks)
            .ext(pg.distinct_on(REVISIONS.c.agent_id))
            .where(REVISIONS.c.contest == contest)
            .order_by(REVISIONS.c.agent_id, REVISIONS.c.revision.desc())
        )
        return list((await self.connection.execute(last)).scalars())

    # known players

    async def learn_players(self, known: Iterable[Known]) -> None:
        """Remember players by name, position and team, each with the last week in which they were seen so."""
        newest: dict[tuple[str, str, str, str], tuple[int, int]] = {}
        for one in known:
            key = (one.player_id, one.name, one.position, one.team)
            newest[key] = max(newest.get(key, (0, 0)), (one.season, one.week))
        if not newest:
            return
        # In the order of the key, so that two imports wait for each other and never in a ring.
        names = [column.name for column in KNOWN_PLAYERS.c]
        rows = [dict(zip(names, (*key, *when), strict=True)) for key, when in sorted(newest.items())]
        statement = pg.insert(KNOWN_PLAYERS)
        seen, news = (tuple_(c.season, c.week) for c in (KNOWN_PLAYERS.c, statement.excluded))
        statement = statement.on_conflict_do_update(
            index_elements=list(KNOWN_PLAYERS.primary_key.columns),
            set_={"season": statement.excluded.season, "week": statement.excluded.week},
            where=seen < news,
        )
        await self.connection.execute(statement, rows)

    async def known_players(self) -> list[Known]:
        """All players that imports have taught."""
        return [Known(**row) for row in await self._mappings(select(KNOWN_PLAYERS))]

    # commitments

    async def add_commitment(self, commitment: Commitment, hashes: bytes) -> None:
        """Keep what a contest commits to, with the hashes of its leaves; the database lets nobody change it."""
        values = {name: getattr(commitment, name) for name in Commitment.__slots__}
        await self.connection.execute(insert(COMMITMENTS).values(values))
        await self.connection.execute(insert(LEAVES).values(contest=commitment.contest, hashes=hashes))

    async def commitment(self, contest: str) -> Commitment | None:
        """What a contest committed to; none before its lock, and of one that locked before there were any."""
        rows = await self._mappings(select(COMMITMENTS).where(COMMITMENTS.c.contest == contest))
        return next((Commitment(**row) for row in rows), None)

    async def unstamped(self) -> list[Commitment]:
        """The commitments without a stamp, the last locked first."""
        wanted = select(COMMITMENTS).where(COMMITMENTS.c.contest.not_in(select(STAMPS.c.contest)))
        return [Commitment(**row) for row in await self._mappings(wanted.order_by(COMMITMENTS.c.locked_at.desc()))]

    async def add_stamp(self, contest: str, response: bytes, at: datetime) -> None:
        """Keep a stamp; the first one stays."""
        values = {"contest": contest, "response": response, "stamped_at": at}
        await self.connection.execute(pg.insert(STAMPS).values(values).on_conflict_do_nothing())

    async def stamp(self, contest: str) -> bytes | None:
        """What the authority answered, in DER."""
        found = await self.connection.execute(select(STAMPS.c.response).where(STAMPS.c.contest == contest))
        response = found.scalar_one_or_none()
        return None if response is None else bytes(response)

    async def leaves(self, contest: str) -> bytes:
        """The leaf hashes of a commitment that there is."""
        wanted = select(LEAVES.c.hashes).where(LEAVES.c.contest == contest)
        return bytes((await self.connection.execute(wanted)).scalar_one())

    async def _mappings(self, wanted: Select[Any]) -> Sequence[RowMapping]:
        return list((await self.connection.execute(wanted)).mappings())


class Rush:
    """What a group of submissions asks of the database, on a hot connection and in its transaction."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self.connection = connection

    async def turn(
        self, contest: str, key_hashes: Sequence[str], idempotency_keys: Sequence[str], clock: Clock
    ) -> Turn:
        """Let agents, named by the hashes of their keys, in to submit to a contest, and read what they must know.

        Until the transaction ends they share the contest's lock, so that the lock waits for them or they for it, and
        each agent's own in the contest is theirs alone, so that its revisions have one order. The clock is read after
        that, and each statement has its own snapshot: what is read after the locks is as they guard it.
        """
        keys = list(set(key_hashes))
        await self.connection.execute(_ENTER, contest, keys)
        row = await self.connection.fetchrow(_turn_by(clock.sql), contest, keys, idempotency_keys)
        now, submitters, replayed, *columns = row
        standing = dict(zip(_STANDING_NAMES, columns, strict=True))
        return Turn(
            None if standing["contest"] is None else Contest(**standing),
            now.astimezone(UTC),
            {
                key_hash: Submitter(
                    Agent(agent_id, model, Marks(house=house, cohort=cohort, reference=reference)), lineup_id, revisions
                )
                for key_hash, agent_id, model, house, cohort, reference, lineup_id, revisions in submitters
            },
            {(agent_id, key): number for agent_id, key, number in replayed},
        )

    async def add_revisions(self, revisions: Sequence[Revision], submitted: Sequence[Recorded]) -> None:
        """Store revisions of one contest, the lineups of which they are the first, and the events that tell of them.

        All were accepted at one instant and signed with one key. Nothing ever changes a revision: the database itself
        refuses. No NOTIFY tells of the events: once they are committed, whoever stored them wakes the relay.
        """
        first = revisions[0]
        await self.connection.execute(
            _ADD_REVISIONS_AND_TELL,
            first.contest,
            first.accepted_at,
            first.locks_at,
            first.key_id,
            [one.lineup_id for one in revisions],
            [one.agent_id for one in revisions],
            [one.revision for one in revisions],
            [one.idempotency_key for one in revisions],
            [one.model for one in revisions],
            [one.marks.house for one in revisions],
            [one.marks.cohort for one in revisions],
            [one.marks.reference for one in revisions],
            [to_json(one.picks).decode() for one in revisions],
            [one.total_price for one in revisions],
            [one.projected_score for one in revisions],
            [one.confidence for one in revisions],
            [one.body for one in revisions],
            [one.receipt for one in revisions],
            [one.salts for one in revisions],
            [one.signature for one in revisions],
            *columns_of(submitted),
        )


def _contest(row: RowMapping) -> Contest:
    return Contest(**row)


def _agent(row: RowMapping) -> Agent:
    return Agent(row["agent_id"], row["model"], _marks(row))


def _revision(row: RowMapping, gone: Mapping[tuple[UUID, int], Mapping[str, Tombstone]]) -> Revision:
    values = dict(row)
    marks = Marks(**{mark: values.pop(mark) for mark in Marks.model_fields})
    return Revision(marks=marks, **values, redacted=gone.get((row["lineup_id"], row["revision"]), {}))


def _tombstone(row: Mapping[Any, Any]) -> Tombstone:
    return Tombstone(row["contest"], row["pointer"], bytes(row["leaf"]), row["reason"], row["redacted_at"])


def _marks(row: RowMapping) -> Marks:
    return Marks(**{mark: row[mark] for mark in Marks.model_fields})
