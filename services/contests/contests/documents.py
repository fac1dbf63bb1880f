"""What contests shows: contests, pools and revisions as JSON and CSV, and ``skill.md``."""

import csv
import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from common.canonical import instant
from common.events import Game, PoolPlayer
from common.points import as_points
from contests.domain import CODES, DAYS, LINEUP_FIELDS, MAX_BODY, PICK_FIELDS, Ruleset, weekday
from contests.store import Contest, Revision

POOL_COLUMNS = ("player_id", "name", "positions", "team", "opponent", "home_away", "game_id", "kickoff", "price")


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
    }


def whole(contest: Contest, rules: Ruleset, games: Sequence[Game], now: datetime) -> dict[str, Any]:
    """A contest with its rules and games. Points of the scoring are hundredths, those of a projected score points."""
    return {
        **brief(contest, now),
        "cap": rules.cap,
        "roster": [slot.model_dump(mode="json") for slot in rules.roster],
        "ruleset": rules.ruleset,
        "scoring": rules.scoring.model_dump(mode="json"),
        "limits": rules.limits.model_dump(),
        "projected_score": {
            "at_least": rules.projected_score.at_least / 100,
            "at_most": rules.projected_score.at_most / 100,
            "decimals": 2,
        },
        "pick_confidence_points_per_1000": rules.pick_confidence_points_per_1000 / 100,
        "games": [
            {
                "game_id": game.game_id,
                "away": game.away,
                "home": game.home,
                "kickoff": instant(game.kickoff),
                "kickoff_zone": game.kickoff_zone,
            }
            for game in games
        ],
        "pool": f"/api/v1/contests/{contest.contest}/pool",
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
    """The pool, one player a row: positions separated by ``/`` in CSV, a list in JSON."""
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
        document = {"contest": contest, "players": rows}
        return Representation(json.dumps(document, ensure_ascii=False).encode(), "application/json")
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, POOL_COLUMNS)
    writer.writeheader()
    writer.writerows(row | {"positions": "/".join(row["positions"])} for row in rows)
    return Representation(out.getvalue().encode(), "text/csv; charset=utf-8")


def receipt(revision: Revision) -> dict[str, Any]:
    """The answer to an accepted submission: enough to compute the receipt again."""
    return {
        "lineup": str(revision.lineup_id),
        "contest": revision.contest,
        "agent": str(revision.agent_id),
        "revision": revision.revision,
        "model": revision.model,
        "accepted_at": instant(revision.accepted_at),
        "receipt": revision.receipt,
        "total_price": revision.total_price,
        "locks_at": instant(revision.locks_at),
    }


def own(revision: Revision) -> dict[str, Any]:
    """A revision as its own agent sees it: the receipt and the body it was given for."""
    return {**receipt(revision), "body": json.loads(revision.body)}


# --- skill.md -----------------------------------------------------------------------------------

_pages = Environment(  # Markdown for agents, of our own data and the pool's; it is not HTML.
    loader=PackageLoader("contests"),
    autoescape=False,  # noqa: S701
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def skill(
    public_url: str,
    rules: Ruleset,
    contest: Contest | None,
    games: Sequence[Game],
    players: Sequence[PoolPlayer],
    now: datetime,
) -> str:
    """How to play, in Markdown, from the rules and the contest that agents play by now.

    Where none has been opened yet it tells of the default rules and invents an example's ids.
    """
    return _pages.get_template("skill.md").render(
        url=public_url,
        contest=contest,
        contest_id=contest.contest if contest else "2026-W04",
        locked=contest is not None and contest.is_locked(now),
        locks_at=instant(contest.locks_at) if contest else None,
        days=sorted({weekday(game.kickoff) for game in games}, key=lambda day: -DAYS.index(day)),
        games=len(games),
        players=len(players),
        rules=rules,
        per_unit=[(name, as_points(points)) for name, points in rules.scoring.per_unit.items()],
        bonuses=[(bonus.statistic, bonus.at_least, as_points(bonus.points)) for bonus in rules.scoring.bonuses],
        bands=[(name, _bands(name, rules)) for name in rules.scoring.bands],
        low=as_points(rules.projected_score.at_least),
        high=as_points(rules.projected_score.at_most),
        bar=as_points(rules.pick_confidence_points_per_1000).removesuffix(".00"),
        lineup_fields=LINEUP_FIELDS,
        pick_fields=PICK_FIELDS,
        codes=CODES,
        columns=POOL_COLUMNS,
        max_body=MAX_BODY // 1024,
        example=_example(rules, players),
    )


def _bands(name: str, rules: Ruleset) -> str:
    parts = []
    low = 0
    for band in rules.scoring.bands[name]:
        end = "or more" if band.up_to is None else f"to {band.up_to}"
        reach = f"{low}" if band.up_to == low else f"{low} {end}"
        parts.append(f"{reach}: {as_points(band.points)}")
        low = (band.up_to or 0) + 1
    return ", ".join(parts)


def _example(rules: Ruleset, players: Sequence[PoolPlayer]) -> str:
    """A lineup of the right shape, one pick a line: for each slot the cheapest player left who may play there."""
    free = sorted(players, key=lambda player: (player.price, player.player_id))
    picks = []
    for slot in rules.roster:
        player = next((one for one in free if set(one.positions) & set(slot.positions)), None)
        if player is not None:
            free.remove(player)
        pick = {
            "slot": slot.slot,
            "player_id": player.player_id if player else f"<a {'/'.join(slot.positions)} of the pool>",
            "rationale": "Why this player, at this price, this week.",
            "confidence": 0.4,
            "main_factor": "volume at a low price",
        }
        picks.append(json.dumps(pick, ensure_ascii=False))
    rest = '"thesis": "What this lineup bets on.", "projected_score": 92.5, "confidence": 0.5}'
    return '{"picks": [\n  ' + ",\n  ".join(picks) + "\n],\n" + rest
