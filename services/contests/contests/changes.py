"""What an import would change of a contest that is there already, and what that would break. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from common.canonical import instant
from common.events import Game, PoolPlayer
from contests.domain import Ruleset, crowded, games_lacking


@dataclass(frozen=True, slots=True)
class Terms:
    """What a contest is played for and by: all that an import decides of it."""

    ruleset: Ruleset
    games: tuple[Game, ...]
    players: tuple[PoolPlayer, ...]
    locks_at: datetime
    price_source: str


@dataclass(frozen=True, slots=True)
class Changes:
    """What differs between two terms, before and after. Empty where only the file's name is another."""

    added: list[dict[str, Any]] = field(default_factory=list)
    removed: list[dict[str, Any]] = field(default_factory=list)
    prices: list[dict[str, Any]] = field(default_factory=list)
    players: list[dict[str, Any]] = field(default_factory=list)
    games: list[dict[str, Any]] = field(default_factory=list)
    terms: dict[str, dict[str, str]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.prices or self.players or self.games or self.terms)

    def document(self) -> dict[str, Any]:
        """The changes as JSON."""
        return {name: getattr(self, name) for name in Changes.__slots__}

    def counts(self) -> dict[str, int]:
        """How many of each there are."""
        return {name: len(getattr(self, name)) for name in Changes.__slots__}


def compare(before: Terms, after: Terms) -> Changes:
    """What an import changes. ``terms`` has the ruleset, the lock and the source of prices, as far as they differ."""
    old, new = ({player.player_id: player for player in terms.players} for terms in (before, after))
    changes = Changes(
        added=[_named(new[one]) for one in sorted(new.keys() - old.keys())],
        removed=[_named(old[one]) for one in sorted(old.keys() - new.keys())],
    )
    for one in sorted(old.keys() & new.keys()):
        was, now = old[one], new[one]
        if was.price != now.price:
            changes.prices.append({**_who(now), "before": was.price, "after": now.price})
        if _of_player(was) != _of_player(now):
            changes.players.append({**_who(now), "before": _of_player(was), "after": _of_player(now)})
    games_before, games_after = ({game.game_id: game for game in terms.games} for terms in (before, after))
    for game in sorted(games_before.keys() | games_after.keys()):
        was_game, now_game = _of_game(games_before.get(game)), _of_game(games_after.get(game))
        if was_game != now_game:
            changes.games.append({"game_id": game, "before": was_game, "after": now_game})
    if before.ruleset != after.ruleset:
        changes.terms["ruleset"] = {"before": before.ruleset.ruleset, "after": after.ruleset.ruleset}
    if before.locks_at != after.locks_at:
        changes.terms["locks_at"] = {"before": instant(before.locks_at), "after": instant(after.locks_at)}
    if changes and before.price_source != after.price_source:
        changes.terms["price_source"] = {"before": before.price_source, "after": after.price_source}
    return changes


def _who(player: PoolPlayer) -> dict[str, Any]:
    return {"player_id": player.player_id, "name": player.player_name}


def _named(player: PoolPlayer) -> dict[str, Any]:
    return {**_who(player), "team": player.team, "price": player.price}


def _of_player(player: PoolPlayer) -> dict[str, Any]:
    return {
        "name": player.player_name,
        "positions": list(player.positions),
        "team": player.team,
        "game_id": player.game_id,
    }


def _of_game(game: Game | None) -> dict[str, Any] | None:
    if game is None:
        return None
    after_lock = {"became", "resumed_at", "in_week"}
    return {**game.model_dump(mode="json", exclude={"game_id", *after_lock}), "kickoff": instant(game.kickoff)}


@dataclass(slots=True)
class Breaks:
    """How many of a contest's lineups new terms would not take: totals alone, of no agent in particular (C8).

    ``lineups`` there are; ``broken`` of them would be refused if they came now: for a player who is gone
    (``vanished``), a total above the cap (``over_cap``), or a slot that is not filled as it must be, too many of a
    team or too few games (``unfit``).
    """

    lineups: int = 0
    broken: int = 0
    vanished: int = 0
    over_cap: int = 0
    unfit: int = 0

    def document(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in Breaks.__slots__}

    def sentence(self) -> str:
        """The totals in words."""
        if not self.lineups:
            return "No lineup has come in yet."
        return (
            f"Of {self.lineups} lineups {self.broken} would not be taken any more: {self.vanished} hold a player that "
            f"would vanish, {self.over_cap} would cost more than the cap, {self.unfit} would not fit roster or rules."
        )


def breaks(lineups: Iterable[Sequence[Mapping[str, Any]]], after: Terms) -> Breaks:
    """What new terms break of lineups, each given as its picks (``slot``, ``player_id``)."""
    players = {player.player_id: player for player in after.players}
    slots = {slot.slot: frozenset(slot.positions) for slot in after.ruleset.roster}
    rules = after.ruleset.lineup_rules
    found = Breaks()
    for picks in lineups:
        held = [(pick["slot"], players.get(pick["player_id"])) for pick in picks]
        vanished = any(player is None for _, player in held)
        over_cap = sum(player.price for _, player in held if player) > after.ruleset.cap
        unfit = {slot for slot, _ in held} != slots.keys() or any(
            player is not None and slots[slot].isdisjoint(player.positions) for slot, player in held
        )
        here = [player for _, player in held if player]
        unfit = unfit or bool(crowded(here, rules)) or (len(here) == len(slots) and games_lacking(here, rules) > 0)
        found.lineups += 1
        found.vanished += vanished
        found.over_cap += over_cap
        found.unfit += unfit
        found.broken += vanished or over_cap or unfit
    return found
