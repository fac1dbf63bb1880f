"""Rules on teams and games: the best lineup that keeps them, by listing and by CP-SAT, against trying everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.events import LineupRules, Slot
from settlement.certify import certify, search
from settlement.optimal import InfeasibleError, Player, best_lineups
from settlement.results import work_out
from settlement.ruled import keeps, optimal_under

from .real_pools import lines_worth
from .trying_everything import ROSTERS, every_lineup, slots

MAX_TWO = LineupRules(max_per_team=2)


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[Player], tuple[Slot, ...], int, LineupRules]:
    roster = ROSTERS[draw(st.sampled_from(sorted(ROSTERS)))]
    points = draw(st.sampled_from([st.integers(-3, 9), st.just(0)]))
    players = []
    for number in range(draw(st.integers(len(roster), 10))):
        first = roster[number % len(roster)].positions[0]
        positions = tuple(dict.fromkeys((first, draw(st.sampled_from([first, "RB", "WR"])))))
        team = draw(st.sampled_from("ABCD"))
        players.append(
            Player(f"p{number}", positions, draw(st.integers(2, 4)), draw(points), team, "AB" if team in "AB" else "CD")
        )
    rules = LineupRules(
        max_per_team=draw(st.sampled_from([None, 1, 2])), min_games=draw(st.sampled_from([None, 1, 2, 3]))
    )
    return players, roster, draw(st.integers(2, 4)) * len(roster), rules


@pytest.mark.rule("S2", "C3")
@settings(max_examples=60, deadline=None)
@given(problems(), st.sampled_from([0, 3, 1_000]))
def test_the_best_lineup_that_keeps_the_rules_is_that_of_trying_everything(
    problem: tuple[list[Player], tuple[Slot, ...], int, LineupRules], depth: int
) -> None:
    """Whether it is found in the list (1,000), by CP-SAT alone (0), or by CP-SAT where a short list holds none."""
    players, roster, cap, rules = problem
    by_id = {player.player_id: player for player in players}
    allowed = [
        lineup
        for lineup in every_lineup(players, roster, cap)
        if max(Counter(by_id[one].team for one in lineup.players).values()) <= (rules.max_per_team or 99)
        and len({by_id[one].game for one in lineup.players}) >= (rules.min_games or 0)
    ]
    if not allowed:
        with pytest.raises(InfeasibleError):
            optimal_under(players, roster, cap, rules, depth)
        assert certify(players, roster, cap, 0, rules).status == "INFEASIBLE"
        return
    best = optimal_under(players, roster, cap, rules, depth)
    assert best == allowed[0]
    assert certify(players, roster, cap, best.points, rules).agrees
    assert not certify(players, roster, cap, best.points - 1, rules).agrees


@pytest.mark.rule("S2")
def test_where_no_lineup_keeps_the_rules_it_is_said_which() -> None:
    players = [Player(f"p{n}", ("RB",), 1, n, "A", "AB") for n in range(5)]
    for rules, why in (
        (LineupRules(max_per_team=1), "at most 1 players of one team"),
        (LineupRules(min_games=2), "at least 2 games"),
    ):
        with pytest.raises(InfeasibleError, match=why):
            optimal_under(players, slots("RB", "RB"), 10, rules)
    with pytest.raises(InfeasibleError, match="more than the cap"):
        optimal_under(players, slots("RB", "RB"), 1, MAX_TWO)


@pytest.mark.rule("S2")
def test_a_real_week_settles_by_its_rules_has_no_ranks_and_says_why(play_week: Callable[..., Any]) -> None:
    week = play_week(6, entries=3)
    contest = week.opened.model_copy(
        update={"scoring": week.opened.scoring.model_copy(update={"per_unit": {"rec": 1}})}
    )
    contest = contest.model_copy(update={"scoring": contest.scoring.model_copy(update={"bonuses": (), "bands": {}})})
    free = work_out(contest, [], lines_worth(week))
    teams = {player.player_id: player.team for player in contest.players}
    crowd = max(Counter(teams[one] for one in free.optimal.players).values())
    assert crowd > 1, "the week's optimum has two of a team, so that the rule binds"
    rules = LineupRules(max_per_team=1, min_games=6)
    outcome = work_out(contest.model_copy(update={"lineup_rules": rules}), [], lines_worth(week))
    assert outcome.optimal.points < free.optimal.points
    assert max(Counter(teams[one] for one in outcome.optimal.players).values()) == 1
    assert outcome.proven
    assert outcome.standing is None
    assert outcome.no_ranks == "the contest has rules on teams or games, and lineups are not counted under those"
    # CP-SAT, asked in the programme's place, comes to the very same players.
    pool = [
        Player(one.player_id, one.positions, one.price, outcome.players[one.player_id], one.team, one.game_id)
        for one in contest.players
    ]
    assert search(pool, contest.roster, contest.cap, rules) == outcome.optimal
    listed = best_lineups(pool, contest.roster, contest.cap, 1)[0]
    by_id = {player.player_id: player for player in pool}
    assert listed == free.optimal
    assert not keeps((by_id[one] for one in listed.players), rules)
