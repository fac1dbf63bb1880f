"""Tables of the registry and every query on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Boolean,
    Column,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    RowMapping,
    Table,
    Text,
    Uuid,
    delete,
    func,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from registry.domain import Agent

METADATA = MetaData()

OWNERS = Table(
    "owners",
    METADATA,
    Column("owner_id", Uuid, primary_key=True),
    Column("word", Text, nullable=False, unique=True),
    Column("created_at", DateTime(timezone=True), nullable=False),
)

AGENTS = Table(
    "agents",
    METADATA,
    Column("agent_id", Uuid, primary_key=True),
    Column("name", Text, nullable=False),
    Column("name_key", Text, nullable=False, unique=True),
    Column("model", Text, nullable=False),
    Column("description", Text),
    Column("harness", Text),
    Column("provider", Text),
    Column("house", Boolean, nullable=False),
    Column("cohort", Boolean, nullable=False),
    Column("reference", Boolean, nullable=False),
    Column("owner_id", Uuid, ForeignKey("owners.owner_id")),
    Column("version", Integer, nullable=False),
    Column("key_hash", Text, nullable=False, unique=True),
    Column("key_version", Integer, nullable=False),
    Column("registered_at", DateTime(timezone=True), nullable=False),
)

CLAIM_LINKS = Table(
    "claim_links",
    METADATA,
    Column("token_hash", Text, primary_key=True),
    Column("agent_id", Uuid, ForeignKey("agents.agent_id"), nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("used_at", DateTime(timezone=True)),
    Index("claim_links_of_agent", "agent_id"),
)

ANSWERS = Table(
    "answers",
    METADATA,
    Column("scope", Text, primary_key=True),
    Column("idempotency_hash", Text, primary_key=True),
    Column("request_hash", Text, nullable=False),
    Column("agent_id", Uuid, ForeignKey("agents.agent_id"), nullable=False),
    Column("key_hash", Text, nullable=False),
    Column("answered_at", DateTime(timezone=True), nullable=False),
    Index("answers_by_age", "answered_at"),
)
"""Requests that gave out a key under an ``Idempotency-Key``; ``key_hash`` is of the key given out last."""


@dataclass(frozen=True)
class Answer:
    """What is remembered of a request that gave out a key. No secret is in it, only hashes."""

    request_hash: str
    agent_id: UUID
    key_hash: str


@dataclass(frozen=True)
class ClaimLink:
    """A claim link and whether it has been used."""

    agent: Agent
    used: bool


_AGENT = tuple(column for column in AGENTS.c if column.name != "name_key")


def _agent(row: RowMapping) -> Agent:
    values = {column.name: row[column] for column in _AGENT}
    return Agent(**{**values, "registered_at": row[AGENTS.c.registered_at].astimezone(UTC)})


class Store:
    """All reads and writes of the registry, on one connection and so in one transaction."""

    def __init__(self, connection: AsyncConnection) -> None:
        self.connection = connection

    async def serialise(self, scope: str, idempotency_hash: str) -> None:
        """Let one request with this idempotency key run at a time, until the transaction ends."""
        key = func.hashtextextended(f"{scope}/{idempotency_hash}", 0)
        await self.connection.execute(select(func.pg_advisory_xact_lock(key)))

    async def answer(self, scope: str, idempotency_hash: str, *, since: datetime) -> Answer | None:
        """What was answered to this idempotency key at or after ``since``."""
        query = select(ANSWERS.c.request_hash, ANSWERS.c.agent_id, ANSWERS.c.key_hash).where(
            ANSWERS.c.scope == scope, ANSWERS.c.idempotency_hash == idempotency_hash, ANSWERS.c.answered_at >= since
        )
        row = (await self.connection.execute(query)).mappings().one_or_none()
        return None if row is None else Answer(**row)

    async def remember(self, scope: str, idempotency_hash: str, answer: Answer, *, at: datetime) -> None:
        """Remember an answer from ``at`` on, in the place of an older one."""
        values = {
            "request_hash": answer.request_hash,
            "agent_id": answer.agent_id,
            "key_hash": answer.key_hash,
            "answered_at": at,
        }
        statement = insert(ANSWERS).values(scope=scope, idempotency_hash=idempotency_hash, **values)
        await self.connection.execute(
            statement.on_conflict_do_update(index_elements=["scope", "idempotency_hash"], set_=values)
        )

    async def replaced(self, scope: str, idempotency_hash: str, key_hash: str) -> None:
        """A replay gave out another key. The 24 hours still count from the first answer."""
        await self.connection.execute(
            update(ANSWERS)
            .where(ANSWERS.c.scope == scope, ANSWERS.c.idempotency_hash == idempotency_hash)
            .values(key_hash=key_hash)
        )

    async def forget(self, *, before: datetime) -> int:
        """Forget the answers given before ``before``; how many."""
        return (await self.connection.execute(delete(ANSWERS).where(ANSWERS.c.answered_at < before))).rowcount

    async def add(self, agent: Agent, name_key: str) -> bool:
        """Add a new agent; ``False`` where the name is taken, also by a transaction that commits meanwhile."""
        values = {column.name: getattr(agent, column.name) for column in _AGENT}
        statement = insert(AGENTS).values(name_key=name_key, **values)
        statement = statement.on_conflict_do_nothing(index_elements=["name_key"])
        return (await self.connection.execute(statement.returning(AGENTS.c.agent_id))).one_or_none() is not None

    async def agent(self, agent_id: UUID, *, for_update: bool = False) -> Agent | None:
        return await self._one(AGENTS.c.agent_id == agent_id, for_update)

    async def agent_by_key(self, key_hash: str, *, for_update: bool = False) -> Agent | None:
        return await self._one(AGENTS.c.key_hash == key_hash, for_update)

    async def _one(self, where: Any, for_update: bool) -> Agent | None:
        query = select(*_AGENT).where(where)
        if for_update:
            query = query.with_for_update()
        row = (await self.connection.execute(query)).mappings().one_or_none()
        return None if row is None else _agent(row)

    async def agents(self, *, name_key: str | None = None) -> Sequence[Agent]:
        """All agents in the order of registration, or the one of a name."""
        query = select(*_AGENT).order_by(AGENTS.c.registered_at, AGENTS.c.agent_id)
        if name_key is not None:
            query = query.where(AGENTS.c.name_key == name_key)
        return [_agent(row) for row in (await self.connection.execute(query)).mappings()]

    async def change(self, agent: Agent, **values: Any) -> Agent:
        """Change an agent that is held ``for_update``; its version grows by one. Gives it as it is now."""
        return await self._update(agent, version=agent.version + 1, **values)

    async def rekey(self, agent: Agent, key_hash: str) -> Agent:
        """Give an agent that is held ``for_update`` another key; the old one is dead at commit."""
        return await self._update(agent, key_hash=key_hash, key_version=agent.key_version + 1)

    async def _update(self, agent: Agent, **values: Any) -> Agent:
        statement = update(AGENTS).where(AGENTS.c.agent_id == agent.agent_id).values(**values).returning(*_AGENT)
        return _agent((await self.connection.execute(statement)).mappings().one())

    async def link(self, token_hash: str) -> ClaimLink | None:
        """A claim link by the hash of its token."""
        query = select(CLAIM_LINKS.c.used_at, *_AGENT).join(AGENTS).where(CLAIM_LINKS.c.token_hash == token_hash)
        row = (await self.connection.execute(query)).mappings().one_or_none()
        return None if row is None else ClaimLink(_agent(row), row[CLAIM_LINKS.c.used_at] is not None)

    async def replace_link(self, agent_id: UUID, token_hash: str, *, at: datetime) -> None:
        """Give an agent a new claim link; its unused ones are dead."""
        await self.connection.execute(
            delete(CLAIM_LINKS).where(CLAIM_LINKS.c.agent_id == agent_id, CLAIM_LINKS.c.used_at.is_(None))
        )
        await self.connection.execute(
            insert(CLAIM_LINKS).values(token_hash=token_hash, agent_id=agent_id, created_at=at)
        )

    async def use_links(self, agent_id: UUID, *, at: datetime) -> None:
        """Mark every claim link of an agent as used."""
        await self.connection.execute(
            update(CLAIM_LINKS)
            .where(CLAIM_LINKS.c.agent_id == agent_id, CLAIM_LINKS.c.used_at.is_(None))
            .values(used_at=at)
        )

    async def owner(self, word: str, owner_id: UUID, *, at: datetime) -> UUID:
        """The owner known by an operator's word, made with ``owner_id`` where there is none yet."""
        statement = insert(OWNERS).values(owner_id=owner_id, word=word, created_at=at)
        statement = statement.on_conflict_do_update(index_elements=["word"], set_={"word": word})
        found: UUID = (await self.connection.execute(statement.returning(OWNERS.c.owner_id))).scalar_one()
        return found
