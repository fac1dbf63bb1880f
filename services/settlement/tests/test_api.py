"""Importing and settling over HTTP, on a real database and bus."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import func, select, text

from common import events as ev
from common.points import hundredths
from common.requests import LARGEST_UPLOAD
from common.settled import digest_of
from settlement import commands
from settlement.certify import Certificate, certify
from settlement.optimal import best_lineups
from settlement.store import LINEUPS, RESULTS, SETTLEMENTS, STATISTICS
from testkit.fixtures import Start, Started

from .nflverse_made import as_csv, as_parquet, game, team

Play = Callable[..., Any]
File = Callable[..., bytes]

SETTLE = "/operator/api/v1/contests/2017-W04/settle"
FINAL = "/operator/api/v1/statistics?week=4&final=true"
LIVE = "/operator/api/v1/statistics?week=4"


async def hear(settlement: Started, week: Any) -> None:
    for event in week.events:
        await settlement.publish(event)
    await settlement.settle()


async def rows(settlement: Started, table: Any) -> int:
    async with settlement.runtime.database.transaction() as connection:
        return int((await connection.execute(select(func.count()).select_from(table))).scalar_one())


@pytest.mark.rule("S1", "S2", "S3")
async def test_a_real_week_is_settled_to_the_points_that_the_data_gives(
    start: Start, play_week: Play, statistics_file: File
) -> None:
    week = play_week(4, entries=12)
    async with start("settlement") as settlement:
        await hear(settlement, week)
        report = (await settlement.operator.post(FINAL, content=statistics_file(4))).json()
        assert report["weeks"][0]["contests"][0]["contest"] == "2017-W04"
        assert report["weeks"][0]["contests"][0]["scores_updated"] is False
        assert report["weeks"][0]["changed"] == report["weeks"][0]["lines"] > 300
        answer = await settlement.operator.post(SETTLE)
        assert answer.status_code == 200, answer.text
        body = answer.json()
        assert (body["settlement"], body["changed"], body["lineups"]) == (1, True, 12)
        assert body["optimal"]["points"] == 27014
        assert body["optimal"]["price"] == 49800
        await settlement.settle()

        [settled] = await settlement.published(ev.WeekSettled)
        worth = {player_id: hundredths(points) for player_id, points in week.worth.items()}
        assert {player.player_id: player.points for player in settled.players} == worth
        assert settled.optimal.model_dump(mode="json") == body["optimal"]
        assert sum(worth[player_id] for player_id in settled.optimal.players) == 27014
        assert (settled.lineups, settled.digest, settled.certified) == (12, body["digest"], True)
        lineups = await settlement.published(ev.LineupSettled)
        assert digest_of(settled, random.Random(1).sample(lineups, len(lineups))) == settled.digest
        assert digest_of(settled, lineups[1:]) != settled.digest
        assert {lineup.lineup_id for lineup in lineups} == {lineup.lineup_id for lineup in week.lineups}
        for lineup in lineups:
            assert lineup.points == sum(worth[pick.player_id] for pick in lineup.picks)
            assert lineup.share == lineup.points * 10**6 // 27014
            assert lineup.regret == 27014 - lineup.points
        # More points, more lineups below; and all that is told can be read again.
        assert settled.feasible_lineups is not None
        assert settled.no_ranks is None
        lineups.sort(key=lambda lineup: -lineup.points)
        places = [(int(lineup.rank or 0), int(lineup.tied or 0), lineup.percentile) for lineup in lineups]
        assert places == sorted(places)
        for rank, tied, percentile in places:
            below = int(settled.feasible_lineups) - (rank - 1) - tied
            assert min(rank, tied, below) > 0
            assert percentile == 10**6 * below // int(settled.feasible_lineups)
        assert body["feasible_lineups"] == settled.feasible_lineups
        kept = (await settlement.operator.get("/operator/api/v1/settlements/2017-W04/1")).json()["results"]
        assert {(one["lineup_id"], one["rank"], one["tied"], one["percentile"]) for one in kept} == {
            (str(one.lineup_id), one.rank, one.tied, one.percentile) for one in lineups
        }
        assert all(envelope.aggregateversion == 1 for envelope, _ in await settlement.envelopes(ev.LineupSettled))


@pytest.mark.rule("S1", "S3")
async def test_files_of_nflverse_are_read_together_and_strangers_are_told(start: Start, play_week: Play) -> None:
    """Provisional scores of a game in play: two teams' weeks and the score make two defences."""
    week = play_week(4, entries=2)
    known, stranger = "00-0030496", "00-0099999"  # Le'Veon Bell; nobody.
    players = "player_id,player_display_name,position,season,week,team,rushing_yards,rushing_tds\n" + "".join(
        f"{player_id},{name},RB,2017,{number},PIT,{yards},0\n"
        for player_id, name, number, yards in (
            (known, "L Bell", 4, 144),
            (stranger, "Leveon Bel", 4, 7),
            (known, "", 5, 1),
        )
    )
    teams = [
        team(2017, 4, "PIT", "BAL", rushing_tds=3, fg_made=2, pat_made=2, def_interceptions=2),
        team(2017, 4, "BAL", "PIT", passing_tds=1, fg_made=1, sacks_suffered=4),
    ]
    games = as_csv([game(2017, 4, "PIT", "BAL", (26, 9))])
    async with start("settlement") as settlement:
        await hear(settlement, week)
        form = [("file", file) for file in (players.encode(), as_parquet(teams), games)]
        answer = await settlement.operator.post(LIVE, files=form)
        assert answer.status_code == 200, answer.text
        report = answer.json()
        assert report["formats"] == ["nflverse players", "nflverse teams", "nflverse games"]
        assert report["notes"] == []
        (contest,) = report["weeks"][0]["contests"]
        assert (contest["unknown_players"], contest["scores_updated"]) == (1, True)
        (unknown,) = contest["unknown"]
        assert (unknown["player_id"], unknown["points"], unknown["nearest"][0]["player_id"]) == (stranger, 70, known)
        await settlement.settle()
        (scores,) = await settlement.published(ev.ScoresUpdated)
        worth = {player.player_id: player.points for player in scores.players}
        assert {one: points for one, points in worth.items() if points} == {
            known: 1440 + 300,
            "DST-PIT": 4 * 100 + 2 * 200 + 400,
        }
        empty = await settlement.operator.post(LIVE, files=[("statistics", ("p", players.encode()))])
        assert (empty.status_code, empty.json()["code"]) == (422, "invalid-request")


@pytest.mark.rule("S5")
async def test_settling_again_gives_the_same_version_and_tells_nothing_twice(
    start: Start, play_week: Play, statistics_file: File
) -> None:
    async with start("settlement") as settlement:
        await hear(settlement, play_week(4, entries=3))
        await settlement.operator.post(FINAL, content=statistics_file(4))
        first = (await settlement.operator.post(SETTLE, json={"reason": "games final"})).json()
        await settlement.operator.post(FINAL, content=statistics_file(4))
        again = (await settlement.operator.post(SETTLE)).json()
        assert first["changed"] is True
        assert again == {**first, "changed": False}
        await settlement.settle()
        assert len(await settlement.published(ev.WeekSettled)) == 1
        assert len(await settlement.published(ev.LineupSettled)) == 3


@pytest.mark.rule("S4")
async def test_a_correction_needs_a_reason_and_leaves_the_old_version_readable(
    start: Start, play_week: Play, statistics_file: File
) -> None:
    week = play_week(4, entries=3)
    player = week.lineups[0].picks[1].player_id
    async with start("settlement") as settlement:
        await hear(settlement, week)
        await settlement.operator.post(FINAL, content=statistics_file(4))
        first = (await settlement.operator.post(SETTLE)).json()
        correction = f"season,week,player_id,ret_td\n2017,4,{player},25\n".encode()
        report = (await settlement.operator.post(FINAL, content=correction)).json()
        assert report["weeks"][0]["changed"] == 1

        refused = await settlement.operator.post(SETTLE)
        assert (refused.status_code, refused.json()["code"]) == (409, "reason-required")
        blank = await settlement.operator.post(SETTLE, json={"reason": "  "})
        assert blank.json()["code"] == "reason-required"
        second = (await settlement.operator.post(SETTLE, json={"reason": "return touchdowns counted anew"})).json()
        assert (second["settlement"], second["changed"]) == (2, True)
        assert second["digest"] != first["digest"]
        moved = sum(player in {pick.player_id for pick in lineup.picks} for lineup in week.lineups)
        assert (first["corrected"], first["moved"], second["moved"]) == ([], 0, moved)
        await settlement.settle()
        weeks = await settlement.published(ev.WeekSettled)
        assert weeks[0].corrected == ()
        assert [one.model_dump(mode="json") for one in weeks[1].corrected] == second["corrected"]
        [told] = weeks[1].corrected
        assert (told.player_id, told.before, told.after) == (player, hundredths(week.worth[player]), 15_000)
        changed = {one.statistic: (one.before, one.after) for one in told.statistics}
        assert changed.pop("ret_td") == (0, 25)
        # The file replaced the player's line: what it does not name is not known any more.
        assert {after for _, after in changed.values()} == {None}
        assert all(before for before, _ in changed.values()), "not known and none are alike"
        assert [(week.settlement, week.reason) for week in weeks] == [
            (1, "final statistics"),
            (2, "return touchdowns counted anew"),
        ]
        assert [lineup.settlement for lineup in await settlement.published(ev.LineupSettled)] == [1] * 3 + [2] * 3

        old = (await settlement.operator.get("/operator/api/v1/settlements/2017-W04/1")).json()
        new = (await settlement.operator.get("/operator/api/v1/settlements/2017-W04/2")).json()
        assert old["players"][player] == hundredths(week.worth[player])
        assert new["players"][player] == 15_000
        assert old["digest"] == first["digest"]
        assert len(old["results"]) == len(new["results"]) == 3
        listed = (await settlement.operator.get("/operator/api/v1/settlements")).json()
        assert [one["settlement"] for one in listed] == [1, 2]
        missing = await settlement.operator.get("/operator/api/v1/settlements/2017-W04/3")
        assert missing.status_code == 404


@pytest.mark.rule("S4", "S5")
async def test_a_correction_that_changes_no_result_makes_no_version_and_one_taken_back_makes_another(
    start: Start, play_week: Play, statistics_file: File
) -> None:
    week = play_week(4, entries=2)
    player = next(pick.player_id for pick in week.lineups[0].picks if hundredths(week.worth[pick.player_id]) > 0)
    async with start("settlement") as settlement:
        await hear(settlement, week)
        await settlement.operator.post(FINAL, content=statistics_file(4))
        first = (await settlement.operator.post(SETTLE)).json()
        uncounted = statistics_file(4, {player: {"targets": "29", "pass_att": "99", "rush_att": "98"}})
        assert (await settlement.operator.post(FINAL, content=uncounted)).json()["weeks"][0]["changed"] == 1
        again = (await settlement.operator.post(SETTLE, json={"reason": "attempts counted anew"})).json()
        assert again == {**first, "changed": False}

        await settlement.operator.post(FINAL, content=statistics_file(4, {player: {"ret_td": "1"}}))
        second = (await settlement.operator.post(SETTLE, json={"reason": "a return was a touchdown"})).json()
        assert [(one["statistic"], one["after"]) for one in second["corrected"][0]["statistics"]] == [("ret_td", 1)]
        await settlement.operator.post(FINAL, content=statistics_file(4))
        third = (await settlement.operator.post(SETTLE, json={"reason": "it was none"})).json()
        assert (third["settlement"], third["digest"]) == (3, first["digest"])
        assert [(one["before"], one["after"]) for one in third["corrected"]] == [
            (one["after"], one["before"]) for one in second["corrected"]
        ]
        await settlement.settle()
        assert [one.settlement for one in await settlement.published(ev.WeekSettled)] == [1, 2, 3]


@pytest.mark.rule("S5")
async def test_lineups_that_have_not_arrived_are_waited_for(
    start: Start, play_week: Play, statistics_file: File
) -> None:
    week = play_week(4, entries=3)
    async with start("settlement") as settlement:
        answer = await settlement.operator.post(SETTLE)
        assert answer.status_code == 404
        assert "`mafl contest open`" in answer.json()["detail"]
        await settlement.publish(week.lineups[0])
        await settlement.publish(week.opened)
        await settlement.settle()
        await settlement.operator.post(FINAL, content=statistics_file(4))
        answer = await settlement.operator.post(SETTLE)
        assert (answer.status_code, answer.json()["code"]) == (409, "lineups-missing")
        assert answer.json()["waits_for"] == ["contest.locked"]
        assert "not locked yet" in answer.json()["detail"]
        await settlement.publish(week.locked)
        await settlement.settle()
        answer = await settlement.operator.post(SETTLE)
        assert (answer.json()["code"], answer.json()["have"], answer.json()["need"]) == ("lineups-missing", 1, 3)
        for lineup in week.lineups[1:]:
            await settlement.publish(lineup)
        await settlement.settle()
        assert (await settlement.operator.post(SETTLE)).status_code == 200


@pytest.mark.rule("S1")
async def test_only_final_statistics_settle_a_week(start: Start, play_week: Play, statistics_file: File) -> None:
    async with start("settlement") as settlement:
        await hear(settlement, play_week(4, entries=1))
        answer = await settlement.operator.post(SETTLE)
        assert (answer.status_code, answer.json()["code"]) == (409, "statistics-missing")
        await settlement.operator.post(LIVE, content=statistics_file(4))
        answer = await settlement.operator.post(SETTLE)
        assert "only provisional" in answer.json()["detail"]
        await settlement.operator.post(FINAL, content=statistics_file(4))
        assert (await settlement.operator.post(SETTLE)).status_code == 200
        late = await settlement.operator.post(LIVE, content=statistics_file(4))
        assert (late.status_code, late.json()["code"], late.json()["weeks"]) == (409, "statistics-final", ["2017-W04"])


@pytest.mark.rule("S1", "S3")
async def test_a_week_with_whole_games_unknown_is_settled_only_by_force_and_with_a_reason(
    start: Start, play_week: Play, statistics_file: File
) -> None:
    week = play_week(4, entries=2)
    cancelled = week.opened.games[3]
    of_game = {player.player_id for player in week.opened.players if player.game_id == cancelled.game_id}
    async with start("settlement") as settlement:
        await hear(settlement, week)
        some = next(iter(of_game))
        await settlement.operator.post(FINAL, content=f"season,week,player_id,rec\n2017,4,{some},3\n".encode())
        few = (await settlement.operator.post(SETTLE)).json()
        assert (few["status"], few["code"]) == (409, "statistics-incomplete")
        assert set(few["games"]) == {game.game_id for game in week.opened.games} - {cancelled.game_id}
        assert await rows(settlement, SETTLEMENTS) == 0

    async with start("settlement") as settlement:
        await hear(settlement, week)
        await settlement.operator.post(FINAL, content=statistics_file(4, leave_out=of_game))
        refused = (await settlement.operator.post(SETTLE, json={"reason": "never played"})).json()
        assert (refused["code"], refused["games"]) == ("statistics-incomplete", [cancelled.game_id])
        assert f"{cancelled.away} at {cancelled.home}" in refused["detail"]
        silent = (await settlement.operator.post(SETTLE, json={"force": True})).json()
        assert silent["code"] == "reason-required"
        done = (await settlement.operator.post(SETTLE, json={"force": True, "reason": "never played"})).json()
        assert (done["settlement"], done["reason"]) == (1, "never played")
        version = (await settlement.operator.get("/operator/api/v1/settlements/2017-W04/1")).json()
        assert {version["players"][player] for player in of_game} == {0}
        again = (await settlement.operator.post(SETTLE)).json()
        assert again == {**done, "changed": False}


@pytest.mark.rule("M1")
async def test_scores_of_a_locked_contest_are_told_while_games_are_played(
    start: Start, play_week: Play, statistics_file: File
) -> None:
    week = play_week(4, entries=2)
    played = [pick.player_id for pick in week.lineups[0].picks]
    async with start("settlement") as settlement:
        await settlement.publish(week.opened)
        await settlement.settle()
        report = (await settlement.operator.post(LIVE, content=statistics_file(4, leave_out=played))).json()
        assert report["weeks"][0]["contests"][0]["scores_updated"] is False
        for event in week.events[1:]:
            await settlement.publish(event)
        await settlement.settle()
        for content in (statistics_file(4, leave_out=played), statistics_file(4)):
            report = (await settlement.operator.post(LIVE, content=content)).json()
            assert report["weeks"][0]["contests"][0]["scores_updated"] is True
        await settlement.settle()
        first, second = await settlement.published(ev.ScoresUpdated)
        assert (first.sequence, second.sequence) == (1, 2)
        before = {lineup.lineup_id: lineup.points for lineup in first.lineups}
        after = {lineup.lineup_id: lineup.points for lineup in second.lineups}
        assert before[week.lineups[0].lineup_id] == 0
        for lineup in week.lineups:
            assert after[lineup.lineup_id] == sum(hundredths(week.worth[pick.player_id]) for pick in lineup.picks)
        assert len(second.players) == len(week.opened.players)
        assert await settlement.published(ev.WeekSettled) == []
        games = {player.player_id: player.game_id for player in week.opened.players}
        assert {game.state for game in second.games} == {"over"}, "the week is years ago"
        assert {(lineup.waiting, lineup.playing) for lineup in second.lineups} == {(0, 0)}
        live, late = (week.lineups[0].picks[place].player_id for place in (0, 1))
        told = f"&game={games[live]}:playing" + (f"&game={games[late]}:waiting" if games[late] != games[live] else "")
        assert (await settlement.operator.post(LIVE + told, content=statistics_file(4))).status_code == 200
        assert (await settlement.operator.post(f"{LIVE}&game=x:done", content=statistics_file(4))).status_code == 422
        await settlement.settle()
        third = (await settlement.published(ev.ScoresUpdated))[-1]
        states = {game.game_id: game.state for game in third.games}
        assert states[games[live]] == "playing"
        for lineup, picked in zip(
            sorted(third.lineups, key=lambda one: one.lineup_id),
            sorted(week.lineups, key=lambda one: one.lineup_id),
            strict=True,
        ):
            found = [states[games[pick.player_id]] for pick in picked.picks]
            assert (lineup.waiting, lineup.playing) == (found.count("waiting"), found.count("playing"))


@pytest.mark.rule("M1")
async def test_scores_of_many_lineups_are_told_in_parts_that_each_fit_a_message(
    start: Start, play_week: Play, statistics_file: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "LINEUPS_A_PART", 2)
    week = play_week(4, entries=5)
    async with start("settlement") as settlement:
        await hear(settlement, week)
        await settlement.operator.post(LIVE, content=statistics_file(4))
        await settlement.operator.post(LIVE, content=statistics_file(4))
        await settlement.settle()
        told = await settlement.envelopes(ev.ScoresUpdated)
        assert [(event.sequence, event.part, event.parts, len(event.lineups)) for _, event in told] == [
            (sequence, part, 3, lineups) for sequence in (1, 2) for part, lineups in ((1, 2), (2, 2), (3, 1))
        ]
        assert [envelope.aggregateversion for envelope, _ in told] == [1, 1, 1, 2, 2, 2]
        assert [bool(event.players) for _, event in told] == [True, False, False] * 2
        scored = [lineup.lineup_id for _, event in told[:3] for lineup in event.lineups]
        assert sorted(scored) == sorted(lineup.lineup_id for lineup in week.lineups)


def test_a_full_part_of_a_large_pool_is_well_below_the_limit_of_a_message() -> None:
    event = ev.ScoresUpdated(
        contest="2017-W04",
        sequence=2**31,
        part=1,
        parts=50,
        players=tuple(ev.PlayerPoints(player_id=f"{'x' * 60}{n:04}", points=-100_000) for n in range(1_000)),
        lineups=tuple(
            ev.LineupPoints(lineup_id=UUID(int=2**127 + n), points=-100_000) for n in range(commands.LINEUPS_A_PART)
        ),
    )
    assert len(event.model_dump_json()) < 500_000


@pytest.mark.rule("S2")
async def test_a_contest_without_entries_is_settled_with_its_optimum(
    start: Start, play_week: Play, statistics_file: File
) -> None:
    async with start("settlement") as settlement:
        await hear(settlement, play_week(4, entries=0))
        await settlement.operator.post(FINAL, content=statistics_file(4))
        body = (await settlement.operator.post(SETTLE)).json()
        assert (body["lineups"], body["optimal"]["points"]) == (0, 27014)
        await settlement.settle()
        [settled] = await settlement.published(ev.WeekSettled)
        assert settled.lineups == 0


@pytest.mark.rule("S2")
async def test_a_week_whose_optimum_the_two_methods_do_not_agree_on_is_not_settled(
    start: Start, play_week: Play, statistics_file: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with start("settlement") as settlement:
        await hear(settlement, play_week(4, entries=1))
        await settlement.operator.post(FINAL, content=statistics_file(4))
        with monkeypatch.context() as fault:
            fault.setattr(
                "settlement.results.certify",
                lambda pool, roster, cap, claimed, rules: Certificate("FEASIBLE", claimed, claimed),
            )
            answer = await settlement.operator.post(SETTLE)
        assert (answer.status_code, answer.json()["code"]) == (500, "certification-failed")
        assert answer.json()["proof"] == "FEASIBLE"
        assert await rows(settlement, SETTLEMENTS) == 0
        with monkeypatch.context() as fault:
            # A programme that lies: it calls the second best lineup the best.
            fault.setattr("settlement.results.optimal_under", lambda *problem: best_lineups(*problem[:3], 2)[1])
            lie = await settlement.operator.post(SETTLE)
        assert (lie.status_code, lie.json()["code"], lie.json()["proof"]) == (500, "certification-failed", "OPTIMAL")
        assert lie.json()["programme"] < lie.json()["cp_sat"] == lie.json()["counted"] == 27014
        assert await rows(settlement, SETTLEMENTS) == 0
        await settlement.settle()
        assert await settlement.published(ev.WeekSettled) == []
        metrics = (await settlement.client.get("/metrics")).text
        assert "mafl_certification_failures_total 2.0" in metrics
        assert (await settlement.operator.post(SETTLE)).json()["settlement"] == 1


@pytest.mark.rule("S5")
async def test_a_settlement_killed_while_it_writes_leaves_nothing_and_runs_again(
    start: Start, play_week: Play, statistics_file: File
) -> None:
    async with start("settlement") as settlement:
        await hear(settlement, play_week(4, entries=4))
        await settlement.operator.post(FINAL, content=statistics_file(4))
        async with settlement.runtime.database.transaction() as bystander:
            # The version's row is written by then and its results are not: the writer waits for this lock.
            await bystander.execute(text("LOCK TABLE results IN ACCESS EXCLUSIVE MODE"))
            settling = asyncio.create_task(settlement.operator.post(SETTLE))
            writer = text("SELECT pid FROM pg_locks WHERE relation = 'results'::regclass AND NOT granted")
            while (found := (await bystander.execute(writer)).first()) is None:
                assert not settling.done(), settling.result().text
                await asyncio.sleep(0.01)
            await bystander.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": found.pid})
            answer = await settling
        assert answer.status_code == 503
        assert await rows(settlement, SETTLEMENTS) == 0
        assert await rows(settlement, RESULTS) == 0
        body = (await settlement.operator.post(SETTLE)).json()
        assert (body["settlement"], body["changed"]) == (1, True)
        await settlement.settle()
        assert len(await settlement.published(ev.LineupSettled)) == 4
        assert len(await settlement.published(ev.WeekSettled)) == 1


@pytest.mark.rule("S5")
async def test_two_copies_that_settle_at_once_settle_once(start: Start, play_week: Play, statistics_file: File) -> None:
    async with start("settlement") as one, start("settlement", database_url=one.database_url) as other:
        await hear(one, play_week(4, entries=4))
        await one.operator.post(FINAL, content=statistics_file(4))
        answers = await asyncio.gather(*(copy.operator.post(SETTLE) for copy in (one, other, one, other)))
        bodies = [answer.json() for answer in answers]
        assert [answer.status_code for answer in answers] == [200] * 4
        assert sorted(body["changed"] for body in bodies) == [False, False, False, True]
        assert {body["settlement"] for body in bodies} == {1}
        await one.settle()
        assert len(await one.published(ev.WeekSettled)) == 1
        assert len(await one.published(ev.LineupSettled)) == 4


@pytest.mark.rule("S5")
async def test_statistics_that_change_while_a_week_is_worked_out_are_the_ones_it_is_settled_by(
    start: Start, play_week: Play, statistics_file: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    week = play_week(4, entries=1)
    player = week.lineups[0].picks[0].player_id
    correction = f"season,week,player_id,ret_td\n2017,4,{player},25\n".encode()
    async with start("settlement") as settlement:
        await hear(settlement, week)
        await settlement.operator.post(FINAL, content=statistics_file(4))
        loop = asyncio.get_running_loop()
        once = iter([True])

        def corrected_meanwhile(*args: Any) -> Certificate:
            if next(once, False):
                asyncio.run_coroutine_threadsafe(settlement.operator.post(FINAL, content=correction), loop).result(20)
            return certify(*args)

        monkeypatch.setattr("settlement.results.certify", corrected_meanwhile)
        assert (await settlement.operator.post(SETTLE)).json()["settlement"] == 1
        version = (await settlement.operator.get("/operator/api/v1/settlements/2017-W04/1")).json()
        assert version["players"][player] == 15_000


@pytest.mark.rule("S1")
async def test_every_bad_cell_is_named_and_nothing_of_its_file_is_imported(start: Start, statistics_file: File) -> None:
    async with start("settlement") as settlement:
        content = statistics_file(4, {"DST-ARI": {"dst_sacks": "2.5"}, "DST-SF": {"dst_td": "one"}})
        answer = await settlement.operator.post(FINAL, content=content)
        body = answer.json()
        assert (answer.status_code, body["code"], body["fault_count"]) == (422, "statistics-invalid", 2)
        lines = content.decode().splitlines()
        assert {(lines[fault["line"] - 1].split(",")[3], fault["column"]) for fault in body["faults"]} == {
            ("DST-ARI", "dst_sacks"),
            ("DST-SF", "dst_td"),
        }
        assert all("is not a statistic" in fault["reason"] for fault in body["faults"])
        assert body["detail"].endswith("; 1 more. Nothing was imported.")
        assert await rows(settlement, STATISTICS) == 0
        assert (await settlement.operator.get("/operator/api/v1/statistics")).json() == []


@pytest.mark.rule("S1")
async def test_empty_huge_and_foreign_bodies_are_refused(start: Start, statistics_file: File) -> None:
    async with start("settlement") as settlement:
        post = settlement.operator.post
        for content in (b"", b"\n\n", b"season,week,player_id,rec\n", b"\x89PNG\r\n\x1a\n\x00", b"{}"):
            answer = await post(FINAL, content=content)
            assert (answer.status_code, answer.json()["code"]) == (422, "statistics-invalid"), content
            assert answer.json()["faults"], content
        assert (await post("/operator/api/v1/statistics?week=99", content=statistics_file(4))).status_code == 422
        nothing = await post("/operator/api/v1/statistics?week=5&final=true", content=statistics_file(4))
        assert "0 rows of week 5" in nothing.json()["detail"]
        huge = await post(FINAL, content=b"x" * (LARGEST_UPLOAD + 1))
        assert (huge.status_code, huge.json()["code"]) == (413, "body-too-large")
        assert (await post(SETTLE, content=b"not json")).status_code == 422
        assert (await post(SETTLE, json={"reason": "x" * 501})).status_code == 422
        assert (await post(f"/operator/api/v1/contests/{'x' * 50}/settle")).status_code == 422


@pytest.mark.rule("S1")
async def test_a_whole_season_is_imported_at_once(start: Start, data_path: Callable[..., Any]) -> None:
    content = data_path("weekly_stats_2017.csv.gz").read_bytes()
    async with start("settlement") as settlement:
        url = "/operator/api/v1/statistics?season=2017&final=true"
        report = (await settlement.operator.post(url, content=content)).json()
        assert report["rows"] == 6122
        assert [week["week"] for week in report["weeks"]] == list(range(1, 18))
        assert await rows(settlement, STATISTICS) == sum(week["lines"] for week in report["weeks"])
        again = (await settlement.operator.post(url, content=content)).json()
        assert {week["changed"] for week in again["weeks"]} == {0}
        weeks = (await settlement.operator.get("/operator/api/v1/statistics")).json()
        assert {(week["final"], week["imports"]) for week in weeks} == {(True, 2)}


@pytest.mark.rule("S3", "S4")
async def test_what_became_of_a_game_after_the_lock_changes_what_the_week_is_worth(
    start: Start, play_week: Play, statistics_file: File
) -> None:
    week = play_week(4, entries=3)
    monday = max(week.opened.games, key=lambda game: game.kickoff)
    of_game = {player.player_id for player in week.opened.players if player.game_id == monday.game_id}

    def told(became: Any) -> ev.ContestRescheduled:
        games = tuple(
            game.model_copy(update={"became": became}) if game == monday else game for game in week.opened.games
        )
        return ev.ContestRescheduled(contest="2017-W04", locks_at=week.opened.locks_at, games=games)

    async with start("settlement") as settlement:
        await hear(settlement, week)
        await settlement.operator.post(FINAL, content=statistics_file(4))
        await settlement.publish(told("suspended"), version=3)
        await settlement.settle()
        waits = await settlement.operator.post(SETTLE)
        assert (waits.status_code, waits.json()["code"]) == (409, "statistics-incomplete")
        assert waits.json()["games"] == [monday.game_id]
        await settlement.publish(told(None), version=4)
        await settlement.settle()
        first = (await settlement.operator.post(SETTLE)).json()
        await settlement.publish(told("abandoned"), version=5)
        await settlement.settle()
        assert (await settlement.operator.post(SETTLE)).json()["code"] == "reason-required"
        second = (await settlement.operator.post(SETTLE, json={"reason": "Monday's game was abandoned"})).json()
        assert (first["settlement"], second["settlement"]) == (1, 2)
        versions = [
            (await settlement.operator.get(f"/operator/api/v1/settlements/2017-W04/{number}")).json()["players"]
            for number in (1, 2)
        ]
        assert any(versions[0][player_id] for player_id in of_game)
        assert versions[1] == {one: 0 if one in of_game else points for one, points in versions[0].items()}


async def test_only_the_operator_may_import_settle_and_look(start: Start, play_week: Play) -> None:
    async with start("settlement") as settlement:
        await hear(settlement, play_week(4, entries=1))
        for method, url in (
            ("POST", FINAL),
            ("POST", SETTLE),
            ("GET", "/operator/api/v1/statistics"),
            ("GET", "/operator/api/v1/settlements"),
            ("GET", "/operator/api/v1/settlements/2017-W04/1"),
        ):
            assert (await settlement.client.request(method, url)).status_code == 401
        assert await rows(settlement, LINEUPS) == 1


@pytest.mark.rule("C8")
async def test_a_contest_that_was_called_off_is_never_settled(
    start: Start, play_week: Play, statistics_file: File
) -> None:
    week = play_week(4, entries=0)
    off = ev.ContestCancelled(
        contest="2017-W04", cancelled_at=week.opened.opened_at, reason="Snow has closed every stadium."
    )
    async with start("settlement") as settlement:
        for event in (off, week.opened):
            await settlement.publish(event, version=2 if event is off else 1)
        await settlement.settle()
        await settlement.operator.post(FINAL, content=statistics_file(4))
        answer = await settlement.operator.post(SETTLE, json={"force": True, "reason": "Please."})
        assert (answer.status_code, answer.json()["code"]) == (409, "contest-cancelled")
        assert answer.json()["reason"] == "Snow has closed every stadium."
        assert await rows(settlement, SETTLEMENTS) == 0
        assert await settlement.published(ev.ScoresUpdated) == []


@pytest.mark.rule("S3", "S5")
async def test_a_week_is_settled_by_the_schedule_that_it_locked_by_and_waits_for_it(
    start: Start, play_week: Play, statistics_file: File
) -> None:
    week = play_week(4, entries=12)
    picked = [pick.player_id for lineup in week.lineups for pick in lineup.picks]
    games = {player.player_id: player.game_id for player in week.opened.players}
    left = max({games[player] for player in picked}, key=lambda game: sum(games[one] == game for one in picked))
    moved = tuple(
        game.model_copy(update={"status": "moved"}) if game.game_id == left else game for game in week.opened.games
    )
    rescheduled = ev.ContestRescheduled(contest="2017-W04", locks_at=week.opened.locks_at, games=moved)
    async with start("settlement") as settlement:
        await settlement.publish(week.opened, version=1)
        await settlement.publish(week.locked, version=3)
        for lineup in week.lineups:
            await settlement.publish(lineup)
        await settlement.settle()
        await settlement.operator.post(FINAL, content=statistics_file(4))
        early = await settlement.operator.post(SETTLE)
        assert (early.status_code, early.json()["code"]) == (409, "lineups-missing")
        assert early.json()["waits_for"] == ["contest.rescheduled"]
        await settlement.publish(rescheduled, version=2)
        await settlement.settle()
        answer = await settlement.operator.post(SETTLE)
        assert answer.status_code == 200, answer.text
        await settlement.settle()
        worth = {player: 0 if games[player] == left else hundredths(text) for player, text in week.worth.items()}
        [settled] = await settlement.published(ev.WeekSettled)
        assert {player.player_id: player.points for player in settled.players} == worth
        for lineup in await settlement.published(ev.LineupSettled):
            assert [pick.points for pick in lineup.picks] == [worth[pick.player_id] for pick in lineup.picks]
