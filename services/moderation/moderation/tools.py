"""The pipeline without a server: what ``mafl moderation check`` runs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from moderation import detectors
from moderation.pipeline import Context, Detector


def check_lines(lines: Iterable[str], *, names: Iterable[str] = ()) -> Iterator[dict[str, Any]]:
    """Judge JSON lines ``{"text": …}``, one answer a line, in order and one at a time; empty lines are passed over.

    An answer is ``{"state", "findings": [{"detector", "rule", "span"}]}``; ``span`` is ``[start, end]`` in code
    points of the text. A line that is not such JSON is ``unchecked`` and has an ``error``. ``names`` are
    players' names, which pass as names.
    """
    pipeline = detectors.load()
    context = Context(names=frozenset(names))
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            given = json.loads(line)
            text = given["text"]
            if not isinstance(text, str):
                raise TypeError
        except (ValueError, KeyError, TypeError, RecursionError):
            yield _unchecked(f'line {number} is not JSON of the form {{"text": "…"}}')
            continue
        failed: list[str] = []
        verdict = pipeline.judge(text, context, _note(failed))
        answer: dict[str, Any] = {
            "state": verdict.state.value,
            "findings": [
                {"detector": found.detector, "rule": found.rule, "span": [found.start, found.end]}
                for found in verdict.findings
            ],
        }
        if failed:
            answer["error"] = f"could not judge: {', '.join(failed)}"
        yield answer


def _unchecked(error: str) -> dict[str, Any]:
    return {"state": "unchecked", "findings": [], "error": error}


def _note(failed: list[str]) -> Any:
    def note(detector: Detector, error: Exception) -> None:
        failed.append(detector.name)

    return note
