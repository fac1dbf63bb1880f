"""The draw once more, in plain Python, written from the specification in docs/method.md."""

from __future__ import annotations

import math
from collections.abc import Iterator
from hashlib import sha256


def plain_words(label: str) -> Iterator[int]:
    """SplitMix64 from the label."""
    state = int(sha256(label.encode("utf-8")).hexdigest()[:16], 16)
    while True:
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        yield z ^ z >> 31


def plain_ends(means: list[float]) -> tuple[float, float]:
    """Low and high of 2,000 means by a full sort."""
    means = sorted(means)

    def end(p: float) -> float:
        h = 1999 * p
        k = math.floor(h)
        f = h - k
        step = f * (means[k + 1] - means[k])
        return means[k] + step

    return end(0.025), end(0.975)
