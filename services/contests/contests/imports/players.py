"""The directory of known players, and how the names of a list find them there.

A player is found by name, team and position together, or not at all. A name is compared without case, accents,
punctuation and generational suffixes; a nickname counts where the directory lists it as a name of the player.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field

from rapidfuzz import fuzz, process

from common import tables
from common.tables import MOST_FAULTS, Fault, Malformed
from contests.domain import Known
from contests.imports import teams
from contests.imports.listed import POSITIONS, Unreadable, cells_of, whole

NEEDED = ("player_id", "name", "position", "team")
ACCEPTED = (
    f"a CSV (plain or gzip, UTF-8) with the columns {', '.join(NEEDED)} and, if wanted, season and week; "
    "a pool file or weekly statistics will do"
)

ALWAYS = (9999, 99)
"""The season and week of a line that does not say them: it holds whenever."""

_SUFFIX = re.compile(r" (?:jr|sr|ii|iii|iv|v)$")
_SHORT = re.compile(r"[^\W\d_]\.")
_STROKES = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe"})


def normalised(name: str) -> str:
    """A name as it is compared.

    >>> normalised("Odell Beckham Jr."), normalised("D.J. Moore"), normalised("Ja’Marr  Chase")
    ('odell beckham', 'dj moore', 'jamarr chase')
    """
    plain = "".join(sign for sign in unicodedata.normalize("NFKD", name) if not unicodedata.combining(sign))
    plain = plain.casefold().translate(_STROKES)
    letters = "".join(sign if sign.isalnum() else " " if sign.isspace() or sign in "-‐–/" else "" for sign in plain)
    words = " ".join(letters.split()) or " ".join(name.casefold().split())
    short = _SUFFIX.sub("", words)
    return short if " " in short else words


def slug(name: str) -> str:
    """A name as a part of an id.

    >>> slug("Amon-Ra St. Brown")
    'amon-ra-st-brown'
    """
    return normalised(name).replace(" ", "-")


def _is_short(name: str) -> bool:
    """Whether a name is like ``M.Thomas``: whoever that is, another may be too."""
    return bool(_SHORT.match(name)) and len(normalised(name.split(".", 1)[0])) == 1 and " " not in name.strip()


def _initialled(name: str) -> str:
    """A name as its initial and the rest, in the form in which short and full names are alike."""
    first, _, rest = (
        name.strip().replace(".", " ", 1).partition(" ") if _is_short(name) else name.strip().partition(" ")
    )
    return f"{normalised(first)[:1]} {normalised(f'x {rest}')}"


@dataclass(frozen=True, slots=True)
class Found:
    """The player that a row names, and by what it was found; without ``player_id`` the ``reason`` why none was."""

    player_id: str | None
    how: str = ""
    reason: str = ""
    nearest: tuple[str, ...] = ()


@dataclass(slots=True)
class Directory:
    """Players by name."""

    lines: tuple[Known, ...]
    initials: tuple[Known, ...] = ()
    """Lines that give an initial for the first name (``M.Thomas``): good for a suggestion, and for nothing else."""
    strict: bool = True
    """Whether it is said to have all players: then a row that fits none of them is not offered."""
    _by_name: dict[str, list[str]] = field(default_factory=dict)
    _by_id: dict[str, list[Known]] = field(default_factory=dict)
    _by_initial: dict[tuple[str, str], list[Known]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for line in self.initials:
            self._by_initial.setdefault((_initialled(line.name), line.team), []).append(line)
        for line in sorted(self.lines, key=lambda line: (line.player_id, line.season, line.week, line.name)):
            self._by_id.setdefault(line.player_id, []).append(line)
            ids = self._by_name.setdefault(normalised(line.name), [])
            if line.player_id not in ids:
                ids.append(line.player_id)

    def __len__(self) -> int:
        return len(self._by_id)

    def speaks_of(self, season: int) -> bool:
        """Whether it can be asked about a season: one that merely grew by imports may know another age's players."""
        return self.strict or any(line.season in (season - 1, season) for line in self.lines)

    def team_of(self, player_id: str, when: tuple[int, int]) -> str:
        """The team that a player was last seen with up to a week, else the first one after it."""
        lines = self._by_id[player_id]
        always = [line for line in lines if (line.season, line.week) == ALWAYS]
        before = [line for line in lines if (line.season, line.week) <= when]
        return (always or before or lines[:1])[-1].team

    def positions_of(self, player_id: str) -> set[str]:
        """Every position that a player was seen at."""
        return {position for line in self._by_id[player_id] for position in line.position.split("/") if position}

    def find(self, name: str, team: str, positions: Sequence[str], when: tuple[int, int]) -> Found:
        """The one player of this name, team (a franchise) and position, as of a season and week."""
        same_name = self._by_name.get(normalised(name), [])
        fitting = [
            player_id
            for player_id in same_name
            if self.team_of(player_id, when) == team and self._plays(player_id, positions)
        ]
        if len(fitting) == 1:
            stated = self.positions_of(fitting[0])
            return Found(fitting[0], "name, team and position" if stated else "name and team")
        if fitting:
            reason = f"fits {len(fitting)} known players: {', '.join(self._shown(p, when) for p in fitting[:5])}"
            return Found(None, reason=reason, nearest=tuple(self._shown(p, when) for p in fitting[:5]))
        nearest = self._nearest(name, team, positions, when)
        initials = {line.player_id: line for line in self._by_initial.get((_initialled(name), team), ())}
        if same_name:
            reason = "the name is known, but not with this team and position"
        elif initials:
            reason = "known by an initial only, which is no name"
            nearest = tuple(f"{line.name} ({line.team}, {player_id})" for player_id, line in sorted(initials.items()))
        else:
            reason = "no known player has this name"
        return Found(None, reason=reason, nearest=nearest)

    def _plays(self, player_id: str, positions: Sequence[str]) -> bool:
        stated = self.positions_of(player_id)
        return not stated or not stated.isdisjoint(positions)

    def _nearest(self, name: str, team: str, positions: Sequence[str], when: tuple[int, int]) -> tuple[str, ...]:
        """Up to three players whose names come close; a team-mate at the position may be spelt more otherwise."""
        close = process.extract(normalised(name), list(self._by_name), scorer=fuzz.ratio, limit=20, score_cutoff=60)
        ranked: list[tuple[float, str]] = []
        for key, score, _ in close:
            for player_id in self._by_name[key]:
                plays, mate = self._plays(player_id, positions), self.team_of(player_id, when) == team
                if score >= 85 or (plays and mate):
                    ranked.append((-(score + 15 * mate + 5 * plays), player_id))
        return tuple(self._shown(player_id, when) for _, player_id in sorted(set(ranked))[:3])

    def _shown(self, player_id: str, when: tuple[int, int]) -> str:
        last = self._by_id[player_id][-1]
        stated = "/".join(sorted(self.positions_of(player_id))) or "position unknown"
        return f"{last.name} ({stated}, {self.team_of(player_id, when)}, {player_id})"


def read(*contents: bytes) -> Directory:
    """The players of one or more files. Team defences and lines without a player_id are passed over.

    Raises ``Malformed``.
    """
    found: list[Known] = []
    for content in contents:
        try:
            found += _read(content)
        except Malformed as error:
            raise Malformed([Fault(f.line, f.column, f"of the players: {f.reason}") for f in error.faults]) from None
    full, short = [line for line in found if not _is_short(line.name)], [line for line in found if _is_short(line.name)]
    return Directory(tuple(full), tuple(short))


def _read(content: bytes) -> list[Known]:
    lines = tables.rows(tables.read_text(content))
    header_line, header = next(lines, (1, []))
    header = [column.strip() for column in header]
    missing = [column for column in NEEDED if column not in header]
    if missing:
        raise Malformed([Fault(header_line, None, f"no column {', '.join(missing)}; accepted: {ACCEPTED}")])
    found: list[Known] = []
    faults: list[Fault] = []
    for line, fields in lines:
        try:
            known = _line(cells_of(header, fields, NEEDED))
        except Unreadable as bad:
            faults.append(Fault(line, bad.column, bad.reason))
            if len(faults) == MOST_FAULTS:
                break
        else:
            found += [known] if known else []
    if faults:
        raise Malformed(faults)
    return found


def _line(cells: dict[str, str]) -> Known | None:
    position = "/".join(POSITIONS.get(part, part) for part in cells["position"].upper().split("/"))
    if not cells["player_id"] or position == "DST":
        return None
    if not cells["name"]:
        raise Unreadable("name", "empty")
    stated = cells.get("season", ""), cells.get("week", "")
    when = (whole(stated[0], "season", 1920, 2199), whole(stated[1], "week", 1, 25)) if all(stated) else ALWAYS
    team = teams.franchise(cells["team"])
    if team is None and cells["team"]:
        raise Unreadable("team", f"{cells['team']!r} is no team that is known")
    return Known(cells["player_id"], cells["name"], position, team or "", *when)
