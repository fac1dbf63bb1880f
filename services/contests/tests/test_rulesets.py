import csv
import gzip
import io

import pytest

from common.events import LineupRules
from common.points import hundredths
from contests import rulesets
from contests.domain import Ruleset

from .helpers import SLOTS, data


@pytest.mark.rule("C3")
def test_the_classic_ruleset_is_what_the_product_says() -> None:
    ruleset = rulesets.load("draftkings-classic-1")
    assert rulesets.names() == ("draftkings-classic-1", "fanduel-classic-1", "fanduel-classic-2", "half-ppr-1")
    assert ruleset.cap == 50_000
    assert tuple(slot.slot for slot in ruleset.roster) == SLOTS
    assert next(slot.positions for slot in ruleset.roster if slot.slot == "FLEX") == ("RB", "WR", "TE")


@pytest.mark.rule("C3", "S1")
@pytest.mark.parametrize("season", [2017, 2020])
def test_the_scoring_gives_the_points_that_the_data_was_published_with(season: int) -> None:
    scoring = rulesets.load().scoring
    scored = 0
    for row in csv.DictReader(io.StringIO(gzip.decompress(data(f"pool_{season}_dk.csv.gz")).decode(), newline="")):
        if not row["recomputed_dk_points"]:
            continue
        stats = {name: int(float(row[name])) for name in row if name in scoring.per_unit and row[name]}
        points = sum(scoring.per_unit[name] * amount for name, amount in stats.items())
        points += sum(bonus.points for bonus in scoring.bonuses if stats.get(bonus.statistic, 0) >= bonus.at_least)
        for statistic, bands in scoring.bands.items():
            if row[statistic]:
                allowed = int(float(row[statistic]))
                points += next(band.points for band in bands if band.up_to is None or allowed <= band.up_to)
        assert points == hundredths(row["recomputed_dk_points"]), row
        scored += 1
    assert scored > 4_000


@pytest.mark.rule("C3")
def test_a_ruleset_asks_nothing_of_teams_and_games_unless_it_says_so() -> None:
    assert rulesets.load().lineup_rules == rulesets.load("fanduel-classic-1").lineup_rules == LineupRules()
    first, second = (rulesets.load(f"fanduel-classic-{number}").model_dump() for number in (1, 2))
    assert second.pop("lineup_rules") == {"max_per_team": 4, "min_games": None}
    assert second == {name: first[name] for name in second} | {"ruleset": "fanduel-classic-2"}


def test_an_unknown_ruleset_is_refused_with_the_known_ones() -> None:
    with pytest.raises(rulesets.UnknownRuleset, match="draftkings-classic-1"):
        rulesets.load("../draftkings-classic-1")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"roster": []}, "a roster needs slots"),
        ({"roster": [{"slot": "QB", "positions": ["QB"]}] * 2}, "a name of its own"),
        ({"roster": [{"slot": "QB", "positions": []}]}, "positions that may fill it"),
        ({"cap": 0}, "greater than 0"),
        ({"lineup_rules": {"max_per_team": 0}}, "greater than or equal to 1"),
        ({"lineup_rules": {"min_games": 10}}, "more games than it has players"),
        ({"bands": {"x": [{"up_to": 3, "points": 1}]}}, "the last alone has no end"),
        (
            {"bands": {"x": [{"up_to": 3, "points": 1}, {"up_to": 3, "points": 2}, {"up_to": None, "points": 0}]}},
            "ascend",
        ),
        ({"projected_score": {"at_least": 2, "at_most": 1}}, "wrong way round"),
    ],
)
def test_a_ruleset_that_contradicts_itself_is_refused(change: dict[str, object], complaint: str) -> None:
    document = rulesets.load().model_dump(mode="json")
    if "bands" in change:
        document["scoring"]["bands"] = change["bands"]
    else:
        document |= change
    with pytest.raises(ValueError, match=complaint):
        Ruleset.model_validate(document)
