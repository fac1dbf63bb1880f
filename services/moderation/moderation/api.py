"""Moderation's routes: for operators only, and nothing of a contest before its lock (C8)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel

from common.events import State
from common.service import Connection, operator_only
from moderation.store import Store

operator = APIRouter(prefix="/operator/api/v1/moderation", dependencies=[Depends(operator_only)])


class BacklogView(BaseModel):
    """What waits to be judged: totals, no agents."""

    texts: int
    oldest_seconds: float
    names: int
    models: int


class FindingView(BaseModel):
    """Why a text is withheld; ``start`` and ``end`` count code points of ``text``."""

    detector: str
    version: str
    rule: str
    start: int
    end: int


class WithheldView(BaseModel):
    """A text that is not cleared."""

    contest: str
    lineup_id: UUID
    agent_id: UUID
    revision: int
    pointer: str
    text: str
    text_hash: str
    state: State
    findings: list[FindingView]
    pipeline: str
    judged_at: datetime


class QueueView(BaseModel):
    """Texts that are not cleared, newest verdict first."""

    items: list[WithheldView]


@operator.get("/backlog")
async def backlog(connection: Connection) -> BacklogView:
    """How many texts, agents' names and models' labels wait to be judged; how long the oldest text has waited."""
    waiting = await Store(connection).backlog()
    return BacklogView(
        texts=waiting.texts,
        oldest_seconds=waiting.oldest_seconds,
        names=waiting.names,
        models=waiting.models,
    )


@operator.get("/queue")
async def queue(connection: Connection, limit: Annotated[int, Query(ge=1, le=1_000)] = 100) -> QueueView:
    """Flagged and unchecked texts of final revisions, once their contest is locked."""
    return QueueView(items=[WithheldView.model_validate(row) for row in await Store(connection).withheld(limit)])
