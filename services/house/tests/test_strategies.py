"""The house's strategies on any pool: always legal, always the same, and true in what they write."""

from __future__ import annotations

import itertools
import random
import re
import subprocess
import sys
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from house.numbers import Dice, Week, is_good
from house.solver import Market, NoLegalLineup, Player, Slot, cheapest_lineup, seat
from house.strategies import Entry, Strategy, Style, play

CLASSIC = tuple(
    Slot(name, frozenset(positions.split("/")))
    for name, positions in (
        ("QB", "QB"),
        ("RB1", "RB"),
        ("RB2", "RB"),
        ("WR1", "WR"),
        ("WR2", "WR"),
        ("WR3", "WR"),
        ("TE", "TE"),
        ("FLEX", "RB/WR/TE"),
        ("DST", "DST"),
    )
)
STYLES = [Style(strategy, hunch=hunch, temper="demo/test") for strategy in Strategy for hunch in (0, 20)]

POSITIONS = ("QB", "RB", "WR", "TE", "DST", "RB/WR", "TE/WR")
TEAMS = ("PIT", "CLE", "HOU", "SEA")


@st.composite
def players(draw: st.DrawFn, *, most: int = 40) -> list[Player]:
    """A pool with prices of any grid and some players of two positions."""
    rows = draw(
        st.lists(
            st.tuples(st.sampled_from(POSITIONS), st.integers(1, 9_999), st.sampled_from(TEAMS)),
            min_size=1,
            max_size=most,
        )
    )
    return [
        Player(f"p{number:03}", f"Pat Player{number} Jr.", frozenset(position.split("/")), team, "BUF", price)
        for number, (position, price, team) in enumerate(rows)
    ]


@st.composite
def rosters(draw: st.DrawFn) -> tuple[Slot, ...]:
    """The usual roster, or any of one to six slots that each take any positions."""
    if draw(st.booleans()):
        return CLASSIC
    singles = ("QB", "RB", "WR", "TE", "DST")
    taken = draw(st.lists(st.sets(st.sampled_from(singles), min_size=1, max_size=3), min_size=1, max_size=6))
    return tuple(Slot(f"S{number}", frozenset(positions)) for number, positions in enumerate(taken))


@st.composite
def weeks(draw: st.DrawFn) -> Week:
    """A week that may or may not have a lineup, often with a cap that only just allows one."""
    slots, pool = draw(rosters()), draw(players())
    cheapest = Market(slots, pool).cheapest()
    slack = draw(st.sampled_from((0, 1, 50, 500, 5_000, 50_000)))
    cap = cheapest[0] + slack if cheapest else 50_000
    past = {
        player.player_id: tuple(draw(st.lists(st.integers(-400, 6_000), max_size=5)))
        for player in pool
        if draw(st.booleans())
    }
    return Week("2031-W04", cap, slots, tuple(pool), past)


def legal(week: Week, entry: Entry) -> bool:
    taken = {pick.slot: pick.player for pick in entry.picks}
    return (
        [pick.slot for pick in entry.picks] == [slot.name for slot in week.slots]
        and len({player.player_id for player in taken.values()}) == len(week.slots)
        and all(taken[slot.name].positions & slot.positions for slot in week.slots)
        and all(player in week.players for player in taken.values())
        and sum(player.price for player in taken.values()) <= week.cap
    )


@pytest.mark.rule("C3")
@pytest.mark.parametrize("style", STYLES, ids=lambda style: f"{style.strategy}-{style.hunch}")
@given(week=weeks())
@settings(max_examples=40, deadline=None)
def test_every_strategy_enters_a_legal_lineup_wherever_one_exists(style: Style, week: Week) -> None:
    cheapest = Market(week.slots, week.players).cheapest()
    if cheapest is None:
        with pytest.raises(NoLegalLineup, match="cannot fill the roster"):
            play("someone", style, week)
    else:
        assert legal(week, play("someone", style, week))


@pytest.mark.rule("C3")
@pytest.mark.parametrize("strategy", Strategy)
@given(week=weeks())
@settings(max_examples=15, deadline=None)
def test_a_cap_below_the_cheapest_lineup_is_said_with_both_figures(strategy: Strategy, week: Week) -> None:
    cheapest = Market(week.slots, week.players).cheapest()
    if cheapest is None or cheapest[0] <= 1:
        return
    tight = Week(week.contest, cheapest[0] - 1, week.slots, week.players, week.past)
    with pytest.raises(NoLegalLineup, match=f"cheapest lineup costs {cheapest[0]:,} and the cap is {tight.cap:,}"):
        play("someone", Style(strategy), tight)


@pytest.mark.parametrize("style", STYLES, ids=lambda style: f"{style.strategy}-{style.hunch}")
@given(week=weeks(), chance=st.randoms(use_true_random=False))
@settings(max_examples=15, deadline=None)
def test_the_order_of_the_pool_changes_nothing(style: Style, week: Week, chance: random.Random) -> None:
    shuffled = list(week.players)
    chance.shuffle(shuffled)
    other = Week(week.contest, week.cap, week.slots, tuple(shuffled), week.past)
    if Market(week.slots, week.players).cheapest() is None:
        with pytest.raises(NoLegalLineup):
            play("someone", style, other)
    else:
        assert play("someone", style, other) == play("someone", style, week)


@pytest.mark.rule("C4")
@pytest.mark.parametrize("strategy", Strategy)
@given(week=weeks())
@settings(max_examples=25, deadline=None)
def test_every_pick_has_words_and_a_probability(strategy: Strategy, week: Week) -> None:
    if Market(week.slots, week.players).cheapest() is None:
        return
    entry = play("someone", Style(strategy), week)
    assert entry.thesis
    assert entry.projected >= 0
    assert 0 <= entry.confidence <= 1
    for pick in entry.picks:
        assert 0 <= pick.confidence <= 1
        assert pick.main_factor
        assert len(pick.rationale) > 20
        assert "None" not in pick.rationale
        assert len(pick.rationale) < 500


@given(week=weeks(), seed=st.integers(0, 9))
@settings(max_examples=40, deadline=None)
def test_the_best_lineup_is_the_best_of_all_that_exist(week: Week, seed: int) -> None:
    """Against every lineup of a small pool, counted out."""
    small = Week(week.contest, week.cap, week.slots[:4], week.players[:10], week.past)
    worth = {player.player_id: Dice(str(seed), player.player_id).below(2_000) - 200 for player in small.players}
    totals = [
        sum(worth[player.player_id] for player in lineup)
        for lineup in itertools.permutations(small.players, len(small.slots))
        if all(player.positions & slot.positions for player, slot in zip(lineup, small.slots, strict=True))
        and sum(player.price for player in lineup) <= small.cap
    ]
    market = Market(small.slots, small.players)
    if not totals:
        with pytest.raises(NoLegalLineup):
            market.best(small.cap, lambda player: worth[player.player_id])
        return
    best = market.best(small.cap, lambda player: worth[player.player_id])
    assert sum(worth[player.player_id] for player in best) == max(totals)
    assert set(seat(small.slots, best).values()) == set(best)


@given(week=weeks())
@settings(max_examples=40, deadline=None)
def test_the_cheapest_lineup_is_the_cheapest_of_all_that_exist(week: Week) -> None:
    slots, pool = week.slots[:4], week.players[:10]
    totals = [
        sum(player.price for player in lineup)
        for lineup in itertools.permutations(pool, len(slots))
        if all(player.positions & slot.positions for player, slot in zip(lineup, slots, strict=True))
    ]
    found = Market(slots, pool).cheapest()
    assert (found[0] if found else None) == min(totals, default=None)


@pytest.mark.rule("C4")
@pytest.mark.parametrize("style", STYLES, ids=lambda style: f"{style.strategy}-{style.hunch}")
def test_every_figure_in_a_rationale_is_the_players_own(style: Style) -> None:
    """The sentences are read again and each figure compared with the pool and the results."""
    week = pool_of(120)
    checked = 0
    for agent in ("a", "b", "c", "d"):
        for pick in play(agent, style, week).picks:
            player, text = pick.player, pick.rationale
            past = week.past.get(player.player_id, ())
            recent = past[-style.window :]
            average = sum(recent) // len(recent) if recent else week.base_points(player)
            share, value = f"{100 * player.price / week.cap:.1f}", f"{10 * average / player.price:.2f}"
            said: dict[str, str] = {
                r"takes ([\d.]+)% of the cap|costs ([\d.]+)% of the cap|is ([\d.]+)% of the cap": share,
                r"price of ([\d,]+) takes": f"{player.price:,}",
                r"averaged (-?[\d.]+) over|[Tt]railing average (-?[\d.]+) from": f"{average / 100:.1f}",
                r"(-?[\d.]+) per 1,000 on the trailing average|recent form: (-?[\d.]+) per": value,
                r"of this price in (\d+ of \d+ listings?)": f"{sum(is_good(one, player.price) for one in past)} of "
                f"{len(past)} listing{'' if len(past) == 1 else 's'}",
                r"(?:opponent is|against|plays) ([A-Z]+)[.;]": player.opponent,
                r"oldest first: (.*?)\.(?: |$)": ", ".join(f"{one / 100:.1f}" for one in recent),
                r"so price and position stand in: (-?[\d.]+) expected": f"{average / 100:.1f}",
            }
            for pattern, true in said.items():
                for found in re.finditer(pattern, text):
                    assert next(filter(None, found.groups())) == true, (pattern, text)
                    checked += 1
    assert checked > 60


def test_two_agents_of_chance_differ_and_one_agent_repeats_itself() -> None:
    week = pool_of(60)
    one, again, other = (play(name, Style(Strategy.RANDOM), week) for name in ("one", "one", "other"))
    assert one == again
    assert {pick.player for pick in one.picks} != {pick.player for pick in other.picks}
    later = Week("2031-W05", week.cap, week.slots, week.players, week.past)
    assert {pick.player for pick in play("one", Style(Strategy.RANDOM), later).picks} != {p.player for p in one.picks}


def test_chance_is_the_same_in_every_process() -> None:
    """Python's own hashes differ between processes: nothing may hang on them."""
    program = "from house.numbers import Dice; d = Dice('a', 'b'); print([d.below(1000) for _ in range(5)])"
    runs = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, check=True, capture_output=True, text=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(runs) == 1


def test_two_simulated_models_read_one_pool_differently() -> None:
    week = pool_of(200)
    entries = [play("same", Style(Strategy.TRAILING, hunch=20, temper=temper), week) for temper in ("a", "b")]
    assert {pick.player for pick in entries[0].picks} != {pick.player for pick in entries[1].picks}


@pytest.mark.rule("C4")
def test_a_picks_confidence_follows_how_often_the_player_was_worth_his_price() -> None:
    week = pool_of(60)
    player = next(player for player in week.players if player.positions == {"RB"})
    good = -(-3 * player.price // 10)
    assert is_good(good, player.price)
    assert not is_good(good - 1, player.price)

    def confidence(past: Sequence[int]) -> float:
        known = {**week.past, player.player_id: tuple(past)}
        return Week(week.contest, week.cap, week.slots, week.players, known).chance_of_worth(player)

    never, sometimes, always = confidence([0] * 8), confidence([0, good] * 4), confidence([good] * 8)
    assert never < sometimes < always
    assert confidence([good]) < always, "one good week is weaker evidence than eight"


@pytest.mark.rule("C4")
def test_a_projection_above_what_is_expected_is_held_less_likely() -> None:
    week = pool_of(60)
    lineup = tuple(cheapest_lineup(week.slots, week.players, week.cap))
    chances = [week.chance_of_projection(lineup, projected) for projected in (0, 5_000, 10_000, 30_000)]
    assert chances == sorted(chances, reverse=True)
    assert chances[0] > 0.5 > chances[-1]


def pool_of(size: int) -> Week:
    """A pool of ``size`` for the usual roster, with three results of everybody but every fifth player."""
    dice = Dice("pool")
    pool = tuple(
        Player(
            f"p{number:03}",
            f"Pat Player{number}",
            frozenset({("QB", "RB", "WR", "TE", "DST")[number % 5]}),
            TEAMS[number % 4],
            "BUF",
            2_500 + 100 * dice.below(60),
        )
        for number in range(size)
    )
    past = {
        player.player_id: tuple(dice.below(player.price // 2) for _ in range(3))
        for number, player in enumerate(pool)
        if number % 7
    }
    return Week("2031-W04", 50_000, CLASSIC, pool, past)
