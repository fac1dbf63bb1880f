"""A process that judges texts and does nothing else: :mod:`moderation.workers` starts it and speaks to it.

Both sides write JSON, one message a line: nothing that a text could make of this process is ever run by the
service. What comes in is ``{"jobs": [["text" or "label", words], …], "careful": bool}``, with ``"names"`` where
players' names are other ones than before. What goes out is first ``{"version": …}``, or ``{"error": …}`` where the
pipeline cannot be built, and then one answer for each job in its order::

    {"state": …, "findings": [[detector, version, rule, start, end], …], "failed": [[detector, error], …]}

A ``careful`` worker says ``{"at": detector}`` before it turns to each detector, so that the service knows over
which one it was lost.

The service kills it over a text that takes too long. Should the service be gone, the kernel ends it: by a signal when
the other end of ``life`` closes, whatever it does then; nothing else ever happens there. An alarm is the last resort.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
import signal
import socket
from collections.abc import Iterable, Sequence
from importlib import import_module
from multiprocessing.connection import Connection
from typing import IO, Any, cast

from moderation.pipeline import Context, Detector, Match, Pipeline
from moderation.settings import OUR_PIPELINE

NICE = 5
"""Intake comes first on a machine that both share."""

_LATE = 10
"""Times the seconds for a text after which a worker that nobody has killed ends itself."""

_MIB = 1 << 20


def serve(channel: socket.socket, life: Connection, loader: str, seconds: float, memory: int) -> None:
    """Judge what comes in until the connection ends. ``seconds`` for a text, ``memory`` in MiB beyond the present."""
    _bind(life)
    with channel, contextlib.suppress(BrokenPipeError, ConnectionResetError):
        stream = cast("IO[bytes]", channel.makefile("rwb"))
        try:
            pipeline = _load(loader)
        except BaseException as error:
            _say(stream, {"error": f"{type(error).__name__}: {error}"[:1000]})
            return
        _limit(memory)
        _say(stream, {"version": pipeline.version})
        context = Context()
        for line in stream:
            asked = json.loads(line)
            if "names" in asked:
                context = Context(names=frozenset(asked["names"]))
            judging = _announcing(pipeline, stream) if asked["careful"] else pipeline
            for kind, text in asked["jobs"]:
                signal.setitimer(signal.ITIMER_REAL, _LATE * seconds)
                answer = _judge(judging, kind, text, context)
                signal.setitimer(signal.ITIMER_REAL, 0)
                _say(stream, answer)


def _judge(pipeline: Pipeline, kind: str, text: str, context: Context) -> dict[str, Any]:
    failed: list[tuple[str, str]] = []

    def note(detector: Detector, error: Exception) -> None:
        # Never what the error says: it may say the text.
        failed.append((detector.name, type(error).__name__))

    try:
        verdict = pipeline.judge_label(text, note) if kind == "label" else pipeline.judge(text, context, note)
    except BaseException as error:  # SystemExit too: whatever it is, it is this text's, and the next one is judged
        return {"state": "unchecked", "findings": [], "failed": [*failed, ["pipeline", type(error).__name__]]}
    findings = [[found.detector, found.version, found.rule, found.start, found.end] for found in verdict.findings]
    return {"state": verdict.state.value, "findings": findings, "failed": failed}


def _announcing(pipeline: Pipeline, stream: IO[bytes]) -> Pipeline:
    announced: Sequence[Any] = [_Announced(detector, stream) for detector in pipeline.detectors]
    return Pipeline(announced)


class _Announced:
    """A detector that says that it begins; all else of it is the detector's own."""

    def __init__(self, detector: Detector, stream: IO[bytes]) -> None:
        self._detector = detector
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._detector, name)

    def judge(self, text: str, context: Context) -> Iterable[Match]:
        _say(self._stream, {"at": self._detector.name})
        return self._detector.judge(text, context)


def _say(stream: IO[bytes], message: dict[str, Any]) -> None:
    stream.write(json.dumps(message).encode() + b"\n")
    stream.flush()


def _load(loader: str) -> Pipeline:
    """The pipeline. Raises whatever its loader raises."""
    if loader == OUR_PIPELINE:
        from moderation import template

        if template.PIPELINE is not None:
            return template.PIPELINE
    module, _, function = loader.partition(":")
    pipeline: Pipeline = getattr(import_module(module), function)()
    return pipeline


def _bind(life: Connection) -> None:
    """End with the service, and neither by Ctrl-C nor with a picture of the texts left on the disk."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for deadly in (signal.SIGALRM, signal.SIGIO):
        signal.signal(deadly, signal.SIG_DFL)
    fcntl.fcntl(life, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)
    if life.poll():
        os._exit(0)  # closed before the signal was asked for
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):
        os.nice(NICE)


def _limit(memory: int) -> None:
    """Let allocations fail beyond so many MiB more than now; only where the kernel says what there is now."""
    with contextlib.suppress(OSError, ValueError):
        with open("/proc/self/status", encoding="ascii") as lines:
            sizes = {name: value for name, _, value in (line.partition(":") for line in lines)}
        most = int(sizes["VmData"].split()[0]) * 1024 + memory * _MIB
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
