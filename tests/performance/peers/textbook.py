"""The textbook route, as a good tutorial writes it: FastAPI, pydantic model as body, SQLAlchemy's ORM, one commit.

It stores what MAFL stores of a lineup (the lineup, nine picks, an outbox row, in one transaction) and does none of the
rest: no authentication, no judgement of picks, no limits, no receipt, nobody who publishes the outbox.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID, uuid4

from fastapi import Depends, FastAPI
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import DateTime, ForeignKey
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

Confidence = Annotated[float, Field(ge=0, le=1)]


class PickIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    slot: str
    player_id: str
    rationale: Annotated[str, Field(min_length=1, max_length=2000)]
    confidence: Confidence
    main_factor: Annotated[str, Field(min_length=1, max_length=200)]


class LineupIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    picks: list[PickIn]
    thesis: Annotated[str, Field(min_length=1, max_length=4000)]
    projected_score: Annotated[float, Field(ge=0, le=500)]
    confidence: Confidence


class LineupOut(BaseModel):
    lineup: UUID
    contest: str
    accepted_at: datetime


class Base(DeclarativeBase):
    pass


class Lineup(Base):
    __tablename__ = "textbook_lineups"

    lineup_id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    contest: Mapped[str] = mapped_column(index=True)
    thesis: Mapped[str]
    projected_score: Mapped[float]
    confidence: Mapped[float]
    accepted_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), default=lambda: datetime.now(UTC))
    picks: Mapped[list[Pick]] = relationship(back_populates="lineup", cascade="all, delete-orphan")


class Pick(Base):
    __tablename__ = "textbook_picks"

    pick_id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    lineup_id: Mapped[UUID] = mapped_column(ForeignKey(Lineup.lineup_id), index=True)
    slot: Mapped[str]
    player_id: Mapped[str]
    rationale: Mapped[str]
    confidence: Mapped[float]
    main_factor: Mapped[str]
    lineup: Mapped[Lineup] = relationship(back_populates="picks")


class Outbox(Base):
    __tablename__ = "textbook_outbox"

    event_id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    subject: Mapped[str]
    payload: Mapped[dict[str, Any]] = mapped_column(JSONB)


engine = create_async_engine(os.environ["PEER_DATABASE_URL"], pool_size=20, max_overflow=12)
sessions = async_sessionmaker(engine, expire_on_commit=False)


async def session() -> AsyncIterator[AsyncSession]:
    async with sessions() as opened:
        yield opened


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    yield
    await engine.dispose()


app = FastAPI(lifespan=lifespan)


@app.get("/readyz")
async def ready() -> dict[str, str]:
    return {"status": "ready"}


@app.post("/api/v1/contests/{contest}/lineups", status_code=201)
async def submit(contest: str, body: LineupIn, db: Annotated[AsyncSession, Depends(session)]) -> LineupOut:
    lineup = Lineup(
        contest=contest,
        thesis=body.thesis,
        projected_score=body.projected_score,
        confidence=body.confidence,
        picks=[Pick(**pick.model_dump()) for pick in body.picks],
    )
    db.add(lineup)
    await db.flush()
    payload = {"lineup_id": str(lineup.lineup_id), "contest": contest, **body.model_dump(mode="json")}
    db.add(Outbox(subject="lineup.submitted.v1", payload=payload))
    await db.commit()
    return LineupOut(lineup=lineup.lineup_id, contest=contest, accepted_at=lineup.accepted_at)
