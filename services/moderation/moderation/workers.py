"""The processes that judge: as many as a backlog needs, none where nothing waits, and one lost is one text's matter.

A text can hang or end the process that judges it (a pattern that backtracks without end in C, a fault in a
library, memory); no thread can be called back from that. So each text is judged in a process of its own kind, a
copy of a template with all detectors loaded (:mod:`moderation.template`), which is killed over a text that takes too
long and replaced in milliseconds. Which text it was, the order of the answers tells. That text is tried once more,
alone and by a fresh process, and is set aside if that is lost too. The event loop waits for sockets alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import multiprocessing
import os
import signal
import socket
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any, Literal, Self

from common.events import State
from common.logs import logger
from common.metrics import Metrics
from moderation import worker
from moderation.domain import Cause, Finding, Trouble, Verdict
from moderation.settings import JudgingSettings

JOBS_FOR_ANOTHER = 64
"""Jobs that wait for each worker before there is one more of them."""

_LARGEST_CHUNK = 32
_LONGEST_MESSAGE = 64 << 20
_PATIENCE = 60.0
"""Seconds for a worker to say that it is there; the first one waits for the template to be loaded."""
_STARTS = 4
_GRACE = 0.25
_QUIET = 1.0
_SOON = 0.5
"""Seconds in which a text is judged, unless something is wrong with it or the machine has no time."""
_MOST_LATE = 1_000
_TIMES_AS_LONG = 5
"""Times the seconds for a text that one gets whose process has not had ``_SHARE`` of them on a processor."""
_SHARE = 0.5
_STUCK = 2.0
"""Seconds after which a process is taken to be stuck, though it has not had a processor for much of them."""

_FORKS = multiprocessing.get_context("forkserver")


@dataclass(frozen=True)
class Job:
    """Words to be judged: a text or an agent's name with the players' names that pass in it, or a model's label."""

    text: str
    kind: Literal["text", "label"] = "text"
    names: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Outcome:
    """What came of a job, by which version of the pipeline. Where there are ``troubles`` not all of it judged."""

    verdict: Verdict
    pipeline: str
    troubles: tuple[Trouble, ...] = ()


class WorkersDoNotStart(Exception):
    """No process that judges comes up: nothing is judged, and no text is to blame."""


class CannotBeBuilt(WorkersDoNotStart):
    """The pipeline that the settings name cannot be built."""


@dataclass(eq=False)
class _Task:
    job: Job
    future: asyncio.Future[Outcome]
    suspect: bool = False
    started: bool = False
    waiting: int = 0
    """How many calls wait for it."""


class Workers:
    """Use it as a context; its end kills what still runs, for nothing is written there."""

    def __init__(self, settings: JudgingSettings, metrics: Metrics) -> None:
        self._settings = settings
        self._metrics = metrics
        self._queue: deque[_Task] = deque()
        self._tasks: dict[Job, _Task] = {}
        self._late: dict[Job, Outcome] = {}
        self._more = asyncio.Event()
        self._slots: dict[int, asyncio.Task[None]] = {}
        self._numbers = itertools.count()
        self._ending: set[asyncio.Task[None]] = set()
        self._hired: set[_Hired] = set()
        self._version = ""
        self._stuck = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        running = [*self._slots.values(), *self._ending]
        for slot in running:
            slot.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def judge(self, jobs: Iterable[Job], seconds: float) -> Mapping[Job, Outcome]:
        """What came of the jobs in so many seconds, or until the rest of them hangs. Raises ``WorkersDoNotStart``.

        A job without an outcome goes on where it was begun: ask for it again. Jobs are begun in order.
        """
        tasks = {job: self._wanted(job) for job in dict.fromkeys(jobs) if job not in self._late}
        wanted = [job for job in jobs if job in self._late]
        outcomes = {job: self._late.pop(job) for job in dict.fromkeys(wanted)}
        for task in tasks.values():
            task.waiting += 1
        self._staff()
        try:
            await self._patiently([task.future for task in tasks.values()], seconds, enough=bool(outcomes))
        finally:
            for task in tasks.values():
                task.waiting -= 1
                if not task.waiting and not task.started and not task.future.done():
                    self._forget(task)
        done = {job: task.future for job, task in tasks.items() if task.future.done()}
        for error in [future.exception() for future in done.values()]:
            if error is not None:
                raise error
        return outcomes | {job: future.result() for job, future in done.items()}

    async def version(self) -> str:
        """The pipeline's version, as a worker says it. Raises ``WorkersDoNotStart``."""
        job = Job("")
        while not self._version:
            await self.judge([job], _PATIENCE)
        return self._version

    @staticmethod
    async def _patiently(futures: Sequence[asyncio.Future[Outcome]], seconds: float, *, enough: bool) -> None:
        """Wait until all are done, or nothing more has come for a while, or the time is over."""
        deadline = asyncio.get_running_loop().time() + seconds
        left: set[asyncio.Future[Outcome]] = set(futures)
        while left and (patience := deadline - asyncio.get_running_loop().time()) > 0:
            before = len(left)
            _, left = await asyncio.wait(left, timeout=min(_QUIET, patience))
            if len(left) == before and enough:
                return
            enough = enough or len(left) < before

    def _wanted(self, job: Job) -> _Task:
        task = self._tasks.get(job)
        if task is None:
            task = self._tasks[job] = _Task(job, asyncio.get_running_loop().create_future())
            self._queue.append(task)
        return task

    def _forget(self, task: _Task) -> None:
        del self._tasks[task.job]
        with contextlib.suppress(ValueError):
            self._queue.remove(task)

    def _staff(self) -> None:
        """Let there be as many workers as what waits is worth."""
        if not self._queue:
            return
        self._more.set()
        most = self._settings.workers
        # Who is stuck is of no use to the others; how many can be stuck at once has an end, too.
        wanted = min(most, 1 + len(self._queue) // JOBS_FOR_ANOTHER) + min(most, self._stuck)
        while len(self._slots) < wanted:
            number = next(self._numbers)
            self._slots[number] = slot = asyncio.create_task(self._work(number), name="judge")
            slot.add_done_callback(self._ending.discard)

    async def _work(self, number: int) -> None:
        """One worker after another, as long as there is work."""
        hired: _Hired | None = None
        chunk: list[_Task] = []
        try:
            while chunk := await self._take():
                alone = chunk[0].suspect
                if hired is not None and (hired.spent or (alone and hired.used)):
                    await self._let_go(hired)
                    hired = None
                if hired is None:
                    hired = await self._hire()
                if not await self._judged(hired, chunk, alone):
                    hired = None
        except Exception as error:
            self._fail(error, chunk)
        finally:
            # Whoever comes from here on is no longer this one's, though its end takes a moment.
            self._ending.add(self._slots.pop(number))
            if hired is not None:
                await self._let_go(hired)

    async def _take(self) -> list[_Task]:
        """The next jobs for one worker, all with the same names; none where nothing has come for long, or where there
        are workers too many: one that was stuck is of use again."""
        if len(self._slots) > self._settings.workers + self._stuck:
            return []
        try:
            async with asyncio.timeout(self._settings.worker_idle_seconds):
                while not self._queue:
                    self._more.clear()
                    await self._more.wait()
        except TimeoutError:
            if not self._queue:
                return []
        # What is left at the end is dealt out in small parts, or one would work while the others look on.
        most = max(1, min(_LARGEST_CHUNK, len(self._queue) // (2 * max(1, len(self._slots)))))
        chunk = [self._queue.popleft()]
        while len(chunk) < most and self._queue and not chunk[0].suspect:
            coming = self._queue[0]
            if coming.suspect or coming.job.names != chunk[0].job.names:
                break
            chunk.append(self._queue.popleft())
        for task in chunk:
            task.started = True
        return chunk

    async def _hire(self) -> _Hired:
        for left in reversed(range(_STARTS)):
            try:
                hired = await _Hired.start(self._settings)
                break
            except WorkersDoNotStart as error:
                # One can be killed from outside before it has said a word; what it says itself is believed at once.
                if isinstance(error, CannotBeBuilt) or not left:
                    raise
                logger.warning("a process that judges did not come up; there will be another", error=str(error))
        self._hired.add(hired)
        self._version = hired.version
        self._metrics.moderation_workers.set(len(self._hired))
        self._metrics.moderation_workers_started.inc()
        return hired

    async def _let_go(self, hired: _Hired) -> str:
        self._hired.discard(hired)
        self._metrics.moderation_workers.set(len(self._hired))
        return await hired.end()

    async def _judged(self, hired: _Hired, chunk: list[_Task], alone: bool) -> bool:
        """Have a worker judge; whether it is still there."""
        at: str | None = None
        done = 0
        try:
            await hired.ask([task.job for task in chunk], careful=alone)
            while done < len(chunk):
                answer = await self._answer(hired, chunk, done)
                at = answer.get("at", at)
                if "at" not in answer:
                    self._answered(hired, chunk[done], answer)
                    done += 1
        except (TimeoutError, EOFError, ValueError, KeyError, TypeError) as error:
            # What is no answer at all comes of a process that a text has got the better of.
            cause = Cause.TOO_SLOW if isinstance(error, TimeoutError) else Cause.DIED
            ended = await self._let_go(hired)
            blamed, rest = chunk[done], chunk[done + 1 :]
            said = f"longer than {self._settings.text_seconds:g} s" if cause is Cause.TOO_SLOW else ended
            self._metrics.moderation_workers_lost.labels(cause.value).inc()
            logger.warning(
                "a process that judges was lost over a text", cause=cause.value, error=said, tried_alone=alone
            )
            self._put_back(rest)
            if alone:
                trouble = Trouble(cause, at, said)
                self._settle(blamed, Outcome(Verdict(State.UNCHECKED), hired.version, (trouble,)))
            else:
                self._suspect(blamed)
            return False
        return True

    async def _answer(self, hired: _Hired, chunk: list[_Task], done: int) -> dict[str, Any]:
        """A worker's next message. Where it does not come soon others get what was to come after this text.

        Raises ``TimeoutError``, ``EOFError``.
        """
        limit = self._settings.text_seconds
        soon = min(_SOON, limit)
        with contextlib.suppress(TimeoutError):
            return await hired.answer(soon)
        clock = asyncio.get_running_loop().time
        since, begun, stuck = clock() - soon, hired.processor_time(), False
        try:
            while True:
                waited, now = clock() - since, hired.processor_time()
                # On a busy machine it may hardly have had a processor: then the text is not what is slow.
                used = waited if begun is None or now is None else now - begun
                if not stuck and (used >= _SHARE * soon or waited >= _STUCK):
                    stuck = True
                    self._stuck += 1
                    if rest := chunk[done + 1 :]:
                        # It will judge them too; nobody listens.
                        del chunk[done + 1 :]
                        hired.spent = True
                        self._put_back(rest)
                    self._staff()
                if waited >= limit and (used >= _SHARE * limit or waited >= _TIMES_AS_LONG * limit):
                    raise TimeoutError
                with contextlib.suppress(TimeoutError):
                    return await hired.answer(soon)
        finally:
            self._stuck -= stuck

    def _put_back(self, tasks: Sequence[_Task]) -> None:
        for task in reversed(tasks):
            task.started = False
            self._queue.appendleft(task)

    def _answered(self, hired: _Hired, task: _Task, answer: Mapping[str, Any]) -> None:
        if any(error == "MemoryError" for _, error in answer["failed"]):
            # What earlier texts have left behind may have been too much, too.
            hired.spent = True
            if not task.suspect:
                self._suspect(task)
                return
        verdict = Verdict(State(answer["state"]), tuple(Finding(*finding) for finding in answer["findings"]))
        troubles = tuple(Trouble(Cause.RAISED, detector, error) for detector, error in answer["failed"])
        self._settle(task, Outcome(verdict, hired.version, troubles))

    def _suspect(self, task: _Task) -> None:
        task.suspect = True
        self._queue.append(task)
        self._more.set()

    def _settle(self, task: _Task, outcome: Outcome) -> None:
        self._tasks.pop(task.job, None)
        if not task.future.done():
            task.future.set_result(outcome)
        if not task.waiting:
            self._late[task.job] = outcome
            while len(self._late) > _MOST_LATE:
                del self._late[next(iter(self._late))]

    def _fail(self, error: Exception, chunk: Sequence[_Task]) -> None:
        """Tell everybody whose job nobody takes; jobs that another worker has go on."""
        for task in (*chunk, *self._queue):
            self._tasks.pop(task.job, None)
            if not task.future.done():
                task.future.set_exception(error)
                if not task.waiting:
                    task.future.exception()  # nobody asks any more
        self._queue.clear()


@dataclass(eq=False)
class _Hired:
    """A worker from this side."""

    process: BaseProcess
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    life: Connection
    """It ends when this is closed, whatever it does then; so it does when this process dies."""
    version: str = ""
    names: frozenset[str] = frozenset()
    used: bool = False
    spent: bool = False
    _end: asyncio.Task[str] | None = field(default=None, repr=False)

    @classmethod
    async def start(cls, settings: JudgingSettings) -> _Hired:
        """A worker that has its detectors. Raises ``WorkersDoNotStart``."""
        ours, theirs = socket.socketpair()
        its_life, life = _FORKS.Pipe(duplex=False)
        arguments = (theirs, its_life, settings.pipeline, settings.text_seconds, settings.worker_memory)
        process = _FORKS.Process(target=worker.serve, args=arguments, daemon=True, name="judge")
        try:
            # The first one waits until the template is loaded.
            await asyncio.to_thread(_start, process, theirs, its_life)
            reader, writer = await asyncio.open_unix_connection(sock=ours, limit=_LONGEST_MESSAGE)
        except BaseException as error:
            # Which ends it, should it still come up.
            ours.close()
            life.close()
            if isinstance(error, OSError | EOFError):
                raise WorkersDoNotStart(f"{type(error).__name__}: {error}") from error
            raise
        hired = cls(process, reader, writer, life)
        try:
            said = await hired.answer(_PATIENCE)
        except (TimeoutError, EOFError) as error:
            ended = await hired.end()
            why = f"it said nothing in {_PATIENCE:g} s" if isinstance(error, TimeoutError) else ended
            raise WorkersDoNotStart(f"a process that judges did not come up: {why}") from error
        except BaseException:
            await hired.end()
            raise
        if "error" in said:
            await hired.end()
            raise CannotBeBuilt(f"the pipeline {settings.pipeline} cannot be built: {said['error']}")
        hired.version = said["version"]
        return hired

    async def ask(self, jobs: Sequence[Job], *, careful: bool) -> None:
        """Give it jobs with the same names. Raises ``EOFError``."""
        message: dict[str, Any] = {"jobs": [[job.kind, job.text] for job in jobs], "careful": careful}
        if self.names != jobs[0].names:
            self.names = jobs[0].names
            message["names"] = sorted(self.names)
        self.used = True
        self.writer.write(json.dumps(message).encode() + b"\n")
        # Not drained: it reads the whole of it before it answers.

    async def answer(self, seconds: float) -> dict[str, Any]:
        """Its next message. Raises ``TimeoutError``, or ``EOFError`` where it is gone."""
        try:
            async with asyncio.timeout(seconds):
                line = await self._line()
        except TimeoutError:
            # Where this process was held up itself the answer may lie there, and has not been looked at.
            async with asyncio.timeout(_GRACE):
                line = await self._line()
        if not line.endswith(b"\n"):
            raise EOFError
        message: dict[str, Any] = json.loads(line)
        return message

    def processor_time(self) -> float | None:
        """Seconds that it has been on a processor, where the system tells."""
        try:
            with open(f"/proc/{self.process.pid}/stat", "rb") as stat:
                fields = stat.read().rpartition(b")")[2].split()
        except OSError:
            return None
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    async def _line(self) -> bytes:
        try:
            return await self.reader.readline()
        except ConnectionError as error:
            raise EOFError from error

    async def end(self) -> str:
        """Kill it; what it had ended with before, in words. Goes through where the caller is cancelled meanwhile."""
        if self._end is None:
            self._end = asyncio.create_task(self._ended())
        return await asyncio.shield(self._end)

    async def _ended(self) -> str:
        self.writer.close()
        # A process that ended by itself is given a moment to be known as such: how it ended tells what was wrong.
        if self.reader.at_eof():
            await asyncio.to_thread(self.process.join, 1.0)
        self.life.close()
        self.process.kill()
        await asyncio.to_thread(self.process.join, 5.0)
        code = self.process.exitcode
        if code is None:
            return "does not end"
        self.process.close()
        return f"ended by {_signal(-code)}" if code < 0 else f"ended with exit code {code}"


def _start(process: BaseProcess, theirs: socket.socket, its_life: Connection) -> None:
    # Here and not by the caller, who may be cancelled while the numbers of these are being handed on.
    with theirs, its_life:
        process.start()


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


_FORKS.set_forkserver_preload(["moderation.template"])
