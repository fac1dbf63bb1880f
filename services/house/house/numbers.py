"""What an agent of the house knows about a week, and the numbers it works out from that alone.

An agent sees three things, all public: the contest (roster and cap), its pool, and the players' points in
the contests that were settled before. Nothing else: no injuries, no news, no projections.

Points are integers in hundredths; prices are integers. Averages are rounded down, so that the same results
give the same numbers on every machine.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

from house.solver import Player, Slot

WORTH = 3
"""Points for each 1,000 of price that make a pick good: what a pick's confidence is about (rule C4)."""

PRIOR_RATE = 0.25
"""How often a pick is good, before any result says so."""

PRIOR_PER_THOUSAND = 200
"""Hundredths of a point that 1,000 of price brings, before any result says so."""

POSITION_WEIGHT = 40
"""A position's own record outweighs the priors after this many listings."""

BAND_WEIGHT = 10
"""A price band's own record outweighs its position's after this many listings."""


class Dice:
    """Chance that depends on a label and on nothing else: no clock, no seed of the process, no version of Python."""

    def __init__(self, *label: str) -> None:
        self._label = "|".join(label)
        self._throws = 0

    def about(self, *label: str) -> Dice:
        """Other dice, for one matter: their throws do not depend on how often these were thrown."""
        return Dice(self._label, *label)

    def below(self, number: int) -> int:
        """An integer from 0 to ``number - 1``."""
        self._throws += 1
        digest = sha256(f"{self._label}|{self._throws}".encode()).digest()
        return int.from_bytes(digest[:16], "big") % number

    def one_of(self, choices: tuple[str, ...]) -> str:
        """One of the choices."""
        return choices[self.below(len(choices))]


@dataclass(frozen=True)
class Record:
    """What some listings came to: how many, how many were good for their price, and the sums."""

    listings: int
    good: int
    points: int
    price: int


def is_good(points: int, price: int) -> bool:
    """Whether ``points`` (hundredths) are at least three for each 1,000 of ``price``."""
    return points * 10 >= WORTH * price


@dataclass(frozen=True)
class Week:
    """A contest as its pool and the results before it show it.

    ``past`` has, for each player, the points of every earlier contest that listed him, oldest first. A
    listed player who did not play has zero there, which is what he is worth to who picks him.
    """

    contest: str
    cap: int
    slots: tuple[Slot, ...]
    players: tuple[Player, ...]
    past: Mapping[str, tuple[int, ...]]

    @cached_property
    def _records(self) -> dict[tuple[str, int | None], Record]:
        """Past listings of today's pool at today's prices, by position and price band (``None``: all bands)."""
        sums: dict[tuple[str, int | None], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
        for player in self.players:
            points = self.past.get(player.player_id, ())
            row = (
                len(points),
                sum(is_good(one, player.price) for one in points),
                sum(points),
                player.price * len(points),
            )
            for key in ((player.position, None), (player.position, player.price // 1000)):
                sums[key] = [old + new for old, new in zip(sums[key], row, strict=True)]
        return {key: Record(*row) for key, row in sums.items()}

    @cached_property
    def _bases(self) -> dict[tuple[str, int], tuple[float, int]]:
        """The base rate and base points of each position and price that the pool has."""
        prices = {(player.position, player.price) for player in self.players}
        return {key: (self._rate(*key), self._points(*key)) for key in prices}

    def base_rate(self, player: Player) -> float:
        """How often a player of this position and price was good for his price."""
        return self._bases[player.position, player.price][0]

    def base_points(self, player: Player) -> int:
        """What a player of this position and price usually scored, in hundredths."""
        return self._bases[player.position, player.price][1]

    def _rate(self, of: str, price: int) -> float:
        position, band = self._pair(of, price)
        rate = (position.good + POSITION_WEIGHT * PRIOR_RATE) / (position.listings + POSITION_WEIGHT)
        return (band.good + BAND_WEIGHT * rate) / (band.listings + BAND_WEIGHT)

    def _points(self, of: str, price: int) -> int:
        position, band = self._pair(of, price)
        prior_points = POSITION_WEIGHT * PRIOR_PER_THOUSAND
        # The position's record is per 1,000 of price; 5,000 a listing is what a price usually is.
        per_price = (position.points + prior_points * 5) / (position.price + POSITION_WEIGHT * 5000)
        return math.floor((band.points + BAND_WEIGHT * per_price * price) / (band.listings + BAND_WEIGHT))

    def _pair(self, position: str, price: int) -> tuple[Record, Record]:
        """The records of a position and of its price band; every player of the pool has both."""
        return self._records[position, None], self._records[position, price // 1000]

    def chance_of_worth(self, player: Player, *, weight: int = 8) -> float:
        """Probability that the player scores at least three points for each 1,000 of price.

        His own frequency, at today's price, shrunk to the base rate of his position and price: the base rate
        counts as ``weight`` listings. Between 0.02 and 0.98, two decimals.
        """
        past = self.past.get(player.player_id, ())
        good = sum(is_good(points, player.price) for points in past)
        return _probability((good + weight * self.base_rate(player)) / (len(past) + weight))

    def trailing(self, player: Player, window: int) -> tuple[int, int]:
        """The average of the last ``window`` listings and how many there were; the base where there are none."""
        recent = self.past.get(player.player_id, ())[-window:]
        return (sum(recent) // len(recent), len(recent)) if recent else (self.base_points(player), 0)

    def expected(self, player: Player, window: int, weight: int) -> int:
        """The trailing average shrunk to the base, which counts as ``weight`` listings; hundredths."""
        recent = self.past.get(player.player_id, ())[-window:]
        return (sum(recent) + weight * self.base_points(player)) // (len(recent) + weight)

    def chance_of_projection(self, players: tuple[Player, ...], projected: int) -> float:
        """Probability that these players together score at least ``projected`` hundredths.

        Their sum is taken as normal around their shrunk expectations. Who picks by trailing average picks
        the lucky, so this is usually below one half.
        """
        mean = sum(self.expected(player, 17, 3) for player in players)
        variance = sum(self._variance(player) for player in players)
        return _probability(0.5 * math.erfc((projected - mean) / math.sqrt(2 * variance)))

    def _variance(self, player: Player) -> float:
        past = self.past.get(player.player_id, ())
        expected = self.expected(player, 17, 3)
        prior = max(400.0, 0.6 * self.base_points(player)) ** 2
        return (sum((points - expected) ** 2 for points in past) + 3 * prior) / (len(past) + 3)


def _probability(value: float) -> float:
    return round(min(0.98, max(0.02, value)), 2)
