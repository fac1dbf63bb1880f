"""The best lineup under rules on teams and games, in the same stated order as without. Pure.

The programme of ``optimal`` does not know such rules. It lists lineups in order, though, and the first that keeps the
rules is the best that does: in most weeks one of the first few. Where none of the first ``DEPTH`` does, the rules bind
hard, listing on could take for ever, and CP-SAT searches instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from common.events import LineupRules, Slot
from settlement.certify import search
from settlement.optimal import InfeasibleError, Lineup, Player, best_lineups, optimal

DEPTH = 1_000
"""Lineups that are listed before CP-SAT is asked; they take some milliseconds, its answer some seconds."""


def keeps(members: Iterable[Player], rules: LineupRules) -> bool:
    """Whether a lineup of these players keeps the rules."""
    members = list(members)
    crowd = max(Counter(player.team for player in members).values(), default=0)
    return (rules.max_per_team is None or crowd <= rules.max_per_team) and (
        rules.min_games is None or len({player.game for player in members}) >= rules.min_games
    )


def optimal_under(
    players: Iterable[Player], roster: Sequence[Slot], cap: int, rules: LineupRules, depth: int = DEPTH
) -> Lineup:
    """The best lineup that keeps the rules.

    Raises ``InfeasibleError`` where there is none, ``TooFineError`` as ``optimal``, ``UnprovenError`` as ``search``.
    """
    pool = list(players)
    if rules.none:
        return optimal(pool, roster, cap)
    by_id = {player.player_id: player for player in pool}
    for count in sorted({min(50, depth), depth}):
        listed = best_lineups(pool, roster, cap, count)
        for lineup in listed:
            if keeps((by_id[one] for one in lineup.players), rules):
                return lineup
        if len(listed) < count:
            break
    else:
        found = search(pool, roster, cap, rules)
        if found is not None:
            return found
    optimal(pool, roster, cap)  # Says why, where there is no lineup even without the rules.
    asked = (
        ("max_per_team", "at most {} players of one team", rules.max_per_team),
        ("min_games", "at least {} games", rules.min_games),
    )
    raise InfeasibleError(
        "no lineup keeps the rules: " + ", ".join(text.format(value) for _, text, value in asked if value is not None)
    )
