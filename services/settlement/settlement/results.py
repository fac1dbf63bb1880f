"""The result of a week: contest, frozen lineups and statistics in; points, optimum and digest out. Pure.

The digest is the one that ``common.settled`` specifies, so that boards can work it out from the events again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from common import events as ev
from common.settled import digest, lineup_form
from settlement import domain
from settlement.certify import Certificate, certify
from settlement.optimal import Lineup, Player, optimal


class ImpossibleLineupError(domain.SettlementError):
    """A frozen lineup that the contest cannot have accepted: a player outside the pool, or more than the optimum."""


@dataclass(frozen=True, slots=True)
class Pick:
    """A pick as frozen by the lock."""

    slot: str
    player_id: str
    price: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A lineup as frozen by the lock."""

    lineup_id: UUID
    agent_id: UUID
    model: str
    marks: ev.Marks
    picks: tuple[Pick, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """What an entry is worth; ``picks`` are the points of its picks, in their order."""

    entry: Entry
    points: int
    share: int
    regret: int
    picks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A week worked out. ``players`` has the whole pool, sorted by id."""

    players: dict[str, int]
    optimal: Lineup
    certificate: Certificate
    results: tuple[Result, ...]
    digest: str


def pool_points(contest: ev.ContestOpened, lines: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Points of every player of the pool, by id; one without a statistics line did not play and scores zero.

    So does one whose game left the contest before its lock, also where it was played on another day (S3).
    """
    domain.check_scoring(contest.scoring)
    left = {game.game_id for game in contest.games if game.status != "scheduled"}
    return {
        player.player_id: 0
        if player.game_id in left
        else domain.points(lines.get(player.player_id, {}), contest.scoring)
        for player in sorted(contest.players, key=lambda player: player.player_id)
    }


def silent_games(contest: ev.ContestOpened, lines: Mapping[str, Mapping[str, int]]) -> tuple[ev.Game, ...]:
    """Covered games with players in the pool of whom none has a statistics line: not played, or not imported.

    Games that left the contest before its lock are none of them.
    """
    priced = {player.game_id for player in contest.players}
    heard = {player.game_id for player in contest.players if player.player_id in lines}
    return tuple(game for game in contest.games if game.status == "scheduled" and game.game_id in priced - heard)


def lineup_points(entries: Sequence[Entry], players: Mapping[str, int]) -> list[tuple[int, ...]]:
    """Points of each entry's picks. Raises ``ImpossibleLineupError`` for a player who is not in the pool."""
    if not entries:
        return []
    place = {player_id: number for number, player_id in enumerate(players)}
    try:
        picked = [[place[pick.player_id] for pick in entry.picks] for entry in entries]
    except KeyError as unknown:
        raise ImpossibleLineupError(f"a frozen lineup has {unknown.args[0]!r}, who is not in the pool") from None
    worth = np.fromiter(players.values(), dtype=np.int64, count=len(players))
    return [tuple(row) for row in worth[np.array(picked)].tolist()]


def work_out(contest: ev.ContestOpened, entries: Sequence[Entry], lines: Mapping[str, Mapping[str, int]]) -> Outcome:
    """Score, solve and certify a week. Takes about a tenth of a second; keep it off the event loop.

    The caller decides what a certificate that does not agree means. Raises ``InfeasibleError`` and
    ``TooFineError`` of ``optimal``, ``BadScoring`` and ``ImpossibleLineupError``.
    """
    players = pool_points(contest, lines)
    pool = [Player(one.player_id, one.positions, one.price, players[one.player_id]) for one in contest.players]
    best = optimal(pool, contest.roster, contest.cap)
    certificate = certify(pool, contest.roster, contest.cap, best.points)
    results = []
    for entry, picks in zip(entries, lineup_points(entries, players), strict=True):
        points = sum(picks)
        if points > best.points and certificate.agrees:
            raise ImpossibleLineupError(f"lineup {entry.lineup_id} scores {points}, more than the best {best.points}")
        results.append(
            Result(entry, points, domain.share(points, best.points), domain.regret(points, best.points), picks)
        )
    return Outcome(players, best, certificate, tuple(results), _digest(contest, players, best, results))


def _digest(contest: ev.ContestOpened, players: Mapping[str, int], best: Lineup, results: Sequence[Result]) -> str:
    forms = (
        lineup_form(
            result.entry.model,
            result.entry.marks,
            result.points,
            result.share,
            result.regret,
            (
                (pick.slot, pick.player_id, pick.price, points)
                for pick, points in zip(result.entry.picks, result.picks, strict=True)
            ),
        )
        for result in results
    )
    optimum = ev.OptimalLineup(points=best.points, price=best.price, players=best.players)
    return digest(contest.contest, contest.scoring.scoring, optimum, players, forms)
