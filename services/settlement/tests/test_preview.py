"""A dry run says everything that settling would refuse, ask for and change, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import func, select

from common import events as ev
from settlement.playing import LONGEST, states, to_play
from settlement.store import SETTLEMENTS
from testkit.fixtures import Start

Play = Callable[..., Any]
File = Callable[..., bytes]

SETTLE = "/operator/api/v1/contests/2017-W04/settle"
FINAL = "/operator/api/v1/statistics?week=4&final=true"
LIVE = "/operator/api/v1/statistics?week=4"


@pytest.mark.rule("S5")
async def test_a_dry_run_says_all_that_is_missing_at_once_and_what_would_change(
    start: Start, play_week: Play, statistics_file: File
) -> None:
    week = play_week(4, entries=3)
    silent = week.opened.games[3]
    of_game = {player.player_id for player in week.opened.players if player.game_id == silent.game_id}
    player = week.lineups[0].picks[0].player_id
    async with start("settlement") as settlement:

        async def looked() -> Any:
            answer = await settlement.operator.get(SETTLE)
            assert answer.status_code == 200, answer.text
            return answer.json()

        assert (await settlement.operator.get(SETTLE)).status_code == 404
        assert (await settlement.client.get(SETTLE)).status_code == 401
        for event in week.events[:-1]:
            await settlement.publish(event)
        await settlement.settle()
        found = await looked()
        assert (found["ready"], found["lineups"], found["statistics"]) == (False, {"have": 2, "need": 3}, "none")
        assert [one["code"] for one in found["missing"]] == ["lineups-missing", "statistics-missing"]
        assert (found["outcome"], found["current"]) == (None, None)

        await settlement.publish(week.events[-1])
        await settlement.settle()
        outsider = b"season,week,player_id,rec\n2017,4,00-0000001,9\n"
        await settlement.operator.post(LIVE, content=outsider)
        await settlement.operator.post(LIVE, content=statistics_file(4, leave_out=of_game))
        found = await looked()
        assert [one["code"] for one in found["missing"]] == ["statistics-missing"]
        assert found["statistics"] == "provisional"
        assert [one["code"] for one in found["asks"]] == ["statistics-incomplete", "reason-required"]
        by_id = {game["game_id"]: game for game in found["games"]}
        assert (by_id[silent.game_id]["state"], by_id[silent.game_id]["with_statistics"]) == ("waiting", 0)
        assert {game["state"] for name, game in by_id.items() if name != silent.game_id} == {"over"}
        assert "00-0000001" in {one["player_id"] for one in found["unmatched"]["players"]}
        picked = {pick.player_id for lineup in week.lineups for pick in lineup.picks}
        assert picked & of_game <= {one["player_id"] for one in found["without_statistics"]["picked"]} <= picked
        would = found["outcome"]
        assert (would["settlement"], would["changed"], would["moved"]) == (1, True, 0)

        await settlement.operator.post(FINAL, content=statistics_file(4))
        found = await looked()
        assert (found["ready"], found["missing"], found["asks"]) == (True, [], [])
        settled = (await settlement.operator.post(SETTLE)).json()
        assert {name: found["outcome"][name] for name in ("settlement", "digest")} == {
            name: settled[name] for name in ("settlement", "digest")
        }
        again = await looked()
        assert (again["ready"], again["outcome"]["changed"], again["current"]) == (True, False, 1)

        await settlement.operator.post(FINAL, content=statistics_file(4, {player: {"ret_td": "2"}}))
        found = await looked()
        assert [one["code"] for one in found["asks"]] == ["reason-required"]
        async with settlement.runtime.database.transaction() as connection:
            count = (await connection.execute(select(func.count()).select_from(SETTLEMENTS))).scalar_one()
        assert count == 1, "a dry run writes nothing"
        settled = (await settlement.operator.post(SETTLE, json={"reason": "two returns"})).json()
        for name in ("settlement", "digest", "corrected", "moved"):
            assert found["outcome"][name] == settled[name]


@pytest.mark.rule("M1")
def test_what_is_still_to_play_follows_from_what_was_told_the_clock_and_the_lines(play_week: Play) -> None:
    contest: ev.ContestOpened = play_week(4, entries=0).opened
    first = min(contest.games, key=lambda game: game.kickoff)
    game = first.game_id
    player = next(player.player_id for player in contest.players if player.game_id == game)
    heard = {player: {"rec": 1}}
    minute = timedelta(minutes=1)

    def state(lines: Any, now: Any, told: Any = None, of: ev.ContestOpened = contest, *, final: bool = False) -> str:
        return states(of, lines, now, told or {}, final=final)[game]

    assert state({}, first.kickoff - minute) == "waiting"
    assert state(heard, first.kickoff - minute) == "playing", "somebody has a line: it has begun"
    assert state({}, first.kickoff) == "playing"
    assert state(heard, first.kickoff + LONGEST - minute) == "playing"
    assert state(heard, first.kickoff + LONGEST) == "over"
    assert state({}, first.kickoff + LONGEST) == "waiting", "nobody has a line: it was not played as far as is known"
    assert state(heard, first.kickoff + minute, {game: "over"}) == "over"
    assert state(heard, first.kickoff + 2 * LONGEST, {game: "playing"}) == "playing", "it was interrupted"
    assert state({}, first.kickoff - minute, {game: "playing"}, final=True) == "over"
    gone = contest.model_copy(
        update={
            "games": tuple(
                one.model_copy(update={"status": "cancelled"}) if one.game_id == game else one for one in contest.games
            )
        }
    )
    assert state({}, first.kickoff - minute, of=gone) == "over"

    games = {"a": "g1", "b": "g2", "c": "g3"}
    found: Any = {"g1": "waiting", "g2": "playing", "g3": "over"}
    assert to_play(["a", "b", "c", "nobody"], games, found) == (1, 1)
