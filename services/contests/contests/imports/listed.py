"""What all formats are read into: one :class:`Listed` a row, and the cells that they share."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from contests.imports import teams

MAX_PRICE = 10_000_000
"""No price of any site comes near."""

_PRICE = re.compile(r"(-?\d{1,15})(?:\.(\d{1,15}))?")

POSITIONS = {"D": "DST", "DEF": "DST", "D/ST": "DST", "FB": "RB", "HB": "RB", "PK": "K"}
"""Positions as sites write them, where MAFL writes them otherwise."""

LONGEST = 100
"""Characters of a cell that matters."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A row of a list as read; nothing is matched yet.

    ``team``, ``away`` and ``home`` are franchises, or what the file wrote where it is no team that is known;
    empty where the list does not say. ``kickoff`` is what the list announces (UTC), ``state`` its words where it
    says something else of the game (*Postponed*). ``price`` is None, and ``price_fault`` says why, where there is
    no usable one. ``refused`` says why the format itself cannot offer the row.
    """

    line: int
    name: str
    positions: tuple[str, ...] = ()
    team: str = ""
    opponent: str = ""
    away: str = ""
    home: str = ""
    kickoff: datetime | None = None
    state: str = ""
    neutral: bool = False
    game_id: str = ""
    season: int | None = None
    week: int | None = None
    player_id: str = ""
    source_id: str = ""
    price: int | None = None
    price_fault: str = ""
    refused: tuple[str, str] | None = None

    @property
    def pair(self) -> frozenset[str]:
        """The two teams of the row's game, as far as the list names them."""
        named = {self.away, self.home} if self.away and self.home else {self.team, self.opponent}
        return frozenset(named - {""})


class Unreadable(Exception):
    """A cell that cannot be what its column says. ``column`` is a header's name."""

    def __init__(self, column: str | None, reason: str) -> None:
        super().__init__(reason)
        self.column = column
        self.reason = reason


def price(text: str, column: str) -> tuple[int | None, str]:
    """A price, or None and why there is none to go by. Raises ``Unreadable`` for what is no number."""
    if not text:
        return None, "no price"
    number = _PRICE.fullmatch(text) if text.isascii() else None
    if number is None:
        raise Unreadable(column, f"{text!r} is not a price")
    amount = int(number[1])
    if (number[2] or "").strip("0"):
        return None, f"the price {text} is fractional"
    if amount <= 0:
        return None, f"the price {text} is not above zero"
    if amount > MAX_PRICE:
        raise Unreadable(column, f"{text} is above {MAX_PRICE}, no price of any site")
    return amount, ""


def whole(text: str, column: str, low: int, high: int) -> int:
    """A whole number from ``low`` to ``high``. Raises ``Unreadable``."""
    if not (text.isascii() and text.isdigit() and len(text) <= 4 and low <= int(text) <= high):
        raise Unreadable(column, f"{text!r} is not a whole number from {low} to {high}")
    return int(text)


def aware(text: str, column: str) -> datetime:
    """An ISO 8601 time with an offset, in UTC. Raises ``Unreadable``."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise Unreadable(column, f"{text!r} is not an ISO 8601 time") from None
    if time.tzinfo is None:
        raise Unreadable(column, f"{text!r} has no offset from UTC")
    if not 1920 <= time.year <= 2199:
        raise Unreadable(column, f"{text!r} is in no season")
    return time.astimezone(UTC)


def cells_of(header: Sequence[str], fields: Sequence[str], needed: Sequence[str]) -> dict[str, str]:
    """The cells of a row by column, trimmed; the first of columns of one name, none of those without.

    Blank cells beyond the header's end are passed over. Raises ``Unreadable`` for a row that is too short or too
    long and, of the columns in ``needed``, for cells that hold no text of a list.
    """
    if any(field.strip() for field in fields[len(header) :]):
        raise Unreadable(None, f"the row has {len(fields)} fields, the header {len(header)}")
    cells: dict[str, str] = {}
    for column, field in zip(header, fields, strict=False):
        if column:
            cells.setdefault(column, field.strip())
    for column in needed:
        if column not in cells:
            raise Unreadable(column, f"the row ends after {len(fields)} of {len(header)} fields")
        check_text(cells[column], column)
    return cells


def check_text(text: str, column: str) -> None:
    """Raises ``Unreadable`` for what no list holds: controls, or more text than any name has."""
    if len(text) > LONGEST or not text.isprintable():
        raise Unreadable(column, f"longer than {LONGEST} characters, or holding characters that do not print")


def positions(text: str, column: str) -> tuple[str, ...]:
    """Positions as MAFL writes them, each once, as listed. Raises ``Unreadable`` for none."""
    whole = POSITIONS.get(text.upper())
    found = (whole,) if whole else tuple(dict.fromkeys(POSITIONS.get(p, p) for p in text.upper().split("/") if p))
    if not found:
        raise Unreadable(column, "no position")
    return found


def team(text: str, column: str) -> str:
    """The franchise that a cell names. Raises ``Unreadable`` where it names none."""
    found = teams.franchise(text)
    if found is None:
        raise Unreadable(column, f"{text!r} is no team that is known" if text else "no team")
    return found


def defence(cells: Mapping[str, str], column: str, franchise: str) -> None:
    """Raises ``Unreadable`` where a team defence is named after another team than the row's."""
    named = teams.franchise(cells[column])
    if named is not None and named != franchise:
        raise Unreadable(column, f"{cells[column]!r} is the name of {named}, the row's team is {franchise}")
