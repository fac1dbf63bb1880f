"""What settling a contest would do now, and what is missing. Nothing is written."""

from __future__ import annotations

from collections import Counter
from typing import Any

from common import events as ev
from common.clock import Clock
from common.db import Database
from common.metrics import Metrics
from common.problems import Problem
from settlement import commands, corrections, playing
from settlement.domain import points
from settlement.lines import Week, line_of
from settlement.store import Store

MOST_LISTED = 50
"""Players of one list of a report; it says how many there are in all."""


async def preview(database: Database, clock: Clock, metrics: Metrics, contest: str) -> dict[str, Any]:
    """Everything that settling would refuse or ask for, at once, and what it would change. Points in hundredths.

    ``missing`` keeps the contest from being settled, ``asks`` is what settling would want to be given (``force``, a
    reason). ``outcome`` is what would come of the statistics as they are, provisional ones too; ``None`` where lineups
    or all statistics are missing. Raises ``NotFound``.
    """
    async with database.transaction() as connection:
        store = Store(connection)
        known = await commands.known_contest(store, contest)
        have = await store.count_lineups(contest)
        opened = known.opened
        imported, lines, entries = None, {}, []
        if opened is not None:
            week = Week(opened.season, opened.week)
            imported = (await store.imported([week])).get(week)
            lines = await store.statistics(week)
            entries = await store.lineups(contest)
        latest = await store.latest(contest)
        basis = await store.basis(contest, latest.settlement) if latest is not None else None
        told = await store.told()
        now = await clock.now(connection)
    missing = list(commands.hindrances(known, have, imported))
    asks: list[Problem] = []
    outcome: dict[str, Any] | None = None
    all_here = known.cancelled_because is None and known.entries == have and known.scheduled
    if opened is not None and imported is not None and all_here:
        try:
            found = await commands.worked_out(commands.Inputs(opened, entries, lines, imported), metrics)
        except Problem as problem:
            missing.append(problem)
        else:
            changed = latest is None or latest.digest != found.digest
            if changed:
                asks = list(commands.demands(opened, lines, latest, None, force=False))
            kept = corrections.kept_lines(opened, lines)
            players, moved = commands.corrected(opened.scoring, found, kept, basis) if basis else ((), 0)
            outcome = {
                "settlement": (latest.settlement if latest else 0) + changed,
                "changed": changed,
                "digest": found.digest,
                "optimal": {
                    "points": found.optimal.points,
                    "price": found.optimal.price,
                    "players": list(found.optimal.players),
                },
                "corrected": [player.model_dump(mode="json") for player in players],
                "moved": moved,
            }
    return {
        "contest": contest,
        "ready": not missing and not asks,
        "missing": [_told(problem) for problem in missing],
        "asks": [_told(problem) for problem in asks],
        "lineups": {"have": have, "need": known.entries},
        "statistics": "none" if imported is None else "final" if imported.final else "provisional",
        "games": []
        if opened is None
        else _games(
            opened, lines, playing.states(opened, lines, now, told, final=imported is not None and imported.final)
        ),
        **(
            _players(opened, lines, [pick.player_id for entry in entries for pick in entry.picks])
            if opened
            else {"unmatched": {"count": 0, "players": []}, "without_statistics": {"count": 0, "picked": []}}
        ),
        "current": None if latest is None else latest.settlement,
        "outcome": outcome,
    }


def _told(problem: Problem) -> dict[str, Any]:
    return {"code": problem.code, "title": problem.title, "detail": problem.detail}


def _games(contest: ev.ContestOpened, lines: dict[str, dict[str, int]], states: dict[str, Any]) -> list[dict[str, Any]]:
    players = Counter(player.game_id for player in contest.players)
    known = Counter(
        player.game_id for player in contest.players if line_of(lines, player.player_id, player.team) is not None
    )
    return [
        {
            "game_id": game.game_id,
            "away": game.away,
            "home": game.home,
            "kickoff": game.kickoff,
            "status": game.became or game.status,
            "state": states[game.game_id],
            "players": players[game.game_id],
            "with_statistics": known[game.game_id],
        }
        for game in contest.games
    ]


def _players(contest: ev.ContestOpened, lines: dict[str, dict[str, int]], picks: list[str]) -> dict[str, Any]:
    """Lines of players who are not in the pool, the best first, and picks whose player has no line."""
    pool = {player.player_id for player in contest.players}
    outside = [(points(line, contest.scoring), name) for name, line in lines.items() if name.split("/")[0] not in pool]
    silent = {
        player.player_id: player for player in contest.players if line_of(lines, player.player_id, player.team) is None
    }
    picked = Counter(player_id for player_id in picks if player_id in silent)
    return {
        "unmatched": {
            "count": len(outside),
            "players": [
                {"player_id": name, "points": worth}
                for worth, name in sorted(outside, key=lambda one: (-one[0], one[1]))[:MOST_LISTED]
            ],
        },
        "without_statistics": {
            "count": len(silent),
            "picked": [
                {"player_id": player_id, "name": silent[player_id].player_name, "lineups": many}
                for player_id, many in picked.most_common(MOST_LISTED)
            ],
        },
    }
