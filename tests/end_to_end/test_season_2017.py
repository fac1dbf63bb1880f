"""The season of 2017 as the services would settle it, without starting them.

Each week's pool is the one that contests makes of the salary file, and each player is scored from the season's
statistics file by settlement. The optima are the golden numbers of the project: whoever changes one by a change
of the pool, of the scoring or of the solver has to say so here.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from common import events as ev
from common.points import as_points, hundredths
from contests import imports, rulesets
from contests.domain import Ruleset
from settlement.imports import Week, read_statistics
from settlement.results import pool_points, work_out

DATA = Path(__file__).parents[2] / "data"
GOLDEN: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("optima_2017.json").read_text())
"""Contest to ``{points, price, players}``: points in hundredths, players sorted by id."""

WEEKS = range(1, 18)


@pytest.fixture(scope="module")
def pools() -> Mapping[int, ev.ContestOpened]:
    """The contests of the season as contests opens them, by week."""
    rules = rulesets.load()
    found = imports.read((DATA / "pool_2017_dk.csv.gz").read_bytes())
    return {week.week: opened(week, rules) for week in found.weeks}


def opened(week: imports.Week, rules: Ruleset) -> ev.ContestOpened:
    assert week.locks_at is not None
    return ev.ContestOpened(
        contest=week.contest,
        season=week.season,
        week=week.week,
        opened_at=week.locks_at - timedelta(days=3),
        locks_at=week.locks_at,
        cap=rules.cap,
        roster=rules.roster,
        ruleset=rules.ruleset,
        scoring=rules.scoring,
        price_source="draftkings",
        games=week.games,
        players=week.players,
    )


@pytest.fixture(scope="module")
def lines() -> Mapping[int, Mapping[str, Mapping[str, int]]]:
    """The statistics of the season as settlement reads them, by week and player."""
    found = read_statistics((DATA / "weekly_stats_2017.csv.gz").read_bytes(), season=2017)
    return {week: found.lines[Week(2017, week)] for week in WEEKS}


@pytest.fixture(scope="module")
def rows() -> Mapping[tuple[int, str], Mapping[str, str]]:
    """The rows of the salary file by week and player."""
    with gzip.open(DATA / "pool_2017_dk.csv.gz", "rt", encoding="utf-8") as file:
        return {
            (int(row["week"]), row["player_id"] or row["source_player_id"]): row
            for row in csv.DictReader(file)
            if row["weekday"] in ("Sunday", "Monday")
        }


@pytest.mark.rule("S2")
@pytest.mark.parametrize("week", WEEKS)
def test_the_optimum_of_each_week_is_proven_twice_and_is_the_pinned_one(
    pools: Mapping[int, ev.ContestOpened], lines: Mapping[int, Mapping[str, Mapping[str, int]]], week: int
) -> None:
    contest = pools[week]
    outcome = work_out(contest, [], lines[week])
    best, proof = outcome.optimal, outcome.certificate
    assert (proof.agrees, proof.status, proof.points) == (True, "OPTIMAL", best.points)
    found = {"points": best.points, "price": best.price, "players": list(best.players)}
    assert found == GOLDEN[contest.contest]
    # What is pinned is a lineup of that pool: its price and points add up without the solver.
    price = {player.player_id: player.price for player in contest.players}
    points = outcome.players
    assert sum(price[player] for player in best.players) == best.price <= contest.cap
    assert sum(points[player] for player in best.players) == best.points
    assert len(set(best.players)) == len(contest.roster)


def test_the_pinned_weeks_are_those_of_the_season() -> None:
    assert list(GOLDEN) == [f"2017-W{week:02d}" for week in WEEKS]


@pytest.mark.rule("S3")
def test_whoever_of_the_pools_has_no_line_did_not_play_and_scores_zero(
    pools: Mapping[int, ev.ContestOpened], lines: Mapping[int, Mapping[str, Mapping[str, int]]]
) -> None:
    absent = 0
    for week, contest in pools.items():
        points = pool_points(contest, lines[week])
        without = {player.player_id for player in contest.players} - set(lines[week])
        assert {points[player] for player in without} == {0}
        absent += len(without)
    assert absent == 1_183


@pytest.mark.rule("S1")
def test_the_players_of_every_pool_score_what_their_rows_say(
    pools: Mapping[int, ev.ContestOpened],
    lines: Mapping[int, Mapping[str, Mapping[str, int]]],
    rows: Mapping[tuple[int, str], Mapping[str, str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    against_source: Counter[bool] = Counter()
    for week, contest in pools.items():
        for player, points in pool_points(contest, lines[week]).items():
            row = rows[week, player]
            assert points == hundredths(row["recomputed_dk_points"] or "0"), (week, row["name"], as_points(points))
            if row["position"] != "DST" and row["stat_status"] == "matched" and row["source_dk_points"]:
                against_source[points == hundredths(row["source_dk_points"])] += 1
    agree, of = against_source[True], against_source.total()
    with capsys.disabled():
        print(
            f"\n2017 offence in the pools against the source of the prices: {agree} of {of}, {100 * agree / of:.2f} %"
        )
    assert (agree, of) == (4_501, 4_546)
