"""Every lineup of a small pool, by trying every set of players and every way to seat it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from common.events import Slot
from settlement.optimal import Lineup, Player


def slots(*places: str) -> tuple[Slot, ...]:
    return tuple(Slot(slot=f"{place}#{at}", positions=tuple(place.split("/"))) for at, place in enumerate(places))


ROSTERS = {
    "one": slots("QB"),
    "pair": slots("RB", "RB"),
    "flex": slots("QB", "RB", "RB/WR/TE", "TE"),
    "two flexes": slots("RB/WR", "WR/TE", "RB"),
    "superflex": slots("QB", "QB/RB/WR", "WR", "RB/WR"),
    "nested": slots("WR", "RB/WR", "QB/RB/WR/TE"),
}


def seatable(members: Sequence[Player], roster: Sequence[Slot]) -> bool:
    return any(
        all(set(player.positions) & set(slot.positions) for player, slot in zip(order, roster, strict=True))
        for order in itertools.permutations(members)
    )


def every_lineup(players: Sequence[Player], roster: Sequence[Slot], cap: int) -> list[Lineup]:
    """All lineups in the stated order, by trying every set of players and every way to seat it."""
    found = [
        Lineup(sum(p.points for p in chosen), sum(p.price for p in chosen), tuple(sorted(p.player_id for p in chosen)))
        for chosen in itertools.combinations(players, len(roster))
        if sum(p.price for p in chosen) <= cap and seatable(chosen, roster)
    ]
    return sorted(found, key=lambda lineup: (-lineup.points, lineup.price, lineup.players))
