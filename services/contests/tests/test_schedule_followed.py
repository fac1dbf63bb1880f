"""A new schedule file is followed at once in every contest that is not locked: all of it or nothing."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import anyio
import pytest
from sqlalchemy import text

from common import events as ev
from contests import imports
from contests.store import Store
from testkit.fixtures import Start, Started

from .helpers import LOCK, OPENED, data, ok, week_four

ROOT = "/operator/api/v1/contests"
GAMES = sorted(week_four().games, key=lambda game: (game.kickoff, game.game_id))
Move = Callable[[ev.Game], str | None]


def file(change: dict[str, dict[str, str]] | None = None, *, without: tuple[str, ...] = ()) -> bytes:
    """A schedule of week four as it was, with changes by game id; an empty kickoff is not decided yet."""
    lines = ["game_id,season,week,away_team,home_team,kickoff"]
    for game in GAMES:
        cells = {
            "game_id": game.game_id,
            "season": "2017",
            "week": "4",
            "away_team": game.away,
            "home_team": game.home,
            "kickoff": game.kickoff.isoformat(),
        } | (change or {}).get(game.game_id, {})
        if game.game_id not in without:
            lines.append(",".join(cells.values()))
    return "\n".join(lines).encode()


def week_five() -> tuple[ev.Game, ...]:
    return imports.read(data("pool_2017_dk.csv.gz"), 2017, 5).weeks[0].games


async def drafts(service: Started, *weeks: int) -> None:
    await service.move_clock(OPENED)
    for week in weeks:
        params = {"season": 2017, "week": week}
        await ok(await service.operator.post(f"{ROOT}/import", content=data("pool_2017_dk.csv.gz"), params=params))


async def follow(service: Started, content: bytes, *, dry_run: bool = False) -> dict[str, Any]:
    params = {"dry_run": str(dry_run).lower()}
    found: dict[str, Any] = await ok(await service.operator.post(f"{ROOT}/reschedule", content=content, params=params))
    return found


async def shown(service: Started, contest: str = "2017-W04") -> dict[str, tuple[str, str]]:
    document = await ok(await service.client.get(f"/api/v1/contests/{contest}"))
    return {game["game_id"]: (game["kickoff"], game["status"]) for game in document["games"]}


@pytest.mark.rule("C1", "C2")
async def test_a_schedule_moves_games_and_locks_and_says_before_what_it_would_do(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await drafts(service, 4, 5)
        await ok(await service.operator.post(f"{ROOT}/2017-W04/open"))
        before = await shown(service)
        early, away, late, gone, unsaid = GAMES[0], GAMES[1], GAMES[-1], GAMES[2], GAMES[3]
        content = file(
            {
                early.game_id: {"kickoff": "2017-10-01T09:30:00-04:00"},
                # It moved to week seven, where it has another id; and the Rams are written otherwise than in the pool.
                away.game_id: {"game_id": "2017_07_X_Y", "week": "7", "kickoff": "2017-10-22T13:00:00-04:00"},
                late.game_id: {"kickoff": "2017-10-03T19:00:00-04:00"},
                unsaid.game_id: {"kickoff": ""},
            },
            without=(gone.game_id,),
        )
        said = await follow(service, content, dry_run=True)
        assert await shown(service) == before
        done = await follow(service, content)
        assert done["dry_run"] is False
        assert done == said | {"dry_run": False}
        four, five = done["contests"]
        assert (four["contest"], four["state"], four["at_once"]) == ("2017-W04", "open", False)
        assert four["locks_at"] == {"before": "2017-10-01T17:00:00Z", "after": "2017-10-01T13:30:00Z"}
        became = {game["game_id"]: (game["kickoff"]["after"], game["status"]["after"]) for game in four["games"]}
        assert became == {
            early.game_id: ("2017-10-01T13:30:00Z", "scheduled"),
            away.game_id: ("2017-10-22T17:00:00Z", "moved"),
            late.game_id: ("2017-10-03T23:00:00Z", "moved"),
        }
        assert (four["missing"], four["undecided"], four["cancelled"]) == ([gone.game_id], [unsaid.game_id], [])
        # Week five is not in the file: nothing is made of its silence.
        assert (five["contest"], five["state"], five["games"]) == ("2017-W05", "draft", [])
        assert set(five["missing"]) > set()
        assert await shown(service) == before | became
        again = await follow(service, content)
        assert [contest["games"] for contest in again["contests"]] == [[], []]
        await service.settle()
        (told,) = await service.envelopes(ev.ContestRescheduled)
        assert told[0].aggregateversion == 2
        assert told[1].locks_at == datetime.fromisoformat("2017-10-01T13:30:00Z")
        acts = (await ok(await service.operator.get("/operator/api/v1/audit/contests")))["acts"]
        assert {act["after"]["game_id"] for act in acts if act["what"] == "reschedule"} == set(became)
        # Back as it was: the games are there again, and the lock with them.
        back = await follow(service, file())
        assert back["contests"][0]["locks_at"]["after"] == "2017-10-01T17:00:00Z"
        assert await shown(service) == before


@pytest.mark.rule("C2")
async def test_a_schedule_that_leaves_a_contest_without_a_game_changes_none(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await drafts(service, 4, 5)
        week_later = {game.game_id: {"kickoff": (game.kickoff + timedelta(days=14)).isoformat()} for game in GAMES}
        five = "2017_05_NE_TB,2017,5,NE,TB,2017-10-05T20:25:00-04:00"
        content = file(week_later) + f"\n{five}".encode()
        for dry_run in ("true", "false"):
            answer = await service.operator.post(f"{ROOT}/reschedule", content=content, params={"dry_run": dry_run})
            assert (answer.status_code, answer.json()["code"]) == (409, "no-game-left")
            assert answer.json()["contest"] == "2017-W04"
        await ok(await service.operator.post(f"{ROOT}/2017-W04/open"))
        assert {status for _, status in (await shown(service)).values()} == {"scheduled"}


@pytest.mark.rule("C2", "C7")
async def test_a_schedule_leaves_what_is_locked_or_called_off_alone_and_locks_at_once_what_is_past(
    start: Start,
) -> None:
    async with start("contests", clock="replay") as service:
        await drafts(service, 3, 4, 5)
        for contest in ("2017-W03", "2017-W04", "2017-W05"):
            answer = await service.operator.post(f"{ROOT}/{contest}/open")
            assert answer.is_success == (contest != "2017-W03")
        await ok(await service.operator.post(f"{ROOT}/2017-W05/cancel", json={"reason": "No."}))
        await service.move_clock(LOCK - timedelta(hours=1))
        early = file({GAMES[0].game_id: {"kickoff": "2017-10-01T09:30:00-04:00"}})
        said = await follow(service, early, dry_run=True)
        assert said["untouched"] == [{"contest": "2017-W05", "state": "cancelled"}]
        (four,) = (contest for contest in said["contests"] if contest["contest"] == "2017-W04")
        assert (four["state"], four["at_once"]) == ("open", True)
        done = await follow(service, early)
        (four,) = (contest for contest in done["contests"] if contest["contest"] == "2017-W04")
        assert (four["state"], four["at_once"]) == ("locked", True)
        again = await follow(service, file())
        assert {"contest": "2017-W04", "state": "locked"} in again["untouched"]
        await service.settle()
        (locked,) = await service.published(ev.ContestLocked)
        assert locked.locked_at == LOCK - timedelta(hours=1) + timedelta(microseconds=1)


async def test_a_game_that_an_operator_dropped_comes_back_by_no_file(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await drafts(service, 4)
        await ok(await service.operator.post(f"{ROOT}/2017-W04/open"))
        game = GAMES[0]
        await ok(await service.operator.post(f"{ROOT}/2017-W04/drop-game", json={"game_id": game.game_id}))
        moved = file({game.game_id: {"kickoff": "2017-10-01T16:25:00-04:00"}})
        (four,) = (await follow(service, moved))["contests"]
        assert (four["games"], four["cancelled"]) == ([], [game.game_id])
        postponed = {"game_id": game.game_id, "status": "moved"}
        await ok(await service.operator.post(f"{ROOT}/2017-W04/drop-game", json=postponed))
        # The file still has the old kickoff of what is postponed to nobody knows when: it says nothing new.
        (four,) = (await follow(service, file()))["contests"]
        assert four["games"] == []
        (four,) = (await follow(service, moved))["contests"]
        assert [one["status"] for one in four["games"]] == [{"before": "moved", "after": "scheduled"}]


@pytest.mark.parametrize("content", [b"", b"no schedule", b"game_id,season,week,away_team,home_team,kickoff\nx,y"])
async def test_a_file_that_is_no_schedule_changes_nothing(start: Start, content: bytes) -> None:
    async with start("contests", clock="replay") as service:
        answer = await service.operator.post(f"{ROOT}/reschedule", content=content)
        assert answer.status_code == 422
        assert answer.json()["code"] == ("file-malformed" if content else "invalid-request")
        assert not content or answer.json()["detail"].endswith("Nothing was changed.")


@pytest.mark.rule("C7")
async def test_a_dry_run_of_a_schedule_waits_for_nobody_and_nobody_for_it(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await drafts(service, 4, 5)
        moved = file({GAMES[0].game_id: {"kickoff": "2017-10-01T16:25:00-04:00"}})
        async with service.runtime.database.transaction() as connection:
            await Store(connection).hold("2017-W04")
            with anyio.fail_after(10):
                said = await follow(service, moved, dry_run=True)
        assert [len(contest["games"]) for contest in said["contests"]] == [1, 0]


@pytest.mark.rule("C7")
async def test_a_schedule_changes_no_contest_that_came_while_it_waited(start: Start) -> None:
    waiting = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
    async with start("contests", clock="replay") as service:
        await drafts(service, 4, 5)
        await ok(await service.operator.post(f"{ROOT}/2017-W05/cancel", json={"reason": "No."}))
        games = [game for game in week_five() if game.kickoff.weekday() == 6]
        rows = [f"{g.game_id},2017,5,{g.away},{g.home},{(g.kickoff + timedelta(minutes=5)).isoformat()}" for g in games]
        content = file() + "\n".join(["", *rows]).encode()
        answers: list[dict[str, Any]] = []

        async def follows() -> None:
            answers.append(await follow(service, content))

        async with anyio.create_task_group() as group, service.runtime.database.transaction() as connection:
            await Store(connection).hold("2017-W04")
            group.start_soon(follows)
            with anyio.fail_after(20):
                while not (await connection.execute(waiting)).scalar_one():  # noqa: ASYNC110  (told by none)
                    await anyio.sleep(0.01)
            # Called off when the schedule was read, and no longer when its turn comes.
            params = {"season": 2017, "week": 5}
            pool = data("pool_2017_dk.csv.gz")
            await ok(await service.operator.post(f"{ROOT}/import", content=pool, params=params))
        (done,) = answers
        assert done["untouched"] == [{"contest": "2017-W05", "state": "cancelled"}]
        async with service.runtime.database.transaction() as connection:
            store = Store(connection)
            contest, there = await store.contest("2017-W05"), await store.games("2017-W05")
        assert contest is not None
        assert (contest.state, contest.version) == ("draft", 0)
        assert {game.game_id: game.kickoff for game in there} == {game.game_id: game.kickoff for game in week_five()}


async def test_a_schedule_of_other_seasons_speaks_of_no_contest(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await drafts(service, 4)
        other = file().replace(b",2017,4,", b",2016,4,")
        assert await follow(service, other) == {"dry_run": False, "contests": [], "untouched": []}
