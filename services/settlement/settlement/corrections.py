"""What differs between two settlement versions of a contest. Pure.

A correction is told by its causes, the statistics that changed, and by their effect on players. What it did to
lineups and rows follows from the results of both versions, which everybody who shows them holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from common import events as ev
from settlement.domain import statistics_of
from settlement.lines import line_of

Lines = Mapping[str, Mapping[str, int]]


def kept_lines(contest: ev.ContestOpened, lines: Lines) -> dict[str, dict[str, int]]:
    """The lines of the pool's players, by id, which a version keeps, so that the next one can say what has changed."""
    found = ((player.player_id, line_of(lines, player.player_id, player.team)) for player in contest.players)
    return {player_id: dict(line) for player_id, line in found if line is not None}


def corrected(
    scoring: ev.Scoring,
    points_before: Mapping[str, int],
    points_after: Mapping[str, int],
    lines_before: Lines | None,
    lines_after: Lines,
) -> tuple[ev.CorrectedPlayer, ...]:
    """The players of the pool who score differently, or of whom a statistic that counts has changed, by id.

    Points are in hundredths. A player whose points changed with none of his statistics did so for another cause,
    which the reason tells: what became of his game, say. Of a version that kept no lines only points are known.
    Lines are as :func:`kept_lines` has them.
    """
    counting = sorted(statistics_of(scoring))
    found = []
    for player_id in sorted(points_before.keys() | points_after.keys()):
        before, after = points_before.get(player_id, 0), points_after.get(player_id, 0)
        changed: tuple[ev.CorrectedStatistic, ...] = ()
        if lines_before is not None:
            old, new = lines_before.get(player_id, {}), lines_after.get(player_id, {})
            changed = tuple(
                ev.CorrectedStatistic(statistic=name, before=old.get(name), after=new.get(name))
                for name in counting
                if _counted(scoring, old, name) != _counted(scoring, new, name)
            )
        if before != after or changed:
            found.append(ev.CorrectedPlayer(player_id=player_id, before=before, after=after, statistics=changed))
    return tuple(found)


def _counted(scoring: ev.Scoring, line: Mapping[str, int], name: str) -> int | None:
    """A statistic as the scoring sees it: one that is not known counts as none, but in bands, where it counts not."""
    value = line.get(name)
    return value if name in scoring.bands else value or 0


def moved(before: Mapping[UUID, int], after: Iterable[tuple[UUID, int]]) -> int:
    """How many lineups score differently: ids and points of both versions."""
    return sum(before.get(lineup_id) != points for lineup_id, points in after)
