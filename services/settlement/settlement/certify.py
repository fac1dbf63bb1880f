"""A second opinion on the best lineup, by another method and another program: OR-Tools' CP-SAT.

The model here is built from the same players, roster and cap as ``optimal``, and from nothing that
``optimal`` computes. A week is settled only where both agree on the points. Points alone are asked for:
among equally good lineups solvers differ, which is what ``optimal``'s stated order is for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from common.events import Slot
from settlement.optimal import Player

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


def certify(players: Iterable[Player], roster: Sequence[Slot], cap: int, claimed: int) -> Certificate:
    """Solve the week anew and compare: one variable for each player in each slot open to him.

    One thread and a fixed seed, so that the same week takes the same steps everywhere. The players are
    sorted first, so that their order in the input does not matter either.
    """
    # Loading OR-Tools takes about a second, which only those who certify should pay.
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    pool = sorted(players, key=lambda player: player.player_id)
    places: list[list[cp_model.IntVar]] = [[] for _ in roster]
    costs, gains = [], []
    for player in pool:
        seats = []
        for number, slot in enumerate(roster):
            if set(slot.positions).intersection(player.positions):
                seat = model.new_bool_var(f"{player.player_id}@{slot.slot}")
                places[number].append(seat)
                seats.append(seat)
                costs.append(seat * player.price)
                gains.append(seat * player.points)
        model.add_at_most_one(seats)
    for place in places:
        model.add_exactly_one(place)
    model.add(sum(costs) <= cap)
    model.maximize(sum(gains))

    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    solver.parameters.max_time_in_seconds = SECONDS
    status = solver.solve(model)
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return Certificate(solver.status_name(status), round(solver.objective_value) if found else None, claimed)
