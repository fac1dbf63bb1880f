"""``DKSalaries.csv`` as DraftKings gives it out, of any year: a classic list of one slate.

A cell that cannot be read refuses its row and no other: the file is somebody else's, and the rest of it stands.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from common.tables import Row
from contests.domain import EASTERN
from contests.imports.listed import LONGEST, Listed, Unreadable, cells_of, defence, positions, price, team
from contests.imports.report import lines as lines_of

FORMAT = "draftkings"
MARKS = frozenset({"Name + ID", "Roster Position", "Salary", "Game Info", "TeamAbbrev"})
"""Columns that no other list has all of."""

ACCEPTED = "a DKSalaries.csv as downloaded"

_NEEDED = ("Position", "Name", "ID", "Roster Position", "Salary", "Game Info", "TeamAbbrev")
_GAME = re.compile(r"(?P<away>[A-Za-z]{2,4}) ?@ ?(?P<home>[A-Za-z]{2,4})(?: +(?P<rest>.*))?")
_TIME = re.compile(r"(\d{2}/\d{2}/\d{4}) (\d{1,2}:\d{2}) ?([AP]M) ET", re.IGNORECASE)
_WITH_ID = re.compile(r".*\((\d{1,18})\)")


def read(header: Sequence[str], rows: Sequence[Row]) -> tuple[list[Listed], tuple[str, ...]]:
    """The rows of a file, those that cannot be read with the reason in ``refused``, and remarks on all of it."""
    place = {column: header.index(column) for column in ("Name", "Roster Position")}
    captains = [line for line, fields in rows if "CPT" in _at(fields, place["Roster Position"]).upper().split("/")]
    if not captains:
        return [_row(line, header, fields) for line, fields in rows], ()
    where = lines_of(captains)
    captain = "a captain's row (CPT, 1.5 times the price) of a showdown list"
    other = f"a row of a showdown list (captains in {where}), whose prices are not those of the classic roster"
    refused = [
        Listed(line, _at(fields, place["Name"]), refused=("Roster Position", captain if line in captains else other))
        for line, fields in rows
    ]
    remark = (
        f"This is a showdown list: {where} are captains (CPT). MAFL plays the classic roster. Download DKSalaries.csv "
        "of a classic contest of the week instead; its Roster Position column says QB, RB/FLEX, WR/FLEX, TE/FLEX, DST."
    )
    return refused, (remark,)


def _at(fields: Sequence[str], place: int) -> str:
    return fields[place].strip()[:LONGEST] if place < len(fields) else ""


def _row(line: int, header: Sequence[str], fields: Sequence[str]) -> Listed:
    name = ""
    try:
        cells = cells_of(header, fields, _NEEDED)
        name = cells["Name"]
        if not name:
            raise Unreadable("Name", "no name")
        where = positions(cells["Position"], "Position")
        of = team(cells["TeamAbbrev"], "TeamAbbrev")
        if where == ("DST",):
            defence(cells, "Name", of)
        amount, fault = price(cells["Salary"], "Salary")
        return Listed(
            line=line,
            name=name,
            positions=where,
            team=of,
            source_id=f"dk-{_id(cells)}",
            price=amount,
            price_fault=fault,
            **_game(cells["Game Info"]),
        )
    except Unreadable as bad:
        return Listed(line, name, refused=(bad.column or "", bad.reason))


def _id(cells: dict[str, str]) -> str:
    beside = _WITH_ID.fullmatch(cells.get("Name + ID", ""))
    number = cells["ID"] or (beside[1] if beside else "")
    if not (number.isascii() and number.isdigit() and len(number) <= 18):
        raise Unreadable("ID", f"{number!r} is no ID of DraftKings" if number else "no ID")
    if beside and beside[1] != number:
        raise Unreadable("ID", f"the ID is {number}, beside the name it is {beside[1]}")
    return number


def _game(text: str) -> dict[str, Any]:
    """What ``Game Info`` says: teams and a time, or teams or nothing and the state of the game in words."""
    game = _GAME.fullmatch(text)
    if game is None:
        return {"state": text or "nothing"}
    away, home = team(game["away"], "Game Info"), team(game["home"], "Game Info")
    if away == home:
        raise Unreadable("Game Info", f"{text!r} names one team twice")
    said: dict[str, Any] = {"away": away, "home": home}
    rest = (game["rest"] or "").strip()
    time = _TIME.fullmatch(rest)
    if time is None:
        return said | {"state": rest or "no time"}
    try:
        local = datetime.strptime(f"{time[1]} {time[2]} {time[3].upper()}", "%m/%d/%Y %I:%M %p").replace(tzinfo=EASTERN)
    except ValueError:
        raise Unreadable("Game Info", f"{rest!r} is no time of a clock") from None
    if not 1920 <= local.year <= 2199:
        raise Unreadable("Game Info", f"{rest!r} is in no season")
    return said | {"kickoff": local.astimezone(UTC)}
