"""Personal data: addresses and numbers that reach or identify a person.

Regular expressions of presidio's recognisers, without its engine and without a language model, with
their own checksums and a score that a number without context does not reach; telephone numbers by
phonenumbers; addresses of houses, places and accounts by rules about the words around them. Shapes
that football is full of (dates, scores, prices, GSIS ids) are no such data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from phonenumbers import Leniency, PhoneNumberMatcher
from presidio_analyzer.predefined_recognizers import (
    CreditCardRecognizer,
    CryptoRecognizer,
    EmailRecognizer,
    IbanRecognizer,
    IpRecognizer,
    MacAddressRecognizer,
    UsSsnRecognizer,
)

from moderation.detectors.links import extract
from moderation.detectors.phrases import Phrases
from moderation.pipeline import Context, Match

_SURE = 0.5
"""The least score of a recogniser that counts; bare digits without a checksum stay under it."""


class _Email(EmailRecognizer):  # type: ignore[misc]
    """Presidio's own check of the domain asks the network for the list of suffixes; ours has it."""

    def validate_result(self, pattern_text: str) -> bool:
        return bool(extract(pattern_text.rpartition("@")[2]).suffix)


_RULES = {
    "EMAIL_ADDRESS": "email",
    "CREDIT_CARD": "credit-card",
    "US_SSN": "social-security-number",
    "IBAN_CODE": "iban",
    "IP_ADDRESS": "ip-address",
    "CRYPTO": "crypto-address",
    "MAC_ADDRESS": "mac-address",
}
_SSN = re.compile(
    r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])"
    r"|(?<=\bssn\b)(?:\W+\w+){0,2}\W+\d{3}[- ]?\d{2}[- ]?\d{4}\b"
    r"|(?<=\bsocial security\b)(?:\W+\w+){0,3}\W+\d{3}[- ]?\d{2}[- ]?\d{4}\b",
    re.I,
)
_PHONE = re.compile(r"(?<![\w.,$/-])(?:\+?1[-. ])?(?:\(\d{3}\) ?|\d{3}([-.]))\d{3}[-.]\d{4}(?![\w-]|[.,]\d)")
_ENOUGH_DIGITS = re.compile(r"\d(?:\D{0,3}\d){6}")
_COUNTS = re.compile(
    r"(?i) (?:draws|simulations?|sims|iterations|trials|runs|games|lineups|rows|combinations|samples|ways)\b"
)
_NAMES_A_THING = re.compile(
    r"(?i)\b(?:id|ids|seed|seeded|hash|gsis|simulated|record|index|key|row|version|sku|entry)\b[^\w]{0,3}(?:\w{1,8} )?$"
)
"""What is counted, or numbered, is not called: ``2125550123 draws``, ``seed 2125550123``."""
_STATISTIC = re.compile(
    r"(?i)\b(?:(?:season|stat) line|passing|rushing|receiving|yards|touchdowns|tds|carries|comps?|atts|attempts"
    r"|completions|snaps?|targets|catches|throw[ns]|threw|on the ground|led the league|splits|quarters?"
    r"|against the spread|units|career|seasons?|games|scores?|points|totals|seed(?:ed)?|sims|simulations|record of"
    r"|went)\b"
)
_REACHES = re.compile(
    r"(?i)\b(?:call(?:s|ed|ing)?|text(?:s|ed|ing)?|phones?|cell|mobile|numbers?|reach(?:es|ed)?|dial|whatsapp|sms"
    r"|contact|ring|tel|fax|message|voicemail|direct|ssn|social|security|card|visa|mastercard|amex|ip|server|host"
    r"|address|home|office|her|lives)\b"
)
_AROUND = 40
"""Completions, attempts and yards have as many digits as a telephone number; targets, catches and scores look like the
address of a machine. Beside a word of statistics, and with none of reaching anybody, they are statistics."""
_DIGITS_RUN = re.compile(r"\d+")

_MAY_HOLD = {
    "EMAIL_ADDRESS": re.compile("@"),
    "CREDIT_CARD": re.compile(r"\d(?:\D?\d){11}"),
    "US_SSN": re.compile(r"\d(?:\D?\d){8}"),
    "IBAN_CODE": re.compile(r"(?i)[a-z]{2}\d{2}"),
    "IP_ADDRESS": re.compile(r"\d\.\d{1,3}\.\d|:[0-9a-fA-F]{0,4}:"),
    "CRYPTO": re.compile(r"\w{25}"),
    "MAC_ADDRESS": re.compile(r"(?:[0-9a-fA-F]{2}[:-]){5}|(?:[0-9a-fA-F]{4}\.){2}"),
}
"""The least that a text has where a recogniser finds something: most texts have none of it and are soon done."""


class PersonalData(Phrases):
    """The rules of ``rules/personal-data.toml``, and what the libraries know."""

    def __init__(self) -> None:
        super().__init__("personal-data")
        self._recognisers = [
            (_MAY_HOLD[recogniser.supported_entities[0]], recogniser)
            for recogniser in (
                kind()
                for kind in (
                    _Email,
                    CreditCardRecognizer,
                    UsSsnRecognizer,
                    IbanRecognizer,
                    IpRecognizer,
                    CryptoRecognizer,
                    MacAddressRecognizer,
                )
            )
        ]

    def judge(self, text: str, context: Context) -> Iterable[Match]:
        yield from super().judge(text, context)
        for may_hold, recogniser in self._recognisers:
            if may_hold.search(text) is None:
                continue
            for result in recogniser.analyze(text, recogniser.supported_entities, None):
                if (
                    result.score >= _SURE
                    and _is_one(result.entity_type, text[result.start : result.end])
                    and not _counts_in_a_game(text, result.start, result.end)
                ):
                    yield Match(_RULES[result.entity_type], result.start, result.end)
        if _ENOUGH_DIGITS.search(text) is None:
            return
        for found in _SSN.finditer(text):
            if not _counts_in_a_game(text, found.start(), found.end()):
                yield Match("social-security-number", found.start(), found.end())
        for found in _PHONE.finditer(text):
            if not _counts_in_a_game(text, found.start(), found.end()):
                yield Match("phone", found.start(), found.end())
        for number in PhoneNumberMatcher(text, "US", leniency=Leniency.VALID):
            if _written_as_a_number(text, number.start, number.raw_string) and not _counts_in_a_game(
                text, number.start, number.end
            ):
                yield Match("phone", number.start, number.end)


def _is_one(kind: str, found: str) -> bool:
    """Whether a find is more than a scrap: ``d::`` is an IPv6 address by the letter and none by sense."""
    return kind != "IP_ADDRESS" or "." in found or found.count(":") >= 3


def _written_as_a_number(text: str, start: int, raw: str) -> bool:
    """Whether digits that could be dialled are written the way a telephone number is.

    A date (``3-10-2017``) or a run of statistics (``250-300 1500``) can have as many digits.
    """
    if raw.startswith(("+", "(")):
        return True
    if start and text[start - 1] in ".,$/-":
        return False
    if raw.isdigit() and (
        _COUNTS.match(text, start + len(raw)) or _NAMES_A_THING.search(text, max(0, start - 24), start)
    ):
        return False
    groups = [len(run) for run in _DIGITS_RUN.findall(raw)]
    separators = set(re.findall(r"\D+", raw))
    return len(separators) <= 1 and groups in ([10], [11], [3, 3, 4], [1, 3, 3, 4])


def _counts_in_a_game(text: str, start: int, end: int) -> bool:
    """Whether digits (and nothing but digits, points and dashes) stand beside words of statistics alone."""
    if re.search(r"[^\d. -]", text[start:end]):
        return False
    beside = text[max(0, start - _AROUND) : start], text[end : end + _AROUND]
    return any(map(_STATISTIC.search, beside)) and not any(map(_REACHES.search, beside))
