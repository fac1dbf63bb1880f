"""Imports of salary files: what they would make of contests, and making it, all or nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from typing import Any, Literal

import anyio.to_thread

from common import audit
from common.canonical import instant
from common.events import Game
from common.outbox import emit
from common.service import Runtime
from common.tables import Malformed
from contests import commands, imports, rulesets
from contests.changes import Breaks, Changes, Terms, breaks, compare
from contests.domain import Contest, Coverage, Day, Known, Ruleset, lock_instant, staying, sunday_of
from contests.imports import players
from contests.imports.players import Directory
from contests.problems import ContestExists, NothingToPlay, RulesetUnknown
from contests.store import Store

Outcome = Literal["created", "replaced", "changed", "unchanged", "refused"]


@dataclass(frozen=True, slots=True)
class Upload:
    """What comes with an import: the list, and beside it the schedule and files of players where they are given."""

    file: bytes
    schedule: bytes | None = None
    players: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Wanted:
    """How a file is to be imported: which week of it, by which rules, on which days, and whether for real.

    ``force`` changes a contest that lineups have come in to.
    """

    season: int | None
    week: int | None
    ruleset: str | None
    days: tuple[Day, ...]
    dry_run: bool
    force: bool


@dataclass(slots=True)
class Imported:
    """What became of each week's contest, or would become; by contest, what that changes and breaks."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    changes: dict[str, Changes] = field(default_factory=dict)
    breaks: dict[str, Breaks] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        return {
            "outcomes": self.outcomes,
            "changes": {contest: changes.document() for contest, changes in self.changes.items()},
            "breaks": {contest: found.document() for contest, found in self.breaks.items()},
        }


async def read_file(upload: Upload, wanted: Wanted, known: Sequence[Known]) -> imports.Import:
    """Read a salary file in a thread of its own; ``known`` are the players that earlier imports taught.

    Raises ``FileMalformed``, ``RulesetUnknown``.
    """
    try:
        rules = rulesets.load(wanted.ruleset) if wanted.ruleset else None
        return await anyio.to_thread.run_sync(partial(_read, upload, wanted, rules, known))
    except rulesets.UnknownRuleset as error:
        detail = f"There is no ruleset {error.name[:100]!r}; there are: {', '.join(error.known)}."
        raise RulesetUnknown(detail, known=error.known) from None
    except Malformed as error:
        raise commands.malformed(error, "Nothing was imported.") from None


def _read(upload: Upload, wanted: Wanted, rules: Ruleset | None, known: Sequence[Known]) -> imports.Import:
    given = players.read(*upload.players)
    directory = Directory((*known, *given.lines), given.initials, strict=bool(upload.players))
    file = imports.read(
        upload.file,
        wanted.season,
        wanted.week,
        ruleset=rules,
        days=wanted.days,
        schedule=upload.schedule,
        players=directory,
    )
    return replace(file, taught=given.lines)


async def import_weeks(runtime: Runtime, store: Store, file: imports.Import, wanted: Wanted) -> Imported:
    """Store each week of a file, all or nothing; what became (or would become) of each.

    A contest that was not open becomes a draft: ``created``, ``replaced`` (an earlier draft) or ``unchanged``. One that
    is open is ``changed``, and the event that opened it told again, while no lineup has come in, or by force. No lineup
    is touched by it. Raises ``NothingToPlay``, and ``ContestExists`` where a contest may not be changed; a dry run says
    ``refused`` of either, with the reason among the week's notes or in what would break. The weeks of the file become
    what their contests have: games that have left are in none.
    """
    done = Imported()
    for week in sorted(file.weeks, key=lambda week: week.contest):
        if not week.contest or week.locks_at is None or not week.players:
            _nothing(week, _why_nothing(file, week), wanted, done)
            continue
        rules = rulesets.load(wanted.ruleset or week.ruleset)
        if not wanted.dry_run:  # What is changed is held; who only asks keeps nobody waiting.
            await store.hold(week.contest)
        before = await store.contest(week.contest)
        sunday = sunday_of([game.kickoff for game in (*week.games, *week.outside)])
        if before is not None and not file.scheduled:
            sunday = before.sunday
        games = _decide(week, await store.games(week.contest), Coverage(wanted.days, sunday), scheduled=file.scheduled)
        if not staying(games):
            _nothing(week, f"Every game of {week.contest} has left it.", wanted, done)
            continue
        week.locks_at = lock_instant(games)
        after = Terms(rules, games, week.players, week.locks_at, file.source)
        if before is None:
            done.outcomes[week.contest] = "created"
        else:
            await _compare(runtime, store, before, after, wanted, done)
        if wanted.dry_run or done.outcomes[week.contest] == "unchanged":
            continue
        await _write(store, before, after, week, wanted, sunday)
        if before is not None:
            await _record(store, before, after, done)
    written = {contest: outcome for contest, outcome in done.outcomes.items() if outcome != "unchanged"}
    if not wanted.dry_run:
        await store.learn_players(_learned(file))
        if written:
            used = sorted({wanted.ruleset or week.ruleset for week in file.weeks})
            told = {"contests": written, "ruleset": ", ".join(used), "price_source": file.source}
            await audit.record(store.connection, what="import", target="contests", after=told)
    return done


def _why_nothing(file: imports.Import, week: imports.Week) -> str:
    """Why a week of a file makes no contest."""
    if week.contest:
        return f"{week.contest} has no covered game with a priced player."
    reasons = (note.reason for note in (*week.unmatched, *week.refused))
    return " ".join(file.notes) or f"No row of the list has a game that tells its week: {next(reasons, '')}."


def _nothing(week: imports.Week, why: str, wanted: Wanted, done: Imported) -> None:
    """Note in a dry run that a week would make no contest. Raises ``NothingToPlay`` where it is meant."""
    if not wanted.dry_run:
        raise NothingToPlay(f"{why} Nothing was imported.")
    week.notes.append(f"{why} An import would be refused.")
    if week.contest:
        done.outcomes[week.contest] = "refused"


def _decide(week: imports.Week, before: Sequence[Game], coverage: Coverage, *, scheduled: bool) -> tuple[Game, ...]:
    """The games that a contest has after an import: those of the file, as far as nothing has been decided since.

    A list may be older than what an operator or the schedule has done to the games ``before``, so it moves none of
    them and brings none back. Where a schedule came with the file (``scheduled``), its kickoffs count, and a game that
    was moved out comes back where it has another kickoff; what was cancelled stays so. A game that has left is kept
    also where the file has it no more, for the next list that has it. The week is told of all this.
    """
    by_id = {game.game_id: game for game in before}
    by_teams = {frozenset((game.away, game.home)): game for game in before}  # Two teams meet once a week.
    games: list[Game] = []
    kept: set[str] = set()
    for listed in week.games:
        was = by_id.get(listed.game_id) or by_teams.get(frozenset((listed.away, listed.home)))
        if was is None:
            games.append(listed)
            continue
        kept.add(was.game_id)
        stays = was.status == "cancelled" or (
            was.status == "moved" and (not scheduled or listed.kickoff == was.kickoff)
        )
        if stays:
            games.append(listed.model_copy(update={"kickoff": was.kickoff, "status": was.status}))
        elif scheduled:
            games.append(listed)
        else:
            if listed.kickoff != was.kickoff:
                week.differs(listed, was.kickoff)
            games.append(coverage.moved(listed, was.kickoff))
    games += [game for game in before if game.status != "scheduled" and game.game_id not in kept]
    week.games = staying(games)
    week.notes += [
        f"{game.game_id} has left {week.contest} ({game.status}); its players cannot be picked."
        for game in games
        if game.status != "scheduled"
    ]
    return tuple(games)


async def _compare(
    runtime: Runtime, store: Store, before: Contest, after: Terms, wanted: Wanted, done: Imported
) -> None:
    """Note what an import does to a contest that is there. Raises ``ContestExists`` where it may not and would."""
    name = before.contest
    old = Terms(
        await store.ruleset(name),
        await store.games(name),
        await store.players(name),
        before.locks_at,
        before.price_source,
    )
    changes = compare(old, after)
    if not changes and before.state != "cancelled" and set(before.days) == set(wanted.days):
        done.outcomes[name] = "unchanged"
        return
    done.changes[name] = changes
    if not before.was_public:
        done.outcomes[name] = "replaced"
        return
    found = done.breaks[name] = breaks(await store.final_picks(name), after)
    now = await runtime.clock.now(store.connection)
    refusal = ""
    if before.state == "cancelled" or before.is_locked(now):
        refusal = f"{name} is {'cancelled' if before.state == 'cancelled' else 'locked'}, and nothing changes it."
    elif after.locks_at <= now:
        refusal = f"By this file {name} would have locked at {instant(after.locks_at)}; it is {instant(now)}."
    elif found.lineups and not wanted.force:
        refusal = f"{name} takes lineups, and the file would change it. {found.sentence()} Only force does it."
    done.outcomes[name] = "refused" if refusal else "changed"
    if refusal and not wanted.dry_run:
        raise ContestExists(
            f"{refusal} Nothing was imported.",
            contest=name,
            changes=changes.document(),
            breaks=found.document(),
        )


async def _write(
    store: Store, before: Contest | None, after: Terms, week: imports.Week, wanted: Wanted, sunday: date
) -> None:
    contest = Contest(
        contest=week.contest,
        season=week.season,
        week=week.week,
        state="draft",
        version=0,
        price_source=after.price_source,
        days=wanted.days,
        sunday=sunday,
        opened_at=None,
        locks_at=after.locks_at,
        locked_at=None,
        entries=None,
    )
    if before is None or not before.was_public:
        await store.replace_contest(contest, after.ruleset, after.games, after.players)
        return
    contest = replace(contest, state=before.state, version=before.version + 1, opened_at=before.opened_at)
    contest = replace(contest, pool=before.pool + 1)
    await store.replace_contest(contest, after.ruleset, after.games, after.players)
    await emit(store.connection, await commands.opened(store, contest), contest.version)


async def _record(store: Store, before: Contest, after: Terms, done: Imported) -> None:
    """Keep what an operator did to a contest that was open, with what it broke."""
    if not before.was_public:
        return
    name = before.contest
    await audit.record(
        store.connection,
        what="reimport",
        target=f"contest/{name}",
        before={"price_source": before.price_source, "locks_at": instant(before.locks_at)},
        after={
            "price_source": after.price_source,
            "locks_at": instant(after.locks_at),
            "changes": done.changes[name].counts(),
            "breaks": done.breaks[name].document(),
        },
    )


def _learned(file: imports.Import) -> list[Known]:
    """The players of whom a file says for certain who they are, and those of the directory that came with it.

    A line of that which states no week is remembered as of the file's.
    """
    season, week = max((week.season, week.week) for week in file.weeks)
    given = [
        replace(known, season=season, week=week) if (known.season, known.week) == players.ALWAYS else known
        for known in file.taught
    ]
    return [*given, *(known for week in file.weeks for known in week.known())]
