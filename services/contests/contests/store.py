"""Tables of contests and every query on them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any
from uuid import UUID

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    ColumnElement,
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
    cast,
    delete,
    func,
    insert,
    literal,
    select,
    update,
)
from sqlalchemy.dialects import postgresql as pg
from sqlalchemy.ext.asyncio import AsyncConnection

from common.clock import Clock
from common.db import OUTBOX
from common.events import Game, LineupSubmitted, Marks, PoolPlayer
from common.outbox import rows as outbox_rows
from contests.domain import Ruleset

METADATA = MetaData()

CONTESTS = Table(
    "contests",
    METADATA,
    Column("contest", Text, primary_key=True),
    Column("season", Integer, nullable=False),
    Column("week", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("rules", JSON, nullable=False),
    Column("price_source", Text, nullable=False),
    Column("opened_at", DateTime(timezone=True)),
    Column("locks_at", DateTime(timezone=True), nullable=False),
    Column("locked_at", DateTime(timezone=True)),
    Column("entries", Integer),
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
    UniqueConstraint("agent_id", "contest", "idempotency_key"),
    Index("revisions_of_contest", "contest"),
)


@dataclass(frozen=True, slots=True)
class Contest:
    """A contest as stored. ``state`` is draft, open or locked; ``version`` counts the events that told of it."""

    contest: str
    season: int
    week: int
    state: str
    version: int
    price_source: str
    opened_at: datetime | None
    locks_at: datetime
    locked_at: datetime | None
    entries: int | None

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
class Revision:
    """An accepted revision. ``body`` is the submitted body as canonical JSON; ``projected_score`` in hundredths.

    ``salts`` are those of its leaves in their order, 32 bytes each. ``signature`` and ``key_id`` are of the receipt;
    none where it was accepted before receipts were signed.
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


@dataclass(frozen=True, slots=True)
class Turn:
    """What a submission finds when its turn has come: the contest, the time, and what the agent has so far.

    ``replayed`` is the revision that the request's idempotency key has made already.
    """

    contest: Contest
    now: datetime
    lineup_id: UUID | None
    revisions: int
    replayed: int | None


_STANDING = select(*(column for column in CONTESTS.c if column.name != "rules"))
"""A contest without its rules, which are large and never change once it is open."""


def _lock(*name: ColumnElement[str]) -> ColumnElement[int]:
    """The number of the advisory lock of this name."""
    return func.hashtextextended(func.concat_ws(":", *name), 0)


# The statements of a submission, the one path that is hot: made once, for few round trips.

_THIS = bindparam("contest", type_=Text)
_SUBMITTER = (
    select(
        AGENTS,
        func.pg_advisory_xact_lock_shared(_lock(literal("contest"), _THIS)),
        func.pg_advisory_xact_lock(_lock(literal("lineup"), _THIS, cast(AGENTS.c.agent_id, Text))),
    )
    .join(AGENT_KEYS, AGENT_KEYS.c.agent_id == AGENTS.c.agent_id)
    .where(AGENT_KEYS.c.key_hash == bindparam("key_hash"))
)

_OWN = (REVISIONS.c.contest == _THIS) & (REVISIONS.c.agent_id == bindparam("agent_id"))


@cache
def _turn_by(now: ColumnElement[datetime]) -> Select[Any]:
    return (
        _STANDING.add_columns(
            now.label("now"),
            LINEUPS.c.lineup_id,
            select(func.coalesce(func.max(REVISIONS.c.revision), 0)).where(_OWN).scalar_subquery().label("revisions"),
            select(REVISIONS.c.revision)
            .where(_OWN, REVISIONS.c.idempotency_key == bindparam("idempotency_key", type_=Text))
            .scalar_subquery()
            .label("replayed"),
        )
        .outerjoin_from(
            CONTESTS, LINEUPS, (LINEUPS.c.contest == CONTESTS.c.contest) & (LINEUPS.c.agent_id == bindparam("agent_id"))
        )
        .where(CONTESTS.c.contest == _THIS)
    )


_ADD_REVISION = insert(REVISIONS).add_cte(
    pg.insert(LINEUPS)
    .values({column.name: bindparam(f"lineup_{column.name}") for column in LINEUPS.c})
    .on_conflict_do_nothing()
    .cte("lineup"),
    insert(OUTBOX)
    .values({name: bindparam(f"event_{name}") for name in ("event_id", "subject", "envelope")})
    .cte("event"),
)


class Store:
    """Every query of the service, on one connection and in its transaction."""

    def __init__(self, connection: AsyncConnection) -> None:
        self.connection = connection

    # contests

    async def contest(self, contest: str) -> Contest | None:
        return next(map(_contest, await self._mappings(_STANDING.where(CONTESTS.c.contest == contest))), None)

    async def contests(self, *, drafts: bool = False) -> list[Contest]:
        """All contests by id; drafts only where asked for."""
        wanted = _STANDING.order_by(CONTESTS.c.contest)
        if not drafts:
            wanted = wanted.where(CONTESTS.c.state != "draft")
        return [_contest(row) for row in await self._mappings(wanted)]

    async def ruleset(self, contest: str) -> Ruleset:
        """The rules that a contest is played by, as they were when it was imported."""
        wanted = select(CONTESTS.c.rules).where(CONTESTS.c.contest == contest)
        return Ruleset.model_validate((await self.connection.execute(wanted)).scalar_one())

    async def hold(self, contest: str) -> None:
        """Take the contest's lock alone until the transaction ends, to lock or reschedule; submissions share it.

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
        """Store a draft whole, in the place of an earlier draft."""
        of = {"contest": contest.contest}
        await self.connection.execute(delete(PLAYERS).where(PLAYERS.c.contest == contest.contest))
        await self.connection.execute(delete(GAMES).where(GAMES.c.contest == contest.contest))
        await self.connection.execute(delete(CONTESTS).where(CONTESTS.c.contest == contest.contest))
        await self.connection.execute(
            insert(CONTESTS).values(
                contest=contest.contest,
                season=contest.season,
                week=contest.week,
                state=contest.state,
                version=contest.version,
                rules=ruleset.model_dump(mode="json"),
                price_source=contest.price_source,
                locks_at=contest.locks_at,
            )
        )
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

    async def move_game(self, contest: str, game_id: str, kickoff: datetime) -> None:
        this = (GAMES.c.contest == contest) & (GAMES.c.game_id == game_id)
        await self.connection.execute(update(GAMES).where(this).values(kickoff=kickoff))

    async def games(self, contest: str) -> tuple[Game, ...]:
        """The games of a contest by kickoff."""
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
        """How many players each contest's pool has."""
        wanted = select(PLAYERS.c.contest, func.count().label("players")).group_by(PLAYERS.c.contest)
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

    async def submitter(self, key_hash: str, contest: str) -> Agent | None:
        """The agent with this key, let in to submit to the contest: both hold until the transaction ends.

        The contest's lock is shared, so that the lock waits for the submission or the submission for it; the
        agent's own in the contest is not, so that its revisions have one order. What the locks guard must be
        read in a later statement than this one.
        """
        found = await self.connection.execute(_SUBMITTER, {"key_hash": key_hash, "contest": contest})
        return next(map(_agent, found.mappings()), None)

    async def turn(self, contest: str, agent_id: UUID, idempotency_key: str | None, clock: Clock) -> Turn | None:
        """What a submission must know once :meth:`submitter` has let it in; None for an unknown contest."""
        given = {"contest": contest, "agent_id": agent_id, "idempotency_key": idempotency_key}
        found = await self.connection.execute(_turn_by(clock.sql), given)
        row = found.mappings().one_or_none()
        if row is None:
            return None
        standing = dict(row)
        own = {name: standing.pop(name) for name in ("lineup_id", "revisions", "replayed")}
        now: datetime = standing.pop("now")
        return Turn(Contest(**standing), now.astimezone(UTC), **own)

    async def revision(self, lineup_id: UUID, number: int) -> Revision:
        """One revision, which exists."""
        wanted = select(REVISIONS).where(REVISIONS.c.lineup_id == lineup_id, REVISIONS.c.revision == number)
        return next(map(_revision, await self._mappings(wanted)))

    async def add_revision(self, revision: Revision, submitted: LineupSubmitted) -> None:
        """Store a revision, its lineup where it is the first, and the event that tells of it.

        Nothing ever changes a revision: the database itself refuses.
        """
        (event,) = outbox_rows([(submitted, revision.revision)])
        values = {name: getattr(revision, name) for name in Revision.__slots__ if name != "marks"}
        values |= revision.marks.model_dump()
        values |= {f"lineup_{column.name}": values[column.name] for column in LINEUPS.c}
        values |= {f"event_{name}": value for name, value in event.items()}
        await self.connection.execute(_ADD_REVISION, values)

    async def revisions(self, contest: str, agent_id: UUID) -> list[Revision]:
        """An agent's revisions in a contest, in order."""
        wanted = select(REVISIONS).where(REVISIONS.c.contest == contest, REVISIONS.c.agent_id == agent_id)
        return [_revision(row) for row in await self._mappings(wanted.order_by(REVISIONS.c.revision))]

    async def final_revisions(self, contest: str) -> list[Revision]:
        """The last revision of each lineup of a contest, by agent."""
        wanted = (
            select(REVISIONS)
            .ext(pg.distinct_on(REVISIONS.c.agent_id))
            .where(REVISIONS.c.contest == contest)
            .order_by(REVISIONS.c.agent_id, REVISIONS.c.revision.desc())
        )
        return [_revision(row) for row in await self._mappings(wanted)]

    async def _mappings(self, wanted: Select[Any]) -> Sequence[RowMapping]:
        return list((await self.connection.execute(wanted)).mappings())


def _contest(row: RowMapping) -> Contest:
    return Contest(**row)


def _agent(row: RowMapping) -> Agent:
    return Agent(row["agent_id"], row["model"], _marks(row))


def _revision(row: RowMapping) -> Revision:
    values = dict(row)
    marks = Marks(**{mark: values.pop(mark) for mark in Marks.model_fields})
    return Revision(marks=marks, **values)


def _marks(row: RowMapping) -> Marks:
    return Marks(**{mark: row[mark] for mark in Marks.model_fields})
