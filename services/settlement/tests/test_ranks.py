"""How many lineups score how much: against every lineup there is where they can be tried, else against samples."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.events import Scoring, Slot
from settlement import ranks
from settlement.optimal import Player, best_lineups, count_lineups, optimal
from settlement.ranks import NoRankError, standing

from .real_pools import pool_of
from .trying_everything import ROSTERS, every_lineup, slots

Rows = Callable[[str], list[dict[str, str]]]


@st.composite
def pools(draw: st.DrawFn) -> tuple[list[Player], tuple[Slot, ...], int]:
    """Pools that mostly have lineups, of players at one or two positions, whose points mostly share a coarse unit."""
    roster = ROSTERS[draw(st.sampled_from(sorted(ROSTERS)))]
    coarse = draw(st.sampled_from([1, 2, 5, 10]))
    many = draw(st.integers(len(roster), 12))
    players = []
    for number in range(many):
        first = roster[number % len(roster)].positions[0]
        positions = (first, draw(st.sampled_from(["RB", "WR"]))) if draw(st.integers(0, 3)) == 0 else (first,)
        points = coarse * draw(st.integers(-3, 8)) + (draw(st.integers(1, 7)) if draw(st.integers(0, 9)) == 0 else 0)
        players.append(Player(f"p{number}", tuple(dict.fromkeys(positions)), 100 * draw(st.integers(2, 6)), points))
    return players, roster, draw(st.integers(200, 600)) * len(roster)


@pytest.mark.rule("S2")
@settings(max_examples=200, deadline=None)
@given(pools())
def test_every_score_has_the_place_that_trying_everything_gives_it(
    problem: tuple[list[Player], tuple[Slot, ...], int],
) -> None:
    players, roster, cap = problem
    scores = [lineup.points for lineup in every_lineup(players, roster, cap)]
    found = standing(players, roster, cap)
    assert found.points == tuple(sorted(set(scores)))
    assert found.lineups == len(scores)
    for points in {*scores, *(one + 1 for one in scores), -1000, 1000}:
        place = found.place(points)
        assert place.above == sum(one > points for one in scores)
        assert place.level == scores.count(points)
        assert place.below == sum(one < points for one in scores)
        assert place.rank == place.above + 1
        if scores:
            assert place.percentile == 10**6 * place.below // len(scores)


@pytest.mark.rule("S2")
@pytest.mark.parametrize("week", [2, 9, 16])
def test_of_a_real_week_all_lineups_are_counted_and_the_hundred_best_stand_where_they_were_found(
    read_data: Rows, classic: Scoring, roster: Sequence[Slot], week: int
) -> None:
    players = pool_of(read_data("pool_2017_dk.csv.gz"), week, classic)
    found = standing(players, roster, 50_000)
    assert found.lineups == count_lineups(players, roster, 50_000)
    best = [lineup.points for lineup in best_lineups(players, roster, 50_000, 100)]
    assert found.points[-1] == best[0]
    assert found.place(best[0]).rank == 1
    assert found.place(best[0]).above + found.place(best[0]).level + found.place(best[0]).below == found.lineups
    for points, many in Counter(best[:-1]).items():
        assert found.place(points).above == sum(one > points for one in best)
        assert found.place(points).level >= many
    worst = optimal([Player(p.player_id, p.positions, p.price, -p.points) for p in players], roster, 50_000)
    assert found.points[0] == -worst.points
    assert found.place(found.points[0]).percentile == 0


@pytest.mark.rule("S2")
def test_of_a_real_week_a_large_sample_of_lineups_has_the_same_distribution(
    read_data: Rows, classic: Scoring, roster: Sequence[Slot]
) -> None:
    """Lineups drawn evenly from all that fit the cap; their empirical distribution may be no farther from the counted
    one than the Dvoretzky-Kiefer-Wolfowitz inequality (Massart 1990) allows in all but one of a million samples."""
    players = pool_of(read_data("pool_2017_dk.csv.gz"), 5, classic)
    found = standing(players, roster, 50_000)
    scores = np.sort(even_sample(players, 50_000, 100_000, np.random.default_rng(2017)))
    assert len(scores) > 25_000
    counted = np.array([found.place(int(one)).below / found.lineups for one in np.unique(scores)])
    seen = np.searchsorted(scores, np.unique(scores)) / len(scores)
    assert np.abs(counted - seen).max() < math.sqrt(math.log(2 * 10**6) / (2 * len(scores)))


def even_sample(players: Sequence[Player], cap: int, draws: int, chance: np.random.Generator) -> np.ndarray:
    """Points of lineups of the classic roster, each that fits the cap as likely as any other."""
    by = {position: [p for p in players if p.positions == (position,)] for position in ("QB", "RB", "WR", "TE", "DST")}
    shapes = [(3, 3, 1), (2, 4, 1), (2, 3, 2)]
    weights = [
        math.prod(math.comb(len(by[p]), many) for p, many in zip(("RB", "WR", "TE"), shape, strict=True))
        for shape in shapes
    ]
    portions = chance.multinomial(draws, np.array(weights) / sum(weights))
    kept = []
    for shape, portion in zip(shapes, portions, strict=True):
        price, points = np.zeros(portion, dtype=np.int64), np.zeros(portion, dtype=np.int64)
        for position, many in zip(("QB", "DST", "RB", "WR", "TE"), (1, 1, *shape), strict=True):
            # The first of a random order are a random set.
            chosen = chance.random((portion, len(by[position]))).argpartition(many - 1, axis=1)[:, :many]
            price += np.array([p.price for p in by[position]])[chosen].sum(axis=1)
            points += np.array([p.points for p in by[position]])[chosen].sum(axis=1)
        kept.append(points[price <= cap])
    return np.concatenate(kept)


@pytest.mark.rule("S2")
def test_counts_beyond_64_bits_are_exact(roster: Sequence[Slot]) -> None:
    """All players cost the same, and one is worth what all others are not: the counts are products of binomials."""
    many = {"QB": 80, "RB": 260, "WR": 400, "TE": 180, "DST": 80}
    players = [Player(f"{p}{n}", (p,), 3000, 700 if (p, n) == ("QB", 0) else -20) for p in many for n in range(many[p])]
    others = 80 * (
        math.comb(260, 3) * math.comb(400, 3) * 180
        + math.comb(260, 2) * math.comb(400, 4) * 180
        + math.comb(260, 2) * math.comb(400, 3) * math.comb(180, 2)
    )
    assert 79 * others > 2**64
    found = standing(players, roster, 27_000)
    assert (found.points, found.up_to) == ((-180, 540), (79 * others, 80 * others))
    assert found.place(-180).rank == others + 1
    assert standing(players, roster, 26_999).lineups == 0


@pytest.mark.rule("S2")
def test_the_place_does_not_depend_on_the_order_of_the_pool(
    read_data: Rows, classic: Scoring, roster: Sequence[Slot]
) -> None:
    players = pool_of(read_data("pool_2017_dk.csv.gz"), 11, classic)
    assert standing(random.Random(1).sample(players, len(players)), roster, 50_000) == standing(players, roster, 50_000)


@pytest.mark.rule("S2")
def test_players_at_two_positions_are_counted_once_in_a_large_pool_too(roster: Sequence[Slot]) -> None:
    chance = random.Random(3)
    many = {("QB",): 30, ("RB",): 60, ("WR",): 90, ("TE",): 40, ("DST",): 28, ("RB", "WR"): 3, ("QB", "TE"): 1}
    players = [
        Player(f"{'/'.join(p)}{n}", p, 100 * chance.randrange(25, 90), 10 * chance.randrange(-10, 300))
        for p, size in many.items()
        for n in range(size)
    ]
    found = standing(players, roster, 50_000)
    assert found.lineups == count_lineups(players, roster, 50_000)
    best = [lineup.points for lineup in best_lineups(players, roster, 50_000, 200)]
    assert [found.place(points).above for points in best] == [sum(one > points for one in best) for points in best]


@pytest.mark.rule("S2")
@pytest.mark.parametrize("size", [2, 4, 64, 4096])
@pytest.mark.parametrize("prime", ranks.PRIMES)
def test_products_modulo_a_prime_are_those_of_whole_numbers(size: int, prime: int) -> None:
    chance = random.Random(size)
    assert all(prime % small for small in range(2, math.isqrt(prime) + 1))
    one, other = ([chance.randrange(prime) for _ in range(size // 2)] for _ in range(2))
    table = ranks._Table(np.array([one], dtype=np.int64), 1, 0, len(one))
    with_table = ranks._Table(np.array([other], dtype=np.int64), 1, 0, len(other))
    (found,) = ranks._products([ranks._Meeting({0: table}, {0: with_table}, 0)], 1, size, prime)
    # Python's own product of two long numbers whose digits, far apart, are the coefficients.
    digit = 96
    product = math.prod(sum(value << digit * at for at, value in enumerate(values)) for values in (one, other))
    wanted = [(product >> digit * at) % (1 << digit) % prime for at in range(size)]
    assert found.tolist() == wanted


@pytest.mark.rule("S2")
def test_a_pool_without_a_lineup_has_no_score(roster: Sequence[Slot]) -> None:
    assert standing([], roster, 50_000).points == ()
    players = [Player("a", ("QB",), 100, 5), Player("b", ("RB",), 200, 5)]
    assert standing(players, slots("QB", "TE"), 500).lineups == 0
    assert standing(players, slots("QB", "RB"), 299).lineups == 0
    assert standing(players, slots("QB", "RB"), 300).points == (10,)
    assert standing(players, slots("QB", "RB"), 300).place(11) == ranks.Place(0, 0, 1)


@pytest.mark.rule("S2")
def test_what_cannot_be_counted_is_refused_with_the_reason(
    roster: Sequence[Slot], monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(5)
    many = {"QB": 30, "RB": 90, "WR": 130, "TE": 60, "DST": 28}

    def pool(times: int, price: Callable[[], int]) -> list[Player]:
        return [
            Player(f"{p}{n}", (p,), price(), 10 * chance.randrange(300))
            for p, size in many.items()
            for n in range(size * times)
        ]

    monkeypatch.setattr(ranks, "TABLE_CELLS", 1_000_000)
    assert standing(pool(1, lambda: 1000 * chance.randrange(3, 6)), roster, 30_000).lineups
    with pytest.raises(NoRankError, match="coarser unit"):
        standing(pool(1, lambda: chance.randrange(2000, 9000)), roster, 50_000)
    with pytest.raises(NoRankError, match="tables count to 64 bits"):
        standing(pool(4, lambda: 3000), (*roster, *roster), 100_000)
    with pytest.raises(ValueError, match="twice"):
        standing([Player("a", ("QB",), 5, 1), Player("a", ("RB",), 5, 1)], roster, 100)
