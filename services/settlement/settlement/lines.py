"""What files of statistics say, put together: each player's line of each week, and who the players are. Pure.

A player has one line a week, by his id. The rows of one player in one week are put together where they are of one team
(a kicker who also ran, the same row twice) and must not contradict each other. Rows of two teams are of a player who
changed his team between two games of that week: each is kept under ``<id>/<team>``, none under the id alone, and a
contest takes the one of the team that its pool has him in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from settlement.tables import Faults

Line = dict[str, int]
"""The known statistics of one player in one week, by name."""


@dataclass(frozen=True, slots=True)
class Week:
    """A week of a season; weeks sort as they are played."""

    season: int
    week: int

    def __lt__(self, other: Week) -> bool:
        return (self.season, self.week) < (other.season, other.week)

    def __str__(self) -> str:
        return f"{self.season}-W{self.week:02d}"


@dataclass(frozen=True, slots=True)
class Person:
    """What a file says of who a player is; empty where it does not."""

    player_id: str
    name: str = ""
    position: str = ""
    team: str = ""


@dataclass(slots=True)
class Statistics:
    """What files hold.

    ``rows`` counts the rows of the wanted weeks, ``blank`` those of them on which no statistic is known: they tell
    nothing of a player and leave no line. ``ignored_columns`` are those that are no statistic. ``people`` has who is
    who, by id, in the weeks of ``lines``; ``scored`` the teams of which the files have a score; ``formats`` what the
    files are, ``notes`` what an operator should know of them.
    """

    lines: dict[Week, dict[str, Line]] = field(default_factory=dict)
    people: dict[Week, dict[str, Person]] = field(default_factory=dict)
    rows: int = 0
    blank: int = 0
    ignored_columns: tuple[str, ...] = ()
    scored: dict[Week, frozenset[str]] = field(default_factory=dict)
    formats: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def line_of(lines: Mapping[str, Mapping[str, int]], player_id: str, team: str) -> Mapping[str, int] | None:
    """A player's line in a week's, for the team that a pool has him in; ``None`` where there is none."""
    found = lines.get(f"{player_id}/{team}")
    return lines.get(player_id) if found is None else found


@dataclass(slots=True)
class _Part:
    """What is known of a player in a week with one team."""

    team: str
    line: Line
    first: dict[str, int]
    """The line of the file that said each statistic first."""


class Lines:
    """Collects the rows of players, from one file or several."""

    def __init__(self) -> None:
        self._parts: dict[Week, dict[str, list[_Part]]] = {}
        self._people: dict[Week, dict[str, Person]] = {}

    def add(self, week: Week, person: Person, line: Line, number: int, faults: Faults) -> None:
        """Take a row that has a statistic; what contradicts an earlier one of the same team is a fault."""
        parts = self._parts.setdefault(week, {}).setdefault(person.player_id, [])
        part = next((one for one in parts if not (one.team and person.team) or one.team == person.team), None)
        if part is None:
            part = _Part(person.team, {}, {})
            parts.append(part)
        part.team = part.team or person.team
        for column, value in line.items():
            if part.line.setdefault(column, value) != value:
                reason = f"{person.player_id} has {value} here and {part.line[column]} on line {part.first[column]}"
                faults.add(number, column, f"{reason} for the same week")
            part.first.setdefault(column, number)
        self._people.setdefault(week, {}).setdefault(person.player_id, person)

    def lines(self) -> dict[Week, dict[str, Line]]:
        """The lines of each week by id, or by id and team where a player has several."""
        return {
            week: {
                player_id if len(parts) == 1 else f"{player_id}/{part.team}": part.line
                for player_id, parts in players.items()
                for part in parts
            }
            for week, players in self._parts.items()
        }

    def people(self) -> dict[Week, dict[str, Person]]:
        """Who has a line, by week and id."""
        return self._people
