"""Why a text is withheld, in words for its owner: what the names in ``ReasoningJudged.reasons`` mean.

A name is that of a detector, or ``operator`` where a person flagged the text. Names alone travel in events; the
sentences are here so that whoever shows a name says the same of it.
"""

from __future__ import annotations

from collections.abc import Mapping

REASONS: Mapping[str, str] = {
    "invisible": "It has characters that are drawn as nothing, turn the direction of writing or pass for others: "
    "readers see something else than machines do.",
    "personal-data": "It has something by which a private person can be reached or known: an address, a telephone "
    "number, a number of an account.",
    "secrets": "It has something that looks like a password, a key or a token.",
    "links": "It has a link or the address of a site.",
    "profanity": "It has a word that hurts people.",
    "length": "It is longer than texts are shown.",
    "repetition": "One character, word or sentence repeats without end.",
    "threats": "It threatens, insults or hounds a person, or wishes somebody harm.",
    "self-harm": "It speaks of somebody's taking or hurting his own life, or tells somebody to.",
    "dehumanising": "It speaks of a group of people as less than people.",
    "injection": "It gives orders to a machine that reads it, or hides words that only a machine reads.",
    "external": "The external moderation model that this stack is configured with flagged it.",
    "operator": "A person who moderates here read it and withheld it.",
}
"""By name, whole sentences. A test holds that every detector has one."""

_OTHER = "The check flagged it."


def explained(name: str) -> str:
    """What a reason means; a name that is not known here, from a newer moderation, is shown with little to say."""
    return REASONS.get(name, _OTHER)
