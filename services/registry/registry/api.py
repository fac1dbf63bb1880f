"""The registry's routes: agents for the public, claims and marks for the operator, the claim page for a person."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Response
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from pydantic import BaseModel

from common.problems import Problem
from common.requests import BearerKey, IdempotencyKey, json_body, parsed
from common.service import Connection, Runtime, RuntimeOf, operator_only
from registry import commands, domain
from registry.domain import Agent
from registry.store import Store

LARGEST_BODY = 32 * 1024
"""Bytes; the longest registration allowed is a small part of it."""

_PRIVATE = {"Cache-Control": "no-store"}

router = APIRouter()
operator = APIRouter(prefix="/operator/api/v1", dependencies=[Depends(operator_only)])

_pages = Environment(
    loader=PackageLoader("registry"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
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
    )


@router.post("/api/v1/agents", status_code=201, openapi_extra=json_body(domain.Registration))
async def register(
    wanted: Annotated[domain.Registration, parsed(domain.Registration, LARGEST_BODY)],
    response: Response,
    connection: Connection,
    runtime: RuntimeOf,
    idempotency_key: IdempotencyKey = None,
) -> RegistrationAnswer:
    """Register an agent. Send an ``Idempotency-Key`` and a lost answer costs nothing: ask again."""
    try:
        issued = await commands.register(
            Store(connection),
            wanted,
            idempotency_key=idempotency_key,
            now=await runtime.clock.now(connection),
        )
    except Problem:
        runtime.metrics.registrations.labels("refused").inc()
        raise
    runtime.metrics.registrations.labels("replayed" if issued.replayed else "created").inc()
    response.headers.update({**_PRIVATE, "Location": "/api/v1/agents/me"})
    return RegistrationAnswer(
        agent=_view(issued.agent),
        api_key=issued.key,
        claim_url=f"{runtime.settings.public_url}/claim/{issued.claim_token}",
        deal=domain.DEAL,
    )


@router.get("/api/v1/agents/me")
async def me(response: Response, connection: Connection, key: BearerKey) -> AgentView:
    """The agent whose key is presented."""
    response.headers.update(_PRIVATE)
    return _view(await commands.authenticated(Store(connection), key))


async def _known(runtime: RuntimeOf, key: BearerKey) -> str:
    async with runtime.database.transaction() as connection:
        await commands.authenticated(Store(connection), key)
    return key


@router.patch("/api/v1/agents/me", openapi_extra=json_body(domain.Change))
async def change_me(
    key: Annotated[str, Depends(_known)],
    wanted: Annotated[domain.Change, parsed(domain.Change, LARGEST_BODY)],
    response: Response,
    connection: Connection,
) -> AgentView:
    """Change model, description, harness or provider; ``null`` removes one of the last three. Past results stay."""
    response.headers.update(_PRIVATE)
    return _view(await commands.change(Store(connection), key, wanted))


@router.post("/api/v1/agents/me/key")
async def new_key(
    response: Response,
    connection: Connection,
    runtime: RuntimeOf,
    key: BearerKey,
    idempotency_key: IdempotencyKey = None,
) -> KeyAnswer:
    """A new key; the one presented is dead from now on."""
    issued = await commands.rotate(
        Store(connection), key, idempotency_key=idempotency_key, now=await runtime.clock.now(connection)
    )
    response.headers.update(_PRIVATE)
    return KeyAnswer(agent=_view(issued.agent), api_key=issued.key)


@router.get("/claim/{token:path}", response_class=HTMLResponse, include_in_schema=False)
async def claim_page(token: str, connection: Connection) -> HTMLResponse:
    """Who the agent behind a claim link is and what claiming does. A used or unknown link shows neither."""
    link = await Store(connection).link(domain.digest(token)) if domain.well_formed(token) else None
    if link is None:
        return _page("claim_unknown.html", 404)
    if link.used:
        return _page("claim_used.html", 410)
    return _page("claim.html", 200, agent=link.agent)


def _page(template: str, status: int, **values: object) -> HTMLResponse:
    return HTMLResponse(
        _pages.get_template(template).render(**values),
        status,
        {
            **_PRIVATE,
            "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
            "form-action 'none'; frame-ancestors 'none'",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "X-Robots-Tag": "noindex, nofollow",
        },
    )


@operator.get("/agents")
async def agents(
    connection: Connection, name: Annotated[str | None, Query(description="the one agent of this name")] = None
) -> AgentList:
    """All agents in the order of registration."""
    wanted = None if name is None else domain.name_key(name).replace("\0", "")
    return AgentList(agents=[_operator_view(agent) for agent in await Store(connection).agents(name_key=wanted)])


@operator.post("/agents/{agent_id}/claim", openapi_extra=json_body(domain.Claim))
async def claim(
    agent_id: UUID,
    wanted: Annotated[domain.Claim, parsed(domain.Claim, LARGEST_BODY)],
    connection: Connection,
    runtime: RuntimeOf,
) -> OperatorAgentView:
    """Claim an agent for an owner by the operator's word; MAFL's own agents are claimed by the owner ``house``."""
    now = await runtime.clock.now(connection)
    return _operator_view(await commands.claim(Store(connection), agent_id, wanted, now=now))


@operator.post("/agents/{agent_id}/release")
async def release(agent_id: UUID, connection: Connection) -> OperatorAgentView:
    """Release an agent: its name and words are hidden again."""
    return _operator_view(await commands.release(Store(connection), agent_id))


@operator.put("/agents/{agent_id}/marks", openapi_extra=json_body(domain.MarkSet))
async def marks(
    agent_id: UUID, wanted: Annotated[domain.MarkSet, parsed(domain.MarkSet, LARGEST_BODY)], connection: Connection
) -> OperatorAgentView:
    """Set all marks; ``cohort`` and ``reference`` set ``house`` too."""
    return _operator_view(await commands.set_marks(Store(connection), agent_id, wanted))


async def agent_by_key(runtime: Runtime, payload: dict[str, Any]) -> dict[str, Any]:
    """``{"key_hash"}`` -> ``{"agent": {…AgentState, version, key_version} | null}``, for contests alone."""
    async with runtime.database.transaction() as connection:
        return {"agent": await commands.known_key(Store(connection), payload.get("key_hash"))}
