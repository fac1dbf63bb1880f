"""A second opinion on the best lineup, by another method and another program: OR-Tools' CP-SAT.

Where a contest has rules on teams or games that the programme cannot express, it also finds the best one (``search``).

The model here is built from the same players, roster and cap as ``optimal``, and from nothing that
``optimal`` computes. A week is settled only where both agree on the points. Points alone are asked for:
among equally good lineups solvers differ, which is what ``optimal``'s stated order is for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from common.events import LineupRules, Slot
from settlement.optimal import Lineup, Player

NO_RULES = LineupRules()

SECONDS = 120.0
"""A week takes a tenth of a second; where the proof is not there after this it never will be."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """What CP-SAT says. ``status`` is its own word (``OPTIMAL`` is a proof); ``points`` in hundredths."""

    status: str
    points: int | None
    claimed: int

    @property
    def agrees(self) -> bool:
        """Whether the claimed points are proven to be the most there can be."""
        return self.status == "OPTIMAL" and self.points == self.claimed


class UnprovenError(ValueError):
    """CP-SAT did not come to a proof in ``SECONDS``."""


def certify(
    players: Iterable[Player], roster: Sequence[Slot], cap: int, claimed: int, rules: LineupRules = NO_RULES
) -> Certificate:
    """Solve the week anew and compare: one variable for each player in each slot open to him.

    One thread and a fixed seed, so that the same week takes the same steps everywhere. The players are
    sorted first, so that their order in the input does not matter either.
    """
    model = _Model(players, roster, cap, rules)
    status, points = model.most(model.points)
    return Certificate(status, points, claimed)


def search(players: Iterable[Player], roster: Sequence[Slot], cap: int, rules: LineupRules) -> Lineup | None:
    """The first lineup in the order of ``optimal``, or ``None`` where the pool has none. Raises ``UnprovenError``.

    The order is asked for step by step, each answer a constraint on the next: the most points, the lowest price, the
    smallest id, the smallest of the others' ids, and so on.
    """
    model = _Model(players, roster, cap, rules)
    for goal in (model.points, -model.price):
        status, value = model.most(goal)
        if status == "INFEASIBLE":
            return None
        if status != "OPTIMAL" or value is None:
            raise UnprovenError(f"CP-SAT found no proof in {SECONDS:.0f} seconds ({status})")
        model.model.add(goal == value)
    chosen: list[int] = []
    for _ in roster:
        # The next member is the first of those that are chosen and not known yet.
        after = chosen[-1] + 1 if chosen else 0
        first = [model.model.new_bool_var("") for _ in model.taken[after:]]
        for one, taken in zip(first, model.taken[after:], strict=True):
            model.model.add(one <= taken)
        model.model.add_exactly_one(first)
        status, value = model.most(-sum(place * one for place, one in enumerate(first, start=after)))
        if status != "OPTIMAL" or value is None:
            raise UnprovenError(f"CP-SAT found no proof in {SECONDS:.0f} seconds ({status})")
        model.model.add(model.taken[-value] == 1)
        for between in model.taken[after:-value]:
            model.model.add(between == 0)
        chosen.append(-value)
    members = [model.pool[place] for place in chosen]
    return Lineup(
        sum(player.points for player in members),
        sum(player.price for player in members),
        tuple(player.player_id for player in members),
    )


class _Model:
    """A week as CP-SAT has it: the expression ``taken[i]`` is 1 where ``pool[i]`` is in the lineup; by ids."""

    def __init__(self, players: Iterable[Player], roster: Sequence[Slot], cap: int, rules: LineupRules) -> None:
        # Loading OR-Tools takes about a second, which only those who certify should pay.
        from ortools.sat.python import cp_model

        self.cp = cp_model
        self.model = model = cp_model.CpModel()
        self.pool = sorted(players, key=lambda player: player.player_id)
        self.taken: list[Any] = []
        places: list[list[Any]] = [[] for _ in roster]
        for player in self.pool:
            seats = []
            for number, slot in enumerate(roster):
                if set(slot.positions).intersection(player.positions):
                    seat = model.new_bool_var(f"{player.player_id}@{slot.slot}")
                    places[number].append(seat)
                    seats.append(seat)
            model.add_at_most_one(seats)
            # A variable of its own for each player, bound to the seats, makes CP-SAT a hundred times as slow.
            self.taken.append(sum(seats))
        for place in places:
            model.add_exactly_one(place)
        self.price = sum(taken * player.price for taken, player in zip(self.taken, self.pool, strict=True))
        self.points = sum(taken * player.points for taken, player in zip(self.taken, self.pool, strict=True))
        model.add(self.price <= cap)
        if rules.max_per_team is not None:
            for members in self._by(lambda player: player.team):
                model.add(sum(members) <= rules.max_per_team)
        if rules.min_games is not None:
            touched = []
            for members in self._by(lambda player: player.game):
                # May be said of a game only where one of its players is taken.
                touched.append(model.new_bool_var(""))
                model.add(sum(members) >= touched[-1])
            model.add(sum(touched) >= rules.min_games)

    def _by(self, of: Callable[[Player], str]) -> list[list[Any]]:
        found: dict[str, list[Any]] = {}
        for taken, player in zip(self.taken, self.pool, strict=True):
            found.setdefault(of(player), []).append(taken)
        return list(found.values())

    def most(self, goal: Any) -> tuple[str, int | None]:
        """CP-SAT's word on the most that a goal can be, and that value where it found one."""
        self.model.maximize(goal)
        solver = self.cp.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = 1
        solver.parameters.max_time_in_seconds = SECONDS
        status = solver.solve(self.model)
        found = status in (self.cp.OPTIMAL, self.cp.FEASIBLE)
        return solver.status_name(status), round(solver.objective_value) if found else None
