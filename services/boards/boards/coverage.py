"""How often the 95% interval really holds the true mean, by number of weeks: a seeded simulation.

``python -m boards.coverage`` writes ``coverage.json`` beside this file; the method page prints it. The model: a row
plays one lineup a week, and its weekly scores are independent draws around a true mean. Stretching or shifting all
scores stretches and shifts the interval with them, so the coverage depends on the number of weeks and on the shape of
the weekly scores, not on their mean or spread. Two shapes are drawn: normal, and one with a long upper tail
(the square of a normal, which is a gamma law of shape one half, the worst that weekly scores could reasonably be).
Every number comes from SplitMix64 on a stated label, so the table is the same wherever it is made.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import NormalDist

from boards.draw import Series, first_words, intervals

WEEKS = (2, 3, 4, 5, 6, 8, 10, 12, 17)
TRIALS = 10_000
MEAN = 12_000
SPREAD = 2_000
"""Of the weekly scores, in hundredths; they fix the rounding and nothing else."""

COMMITTED = Path(__file__).with_name("coverage.json")


@dataclass(frozen=True, slots=True)
class Coverage:
    """Share of the trials whose interval held the true mean, by shape of the weekly scores."""

    weeks: int
    normal: float
    skewed: float


def normal(uniform: float) -> float:
    """Standard normal."""
    return NormalDist().inv_cdf(uniform)


def skewed(uniform: float) -> float:
    """Square of a standard normal, brought to mean 0 and variance 1."""
    return float((NormalDist().inv_cdf(uniform) ** 2 - 1) / 2**0.5)


def scores(label: str, number: int, shape: Callable[[float], float]) -> Iterator[int]:
    """Weekly scores in hundredths. A uniform is a word's high 52 bits at the middle of their step, never 0 or 1."""
    for word in first_words(label, number):
        yield round(MEAN + SPREAD * shape(((word >> 12) + 0.5) / 2**52))


def simulated(weeks: int, shape: Callable[[float], float], trials: int = TRIALS) -> float:
    """The coverage of rows of so many weeks, to three places."""
    name = f"coverage:{shape.__name__}:{weeks}"
    every = list(scores(name, weeks * trials, shape))
    rows = [
        Series(f"{name}:{trial}", tuple(every[trial * weeks : (trial + 1) * weeks]), (1,) * weeks)
        for trial in range(trials)
    ]
    held = sum(
        found.low is not None and found.high is not None and found.low <= MEAN <= found.high
        for found in intervals(rows)
    )
    return round(held / trials, 3)


def committed() -> list[Coverage]:
    """The table as it was committed."""
    return [Coverage(**entry) for entry in json.loads(COMMITTED.read_text("utf-8"))["coverage"]]


def main() -> None:
    """Make the table again and write it."""
    table = [Coverage(weeks, simulated(weeks, normal), simulated(weeks, skewed)) for weeks in WEEKS]
    document = {"trials": TRIALS, "nominal": 0.95, "coverage": [asdict(entry) for entry in table]}
    COMMITTED.write_text(json.dumps(document, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
