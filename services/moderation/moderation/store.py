"""Tables of moderation and every query on them.

Each table is written by one stream's events, so that two consumers never wait for each other's rows;
whoever needs rows of both ``finals`` and ``texts`` locks them in that order. Nobody locks ``reviews``: which
request a verdict answers stands beside the verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Identity,
    Index,
    Integer,
    MetaData,
    Select,
    Table,
    Text,
    Uuid,
    and_,
    bindparam,
    case,
    cast,
    exists,
    func,
    null,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from common.events import State
from moderation import domain
from moderation.domain import Lineup, Said, Verdict

METADATA = MetaData()

CONTESTS = Table(
    "contests",
    METADATA,
    Column("contest", Text, primary_key=True),
    Column("names", JSONB(none_as_null=True)),
    Column("version", Integer, nullable=False),
    Column("locks_at", DateTime(timezone=True)),
    Column("locked_at", DateTime(timezone=True)),
    Column("cancelled_at", DateTime(timezone=True)),
)
"""``names`` are the pool's, known once ``contest.opened`` has arrived; ``version`` is that of ``locks_at``.

The texts of a contest that was called off are kept and wait for nothing: nobody will ever see them.
"""

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
    Column("findings", JSONB, nullable=False, server_default=text("'[]'")),
    Column("pipeline", Text),
    Column("judged_at", DateTime(timezone=True)),
    Column("version", Integer, nullable=False, server_default=text("0")),
    Column("judged_by", Text),
    Column("reviewed", Integer, nullable=False, server_default=text("0")),
    Index("texts_waiting", "due_at", "accepted_at", postgresql_where=text("state IS NULL")),
    Index("texts_withheld", "judged_at", postgresql_where=text("state <> 'cleared'")),
)
"""Every text of every revision, kept whether or not it is ever published (M5). ``state`` is null until judged.

``version`` counts the verdicts. ``findings`` and ``pipeline`` stay the pipeline's where a person judged last:
then ``judged_by`` says who, and ``reviewed`` is the version of the owner's request that this answered.
``salt`` opens the text's leaf in its contest's commitment, and goes out with the text alone.
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
    Index("finals_stale", "contest", "lineup_id", postgresql_where=text("stale")),
)
"""Final revisions and what has been told of them; ``stale`` where there may be something new to tell."""

AGENTS = Table(
    "agents",
    METADATA,
    Column("agent_id", Uuid, primary_key=True),
    Column("name", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("state", Text),
    Column("findings", JSONB, nullable=False, server_default=text("'[]'")),
    Column("pipeline", Text),
    Column("judged_at", DateTime(timezone=True)),
    Column("told_version", Integer, nullable=False, server_default=text("0")),
    Column("judged_by", Text),
    Column("reviewed", Integer, nullable=False, server_default=text("0")),
    Index("agents_waiting", "agent_id", postgresql_where=text("state IS NULL")),
)
"""Agents' names and their verdicts, which ``told_version`` counts; the rest as in ``texts``."""

MODELS = Table(
    "models",
    METADATA,
    Column("model", Text, primary_key=True),
    Column("state", Text),
    Column("findings", JSONB, nullable=False, server_default=text("'[]'")),
    Column("pipeline", Text),
    Column("judged_at", DateTime(timezone=True)),
    Index("models_waiting", "model", postgresql_where=text("state IS NULL")),
)
"""Every label of a model that any agent has ever claimed, for past lineups keep theirs (A3), and every label that
such a one was mapped to."""

REVIEWS = Table(
    "reviews",
    METADATA,
    Column("about", Uuid, primary_key=True),
    Column("pointers", JSONB, nullable=False),
    Column("version", Integer, nullable=False),
    Column("requested_at", DateTime(timezone=True), nullable=False),
)
"""The newest request of an owner to look again: at a lineup's texts, or (``about`` the agent) at its name."""

JUDGEMENTS = Table(
    "judgements",
    METADATA,
    Column("position", BigInteger, Identity(always=True), primary_key=True),
    Column("agent_id", Uuid, nullable=False),
    Column("lineup_id", Uuid),
    Column("revision", Integer),
    Column("pointer", Text),
    Column("text_hash", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("was", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("note", Text, nullable=False),
    Column("judged_by", Text, nullable=False),
    Column("judged_at", DateTime(timezone=True), nullable=False, server_default=text("clock_timestamp()")),
    Index("judgements_of_lineups", "lineup_id", postgresql_where=text("lineup_id IS NOT NULL")),
    Index("judgements_of_names", "agent_id", postgresql_where=text("lineup_id IS NULL")),
)
"""What people judged, never changed: of a lineup's text, or (``lineup_id`` null) of an agent's name."""


@dataclass(frozen=True)
class WaitingText:
    """A text to be judged, held by the transaction that read it."""

    lineup_id: UUID
    revision: int
    pointer: str
    contest: str
    text: str


@dataclass(frozen=True)
class WaitingName:
    """An agent's name to be judged, held by the transaction that read it."""

    agent_id: UUID
    name: str
    told_version: int


@dataclass(frozen=True)
class Judged:
    """A text of a final revision or (``lineup_id`` is ``None``) an agent's name with its verdict, held for another.

    ``review`` is the version of the owner's newest request to look again, 0 where there is none.
    """

    agent_id: UUID
    text: str
    state: State | None
    version: int
    review: int
    lineup_id: UUID | None = None
    revision: int | None = None
    pointer: str | None = None


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


class Store:
    """All reads and writes of moderation, on one connection and so in one transaction."""

    def __init__(self, connection: AsyncConnection) -> None:
        self.connection = connection

    # --- what arrives ---

    async def add_texts(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Keep a revision's texts; what is kept already stays as it is."""
        if rows:
            await self.connection.execute(insert(TEXTS).on_conflict_do_nothing(), list(rows))

    async def opened(self, contest: str, names: Sequence[str], locks_at: datetime, version: int) -> None:
        """A contest takes lineups; its pool's names are known from now on, those of an earlier pool with them."""
        await self._contest(contest, version, names=list(names), locks_at=locks_at)

    async def rescheduled(self, contest: str, locks_at: datetime, version: int) -> None:
        """A lock moved; what waits for it is judged by the new one."""
        await self._contest(contest, version, locks_at=locks_at)
        locks = select(CONTESTS.c.locks_at).where(CONTESTS.c.contest == contest).scalar_subquery()
        waiting = and_(TEXTS.c.contest == contest, TEXTS.c.state.is_(None))
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
            nobody = cast([], JSONB)
            news["names"] = func.coalesce(CONTESTS.c.names, nobody).op("||")(statement.excluded.names)
        await self.connection.execute(statement.on_conflict_do_update(index_elements=["contest"], set_=news))

    async def final(self, lineup_id: UUID, contest: str, agent_id: UUID, revision: int) -> None:
        """A lineup's final revision; it never changes."""
        values = {"lineup_id": lineup_id, "contest": contest, "agent_id": agent_id, "revision": revision}
        unsaid = {"stale": True, "said_version": 0, "said_judged": "", "said_released": ""}
        await self.connection.execute(insert(FINALS).values(**values, **unsaid).on_conflict_do_nothing())

    async def agent(self, agent_id: UUID, name: str, version: int) -> None:
        """An agent and its name; a name that is not the one judged waits to be judged."""
        statement = insert(AGENTS).values(agent_id=agent_id, name=name, version=version)
        same = AGENTS.c.name == statement.excluded.name
        await self.connection.execute(
            statement.on_conflict_do_update(
                index_elements=["agent_id"],
                set_={"name": name, "version": version, "state": case((same, AGENTS.c.state), else_=None)},
                where=AGENTS.c.version < version,
            )
        )

    async def model(self, model: str) -> None:
        """A model's label; one that is not known yet waits to be judged."""
        await self.connection.execute(insert(MODELS).values(model=model).on_conflict_do_nothing())

    async def review(self, about: UUID, pointers: Sequence[str], requested_at: datetime, version: int) -> None:
        """An owner asks a person to look again; the newest request counts."""
        values = {"pointers": list(pointers), "requested_at": requested_at, "version": version}
        await self.connection.execute(
            insert(REVIEWS)
            .values(about=about, **values)
            .on_conflict_do_update(index_elements=["about"], set_=values, where=REVIEWS.c.version < version)
        )

    # --- judging ---

    async def waiting_texts(self, limit: int) -> Sequence[WaitingText]:
        """Texts to be judged whose contest's pool is known, what locks soonest first; no other copy gets them."""
        query = (
            select(TEXTS.c.lineup_id, TEXTS.c.revision, TEXTS.c.pointer, TEXTS.c.contest, TEXTS.c.text)
            .join(CONTESTS, CONTESTS.c.contest == TEXTS.c.contest)
            .where(TEXTS.c.state.is_(None), CONTESTS.c.names.is_not(None), CONTESTS.c.cancelled_at.is_(None))
            .order_by(TEXTS.c.due_at, TEXTS.c.accepted_at)
            .limit(limit)
            .with_for_update(of=TEXTS, skip_locked=True)
        )
        return [WaitingText(**row) for row in (await self.connection.execute(query)).mappings()]

    async def names(self, contest: str) -> frozenset[str]:
        """The names of a contest's pool."""
        query = select(CONTESTS.c.names).where(CONTESTS.c.contest == contest)
        return frozenset((await self.connection.execute(query)).scalar_one())

    async def judged_texts(self, verdicts: Sequence[tuple[WaitingText, Verdict]], pipeline: str) -> None:
        """Keep verdicts on texts held by :meth:`waiting_texts`."""
        statement = (
            update(TEXTS)
            .where(
                TEXTS.c.lineup_id == bindparam("of_lineup"),
                TEXTS.c.revision == bindparam("of_revision"),
                TEXTS.c.pointer == bindparam("of_pointer"),
            )
            .values(
                state=bindparam("new_state"),
                findings=bindparam("new_findings"),
                pipeline=pipeline,
                judged_at=func.clock_timestamp(),
                version=TEXTS.c.version + 1,
            )
        )
        rows = [
            {
                "of_lineup": waiting.lineup_id,
                "of_revision": waiting.revision,
                "of_pointer": waiting.pointer,
                "new_state": str(verdict.state),
                "new_findings": [asdict(finding) for finding in verdict.findings],
            }
            for waiting, verdict in verdicts
        ]
        await self.connection.execute(statement, rows)

    async def waiting_names(self, limit: int) -> Sequence[WaitingName]:
        """Agents' names to be judged; no other copy gets them."""
        query = (
            select(AGENTS.c.agent_id, AGENTS.c.name, AGENTS.c.told_version)
            .where(AGENTS.c.state.is_(None))
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
                state=str(verdict.state),
                findings=[asdict(finding) for finding in verdict.findings],
                pipeline=pipeline,
                judged_at=func.clock_timestamp(),
                judged_by=None,
                told_version=waiting.told_version + 1,
            )
        )

    async def waiting_models(self, limit: int) -> Sequence[str]:
        """Models' labels to be judged; no other copy gets them."""
        query = (
            select(MODELS.c.model)
            .where(MODELS.c.state.is_(None))
            .order_by(MODELS.c.model)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        return (await self.connection.scalars(query)).all()

    async def judged_models(self, verdicts: Mapping[str, Verdict], pipeline: str) -> None:
        """Keep verdicts on labels held by :meth:`waiting_models`."""
        statement = (
            update(MODELS)
            .where(MODELS.c.model == bindparam("of_model"))
            .values(
                state=bindparam("new_state"),
                findings=bindparam("new_findings"),
                pipeline=pipeline,
                judged_at=func.clock_timestamp(),
            )
        )
        rows = [
            {
                "of_model": model,
                "new_state": str(verdict.state),
                "new_findings": [asdict(finding) for finding in verdict.findings],
            }
            for model, verdict in verdicts.items()
        ]
        await self.connection.execute(statement, rows)

    # --- judging by hand ---

    async def final_text(self, lineup_id: UUID, pointer: str) -> Judged | None:
        """A text of the final revision of a lineup whose contest is locked, held with its lineup; else ``None``."""
        final = (
            select(FINALS.c.revision)
            .join(CONTESTS, CONTESTS.c.contest == FINALS.c.contest)
            .where(FINALS.c.lineup_id == lineup_id, CONTESTS.c.locked_at.is_not(None))
            .with_for_update(of=FINALS)
        )
        revision = (await self.connection.execute(final)).scalar_one_or_none()
        if revision is None:
            return None
        query = (
            select(TEXTS.c.agent_id, TEXTS.c.text, TEXTS.c.state, TEXTS.c.version)
            .where(TEXTS.c.lineup_id == lineup_id, TEXTS.c.revision == revision, TEXTS.c.pointer == pointer)
            .with_for_update()
        )
        row = (await self.connection.execute(query)).one_or_none()
        if row is None:
            return None
        review = await self._review(lineup_id, REVIEWS.c.pointers.has_key(pointer))
        state = None if row.state is None else State(row.state)
        return Judged(row.agent_id, row.text, state, row.version, review, lineup_id, revision, pointer)

    async def name(self, agent_id: UUID) -> Judged | None:
        """An agent's name, held; ``None`` for an agent that is not known."""
        query = (
            select(AGENTS.c.name, AGENTS.c.state, AGENTS.c.told_version)
            .where(AGENTS.c.agent_id == agent_id)
            .with_for_update()
        )
        row = (await self.connection.execute(query)).one_or_none()
        if row is None:
            return None
        state = None if row.state is None else State(row.state)
        return Judged(agent_id, row.name, state, row.told_version, await self._review(agent_id))

    async def _review(self, about: UUID, *conditions: Any) -> int:
        query = select(func.coalesce(func.max(REVIEWS.c.version), 0)).where(REVIEWS.c.about == about, *conditions)
        return int((await self.connection.execute(query)).scalar_one())

    async def judged_by_hand(self, held: Judged, state: State, note: str, by: str) -> None:
        """Keep what a person says of what :meth:`final_text` or :meth:`name` holds, with its history."""
        verdict = {
            "state": state.value,
            "judged_by": by,
            "judged_at": func.clock_timestamp(),
            "reviewed": held.review,
        }
        version = held.version + 1
        if held.lineup_id is None:
            of_agent = update(AGENTS).where(AGENTS.c.agent_id == held.agent_id)
            await self.connection.execute(of_agent.values(**verdict, told_version=version))
        else:
            of_text = update(TEXTS).where(
                TEXTS.c.lineup_id == held.lineup_id,
                TEXTS.c.revision == held.revision,
                TEXTS.c.pointer == held.pointer,
            )
            await self.connection.execute(of_text.values(**verdict, version=version))
            of_lineup = update(FINALS).where(FINALS.c.lineup_id == held.lineup_id)
            await self.connection.execute(of_lineup.values(stale=True))
        await self.connection.execute(
            insert(JUDGEMENTS).values(
                agent_id=held.agent_id,
                lineup_id=held.lineup_id,
                revision=held.revision,
                pointer=held.pointer,
                text_hash=domain.text_hash(held.text),
                version=version,
                was=str(held.state),
                state=state.value,
                note=note,
                judged_by=by,
            )
        )

    # --- telling ---

    async def due(self, limit: int, lineup_id: UUID | None = None) -> Sequence[DueLineup]:
        """Stale lineups (or one) of locked contests whose final revision is judged whole; no other copy gets them."""
        of_final = and_(TEXTS.c.lineup_id == FINALS.c.lineup_id, TEXTS.c.revision == FINALS.c.revision)
        query = (
            select(FINALS)
            .join(CONTESTS, CONTESTS.c.contest == FINALS.c.contest)
            .where(
                FINALS.c.stale,
                CONTESTS.c.locked_at.is_not(None),
                exists().where(of_final),
                ~exists().where(of_final, TEXTS.c.state.is_(None)),
                *([] if lineup_id is None else [FINALS.c.lineup_id == lineup_id]),
            )
            .order_by(FINALS.c.contest, FINALS.c.lineup_id)
            .limit(limit)
            .with_for_update(of=FINALS, skip_locked=True)
        )
        finals = (await self.connection.execute(query)).all()
        wanted = [(final.lineup_id, final.revision) for final in finals]
        texts: dict[UUID, dict[str, domain.Text]] = {final.lineup_id: {} for final in finals}
        query_texts = (
            select(
                TEXTS.c.lineup_id,
                TEXTS.c.pointer,
                TEXTS.c.text,
                TEXTS.c.salt,
                TEXTS.c.state,
                TEXTS.c.findings,
                TEXTS.c.judged_by,
                TEXTS.c.version,
            )
            .where(tuple_(TEXTS.c.lineup_id, TEXTS.c.revision).in_(wanted))
            .with_for_update()
        )
        for row in (await self.connection.execute(query_texts)).all() if wanted else ():
            state = None if row.state is None else State(row.state)
            found = (finding["detector"] for finding in row.findings)
            why = domain.reasons(state, found, by_hand=row.judged_by is not None)
            texts[row.lineup_id][row.pointer] = domain.Text(row.text, state, why, row.version, row.salt)
        return [
            DueLineup(
                final.lineup_id,
                final.contest,
                final.agent_id,
                Lineup(
                    locked=True,
                    final=final.revision,
                    revisions={final.revision: texts[final.lineup_id]},
                    said=Said(final.said_version, final.said_judged, final.said_released),
                ),
            )
            for final in finals
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

    async def backlog(self) -> Backlog:
        """What waits to be judged."""
        age = func.extract("epoch", func.clock_timestamp() - func.min(TEXTS.c.received_at))
        off = exists().where(CONTESTS.c.contest == TEXTS.c.contest, CONTESTS.c.cancelled_at.is_not(None))
        query = select(func.count(), func.coalesce(age, 0)).where(TEXTS.c.state.is_(None), ~off)
        texts, oldest = (await self.connection.execute(query)).one()
        names, models = [
            (await self.connection.execute(select(func.count()).where(table.c.state.is_(None)))).scalar_one()
            for table in (AGENTS, MODELS)
        ]
        return Backlog(texts, float(oldest), names, models)

    async def withheld(self, limit: int) -> Sequence[Mapping[str, Any]]:
        """What is not cleared: texts of final revisions of locked contests alone (C8), and agents' names.

        Those that an owner asked to look at again come first, the oldest request first; then the newest verdict.
        """
        rows: list[dict[str, Any]] = []
        for query, table in ((_texts(), TEXTS), (_names(), AGENTS)):
            withheld = query.where(table.c.state != State.CLEARED.value).order_by(
                REVIEWS.c.requested_at.asc().nulls_last(), table.c.judged_at.desc().nulls_last()
            )
            rows += await self._rows(withheld.limit(limit))
        never = datetime.max.replace(tzinfo=UTC)
        rows.sort(key=lambda row: (row["agent_id"], row["pointer"] or ""))
        rows.sort(key=lambda row: row["judged_at"] or datetime.min.replace(tzinfo=UTC), reverse=True)
        rows.sort(key=lambda row: row["review_requested_at"] or never)
        return rows[:limit]

    async def lineup(self, lineup_id: UUID) -> Sequence[Mapping[str, Any]]:
        """All texts of a lineup's final revision, none before its contest is locked."""
        return await self._rows(_texts().where(TEXTS.c.lineup_id == lineup_id).order_by(TEXTS.c.pointer))

    async def agent_name(self, agent_id: UUID) -> Sequence[Mapping[str, Any]]:
        """An agent's name, in the form of :meth:`lineup`."""
        return await self._rows(_names().where(AGENTS.c.agent_id == agent_id))

    async def history(
        self, *, lineup_id: UUID | None = None, agent_id: UUID | None = None
    ) -> Sequence[Mapping[str, Any]]:
        """What people judged of a lineup's texts or of an agent's name, oldest first."""
        of_name = and_(JUDGEMENTS.c.agent_id == agent_id, JUDGEMENTS.c.lineup_id.is_(None))
        query = select(JUDGEMENTS).where(of_name if lineup_id is None else JUDGEMENTS.c.lineup_id == lineup_id)
        return await self._rows(query.order_by(JUDGEMENTS.c.position))

    async def _rows(self, query: Select[Any]) -> list[dict[str, Any]]:
        return [dict(row) for row in (await self.connection.execute(query)).mappings()]


def _texts() -> Select[Any]:
    asked = and_(
        REVIEWS.c.about == TEXTS.c.lineup_id,
        REVIEWS.c.pointers.has_key(TEXTS.c.pointer),
        REVIEWS.c.version > TEXTS.c.reviewed,
    )
    return (
        select(
            TEXTS.c.contest,
            TEXTS.c.lineup_id,
            TEXTS.c.agent_id,
            TEXTS.c.revision,
            TEXTS.c.pointer,
            TEXTS.c.text,
            TEXTS.c.text_hash,
            TEXTS.c.state,
            TEXTS.c.version,
            TEXTS.c.findings,
            TEXTS.c.pipeline,
            TEXTS.c.judged_by,
            TEXTS.c.judged_at,
            REVIEWS.c.requested_at.label("review_requested_at"),
        )
        .join(FINALS, and_(FINALS.c.lineup_id == TEXTS.c.lineup_id, FINALS.c.revision == TEXTS.c.revision))
        .join(CONTESTS, CONTESTS.c.contest == TEXTS.c.contest)
        .outerjoin(REVIEWS, asked)
        .where(CONTESTS.c.locked_at.is_not(None))
    )


def _names() -> Select[Any]:
    asked = and_(REVIEWS.c.about == AGENTS.c.agent_id, REVIEWS.c.version > AGENTS.c.reviewed)
    return select(
        null().label("contest"),
        null().label("lineup_id"),
        AGENTS.c.agent_id,
        null().label("revision"),
        null().label("pointer"),
        AGENTS.c.name.label("text"),
        func.encode(func.sha256(func.convert_to(AGENTS.c.name, "UTF8")), "hex").label("text_hash"),
        AGENTS.c.state,
        AGENTS.c.told_version.label("version"),
        AGENTS.c.findings,
        AGENTS.c.pipeline,
        AGENTS.c.judged_by,
        AGENTS.c.judged_at,
        REVIEWS.c.requested_at.label("review_requested_at"),
    ).outerjoin(REVIEWS, asked)
