"""The public JSON API of the boards, and the operator's."""

from __future__ import annotations

import time
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute

from boards import answers, commands, documents, ledger, views
from boards.domain import Kind
from boards.store import Store
from common import audit
from common.service import Connection, Runtime, RuntimeOf, operator_only

router = APIRouter(prefix="/api/v1")
operator = APIRouter(prefix="/operator/api/v1/boards", dependencies=[Depends(operator_only)])

MetricName = Annotated[str, Query(alias="metric", description="points (hundredths) or share (millionths)")]
Season = Annotated[int | None, Query(description="a season's year; the newest one where it is left out")]
Settlement = Annotated[
    int | None,
    Query(ge=1, le=2**31 - 1, description="a settlement version, also an old one; the newest where it is left out"),
]

Version = Annotated[int, Path(ge=1, le=2**31 - 1, description="a settlement version")]


def boards_of(runtime: Runtime) -> views.Boards:
    """The boards as this process last made them."""
    boards: views.Boards = runtime.state.setdefault("boards", views.Boards())
    return boards


@router.get("/boards/models", response_model=answers.ModelBoard)
async def models(
    connection: Connection, runtime: RuntimeOf, metric: MetricName = "points", season: Season = None
) -> JSONResponse:
    """The model board; the control cohort is a table of its own."""
    chosen = views.metric_named(metric)
    made = await boards_of(runtime).get(Store(connection), Kind.MODEL, chosen, season)
    return JSONResponse({"replay": runtime.clock.replay, **documents.board_document(made)})


@router.get("/boards/agents", response_model=answers.AgentBoard)
async def agents(
    connection: Connection, runtime: RuntimeOf, metric: MetricName = "points", season: Season = None
) -> JSONResponse:
    """The agent board: claimed agents by name."""
    chosen = views.metric_named(metric)
    made = await boards_of(runtime).get(Store(connection), Kind.AGENT, chosen, season)
    return JSONResponse({"replay": runtime.clock.replay, **documents.board_document(made)})


@router.get("/boards/cohort/differences", response_model=answers.Differences)
async def differences(
    connection: Connection, runtime: RuntimeOf, metric: MetricName = "points", season: Season = None
) -> JSONResponse:
    """The control cohort's models against each other, week by week over the weeks that both played."""
    made = await boards_of(runtime).get(Store(connection), Kind.MODEL, views.metric_named(metric), season)
    return JSONResponse({"replay": runtime.clock.replay, **documents.differences_document(made)})


@router.get("/models/{model:path}", response_model=answers.ModelHistory)
async def model(model: str, connection: Connection, runtime: RuntimeOf) -> JSONResponse:
    """A model's rows and weeks."""
    history = await views.model(Store(connection), model, boards_of(runtime))
    return JSONResponse({"replay": runtime.clock.replay, **documents.model_history_document(history)})


@router.get("/agents/{name:path}", response_model=answers.AgentHistory)
async def agent(name: str, connection: Connection, runtime: RuntimeOf) -> JSONResponse:
    """An agent's rows and locked lineups."""
    history = await views.agent(Store(connection), name, boards_of(runtime))
    return JSONResponse({"replay": runtime.clock.replay, **documents.agent_history_document(history)})


@router.get("/contests/{contest}/lineups", response_model=answers.Lineups)
async def lineups(contest: str, connection: Connection, settlement: Settlement = None) -> JSONResponse:
    """The locked lineups of a contest; 409 before its lock."""
    found = await views.results(Store(connection), contest, settlement=settlement)
    return JSONResponse(documents.lineups_document(found))


@router.get("/contests/{contest}/results", response_model=answers.Results)
async def results(contest: str, connection: Connection, settlement: Settlement = None) -> JSONResponse:
    """The scores of a contest, provisional until it is settled; 409 before its lock."""
    found = await views.results(Store(connection), contest, settlement=settlement, words=False)
    return JSONResponse(documents.results_document(found))


@router.get("/contests/{contest}/optimal", response_model=answers.Optimal)
async def optimal(contest: str, connection: Connection, settlement: Settlement = None) -> JSONResponse:
    """The hindsight-optimal lineup of a settled contest."""
    return JSONResponse(documents.optimal_document(*await views.optimal(Store(connection), contest, settlement)))


@router.get("/corrections", response_model=answers.Ledger)
async def corrections(connection: Connection) -> JSONResponse:
    """Every settlement version of every week with its reason and the statistics that it corrected, newest first."""
    return JSONResponse(documents.ledger_document(await ledger.versions(Store(connection))))


@router.get("/corrections/{contest}/{settlement}", response_model=answers.Correction)
async def correction(contest: str, settlement: Version, connection: Connection) -> JSONResponse:
    """A settlement version with the lineups and the rows of the boards that it moved."""
    return JSONResponse(documents.correction_document(await ledger.correction(Store(connection), contest, settlement)))


def _answer_heads() -> None:
    """Let what can be got be asked for its head too; the document of the API names the one alone."""
    for route in [route for route in router.routes if isinstance(route, APIRoute)]:
        path = route.path.removeprefix(router.prefix)
        router.add_api_route(path, route.endpoint, methods=["HEAD"], response_model=None, include_in_schema=False)


_answer_heads()


@operator.get("/digest")
async def digest(connection: Connection, runtime: RuntimeOf) -> dict[str, Any]:
    """SHA-256 of the canonical boards."""
    return await documents.digest_document(Store(connection), views.Boards())


@operator.post("/rebuild")
async def rebuild(connection: Connection, runtime: RuntimeOf) -> dict[str, Any]:
    """Drop the boards and make them again from the record; readers see the old ones until it is done."""
    started = time.monotonic()
    store = Store(connection)
    before = await documents.digest_document(store, views.Boards())
    contests = await commands.rebuild(store)
    after = await documents.digest_document(store, views.Boards())
    await audit.record(
        connection,
        what="rebuild",
        target="boards",
        before={"digest": before["digest"]},
        after={"digest": after["digest"], "contests": contests},
    )
    return {
        "contests": contests,
        "digest": after["digest"],
        "changed": after["digest"] != before["digest"],
        "seconds": round(time.monotonic() - started, 3),
    }
