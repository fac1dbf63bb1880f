"""What a row's own interval cannot say: differences between rows, agents as well as weeks, and how often each is best.

``docs/method.md`` specifies the three draws so that another program can reproduce every digit. All of them take
their words as the interval does (``boards.draw``): SplitMix64 from the SHA-256 of a label, integers until one IEEE
double division for each mean. None of them depends on an id, a clock, or the order in which results arrived.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numba
import numpy as np
from numpy.typing import NDArray

from boards.draw import (
    EXACT,
    LEAST_WEEKS,
    RESAMPLES,
    DrawError,
    Interval,
    Series,
    interpolated,
    next_word,
    order_statistics,
    seed,
)

LEAST_AGENTS = 2
"""Of a row of one agent there are no agents to resample."""

_MOST_TRIES = 10_000
"""Consecutive resamples without a lineup in them; two agents of two weeks fail one time in eight."""


@dataclass(frozen=True, slots=True)
class Weeks:
    """A row's settled weeks by contest id: the integer sum of its values and its number of lineups in each."""

    label: str
    values: Mapping[str, tuple[int, int]]


def _pair(one: Weeks, other: Weeks) -> tuple[Weeks, Weeks, str]:
    """Two rows in the order of their labels' code points, and the label that seeds the draw of their difference."""
    first, second = sorted((one, other), key=lambda row: row.label)
    return first, second, f"pair:{first.label}|{second.label}"


def pair_series(one: Weeks, other: Weeks) -> Series:
    """The weeks that both played, as pairs: each lineup of the one beside each lineup of the other of that week.

    The sum of a week is that of all differences, ``sum_one * n_other - sum_other * n_one``; its count is the number of
    pairs, ``n_one * n_other``. So shared luck cancels within the week, all arithmetic stays whole, and the interval is
    the draw of any other row: ``mafl interval 'pair:…|…' --sums … --counts …`` gives it again.

    The label is ``pair:`` and both labels in the order of their code points, whichever was asked for; the difference is
    then that of the first less the second. Raises ``DrawError`` where the pairs are too many to be added exactly.
    """
    first, second, label = _pair(one, other)
    both = sorted(first.values.keys() & second.values.keys())
    sums, counts = [], []
    for contest in both:
        (sum_one, n_one), (sum_other, n_other) = first.values[contest], second.values[contest]
        sums.append(sum_one * n_other - sum_other * n_one)
        counts.append(n_one * n_other)
    return Series(label, tuple(sums), tuple(counts))


@dataclass(frozen=True, slots=True)
class Difference:
    """By how much ``one`` is ahead of ``other`` over the weeks both played; in the unit of the values.

    ``label`` seeds the draw; where it names the two the other way round, mean and ends are those of the draw with
    their signs turned and the ends exchanged.
    """

    one: str
    other: str
    label: str
    interval: Interval

    @property
    def apart(self) -> bool:
        """Whether the interval is wholly above or wholly below zero; ends included, unrounded."""
        low, high = self.interval.low, self.interval.high
        return low is not None and high is not None and (low > 0 or high < 0)


def difference(one: Weeks, other: Weeks, found: Interval) -> Difference:
    """Give what was drawn for ``pair_series(one, other)`` the direction that is asked for."""
    first, second, label = _pair(one, other)
    made = Difference(first.label, second.label, label, found)
    return made if one is first else turned(made)


def turned(found: Difference) -> Difference:
    """The same difference seen from the other side."""
    mean, low, high = found.interval.mean, found.interval.low, found.interval.high
    if mean is None or low is None or high is None:
        other_way = found.interval
    else:
        other_way = Interval(found.interval.weeks, mean=-mean, low=-high, high=-low)
    return Difference(found.other, found.one, found.label, other_way)


def all_pairs(rows: Sequence[Weeks]) -> list[tuple[Weeks, Weeks]]:
    """Each two rows once, in the order of the rows."""
    return list(combinations(rows, 2))


@dataclass(frozen=True, slots=True)
class AgentWeek:
    """One agent's part of a row in one contest: the sum of its values and its number of lineups."""

    agent: str
    contest: str
    sum: int
    count: int


def two_way(label: str, parts: Iterable[AgentWeek]) -> Interval:
    """The interval of a row's mean, its agents resampled as well as its weeks (the pigeonhole bootstrap, Owen 2007).

    ``label`` is the row's; ``twoway:`` before it seeds the draw. Weeks ascend by contest id. Agents are ordered by what
    they did, their ``(contest, sum, count)`` one after another, so that no id has a part in the result: agents with the
    same weeks are interchangeable. Each resample draws as many weeks as there are, then as many agents, each from a
    fresh word on; a lineup counts as often as its week was drawn times as often as its agent was. A resample without a
    lineup is drawn again. No mean and no interval under two weeks or two agents. Raises ``DrawError``.
    """
    by_agent: dict[str, list[tuple[str, int, int]]] = {}
    for part in parts:
        if part.count < 1:
            raise DrawError(f"an agent's part of {part.contest} has {part.count} lineups; it must have at least 1")
        by_agent.setdefault(part.agent, []).append((part.contest, part.sum, part.count))
    agents = sorted(sorted(weeks) for weeks in by_agent.values())
    contests = sorted({contest for weeks in agents for contest, _, _ in weeks})
    if len(contests) < LEAST_WEEKS or len(agents) < LEAST_AGENTS:
        return Interval(weeks=len(contests), mean=None, low=None, high=None)
    place = {contest: number for number, contest in enumerate(contests)}
    flat = [(place[contest], value, count) for weeks in agents for contest, value, count in weeks]
    largest = max(max(abs(value), count) for _, value, count in flat)
    if len(agents) * len(contests) * largest > EXACT:
        raise DrawError(f"a resample could add up to more than 2^53 = {EXACT}, which a double cannot hold exactly")
    starts = np.zeros(len(agents) + 1, dtype=np.int64)
    np.cumsum([len(weeks) for weeks in agents], out=starts[1:])
    week_of, sums, counts = (np.array(column, dtype=np.int64) for column in zip(*flat, strict=True))
    found = np.empty((1, 4), dtype=np.float64)
    if not _two_way(np.uint64(seed(f"twoway:{label}")), len(contests), starts, week_of, sums, counts, found[0]):
        raise DrawError("hardly any resample has a lineup in it")
    low, high = interpolated(found)[0].tolist()
    mean = sum(value for _, value, _ in flat) / sum(count for _, _, count in flat)
    return Interval(weeks=len(contests), mean=mean, low=low, high=high)


def times_best(label: str, rows: Sequence[Weeks]) -> dict[str, int]:
    """In how many of the 2,000 resamples each row has the highest mean, by its label.

    All rows are resampled together, so that weeks that they shared stay shared: each resample draws as many of the
    table's weeks as there are, and a row's mean is over the drawn weeks that it played. A row that played none of them
    is not the best; of equal means the first label by code point is. ``label`` names the table; ``best:`` before it
    seeds the draw. Rows of fewer than two weeks take no part. Raises ``DrawError``.
    """
    compared = sorted((row for row in rows if len(row.values) >= LEAST_WEEKS), key=lambda row: row.label)
    contests = sorted({contest for row in compared for contest in row.values})
    if not compared:
        return {}
    sums = np.zeros((len(compared), len(contests)), dtype=np.int64)
    counts = np.zeros_like(sums)
    for number, row in enumerate(compared):
        checked = [row.values[contest] for contest in contests if contest in row.values]
        Series(row.label, tuple(value for value, _ in checked), tuple(count for _, count in checked))
        if len(contests) * max(max(abs(value), count) for value, count in checked) > EXACT:
            raise DrawError(f"{row.label}: a resample could add up to more than 2^53 = {EXACT}")
        for week, contest in enumerate(contests):
            sums[number, week], counts[number, week] = row.values.get(contest, (0, 0))
    wins = np.zeros(len(compared), dtype=np.int64)
    _times_best(np.uint64(seed(f"best:{label}")), sums, counts, wins)
    return {row.label: int(won) for row, won in zip(compared, wins, strict=True)}


@dataclass(frozen=True, slots=True)
class Concentration:
    """How much of a row hangs on one agent.

    ``largest`` is that agent's number of lineups of all ``lineups``; ``without`` the row's mean without them (``None``
    where nothing is left), ``shift`` by how much the mean moves then. ``owners`` counts the people behind claimed
    agents, ``unclaimed`` the agents of whom nobody knows who stands behind them.
    """

    agents: int
    owners: int
    unclaimed: int
    lineups: int
    largest: int
    without: float | None
    shift: float | None


def concentration(totals: Mapping[str, tuple[int, int]], owner_of: Mapping[str, str]) -> Concentration:
    """Count agents and owners, and leave out the agent of most lineups.

    ``totals`` has each agent's sum of values and number of lineups. Of agents with equally many lineups the one is left
    out whose leaving moves the mean most, so that the choice is never the kinder one.
    """
    lineups, total = sum(count for _, count in totals.values()), sum(value for value, _ in totals.values())
    owners = {owner_of[agent] for agent in totals if agent in owner_of}
    unclaimed = sum(agent not in owner_of for agent in totals)
    largest = max((count for _, count in totals.values()), default=0)
    without = shift = None
    if len(totals) > 1:
        mean = total / lineups
        left = [(total - value) / (lineups - largest) for value, count in totals.values() if count == largest]
        without = max(left, key=lambda value: (abs(value - mean), value))
        shift = without - mean
    return Concentration(len(totals), len(owners), unclaimed, lineups, largest, without, shift)


@numba.njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def _lanes(state: np.uint64, span: int, times: NDArray[np.int64]) -> np.uint64:
    """Draw ``span`` of ``span`` things from a fresh word on: how often each was drawn; the state thereafter."""
    times[:] = 0
    wide = np.uint64(span)
    for lane in range(0, span, 2):
        state, word = next_word(state)
        times[((word >> np.uint64(32)) * wide) >> np.uint64(32)] += 1
        if lane + 1 < span:
            times[((word & np.uint64(0xFFFFFFFF)) * wide) >> np.uint64(32)] += 1
    return state


@numba.njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def _two_way(
    state: np.uint64,
    weeks: int,
    starts: NDArray[np.int64],
    week_of: NDArray[np.int64],
    sums: NDArray[np.int64],
    counts: NDArray[np.int64],
    found: NDArray[np.float64],
) -> bool:
    """Fill ``found`` with the four order statistics; whether every resample could be drawn."""
    agents = len(starts) - 1
    means = np.empty(RESAMPLES, dtype=np.float64)
    of_week = np.empty(weeks, dtype=np.int64)
    of_agent = np.empty(agents, dtype=np.int64)
    for resample in range(RESAMPLES):
        lineups = np.int64(0)
        total = np.int64(0)
        tries = 0
        while lineups == 0:
            if tries == _MOST_TRIES:
                return False
            tries += 1
            state = _lanes(state, weeks, of_week)
            state = _lanes(state, agents, of_agent)
            for agent in range(agents):
                if of_agent[agent] == 0:
                    continue
                value = np.int64(0)
                count = np.int64(0)
                for part in range(starts[agent], starts[agent + 1]):
                    value += of_week[week_of[part]] * sums[part]
                    count += of_week[week_of[part]] * counts[part]
                total += of_agent[agent] * value
                lineups += of_agent[agent] * count
        means[resample] = total / lineups
    order_statistics(means, found)
    return True


@numba.njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def _times_best(state: np.uint64, sums: NDArray[np.int64], counts: NDArray[np.int64], wins: NDArray[np.int64]) -> None:
    rows, weeks = sums.shape
    of_week = np.empty(weeks, dtype=np.int64)
    for _ in range(RESAMPLES):
        state = _lanes(state, weeks, of_week)
        best = -1
        highest = 0.0
        for row in range(rows):
            total = np.int64(0)
            lineups = np.int64(0)
            for week in range(weeks):
                total += of_week[week] * sums[row, week]
                lineups += of_week[week] * counts[row, week]
            if lineups == 0:
                continue
            mean = total / lineups
            if best < 0 or mean > highest:
                best = row
                highest = mean
        if best >= 0:
            wins[best] += 1
