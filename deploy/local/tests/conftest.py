"""Directories that another account can enter, gone after the test: pytest's own are private and stay for days."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def new_directory() -> Iterator[Callable[[], Path]]:
    """Makes directories that are removed when the tests end."""
    made: list[Path] = []

    def make() -> Path:
        path = Path(tempfile.mkdtemp(prefix="mafl-test-"))
        path.chmod(0o755)
        made.append(path)
        return path

    yield make
    for path in made:
        shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def tmp_path(new_directory: Callable[[], Path]) -> Iterator[Path]:
    path = new_directory()
    yield path
    shutil.rmtree(path, ignore_errors=True)
