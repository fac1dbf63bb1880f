"""Settlement's routes: all of them the operator's. What the public may see of a result, boards show."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, cast
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query, Request
from pydantic import BaseModel, StringConstraints

from common import events as ev
from common.problems import InvalidRequest, NotFound
from common.requests import LARGEST_UPLOAD, read_files
from common.service import Connection, RuntimeOf, operator_only
from settlement import commands
from settlement import preview as looking
from settlement.playing import GameState
from settlement.store import Settled, Store

router = APIRouter()
operator = APIRouter(prefix="/operator/api/v1", dependencies=[Depends(operator_only)])

Contest = Annotated[str, Path(max_length=40, examples=["2017-W04"])]
Season = Annotated[int | None, Query(ge=1920, le=2200, description="Only rows of this season")]
WeekOf = Annotated[int | None, Query(ge=1, le=30, description="Only rows of this week")]


GamesTold = Annotated[
    Sequence[Annotated[str, StringConstraints(pattern="^[A-Za-z0-9_-]{1,64}:(waiting|playing|over)$")]],
    Query(max_length=40, description="How far a game is, such as `2017_04_NO_MIA:over`; again for each game"),
]


def _told_games(told: Sequence[str]) -> dict[str, GameState]:
    return {name: cast(GameState, state) for name, _, state in (one.rpartition(":") for one in told)}


class NearView(BaseModel):
    """A player of the pool whose name is like an unknown one's; ``likeness`` to 100."""

    player_id: str
    name: str
    team: str
    likeness: int


class UnknownView(BaseModel):
    """A player of the file who could be in the pool and is not. Points in hundredths."""

    player_id: str
    name: str
    position: str
    team: str
    points: int
    nearest: list[NearView]


class ContestReport(BaseModel):
    """How a contest of an imported week stands.

    ``unknown_players`` of the file play in its games, at its positions, and are not in its pool; ``unknown`` has the
    first 50 of them.
    """

    contest: str
    unknown_players: int
    unknown: list[UnknownView]
    players_without_statistics: int
    scores_updated: bool


class WeekReport(BaseModel):
    """A week of an import; ``changed`` lines are new or differ from those that were there."""

    season: int
    week: int
    lines: int
    changed: int
    contests: list[ContestReport]


class ImportReport(BaseModel):
    """What an import did; ``blank`` rows had no known statistic. ``formats`` is what each file was taken for."""

    rows: int
    blank: int
    ignored_columns: list[str]
    formats: list[str]
    notes: list[str]
    final: bool
    weeks: list[WeekReport]


class WeekState(BaseModel):
    """The statistics of a week."""

    season: int
    week: int
    final: bool
    imports: int
    imported_at: datetime


class SettleRequest(BaseModel):
    """``reason`` is needed for a correction; ``force``, with a reason, settles without games that have no statistic."""

    reason: Annotated[str, StringConstraints(strip_whitespace=True, max_length=commands.LONGEST_REASON)] | None = None
    force: bool = False


class SettlementView(BaseModel):
    """A settlement version. Points in hundredths; ``no_ranks`` says why lineups have no rank, if they have none.

    ``corrected`` and ``moved``, the lineups that score differently, are against the version before.
    """

    contest: str
    settlement: int
    reason: str
    scoring: str
    settled_at: datetime
    optimal: ev.OptimalLineup
    lineups: int
    digest: str
    feasible_lineups: str | None
    no_ranks: str | None
    corrected: list[ev.CorrectedPlayer]
    moved: int


class SettleAnswer(SettlementView):
    """The version that holds, and whether this call made it."""

    changed: bool


class ResultView(BaseModel):
    """A lineup's result under one version. Points and regret in hundredths, share and percentile in millionths.

    ``rank`` and ``tied``, in decimal digits, are among all lineups that the pool allowed.
    """

    lineup_id: UUID
    agent_id: UUID
    model: str
    marks: ev.Marks
    points: int
    share: int
    regret: int
    picks: list[ev.SettledPick]
    rank: str | None
    tied: str | None
    percentile: int | None


class VersionView(SettlementView):
    """A settlement version with all it says."""

    players: dict[str, int]
    results: list[ResultView]


@operator.post("/statistics")
async def import_statistics(
    request: Request,
    runtime: RuntimeOf,
    season: Season = None,
    week: WeekOf = None,
    final: bool = False,
    game: GamesTold = (),
) -> ImportReport:
    """Import statistics: CSV, gzip or plain, or Parquet. All of it or, where a row is bad, nothing.

    The body is one file, or a form (`multipart/form-data`) of several `file` parts that are read together: a defence
    takes its team's week and its opponent's, and the scores of the games.
    """
    advice = "Send it packed, or a week at a time."
    files = (await read_files(request, LARGEST_UPLOAD, advice=advice)).get("file", [])
    if not files:
        raise InvalidRequest("The form has no part called `file`; send the statistics as such.", violations=[])
    report = await commands.import_statistics(
        runtime.database, runtime.clock, *files, season=season, week=week, final=final, games=_told_games(game)
    )
    return ImportReport.model_validate(report)


@operator.get("/statistics")
async def statistics(connection: Connection) -> list[WeekState]:
    """The weeks that have statistics."""
    return [WeekState.model_validate(dict(row)) for row in await Store(connection).weeks()]


@operator.post("/contests/{contest}/settle")
async def settle(contest: Contest, runtime: RuntimeOf, body: SettleRequest | None = None) -> SettleAnswer:
    """Settle a contest; the same statistics again give the same version."""
    wanted = body or SettleRequest()
    settled, changed = await commands.settle(
        runtime.database, runtime.clock, runtime.metrics, contest, wanted.reason, force=wanted.force
    )
    return SettleAnswer(**_version(settled), changed=changed)


class Told(BaseModel):
    """Something that settling would refuse, or ask for."""

    code: str
    title: str
    detail: str


class LineupsHere(BaseModel):
    """How many frozen lineups have arrived, and how many the lock announced."""

    have: int
    need: int | None


class GameView(BaseModel):
    """A game of the contest: ``waiting``, ``playing`` or ``over``, and of how many players something is known."""

    game_id: str
    away: str
    home: str
    kickoff: datetime
    status: str
    state: str
    players: int
    with_statistics: int


class OutsidePlayer(BaseModel):
    """A player with a line who is not in the pool; ``points`` by the contest's scoring."""

    player_id: str
    points: int


class Outside(BaseModel):
    """All of them, and the first 50, the best first."""

    count: int
    players: list[OutsidePlayer]


class SilentPick(BaseModel):
    """A picked player with no line; he scores zero."""

    player_id: str
    name: str
    lineups: int


class Silent(BaseModel):
    """Players of the pool with no line, and those of them who were picked, 50 at most."""

    count: int
    picked: list[SilentPick]


class WouldBe(BaseModel):
    """What would be settled; where it is not ``changed``, the version that holds already."""

    settlement: int
    changed: bool
    digest: str
    optimal: ev.OptimalLineup
    corrected: list[ev.CorrectedPlayer]
    moved: int


class Preview(BaseModel):
    """What settling would do now. Points in hundredths."""

    contest: str
    ready: bool
    missing: list[Told]
    asks: list[Told]
    lineups: LineupsHere
    statistics: str
    games: list[GameView]
    unmatched: Outside
    without_statistics: Silent
    current: int | None
    outcome: WouldBe | None


@operator.get("/contests/{contest}/settle")
async def preview(contest: Contest, runtime: RuntimeOf) -> Preview:
    """What settling a contest would do now, and what is missing. Changes nothing."""
    found = await looking.preview(runtime.database, runtime.clock, runtime.metrics, contest)
    return Preview.model_validate(found)


@operator.get("/settlements")
async def settlements(connection: Connection, contest: str | None = None) -> list[SettlementView]:
    """Every settlement version, of one contest or of all, oldest first."""
    return [SettlementView(**_version(settled)) for settled in await Store(connection).settlements(contest)]


@operator.get("/settlements/{contest}/{settlement}")
async def settlement(
    contest: Contest, settlement: Annotated[int, Path(ge=1, le=2**31 - 1)], connection: Connection
) -> VersionView:
    """One version, also after it was corrected, with the points of the pool and of every lineup."""
    store = Store(connection)
    found = await store.settlement(contest, settlement)
    if found is None:
        raise NotFound(f"{contest} has no settlement version {settlement}.")
    settled, players = found
    results = [
        ResultView(
            **{name: row[name] for name in ResultView.model_fields if name != "picks"},
            picks=[
                ev.SettledPick(slot=slot, player_id=player_id, price=price, points=points)
                for slot, player_id, price, points in row["picks"]
            ],
        )
        for row in await store.results(contest, settlement)
    ]
    return VersionView(**_version(settled), players=players, results=results)


def _version(settled: Settled) -> dict[str, Any]:
    return {name: getattr(settled, name) for name in SettlementView.model_fields}
