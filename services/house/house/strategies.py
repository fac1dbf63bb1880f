"""Six ways to pick a lineup. Pure: the same agent, style and week always give the same entry.

======================  ============================================================================
``random-legal``        draws each slot by chance, refusing only what the cap could not carry
``cheapest-legal``      the lowest total price
``price-greedy``        slot by slot, the dearest that leaves enough for the rest
``value-greedy``        slot by slot, the most expected points for each 1,000 of price
``trailing-average``    the greatest sum of expected points under the cap, exactly
``stars-and-scrubs``    a few of the best whatever they cost, then the best of the cheap half
======================  ============================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from house import words
from house.numbers import Dice, Week
from house.solver import Market, NoLegalLineup, Player, Slot, cheapest_lineup, seat


class Strategy(StrEnum):
    """What an agent does; see the table above."""

    RANDOM = "random-legal"
    CHEAPEST = "cheapest-legal"
    PRICE = "price-greedy"
    VALUE = "value-greedy"
    TRAILING = "trailing-average"
    STARS = "stars-and-scrubs"


@dataclass(frozen=True)
class Style:
    """A strategy and its settings.

    ``window`` listings make a trailing average; the base of position and price counts as ``weight`` more.
    ``hunch`` moves each expectation by up to so many percent, by the dice of ``temper``: it is what differs
    between two simulated models under one configuration, as two real ones would read the same pool differently.
    """

    strategy: Strategy
    window: int = 4
    weight: int = 2
    stars: int = 3
    hunch: int = 0
    temper: str = ""


@dataclass(frozen=True)
class Choice:
    """A pick with its reasoning. ``confidence``: probability of at least 3 points for each 1,000 of price."""

    slot: str
    player: Player
    rationale: str
    confidence: float
    main_factor: str


@dataclass(frozen=True)
class Entry:
    """A whole lineup. ``projected`` in hundredths; ``confidence``: probability of scoring at least that."""

    picks: tuple[Choice, ...]
    thesis: str
    projected: int
    confidence: float

    def body(self) -> dict[str, object]:
        """The body of ``POST /api/v1/contests/{contest}/lineups``."""
        return {
            "picks": [
                {
                    "slot": pick.slot,
                    "player_id": pick.player.player_id,
                    "rationale": pick.rationale,
                    "confidence": pick.confidence,
                    "main_factor": pick.main_factor,
                }
                for pick in self.picks
            ],
            "thesis": self.thesis,
            "projected_score": self.projected / 100,
            "confidence": self.confidence,
        }


@dataclass
class _Plan:
    """What a strategy decided: who sits where, why each, and the idea of the whole."""

    seats: dict[str, Player]
    thesis: str
    factor: str
    reasons: dict[str, str] = field(default_factory=dict)
    factors: dict[str, str] = field(default_factory=dict)


def play(agent: str, style: Style, week: Week) -> Entry:
    """The lineup that ``agent`` enters for ``week``. Raises ``NoLegalLineup``, saying why, where there is none."""
    cheapest_lineup(week.slots, week.players, week.cap)
    dice = Dice(agent, week.contest)
    plan = _PLANS[style.strategy](week, _Mind(week, style), dice)
    players = tuple(plan.seats.values())
    projected = max(0, sum(week.trailing(player, style.window)[0] for player in players))
    picks = tuple(
        Choice(
            slot=slot,
            player=player,
            rationale=f"{plan.reasons[slot]} {words.about(week, player, style.window, dice)}",
            confidence=week.chance_of_worth(player),
            main_factor=plan.factors.get(slot, plan.factor),
        )
        for slot, player in plan.seats.items()
    )
    thesis = (
        f"{plan.thesis} {words.spent(week, players)} "
        f"Projected {words.points(projected)} from averages over at most {words.count(style.window, 'listing')}."
    )
    return Entry(picks, thesis, projected, week.chance_of_projection(players, projected))


class _Mind:
    """An agent's own expectation of each player, in hundredths, worked out once a week."""

    def __init__(self, week: Week, style: Style) -> None:
        self.style = style
        self._expected = {player.player_id: self._expect(week, player) for player in week.players}

    def _expect(self, week: Week, player: Player) -> int:
        expected = week.expected(player, self.style.window, self.style.weight)
        if not self.style.hunch:
            return expected
        hunch = Dice(self.style.temper, week.contest, player.player_id).below(2 * self.style.hunch + 1)
        return expected * (100 - self.style.hunch + hunch) // 100

    def __call__(self, player: Player) -> int:
        return self._expected[player.player_id]

    def value(self, player: Player) -> int:
        """Expected points for each 1,000 of price, in hundred-thousandths: fine enough to order by."""
        return self(player) * 1_000_000 // player.price


@dataclass(frozen=True)
class _Seated:
    """One step of filling slot by slot: who, of how many who fitted, after how many that the cap refused."""

    player: Player
    fitted: int
    refused: int
    left: int


def _fill(week: Week, order: Callable[[Slot, list[Player]], list[Player]]) -> dict[str, _Seated]:
    """Fill slot by slot with the first in ``order`` who leaves enough, and enough players, for the slots to come.

    Never fails where a lineup exists: what is left can always be filled, so some player of the next slot fits.
    """
    seated: dict[str, _Seated] = {}
    left, free = week.cap, list(week.players)
    for place, slot in enumerate(week.slots):
        later = week.slots[place + 1 :]
        bound = Market(later, free).cheapest()
        fitting = order(slot, [player for player in free if player.positions & slot.positions])
        for refused, player in enumerate(fitting):
            # The rest costs at least what it would with this player still free: refuses most without a search.
            if bound is None or player.price + bound[0] > left:
                continue
            others = [other for other in free if other.player_id != player.player_id]
            rest = Market(later, others).cheapest()
            if rest is not None and player.price + rest[0] <= left:
                left, free = left - player.price, others
                seated[slot.name] = _Seated(player, len(fitting), refused, left)
                break
    return seated


def _random(week: Week, mind: _Mind, dice: Dice) -> _Plan:
    # Each player's throw has a label of its own, so that the order of the pool does not matter.
    seated = _fill(
        week, lambda slot, players: sorted(players, key=lambda one: dice.about(slot.name, one.player_id).below(1 << 62))
    )
    plan = _Plan(
        {slot: one.player for slot, one in seated.items()},
        "Every slot drawn by chance among the players who fit it; only the cap says no.",
        "chance",
    )
    for slot, one in seated.items():
        refused = f" after {one.refused} whom the cap refused" if one.refused else ""
        plan.reasons[slot] = f"Drawn by chance from the {one.fitted} who fit {slot}{refused}."
    return plan


def _cheapest(week: Week, mind: _Mind, dice: Dice) -> _Plan:
    found = cheapest_lineup(week.slots, week.players, week.cap)
    plan = _Plan(
        seat(week.slots, found), "The lowest total price that fills the roster, whoever it is.", "lowest price"
    )
    for slot, player in plan.seats.items():
        as_cheap = sum(other.positions == player.positions and other.price <= player.price for other in week.players)
        plan.reasons[slot] = (
            f"The only {player.position} at {player.price:,} or less."
            if as_cheap == 1
            else f"One of {as_cheap} {player.position} at {player.price:,} or less; equal prices go by player id."
        )
    return plan


def _price(week: Week, mind: _Mind, dice: Dice) -> _Plan:
    seated = _fill(week, lambda _, players: sorted(players, key=lambda one: (-one.price, one.player_id)))
    plan = _Plan(
        {slot: one.player for slot, one in seated.items()},
        "Price is the market's opinion: take the dearest in roster order and let the last slots pay for it.",
        "price",
    )
    for place, (slot, one) in enumerate(seated.items(), start=1):
        later = len(seated) - place
        rest = f" that left enough for the {words.count(later, 'slot')} to come: {one.left:,}" if later else " left"
        plan.reasons[slot] = f"The dearest {_fit(week, slot)}{rest}."
    return plan


def _value(week: Week, mind: _Mind, dice: Dice) -> _Plan:
    seated = _fill(
        week, lambda _, players: sorted(players, key=lambda one: (-mind.value(one), one.price, one.player_id))
    )
    plan = _Plan(
        {slot: one.player for slot, one in seated.items()},
        "The most expected points for each 1,000 at every slot, even where cap is left unspent.",
        "points per 1,000",
    )
    for slot, one in seated.items():
        worth = words.per_thousand(mind(one.player), one.player.price)
        plan.reasons[slot] = (
            dice.one_of(
                (
                    f"Best value left among {one.fitted} for {slot}: {worth} expected per 1,000.",
                    f"I expect {words.points(mind(one.player))}, {worth} per 1,000; nobody left for {slot} gives more.",
                )
            )
            if not one.refused
            else f"Best value for {slot} that the cap allows: {worth} expected per 1,000."
        )
    return plan


def _trailing(week: Week, mind: _Mind, dice: Dice) -> _Plan:
    found = Market(week.slots, week.players).best(week.cap, mind)
    total = sum(mind(player) for player in found)
    plan = _Plan(
        seat(week.slots, found),
        f"No lineup under the cap has a greater sum of my expectations: {words.points(total)}.",
        "trailing average",
    )
    for slot, player in plan.seats.items():
        rank, of = _rank(week, player, mind)
        place, _ = _rank(week, player, mind.value)
        plan.reasons[slot] = dice.one_of(
            (
                f"I expect {words.points(mind(player))}: {words.ordinal(rank)} of {of} {player.position}.",
                f"{words.ordinal(place)} of {of} {player.position} by expected points for the price.",
                f"In the best total under the cap with {words.points(mind(player))} expected.",
            )
        )
        if place < rank:
            plan.factors[slot] = "points per 1,000"
    return plan


def _stars(week: Week, mind: _Mind, dice: Dice) -> _Plan:
    stars: list[tuple[Slot, Player]] = []
    slots, free, left = list(week.slots), list(week.players), week.cap
    for player in sorted(week.players, key=lambda player: (-mind(player), player.price, player.player_id)):
        if len(stars) == min(mind.style.stars, len(week.slots)):
            break
        slot = next((slot for slot in slots if slot.positions & player.positions), None)
        if slot is None:
            continue
        later = [other for other in slots if other is not slot]
        others = [other for other in free if other.player_id != player.player_id]
        rest = Market(later, others).cheapest()
        if rest is not None and player.price + rest[0] <= left:
            stars.append((slot, player))
            slots, free, left = later, others, left - player.price
    limits = {position: _median(week, position) for position in {player.position for player in week.players}}
    cheap = [player for player in free if player.price <= limits[player.position]]
    try:
        scrubs, terms = Market(slots, cheap).best(left, mind), "from the cheaper half of each position"
    except NoLegalLineup:
        scrubs, terms = Market(slots, free).best(left, mind), "with what is left"
    seats = {slot.name: player for slot, player in stars} | seat(slots, scrubs)
    top = sum(player.price for _, player in stars)
    plan = _Plan(
        {slot.name: seats[slot.name] for slot in week.slots},
        f"{words.count(len(stars), 'star')} for {words.percent(top, week.cap)} of the cap, "
        f"and the other {words.count(len(slots), 'slot')} {terms}.",
        "cheap filler",
    )
    for number, (slot, player) in enumerate(stars, start=1):
        plan.reasons[slot.name] = (
            f"Star {number} of {len(stars)}: I expect {words.points(mind(player))} and pay {player.price:,} for it."
        )
        plan.factors[slot.name] = "star"
    for slot in slots:
        player = seats[slot.name]
        limit = limits[player.position]
        plan.reasons[slot.name] = (
            f"Filler at {player.position}: {words.points(mind(player))} expected for {limit:,} or less."
            if player.price <= limit
            else f"Filler: {words.points(mind(player))} expected; the cheaper half of the pool cannot fill the rest."
        )
    return plan


_PLANS: dict[Strategy, Callable[[Week, _Mind, Dice], _Plan]] = {
    Strategy.RANDOM: _random,
    Strategy.CHEAPEST: _cheapest,
    Strategy.PRICE: _price,
    Strategy.VALUE: _value,
    Strategy.TRAILING: _trailing,
    Strategy.STARS: _stars,
}


def _rank(week: Week, player: Player, by: Callable[[Player], int]) -> tuple[int, int]:
    """The player's place among the players of his position (equals share the better place), and how many they are."""
    peers: Sequence[Player] = [other for other in week.players if other.positions == player.positions]
    return 1 + sum(by(other) > by(player) for other in peers), len(peers)


def _median(week: Week, position: str) -> int:
    prices = sorted(player.price for player in week.players if player.position == position)
    return prices[(len(prices) - 1) // 2]


def _fit(week: Week, slot: str) -> str:
    """The positions that a slot takes, as words: ``RB``, or ``RB, TE or WR``."""
    *most, last = sorted(next(one for one in week.slots if one.name == slot).positions)
    return f"{', '.join(most)} or {last}" if most else last
