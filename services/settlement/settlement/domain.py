"""What a performance is worth: statistics to points, points to share and regret. No I/O.

Points are integers in hundredths, so that nothing is ever rounded. A statistic that is not known is
absent from a line; it is not zero.

    SettlementError (ValueError)
    ├── InputError          a tool is asked for something that cannot be
    ├── BadCell             a cell of a file cannot be read
    │   └── BadStatistic    it is no whole number that a statistic can be
    └── BadScoring          a scoring version that contradicts itself
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from common.events import Band, Scoring

STATISTICS: tuple[str, ...] = (
    "pass_att", "pass_cmp", "pass_yds", "pass_td", "pass_int", "pass_2pt",
    "rush_att", "rush_yds", "rush_td", "rush_2pt",
    "targets", "rec", "rec_yds", "rec_td", "rec_2pt",
    "fum_lost", "ret_td", "off_fum_rec_td",
    "dst_sacks", "dst_int", "dst_fum_rec", "dst_td", "dst_safety", "dst_blk", "dst_2pt_ret",
    "dst_points_against", "dst_points_allowed",
    "fg_made_0_19", "fg_made_20_29", "fg_made_30_39", "fg_made_40_49", "fg_made_50_59", "fg_made_60_",
    "fg_missed", "fg_blocked", "pat_made", "pat_missed", "pat_blocked",
)  # fmt: skip
"""The statistics that MAFL stores, by the column names of its data."""

_PLAYS = frozenset({"pass_att", "pass_cmp", "rush_att", "targets", "rec", "dst_points_against", "dst_points_allowed"})

SHARE_UNIT = 1_000_000
"""Shares are counted in millionths."""

_WHOLE = re.compile(r"([+-]?[0-9]{1,9})(?:\.0*)?", re.ASCII)


class SettlementError(ValueError):
    """Base of what can be wrong with the data that settlement is given."""


class InputError(SettlementError):
    """A tool is asked for something that cannot be. The message says what is wrong and what would be right."""


class BadCell(SettlementError):
    """A cell of a file cannot be read. The message says what is wrong and what would be right, not where."""


class BadStatistic(BadCell):
    """A statistic is not a whole number, or one that no player ever had in a week."""

    def __init__(self, value: str, name: str) -> None:
        least, most = limits(name)
        super().__init__(
            f"{value[:40]!r} is not a statistic; "
            f"it must be a whole number from {least} to {most:,}, or blank where it is not known"
        )


class BadScoring(SettlementError):
    """A scoring version's bands do not cover every value in ascending order."""


def limits(name: str) -> tuple[int, int]:
    """The least and the most that a statistic of one player in one week may be: far beyond what ever was.

    Yards alone can be lost. What is outside is another column, another file or a damaged one.
    """
    if name.endswith("_yds"):
        return -200, 1_000
    return 0, 200 if name in _PLAYS else 30


def statistic(text: str, name: str) -> int | None:
    """Read one cell of a statistic: a whole number (``12``, ``-3``, ``12.0``), or ``None`` where it is blank.

    Raises ``BadStatistic`` for anything else: a fraction of a statistic means the wrong column or
    the wrong file, and rounding it would settle a week on a guess.
    """
    text = text.strip()
    if not text:
        return None
    match = _WHOLE.fullmatch(text)
    least, most = limits(name)
    if match is None or not least <= int(match[1]) <= most:
        raise BadStatistic(text, name)
    return int(match[1])


def statistics_of(scoring: Scoring) -> tuple[str, ...]:
    """The statistics that a scoring version looks at, each once, in a stable order."""
    return tuple(dict.fromkeys((*scoring.per_unit, *(b.statistic for b in scoring.bonuses), *scoring.bands)))


def check_scoring(scoring: Scoring) -> None:
    """Raise ``BadScoring`` unless each statistic's bands ascend and the last one is open."""
    for name, bands in scoring.bands.items():
        limits = [band.up_to for band in bands]
        closed = [limit for limit in limits[:-1] if limit is not None]
        if not limits or limits[-1] is not None or len(closed) != len(limits) - 1 or closed != sorted(set(closed)):
            raise BadScoring(f"bands of {name} in {scoring.scoring}: limits must ascend and only the last be open")


def points(line: Mapping[str, int], scoring: Scoring) -> int:
    """Points of one statistics line in hundredths; may be negative. An empty line scores zero.

    ``line`` holds the known statistics. A bonus is given once, at or above its threshold; of a
    statistic's bands the first that reaches the value counts, and none where the value is unknown.
    """
    total = 0
    for name, worth in scoring.per_unit.items():
        total += worth * line.get(name, 0)
    for bonus in scoring.bonuses:
        value = line.get(bonus.statistic)
        if value is not None and value >= bonus.at_least:
            total += bonus.points
    for name, bands in scoring.bands.items():
        value = line.get(name)
        if value is not None:
            total += _band(value, bands)
    return total


def _band(value: int, bands: Iterable[Band]) -> int:
    for band in bands:
        if band.up_to is None or value <= band.up_to:
            return band.points
    return 0


def share(points: int, optimal: int) -> int:
    """⌊points · 10⁶ / optimal⌋ in millionths, rounded towards minus infinity.

    A lineup below zero has a negative share. Where the optimum itself is zero or less no ratio means
    anything: the optimum has the whole share and every lineup below it none.
    """
    if optimal > 0:
        return points * SHARE_UNIT // optimal
    return SHARE_UNIT if points >= optimal else 0


def regret(points: int, optimal: int) -> int:
    """What the best lineup scored more, in hundredths."""
    return optimal - points
