"""Plain CSV: what anybody can write in a spreadsheet.

It must have the columns ``name``, ``position`` (or ``positions``), ``team`` and ``price``. It may have
``player_id``, ``opponent``, ``home_away`` (``home`` or ``away``), ``kickoff`` (ISO 8601 with its offset),
``season`` and ``week``; other columns are passed over. A cell that cannot be read refuses its row and no other.
"""

from collections.abc import Iterable, Iterator, Sequence

from common.tables import Fault, Malformed, Row
from contests.imports.listed import Listed, Unreadable, aware, cells_of, check_text, positions, price, team, whole
from contests.imports.players import slug

FORMAT = "csv"
NEEDED = ("name", "team", "price")
OPTIONAL = ("player_id", "opponent", "home_away", "kickoff", "season", "week")
ACCEPTED = f"a plain CSV with the columns name, position, team, price and, if wanted, {', '.join(OPTIONAL)}"


def is_plain(header: Sequence[str]) -> bool:
    """Whether a header has all columns that a plain CSV must have."""
    return {*NEEDED} <= {*header} and not {"position", "positions"}.isdisjoint(header)


def read(header_line: int, header: Sequence[str], rows: Iterable[Row]) -> Iterator[Listed]:
    """The rows of a file. Raises ``Malformed`` where a column comes twice."""
    where = "position" if "position" in header else "positions"
    twice = sorted(column for column in {*NEEDED, *OPTIONAL, "position", "positions"} if header.count(column) > 1)
    if twice:
        raise Malformed([Fault(header_line, twice[0], "the column comes twice")])
    for line, fields in rows:
        name = ""
        try:
            cells = cells_of(header, fields, (*NEEDED, where))
            name = cells["name"]
            yield _row(line, cells, where)
        except Unreadable as bad:
            yield Listed(line, name, refused=(bad.column or "", bad.reason))


def _row(line: int, cells: dict[str, str], where: str) -> Listed:
    if not cells["name"]:
        raise Unreadable("name", "no name")
    optional = {column: cells.get(column, "") for column in OPTIONAL}
    for column, text in optional.items():
        check_text(text, column)
    plays = positions(cells[where], where)
    of = team(cells["team"], "team")
    opponent = team(optional["opponent"], "opponent") if optional["opponent"] else ""
    if opponent == of:
        raise Unreadable("opponent", f"{cells['team']} against itself")
    at = optional["home_away"].casefold()
    if at not in ("", "home", "away"):
        raise Unreadable("home_away", f"{at!r} is neither home nor away")
    away, home = "", ""
    if opponent and at:
        away, home = (of, opponent) if at == "away" else (opponent, of)
    amount, fault = price(cells["price"], "price")
    return Listed(
        line=line,
        name=cells["name"],
        positions=plays,
        team=of,
        opponent=opponent,
        away=away,
        home=home,
        kickoff=aware(optional["kickoff"], "kickoff") if optional["kickoff"] else None,
        season=whole(optional["season"], "season", 1920, 2199) if optional["season"] else None,
        week=whole(optional["week"], "week", 1, 25) if optional["week"] else None,
        player_id=optional["player_id"],
        source_id=f"csv-{slug(cells['name'])}-{of.lower()}",
        price=amount,
        price_fault=fault,
    )
