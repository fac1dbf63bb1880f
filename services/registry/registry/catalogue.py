"""The model catalogue: which labels mean the same model (A7). Pure; the entries are data, in ``models.json``.

A label that names no entry is kept as written, and stands on a row of its own until an operator maps it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources

_ROUTERS = frozenset(
    {"openrouter", "litellm", "models", "vertex-ai", "bedrock", "huggingface", "hf", "together", "groq"}
)
"""First parts of a label that say where a model is called, not which model it is."""

_SERVED_AS = re.compile(r":(?:free|nitro|floor|latest|online|extended)$|[-@]latest$")
"""Ends of a label that say how a model is served."""

_DATED = re.compile(r"[-@](?:20\d\d-[01]\d-[0-3]\d|20\d\d[01]\d[0-3]\d)(?:-v\d+(?::\d+)?)?$")
"""The date of a snapshot: the same version of the model."""


@dataclass(frozen=True)
class Entry:
    """A model of the catalogue; ``canonical`` is the label of its row."""

    provider: str
    family: str
    version: str
    name: str
    aliases: tuple[str, ...]

    @property
    def canonical(self) -> str:
        return f"{self.provider}/{self.name}"


def _plain(label: str) -> str:
    return re.sub(r"[\s_]+", "-", label.strip().casefold())


@cache
def _entries() -> tuple[tuple[Entry, ...], dict[str, str]]:
    document = json.loads(resources.files(__package__).joinpath("models.json").read_text("utf-8"))
    entries = tuple(Entry(**{**entry, "aliases": tuple(entry["aliases"])}) for entry in document["models"])
    providers = {alias: name for name, aliases in document["providers"].items() for alias in (name, *aliases)}
    return entries, providers


@cache
def _by_name() -> dict[str, Entry]:
    """Every name and alias. Raises ``ValueError`` where two entries share one."""
    table: dict[str, Entry] = {}
    for entry in entries():
        for name in {_plain(name) for name in (entry.name, *entry.aliases)}:
            if name in table:
                raise ValueError(f"models.json: {name} is of {table[name].canonical} and of {entry.canonical}")
            table[name] = entry
    return table


def entries() -> tuple[Entry, ...]:
    """Every entry, in the order of the file."""
    return _entries()[0]


def _readings(name: str) -> Iterator[str]:
    yield name
    for end in (_SERVED_AS, _DATED):
        if shorter := end.sub("", name):
            name = shorter
            yield name


def find(label: str) -> Entry | None:
    """The entry that a label names: by name or alias, with or without its provider, a router, a date.

    ``GPT-5``, ``openai/gpt-5``, ``openrouter/openai/gpt-5:free`` and ``gpt-5-2025-08-07`` are one. A label with the
    name of one provider's model behind the name of another is none.
    """
    *before, name = _plain(label).split("/")
    while before and before[0] in _ROUTERS:
        before.pop(0)
    if len(before) > 1:
        return None
    for reading in _readings(name):
        entry = _by_name().get(reading)
        if entry is not None:
            provider = _entries()[1].get(before[0]) if before else entry.provider
            return entry if provider == entry.provider else None
    return None
