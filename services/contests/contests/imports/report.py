"""What became of a list: weeks, the players they would have, and the report of every row."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from common.canonical import instant
from common.events import Game, PoolPlayer
from contests.domain import Known, weekday
from contests.imports import teams


@dataclass(frozen=True, slots=True)
class Note:
    """A row that is not offered, and why. ``nearest`` are the known players whose names come closest."""

    line: int
    column: str | None
    name: str
    reason: str
    nearest: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        nearest = {"nearest": list(self.nearest)} if self.nearest else {}
        return {"line": self.line, "column": self.column, "name": self.name, "reason": self.reason, **nearest}


@dataclass(frozen=True, slots=True)
class Difference:
    """A game of which the list says other than the schedule, or than the contest that is there: what that says counts.

    ``listed`` is a time or the list's words, ``scheduled`` the kickoff that counts; ``rows`` of the list say so.
    """

    game_id: str
    what: str
    listed: str
    scheduled: str
    rows: int

    def as_dict(self) -> dict[str, Any]:
        return {
            "game_id": self.game_id,
            "what": self.what,
            "listed": self.listed,
            "scheduled": self.scheduled,
            "rows": self.rows,
        }


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Rows that are, or might be taken for, one player; ``outcome`` says what was done with them."""

    name: str
    lines: tuple[int, ...]
    outcome: str

    def as_dict(self) -> dict[str, Any]:
        return {"name": self.name, "lines": list(self.lines), "outcome": self.outcome}


@dataclass(slots=True)
class Week:
    """One week of a file: what its contest would be, and what became of each row.

    ``contest`` is empty, ``season`` and ``week`` 0, where no row of the list has a game that would tell them.
    """

    contest: str
    season: int
    week: int
    format: str
    ruleset: str
    games: tuple[Game, ...] = ()
    outside: tuple[Game, ...] = ()
    not_listed: tuple[Game, ...] = ()
    players: tuple[PoolPlayer, ...] = ()
    locks_at: datetime | None = None
    rows: int = 0
    offered: int = 0
    unmatched: list[Note] = field(default_factory=list)
    refused: list[Note] = field(default_factory=list)
    merged: list[tuple[int, int]] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    duplicates: list[Duplicate] = field(default_factory=list)
    matched: Counter[str] = field(default_factory=Counter)
    certain: set[str] = field(default_factory=set)
    """Ids of players of whom it is certain who they are, team defences apart."""
    notes: list[str] = field(default_factory=list)
    rows_of: Counter[str] = field(default_factory=Counter)
    """How many rows of the list are of each game, by its id."""

    def differs(self, game: Game, kickoff: datetime) -> None:
        """Note that the contest has another kickoff of a game than the list, and that it counts."""
        rows = self.rows_of[game.game_id]
        self.differences.append(Difference(game.game_id, "kickoff", instant(game.kickoff), instant(kickoff), rows))

    def known(self) -> list[Known]:
        """What the week teaches a directory: the players of whom it is certain who they are."""
        return [
            Known(
                player.player_id,
                player.player_name,
                "/".join(player.positions),
                teams.franchise(player.team) or player.team,
                self.season,
                self.week,
            )
            for player in self.players
            if player.player_id in self.certain
        ]

    def report(self) -> dict[str, Any]:
        """The import report of this week, as JSON. ``offered`` counts rows, ``players`` the players they make."""
        return {
            "contest": self.contest or None,
            "season": self.season or None,
            "week": self.week or None,
            "format": self.format,
            "ruleset": self.ruleset,
            "rows": self.rows,
            "offered": self.offered,
            "players": len(self.players),
            "unmatched": [note.as_dict() for note in self.unmatched],
            "refused": [note.as_dict() for note in self.refused],
            "merged": [{"line": line, "into": into} for line, into in self.merged],
            "duplicates": [duplicate.as_dict() for duplicate in self.duplicates],
            "matched": dict(sorted(self.matched.items())),
            "games": [_game(game) for game in self.games],
            "outside": [_game(game) for game in self.outside],
            "not_listed": [_game(game) for game in self.not_listed],
            "differences": [difference.as_dict() for difference in self.differences],
            "locks_at": instant(self.locks_at) if self.locks_at else None,
            "notes": self.notes,
        }


_LISTS = ("unmatched", "refused", "merged", "duplicates", "games", "outside", "not_listed", "differences", "notes")


@dataclass(frozen=True, slots=True)
class Import:
    """What a file holds. ``digest`` names it by content; ``other_rows`` are of weeks that were not asked for."""

    format: str
    digest: str
    weeks: tuple[Week, ...]
    other_rows: int
    notes: tuple[str, ...] = ()
    taught: tuple[Known, ...] = ()
    """The players of the files that were given beside it."""
    scheduled: bool = False
    """Whether a schedule was given beside it."""

    @property
    def source(self) -> str:
        """Where the prices come from: the format of the file and the SHA-256 of its bytes."""
        return f"{self.format} {self.digest}"

    def report(self) -> dict[str, Any]:
        """The import report as JSON: of the one week, or the sums of several with each in ``weeks``."""
        reports = [week.report() for week in self.weeks]
        if len(reports) == 1:
            whole = dict(reports[0])
        else:
            whole = {"contest": None, "season": None, "week": None, "format": self.format, "ruleset": None}
            for key in ("rows", "offered", "players"):
                whole[key] = sum(report[key] for report in reports)
            for key in _LISTS:
                whole[key] = [entry for report in reports for entry in report[key]]
            whole["matched"] = dict(sorted(sum((week.matched for week in self.weeks), Counter()).items()))
            whole["locks_at"] = None
        return whole | {
            "source": self.source,
            "other_rows": self.other_rows,
            "notes": [*self.notes, *whole["notes"]],
            "weeks": reports,
        }


def _game(game: Game) -> dict[str, Any]:
    return {
        "game_id": game.game_id,
        "away": game.away,
        "home": game.home,
        "kickoff": instant(game.kickoff),
        "kickoff_zone": game.kickoff_zone,
        "weekday": weekday(game.kickoff),
    }


def lines(numbers: Sequence[int], most: int = 12) -> str:
    """Line numbers as a sentence names them: ``line 4``, ``lines 2, 4 and 6``, the first of many."""
    shown = [str(number) for number in sorted(numbers)[:most]]
    if len(numbers) > most:
        return f"lines {', '.join(shown)} and {len(numbers) - most} more"
    if len(shown) == 1:
        return f"line {shown[0]}"
    return f"lines {', '.join(shown[:-1])} and {shown[-1]}"
