"""How near the built-in prices come to real ones: each week of a salary file priced anew from the weeks before it.

Prices are made exactly as for a week to come: of each week only the games, and who is listed for which team at
which position, are taken from the real list. Figures are the same on every machine.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from common.events import PoolPlayer
from contests import imports
from contests.domain import DAYS, Ruleset
from contests.price_files import franchise, franchised, identity
from contests.pricing import TERMS, VERSION, Performance, Period, PricingError, Sighting, price

TUNED_ON = 2017
"""The season by which the constants were chosen. Any other is held out."""

FIRST_WEEK = 4

DST = ("DST",)


def backtest(
    salaries: Iterable[bytes],
    performances: Sequence[Performance],
    appearances: Sequence[Sighting],
    ruleset: Ruleset,
    *,
    first_week: int = FIRST_WEEK,
    players: Sequence[bytes] = (),
) -> dict[str, Any]:
    """Price every week of salary files from ``first_week`` on, and compare with the prices they list.

    Returns ``{priced_by, first_week, seasons: [{season, tuned, positions, weeks: [{week, positions}]}]}``. A week's
    ``positions`` have, by position: ``listed`` players, ``spearman`` (rank correlation, ties at their mean rank;
    ``None`` where all prices are one), ``spearman_with_history`` (of the ``with_history`` players alone),
    ``mean_absolute_difference`` and ``mean_difference`` (ours minus theirs). A season's are the means of its weeks'
    correlations, and sums and differences over all its listings.

    ``players`` are files that tell the ids of players whom a list knows by name alone.

    Raises ``Malformed`` for a file that cannot be imported, and ``PricingError``, also where the statistics know no
    player of a season's lists: all would be priced as newcomers, which compares nothing.
    """
    by_season: dict[int, list[imports.Week]] = defaultdict(list)
    for content in salaries:
        for week in imports.read(content, ruleset=ruleset, days=DAYS, players=players or None).weeks:
            by_season[week.season].append(week)
    return {
        "priced_by": VERSION,
        "first_week": first_week,
        "seasons": [
            _season(season, weeks, performances, appearances, ruleset, first_week)
            for season, weeks in sorted(by_season.items())
        ],
    }


def _season(
    season: int,
    weeks: Sequence[imports.Week],
    performances: Sequence[Performance],
    appearances: Sequence[Sighting],
    ruleset: Ruleset,
    first_week: int,
) -> dict[str, Any]:
    identify = _identities(weeks, {one.player_id for one in performances})
    listed = {
        week.week: {identify(player): player for player in week.players}
        for week in sorted(weeks, key=lambda week: week.week)
    }
    persons = {player_id for of_week in listed.values() for player_id, one in of_week.items() if one.positions != DST}
    if persons and persons.isdisjoint(one.player_id for one in performances):
        raise PricingError(
            f"the statistics know none of the {len(persons)} players listed for {season}, team defences apart. A list "
            "without player_id needs --players, a file with player_id, name, position and team; "
            "a list with them needs --statistics of its season"
        )
    seen = [
        Sighting(Period(season, week), player_id, player.player_name, player.positions, franchise(player.team))
        for week, players in listed.items()
        for player_id, player in players.items()
    ]
    compared: dict[int, dict[str, list[tuple[int, int, int]]]] = {}
    for week in sorted(weeks, key=lambda week: week.week):
        if week.week < first_week or not week.games:
            continue
        priced = price(
            Period(season, week.week),
            [franchised(game) for game in week.games],
            performances,
            [*appearances, *seen],
            ruleset,
        )
        ours = {player.player_id: player for player in priced.players}
        pairs: dict[str, list[tuple[int, int, int]]] = {position: [] for position in TERMS}
        for player_id, player in listed[week.week].items():
            if (mine := ours.get(player_id)) is not None:
                pairs[player.positions[0]].append((mine.price, player.price, mine.games))
        compared[week.week] = pairs
    figures = {
        week: {position: _compared(pairs) for position, pairs in of_week.items()} for week, of_week in compared.items()
    }
    return {
        "season": season,
        "tuned": season == TUNED_ON,
        "positions": {
            position: _summed(
                [of_week[position] for of_week in figures.values()],
                [pair for of_week in compared.values() for pair in of_week[position]],
            )
            for position in TERMS
        },
        "weeks": [{"week": week, "positions": positions} for week, positions in figures.items()],
    }


def _identities(weeks: Sequence[imports.Week], known: set[str]) -> Any:
    """What tells a listed player's id: his own, or that of the one player of his name and position with statistics.

    A list leaves the id out where the player has no statistics in that very week. To take such a row for a
    newcomer would use what the week brought.
    """
    named: dict[tuple[str, tuple[str, ...]], set[str]] = defaultdict(set)
    for week in weeks:
        for player in week.players:
            if (player_id := identity(player.player_id)) in known:
                named[player.player_name, player.positions].add(player_id)

    def identify(player: PoolPlayer) -> str:
        candidates = named.get((player.player_name, player.positions), set())
        own = identity(player.player_id)
        return next(iter(candidates)) if own not in known and len(candidates) == 1 else own

    return identify


def _compared(pairs: Sequence[tuple[int, int, int]]) -> dict[str, Any]:
    """Figures of one position in one week; ``pairs`` are our price, theirs, and the games behind ours."""
    experienced = [pair for pair in pairs if pair[2]]
    return {
        "listed": len(pairs),
        "with_history": len(experienced),
        "spearman": _shown(spearman([ours for ours, _, _ in pairs], [theirs for _, theirs, _ in pairs])),
        "spearman_with_history": _shown(
            spearman([ours for ours, _, _ in experienced], [theirs for _, theirs, _ in experienced])
        ),
        **_differences(pairs),
    }


def _summed(weeks: Sequence[dict[str, Any]], pairs: Sequence[tuple[int, int, int]]) -> dict[str, Any]:
    figures: dict[str, Any] = {
        "weeks": len(weeks),
        "listed": len(pairs),
        "with_history": sum(1 for pair in pairs if pair[2]),
    }
    for name in ("spearman", "spearman_with_history"):
        values = [week[name] for week in weeks if week[name] is not None]
        figures[name] = round(math.fsum(values) / len(values), 4) if values else None
        figures[f"least_{name}"] = min(values, default=None)
    return figures | _differences(pairs)


def _differences(pairs: Sequence[tuple[int, int, int]]) -> dict[str, int | None]:
    """Means in whole units of price, rounded half up."""
    if not pairs:
        return {"mean_absolute_difference": None, "mean_difference": None}
    count = len(pairs)
    absolute = sum(abs(ours - theirs) for ours, theirs, _ in pairs)
    signed = sum(ours - theirs for ours, theirs, _ in pairs)
    return {
        "mean_absolute_difference": (2 * absolute + count) // (2 * count),
        "mean_difference": (2 * signed + count) // (2 * count),
    }


def spearman(one: Sequence[int], other: Sequence[int]) -> float | None:
    """Spearman's rank correlation, ties at their mean rank; ``None`` where one side is all ties or there are none.

    Ranks are kept doubled and so whole: only the last division and root are rounded.
    """
    if not one:
        return None
    ranks, others = _doubled_ranks(one), _doubled_ranks(other)
    count, total = len(one), (len(one) + 1) * len(one)
    covariance = count * sum(a * b for a, b in zip(ranks, others, strict=True)) - total * total
    variance = count * sum(a * a for a in ranks) - total * total
    other_variance = count * sum(b * b for b in others) - total * total
    return covariance / math.sqrt(variance * other_variance) if variance and other_variance else None


def _doubled_ranks(values: Sequence[int]) -> list[int]:
    """Twice the rank of each value from 1, equal values sharing the mean of theirs."""
    first: dict[int, int] = {}
    times: dict[int, int] = defaultdict(int)
    for place, value in enumerate(sorted(values), start=1):
        first.setdefault(value, place)
        times[value] += 1
    return [2 * first[value] + times[value] - 1 for value in values]


def _shown(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
