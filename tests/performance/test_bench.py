"""That the measurements work: one second with few clients, and nothing said about how fast anything was."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from embedded.process import free_port
from testkit.fixtures import Databases

HERE = Path(__file__).resolve().parent

pytestmark = pytest.mark.timeout(300)


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(HERE / "bench.py"), *arguments], capture_output=True, text=True)


def test_intake_is_measured_beside_its_peers_and_every_answer_is_a_201() -> None:
    done = bench("intake", "--rounds", "1", "--seconds", "0.5", "--clients", "4", "--json")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    found = json.loads(done.stdout)
    assert found["name"] == "intake"
    assert {"cpus", "processor", "python"} <= found["machine"].keys()
    assert found["load"]["clients"] == 4
    assert 2_500 < found["load"]["request_bytes"] < 4_000
    servers = {"ours", "ours_two", "textbook", "bare"}
    assert found["measured"].keys() == found["seconds"].keys() == servers
    (of_round,) = found["rounds"]
    assert of_round.keys() == servers | {"canned"}
    for figures in of_round.values():
        # The generator ends with an error at any other answer than a 201.
        assert figures["answers"] >= 2
        assert 0 < figures["p50"] <= figures["p99"]
        assert figures["answers_in_all"] > figures["answers"]
        assert figures["server_cpu"] >= 0
    # A process's time is counted in hundredths of a second: of one short measurement alone there may be none.
    for counted in ("server_cpu", "database_cpu"):
        assert sum(of_round[name][counted] for name in ("ours", "ours_two", "textbook")) > 0
    for peer in ("textbook", "bare"):
        ratio = of_round["ours"]["rate"] / of_round[peer]["rate"]
        assert found["ratios"][peer] == pytest.approx(ratio, rel=0.001)
        assert found["seconds"][peer] == pytest.approx(1 / of_round[peer]["rate"], rel=0.001)
    assert found["generator"]["ceiling"] > 0


def test_moderation_clears_a_backlog_with_one_and_two_processes_and_what_comes_at_once() -> None:
    done = bench("moderation", "--rounds", "1", "--lineups", "20", "--at-once", "5", "--json")
    assert done.returncode == 0, done.stderr  # it ends with an error where a lineup is not taken or not judged
    assert "Traceback" not in done.stderr
    found = json.loads(done.stdout)
    assert (found["name"], found["load"]) == ("moderation", {"lineups": 20, "at_once": 5, "texts": 19})
    (of_round,) = found["rounds"]
    assert of_round.keys() == found["measured"].keys() == {"one", "two", "at_once"}
    ratio = of_round["two"]["rate"] / of_round["one"]["rate"]
    assert found["ratios"]["two_workers"] == pytest.approx(ratio, rel=0.001)
    assert 0 < found["seconds"]["at_once_taken"] <= found["seconds"]["at_once_judged"]
    assert 0 < of_round["at_once"]["deepest"] <= 5 * 19
    assert found["seconds"]["lineup"] > 0


def needs(module: str) -> None:
    """Skip where the packages of ``bench`` are not installed; ``./run test`` installs them, so there it fails."""
    if not os.environ.get("CI"):
        pytest.importorskip(module)


@pytest.mark.parametrize(("name", "lineups"), [("optimal", 1), ("best", 100)])
def test_the_optimiser_that_people_use_finds_the_same_lineups(name: str, lineups: int) -> None:
    needs("pydfs_lineup_optimizer")
    done = bench(name, "--rounds", "1", "--players", "40", "--json")
    assert done.returncode == 0, done.stderr  # it ends with an error where the points are not the same, rank by rank
    found = json.loads(done.stdout)
    assert (found["name"], found["load"]["players"], found["load"]["lineups"]) == (name, 40, lineups)
    assert found["ratios"]["pydfs"] == pytest.approx(found["seconds"]["pydfs"] / found["seconds"]["ours"], rel=0.01)
    assert found["seconds"]["rank"] > 0
    assert int(found["load"]["feasible_lineups"]) > 100
    assert bench(name, "--players", "8").stderr.startswith("--players 8: must be 9 to")


def test_the_draw_is_measured_beside_scipy_whose_intervals_are_as_wide() -> None:
    needs("scipy")
    done = bench("intervals", "--rounds", "1", "--rows", "200", "--json")
    assert done.returncode == 0, done.stderr  # it ends with an error where the widths differ
    found = json.loads(done.stdout)
    assert (found["name"], found["load"]["rows"]) == ("intervals", 200)
    assert found["ratios"].keys() == {"scipy", "scipy_one_core", "scipy_shared"}
    assert all(seconds > 0 for seconds in found["seconds"].values())


@pytest.mark.rule("S1", "S5")
def test_a_week_goes_from_its_lock_to_the_boards_with_every_lineup_once() -> None:
    done = bench("week", "--lineups", "20,100", "--json")
    # It ends with an error where a lineup has no result or two, or where a service does not answer meanwhile.
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["name"] == "week"
    assert found["seconds"].keys() == {"20", "100"}
    assert found["ratios"].keys() == found["processor_ratios"].keys() == {"100"}
    (of_round,) = found["rounds"]
    for number, figures in of_round.items():
        assert found["seconds"][number] == pytest.approx(figures["seconds"], rel=0.001)
        # Of so few lineups a part may be done before the lock's own answer is back.
        assert all(mark > 0 for mark in figures["marks"].values())
        assert figures["marks"]["lock"] < figures["marks"]["shown"]
        assert figures["processor"].keys() == {"contests", "settlement", "boards", "postgresql", "nats"}
        assert all(figures["memory"][name] > 0 for name in figures["processor"])
        assert figures["waited"].keys() == {"contests", "settlement", "boards", "page"}
    assert "must be numbers" in bench("week", "--lineups", "none").stderr


def test_what_cannot_be_measured_is_named_with_what_can() -> None:
    done = bench("speed", "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert "'speed' cannot be measured; there are: intake, optimal, best, moderation, intervals, week" in done.stderr
    assert "intake: lineups taken" in " ".join(bench("--help").stdout.split())


@pytest.mark.parametrize("peer", ["bare", "canned"])
async def test_the_generator_counts_answers_and_ends_at_any_but_a_201(peer: str) -> None:
    port = free_port()
    serving = {
        "bare": ["-m", "uvicorn", "peers.bare:app", "--app-dir", str(HERE), "--port", str(port), "--loop", "uvloop"],
        "canned": [str(HERE / "peers/canned.py"), str(port)],
    }[peer]
    server = await asyncio.create_subprocess_exec(sys.executable, *serving)
    try:
        for _ in range(200):
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                break
        sound = {"picks": [], "thesis": "x", "projected_score": 1.0, "confidence": 0.5}
        status, figures, said = await generate(port, sound)
        assert status == 0, said
        assert figures["answers"] > 1
        assert figures["rate"] == pytest.approx(figures["answers"] / figures["seconds"])
        status, _, said = await generate(port, sound | {"confidence": 2})
        if peer == "bare":
            assert status == 1
            assert "not a 201: HTTP/1.1 422" in said
        else:
            assert status == 0, "it reads nothing"
    finally:
        server.terminate()
        await server.wait()


async def generate(port: int, body: dict[str, Any]) -> tuple[int | None, Any, str]:
    content = json.dumps(body).encode()
    head = f"POST / HTTP/1.1\r\nHost: load\r\nContent-Length: {len(content)}\r\n\r\n".encode()
    requests = [base64.b64encode(head + content).decode()] * 3
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        str(HERE / "generator.py"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    todo = {"ports": [port], "requests": requests, "warm": 0.1, "seconds": 0.3}
    out, said = await child.communicate(json.dumps(todo).encode())
    return child.returncode, json.loads(out) if out else None, said.decode()


LINEUP = {
    "picks": [
        {"slot": f"S{n}", "player_id": f"p{n}", "rationale": "why", "confidence": 0.5, "main_factor": "what"}
        for n in range(9)
    ],
    "thesis": "because",
    "projected_score": 100.5,
    "confidence": 0.5,
}


async def test_the_textbook_route_stores_a_lineup_its_nine_picks_and_an_outbox_row(databases: Databases) -> None:
    url, port = databases.fresh("contests"), free_port()
    command = ["-m", "uvicorn", "peers.textbook:app", "--app-dir", str(HERE), "--port", str(port)]
    server = await asyncio.create_subprocess_exec(sys.executable, *command, env=os.environ | {"PEER_DATABASE_URL": url})
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            for _ in range(300):
                with contextlib.suppress(httpx.HTTPError):
                    if (await client.get("/readyz")).status_code == 200:
                        break
                await asyncio.sleep(0.05)
            path = "/api/v1/contests/2017-W04/lineups"
            for _ in range(3):
                assert (await client.post(path, json=LINEUP)).status_code == 201
            assert (await client.post(path, json=LINEUP | {"confidence": 2})).status_code == 422
    finally:
        server.terminate()
        await server.wait()
    engine = create_async_engine(url)
    async with engine.connect() as connection:
        for table, count in (("lineups", 3), ("picks", 27), ("outbox", 3)):
            found = await connection.execute(text(f"SELECT count(*) FROM textbook_{table}"))
            assert found.scalar_one() == count
    await engine.dispose()
