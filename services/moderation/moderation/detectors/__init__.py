"""The detectors, in the order in which a text meets them."""

from __future__ import annotations

from moderation.pipeline import Pipeline


def load() -> Pipeline:
    """The pipeline with every detector built. Takes one to two seconds (the recognisers' library imports spaCy).

    Raises whatever a library raises that cannot be loaded.
    """
    from moderation.detectors.injection import Injection
    from moderation.detectors.invisible import Invisible
    from moderation.detectors.length import Length
    from moderation.detectors.links import Links
    from moderation.detectors.personal import PersonalData
    from moderation.detectors.phrases import Phrases, idioms
    from moderation.detectors.profanity import Profanity
    from moderation.detectors.repetition import Repetition
    from moderation.detectors.secrets import Secrets

    idioms()  # Here, so that the processes that judge need not build them each.
    return Pipeline(
        (
            Length(),
            Invisible(),
            Repetition(),
            Secrets(),
            PersonalData(),
            Links(),
            Profanity(),
            Phrases("threats"),
            Phrases("self-harm"),
            Phrases("dehumanising"),
            Injection(),
        )
    )
