"""The thirty-two teams, and every way in which lists, schedules and people write them: one table.

A team is named by a *franchise*, its abbreviation of today in nflverse's way (``JAX``, ``LA``, ``LV``). What a
team was called in a season is another matter: :func:`abbreviation`.
"""

_TABLE = """
ARI | ARZ CRD         | Arizona Cardinals
ATL |                 | Atlanta Falcons
BAL | BLT RAV         | Baltimore Ravens
BUF |                 | Buffalo Bills
CAR |                 | Carolina Panthers
CHI |                 | Chicago Bears
CIN |                 | Cincinnati Bengals
CLE | CLV             | Cleveland Browns
DAL |                 | Dallas Cowboys
DEN |                 | Denver Broncos
DET |                 | Detroit Lions
GB  | GNB             | Green Bay Packers
HOU | HST HTX         | Houston Texans
IND | CLT             | Indianapolis Colts
JAX | JAC             | Jacksonville Jaguars
KC  | KAN             | Kansas City Chiefs
LA  | LAR RAM STL     | Los Angeles Rams, St. Louis Rams
LAC | SD SDG          | Los Angeles Chargers, San Diego Chargers
LV  | LVR OAK RAI     | Las Vegas Raiders, Oakland Raiders
MIA |                 | Miami Dolphins
MIN |                 | Minnesota Vikings
NE  | NWE             | New England Patriots
NO  | NOR             | New Orleans Saints
NYG |                 | New York Giants
NYJ |                 | New York Jets
PHI |                 | Philadelphia Eagles
PIT |                 | Pittsburgh Steelers
SEA |                 | Seattle Seahawks
SF  | SFO             | San Francisco 49ers
TB  | TAM             | Tampa Bay Buccaneers
TEN | OTI             | Tennessee Titans
WAS | WSH WFT         | Washington Commanders, Washington Football Team, Washington Redskins
"""

_EARLIER = {"LV": (2020, "OAK"), "LAC": (2017, "SD"), "LA": (2016, "STL")}
"""Franchise to the first season of its abbreviation, and what it was before."""


def _read() -> dict[str, str]:
    known: dict[str, str] = {}
    for line in _TABLE.strip().splitlines():
        franchise, others, names = (part.strip() for part in line.split("|"))
        spelt = [franchise, *others.split()]
        for name in names.split(", "):
            nickname = "Football Team" if name.endswith("Football Team") else name.rsplit(" ", 1)[1]
            spelt += [name, nickname, f"{franchise} {nickname}"]
        known |= {_key(spelling): franchise for spelling in spelt}
    return known


def _key(text: str) -> str:
    return " ".join(text.replace(".", "").casefold().split())


_KNOWN = _read()


def franchise(text: str) -> str | None:
    """The franchise that is meant by an abbreviation, a full name or a nickname; None for any other text.

    >>> franchise("gnb"), franchise("Seattle Seahawks"), franchise("Seahawks "), franchise("Los Angeles")
    ('GB', 'SEA', 'SEA', None)
    """
    return _KNOWN.get(_key(text))


def abbreviation(franchise: str, season: int) -> str:
    """What nflverse calls a franchise in a season.

    >>> abbreviation("LV", 2019), abbreviation("LV", 2020), abbreviation("LA", 2026)
    ('OAK', 'LV', 'LA')
    """
    since, before = _EARLIER.get(franchise, (0, ""))
    return franchise if season >= since else before
