"""What games are worth that were not played as planned: the contest's policies applied to its games. Pure.

The policies are data of the contest's ruleset (``common.events.Policies``); docs/scoring.md says what each means.
"""

from __future__ import annotations

from common.events import ContestOpened, Game, Policies


def rule_of(game: Game) -> str | None:
    """The policy that a game falls under, by its name in ``Policies``; ``None`` where it was played as planned.

    A suspended game falls under ``suspended`` where it went on in the contest's week, and ``resumed_late`` where it
    went on later; until it has, see ``is_open``.
    """
    if game.status == "cancelled" or game.became == "cancelled":
        return "cancelled"
    if game.status == "moved" or game.became == "postponed":
        return "postponed"
    if game.became == "suspended":
        return "suspended" if game.in_week or game.resumed_at is None else "resumed_late"
    return game.became


def counts(game: Game, policies: Policies) -> bool:
    """Whether what is counted of a game counts; where it does not, everybody in it scores zero."""
    rule = rule_of(game)
    return rule is None or getattr(policies, rule) == "counted"


def is_open(game: Game, policies: Policies) -> bool:
    """Whether a game that was suspended may still go on, in a way that would count."""
    rules = (policies.suspended, policies.resumed_late)
    return game.became == "suspended" and game.resumed_at is None and "counted" in rules


def zero_games(contest: ContestOpened) -> frozenset[str]:
    """Ids of the games in which everybody scores zero."""
    return frozenset(game.game_id for game in contest.games if not counts(game, contest.policies))
