"""How often something may be asked for, in one place for every copy of a service: PostgreSQL.

The algorithm is the generic cell rate algorithm (ITU-T I.371, "virtual scheduling"): a counter is one instant, the
theoretical arrival time of the next call; a call that comes too long before it is refused and costs nothing. A
limit of ``calls`` in ``seconds`` allows that many at once and then one each ``seconds / calls``. One statement reads
and moves the instant, so that any number of copies count together; it goes by the database's own clock, never by
a replay's. The table is unlogged: a crash of the database forgets the counts, and no call waits for a disk.
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache, cached_property, lru_cache, partial
from typing import Any, Literal, NamedTuple, Protocol
from uuid import UUID

import asyncpg
from fastapi import Depends, Request
from sqlalchemy import Column, DateTime, MetaData, Table, Text, delete, func
from starlette.types import Scope

from common.db import Database
from common.grouped import Bounds, Grouped
from common.problems import Problem
from common.requests import BearerKey
from common.service import Runtime, RuntimeOf
from common.settings import Settings

EMBEDDED_FACTOR = 1_000
"""An embedded stack plays weeks in seconds, all its agents from one address."""

_PRUNE_EVERY_SECONDS = 600
_BOUNDS = Bounds(largest=256, abreast=1, room=10_000, patience=5)


@dataclass(frozen=True)
class Limit:
    """At most ``calls`` in ``seconds`` for one address, one key or one agent. ``of`` says what is counted.

    What is left of a ``silent`` one is told by a refusal alone: agents that share an address would read each
    other's submissions off it (C8).
    """

    name: str
    by: Literal["address", "key", "agent"]
    calls: int
    seconds: int
    of: str
    silent: bool = False

    def __hash__(self) -> int:
        return hash(self.name)  # Of all that it has it would be made anew for each call that is counted.

    @cached_property
    def window(self) -> timedelta:
        """As long as all its calls at once take to be free again."""
        return timedelta(seconds=self.seconds)

    @cached_property
    def step(self) -> timedelta:
        """What one call takes of the window."""
        return self.window / self.calls

    @cached_property
    def policy(self) -> str:
        """As the ``RateLimit-Policy`` field of draft-ietf-httpapi-ratelimit-headers shows it."""
        return f'"{self.name}";q={self.calls};w={self.seconds}'


USUAL: tuple[Limit, ...] = (
    Limit("registrations", "address", 30, 3_600, "POST /api/v1/agents"),
    Limit("agent-calls", "address", 600, 60, "every call under /api/v1/agents/me"),
    Limit("new-keys", "agent", 10, 3_600, "POST /api/v1/agents/me/key, and the owner's page that does the same"),
    Limit("claim-links", "key", 10, 3_600, "POST /api/v1/agents/me/claim-link"),
    Limit("claim-pages", "address", 60, 60, "the pages under /claim"),
    Limit("sign-ins", "address", 30, 600, "attempts to sign in"),
    Limit("page-acts", "address", 60, 600, "what an owner does on the pages under /me, and signing out"),
    Limit("reviews", "agent", 40, 86_400, "an owner's requests to look at a withheld text again"),
    Limit("submissions", "key", 60, 60, "POST /api/v1/contests/{contest}/lineups"),
    Limit("submissions-by-address", "address", 600, 60, "the same, all agents of one address together", silent=True),
    Limit("checks", "key", 120, 60, "POST /api/v1/contests/{contest}/lineups/check"),
    Limit("checks-by-address", "address", 1_200, 60, "the same, all agents of one address together", silent=True),
    Limit("pool-reads", "address", 240, 60, "GET /api/v1/contests/{contest}/pool"),
    Limit("leaf-reads", "address", 60, 60, "GET /api/v1/contests/{contest}/commitment/leaves"),
)
"""Every limit that there is; an IPv6 address counts with the whole /64 that it is of."""

_RATE = re.compile(r"([1-9]\d{0,8})/([1-9]\d{0,6})")

_SHORTEST_STEP = timedelta(microseconds=10)
"""PostgreSQL's instants are microseconds: a call that took less than a few of them would not be counted right."""

_KEY = re.compile(r"mafl_sk_[0-9A-Za-z]{49}")
"""An agent's key: 43 characters for its 256 bits and 6 for their checksum."""


def limits_of(settings: Settings) -> tuple[Limit, ...]:
    """The limits in force. Raises ``ValueError`` naming a setting that is no limit, no rate or too high a rate."""
    known = {limit.name for limit in USUAL}
    if unknown := sorted(set(settings.limits) - known):
        raise ValueError(f"MAFL_LIMITS names {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    factor = settings.limits_factor or (EMBEDDED_FACTOR if settings.environment == "embedded" else 1)
    limits = []
    for limit in USUAL:
        rate = settings.limits.get(limit.name)
        if rate is None:
            limits.append(replace(limit, calls=limit.calls * factor))
        elif rate != "off":
            match = _RATE.fullmatch(rate)
            if match is None:
                raise ValueError(
                    f"MAFL_LIMITS: {limit.name} is {rate!r}; right would be 30/3600, calls/seconds, or off"
                )
            limits.append(replace(limit, calls=int(match[1]), seconds=int(match[2])))
    for limit in limits:
        if timedelta(seconds=limit.seconds) < limit.calls * _SHORTEST_STEP:
            raise ValueError(
                f"MAFL_LIMITS: {limit.name} would be {limit.calls}/{limit.seconds}; at most 100,000 calls in a second "
                "can be counted, and off counts none"
            )
    return tuple(limits)


class RateLimited(Problem):
    status = 429
    code = "rate-limited"
    title = "Too many calls"


# --- the count ----------------------------------------------------------------------------------


class _Migration(Protocol):
    def get_bind(self) -> Any: ...


_METADATA = MetaData()

_COUNTS = Table(
    "rate_limits",
    _METADATA,
    Column("subject", Text, primary_key=True),
    Column("arrival", DateTime(timezone=True), nullable=False, index=True),
    prefixes=["UNLOGGED"],
)


def create_limit_table(op: _Migration) -> None:
    """Create the table of the counts; a migration of each service that limits calls this. ``op`` is ``alembic.op``."""
    _METADATA.create_all(op.get_bind())


def drop_limit_table(op: _Migration) -> None:
    """Undo :func:`create_limit_table`."""
    _METADATA.drop_all(op.get_bind())


class Count(NamedTuple):
    """What a call found of one limit: ``remaining`` calls are left now; ``seconds`` until one is (0 where one is)."""

    limit: Limit
    admitted: bool
    remaining: int
    seconds: int

    def left(self) -> str:
        """As the ``RateLimit`` field shows it."""
        return f'"{self.limit.name}";r={self.remaining};t={self.seconds}'


_OF_LIMIT = """
INSERT INTO rate_limits AS kept (subject, arrival)
SELECT subject, now() + asked * ${2}::interval
FROM unnest(${0}::text[], ${1}::int[]) AS given (subject, asked) ORDER BY subject
ON CONFLICT (subject) DO UPDATE SET arrival = greatest(kept.arrival, now()) + (excluded.arrival - now())
WHERE greatest(kept.arrival, now()) + (excluded.arrival - now()) <= now() + ${3}::interval
RETURNING subject, arrival - now() AS ahead
"""
"""Counts so many calls of each subject, or none of them where not all are left. In one order of subjects everywhere,
so that no two groups wait for each other in a circle."""


@cache
def _count(limits: int) -> str:
    """The statement that counts under so many limits at once, four parameters each."""
    numbers = [range(first, first + 4) for first in range(1, 4 * limits + 1, 4)]
    counted = ", ".join(f"of_{number[0]} AS ({_OF_LIMIT.format(*number)})" for number in numbers)
    return f"WITH {counted} " + " UNION ALL ".join(f"TABLE of_{number[0]}" for number in numbers)


_AHEAD = "SELECT subject, arrival - now() FROM rate_limits WHERE subject = ANY($1::text[])"

Call = Sequence[tuple[Limit, str]]
"""What one call counts against: limits, each with the address, key or agent that it counts by."""


async def count_all(database: Database, calls: Sequence[Call]) -> list[list[Count]]:
    """Count calls that came at once; what was found of each limit, in order, for each call in order.

    In a transaction of its own: what is refused later counts as well, also where another of its limits refuses it.
    """
    # Neither an address nor a hash that a key could be known by is kept.
    named = [[_subject(limit, who) for limit, who in call] for call in calls]
    asked: dict[Limit, dict[str, int]] = {}
    for call, subjects in zip(calls, named, strict=True):
        for (limit, _), subject in zip(call, subjects, strict=True):
            of_limit = asked.setdefault(limit, {})
            of_limit[subject] = of_limit.get(subject, 0) + 1
    async with database.hot() as connection:
        left = await _counted(connection, asked)
    return [
        [left[subject].next(limit) for (limit, _), subject in zip(call, subjects, strict=True)]
        for call, subjects in zip(calls, named, strict=True)
    ]


@dataclass(slots=True)
class _Left:
    """How far ahead each of some calls of one subject found it, in the order in which they came, and which were let in.

    Those let in stand first: the last of them found it furthest ahead.
    """

    admitted: list[timedelta]
    refused: timedelta = timedelta()

    def next(self, limit: Limit) -> Count:
        if self.admitted:
            return _found(limit, True, self.admitted.pop(0))
        return _found(limit, False, self.refused)


async def _counted(connection: asyncpg.Connection, asked: Mapping[Limit, Mapping[str, int]]) -> dict[str, _Left]:
    """Count all calls of each subject under its limit: of one that has not all of them left, as many as it has."""

    async def counted(wanted: Mapping[Limit, Mapping[str, int]]) -> dict[str, timedelta]:
        # In one order of limits too.
        of_limits = sorted(((limit, of) for limit, of in wanted.items() if of), key=lambda pair: pair[0].name)
        if not of_limits:
            return {}
        given: list[Any] = []
        for limit, of in of_limits:
            given += list(of), list(of.values()), limit.step, limit.window
        return {row[0]: row[1] for row in await connection.fetch(_count(len(of_limits)), *given)}

    # A subject that asks for more than the whole window holds is never let in as a whole.
    found = await counted(
        {limit: {subject: many for subject, many in of.items() if many <= limit.calls} for limit, of in asked.items()}
    )
    left: dict[str, _Left] = {}
    refused: list[str] = []
    for limit, of in asked.items():
        for subject, many in of.items():
            admitted: list[timedelta] = []
            if subject in found:
                admitted = [found[subject] - limit.step * later for later in reversed(range(many))]
            elif many > 1:
                while len(admitted) < many and (ahead := await counted({limit: {subject: 1}})):
                    admitted.append(ahead[subject])
            if len(admitted) < many:
                refused.append(subject)
            left[subject] = _Left(admitted)
    if refused:
        for subject, ahead in await connection.fetch(_AHEAD, refused):
            left[subject].refused = ahead
    return left


def _subject(limit: Limit, who: str) -> str:
    return hashlib.sha256(f"{limit.name}/{who}".encode("utf-8", "replace")).hexdigest()


def _found(limit: Limit, admitted: bool, ahead: timedelta) -> Count:
    # A refusal reads the instant a moment later; what has become free since is the next call's.
    left = max(0, (limit.window - ahead) // limit.step) if admitted else 0
    wait = 0 if left else max(1, math.ceil((ahead + limit.step - limit.window).total_seconds()))
    return Count(limit, admitted, left, wait)


async def forget_old_counts(runtime: Runtime) -> None:
    """A service's task: drop the counts that have run out, which are as good as none."""
    while True:
        async with runtime.database.transaction() as connection:
            await connection.execute(delete(_COUNTS).where(_COUNTS.c.arrival < func.now()))
        await asyncio.sleep(_PRUNE_EVERY_SECONDS)


# --- routes -------------------------------------------------------------------------------------


def address_of(scope: Scope) -> str:
    """Whom a limit by address counts: the client as the server knows it; of IPv6 the /64.

    Behind the gateway the server takes it from ``X-Forwarded-For``, from the gateway's own address alone
    (uvicorn's ``--forwarded-allow-ips``); the gateway lets no client set that header.
    """
    return _counted_as(scope["client"][0] if scope.get("client") else "")


@lru_cache(maxsize=4096)
def _counted_as(host: str) -> str:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped:
            return str(address.ipv4_mapped)
        return str(ipaddress.IPv6Network((address, 64), strict=False))
    return str(address)


def _show(scope: Scope, counts: Sequence[Count]) -> RateLimited | None:
    """Have the answer to a call bear ``RateLimit-Policy`` and ``RateLimit``, whatever it is; the refusal, where due.

    A silent limit that was kept is in the former alone.
    """
    state = scope.setdefault("state", {})
    state["counts"] = [*state.get("counts", ()), *counts]
    told = [found.left() for found in state["counts"] if not (found.limit.silent and found.admitted)]
    state["ratelimit"] = [
        (b"ratelimit-policy", ", ".join([found.limit.policy for found in state["counts"]]).encode()),
        *([(b"ratelimit", ", ".join(told).encode())] if told else []),
    ]
    refused = [found for found in counts if not found.admitted]
    return _refused(max(refused, key=lambda found: found.seconds)) if refused else None


def _counter(runtime: Runtime) -> Grouped[Call, list[Count]]:
    """What counts the calls that come to one process at once together."""
    counter: Grouped[Call, list[Count]] | None = runtime.state.get("counter")
    if counter is None:
        counter = runtime.state["counter"] = Grouped(partial(count_all, runtime.database), _BOUNDS)
    return counter


async def keep(
    runtime: Runtime, request: Request, names: Sequence[str], *, key: str = "", agent: UUID | None = None
) -> None:
    """Count a call against limits; those by key or by agent only where the caller is known by one.

    The answer will bear ``RateLimit-Policy`` and, but for silent limits that were kept, ``RateLimit``, whatever it is.
    Raises ``RateLimited``.
    """
    limits: dict[str, Limit] | None = runtime.state.get("limits")
    if limits is None:
        limits = runtime.state["limits"] = {limit.name: limit for limit in limits_of(runtime.settings)}
    subjects = {"address": address_of(request.scope), "key": key, "agent": "" if agent is None else str(agent)}
    kept = [limits[name] for name in names if name in limits]
    wanted = [(limit, subjects[limit.by]) for limit in kept if subjects[limit.by]]
    if wanted:
        refusal = _show(request.scope, await _counter(runtime)(wanted))
        if refusal:
            raise refusal


def _refused(found: Count) -> RateLimited:
    limit = found.limit
    return RateLimited(
        f"The limit `{limit.name}` ({limit.of}) allows this {limit.by} {limit.calls} calls in {limit.seconds} seconds; "
        f"none is left, one will be in {found.seconds} seconds.",
        headers={"Retry-After": str(found.seconds)},
        limit={"name": limit.name, "by": limit.by, "calls": limit.calls, "seconds": limit.seconds},
        remaining=found.remaining,
        retry_after=found.seconds,
    )


def countable(key: str) -> str:
    """A key to count by, else nothing: each made-up one would leave a row behind. Its address counts."""
    return key if _KEY.fullmatch(key) else ""


def limited(*names: str) -> Any:
    """A route's dependency that keeps limits by address or key: ``dependencies=[limited("registrations")]``.

    Raises ``LookupError`` at import for a name that is no limit.
    """
    known: Mapping[str, Limit] = {limit.name: limit for limit in USUAL}
    for name in names:
        known[name]

    async def check(request: Request, runtime: RuntimeOf, key: BearerKey) -> None:
        await keep(runtime, request, names, key=countable(key))

    return Depends(check)
