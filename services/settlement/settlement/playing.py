"""Which games of a contest are still to play, as far as settlement can know while they are played. Pure.

The rule, the first that applies:

1. A game that left its contest, was called off or was ended early is over: nothing more comes of it.
2. Final statistics say that every game is over.
3. What an import said of a game holds: ``waiting``, ``playing`` or ``over``.
4. Before its kickoff a game waits, unless somebody in it has a line already: then it is being played.
5. For ``LONGEST`` from its kickoff on it is being played.
6. After that it is over, or, where nobody in it has a line, it waits: as far as is known it was not played.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Literal

from common import events as ev
from settlement.lines import line_of
from settlement.policies import is_open, rule_of

GameState = Literal["waiting", "playing", "over"]

LONGEST = timedelta(hours=5)
"""No game that was not interrupted has lasted longer, overtime included; of one that was, the import tells."""


def states(
    contest: ev.ContestOpened,
    lines: Mapping[str, Mapping[str, int]],
    now: datetime,
    told: Mapping[str, GameState],
    *,
    final: bool,
) -> dict[str, GameState]:
    """The state of each game of a contest, by id; ``told`` is what imports said of games."""
    heard = heard_games(contest, lines)
    return {game.game_id: _state(contest, game, game.game_id in heard, now, told, final) for game in contest.games}


def heard_games(contest: ev.ContestOpened, lines: Mapping[str, Mapping[str, int]]) -> frozenset[str]:
    """The games of which some player of the pool has a line."""
    return frozenset(
        player.game_id for player in contest.players if line_of(lines, player.player_id, player.team) is not None
    )


def _state(
    contest: ev.ContestOpened,
    game: ev.Game,
    heard: bool,
    now: datetime,
    told: Mapping[str, GameState],
    final: bool,
) -> GameState:
    if final or (rule_of(game) is not None and not is_open(game, contest.policies)):
        return "over"
    if game.game_id in told:
        return told[game.game_id]
    if now < game.kickoff:
        return "playing" if heard else "waiting"
    if now < game.kickoff + LONGEST:
        return "playing"
    return "over" if heard else "waiting"


def to_play(picks: Iterable[str], games: Mapping[str, str], found: Mapping[str, GameState]) -> tuple[int, int]:
    """How many of a lineup's picks wait for their game, and how many are in one that is being played.

    ``picks`` are players' ids, ``games`` the game of each player of the pool; one who is in no game is done.
    """
    states = Counter(found.get(games.get(player_id, ""), "over") for player_id in picks)
    return states["waiting"], states["playing"]
