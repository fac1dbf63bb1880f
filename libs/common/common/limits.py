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
from functools import cache
from typing import Any, Literal, Protocol
from uuid import UUID

from fastapi import Depends, Request
from sqlalchemy import Column, DateTime, MetaData, Table, Text, bindparam, case, delete, func, select
from sqlalchemy.dialects.postgresql import INTERVAL, insert

from common.db import Database
from common.problems import Problem
from common.requests import BearerKey
from common.service import Runtime, RuntimeOf
from common.settings import Settings

EMBEDDED_FACTOR = 1_000
"""An embedded stack plays weeks in seconds, all its agents from one address."""

_PRUNE_EVERY_SECONDS = 600


@dataclass(frozen=True)
class Limit:
    """At most ``calls`` in ``seconds`` for one address, one key or one agent. ``of`` says what is counted."""

    name: str
    by: Literal["address", "key", "agent"]
    calls: int
    seconds: int
    of: str


USUAL: tuple[Limit, ...] = (
    Limit("registrations", "address", 30, 3_600, "POST /api/v1/agents"),
    Limit("agent-calls", "address", 600, 60, "every call under /api/v1/agents/me"),
    Limit("new-keys", "agent", 10, 3_600, "POST /api/v1/agents/me/key, and the owner's page that does the same"),
    Limit("claim-links", "key", 10, 3_600, "POST /api/v1/agents/me/claim-link"),
    Limit("claim-pages", "address", 60, 60, "the pages under /claim"),
    Limit("sign-ins", "address", 30, 600, "attempts to sign in"),
    Limit("page-acts", "address", 60, 600, "what an owner does on the pages under /me, and signing out"),
    Limit("submissions", "key", 60, 60, "POST /api/v1/contests/{contest}/lineups"),
    Limit("submissions-by-address", "address", 600, 60, "the same, all agents of one address together"),
    Limit("checks", "key", 120, 60, "POST /api/v1/contests/{contest}/lineups/check"),
    Limit("checks-by-address", "address", 1_200, 60, "the same, all agents of one address together"),
    Limit("pool-reads", "address", 240, 60, "GET /api/v1/contests/{contest}/pool"),
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


@dataclass(frozen=True)
class Count:
    """What a call found of one limit: ``remaining`` calls are left now; ``seconds`` until one is (0 where one is)."""

    limit: Limit
    admitted: bool
    remaining: int
    seconds: int

    def policy(self) -> str:
        """As the ``RateLimit-Policy`` field of draft-ietf-httpapi-ratelimit-headers shows it."""
        return f'"{self.limit.name}";q={self.limit.calls};w={self.limit.seconds}'

    def left(self) -> str:
        """As the ``RateLimit`` field shows it."""
        return f'"{self.limit.name}";r={self.remaining};t={self.seconds}'


@cache
def _insert(many: int) -> Any:
    places = range(many)
    statement = insert(_COUNTS).values(
        [
            {
                "subject": bindparam(f"subject_{place}", type_=Text),
                "arrival": func.now() + bindparam(f"step_{place}", type_=INTERVAL),
            }
            for place in places
        ]
    )
    step = statement.excluded.arrival - func.now()
    arrival = func.greatest(_COUNTS.c.arrival, func.now()) + step
    window = case(
        *(
            (
                _COUNTS.c.subject == bindparam(f"subject_{place}", type_=Text),
                bindparam(f"window_{place}", type_=INTERVAL),
            )
            for place in places
        )
    )
    return statement.on_conflict_do_update(
        index_elements=[_COUNTS.c.subject], set_={"arrival": arrival}, where=arrival <= func.now() + window
    ).returning(_COUNTS.c.subject, _COUNTS.c.arrival - func.now())


_SELECT = select(_COUNTS.c.subject, _COUNTS.c.arrival - func.now())


async def count(database: Database, wanted: Sequence[tuple[Limit, str]]) -> list[Count]:
    """Count one call against limits, each of an address or a key; what was found of each, in order.

    In a transaction of its own: what is refused later counts as well, also where another of these limits refuses it.
    """
    # Neither an address nor a hash that a key could be known by is kept.
    hashed = [
        hashlib.sha256(f"{limit.name}/{subject}".encode("utf-8", "replace")).hexdigest() for limit, subject in wanted
    ]
    values: dict[str, Any] = {}
    # In one order everywhere, so that no two calls wait for each other in a circle.
    for place, (subject, (limit, _)) in enumerate(sorted(zip(hashed, wanted, strict=True), key=lambda pair: pair[0])):
        window = timedelta(seconds=limit.seconds)
        values |= {f"subject_{place}": subject, f"step_{place}": window / limit.calls, f"window_{place}": window}
    async with database.engine.connect() as plain:
        connection = await plain.execution_options(isolation_level="AUTOCOMMIT")
        admitted = {row[0]: row[1] for row in await connection.execute(_insert(len(wanted)), values)}
        refused = [subject for subject in hashed if subject not in admitted]
        waiting: dict[str, timedelta] = {}
        if refused:
            rows = await connection.execute(_SELECT.where(_COUNTS.c.subject.in_(refused)))
            waiting = {row[0]: row[1] for row in rows}
    return [
        _found(limit, subject in admitted, admitted.get(subject, waiting.get(subject, timedelta())))
        for subject, (limit, _) in zip(hashed, wanted, strict=True)
    ]


def _found(limit: Limit, admitted: bool, ahead: timedelta) -> Count:
    window = timedelta(seconds=limit.seconds)
    step = window / limit.calls
    # A refusal reads the instant a moment later; what has become free since is the next call's.
    left = max(0, (window - ahead) // step) if admitted else 0
    wait = 0 if left else max(1, math.ceil((ahead + step - window).total_seconds()))
    return Count(limit, admitted, left, wait)


async def forget_old_counts(runtime: Runtime) -> None:
    """A service's task: drop the counts that have run out, which are as good as none."""
    while True:
        async with runtime.database.transaction() as connection:
            await connection.execute(delete(_COUNTS).where(_COUNTS.c.arrival < func.now()))
        await asyncio.sleep(_PRUNE_EVERY_SECONDS)


# --- routes -------------------------------------------------------------------------------------


def address_of(request: Request) -> str:
    """Whom a limit by address counts: the client as the server knows it; of IPv6 the /64.

    Behind the gateway the server takes it from ``X-Forwarded-For``, from the gateway's own address alone
    (uvicorn's ``--forwarded-allow-ips``); the gateway lets no client set that header.
    """
    host = request.client.host if request.client else ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped:
            return str(address.ipv4_mapped)
        return str(ipaddress.IPv6Network((address, 64), strict=False))
    return str(address)


async def keep(
    runtime: Runtime, request: Request, names: Sequence[str], *, key: str = "", agent: UUID | None = None
) -> None:
    """Count a call against limits; those by key or by agent only where the caller is known by one.

    The answer will bear ``RateLimit`` and ``RateLimit-Policy``, whatever it is. Raises ``RateLimited``.
    """
    limits = {limit.name: limit for limit in limits_of(runtime.settings)}
    subjects = {"address": address_of(request), "key": key, "agent": "" if agent is None else str(agent)}
    kept = [limits[name] for name in names if name in limits]
    wanted = [(limit, subjects[limit.by]) for limit in kept if subjects[limit.by]]
    if not wanted:
        return
    counts = await count(runtime.database, wanted)
    state = request.scope.setdefault("state", {})
    state["counts"] = [*state.get("counts", ()), *counts]
    state["ratelimit"] = [
        (b"ratelimit-policy", ", ".join(found.policy() for found in state["counts"]).encode()),
        (b"ratelimit", ", ".join(found.left() for found in state["counts"]).encode()),
    ]
    refused = [found for found in counts if not found.admitted]
    if refused:
        raise _refused(max(refused, key=lambda found: found.seconds))


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


def limited(*names: str) -> Any:
    """A route's dependency that keeps limits by address or key: ``dependencies=[limited("registrations")]``.

    Raises ``LookupError`` at import for a name that is no limit.
    """
    known: Mapping[str, Limit] = {limit.name: limit for limit in USUAL}
    for name in names:
        known[name]

    async def check(request: Request, runtime: RuntimeOf, key: BearerKey) -> None:
        # What no key can be is not counted by: each made-up one would leave a row behind. Its address counts.
        await keep(runtime, request, names, key=key if _KEY.fullmatch(key) else "")

    return Depends(check)
