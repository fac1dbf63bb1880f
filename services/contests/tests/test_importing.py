"""Imports into a running service: what an operator sends, and what becomes of contests."""

from datetime import UTC, datetime
from typing import Any

import anyio
import pytest

from common import events as ev
from contests.store import Store
from testkit.fixtures import Start, Started

from .helpers import SLOTS, join, ok, pool_file, row
from .list_files import FD_HEADER, SEA_MIA, SUNDAY, directory, dk, dk_file, fd, lines, schedule

IMPORT = "/operator/api/v1/contests/import"


async def send(service: Started, list_: bytes, *, expect: int = 200, **options: Any) -> Any:
    """Import a list, with ``schedule`` and ``players`` beside it where they are given."""
    parts = [("file", ("list.csv", list_))]
    if "schedule" in options:
        parts.append(("schedule", ("games.csv", options.pop("schedule"))))
    parts += [("players", ("players.csv", one)) for one in options.pop("players", ())]
    form = {"files": parts} if len(parts) > 1 else {"content": list_}
    answer = await service.operator.post(IMPORT, params=options, **form)  # type: ignore[arg-type]
    assert answer.status_code == expect, answer.text
    return answer.json()


@pytest.mark.rule("C3", "C11")
async def test_a_list_is_sent_with_its_schedule_and_players_in_one_form(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        content = lines(FD_HEADER, fd(), fd("Seattle Seahawks", number=2, position="D", price="4500"))
        refused = await send(service, content, expect=422)
        assert refused["code"] == "nothing-to-play"
        assert "give the schedule (--schedule)" in refused["detail"]
        known = directory("00-1,Jo Doe,WR,SEA")
        report = await send(service, content, schedule=schedule(SEA_MIA), players=known)
        assert (report["outcomes"], report["offered"]) == ({"2020-W04": "created"}, 2)
        assert report["source"].startswith("fanduel sha256:")
        await service.move_clock(datetime(2020, 10, 1, 12, tzinfo=UTC))
        await ok(await service.operator.post("/operator/api/v1/contests/2020-W04/open"))
        contest = await ok(await service.client.get("/api/v1/contests/2020-W04"))
        assert (contest["cap"], contest["ruleset"]) == (60_000, "fanduel-classic-1")
        pool = (await ok(await service.client.get("/api/v1/contests/2020-W04/pool")))["players"]
        assert [(player["player_id"], player["price"]) for player in pool] == [("00-1", 7000), ("DST-SEA", 4500)]


@pytest.mark.rule("C3", "C8")
async def test_a_ruleset_with_rules_on_teams_is_told_judged_by_and_counted_where_lineups_break_it(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await is_open(service, pool())
        (one,) = await join(service, 1)
        await ok(await one.submit(lineup(), W04))
        # All players of the pool are of two teams, so that any lineup has five of one.
        report = await send(service, pool(), ruleset="fanduel-classic-2", force=True)
        breaks = {"lineups": 1, "broken": 1, "vanished": 0, "over_cap": 0, "unfit": 1}
        assert report["breaks"] == {W04: breaks}
        contest = await ok(await service.client.get(f"/api/v1/contests/{W04}"))
        assert contest["lineup_rules"] == {"max_per_team": 4, "min_games": None}
        first, second = await service.published(ev.ContestOpened)
        assert (first.lineup_rules, second.lineup_rules.max_per_team) == (ev.LineupRules(), 4)
        refused = await one.submit(lineup(), W04, call="/check")
        assert (refused.status_code, refused.json()["code"]) == (422, "lineup-invalid")
        assert "team-crowded" in {violation["code"] for violation in refused.json()["violations"]}


@pytest.mark.rule("C11")
async def test_a_showdown_list_makes_no_contest_and_the_answer_says_what_does(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        refused = await send(service, dk_file(dk(roster="CPT"), dk(roster="FLEX", number=2)), expect=422)
        assert refused["code"] == "nothing-to-play"
        assert "Download DKSalaries.csv of a classic contest" in refused["detail"]


@pytest.mark.rule("C11")
async def test_a_form_that_is_no_import_is_refused(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        part = ("a.csv", dk_file(dk(game=SUNDAY)))
        for files in ([("file", part), ("file", part)], [("schedule", part)], [("file", part), ("other", part)]):
            answer = await service.operator.post(IMPORT, files=files)
            assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")
        for content_type, content in (
            ("multipart/form-data", b"x"),
            ("multipart/form-data; boundary=b", b"--b\r\nnonsense"),
            ("multipart/form-data; boundary=b", b"\r\n\r\n"),
            (
                "multipart/form-data; boundary=b",
                b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\nx\r\n--b--',
            ),
        ):
            answer = await service.operator.post(IMPORT, content=content, headers={"Content-Type": content_type})
            assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request"), content


# --- a contest that is there already --------------------------------------------------------------

W04 = "2026-W04"


def pool(*, prices: dict[str, int] | None = None, without: tuple[str, ...] = ()) -> bytes:
    """A pool of one game with players named after position and number; ``prices`` replace those of 5,000."""
    rows = []
    for position, many in (("QB", 2), ("RB", 4), ("WR", 5), ("TE", 2), ("DST", 1)):
        for number in range(many):
            player_id = f"{position}-{number}"
            if player_id not in without:
                price = (prices or {}).get(player_id, 5000)
                rows.append(row(name=f"No {player_id}", player_id=player_id, position=position, salary=price))
    return pool_file(*rows)


PICKS = ("QB-0", "RB-0", "RB-1", "WR-0", "WR-1", "WR-2", "TE-0", "RB-2", "DST-0")


def lineup(*, quarterback: str = "QB-0") -> dict[str, Any]:
    picks = [
        {"slot": slot, "player_id": player, "rationale": "why not", "confidence": 0.5, "main_factor": "price"}
        for slot, player in zip(SLOTS, (quarterback, *PICKS[1:]), strict=True)
    ]
    return {"picks": picks, "thesis": "All at five.", "projected_score": 100, "confidence": 0.5}


async def is_open(service: Started, content: bytes) -> None:
    await service.move_clock(datetime(2026, 10, 1, 12, tzinfo=UTC))
    await send(service, content)
    await ok(await service.operator.post(f"/operator/api/v1/contests/{W04}/open"))


@pytest.mark.rule("C11")
async def test_an_import_again_says_what_differs_before_and_after(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await send(service, pool(without=("WR-4",)))
        later = schedule("2026_04_BUF_NE,2026,4,BUF,NE,2026-10-04T16:25:00-04:00,Home")
        changed = pool(prices={"QB-0": 5500}, without=("TE-1",))
        dry = await send(service, changed, dry_run=True, schedule=later)
        report = await send(service, changed, schedule=later)
        assert dry == report | {"dry_run": True}
        assert (report["outcomes"], report["breaks"]) == ({W04: "replaced"}, {})
        changes = report["changes"][W04]
        assert [player["player_id"] for player in changes["added"]] == ["WR-4"]
        assert [player["player_id"] for player in changes["removed"]] == ["TE-1"]
        assert changes["prices"] == [{"player_id": "QB-0", "name": "No QB-0", "before": 5000, "after": 5500}]
        (game,) = changes["games"]
        assert (game["before"]["kickoff"], game["after"]["kickoff"]) == (
            "2026-10-04T17:00:00Z",
            "2026-10-04T20:25:00Z",
        )
        assert changes["terms"]["locks_at"] == {"before": "2026-10-04T17:00:00Z", "after": "2026-10-04T20:25:00Z"}
        assert changes["terms"]["price_source"]["after"].startswith("mafl-pool sha256:")
        assert (await send(service, changed))["outcomes"] == {W04: "unchanged"}


@pytest.mark.rule("C2", "C3", "C11")
async def test_an_open_contest_without_lineups_takes_a_new_pool_and_tells_of_it(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await is_open(service, pool())
        (one,) = await join(service, 1)
        sound = await one.submit(lineup(), W04, call="/check")
        assert sound.status_code == 200, sound.text
        later = schedule("2026_04_BUF_NE,2026,4,BUF,NE,2026-10-04T16:25:00-04:00,Home")
        report = await send(service, pool(prices={"QB-0": 11_000}), schedule=later)
        assert (report["outcomes"], report["breaks"][W04]["lineups"]) == ({W04: "changed"}, 0)
        # The judge of the old pool is gone: the same body costs too much now.
        refused = await one.submit(lineup(), W04)
        assert [violation["code"] for violation in refused.json()["violations"]] == ["over-cap"]
        await ok(await one.submit(lineup(quarterback="QB-1"), W04))
        shown = await ok(await service.client.get(f"/api/v1/contests/{W04}"))
        assert (shown["locks_at"], shown["state"]) == ("2026-10-04T20:25:00Z", "open")
        first, second = await service.published(ev.ContestOpened)
        assert (first.pool, second.pool, first.opened_at) == (1, 2, second.opened_at)
        assert {p.player_id: p.price for p in second.players}["QB-0"] == 11_000
        await service.move_clock(datetime(2026, 10, 4, 20, 24, tzinfo=UTC))
        assert (await ok(await service.client.get(f"/api/v1/contests/{W04}")))["state"] == "open"
        await service.move_clock(datetime(2026, 10, 4, 20, 25, tzinfo=UTC))
        (locked,) = await service.published(ev.ContestLocked)
        assert (locked.pool, locked.entries) == (2, 1)


@pytest.mark.rule("C6", "C8", "C11")
async def test_a_contest_with_lineups_changes_by_force_alone_and_no_lineup_is_touched(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await is_open(service, pool())
        one, two, three = await join(service, 1, 2, 3)
        first = await ok(await one.submit(lineup(), W04))
        await ok(await two.submit(lineup(), W04))
        await ok(await two.submit(lineup(quarterback="QB-1"), W04))
        await ok(await three.submit(lineup(quarterback="QB-1"), W04))
        changed = pool(prices={"QB-1": 11_000}, without=("QB-0",))
        dry = await send(service, changed, dry_run=True)
        breaks = {"lineups": 3, "broken": 3, "vanished": 1, "over_cap": 2, "unfit": 0}
        assert (dry["outcomes"], dry["breaks"]) == ({W04: "refused"}, {W04: breaks})
        refused = await send(service, changed, expect=409)
        assert (refused["code"], refused["breaks"]) == ("contest-exists", breaks)
        assert "Of 3 lineups 3 would not be taken any more: 1 hold a player" in refused["detail"]
        told = str(refused) + str(dry)
        assert not any(str(agent.agent_id) in told for agent in (one, two, three))
        assert len(await service.published(ev.ContestOpened)) == 1

        report = await send(service, changed, force=True)
        assert (report["outcomes"], report["breaks"]) == ({W04: "changed"}, {W04: breaks})
        mine = await ok(await one.get(f"{W04}/lineups/mine"))
        assert (mine["revision"], mine["receipt"], mine["total_price"]) == (1, first["receipt"], 45_000)
        again = await one.submit(lineup(), W04)
        assert [violation["code"] for violation in again.json()["violations"]] == ["player-unknown"]
        acts = await ok(await service.operator.get("/operator/api/v1/audit/contests"))
        act = next(act for act in acts["acts"] if act["what"] == "reimport")
        assert (act["target"], act["after"]["breaks"]) == (f"contest/{W04}", breaks)
        await service.move_clock(datetime(2026, 10, 4, 17, tzinfo=UTC))
        locked = {final.agent_id: final for final in await service.published(ev.LineupLocked)}
        assert [pick.player_id for pick in locked[one.agent_id].picks] == list(PICKS)
        assert {final.total_price for final in locked.values()} == {45_000}


@pytest.mark.rule("C7", "C11")
async def test_no_force_changes_a_locked_contest_or_locks_one_in_the_past(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await is_open(service, pool())
        gone = schedule("2026_04_BUF_NE,2026,4,BUF,NE,2026-09-28T20:15:00-04:00,Home")
        past = await send(service, pool(), schedule=gone, force=True, expect=409)
        assert "would have locked at 2026-09-29T00:15:00Z" in past["detail"]
        await service.move_clock(datetime(2026, 10, 4, 17, tzinfo=UTC))
        refused = await send(service, pool(prices={"QB-0": 6000}), force=True, expect=409)
        assert "is locked, and nothing changes it" in refused["detail"]
        assert (await send(service, pool()))["outcomes"] == {W04: "unchanged"}


@pytest.mark.rule("C11")
async def test_a_season_is_imported_whole_or_not_at_all(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await is_open(service, pool())
        (one,) = await join(service, 1)
        await ok(await one.submit(lineup(), W04))
        fifth = row(week=5, game_id="2026_05_BUF_NE", kickoff="2026-10-11T13:00:00-04:00").encode()
        refused = await send(service, pool(prices={"QB-0": 6000}) + fifth, expect=409)
        assert refused["contest"] == W04
        listed = (await ok(await service.operator.get("/operator/api/v1/contests")))["contests"]
        assert [contest["contest"] for contest in listed] == [W04]


@pytest.mark.rule("C11")
async def test_later_lists_are_matched_to_the_players_that_earlier_imports_taught(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        league = schedule(SEA_MIA, "2020_05_MIA_SEA,2020,5,MIA,SEA,2020-10-11T13:00:00-04:00,Home")
        known = directory("00-1,Jo Doe,WR,SEA", "00-2,Al Other,QB,MIA")
        await send(service, dk_file(dk(), dk("Al Other", number=2, position="QB", team="MIA")), players=known)
        next_week = "MIA@SEA 10/11/2020 01:00PM ET"
        content = dk_file(dk(number=7, game=next_week), dk("Cy Third", number=8, game=next_week))
        report = await send(service, content, dry_run=True, schedule=league)
        assert (report["offered"], report["matched"]) == (1, {"name, team and position": 1})
        assert [note["name"] for note in report["unmatched"]] == ["Cy Third"]
        # Of another age it knows nobody, and says nothing.
        old = dk_file(dk(game="SEA@MIA 10/05/2014 01:00PM ET"))
        assert (await send(service, old, dry_run=True))["matched"] == {"the list's own id": 1}


# --- what has been decided of games since ---------------------------------------------------------

X = "2026_04_SEA_LA"


def other(kickoff: str = "2026-10-04T12:00:00-04:00", **cells: Any) -> bytes:
    """A row of a second game, which locks the week an hour earlier than that of :func:`pool`."""
    cells = {"game_id": X, "team": "SEA", "opponent": "LA", "kickoff": kickoff, **cells}
    return row(player_id="00-9", name="Jo Doe", **cells).encode()


async def decide(service: Started, what: str, **wanted: Any) -> None:
    await ok(await service.operator.post(f"/operator/api/v1/contests/{W04}/{what}", json=wanted))


async def games(service: Started) -> dict[str, tuple[str, str]]:
    """The games of the contest by id: kickoff and status."""
    shown = await ok(await service.client.get(f"/api/v1/contests/{W04}"))
    return {game["game_id"]: (game["kickoff"], game["status"]) for game in shown["games"]}


@pytest.mark.rule("C1", "C2", "C11")
async def test_a_list_that_came_out_earlier_brings_no_game_back(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await is_open(service, pool() + other())
        await decide(service, "drop-game", game_id=X, status="cancelled")
        report = await send(service, pool(prices={"QB-0": 5500}) + other())
        assert (report["outcomes"], report["changes"][W04]["games"]) == ({W04: "changed"}, [])
        assert f"{X} has left {W04} (cancelled)" in " ".join(report["notes"])
        assert [game["game_id"] for game in report["games"]] == ["2026_04_BUF_NE"]
        stands = {
            "2026_04_BUF_NE": ("2026-10-04T17:00:00Z", "scheduled"),
            X: ("2026-10-04T16:00:00Z", "cancelled"),
        }
        assert await games(service) == stands
        # A newer list has no row of it; the older one once more must find what was decided.
        report = await send(service, pool(prices={"QB-0": 5600}))
        assert (report["changes"][W04]["games"], await games(service)) == ([], stands)
        await send(service, pool(prices={"QB-0": 5500}) + other())
        assert await games(service) == stands
        # Nor does a list that gives the game another id, nor a schedule.
        await send(service, pool(prices={"QB-0": 5700}) + other(game_id="rams"))
        assert (await games(service))["rams"] == stands[X]
        league = ["2026_04_BUF_NE,2026,4,BUF,NE,2026-10-04T13:00:00-04:00,Home"]
        league += [f"{X},2026,4,LA,SEA,2026-10-04T20:20:00-04:00,Home"]
        await send(service, pool(prices={"QB-0": 5800}) + other(), schedule=schedule(*league))
        assert await games(service) == stands


@pytest.mark.rule("C2", "C7", "C11")
@pytest.mark.parametrize("state", ["draft", "open"])
async def test_a_list_moves_no_kickoff_that_the_contest_has_and_its_word_is_told(start: Start, state: str) -> None:
    async with start("contests", clock="replay") as service:
        await service.move_clock(datetime(2026, 10, 1, 12, tzinfo=UTC))
        await send(service, pool() + other())
        if state == "open":
            await decide(service, "open")
        # The league moves a game to half past nine, and the contest follows: it locks then.
        await decide(service, "reschedule", game_id=X, kickoff="2026-10-04T09:30:00-04:00")
        for again in (
            pool(prices={"QB-0": 5500}) + other(),
            pool(prices={"QB-0": 5600}) + other("2026-10-04T16:25:00-04:00"),
        ):
            dry = await send(service, again, dry_run=True)
            report = await send(service, again)
            assert dry == report | {"dry_run": True}
            assert (report["changes"][W04]["games"], report["locks_at"]) == ([], "2026-10-04T13:30:00Z")
            assert "locks_at" not in report["changes"][W04]["terms"]
            (difference,) = report["differences"]
            assert difference == {
                "game_id": X,
                "what": "kickoff",
                "listed": "2026-10-04T16:00:00Z" if again.count(b"T12:00") else "2026-10-04T20:25:00Z",
                "scheduled": "2026-10-04T13:30:00Z",
                "rows": 1,
            }
        if state == "draft":
            await decide(service, "open")
        assert (await games(service))[X] == ("2026-10-04T13:30:00Z", "scheduled")
        await service.move_clock(datetime(2026, 10, 4, 13, 30, tzinfo=UTC))
        (locked,) = await service.published(ev.ContestLocked)
        assert locked.locked_at == datetime(2026, 10, 4, 13, 30, tzinfo=UTC)


@pytest.mark.rule("C2", "C11")
async def test_a_schedule_brings_a_postponed_game_back_only_with_a_new_kickoff(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await is_open(service, pool() + other())
        await decide(service, "drop-game", game_id=X, status="moved")
        stays = "2026_04_BUF_NE,2026,4,BUF,NE,2026-10-04T13:00:00-04:00,Home"
        old = schedule(stays, f"{X},2026,4,LA,SEA,2026-10-04T12:00:00-04:00,Home")
        report = await send(service, pool(prices={"QB-0": 5500}) + other(), schedule=old)
        assert (report["outcomes"], report["changes"][W04]["games"]) == ({W04: "changed"}, [])
        assert (await games(service))[X] == ("2026-10-04T16:00:00Z", "moved")
        new = schedule(stays, f"{X},2026,4,LA,SEA,2026-10-05T20:15:00-04:00,Home")
        await send(service, pool(prices={"QB-0": 5500}) + other(), schedule=new)
        assert (await games(service))[X] == ("2026-10-06T00:15:00Z", "scheduled")


@pytest.mark.rule("C1", "C11")
async def test_other_days_leave_out_a_game_that_was_moved_to_a_day_they_have_not(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await is_open(service, pool() + other())
        await decide(service, "reschedule", game_id=X, kickoff="2026-10-05T20:15:00-04:00")
        await send(service, pool(prices={"QB-0": 5500}) + other(), days="Sunday")
        assert (await games(service))[X] == ("2026-10-06T00:15:00Z", "moved")


@pytest.mark.rule("C7", "C11")
async def test_a_dry_run_waits_for_nobody_and_nobody_for_it(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await is_open(service, pool())
        async with service.runtime.database.transaction() as connection:
            await Store(connection).hold(W04)  # As whoever changes the contest; a submission shares the lock.
            with anyio.fail_after(10):
                report = await send(service, pool(prices={"QB-0": 5500}), dry_run=True)
        assert report["outcomes"] == {W04: "changed"}


@pytest.mark.rule("C11")
async def test_a_dry_run_of_what_makes_no_contest_reports_and_says_that_an_import_fails(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        showdown = dk_file(dk(roster="CPT"), dk(roster="FLEX", number=2))
        unpriced = dk_file(dk(price="0"))
        for content, contest in ((showdown, None), (lines(FD_HEADER, fd()), None), (unpriced, "2020-W04")):
            report = await send(service, content, dry_run=True)
            assert (report["contest"], report["offered"]) == (contest, 0)
            assert report["outcomes"] == ({contest: "refused"} if contest else {})
            refused = await send(service, content, expect=422)
            assert refused["code"] == "nothing-to-play"
            assert refused["detail"].removesuffix(" Nothing was imported.") in " ".join(report["notes"])


@pytest.mark.rule("C2", "C7")
async def test_a_draft_whose_instant_has_passed_says_that_it_never_locked_and_what_helps(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await send(service, pool())
        await service.move_clock(datetime(2026, 10, 4, 17, tzinfo=UTC))
        answer = await service.operator.post(f"/operator/api/v1/contests/{W04}/open")
        assert (answer.status_code, answer.json()["code"]) == (409, "contest-locked")
        said = answer.json()["detail"]
        assert said.startswith(f"{W04} is a draft and would have locked at 2026-10-04T17:00:00Z; it is 2026-10-04T17")
        assert "import the week anew" in said
        # And so it is: with the schedule that has the game later, the draft opens.
        later = schedule("2026_04_BUF_NE,2026,4,BUF,NE,2026-10-04T16:25:00-04:00,Home")
        await send(service, pool(), schedule=later)
        await decide(service, "open")
