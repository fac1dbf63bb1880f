"""What looks like what: skeletons of Unicode Technical Standard 39. Pure; the table is a file beside this one.

Registry compares names by it, moderation reads words through it; what follows from a likeness is theirs.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from importlib import resources


@cache
def table() -> dict[int, str]:
    """Code points with their skeletons, where that is neither their canonical decomposition nor follows from it."""
    found = {}
    for line in resources.files(__package__).joinpath("lookalikes.tsv").read_text("ascii").splitlines():
        if not line.startswith("#"):
            source, _, prototype = line.partition("\t")
            found[int(source, 16)] = "".join(chr(int(point, 16)) for point in prototype.split(" "))
    return found


def skeleton(text: str) -> str:
    """The skeleton of UTS 39, section 4: texts with the same one look alike.

    Of texts without invisible characters. Nothing to be shown to anybody.
    """
    decomposed = unicodedata.normalize("NFD", text)
    return unicodedata.normalize("NFD", decomposed.translate(table()))
