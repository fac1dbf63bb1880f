"""Words for a reader that is a machine: the rules of ``rules/injection.toml``, on the text and on what it hides.

A model reads Base64 and escapes as easily as letters, and a person does not; so what is hidden in them is a finding
where it reads as words at all.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable

from moderation.detectors.phrases import Phrases
from moderation.pipeline import Context, Match

_BASE64 = re.compile(r"(?<![\w+/=-])[A-Za-z0-9+/_-]{16,}={0,2}(?![\w+/=-])")
_HEXADECIMAL = re.compile(r"\b(?:[0-9a-fA-F]{2} ?){12,}(?![0-9a-fA-F])")
_BITS = re.compile(r"\b(?:[01]{8} ?){6,}")
_WORDS = re.compile(r"^[\s\w.,:;!?'\"()<>{}/@#&*%+=\[\]|-]+$", re.ASCII)
_A_WORD = re.compile(r"[A-Za-z]{2,}")


class Injection(Phrases):
    """The rules, and the rule ``hidden-words``."""

    def __init__(self) -> None:
        super().__init__("injection")

    def judge(self, text: str, context: Context) -> Iterable[Match]:
        yield from super().judge(text, context)
        for pattern, decode in ((_BASE64, _from_base64), (_HEXADECIMAL, _from_hexadecimal), (_BITS, _from_bits)):
            for found in pattern.finditer(text):
                if _reads_as_words(decode(found.group())):
                    yield Match("hidden-words", found.start(), found.end())


def _from_base64(written: str) -> str:
    bare = written.rstrip("=").translate(str.maketrans("-_", "+/"))
    try:
        return base64.b64decode(bare + "=" * (-len(bare) % 4)).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _from_hexadecimal(written: str) -> str:
    try:
        return bytes.fromhex(written).decode("utf-8")
    except ValueError:
        return ""


def _from_bits(written: str) -> str:
    bits = written.replace(" ", "")
    return bytes(int(bits[place : place + 8], 2) for place in range(0, len(bits) - 7, 8)).decode("latin-1")


def _reads_as_words(decoded: str) -> bool:
    return len(_A_WORD.findall(decoded)) >= 2 and _WORDS.match(decoded) is not None
