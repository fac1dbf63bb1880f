"""What makes a service of its parts: one application with its database, bus, clock, tasks and health."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import hmac
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

import anyio.to_thread
from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from common import events as ev
from common import logs, problems, topology
from common.bus import Bus, Consumer
from common.clock import ReplayClock, SystemClock, clock
from common.db import Database, unavailable
from common.events import Envelope
from common.inbox import Handlers
from common.logs import logger
from common.metrics import Metrics
from common.migrate import upgrade
from common.outbox import Relay
from common.requests import credentials
from common.settings import Settings
from common.watch import Watch

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
_DATABASE_PATIENCE = 30.0
_ALLOCATIONS_BETWEEN_COLLECTIONS = 20_000
_LAST_WORDS = 2.0
"""Seconds that a cancelled task has to put things in order before it is cancelled again."""


@dataclass
class Runtime:
    """What a running service has: routes and tasks ask for it, nothing is a module's global.

    ``publish`` is called by whoever has committed to the outbox by a hot connection: none of those sends a NOTIFY.
    """

    name: str
    settings: Settings
    database: Database
    bus: Bus
    clock: SystemClock | ReplayClock
    metrics: Metrics
    state: dict[str, Any] = field(default_factory=dict)
    publish: Callable[[], None] = lambda: None
    _wakers: dict[str, asyncio.Event] = field(default_factory=dict)

    def wake(self, name: str) -> None:
        """Wake whoever waits under this name; does nothing when nobody does yet but the next wait sees it."""
        self._wakers.setdefault(name, asyncio.Event()).set()

    def wake_all(self) -> None:
        """Wake every waiter: something was applied."""
        for event in self._wakers.values():
            event.set()

    async def woken(self, name: str, *, at_most: float = 1.0) -> None:
        """Wait to be woken under this name, ``at_most`` seconds."""
        event = self._wakers.setdefault(name, asyncio.Event())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(at_most):
                await event.wait()
        event.clear()


Task = Callable[[Runtime], Awaitable[None]]
RpcHandler = Callable[[Runtime, dict[str, Any]], Awaitable[dict[str, Any]]]


@dataclass(frozen=True)
class Service:
    """A service's parts, as its ``main.py`` lists them.

    ``tasks`` run for the application's life and are started again when they raise; ``rpc`` answers
    requests on NATS subjects; ``state`` is what the runtime's begins with; ``by_index`` is as ``Database`` has it.
    While the service is ``pressed`` its events wait for those who wait for its answers.
    """

    name: str
    package: str
    routers: Sequence[APIRouter]
    handlers: Handlers
    tasks: Sequence[Task] = ()
    rpc: Mapping[str, RpcHandler] = field(default_factory=dict)
    mounts: Mapping[str, ASGIApp] = field(default_factory=dict)
    state: Mapping[str, Any] = field(default_factory=dict)
    pressed: Callable[[Runtime], bool] = lambda _: False
    hot: Sequence[BaseRoute] = ()
    by_index: bool = False


async def runtime_of(request: Request) -> Runtime:
    """The runtime of the application that answers a request."""
    return _runtime(request)


def _runtime(request: Request) -> Runtime:
    runtime: Runtime = request.app.state.runtime
    return runtime


async def _transaction(request: Request) -> AsyncIterator[AsyncConnection]:
    async with _runtime(request).database.transaction() as connection:
        yield connection


async def operator_only(request: Request) -> None:
    """Refuse whoever does not bring the operator's token."""
    given = credentials(request.headers.get("authorization", ""))
    wanted = _runtime(request).settings.operator_token.get_secret_value()
    if not hmac.compare_digest(given.encode(), wanted.encode()):
        raise problems.Unauthorized("This call takes the operator's token: `Authorization: Bearer <token>`.")


# FastAPI runs dependencies that are no coroutines in a thread, two hops a request; hence `async def` above.
RuntimeOf = Annotated[Runtime, Depends(runtime_of)]
Connection = Annotated[AsyncConnection, Depends(_transaction, scope="function")]
"""One transaction for one request, committed before the answer is sent."""


def create_app(service: Service, settings: Settings | None = None) -> FastAPI:
    """The application of a service: its routes, ``/healthz``, ``/readyz``, ``/metrics``, and its life.

    Settings come from the environment unless given. Raises ``ValueError`` when the topology gives the
    service an event that it has no handler for.
    """
    settings = settings or Settings()
    handlers = service.handlers.copy()
    if settings.clock == "replay" and ev.ClockMoved not in handlers:
        handlers.on(ev.ClockMoved)(_follow_the_replay_clock)
    durables = topology.durables_of(service.name)
    for event in (event for durable in durables for event in durable.events):
        if event not in handlers and event is not ev.ClockMoved:
            raise ValueError(f"{service.name} reads {event.subject()} and has no handler for it")

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        logs.configure(service.name, settings.log_level)
        # What is there now stays; what a request makes is nearly all gone by itself when the collector comes rarely.
        gc.freeze()
        gc.set_threshold(_ALLOCATIONS_BETWEEN_COLLECTIONS, 10, 10)
        async with _running(app, service, settings, durables, handlers):
            yield

    app = _Application(
        title=f"MAFL {service.name}",
        version="1",
        lifespan=life,
        # No address of its own for the document: FastAPI makes the route as it is constructed, whatever is set later.
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        # Nobody here reads it, and asking the environment for it at each request cost more than a call's own route.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    problems.install(app)
    for router in service.routers:
        app.include_router(router)
    app.include_router(_health)
    for path, mounted in service.mounts.items():
        app.mount(path, mounted)
    app.hot = service.hot
    return app


class _Application(FastAPI):
    """Observes what it answers from outside all else, and hands on there what is ``hot``."""

    hot: Sequence[BaseRoute] = ()

    def build_middleware_stack(self) -> ASGIApp:
        of_kind = dict(self.exception_handlers)
        on_error = of_kind.pop(Exception, None)

        def answering(app: ASGIApp) -> ASGIApp:
            return ServerErrorMiddleware(ExceptionMiddleware(app, handlers=of_kind), handler=on_error)

        return _Observe(super().build_middleware_stack(), [(route, _alone(route, answering)) for route in self.hot])


def _alone(route: BaseRoute, answering: Callable[[ASGIApp], ASGIApp]) -> ASGIApp:
    """A route by itself; only what it raises goes through the application's layers, for their answer to it."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def noted(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await route.handle(scope, receive, noted)
        except Exception as error:
            if begun:
                raise
            failure = error

            async def raising(*_: Any) -> None:
                raise failure

            await answering(raising)(scope, receive, send)

    return app


async def _follow_the_replay_clock(connection: AsyncConnection, event: ev.ClockMoved, envelope: Envelope) -> None:
    await ReplayClock().move(connection, event.now)


@asynccontextmanager
async def _running(
    app: FastAPI,
    service: Service,
    settings: Settings,
    durables: Sequence[topology.Durable],
    handlers: Handlers,
) -> AsyncIterator[None]:
    url = settings.database_url.get_secret_value()
    await _migrated(url, service.package)
    metrics = Metrics(service.name)
    database = Database(
        url, pool=settings.database_pool, patience=settings.database_patience, by_index=service.by_index
    )
    bus = Bus(settings.nats_url.get_secret_value(), service.name)
    runtime = Runtime(service.name, settings, database, bus, clock(settings.clock), metrics, dict(service.state))
    consumers = [
        Consumer(
            durable,
            bus=bus,
            database=database,
            handlers=handlers,
            metrics=metrics,
            after=runtime.wake_all,
        )
        for durable in durables
    ]
    relay = Relay(database, bus, metrics, gives_way_to=partial(service.pressed, runtime))
    runtime.publish = relay.wake
    watch = Watch(bus, consumers, metrics)
    for subject, handler in service.rpc.items():
        bus.answer(subject, partial(handler, runtime))
    app.state.runtime = runtime
    app.state.watch = watch
    app.state.consumers = consumers
    running: list[asyncio.Task[None]] = []

    def start(name: str, run: Callable[[], Awaitable[None]]) -> None:
        running.append(asyncio.create_task(_for_ever(name, run, metrics), name=name))

    async def on_the_bus() -> None:
        await bus.connect()
        start("outbox", relay.run)
        start("watch", watch.run)
        for consumer in consumers:
            start(consumer.durable.stream, consumer.run)

    running.append(asyncio.create_task(on_the_bus(), name="bus"))
    for task in service.tasks:
        start(task.__name__, partial(task, runtime))
    try:
        yield
    finally:
        await _stopped(running)
        await bus.close()
        await database.close()


async def _stopped(running: Sequence[asyncio.Task[None]]) -> None:
    """Cancel tasks until all have ended.

    Once is not enough: before Python 3.12 ``asyncio.wait_for``, in which the NATS client waits for messages,
    swallows a cancellation that arrives together with its result, and the task would go on for ever.
    """
    while left := [job for job in running if not job.done()]:
        for job in left:
            job.cancel()
        await asyncio.wait(left, timeout=_LAST_WORDS)
    await asyncio.gather(*running, return_exceptions=True)


async def _migrated(url: str, package: str) -> None:
    deadline = time.monotonic() + _DATABASE_PATIENCE
    while True:
        try:
            await anyio.to_thread.run_sync(upgrade, url, package)
        except Exception as error:
            if not unavailable(error) or time.monotonic() > deadline:
                raise
            logger.warning("the database does not answer yet", error=str(error)[:200])
            await asyncio.sleep(_SHORTEST_PAUSE)
        else:
            return


async def _for_ever(name: str, run: Callable[[], Awaitable[None]], metrics: Metrics) -> None:
    pause = _SHORTEST_PAUSE
    while True:
        started = time.monotonic()
        try:
            await run()
        except asyncio.CancelledError:
            raise
        except Exception as error:
            metrics.task_failures.labels(name).inc()
            if unavailable(error):
                logger.warning("a background task waits for the database", task=name, error=str(error)[:200])
            else:
                logger.exception("a background task failed and is started again", task=name)
        if time.monotonic() - started > _LONGEST_PAUSE:
            pause = _SHORTEST_PAUSE
        await asyncio.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


_health = APIRouter(include_in_schema=False)


@_health.get("/healthz")
async def healthz() -> dict[str, str]:
    """The event loop turns: it answered."""
    return {"status": "alive"}


@_health.get("/readyz")
async def readyz(request: Request) -> JSONResponse:
    """Whether the service can do its whole work: database, bus, every durable."""
    watch: Watch = request.app.state.watch
    faults = watch.faults()
    try:
        async with asyncio.timeout(2), _runtime(request).database.transaction() as connection:
            await connection.execute(text("SELECT 1"))
    except Exception as error:
        faults.append(f"database: {type(error).__name__}")
    return JSONResponse({"status": "not ready" if faults else "ready", "faults": faults}, 503 if faults else 200)


@_health.get("/metrics")
async def metrics(request: Request) -> Response:
    return Response(generate_latest(_runtime(request).metrics.registry), media_type=CONTENT_TYPE_LATEST)


class _Observe:
    """Gives each request a correlation id, and counts and times the answer by route pattern.

    What it knows as ``hot`` it hands on itself: the framework looks through all routes for each request.
    """

    def __init__(self, app: ASGIApp, hot: Sequence[tuple[BaseRoute, ASGIApp]] = ()) -> None:
        self._app = app
        self._hot = [(route, answering) for route, answering in hot if isinstance(route, Route)]

    def _way(self, scope: Scope) -> ASGIApp:
        for route, answering in self._hot:
            found = route.path_regex.match(scope["path"]) if scope["method"] in (route.methods or ()) else None
            if found:
                scope["route"], scope["path_params"] = route, found.groupdict()
                return answering
        return self._app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        logs.correlate("")
        started = time.perf_counter()
        status = 500

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                # What common.limits found, on refusals and successes alike.
                message["headers"] = [*message.get("headers", ()), *scope.get("state", {}).get("ratelimit", ())]
            await send(message)

        try:
            await self._way(scope)(scope, receive, observed)
        finally:
            runtime: Runtime | None = getattr(scope["app"].state, "runtime", None)
            if runtime is not None:
                route = getattr(scope.get("route"), "path", "none")
                runtime.metrics.http_seconds_of(route, scope["method"], status).observe(time.perf_counter() - started)
