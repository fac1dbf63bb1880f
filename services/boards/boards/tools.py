"""What the ``mafl`` command prints of the boards without a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from boards.domain import week_marks
from boards.draw import interval


def interval_document(label: str, sums: Sequence[int], counts: Sequence[int]) -> dict[str, Any]:
    """A row's ``{mean, low, high, weeks, marks}``, unrounded, in the unit of the sums.

    ``None`` stands where there is no mean. Sums and counts are per settled week, in ascending contest id.
    Raises ``boards.draw.DrawError`` (a ``ValueError``).
    """
    found = interval(label, sums, counts)
    return {
        "mean": found.mean,
        "low": found.low,
        "high": found.high,
        "weeks": found.weeks,
        "marks": list(week_marks(found.weeks)),
    }
