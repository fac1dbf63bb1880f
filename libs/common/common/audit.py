"""What operators did, in each service that they do something in: a table whose rows are only added.

An act is recorded in the transaction that does it, so that neither is there without the other; what is refused or
changes nothing leaves no line. The time is the real one, also in a replay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Protocol

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel
from sqlalchemy import BigInteger, Column, DateTime, Identity, MetaData, Table, Text, func, insert, select, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from common.answers import Refusal, refusals
from common.canonical import instant
from common.problems import CONTENT_TYPE, InvalidRequest, Unauthorized
from common.service import Connection, operator_only

OPERATOR = "operator"
"""Who acts with the operator's token and says no name."""

AUDIT = MetaData()

ACTS = Table(
    "operator_acts",
    AUDIT,
    Column("act", BigInteger, Identity(always=True), primary_key=True),
    Column("at", DateTime(timezone=True), nullable=False),
    Column("who", Text, nullable=False),
    Column("what", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("before", JSONB(none_as_null=True)),
    Column("after", JSONB(none_as_null=True)),
)

_KEEP = """
CREATE FUNCTION keep_operator_acts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'what an operator did is never changed or removed';
END $$;
CREATE TRIGGER keep_operator_acts BEFORE UPDATE OR DELETE OR TRUNCATE ON operator_acts
    FOR EACH STATEMENT EXECUTE FUNCTION keep_operator_acts();
"""


class _Migration(Protocol):
    def get_bind(self) -> Any: ...
    def execute(self, sqltext: Any) -> Any: ...


def create_audit_table(op: _Migration) -> None:
    """Create the table of acts, and what keeps its rows. ``op`` is ``alembic.op``."""
    AUDIT.create_all(op.get_bind())
    op.execute(text(_KEEP))


def drop_audit_table(op: _Migration) -> None:
    """Undo :func:`create_audit_table`."""
    AUDIT.drop_all(op.get_bind())
    op.execute(text("DROP FUNCTION keep_operator_acts()"))


@dataclass(frozen=True)
class Act:
    """What an operator did; ``before`` and ``after`` are of ``target``, ``None`` where there is nothing to say."""

    act: int
    at: datetime
    who: str
    what: str
    target: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


async def record(
    connection: AsyncConnection,
    *,
    what: str,
    target: str,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    who: str = OPERATOR,
) -> None:
    """Record an act in the transaction that does it. ``before`` and ``after`` are JSON objects.

    ``who`` is what the operator called themself. No words that may have to go one day belong here: the row stays.
    """
    values = {"who": who, "what": what, "target": target, "before": before, "after": after}
    await connection.execute(insert(ACTS).values(at=func.clock_timestamp(), **values))


async def acts(connection: AsyncConnection, *, limit: int, before: int | None = None) -> Sequence[Act]:
    """What operators did, the newest first, at most ``limit`` and only what came before the act ``before``."""
    query = select(ACTS).order_by(ACTS.c.act.desc()).limit(limit)
    if before is not None:
        query = query.where(ACTS.c.act < before)
    return [Act(**row._mapping) for row in await connection.execute(query)]


class ActView(BaseModel):
    """What an operator did; ``before`` and ``after`` are of its target."""

    act: int
    at: str
    who: str
    what: str
    target: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class ActList(BaseModel):
    acts: list[ActView]


def routes(service: str = "") -> APIRouter:
    """``GET /operator/api/v1/audit/{service}``: what operators did in this service, for the operator alone.

    The registry's own acts, of agents and models, stand at the path without a service.
    """
    router = APIRouter(
        prefix="/operator/api/v1/audit",
        dependencies=[Depends(operator_only)],
        responses=refusals(Unauthorized, InvalidRequest)
        | {
            "default": {
                "description": "Anything else that was refused or failed",
                "content": {CONTENT_TYPE: {"schema": Refusal.model_json_schema()}},
            }
        },
    )

    @router.get(f"/{service}" if service else "")
    async def audit(
        connection: Connection,
        before: Annotated[int | None, Query(ge=1, le=2**62, description="only acts before this one")] = None,
        limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    ) -> ActList:
        """What operators did here, the newest first."""
        found = await acts(connection, limit=limit, before=before)
        return ActList(
            acts=[
                ActView(
                    act=one.act,
                    at=instant(one.at),
                    who=one.who,
                    what=one.what,
                    target=one.target,
                    before=one.before,
                    after=one.after,
                )
                for one in found
            ]
        )

    return router
