"""The interval draw beside scipy.stats.bootstrap: ``./run bench intervals``.

    ./run bench intervals [--rounds 3] [--rows 20000] [--json]

Each row has 18 weeks and 2,000 resamples of whole weeks. The peer is called once a row, as each row has its own draw:
percentile method, vectorised statistic, sums and counts resampled together, NumPy's new generator, which is how it is
fastest; a part of the rows is enough to know its time for one. ``scipy_shared`` gives it a hundred rows at once, which
all get the same resamples: that is another thing than the specification asks for. Ours is timed with all rows at once,
on all cores, and in parts so small that they stay on one.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from measuring import machine, median, peer, say

from boards.draw import RESAMPLES, Series, intervals

WEEKS = 18
PEERS_ROWS = 200
SHARED = 100
ONE_CORE = 100
"""Rows in one call that are too few to be shared out among threads."""

TARGETS = {"scipy": 40, "scipy_one_core": 20}
"""The ratios that DESIGN.md sets."""


def rows(count: int) -> list[Series]:
    """Rows as boards have them, the same at each call: hundredths of points of 1 to 40 lineups a week."""
    made = []
    for number in range(count):
        label = f"agent:{number}"
        noise = hashlib.shake_128(label.encode()).digest(2 * WEEKS)
        counts = tuple(1 + value % 40 for value in noise[:WEEKS])
        sums = tuple(many * (8_000 + 40 * value) for many, value in zip(counts, noise[WEEKS:], strict=True))
        made.append(Series(label, sums, counts))
    return made


def mean(sums: Any, counts: Any, axis: int = -1) -> Any:
    """The statistic of a row: points of a lineup."""
    return sums.sum(axis=axis) / counts.sum(axis=axis)


def main(given: argparse.Namespace) -> tuple[dict[str, Any], Callable[[dict[str, Any]], None]]:
    """Measure ``given.rounds`` times in turn; the result, and how it is shown."""
    bootstrap = peer("scipy.stats").bootstrap
    drawn = rows(given.rows)
    sums = np.array([row.sums for row in drawn[:PEERS_ROWS]], dtype=float)
    counts = np.array([row.counts for row in drawn[:PEERS_ROWS]], dtype=float)

    def theirs(first: int, last: int) -> Any:
        one = last - first == 1
        data = (sums[first], counts[first]) if one else (sums[first:last], counts[first:last])
        how = {"paired": True, "vectorized": True, "method": "percentile", "axis": -1, "n_resamples": RESAMPLES}
        return bootstrap(data, mean, rng=np.random.default_rng(first), **how).confidence_interval

    at_once = intervals(drawn[:ONE_CORE])  # compiled now
    _agree(at_once, [theirs(at, at + 1) for at in range(min(ONE_CORE, len(sums)))])
    took: dict[str, list[float]] = {"ours": [], "ours_one_core": [], "scipy": [], "scipy_shared": []}
    for number in range(given.rounds):
        for name, (work, of) in {
            "ours": (lambda: intervals(drawn), len(drawn)),
            "ours_one_core": (
                lambda: [intervals(drawn[at : at + ONE_CORE]) for at in range(0, len(drawn), ONE_CORE)],
                len(drawn),
            ),
            "scipy": (lambda: [theirs(at, at + 1) for at in range(len(sums))], len(sums)),
            "scipy_shared": (
                lambda: [theirs(at, min(at + SHARED, len(sums))) for at in range(0, len(sums), SHARED)],
                len(sums),
            ),
        }.items():
            begun = time.perf_counter()
            work()
            took[name].append((time.perf_counter() - begun) * len(drawn) / of)
        say(f"round {number + 1}  " + "   ".join(f"{name} {of[-1]:.2f} s" for name, of in took.items()))

    def ratio(peers: str, ours: str) -> float:
        return median(b / a for a, b in zip(took[ours], took[peers], strict=True))

    document = {
        "name": "intervals",
        "ratios": {
            "scipy": ratio("scipy", "ours"),
            "scipy_one_core": ratio("scipy", "ours_one_core"),
            "scipy_shared": ratio("scipy_shared", "ours"),
        },
        "targets": TARGETS,
        "seconds": {name: median(of) for name, of in took.items()},
        "rounds": [dict(zip(took, of, strict=True)) for of in zip(*took.values(), strict=True)],
        "load": {"rows": len(drawn), "weeks": WEEKS, "resamples": RESAMPLES, "rows_of_scipy": len(sums)},
        "machine": machine(),
    }
    return document, show


def _agree(ours: list[Any], theirs: list[Any]) -> None:
    """Both draw at random, so that ends differ, but not by much: the mean width of the intervals by less than 2 %."""
    own = sum(row.high - row.low for row, _ in zip(ours, theirs, strict=False))
    other = sum(float(row.high - row.low) for row in theirs[: len(ours)])
    if not 0.98 < own / other < 1.02:
        raise SystemExit(f"the two disagree: intervals of ours are {own / other:.3f} times as wide")


def show(document: dict[str, Any]) -> None:
    """The result for a person."""
    seconds, ratios, load = document["seconds"], document["ratios"], document["load"]
    print(
        f"{load['rows']:,} rows: ours {seconds['ours']:.2f} s on {document['machine']['cpus']} cores and "
        f"{seconds['ours_one_core']:.2f} s on one; scipy.stats.bootstrap {seconds['scipy']:.1f} s, "
        f"or {seconds['scipy_shared']:.1f} s with resamples shared by {SHARED} rows"
    )
    print(
        f"{ratios['scipy']:.1f} times as fast ({ratios['scipy_one_core']:.1f} on one core); "
        f"{ratios['scipy_shared']:.1f} times the shared one"
    )


def arguments(parser: argparse.ArgumentParser) -> None:
    """What may be said on the command line."""
    parser.add_argument("--rounds", type=int, default=3, help="all in turn, so many times (3)")
    parser.add_argument("--rows", type=int, default=20_000, help="rows of a board (20,000)")
