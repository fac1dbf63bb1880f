"""The programme against every lineup there is, on pools small enough to try them all."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.events import Slot
from settlement.certify import certify
from settlement.optimal import InfeasibleError, Player, TooFineError, best_lineups, count_lineups, optimal

from .trying_everything import ROSTERS, every_lineup, slots


@st.composite
def pools(draw: st.DrawFn) -> tuple[list[Player], tuple[Slot, ...], int]:
    roster = ROSTERS[draw(st.sampled_from(sorted(ROSTERS)))]
    step, base = draw(st.sampled_from([(100, 0), (1, 0), (100, 50), (7, 3)]))
    positions = st.lists(st.sampled_from(["QB", "RB", "WR", "TE"]), min_size=1, max_size=2, unique=True).map(tuple)
    points = draw(st.sampled_from([st.integers(-3, 3), st.just(0), st.integers(-500, 6000)]))
    ids = draw(st.permutations([f"p{n}" for n in range(11)]))
    players = [
        Player(ids[at], draw(positions), base + step * draw(st.integers(1, 12)), draw(points))
        for at in range(draw(st.integers(0, 11)))
    ]
    return players, roster, draw(st.integers(0, 40 * step))


@pytest.mark.rule("S2")
@settings(max_examples=250, deadline=None)
@given(pools(), st.integers(1, 60))
def test_the_best_lineups_are_those_of_trying_everything(
    problem: tuple[list[Player], tuple[Slot, ...], int], count: int
) -> None:
    players, roster, cap = problem
    everything = every_lineup(players, roster, cap)
    assert best_lineups(players, roster, cap, count) == everything[:count]
    assert count_lineups(players, roster, cap) == len(everything)
    if everything:
        assert optimal(players, roster, cap) == everything[0]
    else:
        with pytest.raises(InfeasibleError):
            optimal(players, roster, cap)


@pytest.mark.rule("S2")
@settings(max_examples=40, deadline=None)
@given(pools())
def test_all_lineups_in_order_are_exactly_as_many_as_are_counted(
    problem: tuple[list[Player], tuple[Slot, ...], int],
) -> None:
    players, roster, cap = problem
    listed = best_lineups(players, roster, cap, 5000)
    assert len(listed) == len(set(listed)) == count_lineups(players, roster, cap)


@pytest.mark.rule("S2")
@settings(max_examples=40, deadline=None)
@given(pools())
def test_cp_sat_proves_the_same_points(problem: tuple[list[Player], tuple[Slot, ...], int]) -> None:
    players, roster, cap = problem
    best = best_lineups(players, roster, cap, 1)
    certificate = certify(players, roster, cap, best[0].points if best else 0)
    assert certificate.agrees == bool(best)
    assert certificate.status == ("OPTIMAL" if best else "INFEASIBLE")
    if best:
        assert not certify(players, roster, cap, best[0].points - 1).agrees


@pytest.mark.rule("S2")
@settings(max_examples=50, deadline=None)
@given(pools(), st.randoms(use_true_random=False))
def test_the_order_of_the_pool_does_not_matter(
    problem: tuple[list[Player], tuple[Slot, ...], int], chance: random.Random
) -> None:
    players, roster, cap = problem
    shuffled = chance.sample(players, len(players))
    assert best_lineups(shuffled, roster, cap, 20) == best_lineups(players, roster, cap, 20)


@pytest.mark.rule("S2")
def test_of_equal_points_the_cheaper_lineup_wins_and_of_equal_prices_the_smaller_ids() -> None:
    roster = slots("RB", "WR")
    players = [
        Player("z", ("RB",), 300, 1000),
        Player("a", ("RB",), 400, 1000),
        Player("d", ("WR",), 500, 900),
        Player("b", ("WR",), 500, 900),
        Player("c", ("WR",), 400, 900),
    ]
    assert optimal(players, roster, 1000).players == ("c", "z")
    assert optimal(players[:4], roster, 1000).players == ("b", "z")
    assert [lineup.players for lineup in best_lineups(players, roster, 1000, 9)] == [
        ("c", "z"), ("a", "c"), ("b", "z"), ("d", "z"), ("a", "b"), ("a", "d"),
    ]  # fmt: skip


@pytest.mark.rule("S2")
def test_a_player_at_two_positions_is_one_player_and_his_lineup_counts_once() -> None:
    roster = slots("RB", "WR", "RB/WR")
    players = [Player(f"p{n}", ("RB", "WR"), 100, n) for n in range(5)]
    assert count_lineups(players, roster, 300) == math.comb(5, 3)
    assert optimal(players, roster, 300).players == ("p2", "p3", "p4")


@pytest.mark.rule("S2")
def test_ids_are_compared_by_code_point() -> None:
    players = [Player(name, ("QB",), 100, 0) for name in ("é", "e", "Z", "DST-é", "10", "9")]
    assert [lineup.players[0] for lineup in best_lineups(players, slots("QB"), 100, 9)] == sorted(
        player.player_id for player in players
    )


@pytest.mark.rule("S2")
def test_a_week_of_nothing_but_ties_still_has_one_order(roster: Sequence[Slot]) -> None:
    players = [
        Player(f"{position}{n:03d}", (position,), 3000, 0)
        for position, many in (("QB", 40), ("RB", 120), ("WR", 180), ("TE", 80), ("DST", 32))
        for n in range(many)
    ]
    ways = 40 * 32 * (
        math.comb(120, 3) * math.comb(180, 3) * 80
        + math.comb(120, 2) * math.comb(180, 4) * 80
        + math.comb(120, 2) * math.comb(180, 3) * math.comb(80, 2)
    )  # fmt: skip
    assert count_lineups(players, roster, 50000) == ways
    best = best_lineups(players, roster, 50000, 200)
    assert best[0].players == ("DST000", "QB000", "RB000", "RB001", "RB002", "TE000", "WR000", "WR001", "WR002")
    assert best[1].players == ("DST000", "QB000", "RB000", "RB001", "RB002", "TE000", "WR000", "WR001", "WR003")
    assert best == sorted(best, key=lambda lineup: lineup.players)


@pytest.mark.rule("S2")
def test_the_number_of_lineups_of_a_thousand_players_needs_more_than_64_bits(roster: Sequence[Slot]) -> None:
    many = {"QB": 80, "RB": 260, "WR": 400, "TE": 180, "DST": 80}
    players = [Player(f"{p}{n}", (p,), 100 + n, n) for p, size in many.items() for n in range(size)]
    ways = 80 * 80 * (
        math.comb(260, 3) * math.comb(400, 3) * 180
        + math.comb(260, 2) * math.comb(400, 4) * 180
        + math.comb(260, 2) * math.comb(400, 3) * math.comb(180, 2)
    )  # fmt: skip
    assert ways > 2**64
    assert count_lineups(players, roster, 10**12) == ways


@pytest.mark.rule("S2")
def test_prices_without_a_common_unit_are_solved_as_exactly(roster: Sequence[Slot]) -> None:
    chance = random.Random(2017)
    many = {"QB": 30, "RB": 90, "WR": 130, "TE": 60, "DST": 28}
    players = [
        Player(f"{p}{n}", (p,), chance.randrange(2000, 9000), chance.randrange(-200, 3500))
        for p, size in many.items()
        for n in range(size)
    ]
    best = best_lineups(players, roster, 50000, 20)
    assert certify(players, roster, 50000, best[0].points).agrees
    assert best == sorted(best, key=lambda lineup: (-lineup.points, lineup.price, lineup.players))
    assert max(lineup.price for lineup in best) <= 50000


@pytest.mark.rule("S2")
def test_an_infeasible_pool_says_what_is_missing(roster: Sequence[Slot]) -> None:
    full = [Player(f"{p}{n}", (p,), 5000 + n, 100) for p in ("QB", "RB", "WR", "TE", "DST") for n in range(4)]
    with pytest.raises(InfeasibleError, match="no player of the pool may fill slot QB"):
        optimal([], roster, 50000)
    with pytest.raises(InfeasibleError, match=r"no player of the pool may fill slot TE \(TE\)"):
        optimal([player for player in full if player.positions != ("TE",)], roster, 50000)
    ids = {"QB0", "RB0", "RB1", "WR0", "WR1", "TE0", "TE1", "TE2", "DST0"}
    few = [player for player in full if player.player_id in ids]
    with pytest.raises(InfeasibleError, match="9 players cannot fill the 9 slots"):
        optimal(few, roster, 50000)
    with pytest.raises(InfeasibleError, match="the cheapest lineup costs 45005, more than the cap of 45004"):
        optimal(full, roster, 45004)
    assert optimal(full, roster, 45005).price == 45005


@pytest.mark.rule("S2")
@pytest.mark.parametrize("price", [0, -100])
def test_a_player_without_a_price_is_refused(price: int) -> None:
    with pytest.raises(ValueError, match="a price is above zero"):
        optimal([Player("a", ("QB",), price, 1)], slots("QB"), 100)


@pytest.mark.rule("S2")
def test_a_player_listed_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="player a is in the pool twice"):
        count_lineups([Player("a", ("QB",), 5, 1), Player("a", ("RB",), 5, 1)], slots("QB"), 100)


@pytest.mark.rule("S2")
def test_prices_that_would_exhaust_the_memory_are_refused() -> None:
    players = [Player(f"p{n}", ("QB",), 1 + n * 500_000_011, n) for n in range(9)]
    with pytest.raises(TooFineError, match="coarser unit"):
        optimal([*players, Player("x", ("QB",), 2, 0)], slots("QB", "QB"), 10**12)
