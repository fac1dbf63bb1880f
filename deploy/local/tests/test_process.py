"""What every child process has in common."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil

from embedded.process import Command, Identity, free_port, log_tail, port_trouble, spawn, stop


def command(log: Path, program: str) -> Command:
    return Command("child", (sys.executable, "-c", program), log, env={"PATH": os.defpath})


def test_a_child_leads_its_own_session_and_writes_to_its_log(tmp_path: Path) -> None:
    log = tmp_path / "log" / "child.log"
    process = spawn(command(log, "import os; print(os.getsid(0) == os.getpid()); raise SystemExit('last words')"))
    assert process.wait(20) == 1
    assert log_tail(log) == "  True\n  last words" or log_tail(log) == "  last words\n  True"


def test_a_large_log_is_set_aside_before_the_next_start(tmp_path: Path) -> None:
    log = tmp_path / "child.log"
    log.write_bytes(b"x" * (9 * 1024 * 1024))
    assert spawn(command(log, "print('new')")).wait(20) == 0
    assert log.read_text() == "new\n"
    assert (tmp_path / "child.log.1").stat().st_size > 9_000_000


def test_a_child_that_does_not_listen_is_killed_after_its_grace(tmp_path: Path) -> None:
    log = tmp_path / "child.log"
    deaf = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
    )
    process = spawn(command(log, deaf))
    while "deaf" not in log.read_text():
        time.sleep(0.01)
    assert stop(process, signal.SIGTERM, grace=0.2) == -signal.SIGKILL


def test_an_identity_is_not_fooled_by_a_number_used_again() -> None:
    with subprocess.Popen(("sleep", "60")) as process:
        identity = Identity.of(process.pid)
        assert identity is not None
        earlier = Identity(process.pid, identity.started - 100)
        assert identity.is_alive()
        assert not earlier.is_alive()
        earlier.end(signal.SIGKILL, grace=1)
        assert process.poll() is None
        identity.end(signal.SIGTERM, grace=5)
        assert not identity.is_alive()
        process.wait()
    assert Identity.of(process.pid) is None


def test_why_a_port_cannot_be_had_is_said_exactly() -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        assert port_trouble(holder.getsockname()[1]) == "is already in use"
    assert port_trouble(free_port(), "203.0.113.1").startswith("cannot be used on 203.0.113.1")
    assert port_trouble(free_port()) == ""


def test_free_ports_lie_below_those_of_outgoing_connections() -> None:
    first = free_port()
    assert free_port({first}) != first
    ephemeral = Path("/proc/sys/net/ipv4/ip_local_port_range")
    if psutil.LINUX and ephemeral.exists():
        assert first < int(ephemeral.read_text().split()[0])
