"""A week's result, worked out from its inputs alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from common import events as ev
from common.canonical import canonical_json, sha256_hex
from common.points import hundredths
from settlement.ranks import Standing
from settlement.results import Entry, ImpossibleLineupError, Outcome, Pick, pool_points, silent_games, work_out

from .real_pools import lines_worth


def entries_of(week: Any) -> list[Entry]:
    return [
        Entry(
            lineup.lineup_id,
            lineup.agent_id,
            lineup.model,
            lineup.marks,
            tuple(Pick(pick.slot, pick.player_id, pick.price) for pick in lineup.picks),
        )
        for lineup in week.lineups
    ]


def cents(contest: ev.ContestOpened) -> ev.ContestOpened:
    return contest.model_copy(update={"scoring": ev.Scoring(scoring="cents", per_unit={"rec": 1})})


@pytest.fixture(scope="module")
def week(play_week: Callable[..., Any]) -> Any:
    return play_week(6, entries=40)


@pytest.fixture(scope="module")
def outcome(week: Any) -> Outcome:
    return work_out(cents(week.opened), entries_of(week), lines_worth(week))


@pytest.mark.rule("S1", "S2")
def test_each_lineup_has_the_sum_of_its_picks_its_share_and_its_regret(week: Any, outcome: Outcome) -> None:
    assert len(outcome.results) == 40
    for result in outcome.results:
        assert result.points == sum(hundredths(week.worth[pick.player_id]) for pick in result.entry.picks)
        assert sum(result.picks) == result.points
        assert result.share == result.points * 10**6 // outcome.optimal.points
        assert result.regret == outcome.optimal.points - result.points >= 0


@pytest.mark.rule("S2")
def test_each_lineup_has_its_place_among_all_that_the_pool_allowed(week: Any, outcome: Outcome) -> None:
    assert (outcome.proven, outcome.counted, outcome.no_ranks) == (True, outcome.optimal.points, None)
    assert outcome.standing is not None
    for result in outcome.results:
        assert result.place == outcome.standing.place(result.points)
        assert result.place is not None
        assert (result.rank, result.tied) == (str(result.place.above + 1), str(result.place.level))
        assert result.percentile == 10**6 * result.place.below // outcome.standing.lineups
        assert (result.place.above == 0) == (result.points == outcome.optimal.points)
    by_points = sorted(outcome.results, key=lambda result: result.points)
    assert by_points == sorted(by_points, key=lambda result: -int(result.rank or 0))


@pytest.mark.rule("S2")
def test_a_count_whose_best_is_not_the_optimum_proves_nothing(week: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("settlement.results.standing", lambda *problem: Standing((100, 200), (1, 2)))
    outcome = work_out(cents(week.opened), [], lines_worth(week))
    assert outcome.certificate.agrees
    assert not outcome.proven


@pytest.mark.rule("S2")
def test_a_week_that_cannot_be_ranked_says_why_and_has_its_results_all_the_same(
    week: Any, outcome: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("settlement.ranks.TABLE_CELLS", 100)
    unranked = work_out(cents(week.opened), entries_of(week), lines_worth(week))
    assert unranked.standing is None
    assert unranked.no_ranks is not None
    assert "too much memory" in unranked.no_ranks
    assert {(one.rank, one.tied, one.percentile) for one in unranked.results} == {(None, None, None)}
    assert (unranked.proven, unranked.digest) == (True, outcome.digest)


@pytest.mark.rule("S3")
def test_a_player_without_a_statistics_line_scores_zero(week: Any) -> None:
    contest = cents(week.opened)
    assert set(pool_points(contest, {}).values()) == {0}
    some = week.opened.players[0].player_id
    points = pool_points(contest, {some: {"rec": 7}, "someone else": {"rec": 9}})
    assert points[some] == 7
    assert sum(points.values()) == 7
    assert list(points) == sorted(player.player_id for player in week.opened.players)


@pytest.mark.rule("S3")
def test_a_lineup_gets_nothing_for_a_player_who_did_not_play(week: Any, outcome: Outcome) -> None:
    lines = lines_worth(week)
    absent = next(pick.player_id for pick in week.lineups[0].picks if lines.get(pick.player_id))
    without = work_out(
        cents(week.opened), entries_of(week), {one: line for one, line in lines.items() if one != absent}
    )
    for before, after in zip(outcome.results, without.results, strict=True):
        picks = [pick.player_id for pick in after.entry.picks]
        gone = hundredths(week.worth[absent]) if absent in picks else 0
        assert after.points == sum(after.picks) == before.points - gone
        assert all(worth == 0 for player, worth in zip(picks, after.picks, strict=True) if player == absent)
    assert without.results[0].points != outcome.results[0].points
    assert without.players[absent] == 0


@pytest.mark.rule("S5")
def test_the_digest_is_that_of_the_stated_document(week: Any, outcome: Outcome) -> None:
    lineups = [
        {
            "model": result.entry.model,
            "marks": {"house": result.entry.marks.house, "cohort": False, "reference": False},
            "points": result.points,
            "share": result.share,
            "regret": result.regret,
            "picks": [
                {"slot": pick.slot, "player_id": pick.player_id, "price": pick.price, "points": points}
                for pick, points in sorted(
                    zip(result.entry.picks, result.picks, strict=True), key=lambda pair: pair[0].slot
                )
            ],
        }
        for result in outcome.results
    ]
    document = {
        "contest": "2017-W06",
        "scoring": "cents",
        "optimal": {
            "points": outcome.optimal.points,
            "price": outcome.optimal.price,
            "players": list(outcome.optimal.players),
        },
        "players": [
            {"player_id": player_id, "points": hundredths(week.worth[player_id])} for player_id in sorted(week.worth)
        ],
        "lineups": sorted(lineups, key=canonical_json),
    }
    assert outcome.digest == sha256_hex(canonical_json(document))


@pytest.mark.rule("S5")
def test_the_digest_does_not_depend_on_ids_or_on_any_order(week: Any, outcome: Outcome) -> None:
    chance = random.Random(1)
    entries = [Entry(uuid4(), uuid4(), entry.model, entry.marks, entry.picks) for entry in entries_of(week)]
    chance.shuffle(entries)
    players = list(week.opened.players)
    chance.shuffle(players)
    contest = cents(week.opened).model_copy(update={"players": tuple(players)})
    again = work_out(contest, entries, lines_worth(week))
    assert again.digest == outcome.digest
    assert again.optimal == outcome.optimal


@pytest.mark.rule("S5")
def test_a_correction_of_any_player_of_the_pool_changes_the_digest(week: Any, outcome: Outcome) -> None:
    lines = lines_worth(week)
    nobody = next(p.player_id for p in week.opened.players if p.player_id not in lines)
    assert work_out(cents(week.opened), entries_of(week), {**lines, nobody: {"rec": 1}}).digest != outcome.digest
    assert work_out(cents(week.opened), entries_of(week), {**lines, nobody: {"rec": 0}}).digest == outcome.digest


@pytest.mark.rule("S2")
def test_a_contest_without_lineups_still_has_its_optimum(week: Any, outcome: Outcome) -> None:
    empty = work_out(cents(week.opened), [], lines_worth(week))
    assert (empty.optimal, empty.results) == (outcome.optimal, ())


@pytest.mark.rule("S1")
def test_a_lineup_that_the_contest_cannot_have_accepted_stops_the_settlement(week: Any) -> None:
    entry = entries_of(week)[0]
    stranger = Entry(entry.lineup_id, entry.agent_id, entry.model, entry.marks, (Pick("QB", "nobody", 5000),))
    with pytest.raises(ImpossibleLineupError, match="'nobody', who is not in the pool"):
        work_out(cents(week.opened), [stranger], {})
    best = max(week.worth, key=lambda player_id: hundredths(week.worth[player_id]))
    nine = tuple(Pick(slot.slot, best, 5000) for slot in week.opened.roster)
    with pytest.raises(ImpossibleLineupError, match="more than the best"):
        work_out(
            cents(week.opened),
            [Entry(entry.lineup_id, entry.agent_id, entry.model, entry.marks, nine)],
            lines_worth(week),
        )


@pytest.mark.rule("S3")
@pytest.mark.parametrize("status", ["moved", "cancelled"])
def test_the_players_of_a_game_that_left_before_the_lock_score_zero_though_they_played(week: Any, status: str) -> None:
    """The whole game scores nothing for anybody, wherever it was played; all else is as it was."""
    lines, everything = lines_worth(week), cents(week.opened)
    before = work_out(everything, entries_of(week), lines)
    best = set(before.optimal.players)
    in_game = {game.game_id: set[str]() for game in week.opened.games}
    for player in week.opened.players:
        in_game[player.game_id].add(player.player_id)
    left = next(game for game, players in in_game.items() if not players & best and players & set(lines))
    games = tuple(
        game.model_copy(update={"status": status}) if game.game_id == left else game for game in week.opened.games
    )
    contest = everything.model_copy(update={"games": games})
    after = work_out(contest, entries_of(week), lines)
    assert {after.players[player] for player in in_game[left]} == {0}
    assert after.players == before.players | dict.fromkeys(in_game[left], 0)
    assert after.optimal == before.optimal
    assert after.certificate.agrees
    for was, now in zip(before.results, after.results, strict=True):
        gone = [pick.player_id in in_game[left] for pick in now.entry.picks]
        assert now.picks == tuple(0 if out else points for out, points in zip(gone, was.picks, strict=True))
        assert now.points == sum(now.picks)
    assert any(was.points != now.points for was, now in zip(before.results, after.results, strict=True))
    # Nobody waits for statistics of what was not to be played.
    silent = {player: line for player, line in lines.items() if player not in in_game[left]}
    assert silent_games(contest, silent) == ()
    assert [game.game_id for game in silent_games(everything, silent)] == [left]


@pytest.mark.rule("C6", "S1", "S2")
def test_a_lineup_taken_by_an_earlier_pool_stands_as_it_is_and_who_is_gone_scores_zero(
    week: Any, outcome: Outcome
) -> None:
    gone = next(pick.player_id for pick in week.lineups[0].picks if hundredths(week.worth[pick.player_id]) > 0)
    left = tuple(player for player in week.opened.players if player.player_id != gone)
    contest = cents(week.opened).model_copy(update={"players": left})
    with pytest.raises(ImpossibleLineupError, match="not in the pool"):
        work_out(contest, entries_of(week), lines_worth(week))
    after = work_out(contest.model_copy(update={"pool": 2}), entries_of(week), lines_worth(week))
    assert gone not in after.players
    for before, now in zip(outcome.results, after.results, strict=True):
        lost = hundredths(week.worth[gone]) if any(pick.player_id == gone for pick in now.entry.picks) else 0
        assert (now.points, now.entry.picks) == (before.points - lost, before.entry.picks)


@pytest.mark.rule("C6", "S2")
def test_a_lineup_of_an_earlier_pool_that_beats_the_last_ones_optimum_has_the_whole_share(
    week: Any, outcome: Outcome
) -> None:
    perfect = perfect_entry(week, outcome)
    dearer = tuple(
        player.model_copy(update={"price": player.price * 2}) if player.player_id in outcome.optimal.players else player
        for player in week.opened.players
    )
    contest = cents(week.opened).model_copy(update={"players": dearer})
    with pytest.raises(ImpossibleLineupError, match="more than the best"):
        work_out(contest, same_prices(perfect, dearer), lines_worth(week))
    later = work_out(contest.model_copy(update={"pool": 2}), [perfect], lines_worth(week))
    (result,) = later.results
    assert result.points == outcome.optimal.points > later.optimal.points
    assert (result.share, result.regret) == (10**6, 0)
    # It is none of the lineups that the last pool allows, so it has no place among them.
    assert (result.place, result.rank, result.percentile) == (None, None, None)
    # Nor is one at the last pool's own prices that its cap does not allow.
    (result,) = work_out(
        contest.model_copy(update={"pool": 2}), same_prices(perfect, dearer), lines_worth(week)
    ).results
    assert (result.share, result.regret, result.rank) == (10**6, 0, None)


@pytest.mark.rule("S1", "S2")
@pytest.mark.parametrize("other", ["a lower cap", "another roster", "other positions"])
def test_a_lineup_of_a_pool_with_other_rules_is_settled_and_has_no_place_in_the_last_one(
    week: Any, outcome: Outcome, other: str
) -> None:
    """A list imported anew may come with another ruleset; what was accepted before stays, and no week stands still."""
    perfect = perfect_entry(week, outcome)
    back = next(pick.player_id for pick in perfect.picks if pick.slot == "RB1")
    changes: dict[str, dict[str, Any]] = {
        "a lower cap": {"cap": outcome.optimal.price - 100},
        "another roster": {
            "roster": (
                *(slot for slot in week.opened.roster if slot.slot != "FLEX"),
                ev.Slot(slot="WR4", positions=("WR",)),
            )
        },
        "other positions": {
            "players": tuple(
                player.model_copy(update={"positions": ("QB",)}) if player.player_id == back else player
                for player in week.opened.players
            )
        },
    }
    contest = cents(week.opened).model_copy(update={"pool": 2, **changes[other]})
    (result,) = work_out(contest, [perfect], lines_worth(week)).results
    assert result.points == outcome.optimal.points
    assert (result.place, result.rank, result.percentile) == (None, None, None)


def perfect_entry(week: Any, outcome: Outcome) -> Entry:
    """The optimal lineup as somebody entered it."""
    best = [player for player in week.opened.players if player.player_id in outcome.optimal.players]
    picks = []
    for slot in week.opened.roster:
        player = next(player for player in best if set(slot.positions) & set(player.positions))
        best.remove(player)
        picks.append(Pick(slot.slot, player.player_id, player.price))
    (first, *_) = entries_of(week)
    return Entry(first.lineup_id, first.agent_id, first.model, first.marks, tuple(picks))


def same_prices(entry: Entry, players: tuple[ev.PoolPlayer, ...]) -> list[Entry]:
    """The entry as if it had been taken at these prices, above any cap."""
    prices = {player.player_id: player.price for player in players}
    picks = tuple(Pick(pick.slot, pick.player_id, prices[pick.player_id]) for pick in entry.picks)
    return [Entry(entry.lineup_id, entry.agent_id, entry.model, entry.marks, picks)]


@pytest.mark.rule("S1", "S3")
def test_a_player_with_rows_of_two_teams_in_a_week_is_scored_by_that_of_the_team_his_pool_has_him_in(
    play_week: Callable[..., Any],
) -> None:
    opened = play_week(4).opened
    bell = next(player for player in opened.players if player.player_name == "Le'Veon Bell")
    elsewhere = {f"{bell.player_id}/KC": {"rush_yds": 150}}
    here = {f"{bell.player_id}/PIT": {"rush_yds": 50}}
    assert pool_points(opened, {**elsewhere, **here})[bell.player_id] == 500
    assert pool_points(opened, elsewhere)[bell.player_id] == 0


@pytest.mark.rule("S1", "S2")
def test_a_player_at_two_positions_scores_once_and_a_week_below_zero_has_its_optimum(
    play_week: Callable[..., Any],
) -> None:
    week = play_week(4, entries=2)
    players = tuple(
        player.model_copy(update={"positions": ("RB", "WR")}) if "RB" in player.positions else player
        for player in week.opened.players
    )
    opened = week.opened.model_copy(update={"players": players})
    lines = {player.player_id: {"pass_int": 1} for player in players}
    outcome = work_out(opened, entries_of(week), lines)
    assert outcome.certificate.agrees
    assert (outcome.optimal.points, len(set(outcome.optimal.players))) == (-900, 9)
    assert [(result.points, result.share, result.regret) for result in outcome.results] == [(-900, 1_000_000, 0)] * 2
