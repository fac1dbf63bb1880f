"""Where a lineup stands among all that its pool allows, exactly. Pure: players in, numbers of lineups out.

A lineup is a set of players, as in ``optimal``. Its **rank** is one more than the number of lineups that score
strictly more points. No lineup is listed to find it: what is worked out is how many lineups there are of each total
of points, some thousands of numbers whose sum is the number of lineups. Every rank is then a look-up.

**Counting.** Players who may fill the same slots form a class, and classes are dealt into two halves. A half's table
has, for each state of the roster's automaton at the seam (``optimal``), the number of ways to have spent so much and
scored so much. Players of one price and one score are added together, by binomial coefficients.

**The seam.** A lineup is a way of one half and a way of the other, at the same state, that together cost no more than
the cap. With the second half summed over prices that is, for each state and price, one product of two polynomials in
the points. The products are taken by number-theoretic transforms (Pollard 1971, "The fast Fourier transform in a
finite field") modulo primes whose product exceeds the number of lineups, so that each count is known exactly from its
remainders. Nothing is rounded anywhere.

**Fineness.** Points are counted in the coarsest unit that nearly all players share (0.10), and the few others (0.04
for a yard of passing) carry what is over as a remainder: an automaton of ``modulus`` states beside the roster's.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.events import Slot
from settlement.optimal import Player, classes_of, compiled, steps_of

Ints = NDArray[np.int64]

PRIMES = (2013265921, 1811939329, 2113929217, 469762049, 998244353)
"""Below 2^31, and one more than a multiple of 2^23 each: transforms of up to 2^23 points have their roots here."""

_LANES = 16
"""Rows that are transformed side by side: each step of a transform is then one of the processor's wide ones."""

TABLE_CELLS = 1 << 25
"""The most cells of a half's tables together; no pool at usual prices and points comes near."""


class NoRankError(ValueError):
    """Ranks of this pool cannot be worked out; the message says why."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a score stands: lineups strictly above it, with it, and strictly below it."""

    above: int
    level: int
    below: int

    @property
    def rank(self) -> int:
        """One more than the number of lineups that score more: equal scores share the best rank of theirs."""
        return self.above + 1

    @property
    def percentile(self) -> int:
        """Which millionths of all lineups score less, rounded down."""
        return self.below * 1_000_000 // (self.above + self.level + self.below)


@dataclass(frozen=True, slots=True)
class Standing:
    """How many lineups there are of each total. ``points`` ascend, in hundredths; ``up_to[i]`` have at most that."""

    points: tuple[int, ...]
    up_to: tuple[int, ...]

    @property
    def lineups(self) -> int:
        """How many lineups the pool allows."""
        return self.up_to[-1] if self.up_to else 0

    def place(self, points: int) -> Place:
        """Where a score stands, whether a lineup of the pool has it or not."""
        at = bisect_left(self.points, points)
        below = self.up_to[at - 1] if at else 0
        level = self.up_to[at] - below if at < len(self.points) and self.points[at] == points else 0
        return Place(self.lineups - below - level, level, below)


def standing(players: Iterable[Player], roster: Sequence[Slot], cap: int) -> Standing:
    """How many lineups of the pool have each total of points; one of none for an infeasible pool.

    Raises ``NoRankError`` for prices and points that are too fine or a pool that is too large, and ``ValueError`` for
    repeated ids or a price below one.
    """
    capacity, classes = classes_of(players, roster)
    members = [player for group in classes.values() for player in group]
    if not members:
        return Standing((), ())
    scale = _scale(members, len(roster), cap)
    if scale.budget < 0:
        return Standing((), ())
    halves = _halves(classes, scale)
    order = tuple(part.fits for half in halves for part in half)
    steps = steps_of(capacity, order)
    if steps is None:
        return Standing((), ())
    first = _Half(halves[0], steps[: len(halves[0])], scale)
    second = _Half(halves[1], steps[len(halves[0]) :], scale)
    return _joined(first.forwards(), second.backwards(), scale)


# --- from players to tables ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Scale:
    """Prices in ``unit`` above ``cheapest``, points in ``step`` above ``least``; ``budget`` units for all slots."""

    cheapest: int
    unit: int
    budget: int
    least: int
    step: int
    modulus: int
    slots: int

    def of(self, player: Player) -> tuple[int, int]:
        return (player.price - self.cheapest) // self.unit, (player.points - self.least) // self.step


@dataclass(frozen=True, slots=True)
class _Part:
    """Players of one class, either all or none in the coarse unit: how many there are of each price and score."""

    fits: tuple[int, ...]
    groups: tuple[tuple[int, int, int], ...]

    @property
    def size(self) -> int:
        return sum(many for _, _, many in self.groups)


def _scale(members: Sequence[Player], slots: int, cap: int) -> _Scale:
    cheapest = min(player.price for player in members)
    unit = math.gcd(*(player.price - cheapest for player in members)) or 1
    budget = (cap - slots * cheapest) // unit
    budget = min(budget, slots * max((player.price - cheapest) // unit for player in members))
    least = min(player.points for player in members)
    step = math.gcd(*(player.points - least for player in members)) or 1
    scores = {(player.price, (player.points - least) // step) for player in members}
    modulus, common = 1, 0
    for candidate in range(2, 11):
        (residue, many), *_ = Counter(points % candidate for _, points in scores).most_common(1)
        if 4 * many >= 3 * len(scores):
            modulus, common = candidate, residue
    # The least is set so that the residue that nearly all have is zero.
    return _Scale(cheapest, unit, budget, least - step * (-common % modulus), step, modulus, slots)


def _halves(
    classes: Mapping[tuple[int, ...], Sequence[Player]], scale: _Scale
) -> tuple[tuple[_Part, ...], tuple[_Part, ...]]:
    """Deal the classes out so that both halves have about as many ways; within a half the largest comes first."""
    parts: dict[tuple[tuple[int, ...], bool], Counter[tuple[int, int]]] = {}
    for fits, members in classes.items():
        for player in members:
            price, points = scale.of(player)
            parts.setdefault((fits, points % scale.modulus > 0), Counter())[price, points] += 1
    halves: tuple[list[_Part], list[_Part]] = ([], [])
    weights = [0.0, 0.0]
    for (fits, _), groups in sorted(parts.items(), key=lambda item: (item[0][1], -len(item[1]), item[0])):
        # Low scores first: the tables stay narrow for long.
        listed = sorted(((price, points, many) for (price, points), many in groups.items()), key=lambda one: one[1])
        half = 0 if weights[0] <= weights[1] else 1
        halves[half].append(_Part(fits, tuple(listed)))
        weights[half] += len(fits) * math.log1p(len(groups))
    return tuple(halves[0]), tuple(halves[1])


@dataclass(slots=True)
class _Table:
    """Numbers of ways by price and coarse points: ``ways[p, x]`` have spent ``p`` and scored ``low + x``.

    There is room for more than is used: ``rows`` prices, and scores below ``high``.
    """

    ways: Ints
    rows: int
    low: int
    high: int

    @classmethod
    def empty(cls) -> _Table:
        return cls(np.zeros((0, 0), dtype=np.int64), 0, 0, 0)

    def used(self) -> Ints:
        return self.ways[: self.rows, : self.high - self.low]

    def add(self, other: _Table, price: int, points: int, times: int, most: int) -> None:
        """Count the ways of another table ``times``, so much dearer and higher; none above the price ``most``."""
        rows = min(other.rows + price, most + 1)
        if rows <= price or not other.rows:
            return
        self._make_room(rows, other.low + points, other.high + points)
        ways = other.used()[: rows - price]
        start = other.low + points - self.low
        self.ways[price:rows, start : start + ways.shape[1]] += ways * times if times > 1 else ways

    def _make_room(self, rows: int, low: int, high: int) -> None:
        if not self.rows:
            self.low, self.high = low, high
        rows, low, high = max(rows, self.rows), min(low, self.low), max(high, self.high)
        tall, wide = self.ways.shape
        if rows > tall or high - low > wide or low < self.low:
            old, at = self.used(), self.low - low
            tall, wide = (
                room if need <= room else need + need // 4 for need, room in ((rows, tall), (high - low, wide))
            )
            self.ways = np.zeros((tall, wide), dtype=np.int64)
            self.ways[: old.shape[0], at : at + old.shape[1]] = old
        self.rows, self.low, self.high = rows, low, high


_Tables = dict[tuple[int, int], _Table]
"""By state of the automaton and remainder of the points."""


class _Half:
    """The classes of one half, walked through from its outer end to the seam."""

    def __init__(
        self, parts: Sequence[_Part], steps: Sequence[tuple[tuple[int, ...], tuple[int, ...]]], scale: _Scale
    ) -> None:
        self.parts, self.steps, self.scale = parts, steps, scale
        ways = 1
        for part, (within, _) in zip(parts, steps, strict=True):
            ways *= sum(math.comb(part.size, taken) for taken in range(max(_depths(within)) + 1))
        if ways >= 1 << 62:
            raise NoRankError(f"half of the pool has {ways:,} ways to fill its slots; tables count to 64 bits")

    def forwards(self) -> _Tables:
        """From the empty lineup: what the half's players have used."""
        tables = _start()
        for part, (within, leave) in zip(self.parts, self.steps, strict=True):
            # A state's table is added to before those that lead to it change.
            self._take(tables, part, _paths(within, backwards=False))
            following: _Tables = {}
            for (state, rest), table in tables.items():
                if leave[state] >= 0:
                    following.setdefault((leave[state], rest), _Table.empty()).add(table, 0, 0, 1, self.scale.budget)
            tables = following
        return tables

    def backwards(self) -> _Tables:
        """From the full lineup: what the half's players still add."""
        tables = _start()
        for part, (within, leave) in zip(reversed(self.parts), reversed(self.steps), strict=True):
            before: _Tables = {}
            for state, after in enumerate(leave):
                for rest in range(self.scale.modulus):
                    if (after, rest) in tables:
                        before[state, rest] = _Table.empty()
                        before[state, rest].add(tables[after, rest], 0, 0, 1, self.scale.budget)
            tables = before
            self._take(tables, part, _paths(within, backwards=True))
        return tables

    def _take(self, tables: _Tables, part: _Part, paths: Sequence[tuple[int, int, int]]) -> None:
        """Let each player of a part be taken or left."""
        modulus = self.scale.modulus
        for price, points, many in part.groups:
            for source, target, taken in paths:
                for rest in range(modulus) if taken <= many else ():
                    table = tables.get((source, rest))
                    if table is not None:
                        over, left = divmod(rest + taken * points, modulus)
                        into = tables.setdefault((target, left), _Table.empty())
                        into.add(table, taken * price, over, math.comb(many, taken), self.scale.budget)
            if sum(table.ways.size for table in tables.values()) > TABLE_CELLS:
                raise NoRankError(
                    f"{len(tables)} tables of prices and scores would ask for too much memory; "
                    "give prices or points in a coarser unit, or fewer players two positions"
                )


def _start() -> _Tables:
    one = _Table(np.ones((1, 1), dtype=np.int64), 1, 0, 1)
    return {(0, 0): one}


def _paths(within: Sequence[int], *, backwards: bool) -> list[tuple[int, int, int]]:
    """``(source, target, players taken)``, in such an order that no source has been a target before."""
    steps = []
    for state in range(len(within)):
        at, taken = within[state], 1
        while at >= 0:
            steps.append((at, state, taken) if backwards else (state, at, taken))
            at, taken = within[at], taken + 1
    depths = _depths(within)
    return sorted(steps, key=lambda step: depths[step[1]], reverse=backwards)


def _depths(within: Sequence[int]) -> list[int]:
    """How many more players each state can take."""
    depths = [0] * len(within)
    for state in range(len(within)):
        at = within[state]
        while at >= 0:
            depths[state] += 1
            at = within[at]
    return depths


# --- the seam --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Meeting:
    """The tables of both halves at one state, by remainder; those of the second are summed over prices."""

    spent: Mapping[int, _Table]
    within: Mapping[int, _Table]
    budget: int

    def pairs(self, start: int, end: int) -> tuple[dict[int, Ints], dict[int, Ints]]:
        """Rows for the prices ``start <= p < end`` of the first half; of the second those that the budget leaves."""
        price = np.arange(start, end)
        here = {rest: table.used()[start:end] for rest, table in self.spent.items() if table.rows > start}
        there = {
            rest: table.used()[np.minimum(self.budget - price, table.rows - 1)] for rest, table in self.within.items()
        }
        return here, there

    @property
    def rows(self) -> int:
        return max((table.rows for table in self.spent.values()), default=0)


def _joined(first: _Tables, second: _Tables, scale: _Scale) -> Standing:
    """Multiply the halves out and read the counts from their remainders."""
    for table in second.values():
        np.cumsum(table.used(), axis=0, out=table.used())
    meetings = [
        _Meeting(_at(state, first), _at(state, second), scale.budget) for state in {state for state, _ in first}
    ]
    total, low, high = 0, 0, -1
    for meeting in meetings:
        here, there = meeting.pairs(0, meeting.rows)
        for rest, spent in here.items():
            for more, within in there.items():
                within = within[: len(spent)]
                total += sum(map(int.__mul__, spent.sum(axis=1).tolist(), within.sum(axis=1).tolist()))
                ends = _extent(spent, meeting.spent[rest].low), _extent(within, meeting.within[more].low)
                both = ends[0][2] & ends[1][2]
                if both.any():
                    least, most = (int(f((ends[0][i] + ends[1][i])[both])) for i, f in ((0, np.min), (1, np.max)))
                    low, high = (min(low, least), max(high, most)) if high >= low else (least, most)
    if not total:
        return Standing((), ())
    size = max(2, 1 << (high - low).bit_length())
    primes, product = [], 1
    for prime in PRIMES:
        if product <= total:
            primes.append(prime)
            product *= prime
    if product <= total:
        raise NoRankError(f"{total:,} lineups are more than can be counted")

    counts: dict[int, int] = {}
    remainders = [_products(meetings, scale.modulus, size, prime) for prime in primes]
    for over in range(2 * scale.modulus - 1):
        for column, count in enumerate(_chinese([found[over] for found in remainders], primes)):
            if count:
                score = (low + (column - low) % size) * scale.modulus + over
                counts[score] = counts.get(score, 0) + count
    points = sorted(counts)
    up_to = tuple(accumulate(counts[one] for one in points))
    if up_to[-1] != total:
        raise NoRankError(f"{up_to[-1]:,} lineups are counted by points and {total:,} by prices")
    return Standing(tuple(scale.slots * scale.least + one * scale.step for one in points), up_to)


def _at(state: int, tables: _Tables) -> dict[int, _Table]:
    return {rest: table for (at, rest), table in tables.items() if at == state and table.rows}


def _extent(rows: Ints, low: int) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """The first and the last score of each row that has any, and which rows have."""
    used = rows != 0
    return low + used.argmax(axis=1), low + rows.shape[1] - 1 - used[:, ::-1].argmax(axis=1), used.any(axis=1)


def _chinese(remainders: Sequence[Ints], primes: Sequence[int]) -> list[int]:
    """The numbers below the product of the primes that leave these remainders (Garner 1959)."""
    found: list[int] = remainders[0].tolist()
    product = primes[0]
    for these, prime in zip(remainders[1:], primes[1:], strict=True):
        inverse = pow(product, -1, prime)
        found = [
            known + product * ((remainder - known) * inverse % prime)
            for known, remainder in zip(found, these.tolist(), strict=True)
        ]
        product *= prime
    return found


def _products(meetings: Sequence[_Meeting], modulus: int, size: int, prime: int) -> Ints:
    """The sum of all meetings' products modulo a prime, by the sum of their remainders and coarse points."""
    sums = np.zeros((2 * modulus - 1, 2, size), dtype=np.uint64)
    for meeting in meetings:
        for start in range(0, meeting.rows, _LANES):
            here, there = (
                {rest: _spectra(rows, tables[rest].low, size, prime) for rest, rows in half.items()}
                for half, tables in zip(
                    meeting.pairs(start, min(start + _LANES, meeting.rows)),
                    (meeting.spent, meeting.within),
                    strict=True,
                )
            )
            for rest, spent in here.items():
                for more, within in there.items():
                    multiply(spent, within, sums[rest + more])
    return _inverse(sums, size, prime)


def _spectra(rows: Ints, low: int, size: int, prime: int) -> NDArray[np.uint32]:
    """Rows transformed side by side modulo the prime, wrapped around where they do not fit."""
    lanes = np.zeros((size, _LANES), dtype=np.uint32)
    done = 0
    while done < rows.shape[1]:
        at = (low + done) % size
        piece = rows[:, done : done + size - at].T % prime
        into = lanes[at : at + len(piece), : piece.shape[1]]
        into[:] = (into + piece) % prime
        done += len(piece)
    transform(lanes, *_roots(size, prime), prime)
    return lanes


@lru_cache(maxsize=16)
def _roots(size: int, prime: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Powers of a root of unity of order ``size``, and of each the quotient by which Shoup multiplies."""
    generator = next(g for g in range(2, 100) if pow(g, (prime - 1) // 2, prime) == prime - 1)
    root = pow(generator, (prime - 1) // size, prime)
    powers = [1]
    for _ in range(size // 2 - 1):
        powers.append(powers[-1] * root % prime)
    return np.array(powers, dtype=np.uint64), np.array([(one << 32) // prime for one in powers], dtype=np.uint64)


def _inverse(sums: NDArray[np.uint64], size: int, prime: int) -> Ints:
    """From the sums of products at the roots, in the order in which ``transform`` leaves them, back to polynomials."""
    half = np.uint64((1 << 32) % prime)
    values = (sums[:, 1] % prime * half + sums[:, 0]) % prime
    bits = size.bit_length() - 1
    order = np.zeros(size, dtype=np.int64)
    for bit in range(bits):
        order |= (np.arange(size) >> bit & 1) << (bits - 1 - bit)
    roots, quotients = _roots(size, prime)
    found = np.zeros((sums.shape[0], size), dtype=np.int64)
    for start in range(0, len(values), _LANES):
        lanes = np.zeros((size, _LANES), dtype=np.uint32)
        piece = values[start : start + _LANES]
        lanes[:, : len(piece)] = piece[:, order].T
        transform(lanes, roots, quotients, prime)
        # The transform of a transform is the polynomial backwards, times its size.
        back = lanes[order][-np.arange(size) % size, : len(piece)].T.astype(np.uint64)
        found[start : start + len(piece)] = back * np.uint64(pow(size, -1, prime)) % prime
    return found


# --- compiled --------------------------------------------------------------------------------------


@compiled
def transform(lanes: Any, roots: Any, quotients: Any, prime: int) -> None:
    """Transform each lane in place; frequencies come out in the order of their bits read backwards.

    Decimation in frequency; ``x * w mod p`` by Shoup's quotient, which needs no division.
    """
    p = np.uint64(prime)
    mask = np.uint64(0xFFFFFFFF)
    shift = np.uint64(32)
    size, width = lanes.shape
    half, stride = size // 2, 1
    while half:
        for block in range(0, size, 2 * half):
            for j in range(half):
                w, q = roots[j * stride], quotients[j * stride]
                x, y = block + j, block + j + half
                for lane in range(width):
                    a, b = np.uint64(lanes[x, lane]), np.uint64(lanes[y, lane])
                    total = a + b
                    lanes[x, lane] = np.uint32(min(total, (total - p) & mask))
                    difference = a + p - b
                    product = (difference * w - (difference * q >> shift) * p) & mask
                    lanes[y, lane] = np.uint32(min(product, (product - p) & mask))
        half //= 2
        stride *= 2


@compiled
def multiply(here: Any, there: Any, sums: Any) -> None:
    """Add the lanes' products to ``sums``, low and high halves apart, so that no sum overflows."""
    mask = np.uint64(0xFFFFFFFF)
    shift = np.uint64(32)
    size, width = here.shape
    for at in range(size):
        low, high = np.uint64(0), np.uint64(0)
        for lane in range(width):
            product = np.uint64(here[at, lane]) * np.uint64(there[at, lane])
            low += product & mask
            high += product >> shift
        sums[0, at] += low
        sums[1, at] += high
