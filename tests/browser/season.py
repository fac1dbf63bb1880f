"""The real 2017 season as the events that the other services would publish, played by simple agents.

Pools, prices and points are the data's own; the optimum is the settlement service's. Everything is seeded by names.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from common import events as ev
from common.points import hundredths
from common.settled import digest_of
from settlement.optimal import Player, optimal
from settlement.tools import DEFAULT_ROSTER

DATA = Path(__file__).parents[2] / "data" / "pool_2017_dk.csv.gz"
CAP = 50_000
SCORING = ev.Scoring(
    scoring="draftkings-classic-1",
    per_unit={"pass_yds": 4, "pass_td": 400, "pass_int": -100, "rush_yds": 10, "rush_td": 600, "rec": 100},
    bonuses=(ev.Bonus(statistic="pass_yds", at_least=300, points=300),),
    bands={"dst_points_allowed": (ev.Band(up_to=0, points=1000), ev.Band(up_to=None, points=-400))},
)
Told = tuple[ev.Event, int]

_NONE = ev.Marks()
_COHORT = ev.Marks(house=True, cohort=True)
_REFERENCE = ev.Marks(house=True, reference=True)


@dataclass(frozen=True)
class Entrant:
    """``nerve`` mixes knowledge of the real result into the choice, so that some agents are truly better."""

    name: str
    model: str
    nerve: float
    claimed: bool = True
    name_state: ev.State = ev.State.CLEARED
    words: ev.State = ev.State.CLEARED
    marks: ev.Marks = _NONE
    weeks: tuple[int, int] = (1, 17)

    @property
    def id(self) -> UUID:
        return uuid5(NAMESPACE_URL, f"agent/{self.name}")

    def state(self) -> ev.AgentRegistered:
        return ev.AgentRegistered(
            agent_id=self.id, agent_name=self.name, model=self.model, marks=self.marks, claimed=self.claimed
        )


ENTRANTS = (
    Entrant("house-opus", "anthropic/claude-opus-5", 0.21, marks=_COHORT),
    Entrant("house-gpt", "openai/gpt-6", 0.19, marks=_COHORT),
    Entrant("house-gemini", "google/gemini-4-pro", 0.15, marks=_COHORT),
    Entrant("house-llama", "meta/llama-5-70b", 0.05, marks=_COHORT),
    Entrant("gridiron-oracle", "openai/gpt-6", 0.24),
    Entrant("Fourth & Long", "anthropic/claude-opus-5", 0.17),
    Entrant("punt-returner", "google/gemini-4-pro", 0.12),
    Entrant("waiver_wire_warrior_of_the_north", "mistral/large-4", 0.14),
    Entrant("new-in-town", "openai/gpt-6", 0.2, weeks=(6, 17)),
    Entrant("late-arrival", "mistral/large-4", 0.1, weeks=(17, 17)),
    Entrant("נבחרת-הפוטבול", "anthropic/claude-opus-5", 0.1),
    Entrant("<b>bold</b>", "qwen/qwen-4", 0.08),
    Entrant("loudmouth", "qwen/qwen-4", 0.11, words=ev.State.FLAGGED),
    Entrant("unspeakable", "qwen/qwen-4", 0.1, name_state=ev.State.FLAGGED),
    Entrant("my-secret-name", "openai/gpt-6", 0.16, claimed=False),
    Entrant("nobody-owns-me", "meta/llama-5-70b", 0.07, claimed=False),
    Entrant("random-legal", "reference/random-legal", 0.0, marks=_REFERENCE),
    Entrant("price-greedy", "reference/price-greedy", 0.06, marks=_REFERENCE),
)


@dataclass(frozen=True)
class Week:
    """One real week."""

    number: int
    rows: tuple[dict[str, str], ...]
    lineups: dict[str, ev.LineupLocked] = field(default_factory=dict)

    @property
    def contest(self) -> str:
        return f"2017-W{self.number:02}"

    @cached_property
    def games(self) -> tuple[ev.Game, ...]:
        found = {}
        for row in self.rows:
            away, home = row["game_id"].split("_")[2:]
            kickoff = datetime.fromisoformat(row["kickoff"])
            found[row["game_id"]] = ev.Game(game_id=row["game_id"], away=away, home=home, kickoff=kickoff)
        return tuple(found.values())

    @property
    def locks_at(self) -> datetime:
        return min(game.kickoff for game in self.games)

    @cached_property
    def players(self) -> tuple[ev.PoolPlayer, ...]:
        return tuple(
            ev.PoolPlayer(
                player_id=row["player_id"] or row["source_player_id"],
                player_name=row["name"],
                positions=(row["position"],),
                team=row["team"],
                opponent=row["opponent"],
                game_id=row["game_id"],
                price=int(row["salary"]),
            )
            for row in self.rows
        )

    @cached_property
    def points(self) -> dict[str, int]:
        return {
            player.player_id: hundredths(row["source_dk_points"] or "0")
            for player, row in zip(self.players, self.rows, strict=True)
        }

    @cached_property
    def optimum(self) -> ev.OptimalLineup:
        return self._optimum(self.points)

    def _optimum(self, points: Mapping[str, int]) -> ev.OptimalLineup:
        pool = [
            Player(player.player_id, player.positions, player.price, points[player.player_id])
            for player in self.players
        ]
        best = optimal(pool, DEFAULT_ROSTER, CAP)
        return ev.OptimalLineup(points=best.points, price=best.price, players=tuple(sorted(best.players)))

    def lineup(self, entrant: Entrant) -> ev.LineupLocked:
        """An agent's lineup of this week."""
        if entrant.name not in self.lineups:
            self.lineups[entrant.name] = self._lineup(entrant)
        return self.lineups[entrant.name]

    def _lineup(self, entrant: Entrant) -> ev.LineupLocked:
        """The best of several random legal lineups, judged by price and a little foresight."""
        chance = random.Random(hashlib.sha256(f"{self.contest}/{entrant.name}".encode()).digest())
        worth = {
            player.player_id: player.price / 3 * chance.uniform(0.4, 1.6)
            + entrant.nerve * self.points[player.player_id]
            for player in self.players
        }
        by_position: dict[str, list[ev.PoolPlayer]] = {}
        for player in self.players:
            by_position.setdefault(player.positions[0], []).append(player)
        best: list[ev.PoolPlayer] = []
        for _ in range(60):
            chosen: list[ev.PoolPlayer] = []
            for slot in DEFAULT_ROSTER:
                able = [player for position in slot.positions for player in by_position[position]]
                chosen.append(max(chance.sample(able, 7), key=lambda player: worth[player.player_id]))
            legal = len({player.player_id for player in chosen}) == 9 and sum(p.price for p in chosen) <= CAP
            if legal and sum(worth[p.player_id] for p in chosen) > sum(worth[p.player_id] for p in best):
                best = chosen
        assert best, "sixty draws hold a legal lineup"
        return ev.LineupLocked(
            contest=self.contest,
            lineup_id=uuid5(NAMESPACE_URL, f"{self.contest}/{entrant.name}"),
            agent_id=entrant.id,
            revision=1,
            accepted_at=self.locks_at - timedelta(hours=3),
            model=entrant.model,
            marks=entrant.marks,
            picks=tuple(
                ev.LockedPick(
                    slot=slot.slot,
                    player_id=player.player_id,
                    price=player.price,
                    confidence=round(chance.uniform(0.3, 0.8), 2),
                )
                for slot, player in zip(DEFAULT_ROSTER, best, strict=True)
            ),
            total_price=sum(player.price for player in best),
            projected_score=chance.randint(11_000, 15_000),
            confidence=round(chance.uniform(0.35, 0.75), 2),
        )

    def opened(self) -> ev.ContestOpened:
        return ev.ContestOpened(
            contest=self.contest,
            season=2017,
            week=self.number,
            opened_at=self.locks_at - timedelta(days=4),
            locks_at=self.locks_at,
            cap=CAP,
            roster=DEFAULT_ROSTER,
            ruleset="draftkings-classic-1",
            scoring=SCORING,
            price_source="import",
            games=self.games,
            players=self.players,
        )

    def entered(self) -> list[Entrant]:
        return [entrant for entrant in ENTRANTS if entrant.weeks[0] <= self.number <= entrant.weeks[1]]

    def locked(self) -> Iterator[Told]:
        entrants = self.entered()
        yield ev.ContestLocked(contest=self.contest, locked_at=self.locks_at, entries=len(entrants)), 2
        names = {player.player_id: player.player_name for player in self.players}
        for entrant in entrants:
            lineup = self.lineup(entrant)
            yield lineup, 1
            about = {
                "contest": self.contest,
                "lineup_id": lineup.lineup_id,
                "agent_id": entrant.id,
                "revision": 1,
            }
            words = [ev.Words(pointer="/thesis", text=_THESES[len(entrant.name) % len(_THESES)])]
            for place, pick in enumerate(lineup.picks):
                reason = _REASONS[(place + len(entrant.name)) % len(_REASONS)].format(names[pick.player_id])
                words += [
                    ev.Words(pointer=f"/picks/{place}/rationale", text=reason),
                    ev.Words(pointer=f"/picks/{place}/main_factor", text=_FACTORS[place % len(_FACTORS)]),
                ]
            states = tuple(ev.FieldState(pointer=word.pointer, state=entrant.words) for word in words)
            yield ev.ReasoningJudged.model_validate(about | {"fields": states}), 1
            if entrant.words is ev.State.CLEARED:
                yield ev.ReasoningReleased.model_validate(about | {"words": tuple(words)}), 2

    def scores(self) -> ev.ScoresUpdated:
        """Provisional scores: the last game is to come, the one before it is being played."""
        ordered = sorted(self.games, key=lambda game: (game.kickoff, game.game_id))
        states: dict[str, Any] = {game.game_id: "over" for game in ordered}
        states[ordered[-2].game_id], states[ordered[-1].game_id] = "playing", "waiting"
        games = {player.player_id: player.game_id for player in self.players}
        points = {key: value if states[games[key]] == "over" else 0 for key, value in self.points.items()}
        lineups = []
        for number, entrant in enumerate(self.entered()):
            lineup = self.lineup(entrant)
            lineups.append(
                ev.LineupPoints(
                    lineup_id=lineup.lineup_id,
                    points=sum(points[pick.player_id] for pick in lineup.picks),
                    waiting=number % 4,
                    playing=number % 3,
                )
            )
        return ev.ScoresUpdated(
            contest=self.contest,
            sequence=1,
            players=tuple(ev.PlayerPoints(player_id=key, points=value) for key, value in points.items()),
            lineups=tuple(lineups),
            games=tuple(ev.GameProgress(game_id=name, state=state) for name, state in states.items()),
        )

    def settled(self) -> Iterator[Told]:
        yield from self._settled(1, "the games are final", self.points, self.optimum)

    def corrected(self) -> Iterator[Told]:
        """The second version: whom most agents picked has run for a touchdown that was not counted."""
        picked = Counter(pick.player_id for entrant in self.entered() for pick in self.lineup(entrant).picks)
        player = max(picked, key=lambda one: (picked[one], one))
        points = {**self.points, player: self.points[player] + 600}
        change = ev.CorrectedPlayer(
            player_id=player,
            before=self.points[player],
            after=points[player],
            statistics=(ev.CorrectedStatistic(statistic="rush_td", before=0, after=1),),
        )
        reason = "The league credits a run that had been scored as a fumble."
        yield from self._settled(2, reason, points, self._optimum(points), change)

    def _settled(
        self, version: int, reason: str, points: Mapping[str, int], optimum: ev.OptimalLineup, *changes: Any
    ) -> Iterator[Told]:
        results = []
        for entrant in self.entered():
            lineup = self.lineup(entrant)
            total = sum(points[pick.player_id] for pick in lineup.picks)
            result = ev.LineupSettled(
                contest=self.contest,
                settlement=version,
                lineup_id=lineup.lineup_id,
                agent_id=entrant.id,
                model=entrant.model,
                marks=entrant.marks,
                points=total,
                share=total * 10**6 // optimum.points,
                regret=optimum.points - total,
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
            results.append(result)
            yield result, version
        week = ev.WeekSettled(
            contest=self.contest,
            settlement=version,
            reason=reason,
            scoring=SCORING.scoring,
            settled_at=self.locks_at + timedelta(days=2 * version),
            optimal=optimum,
            certified=True,
            players=tuple(ev.PlayerPoints(player_id=key, points=value) for key, value in points.items()),
            lineups=len(self.entered()),
            digest="",
            corrected=changes,
        )
        yield week.model_copy(update={"digest": digest_of(week, results)}), version


_THESES = (
    "Pay for volume at running back and let the cheap tight end float. Totals look right in the early games.",
    "Balanced build. No player over 8,000, so nine fair chances instead of two great ones and seven prayers.",
    "Prices have not caught up with two backfields that changed hands on Tuesday; everything else follows from that.",
)
_REASONS = (
    "{} sees the ball more than his price says.",
    "{} is the cheapest way to a role that rarely disappears mid-game.",
    "Price and position rank disagree for {}; I trust the position.",
    "{} fills the slot and leaves the money where the spread between players is widest.",
)
_FACTORS = ("price against position", "volume", "salary relief", "game total")


def weeks(number: int = 17) -> Iterator[Week]:
    """The first weeks of the season: Sunday and Monday games, players with a price."""
    by_week: dict[int, list[dict[str, str]]] = {}
    with gzip.open(DATA, "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["weekday"] in ("Sunday", "Monday") and row["salary"] not in ("", "0"):
                by_week.setdefault(int(row["week"]), []).append(row)
    for week in range(1, number + 1):
        yield Week(week, tuple(by_week[week]))


def told(settled: int, *, locked: int = 0, opened: int = 0) -> Iterator[Told]:
    """Agents, then so many settled weeks, the second one corrected, then some only locked, then some only open."""
    for entrant in ENTRANTS:
        yield entrant.state(), 1
        yield ev.AgentNameJudged(agent_id=entrant.id, agent_name=entrant.name, state=entrant.name_state), 1
        yield ev.ModelJudged(model=entrant.model, state=ev.State.CLEARED), 1
    for week in weeks(settled + locked + opened):
        yield week.opened(), 1
        if week.number <= settled + locked:
            yield from week.locked()
        if week.number <= settled:
            yield from week.settled()
        if week.number == 2 <= settled:
            yield from week.corrected()
