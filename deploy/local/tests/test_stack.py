"""The stack as a whole, with real servers and small services that misbehave on request."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import httpx
import psutil
import psycopg
import pytest

from common.commitment import Signer
from embedded.process import Identity
from embedded.processes import DEPLOYMENT, Deployment, Service
from embedded.stack import (
    AlreadyRunning,
    Patience,
    Ports,
    PortTaken,
    ProcessFailed,
    Stack,
    StackError,
    StackOptions,
    read_state,
)

HERE = Path(__file__).parent
FAKES = Deployment(
    workers=DEPLOYMENT.workers,
    services=tuple(Service(service.name, f"fake_service:{service.name}") for service in DEPLOYMENT.services),
)
NAMES = {"postgres", "nats", "caddy", "provisioner", *(service.name for service in FAKES.services)}


def options(state: Path, **changes: object) -> StackOptions:
    base = StackOptions(
        state=state,
        ports=Ports.free(),
        durable=False,
        deployment=FAKES,
        environment={"PYTHONPATH": str(HERE)},
        patience=Patience(start=40),
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def with_service(name: str, app: str) -> Deployment:
    return replace(
        FAKES, services=tuple(Service(name, app) if service.name == name else service for service in FAKES.services)
    )


def identities(state: Path) -> dict[str, Identity]:
    told = json.loads((state / "stack.json").read_text())["processes"]
    return {name: Identity(process["pid"], process["started"]) for name, process in told.items()}


async def eventually(check: object, patience: float = 20.0) -> None:
    deadline = time.monotonic() + patience
    while True:
        try:
            if await check():  # type: ignore[operator]
                return
        except httpx.TransportError:
            pass
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.05)


@pytest.fixture(scope="module")
async def stack(new_directory: Callable[[], Path]) -> AsyncIterator[Stack]:
    async with Stack(options(new_directory() / ".mafl", clock="replay")) as stack:
        yield stack


async def answer(stack: Stack, path: str = "/me") -> httpx.Response:
    async with httpx.AsyncClient(base_url=stack.public_url, timeout=20) as client:
        return await client.get(path)


async def test_services_answer_through_the_gateway_with_their_settings(stack: Stack) -> None:
    assert (await answer(stack, "/me")).json()["service"] == "registry"
    assert (await answer(stack, "/models")).json()["service"] == "boards"
    assert (await answer(stack, "/me")).json()["clock"] == "replay"
    async with httpx.AsyncClient(base_url=stack.operator_url) as client:
        assert (await client.get("/operator/api/v1/settlements")).json()["service"] == "settlement"


async def test_the_state_directory_tells_what_runs_and_where(stack: Stack) -> None:
    state = read_state(stack.state)
    assert state is not None
    assert state.running
    assert state.supervisor == os.getpid()
    assert state.public_url == stack.public_url
    assert state.operator_token == stack.operator_token
    assert set(state.processes) == NAMES
    assert all(process.alive for process in state.processes.values())
    assert {"public", "operator", "postgres", "nats", "registry"} <= set(state.ports)


async def test_secrets_are_for_their_owner_only(stack: Stack) -> None:
    for name in ("stack.json", "secrets.json", "lock"):
        assert stat.S_IMODE((stack.state / name).stat().st_mode) == 0o600, name


async def test_each_process_has_a_log_of_its_own(stack: Stack) -> None:
    assert {path.stem for path in (stack.state / "log").iterdir()} == {*NAMES, "stack"}


async def test_a_second_stack_on_the_same_state_says_who_holds_it(stack: Stack) -> None:
    with pytest.raises(AlreadyRunning) as refusal:
        async with Stack(options(stack.state)):
            pass
    told = str(refusal.value)
    assert str(os.getpid()) in told
    assert stack.public_url in told
    assert " UTC" in told
    assert (await answer(stack)).status_code == 200


@pytest.mark.parametrize(("port", "option"), [("public", "--port"), ("operator", "--operator-port")])
async def test_a_taken_port_is_named_with_the_option_that_changes_it(tmp_path: Path, port: str, option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        taken = holder.getsockname()[1]
        ports = replace(Ports.free(), **{port: taken})
        with pytest.raises(PortTaken, match=f"port {taken}.*{option} "):
            async with Stack(options(tmp_path, ports=ports)):
                pass
    assert not (tmp_path / "stack.json").exists()


@pytest.mark.rule("O4")
@pytest.mark.parametrize("name", sorted(NAMES))
async def test_a_killed_process_is_started_again_and_the_stack_works_on(stack: Stack, name: str) -> None:
    before = stack.restarts[name]
    killed = identities(stack.state)[name]
    assert stack.kill(name) == killed.pid

    async def back() -> bool:
        state = read_state(stack.state)
        assert state is not None
        return stack.restarts[name] > before and all(process.state == "ready" for process in state.processes.values())

    await eventually(back)
    assert identities(stack.state)[name] != killed
    assert (await answer(stack)).json()["service"] == "registry"


async def test_killing_an_unknown_process_names_the_known_ones(stack: Stack) -> None:
    with pytest.raises(StackError, match="boards"):
        stack.kill("board")


@pytest.mark.rule("O4")
async def test_a_request_during_a_restart_waits_for_the_service(stack: Stack) -> None:
    old = (await answer(stack)).json()["pid"]
    stack.kill("registry")
    reply = await answer(stack)
    assert reply.status_code == 200
    assert reply.json()["pid"] != old


@pytest.mark.rule("O4")
async def test_a_service_whose_loop_spins_is_killed_and_started_again(tmp_path: Path) -> None:
    states: list[tuple[str, str]] = []
    patience = Patience(start=40, interval=0.2, answer=1, misses=3)
    spinning = options(tmp_path, patience=patience, on_state=lambda name, state: states.append((name, state)))
    async with Stack(spinning) as stack:
        with pytest.raises(httpx.ReadTimeout):
            async with httpx.AsyncClient(timeout=0.5) as client:
                await client.get(f"{stack.public_url}/me/spin")

        async def again() -> bool:
            return stack.restarts["registry"] > 0 and (await answer(stack)).status_code == 200

        await eventually(again)
    assert ("registry", "unresponsive") in states


async def test_stop_leaves_no_process_and_the_state_says_so(tmp_path: Path) -> None:
    async with Stack(options(tmp_path)) as stack:
        processes = identities(stack.state)
        tree = psutil.Process().children(recursive=True)
        assert len(tree) >= len(NAMES)
    assert not [name for name, identity in processes.items() if identity.is_alive()]
    assert read_state(tmp_path) is None
    await asyncio.sleep(0.2)
    ours = {identity.pid for identity in processes.values()}
    assert not [child for child in psutil.Process().children(recursive=True) if child.pid in ours]


async def test_what_was_written_is_there_after_a_restart_and_gone_when_fresh(tmp_path: Path) -> None:
    def number(stack: Stack, statement: str) -> object:
        address = f"postgresql://registry:{_password(stack)}@127.0.0.1:{stack.ports['postgres']}/registry"
        with psycopg.connect(address) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchone() if cursor.description else None

    async with Stack(options(tmp_path)) as stack:
        number(stack, "CREATE TABLE kept AS SELECT 7 AS number")
        token = stack.operator_token
    async with Stack(options(tmp_path)) as stack:
        assert number(stack, "SELECT number FROM kept") == (7,)
        assert stack.operator_token == token
    async with Stack(options(tmp_path, fresh=True)) as stack:
        assert number(stack, "SELECT to_regclass('kept')") == (None,)
        assert stack.operator_token != token


@pytest.mark.rule("C10")
async def test_contests_alone_has_the_signing_key_and_it_stays_over_a_restart(tmp_path: Path) -> None:
    kept = []
    for fresh in (False, False, True):
        async with Stack(options(tmp_path, fresh=fresh)):
            state = read_state(tmp_path)
            assert state is not None
            given = {
                name: psutil.Process(process.pid).environ().get("MAFL_SIGNING_KEY")
                for name, process in state.processes.items()
            }
            assert {name for name, key in given.items() if key} == {"contests"}
            assert "MAFL_SIGNING_KEY" not in (tmp_path / "stack.json").read_text()
            secrets = tmp_path / "secrets.json"
            assert json.loads(secrets.read_text())["signing_key"] == given["contests"]
            assert secrets.stat().st_mode & 0o777 == 0o600
            kept.append(Signer.read(str(given["contests"])).key_id)
    assert kept[0] == kept[1] != kept[2]


def _password(stack: Stack) -> str:
    return str(json.loads((stack.state / "secrets.json").read_text())["databases"]["registry"])


async def test_a_service_that_cannot_start_is_named_with_its_exit_code_and_last_words(tmp_path: Path) -> None:
    with pytest.raises(ProcessFailed) as failure:
        async with Stack(options(tmp_path, deployment=with_service("contests", "fake_service:broken"))):
            pass
    assert "contests ended with exit code 3" in str(failure.value)
    assert "MAFL_EXAMPLE is missing" in str(failure.value)
    assert read_state(tmp_path) is None


async def test_a_service_that_does_not_become_ready_is_named_with_what_it_lacks(tmp_path: Path) -> None:
    deployment = with_service("contests", "fake_service:moderation")  # asks for durables that it may not see
    with pytest.raises(ProcessFailed, match=r"contests was not ready after 6 s .*faults"):
        async with Stack(options(tmp_path, deployment=deployment, patience=Patience(start=6))):
            pass


async def test_a_service_that_does_not_listen_to_the_end_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("embedded.stack._USUAL_GRACE", 1.0)
    async with Stack(options(tmp_path, deployment=with_service("boards", "fake_service:deaf"))) as stack:
        assert (await answer(stack, "/models")).status_code == 200
        deaf = identities(stack.state)["boards"]
        stopping = time.monotonic()
    assert time.monotonic() - stopping < 8
    assert not deaf.is_alive()


PROGRAM = textwrap.dedent("""
    import asyncio, sys
    from pathlib import Path
    from embedded.errors import Interrupted
    from embedded.stack import Stack
    sys.path.insert(0, {here!r})
    from test_stack import options

    async def main():
        try:
            async with Stack(options(Path({state!r}))) as stack:
                print(stack.public_url, flush=True)
                await {body}
            print("ended well", flush=True)
        except Interrupted as interruption:
            print(interruption, flush=True)
    asyncio.run(main())
""")


def supervisor(state: Path, body: str = "stack.wait()") -> subprocess.Popen[str]:
    program = PROGRAM.format(here=str(HERE), state=str(state), body=body)
    return subprocess.Popen((sys.executable, "-c", program), stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_everything_in_good_order(tmp_path: Path, number: signal.Signals) -> None:
    with supervisor(tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http://")
        processes = identities(tmp_path)
        process.send_signal(number)
        assert process.stdout.readline() == "ended well\n"
    assert process.returncode == 0
    assert not [name for name, identity in processes.items() if identity.is_alive()]
    assert "database system is shut down" in (tmp_path / "log" / "postgres.log").read_text()


def test_a_signal_interrupts_whatever_runs_on_the_stack(tmp_path: Path) -> None:
    with supervisor(tmp_path, "asyncio.sleep(3600)") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
    assert process.returncode == 0


def test_a_signal_during_the_start_leaves_nothing(tmp_path: Path) -> None:
    with supervisor(tmp_path) as process:
        assert process.stdout is not None
        while not (tmp_path / "stack.json").exists() or "nats" not in identities(tmp_path):
            time.sleep(0.02)
        processes = identities(tmp_path)
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted while starting\n"
    assert not [name for name, identity in processes.items() if identity.is_alive()]


def test_a_killed_supervisor_takes_its_processes_along_and_the_next_one_takes_over(tmp_path: Path) -> None:
    with supervisor(tmp_path) as process:
        assert process.stdout is not None
        process.stdout.readline()
        processes = identities(tmp_path)
        process.kill()
    with supervisor(tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http://")
        assert not [name for name, identity in processes.items() if identity.is_alive()]
        process.terminate()
        assert process.stdout.readline() == "ended well\n"


async def test_processes_that_outlived_their_supervisor_are_ended_by_number_and_start_time(tmp_path: Path) -> None:
    sleep = partial(subprocess.Popen, ("sleep", "600"))
    with sleep() as leftover, sleep() as stranger:
        left, strange = Identity.of(leftover.pid), Identity.of(stranger.pid)
        assert left is not None
        assert strange is not None
        processes = {
            "boards": {"pid": left.pid, "started": left.started},
            "contests": {"pid": strange.pid, "started": strange.started - 3600},
        }
        (tmp_path / "stack.json").write_text(json.dumps({"processes": processes}))
        async with Stack(options(tmp_path)):
            assert not left.is_alive()
            assert strange.is_alive()
        stranger.terminate()


async def test_existing_servers_are_used_and_not_started(stack: Stack, tmp_path: Path) -> None:
    superuser = (stack.state / "postgres" / "password").read_text()
    admin = json.loads((stack.state / "secrets.json").read_text())["bus"]["admin"]
    existing = options(
        tmp_path,
        database_url=f"postgresql://postgres:{superuser}@127.0.0.1:{stack.ports['postgres']}/postgres",
        nats_url=f"nats://admin:{admin}@127.0.0.1:{stack.ports['nats']}",
    )
    passwords = json.loads((stack.state / "secrets.json").read_text())
    (tmp_path / "secrets.json").write_text(json.dumps(passwords))  # the same roles: keep their passwords
    async with Stack(existing) as second:
        assert not {"postgres", "nats"} & set(identities(tmp_path))
        assert (await answer(second)).json()["service"] == "registry"
    assert (await answer(stack)).status_code == 200
