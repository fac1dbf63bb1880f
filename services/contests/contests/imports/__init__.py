"""Reading salary files: bytes in, contests and a report out. Nothing is stored here and nothing guessed.

A file is known by its header: DraftKings' ``DKSalaries.csv`` (``draftkings``), FanDuel's players list
(``fanduel``), a plain CSV (``csv``) or MAFL's own pool (``mafl-pool``), each plain or gzip. Games come from the list
where it has them and from the schedule (``schedule``) where one is given, which then counts; players from the
directory (``players``) where there is one, else by the list's own ids. ``matching`` brings them together and
``report`` says what became of every row. All of it is described for operators in docs/imports.md.

A file that cannot be read as a whole imports nothing: ``Malformed`` names line and column. Otherwise each row
ends up in exactly one of three places: *offered* (its player may be picked), *unmatched* (no game of the week, or
no player that is known, fits it) or *refused* (with the reason).
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import tables
from common.tables import Fault, Malformed, Row
from contests import rulesets
from contests.domain import COVERED, Ruleset
from contests.imports import draftkings, fanduel, plain, pool
from contests.imports import players as directories
from contests.imports import schedule as schedules
from contests.imports.listed import Listed
from contests.imports.matching import OWN_ID, Sources, build, week_of
from contests.imports.players import Directory
from contests.imports.report import Duplicate, Import, Note, Week
from contests.imports.schedule import Schedule

__all__ = [
    "COLUMNS",
    "NEUTRAL",
    "Directory",
    "Duplicate",
    "Import",
    "Note",
    "Schedule",
    "Week",
    "is_list",
    "read",
    "report",
]

COLUMNS = pool.COLUMNS
NEUTRAL = pool.NEUTRAL

ACCEPTED = (
    f"{draftkings.ACCEPTED}, {fanduel.ACCEPTED}, {plain.ACCEPTED}, or a pool with {pool.ACCEPTED}; plain or gzip, UTF-8"
)


def report(
    source: bytes | Path,
    season: int | None = None,
    week: int | None = None,
    *,
    ruleset: Ruleset | None = None,
    days: Sequence[str] = COVERED,
    schedule: bytes | None = None,
    players: Sequence[bytes] | Directory | None = None,
) -> dict[str, Any]:
    """The import report of a file or its bytes; see ``Import.report``. Raises ``Malformed``, ``OSError``."""
    content = source if isinstance(source, bytes) else source.read_bytes()
    return read(content, season, week, ruleset=ruleset, days=days, schedule=schedule, players=players).report()


def read(
    content: bytes,
    season: int | None = None,
    week: int | None = None,
    *,
    ruleset: Ruleset | None = None,
    days: Sequence[str] = COVERED,
    schedule: bytes | None = None,
    players: Sequence[bytes] | Directory | None = None,
) -> Import:
    """All weeks of a file, or the one asked for, in order. Raises ``common.tables.Malformed``.

    ``ruleset`` says which positions there are (where not given, the one that the list's prices are made for);
    ``days`` are the covered weekdays, US Eastern; ``schedule`` is the bytes of such a file,
    ``players`` those of one or more.
    """
    league = schedules.read(schedule) if schedule is not None else None
    directory = players if isinstance(players, Directory) or players is None else directories.read(*players)
    file = _read(content)
    weeks: dict[tuple[int, int] | None, list[Listed]] = {}
    for row in file.rows:
        stated = (row.season, row.week) if row.season is not None and row.week is not None else None
        weeks.setdefault(stated, []).append(row)
    wanted = {
        of: rows for of, rows in weeks.items() if of is None or (season in (None, of[0]) and week in (None, of[1]))
    }
    if not wanted:
        held = schedules.held(of for of in weeks if of)
        raise Malformed([Fault(None, None, f"the file has no row of the week asked for; it holds {held}")])
    sources = Sources(days, league, directory)
    built: list[Week] = []
    notes = list(file.notes)
    for of, rows in sorted(wanted.items(), key=lambda entry: entry[0] or (0, 0)):
        readable = [row for row in rows if row.refused is None]
        found = of or week_of(readable, season, week, league)
        rules = ruleset or rulesets.load(file.ruleset_of(found))
        made = build(rows, file.format, found, rules, sources)
        if of is None and found is not None and not (season and week):
            made.notes.append(_inferred(made))
        built.append(made)
    named = [made.contest for made in built if made.contest]
    twice = sorted({contest for contest in named if named.count(contest) > 1})
    if twice:
        reason = f"some rows state that they are of {twice[0]} and others leave it open; state it in all rows or none"
        raise Malformed([Fault(None, None, reason)])
    own_ids = sum(made.matched[OWN_ID] for made in built)
    if own_ids:
        notes.append(
            f"{own_ids} rows are offered under the list's own ids, by which no statistics know the players; "
            "give a players file (--players) to find the ids that statistics have."
        )
    if any(note.column == "name" for made in built for note in made.unmatched):
        notes.append(
            "Rows that no known player fits are offered once the players file has a line for them: "
            "player_id,name,position,team with name, position and team as they are listed."
        )
    other_rows = sum(len(rows) for of, rows in weeks.items() if of not in wanted)
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    return Import(file.format, digest, tuple(built), other_rows, tuple(notes), scheduled=league is not None)


def _inferred(week: Week) -> str:
    return f"The week follows from the games of the list: {week.contest}."


# --- which format it is ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _File:
    """A file as read. ``sites`` says whose prices a week has, where the file does."""

    format: str
    rows: Sequence[Listed]
    notes: tuple[str, ...] = ()
    sites: dict[tuple[int, int], str] | None = None

    def ruleset_of(self, week: tuple[int, int] | None) -> str:
        """The rules that the prices of a week are made for."""
        site = (self.sites or {}).get(week, "") if week else ""
        return fanduel.RULESET if fanduel.FORMAT in (self.format, site) else rulesets.DEFAULT


def _read(content: bytes) -> _File:
    lines = tables.rows(tables.read_text(content))
    line, header = next(lines, (1, []))
    header = [column.strip() for column in header]
    columns = set(header)
    if columns >= draftkings.MARKS:
        rows, remarks = draftkings.read(header, _not_blank(lines))
        return _File(draftkings.FORMAT, rows, remarks)
    if columns >= fanduel.MARKS:
        return _File(fanduel.FORMAT, list(fanduel.read(header, _not_blank(lines))))
    missing = [column for column in pool.COLUMNS if column not in columns]
    if not missing:
        found = pool.read(line, header, lines)
        return _File(pool.FORMAT, found.rows, sites=found.sites)
    if plain.is_plain(header):
        return _File(plain.FORMAT, list(plain.read(line, header, _not_blank(lines))))
    if columns >= schedules.MARKS:
        raise Malformed([Fault(line, None, f"this is a schedule; give it beside a list. Accepted: {ACCEPTED}")])
    if len(missing) <= len(pool.COLUMNS) // 2:
        raise Malformed([Fault(line, None, f"no column {', '.join(missing)}; accepted: {ACCEPTED}")])
    known = f"its columns are {', '.join(header)[:300]!r}" if any(header) else "it has no columns"
    raise Malformed([Fault(line, None, f"this is no list of players that is known: {known}; accepted: {ACCEPTED}")])


def is_list(header: Sequence[str]) -> bool:
    """Whether a header, its cells stripped, is that of a list of players that :func:`read` knows."""
    known = (draftkings.MARKS, fanduel.MARKS, frozenset(pool.COLUMNS))
    return any(columns <= {*header} for columns in known) or plain.is_plain(header)


def _not_blank(lines: Iterable[Row]) -> list[Row]:
    """Rows in which something stands: spreadsheets leave rows of empty cells behind."""
    return [(line, fields) for line, fields in lines if any(field.strip() for field in fields)]
