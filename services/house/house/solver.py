"""Legal lineups of any roster under any cap: pure, exact, and independent of the order of the pool.

Players who fit the same slots form a *group*, and within a group only two things matter: how many are
taken and which. So a lineup is first a choice of counts, one a group (three choices for the usual roster:
the FLEX is a running back, a receiver or a tight end), then a choice of players inside each group. The
cheapest lineup takes the cheapest of each group. The lineup of greatest value takes, in each group, a point
of the frontier of (price, value), and the frontiers are joined under the cap.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

Counts = tuple[int, ...]


class NoLegalLineup(Exception):
    """The pool holds no lineup that fills this roster under this cap. The message says why."""


@dataclass(frozen=True)
class Slot:
    """One place of the roster and the positions that may fill it."""

    name: str
    positions: frozenset[str]


@dataclass(frozen=True)
class Player:
    """A player of the pool. ``price`` is an integer in the contest's own unit."""

    player_id: str
    name: str
    positions: frozenset[str]
    team: str
    opponent: str
    price: int

    @cached_property
    def position(self) -> str:
        """How the positions are written: ``RB``, or ``RB/WR`` for a player who counts as both."""
        return "/".join(sorted(self.positions))


@dataclass(frozen=True)
class _Bundle:
    """Some players taken together, with the sums of their prices and values."""

    price: int
    value: int
    players: tuple[Player, ...]


class Market:
    """The players who fit some slots, grouped. Cheap to make; nothing in it changes."""

    def __init__(self, slots: Sequence[Slot], players: Iterable[Player]) -> None:
        self.slots = tuple(slots)
        fits_of: dict[frozenset[str], tuple[bool, ...]] = {}
        groups: dict[tuple[bool, ...], list[Player]] = {}
        for player in sorted(players, key=_price_then_id):
            fits = fits_of.get(player.positions)
            if fits is None:
                fits = tuple(bool(slot.positions & player.positions) for slot in self.slots)
                fits_of[player.positions] = fits
            groups.setdefault(fits, []).append(player)
        groups.pop((False,) * len(self.slots), None)
        self._fits = sorted(groups)
        self.groups = tuple(tuple(groups[fits]) for fits in self._fits)
        """Each group cheapest first, equal prices by player id."""

    def counts(self) -> list[Counts]:
        """Every way to split the slots over the groups, as numbers of players for each group."""
        found: set[Counts] = {(0,) * len(self.groups)}
        for index in range(len(self.slots)):
            found = {
                (*counts[:group], counts[group] + 1, *counts[group + 1 :])
                for counts in found
                for group, fits in enumerate(self._fits)
                if fits[index] and counts[group] < len(self.groups[group])
            }
        return sorted(found)

    def cheapest(self) -> tuple[int, list[Player]] | None:
        """The lowest total price that fills every slot, and who does it; ``None`` where the slots cannot be filled."""
        totals: list[list[int]] = []
        for group in self.groups:
            sums = [0]
            for player in group[: len(self.slots)]:
                sums.append(sums[-1] + player.price)
            totals.append(sums)
        best = min(
            ((sum(totals[group][taken] for group, taken in enumerate(counts)), counts) for counts in self.counts()),
            default=None,
        )
        if best is None:
            return None
        price, counts = best
        return price, [player for group, taken in zip(self.groups, counts, strict=True) for player in group[:taken]]

    def best(self, cap: int, value: Callable[[Player], int]) -> list[Player]:
        """The lineup with the greatest sum of ``value`` under ``cap``. Raises ``NoLegalLineup`` where there is none.

        Exact. Of equal values the lower total price wins, then the first found, with players taken by price
        and id, so the same data always gives the same lineup.
        """
        splits = self.counts()
        most = [max((counts[group] for counts in splits), default=0) for group in range(len(self.groups))]
        frontiers = [
            _frontiers(_undominated(group, value, limit), value, limit, cap)
            for group, limit in zip(self.groups, most, strict=True)
        ]
        found: _Bundle | None = None
        for counts in splits:
            parts = sorted((frontiers[group][taken] for group, taken in enumerate(counts) if taken), key=len)
            bundle = _join(parts, cap)
            if bundle and (found is None or (bundle.value, -bundle.price) > (found.value, -found.price)):
                found = bundle
        if found is None:
            raise NoLegalLineup(f"no choice of players fills the slots under {cap:,}")
        return list(found.players)


def _price_then_id(player: Player) -> tuple[int, str]:
    return player.price, player.player_id


def _undominated(group: Sequence[Player], value: Callable[[Player], int], limit: int) -> list[Player]:
    """Leave out who has ``limit`` others at least as good and no dearer: some best lineup does without them."""
    kept: list[Player] = []
    prices: list[int] = []
    for player in sorted(group, key=lambda player: (-value(player), player.price, player.player_id)):
        cheaper = bisect_right(prices, player.price)
        if cheaper < limit:
            kept.append(player)
        prices.insert(cheaper, player.price)
    return kept


def _frontiers(group: Sequence[Player], value: Callable[[Player], int], limit: int, cap: int) -> list[list[_Bundle]]:
    """For each number of players from 0 to ``limit``, the bundles that none beats in both price and value."""
    frontiers: list[list[_Bundle]] = [[_Bundle(0, 0, ())], *([] for _ in range(limit))]
    for player in group:
        alone = [_Bundle(player.price, value(player), (player,))]
        for taken in range(limit, 0, -1):
            frontiers[taken] = _merge(frontiers[taken], _product(frontiers[taken - 1], alone, cap))
    return frontiers


def _product(ones: Sequence[_Bundle], twos: Sequence[_Bundle], cap: int) -> list[_Bundle]:
    """One of each together, as far as the cap allows: cheapest first, each worth more than the one before.

    Most pairs are beaten by another, so they are compared as plain numbers and only the rest become bundles.
    """
    pairs = [
        (one.price + two.price, -one.value - two.value, first, second)
        for first, one in enumerate(ones)
        for second, two in enumerate(twos)
        if one.price + two.price <= cap
    ]
    pairs.sort()
    kept: list[_Bundle] = []
    best = None
    for price, loss, first, second in pairs:
        if best is None or loss < best:
            best = loss
            kept.append(_Bundle(price, -loss, ones[first].players + twos[second].players))
    return kept


def _merge(ones: list[_Bundle], twos: list[_Bundle]) -> list[_Bundle]:
    """What is unbeaten in two frontiers together. The sort is stable: of equals the one of ``ones`` stays."""
    if not ones or not twos:
        return ones or twos
    kept: list[_Bundle] = []
    for bundle in sorted(ones + twos, key=lambda bundle: (bundle.price, -bundle.value)):
        if not kept or bundle.value > kept[-1].value:
            kept.append(bundle)
    return kept


def _join(parts: Sequence[list[_Bundle]], cap: int) -> _Bundle | None:
    """The most valuable choice of one bundle from each part under ``cap``; ``None`` where none fits."""
    if not parts:
        return _Bundle(0, 0, ())
    *firsts, last = parts
    joined = [_Bundle(0, 0, ())]
    for part in firsts:
        joined = _product(joined, part, cap)
    # The last join keeps no frontier: for each bundle only the most valuable partner that it can afford matters.
    prices = [bundle.price for bundle in last]
    found: tuple[int, int, _Bundle, _Bundle] | None = None
    for one in joined:
        affordable = bisect_right(prices, cap - one.price)
        if affordable:
            two = last[affordable - 1]
            worth, price = one.value + two.value, one.price + two.price
            if found is None or (worth, -price) > (found[0], -found[1]):
                found = worth, price, one, two
    if found is None:
        return None
    worth, price, one, two = found
    return _Bundle(price, worth, one.players + two.players)


def seat(slots: Sequence[Slot], players: Sequence[Player]) -> dict[str, Player]:
    """Give each player a slot. Dearer players get the earlier slots where they may choose.

    Raises ``ValueError`` when the players do not fill the slots: the caller chose them wrongly.
    """
    order = sorted(players, key=lambda player: (-player.price, player.player_id))
    holder: dict[int, int] = {}

    def place(player: int, tried: set[int]) -> bool:
        for index, slot in enumerate(slots):
            if index not in tried and slot.positions & order[player].positions:
                tried.add(index)
                if index not in holder or place(holder[index], tried):
                    holder[index] = player
                    return True
        return False

    if len(order) != len(slots) or not all(place(player, set()) for player in range(len(order))):
        raise ValueError("these players do not fill these slots")
    return {slots[index].name: order[holder[index]] for index in sorted(holder)}


def cheapest_lineup(slots: Sequence[Slot], players: Sequence[Player], cap: int) -> list[Player]:
    """The lineup of lowest total price. Raises ``NoLegalLineup``, saying why, where none is under the cap."""
    cheapest = Market(slots, players).cheapest()
    if cheapest is None:
        wanted = Counter("/".join(sorted(slot.positions)) for slot in slots)
        have = Counter(player.position for player in players)
        raise NoLegalLineup(
            f"the pool cannot fill the roster: it wants {_listed(wanted)} and the pool has {_listed(have) or 'nobody'}"
        )
    if cheapest[0] > cap:
        raise NoLegalLineup(f"the cheapest lineup costs {cheapest[0]:,} and the cap is {cap:,}")
    return cheapest[1]


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{number} {what}" for what, number in sorted(counts.items()))
