"""The way in: ``./run`` and what continuous integration calls, on a copy of the repository as it would be cloned."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from testkit.contracts import ROOT

SHELLS = [shell for shell in ("sh", "dash", "bash") if shutil.which(shell)]
TASKS = ("demo", "test", "mafl", "check", "format", "contracts", "coverage", "bench", "moderation-report", "sync")
NOT_CLONED = shutil.ignore_patterns(
    ".git", ".venv", ".uv", ".mafl", "__pycache__", ".*_cache", ".hypothesis", "screenshots"
)
POOL = "player_id,name,position,team,price,points\n" + "".join(
    f"{position}{number},{position} {number},{position},PIT,3000,{number}\n"
    for position, count in (("QB", 1), ("RB", 3), ("WR", 3), ("TE", 1), ("DST", 1))
    for number in range(count)
)

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The repository's files in a place whose name has a space, with nothing installed."""
    place = tmp_path_factory.mktemp("some where") / "mafl"
    shutil.copytree(ROOT, place, ignore=NOT_CLONED)
    yield place
    shutil.rmtree(place)


def call(
    run: Path, *arguments: str, shell: str = "sh", cwd: Path | None = None, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Call a script in a shell, with nothing of MAFL or of a virtual environment in its environment."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MAFL_", "VIRTUAL_ENV"))}
    return subprocess.run(
        [shell, str(run), *arguments],
        capture_output=True,
        text=True,
        cwd=cwd or run.parent,
        env={**clean, **(environment or {})},
    )


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A directory of programs for PATH: a Python as its maker ships it, the shell's helpers, and no uv."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "bash", "env", "dirname", "rm", "id"):
        found = shutil.which(name)
        assert found is not None
        (programs / name).symlink_to(found)
    python = programs / "python3"
    python.write_text(f'#!/bin/sh\nexec "{sys._base_executable}" "$@"\n')  # type: ignore[attr-defined]
    python.chmod(0o755)
    return programs


@pytest.mark.rule("O1")
@pytest.mark.parametrize("shell", SHELLS)
def test_without_a_task_it_lists_them_and_installs_nothing(clone: Path, shell: str) -> None:
    for arguments in ((), ("help",), ("--help",)):
        done = call(clone / "run", *arguments, shell=shell)
        assert (done.returncode, done.stderr) == (0, "")
        assert set(re.findall(r"^\./run ([\w-]+)", done.stdout, re.MULTILINE)) == set(TASKS)
    assert not (clone / ".venv").exists()


@pytest.mark.parametrize("shell", SHELLS)
def test_an_unknown_task_is_named_with_those_that_exist(clone: Path, shell: str) -> None:
    done = call(clone / "run", "nope", shell=shell)
    assert (done.returncode, done.stdout) == (2, "")
    assert "no task 'nope'" in done.stderr
    assert all(f"./run {task}" in done.stderr for task in TASKS)
    assert not (clone / ".venv").exists()


@pytest.mark.parametrize("shell", SHELLS)
def test_a_python_that_cannot_be_used_is_named(clone: Path, shell: str, tmp_path: Path) -> None:
    old = tmp_path / "an old python"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    for wrong in (str(old), "/nowhere/python3"):
        done = call(clone / "run", "sync", shell=shell, environment={"MAFL_PYTHON": wrong})
        assert (done.returncode, done.stdout) == (1, "")
        assert f"MAFL_PYTHON names {wrong}, which is no Python 3.11 or newer" in done.stderr


def test_a_machine_without_python_is_told_what_to_install(clone: Path, bare: Path) -> None:
    (bare / "python3").unlink()
    done = call(clone / "run", "sync", shell=str(bare / "sh"), environment={"PATH": str(bare)})
    assert done.returncode == 1
    assert "no Python 3.11 or newer found" in done.stderr
    assert "MAFL_PYTHON=" in done.stderr


def test_where_uv_cannot_be_fetched_that_is_said_and_nothing_half_made_is_left(clone: Path, bare: Path) -> None:
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0", "PIP_NO_CACHE_DIR": "1"}
    nowhere |= {"PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": "", "PIP_NO_INDEX": "", "PATH": str(bare)}
    done = call(clone / "run", "sync", shell=str(bare / "sh"), environment=nowhere)
    assert done.returncode == 1
    assert "run: cannot fetch uv" in done.stderr
    assert not (clone / ".uv").exists()


@pytest.mark.rule("O1")
def test_with_only_python_it_fetches_uv_and_all_else_and_works_from_any_directory(
    clone: Path, bare: Path, tmp_path: Path
) -> None:
    """The cache of packages is the machine's, so that this is a matter of seconds; uv itself comes from the index."""
    (tmp_path / "week.csv").write_text(POOL)
    path = {"PATH": str(bare)}
    done = call(clone / "run", "mafl", "optimal", "week.csv", "--json", cwd=tmp_path, environment=path)
    if done.returncode != 0 and "run: cannot fetch uv" in done.stderr and not _index_answers(tmp_path):
        pytest.skip("the package index cannot be reached, so uv cannot be fetched")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["feasible_lineups"] == 1
    assert os.access(clone / ".uv" / "bin" / "uv", os.X_OK)
    assert not (tmp_path / ".mafl").exists()

    again = call(clone / "run", "mafl", "status", "--json", cwd=tmp_path, environment=path)
    assert again.returncode == 1
    assert "fetching" not in again.stderr
    assert str(clone / ".mafl") in json.loads(again.stdout)["detail"], "the state is the repository's"


def _index_answers(directory: Path) -> bool:
    """Whether pip, as it is set up here, finds uv; asked only where ``run`` did not."""
    version = re.search(r"^UV_VERSION=(.+)$", (ROOT / "run").read_text(), re.MULTILINE)
    assert version is not None
    python = sys._base_executable  # type: ignore[attr-defined]
    command = [python, "-m", "pip", "download", "--no-deps", "--dest", str(directory), f"uv=={version[1]}"]
    return subprocess.run(command, capture_output=True).returncode == 0


def test_continuous_integration_runs_the_readmes_test_command(bare: Path, tmp_path: Path) -> None:
    """With a ``run`` beside it that tells how it was called; the real one would run this test again."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    told = tmp_path / "run"
    told.write_text('#!/bin/sh\necho "$PWD: ./run $*"\n')
    told.chmod(0o755)
    done = call(tmp_path / ".ci" / "run", shell="bash", cwd=Path("/"), environment={"PATH": str(bare)})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{tmp_path}: ./run test")
    assert "\n./run test\n" in (ROOT / "README.md").read_text()
