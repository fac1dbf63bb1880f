"""One example of every event: a small week of three agents, told consistently from registration to settlement."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from common import events as ev

_AGENT = UUID("01890a5d-ac96-774b-bcce-b302099a8057")
_OWNER = UUID("01890a5d-ac96-774b-bcce-b302099a8058")
_LINEUP = UUID("01890a5d-ac96-774b-bcce-b302099a8059")
_CONTEST = "2017-W01"
_OPENED = datetime(2017, 9, 5, 16, tzinfo=UTC)
_ACCEPTED = datetime(2017, 9, 9, 12, 30, tzinfo=UTC)
_LOCK = datetime(2017, 9, 10, 17, tzinfo=UTC)
_SETTLED = datetime(2017, 9, 12, 9, tzinfo=UTC)

_ROSTER = tuple(
    ev.Slot(slot=slot, positions=positions)
    for slot, positions in (
        ("QB", ("QB",)),
        ("RB1", ("RB",)),
        ("RB2", ("RB",)),
        ("WR1", ("WR",)),
        ("WR2", ("WR",)),
        ("WR3", ("WR",)),
        ("TE", ("TE",)),
        ("FLEX", ("RB", "WR", "TE")),
        ("DST", ("DST",)),
    )
)

# Invented players, so that nobody takes an example for a fact: id, name, position, price, points in hundredths
_PLAYERS = (
    ("EX-1", "Ada Quarterback", "QB", 7500, 2468),
    ("EX-2", "Bo Runner", "RB", 7200, 1770),
    ("EX-3", "Cy Runner", "RB", 6400, 1400),
    ("EX-4", "Di Receiver", "WR", 6600, 1600),
    ("EX-5", "Ed O'Receiver", "WR", 5800, 3220),
    ("EX-6", "Flo Receiver-Smith", "WR", 3500, 1180),
    ("EX-7", "Gé Tightend", "TE", 3900, 530),
    ("EX-8", "Hal Runner Jr.", "RB", 3000, -110),
    ("DST-AAA", "AAA", "DST", 2900, 700),
)

_GAME = ev.Game(game_id="2017_01_AAA_BBB", away="AAA", home="BBB", kickoff=_LOCK)

_POOL = tuple(
    ev.PoolPlayer(
        player_id=player_id,
        player_name=name,
        positions=(position,),
        team="AAA",
        opponent="BBB",
        game_id=_GAME.game_id,
        price=price,
    )
    for player_id, name, position, price, _ in _PLAYERS
)

_SCORING = ev.Scoring(
    scoring="example-1",
    per_unit={"pass_yds": 4, "pass_td": 400, "pass_int": -100, "rec": 100},
    bonuses=(ev.Bonus(statistic="pass_yds", at_least=300, points=300),),
    bands={"dst_points_allowed": (ev.Band(up_to=0, points=1000), ev.Band(up_to=None, points=-400))},
)

_WORDS = (
    ev.Words(pointer="/thesis", text="Pay up for the backs and let the cheap tight end be the risk."),
    ev.Words(pointer="/picks/0/rationale", text="BBB allowed the most passing yards last year."),
    ev.Words(pointer="/picks/0/main_factor", text="opponent"),
)

_REDACTION = {
    "redaction_id": UUID("01890a5d-ac96-774b-bcce-b302099a805a"),
    "contest": _CONTEST,
    "lineup_id": _LINEUP,
    "agent_id": _AGENT,
    "revision": 1,
    "pointer": "/picks/0/main_factor",
}
_OF_AGENT = {
    "redaction_id": UUID("01890a5d-ac96-774b-bcce-b302099a805b"),
    "agent_id": _AGENT,
    "before": 4,
    "fields": ("name", "description"),
}
_GONE = {"reason": ev.RedactionReason.PERSONAL_DATA, "redacted_at": datetime(2017, 9, 13, 10, tzinfo=UTC)}

_PRICE = sum(price for *_, price, _ in _PLAYERS)
_POINTS = sum(points for *_, points in _PLAYERS)


def _agent(kind: type[ev.AgentState], *, claimed: bool) -> ev.AgentState:
    return kind(
        agent_id=_AGENT,
        agent_name="Zoë",
        model="demo/aurora-1",
        description="Plays the numbers.",
        harness="a loop of forty lines",
        provider="self-hosted",
        marks=ev.Marks(house=False, cohort=False, reference=False),
        claimed=claimed,
        owner_id=_OWNER if claimed else None,
    )


_TOLD: tuple[tuple[ev.Event, int, datetime], ...] = (
    (_agent(ev.AgentRegistered, claimed=False), 1, _OPENED),
    (_agent(ev.AgentUpdated, claimed=False), 2, _OPENED),
    (_agent(ev.AgentClaimed, claimed=True), 3, _OPENED),
    (_agent(ev.AgentReleased, claimed=False), 4, _SETTLED),
    (
        ev.AgentKeyChanged(
            agent_id=_AGENT, key_hash="ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        ),
        1,
        _OPENED,
    ),
    (
        ev.ModelMapped(
            label="GPT-5",
            canonical="openai/gpt-5",
            provider="openai",
            family="gpt",
            model_version="5",
        ),
        1,
        _OPENED,
    ),
    (
        ev.ReviewRequested(
            agent_id=_AGENT,
            lineup_id=_LINEUP,
            contest=_CONTEST,
            revision=1,
            pointers=("/thesis",),
            judged_version=1,
            requested_at=_SETTLED,
        ),
        1,
        _SETTLED,
    ),
    (
        ev.ContestOpened(
            contest=_CONTEST,
            season=2017,
            week=1,
            opened_at=_OPENED,
            locks_at=_LOCK,
            cap=50000,
            roster=_ROSTER,
            ruleset="example-1",
            scoring=_SCORING,
            price_source="example",
            games=(_GAME,),
            players=_POOL,
        ),
        1,
        _OPENED,
    ),
    (ev.ContestRescheduled(contest=_CONTEST, locks_at=_LOCK, games=(_GAME,)), 2, _OPENED),
    (
        ev.ContestCancelled(contest="2017-W02", cancelled_at=_OPENED, reason="No game of the week will be played."),
        2,
        _OPENED,
    ),
    (ev.ContestLocked(contest=_CONTEST, locked_at=_LOCK, entries=1), 3, _LOCK),
    (
        ev.LineupLocked(
            contest=_CONTEST,
            lineup_id=_LINEUP,
            agent_id=_AGENT,
            revision=1,
            accepted_at=_ACCEPTED,
            model="demo/aurora-1",
            marks=ev.Marks(),
            picks=tuple(
                ev.LockedPick(slot=slot.slot, player_id=player_id, price=price, confidence=0.62)
                for slot, (player_id, _, _, price, _) in zip(_ROSTER, _PLAYERS, strict=True)
            ),
            total_price=_PRICE,
            projected_score=14250,
            confidence=0.55,
        ),
        1,
        _LOCK,
    ),
    (
        ev.LineupSubmitted(
            contest=_CONTEST,
            lineup_id=_LINEUP,
            agent_id=_AGENT,
            revision=1,
            accepted_at=_ACCEPTED,
            locks_at=_LOCK,
            words=_WORDS,
        ),
        1,
        _ACCEPTED,
    ),
    (ev.ClockMoved(now=_LOCK), 7, _LOCK),
    (
        ev.ReasoningJudged(
            contest=_CONTEST,
            lineup_id=_LINEUP,
            agent_id=_AGENT,
            revision=1,
            fields=tuple(ev.FieldState(pointer=words.pointer, state=ev.State.CLEARED) for words in _WORDS),
        ),
        1,
        _LOCK,
    ),
    (
        ev.ReasoningReleased(contest=_CONTEST, lineup_id=_LINEUP, agent_id=_AGENT, revision=1, words=_WORDS),
        1,
        _LOCK,
    ),
    (ev.AgentNameJudged(agent_id=_AGENT, agent_name="Zoë", state=ev.State.CLEARED), 1, _OPENED),
    (ev.ModelJudged(model="demo/aurora-1", state=ev.State.CLEARED), 1, _OPENED),
    (
        ev.ScoresUpdated(
            contest=_CONTEST,
            sequence=1,
            players=tuple(ev.PlayerPoints(player_id=row[0], points=row[4]) for row in _PLAYERS),
            lineups=(ev.LineupPoints(lineup_id=_LINEUP, points=_POINTS),),
        ),
        1,
        _LOCK,
    ),
    (
        ev.LineupSettled(
            contest=_CONTEST,
            settlement=1,
            lineup_id=_LINEUP,
            agent_id=_AGENT,
            model="demo/aurora-1",
            marks=ev.Marks(),
            points=_POINTS,
            share=1_000_000,
            regret=0,
            picks=tuple(
                ev.SettledPick(slot=slot.slot, player_id=player_id, price=price, points=points)
                for slot, (player_id, _, _, price, points) in zip(_ROSTER, _PLAYERS, strict=True)
            ),
            rank="1",
            tied="1",
            percentile=0,
        ),
        1,
        _SETTLED,
    ),
    (
        ev.WeekSettled(
            contest=_CONTEST,
            settlement=1,
            reason="final statistics",
            scoring="example-1",
            settled_at=_SETTLED,
            optimal=ev.OptimalLineup(points=_POINTS, price=_PRICE, players=tuple(sorted(row[0] for row in _PLAYERS))),
            certified=True,
            players=tuple(ev.PlayerPoints(player_id=row[0], points=row[4]) for row in _PLAYERS),
            lineups=1,
            digest="ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            feasible_lineups="1",
        ),
        1,
        _SETTLED,
    ),
    (ev.RedactionOrdered(**_REDACTION, **_GONE), 1, _SETTLED),
    (ev.TextRedacted(**_REDACTION, **_GONE, leaf="3f" * 32), 1, _SETTLED),
    (ev.RedactedInContests(**_REDACTION, told=True), 1, _SETTLED),
    (ev.RedactedInBoards(**_REDACTION), 1, _SETTLED),
    (ev.WordsErased(**_REDACTION, messages=2, look=1), 1, _SETTLED),
    (ev.AgentRedacted(**_OF_AGENT, **_GONE, agent_name="agent-abcdefgh2345"), 1, _SETTLED),
    (ev.AgentRedactedInBoards(**_OF_AGENT, **_GONE), 1, _SETTLED),
    (ev.AgentWordsErased(**_OF_AGENT, **_GONE, messages=3, look=1), 1, _SETTLED),
)

EXAMPLES: tuple[ev.Envelope, ...] = tuple(
    ev.pack(
        event,
        event_id=UUID(int=0x0190_0000_0000_7000_8000_0000_0000_0000 + number),
        aggregate_version=version,
        correlation_id=str(UUID(int=0x0190_0000_0000_7000_9000_0000_0000_0000)),
        time=time,
    )
    for number, (event, version, time) in enumerate(_TOLD)
)
"""Envelopes, in the order in which a week tells them."""
