"""FanDuel's player list as downloaded (``FanDuel-NFL-…-players-list.csv``): teams and prices, no kickoffs.

A cell that cannot be read refuses its row and no other.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from common.tables import Row
from contests.imports.listed import Listed, Unreadable, cells_of, defence, positions, price, team

FORMAT = "fanduel"
MARKS = frozenset({"Id", "Position", "First Name", "Nickname", "Last Name", "FPPG", "Salary", "Game", "Team"})
"""Columns that no other list has all of."""

ACCEPTED = "a FanDuel players list as downloaded"
RULESET = "fanduel-classic-1"
"""The rules that its prices were made for."""

_NEEDED = ("Id", "Position", "Nickname", "Salary", "Game", "Team")
_GAME = re.compile(r"([A-Za-z]{2,4}) ?@ ?([A-Za-z]{2,4})")
_ID = re.compile(r"\d{1,12}-\d{1,12}")


def read(header: Sequence[str], rows: Iterable[Row]) -> Iterator[Listed]:
    """The rows of a file, those that cannot be read with the reason in ``refused``."""
    for line, fields in rows:
        name = ""
        try:
            cells = cells_of(header, fields, _NEEDED)
            name = cells["Nickname"] or f"{cells.get('First Name', '')} {cells.get('Last Name', '')}".strip()
            yield _row(line, name, cells)
        except Unreadable as bad:
            yield Listed(line, name, refused=(bad.column or "", bad.reason))


def _row(line: int, name: str, cells: dict[str, str]) -> Listed:
    if "MVP" in cells.get("Roster Position", "").upper():
        raise Unreadable("Roster Position", "of a single-game list (MVP); download the list of a full-roster contest")
    if not name:
        raise Unreadable("Nickname", "no name")
    if not _ID.fullmatch(cells["Id"]):
        raise Unreadable("Id", f"{cells['Id']!r} is no Id of FanDuel")
    where = positions(cells["Position"], "Position")
    of = team(cells["Team"], "Team")
    if where == ("DST",):
        defence(cells | {"Nickname": name}, "Nickname", of)
    game = _GAME.fullmatch(cells["Game"])
    away, home = (team(game[1], "Game"), team(game[2], "Game")) if game else ("", "")
    if game and away == home:
        raise Unreadable("Game", f"{cells['Game']!r} names one team twice")
    opponent = cells.get("Opponent", "")
    if game and opponent and {of, team(opponent, "Opponent")} != {away, home}:
        raise Unreadable("Opponent", f"{cells['Team']} against {opponent} is not the game {cells['Game']}")
    amount, fault = price(cells["Salary"], "Salary")
    return Listed(
        line=line,
        name=name,
        positions=where,
        team=of,
        away=away,
        home=home,
        state="" if game else cells["Game"] or "nothing",
        source_id=f"fd-{cells['Id']}",
        price=amount,
        price_fault=fault,
    )
