"""Agents, lineups and files for the tests of contests."""

import functools
import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import httpx

from common import events as ev
from common.events import PoolPlayer
from contests import imports, rulesets
from contests.domain import DAYS, EASTERN, Judge
from testkit import asking
from testkit.asking import Ask
from testkit.fixtures import Started

SLOTS = ("QB", "RB1", "RB2", "WR1", "WR2", "WR3", "TE", "FLEX", "DST")
HOME: dict[str, str] = {
    "RB1": "RB", "RB2": "RB", "WR1": "WR", "WR2": "WR", "WR3": "WR", "FLEX": "RB",
}  # fmt: skip


def data(name: str) -> bytes:
    """A file of the repository's data folder."""
    root = next(folder for folder in Path(__file__).resolve().parents if (folder / "uv.lock").exists())
    return (root / "data" / name).read_bytes()


@functools.cache
def week_four() -> imports.Week:
    return imports.read(data("pool_2017_dk.csv.gz"), 2017, 4).weeks[0]


@functools.cache
def judge() -> Judge:
    return Judge("2017-W04", rulesets.load(), week_four().players)


def cheapest(players: tuple[PoolPlayer, ...] = (), number: int = 0) -> dict[str, Any]:
    """A legal lineup of cheap players; ``number`` takes others of the same prices' neighbourhood, and other words."""
    free: dict[str, list[PoolPlayer]] = {}
    for player in sorted(players or week_four().players, key=lambda player: (player.price, player.player_id)):
        free.setdefault(player.positions[0], []).append(player)
    picks = []
    for slot in SLOTS:
        players_there = free[HOME.get(slot, slot)]
        player = players_there.pop(number % 10 if len(players_there) > 10 else 0)
        picks.append(
            {
                "slot": slot,
                "player_id": player.player_id,
                "rationale": f"{player.player_name} is cheap, and I say so {number} times over.",
                "confidence": 0.25,
                "main_factor": "price",
            }
        )
    return {"picks": picks, "thesis": f"Cheap {number}.", "projected_score": 88.25, "confidence": 0.5}


def body(lineup: Any) -> bytes:
    return json.dumps(lineup).encode()


HEADER = ",".join(imports.COLUMNS)
_ids = count(1)


def row(**cells: Any) -> str:
    """A sound row of a pool file: a receiver at 5,000, NE against BUF on 2026-10-04; ``cells`` replace its own."""
    number = next(_ids)
    made: dict[str, Any] = {
        "season": 2026,
        "week": 4,
        "source_player_id": f"dk-{number}",
        "player_id": f"00-{number:07d}",
        "name": f"Player {number}",
        "position": "WR",
        "team": "NE",
        "opponent": "BUF",
        "home_away": "home",
        "game_id": "2026_04_BUF_NE",
        "kickoff": "2026-10-04T13:00:00-04:00",
        "salary": 5000,
    }
    return ",".join(f'"{cell}"' if "," in str(cell) else str(cell) for cell in (made | cells).values())


def pool_file(*rows: str) -> bytes:
    return "\r\n".join([HEADER, *rows, ""]).encode()


MONDAY = {
    "team": "KC",
    "opponent": "DEN",
    "home_away": "away",
    "game_id": "2026_04_KC_DEN",
    "kickoff": "2026-10-05T20:15:00-04:00",
}
THURSDAY = {
    "team": "SEA",
    "opponent": "LA",
    "home_away": "away",
    "game_id": "2026_04_SEA_LA",
    "kickoff": "2026-10-01T20:15:00-04:00",
}


def small_pool(kickoff: str = "2026-10-04T13:00:00-04:00", season: int = 2026, week: int = 4) -> bytes:
    """A pool file with enough players for a lineup of its one Sunday game and a Monday game."""
    rows = [
        row(season=season, week=week, position=position, salary=4000 + 100 * number, kickoff=kickoff)
        for position, many in (("QB", 3), ("RB", 12), ("WR", 12), ("TE", 3), ("DST", 1))
        for number in range(many)
    ]
    return pool_file(*rows)


# --- a running service ----------------------------------------------------------------------------

W04 = "2017-W04"
OPENED = datetime(2017, 9, 28, 12, tzinfo=UTC)
LOCK = datetime(2017, 10, 1, 17, tzinfo=UTC)
TICK = timedelta(microseconds=1)


@dataclass(frozen=True)
class Player:
    """An agent with its key and the calls that it makes."""

    service: Started
    agent_id: UUID
    key: str

    @property
    def key_hash(self) -> str:
        return hashlib.sha256(self.key.encode()).hexdigest()

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}

    async def submit(
        self, lineup: Any, contest: str = W04, *, key: str | None = None, call: str = ""
    ) -> httpx.Response:
        headers = self.headers | ({"Idempotency-Key": key} if key else {})
        content = lineup if isinstance(lineup, bytes) else body(lineup)
        return await self.service.client.post(
            f"/api/v1/contests/{contest}/lineups{call}", content=content, headers=headers
        )

    async def get(self, path: str) -> httpx.Response:
        return await self.service.client.get(f"/api/v1/contests/{path}", headers=self.headers)

    def at(self, service: Started) -> "Player":
        """The same agent, calling another copy of the service."""
        return Player(service, self.agent_id, self.key)


def player(service: Started, number: int = 1) -> Player:
    """An agent that nobody has told the service of."""
    return Player(service, uuid5(UUID(int=0), str(number)), f"mafl_sk_test-{number}")


async def join(
    service: Started, *numbers: int, model: str = "openai/gpt-5", marks: ev.Marks | None = None
) -> list[Player]:
    """Agents whose events have arrived."""
    players = [player(service, number) for number in numbers]
    for one in players:
        state = ev.AgentRegistered(
            agent_id=one.agent_id, agent_name=f"agent {one.agent_id}", model=model, marks=marks or ev.Marks()
        )
        await service.publish(state)
        await service.publish(ev.AgentKeyChanged(agent_id=one.agent_id, key_hash=one.key_hash))
    await service.settle()
    return players


async def ok(answer: httpx.Response) -> Any:
    assert answer.is_success, answer.text
    return answer.json()


async def week_four_is_open(service: Started, now: datetime = OPENED) -> None:
    """The replay's clock stands at ``now`` and 2017-W04 takes lineups."""
    await service.move_clock(now)
    params = {"season": 2017, "week": 4}
    await ok(
        await service.operator.post(
            "/operator/api/v1/contests/import", content=data("pool_2017_dk.csv.gz"), params=params
        )
    )
    await ok(await service.operator.post(f"/operator/api/v1/contests/{W04}/open"))


def later_this_week() -> datetime:
    """A kickoff some hours or days from now, of a week to which a kickoff in the next minutes belongs too."""
    at = datetime.now(EASTERN)
    tuesday = (at + timedelta(days=(1 - at.weekday()) % 7)).replace(hour=23, minute=0, second=0, microsecond=0)
    return tuesday if tuesday - at > timedelta(hours=2) else tuesday + timedelta(days=1)


NEXT_YEAR = "2026-W04"


@functools.cache
def next_year() -> bytes:
    """A pool whose one game is still to come, until a test moves it: for tests by the real clock."""
    return small_pool(later_this_week().isoformat())


@functools.cache
def next_years_players() -> tuple[PoolPlayer, ...]:
    return imports.read(next_year(), days=DAYS).weeks[0].players


async def next_year_is_open(service: Started) -> None:
    """The contest of ``next_year``, which covers every day, takes lineups, by the real clock."""
    every = {"days": list(DAYS)}
    await ok(await service.operator.post("/operator/api/v1/contests/import", content=next_year(), params=every))
    await ok(await service.operator.post(f"/operator/api/v1/contests/{NEXT_YEAR}/open"))


async def kick_off_in(service: Started, seconds: float) -> datetime:
    """Move the one game, and so the lock of ``next_year``, to so many seconds from now; the lock instant."""
    kickoff = datetime.now(UTC) + timedelta(seconds=seconds)
    moved = {"game_id": "2026_04_BUF_NE", "kickoff": kickoff.isoformat()}
    answer = await ok(await service.operator.post(f"/operator/api/v1/contests/{NEXT_YEAR}/reschedule", json=moved))
    return datetime.fromisoformat(answer["locks_at"])


# --- what anybody may ask --------------------------------------------------------------------------

_PLACES = {"contest_id": (W04, "2017-W09", "nonsense"), "format": ("json", "csv")}


def public_asks() -> list[Ask]:
    """Every public call of contests, by nobody and by the outsider."""
    found = []
    for route in asking.routes_of("contests"):
        if route.public:
            for who in ("nobody", "the outsider"):
                found += asking.plainly(route, _PLACES, ("nonsense",), who)
    found += [Ask("GET", f"/api/v1/contests/{W04}/pool", (("If-None-Match", "*"),))]
    for call in ("/check", ""):
        for body in (cheapest(), {**cheapest(), "thesis": ""}):
            if call or not body["thesis"]:
                target = f"/api/v1/contests/{W04}/lineups{call}"
                found.append(Ask("POST", target, (), json.dumps(body).encode(), "the outsider"))
    return found


async def send(outsider: Player, ask: Ask) -> Any:
    headers = dict(ask.headers) | (outsider.headers if ask.who == "the outsider" else {})
    client = outsider.service.client
    answer = await client.request(ask.method, ask.target, headers=headers, content=ask.body)
    assert answer.status_code < 500, (ask.name, answer.text)
    return answer
