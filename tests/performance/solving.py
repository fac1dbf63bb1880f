"""The best lineup of a week, and the 100 best, beside pydfs-lineup-optimizer: ``./run bench optimal`` and ``best``.

    ./run bench optimal|best [--rounds 3] [--players 450] [--json]

The pool is real: players of weeks 4 and 5 of 2017, mixed, with their prices and the points that they scored. The
peer, the optimiser that people use for such contests, models it as a mixed integer programme for CBC, which runs as a
process of its own; it is given our roster and cap and no other rule, and only its solving is timed, not the loading of
players. Both must find the same points, rank by rank. Beside them, with no peer: how long it takes to count how many
lineups score how much, which is every lineup's exact rank (``rank``); its best must be the optimum.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import io
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from measuring import machine, median, peer, say

from settlement.optimal import Player, best_lineups
from settlement.ranks import standing
from settlement.tools import DEFAULT_CAP, DEFAULT_ROSTER

ROOT = Path(__file__).resolve().parents[2]
TARGETS = {"optimal": 100, "best": 1_000}
"""The ratios that DESIGN.md sets."""

BEST = 100
LEAST_SECONDS = 0.5
"""Ours takes milliseconds: each round repeats it for this long, and takes the mean."""


def players(count: int) -> list[tuple[Player, str]]:
    """So many players of real weeks with their teams; raises ``SystemExit`` where there are not as many."""
    text = gzip.decompress((ROOT / "data/pool_2017_dk.csv.gz").read_bytes()).decode()
    found: dict[str, tuple[Player, str]] = {}
    for row in csv.DictReader(io.StringIO(text, newline="")):
        price, points = int(row["salary"] or 0), row["recomputed_dk_points"]
        if row["week"] in ("4", "5") and price > 0 and row["stat_status"] in ("matched", "none"):
            player_id = f"{row['week']}-{row['source_player_id']}"
            player = Player(player_id, (row["position"],), price, round(float(points or 0) * 100))
            found[player_id] = (player, row["team"])
    if not 9 <= count <= len(found):
        raise SystemExit(f"--players {count}: must be 9 to {len(found)}")
    mixed = sorted(found, key=lambda player_id: hashlib.sha256(player_id.encode()).digest())
    return [found[player_id] for player_id in mixed[:count]]


def peers_lineups(pool: list[tuple[Player, str]], count: int) -> Callable[[], list[int]]:
    """pydfs-lineup-optimizer on the same problem; called, it gives the points of its best lineups."""
    pydfs = peer("pydfs_lineup_optimizer")
    settings = peer("pydfs_lineup_optimizer.settings")
    positions = [settings.LineupPosition(slot.slot, tuple(slot.positions)) for slot in DEFAULT_ROSTER]
    rules = type("Rules", (settings.BaseSettings,), {"site": "mafl", "budget": DEFAULT_CAP, "positions": positions})
    optimizer = pydfs.LineupOptimizer(rules)
    theirs = [
        pydfs.Player(one.player_id, one.player_id, "", list(one.positions), team, one.price, one.points / 100)
        for one, team in pool
    ]
    optimizer.player_pool.load_players(theirs)
    return lambda: [round(lineup.fantasy_points_projection * 100) for lineup in optimizer.optimize(count)]


def main(given: argparse.Namespace, *, count: int) -> tuple[dict[str, Any], Callable[[dict[str, Any]], None]]:
    """Measure ``given.rounds`` times in turn; the result, and how it is shown."""
    pool = players(given.players)
    ours = [player for player, _ in pool]
    solve = partial(best_lineups, ours, DEFAULT_ROSTER, DEFAULT_CAP, count)
    points = [lineup.points for lineup in solve()]  # compiled now
    counted = standing(ours, DEFAULT_ROSTER, DEFAULT_CAP)
    if counted.points[-1] != points[0]:
        raise SystemExit(f"the best of all that were counted has {counted.points[-1]}, the optimum {points[0]}")
    took: dict[str, list[float]] = {"ours": [], "pydfs": [], "rank": []}
    for number in range(given.rounds):
        begun, times = time.perf_counter(), 0
        while not times or time.perf_counter() - begun < LEAST_SECONDS:
            solve()
            times += 1
        took["ours"].append((time.perf_counter() - begun) / times)
        begun = time.perf_counter()
        standing(ours, DEFAULT_ROSTER, DEFAULT_CAP)
        took["rank"].append(time.perf_counter() - begun)
        search = peers_lineups(pool, count)
        begun = time.perf_counter()
        found = search()
        took["pydfs"].append(time.perf_counter() - begun)
        if found != points:
            raise SystemExit(f"the two disagree: ours {points[:5]}…, pydfs {found[:5]}…")
        ours_ms, rank_ms = (took[name][-1] * 1000 for name in ("ours", "rank"))
        say(f"round {number + 1}  ours {ours_ms:.2f} ms   pydfs {took['pydfs'][-1]:.3f} s   ranks {rank_ms:.0f} ms")
    name = "optimal" if count == 1 else "best"
    document = {
        "name": name,
        "ratios": {"pydfs": median(b / a for a, b in zip(took["ours"], took["pydfs"], strict=True))},
        "targets": {"pydfs": TARGETS[name]},
        "seconds": {who: median(seconds) for who, seconds in took.items()},
        "rounds": [dict(zip(took, times, strict=True)) for times in zip(*took.values(), strict=True)],
        "load": {
            "players": len(pool),
            "lineups": count,
            "points": points[0],
            "feasible_lineups": str(counted.lineups),
        },
        "machine": machine(),
    }
    return document, show


def show(document: dict[str, Any]) -> None:
    """The result for a person."""
    seconds, load = document["seconds"], document["load"]
    print(
        f"{load['lineups']} of the best of {load['players']} players: ours {seconds['ours'] * 1000:.2f} ms, "
        f"pydfs {seconds['pydfs'] * 1000:.0f} ms: {document['ratios']['pydfs']:,.0f} times as fast, the same points"
    )
    every = int(load["feasible_lineups"])
    print(f"the exact ranks of all {every:,} lineups there are: {seconds['rank'] * 1000:.0f} ms")


def arguments(parser: argparse.ArgumentParser) -> None:
    """What may be said on the command line."""
    parser.add_argument("--rounds", type=int, default=3, help="both in turn, so many times (3)")
    parser.add_argument("--players", type=int, default=450, help="players of the pool (450)")
