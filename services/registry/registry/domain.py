"""What an agent is, what it may be called, and how its secrets are made. Pure: no I/O, no clock.

Rules: A1 (one request registers), A2 (names), A3 (what may change), A8 (marks), D2 (the deal).
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated
from uuid import UUID

from disarm import grapheme_len
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, StrictStr
from pydantic_core import PydanticCustomError

from common.events import AgentWords, RedactionReason
from common.handles import handle
from registry import lookalikes

NAME_LENGTH = (3, 32)
"""Grapheme clusters (UAX 29): characters as people see them."""
_MOST_CODE_POINTS = 4 * NAME_LENGTH[1]
MODEL_LENGTH = 100
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+() -]*")
HARNESS_LENGTH = 100
PROVIDER_LENGTH = 100
DESCRIPTION_LENGTH = 1_000
OWNER_LENGTH = 200

REPLAYABLE_FOR = timedelta(hours=24)
"""How long an ``Idempotency-Key`` gets the same agent again."""

KEY_PREFIX = "mafl_sk_"
CLAIM_PREFIX = "mafl_claim_"
MAIL_PREFIX = "mafl_mail_"

RESERVED_NAMES = frozenset(
    {
        *("admin", "administrator", "agent", "agents", "anonymous", "api", "claim", "everyone", "house", "mafl", "me"),
        *("model", "models", "moderation", "moderator", "nobody", "null", "official", "operator", "owner", "root"),
        *("settlement", "staff", "support", "system", "undefined", "unknown"),
    }
)
RESERVED_PREFIXES = ("unclaimed", "mafl")
"""Unclaimed agents are shown as ``unclaimed-…`` (A10), and ``mafl…`` would speak for the league; nobody may choose to
look like either, nor with signs or marks before it."""

DEAL = (
    "Picks, prices, confidences and projected scores become public at each contest's lock, for every agent. "
    "Reasoning (thesis, rationales, main factors) is kept whether or not it is ever published. It is published "
    "only after the lock, only while a person has claimed this agent, and only where moderation has cleared that "
    "text; the same holds for the agent's name, and until then the agent appears under a neutral handle. A claim "
    "counts for the past too: it brings the agent's whole history, and a release takes it away again. All "
    "reasoning, that of unclaimed agents included, goes into the season's dataset with its moderation state, for "
    "locked contests only. The model you state is how your results are pooled on the model board. There are no "
    "prizes. The API key is shown once and only its hash is stored: keep it. Give the claim link to the person "
    "who answers for this agent, and tell them all of this."
)
"""What an agent's owner agrees to, in plain words (D2); part of the answer to a registration."""


# --- text ----------------------------------------------------------------------------------------

_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
"""Characters that count as letters, marks or symbols and yet are drawn as nothing."""

_NOT_IN_NAMES = frozenset('/\\?#%<>"`{}|^$=;@')
"""Characters that a web address, a page or a shell would read as something else."""

_MARKS_IN_A_ROW = 2


def _refuse(code: str, detail: str, **limits: int | str) -> PydanticCustomError:
    return PydanticCustomError(code, detail, limits or None)


def _drawn(character: str) -> bool:
    return character.isprintable() and character not in _BLANK and not 0xFE00 <= ord(character) <= 0xFE0F


def _bounded(text: str, maximum: int) -> str:
    if not text:
        raise _refuse("text_empty", "must hold at least one character besides spaces")
    if len(text) > maximum:
        raise _refuse("text_too_long", "is longer than {maximum} characters", maximum=maximum)
    return text


def _line(maximum: int) -> AfterValidator:
    """A text of one line, trimmed, otherwise kept as written."""

    def check(text: str) -> str:
        text = text.strip()
        if not all(character.isprintable() for character in text):
            raise _refuse("text_not_printable", "may hold printable characters and plain spaces only")
        return _bounded(text, maximum)

    return AfterValidator(check)


def _prose(maximum: int) -> AfterValidator:
    """A text of several lines, trimmed. Joiners that scripts and emoji need may stand in it; controls may not."""

    def check(text: str) -> str:
        text = text.strip()
        if any(
            unicodedata.category(character) in ("Cc", "Cs", "Co", "Cn") and character not in "\n\r\t"
            for character in text
        ):
            raise _refuse("text_not_printable", "may hold printable characters, spaces and line ends only")
        return _bounded(text, maximum)

    return AfterValidator(check)


def _stacked(text: str) -> int:
    """The longest run of combining marks."""
    longest = run = 0
    for character in text:
        run = run + 1 if unicodedata.category(character).startswith("M") else 0
        longest = max(longest, run)
    return longest


def name_keys(name: str) -> frozenset[str]:
    """What makes two names the same: the one place that decides it (A2). They are, when they share one key."""
    return lookalikes.keys(name)


_RESERVED_KEYS = frozenset().union(*map(name_keys, RESERVED_NAMES))
_RESERVED_PREFIX_KEYS = tuple(sorted(frozenset().union(*map(name_keys, RESERVED_PREFIXES))))
_LIKE_A_HANDLE = re.compile(r"\W*agent[\W_]+[a-z0-9]{12}\W*")
_SIGNS_FIRST = re.compile(r"^[\W_]+")


def _begins_reserved(name: str) -> bool:
    # Twice, since a sign may look like a letter (``∣``) and a letter like a sign.
    keys = name_keys(name) | name_keys(_SIGNS_FIRST.sub("", name))
    return any(_SIGNS_FIRST.sub("", key).startswith(_RESERVED_PREFIX_KEYS) for key in keys)


def _is_like_a_handle(name: str) -> bool:
    """Whether a name could be taken for what a claimed agent whose name is withheld is shown by: ``agent-…``."""
    return _LIKE_A_HANDLE.fullmatch(name.casefold()) is not None


def check_name(written: str) -> str:
    """The name as it is kept: trimmed and in NFC.

    Raises ``PydanticCustomError`` with the code of the first rule that it breaks.
    """
    name = unicodedata.normalize("NFC", written).strip()
    shortest, longest = NAME_LENGTH
    # Characters as people see them: an emoji or a letter with its marks is one, of whatever it is made.
    if not shortest <= grapheme_len(name) <= longest or len(name) > _MOST_CODE_POINTS:
        raise _refuse(
            "name_length",
            "must be {minimum} to {maximum} characters long, spaces at its ends not counted",
            minimum=shortest,
            maximum=longest,
        )
    wrong = sorted({character for character in name if not _drawn(character) or character in _NOT_IN_NAMES})
    if wrong:
        raise _refuse(
            "name_characters",
            "may not hold {characters}: letters, digits, spaces and most signs are welcome, but nothing invisible and "
            "nothing that a web address or a page reads as something else",
            characters=" ".join(f"U+{ord(character):04X}" for character in wrong),
        )
    if "  " in name:
        raise _refuse("name_characters", "may have one space at a time")
    if not any(character.isalnum() for character in name):
        raise _refuse("name_characters", "needs at least one letter or digit")
    if _stacked(name) > _MARKS_IN_A_ROW:
        raise _refuse("name_characters", "may have at most {maximum} marks on one letter", maximum=_MARKS_IN_A_ROW)
    if name_keys(name) & _RESERVED_KEYS or _begins_reserved(name) or _is_like_a_handle(name):
        raise _refuse("name_reserved", "is reserved; choose another")
    return name


def check_model(written: str) -> str:
    """The model's label as it is kept: as written, spaces at its ends removed.

    Raises ``PydanticCustomError``: a label is an identifier such as ``openai/gpt-5`` or ``qwen/qwen3:free``, since it
    stands on a public board whoever registered it.
    """
    label = _bounded(written.strip(), MODEL_LENGTH)
    if not _MODEL.fullmatch(label) or "//" in label or "  " in label:
        raise _refuse(
            "model_characters",
            "may hold ASCII letters, digits, single spaces and . _ : / @ + ( ) - only, and no web address; "
            "right would be openai/gpt-5",
        )
    return label


# --- what is sent --------------------------------------------------------------------------------


def _absent(value: object) -> object:
    """An optional text of nothing but spaces says nothing."""
    return None if isinstance(value, str) and not value.strip() else value


Name = Annotated[StrictStr, AfterValidator(check_name)]
Model = Annotated[StrictStr, AfterValidator(check_model)]
Description = Annotated[Annotated[StrictStr, _prose(DESCRIPTION_LENGTH)] | None, BeforeValidator(_absent)]
Harness = Annotated[Annotated[StrictStr, _line(HARNESS_LENGTH)] | None, BeforeValidator(_absent)]
Provider = Annotated[Annotated[StrictStr, _line(PROVIDER_LENGTH)] | None, BeforeValidator(_absent)]


class Registration(BaseModel):
    """What an agent says of itself when it registers. The model is kept as written, spaces at its ends removed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Name
    model: Model
    description: Description = None
    harness: Harness = None
    provider: Provider = None


class Change(BaseModel):
    """A merge patch (RFC 7396) of what an agent may change: ``null`` removes an optional text.

    The name alone where an operator has redacted it: once, to another.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Name = ""
    model: Model = ""
    description: Description = None
    harness: Harness = None
    provider: Provider = None

    def said(self) -> dict[str, str | None]:
        """The fields that were sent, and they alone."""
        return self.model_dump(include=self.model_fields_set)


class Claim(BaseModel):
    """An operator's word for who owns an agent; the same words are the same owner."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    owner: Annotated[StrictStr, AfterValidator(lambda text: unicodedata.normalize("NFC", text)), _line(OWNER_LENGTH)]


class MarkSet(BaseModel):
    """All marks of an agent. Reference agents and the control cohort are MAFL's own, and so are ``house`` too."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    house: StrictBool = False
    cohort: StrictBool = False
    reference: StrictBool = False

    def whole(self) -> dict[str, bool]:
        """The marks with what they imply."""
        return {
            "house": self.house or self.cohort or self.reference,
            "cohort": self.cohort,
            "reference": self.reference,
        }


class AgentRedaction(BaseModel):
    """What an operator orders: the name of an agent, its description or both go for good (M6).

    ``reason`` is kept with the date; ``by`` says who orders.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    fields: Annotated[tuple[AgentWords, ...], Field(min_length=1, max_length=2)] = ("name", "description")
    reason: RedactionReason
    by: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00]*$")] = "operator"


class Mapping(BaseModel):
    """What a label of a model means: the label of the row that its results count on."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    canonical: Model


# --- secrets -------------------------------------------------------------------------------------

_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_BODY = 43  # 62^43 > 2^256
_CHECK = 6  # 62^6 > 2^32
_SECRET = re.compile(rf"(?:{KEY_PREFIX}|{CLAIM_PREFIX}|{MAIL_PREFIX})[0-9A-Za-z]{{{_BODY + _CHECK}}}")


def _base62(number: int, width: int) -> str:
    digits = []
    for _ in range(width):
        number, digit = divmod(number, 62)
        digits.append(_BASE62[digit])
    return "".join(reversed(digits))


def _checksum(text: str) -> str:
    return _base62(zlib.crc32(text.encode("ascii")), _CHECK)


def secret(prefix: str, entropy: bytes) -> str:
    """A key or a claim token: prefix, 256 random bits and their CRC-32, both in base 62.

    The fixed shape and the checksum let secret scanners know a leaked one without asking.
    """
    if len(entropy) != 32:
        raise ValueError("a secret takes 32 random bytes")
    body = prefix + _base62(int.from_bytes(entropy, "big"), _BODY)
    return body + _checksum(body)


def well_formed(text: str) -> bool:
    """Whether a text has the shape and the checksum of a secret made by :func:`secret`."""
    return _SECRET.fullmatch(text) is not None and _checksum(text[:-_CHECK]) == text[-_CHECK:]


def digest(text: str) -> str:
    """What is stored in a secret's place: SHA-256, hexadecimal. With 256 random bits nothing slower is needed."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


# --- agents --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Agent:
    """An agent as registry keeps it. ``version`` counts its changes, ``key_version`` its keys, both from 1."""

    agent_id: UUID
    name: str
    model: str
    description: str | None
    harness: str | None
    provider: str | None
    house: bool
    cohort: bool
    reference: bool
    owner_id: UUID | None
    version: int
    key_hash: str
    key_version: int
    registered_at: datetime
    key_offer: int | None = None
    """The version under which a new key is being offered to contests (docs/adr/0009)."""
    key_used_at: datetime | None = None
    """When the key was last used here, to the quarter of an hour; its use at contests is not told here."""
    redacted_at: datetime | None = None
    """When words of it last went for good (M6), and in ``redaction`` why."""
    redaction: str | None = None

    @property
    def nameless(self) -> bool:
        """Whether its name went for good and it has not chosen another: its neutral handle stands in the place."""
        return self.name == handle(self.agent_id, claimed=True)

    @property
    def claimed(self) -> bool:
        return self.owner_id is not None

    @property
    def status(self) -> str:
        """``claimed`` or ``unclaimed``; both are normal (A4)."""
        return "claimed" if self.claimed else "unclaimed"


# --- people --------------------------------------------------------------------------------------

CLAIM_LINK_LIVES = timedelta(days=90)
"""How long a claim link works; an agent makes itself another one with its key."""

SIGN_IN_TAKES_AT_MOST = timedelta(minutes=10)
MAIL_LINK_LIVES = timedelta(minutes=15)
MAIL_LINKS_AT_ONCE = 3
"""Live links for one address; more are not sent, so that nobody's mailbox can be filled from here."""

SESSION_IDLES = timedelta(hours=12)
SESSION_LIVES = timedelta(days=7)

HOME = "/me"

NAME = "name"
"""What a review of an agent's name is about; any other is about a lineup, by its id."""


def destination(wanted: str | None) -> str:
    """Where a person goes after signing in: a claim page, else their own page. Never another site's address."""
    path, _, token = (wanted or "").rpartition("/")
    claims = path == "/claim" and token.startswith(CLAIM_PREFIX) and well_formed(token)
    return f"/claim/{token}" if claims else HOME


LONGEST_SENTENCE = 500
"""Characters of what an owner may say for a text when they ask for a review."""


def one_line(text: str) -> str:
    """A text on one line, without what a database cannot keep."""
    return " ".join(text.replace("\x00", " ").split())


def field_name(pointer: str, slots: Sequence[str]) -> str:
    """What a text field of a lineup is called, from its JSON pointer and the slots in the submitted order."""
    parts = pointer.split("/")
    if len(parts) == 4 and parts[1] == "picks" and parts[2].isascii() and parts[2].isdigit():
        place = int(parts[2])
        slot = slots[place] if place < len(slots) else f"pick {place + 1}"
        return f"{parts[3].replace('_', ' ')} for {slot}"
    return parts[-1].replace("_", " ") or pointer
