"""Who has statistics but is not in the pool, and whom the pool may mean. Pure; for an operator to read.

Nothing is matched by a name: a wrong match would settle a week on it. A player who is in the pool under another id is
given a line under that id, in the data's own columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rapidfuzz import fuzz, process
from rapidfuzz.utils import default_process

from common.events import ContestOpened
from settlement import domain
from settlement.lines import Line, Person, line_of
from settlement.policies import counts

MOST_LISTED = 50
"""Unknown players that are listed of one contest; more than that is another week's file."""
_NEAREST = 3
_LEAST_LIKE = 60
_BACKS = {"FB": "RB", "HB": "RB", "PK": "K"}
"""Positions that pools call otherwise."""


@dataclass(frozen=True, slots=True)
class Near:
    """A player of the pool whose name is like another, from 60 to 100 (the same)."""

    player_id: str
    name: str
    team: str
    likeness: int


@dataclass(frozen=True, slots=True)
class Unknown:
    """A player with statistics who could be in the pool and is not; ``points`` in hundredths, ``nearest`` first."""

    player_id: str
    name: str
    position: str
    team: str
    points: int
    nearest: tuple[Near, ...]


def unknown(contest: ContestOpened, people: Iterable[Person], lines: Mapping[str, Line]) -> list[Unknown]:
    """Those of ``people`` who are not in the contest's pool and could be, the most points first.

    That is: their team plays in one of its games that counts, and their position fills a slot of its roster; so
    kickers, and defenders by name, are none. Who has no team or no position is one where his line is worth points.
    ``lines`` are those of the same file.
    """
    pool = {player.player_id for player in contest.players}
    playing = [game for game in contest.games if counts(game, contest.policies)]
    teams = {team for game in playing for team in (game.away, game.home)}
    positions = {position for slot in contest.roster for position in slot.positions}
    found = []
    for person in people:
        if person.player_id in pool or (person.team and person.team not in teams):
            continue
        position = _BACKS.get(person.position, person.position)
        if position and position not in positions:
            continue
        points = domain.points(line_of(lines, person.player_id, person.team) or {}, contest.scoring)
        if points or (person.team and position):
            found.append((points, person))
    found.sort(key=lambda one: (-one[0], one[1].player_id))
    names = {player.player_id: player.player_name for player in contest.players}
    of = {player.player_id: player for player in contest.players}
    return [
        Unknown(
            person.player_id,
            person.name,
            person.position,
            person.team,
            points,
            tuple(Near(near, names[near], of[near].team, likeness) for near, likeness in _like(person, names, contest)),
        )
        for points, person in found
    ]


def _like(person: Person, names: Mapping[str, str], contest: ContestOpened) -> list[tuple[str, int]]:
    """Ids of the nearest names of the pool, those of the player's team where it has any that are like his."""
    if not person.name:
        return []
    own = {player.player_id: player.player_name for player in contest.players if player.team == person.team}
    for choices in (own, names):
        near = process.extract(
            person.name,
            choices,
            scorer=fuzz.WRatio,
            processor=default_process,
            limit=_NEAREST,
            score_cutoff=_LEAST_LIKE,
        )
        if near:
            return [(player_id, round(likeness)) for _, likeness, player_id in near]
    return []
