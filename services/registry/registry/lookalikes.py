"""When two names look alike: skeletons of Unicode Technical Standard 39. Pure; the table is a file beside this one."""

from __future__ import annotations

import unicodedata
from functools import cache
from importlib import resources

_ASCII_TWINS = str.maketrans({"i": "l"})
"""``I`` is ``i`` in other case and ``l`` in looks, so that a rule for both has to take ``i`` and ``l`` for one."""


@cache
def _table() -> dict[int, str]:
    table = {}
    for line in resources.files(__package__).joinpath("lookalikes.tsv").read_text("ascii").splitlines():
        if not line.startswith("#"):
            source, _, prototype = line.partition("\t")
            table[int(source, 16)] = "".join(chr(int(point, 16)) for point in prototype.split(" "))
    return table


def skeleton(text: str) -> str:
    """The skeleton of UTS 39, section 4: texts with the same one look alike.

    Of texts without invisible characters, which names may not hold. Nothing to be shown to anybody.
    """
    decomposed = unicodedata.normalize("NFD", text)
    return unicodedata.normalize("NFD", decomposed.translate(_table()))


def _caseless(text: str) -> str:
    """Without regard to case and to width and other compatibility forms: NFKC with full case folding."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _looks(text: str) -> str:
    key, before = skeleton(text), ""
    while key != before:  # A folded letter may have a look-alike of its own: M, m, rn.
        key, before = skeleton(_caseless(key)), key
    return key.translate(_ASCII_TWINS)


def keys(text: str) -> frozenset[str]:
    """Up to three keys of a text. Texts that share one are taken for each other (A2).

    Case and looks do not go together: Greek nu looks like ``v`` in lower case and like ``N`` in upper case. To make
    one key of both would make ``n`` and ``v`` the same, and half of the alphabet with them; so there is a key of how
    a text looks as written, one of how it looks in lower case and one of how it looks in upper case.
    """
    caseless = _caseless(text)
    return frozenset(map(_looks, (text, caseless, caseless.upper())))
