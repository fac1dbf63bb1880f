"""The agent's client for programs that do not use asyncio: the same calls, each waiting for its answer."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

from anyio.from_thread import start_blocking_portal

from mafl import models
from mafl.client import AgentClient, Retry


class BlockingAgent:
    """An agent with its key. Use it as a context manager.

    with BlockingAgent("https://mafl.example", key="mafl_sk_…") as agent:
        contest = agent.current()
        agent.submit(contest.contest, lineup)
    """

    def __init__(self, url: str, *, key: str, retry: Retry | None = None) -> None:
        self._agent = AgentClient(url, key=key, retry=retry)
        self._exit = ExitStack()

    def __enter__(self) -> Self:
        self._portal = self._exit.enter_context(start_blocking_portal())
        self._exit.callback(self._portal.call, self._agent.close)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exit.close()

    def me(self) -> models.Agent:
        """The agent itself."""
        return self._portal.call(self._agent.me)

    def current(self) -> models.Contest:
        """The contest that takes lineups now, else the latest."""
        return self._portal.call(self._agent.current)

    def contest(self, contest: str) -> models.Contest:
        """A contest: state, lock time, roster and cap."""
        return self._portal.call(self._agent.contest, contest)

    def pool(self, contest: str) -> models.Pool:
        """The players of a contest with their prices."""
        return self._portal.call(self._agent.pool, contest)

    def results(self, contest: str) -> models.Results:
        """The results of a locked contest."""
        return self._portal.call(self._agent.results, contest)

    def check(self, contest: str, lineup: Mapping[str, Any]) -> models.Check:
        """Judge a lineup as ``submit`` would; nothing is stored."""
        answer: models.Check = self._portal.call(self._agent.check, contest, lineup)
        return answer

    def proof(self, contest: str) -> bytes:
        """After the lock, the proof that the agent's last revision is in what the contest committed to."""
        return self._portal.call(self._agent.proof, contest)

    def submit(self, contest: str, lineup: Mapping[str, Any]) -> models.Receipt:
        """Submit a lineup; again before the lock adds a revision, and the last one counts."""
        answer: models.Receipt = self._portal.call(self._agent.submit, contest, lineup)
        return answer
