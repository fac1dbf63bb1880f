"""Who has statistics and is not in the pool: told to the operator, matched to nobody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from common.events import Slot
from settlement.lines import Person
from settlement.matching import Near, unknown

Play = Callable[..., Any]
POINTS = {"rush_yds": 50}


@pytest.mark.rule("S1")
def test_who_could_be_in_the_pool_and_is_not_is_told_with_the_names_that_are_like_his(play_week: Play) -> None:
    contest = play_week(4).opened
    bell = next(player for player in contest.players if player.player_name == "Le'Veon Bell")
    stranger = Person("00-9", "LeVeon Bell", "RB", "PIT")
    (one,) = unknown(contest, [stranger, Person(bell.player_id, "L.Bell", "RB", "PIT")], {"00-9": POINTS})
    assert (one.player_id, one.name, one.team, one.points) == ("00-9", "LeVeon Bell", "PIT", 500)
    assert one.nearest[0].player_id == bell.player_id
    assert one.nearest[0].likeness >= 90
    assert all(near.team == "PIT" for near in one.nearest)


@pytest.mark.rule("S1")
def test_kickers_defenders_and_teams_of_other_games_are_unknown_to_nobody(play_week: Play) -> None:
    contest = play_week(4).opened
    covered = {team for game in contest.games for team in (game.away, game.home)}
    assert "GB" not in covered  # Thursday's game.
    people = [
        Person("00-1", "Chris Boswell", "K", "PIT"),
        Person("00-2", "T.J. Watt", "LB", "PIT"),
        Person("00-3", "Aaron Rodgers", "QB", "GB"),
        Person("00-4", "Nobody", "", ""),
        Person("00-5", "Roosevelt Nix", "FB", "PIT"),
        Person("00-6", "", "", ""),
    ]
    lines = {"00-1": {"fg_made_30_39": 2}, "00-2": {"rec": 0}, "00-3": POINTS, "00-5": {"rec": 1}, "00-6": POINTS}
    assert [one.player_id for one in unknown(contest, people, lines)] == ["00-6", "00-5"]
    with_kicker = contest.model_copy(update={"roster": (*contest.roster, Slot(slot="K", positions=("K",)))})
    assert [one.player_id for one in unknown(with_kicker, people, lines)] == ["00-6", "00-5", "00-1"]


@pytest.mark.rule("S1")
def test_a_name_like_none_of_his_team_is_looked_for_in_the_whole_pool(play_week: Play) -> None:
    contest = play_week(4).opened
    (one,) = unknown(contest, [Person("00-9", "Todd Gurley", "RB", "PIT")], {"00-9": POINTS})
    gurley = next(player for player in contest.players if player.player_name.startswith("Todd Gurley"))
    assert Near(gurley.player_id, gurley.player_name, "LA", one.nearest[0].likeness) == one.nearest[0]
    (none,) = unknown(contest, [Person("00-9", "Qqqq Xxxx", "RB", "PIT")], {"00-9": POINTS})
    assert none.nearest == ()
