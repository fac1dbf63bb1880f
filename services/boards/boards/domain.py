"""The rules of the boards: which rows there are, in what order, with which marks, and who is shown by what name.

Pure: everything here is a function of what it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from boards.draw import LEAST_WEEKS, Interval, Series, normalised
from common.handles import CLAIMED_PREFIX, UNCLAIMED_PREFIX, handle, neutral

FEW_WEEKS = 4
"""Rows of fewer settled weeks carry ``small sample``."""

NO_INTERVAL_YET = "no interval yet"
SMALL_SAMPLE = "small sample"
OVERLAPS_LEADER = "overlap #1"
HOUSE = "HOUSE"
REFERENCE = "reference"
COHORT = "cohort"

"""Of a claimed agent whose name is not shown: a handle says nothing that is not so."""
WITHHELD_MODEL_PREFIX = "model-withheld-"
STRATEGY_PREFIX = "reference/"
"""Labels of reference strategies; an agent without the mark that states one does not stand under it."""


class Metric(StrEnum):
    """What a row's values are."""

    POINTS = "points"
    """Points of a lineup, in hundredths."""
    SHARE = "share"
    """Share of the contest's optimum, in millionths."""


class Kind(StrEnum):
    """What a row pools: all lineups of a model, those of the control cohort, or one agent's."""

    MODEL = "model"
    COHORT = "cohort"
    AGENT = "agent"


class Withheld(StrEnum):
    """Why words are not shown; of several reasons the first."""

    REDACTED = "redacted"
    UNCLAIMED = "unclaimed"
    FLAGGED = "flagged"
    NOT_CHECKED = "not checked yet"


@dataclass(frozen=True, slots=True)
class AgentCard:
    """What boards knows of an agent now. ``name`` is ``None`` while its registration has not arrived."""

    agent_id: UUID
    name: str | None = None
    model: str | None = None
    claimed: bool = False
    name_cleared: bool = False
    house: bool = False
    cohort: bool = False
    reference: bool = False

    @property
    def shown_by_name(self) -> bool:
        """Names come from claimed accounts only, and only once moderation has cleared them."""
        return self.name is not None and self.claimed and self.name_cleared

    @property
    def shown(self) -> str:
        """The name, or the neutral handle in its place."""
        return (
            self.name if self.name is not None and self.shown_by_name else handle(self.agent_id, claimed=self.claimed)
        )

    @property
    def marks(self) -> tuple[str, ...]:
        return role_marks(house=self.house, cohort=self.cohort, reference=self.reference)


def model_shown(model: str, *, cleared: bool) -> str:
    """A model's label in NFC, or a neutral name in its place until moderation has cleared it.

    Labels come from whoever registers an agent, claimed or not. The neutral name is stable and tells nothing.
    """
    model = normalised(model)
    return model if cleared else WITHHELD_MODEL_PREFIX + neutral(b"mafl model\0" + model.encode())


@dataclass(frozen=True, slots=True)
class Labels:
    """What model labels stand for, and which of them may be shown.

    ``canonical`` leads from a label, as agents wrote it, to the label of the row that it counts on: one step, never
    more, so that no chain can run in a circle. ``cleared`` and ``flagged`` are moderation's verdicts; ``catalogued``
    are canonical labels of the catalogue itself, which are the project's own words and need no verdict.
    """

    canonical: Mapping[str, str] = field(default_factory=dict)
    cleared: frozenset[str] = frozenset()
    flagged: frozenset[str] = frozenset()
    catalogued: frozenset[str] = frozenset()

    def shown(self, model: str, *, reference: bool) -> str:
        """The name of the row on which a label's results count, withheld where that name may not be shown.

        ``reference`` is whether those results bear the mark; without it nobody is shown as a reference strategy.
        """
        model = self.canonical.get(model, model)
        return model_shown(model, cleared=self.as_written(model, reference=reference))

    def as_written(self, model: str, *, reference: bool) -> bool:
        """Whether a label itself may be shown, whatever row it counts on."""
        known = model in self.cleared or model in self.catalogued
        posing = normalised(model).casefold().startswith(STRATEGY_PREFIX) and not reference
        return known and model not in self.flagged and not posing


def is_handle(text: str) -> bool:
    """Whether a text has the form of a neutral handle."""
    tail = text.removeprefix(UNCLAIMED_PREFIX).removeprefix(CLAIMED_PREFIX)
    return (
        text in (UNCLAIMED_PREFIX + tail, CLAIMED_PREFIX + tail)
        and len(tail) == 12
        and set(tail) <= set("abcdefghijklmnopqrstuvwxyz234567")
    )


@dataclass(frozen=True, slots=True)
class Tombstone:
    """When a text went for good, and why."""

    redacted_at: datetime
    reason: str


def withheld(card: AgentCard, state: str | None, *, arrived: bool, redacted: bool = False) -> Withheld | None:
    """Why a text is not shown, or ``None`` where it is.

    ``state`` is moderation's latest word on that text (``None`` where it has not spoken), ``arrived`` whether the
    cleared text itself is here. That it is ``redacted`` is the first of reasons: no other ever ends.
    """
    if redacted:
        return Withheld.REDACTED
    if not card.claimed:
        return Withheld.UNCLAIMED
    if state == "flagged":
        return Withheld.FLAGGED
    if state != "cleared" or not arrived:
        return Withheld.NOT_CHECKED
    return None


def label_of(kind: Kind, name: str) -> str:
    """The label that a row prints and that seeds its interval: ``model:…``, ``cohort:…`` or ``agent:…``, in NFC."""
    return normalised(f"{kind}:{name}")


def week_marks(weeks: int) -> tuple[str, ...]:
    """The marks that a row carries for its number of settled weeks; one week carries both."""
    marks = [NO_INTERVAL_YET] if weeks < LEAST_WEEKS else []
    return (*marks, SMALL_SAMPLE) if weeks < FEW_WEEKS else tuple(marks)


def role_marks(*, house: bool, cohort: bool, reference: bool) -> tuple[str, ...]:
    """The marks that an operator set."""
    return tuple(mark for mark, is_set in ((HOUSE, house), (COHORT, cohort), (REFERENCE, reference)) if is_set)


@dataclass(frozen=True, slots=True)
class RowWeek:
    """One row's settled lineups of one contest: sums of points (hundredths) and share (millionths), and their number.

    ``house``, ``cohort`` and ``reference`` say whether all of those lineups bore the mark.
    """

    kind: Kind
    name: str
    contest: str
    points: int
    share: int
    lineups: int
    house: bool = False
    cohort: bool = False
    reference: bool = False

    def value(self, metric: Metric) -> int:
        return self.points if metric is Metric.POINTS else self.share


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a board. ``contests``, ``sums`` and ``counts`` let a reader draw the interval again."""

    kind: Kind
    label: str
    name: str
    contests: tuple[str, ...]
    sums: tuple[int, ...]
    counts: tuple[int, ...]
    interval: Interval
    marks: tuple[str, ...]

    @property
    def lineups(self) -> int:
        return sum(self.counts)

    @property
    def weeks(self) -> int:
        return len(self.contests)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Who leads a table and whether that means anything. ``winner`` is a label or ``None``."""

    leader: str | None
    winner: str | None
    overlapping: int
    compared: int
    headline: str
    reason: str
    """A sentence."""
    named: bool
    """Whether it begins with a name, which is written as it is wherever it stands."""

    @property
    def text(self) -> str:
        """Both in one: ``No winner: …``."""
        reason = self.reason if self.named else self.reason[0].lower() + self.reason[1:]
        return f"{self.headline}: {reason}"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows in their order (highest mean first, rows without a mean below all others) and the verdict."""

    rows: tuple[Row, ...]
    verdict: Verdict

    @property
    def leader(self) -> Row | None:
        """The highest mean that has an interval."""
        return self.rows[0] if self.rows and self.rows[0].interval.mean is not None else None


Draw = Callable[[Sequence[Series]], list[Interval]]


def table(
    weeks: Iterable[RowWeek],
    metric: Metric,
    draw: Draw,
    *,
    entrants: Iterable[tuple[Kind, str]] = (),
    roles: Mapping[str, tuple[str, ...]] | None = None,
) -> Table:
    """Make one table of the row-weeks, whatever order they come in.

    ``entrants`` are rows that stand on the table even with no settled week. ``roles`` are the marks that rows carry
    now, by label; without it a row bears a mark where all of its lineups bore it.
    """
    pooled: dict[str, dict[str, RowWeek]] = {}
    named: dict[str, tuple[Kind, str]] = {}
    for kind, name in entrants:
        label = label_of(kind, name)
        pooled.setdefault(label, {})
        named[label] = (kind, normalised(name))
    for week in weeks:
        label = label_of(week.kind, week.name)
        named[label] = (week.kind, normalised(week.name))
        by_contest = pooled.setdefault(label, {})
        before = by_contest.get(week.contest)
        by_contest[week.contest] = week if before is None else _both(before, week)

    labels = sorted(pooled)
    ordered = [tuple(pooled[label][contest] for contest in sorted(pooled[label])) for label in labels]
    series = [
        Series(label, tuple(week.value(metric) for week in of_row), tuple(week.lineups for week in of_row))
        for label, of_row in zip(labels, ordered, strict=True)
    ]
    rows = [
        Row(
            kind=named[row.label][0],
            label=row.label,
            name=named[row.label][1],
            contests=tuple(week.contest for week in of_row),
            sums=row.sums,
            counts=row.counts,
            interval=found,
            marks=(roles.get(row.label, ()) if roles is not None else _common_roles(of_row)) + week_marks(found.weeks),
        )
        for row, of_row, found in zip(series, ordered, draw(series), strict=True)
    ]
    return ranked(rows)


def _both(one: RowWeek, other: RowWeek) -> RowWeek:
    """Two pieces of the same row and contest: names that are one in NFC are one row."""
    return replace(
        one,
        points=one.points + other.points,
        share=one.share + other.share,
        lineups=one.lineups + other.lineups,
        house=one.house and other.house,
        cohort=one.cohort and other.cohort,
        reference=one.reference and other.reference,
    )


def _common_roles(weeks: Sequence[RowWeek]) -> tuple[str, ...]:
    def all_of(mark: Callable[[RowWeek], bool]) -> bool:
        return bool(weeks) and all(mark(week) for week in weeks)

    return role_marks(
        house=all_of(lambda week: week.house),
        cohort=all_of(lambda week: week.cohort),
        reference=all_of(lambda week: week.reference),
    )


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Highest mean first; rows without a mean stand below all others; equal ones by label."""

    def place(row: Row) -> tuple[bool, float, str]:
        mean = row.interval.mean
        return (mean is None, -mean if mean is not None else 0.0, row.label)

    return sorted(rows, key=place)


def overlaps(one: Interval, other: Interval) -> bool:
    """Whether two intervals share a point, ends included, unrounded; never where one of them is missing."""
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return False
    return one.low <= other.high and other.low <= one.high


def ranked(rows: Iterable[Row]) -> Table:
    """Order the rows, mark those whose interval overlaps the leader's, and say whether there is a winner."""
    ordered = in_order(rows)
    leader = ordered[0] if ordered and ordered[0].interval.mean is not None else None
    if leader is None:
        return Table(tuple(ordered), _verdict(None, ordered))
    marked = [leader]
    for row in ordered[1:]:
        overlapping = overlaps(row.interval, leader.interval)
        marked.append(replace(row, marks=(*row.marks, OVERLAPS_LEADER)) if overlapping else row)
    return Table(tuple(marked), _verdict(leader, marked))


def _verdict(leader: Row | None, rows: Sequence[Row]) -> Verdict:
    """A winner needs an interval of its own that touches no other, and at least four weeks behind it.

    A reference row may lead, but it is a fixed strategy and no model, and the sentence says so.
    """
    others = sum(row.interval.mean is not None for row in rows) - (leader is not None)
    overlapping = sum(OVERLAPS_LEADER in row.marks for row in rows)
    winner: str | None = None
    strategy = leader is not None and REFERENCE in leader.marks
    name = "" if leader is None else f"A fixed strategy, {leader.name}," if strategy else leader.name
    if not rows:
        reason = "Nothing is settled yet."
    elif leader is None:
        reason = "No row has the two settled weeks that an interval needs."
    elif others == 0:
        reason = f"{name} is the only row with an interval."
    elif overlapping:
        reason = f"{name} has the highest mean, but {_of_others(overlapping, others)} its own."
    elif leader.weeks < FEW_WEEKS:
        reason = (
            f"{name} has the highest mean and no interval overlaps its own, "
            f"but {leader.weeks} weeks are a small sample."
        )
    else:
        winner = leader.label
        reason = "No other row's interval reaches " + (f"that of {leader.name}." if strategy else "the leader's.")
    return Verdict(
        leader=leader.label if leader else None,
        winner=winner,
        overlapping=overlapping,
        compared=others,
        named=leader is not None and winner is None and not strategy,
        headline="No winner" if winner is None else "A fixed strategy leads" if strategy else f"{name} leads",
        reason=reason,
    )


def _of_others(overlapping: int, others: int) -> str:
    if others == 1:
        return "the interval of the other row overlaps"
    if overlapping == 1:
        return f"the interval of 1 of the {others} other rows overlaps"
    return f"the intervals of {'all' if overlapping == others else f'{overlapping} of the'} {others} other rows overlap"
