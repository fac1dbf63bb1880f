"""Lineups and files for the tests of contests."""

import functools
import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from common.events import PoolPlayer
from contests import imports, rulesets
from contests.domain import Judge

SLOTS = ("QB", "RB1", "RB2", "WR1", "WR2", "WR3", "TE", "FLEX", "DST")
HOME: dict[str, str] = {
    "RB1": "RB", "RB2": "RB", "WR1": "WR", "WR2": "WR", "WR3": "WR", "FLEX": "RB",
}  # fmt: skip


def data(name: str) -> bytes:
    """A file of the repository's data folder."""
    root = next(folder for folder in Path(__file__).resolve().parents if (folder / "uv.lock").exists())
    return (root / "data" / name).read_bytes()


@functools.cache
def week_four() -> imports.Week:
    return imports.read(data("pool_2017_dk.csv.gz"), 2017, 4).weeks[0]


@functools.cache
def judge() -> Judge:
    return Judge("2017-W04", rulesets.load(), week_four().players)


def cheapest(players: tuple[PoolPlayer, ...] = (), number: int = 0) -> dict[str, Any]:
    """A legal lineup of cheap players; ``number`` takes others of the same prices' neighbourhood, and other words."""
    free: dict[str, list[PoolPlayer]] = {}
    for player in sorted(players or week_four().players, key=lambda player: (player.price, player.player_id)):
        free.setdefault(player.positions[0], []).append(player)
    picks = []
    for slot in SLOTS:
        players_there = free[HOME.get(slot, slot)]
        player = players_there.pop(number % 10 if len(players_there) > 10 else 0)
        picks.append(
            {
                "slot": slot,
                "player_id": player.player_id,
                "rationale": f"{player.player_name} is cheap, and I say so {number} times over.",
                "confidence": 0.25,
                "main_factor": "price",
            }
        )
    return {"picks": picks, "thesis": f"Cheap {number}.", "projected_score": 88.25, "confidence": 0.5}


def body(lineup: Any) -> bytes:
    return json.dumps(lineup).encode()


HEADER = ",".join(imports.COLUMNS)
_ids = count(1)


def row(**cells: Any) -> str:
    """A sound row of a pool file: a receiver at 5,000, NE against BUF on 2026-10-04; ``cells`` replace its own."""
    number = next(_ids)
    made: dict[str, Any] = {
        "season": 2026,
        "week": 4,
        "source_player_id": f"dk-{number}",
        "player_id": f"00-{number:07d}",
        "name": f"Player {number}",
        "position": "WR",
        "team": "NE",
        "opponent": "BUF",
        "home_away": "home",
        "game_id": "2026_04_BUF_NE",
        "kickoff": "2026-10-04T13:00:00-04:00",
        "salary": 5000,
    }
    return ",".join(f'"{cell}"' if "," in str(cell) else str(cell) for cell in (made | cells).values())


def pool_file(*rows: str) -> bytes:
    return "\r\n".join([HEADER, *rows, ""]).encode()


MONDAY = {
    "team": "KC",
    "opponent": "DEN",
    "home_away": "away",
    "game_id": "2026_04_KC_DEN",
    "kickoff": "2026-10-05T20:15:00-04:00",
}
THURSDAY = {
    "team": "SEA",
    "opponent": "LA",
    "home_away": "away",
    "game_id": "2026_04_SEA_LA",
    "kickoff": "2026-10-01T20:15:00-04:00",
}


def small_pool(kickoff: str = "2026-10-04T13:00:00-04:00", season: int = 2026, week: int = 4) -> bytes:
    """A pool file with enough players for a lineup of its one Sunday game and a Monday game."""
    rows = [
        row(season=season, week=week, position=position, salary=4000 + 100 * number, kickoff=kickoff)
        for position, many in (("QB", 3), ("RB", 12), ("WR", 12), ("TE", 3), ("DST", 1))
        for number in range(many)
    ]
    return pool_file(*rows)


Change = Callable[[dict[str, Any]], None]
