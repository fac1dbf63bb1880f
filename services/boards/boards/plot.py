"""Where things stand in a plot: positions in per cent, so that a drawing fits any width. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from boards.domain import Row

_MARGIN = 0.06


@dataclass(frozen=True, slots=True)
class Tick:
    """A labelled position on an axis; ``value`` in the axis' own unit."""

    at: float
    value: float


@dataclass(frozen=True, slots=True)
class Scale:
    """A straight scale from ``low`` to ``high``."""

    low: float
    high: float

    def at(self, value: float) -> float:
        """The position of a value, per cent of the width, to a hundredth."""
        return round(100 * (value - self.low) / (self.high - self.low), 2)

    def ticks(self, most: int = 5) -> list[Tick]:
        """Round values inside the scale: steps of 1, 2 or 5 times a power of ten."""
        rough = (self.high - self.low) / most
        power = 10.0 ** floor(log10(rough))
        step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
        first, last = ceil(self.low / step), floor(self.high / step)
        return [Tick(self.at(number * step), number * step) for number in range(first, last + 1)]


def scale_over(values: Sequence[float]) -> Scale | None:
    """A scale with room around the values; ``None`` where there are none."""
    if not values:
        return None
    low, high = min(values), max(values)
    room = (high - low) * _MARGIN or max(abs(high) * _MARGIN, 1.0)
    return Scale(low - room, high + room)


def scale_of(rows: Iterable[Row]) -> Scale | None:
    """One scale for the intervals of some rows; ``None`` where none has one."""
    return scale_over([end for row in rows for end in (row.interval.low, row.interval.high) if end is not None])


@dataclass(frozen=True, slots=True)
class Bar:
    """A row's interval on a scale: both ends and the mean, per cent."""

    low: float
    mean: float
    high: float

    @property
    def width(self) -> float:
        return round(self.high - self.low, 2)


def bar(row: Row | None, scale: Scale | None) -> Bar | None:
    """Where a row's interval stands; ``None`` where it has none."""
    if row is None or scale is None:
        return None
    found = row.interval
    if found.mean is None or found.low is None or found.high is None:
        return None
    return Bar(scale.at(found.low), scale.at(found.mean), scale.at(found.high))


@dataclass(frozen=True, slots=True)
class Dot:
    """One week in a chart of weeks; positions per cent, ``y`` from the top."""

    x: float
    y: float
    projected: float | None


def weekly(values: Iterable[tuple[int | None, int | None]], scale: Scale) -> list[Dot | None]:
    """One dot for each week (value, projection), ``None`` where there is no value yet."""
    weeks = list(values)
    return [
        None
        if value is None
        else Dot(
            x=round(100 * (index + 0.5) / len(weeks), 2),
            y=round(100 - scale.at(value), 2),
            projected=None if projection is None else round(100 - scale.at(projection), 2),
        )
        for index, (value, projection) in enumerate(weeks)
    ]
