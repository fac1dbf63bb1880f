"""Built-in prices, for a week that no salary file prices: a function of past points only. Pure and exact.

``docs/pricing.md`` states the formula with its reasons and a worked example. In short: a player's *rating*
is the recency-weighted mean of his points, drawn towards the mean of his position while he has few games;
a price is a straight line through his position's ratings, between a floor and a ceiling, so scaled that a
lineup of typical starters costs the cap.

All is done in whole numbers and fractions (means and ratings are rounded to the hundredth of a point, prices
to steps), and nothing depends on the order of the input: every machine gives the same prices. A change of the
function or of a constant is a new :data:`VERSION`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import NamedTuple

from common.events import Game
from contests.domain import Ruleset

VERSION = "built-in-1"

RECENCY = Fraction(19, 20)
"""A game weighs this much less for every week that it is older."""

SEASON = 30
"""Weeks from one season's week to the same week of the next: the months without games make half of a weight."""

PRIOR_GAMES = 1
"""The mean of the position counts as this many games of last week."""

ABSENCE = Fraction(3, 10)
"""A week in which his team played and he has no statistics counts as this part of a game without points."""

SEASONS_SEEN = 1
"""A player who was last seen more seasons ago than this is not offered."""

STEP = 100
"""Prices are multiples of this."""

CAP = 50_000
"""The cap that the prices of :data:`TERMS` are for; others scale them."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How a position is priced under a cap of :data:`CAP`.

    ``floor`` and ``ceiling`` bound the price; ``typical`` is what the mean rating of the position's typical
    starters costs. ``bench`` is the part of that rating, in hundredths, at and below which the floor is paid.
    """

    floor: int
    typical: int
    ceiling: int
    bench: int


TERMS: dict[str, Terms] = {
    "QB": Terms(floor=4_000, typical=6_400, ceiling=8_500, bench=30),
    "RB": Terms(floor=3_000, typical=6_000, ceiling=10_000, bench=30),
    "WR": Terms(floor=3_000, typical=6_000, ceiling=10_000, bench=45),
    "TE": Terms(floor=2_500, typical=4_800, ceiling=7_500, bench=50),
    "DST": Terms(floor=2_000, typical=3_200, ceiling=4_500, bench=20),
}
"""The ``typical`` prices fill the default roster to exactly the cap, a FLEX counted as the mean of its positions."""


class PricingError(ValueError):
    """Prices cannot be made of what was given; the message says what is wrong and what would be right."""


class Period(NamedTuple):
    """A week of a season; periods sort as they are played."""

    season: int
    week: int

    def age(self, before: Period) -> int:
        """How many weeks ago ``before`` was, a season counted as :data:`SEASON`."""
        return (self.season - before.season) * SEASON + self.week - before.week

    def __str__(self) -> str:
        return f"{self.season}-W{self.week:02d}"


@dataclass(frozen=True, slots=True)
class Performance:
    """What a player scored in a week, in hundredths, and for which team: a franchise, whatever it was called then."""

    period: Period
    player_id: str
    team: str
    points: int


@dataclass(frozen=True, slots=True)
class Sighting:
    """Where a player was in a week: a row of statistics, of a roster or of a salary list.

    ``positions`` is empty where the source does not tell. ``played`` marks a row of statistics: of
    two sightings in one week it is the one that says for which team he was.
    """

    period: Period
    player_id: str
    name: str
    positions: tuple[str, ...]
    team: str
    played: bool = False


@dataclass(frozen=True, slots=True)
class Priced:
    """A player and his price. ``rating`` is in hundredths of a point, rounded; ``games`` those behind it."""

    player_id: str
    name: str
    positions: tuple[str, ...]
    team: str
    game: Game
    games: int
    rating: int
    price: int


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A player of a team that plays, who is not offered, and why."""

    player_id: str
    name: str
    team: str
    reason: str


@dataclass(frozen=True, slots=True)
class PricedWeek:
    """A week's prices, dearest first (then by id).

    ``games`` counts the week's games, be there players for them or not.
    ``typical_lineup`` is what a lineup of typical starters costs, rounded: about the cap, less where too few
    have a history. ``idle`` counts the players who were seen, but whose team has no game.
    """

    period: Period
    cap: int
    games: int
    players: tuple[Priced, ...]
    left_out: tuple[LeftOut, ...]
    idle: int
    typical_lineup: int


@dataclass(frozen=True, slots=True)
class _Known:
    """A player as last seen before the games of a week."""

    player_id: str
    name: str
    positions: tuple[str, ...]
    team: str
    seen: Period


def price(
    period: Period,
    games: Sequence[Game],
    performances: Iterable[Performance],
    sightings: Iterable[Sighting],
    ruleset: Ruleset,
) -> PricedWeek:
    """Price the players of a week's games under a ruleset.

    ``games`` are all of the week, covered or not, so that prices do not hang on what a contest covers.
    Only ``performances`` of earlier weeks count, and only ``sightings`` of earlier weeks and, where they are no
    statistics, of the week itself: who is on which team is known before a game, who plays in it is not.

    Raises :class:`PricingError` where a team plays twice, where there is no game, where the roster has a
    position without :data:`TERMS`, or where a player has two different scores in one week.
    """
    terms = _scaled(ruleset)
    game_of = _game_of(games)
    history, weeks_of = _history(period, performances)
    known = [_known(rows, ruleset) for rows in _by_player(period, sightings)]

    means: dict[str, list[int]] = defaultdict(list)
    for player in known:
        if player.positions and (played := history.get(player.player_id)):
            means[player.positions[0]].append(_mean(period, played))
    prior = {position: _divided(sum(values), len(values)) for position, values in means.items()}

    offered, left_out, idle = [], [], 0
    for player in known:
        if player.team not in game_of:
            idle += 1
        elif reason := _why_not(player, period, ruleset):
            left_out.append(LeftOut(player.player_id, player.name, player.team, reason))
        else:
            played = history.get(player.player_id, {})
            missed = [week for week in weeks_of.get(player.team, ()) if played and min(played) < week not in played]
            rating = _rating(period, played, missed, prior.get(player.positions[0], 0))
            offered.append((player, len(played), rating))

    anchors = {
        position: _best(position, (r for p, _, r in offered if p.positions[0] == position), len(game_of), ruleset)
        for position in terms
    }
    players = [
        Priced(
            player_id=player.player_id,
            name=player.name,
            positions=player.positions,
            team=player.team,
            game=game_of[player.team],
            games=count,
            rating=rating,
            price=_price(rating, anchors[player.positions[0]], terms[player.positions[0]]),
        )
        for player, count, rating in offered
    ]
    players.sort(key=lambda player: (-player.price, player.player_id))
    return PricedWeek(
        period=period,
        cap=ruleset.cap,
        games=len(games),
        players=tuple(players),
        left_out=tuple(sorted(left_out, key=lambda out: out.player_id)),
        idle=idle,
        typical_lineup=_typical_lineup(players, len(game_of), ruleset),
    )


def unfilled(priced: PricedWeek, ruleset: Ruleset) -> tuple[str, ...]:
    """The slots of the roster that stay empty however the priced players are placed, each player in one slot.

    They are as few as can be (augmenting paths); empty where a whole lineup can be picked.
    """
    holder: dict[str, int] = {}

    def seated(slot: int, tried: set[str]) -> bool:
        for player in priced.players:
            if player.player_id in tried or set(ruleset.roster[slot].positions).isdisjoint(player.positions):
                continue
            tried.add(player.player_id)
            if player.player_id not in holder or seated(holder[player.player_id], tried):
                holder[player.player_id] = slot
                return True
        return False

    return tuple(slot.slot for number, slot in enumerate(ruleset.roster) if not seated(number, set()))


# --- what is known ------------------------------------------------------------------------------


def _game_of(games: Sequence[Game]) -> dict[str, Game]:
    game_of: dict[str, Game] = {}
    for game in games:
        for team in (game.away, game.home):
            if team in game_of:
                both = sorted((game_of[team].game_id, game.game_id))
                raise PricingError(f"{team} plays twice in one week: {' and '.join(both)}")
            game_of[team] = game
    if not game_of:
        raise PricingError("there is no game in this week, so there is nobody to price")
    return game_of


def _history(
    period: Period, performances: Iterable[Performance]
) -> tuple[dict[str, dict[Period, int]], dict[str, set[Period]]]:
    """Points by player and week, and the weeks in which each team played, both before ``period``."""
    history: dict[str, dict[Period, int]] = defaultdict(dict)
    weeks_of: dict[str, set[Period]] = defaultdict(set)
    for one in performances:
        if one.period >= period:
            continue
        of_player = history[one.player_id]
        if of_player.setdefault(one.period, one.points) != one.points:
            scores = sorted((of_player[one.period], one.points))
            raise PricingError(f"{one.player_id} has {scores[0]} and {scores[1]} hundredths in {one.period}")
        if one.team:
            weeks_of[one.team].add(one.period)
    return history, weeks_of


def _by_player(period: Period, sightings: Iterable[Sighting]) -> list[list[Sighting]]:
    """What may be known of each player before his games of ``period``, the latest first, whatever order it comes in."""
    rows: dict[str, list[Sighting]] = defaultdict(list)
    for sighting in sightings:
        if sighting.period < period or (sighting.period == period and not sighting.played):
            rows[sighting.player_id].append(sighting)
    for of_player in rows.values():
        of_player.sort(key=lambda row: (row.period, row.played, row.team, len(row.name), row.name), reverse=True)
    return [rows[player_id] for player_id in sorted(rows)]


def _known(rows: Sequence[Sighting], ruleset: Ruleset) -> _Known:
    """A player's team by his latest sighting, his positions and name by the latest that tells them.

    A salary list writes a name in full and statistics shorten it: the longest of the week that gave
    the positions is taken. A player has all positions that this week's rows give him, in the roster's order.
    """
    telling = next((row.period for row in rows if row.positions), None)
    naming = [row for row in rows if row.period == telling] or rows
    found = {position for row in naming for position in row.positions}
    order = [position for slot in ruleset.roster for position in slot.positions]
    positions = sorted(found, key=lambda position: (order.index(position) if position in order else 99, position))
    name = max((row.name for row in naming), key=lambda name: (len(name), name))
    return _Known(rows[0].player_id, name, tuple(positions), rows[0].team, rows[0].period)


def _why_not(player: _Known, period: Period, ruleset: Ruleset) -> str:
    if not player.positions:
        return "no source tells his position"
    if not ruleset.positions.issuperset(player.positions):
        return f"no slot of the roster takes {'/'.join(player.positions)}"
    if period.season - player.seen.season > SEASONS_SEEN:
        return f"last seen in {player.seen}"
    return ""


# --- the formula --------------------------------------------------------------------------------


LONGEST = 10 * SEASON
"""Whatever is older weighs as if it were this many weeks old: less than a millionth of a game."""


@cache
def _weight(weeks: int) -> int:
    """What a game weighs that is so many weeks old, in the unit in which every weight is whole."""
    weeks = min(weeks, LONGEST)
    weight: int = RECENCY.numerator**weeks * RECENCY.denominator ** (LONGEST - weeks)
    return weight


def _scored(period: Period, played: dict[Period, int]) -> tuple[int, int]:
    """The weighted sum of a player's points and the sum of the weights."""
    weights = {week: _weight(period.age(week)) for week in played}
    return sum(weights[week] * points for week, points in played.items()), sum(weights.values())


def _mean(period: Period, played: dict[Period, int]) -> int:
    points, weight = _scored(period, played)
    return _divided(points, weight)


def _rating(period: Period, played: dict[Period, int], missed: Iterable[Period], prior: int) -> int:
    """Hundredths of a point that a player's past is worth; zero for one who has none."""
    if not played:
        return 0
    points, weight = _scored(period, played)
    prior_weight = PRIOR_GAMES * _weight(1)
    absent = sum(_weight(period.age(week)) for week in missed)
    # Multiplied through by the denominator of ABSENCE, so that all stays whole.
    above = ABSENCE.denominator * (points + prior_weight * prior)
    return _divided(above, ABSENCE.denominator * (weight + prior_weight) + ABSENCE.numerator * absent)


def _scaled(ruleset: Ruleset) -> dict[str, tuple[Fraction, Fraction, Fraction, Fraction]]:
    """Floor, typical price, ceiling and bench of each position of the roster, under its cap."""
    missing = sorted(ruleset.positions - TERMS.keys())
    if missing:
        raise PricingError(f"there are no prices for {', '.join(missing)}; built-in are {', '.join(TERMS)}")
    typical = sum(
        (Fraction(sum(TERMS[p].typical for p in slot.positions), len(slot.positions)) for slot in ruleset.roster),
        Fraction(),
    )
    scale = ruleset.cap / typical
    return {
        position: (scale * terms.floor, scale * terms.typical, scale * terms.ceiling, Fraction(terms.bench, 100))
        for position, terms in TERMS.items()
        if position in ruleset.positions
    }


def _starters(position: str, teams: int, ruleset: Ruleset) -> int:
    """How many of a position are typical starters: half as many as its own slots would take from every team."""
    own = sum(slot.positions == (position,) for slot in ruleset.roster)
    return max(1, own * teams // 2)


def _best(position: str, values: Iterable[int], teams: int, ruleset: Ruleset) -> Fraction:
    """The mean of the highest values, as many as the position has typical starters; zero of none."""
    best = sorted(values, reverse=True)[: _starters(position, teams, ruleset)]
    return Fraction(sum(best), len(best)) if best else Fraction()


def _price(rating: int, anchor: Fraction, terms: tuple[Fraction, Fraction, Fraction, Fraction]) -> int:
    floor, typical, ceiling, bench = terms
    if anchor <= 0 or rating <= bench * anchor:
        return _to_step(floor)
    value = floor + (typical - floor) * (rating - bench * anchor) / (anchor - bench * anchor)
    return _to_step(min(value, ceiling))


def _to_step(value: Fraction) -> int:
    """The nearest multiple of a step, halves up, and one step at least."""
    return max(1, (value / STEP + Fraction(1, 2)).__floor__()) * STEP


def _divided(above: int, below: int) -> int:
    """The nearest whole number to a quotient, halves up."""
    return (2 * above + below) // (2 * below)


def _typical_lineup(players: Sequence[Priced], teams: int, ruleset: Ruleset) -> int:
    """What the roster costs, filled with the mean price of each position's typical starters."""
    means = {
        position: _best(position, (p.price for p in players if p.positions[0] == position), teams, ruleset)
        for position in ruleset.positions
    }
    slots = (sum((means[p] for p in slot.positions), Fraction()) / len(slot.positions) for slot in ruleset.roster)
    cost = sum(slots, Fraction())
    return _divided(cost.numerator, cost.denominator)
