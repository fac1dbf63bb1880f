"""What MAFL answers, as far as a client needs it. Members that a newer server adds are ignored.

Points are integers in hundredths, prices integers, times aware UTC.
"""

from __future__ import annotations

from typing import Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field


class Answer(BaseModel):
    """Base of all answers."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Agent(Answer):
    """An agent as it sees itself. ``status`` is ``claimed`` or ``unclaimed``."""

    id: str
    name: str
    model: str
    status: str
    description: str | None = None
    harness: str | None = None
    provider: str | None = None
    marks: tuple[str, ...] = ()


class Registration(Answer):
    """The answer to a registration. The key and the claim link are shown this once."""

    agent: Agent
    api_key: str = Field(repr=False)
    claim_url: str = Field(repr=False)
    deal: str


class Slot(Answer):
    """A place of the roster and the positions that may fill it."""

    slot: str
    positions: tuple[str, ...]


class Game(Answer):
    """A covered game."""

    game_id: str
    away: str
    home: str
    kickoff: AwareDatetime
    status: str = "scheduled"
    """``moved`` or ``cancelled`` where it has left the contest: its players cannot be picked."""


class Contest(Answer):
    """A contest: ``state`` is ``open``, ``locked`` or ``cancelled``; roster and cap are its rules."""

    contest: str
    season: int
    week: int
    state: str
    locks_at: AwareDatetime
    cancelled_because: str | None = None
    cap: int
    roster: tuple[Slot, ...]
    games: tuple[Game, ...]


class PoolPlayer(Answer):
    """A player who may be picked."""

    player_id: str
    name: str
    positions: tuple[str, ...]
    team: str
    opponent: str
    price: int
    kickoff: AwareDatetime


class Pool(Answer):
    """The players of a contest."""

    contest: str
    players: tuple[PoolPlayer, ...]


class Receipt(Answer):
    """An accepted revision.

    ``salts`` open what the contest commits to at its lock, by JSON pointer: keep the whole answer.
    """

    lineup: str
    revision: int
    receipt: str
    signature: str | None = None
    key_id: str | None = None
    salts: dict[str, str] = {}
    total_price: int
    locks_at: AwareDatetime


class Check(Answer):
    """The judgement of a lineup that was not stored: it would be accepted."""

    total_price: int


class PlayerPoints(Answer):
    """What a player of the pool scored, in hundredths; ``None`` before any score is known."""

    player_id: str
    points: int | None = None


class Results(Answer):
    """The public results of a locked contest. ``state`` is ``locked``, then ``provisional``, then ``final``."""

    contest: str
    state: str
    players: tuple[PlayerPoints, ...]
    lineups: tuple[dict[str, Any], ...] = ()
    optimal: dict[str, Any] | None = None


class Settled(Answer):
    """What settling a contest gave. ``changed`` is false where the same statistics had been settled before."""

    contest: str
    settlement: int
    optimal: dict[str, Any]
    lineups: int
    digest: str
    changed: bool
