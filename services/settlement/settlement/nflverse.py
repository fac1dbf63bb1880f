"""Statistics as nflverse publishes them: players' weeks, teams' weeks, games with their scores. Pure.

Three kinds of file, known by their columns (docs/statistics.md):

- ``stats_player_week_<season>`` and, with the names of before November 2024, ``player_stats`` and
  ``player_stats_kicking``: a row for each player and week, each becomes a line as it stands.
- ``stats_team_week_<season>``: a row for each team and week. Two of them make the lines of the two defences.
- ``games``: the schedule with the scores, which decide what a defence allowed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from settlement.domain import BadCell, statistic
from settlement.lines import Line, Lines, Person, Week
from settlement.tables import Faults, Table

PLAYERS, TEAMS, GAMES = "nflverse players", "nflverse teams", "nflverse games"

_KICKING = (
    *("fg_made_0_19", "fg_made_20_29", "fg_made_30_39", "fg_made_40_49", "fg_made_50_59", "fg_made_60_"),
    *("fg_missed", "fg_blocked", "pat_made", "pat_missed", "pat_blocked"),
)
"""Called the same by us; kept of those who kicked, since every row has them."""

_SUMS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "pass_att": (("attempts",),),
    "pass_cmp": (("completions",),),
    "pass_yds": (("passing_yards",),),
    "pass_td": (("passing_tds",),),
    "pass_int": (("passing_interceptions",), ("interceptions",)),
    "pass_2pt": (("passing_2pt_conversions",),),
    "rush_att": (("carries",),),
    "rush_yds": (("rushing_yards",),),
    "rush_td": (("rushing_tds",),),
    "rush_2pt": (("rushing_2pt_conversions",),),
    "targets": (("targets",),),
    "rec": (("receptions",),),
    "rec_yds": (("receiving_yards",),),
    "rec_td": (("receiving_tds",),),
    "rec_2pt": (("receiving_2pt_conversions",),),
    "fum_lost": (("fumbles_lost_total",), ("sack_fumbles_lost", "rushing_fumbles_lost", "receiving_fumbles_lost")),
    "ret_td": (("special_teams_tds",),),
    "off_fum_rec_td": (("fumble_recovery_tds",),),
    **{name: ((name,),) for name in _KICKING},
}
"""Each of our statistics, and the columns that add up to it; of several ways the first whose columns are there."""

_OF_A_TEAM: tuple[str, ...] = (
    *("passing_tds", "rushing_tds", "passing_2pt_conversions", "rushing_2pt_conversions", "fg_made", "pat_made"),
    *("sacks_suffered", "fg_blocked", "pat_blocked", "special_teams_tds"),
    *("def_interceptions", "def_tds", "def_safeties", "fumble_recovery_opp", "fumble_recovery_tds"),
)
_OF_A_TEAM_SINCE_2025: tuple[str, ...] = ("def_2pt_made", "def_punt_blocks", "pt_blocked")

_SPELLINGS = {
    "ARZ": "ARI",
    "BLT": "BAL",
    "CLV": "CLE",
    "GNB": "GB",
    "HST": "HOU",
    "JAC": "JAX",
    "KAN": "KC",
    "LAR": "LA",
    "LVR": "LV",
    "NOR": "NO",
    "NWE": "NE",
    "SFO": "SF",
    "TAM": "TB",
    "WSH": "WAS",
}
_MOVED = {"LV": ("OAK", 2020), "LAC": ("SD", 2017), "LA": ("STL", 2016)}
"""Teams that moved: what they were called, and the first season in the new place. nflverse's newer files call them by
the newest name in all seasons, contests as they were called then."""
_FIRST_NAMES = {old: new for new, (old, _) in _MOVED.items()}


def kind_of(columns: Sequence[str]) -> str | None:
    """Which of the three kinds a file with these columns is; ``None`` for any other."""
    there = set(columns)
    if {"game_id", "away_team", "home_team", "away_score", "home_score"} <= there:
        return GAMES
    if "player_id" in there and there & {"passing_yards", "rushing_yards", "receiving_yards", "fg_made", "def_tds"}:
        return PLAYERS
    if {"team", "opponent_team", "def_sacks"} <= there:
        return TEAMS
    return None


def team_of(text: str, season: int) -> str:
    """A team as contests of that season write it: ``OAK`` to 2019, ``LV`` from 2020, ``LA`` for the Rams."""
    text = text.strip().upper()
    text = _SPELLINGS.get(text, text)
    text = _FIRST_NAMES.get(text, text)
    old, since = _MOVED.get(text, (text, 0))
    return old if season < since else text


@dataclass(slots=True)
class Found:
    """What the files of one import hold of teams; players go to ``Lines`` at once."""

    teams: dict[tuple[Week, str], dict[str, int]] = field(default_factory=dict)
    opponents: dict[tuple[Week, str], str] = field(default_factory=dict)
    scores: dict[tuple[Week, str], int] = field(default_factory=dict)
    own_fumbles: Counter[tuple[Week, str]] = field(default_factory=Counter)
    """Touchdowns of players who recovered a fumble of their own team."""
    players_of: set[Week] = field(default_factory=set)
    """Weeks with rows of players, so that ``own_fumbles`` is all of them."""


Wanted = Callable[[int | None, int | None], Week | None]
"""From the season and the week of a row to the week, or ``None`` where it is not asked for."""


def read_players(table: Table, wanted: Wanted, lines: Lines, found: Found) -> tuple[int, int, tuple[str, ...]]:
    """Read players' weeks into ``lines``; how many rows, how many without a statistic, and the unused columns.

    Rows without a player's id are what nflverse could credit to nobody; they are counted as blank.
    """
    at = _places(table)
    faults = table.faults
    for column in ("season", "week"):
        if column not in at:
            reason = "is missing; weeks are in stats_player_week_<season>, this looks like a summary of a season"
            faults.add(1, column, reason)
    sums: dict[str, tuple[str, ...]] = {}
    for name, ways in _SUMS.items():
        way = next((way for way in ways if all(column in at for column in way)), None)
        if way is not None:
            sums[name] = way
    if not sums:
        faults.add(1, None, "no column is a statistic that MAFL keeps; players' weeks have passing_yards and the like")
    faults.check()
    parse = {name: partial(statistic, name=name) for name in sums}
    team_column = "team" if "team" in at else "recent_team"
    name_column = "player_display_name" if "player_display_name" in at else "player_name"
    rows = blank = 0
    for row, week in _wanted(table, at, wanted):
        rows += 1
        found.players_of.add(week)
        line: Line = {}
        for name, way in sums.items():
            values = [row.read(column, parse[name]) for column in way]
            if None not in values:
                line[name] = sum(value for value in values if value is not None)
        if not any(line.get(name) for name in _KICKING):
            line = {name: value for name, value in line.items() if name not in _KICKING}
        player_id = row.text("player_id")
        if not line or not player_id:
            blank += 1
            continue
        team = team_of(row.text(team_column), week.season)
        lines.add(week, Person(player_id, row.text(name_column), row.text("position"), team), line, row.number, faults)
        if line.get("off_fum_rec_td") and row.whole("fumble_recovery_own"):
            found.own_fumbles[week, team] += line["off_fum_rec_td"]
    faults.check()
    used = {column for way in sums.values() for column in way}
    used |= {"season", "week", "player_id", team_column, name_column, "position"}
    return rows, blank, tuple(column for column in table.columns if column not in used)


def read_teams(table: Table, wanted: Wanted, found: Found) -> int:
    """Read teams' weeks into ``found``; how many rows."""
    at = _places(table)
    faults = table.faults
    for column in ("season", "week", *_OF_A_TEAM):
        if column not in at:
            faults.add(1, column, "is missing; teams' weeks are in stats_team_week_<season>")
    faults.check()
    known = (*_OF_A_TEAM, *(column for column in _OF_A_TEAM_SINCE_2025 if column in at))
    rows = 0
    for row, week in _wanted(table, at, wanted):
        rows += 1
        team, opponent = (team_of(row.text(column), week.season) for column in ("team", "opponent_team"))
        if not team or not opponent:
            faults.add(row.number, "opponent_team" if team else "team", "is blank; a defence is told by both")
            continue
        values = {column: row.whole(column) for column in known}
        if found.teams.setdefault((week, team), values) != values:
            faults.add(row.number, "team", f"{team} is there twice in {week}, with other numbers")
        found.opponents[week, team] = opponent
    faults.check()
    return rows


def read_games(table: Table, wanted: Wanted, found: Found) -> int:
    """Read the scores of games that have one into ``found``; how many games."""
    at = _places(table)
    faults = table.faults
    games = 0
    for row, week in _wanted(table, at, wanted):
        games += 1
        for side in ("away", "home"):
            points = row.read(f"{side}_score", partial(statistic, name="dst_points_against"))
            if points is not None:
                found.scores[week, team_of(row.text(f"{side}_team"), week.season)] = points
    faults.check()
    return games


def add_defences(found: Found, lines: Lines) -> list[str]:
    """Make the line of each team's defence from its own week and its opponent's; what an operator should know.

    Sacks, blocked kicks and points against are the opponent's; the rest is the team's own. What the score leaves
    unexplained by the columns is touchdowns and safeties that no column has (docs/statistics.md states the rule).
    A team whose opponent has no row yet has no line yet. Raises ``BadTable`` where another file says otherwise of it.
    """
    notes: list[str] = []
    faults = Faults()
    sides = {one: _side(found, one, notes) for one in found.teams}
    for (week, team), side in sorted(sides.items(), key=lambda item: item[0]):
        opponent = found.opponents[week, team]
        other = sides.get((week, opponent))
        if other is None:
            notes.append(f"{week} {team}: no row of its opponent {opponent}, so no line of its defence yet")
            continue
        own, theirs = found.teams[week, team], found.teams[week, opponent]
        line = {
            "dst_sacks": theirs["sacks_suffered"],
            "dst_int": own["def_interceptions"],
            "dst_fum_rec": own["fumble_recovery_opp"],
            "dst_td": side.touchdowns,
            "dst_safety": side.safeties,
            "dst_blk": theirs["fg_blocked"]
            + theirs["pat_blocked"]
            + own.get("def_punt_blocks", theirs.get("pt_blocked", 0)),
            "dst_points_against": other.points,
            "dst_points_allowed": other.points - 6 * other.by_defence - 2 * other.safeties,
        }
        if "def_2pt_made" in own:
            line["dst_2pt_ret"] = own["def_2pt_made"]
        lines.add(week, Person(f"DST-{team}", team, "DST", team), line, 1, faults)
    faults.check()
    return notes


@dataclass(frozen=True, slots=True)
class _Side:
    """What a team scored: all points; touchdowns not by its offence, those of them by its defence; safeties."""

    points: int
    touchdowns: int
    by_defence: int
    safeties: int


def _side(found: Found, one: tuple[Week, str], notes: list[str]) -> _Side:
    week, team = one
    row = found.teams[one]
    recovered = row["fumble_recovery_tds"]
    own = found.own_fumbles[one] if week in found.players_of else (0 if row["fumble_recovery_opp"] else recovered)
    on_special_teams = row["special_teams_tds"]
    by_defence = row["def_tds"] + recovered - own
    safeties = row["def_safeties"]
    added_up = (
        6 * (row["passing_tds"] + row["rushing_tds"] + recovered + on_special_teams + row["def_tds"])
        + 2 * (row["passing_2pt_conversions"] + row["rushing_2pt_conversions"] + row.get("def_2pt_made", 0) + safeties)
        + 3 * row["fg_made"]
        + row["pat_made"]
    )
    points = found.scores.get(one, added_up)
    gap = points - added_up
    taken = "nothing explains it"
    if gap == 2:
        safeties, taken = safeties + 1, "taken for a safety"
    elif gap > 0 and gap % 6 == 0:
        by_defence += gap // 6
        taken = f"taken for {gap // 6} touchdown{'s' if gap > 6 else ''} of the defence"
    elif gap == -6 and recovered > own and row["def_tds"]:
        by_defence, taken = by_defence - 1, "taken for one fumble return in two columns"
    if gap:
        notes.append(f"{week} {team}: its columns add up to {added_up} points, its score is {points}; {taken}")
    return _Side(points, by_defence + on_special_teams, by_defence, safeties)


def _places(table: Table) -> dict[str, int]:
    return {column: place for place, column in enumerate(table.columns)}


@dataclass(slots=True)
class _Row:
    table: Table
    at: Mapping[str, int]
    number: int
    cells: Sequence[str]

    def text(self, column: str) -> str:
        """A cell; empty where the column is not there, or says ``NA``."""
        place = self.at.get(column)
        text = "" if place is None else self.cells[place].strip()
        return "" if text == "NA" else text

    def read(self, column: str, parse: Callable[[str], int | None]) -> int | None:
        return self.table.faults.read(self.number, column, parse, self.text(column))

    def whole(self, column: str) -> int:
        """A count; none is zero, which is what nflverse means by a blank in one."""
        return self.read(column, partial(statistic, name="count")) or 0

    def week(self, wanted: Wanted) -> Week | None:
        season, week = (self.read(column, _number) for column in ("season", "week"))
        return wanted(season, week)


def _wanted(table: Table, at: Mapping[str, int], wanted: Wanted) -> Iterator[tuple[_Row, Week]]:
    """The rows of the weeks that are wanted, each with its week."""
    for number, cells in table.rows:
        row = _Row(table, at, number, cells)
        week = row.week(wanted)
        if week is not None:
            yield row, week


def _number(text: str) -> int:
    whole = text.removesuffix(".0")
    if not (whole.isascii() and whole.isdigit() and len(whole) <= 4):
        raise BadCell(f"{text[:40]!r} is not a season or week, such as 2017 or 4")
    return int(whole)
