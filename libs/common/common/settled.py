"""The digest of a settled week: which results are meant by ``week.settled``. Pure; no rule of play is in it.

**Specification.** The digest is the SHA-256, as 64 lower-case hexadecimal digits, of the RFC 8785 form of ::

    {"contest": …, "scoring": …,
     "optimal": {"points": …, "price": …, "players": [id, …]},
     "players": [{"player_id": …, "points": …}, …],
     "lineups": [{"model": …, "marks": {"cohort": …, "house": …, "reference": …},
                  "points": …, "share": …, "regret": …,
                  "picks": [{"slot": …, "player_id": …, "price": …, "points": …}, …]}, …]}

``contest``, ``scoring``, ``optimal`` and ``players`` are those of ``week.settled``, ``players`` in the order of
their ids and ``optimal.players`` as they stand there; ``lineups`` are the ``lineup.settled`` of that contest and
version, each with its picks in the order of their slots, in the order of the bytes of their own RFC 8785 forms.
Ids and slots are ordered by Unicode code point. Points and regret are hundredths, shares millionths.

Neither ids of agents and lineups, nor times, nor the version and its reason are in it, and the order in which
anything arrived is not: a replay of the same week gives the same digest, and whoever holds the events can work
it out again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from common import events as ev
from common.canonical import canonical_json, sha256_hex
from common.commitment import json_string

PickTuple = tuple[str, str, int, int]
"""Slot, player's id, price and points of a pick, for those who keep no events."""


def digest_of(week: ev.WeekSettled, lineups: Iterable[ev.LineupSettled]) -> str:
    """The digest that ``week.digest`` must be, from the results of its version."""
    forms = (
        lineup_form(
            lineup.model,
            lineup.marks,
            lineup.points,
            lineup.share,
            lineup.regret,
            ((pick.slot, pick.player_id, pick.price, pick.points) for pick in lineup.picks),
        )
        for lineup in lineups
    )
    players = {player.player_id: player.points for player in week.players}
    return digest(week.contest, week.scoring, week.optimal, players, forms)


def digest(
    contest: str, scoring: str, optimal: ev.OptimalLineup, players: Mapping[str, int], lineups: Iterable[bytes]
) -> str:
    """The digest of a week whose ``players`` (points by id) and :func:`lineup_form` of each lineup are at hand."""
    return sha256_hex(
        # The lineups' forms are put into the document's form as they are: each is made once only.
        b'{"contest":%b,"lineups":[%b],"optimal":%b,"players":%b,"scoring":%b}'
        % (
            canonical_json(contest),
            b",".join(sorted(lineups)),
            canonical_json({"points": optimal.points, "price": optimal.price, "players": list(optimal.players)}),
            canonical_json([{"player_id": one, "points": points} for one, points in sorted(players.items())]),
            canonical_json(scoring),
        )
    )


def lineup_form(model: str, marks: ev.Marks, points: int, share: int, regret: int, picks: Iterable[PickTuple]) -> bytes:
    """The RFC 8785 form of one lineup of the digest's document; its picks may come in any order."""
    # Written out, members in their order: there is one for every lineup, and the library takes ten times as long.
    listed = ",".join(
        [
            f'{{"player_id":{json_string(player_id)},"points":{worth},"price":{price},"slot":{json_string(slot)}}}'
            for slot, player_id, price, worth in sorted(picks)
        ]
    )
    cohort, house, reference = (_BOOLEAN[mark] for mark in (marks.cohort, marks.house, marks.reference))
    return (
        f'{{"marks":{{"cohort":{cohort},"house":{house},"reference":{reference}}},"model":{json_string(model)},'
        f'"picks":[{listed}],"points":{points},"regret":{regret},"share":{share}}}'
    ).encode()


_BOOLEAN = {True: "true", False: "false"}
