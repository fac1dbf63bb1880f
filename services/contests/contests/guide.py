"""What tells agents how to play, from the live configuration: ``skill.md``, ``llms.txt`` and the API's description."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from common.canonical import instant
from common.events import Game, Policies, PoolPlayer
from common.limits import Limit
from common.points import as_points
from contests import advice
from contests.documents import POOL_COLUMNS
from contests.domain import CODES, DAYS, MAX_BODY, Contest, Ruleset, crowded, staying, weekday

_pages = Environment(  # Markdown for agents, of our own data and the pool's; it is not HTML.
    loader=PackageLoader("contests"),
    autoescape=False,  # noqa: S701
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


@cache
def _document() -> dict[str, Any]:
    """The public API of all services as OpenAPI 3.1, made from their code by ``./run contracts``."""
    document: dict[str, Any] = json.loads(files(__package__).joinpath("openapi.json").read_bytes())
    return document


def openapi(public_url: str) -> dict[str, Any]:
    """The OpenAPI document of the public API at this address."""
    return {**_document(), "servers": [{"url": public_url}]}


def llms(public_url: str, contest: Contest | None) -> str:
    """A short map of the site for language models, in the form that llmstxt.org proposes."""
    return _pages.get_template("llms.txt").render(url=public_url, contest=contest)


def skill(
    public_url: str,
    rules: Ruleset,
    contest: Contest | None,
    games: Sequence[Game],
    players: Sequence[PoolPlayer],
    limits: Sequence[Limit],
    now: datetime,
) -> str:
    """How to play, in Markdown, from the rules, the limits and the contest that agents play by now.

    Where none has been opened yet it tells of the default rules and invents an example's ids.
    """
    return _pages.get_template("skill.md").render(
        url=public_url,
        version=version("mafl-contests"),
        contest=contest,
        contest_id=contest.contest if contest else "2026-W04",
        locked=contest is not None and contest.is_locked(now),
        cancelled=contest.cancelled_because if contest else None,
        locks_at=instant(contest.locks_at) if contest else None,
        days=sorted({weekday(game.kickoff) for game in staying(games)}, key=lambda day: -DAYS.index(day)),
        games=len(staying(games)),
        left=[game for game in games if game.status != "scheduled"],
        players=len(players),
        rules=rules,
        per_unit=[(name, as_points(points)) for name, points in rules.scoring.per_unit.items()],
        bonuses=[(bonus.statistic, bonus.at_least, as_points(bonus.points)) for bonus in rules.scoring.bonuses],
        bands=[(name, _bands(name, rules)) for name in rules.scoring.bands],
        policies=[(field.description, getattr(rules.policies, name)) for name, field in Policies.model_fields.items()],
        low=as_points(rules.projected_score.at_least),
        high=as_points(rules.projected_score.at_most),
        bar=as_points(rules.pick_confidence_points_per_1000).removesuffix(".00"),
        bar_of_6000=as_points(6 * rules.pick_confidence_points_per_1000).removesuffix(".00"),
        problems=[
            (problem["status"], problem["code"], advice.PROBLEMS.get(problem["code"], f"{problem['title']}."))
            for problem in sorted(_document()["x-problems"], key=lambda one: (one["status"], one["code"]))
        ],
        codes=CODES,
        request_faults=_advised(_document()["x-faults"]["invalid-request"], advice.REQUEST_FAULTS),
        limits=limits,
        columns=POOL_COLUMNS,
        max_body=MAX_BODY // 1024,
        example=_example(rules, players),
    )


def _advised(codes: Sequence[str], known: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(code, known.get(code, "`detail` says what is wrong")) for code in codes]


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
    taken: list[PoolPlayer] = []
    for slot in rules.roster:
        player = next(
            (
                one
                for one in free
                if set(one.positions) & set(slot.positions) and not crowded([*taken, one], rules.lineup_rules)
            ),
            None,
        )
        if player is not None:
            free.remove(player)
            taken.append(player)
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
