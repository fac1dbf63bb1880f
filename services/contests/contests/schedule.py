"""What the league's schedule changes in a contest that is not locked. Pure: a schedule and games in, a plan out.

A schedule is followed where it tells of a game of the contest with another kickoff than the contest has. It never
cancels a game by its silence and never brings back one that an operator cancelled: both are listed, for the operator.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from common.canonical import instant
from common.events import Game
from contests.domain import Coverage
from contests.imports.schedule import Schedule, Scheduled
from contests.imports.teams import franchise


@dataclass(frozen=True, slots=True)
class Plan:
    """What a schedule says of a contest's games.

    ``changes`` are games as they would be. The others stay as they are: ``missing`` ones the schedule does not have,
    of ``undecided`` ones it has no kickoff, ``cancelled`` ones it has though the contest has dropped them.
    """

    changes: tuple[Game, ...]
    missing: tuple[Game, ...]
    undecided: tuple[Game, ...]
    cancelled: tuple[Game, ...]


def plan(season: int, week: int, coverage: Coverage, games: Sequence[Game], schedule: Schedule) -> Plan:
    """What the schedule changes in the games of a contest of this season and week."""
    changes: list[Game] = []
    missing: list[Game] = []
    undecided: list[Game] = []
    cancelled: list[Game] = []
    for game in games:
        told = _find(game, season, week, schedule)
        if told is None:
            missing.append(game)
        elif game.status == "cancelled":
            cancelled.append(game)
        elif told.kickoff is None:
            undecided.append(game)
        elif told.kickoff != game.kickoff:
            changes.append(coverage.moved(game, told.kickoff))
    return Plan(tuple(changes), tuple(missing), tuple(undecided), tuple(cancelled))


def _find(game: Game, season: int, week: int, schedule: Schedule) -> Scheduled | None:
    """The game in the schedule: by its id, else by who plays where in that season.

    An id has the week in it, so that a game that moved to another week has another one. Two teams meet once a regular
    season in one place; where they met there again in the play-offs, the game of the contest's week is meant, or the
    first.
    """
    away, home = franchise(game.away), franchise(game.home)
    met = [
        told
        for told in schedule.between(frozenset({away or game.away, home or game.home}), season)
        if (told.away, told.home) == (away, home) or told.game_id == game.game_id
    ]
    return min(met, key=lambda told: (told.game_id != game.game_id, told.week != week, told.week), default=None)


def moves(before: Sequence[Game], changes: Sequence[Game]) -> list[dict[str, Any]]:
    """Each changed game with its kickoff and status before and after, as JSON."""
    was = {game.game_id: game for game in before}
    return [
        {
            "game_id": game.game_id,
            "away": game.away,
            "home": game.home,
            "kickoff": {"before": instant(was[game.game_id].kickoff), "after": instant(game.kickoff)},
            "status": {"before": was[game.game_id].status, "after": game.status},
        }
        for game in changes
    ]
