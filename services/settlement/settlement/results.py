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
from settlement.lines import line_of
from settlement.optimal import Lineup, Player
from settlement.policies import counts, is_open, zero_games
from settlement.ranks import NoRankError, Place, Standing, standing
from settlement.ruled import keeps, optimal_under


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
    """What an entry is worth; ``picks`` are the points of its picks, in their order.

    ``place`` is where it stands among all lineups of the pool, ``None`` where that is not known or it is none of them.
    """

    entry: Entry
    points: int
    share: int
    regret: int
    picks: tuple[int, ...]
    place: Place | None = None

    @property
    def rank(self) -> str | None:
        """Decimal digits: ranks may exceed what programs take a number for."""
        return str(self.place.rank) if self.place is not None else None

    @property
    def tied(self) -> str | None:
        """How many lineups of the pool have as many points, itself among them; decimal digits."""
        return str(self.place.level) if self.place is not None else None

    @property
    def percentile(self) -> int | None:
        """The millionths of all lineups that have fewer points, rounded down."""
        return self.place.percentile if self.place is not None else None


@dataclass(frozen=True, slots=True)
class Outcome:
    """A week worked out. ``players`` has the whole pool, sorted by id.

    ``standing`` says how many lineups of the pool score how much; where it is ``None``, ``no_ranks`` says why.
    """

    players: dict[str, int]
    optimal: Lineup
    certificate: Certificate
    results: tuple[Result, ...]
    digest: str
    standing: Standing | None
    no_ranks: str | None

    @property
    def counted(self) -> int | None:
        """The most points of any lineup that was counted, where lineups were counted by points."""
        return self.standing.points[-1] if self.standing is not None else None

    @property
    def proven(self) -> bool:
        """Whether every method that was asked found the same best points: the programme, CP-SAT, the count."""
        return self.certificate.agrees and self.counted in (None, self.optimal.points)


def pool_points(contest: ev.ContestOpened, lines: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Points of every player of the pool, by id; one without a statistics line did not play and scores zero.

    So does one of a game that was not played as planned and is worth nothing by the contest's policies (S3): as a rule
    of one that left it before its lock, also where it was played on another day.
    """
    domain.check_scoring(contest.scoring)
    left = zero_games(contest)
    return {
        player.player_id: 0
        if player.game_id in left
        else domain.points(line_of(lines, player.player_id, player.team) or {}, contest.scoring)
        for player in sorted(contest.players, key=lambda player: player.player_id)
    }


def silent_games(contest: ev.ContestOpened, lines: Mapping[str, Mapping[str, int]]) -> tuple[ev.Game, ...]:
    """Games that should count and cannot yet: no player of theirs in the pool has a line, or they are to be resumed.

    Games in which everybody scores zero are none of them.
    """
    priced = {player.game_id for player in contest.players}
    heard = {player.game_id for player in contest.players if line_of(lines, player.player_id, player.team) is not None}
    return tuple(
        game
        for game in contest.games
        if counts(game, contest.policies)
        and (game.game_id in priced - heard or (game.game_id in priced and is_open(game, contest.policies)))
    )


def lineup_points(
    contest: ev.ContestOpened, entries: Sequence[Entry], players: Mapping[str, int]
) -> list[tuple[int, ...]]:
    """Points of each entry's picks.

    A pick of a player who is not in the pool scores zero where the contest has had another pool before: the lineup
    was taken by that one. Else it raises ``ImpossibleLineupError``.
    """
    if not entries:
        return []
    place = {player_id: number for number, player_id in enumerate(players)}
    if contest.pool > 1:
        gone = len(place)
        picked = [[place.get(pick.player_id, gone) for pick in entry.picks] for entry in entries]
    else:
        try:
            picked = [[place[pick.player_id] for pick in entry.picks] for entry in entries]
        except KeyError as unknown:
            raise ImpossibleLineupError(f"a frozen lineup has {unknown.args[0]!r}, who is not in the pool") from None
    worth = np.fromiter((*players.values(), 0), dtype=np.int64, count=len(players) + 1)
    return [tuple(row) for row in worth[np.array(picked)].tolist()]


def _is_of_the_pool(contest: ev.ContestOpened, entry: Entry, pool: Mapping[str, Player]) -> bool:
    """Whether an entry is one that the pool allows: all are, unless there was another pool before.

    Another pool may have come with other prices, another cap or roster, and other rules on teams and games.
    """
    if contest.pool == 1:
        return True
    may_fill = {slot.slot: slot.positions for slot in contest.roster}
    if {pick.slot for pick in entry.picks} != may_fill.keys() or sum(pick.price for pick in entry.picks) > contest.cap:
        return False
    members = []
    for pick in entry.picks:
        player = pool.get(pick.player_id)
        if player is None or player.price != pick.price or not set(player.positions) & set(may_fill[pick.slot]):
            return False
        members.append(player)
    return keeps(members, contest.lineup_rules)


def work_out(contest: ev.ContestOpened, entries: Sequence[Entry], lines: Mapping[str, Mapping[str, int]]) -> Outcome:
    """Score, solve, certify and rank a week. Takes about half a second; keep it off the event loop.

    The optimum is that of the last pool. A lineup that was taken by an earlier one, at other prices, may score more:
    its share is the whole and its regret none. The caller decides what a certificate that does not agree means.
    Raises ``InfeasibleError``, ``TooFineError`` and ``UnprovenError`` of ``optimal_under``, ``BadScoring`` and
    ``ImpossibleLineupError``.
    """
    players = pool_points(contest, lines)
    pool = [
        Player(one.player_id, one.positions, one.price, players[one.player_id], one.team, one.game_id)
        for one in contest.players
    ]
    by_id = {player.player_id: player for player in pool}
    best = optimal_under(pool, contest.roster, contest.cap, contest.lineup_rules)
    certificate = certify(pool, contest.roster, contest.cap, best.points, contest.lineup_rules)
    counted, no_ranks = _counted(pool, contest)
    results = []
    for entry, picks in zip(entries, lineup_points(contest, entries, players), strict=True):
        points = sum(picks)
        graded = points
        of_the_pool = _is_of_the_pool(contest, entry, by_id)
        if points > best.points and certificate.agrees:
            if of_the_pool:
                more = f"lineup {entry.lineup_id} scores {points}, more than the best {best.points}"
                raise ImpossibleLineupError(more)
            graded = best.points
        share, regret = domain.share(graded, best.points), domain.regret(graded, best.points)
        place = counted.place(points) if counted is not None and of_the_pool else None
        if place is not None and not place.level:
            place = None
        results.append(Result(entry, points, share, regret, picks, place))
    made = _digest(contest, players, best, results)
    return Outcome(players, best, certificate, tuple(results), made, counted, no_ranks)


def _counted(pool: Sequence[Player], contest: ev.ContestOpened) -> tuple[Standing | None, str | None]:
    """How many lineups there are of each score, or why that is not known."""
    if not contest.lineup_rules.none:
        return None, "the contest has rules on teams or games, and lineups are not counted under those"
    try:
        return standing(pool, contest.roster, contest.cap), None
    except NoRankError as error:
        return None, str(error)


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
