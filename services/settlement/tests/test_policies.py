"""Games that are not played as planned: each policy, and what a week is worth under it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Literal

import pytest

from common.events import ContestOpened, Game, Policies
from settlement.policies import counts, is_open, rule_of
from settlement.results import pool_points, silent_games, work_out

Play = Callable[..., Any]
LATER = datetime(2023, 1, 4, 1, 15, tzinfo=UTC)
USUAL = Policies()
OTHER = Policies(postponed="counted", abandoned="counted", suspended="zero", resumed_late="counted")


def became(
    what: Literal["cancelled", "postponed", "abandoned", "suspended"] | None,
    resumed_at: datetime | None = None,
    in_week: bool | None = None,
    status: Literal["scheduled", "moved", "cancelled"] = "scheduled",
) -> Game:
    return Game(
        game_id="2022_17_BUF_CIN",
        away="BUF",
        home="CIN",
        kickoff=datetime(2023, 1, 3, 1, 30, tzinfo=UTC),
        status=status,
        became=what,
        resumed_at=resumed_at,
        in_week=in_week,
    )


@pytest.mark.rule("S3")
@pytest.mark.parametrize(
    ("game", "rule", "by_the_usual", "by_the_other"),
    [
        (became(None), None, True, True),
        (became("cancelled"), "cancelled", False, False),
        (became(None, status="cancelled"), "cancelled", False, False),
        (became("postponed"), "postponed", False, True),
        (became(None, status="moved"), "postponed", False, True),
        (became("abandoned"), "abandoned", False, True),
        (became("suspended", LATER, True), "suspended", True, False),
        (became("suspended", LATER, False), "resumed_late", False, True),
        (became("suspended"), "suspended", True, False),
        (became("abandoned", status="moved"), "postponed", False, True),
    ],
    ids=["played", "cancelled", "cancelled before", "postponed", "moved before", "abandoned", "resumed", "resumed late",
         "suspended", "moved before, then abandoned"],
)  # fmt: skip
def test_each_game_falls_under_one_policy_and_counts_by_it(
    game: Game, rule: str | None, by_the_usual: bool, by_the_other: bool
) -> None:
    assert rule_of(game) == rule
    assert (counts(game, USUAL), counts(game, OTHER)) == (by_the_usual, by_the_other)


@pytest.mark.rule("S3")
def test_a_suspended_game_is_open_until_it_has_gone_on_unless_nothing_of_it_can_count() -> None:
    nothing = Policies(suspended="zero", resumed_late="zero")
    assert is_open(became("suspended"), USUAL)
    assert is_open(became("suspended"), OTHER)
    assert not is_open(became("suspended"), nothing)
    assert not is_open(became("suspended", LATER, True), USUAL)
    assert not is_open(became("abandoned"), USUAL)


def week_with(play_week: Play, game_id: str, policies: Policies, **changes: Any) -> ContestOpened:
    opened: ContestOpened = play_week(4).opened
    games = tuple(game.model_copy(update=changes) if game.game_id == game_id else game for game in opened.games)
    return opened.model_copy(update={"games": games, "policies": policies})


@pytest.mark.rule("S2", "S3")
@pytest.mark.parametrize(("policies", "worth"), [(USUAL, False), (OTHER, True)], ids=["usual", "counted"])
def test_of_an_abandoned_game_what_was_counted_until_then_is_worth_what_the_policy_says(
    play_week: Play, policies: Policies, worth: bool
) -> None:
    """As Buffalo at Cincinnati in 2022: begun, a score on the board, never finished."""
    opened = play_week(4).opened
    game_id = next(player.game_id for player in opened.players if player.team == "PIT")
    of_game = {player.player_id for player in opened.players if player.game_id == game_id}
    lines = {player.player_id: {"rush_yds": 50, "rec": 1} for player in opened.players}
    contest = week_with(play_week, game_id, policies, became="abandoned")
    points = pool_points(contest, lines)
    assert {one for one, earned in points.items() if not earned} == (set() if worth else of_game)
    assert silent_games(contest, lines) == ()
    outcome = work_out(contest, [], lines)
    assert outcome.certificate.agrees
    assert outcome.optimal.points == 9 * 600


@pytest.mark.rule("S3")
def test_a_week_waits_for_a_suspended_game_and_for_no_game_that_is_worth_nothing(play_week: Play) -> None:
    opened = play_week(4).opened
    game_id = next(player.game_id for player in opened.players if player.team == "PIT")
    of_game = {player.player_id for player in opened.players if player.game_id == game_id}
    everybody = {player.player_id: {"rec": 1} for player in opened.players}
    without = {one: line for one, line in everybody.items() if one not in of_game}

    def waits(lines: dict[str, dict[str, int]], policies: Policies = USUAL, **changes: Any) -> bool:
        silent = silent_games(week_with(play_week, game_id, policies, **changes), lines)
        assert {game.game_id for game in silent} <= {game_id}
        return bool(silent)

    assert waits(without)
    assert not waits(without, became="cancelled")
    assert not waits(without, became="postponed")
    assert waits(without, OTHER, became="postponed")
    assert not waits(without, became="abandoned")
    assert waits(without, OTHER, became="abandoned")
    assert waits(everybody, became="suspended")
    assert not waits(everybody, became="suspended", resumed_at=LATER, in_week=True)
    assert not waits(without, became="suspended", resumed_at=LATER, in_week=False)
