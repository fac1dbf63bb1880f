"""The JSON documents of the public API. Points in hundredths, prices as given, share in millionths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from boards.beside import Beside
from boards.comparisons import Difference
from boards.domain import AgentCard, Kind, Metric, Row, Table
from boards.draw import RESAMPLES
from boards.ledger import Correction, Version
from boards.method import METHOD
from boards.store import Store
from boards.views import (
    AgentHistory,
    Board,
    Boards,
    Contest,
    Lineup,
    ModelHistory,
    Optimal,
    Player,
    Results,
    Standing,
    Text,
)
from common.canonical import canonical_json, instant, sha256_hex

UNITS = {Metric.POINTS: "hundredths of a point", Metric.SHARE: "millionths of the optimum"}
UNITS_OF = {
    "points": UNITS[Metric.POINTS],
    "projected_score": UNITS[Metric.POINTS],
    "regret": UNITS[Metric.POINTS],
    "share": UNITS[Metric.SHARE],
}
"""Stated in each document that holds such numbers: they are not the units in which a lineup is submitted."""


def row_document(row: Row, rank: int | None = None, **more: Any) -> dict[str, Any]:
    """A row with all that a reader needs to draw its interval again."""
    return {
        "rank": rank,
        "label": row.label,
        ("name" if row.kind is Kind.AGENT else "model"): row.name,
        **more,
        "contests": list(row.contests),
        "sums": list(row.sums),
        "counts": list(row.counts),
        "mean": row.interval.mean,
        "low": row.interval.low,
        "high": row.interval.high,
        "weeks": row.weeks,
        "lineups": row.lineups,
        "marks": list(row.marks),
    }


def difference_document(found: Difference) -> dict[str, Any]:
    """By how much ``one`` is ahead of ``other``; ``label`` seeds the draw."""
    return {
        "one": found.one,
        "other": found.other,
        "label": found.label,
        **asdict(found.interval),
        "apart": found.apart,
    }


def _beside(kind: Kind, found: Beside) -> dict[str, Any]:
    """What stands beside a row. Rows of one agent have no agents to resample or to count."""
    document: dict[str, Any] = {
        "difference": difference_document(found.difference) if found.difference is not None else None,
        "best": found.best,
    }
    if kind is not Kind.AGENT:
        document["two_way"] = asdict(found.two_way) if found.two_way is not None else None
        document["behind"] = asdict(found.concentration) if found.concentration is not None else None
    return document


def table_document(
    table: Table, beside: Mapping[str, Beside], models: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """A table: leader, winner (or ``None``), the verdict in words, rows with what stands beside them."""
    rows = []
    for place, row in enumerate(table.rows, start=1):
        more = {"model": models[row.label]} if models is not None else {}
        more |= _beside(row.kind, beside[row.label])
        rows.append(row_document(row, place if row.interval.mean is not None else None, **more))
    return {
        "leader": table.verdict.leader,
        "winner": table.verdict.winner,
        "verdict": table.verdict.text,
        "rows": rows,
    }


def board_document(made: Board) -> dict[str, Any]:
    """The model board, with the control cohort as a table of its own, or the agent board.

    The API's answer says besides whether it is a ``replay``; the digest, which is of results alone, does not.
    """
    on_models = made.kind is Kind.MODEL
    return {
        "board": "models" if on_models else "agents",
        "season": made.season,
        "seasons": list(made.seasons),
        "metric": made.metric.value,
        "unit": UNITS[made.metric],
        "contests": list(made.contests),
        "method": METHOD.document(),
        "resamples": RESAMPLES,
        **({"cohort": table_document(made.cohort, made.beside), "observational": True} if on_models else {}),
        **table_document(made.table, made.beside, None if on_models else made.models),
    }


def differences_document(made: Board) -> dict[str, Any]:
    """Every two models of the control cohort, week by week over the weeks that both played."""
    return {
        "season": made.season,
        "seasons": list(made.seasons),
        "metric": made.metric.value,
        "unit": UNITS[made.metric],
        "contests": list(made.contests),
        "method": METHOD.document(),
        "rows": [row.label for row in made.cohort.rows],
        "differences": [difference_document(found) for found in made.differences],
    }


async def digest_document(store: Store, boards: Boards) -> dict[str, Any]:
    """SHA-256 over the canonical JSON of both boards of every season by both metrics; no id and no time is in it."""
    seasons = await store.seasons()
    made = [
        board_document(await boards.get(store, kind, metric, season))
        for season in seasons
        for kind in (Kind.MODEL, Kind.AGENT)
        for metric in Metric
    ]
    return {"digest": sha256_hex(canonical_json(made)), "seasons": seasons, "boards": len(made)}


def agent_document(card: AgentCard) -> dict[str, Any]:
    """Who entered: by name where the agent is claimed and its name cleared, else by a neutral handle."""
    return {"name": card.shown, "claimed": card.claimed, "marks": list(card.marks) if card.shown_by_name else []}


def contest_document(contest: Contest) -> dict[str, Any]:
    return {
        "contest": contest.contest,
        "season": contest.season,
        "week": contest.week,
        "state": contest.state.value,
        "locks_at": instant(contest.locks_at),
        "units": UNITS_OF,
    }


def text_document(text: Text) -> dict[str, Any]:
    """A text, or the reason for its absence; of one that was redacted when and why."""
    document: dict[str, Any] = {"text": text.text, "withheld": text.withheld.value if text.withheld else None}
    if text.tombstone is not None:
        at, reason = instant(text.tombstone.redacted_at), text.tombstone.reason
        document["redacted"] = {"redacted_at": at, "reason": reason}
    return document


def lineups_document(found: Results) -> dict[str, Any]:
    """The locked lineups: picks, numbers, and words where they are published."""
    contest = found.contest
    return {
        **contest_document(contest),
        "locked_at": instant(contest.locked_at) if contest.locked_at is not None else None,
        "entries": contest.entries,
        "lineups": [
            {
                **_lineup(lineup),
                "revision": lineup.revision,
                "total_price": lineup.total_price,
                "projected_score": lineup.projected_score,
                "confidence": lineup.confidence,
                "points": lineup.points,
                "thesis": text_document(lineup.thesis),
                "opening": _opening(lineup),
                "picks": [
                    {
                        "index": pick.index,
                        "slot": pick.slot,
                        **_player(pick.player),
                        "price": pick.price,
                        "confidence": pick.confidence,
                        "points": pick.points,
                        "rationale": text_document(pick.rationale),
                        "main_factor": text_document(pick.main_factor),
                    }
                    for pick in lineup.picks
                ],
            }
            for lineup in found.lineups
        ],
    }


def _opening(lineup: Lineup) -> dict[str, Any] | None:
    opening = lineup.opening
    if opening is None:
        return None
    return {
        "agent": str(opening.agent_id),
        "model": opening.model,
        "accepted_at": instant(opening.accepted_at),
        "salts": dict(opening.salts),
    }


def results_document(found: Results) -> dict[str, Any]:
    """Scores of a locked contest; its ``state`` is ``locked``, then ``provisional``, then ``final``."""
    return {
        **contest_document(found.contest),
        "settlement": found.settlement,
        "latest_settlement": found.latest,
        "reason": found.reason,
        "games": dict(found.games),
        "entries": found.contest.entries,
        "optimal": _optimal(found.optimal) if found.optimal is not None else None,
        "feasible_lineups": str(found.feasible_lineups) if found.feasible_lineups is not None else None,
        "no_ranks": found.no_ranks,
        "lineups": [
            {
                **_lineup(lineup),
                "rank": lineup.rank,
                "points": lineup.points,
                "share": lineup.share,
                "regret": lineup.regret,
                "to_play": None
                if lineup.to_play is None
                else {"waiting": lineup.to_play.waiting, "playing": lineup.to_play.playing},
                "standing": _standing(lineup.standing),
                "picks": [
                    {
                        "slot": pick.slot,
                        "player_id": pick.player.player_id,
                        "price": pick.price,
                        "points": pick.points,
                    }
                    for pick in lineup.picks
                ],
            }
            for lineup in found.lineups
        ],
        "players": [{**_player(player), "price": player.price, "points": player.points} for player in found.players],
    }


def optimal_document(contest: Contest, found: Optimal) -> dict[str, Any]:
    return {**contest_document(contest), "settlement": found.settlement, **_optimal(found)}


def ledger_document(found: Sequence[Version]) -> dict[str, Any]:
    """Every settlement version of every week, the newest first."""
    return {"units": UNITS_OF, "versions": [_version(version) for version in found]}


def correction_document(found: Correction) -> dict[str, Any]:
    """One version with the lineups and rows that it moved."""
    return {
        **_version(found.version),
        "units": UNITS_OF,
        "lineups_moved": [
            {
                "lineup": str(lineup.lineup_id),
                "agent": agent_document(lineup.agent),
                "model": lineup.model,
                "points": _change(lineup.points_before, lineup.points),
                "share": _change(lineup.share_before, lineup.share),
                "rank": _change(lineup.rank_before, lineup.rank),
            }
            for lineup in found.lineups
        ],
        "rows_moved": [
            {
                "board": _BOARDS[row.kind],
                "label": row.label,
                "name": row.name,
                "metric": row.metric.value,
                "unit": UNITS[row.metric],
                "week": _change(row.week_before, row.week),
                "mean": _change(row.mean_before, row.mean),
                "rank": _change(row.rank_before, row.rank),
            }
            for row in found.rows
        ],
    }


_BOARDS = {Kind.COHORT: "cohort", Kind.MODEL: "models", Kind.AGENT: "agents"}


def _change(before: float | None, after: float | None) -> dict[str, float | None]:
    return {"before": before, "after": after}


def _version(version: Version) -> dict[str, Any]:
    return {
        "contest": version.contest,
        "season": version.season,
        "week": version.week,
        "settlement": version.settlement,
        "latest_settlement": version.latest,
        "reason": version.reason,
        "settled_at": instant(version.settled_at),
        "digest": version.digest,
        "lineups": version.lineups,
        "moved": version.moved,
        "optimum": _change(version.optimum_before, version.optimum),
        "corrected": [
            {
                **_player(one.player),
                "points": _change(one.before, one.after),
                "statistics": [
                    {"statistic": told.statistic, **_change(told.before, told.after)} for told in one.statistics
                ],
            }
            for one in version.corrected
        ],
    }


def agent_history_document(history: AgentHistory) -> dict[str, Any]:
    """An agent's rows and locked lineups."""
    card = history.card
    models = {entry.model for entry in history.entries}
    return {
        "agent": {**agent_document(card), "model": history.model, "models": sorted(models)},
        "units": UNITS_OF,
        "seasons": _rows(history.rows),
        "lineups": [
            {
                "contest": entry.contest,
                "lineup": str(entry.lineup_id),
                "model": entry.model,
                "projected_score": entry.projected_score,
                "confidence": entry.confidence,
                "points": entry.points,
                "share": entry.share,
                "regret": entry.regret,
                "standing": _standing(entry.standing),
            }
            for entry in history.entries
        ],
    }


def model_history_document(history: ModelHistory) -> dict[str, Any]:
    """A model's rows and weeks; no agent is named in it."""
    return {
        "model": history.model,
        "units": UNITS_OF,
        "seasons": _rows(history.rows),
        "cohort": _rows(history.cohort_rows),
        "weeks": [
            {
                "contest": week.contest,
                "lineups": week.lineups,
                "cohort_lineups": week.cohort_lineups,
                "settled": week.settled,
                "points": week.points,
                "share": week.share,
            }
            for week in history.weeks
        ],
    }


def _rows(by_season: Mapping[int, Mapping[Metric, Row]]) -> list[dict[str, Any]]:
    return [
        {"season": season, **{metric.value: row_document(row) for metric, row in rows.items()}}
        for season, rows in by_season.items()
    ]


def _lineup(lineup: Lineup) -> dict[str, Any]:
    return {"lineup": str(lineup.lineup_id), "agent": agent_document(lineup.agent), "model": lineup.model}


def _standing(found: Standing | None) -> dict[str, Any] | None:
    """Numbers of lineups as decimal digits: they are more than a JSON reader's numbers hold exactly."""
    if found is None:
        return None
    return {
        "rank": str(found.rank),
        "tied": str(found.tied),
        "of": str(found.of),
        "percentile": found.percentile,
    }


def _player(player: Player) -> dict[str, Any]:
    return {
        "player_id": player.player_id,
        "name": player.name,
        "positions": list(player.positions),
        "team": player.team,
        "opponent": player.opponent,
    }


def _optimal(found: Optimal) -> dict[str, Any]:
    return {
        "points": found.points,
        "price": found.price,
        "players": [{**_player(player), "price": player.price, "points": player.points} for player in found.players],
    }
