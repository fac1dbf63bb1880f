"""What the registry does: one function a use case, each inside the caller's transaction.

The errors, beside their use::

    Problem
    ├── NameTaken              409
    ├── IdempotencyKeyReused   409   the same key with another body
    ├── AnswerSuperseded       409   a replay after the agent was claimed or its key changed
    ├── AlreadyClaimed         409
    ├── Unauthorized           401   no key, or not one of an agent
    └── NotFound               404
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar
from uuid import UUID

import uuid_utils

from common import events as ev
from common.canonical import canonical_json, sha256_hex
from common.outbox import emit
from common.problems import NotFound, Problem, Unauthorized, shown
from registry import domain
from registry.domain import Agent
from registry.store import Answer, Store

S = TypeVar("S", bound=ev.AgentState)

_REGISTER = "register"


class NameTaken(Problem):
    status = 409
    code = "name-taken"
    title = "The name is taken"


class IdempotencyKeyReused(Problem):
    status = 409
    code = "idempotency-key-reused"
    title = "This idempotency key belongs to another request"


class AnswerSuperseded(Problem):
    status = 409
    code = "answer-superseded"
    title = "This request was answered, and the agent has moved on since"


class AlreadyClaimed(Problem):
    status = 409
    code = "already-claimed"
    title = "The agent is claimed"


@dataclass(frozen=True)
class Issued:
    """A fresh key of an agent. ``claim_token`` comes with a registration only."""

    agent: Agent
    key: str
    claim_token: str | None = None
    replayed: bool = False


def state(kind: type[S], agent: Agent) -> S:
    """The event that tells the whole public state of an agent."""
    return kind(
        agent_id=agent.agent_id,
        agent_name=agent.name,
        model=agent.model,
        description=agent.description,
        harness=agent.harness,
        provider=agent.provider,
        marks=ev.Marks(house=agent.house, cohort=agent.cohort, reference=agent.reference),
        claimed=agent.claimed,
        owner_id=agent.owner_id,
    )


async def register(
    store: Store, registration: domain.Registration, *, idempotency_key: str | None, now: datetime
) -> Issued:
    """Register an agent, or answer again to a request whose answer was lost (A1).

    A replay (same idempotency key, same content, within 24 hours) gives the same agent with a fresh key
    and claim link; those of the earlier answer are dead from then on, so no secret need be kept to be
    repeated. It ends early once the agent is claimed or its key changed: the answer has arrived then.

    Raises ``NameTaken``, ``IdempotencyKeyReused``, ``AnswerSuperseded``.
    """
    key = domain.secret(domain.KEY_PREFIX, secrets.token_bytes(32))
    token = domain.secret(domain.CLAIM_PREFIX, secrets.token_bytes(32))
    content = sha256_hex(canonical_json(registration.model_dump()))
    if idempotency_key is not None:
        hashed = domain.digest(idempotency_key)
        await store.serialise(_REGISTER, hashed)
        before = await store.answer(_REGISTER, hashed, since=now - domain.REPLAYABLE_FOR)
        if before is not None:
            agent = await _answered(store, before, content)
            if agent.claimed:
                raise AnswerSuperseded("The agent is claimed; its owner can have a new key made.")
            agent = await _rekey(store, agent, key)
            await store.replaced(_REGISTER, hashed, agent.key_hash)
            await store.replace_link(agent.agent_id, domain.digest(token), at=now)
            return Issued(agent, key, token, replayed=True)
    agent = Agent(
        agent_id=_new_id(),
        name=registration.name,
        model=registration.model,
        description=registration.description,
        harness=registration.harness,
        provider=registration.provider,
        house=False,
        cohort=False,
        reference=False,
        owner_id=None,
        version=1,
        key_hash=domain.digest(key),
        key_version=1,
        registered_at=now,
    )
    if not await store.add(agent, domain.name_key(agent.name)):
        raise NameTaken(
            "Another agent has this name, or one that differs only in case or width.",
            violations=[
                {
                    "code": "name-taken",
                    "in": "body",
                    "pointer": "/name",
                    "detail": "is taken; choose another",
                    "value": shown(agent.name),
                    "limit": None,
                }
            ],
        )
    await store.replace_link(agent.agent_id, domain.digest(token), at=now)
    if idempotency_key is not None:
        await store.remember(_REGISTER, hashed, Answer(content, agent.agent_id, agent.key_hash), at=now)
    await emit(store.connection, state(ev.AgentRegistered, agent), agent.version)
    await _tell_key(store, agent)
    return Issued(agent, key, token)


async def rotate(store: Store, presented: str, *, idempotency_key: str | None, now: datetime) -> Issued:
    """Give the agent that presents a key a new one; the old one is dead (A3).

    With an idempotency key the old key may ask once more, for 24 hours and until the key changes again:
    a lost answer does not lock an agent out.

    Raises ``Unauthorized``.
    """
    hashed_key = _hash_of(presented)
    key = domain.secret(domain.KEY_PREFIX, secrets.token_bytes(32))
    scope = f"rotate/{hashed_key}"
    if idempotency_key is not None:
        hashed = domain.digest(idempotency_key)
        await store.serialise(scope, hashed)
        before = await store.answer(scope, hashed, since=now - domain.REPLAYABLE_FOR)
        if before is not None:
            agent = await _answered(store, before, hashed_key)
            agent = await _rekey(store, agent, key)
            await store.replaced(scope, hashed, agent.key_hash)
            return Issued(agent, key, replayed=True)
    agent = await authenticated(store, presented, for_update=True)
    agent = await _rekey(store, agent, key)
    if idempotency_key is not None:
        await store.remember(scope, hashed, Answer(hashed_key, agent.agent_id, agent.key_hash), at=now)
    return Issued(agent, key)


async def authenticated(store: Store, presented: str, *, for_update: bool = False) -> Agent:
    """The agent whose key this is. Raises ``Unauthorized``."""
    agent = await store.agent_by_key(_hash_of(presented), for_update=for_update)
    if agent is None:
        raise Unauthorized("No agent has this key. It may have been replaced by a newer one.")
    return agent


async def change(store: Store, presented: str, wanted: domain.Change) -> Agent:
    """Change what an agent may change of itself (A3). What is already so changes nothing. Raises ``Unauthorized``."""
    agent = await authenticated(store, presented, for_update=True)
    return await _changed(store, agent, **wanted.said())


async def set_marks(store: Store, agent_id: UUID, marks: domain.MarkSet) -> Agent:
    """Set all marks of an agent; an operator's act (A8). Raises ``NotFound``."""
    agent = await _found(store, agent_id)
    return await _changed(store, agent, **marks.whole())


async def claim(store: Store, agent_id: UUID, claim: domain.Claim, *, now: datetime) -> Agent:
    """Claim an agent for an owner by an operator's word; again for the same owner changes nothing (A5).

    Raises ``NotFound``, ``AlreadyClaimed``.
    """
    agent = await _found(store, agent_id)
    owner_id = await store.owner(claim.owner, _new_id(), at=now)
    if agent.owner_id == owner_id:
        return agent
    if agent.claimed:
        raise AlreadyClaimed(f"{agent.name} belongs to another owner, who has to release it first.")
    agent = await store.change(agent, owner_id=owner_id)
    await store.use_links(agent.agent_id, at=now)
    await emit(store.connection, state(ev.AgentClaimed, agent), agent.version)
    return agent


async def release(store: Store, agent_id: UUID) -> Agent:
    """Release an agent from its owner; an unclaimed one stays as it is. Raises ``NotFound``."""
    agent = await _found(store, agent_id)
    if not agent.claimed:
        return agent
    agent = await store.change(agent, owner_id=None)
    await emit(store.connection, state(ev.AgentReleased, agent), agent.version)
    return agent


async def known_key(store: Store, key_hash: object) -> dict[str, object] | None:
    """For contests, when an agent's events have not arrived: its state and versions by its key's hash."""
    agent = await store.agent_by_key(key_hash) if isinstance(key_hash, str) and "\0" not in key_hash else None
    if agent is None:
        return None
    public = state(ev.AgentState, agent).model_dump(mode="json")
    return {**public, "version": agent.version, "key_version": agent.key_version}


async def _answered(store: Store, before: Answer, content: str) -> Agent:
    if before.request_hash != content:
        raise IdempotencyKeyReused(
            "The same `Idempotency-Key` came with another request. Send a new key with each new request."
        )
    agent = await _found(store, before.agent_id)
    if agent.key_hash != before.key_hash:
        raise AnswerSuperseded("The key that this request gave out has been replaced by a newer one.")
    return agent


async def _rekey(store: Store, agent: Agent, key: str) -> Agent:
    agent = await store.rekey(agent, domain.digest(key))
    await _tell_key(store, agent)
    return agent


async def _tell_key(store: Store, agent: Agent) -> None:
    event = ev.AgentKeyChanged(agent_id=agent.agent_id, key_hash=agent.key_hash)
    await emit(store.connection, event, agent.key_version)


async def _changed(store: Store, agent: Agent, **values: object) -> Agent:
    values = {name: value for name, value in values.items() if getattr(agent, name) != value}
    if not values:
        return agent
    agent = await store.change(agent, **values)
    await emit(store.connection, state(ev.AgentUpdated, agent), agent.version)
    return agent


async def _found(store: Store, agent_id: UUID) -> Agent:
    agent = await store.agent(agent_id, for_update=True)
    if agent is None:
        raise NotFound(f"There is no agent {agent_id}.")
    return agent


def _hash_of(presented: str) -> str:
    if not (presented.startswith(domain.KEY_PREFIX) and domain.well_formed(presented)):
        raise Unauthorized(
            "This call takes an agent's key: `Authorization: Bearer mafl_sk_…`. None came, or one with a typing error."
        )
    return domain.digest(presented)


def _new_id() -> UUID:
    return UUID(bytes=uuid_utils.uuid7().bytes)
