"""Tables of the registry and every query on them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, field
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
    and_,
    delete,
    exists,
    func,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from common import events as ev
from common.db import adding_rows, as_rows, driver
from common.handles import handle
from common.redaction import strip_agent, strip_sentences
from registry.domain import CLAIM_LINK_LIVES, NAME, Agent

METADATA = MetaData()

OWNERS = Table(
    "owners",
    METADATA,
    Column("owner_id", Uuid, primary_key=True),
    Column("word", Text, unique=True),
    Column("created_at", DateTime(timezone=True), nullable=False),
)

AGENTS = Table(
    "agents",
    METADATA,
    Column("agent_id", Uuid, primary_key=True),
    Column("name", Text, nullable=False),
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
    Column("key_offer", Integer),
    Column("key_used_at", DateTime(timezone=True)),
    Column("redacted_at", DateTime(timezone=True)),
    Column("redaction", Text),
)

AGENT_NAMES = Table(
    "agent_names",
    METADATA,
    Column("name_key", Text, primary_key=True),
    Column("agent_id", Uuid, ForeignKey("agents.agent_id"), nullable=False),
    Index("agent_names_of_agent", "agent_id"),
)
"""The keys of every name that is taken (``domain.name_keys``): what another name would be taken for it by.

Of a name that was redacted a keyed hash of each stands in its place: it stays burnt, and nobody reads it there.
"""

CLAIM_LINKS = Table(
    "claim_links",
    METADATA,
    Column("token_hash", Text, primary_key=True),
    Column("agent_id", Uuid, ForeignKey("agents.agent_id"), nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("used_at", DateTime(timezone=True)),
    Column("expires_at", DateTime(timezone=True), nullable=False),
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

MODELS = Table(
    "models",
    METADATA,
    Column("label", Text, primary_key=True),
    Column("canonical", Text),
    Column("by", Text),
    Column("version", Integer, nullable=False),
    Column("seen_at", DateTime(timezone=True), nullable=False),
    Index("models_unknown", "label", postgresql_where=text("canonical IS NULL")),
)
"""Every label that an agent has claimed, as written, with the model that it means; none where nobody knows yet."""

MAPPINGS = Table(
    "model_mappings",
    METADATA,
    Column("label", Text, ForeignKey("models.label"), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("canonical", Text, nullable=False),
    Column("by", Text, nullable=False),
    Column("at", DateTime(timezone=True), nullable=False),
)
"""What each label has meant, version by version; rows are only added."""


# --- people: tables ------------------------------------------------------------------------------

IDENTITIES = Table(
    "identities",
    METADATA,
    Column("known_as", Text, primary_key=True),
    Column("issuer", Text, nullable=False),
    Column("owner_id", Uuid, ForeignKey("owners.owner_id"), nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
)
"""Accounts that people sign in with. ``known_as`` is a keyed hash: no subject and no address is kept."""

SESSIONS = Table(
    "sessions",
    METADATA,
    Column("token_hash", Text, primary_key=True),
    Column("owner_id", Uuid, ForeignKey("owners.owner_id"), nullable=False),
    Column("way", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("seen_at", DateTime(timezone=True), nullable=False),
    Column("expires_at", DateTime(timezone=True), nullable=False),
    Index("sessions_by_end", "expires_at"),
)

SIGN_INS = Table(
    "sign_ins",
    METADATA,
    Column("state_hash", Text, primary_key=True),
    Column("browser_hash", Text, nullable=False),
    Column("provider", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Index("sign_ins_by_age", "created_at"),
)
"""Browsers that are at a provider at this moment. A row goes with the first answer that fits it."""

MAIL_LINKS = Table(
    "mail_links",
    METADATA,
    Column("token_hash", Text, primary_key=True),
    Column("browser_hash", Text, nullable=False),
    Column("known_as", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Index("mail_links_of_account", "known_as", "created_at"),
    Index("mail_links_by_age", "created_at"),
)
"""Links that were mailed and not used. The address itself is nowhere."""

SECRETS = Table(
    "secrets",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
"""Secrets that an embedded stack made for itself; in production they come from the environment, and this is empty."""

LINEUPS = Table(
    "lineups",
    METADATA,
    Column("lineup_id", Uuid, primary_key=True),
    Column("agent_id", Uuid, nullable=False),
    Column("contest", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("accepted_at", DateTime(timezone=True), nullable=False),
    Column("model", Text, nullable=False),
    Column("slots", JSONB, nullable=False),
    Index("lineups_of_agent", "agent_id", "contest"),
)
"""Locked lineups, for their owners' page: no picks and no words."""

REASONINGS = Table(
    "reasonings",
    METADATA,
    Column("lineup_id", Uuid, primary_key=True),
    Column("agent_id", Uuid, nullable=False),
    Column("fields", JSONB, nullable=False),
    Column("version", Integer, nullable=False),
    Index("reasonings_of_agent", "agent_id"),
)
"""What moderation says of each text of a locked lineup: ``fields`` is [{pointer, state, reasons, reviewed}]."""

NAME_STATES = Table(
    "name_states",
    METADATA,
    Column("agent_id", Uuid, primary_key=True),
    Column("state", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("reasons", JSONB, nullable=False, server_default=text("'[]'")),
    Column("reviewed", Integer, nullable=False, server_default=text("0")),
)

REVIEWS = Table(
    "reviews",
    METADATA,
    Column("agent_id", Uuid, ForeignKey("agents.agent_id"), primary_key=True),
    Column("about", Text, primary_key=True),
    Column("pointer", Text, primary_key=True),
    Column("owner_id", Uuid),
    Column("judged_version", Integer, nullable=False),
    Column("version", Integer, nullable=False),
    Column("requested_at", DateTime(timezone=True), nullable=False),
    Column("sentence", Text),
    Column("answered_at", DateTime(timezone=True)),
)
"""The newest review of each text that its owner asked for. ``about`` is a lineup's id, or ``name`` (then ``pointer``
is empty); ``version`` counts the requests about it, ``judged_version`` is the judgement meant."""

REDACTED = Table(
    "redacted_texts",
    METADATA,
    Column("lineup_id", Uuid, primary_key=True),
    Column("pointer", Text, primary_key=True),
    Column("reason", Text, nullable=False),
    Column("redacted_at", DateTime(timezone=True), nullable=False),
)
"""Texts of locked lineups whose words are gone for good."""


@dataclass(frozen=True)
class Session:
    """A person who is signed in. ``way`` says how, for the page."""

    token_hash: str
    owner_id: UUID
    way: str
    seen_at: datetime


@dataclass(frozen=True)
class MailLink:
    """A link that was mailed and is still good."""

    known_as: str
    browser_hash: str


@dataclass(frozen=True)
class Review:
    """An owner's newest request to look at a text again; ``answered_at`` is when a person had, as far as is known."""

    version: int
    owner_id: UUID | None
    requested_at: datetime
    sentence: str | None
    answered_at: datetime | None


@dataclass(frozen=True)
class Field:
    """What moderation says of one text, and why; ``reviewed`` is the newest request of its owner that is answered."""

    pointer: str
    state: str
    reasons: tuple[str, ...]
    reviewed: int = 0


@dataclass(frozen=True)
class LockedLineup:
    """A locked lineup as its owner's page shows it. ``judged`` is the version of the judgement, 0 before the first.

    ``redacted`` are the texts that are gone for good: why, in a word, and since when.
    """

    lineup_id: UUID
    contest: str
    revision: int
    accepted_at: datetime
    model: str
    slots: tuple[str, ...]
    fields: tuple[Field, ...]
    judged: int
    reviews: dict[str, Review]
    redacted: dict[str, tuple[str, datetime]] = field(default_factory=dict)


@dataclass(frozen=True)
class NameState:
    """What moderation says of an agent's name, and the newest review that its owner asked for."""

    state: str
    judged: int
    reasons: tuple[str, ...] = ()
    reviewed: int = 0
    review: Review | None = None


@dataclass(frozen=True)
class Answer:
    """What is remembered of a request that gave out a key. No secret is in it, only hashes."""

    request_hash: str
    agent_id: UUID
    key_hash: str


@dataclass(frozen=True)
class ClaimLink:
    """A claim link and whether it has been used. ``expired`` is told by the real time, also in a replay."""

    agent: Agent
    used: bool
    expired: bool


@dataclass(frozen=True)
class Model:
    """A label as agents write it and what it means: ``canonical`` is None where nobody knows yet.

    ``version`` counts the mappings of the label, from 0. ``agents`` claim it now.
    """

    label: str
    canonical: str | None
    by: str | None
    version: int
    seen_at: datetime
    agents: int = 0


@dataclass(frozen=True)
class Mapping:
    """What a label meant from ``at`` on."""

    version: int
    canonical: str
    by: str
    at: datetime


_PUT_LINEUPS = f"{adding_rows(LINEUPS)} ON CONFLICT DO NOTHING"
_AGENT = tuple(AGENTS.c)
REGISTER = "register"
"""The scope of the answers to registrations."""

_BURNT_LENGTH = 64
"""Hexadecimal digits; no name's key is as long."""


def _agent(row: RowMapping) -> Agent:
    values = {column.name: row[column] for column in _AGENT}
    used = row[AGENTS.c.key_used_at]
    return Agent(
        **{
            **values,
            "registered_at": row[AGENTS.c.registered_at].astimezone(UTC),
            "key_used_at": used and used.astimezone(UTC),
            "redacted_at": row[AGENTS.c.redacted_at] and row[AGENTS.c.redacted_at].astimezone(UTC),
        }
    )


def _above(agent: Agent) -> int:
    """The version after every one that contests may have been told of."""
    return (agent.key_offer or agent.key_version) + 1


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

    async def replaced(self, scope: str, idempotency_hash: str, key_hash: str, *, since: datetime) -> bool:
        """A replay of an answer given at or after ``since`` gave out another key; ``False`` where there is none.

        The 24 hours still count from the first answer.
        """
        known = and_(
            ANSWERS.c.scope == scope, ANSWERS.c.idempotency_hash == idempotency_hash, ANSWERS.c.answered_at >= since
        )
        return (await self.connection.execute(update(ANSWERS).where(known).values(key_hash=key_hash))).rowcount == 1

    async def forget(self, *, before: datetime) -> int:
        """Forget the answers given before ``before``; how many."""
        return (await self.connection.execute(delete(ANSWERS).where(ANSWERS.c.answered_at < before))).rowcount

    async def add(self, agent: Agent, name_keys: dict[str, str]) -> bool:
        """Add a new agent; ``False`` where :meth:`take_name` says so."""
        values = {column.name: getattr(agent, column.name) for column in _AGENT}
        await self.connection.execute(insert(AGENTS).values(**values))
        return await self.take_name(agent.agent_id, name_keys)

    async def take_name(self, agent_id: UUID, name_keys: dict[str, str]) -> bool:
        """Take a name by its keys, each with what it is burnt by; ``False`` where one of them is taken or burnt.

        Also by a transaction that commits meanwhile. The caller gives up its transaction then.
        """
        # In one order everywhere, so that two registrations wait for each other and not in a circle.
        rows = [{"name_key": key, "agent_id": agent_id} for key in sorted(name_keys)]
        statement = insert(AGENT_NAMES).values(rows).on_conflict_do_nothing(index_elements=["name_key"])
        added = (await self.connection.execute(statement.returning(AGENT_NAMES.c.name_key))).all()
        # Asked after it was taken: whoever was burning the name at that moment has committed.
        burnt = exists().where(AGENT_NAMES.c.name_key.in_(sorted(name_keys.values())))
        return len(added) == len(rows) and not (await self.connection.execute(select(burnt))).scalar_one()

    async def let_go(self, agent: Agent, fields: Collection[str], burn: Callable[[str], str]) -> Sequence[ev.Envelope]:
        """Let words of an agent, which is held ``for_update`` and has them no more, go from all that registry keeps.

        The keys of its name are burnt: ``burn`` gives what stands in the place of each. Returns what was told of the
        agent, without them.
        """
        if "name" in fields:
            taken = AGENT_NAMES.c.agent_id == agent.agent_id
            for key in (await self.connection.scalars(select(AGENT_NAMES.c.name_key).where(taken))).all():
                if len(key) != _BURNT_LENGTH:
                    this = update(AGENT_NAMES).where(taken, AGENT_NAMES.c.name_key == key)
                    await self.connection.execute(this.values(name_key=burn(key)))
            of_name = and_(REVIEWS.c.agent_id == agent.agent_id, REVIEWS.c.about == NAME)
            await self.connection.execute(update(REVIEWS).where(of_name).values(sentence=None))
        # What the registration was remembered by is a hash of its words.
        registered = and_(ANSWERS.c.agent_id == agent.agent_id, ANSWERS.c.scope == REGISTER)
        await self.connection.execute(delete(ANSWERS).where(registered))
        return await strip_agent(self.connection, agent.agent_id, handle(agent.agent_id, claimed=True), fields)

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

    async def agents(self, *, name_keys: Collection[str] | None = None) -> Sequence[Agent]:
        """All agents in the order of registration, or those whose names share a key with ``name_keys``."""
        query = select(*_AGENT).order_by(AGENTS.c.registered_at, AGENTS.c.agent_id)
        if name_keys is not None:
            named = select(AGENT_NAMES.c.agent_id).where(AGENT_NAMES.c.name_key.in_(sorted(name_keys)))
            query = query.where(AGENTS.c.agent_id.in_(named))
        return [_agent(row) for row in (await self.connection.execute(query)).mappings()]

    async def change(self, agent: Agent, **values: Any) -> Agent:
        """Change an agent that is held ``for_update``; its version grows by one. Gives it as it is now."""
        return await self._update(agent, version=agent.version + 1, **values)

    async def rekey(self, agent: Agent, key_hash: str, *, offered: bool = False) -> Agent:
        """Give an agent that is held ``for_update`` another key; the old one is dead at commit.

        A key that contests took is kept under the version of its offer, any other above all that was offered.
        """
        version = agent.key_offer if offered else _above(agent)
        return await self._update(agent, key_hash=key_hash, key_version=version, key_offer=None, key_used_at=None)

    async def begin_offer(self, agent: Agent) -> Agent:
        """Set the version under which an agent that is held ``for_update`` will be offered another key."""
        return await self._update(agent, key_offer=_above(agent))

    async def end_offer(self, agent: Agent) -> Agent:
        """Put the key that an agent that is held ``for_update`` has above any that was offered in its place."""
        return await self._update(agent, key_version=_above(agent), key_offer=None)

    async def used_key(self, agent_id: UUID) -> None:
        """Record that the agent's key was used, once in a quarter of an hour."""
        statement = update(AGENTS).where(
            AGENTS.c.agent_id == agent_id,
            or_(
                AGENTS.c.key_used_at.is_(None),
                AGENTS.c.key_used_at < func.clock_timestamp() - text("interval '15 minutes'"),
            ),
        )
        await self.connection.execute(statement.values(key_used_at=func.clock_timestamp()))

    async def _update(self, agent: Agent, **values: Any) -> Agent:
        statement = update(AGENTS).where(AGENTS.c.agent_id == agent.agent_id).values(**values).returning(*_AGENT)
        return _agent((await self.connection.execute(statement)).mappings().one())

    async def link(self, token_hash: str) -> ClaimLink | None:
        """A claim link by the hash of its token."""
        expired = (CLAIM_LINKS.c.expires_at <= func.clock_timestamp()).label("expired")
        query = select(CLAIM_LINKS.c.used_at, expired, *_AGENT).join(AGENTS)
        query = query.where(CLAIM_LINKS.c.token_hash == token_hash)
        row = (await self.connection.execute(query)).mappings().one_or_none()
        return None if row is None else ClaimLink(_agent(row), row[CLAIM_LINKS.c.used_at] is not None, row["expired"])

    async def replace_link(self, agent_id: UUID, token_hash: str, *, at: datetime) -> None:
        """Give an agent a new claim link; its unused ones are dead."""
        await self.connection.execute(
            delete(CLAIM_LINKS).where(CLAIM_LINKS.c.agent_id == agent_id, CLAIM_LINKS.c.used_at.is_(None))
        )
        await self.connection.execute(
            insert(CLAIM_LINKS).values(
                token_hash=token_hash,
                agent_id=agent_id,
                created_at=at,
                expires_at=func.clock_timestamp() + CLAIM_LINK_LIVES,
            )
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

    # --- people --------------------------------------------------------------------------------------

    async def owner_of(self, known_as: str) -> UUID | None:
        """The owner who signs in with an account."""
        query = select(IDENTITIES.c.owner_id).where(IDENTITIES.c.known_as == known_as)
        found: UUID | None = (await self.connection.execute(query)).scalar_one_or_none()
        return found

    async def add_person(self, owner_id: UUID, known_as: str, issuer: str, *, at: datetime) -> None:
        """A new owner, known by the account that they sign in with."""
        await self.connection.execute(insert(OWNERS).values(owner_id=owner_id, created_at=at))
        await self.connection.execute(
            insert(IDENTITIES).values(known_as=known_as, issuer=issuer, owner_id=owner_id, created_at=at)
        )

    async def add_session(self, token_hash: str, owner_id: UUID, way: str, *, at: datetime, until: datetime) -> None:
        await self.connection.execute(
            insert(SESSIONS).values(
                token_hash=token_hash, owner_id=owner_id, way=way, created_at=at, seen_at=at, expires_at=until
            )
        )

    async def session(self, token_hash: str, *, now: datetime, seen_since: datetime) -> Session | None:
        """A session that has neither ended nor idled."""
        query = select(SESSIONS.c.token_hash, SESSIONS.c.owner_id, SESSIONS.c.way, SESSIONS.c.seen_at).where(
            SESSIONS.c.token_hash == token_hash, SESSIONS.c.expires_at > now, SESSIONS.c.seen_at > seen_since
        )
        row = (await self.connection.execute(query)).mappings().one_or_none()
        return None if row is None else Session(**row)

    async def seen(self, token_hash: str, *, at: datetime) -> None:
        await self.connection.execute(update(SESSIONS).where(SESSIONS.c.token_hash == token_hash).values(seen_at=at))

    async def end_session(self, token_hash: str) -> None:
        await self.connection.execute(delete(SESSIONS).where(SESSIONS.c.token_hash == token_hash))

    async def add_sign_in(self, state_hash: str, browser_hash: str, provider: str, *, at: datetime) -> None:
        """A browser goes to a provider."""
        await self.connection.execute(
            insert(SIGN_INS).values(state_hash=state_hash, browser_hash=browser_hash, provider=provider, created_at=at)
        )

    async def take_sign_in(self, state_hash: str, browser_hash: str, provider: str, *, since: datetime) -> bool:
        """Whether this browser went to this provider with this state; once."""
        statement = delete(SIGN_INS).where(
            SIGN_INS.c.state_hash == state_hash,
            SIGN_INS.c.browser_hash == browser_hash,
            SIGN_INS.c.provider == provider,
            SIGN_INS.c.created_at > since,
        )
        return (await self.connection.execute(statement)).rowcount == 1

    async def mail_links_of(self, known_as: str, *, since: datetime) -> int:
        """How many links of an account were made after ``since`` and not used."""
        query = select(func.count()).where(MAIL_LINKS.c.known_as == known_as, MAIL_LINKS.c.created_at > since)
        found: int = (await self.connection.execute(query)).scalar_one()
        return found

    async def add_mail_link(self, token_hash: str, browser_hash: str, known_as: str, *, at: datetime) -> None:
        await self.connection.execute(
            insert(MAIL_LINKS).values(
                token_hash=token_hash, browser_hash=browser_hash, known_as=known_as, created_at=at
            )
        )

    async def mail_link(self, token_hash: str, *, since: datetime) -> MailLink | None:
        query = select(MAIL_LINKS.c.known_as, MAIL_LINKS.c.browser_hash).where(
            MAIL_LINKS.c.token_hash == token_hash, MAIL_LINKS.c.created_at > since
        )
        row = (await self.connection.execute(query)).mappings().one_or_none()
        return None if row is None else MailLink(**row)

    async def take_mail_link(self, token_hash: str, browser_hash: str, *, since: datetime) -> str | None:
        """Use a link in the browser that asked for it, once; which account it was for."""
        statement = delete(MAIL_LINKS).where(
            MAIL_LINKS.c.token_hash == token_hash,
            MAIL_LINKS.c.browser_hash == browser_hash,
            MAIL_LINKS.c.created_at > since,
        )
        row: str | None = (
            await self.connection.execute(statement.returning(MAIL_LINKS.c.known_as))
        ).scalar_one_or_none()
        return row

    async def drop_mail_link(self, token_hash: str) -> None:
        await self.connection.execute(delete(MAIL_LINKS).where(MAIL_LINKS.c.token_hash == token_hash))

    async def forget_people(
        self, *, now: datetime, seen_since: datetime, sign_ins_before: datetime, links_before: datetime
    ) -> None:
        """Forget sessions, sign-ins and mailed links that are over."""
        await self.connection.execute(
            delete(SESSIONS).where(or_(SESSIONS.c.expires_at <= now, SESSIONS.c.seen_at <= seen_since))
        )
        await self.connection.execute(delete(SIGN_INS).where(SIGN_INS.c.created_at <= sign_ins_before))
        await self.connection.execute(delete(MAIL_LINKS).where(MAIL_LINKS.c.created_at <= links_before))

    async def secret(self, name: str, fresh: str) -> str:
        """A secret of an embedded stack; the first to ask puts ``fresh`` there."""
        await self.connection.execute(
            insert(SECRETS).values(name=name, value=fresh).on_conflict_do_nothing(index_elements=["name"])
        )
        found: str = (await self.connection.execute(select(SECRETS.c.value).where(SECRETS.c.name == name))).scalar_one()
        return found

    async def agents_of(self, owner_id: UUID) -> Sequence[Agent]:
        """The agents of an owner, in the order of registration."""
        query = select(*_AGENT).where(AGENTS.c.owner_id == owner_id)
        query = query.order_by(AGENTS.c.registered_at, AGENTS.c.agent_id)
        return [_agent(row) for row in (await self.connection.execute(query)).mappings()]

    async def put_lineups(self, events: Sequence[ev.LineupLocked]) -> None:
        """Keep locked lineups; a lock is told once and never changes."""
        rows = [
            {
                "lineup_id": event.lineup_id,
                "agent_id": event.agent_id,
                "contest": event.contest,
                "revision": event.revision,
                "accepted_at": event.accepted_at,
                "model": event.model,
                "slots": [pick.slot for pick in event.picks],
            }
            for event in sorted(events, key=lambda event: event.lineup_id)
        ]
        await (await driver(self.connection)).execute(_PUT_LINEUPS, [as_rows(rows)])

    async def put_reasoning(
        self, lineup_id: UUID, agent_id: UUID, fields: Sequence[Field], version: int, *, at: datetime
    ) -> None:
        """Keep what moderation said ``at`` a time of a lineup's texts, unless something newer is kept."""
        values = {"fields": [asdict(field) for field in fields], "version": version}
        statement = insert(REASONINGS).values(lineup_id=lineup_id, agent_id=agent_id, **values)
        statement = statement.on_conflict_do_update(
            index_elements=["lineup_id"], set_=values, where=REASONINGS.c.version < version
        )
        kept = await self.connection.execute(statement.returning(REASONINGS.c.lineup_id))
        if kept.one_or_none() is not None:
            await self._answered(str(lineup_id), {field.pointer: field.reviewed for field in fields}, at)

    async def put_name_state(
        self, agent_id: UUID, state: str, version: int, *, reasons: Sequence[str], reviewed: int, at: datetime
    ) -> None:
        """Keep what moderation said ``at`` a time of a name, unless something newer is kept."""
        values = {"state": state, "version": version, "reasons": list(reasons), "reviewed": reviewed}
        statement = insert(NAME_STATES).values(agent_id=agent_id, **values)
        statement = statement.on_conflict_do_update(
            index_elements=["agent_id"], set_=values, where=NAME_STATES.c.version < version
        )
        kept = await self.connection.execute(statement.returning(NAME_STATES.c.agent_id))
        if kept.one_or_none() is not None:
            await self._answered(NAME, {"": reviewed}, at, agent_id)

    async def _answered(self, about: str, reviewed: dict[str, int], at: datetime, agent_id: UUID | None = None) -> None:
        """Note when requests were answered; an answer that was taken back answers nothing."""
        asked = REVIEWS.c.about == about
        if agent_id is not None:
            asked = and_(asked, REVIEWS.c.agent_id == agent_id)
        for row in (await self.connection.execute(select(REVIEWS).where(asked).with_for_update())).all():
            answered = reviewed.get(row.pointer, 0) >= row.version
            if answered != (row.answered_at is not None):
                this = and_(asked, REVIEWS.c.agent_id == row.agent_id, REVIEWS.c.pointer == row.pointer)
                await self.connection.execute(update(REVIEWS).where(this).values(answered_at=at if answered else None))

    async def name_states(self, agent_ids: Collection[UUID]) -> dict[UUID, NameState]:
        """What moderation says of agents' names; ``unchecked`` before it has said anything."""
        reviews = await self._reviews(agent_ids)
        rows = await self.connection.execute(select(NAME_STATES).where(NAME_STATES.c.agent_id.in_(agent_ids)))
        found = {
            row.agent_id: NameState(
                row.state,
                row.version,
                tuple(row.reasons),
                row.reviewed,
                reviews.get((row.agent_id, NAME), {}).get(""),
            )
            for row in rows
        }
        return {agent_id: found.get(agent_id, NameState("unchecked", 0)) for agent_id in agent_ids}

    async def lineups_of(
        self, agent_ids: Collection[UUID], *, lineup_id: UUID | None = None
    ) -> dict[UUID, list[LockedLineup]]:
        """The locked lineups of agents, newest contest first, or the one that is named."""
        reviews = await self._reviews(agent_ids)
        gone = select(REDACTED).join(LINEUPS, LINEUPS.c.lineup_id == REDACTED.c.lineup_id)
        redacted: dict[UUID, dict[str, tuple[str, datetime]]] = {}
        for row in await self.connection.execute(gone.where(LINEUPS.c.agent_id.in_(agent_ids))):
            redacted.setdefault(row.lineup_id, {})[row.pointer] = row.reason, row.redacted_at.astimezone(UTC)
        query = (
            select(LINEUPS, REASONINGS.c.fields, REASONINGS.c.version)
            .outerjoin(REASONINGS, REASONINGS.c.lineup_id == LINEUPS.c.lineup_id)
            .where(LINEUPS.c.agent_id.in_(agent_ids))
            .order_by(LINEUPS.c.contest.desc(), LINEUPS.c.lineup_id)
        )
        if lineup_id is not None:
            query = query.where(LINEUPS.c.lineup_id == lineup_id)
        found: dict[UUID, list[LockedLineup]] = {agent_id: [] for agent_id in agent_ids}
        for row in await self.connection.execute(query):
            found[row.agent_id].append(
                LockedLineup(
                    lineup_id=row.lineup_id,
                    contest=row.contest,
                    revision=row.revision,
                    accepted_at=row.accepted_at.astimezone(UTC),
                    model=row.model,
                    slots=tuple(row.slots),
                    fields=tuple(
                        Field(f["pointer"], f["state"], tuple(f["reasons"]), f.get("reviewed", 0))
                        for f in row.fields or ()
                    ),
                    judged=row.version or 0,
                    reviews=reviews.get((row.agent_id, str(row.lineup_id)), {}),
                    redacted=redacted.get(row.lineup_id, {}),
                )
            )
        return found

    async def _reviews(self, agent_ids: Collection[UUID]) -> dict[tuple[UUID, str], dict[str, Review]]:
        """The newest review of each text that the owners of agents asked for: by agent and what it is about."""
        found: dict[tuple[UUID, str], dict[str, Review]] = {}
        for row in await self.connection.execute(select(REVIEWS).where(REVIEWS.c.agent_id.in_(agent_ids))):
            answered = None if row.answered_at is None else row.answered_at.astimezone(UTC)
            review = Review(row.version, row.owner_id, row.requested_at.astimezone(UTC), row.sentence, answered)
            found.setdefault((row.agent_id, row.about), {})[row.pointer] = review
        return found

    async def add_review(
        self,
        agent_id: UUID,
        owner_id: UUID,
        about: str,
        pointers: Sequence[str],
        *,
        judged: int,
        sentence: str | None,
        at: datetime,
    ) -> int:
        """Ask for a review of texts, of an agent that is held; the number of requests about the same thing."""
        same = and_(REVIEWS.c.agent_id == agent_id, REVIEWS.c.about == about)
        newest = select(func.coalesce(func.max(REVIEWS.c.version), 0)).where(same)
        version = int((await self.connection.execute(newest)).scalar_one()) + 1
        asked = {
            "owner_id": owner_id,
            "judged_version": judged,
            "version": version,
            "requested_at": at,
            "sentence": sentence,
            "answered_at": None,
        }
        rows = [{"agent_id": agent_id, "about": about, "pointer": pointer, **asked} for pointer in pointers]
        statement = insert(REVIEWS).on_conflict_do_update(index_elements=["agent_id", "about", "pointer"], set_=asked)
        await self.connection.execute(statement, rows)
        return version

    async def put_redaction(self, lineup_id: UUID, pointer: str, reason: str, at: datetime) -> None:
        """The words of a text are gone for good; what its owners said for it goes too, out of the outbox as well."""
        values = {"lineup_id": lineup_id, "pointer": pointer, "reason": reason, "redacted_at": at}
        await self.connection.execute(insert(REDACTED).values(**values).on_conflict_do_nothing())
        of_text = and_(REVIEWS.c.about == str(lineup_id), REVIEWS.c.pointer == pointer)
        await self.connection.execute(update(REVIEWS).where(of_text).values(sentence=None))
        await strip_sentences(self.connection, lineup_id, pointer)

    # models

    async def model(self, label: str) -> Model | None:
        """A label that agents have claimed; held until the transaction ends."""
        row = (
            await self.connection.execute(select(MODELS).where(MODELS.c.label == label).with_for_update())
        ).one_or_none()
        return None if row is None else Model(**row._mapping)

    async def see_model(self, label: str) -> bool:
        """Keep a label that an agent claims; ``False`` where it is known already."""
        values = {"label": label, "version": 0, "seen_at": func.clock_timestamp()}
        statement = insert(MODELS).values(**values).on_conflict_do_nothing()
        return (await self.connection.execute(statement.returning(MODELS.c.label))).one_or_none() is not None

    async def map_model(self, label: str, canonical: str, by: str) -> int:
        """Let a label, held by :meth:`model` or just seen, mean another model; the version of that mapping.

        Dated by the real time, also in a replay.
        """
        statement = (
            update(MODELS)
            .where(MODELS.c.label == label)
            .values(canonical=canonical, by=by, version=MODELS.c.version + 1)
            .returning(MODELS.c.version)
        )
        version: int = (await self.connection.execute(statement)).scalar_one()
        await self.connection.execute(
            insert(MAPPINGS).values(label=label, version=version, canonical=canonical, by=by, at=func.clock_timestamp())
        )
        return version

    async def models(self, *, unknown: bool = False) -> Sequence[Model]:
        """Every label that agents have claimed, or those alone that nobody knows, in the order of labels."""
        agents = (
            select(AGENTS.c.model, func.count().label("agents")).group_by(AGENTS.c.model).subquery("agents_of_model")
        )
        query = (
            select(MODELS, func.coalesce(agents.c.agents, 0).label("agents"))
            .outerjoin(agents, agents.c.model == MODELS.c.label)
            .order_by(MODELS.c.label)
        )
        if unknown:
            query = query.where(MODELS.c.canonical.is_(None))
        return [Model(**row._mapping) for row in await self.connection.execute(query)]

    async def labels_meaning(self, canonical: str) -> Sequence[str]:
        """The labels whose results count on a row."""
        query = select(MODELS.c.label).where(MODELS.c.canonical == canonical).order_by(MODELS.c.label)
        return list((await self.connection.execute(query)).scalars())

    async def labels(self) -> Sequence[str]:
        """Every label that agents claim now or have claimed, known or not."""
        query = select(AGENTS.c.model).union(select(MODELS.c.label)).order_by(AGENTS.c.model)
        return list((await self.connection.execute(query)).scalars())

    async def mappings(self, label: str) -> Sequence[Mapping]:
        """What a label has meant, in order."""
        query = select(MAPPINGS.c.version, MAPPINGS.c.canonical, MAPPINGS.c.by, MAPPINGS.c.at)
        rows = await self.connection.execute(query.where(MAPPINGS.c.label == label).order_by(MAPPINGS.c.version))
        return [Mapping(**row._mapping) for row in rows]
