"""What the tests of settlement share: the classic rules, the roster, the real seasons."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from common.events import Band, Bonus, Scoring, Slot
from settlement.tools import DEFAULT_ROSTER


@pytest.fixture(scope="session")
def classic() -> Scoring:
    """The classic DraftKings rules, as the README of the data states them."""
    return Scoring(
        scoring="draftkings-classic-1",
        per_unit={
            "pass_yds": 4, "pass_td": 400, "pass_int": -100, "pass_2pt": 200,
            "rush_yds": 10, "rush_td": 600, "rush_2pt": 200,
            "rec": 100, "rec_yds": 10, "rec_td": 600, "rec_2pt": 200,
            "fum_lost": -100, "ret_td": 600, "off_fum_rec_td": 600,
            "dst_sacks": 100, "dst_int": 200, "dst_fum_rec": 200, "dst_td": 600,
            "dst_safety": 200, "dst_blk": 200, "dst_2pt_ret": 200,
        },
        bonuses=(
            Bonus(statistic="pass_yds", at_least=300, points=300),
            Bonus(statistic="rush_yds", at_least=100, points=300),
            Bonus(statistic="rec_yds", at_least=100, points=300),
        ),
        bands={
            "dst_points_allowed": (
                Band(up_to=0, points=1000),
                Band(up_to=6, points=700),
                Band(up_to=13, points=400),
                Band(up_to=20, points=100),
                Band(up_to=27, points=0),
                Band(up_to=34, points=-100),
                Band(up_to=None, points=-400),
            )
        },
    )  # fmt: skip


@pytest.fixture(scope="session")
def roster() -> Sequence[Slot]:
    return DEFAULT_ROSTER


@pytest.fixture(scope="session")
def data_path() -> Callable[[str], Path]:
    """Where a file of the repository's ``data`` folder is."""
    root = next(folder for folder in Path(__file__).resolve().parents if (folder / "uv.lock").exists())
    return lambda name: root / "data" / name


@pytest.fixture(scope="session")
def read_data(data_path: Callable[[str], Path]) -> Callable[[str], list[dict[str, str]]]:
    """The rows of a file of the repository's ``data`` folder."""

    def read(name: str) -> list[dict[str, str]]:
        with gzip.open(data_path(name), "rt", encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    return read
