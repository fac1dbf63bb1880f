"""A season as the events that the other services would publish: written once, told in any order."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import NAMESPACE_URL, UUID, uuid5

from common import events as ev
from common.settled import digest_of

ROSTER = (
    ev.Slot(slot="QB", positions=("QB",)),
    ev.Slot(slot="RB1", positions=("RB",)),
    ev.Slot(slot="WR1", positions=("WR",)),
    ev.Slot(slot="FLEX", positions=("RB", "WR", "TE")),
    ev.Slot(slot="DST", positions=("DST",)),
)
SCORING = ev.Scoring(
    scoring="test-1",
    per_unit={"pass_yds": 4, "pass_td": 400, "rush_yds": 10},
    bonuses=(ev.Bonus(statistic="pass_yds", at_least=300, points=300),),
    bands={"dst_points_allowed": (ev.Band(up_to=0, points=1000), ev.Band(up_to=None, points=-400))},
)
HOUSE = ev.Marks(house=True)
COHORT = ev.Marks(house=True, cohort=True)
REFERENCE = ev.Marks(house=True, reference=True)
FEASIBLE = "31415926535897932"
"""More lineups than a pool of the script allows: what boards are told is theirs to show, not to judge."""
Told = tuple[ev.Event, int]


def chance(*parts: object) -> float:
    """A number in [0, 1) that depends on the parts alone."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:6], "big") / 2**48


@dataclass
class Agent:
    """An agent of the script. ``skill`` is what its lineups score on average, in hundredths."""

    name: str
    model: str
    claimed: bool = True
    name_state: ev.State | None = ev.State.CLEARED
    model_state: ev.State | None = ev.State.CLEARED
    marks: ev.Marks = field(default_factory=ev.Marks)
    skill: int = 10_000

    @property
    def id(self) -> UUID:
        return uuid5(NAMESPACE_URL, f"agent/{self.name}")

    def state(self, kind: type[ev.AgentState] = ev.AgentRegistered, **changes: object) -> ev.AgentState:
        values: dict[str, object] = {
            "agent_id": self.id,
            "agent_name": self.name,
            "model": self.model,
            "marks": self.marks,
            "claimed": self.claimed,
        }
        return kind.model_validate(values | changes)

    def told(self) -> list[Told]:
        """Its state, and the verdicts on its name and its model's label."""
        told: list[Told] = [(self.state(), 1)]
        if self.model_state is not None:
            told.append((ev.ModelJudged(model=self.model, state=self.model_state), 1))
        if self.name_state is not None:
            judged = ev.AgentNameJudged(agent_id=self.id, agent_name=self.name, state=self.name_state)
            told.append((judged, 1))
        return told


@dataclass
class Week:
    """A week of the script: ``2017-W04`` and so on, five players a position."""

    number: int
    season: int = 2017
    players_a_position: int = 5
    lineup_rules: ev.LineupRules = field(default_factory=ev.LineupRules)

    @property
    def contest(self) -> str:
        return f"{self.season}-W{self.number:02}"

    @property
    def locks_at(self) -> datetime:
        return datetime(self.season, 9, 10, 17, tzinfo=UTC) + timedelta(weeks=self.number - 1)

    @property
    def games(self) -> tuple[ev.Game, ...]:
        later = self.locks_at + timedelta(hours=3)
        return (
            ev.Game(game_id="g1", away="PIT", home="CLE", kickoff=self.locks_at),
            ev.Game(game_id="g2", away="ARI", home="DET", kickoff=later),
        )

    @property
    def players(self) -> tuple[ev.PoolPlayer, ...]:
        teams = (("PIT", "CLE", "g1"), ("CLE", "PIT", "g1"), ("ARI", "DET", "g2"), ("DET", "ARI", "g2"))
        found = []
        for position in ("QB", "RB", "WR", "TE", "DST"):
            for number in range(self.players_a_position):
                team, opponent, game = teams[number % 4]
                found.append(
                    ev.PoolPlayer(
                        player_id=f"{position}-{number}",
                        player_name=f"{position} Player {number}",
                        positions=(position,),
                        team=team,
                        opponent=opponent,
                        game_id=game,
                        price=3_000 + 1_000 * (number % 5),
                    )
                )
        return tuple(found)

    def player_points(self, version: int = 1) -> dict[str, int]:
        return {
            player.player_id: int(3_000 * chance(self.contest, player.player_id)) + (version - 1) * 10
            for player in self.players
        }

    def opened(self) -> ev.ContestOpened:
        return ev.ContestOpened(
            contest=self.contest,
            season=self.season,
            week=self.number,
            opened_at=self.locks_at - timedelta(days=5),
            locks_at=self.locks_at,
            cap=50_000,
            roster=ROSTER,
            ruleset="test-1",
            scoring=SCORING,
            price_source="import",
            games=self.games,
            players=self.players,
            lineup_rules=self.lineup_rules,
        )

    def lineup_id(self, agent: Agent) -> UUID:
        return uuid5(NAMESPACE_URL, f"{self.contest}/{agent.name}")

    def locked(self, entries: int) -> ev.ContestLocked:
        return ev.ContestLocked(contest=self.contest, locked_at=self.locks_at, entries=entries)

    def lineup(self, agent: Agent, model: str | None = None) -> ev.LineupLocked:
        chosen = []
        for slot in ROSTER:
            able = [player for player in self.players if set(player.positions) & set(slot.positions)]
            able = [player for player in able if player.player_id not in {pick.player_id for pick in chosen}]
            player = able[int(chance(self.contest, agent.name, slot.slot) * len(able))]
            chosen.append(ev.LockedPick(slot=slot.slot, player_id=player.player_id, price=player.price, confidence=0.5))
        return ev.LineupLocked(
            contest=self.contest,
            lineup_id=self.lineup_id(agent),
            agent_id=agent.id,
            revision=1,
            accepted_at=self.locks_at - timedelta(hours=2),
            model=model or agent.model,
            marks=agent.marks,
            picks=tuple(chosen),
            total_price=sum(pick.price for pick in chosen),
            projected_score=12_000,
            confidence=0.5,
            salt=self.salt(agent),
        )

    def salt(self, agent: Agent, pointer: str = "") -> str:
        """What opens a leaf of the agent's lineup."""
        return hashlib.sha256(f"salt/{self.contest}/{agent.name}{pointer}".encode()).hexdigest()

    def points(self, agent: Agent, version: int = 1) -> int:
        luck = 3_000 * (chance("week", self.contest) - 0.5) + 3_000 * (chance(self.contest, agent.name) - 0.5)
        return int(agent.skill + luck) + (version - 1) * 7

    def results(self, agents: list[Agent], version: int = 1) -> list[ev.Event]:
        """The results of a settlement version, then the week's own event."""
        points = self.player_points(version)
        best = 25_000 + version
        told: list[ev.LineupSettled] = []
        for agent in agents:
            lineup, total = self.lineup(agent), self.points(agent, version)
            told.append(
                ev.LineupSettled(
                    contest=self.contest,
                    settlement=version,
                    lineup_id=lineup.lineup_id,
                    agent_id=agent.id,
                    model=lineup.model,
                    marks=agent.marks,
                    points=total,
                    share=total * 10**6 // best,
                    regret=best - total,
                    # Whatever an agent's skill: scores of a script may be below nothing and above the best.
                    rank=str(1 + max(0, best - total) * 10**11),
                    tied=str(1 + total % 2),
                    percentile=min(max(0, total), best) * 10**6 // (best + 1),
                    picks=tuple(
                        ev.SettledPick(
                            slot=pick.slot,
                            player_id=pick.player_id,
                            price=pick.price,
                            points=points[pick.player_id],
                        )
                        for pick in lineup.picks
                    ),
                )
            )
        optimum = ev.OptimalLineup(points=best, price=49_900, players=("DST-1", "QB-1", "RB-1", "TE-1", "WR-1"))
        week = ev.WeekSettled(
            contest=self.contest,
            settlement=version,
            reason="games final" if version == 1 else "a statistic was corrected",
            scoring="test-1",
            settled_at=self.locks_at + timedelta(days=2),
            optimal=optimum,
            certified=True,
            players=tuple(ev.PlayerPoints(player_id=key, points=value) for key, value in points.items()),
            lineups=len(agents),
            feasible_lineups=FEASIBLE,
            digest="",
        )
        return [*told, week.model_copy(update={"digest": digest_of(week, told)})]

    def scores(self, agents: list[Agent], sequence: int = 1) -> ev.ScoresUpdated:
        """Provisional scores; a later sequence has more points."""
        return ev.ScoresUpdated(
            contest=self.contest,
            sequence=sequence,
            players=tuple(
                ev.PlayerPoints(player_id=key, points=value * sequence // 10)
                for key, value in self.player_points().items()
            ),
            lineups=tuple(
                ev.LineupPoints(lineup_id=self.lineup_id(agent), points=self.points(agent) * sequence // 10)
                for agent in agents
            ),
        )

    def judged(self, agent: Agent, state: ev.State = ev.State.CLEARED) -> ev.ReasoningJudged:
        return ev.ReasoningJudged(
            contest=self.contest,
            lineup_id=self.lineup_id(agent),
            agent_id=agent.id,
            revision=1,
            fields=tuple(ev.FieldState(pointer=pointer, state=state) for pointer in pointers()),
        )

    def released(self, agent: Agent) -> ev.ReasoningReleased:
        return ev.ReasoningReleased(
            contest=self.contest,
            lineup_id=self.lineup_id(agent),
            agent_id=agent.id,
            revision=1,
            words=tuple(
                ev.Words(pointer=pointer, text=f"{agent.name} says at {pointer}", salt=self.salt(agent, pointer))
                for pointer in pointers()
            ),
        )

    def withdrawn(self, agent: Agent) -> ev.ReasoningReleased:
        return self.released(agent).model_copy(update={"words": (), "withdrawn": tuple(pointers())})

    def told(self, agents: list[Agent], *, words: bool = True, version: int = 1) -> list[Told]:
        """The whole week in its natural order."""
        told: list[Told] = [(self.opened(), 1), (self.locked(len(agents)), 2)]
        told += [(self.lineup(agent), 1) for agent in agents]
        if words:
            for agent in agents:
                told += [(self.judged(agent), 1), (self.released(agent), 2)]
        return told + [(event, version) for event in self.results(agents, version)]


def pointers() -> list[str]:
    return ["/thesis"] + [f"/picks/{n}/{name}" for n in range(len(ROSTER)) for name in ("rationale", "main_factor")]
