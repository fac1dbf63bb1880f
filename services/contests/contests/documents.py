"""What contests shows: contests, pools and revisions as JSON and CSV."""

import csv
import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from common.canonical import instant
from common.commitment import salts_by_pointer
from common.events import Game, PoolPlayer
from contests.domain import Contest, Revision, Ruleset

POOL_COLUMNS = ("player_id", "name", "positions", "team", "opponent", "home_away", "game_id", "kickoff", "price")

UNITS = {
    "scoring": "hundredths of a point",
    "projected_score": "points",
    "pick_confidence_points_per_1000": "points",
}
"""Stated in the contest's document: both kinds stand there side by side."""


def brief(contest: Contest, now: datetime) -> dict[str, Any]:
    """A contest in a list. It tells of the clock and nothing of entries (C8)."""
    locked = contest.is_locked(now)
    return {
        "contest": contest.contest,
        "season": contest.season,
        "week": contest.week,
        "state": "locked" if locked else contest.state,
        "opened_at": instant(contest.opened_at) if contest.opened_at else None,
        "locks_at": instant(contest.locks_at),
        "locked_at": instant(contest.locks_at) if locked else None,
        "cancelled_at": instant(contest.cancelled_at) if contest.cancelled_at else None,
        "cancelled_because": contest.cancelled_because,
    }


def whole(contest: Contest, rules: Ruleset, games: Sequence[Game], now: datetime) -> dict[str, Any]:
    """A contest with its rules and games. Points of the scoring are hundredths, those of a projected score points."""
    return {
        **brief(contest, now),
        "cap": rules.cap,
        "roster": [slot.model_dump(mode="json") for slot in rules.roster],
        "ruleset": rules.ruleset,
        "lineup_rules": rules.lineup_rules.model_dump(),
        "scoring": rules.scoring.model_dump(mode="json"),
        "policies": rules.policies.model_dump(),
        "limits": rules.limits.model_dump(),
        "projected_score": {
            "at_least": rules.projected_score.at_least / 100,
            "at_most": rules.projected_score.at_most / 100,
            "decimals": 2,
        },
        "pick_confidence_points_per_1000": rules.pick_confidence_points_per_1000 / 100,
        "units": UNITS,
        "games": [game_document(game) for game in games],
        "pool": f"/api/v1/contests/{contest.contest}/pool",
    }


def game_document(game: Game) -> dict[str, Any]:
    """A game, with whether it has left the contest."""
    return {
        "game_id": game.game_id,
        "away": game.away,
        "home": game.home,
        "kickoff": instant(game.kickoff),
        "kickoff_zone": game.kickoff_zone,
        "status": game.status,
        "became": game.became,
        "resumed_at": instant(game.resumed_at) if game.resumed_at else None,
        "in_week": game.in_week,
    }


@dataclass(frozen=True, slots=True)
class Representation:
    """Bytes to send, with the strong entity tag that names exactly them."""

    content: bytes
    media_type: str

    @property
    def etag(self) -> str:
        return f'"{hashlib.sha256(self.content).hexdigest()[:32]}"'


def pool(contest: str, games: Sequence[Game], players: Sequence[PoolPlayer], *, as_csv: bool) -> Representation:
    """The pool, one player a row: positions separated by ``/`` in CSV, a list in JSON, which has the games too.

    ``players`` are those who may be picked, ``games`` all of the contest.
    """
    by_id = {game.game_id: game for game in games}
    rows: list[dict[str, Any]] = [
        {
            "player_id": player.player_id,
            "name": player.player_name,
            "positions": player.positions,
            "team": player.team,
            "opponent": player.opponent,
            "home_away": "home" if player.team == by_id[player.game_id].home else "away",
            "game_id": player.game_id,
            "kickoff": instant(by_id[player.game_id].kickoff),
            "price": player.price,
        }
        for player in players
    ]
    if not as_csv:
        document = {"contest": contest, "games": [game_document(game) for game in games], "players": rows}
        return Representation(json.dumps(document, ensure_ascii=False).encode(), "application/json")
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, POOL_COLUMNS)
    writer.writeheader()
    writer.writerows(row | {"positions": "/".join(row["positions"])} for row in rows)
    return Representation(out.getvalue().encode(), "text/csv; charset=utf-8")


def receipt(revision: Revision) -> dict[str, Any]:
    """The answer to an accepted submission: enough to compute the receipt again."""
    salts = salts_by_pointer(revision.salts, len(revision.picks))
    for pointer in revision.redacted:
        del salts[pointer]
    return {
        "lineup": str(revision.lineup_id),
        "contest": revision.contest,
        "agent": str(revision.agent_id),
        "revision": revision.revision,
        "model": revision.model,
        "accepted_at": instant(revision.accepted_at),
        "receipt": revision.receipt,
        "signature": None if revision.signature is None else revision.signature.hex(),
        "key_id": revision.key_id,
        "salts": salts,
        "total_price": revision.total_price,
        "locks_at": instant(revision.locks_at),
        **_redacted(revision),
    }


def _redacted(revision: Revision) -> dict[str, Any]:
    """The tombstones of a revision by pointer; nothing where it has none, as nearly every one."""
    if not revision.redacted:
        return {}
    return {
        "redacted": {
            pointer: {
                "leaf": tombstone.leaf.hex(),
                "reason": tombstone.reason,
                "redacted_at": instant(tombstone.redacted_at),
            }
            for pointer, tombstone in sorted(revision.redacted.items())
        }
    }


def own(revision: Revision) -> dict[str, Any]:
    """A revision as its own agent sees it: the receipt and the body it was given for."""
    return {**receipt(revision), "body": json.loads(revision.body)}
