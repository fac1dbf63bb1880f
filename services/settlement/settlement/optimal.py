"""The best lineups of a pool, in hindsight, exactly. Pure: players in, lineups out.

A lineup is a *set* of players that can be put into the roster's slots, one each, within the cap. Two
ways of seating the same players (the third running back as RB2 or as FLEX) are one lineup.

**Order.** More points first; of equal points the lower total price; of equal prices the smaller tuple
of player ids, sorted by code point. Nothing is left to chance or to the order of the input.

**Programme.** Players who may fill the same slots form a class. Classes are worked through one after
another, player by player, each taken or left. What must be remembered of the players already taken is
which slots can still be open. As a player may fit several slots, that is a *set* of possibilities, and
these sets are the states of a deterministic automaton (the subset construction): every set of players
walks exactly one path through it, so lineups are counted once however many ways they can be seated.
The table ``best[player, state, budget]`` holds the best that the players from there on can add; the
value of a lineup packs points and price into one integer.

**Ties by id** are additive too: order the players by id, give the first the highest bit; of two sets
of one size the lexicographically smaller has the greater bit mask. So the exact order of any two
completions is known without enumerating ties, which can be as many as there are lineups.

**The next best** come from the same table: each found lineup splits the rest of its part into parts
that differ from it at one player, and each part's best is known exactly.

**Pruning** is exact. A player with enough *betters* (same class, no dearer, no fewer points, and of
equal ones the smaller id) cannot be in any of the best ``count`` lineups: exchanging him for each
better who is not in the lineup gives that many lineups which rank before it.
"""

from __future__ import annotations

import heapq
import math
from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

from common.events import Slot

Ints = NDArray[np.int64]

TABLE_BYTES = 3 << 30
"""The largest table that is built; prices with no common unit under a huge cap would ask for all memory."""

_NEVER = -(1 << 62)
_FEASIBLE = -(1 << 61)


@dataclass(frozen=True, slots=True)
class Player:
    """A player of a pool: whole price above zero, points in hundredths. Team and game matter to lineup rules alone."""

    player_id: str
    positions: tuple[str, ...]
    price: int
    points: int
    team: str = ""
    game: str = ""


@dataclass(frozen=True, slots=True)
class Lineup:
    """A lineup as a set: ids sorted, points in hundredths."""

    points: int
    price: int
    players: tuple[str, ...]


class InfeasibleError(ValueError):
    """No lineup of this pool fills the roster under the cap; the message says why."""


class TooFineError(ValueError):
    """Prices and cap need a larger table than ``TABLE_BYTES``."""


def optimal(players: Iterable[Player], roster: Sequence[Slot], cap: int) -> Lineup:
    """The best lineup. Raises ``InfeasibleError`` where there is none."""
    pool = list(players)
    found = best_lineups(pool, roster, cap, 1)
    if not found:
        raise InfeasibleError(_why_infeasible(pool, roster, cap))
    return found[0]


def best_lineups(players: Iterable[Player], roster: Sequence[Slot], cap: int, count: int) -> list[Lineup]:
    """The ``count`` best lineups in order, fewer where the pool has fewer; none for an infeasible pool.

    Raises ``TooFineError``, and ``ValueError`` for repeated ids or a price below one.
    """
    if count < 1:
        return []
    problem = _problem(players, roster, cap, keep=count)
    if problem is None:
        return []
    chosen = sorted(problem.players, key=lambda player: player.player_id)
    rank_of = {player.player_id: rank for rank, player in enumerate(chosen)}
    ranks = np.array([rank_of[player.player_id] for player in problem.players], dtype=np.int64)
    scale = problem.budget + 1
    reach = len(roster) * (max(abs(player.points) for player in chosen) * scale + problem.budget)
    if reach >= 1 << 60:
        raise TooFineError("points and prices are too large to be packed into one number")
    cells = (len(chosen) + 1) * problem.take.shape[1] * scale
    if cells * 12 > TABLE_BYTES:
        raise TooFineError(
            f"{len(chosen)} players over {problem.budget:,} price units need a table of {cells * 12 >> 20:,} MiB; "
            "give prices in a coarser unit"
        )
    values = np.array([player.points for player in problem.players], dtype=np.int64) * scale - problem.units
    table = _fill(problem.take, problem.skip, problem.units, values, problem.states, problem.budget)
    if table[0, 0, problem.budget] < _FEASIBLE:
        return []
    masks = _enumerate(table, problem.take, problem.skip, problem.units, values, ranks, count)
    lineups = []
    for row in masks:
        members = [chosen[rank] for rank in _members(row)]
        lineups.append(
            Lineup(
                points=sum(player.points for player in members),
                price=sum(player.price for player in members),
                players=tuple(player.player_id for player in members),
            )
        )
    return lineups


def count_lineups(players: Iterable[Player], roster: Sequence[Slot], cap: int) -> int:
    """How many lineups the pool allows, exactly; beyond 64 bits where it must be."""
    problem = _problem(players, roster, cap, keep=None)
    if problem is None:
        return 0
    # No state ever counts more than all subsets of the roster's size.
    limbs = math.comb(len(problem.players), min(len(roster), len(problem.players) // 2)).bit_length() // 64 + 1
    total = _count(problem.take, problem.skip, problem.units, problem.states, problem.budget, limbs)
    return sum(int(limb) << (64 * place) for place, limb in enumerate(total))


# --- from players to a table's shape -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Problem:
    """Players in the order of work, prices in common units, and the automaton unrolled over them.

    ``take[i, s]`` and ``skip[i, s]`` lead from state ``s`` before player ``i`` to the state before
    player ``i + 1``, or to -1. State 0 before player 0 is the empty lineup, state 0 after the last the full one.
    """

    players: list[Player]
    units: Ints
    budget: int
    take: Ints
    skip: Ints
    states: Ints


def _problem(players: Iterable[Player], roster: Sequence[Slot], cap: int, keep: int | None) -> _Problem | None:
    capacity, classes = classes_of(players, roster)
    order = tuple(sorted(classes, key=lambda fits: (-len(classes[fits]), fits)))
    if keep is not None:
        for fits in order:
            classes[fits] = _prune(classes[fits], most=sum(capacity[kind] for kind in fits), keep=keep)
    ordered = [player for fits in order for player in classes[fits]]
    if not ordered:
        return None

    # Exactly len(roster) players are taken, so prices count from the cheapest one, in their common unit.
    cheapest = min(player.price for player in ordered)
    unit = math.gcd(*(player.price - cheapest for player in ordered)) or 1
    budget = (cap - len(roster) * cheapest) // unit
    if budget < 0:
        return None
    units = np.array([(player.price - cheapest) // unit for player in ordered], dtype=np.int64)
    budget = min(budget, len(roster) * int(units.max()))

    steps = steps_of(capacity, order)
    if steps is None:
        return None
    width = max(len(within) for within, _ in steps)
    take = np.full((len(ordered), width), -1, dtype=np.int64)
    skip = np.full((len(ordered), width), -1, dtype=np.int64)
    states = np.ones(len(ordered) + 1, dtype=np.int64)
    at = 0
    for fits, (within, leave) in zip(order, steps, strict=True):
        size, end = len(within), at + len(classes[fits])
        step, out = np.array(within, dtype=np.int64), np.array(leave, dtype=np.int64)
        take[at : end - 1, :size], skip[at : end - 1, :size] = step, np.arange(size)
        take[end - 1, :size], skip[end - 1, :size] = np.where(step >= 0, out[step], -1), out
        states[at:end] = size
        at = end
    return _Problem(ordered, units, budget, take, skip, states)


def classes_of(
    players: Iterable[Player], roster: Sequence[Slot]
) -> tuple[tuple[int, ...], dict[tuple[int, ...], list[Player]]]:
    """How many slots there are of each kind, and the players by the kinds that they may fill.

    Who may fill none is left out. Raises ``ValueError`` for repeated ids or a price below one.
    """
    kinds: dict[frozenset[str], int] = {}
    for slot in roster:
        kinds[frozenset(slot.positions)] = kinds.get(frozenset(slot.positions), 0) + 1
    eligible: dict[tuple[str, ...], tuple[int, ...]] = {}
    classes: dict[tuple[int, ...], list[Player]] = {}
    seen = set()
    for player in players:
        if player.player_id in seen:
            raise ValueError(f"player {player.player_id} is in the pool twice")
        seen.add(player.player_id)
        if player.price < 1:
            raise ValueError(f"player {player.player_id} has the price {player.price}; a price is above zero")
        fits = eligible.get(player.positions)
        if fits is None:
            fits = tuple(index for index, kind in enumerate(kinds) if not kind.isdisjoint(player.positions))
            eligible[player.positions] = fits
        if fits:
            classes.setdefault(fits, []).append(player)
    return tuple(kinds.values()), classes


def _prune(members: list[Player], *, most: int, keep: int) -> list[Player]:
    """Leave out who has ``most - 1 + keep`` betters; at most ``most - 1`` of them can be in the lineup already."""
    enough = most - 1 + keep
    prices: list[int] = []  # The lowest of those before, as many as are enough; of who is left out none is among them.
    kept = []
    for _, price, _, player in sorted([(-one.points, one.price, one.player_id, one) for one in members]):
        if len(prices) < enough or price < prices[-1]:
            kept.append(player)
            insort(prices, price)
            del prices[enough:]
    return kept


@lru_cache(maxsize=256)
def steps_of(
    capacity: tuple[int, ...], order: tuple[tuple[int, ...], ...]
) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] | None:
    """For each class its states as ``(after one more player, after the last player)``; -1 leads nowhere.

    A state is the set of all possible numbers of open slots of each kind. ``None`` where the classes
    cannot fill the roster at all.
    """
    entries: list[frozenset[tuple[int, ...]]] = [frozenset({capacity})]
    steps = []
    for index, fits in enumerate(order):
        fillable = {kind for later in order[index + 1 :] for kind in later}
        local = _closure(entries, fits)
        number = {state: at for at, state in enumerate(local)}
        leaving = [
            frozenset(o for o in state if all(n == 0 or kind in fillable for kind, n in enumerate(o)))
            for state in local
        ]
        entries = list(dict.fromkeys(state for state in leaving if state))
        following = (
            {state: at for at, state in enumerate(_closure(entries, order[index + 1]))}
            if index + 1 < len(order)
            else {state: at for at, state in enumerate(entries)}
        )
        steps.append(
            (
                tuple(number.get(_seat(state, fits), -1) for state in local),
                tuple(following.get(state, -1) for state in leaving),
            )
        )
    return tuple(steps) if entries else None


def _seat(state: frozenset[tuple[int, ...]], fits: tuple[int, ...]) -> frozenset[tuple[int, ...]]:
    """The state after one more player who fits these kinds of slot; empty where he fits none."""
    return frozenset((*o[:kind], o[kind] - 1, *o[kind + 1 :]) for o in state for kind in fits if o[kind] > 0)


def _closure(entries: Iterable[frozenset[tuple[int, ...]]], fits: tuple[int, ...]) -> list[frozenset[tuple[int, ...]]]:
    """The entries and all that follows from them by taking players of one class, in order of discovery."""
    found = dict.fromkeys(entries)
    waiting = list(found)
    for state in waiting:
        following = _seat(state, fits)
        if following and following not in found:
            found[following] = None
            waiting.append(following)
    return waiting


def _why_infeasible(players: list[Player], roster: Sequence[Slot], cap: int) -> str:
    for slot in roster:
        if not any(set(slot.positions) & set(player.positions) for player in players):
            return f"no player of the pool may fill slot {slot.slot} ({'/'.join(slot.positions)})"
    free = [Player(player.player_id, player.positions, player.price, 0) for player in players]
    cheapest = best_lineups(free, roster, sum(player.price for player in players), 1)
    if not cheapest:
        return f"the pool's {len(players)} players cannot fill the {len(roster)} slots, one player each"
    return f"the cheapest lineup costs {cheapest[0].price}, more than the cap of {cap}"


def _members(mask: NDArray[np.uint64]) -> list[int]:
    """Ranks of the bits set, the highest bit of the first limb being rank 0."""
    return [int(rank) for rank in np.flatnonzero(np.unpackbits(mask.astype(">u8").view(np.uint8)))]


# --- compiled ------------------------------------------------------------------------------------

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile at the first call, keep the machine code beside this file, and let other threads run meanwhile."""
    return cast(F, njit(cache=True, nogil=True)(function))


# Loops stand for array assignments on purpose: numba compiles each assignment with all its error texts, which
# made the first start of all four times slower.


@compiled
def _fill(take: Any, skip: Any, units: Any, values: Any, states: Any, budget: int) -> Any:
    """``best[i, s, b]``: the most that players from ``i`` on can add in state ``s`` for at most ``b`` units."""
    players, width = take.shape
    best = np.empty((players + 1, width, budget + 1), dtype=np.int64)
    for b in range(budget + 1):
        best[players, 0, b] = 0
    for i in range(players - 1, -1, -1):
        price = units[i]
        value = values[i]
        for s in range(states[i]):
            row = best[i, s]
            left = skip[i, s]
            taken = take[i, s]
            if left >= 0:
                without = best[i + 1, left]
                for b in range(budget + 1):
                    row[b] = without[b]
            else:
                for b in range(budget + 1):
                    row[b] = _NEVER
            if taken >= 0:
                after = best[i + 1, taken]
                for b in range(price, budget + 1):
                    row[b] = max(row[b], after[b - price] + value)
    return best


@compiled
def _count(take: Any, skip: Any, units: Any, states: Any, budget: int, limbs: int) -> Any:
    """Lineups as little-endian 64-bit limbs; rolling over players, since no path need be found again."""
    players, width = take.shape
    after = np.zeros((width, budget + 1, limbs), dtype=np.uint64)
    before = np.zeros((width, budget + 1, limbs), dtype=np.uint64)
    for b in range(budget + 1):
        after[0, b, 0] = 1
    for i in range(players - 1, -1, -1):
        price = units[i]
        for s in range(states[i]):
            left = skip[i, s]
            taken = take[i, s]
            for b in range(budget + 1):
                for limb in range(limbs):
                    before[s, b, limb] = after[left, b, limb] if left >= 0 else np.uint64(0)
            if taken >= 0:
                for b in range(price, budget + 1):
                    carry = np.uint64(0)
                    for limb in range(limbs):
                        one = before[s, b, limb]
                        total = one + after[taken, b - price, limb]
                        over = np.uint64(1) if total < one else np.uint64(0)
                        before[s, b, limb] = total + carry
                        carry = np.uint64(1) if over or before[s, b, limb] < total else np.uint64(0)
        before, after = after, before
    return after[0, budget].copy()


@compiled
def _doubled(rows: Any) -> Any:
    """The same rows with as many free ones after them."""
    grown = np.empty((2 * rows.shape[0], rows.shape[1]), dtype=rows.dtype)
    for row in range(rows.shape[0]):
        for column in range(rows.shape[1]):
            grown[row, column] = rows[row, column]
    return grown


@compiled
def _greater(a: Any, x: Any, b: Any, y: Any) -> bool:
    """Whether mask ``a[x]`` is the greater one: the lineup whose ids come first."""
    for limb in range(a.shape[1]):
        if a[x, limb] != b[y, limb]:
            return bool(a[x, limb] > b[y, limb])
    return False


@compiled
def _completion(
    cell: Any, best: Any, take: Any, skip: Any, units: Any, values: Any, ranks: Any, known: Any, masks: Any, used: Any
) -> Any:
    """Find the mask of the best completion from a cell; returns the store of masks, perhaps grown, and its size.

    Follows only choices that keep the best value, and remembers each cell in ``known``, so that no cell
    is worked out twice however many ties there are.
    """
    players, limbs = take.shape[0], masks.shape[1]
    stack = [cell]
    while len(stack) > 0:
        i, s, b = stack[-1]
        if known[i, s, b] >= 0:
            stack.pop()
            continue
        taken, left = np.int64(-1), np.int64(-1)
        if i < players:
            t, k = take[i, s], skip[i, s]
            if t >= 0 and b >= units[i] and best[i + 1, t, b - units[i]] + values[i] == best[i, s, b]:
                taken = np.int64(known[i + 1, t, b - units[i]])
                if taken < 0:
                    stack.append((i + 1, t, b - units[i]))
                    continue
            if k >= 0 and best[i + 1, k, b] == best[i, s, b]:
                left = np.int64(known[i + 1, k, b])
                if left < 0:
                    stack.append((i + 1, k, b))
                    continue
        if used == masks.shape[0]:
            masks = _doubled(masks)
        for limb in range(limbs):
            masks[used, limb] = masks[taken, limb] if taken >= 0 else np.uint64(0)
        if taken >= 0:
            masks[used, ranks[i] // 64] |= np.uint64(1) << np.uint64(63 - ranks[i] % 64)
        if left >= 0 and (taken < 0 or _greater(masks, left, masks, used)):
            # Leaving the player adds no one, so the cell shares the mask of the one that follows.
            known[i, s, b] = left
        else:
            known[i, s, b] = used
            used += 1
        stack.pop()
    return masks, used


@compiled
def _before(x: Any, y: Any, parts: Any, full: Any) -> bool:
    """Whether part ``x``'s best lineup comes before part ``y``'s."""
    if parts[x, 3] != parts[y, 3]:
        return bool(parts[x, 3] > parts[y, 3])
    return _greater(full, x, full, y)


@compiled
def _push(part: Any, heap: Any, size: Any, parts: Any, full: Any) -> None:
    """Put a part into a heap of ``size`` parts that has room for it."""
    at = size
    while at > 0 and _before(part, heap[(at - 1) // 2, 0], parts, full):
        heap[at, 0] = heap[(at - 1) // 2, 0]
        at = (at - 1) // 2
    heap[at, 0] = part


@compiled
def _pop(heap: Any, size: Any, parts: Any, full: Any) -> Any:
    """Take the part whose best lineup comes first out of a heap of ``size`` parts."""
    first, last = heap[0, 0], heap[size - 1, 0]
    at = 0
    while 2 * at + 1 < size - 1:
        child = 2 * at + 1
        if child + 1 < size - 1 and _before(heap[child + 1, 0], heap[child, 0], parts, full):
            child += 1
        if not _before(heap[child, 0], last, parts, full):
            break
        heap[at, 0] = heap[child, 0]
        at = child
    heap[at, 0] = last
    return first


@compiled
def _enumerate(best: Any, take: Any, skip: Any, units: Any, values: Any, ranks: Any, count: int) -> Any:
    """The masks of the ``count`` best lineups in order: a heap of disjoint parts, each with its exact best.

    A part is ``(player, state, budget, value of its best lineup)``: all lineups that share what was chosen
    before that player. ``full`` has the mask of its best lineup, ``heap[:, 0]`` the parts in heap order.
    """
    players = take.shape[0]
    budget = best.shape[2] - 1
    limbs = (players + 63) // 64
    known = np.full(best.shape, -1, dtype=np.int32)
    masks = np.zeros((4 * players + 64, limbs), dtype=np.uint64)
    parts = np.zeros((64 + 4 * count, 4), dtype=np.int64)
    full = np.zeros((64 + 4 * count, limbs), dtype=np.uint64)
    heap = np.zeros((64 + 4 * count, 1), dtype=np.int64)
    found = np.zeros((count, limbs), dtype=np.uint64)
    so_far = np.zeros(limbs, dtype=np.uint64)

    # numba would compile a copy of each function for a literal number, so numbers that it is given are not literal.
    none, one = np.int64(0), np.int64(1)
    masks, used = _completion((none, none, budget), best, take, skip, units, values, ranks, known, masks, none)
    parts[0, 2], parts[0, 3] = budget, best[0, 0, budget]
    for at in range(limbs):
        full[0, at] = masks[known[0, 0, budget], at]
    made, size, have = one, one, none
    # The values of the best ``count`` parts seen, as a heap; a part below the least of them cannot matter.
    floor = [np.int64(_NEVER)] * count
    heapq.heapreplace(floor, parts[0, 3])

    while size > 0 and have < count:
        part = _pop(heap, size, parts, full)
        size -= 1
        start, s, b = parts[part, 0], parts[part, 1], parts[part, 2]
        gained = parts[part, 3] - best[start, s, b]
        for at in range(limbs):
            found[have, at] = full[part, at]
            so_far[at] = 0
        have += 1
        for i in range(players):
            limb, bit = ranks[i] // 64, np.uint64(1) << np.uint64(63 - ranks[i] % 64)
            inside = full[part, limb] & bit != 0
            if i >= start:
                # The part that differs first at this player, by the choice that the found lineup did not make.
                state, left, value = skip[i, s], b, gained
                if not inside:
                    state, left, value = take[i, s], b - units[i], gained + values[i]
                if state >= 0 and left >= 0 and best[i + 1, state, left] > _FEASIBLE:
                    value += best[i + 1, state, left]
                    if value >= floor[0]:
                        heapq.heapreplace(floor, value)
                        masks, used = _completion(
                            (i + 1, state, left), best, take, skip, units, values, ranks, known, masks, used
                        )
                        if made == parts.shape[0]:
                            parts, full, heap = _doubled(parts), _doubled(full), _doubled(heap)
                        parts[made, 0], parts[made, 1], parts[made, 2], parts[made, 3] = i + 1, state, left, value
                        for at in range(limbs):
                            full[made, at] = so_far[at] | masks[known[i + 1, state, left], at]
                        if not inside:
                            full[made, limb] |= bit
                        _push(made, heap, size, parts, full)
                        made += 1
                        size += 1
                if inside:
                    gained += values[i]
                    b -= units[i]
                    s = take[i, s]
                else:
                    s = skip[i, s]
            if inside:
                so_far[limb] |= bit
    return found[:have]
