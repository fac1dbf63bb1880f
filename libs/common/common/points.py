"""Points are integers in hundredths everywhere; only a person reads them with a dot."""

from __future__ import annotations

import re

_DECIMAL = re.compile(r"([+-]?)([0-9]+)(?:\.([0-9]{1,2})0*)?")


def as_points(hundredths: int) -> str:
    """Hundredths as text with two decimals: ``14250`` is ``142.50``."""
    sign = "-" if hundredths < 0 else ""
    whole, part = divmod(abs(hundredths), 100)
    return f"{sign}{whole}.{part:02d}"


def hundredths(text: str) -> int:
    """Read points written with at most two decimals, exactly: ``7.7`` is ``770``.

    Raises ``ValueError`` for anything else, more than two decimals included.
    """
    match = _DECIMAL.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a number of points with at most two decimals, such as 142.5")
    sign, whole, part = match.groups()
    value = int(whole) * 100 + int((part or "").ljust(2, "0"))
    return -value if sign == "-" else value
