"""What settlement does: import statistics, settle a contest.

The errors, beside their use::

    Problem
    ├── StatisticsInvalid        422   a file that cannot be used, with the line and column of each fault
    ├── StatisticsFinal          409   provisional statistics for a week that is final
    ├── ContestCancelled         409   it was called off before its lock
    ├── LineupsMissing           409   events are still arriving; try again
    ├── LineupsSurplus           409   more lineups than the lock announced
    ├── StatisticsMissing        409   no final statistics of the contest's week
    ├── StatisticsIncomplete     409   whole games of the contest have no statistic
    ├── ReasonRequired           409   a correction, or an incomplete week, must say why
    ├── NotSettleable            409   the pool has no lineup, or its numbers cannot be solved
    ├── Moving                   409   statistics or lineups changed all the while; try again
    ├── CertificationFailed      500   the two methods disagree: nothing is settled
    ├── ImpossibleLineup         500   a frozen lineup that the contest cannot have accepted
    └── NotFound                 404
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import islice
from typing import Any

import anyio.to_thread

from common import audit
from common import events as ev
from common.clock import Clock
from common.db import Database, driver
from common.logs import logger
from common.metrics import Metrics
from common.outbox import Recorded, emit, record, recorded
from common.problems import NotFound, Problem, shown
from common.tables import Fault
from settlement import corrections
from settlement.certify import UnprovenError
from settlement.domain import BadScoring
from settlement.imports import read_statistics
from settlement.lines import Statistics, Week, line_of
from settlement.matching import MOST_LISTED, unknown
from settlement.optimal import InfeasibleError, TooFineError
from settlement.playing import GameState, states, to_play
from settlement.results import (
    Entry,
    ImpossibleLineupError,
    Outcome,
    Result,
    lineup_points,
    pool_points,
    silent_games,
    work_out,
)
from settlement.store import Basis, Imported, Known, Settled, Store
from settlement.tables import BadTable

FIRST_REASON = "final statistics"
"""The reason of a first settlement, unless the operator gives another."""

LONGEST_REASON = 500
_ROUNDS = 5
LINEUPS_A_PART = 2_000
"""Lineups of one ``scores.updated``; each takes some 70 bytes, and NATS takes messages of a million."""
_PORTION = 500
"""Events of one statement, so that other requests are answered between them."""


class StatisticsInvalid(Problem):
    status = 422
    code = "statistics-invalid"
    title = "The statistics cannot be used"


class StatisticsFinal(Problem):
    status = 409
    code = "statistics-final"
    title = "The week's statistics are final"


class ContestCancelled(Problem):
    status = 409
    code = "contest-cancelled"
    title = "The contest is cancelled"


class LineupsMissing(Problem):
    status = 409
    code = "lineups-missing"
    title = "Not all lineups have arrived"


class LineupsSurplus(Problem):
    status = 409
    code = "lineups-surplus"
    title = "More lineups than the lock announced"


class StatisticsMissing(Problem):
    status = 409
    code = "statistics-missing"
    title = "The week has no final statistics"


class StatisticsIncomplete(Problem):
    status = 409
    code = "statistics-incomplete"
    title = "Whole games have no statistics"


class ReasonRequired(Problem):
    status = 409
    code = "reason-required"
    title = "This settlement needs a reason"


class NotSettleable(Problem):
    status = 409
    code = "not-settleable"
    title = "The contest cannot be solved"


class Moving(Problem):
    status = 409
    code = "moving"
    title = "The week changed while it was settled"


class CertificationFailed(Problem):
    status = 500
    code = "certification-failed"
    title = "The optimum is not proven"


class ImpossibleLineup(Problem):
    status = 500
    code = "impossible-lineup"
    title = "A frozen lineup breaks the rules"


# --- statistics ----------------------------------------------------------------------------------


async def import_statistics(
    database: Database,
    clock: Clock,
    *files: bytes,
    season: int | None,
    week: int | None,
    final: bool,
    games: Mapping[str, GameState] | None = None,
) -> dict[str, Any]:
    """Read files of statistics and keep them, whole or not at all; tell how the locked contests stand.

    Lines replace those of the same player and week; players whom the file does not name keep theirs, so
    that a file may hold the games played so far. ``games`` says of some how far they are (``settlement.playing`` has
    the rule for all others). Returns ``{rows, blank, ignored_columns, formats, notes, final,
    weeks: [{season, week, lines, changed, contests: [{contest, unknown_players, unknown, players_without_statistics,
    scores_updated}]}]}``.
    """
    try:
        # A season is thousands of rows of text: reading them would hold up every other request.
        found = await anyio.to_thread.run_sync(_read, files, season, week)
    except BadTable as error:
        raise _invalid(error.faults, error.count) from error
    weeks = sorted(found.lines)
    if not weeks:
        wanted = "".join(
            f" of {name} {given}" for name, given in (("season", season), ("week", week)) if given is not None
        )
        raise _invalid(
            [
                Fault(None, None, why)
                for why in (f"there are {found.rows} rows{wanted} and no statistic on any of them", *found.notes)
            ],
            1 + len(found.notes),
        )
    async with database.transaction() as connection:
        store = Store(connection)
        await store.lock_statistics()
        before = await store.imported(weeks)
        if not final:
            closed = [str(one) for one, state in before.items() if state.final]
            if closed:
                raise StatisticsFinal(
                    f"Final already: {', '.join(sorted(closed))}. "
                    "Import a correction as final, then settle with a reason.",
                    weeks=sorted(closed),
                )
        now = await clock.now(connection)
        await store.keep_told(games or {})
        changed = {
            one: await store.keep_statistics(one, lines, final=final, at=now) for one, lines in found.lines.items()
        }
        written = [one for one in weeks if changed[one] or one not in before or before[one].final != final]
        if written:
            lines_of = [{"season": one.season, "week": one.week, "changed": changed[one]} for one in written]
            after = {"final": final, "weeks": lines_of}
            await audit.record(store.connection, what="import", target="statistics", after=after)
        contests: dict[Week, list[dict[str, Any]]] = {one: [] for one in weeks}
        for contest, locked in await store.contests_of(weeks):
            of = Week(contest.season, contest.week)
            lines = await store.statistics(of)
            live = locked and not final
            if live:
                await _tell_scores(store, contest, lines, now)
            missing = await anyio.to_thread.run_sync(unknown, contest, found.people[of].values(), found.lines[of])
            contests[of].append(
                {
                    "contest": contest.contest,
                    "unknown_players": len(missing),
                    "unknown": [asdict(one) for one in missing[:MOST_LISTED]],
                    "players_without_statistics": sum(
                        line_of(lines, player.player_id, player.team) is None for player in contest.players
                    ),
                    "scores_updated": live,
                }
            )
    return {
        "rows": found.rows,
        "blank": found.blank,
        "ignored_columns": list(found.ignored_columns),
        "formats": list(found.formats),
        "notes": list(found.notes[:MOST_LISTED]),
        "final": final,
        "weeks": [
            {
                "season": one.season,
                "week": one.week,
                "lines": len(found.lines[one]),
                "changed": changed[one],
                "contests": contests[one],
            }
            for one in weeks
        ],
    }


def _read(files: Sequence[bytes], season: int | None, week: int | None) -> Statistics:
    return read_statistics(*files, season=season, week=week)


def _invalid(faults: Sequence[Fault], count: int) -> StatisticsInvalid:
    more = f"; {count - 1} more" if count > 1 else ""
    return StatisticsInvalid(
        f"{faults[0]}{more}. Nothing was imported.",
        faults=[fault.document() for fault in faults],
        fault_count=count,
    )


async def _tell_scores(
    store: Store, contest: ev.ContestOpened, lines: dict[str, dict[str, int]], now: datetime
) -> None:
    entries = await store.lineups(contest.contest)
    players = pool_points(contest, lines)
    progress = states(contest, lines, now, await store.told(), final=False)
    games = {player.player_id: player.game_id for player in contest.players}
    worth = []
    for entry, picks in zip(entries, lineup_points(contest, entries, players), strict=True):
        waiting, playing = to_play((pick.player_id for pick in entry.picks), games, progress)
        worth.append(ev.LineupPoints(lineup_id=entry.lineup_id, points=sum(picks), waiting=waiting, playing=playing))
    sequence = await store.next_scores(contest.contest)
    portions = [worth[start : start + LINEUPS_A_PART] for start in range(0, len(worth), LINEUPS_A_PART)] or [[]]
    for part, portion in enumerate(portions, start=1):
        event = ev.ScoresUpdated(
            contest=contest.contest,
            sequence=sequence,
            part=part,
            parts=len(portions),
            players=_player_points(players) if part == 1 else (),
            lineups=tuple(portion),
            games=tuple(ev.GameProgress(game_id=name, state=state) for name, state in progress.items())
            if part == 1
            else (),
        )
        await emit(store.connection, event, version=sequence)


# --- settling ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Inputs:
    """All that a settlement is worked out from, as of one transaction."""

    contest: ev.ContestOpened
    entries: list[Entry]
    lines: dict[str, dict[str, int]]
    imported: Imported


async def settle(
    database: Database, clock: Clock, metrics: Metrics, contest: str, reason: str | None, *, force: bool = False
) -> tuple[Settled, bool]:
    """Settle a contest by the final statistics; the version that holds now, and whether it is new.

    The week is worked out between two transactions, in a thread; the second one writes the version, its
    results and their events together, or nothing, and only if what it was worked out from still holds.
    The same results again are the same version; other ones need a reason. A week with games of which nothing
    is known is settled only with ``force`` and a reason: one that was cancelled scores zero for all (S3).
    """
    with metrics.settle_seconds.time():
        for _ in range(_ROUNDS):
            async with database.transaction() as connection:
                inputs = await _inputs(Store(connection), contest)
            outcome = await worked_out(inputs, metrics)
            async with database.transaction() as connection:
                store = Store(connection)
                await store.lock_contest(contest)
                if await _still_holds(store, inputs):
                    return await _written(store, clock, metrics, inputs, outcome, reason, force)
    raise Moving(
        f"Statistics or lineups of {contest} changed {_ROUNDS} times while it was settled; try again.", retry=True
    )


async def known_contest(store: Store, contest: str) -> Known:
    """What is known of a contest. Raises ``NotFound``."""
    known = await store.contest(contest)
    if known is None:
        raise NotFound(
            f"No contest called {shown(contest)} has been opened; `mafl contest list` shows those there are, "
            "and a draft takes `mafl contest open` first."
        )
    return known


def hindrances(known: Known, have: int, imported: Imported | None) -> Iterator[Problem]:
    """All that keeps a contest from being settled; ``have`` is how many lineups have arrived."""
    contest = known.contest
    if known.cancelled_because is not None:
        yield ContestCancelled(
            f"{contest} was called off before its lock: {known.cancelled_because} There is nothing to settle.",
            contest=contest,
            reason=known.cancelled_because,
        )
        return
    if known.opened is None or known.entries is None:
        yield LineupsMissing(
            f"{contest} is not locked yet, or the news of its lock is on its way; settle it after its lock, "
            "which `mafl contest list` shows."
            if known.entries is None
            else f"The pool of {contest} is on its way; try again.",
            have=have,
            need=known.entries,
            waits_for=[
                name
                for name, part in (("contest.opened", known.opened), ("contest.locked", known.entries))
                if part is None
            ],
        )
    elif not known.scheduled:
        yield LineupsMissing(
            f"The schedule by which {contest} locked is on its way; try again.",
            have=have,
            need=known.entries,
            waits_for=["contest.rescheduled"],
        )
    elif have < known.entries:
        yield LineupsMissing(
            f"{have} of {known.entries} lineups of {contest} have arrived; try again.",
            have=have,
            need=known.entries,
            waits_for=["lineup.locked"],
        )
    elif have > known.entries:
        yield LineupsSurplus(
            f"The lock of {contest} announced {known.entries} lineups and {have} arrived.",
            have=have,
            need=known.entries,
        )
    if known.opened is not None and (imported is None or not imported.final):
        week = Week(known.opened.season, known.opened.week)
        state = "only provisional" if imported else "no"
        yield StatisticsMissing(
            f"{week} has {state} statistics; import final ones: `mafl stats import FILE --final`.",
            season=week.season,
            week=week.week,
        )


async def _inputs(store: Store, contest: str) -> Inputs:
    """All that is there to settle by. Raises the first of ``hindrances``."""
    known = await known_contest(store, contest)
    week = Week(known.opened.season, known.opened.week) if known.opened is not None else None
    imported = (await store.imported([week])).get(week) if week is not None else None
    for problem in hindrances(known, await store.count_lineups(contest), imported):
        raise problem
    if known.opened is None or week is None or imported is None:
        raise RuntimeError(f"nothing hinders {contest} from being settled, and not all of it is here")
    return Inputs(known.opened, await store.lineups(contest), await store.statistics(week), imported)


async def worked_out(inputs: Inputs, metrics: Metrics) -> Outcome:
    """The week, solved and certified, in a thread. Raises what keeps its numbers from being settled."""
    contest = inputs.contest.contest
    try:
        outcome = await anyio.to_thread.run_sync(work_out, inputs.contest, inputs.entries, inputs.lines)
    except (InfeasibleError, TooFineError, UnprovenError, BadScoring) as error:
        raise NotSettleable(f"{contest}: {error}.") from error
    except ImpossibleLineupError as error:
        logger.error("a frozen lineup breaks the rules; nothing is settled", contest=contest, error=str(error))
        raise ImpossibleLineup(f"{contest}: {error}; nothing is settled.") from error
    certificate = outcome.certificate
    if not outcome.proven:
        metrics.certification_failures.inc()
        logger.error(
            "the two methods do not agree on the optimum; nothing is settled",
            contest=contest,
            programme=certificate.claimed,
            cp_sat=certificate.points,
            status=certificate.status,
            counted=outcome.counted,
        )
        raise CertificationFailed(
            f"{contest}: the programme's best is {certificate.claimed}, CP-SAT's is {certificate.points} "
            f"({certificate.status}), the best of all that were counted is {outcome.counted}; nothing is settled.",
            programme=certificate.claimed,
            cp_sat=certificate.points,
            proof=certificate.status,
            counted=outcome.counted,
        )
    return outcome


async def _still_holds(store: Store, inputs: Inputs) -> bool:
    contest = inputs.contest
    week = Week(contest.season, contest.week)
    imported = (await store.imported([week], hold=True)).get(week)
    if imported != inputs.imported or await store.count_lineups(contest.contest) != len(inputs.entries):
        return False
    known = await store.contest(contest.contest)
    return known is not None and known.opened == contest  # An operator may have said what became of a game.


async def _written(
    store: Store, clock: Clock, metrics: Metrics, inputs: Inputs, outcome: Outcome, reason: str | None, force: bool
) -> tuple[Settled, bool]:
    contest = inputs.contest
    latest = await store.latest(contest.contest)
    if latest is not None and latest.digest == outcome.digest:
        return latest, False
    for problem in demands(contest, inputs.lines, latest, reason, force=force):
        raise problem
    optimal = ev.OptimalLineup(
        points=outcome.optimal.points, price=outcome.optimal.price, players=outcome.optimal.players
    )
    basis = await store.basis(contest.contest, latest.settlement) if latest else None
    lines = corrections.kept_lines(contest, inputs.lines)
    players, moved = corrected(contest.scoring, outcome, lines, basis) if basis else ((), 0)
    settled = Settled(
        contest=contest.contest,
        settlement=latest.settlement + 1 if latest else 1,
        reason=reason or FIRST_REASON,
        scoring=contest.scoring.scoring,
        settled_at=await clock.now(store.connection),
        optimal=optimal,
        lineups=len(outcome.results),
        digest=outcome.digest,
        feasible_lineups=str(outcome.standing.lineups) if outcome.standing is not None else None,
        no_ranks=outcome.no_ranks,
        corrected=players,
        moved=moved,
    )
    await store.keep_settlement(settled, outcome, lines)
    results = iter(outcome.results)
    raw = await driver(store.connection)
    while portion := list(islice(results, _PORTION)):
        await record(raw, [_lineup_settled(settled, result) for result in portion])
    await emit(store.connection, _week_settled(settled, outcome), settled.settlement)
    await audit.record(
        store.connection,
        what="settle",
        target=f"contest/{contest.contest}",
        before=None if latest is None else {"settlement": latest.settlement, "digest": latest.digest},
        after={
            "settlement": settled.settlement,
            "digest": settled.digest,
            "reason": settled.reason,
            "without": [game.game_id for game in silent_games(contest, inputs.lines)],
        },
    )
    metrics.settlements.inc()
    return settled, True


def demands(
    contest: ev.ContestOpened,
    lines: dict[str, dict[str, int]],
    latest: Settled | None,
    reason: str | None,
    *,
    force: bool,
) -> Iterator[Problem]:
    """What an operator has to give before results that differ from those of ``latest`` are settled."""
    silent = silent_games(contest, lines)
    if silent and not force:
        yield StatisticsIncomplete(
            f"{len(silent)} of the {len(contest.games)} games of {contest.contest} have no statistic of any player, or "
            f"are suspended and have not gone on: {', '.join(f'{game.away} at {game.home}' for game in silent)}. "
            "Import the rest of the week, or say what became of a game (`mafl contest became`); with `force` and a "
            "reason the week is settled as it is.",
            games=[game.game_id for game in silent],
        )
    if silent and not reason:
        yield ReasonRequired(f"{contest.contest} would be settled without {len(silent)} of its games: say why.")
    elif latest is not None and not reason:
        yield ReasonRequired(
            f"{contest.contest} was settled as version {latest.settlement} and its results differ now: say why.",
            settlement=latest.settlement,
        )


def corrected(
    scoring: ev.Scoring, outcome: Outcome, lines: dict[str, dict[str, int]], basis: Basis
) -> tuple[tuple[ev.CorrectedPlayer, ...], int]:
    """What a version differs in from the one before: players, and how many lineups."""
    players = corrections.corrected(scoring, basis.players, outcome.players, basis.lines, lines)
    scored = ((result.entry.lineup_id, result.points) for result in outcome.results)
    return players, corrections.moved(basis.lineups, scored)


def _lineup_settled(settled: Settled, result: Result) -> Recorded:
    """``LineupSettled`` of a result, of plain values: there is one for every lineup, and its model costs more."""
    entry = result.entry
    data = {
        "contest": settled.contest,
        "settlement": settled.settlement,
        "lineup_id": entry.lineup_id,
        "agent_id": entry.agent_id,
        "model": entry.model,
        "marks": entry.marks,
        "points": result.points,
        "share": result.share,
        "regret": result.regret,
        "picks": [
            {"slot": pick.slot, "player_id": pick.player_id, "price": pick.price, "points": points}
            for pick, points in zip(entry.picks, result.picks, strict=True)
        ],
        "rank": result.rank,
        "tied": result.tied,
        "percentile": result.percentile,
    }
    return recorded(ev.LineupSettled, f"lineup/{entry.lineup_id}", data, settled.settlement)


def _week_settled(settled: Settled, outcome: Outcome) -> ev.WeekSettled:
    return ev.WeekSettled(
        contest=settled.contest,
        settlement=settled.settlement,
        reason=settled.reason,
        scoring=settled.scoring,
        settled_at=settled.settled_at,
        optimal=settled.optimal,
        certified=True,
        players=_player_points(outcome.players),
        lineups=settled.lineups,
        digest=settled.digest,
        feasible_lineups=settled.feasible_lineups,
        no_ranks=settled.no_ranks,
        corrected=settled.corrected,
    )


def _player_points(players: dict[str, int]) -> tuple[ev.PlayerPoints, ...]:
    return tuple(ev.PlayerPoints(player_id=player_id, points=points) for player_id, points in players.items())
