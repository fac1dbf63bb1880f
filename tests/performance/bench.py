"""``./run bench NAME``: one measurement beside its peers, several rounds in turn, and medians.

./run bench intake [--rounds N] [--seconds S] [--clients N] [--beside TREE] [--json]
./run bench week [--lineups N,N,...] [--rounds N] [--json]
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib import import_module

MEASURED = {
    "intake": ("lineups taken: contests beside a textbook route and a bare validating one", "intake", {}),
    "optimal": ("the best lineup of a week beside pydfs-lineup-optimizer", "solving", {"count": 1}),
    "best": ("the 100 best lineups beside pydfs-lineup-optimizer", "solving", {"count": 100}),
    "moderation": ("what moderation judges: a backlog with one and two processes, 200 lineups at once", "judging", {}),
    "intervals": ("the interval draw beside scipy.stats.bootstrap", "intervals", {}),
    "week": ("a week of so many lineups, from its lock to the boards that show it settled", "week", {}),
}
"""The measurements there are: what each is, its module (with ``arguments`` and ``main``), what ``main`` gets more."""


def main(given: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./run bench", description="Measure beside peers; medians of several rounds.")
    listed = "; ".join(f"{name}: {what}" for name, (what, _, _) in MEASURED.items())
    parser.add_argument("name", help=f"what to measure: {listed}")
    if not given or given[0].startswith("-"):
        parser.parse_args(given)
    name = given[0]
    if name not in MEASURED:
        print(f"run bench: {name!r} cannot be measured; there are: {', '.join(MEASURED)}", file=sys.stderr)
        return 2
    _, module_name, more = MEASURED[name]
    module = import_module(module_name)
    module.arguments(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document on standard output")
    options = parser.parse_args(given)
    document, show = module.main(options, **more)
    if options.json:
        print(json.dumps(document))
    else:
        show(document)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
