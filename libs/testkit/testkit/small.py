"""A contest as small as can be, for those who do not look at contests."""

from datetime import UTC, datetime, timedelta

from common import events as ev

LOCKS = datetime(2017, 9, 10, 17, tzinfo=UTC)


def opened(contest: str, *names: str, locks_at: datetime = LOCKS) -> ev.ContestOpened:
    """The event of a contest with one slot, one game and some receivers, each of whom may be picked."""
    players = tuple(
        ev.PoolPlayer(
            player_id=f"P{number}",
            player_name=name,
            positions=("WR",),
            team="KC",
            opponent="NE",
            game_id="G1",
            price=5000,
        )
        for number, name in enumerate(names or ("Kareem Hunt",))
    )
    return ev.ContestOpened(
        contest=contest,
        season=2017,
        week=1,
        opened_at=LOCKS - timedelta(days=3),
        locks_at=locks_at,
        cap=50000,
        roster=(ev.Slot(slot="WR1", positions=("WR",)),),
        ruleset="draftkings-classic-1",
        scoring=ev.Scoring(scoring="draftkings-classic-1", per_unit={"rec": 100}),
        price_source="file",
        games=(ev.Game(game_id="G1", away="KC", home="NE", kickoff=locks_at),),
        players=players,
    )
