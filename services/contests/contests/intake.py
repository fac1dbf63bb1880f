"""Submissions, taken in groups: one transaction for all that wait, and each answered only after its own row is durable.

The rush before a lock is what the system exists for. A group lets its agents in under the contest's shared lock, reads
the clock once, judges every body by the contest as it is under that lock, and stores what is sound with the events
that tell of it. What is not sound is judged at length afterwards, when nothing is held.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID, uuid4

from common import events as ev
from common.canonical import canonical_json, instant
from common.commitment import Signer, salts_by_pointer
from common.grouped import Bounds, Grouped
from common.logs import correlation_id
from common.outbox import Recorded, recorded_json
from common.problems import IdempotencyKeyReused
from common.service import Runtime
from contests import commands, receipts
from contests.domain import Contest, Judge, Lineup, LineupRefused, Revision, canonical, redacted_body
from contests.problems import ContestUnknown, ModelReserved
from contests.store import Rush, Store, Submitter, Turn

_BOUNDS = Bounds(largest=64, abreast=2, room=64 << 20, patience=5)
"""``room`` is in bytes of bodies: some ten thousand usual lineups, or 128 of the longest."""

_OVERHEAD = 4096
"""Bytes that a waiting submission takes beside its body."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A body to be judged and stored as the next revision of whose key it came with.

    ``sound`` is its lineup where it had to be judged at length, with the judge that did.
    """

    contest: str
    key_hash: str
    body: bytes
    idempotency_key: str | None
    correlation: str
    sound: tuple[Judge, Lineup] | None = None


class Taken(NamedTuple):
    """An accepted revision; not ``fresh`` where its idempotency key had made it before."""

    revision: Revision
    fresh: bool


class _UnknownKey(Exception):
    """No agent is known here by this key; its events may be under way."""


@dataclass(frozen=True, slots=True)
class _Doubtful(Exception):
    """The body is not sound at first sight: to be judged at length."""

    judge: Judge


async def submit(runtime: Runtime, contest_id: str, key: str, body: bytes, idempotency_key: str | None = None) -> Taken:
    """Accept a lineup as the agent's next revision, or give back the one that the idempotency key made.

    Durable once it returns. Raises ``Unauthorized``, ``ContestUnknown``, ``LineupInvalid``, ``ContestLocked``,
    ``ContestCancelled``, ``ModelReserved``, ``IdempotencyKeyReused``, and ``Unavailable`` where the database does not
    answer in time, too much waits, or the key is unknown here and the registry does not answer.
    """
    key_hash = commands.hash_of(key)
    group = _group(runtime)
    sound: tuple[Judge, Lineup] | None = None
    asked = False
    while True:
        submission = Submission(contest_id, key_hash, body, idempotency_key, correlation_id(), sound)
        try:
            return await group(submission, len(body) + _OVERHEAD)
        except _UnknownKey:
            if asked:
                raise commands.unknown_key() from None
            await commands.ask_the_registry(runtime, key_hash)
            asked = True
        except _Doubtful as doubt:
            # Again only where the contest has changed in between, or where the second look finds it sound.
            judge = doubt.judge
            try:
                sound = judge, judge(body)
            except LineupRefused as refusal:
                raise commands.invalid(refusal) from None


def is_pressed(runtime: Runtime) -> bool:
    """Whether submissions come faster than they are taken."""
    return _group(runtime).busy


def _group(runtime: Runtime) -> Grouped[Submission, Taken]:
    group: Grouped[Submission, Taken] | None = runtime.state.get("intake")
    if group is None:
        group = runtime.state["intake"] = Grouped(
            _Intake(runtime).take, _BOUNDS, kind=lambda submission: submission.contest
        )
    return group


class _Intake:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def take(self, submissions: Sequence[Submission]) -> list[Taken | Exception]:
        """The outcome of each of some submissions to one contest, in order."""
        runtime, contest_id = self._runtime, submissions[0].contest
        keys = [submission.key_hash for submission in submissions]
        retried = [s.idempotency_key for s in submissions if s.idempotency_key is not None]
        async with runtime.database.hot_transaction() as connection:
            rush = Rush(connection)
            turn = await rush.turn(commands.wellformed(contest_id), keys, retried, runtime.clock)
            try:
                contest, judge = await self._contest(contest_id, turn.contest)
            except ContestUnknown as unknown:
                return [unknown if s.key_hash in turn.submitters else _UnknownKey() for s in submissions]
            group = _Group(contest, judge, turn, commands.keyring(runtime).signer)
            outcomes = [group.take(submission) for submission in submissions]
            if group.accepted:
                await rush.add_revisions(group.accepted, group.submitted)
        if group.accepted:
            runtime.publish()
        return [
            await self._first_answer(outcome) if isinstance(outcome, _Replayed) else outcome for outcome in outcomes
        ]

    async def _contest(self, contest_id: str, contest: Contest | None) -> tuple[Contest, Judge]:
        """The contest and its judge as of the group's turn. Raises ``ContestUnknown``."""
        judge = contest and commands.judge_at_hand(self._runtime, contest_id, contest.version)
        if contest and judge:
            return contest, judge
        # By a connection of its own: while the group shares the contest's lock, nobody changes it.
        async with self._runtime.database.transaction() as connection:
            store = Store(connection)
            public = await commands.public_contest(store, contest_id)
            return public, await commands.judge_of(self._runtime, store, contest_id, public.version)

    async def _first_answer(self, replayed: "_Replayed") -> Taken | Exception:
        try:
            async with self._runtime.database.transaction() as connection:
                before = await Store(connection).revision(replayed.lineup_id, replayed.revision)
        except Exception as error:  # The group is durable by now: what befalls one of it is its own.
            return error
        if replayed.lineup is None:
            # It was sound by the pool of its time, which a game may have left since.
            return Taken(before, False) if _says(replayed.body, before) else _Doubtful(replayed.judge)
        if not _is_of(canonical(replayed.lineup.body)[0], before):
            return IdempotencyKeyReused(
                f"This `Idempotency-Key` made revision {before.revision}; it came again with another lineup. "
                "Send a new key with each new lineup."
            )
        return Taken(before, False)


@dataclass(frozen=True, slots=True)
class _Replayed:
    """A body whose idempotency key has made a revision already, which is durable once the group is."""

    lineup_id: UUID
    revision: int
    body: bytes
    lineup: Lineup | None
    judge: Judge


@dataclass(slots=True)
class _Group:
    """What becomes of a group's submissions to one contest, one after the other in the order in which they came."""

    contest: Contest
    judge: Judge
    turn: Turn
    signer: Signer
    accepted: list[Revision] = field(default_factory=list)
    submitted: list[Recorded] = field(default_factory=list)

    def take(self, submission: Submission) -> Taken | _Replayed | Exception:
        submitter = self.turn.submitters.get(submission.key_hash)
        if submitter is None:
            return _UnknownKey()
        agent = submitter.agent
        replayed = None
        if submission.idempotency_key is not None:
            replayed = self.turn.replayed.get((agent.agent_id, submission.idempotency_key))
        closed = commands.closed(self.contest, self.turn.now)
        lineup = self._sound(submission)
        if replayed is not None and submitter.lineup_id is not None:
            return _Replayed(submitter.lineup_id, replayed, submission.body, lineup, self.judge)
        if closed is not None:
            return closed
        if lineup is None:
            return _Doubtful(self.judge)
        try:
            commands.may_state_its_model(agent)
        except ModelReserved as refusal:
            return refusal
        return Taken(self._accept(submission, submitter, lineup), True)

    def _sound(self, submission: Submission) -> Lineup | None:
        if submission.sound and submission.sound[0] is self.judge:
            return submission.sound[1]
        return self.judge.at_once(submission.body)

    def _accept(self, submission: Submission, submitter: Submitter, lineup: Lineup) -> Revision:
        agent, contest = submitter.agent, self.contest
        submitter.lineup_id = submitter.lineup_id or uuid4()
        submitter.revisions += 1
        body, words = canonical(lineup.body)
        receipt = receipts.issue(
            self.signer,
            agent=agent.agent_id,
            contest=contest.contest,
            revision=submitter.revisions,
            model=agent.model,
            accepted_at=self.turn.now,
            body=body.encode(),
            picks=len(lineup.picks),
        )
        revision = Revision(
            lineup_id=submitter.lineup_id,
            revision=submitter.revisions,
            contest=contest.contest,
            agent_id=agent.agent_id,
            idempotency_key=submission.idempotency_key,
            accepted_at=self.turn.now,
            locks_at=contest.locks_at,
            model=agent.model,
            marks=agent.marks,
            picks=[
                {"slot": slot, "player_id": player_id, "price": price, "confidence": confidence}
                for slot, player_id, price, confidence in lineup.picks
            ],
            total_price=lineup.total_price,
            projected_score=lineup.projected_score,
            confidence=lineup.confidence,
            body=body,
            receipt=receipt.receipt,
            salts=receipt.salts,
            signature=receipt.signature,
            key_id=receipt.key_id,
        )
        self.accepted.append(revision)
        self.submitted.append(_submitted(revision, words, submission.correlation))
        if submission.idempotency_key is not None:
            self.turn.replayed[agent.agent_id, submission.idempotency_key] = revision.revision
        return revision


def _submitted(revision: Revision, words: Sequence[tuple[str, str]], correlation: str) -> Recorded:
    """``LineupSubmitted`` of a revision, put together of what is JSON already: its model costs five times as much."""
    salts = salts_by_pointer(revision.salts, len(revision.picks))
    listed = ",".join([f'{{"pointer":"{at}","text":{text},"salt":"{salts[at]}"}}' for at, text in words])
    data = (
        f'{{"contest":"{revision.contest}","lineup_id":"{revision.lineup_id}","agent_id":"{revision.agent_id}",'
        f'"revision":{revision.revision},"accepted_at":"{instant(revision.accepted_at)}",'
        f'"locks_at":"{instant(revision.locks_at)}","words":[{listed}]}}'
    )
    about = f"lineup/{revision.lineup_id}"
    return recorded_json(ev.LineupSubmitted, about, data, revision.revision, correlation=correlation)


def _says(body: bytes, before: Revision) -> bool:
    """Whether a body that is not sound (now) is that of a revision, whatever its blanks and its members' order."""
    try:
        return _is_of(canonical_json(json.loads(body)).decode(), before)
    except (ValueError, RecursionError):
        return False


def _is_of(canonical_body: str, before: Revision) -> bool:
    """Whether a body is that of a revision, as far as that is known: what was redacted of it may be anything."""
    if before.redacted:
        try:
            canonical_body = redacted_body(canonical_body, before.redacted)
        except (LookupError, TypeError, ValueError):
            return False
    return canonical_body == before.body
