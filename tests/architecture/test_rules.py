"""The architecture's rules, held by tests and not by pleas."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from common import topology
from testkit import rules

ROOT = rules.ROOT
SERVICES = [ROOT / "services" / name / name for name in topology.SERVICES]
SOURCES = [
    *SERVICES,
    ROOT / "libs/common/common",
    ROOT / "libs/client/mafl",
    ROOT / "services/house/house",
]


def modules(*folders: Path) -> Iterator[tuple[Path, ast.Module]]:
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            yield path, ast.parse(path.read_text())


def calls(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def imported(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{name.name}" for name in node.names}
    return found


def test_every_claimed_rule_has_a_test_that_names_it() -> None:
    missing = sorted(set(rules.CLAIMED) - set(rules.proofs()))
    assert not missing, f"no test names {', '.join(missing)}"


@pytest.mark.parametrize("service", SERVICES, ids=lambda path: path.name)
def test_each_service_has_the_same_files(service: Path) -> None:
    for name in ("domain.py", "commands.py", "store.py", "api.py", "consumers.py", "main.py", "migrations/env.py"):
        assert (service / name).exists(), f"{service.name} lacks {name}"


@pytest.mark.parametrize("service", SERVICES, ids=lambda path: path.name)
def test_the_migrations_of_a_service_are_one_chain(service: Path) -> None:
    """Two that were written side by side can take one number: then no database can be brought up to date."""
    for number, path in enumerate(sorted((service / "migrations/versions").glob("*.py")), start=1):
        said = {
            target.id: ast.literal_eval(node.value)
            for node in ast.parse(path.read_text()).body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name) and target.id in ("revision", "down_revision")
        }
        before = f"{number - 1:04}" if number > 1 else None
        assert path.name.startswith(f"{number:04}_"), path
        assert said == {"revision": f"{number:04}", "down_revision": before}, path


def test_every_decision_has_a_number_of_its_own() -> None:
    for number, path in enumerate(sorted((ROOT / "docs/adr").glob("0*.md")), start=1):
        assert path.name.startswith(f"{number:04}-"), path
        assert path.read_text().startswith(f"# {number}. "), path


_QUERIES = (".execute", ".executemany", ".scalar", ".scalars", ".fetch", ".fetchrow", ".fetchval", ".fetchmany")
"""How SQLAlchemy and the two drivers are asked."""


def test_all_queries_are_in_the_store() -> None:
    for path, tree in modules(*SERVICES):
        if path.name == "store.py" or "migrations" in path.parts:
            continue
        drivers = ("sqlalchemy", "asyncpg", "psycopg")
        wrong = {name for name in imported(tree) if name.split(".")[0] in drivers} - {
            "sqlalchemy.ext.asyncio",
            "sqlalchemy.ext.asyncio.AsyncConnection",
        }
        assert not wrong, f"{path.relative_to(ROOT)} imports {wrong}: queries belong in store.py"
        for name, call in calls(tree):
            assert not name.endswith(_QUERIES), (
                f"{path.relative_to(ROOT)}:{call.lineno} queries; that belongs in store.py"
            )


def test_only_the_edge_opens_and_commits_a_transaction() -> None:
    for path, tree in modules(*SERVICES):
        if "migrations" in path.parts:
            continue
        for name, call in calls(tree):
            assert not name.endswith((".commit", ".begin", ".begin_nested", ".rollback")), (
                f"{path.relative_to(ROOT)}:{call.lineno}: {name}"
            )


def test_time_is_asked_of_the_clock() -> None:
    for path, tree in modules(*SERVICES, ROOT / "libs/common/common"):
        if path.name == "clock.py":
            continue
        for name, call in calls(tree):
            assert name not in ("datetime.now", "datetime.utcnow", "time.time", "datetime.datetime.now"), (
                f"{path.relative_to(ROOT)}:{call.lineno}: {name}() is not the product's clock"
            )


def test_only_the_relay_and_the_dead_letters_publish() -> None:
    for path, tree in modules(*SOURCES):
        if path.name in ("bus.py", "provision.py", "erasure.py", "outbox.py") and path.parent.name == "common":
            continue
        for name, call in calls(tree):
            assert not name.endswith(("js.publish", "bus.publish_all", "client.publish")), (
                f"{path.relative_to(ROOT)}:{call.lineno}: events go through the outbox"
            )


def test_every_metric_is_named_in_one_file() -> None:
    for path, tree in modules(*SOURCES):
        if path.parent.name == "common" and path.name in ("metrics.py", "service.py"):
            continue
        assert not any(name.startswith("prometheus_client") for name in imported(tree)), path.relative_to(ROOT)


def test_nothing_committed_names_a_registrys_host() -> None:
    hosts = ["py" + "pi.org", "pythonhosted" + ".org", "npm" + "js.org", "deb" + ".debian.org"]
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    for name in listed.split("\0"):
        path = ROOT / name
        # The lock file is uv's own, and cannot do without.
        if name and name != "uv.lock" and path.is_file() and path.suffix not in (".gz", ".png"):
            text = path.read_text(errors="replace")
            assert not any(host in text for host in hosts), name


@pytest.mark.parametrize(
    "command",
    [("ruff", "format", "--check", "."), ("ruff", "check", "."), ("mypy",), ("lint-imports",)],
    ids=lambda command: " ".join(command),
)
@pytest.mark.timeout(300)
def test_format_lint_types_and_imports(command: tuple[str, ...]) -> None:
    program = Path(sys.executable).parent / command[0]
    done = subprocess.run(
        [str(program), *command[1:]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
