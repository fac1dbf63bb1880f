"""When two names look alike (A2), by the skeletons of ``common.lookalikes``. Pure."""

from __future__ import annotations

import unicodedata

from common.lookalikes import skeleton

_ASCII_TWINS = str.maketrans({"i": "l"})
"""``I`` is ``i`` in other case and ``l`` in looks, so that a rule for both has to take ``i`` and ``l`` for one."""

_DOT = "\N{COMBINING DOT ABOVE}"

_DOTTED = frozenset(
    "ijl\u012f\u0131\u0237\u0249\u0268\u029d\u02b2\u03f3\u0456\u0458\u1d62\u1d96\u1da4\u1da8\u1e2d\u1ecb\u2071\u2148\u2149"
    "\u2c7c\U0001df1a\U0001e04c\U0001e04d\U0001e068"
)
"""Letters on which a dot above does not show as one more: Unicode's Soft_Dotted, the dotless ones, and ``l``, the
skeleton of ``I``. The mathematical ones are not here: their skeletons are ``i`` and ``j``."""

_DOTLESS_TWINS = str.maketrans({"\N{LATIN SMALL LETTER DOTLESS J}": "j"})
"""As the table has it for the dotless ``i``; without it, a dotless ``j`` with its dot would be no ``j``."""

_OTHER_MARK_ABOVE = unicodedata.combining(_DOT)


def _caseless(text: str) -> str:
    """Without regard to case and to width and other compatibility forms: NFKC with full case folding."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _without_hidden_dots(decomposed: str) -> str:
    """Without the dots that nobody sees, since the letter below is drawn with one: ``i`` with a dot above is ``i``.

    Marks that stand elsewhere may come between letter and dot; after another mark above, the dot shows. This is the
    rule of "hidden overlays" in ICU's spoof checker. A legitimate dot stays: that of a ``ż`` or an ``ė``.
    """
    kept, hides = [], False
    for character in decomposed:
        if hides and character == _DOT:
            continue
        if unicodedata.combining(character) in (0, _OTHER_MARK_ABOVE):
            hides = character in _DOTTED
        kept.append(character)
    return "".join(kept)


def _drawn(text: str) -> str:
    return _without_hidden_dots(skeleton(text)).translate(_DOTLESS_TWINS)


def _looks(text: str) -> str:
    key, before = _drawn(text), ""
    while key != before:  # A folded letter may have a look-alike of its own: M, m, rn.
        key, before = _drawn(_caseless(key)), key
    return key.translate(_ASCII_TWINS)


def keys(text: str) -> frozenset[str]:
    """Up to five keys of a text. Texts that share one are taken for each other (A2).

    Case and looks do not go together: Greek nu looks like ``v`` in lower case and like ``N`` in upper case. To make
    one key of both would make ``n`` and ``v`` the same, and half of the alphabet with them; so there is a key of how
    a text looks as written, one of how it looks in lower case and one of how it looks in upper case. The last two are
    made with compatibility forms folded and without, since a raised letter may have look-alikes of its own.
    """
    text = unicodedata.normalize("NFC", text)
    caseless = _caseless(text)
    return frozenset(map(_looks, (text, text.casefold(), text.upper(), caseless, caseless.upper())))
