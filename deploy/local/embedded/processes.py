"""What the stack runs beside PostgreSQL, NATS and Caddy: the deployment map.

Each entry becomes one process with its own log. A service gets a database and a NATS user of its own name;
a worker has neither address nor database.
"""

from __future__ import annotations

from dataclasses import dataclass

from embedded.nats import ADMIN


@dataclass(frozen=True)
class Service:
    """An ASGI application behind the gateway. ``app`` is the factory, as ``module:function``."""

    name: str
    app: str


@dataclass(frozen=True)
class Worker:
    """A Python module that runs beside the services, as the NATS user ``user``."""

    name: str
    module: str
    arguments: tuple[str, ...] = ()
    user: str = ADMIN


@dataclass(frozen=True)
class Deployment:
    """All processes of a stack."""

    workers: tuple[Worker, ...]
    services: tuple[Service, ...]


DEPLOYMENT = Deployment(
    workers=(Worker("provisioner", "common.provision", ("--watch",)),),
    services=(
        Service("registry", "registry.main:app"),
        Service("contests", "contests.main:app"),
        Service("moderation", "moderation.main:app"),
        Service("settlement", "settlement.main:app"),
        Service("boards", "boards.main:app"),
    ),
)
