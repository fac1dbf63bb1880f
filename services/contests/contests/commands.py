"""What contests does: one function a use case, and the task that keeps the lock."""

import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, TypeVar
from uuid import UUID

import anyio.to_thread
from pydantic import TypeAdapter

from common import audit
from common import events as ev
from common.canonical import instant
from common.clock import ReplayClock
from common.commitment import PICKS, Tree, pointers, salts_by_pointer
from common.db import driver
from common.logs import logger
from common.outbox import Recorded, emit, emit_all, record, recorded
from common.problems import Unauthorized, Unavailable
from common.service import Runtime
from common.tables import MOST_FAULTS, Malformed
from common.topology import AGENT_BY_KEY
from contests import commitments, schedule
from contests.domain import (
    RESERVED_MODELS,
    Agent,
    Commitment,
    Contest,
    Judge,
    Lineup,
    LineupRefused,
    Revision,
    Tombstone,
    is_reserved,
    lock_instant,
    staying,
    weekday,
)
from contests.imports import Schedule
from contests.imports import schedule as schedules
from contests.problems import (
    ClockBackwards,
    ClockNotReplay,
    CommitmentMissing,
    ContestCancelled,
    ContestLocked,
    ContestNotLocked,
    ContestUnknown,
    FileMalformed,
    GameNotCovered,
    GameUnknown,
    LineupInvalid,
    LineupMissing,
    ModelReserved,
    NoGameLeft,
    NotYet,
)
from contests.settings import Keyring
from contests.store import Store

T = TypeVar("T")
Became = Literal["cancelled", "postponed", "abandoned", "suspended"]

KEY_PREFIX = "mafl_sk_"
_KEY = re.compile(rf"{KEY_PREFIX}[!-~]{{1,200}}")
_CONTEST = re.compile(r"\d{4}-W\d{2}")
_MOST_JUDGES = 64
_MOST_TREES = 4
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.001, 1.0
LOCK = "the lock"
"""The name under which the task that keeps the lock is woken."""
KEYRING = "keyring"
"""The name under which the runtime's state has the keys."""


def keyring(runtime: Runtime) -> Keyring:
    """The keys that receipts and roots are signed with."""
    found: Keyring = runtime.state[KEYRING]
    return found


# --- agents -------------------------------------------------------------------------------------


def hash_of(key: str) -> str:
    """The hash under which an agent's key is known. Raises ``Unauthorized`` for what no key can be."""
    if not _KEY.fullmatch(key):
        raise Unauthorized(f"This call takes an agent's key: `Authorization: Bearer {KEY_PREFIX}…`.")
    return hashlib.sha256(key.encode()).hexdigest()


async def as_agent(runtime: Runtime, key: str, work: Callable[[Store, Agent], Awaitable[T]]) -> T:
    """Do ``work`` in one transaction as the agent whose key is given.

    An agent whose events have not arrived is asked for at the registry. Raises ``Unauthorized``, and
    ``Unavailable`` where the key is unknown here and the registry does not answer.
    """
    key_hash = hash_of(key)
    for asked in (False, True):
        async with runtime.database.transaction() as connection:
            store = Store(connection)
            agent = await store.agent_by_key(key_hash)
            if agent is not None:
                return await work(store, agent)
        if not asked:
            await ask_the_registry(runtime, key_hash)
    raise unknown_key()


def unknown_key() -> Unauthorized:
    return Unauthorized("No agent has this key, or no longer.")


_ASKED_AGENT: TypeAdapter[ev.AgentState] = TypeAdapter(ev.AgentState)


async def ask_the_registry(runtime: Runtime, key_hash: str) -> None:
    """Learn of an agent whose events have not arrived. Raises ``Unavailable`` where the registry does not answer."""
    try:
        answer = await runtime.bus.request(AGENT_BY_KEY, {"key_hash": key_hash}, patience=1.0)
    except ConnectionError:
        raise Unavailable("This key is not known here yet and the registry does not answer; try again.") from None
    found = answer.get("agent")
    if found is None:
        return
    state = _ASKED_AGENT.validate_python(found)
    async with runtime.database.transaction() as connection:
        store = Store(connection)
        await store.learn_agent(Agent(state.agent_id, state.model, state.marks), found["version"])
        await store.learn_key(state.agent_id, key_hash, found["key_version"])


async def take_change(runtime: Runtime, payload: dict[str, Any]) -> dict[str, Any]:
    """An ``AgentState`` with its ``version`` -> ``{"taken": true}``, for the registry, ahead of the event."""
    state = ev.AgentState.model_validate(payload)
    async with runtime.database.transaction() as connection:
        await Store(connection).learn_agent(Agent(state.agent_id, state.model, state.marks), int(payload["version"]))
    return {"taken": True}


async def take_key(runtime: Runtime, payload: dict[str, Any]) -> dict[str, Any]:
    """``{"agent_id", "key_hash", "version"}`` -> ``{"taken"}``, for the registry: the key of an agent from now on.

    Once it is taken the old key lets nobody in. Not taken where a newer version is known, or another key of this one.
    The event of the same version follows and changes nothing.
    """
    agent_id, key_hash = UUID(payload["agent_id"]), str(payload["key_hash"])
    async with runtime.database.transaction() as connection:
        store = Store(connection)
        await store.learn_key(agent_id, key_hash, int(payload["version"]))
        taken = await store.key_of(agent_id) == key_hash
    return {"taken": taken}


# --- what anyone may see ------------------------------------------------------------------------


def wellformed(contest_id: str) -> str:
    """A contest's id, or nothing where it is none: other texts need not trouble the database."""
    return contest_id if _CONTEST.fullmatch(contest_id) else ""


async def public_contest(store: Store, contest_id: str) -> Contest:
    """A contest that is or was open. Raises ``ContestUnknown``, which names those there are."""
    contest = await store.contest(contest_id) if _CONTEST.fullmatch(contest_id) else None
    if contest is None or not contest.was_public:
        known = [other.contest for other in await store.contests()]
        listed = f"Known: {', '.join(known[-30:])}." if known else "None has been opened yet."
        raise ContestUnknown(f"There is no contest {contest_id[:100]!r}. {listed}", known=known)
    return contest


async def current_contest(store: Store, now: datetime) -> Contest | None:
    """The contest to play now: of those that take lineups the next to lock, else the last that locked.

    One that was called off only where there is no other.
    """
    contests = await store.contests()
    played = [contest for contest in contests if contest.state != "cancelled"]
    taking = [contest for contest in played if not contest.is_locked(now)]
    if taking:
        return min(taking, key=lambda contest: (contest.locks_at, contest.contest))
    return max(played or contests, key=lambda contest: (contest.locks_at, contest.contest), default=None)


# --- submissions --------------------------------------------------------------------------------


def judge_at_hand(runtime: Runtime, contest_id: str, version: int) -> Judge | None:
    """The judge of a contest at a version where this process has it already."""
    judges: dict[str, Judge] = runtime.state.setdefault("judges", {})
    judge = judges.get(contest_id)
    return judge if judge is not None and judge.version == version else None


async def judge_of(runtime: Runtime, store: Store, contest_id: str, version: int) -> Judge:
    """The judge of a contest that is or was open, by its rules and pool at a version; kept in the process.

    Whoever stores by its judgement reads the version while the contest's lock is held, so that no copy judges by a
    pool that another copy has changed. Where the version asked for is past, the judge is the newest. Raises
    ``ContestUnknown``.
    """
    at_hand = judge_at_hand(runtime, contest_id, version)
    if at_hand is not None:
        return at_hand
    judges: dict[str, Judge] = runtime.state["judges"]
    while True:  # Until the version is the same before and after: what lies between is of that version.
        contest = await public_contest(store, contest_id)
        rules, players = await store.ruleset(contest_id), await store.players(contest_id)
        judge = Judge(contest_id, rules, players, await store.games(contest_id), contest.version)
        if (await public_contest(store, contest_id)).version == judge.version:
            break
    judges.pop(contest_id, None)
    while len(judges) >= _MOST_JUDGES:
        judges.pop(next(iter(judges)))
    judges[contest_id] = judge
    return judge


async def check(runtime: Runtime, contest_id: str, body: bytes, store: Store, agent: Agent) -> tuple[Lineup, Contest]:
    """Judge a body as a submission would be judged now; nothing is stored.

    Raises ``ContestUnknown``, ``LineupInvalid``, ``ContestLocked``, ``ContestCancelled``, ``ModelReserved``.
    """
    contest = await public_contest(store, contest_id)
    judge = await judge_of(runtime, store, contest_id, contest.version)
    shut = closed(contest, await runtime.clock.now(store.connection))
    try:
        lineup = judge(body)
    except LineupRefused as refusal:
        raise shut or invalid(refusal) from None
    if shut:
        raise shut
    may_state_its_model(agent)
    return lineup, contest


def invalid(refusal: LineupRefused) -> LineupInvalid:
    violations = [violation.as_dict() for violation in refusal.violations]
    count = f"{len(violations)} violation{'s' if len(violations) != 1 else ''}"
    return LineupInvalid(f"{count}, all listed in `violations`. Nothing was stored.", violations=violations)


def may_state_its_model(agent: Agent) -> None:
    """Raises ``ModelReserved`` where the agent claims a model that is MAFL's own."""
    if is_reserved(agent.model) and not agent.marks.reference:
        raise ModelReserved(
            f"You state the model {agent.model!r}; labels that begin with {RESERVED_MODELS}/ are those of MAFL's own "
            "reference agents. State the model that you run, by PATCH /api/v1/agents/me, and submit again.",
            model=agent.model,
        )


def closed(contest: Contest, now: datetime) -> ContestLocked | ContestCancelled | None:
    """Why a contest that was opened takes no lineups now; None where it does."""
    if contest.state == "cancelled":
        return _cancelled(contest)
    return _locked(contest) if contest.is_locked(now) else None


def _cancelled(contest: Contest) -> ContestCancelled:
    at = instant(contest.cancelled_at) if contest.cancelled_at else ""
    reason = contest.cancelled_because or ""
    detail = f"{contest.contest} was called off at {at}: {reason} It takes no lineups and never locks."
    return ContestCancelled(detail, contest=contest.contest, cancelled_at=at, reason=reason)


def _locked(contest: Contest, rule: str = "Lineups are taken before that instant only.") -> ContestLocked:
    at = instant(contest.locks_at)
    detail = f"{contest.contest} locked at {at}. {rule}"
    return ContestLocked(detail, contest=contest.contest, locks_at=at)


async def own_revisions(contest_id: str, store: Store, agent: Agent) -> list[Revision]:
    """The agent's revisions in a contest, in order. Raises ``ContestUnknown``."""
    await public_contest(store, contest_id)
    return await store.revisions(contest_id, agent.agent_id)


# --- commitments ----------------------------------------------------------------------------------


async def commitment(runtime: Runtime, store: Store, contest_id: str) -> Commitment:
    """What a contest committed to at its lock.

    Raises ``ContestUnknown``, ``ContestCancelled``, ``ContestNotLocked``, ``CommitmentMissing``, and ``Unavailable``
    in the moment between the lock instant and the lock.
    """
    contest = await public_contest(store, contest_id)
    if contest.state == "cancelled":
        raise _cancelled(contest)
    at = instant(contest.locks_at)
    if not contest.is_locked(await runtime.clock.now(store.connection)):
        detail = f"{contest_id} locks at {at}; what it commits to is published then."
        raise ContestNotLocked(detail, contest=contest_id, locks_at=at)
    if contest.state != "locked":
        raise Unavailable(f"{contest_id} is just being locked; try again.")
    made = await store.commitment(contest_id)
    if made is None:
        raise CommitmentMissing(f"{contest_id} locked at {at}, before contests committed to their lineups.")
    return made


async def own_proof(runtime: Runtime, contest_id: str, store: Store, agent: Agent) -> bytes:
    """The proof of the agent's final revision. Raises as :func:`commitment`, and ``LineupMissing``."""
    made = await commitment(runtime, store, contest_id)
    revisions = await store.revisions(contest_id, agent.agent_id)
    if not revisions:
        raise LineupMissing(f"You had no lineup in {contest_id}.")
    tree = await tree_of(runtime, store, contest_id)
    return commitments.proof(made, tree, revisions[-1], keyring(runtime).signer)


async def tree_of(runtime: Runtime, store: Store, contest_id: str) -> Tree:
    """The tree of a commitment that there is; kept in the process, since it never changes."""
    trees: dict[str, Tree] = runtime.state.setdefault("trees", {})
    tree = trees.get(contest_id)
    if tree is None:
        tree = await anyio.to_thread.run_sync(Tree, await store.leaves(contest_id))
        while len(trees) >= _MOST_TREES:
            trees.pop(next(iter(trees)))
        trees[contest_id] = tree
    return tree


# --- redaction --------------------------------------------------------------------------------------


async def redact(store: Store, event: ev.RedactionOrdered) -> None:
    """Let the words of a text go for good, and its salt (M6): its leaf stays, and the agent's own view says so.

    Everybody hears of it after the lock alone, and of final revisions alone (C8). What is redacted already stays as it
    is; that it is done is told again. Whatever else the event that carried the words said is told anew without them.
    """
    await store.share(event.contest)
    revision = await store.held_revision(event.lineup_id, event.revision)
    told = False
    if revision is None or event.pointer not in pointers(len(revision.picks))[1:]:
        logger.error("a text that is unknown here was redacted", lineup=str(event.lineup_id), revision=event.revision)
    else:
        if event.pointer not in revision.redacted:
            leaf = dict(zip(pointers(len(revision.picks)), commitments.leaf_hashes_of(revision), strict=True))
            tombstone = Tombstone(
                event.contest, event.pointer, leaf[event.pointer], event.reason.value, event.redacted_at
            )
            await store.redact(revision, tombstone, event.redaction_id)
            await emit(
                store.connection, submitted(await store.revision(event.lineup_id, event.revision)), event.revision
            )
        contest = await _any_contest(store, event.contest)
        told = contest.state == "locked" and event.revision == await store.last_revision(event.lineup_id)
        if told:
            for row in await store.redactions_to_tell(event.contest):
                if (row["lineup_id"], row["pointer"]) == (event.lineup_id, event.pointer):
                    await emit(store.connection, _redacted(row), 1)
    about = event.model_dump(exclude={"reason", "redacted_at"})
    await emit(store.connection, ev.RedactedInContests(**about, told=told), 1)


def submitted(revision: Revision) -> ev.LineupSubmitted:
    """What was told of a revision when it came in, less what was redacted since."""
    salts = salts_by_pointer(revision.salts, len(revision.picks))
    body = json.loads(revision.body)
    texts = {"/thesis": body["thesis"]}
    for place, pick in enumerate(body["picks"]):
        texts |= {f"/picks/{place}/{name}": pick[name] for name in ("rationale", "main_factor")}
    return ev.LineupSubmitted(
        contest=revision.contest,
        lineup_id=revision.lineup_id,
        agent_id=revision.agent_id,
        revision=revision.revision,
        accepted_at=revision.accepted_at,
        locks_at=revision.locks_at,
        words=tuple(
            ev.Words(pointer=pointer, text=text, salt=salts[pointer])
            for pointer, text in texts.items()
            if pointer not in revision.redacted
        ),
    )


def _redacted(row: Mapping[Any, Any]) -> ev.TextRedacted:
    names = ("redaction_id", "contest", "lineup_id", "agent_id", "revision", "pointer", "reason", "redacted_at")
    return ev.TextRedacted(**{name: row[name] for name in names}, leaf=bytes(row["leaf"]).hex())


# --- the life of a contest ----------------------------------------------------------------------


def malformed(error: Malformed, outcome: str) -> FileMalformed:
    """The refusal of a file that an operator sent, with each of its faults; ``outcome`` is what that means."""
    faults = [fault.document() for fault in error.faults]
    # The reading ends at the most that are listed: there may be more.
    more = f"; {'at least ' if len(faults) == MOST_FAULTS else ''}{len(faults) - 1} more" if len(faults) > 1 else ""
    return FileMalformed(f"{error.faults[0]}{more}. {outcome}", faults=faults)


async def opened(store: Store, contest: Contest) -> ev.ContestOpened:
    """The event that tells of an open contest whole, as it is stored now.

    Told again with each later version of the pool: whoever reads it takes the newest.
    """
    if contest.opened_at is None:
        raise ValueError(f"{contest.contest} was never open")
    rules = await store.ruleset(contest.contest)
    return ev.ContestOpened(
        contest=contest.contest,
        season=contest.season,
        week=contest.week,
        opened_at=contest.opened_at,
        locks_at=contest.locks_at,
        cap=rules.cap,
        roster=rules.roster,
        ruleset=rules.ruleset,
        scoring=rules.scoring,
        price_source=contest.price_source,
        games=await store.games(contest.contest),
        players=await store.players(contest.contest),
        pool=contest.pool,
        policies=rules.policies,
        lineup_rules=rules.lineup_rules,
    )


async def open_contest(runtime: Runtime, store: Store, contest_id: str) -> Contest:
    """Let a draft take lineups; one that is open stays so.

    Raises ``ContestUnknown``, ``ContestCancelled``, and ``ContestLocked`` where its lock instant has come.
    """
    await store.hold(contest_id)
    contest = await _any_contest(store, contest_id)
    now = await runtime.clock.now(store.connection)
    if contest.state == "cancelled":
        raise _cancelled(contest)
    if contest.state == "draft" and now >= contest.locks_at:
        at = instant(contest.locks_at)
        raise ContestLocked(
            f"{contest_id} is a draft and would have locked at {at}; it is {instant(now)}. Where its games are played "
            "later, import the week anew with the schedule (--schedule), or give each its kickoff (`mafl contest "
            "move-game`).",
            contest=contest_id,
            locks_at=at,
        )
    if contest.is_locked(now):
        raise _locked(contest)
    if contest.state == "open":
        return contest
    contest = await store.change_contest(contest_id, state="open", opened_at=now)
    await emit(store.connection, await opened(store, contest), contest.version)
    await audit.record(
        store.connection,
        what="open",
        target=f"contest/{contest_id}",
        before={"state": "draft"},
        after={"state": "open", "opened_at": instant(now), "locks_at": instant(contest.locks_at)},
    )
    return contest


async def reschedule(runtime: Runtime, store: Store, contest_id: str, game_id: str, kickoff: datetime) -> Contest:
    """Give a game another kickoff, and move the lock with it, while the contest is not locked.

    To a day that the contest does not cover the game leaves it; with a kickoff that is covered it is there again,
    whatever had become of it.
    Raises ``GameUnknown`` and what :func:`_put_schedule` raises.
    """
    contest, games, now = await _changeable(runtime, store, contest_id)
    moved = contest.coverage.moved(_game(contest, games, game_id), kickoff)
    return await _put_schedule(runtime, store, contest, games, [moved], now, what="reschedule")


async def drop_game(
    runtime: Runtime, store: Store, contest_id: str, game_id: str, status: Literal["moved", "cancelled"]
) -> Contest:
    """Take a game out of a contest that is not locked: ``cancelled``, or ``moved`` to a day not known or covered.

    Its players leave the pool; accepted lineups stay as they are. Raises as :func:`reschedule`.
    """
    contest, games, now = await _changeable(runtime, store, contest_id)
    left = _game(contest, games, game_id).model_copy(update={"status": status})
    return await _put_schedule(runtime, store, contest, games, [left], now, what="drop-game")


async def restore_game(
    runtime: Runtime, store: Store, contest_id: str, game_id: str, kickoff: datetime | None = None
) -> Contest:
    """Let a game that has left come back, at a new kickoff or the one it had; its players are in the pool again.

    Raises ``GameNotCovered`` where that kickoff is not on a covered day, and as :func:`reschedule`.
    """
    contest, games, now = await _changeable(runtime, store, contest_id)
    game = _game(contest, games, game_id)
    back = contest.coverage.moved(game, kickoff or game.kickoff)
    if back.status != "scheduled":
        raise GameNotCovered(
            f"{game_id} kicks off on {weekday(back.kickoff)}, {instant(back.kickoff)}; {contest_id} covers "
            f"{contest.coverage}. Give a kickoff that is covered.",
            contest=contest_id,
        )
    return await _put_schedule(runtime, store, contest, games, [back], now, what="restore-game")


async def game_became(
    runtime: Runtime, store: Store, contest_id: str, game_id: str, became: Became | None, resumed_at: datetime | None
) -> Contest:
    """Say what became of a game after the lock, where it was not played as planned; ``None`` takes it back.

    The lock and what is locked stay as they are: settlement goes by the contest's policies. ``resumed_at`` is when a
    suspended game went on. Raises ``ContestUnknown``, ``ContestCancelled``, ``GameUnknown``, and ``ContestNotLocked``
    before the lock, when the schedule's changes do the same.
    """
    await store.hold(contest_id)
    contest = await _any_contest(store, contest_id)
    if contest.state == "cancelled":
        raise _cancelled(contest)
    if contest.state != "locked":
        raise ContestNotLocked(
            f"{contest_id} is not locked yet. Until it is, its games move (`mafl contest move-game`) and leave "
            "(`mafl contest drop-game`).",
            contest=contest_id,
            locks_at=instant(contest.locks_at),
        )
    games = await store.games(contest_id)
    was = _game(contest, games, game_id)
    in_week = None if resumed_at is None else contest.coverage.in_week(resumed_at)
    game = was.model_copy(update={"became": became, "resumed_at": resumed_at, "in_week": in_week})
    if game == was:
        return contest
    await store.put_games(contest_id, [game])
    contest = await store.change_contest(contest_id)
    told = ev.ContestRescheduled(contest=contest_id, locks_at=contest.locks_at, games=await store.games(contest_id))
    await emit(store.connection, told, contest.version)
    await audit.record(
        store.connection,
        what="became",
        target=f"contest/{contest_id}",
        before=_of_broken(was),
        after=_of_broken(game),
    )
    return contest


def _of_broken(game: ev.Game) -> dict[str, str | None]:
    resumed_at = None if game.resumed_at is None else instant(game.resumed_at)
    return {"game_id": game.game_id, "became": game.became, "resumed_at": resumed_at}


async def telling(
    store: Store, contest_id: str, game_id: str, change: Callable[[], Awaitable[Contest]]
) -> tuple[Contest, dict[str, Any]]:
    """Change a game, by one of the three above, and tell what that did.

    Returns the contest, and ``{game, lock, players}``: the game as ``schedule.moves`` has it, the lock instant
    before and after, and how many players of the pool are the game's. Raises as the change.
    """
    await store.hold(contest_id)
    was = await _any_contest(store, contest_id)
    before = await store.games(contest_id)
    contest = await change()
    after = [game for game in await store.games(contest_id) if game.game_id == game_id]
    return contest, {
        "game": schedule.moves(before, after)[0],
        "lock": {"before": instant(was.locks_at), "after": instant(contest.locks_at)},
        "players": sum(player.game_id == game_id for player in await store.players(contest_id)),
    }


async def read_schedule(content: bytes) -> Schedule:
    """Read a schedule file in a thread of its own. Raises ``FileMalformed``."""
    try:
        return await anyio.to_thread.run_sync(schedules.read, content)
    except Malformed as error:
        raise malformed(error, "Nothing was changed.") from None


async def follow_schedule(runtime: Runtime, store: Store, told: Schedule, *, dry_run: bool) -> dict[str, Any]:
    """Follow a schedule in every contest of its seasons that is not locked, drafts too: all of it or nothing.

    Returns what changed, or would: ``{dry_run, contests: [{contest, state, locks_at, at_once, games, missing,
    undecided, cancelled}], untouched: [{contest, state}]}``; ``games`` as ``schedule.moves`` has them, the last three
    as ids. Raises ``NoGameLeft``.
    """
    seasons = set(told.seasons)
    of_season = [contest for contest in await store.contests(drafts=True) if contest.season in seasons]
    if not dry_run:  # What is changed is held; who only asks keeps nobody waiting.
        for contest in of_season:
            if contest.state in ("draft", "open"):
                await store.hold(contest.contest)
    now = await runtime.clock.now(store.connection)
    followed: list[dict[str, Any]] = []
    untouched: list[dict[str, str]] = []
    for listed in of_season:
        name, contest = listed.contest, listed
        if listed.state in ("draft", "open"):  # Others were not held: one called off may have become a draft since.
            contest = await _any_contest(store, name)
        if contest.state not in ("draft", "open") or contest.is_locked(now):
            state = "locked" if contest.is_locked(now) else contest.state
            untouched.append({"contest": name, "state": state})
            continue
        before = await store.games(name)
        found = schedule.plan(contest.season, contest.week, contest.coverage, before, told)
        after = {game.game_id: game for game in (*before, *found.changes)}
        locks_at, at_once = contest.locks_at, False
        if found.changes:
            locks_at, at_once = lock_after(contest, tuple(after.values()), now)
        was = contest
        if not dry_run:
            contest = await _put_schedule(runtime, store, contest, before, found.changes, now, what="reschedule")
        followed.append(
            {
                "contest": name,
                "state": contest.state,
                "locks_at": {"before": instant(was.locks_at), "after": instant(locks_at)},
                "at_once": at_once,
                "games": schedule.moves(before, found.changes),
                "missing": [game.game_id for game in found.missing],
                "undecided": [game.game_id for game in found.undecided],
                "cancelled": [game.game_id for game in found.cancelled],
            }
        )
    return {"dry_run": dry_run, "contests": followed, "untouched": untouched}


async def cancel_contest(runtime: Runtime, store: Store, contest_id: str, reason: str) -> Contest:
    """Call a contest off before its lock: it takes no more lineups and never locks. Again it stays as it is.

    A draft of which nobody was told is dropped with no word. Raises ``ContestUnknown`` and ``ContestLocked``.
    """
    await store.hold(contest_id)
    before = await _any_contest(store, contest_id)
    if before.state == "cancelled":
        return before
    now = await runtime.clock.now(store.connection)
    if before.is_locked(now):
        raise _locked(before, "A contest can be cancelled before its lock only; after it, its games are settled.")
    contest = await store.change_contest(contest_id, state="cancelled", cancelled_at=now, cancelled_because=reason)
    if contest.was_public:
        await emit(
            store.connection,
            ev.ContestCancelled(contest=contest_id, cancelled_at=now, reason=reason),
            contest.version,
        )
    await audit.record(
        store.connection,
        what="cancel",
        target=f"contest/{contest_id}",
        before={"state": before.state},
        after={"state": contest.state, "cancelled_at": instant(now), "reason": reason},
    )
    return contest


async def _changeable(runtime: Runtime, store: Store, contest_id: str) -> tuple[Contest, tuple[ev.Game, ...], datetime]:
    """A contest, held, whose schedule may change: its games, and the time.

    Raises ``ContestUnknown``, ``ContestLocked``, ``ContestCancelled``.
    """
    await store.hold(contest_id)
    contest = await _any_contest(store, contest_id)
    now = await runtime.clock.now(store.connection)
    if contest.state == "cancelled":
        raise _cancelled(contest)
    if contest.is_locked(now):
        raise _locked(contest, "Its games move, leave and come back before that instant only.")
    return contest, await store.games(contest_id), now


def _game(contest: Contest, games: Sequence[ev.Game], game_id: str) -> ev.Game:
    for game in games:
        if game.game_id == game_id:
            return game
    known = [game.game_id for game in games]
    raise GameUnknown(
        f"{contest.contest} does not cover {game_id[:100]!r}. Its games: {', '.join(known)}.", known=known
    )


async def _put_schedule(
    runtime: Runtime,
    store: Store,
    contest: Contest,
    before: Sequence[ev.Game],
    changes: Sequence[ev.Game],
    now: datetime,
    *,
    what: str,
) -> Contest:
    """Store changed games of a contest that the caller holds, and move its lock; the same again is no change.

    Where the lock instant would be past, an open contest locks now: at the first instant after this decision,
    so that every revision accepted so far was accepted before it. Raises ``NoGameLeft``.
    """
    was = {game.game_id: game for game in before}
    changed = [game for game in changes if game != was[game.game_id]]
    if not changed:
        return contest
    games = sorted((was | {game.game_id: game for game in changed}).values(), key=lambda game: game.kickoff)
    locks_at, at_once = lock_after(contest, games, now)
    await store.put_games(contest.contest, changed)
    earlier, contest = contest, await store.change_contest(contest.contest, locks_at=locks_at)
    if contest.state == "open":
        told = ev.ContestRescheduled(
            contest=contest.contest, locks_at=locks_at, games=await store.games(contest.contest)
        )
        await emit(store.connection, told, contest.version)
        if at_once:
            contest = await _lock(runtime, store, contest)
    for game in changed:
        await audit.record(
            store.connection,
            what=what,
            target=f"contest/{contest.contest}",
            before=_of_game(earlier, was[game.game_id]),
            after=_of_game(contest, game),
        )
    return contest


def lock_after(contest: Contest, games: Sequence[ev.Game], now: datetime) -> tuple[datetime, bool]:
    """When a contest would lock by these games, and whether that is at once: for an open one, where it is past.

    Raises ``NoGameLeft``.
    """
    if not staying(games):
        raise NoGameLeft(
            f"No game of {contest.contest} would be left in it, and a contest needs one. Cancel the contest instead: "
            f"`mafl contest cancel {contest.contest} --reason …`.",
            contest=contest.contest,
        )
    locks_at = lock_instant(games)
    at_once = contest.state == "open" and locks_at <= now
    return (now + timedelta(microseconds=1) if at_once else locks_at), at_once


def _of_game(contest: Contest, game: ev.Game) -> dict[str, str]:
    return {
        "game_id": game.game_id,
        "kickoff": instant(game.kickoff),
        "status": game.status,
        "locks_at": instant(contest.locks_at),
        "state": contest.state,
    }


async def _any_contest(store: Store, contest_id: str) -> Contest:
    """A contest in any state, for the operator."""
    contest = await store.contest(contest_id) if _CONTEST.fullmatch(contest_id) else None
    if contest is None:
        known = [other.contest for other in await store.contests(drafts=True)]
        listed = f"Known: {', '.join(known[-30:])}." if known else "None has been imported yet."
        raise ContestUnknown(f"There is no contest {contest_id[:100]!r}. {listed}", known=known)
    return contest


# --- the lock -----------------------------------------------------------------------------------


async def lock_contest(runtime: Runtime, store: Store, contest_id: str) -> Contest:
    """Lock a contest whose instant has come, unless another copy has; the contest as it is now.

    Raises ``ContestUnknown``, ``ContestCancelled``, and ``NotYet`` before the instant.
    """
    await store.hold(contest_id)
    contest = await _any_contest(store, contest_id)
    if contest.state == "locked":
        return contest
    if contest.state == "cancelled":
        raise _cancelled(contest)
    now = await runtime.clock.now(store.connection)
    if contest.state == "draft" or now < contest.locks_at:
        at = instant(contest.locks_at)
        what = "was never opened" if contest.state == "draft" else f"locks at {at}"
        raise NotYet(f"{contest_id} {what}; it is {instant(now)}.", locks_at=at, now=instant(now))
    return await _lock(runtime, store, contest)


async def lock_by_operator(runtime: Runtime, store: Store, contest_id: str) -> Contest:
    """As :func:`lock_contest`, by an operator's word; recorded where that and not the clock locked it."""
    await store.hold(contest_id)
    before = await _any_contest(store, contest_id)
    contest = await lock_contest(runtime, store, contest_id)
    if contest.state != before.state:
        await audit.record(
            store.connection,
            what="lock",
            target=f"contest/{contest_id}",
            before={"state": before.state},
            after={"state": contest.state, "entries": contest.entries},
        )
    return contest


async def _lock(runtime: Runtime, store: Store, contest: Contest) -> Contest:
    """Freeze the final revisions and commit to them. The caller holds the contest exclusively."""
    hashed: list[bytes] = []
    entries = 0
    async for finals in store.final_revisions(contest.contest):
        hashed.append(await anyio.to_thread.run_sync(commitments.hashes_of, finals))
        entries += len(finals)
    hashes = b"".join(hashed)
    made = await anyio.to_thread.run_sync(commitments.commit, keyring(runtime).signer, contest, entries, hashes)
    await store.add_commitment(made, hashes)
    contest = await store.change_contest(contest.contest, state="locked", locked_at=contest.locks_at, entries=entries)
    locked = ev.ContestLocked(
        contest=contest.contest,
        locked_at=contest.locks_at,
        entries=entries,
        root=made.root.hex(),
        leaves=made.size,
        signature=made.signature.hex(),
        key_id=made.key_id,
        pool=contest.pool,
    )
    await emit(store.connection, locked, contest.version)
    raw = await driver(store.connection)
    async for numbers in store.final_numbers(contest.contest):
        await record(raw, [_frozen(final) for final in numbers])
    gone = [(_redacted(row), 1) for row in await store.redactions_to_tell(contest.contest)]
    await emit_all(store.connection, gone)
    return contest


def _frozen(final: Mapping[Any, Any]) -> Recorded:
    """``LineupLocked`` of a final revision, of plain values: there is one for every lineup, and its model costs more.

    ``lineup.submitted`` took the versions up to the last revision.
    """
    salts = final["salts"]
    data = {
        "contest": final["contest"],
        "lineup_id": final["lineup_id"],
        "agent_id": final["agent_id"],
        "revision": final["revision"],
        "accepted_at": instant(final["accepted_at"]),
        "model": final["model"],
        "marks": {mark: final[mark] for mark in ev.Marks.model_fields},
        "picks": final["picks"],
        "total_price": final["total_price"],
        "projected_score": final["projected_score"],
        "confidence": final["confidence"],
        "salt": salts_by_pointer(salts, len(final["picks"]))[PICKS],
    }
    return recorded(ev.LineupLocked, f"lineup/{final['lineup_id']}", data, final["revision"] + 1)


async def keep_the_lock(runtime: Runtime) -> None:
    """Lock every contest at its instant, and at once those whose instant passed while nothing ran.

    Any number of copies may do so: the first to hold the contest locks it, the others find it done.
    """
    gauge = runtime.metrics.contest_locks_in_seconds
    while True:
        pause = _LONGEST_PAUSE
        failures: list[Exception] = []
        async with runtime.database.transaction() as connection:
            coming = await Store(connection).next_locks()
            now = await runtime.clock.now(connection)
        gauge.clear()
        for contest, locks_at in coming:
            seconds = (locks_at - now).total_seconds()
            if seconds <= 0:
                try:
                    async with runtime.database.transaction() as connection:
                        await lock_contest(runtime, Store(connection), contest)
                except (NotYet, ContestCancelled):  # It was rescheduled or called off in between.
                    pause = 0
                except Exception as error:  # One contest's trouble must not keep the others open.
                    failures.append(error)
                continue
            gauge.labels(contest).set(seconds)
            if not runtime.clock.replay:
                pause = min(pause, seconds)
        if failures:
            raise failures[0]
        await runtime.woken(LOCK, at_most=max(pause, _SHORTEST_PAUSE))


# --- the replay clock ---------------------------------------------------------------------------


async def move_clock(runtime: Runtime, store: Store, now: datetime) -> None:
    """Move the replay clock, and lock in the same transaction what that makes due.

    Raises ``ClockNotReplay``, ``ClockBackwards``.
    """
    clock = runtime.clock
    if not isinstance(clock, ReplayClock):
        raise ClockNotReplay("This stack goes by the real time.")
    before = await clock.now(store.connection)
    moves = await clock.move(store.connection, now)
    if moves is None:
        at = instant(await clock.now(store.connection))
        raise ClockBackwards(f"It is {at}, later than {instant(now)}.", now=at)
    await emit(store.connection, ev.ClockMoved(now=now), moves)
    if before != now:
        was, is_now = {"now": instant(before)}, {"now": instant(now)}
        await audit.record(store.connection, what="move", target="clock", before=was, after=is_now)
    due = [contest for contest, locks_at in await store.next_locks() if locks_at <= now]
    for contest in sorted(due):
        await store.hold(contest)
    for contest in due:
        try:
            await lock_contest(runtime, store, contest)
        except (NotYet, ContestCancelled):  # It was rescheduled or called off while this waited for it.
            continue
