"""What every measurement shares: where it ran, and medians of rounds."""

from __future__ import annotations

import os
import platform
import statistics
import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Any


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    return {
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "processor": _processor(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 2),
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


def median(values: Iterable[float], digits: int = 4) -> float:
    """The median, rounded to so many significant digits."""
    return float(f"{statistics.median(values):.{digits}g}")


def say(text: str) -> None:
    """Tell a person how it goes, on standard error."""
    print(text, file=sys.stderr, flush=True)


def peer(module: str) -> Any:
    """A peer's module; raises ``SystemExit`` with advice where the group of packages ``bench`` is not installed."""
    try:
        return import_module(module)
    except ImportError as error:
        raise SystemExit(f"{error}; ./run bench installs it, or: uv sync --group bench") from error
