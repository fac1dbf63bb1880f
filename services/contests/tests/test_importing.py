"""Imports into a running service: what an operator sends, and what becomes of contests."""

from datetime import UTC, datetime
from typing import Any

import pytest

from testkit.fixtures import Start, Started

from .helpers import ok
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
