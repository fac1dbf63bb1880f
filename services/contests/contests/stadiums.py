"""Where each team plays at home, as far as clocks care: the IANA zone of its stadium, for display alone."""

_TEAMS = {
    "America/New_York": "ATL BAL BUF CAR CIN CLE JAX MIA NE NYG NYJ PHI PIT TB WAS",
    "America/Detroit": "DET",
    "America/Indiana/Indianapolis": "IND",
    "America/Chicago": "CHI DAL GB HOU KC MIN NO STL TEN",
    "America/Denver": "DEN",
    "America/Phoenix": "ARI",
    "America/Los_Angeles": "LA LAC LV OAK SD SEA SF",
}

ZONES = {team: zone for zone, teams in _TEAMS.items() for team in teams.split()}
"""Home team, written the nflverse way, to zone; places that teams have left (OAK, SD, STL) included."""

UNKNOWN = "UTC"
"""The zone of a game on neutral ground, or of a team that is not listed.

Files say that the ground is neutral but not where it is (London, Mexico City). A time in UTC is true
anywhere; the home team's zone would put a game in London at breakfast in Cleveland.
"""


def zone(home: str, *, neutral: bool) -> str:
    """The zone in which a game's kickoff is shown."""
    return UNKNOWN if neutral else ZONES.get(home, UNKNOWN)
