"""``mafl up`` as anybody would start it: an ordinary account, under an address that this machine cannot reach."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from embedded.process import Account

AS_ROOT = os.geteuid() == 0
PUBLIC_URL = "https://mafl.example"


@pytest.fixture
def account() -> Account:
    """The account to start it with: whose tests these are, or where they are root's an account without any right."""
    return Account.named("nobody") if AS_ROOT else Account.numbered(os.geteuid())


@pytest.fixture
def home(account: Account) -> Iterator[Path]:
    """A home of its own, which nobody else may enter."""
    place = Path(tempfile.mkdtemp(prefix="mafl-home-"))
    if AS_ROOT:
        os.chown(place, account.uid, account.gid)
    yield place
    shutil.rmtree(place)


@pytest.fixture
def python(account: Account, home: Path) -> Path:
    """A Python of the account's own, in its home, with the packages of this one.

    This one may lie where only its owner can enter; then another of the same version serves, if there is one.
    """
    version = ".".join(map(str, sys.version_info[:2]))
    packages = sysconfig.get_path("purelib")
    for candidate in (sys._base_executable, f"/usr/bin/python{version}"):  # type: ignore[attr-defined]
        with contextlib.suppress(OSError):
            made = start(account, home, candidate, "-m", "venv", "--without-pip", str(home / "venv"))
            if made.wait() == 0:
                own = home / "venv" / "lib" / f"python{version}" / "site-packages"
                (own / "mafl.pth").write_text(f"import site; site.addsitedir({packages!r})\n")
                found = home / "venv" / "bin" / "python"
                if start(account, home, str(found), "-c", "import embedded.stack, numba").wait() == 0:
                    return found
    pytest.skip(f"{account.name} can use neither this Python and its packages nor /usr/bin/python{version}")


def start(account: Account, home: Path, *command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=home,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "NO_COLOR": "1"},
        start_new_session=True,
        user=account.uid if AS_ROOT else None,
        group=account.gid if AS_ROOT else None,
        extra_groups=[] if AS_ROOT else None,
    )


def working_in(home: Path) -> list[psutil.Process]:
    """Every process that was started there, by directory or by what it was called with."""
    found = []
    for process in psutil.process_iter():
        try:
            if str(home) in (process.cwd() or "") or any(str(home) in argument for argument in process.cmdline()):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
    return found


@pytest.mark.rule("O1")
@pytest.mark.timeout(180)
def test_an_ordinary_user_starts_everything_opens_the_front_page_and_leaves_nothing(
    account: Account, home: Path, python: Path
) -> None:
    options = ("--free-ports", "--state", ".mafl", "--public-url", PUBLIC_URL)
    with start(account, home, str(python), "-m", "mafl", "up", *options) as mafl:
        assert mafl.stdout is not None
        said = []
        for line in mafl.stdout:
            said.append(line)
            if line.startswith("Ctrl-C"):
                break
        assert mafl.poll() is None, "".join(said)
        assert said[0] == "starting MAFL in .mafl\n", "no terminal, and yet a sign of life at once"
        assert any(f"MAFL is at {PUBLIC_URL}" in line for line in said)
        told = json.loads((home / ".mafl" / "stack.json").read_text())
        assert told["public_url"] == PUBLIC_URL
        (operators,) = [line for line in said if line.startswith("Operators sign in at ")]
        assert f"{told['operator_url']}/operator/ " in operators
        assert ".mafl/secrets.json" in operators
        assert "operator_token" in operators
        kept = json.loads((home / ".mafl" / "secrets.json").read_text())
        assert kept["operator_token"] not in "".join(said), "a terminal's history is no place for a token"
        page = httpx.get(f"http://127.0.0.1:{told['ports']['public']}/")
        assert (page.status_code, "MAFL" in page.text) == (200, True)
        pids = [mafl.pid, *(process["pid"] for process in told["processes"].values())]
        assert {psutil.Process(pid).uids().effective for pid in pids} == {account.uid}
        assert len(pids) == 1 + 9
        mafl.send_signal(signal.SIGINT)
        rest = mafl.stdout.read()
        assert mafl.wait(timeout=60) == 0, rest
    assert not working_in(home)
    assert not [pid for pid in pids if psutil.pid_exists(pid)]
    assert not (home / ".mafl" / "stack.json").exists()
