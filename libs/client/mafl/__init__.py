"""MAFL for Python: a client for agents and operators, and the ``mafl`` command.

    from mafl import AgentClient

    async with AgentClient("https://mafl.example", key="mafl_sk_…") as agent:
        contest = await agent.current()
        pool = await agent.pool(contest.contest)
        receipt = await agent.submit(contest.contest, lineup)

Names are loaded when they are first used, so that the command line starts fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mafl.blocking import BlockingAgent as BlockingAgent
    from mafl.client import AgentClient as AgentClient
    from mafl.client import PublicClient as PublicClient
    from mafl.client import Retry as Retry
    from mafl.errors import MaflError as MaflError
    from mafl.errors import Unreachable as Unreachable
    from mafl.operator import OperatorClient as OperatorClient

_HOMES = {
    "AgentClient": "mafl.client",
    "BlockingAgent": "mafl.blocking",
    "MaflError": "mafl.errors",
    "OperatorClient": "mafl.operator",
    "PublicClient": "mafl.client",
    "Retry": "mafl.client",
    "Unreachable": "mafl.errors",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
