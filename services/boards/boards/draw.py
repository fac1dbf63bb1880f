"""The interval draw: a 95% interval of a row's mean, seeded from the row's own label.

``docs/method.md`` specifies it so that another program can reproduce every digit; ``interval_draw.json``
beside this file holds the published vectors. All arithmetic is on integers until one IEEE double division
for each resample, and the ends are interpolated outside the compiled part, where nothing can fuse a
multiplication with an addition.
"""

from __future__ import annotations

import hashlib
import os
import threading
import unicodedata
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2_000
LOW_SHARE = 0.025
HIGH_SHARE = 0.975
LEAST_WEEKS = 2
"""A row of fewer weeks has no mean and no interval."""

EXACT = 2**53
"""Integers up to this size are doubles without rounding, so that the one division stays exactly specified."""

_GOLDEN = 0x9E3779B97F4A7C15
_WORD = 2**64 - 1
_ROWS_TO_A_THREAD = 64


class DrawError(ValueError):
    """The label, sums or counts are not what the draw is specified for. The text says which and why."""


@dataclass(frozen=True, slots=True)
class Series:
    """A row's settled weeks in ascending contest id: the sum of its values and its number of lineups in each.

    Sums are integers (points in hundredths or share in millionths), counts integers of at least 1.
    Construction normalises the label to NFC and raises ``DrawError`` for anything else.
    """

    label: str
    sums: tuple[int, ...]
    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", normalised(self.label))
        sums, counts = _integers("sums", self.sums), _integers("counts", self.counts)
        if len(sums) != len(counts):
            raise DrawError(f"sums has {len(sums)} weeks and counts has {len(counts)}: each week needs one of both")
        for week, count in enumerate(counts, start=1):
            if count < 1:
                raise DrawError(f"counts: week {week} has {count} lineups; a settled week has at least 1")
        weeks = len(sums)
        if weeks * max((abs(value) for value in sums), default=0) > EXACT or weeks * max(counts, default=0) > EXACT:
            raise DrawError(f"a resample could add up to more than 2^53 = {EXACT}, which a double cannot hold exactly")
        object.__setattr__(self, "sums", sums)
        object.__setattr__(self, "counts", counts)


@dataclass(frozen=True, slots=True)
class Interval:
    """Mean and interval ends, unrounded, in the unit of the sums; ``None`` under two weeks."""

    weeks: int
    mean: float | None
    low: float | None
    high: float | None


def normalised(label: str) -> str:
    """The label in NFC. Raises ``DrawError`` where it cannot be written in UTF-8."""
    label = unicodedata.normalize("NFC", label)
    try:
        label.encode()
    except UnicodeEncodeError:
        raise DrawError("the label has a lone surrogate and cannot be written in UTF-8") from None
    return label


def _integers(name: str, values: Sequence[Any]) -> tuple[int, ...]:
    for week, value in enumerate(values, start=1):
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise DrawError(f"{name}: week {week} is {value!r}; it must be an integer")
    return tuple(int(value) for value in values)


def seed(label: str) -> int:
    """First 8 bytes, big-endian, of the SHA-256 of the label (UTF-8, NFC)."""
    return int.from_bytes(hashlib.sha256(normalised(label).encode()).digest()[:8], "big")


def first_words(label: str, number: int = 4) -> list[int]:
    """The first words of SplitMix64 (Steele, Lea and Flood 2014) from a label's seed, as 64-bit integers."""
    state, words = seed(label), []
    for _ in range(number):
        state = (state + _GOLDEN) & _WORD
        word = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _WORD
        words.append(word ^ (word >> 31))
    return words


def interval(label: str, sums: Sequence[int], counts: Sequence[int]) -> Interval:
    """One row's interval. Raises ``DrawError``."""
    return intervals([Series(label, tuple(sums), tuple(counts))])[0]


def intervals(rows: Sequence[Series]) -> list[Interval]:
    """The intervals of many rows in one compiled pass, in their order.

    Rows are independent of each other, so they are shared out among threads; the result does not depend on how.
    """
    drawn = [index for index, row in enumerate(rows) if len(row.sums) >= LEAST_WEEKS]
    drawn_ends = _draw_all([rows[index] for index in drawn])
    ends = interpolated(drawn_ends)
    found = [Interval(weeks=len(row.sums), mean=None, low=None, high=None) for row in rows]
    for index, (low, high) in zip(drawn, ends.tolist(), strict=True):
        row = rows[index]
        found[index] = Interval(weeks=len(row.sums), mean=sum(row.sums) / sum(row.counts), low=low, high=high)
    return found


class Memory:
    """The draw with a memory: a row that has not changed is not drawn again. Safe to call from several threads."""

    def __init__(self, keep: int = 50_000) -> None:
        self._keep = keep
        self._known: dict[Series, Interval] = {}
        self._lock = threading.Lock()

    def __call__(self, rows: Sequence[Series]) -> list[Interval]:
        with self._lock:
            unknown = [row for row in rows if row not in self._known]
        fresh = dict(zip(unknown, intervals(unknown), strict=True))
        with self._lock:
            found = [fresh[row] if row in fresh else self._known[row] for row in rows]
            self._known.update(fresh)
            for oldest in list(islice(self._known, max(0, len(self._known) - self._keep))):
                del self._known[oldest]
        return found


def _position(share: float) -> tuple[int, float]:
    """Where a share of the sorted means lies: the index below it and the fraction beyond (Hyndman-Fan type 7)."""
    at = (RESAMPLES - 1) * share
    below = int(at)
    return below, at - below


_LOW_AT, _LOW_FRACTION = _position(LOW_SHARE)
_HIGH_AT, _HIGH_FRACTION = _position(HIGH_SHARE)


def interpolated(found: NDArray[np.float64]) -> NDArray[np.float64]:
    """``m[k] + f * (m[k+1] - m[k])`` for both ends: (rows, 4) to (rows, 2). Each operation is an array of its own."""
    below, above = found[:, 0::2], found[:, 1::2]
    steps = np.multiply(np.subtract(above, below), np.array([_LOW_FRACTION, _HIGH_FRACTION]))
    ends: NDArray[np.float64] = np.add(below, steps)
    return ends


def _draw_all(rows: Sequence[Series]) -> NDArray[np.float64]:
    """The four order statistics that the ends need, (rows, 4)."""
    found = np.empty((len(rows), 4), dtype=np.float64)
    if not rows:
        return found
    seeds = np.array([seed(row.label) for row in rows], dtype=np.uint64)
    offsets = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(row.sums) for row in rows], out=offsets[1:])
    sums = np.array([value for row in rows for value in row.sums], dtype=np.int64)
    counts = np.array([value for row in rows for value in row.counts], dtype=np.int64)

    threads = min(os.cpu_count() or 1, len(rows) // _ROWS_TO_A_THREAD)
    if threads <= 1:
        _draw(seeds, offsets, sums, counts, found, 0, len(rows))
        return found
    cuts = [len(rows) * part // threads for part in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        for done in [
            pool.submit(_draw, seeds, offsets, sums, counts, found, first, last) for first, last in pairwise(cuts)
        ]:
            done.result()
    return found


@numba.njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def _select(values: NDArray[np.float64], first: int, last: int, rank: int) -> None:
    """Hoare's selection in place: ``values[rank]`` as if sorted, smaller before it, larger behind."""
    while first < last:
        pivot = values[(first + last) // 2]
        left, right = first, last
        while left <= right:
            while values[left] < pivot:
                left += 1
            while values[right] > pivot:
                right -= 1
            if left <= right:
                values[left], values[right] = values[right], values[left]
                left += 1
                right -= 1
        if rank <= right:
            last = right
        elif rank >= left:
            first = left
        else:
            return


@numba.njit(cache=True, nogil=True, error_model="numpy", inline="always")  # type: ignore[untyped-decorator]
def next_word(state: np.uint64) -> tuple[np.uint64, np.uint64]:
    """The next state of SplitMix64 and its word."""
    state += np.uint64(0x9E3779B97F4A7C15)
    word = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state, word ^ (word >> np.uint64(31))


@numba.njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def order_statistics(means: NDArray[np.float64], found: NDArray[np.float64]) -> None:
    """m[low], m[low + 1], m[high], m[high + 1] of the means as if sorted, which are left in disorder."""
    # Only four of the 2,000 sorted means are needed: select them instead of sorting.
    end = RESAMPLES - 1
    _select(means, 0, end, _LOW_AT)
    _select(means, _LOW_AT + 1, end, _LOW_AT + 1)
    _select(means, _LOW_AT + 2, end, _HIGH_AT)
    _select(means, _HIGH_AT + 1, end, _HIGH_AT + 1)
    found[0], found[1] = means[_LOW_AT], means[_LOW_AT + 1]
    found[2], found[3] = means[_HIGH_AT], means[_HIGH_AT + 1]


@numba.njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def _draw(
    seeds: NDArray[np.uint64],
    offsets: NDArray[np.int64],
    sums: NDArray[np.int64],
    counts: NDArray[np.int64],
    found: NDArray[np.float64],
    first_row: int,
    last_row: int,
) -> None:
    """Fill ``found[first_row:last_row]`` with m[low], m[low + 1], m[high], m[high + 1] of each row."""
    lane = np.uint64(0xFFFFFFFF)
    bits_32 = np.uint64(32)
    means = np.empty(RESAMPLES, dtype=np.float64)
    for row in range(first_row, last_row):
        state = seeds[row]
        start = offsets[row]
        weeks = offsets[row + 1] - start
        span = np.uint64(weeks)
        for resample in range(RESAMPLES):
            total = np.int64(0)
            lineups = np.int64(0)
            for week in range(0, weeks, 2):
                state, word = next_word(state)
                drawn = start + np.int64(((word >> bits_32) * span) >> bits_32)
                total += sums[drawn]
                lineups += counts[drawn]
                if week + 1 < weeks:  # the second lane of the last word of an odd row is dropped
                    drawn = start + np.int64(((word & lane) * span) >> bits_32)
                    total += sums[drawn]
                    lineups += counts[drawn]
            means[resample] = total / lineups
        order_statistics(means, found[row])
