"""The sentences that agents of the house write. Each says something true of the numbers behind the pick.

Plain words and figures only: a checker of texts must find nothing in them, and a reader must be able to
check each figure against the pool and the results.
"""

from __future__ import annotations

from collections.abc import Sequence

from house.numbers import WORTH, Dice, Week, is_good
from house.solver import Player

_SUFFIXES = frozenset({"JR", "SR", "II", "III", "IV", "V"})


def points(hundredths: int) -> str:
    """``1427`` as ``14.3``."""
    return f"{hundredths / 100:.1f}"


def percent(part: int, whole: int) -> str:
    """A share as ``14.4%``."""
    return f"{100 * part / whole:.1f}%"


def per_thousand(hundredths: int, price: int) -> str:
    """Points for each 1,000 of price, two decimals."""
    return f"{10 * hundredths / price:.2f}"


def ordinal(number: int) -> str:
    """``1st``, ``2nd``, ``11th``."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def count(number: int, noun: str) -> str:
    """``1 listing``, ``4 listings``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def last(number: int) -> str:
    """``last listing``, ``last 4 listings``."""
    return "last listing" if number == 1 else f"last {number} listings"


def called(player: Player) -> str:
    """How a sentence calls a player: the last name without ``Jr.`` and its like, or the team's defence."""
    if player.positions == {"DST"}:
        return f"the {player.team} defence"
    names = [name for name in player.name.split() if name.rstrip(".").upper() not in _SUFFIXES]
    return names[-1] if names else player.player_id


def about(week: Week, player: Player, window: int, dice: Dice) -> str:
    """Two facts of a player, in an order and in words that the dice choose."""
    return " ".join(_capital(sentence) for sentence in _two(_facts(week, player, window, dice), dice))


def _facts(week: Week, player: Player, window: int, dice: Dice) -> list[str]:
    name = called(player)
    past = week.past.get(player.player_id, ())
    average, listings = week.trailing(player, window)
    share = percent(player.price, week.cap)
    facts = [
        dice.one_of(
            (
                f"{player.price:,} is {share} of the cap, and the opponent is {player.opponent}.",
                f"{name} costs {share} of the cap against {player.opponent}.",
                f"{player.team} plays {player.opponent}; the price of {player.price:,} takes {share} of the cap.",
            )
        )
    ]
    if not listings:
        facts.append(
            dice.one_of(
                (
                    f"No result of {name} yet, so price and position stand in: {points(average)} expected.",
                    f"Nothing scored so far to go on; players of this position and price suggest {points(average)}.",
                )
            )
        )
        return facts
    scores = ", ".join(points(one) for one in past[-window:])
    good = sum(is_good(one, player.price) for one in past)
    facts += [
        dice.one_of(
            (
                f"{name} averaged {points(average)} over the {last(listings)}.",
                f"trailing average {points(average)} from {count(listings, 'listing')}.",
                f"{last(listings)}{', oldest first' if listings > 1 else ''}: {scores}.",
            )
        ),
        dice.one_of(
            (
                f"that is {per_thousand(average, player.price)} per 1,000 on the trailing average.",
                f"value on recent form: {per_thousand(average, player.price)} per 1,000.",
            )
        )
        if average > 0
        else f"recent form is worth nothing: {points(average)} a listing.",
        f"{name} reached {WORTH} per 1,000 of this price in {good} of {count(len(past), 'listing')}.",
    ]
    return facts


def _two(facts: Sequence[str], dice: Dice) -> list[str]:
    """Two of the facts in the order in which they were made, so that *that is* follows what it speaks of."""
    first = dice.below(len(facts) - 1)
    return [facts[first], facts[first + 1 + dice.below(len(facts) - first - 1)]]


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def spent(week: Week, players: Sequence[Player]) -> str:
    """What a lineup costs, and what is left."""
    total = sum(player.price for player in players)
    left = week.cap - total
    return f"{total:,} of {week.cap:,} spent" + (f", {left:,} left over." if left else ", to the last unit.")
