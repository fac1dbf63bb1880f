"""How well stated confidences and projections agree with what happened. Pure; whole numbers until the last division.

What a confidence means is fixed, so that it can be graded (rule C4): for a pick, the probability that the player scores
at least 3 points for each 1,000 of price; for a lineup, that its final score is at least the projected one. Confidences
are taken in millionths, as they are stored, so that sums of them are exact in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

BINS = 10
"""Of equal width; a confidence of 1 is in the last."""

MILLION = 1_000_000


class Subject(StrEnum):
    """What was said to be so probable."""

    PICK = "pick"
    LINEUP = "lineup"


@dataclass(frozen=True, slots=True)
class Tally:
    """Graded confidences of one bin, added up.

    ``confidence`` is the sum of the confidences in millionths, ``squares`` that of ``(confidence - outcome)^2`` in
    millionths of millionths, the outcome being 0 or 1; ``hits`` counts the outcomes of 1.
    """

    bin: int
    decisions: int
    hits: int
    confidence: int
    squares: int


@dataclass(frozen=True, slots=True)
class Bin:
    """A bar of the reliability diagram: what was said on average, and how often it came true."""

    low: float
    high: float
    decisions: int
    stated: float
    came_true: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """Grades of a row's confidences; the score and rates are ``None`` where nothing was graded.

    ``brier`` is the mean of (confidence - outcome)^2 (Brier 1950): 0 is perfect foresight, 0.25 what always saying one
    half earns. ``base_rate`` is how often it came true, ``constant`` the score of somebody who always says just that.
    """

    decisions: int
    brier: float | None
    base_rate: float | None
    constant: float | None
    bins: tuple[Bin, ...]


def pick_came_true(points: int, price: int) -> bool:
    """Whether a player scored at least 3 points (``points`` in hundredths) for each 1,000 of ``price``."""
    return points * 10 >= price * 3


def lineup_came_true(points: int, projected: int) -> bool:
    """Whether a lineup scored at least its projected score; both in hundredths."""
    return points >= projected


def bin_of(confidence: int) -> int:
    """The bin of a confidence in millionths."""
    return min(BINS - 1, confidence * BINS // MILLION)


def tally(graded: Iterable[tuple[int, bool]]) -> list[Tally]:
    """Add up confidences in millionths with their outcomes, by bin; bins without any are left out."""
    bins: dict[int, list[int]] = {}
    for confidence, came_true in graded:
        sums = bins.setdefault(bin_of(confidence), [0, 0, 0, 0])
        for place, value in enumerate((1, came_true, confidence, (confidence - came_true * MILLION) ** 2)):
            sums[place] += value
    return [Tally(number, *bins[number]) for number in sorted(bins)]


def calibration(tallies: Sequence[Tally]) -> Calibration:
    """The grades of all tallies together, which may repeat a bin (one for each contest)."""
    decisions = sum(one.decisions for one in tallies)
    if not decisions:
        return Calibration(0, None, None, None, ())
    hits = sum(one.hits for one in tallies)
    bins = []
    for number in sorted({one.bin for one in tallies}):
        of_bin = [one for one in tallies if one.bin == number]
        count = sum(one.decisions for one in of_bin)
        bins.append(
            Bin(
                low=number / BINS,
                high=(number + 1) / BINS,
                decisions=count,
                stated=sum(one.confidence for one in of_bin) / (count * MILLION),
                came_true=sum(one.hits for one in of_bin) / count,
            )
        )
    return Calibration(
        decisions=decisions,
        brier=sum(one.squares for one in tallies) / (decisions * MILLION**2),
        base_rate=hits / decisions,
        constant=hits * (decisions - hits) / decisions**2,
        bins=tuple(bins),
    )


@dataclass(frozen=True, slots=True)
class Projections:
    """How far projected scores were off, in hundredths: ``bias`` is the mean of projected less scored."""

    lineups: int
    bias: float | None
    absolute: float | None


def projections(lineups: int, errors: int, absolute: int) -> Projections:
    """From the number of lineups, the sum of their errors and the sum of the errors' sizes, in hundredths."""
    if not lineups:
        return Projections(0, None, None)
    return Projections(lineups, errors / lineups, absolute / lineups)
