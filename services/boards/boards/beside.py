"""What stands beside the rows of a table: the difference to the leader, two-way intervals, how often each is best.

Pure: tables and the parts that agents have in their rows go in, numbers for each row come out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from boards.comparisons import (
    AgentWeek,
    Concentration,
    Difference,
    Weeks,
    all_pairs,
    concentration,
    difference,
    pair_series,
    times_best,
)
from boards.domain import Draw, Kind, Metric, Row, Table
from boards.draw import DrawError, Interval

Source = tuple[Kind, str, bool]
"""What a row of models is pooled of: its kind, a label as written, and whether its lineups bore the reference mark."""


@dataclass(frozen=True, slots=True)
class Part:
    """One agent's settled lineups of one contest under one label."""

    source: Source
    agent: str
    contest: str
    points: int
    share: int
    lineups: int

    def value(self, metric: Metric) -> int:
        return self.points if metric is Metric.POINTS else self.share


@dataclass(slots=True)
class Parts:
    """The parts of a season by source, as they are asked for again and again."""

    by_week: dict[Source, dict[Metric, list[AgentWeek]]] = field(default_factory=dict)
    totals: dict[Source, dict[Metric, dict[str, tuple[int, int]]]] = field(default_factory=dict)

    @classmethod
    def of(cls, parts: Iterable[Part]) -> Parts:
        made = cls()
        for part in parts:
            weeks = made.by_week.setdefault(part.source, {metric: [] for metric in Metric})
            totals = made.totals.setdefault(part.source, {metric: {} for metric in Metric})
            for metric in Metric:
                weeks[metric].append(AgentWeek(part.agent, part.contest, part.value(metric), part.lineups))
                value, count = totals[metric].get(part.agent, (0, 0))
                totals[metric][part.agent] = value + part.value(metric), count + part.lineups
        return made


@dataclass(frozen=True, slots=True)
class Beside:
    """What stands beside one row; ``None`` where it cannot be told.

    ``difference`` is that to the table's leader, of the leader itself none. ``best`` counts the resamples of 2,000 in
    which the row has the highest mean. ``two_way`` and ``concentration`` are of rows that pool agents.
    """

    difference: Difference | None = None
    best: int | None = None
    two_way: Interval | None = None
    concentration: Concentration | None = None


TwoWay = Callable[[str, Metric, tuple[Source, ...]], Interval | None]
"""The two-way interval of a row by its label, pooled of these sources."""


def beside(
    name: str,
    table: Table,
    metric: Metric,
    draw: Draw,
    *,
    sources: Mapping[str, tuple[Source, ...]] | None = None,
    parts: Parts | None = None,
    owners: Mapping[str, str] | None = None,
    two_way: TwoWay | None = None,
) -> dict[str, Beside]:
    """What stands beside each row of a table, by its label.

    ``name`` is the table's (``models``, ``cohort``, ``agents``); ``sources`` say what each row is pooled of, and
    ``owners`` who owns the agents that somebody claims now.
    """
    rows = {row.label: weeks_of(row) for row in table.rows}
    best = _best(name, list(rows.values()))
    leader = table.leader
    ahead = (
        {
            found.one: found
            for found in differences([(rows[row.label], rows[leader.label]) for row in table.rows[1:]], draw)
        }
        if leader is not None
        else {}
    )
    made = {}
    for label in rows:
        of_row = (sources or {}).get(label, ())
        both = two_way(label, metric, of_row) if two_way is not None and of_row else None
        behind = concentration(_totals(parts, of_row, metric), owners or {}) if parts is not None and of_row else None
        made[label] = Beside(ahead.get(label), best.get(label), both, behind)
    return made


def weeks_of(row: Row) -> Weeks:
    """A row's weeks as the comparisons take them."""
    return Weeks(row.label, dict(zip(row.contests, zip(row.sums, row.counts, strict=True), strict=True)))


def differences(pairs: Sequence[tuple[Weeks, Weeks]], draw: Draw) -> list[Difference]:
    """The difference of each pair that has an interval, first less second, in their order.

    A pair that met in fewer than two weeks has none, nor has one whose sums would not be exact.
    """
    drawn, series = [], []
    for one, other in pairs:
        try:
            series.append(pair_series(one, other))
        except DrawError:
            continue
        drawn.append((one, other))
    made = [difference(one, other, found) for (one, other), found in zip(drawn, draw(series), strict=True)]
    return [found for found in made if found.interval.mean is not None]


def matrix(table: Table, draw: Draw) -> list[Difference]:
    """Every two rows of a table once, the row that stands higher less the one below."""
    return differences(all_pairs([weeks_of(row) for row in table.rows]), draw)


def _best(name: str, rows: Sequence[Weeks]) -> dict[str, int]:
    try:
        return times_best(name, rows)
    except DrawError:
        return {}


def pooled_parts(parts: Parts, sources: Sequence[Source], metric: Metric) -> list[AgentWeek]:
    """The agents' weeks of a row, one entry for each agent and contest, over all sources of the row."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for source in sources:
        for part in parts.by_week.get(source, {}).get(metric, []):
            value, count = found.get((part.agent, part.contest), (0, 0))
            found[part.agent, part.contest] = value + part.sum, count + part.count
    return [AgentWeek(agent, contest, *both) for (agent, contest), both in found.items()]


def _totals(parts: Parts, sources: Sequence[Source], metric: Metric) -> dict[str, tuple[int, int]]:
    """Each agent's sum and number of lineups, over all sources of a row."""
    found: dict[str, tuple[int, int]] = {}
    for source in sources:
        for agent, (value, count) in parts.totals.get(source, {}).get(metric, {}).items():
            before = found.get(agent, (0, 0))
            found[agent] = before[0] + value, before[1] + count
    return found
