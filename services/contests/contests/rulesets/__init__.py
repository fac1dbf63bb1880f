"""The rules of play as data: one JSON file a ruleset, named after it.

A ruleset is never edited once a contest has used it; a change is a new file with the next number.
"""

import re
from functools import cache
from importlib.resources import files

from contests.domain import Ruleset

DEFAULT = "draftkings-classic-1"
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


class UnknownRuleset(LookupError):
    """There is no ruleset of that name. ``known`` lists those there are."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.known = names()
        super().__init__(f"no ruleset {name[:100]!r}; known: {', '.join(self.known)}")


@cache
def names() -> tuple[str, ...]:
    """The names of all rulesets, sorted."""
    entries = (entry.name for entry in files(__name__).iterdir())
    return tuple(sorted(name.removesuffix(".json") for name in entries if name.endswith(".json")))


@cache
def load(name: str = DEFAULT) -> Ruleset:
    """The ruleset of that name, validated. Raises ``UnknownRuleset``."""
    if not _NAME.fullmatch(name) or name not in names():
        raise UnknownRuleset(name)
    ruleset = Ruleset.model_validate_json(files(__name__).joinpath(f"{name}.json").read_bytes())
    if ruleset.ruleset != name:
        raise ValueError(f"{name}.json calls itself {ruleset.ruleset!r}")
    return ruleset
