"""What every worker finds in its memory: the fork server imports this once, and each worker is a copy of it.

So the libraries of the detectors are loaded once, a worker is there in milliseconds, and most of its memory is
shared with the others. Nothing else may import this module: it loads all that at once.
"""

from __future__ import annotations

import contextlib
import gc
import os

# A process that is copied must have one thread; none of the detectors multiplies matrices.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

from moderation import detectors
from moderation.pipeline import Pipeline

PIPELINE: Pipeline | None = None
"""Our own pipeline; ``None`` where it cannot be loaded: a worker then tries itself, and can say what was wrong."""

with contextlib.suppress(Exception):
    PIPELINE = detectors.load()
# Pages that the collector never writes to stay shared.
gc.collect()
gc.freeze()
