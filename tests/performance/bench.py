"""``./run bench NAME``: one measurement beside its peers, several rounds in turn, and medians.

./run bench intake [--rounds N] [--seconds S] [--clients N] [--beside TREE] [--json]
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib import import_module

MEASURED = {
    "intake": "lineups taken: contests beside a textbook route and a bare validating one",
}
"""The measurements there are: a module each, with ``arguments`` and ``main``."""

LATER = ("optimal", "best", "intervals", "week")
"""Those that DESIGN.md names and that do not exist yet."""


def main(given: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./run bench", description="Measure beside peers; medians of several rounds.")
    listed = "; ".join(f"{name}: {what}" for name, what in MEASURED.items())
    parser.add_argument("name", help=f"what to measure: {listed}")
    if not given or given[0].startswith("-"):
        parser.parse_args(given)
    name = given[0]
    if name not in MEASURED:
        why = "is not measured yet" if name in LATER else "is nothing that can be measured"
        print(f"run bench: {name!r} {why}; there is: {', '.join(MEASURED)}", file=sys.stderr)
        return 2
    module = import_module(name)
    module.arguments(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document on standard output")
    options = parser.parse_args(given)
    document, show = module.main(options)
    if options.json:
        print(json.dumps(document))
    else:
        show(document)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
