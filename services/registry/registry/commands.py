"""What the registry does: one function a use case, each inside the caller's transaction.

The errors, beside their use::

    Problem
    ├── NameTaken              409
    ├── NameFixed              409   a name changes only where an operator redacted it
    ├── IdempotencyKeyReused   409   the same key with another body
    ├── AnswerSuperseded       409   a replay after the agent was claimed or its key changed
    ├── AlreadyClaimed         409
    ├── ModelUnknown           404   no agent has claimed a model of that label
    ├── KeyNotTaken            503   contests did not confirm a new key; the old one is good
    ├── Unauthorized           401   no key, or not one of an agent
    └── NotFound               404
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, TypeVar
from uuid import UUID

import uuid_utils

from common import events as ev
from common.audit import record
from common.canonical import canonical_json, sha256_hex
from common.clock import SystemClock, wall
from common.handles import handle
from common.logs import logger
from common.outbox import emit, emit_all
from common.problems import NotFound, Problem, Unauthorized, Unavailable, shown
from common.service import Runtime
from common.topology import AGENT_CHANGED_NOW, KEY_CHANGED_NOW
from registry import catalogue, domain
from registry.domain import Agent
from registry.store import REGISTER, Answer, Mapping, Model, Store

S = TypeVar("S", bound=ev.AgentState)
By = Literal["catalogue", "operator"]


_REAL = SystemClock()
"""How long an answer can be had again is a matter of the network, also in a replay."""

_USED_AGAIN_AFTER = timedelta(minutes=15)
_OFFERS = 10
_PATIENCE_SECONDS = 1.0


class NameTaken(Problem):
    status = 409
    code = "name-taken"
    title = "The name is taken"


class NameFixed(Problem):
    status = 409
    code = "name-fixed"
    title = "The name stays as it is"


class IdempotencyKeyReused(Problem):
    status = 409
    code = "idempotency-key-reused"
    title = "This idempotency key belongs to another request"


class AnswerSuperseded(Problem):
    status = 409
    code = "answer-superseded"
    title = "This request was answered, and the agent has moved on since"


class KeyNotTaken(Unavailable):
    code = "key-not-taken"
    title = "The key was not changed"


class ModelUnknown(NotFound):
    code = "model-unknown"
    title = "No agent has claimed that model"


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
    store: Store,
    registration: domain.Registration,
    *,
    idempotency_key: str | None,
    now: datetime,
    burn: Callable[[str], str],
) -> Issued:
    """Register an agent, or answer again to a request whose answer was lost (A1).

    A replay (same idempotency key, same content, within 24 hours) gives the same agent with a fresh key
    and claim link; those of the earlier answer are dead from then on, so no secret need be kept to be
    repeated. It ends early once the agent is claimed or its key changed: the answer has arrived then.

    ``burn`` gives what a redacted name's key is kept as. Raises ``NameTaken``, ``IdempotencyKeyReused``,
    ``AnswerSuperseded``.
    """
    key = domain.secret(domain.KEY_PREFIX, secrets.token_bytes(32))
    token = domain.secret(domain.CLAIM_PREFIX, secrets.token_bytes(32))
    content = sha256_hex(canonical_json(registration.model_dump()))
    if idempotency_key is not None:
        hashed = domain.digest(idempotency_key)
        await store.serialise(REGISTER, hashed)
        asked = await _REAL.now(store.connection)
        before = await store.answer(REGISTER, hashed, since=asked - domain.REPLAYABLE_FOR)
        if before is not None:
            agent = await _answered(store, before, content)
            if agent.claimed:
                raise AnswerSuperseded("The agent is claimed; its owner can have a new key made.")
            agent = await _rekey(store, agent, key)
            await store.replaced(REGISTER, hashed, agent.key_hash, since=asked - domain.REPLAYABLE_FOR)
            await store.replace_link(agent.agent_id, domain.digest(token), at=now)
            return Issued(agent, key, token, replayed=True)
    agent = Agent(
        agent_id=new_id(),
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
    if not await store.add(agent, _keys(agent.name, burn)):
        raise _name_taken(agent.name)
    await store.replace_link(agent.agent_id, domain.digest(token), at=now)
    if idempotency_key is not None:
        await store.remember(REGISTER, hashed, Answer(content, agent.agent_id, agent.key_hash), at=asked)
    registered = (state(ev.AgentRegistered, agent), agent.version)
    await emit_all(store.connection, [registered, (_key(agent), agent.key_version)])
    await _see_model(store, agent.model)
    return Issued(agent, key, token)


def _keys(name: str, burn: Callable[[str], str]) -> dict[str, str]:
    """The keys of a name, each with what it would be burnt by."""
    return {key: burn(key) for key in domain.name_keys(name)}


def _name_taken(name: str) -> NameTaken:
    return NameTaken(
        "Another agent has this name, or one that differs only in case, width or look-alike letters.",
        violations=[
            {
                "code": "name-taken",
                "in": "body",
                "pointer": "/name",
                "detail": "is taken; choose another",
                "value": shown(name),
                "limit": None,
            }
        ],
    )


async def rotate(
    runtime: Runtime, presented: str, *, idempotency_key: str | None, admit: Callable[[Agent], Awaitable[None]]
) -> Issued:
    """Give the agent that presents a key a new one; the old one is dead, here and at contests (A3).

    With an idempotency key the old key may ask once more, for 24 hours and until the key changes again:
    a lost answer does not lock an agent out. ``admit`` may refuse the agent first: whoever has a new key each time
    is known by no key.

    Raises ``Unauthorized``, ``AnswerSuperseded``, and ``Unavailable`` with the old key still good.
    """
    hashed_key = _hash_of(presented)
    scope = f"rotate/{hashed_key}"
    hashed = None if idempotency_key is None else domain.digest(idempotency_key)

    async def find(store: Store) -> Agent:
        if hashed is not None:
            await store.serialise(scope, hashed)
            now = await _REAL.now(store.connection)
            before = await store.answer(scope, hashed, since=now - domain.REPLAYABLE_FOR)
            if before is not None:
                return await _answered(store, before, hashed_key)
        return await authenticated(store, presented, for_update=True)

    async def kept(store: Store, agent: Agent) -> None:
        if hashed is not None:
            now = await _REAL.now(store.connection)
            answer = Answer(hashed_key, agent.agent_id, agent.key_hash)
            if not await store.replaced(scope, hashed, agent.key_hash, since=now - domain.REPLAYABLE_FOR):
                await store.remember(scope, hashed, answer, at=now)

    async with runtime.database.transaction() as connection:
        agent = await find(Store(connection))
    await admit(agent)
    return await renew(runtime, find, kept=kept)


async def _nothing(store: Store, agent: Agent) -> None:
    """Keep nothing beside the key."""


async def renew(
    runtime: Runtime,
    find: Callable[[Store], Awaitable[Agent]],
    *,
    kept: Callable[[Store, Agent], Awaitable[None]] = _nothing,
) -> Issued:
    """A new key for the agent that ``find`` gives, answered once contests has taken it (docs/adr/0009).

    ``find`` gives the agent held ``for_update``, or raises where the caller may not have a key; it is asked once to
    set the version of the offer, and again to make the offer. ``kept`` runs in the transaction that changes the key.

    Raises what ``find`` raises, and ``Unavailable`` with the old key still good.
    """
    key = domain.secret(domain.KEY_PREFIX, secrets.token_bytes(32))
    for _ in range(_OFFERS):
        # Committed before contests hears of it: whatever happens then, the old key can be put above the offer.
        async with runtime.database.transaction() as connection:
            store = Store(connection)
            agent = await store.begin_offer(await find(store))
        try:
            async with runtime.database.transaction() as connection:
                store = Store(connection)
                agent = await find(store)
                if agent.key_offer is None:  # Another key was given out in between, or this one confirmed.
                    continue
                await _take_now(runtime, agent, domain.digest(key))
                agent = await store.rekey(agent, domain.digest(key), offered=True)
                await _tell_key(store, agent)
                await kept(store, agent)
                return Issued(agent, key)
        except KeyNotTaken:
            await _withdraw(runtime, agent.agent_id)
            raise
    raise KeyNotTaken("The key changes faster than it can be given out; the one that you have may be good still.")


async def _take_now(runtime: Runtime, agent: Agent, key_hash: str) -> None:
    offer = {"agent_id": str(agent.agent_id), "key_hash": key_hash, "version": agent.key_offer}
    try:
        answer = await runtime.bus.request(KEY_CHANGED_NOW, offer, patience=_PATIENCE_SECONDS)
    except ConnectionError as error:
        logger.warning("contests did not confirm a new key", error=str(error)[:200])
        answer = {}
    if answer.get("taken") is not True:
        raise KeyNotTaken("The contests do not confirm a new key at this moment. The old one is still good; try again.")


async def _withdraw(runtime: Runtime, agent_id: UUID) -> None:
    """Make sure that contests goes by the old key, whether or not it has heard of the new one."""
    async with runtime.database.transaction() as connection:
        store = Store(connection)
        agent = await store.agent(agent_id, for_update=True)
        if agent is not None:
            await _confirmed(store, agent)


async def _confirmed(store: Store, agent: Agent) -> Agent:
    """An agent held ``for_update`` whose key stands above all that was offered in its place."""
    if agent.key_offer is None:
        return agent
    agent = await store.end_offer(agent)
    await _tell_key(store, agent)
    return agent


async def authenticated(store: Store, presented: str, *, for_update: bool = False) -> Agent:
    """The agent whose key this is. Raises ``Unauthorized``.

    No key is compared with another, so that no comparison can leak one by its time: a SHA-256 is looked up in an
    index, and whoever could steer the hashes would have inverted it.
    """
    agent = await store.agent_by_key(_hash_of(presented), for_update=for_update)
    if agent is None:
        raise Unauthorized("No agent has this key. It may have been replaced by a newer one.")
    await _used(store, agent)
    return agent


async def change(store: Store, presented: str, wanted: domain.Change, *, burn: Callable[[str], str]) -> Agent:
    """Change what an agent may change of itself (A3). What is already so changes nothing.

    ``burn`` is as in :func:`register`. Raises ``Unauthorized``, ``NameFixed``, ``NameTaken``.
    """
    agent = await authenticated(store, presented, for_update=True)
    said = wanted.said()
    if said.get("name", agent.name) != agent.name:
        if not agent.nameless:
            raise NameFixed(
                "A name is chosen once, at registration; only one that an operator redacted has a successor."
            )
        if not await store.take_name(agent.agent_id, _keys(wanted.name, burn)):
            raise _name_taken(wanted.name)
    return await _changed(store, agent, **said)


async def redact(
    store: Store, agent_id: UUID, wanted: domain.AgentRedaction, *, burn: Callable[[str], str], via: str
) -> Agent:
    """Let an agent's name, its description or both go for good (M6): its neutral handle stands for the name.

    Registry is rid of them when the transaction commits; whoever else holds them is told with it, and of each earlier
    state of the agent once more without them, so that what carried them can be erased. A name that is gone stays gone,
    and burnt by its keys; a description goes from the past though there is none now. Raises ``NotFound``.
    """
    agent = await _found(store, agent_id)
    fields = tuple(name for name in dict.fromkeys(wanted.fields) if name != "name" or not agent.nameless)
    if not fields:
        return agent
    now = await _REAL.now(store.connection)
    neutral = handle(agent_id, claimed=True)
    gone: dict[str, Any] = {"redacted_at": now, "redaction": wanted.reason.value}
    gone |= {"name": neutral} if "name" in fields else {}
    gone |= {"description": None} if "description" in fields else {}
    agent = await store.change(agent, **gone)
    told: dict[int, tuple[ev.Event, int]] = {}
    for envelope in await store.let_go(agent, fields, burn):
        told[envelope.aggregateversion] = ev.unpack(envelope), envelope.aggregateversion
    redacted = ev.AgentRedacted(
        redaction_id=new_id(),
        agent_id=agent_id,
        before=agent.version,
        fields=fields,
        agent_name=neutral,
        reason=wanted.reason,
        redacted_at=now,
    )
    await emit_all(store.connection, [*told.values(), (state(ev.AgentUpdated, agent), agent.version), (redacted, 1)])
    after = {"fields": list(fields), "reason": wanted.reason.value, "via": via}
    await record(store.connection, who=wanted.by, what="redact", target=f"agent/{agent_id}", after=after)
    return agent


async def tell_contests(runtime: Runtime, agent: Agent) -> None:
    """Let contests know of a change that is committed, so that the agent's next lineup carries it (A3).

    Where contests does not answer, the event tells it: later, and before contests is caught up again.
    """
    told = {**state(ev.AgentState, agent).model_dump(mode="json"), "version": agent.version}
    try:
        await runtime.bus.request(AGENT_CHANGED_NOW, told, patience=_PATIENCE_SECONDS)
    except ConnectionError as error:
        logger.warning("contests hears of a change by its event alone", error=str(error)[:200])


async def set_marks(store: Store, agent_id: UUID, marks: domain.MarkSet) -> Agent:
    """Set all marks of an agent; an operator's act (A8). Raises ``NotFound``."""
    agent = await _found(store, agent_id)
    return await _changed(store, agent, **marks.whole())


async def claim(store: Store, agent_id: UUID, claim: domain.Claim, *, now: datetime) -> Agent:
    """Claim an agent for an owner by an operator's word; again for the same owner changes nothing (A5).

    Raises ``NotFound``, ``AlreadyClaimed``.
    """
    agent = await _found(store, agent_id)
    owner_id = await store.owner(claim.owner, new_id(), at=now)
    if agent.owner_id == owner_id:
        return agent
    if agent.claimed:
        raise AlreadyClaimed(f"{agent.name} belongs to another owner, who has to release it first.")
    return await claimed_by(store, agent, owner_id, now=now)


async def claimed_by(store: Store, agent: Agent, owner_id: UUID, *, now: datetime) -> Agent:
    """Give an unclaimed agent that is held ``for_update`` its owner; its claim links are used up."""
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


async def by_operator(store: Store, what: str, agent_id: UUID, act: Callable[[], Awaitable[Agent]]) -> Agent:
    """Do something to an agent by an operator's word, and record it with what was before and after it (A8).

    Raises ``NotFound`` and what ``act`` raises; nothing is recorded then, since nothing was done.
    """
    before = await _found(store, agent_id)
    after = await act()
    await record(
        store.connection, what=what, target=f"agent/{agent_id}", before=_recorded(before), after=_recorded(after)
    )
    return after


def _recorded(agent: Agent) -> dict[str, Any]:
    return {
        "owner_id": None if agent.owner_id is None else str(agent.owner_id),
        "marks": {"house": agent.house, "cohort": agent.cohort, "reference": agent.reference},
    }


# --- models --------------------------------------------------------------------------------------


async def map_model(store: Store, label: str, wanted: domain.Mapping) -> tuple[Model, Sequence[Mapping]]:
    """Let a label mean another model, or itself, by an operator's word; with its history (A7).

    A canonical name that is an alias of the catalogue becomes the catalogue's own. Raises ``ModelUnknown`` where
    no agent has ever claimed the label.
    """
    model = await store.model(label)
    if model is None:
        raise ModelUnknown(f"No agent has claimed a model {shown(label)!r}; `mafl models list` has all labels.")
    canonical = await _final(store, label, wanted.canonical)
    before = {"canonical": model.canonical, "by": model.by, "version": model.version}
    if (model.canonical, model.by) != (canonical, "operator"):
        await _move(store, label, canonical, "operator")
    model = await store.model(label) or model
    after = {"canonical": model.canonical, "by": model.by, "version": model.version}
    await record(store.connection, what="map", target=f"model/{label}", before=before, after=after)
    return model, await store.mappings(label)


async def _final(store: Store, label: str, wanted: str) -> str:
    """The label of the row that ``wanted`` means: itself where it is the label, the catalogue's or a mapped one's."""
    if wanted == label:
        return label
    known = await store.model(wanted)
    if known is not None and known.canonical is not None:
        return known.canonical
    entry = catalogue.find(wanted)
    return wanted if entry is None else entry.canonical


async def apply_catalogue(store: Store) -> None:
    """Bring every label up to a catalogue that has changed; what an operator said of a label stays."""
    for label in await store.labels():
        await _see_model(store, label)
        model = await store.model(label)
        canonical = await _catalogued(store, label)
        if model is not None and canonical is not None and model.by != "operator" and model.canonical != canonical:
            await _move(store, label, canonical, "catalogue")


async def _see_model(store: Store, label: str) -> None:
    """Keep a label that an agent claims for the first time, and tell what it means where the catalogue knows it."""
    if await store.see_model(label):
        canonical = await _catalogued(store, label)
        if canonical is not None:
            await _move(store, label, canonical, "catalogue")


async def _catalogued(store: Store, label: str) -> str | None:
    """The row of a label that the catalogue knows: the catalogue's own, or the one that an operator made of that."""
    entry = catalogue.find(label)
    if entry is None:
        return None
    if entry.canonical == label:
        return label
    # Held, so that an operator who moves this row at the same time finds the label on it.
    row = await store.model(entry.canonical)
    return row.canonical if row is not None and row.by == "operator" else entry.canonical


async def _move(store: Store, label: str, canonical: str, by: By) -> None:
    """Map a label. A row is one step away from a label: those that stand on this label's row go where it goes.

    Who said that they stand there stays, so that a newer catalogue still moves what a catalogue said.
    """
    await _map(store, label, canonical, by)
    if canonical != label:
        for follower in await store.labels_meaning(label):
            model = await store.model(follower)
            await _map(store, follower, canonical, "operator" if model and model.by == "operator" else "catalogue")


async def _map(store: Store, label: str, canonical: str, by: By) -> None:
    version = await store.map_model(label, canonical, by)
    entry = catalogue.find(canonical)
    mapped = ev.ModelMapped(
        label=label,
        canonical=canonical,
        provider=entry and entry.provider,
        family=entry and entry.family,
        model_version=entry and entry.version,
        by=by,
    )
    await emit(store.connection, mapped, version)


async def known_key(store: Store, key_hash: object) -> dict[str, object] | None:
    """For contests, when an agent's events have not arrived: its state and versions by its key's hash."""
    agent = await store.agent_by_key(key_hash) if isinstance(key_hash, str) and "\0" not in key_hash else None
    if agent is None:
        return None
    if agent.key_offer is not None:
        # A new key is being given out, or its giving out was cut short: wait for the one, undo the other.
        held = await store.agent_by_key(agent.key_hash, for_update=True)
        if held is None:
            return None
        agent = await _confirmed(store, held)
    await _used(store, agent)
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
    await emit(store.connection, _key(agent), agent.key_version)


def _key(agent: Agent) -> ev.AgentKeyChanged:
    return ev.AgentKeyChanged(agent_id=agent.agent_id, key_hash=agent.key_hash)


async def _used(store: Store, agent: Agent) -> None:
    if agent.key_used_at is None or wall() - agent.key_used_at > _USED_AGAIN_AFTER:
        await store.used_key(agent.agent_id)


async def _changed(store: Store, agent: Agent, **values: object) -> Agent:
    values = {name: value for name, value in values.items() if getattr(agent, name) != value}
    if not values:
        return agent
    agent = await store.change(agent, **values)
    await emit(store.connection, state(ev.AgentUpdated, agent), agent.version)
    if "model" in values:
        await _see_model(store, agent.model)
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


def new_id() -> UUID:
    """A UUIDv7: in the order of making."""
    return UUID(bytes=uuid_utils.uuid7().bytes)
