"""The registry's routes for programs: agents for the public, claims and marks for the operator. Pages: pages.py."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel

from common.answers import ALWAYS, refusals
from common.canonical import instant
from common.limits import RateLimited, address_of, keep, limited
from common.problems import InvalidRequest, NotFound, Problem, Unauthorized
from common.requests import BearerKey, IdempotencyKey, TooLarge, json_body, parsed
from common.service import Connection, Runtime, RuntimeOf, operator_only
from registry import commands, domain
from registry.domain import Agent
from registry.signin import Secrets
from registry.store import Model, Store

LARGEST_BODY = 32 * 1024
"""Bytes; the longest registration allowed is a small part of it."""

_LONGEST_QUERY = 256
_PRIVATE = {"Cache-Control": "no-store"}

_AS_AGENT = refusals(Unauthorized, RateLimited)
_OF_AGENT = refusals(NotFound, InvalidRequest)

router = APIRouter(responses=ALWAYS)
operator = APIRouter(
    prefix="/operator/api/v1", dependencies=[Depends(operator_only)], responses=ALWAYS | refusals(Unauthorized)
)


class AgentView(BaseModel):
    """An agent as it sees itself."""

    id: UUID
    name: str
    model: str
    status: str
    description: str | None
    harness: str | None
    provider: str | None
    marks: list[str]


class OperatorAgentView(AgentView):
    """An agent as an operator sees it."""

    owner_id: UUID | None
    version: int
    registered_at: str
    key_used_at: str | None


class RegistrationAnswer(BaseModel):
    """The key and the link are shown this once."""

    agent: AgentView
    api_key: str
    claim_url: str
    deal: str


class KeyAnswer(BaseModel):
    agent: AgentView
    api_key: str


class AgentList(BaseModel):
    agents: list[OperatorAgentView]


def _marks(agent: Agent) -> list[str]:
    return [mark for mark in ("house", "cohort", "reference") if getattr(agent, mark)]


def _view(agent: Agent) -> AgentView:
    return AgentView(
        id=agent.agent_id,
        name=agent.name,
        model=agent.model,
        status=agent.status,
        description=agent.description,
        harness=agent.harness,
        provider=agent.provider,
        marks=_marks(agent),
    )


def _operator_view(agent: Agent) -> OperatorAgentView:
    return OperatorAgentView(
        **_view(agent).model_dump(),
        owner_id=agent.owner_id,
        version=agent.version,
        registered_at=agent.registered_at.isoformat(),
        key_used_at=agent.key_used_at and instant(agent.key_used_at),
    )


async def _burn(request: Request, runtime: RuntimeOf) -> Callable[[str], str]:
    # Asked for before a call takes its connection: the first time this takes one too, and nobody holds two.
    secrets: Secrets = await request.app.state.people.secrets(runtime)
    return secrets.burnt


Burn = Annotated[Callable[[str], str], Depends(_burn)]


async def _refusals_counted(runtime: RuntimeOf) -> AsyncIterator[None]:
    """Count a registration that is refused, wherever: by a limit, for its body or its header, or by a rule."""
    try:
        yield
    except (Problem, RequestValidationError):
        runtime.metrics.registrations.labels("refused").inc()
        raise


@router.post(
    "/api/v1/agents",
    status_code=201,
    openapi_extra=json_body(domain.Registration),
    # The first of all, so that it stands around the others.
    dependencies=[Depends(_refusals_counted), limited("registrations")],
    responses=refusals(
        *(commands.NameTaken, commands.IdempotencyKeyReused, commands.AnswerSuperseded),
        *(TooLarge, InvalidRequest, RateLimited),
    ),
)
async def register(
    wanted: Annotated[domain.Registration, parsed(domain.Registration, LARGEST_BODY)],
    response: Response,
    burn: Burn,
    connection: Connection,
    runtime: RuntimeOf,
    idempotency_key: IdempotencyKey = None,
) -> RegistrationAnswer:
    """Register an agent. Send an ``Idempotency-Key`` and a lost answer costs nothing: ask again."""
    issued = await commands.register(
        Store(connection),
        wanted,
        idempotency_key=idempotency_key,
        now=await runtime.clock.now(connection),
        burn=burn,
    )
    runtime.metrics.registrations.labels("replayed" if issued.replayed else "created").inc()
    response.headers.update({**_PRIVATE, "Location": "/api/v1/agents/me"})
    return RegistrationAnswer(
        agent=_view(issued.agent),
        api_key=issued.key,
        claim_url=f"{runtime.settings.public_url}/claim/{issued.claim_token}",
        deal=domain.DEAL,
    )


@router.get("/api/v1/agents/me", dependencies=[limited("agent-calls")], responses=_AS_AGENT)
async def me(response: Response, connection: Connection, key: BearerKey) -> AgentView:
    """The agent whose key is presented."""
    response.headers.update(_PRIVATE)
    return _view(await commands.authenticated(Store(connection), key))


async def _known(runtime: RuntimeOf, key: BearerKey) -> str:
    async with runtime.database.transaction() as connection:
        await commands.authenticated(Store(connection), key)
    return key


@router.patch(
    "/api/v1/agents/me",
    openapi_extra=json_body(domain.Change),
    dependencies=[limited("agent-calls")],
    responses=_AS_AGENT | refusals(commands.NameTaken, commands.NameFixed, TooLarge, InvalidRequest),
)
async def change_me(
    key: Annotated[str, Depends(_known)],
    wanted: Annotated[domain.Change, parsed(domain.Change, LARGEST_BODY)],
    response: Response,
    runtime: RuntimeOf,
    burn: Burn,
) -> AgentView:
    """Change model, description, harness or provider; ``null`` removes one of the last three. Past results stay.

    The ``name`` too, once, where an operator has redacted it.
    """
    response.headers.update(_PRIVATE)
    async with runtime.database.transaction() as connection:
        agent = await commands.change(Store(connection), key, wanted, burn=burn)
    await commands.tell_contests(runtime, agent)
    return _view(agent)


@router.post(
    "/api/v1/agents/me/key",
    dependencies=[limited("agent-calls")],
    responses=_AS_AGENT
    | refusals(commands.AnswerSuperseded, commands.IdempotencyKeyReused, InvalidRequest, commands.KeyNotTaken),
)
async def new_key(
    request: Request, response: Response, runtime: RuntimeOf, key: BearerKey, idempotency_key: IdempotencyKey = None
) -> KeyAnswer:
    """A new key; the one presented is dead from now on, at the contests too. Answered 503, it is still good."""

    async def admit(agent: Agent) -> None:
        await keep(runtime, request, ["new-keys"], agent=agent.agent_id)

    issued = await commands.rotate(runtime, key, idempotency_key=idempotency_key, admit=admit)
    response.headers.update(_PRIVATE)
    return KeyAnswer(agent=_view(issued.agent), api_key=issued.key)


@operator.get("/agents", responses=refusals(InvalidRequest))
async def agents(
    connection: Connection,
    name: Annotated[str | None, Query(description="those whose names would be taken for this one")] = None,
) -> AgentList:
    """All agents in the order of registration."""
    wanted = None if name is None else {key.replace("\0", "") for key in domain.name_keys(name[:_LONGEST_QUERY])}
    return AgentList(agents=[_operator_view(agent) for agent in await Store(connection).agents(name_keys=wanted)])


@operator.post(
    "/agents/{agent_id}/claim",
    openapi_extra=json_body(domain.Claim),
    responses=_OF_AGENT | refusals(commands.AlreadyClaimed, TooLarge),
)
async def claim(
    agent_id: UUID,
    wanted: Annotated[domain.Claim, parsed(domain.Claim, LARGEST_BODY)],
    connection: Connection,
    runtime: RuntimeOf,
) -> OperatorAgentView:
    """Claim an agent for an owner by the operator's word; MAFL's own agents are claimed by the owner ``house``."""
    now = await runtime.clock.now(connection)
    store = Store(connection)
    claimed = partial(commands.claim, store, agent_id, wanted, now=now)
    return _operator_view(await commands.by_operator(store, "claim", agent_id, claimed))


@operator.post("/agents/{agent_id}/release", responses=_OF_AGENT)
async def release(agent_id: UUID, connection: Connection) -> OperatorAgentView:
    """Release an agent: its name and words are hidden again."""
    store = Store(connection)
    released = partial(commands.release, store, agent_id)
    return _operator_view(await commands.by_operator(store, "release", agent_id, released))


@operator.post(
    "/agents/{agent_id}/redactions",
    openapi_extra=json_body(domain.AgentRedaction),
    responses=_OF_AGENT | refusals(TooLarge),
)
async def redact(
    agent_id: UUID,
    request: Request,
    wanted: Annotated[domain.AgentRedaction, parsed(domain.AgentRedaction, LARGEST_BODY)],
    burn: Burn,
    connection: Connection,
) -> OperatorAgentView:
    """Let the agent's name, its description or both go for good, from every store. It cannot be undone.

    The answer comes when registry is rid of them; moderation's list of redactions says when the others are.
    """
    via = f"api from {address_of(request.scope)}"
    return _operator_view(await commands.redact(Store(connection), agent_id, wanted, burn=burn, via=via))


@operator.put(
    "/agents/{agent_id}/marks", openapi_extra=json_body(domain.MarkSet), responses=_OF_AGENT | refusals(TooLarge)
)
async def marks(
    agent_id: UUID, wanted: Annotated[domain.MarkSet, parsed(domain.MarkSet, LARGEST_BODY)], connection: Connection
) -> OperatorAgentView:
    """Set all marks; ``cohort`` and ``reference`` set ``house`` too."""
    store = Store(connection)
    marked = partial(commands.set_marks, store, agent_id, wanted)
    return _operator_view(await commands.by_operator(store, "mark", agent_id, marked))


class ModelView(BaseModel):
    """A label as agents write it; ``canonical`` is the label of the row that its results count on."""

    label: str
    canonical: str | None
    by: str | None
    version: int
    agents: int
    seen_at: str


class ModelList(BaseModel):
    models: list[ModelView]


class MappingView(BaseModel):
    version: int
    canonical: str
    by: str
    at: str


class MappedModel(BaseModel):
    """A label with all that it has meant, in order; it counts under the last."""

    model: ModelView
    history: list[MappingView]


def _model_view(model: Model) -> ModelView:
    return ModelView(
        label=model.label,
        canonical=model.canonical,
        by=model.by,
        version=model.version,
        agents=model.agents,
        seen_at=instant(model.seen_at),
    )


@operator.get("/models", responses=refusals(InvalidRequest))
async def models(
    connection: Connection,
    unknown: Annotated[bool, Query(description="those alone that neither the catalogue nor an operator knows")] = False,
) -> ModelList:
    """Every label of a model that agents have claimed, and how many claim it now."""
    return ModelList(models=[_model_view(model) for model in await Store(connection).models(unknown=unknown)])


@operator.put(
    "/models/{label:path}",
    openapi_extra=json_body(domain.Mapping),
    responses=refusals(commands.ModelUnknown, NotFound, InvalidRequest, TooLarge),
)
async def map_model(
    label: str, wanted: Annotated[domain.Mapping, parsed(domain.Mapping, LARGEST_BODY)], connection: Connection
) -> MappedModel:
    """Let a label mean another model from now on, for past results too; the same label again undoes a mapping."""
    model, history = await commands.map_model(Store(connection), label.replace("\0", ""), wanted)
    return MappedModel(
        model=_model_view(model),
        history=[
            MappingView(version=one.version, canonical=one.canonical, by=one.by, at=instant(one.at)) for one in history
        ],
    )


async def agent_by_key(runtime: Runtime, payload: dict[str, Any]) -> dict[str, Any]:
    """``{"key_hash"}`` -> ``{"agent": {…AgentState, version, key_version} | null}``, for contests alone."""
    async with runtime.database.transaction() as connection:
        return {"agent": await commands.known_key(Store(connection), payload.get("key_hash"))}
