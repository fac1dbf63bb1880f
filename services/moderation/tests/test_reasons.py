"""Owners are told why a text of theirs is withheld, in words."""

import pytest

from common.reasons import REASONS, explained
from moderation import detectors, domain


@pytest.mark.rule("M4")
def test_every_reason_that_moderation_gives_has_a_sentence_for_owners() -> None:
    named = {detector.name for detector in detectors.load().detectors} | {domain.BY_HAND}
    assert named - REASONS.keys() == set(), "give each of these a sentence in common/reasons.py"
    assert all(sentence.endswith(".") and sentence[0].isupper() for sentence in REASONS.values())
    assert explained("of-a-newer-version") not in REASONS.values()
