"""Salary files of the sites' formats, schedules and players files, a row at a time."""

DK_HEADER = "Position,Name + ID,Name,ID,Roster Position,Salary,Game Info,TeamAbbrev,AvgPointsPerGame"
FD_HEADER = (
    "Id,Position,First Name,Nickname,Last Name,FPPG,Played,Salary,Game,Team,Opponent,Injury Indicator,"
    "Injury Details,Tier,,,Roster Position"
)
SUNDAY = "SEA@MIA 10/04/2020 01:00PM ET"


def lines(*rows: str, end: str = "\n") -> bytes:
    return "".join(row + end for row in rows).encode()


def dk(
    name: str = "Jo Doe",
    *,
    number: int = 1,
    position: str = "WR",
    price: str = "5000",
    game: str = SUNDAY,
    team: str = "SEA",
    roster: str = "",
) -> str:
    return f"{position},{name} ({number}),{name},{number},{roster or f'{position}/FLEX'},{price},{game},{team},9.5"


def dk_file(*rows: str, header: str = DK_HEADER, end: str = "\n") -> bytes:
    return lines(header, *rows, end=end)


def fd(
    nickname: str = "Jo Doe", *, number: int = 1, position: str = "WR", price: str = "7000", team: str = "SEA"
) -> str:
    first, _, last = nickname.partition(" ")
    roster = "DEF" if position == "D" else f"{position}/FLEX"
    other = "MIA" if team == "SEA" else "SEA"
    return f"777-{number},{position},{first},{nickname},{last},8.1,3,{price},SEA@MIA,{team},{other},Q,Knee,,,,{roster}"


def schedule(*games: str) -> bytes:
    return lines("game_id,season,week,away_team,home_team,kickoff,location", *games)


SEA_MIA = "2020_04_SEA_MIA,2020,4,SEA,MIA,2020-10-04T13:00:00-04:00,Home"


def directory(*rows: str, header: str = "player_id,name,position,team") -> list[bytes]:
    return [lines(header, *rows)]
