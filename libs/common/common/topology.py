"""Streams, durables and who may read what: data, read by the provisioner and by the NATS account file.

A service reads a stream through one durable of its own name. ``REGISTRY_KEYS``, ``REGISTRY_REVIEWS`` and
``CONTESTS_PRIVATE`` and others are streams of their own so that neither their bodies nor their sequence numbers reach
anybody else; their dead letters are kept apart for the same reason: whoever writes one is told its number.
"""

from __future__ import annotations

from dataclasses import dataclass

from common import events as ev

SERVICES = ("registry", "contests", "moderation", "settlement", "boards")
PROVISIONER = "provisioner"
"""Owns the streams themselves, and so is the only one who can erase a message: see ``common.erasure``."""
DEAD_LETTERS = "DEAD"
DEAD_PRIVATE = "DEAD_PRIVATE"
"""The dead letters of :data:`PRIVATE_STREAMS`."""
PRIVATE_STREAMS = ("REGISTRY_KEYS", "REGISTRY_REVIEWS", "CONTESTS_PRIVATE", "MODERATION_PRIVATE", "ERASURES")
"""Each is read by one service alone."""
ADVISORIES = "ADVISORIES"
AGENT_BY_KEY = "rpc.registry.agent_by_key"
"""Request/reply: contests asks registry for an agent whose event has not arrived yet."""
AGENT_CHANGED_NOW = "rpc.contests.agent_changed_now"
"""Request/reply: registry lets contests know of an agent's change before it answers, ahead of the event."""
KEY_CHANGED_NOW = "rpc.contests.key_changed_now"
"""Request/reply: registry has contests take a new key before it answers to whoever rotated (docs/adr/0009)."""


@dataclass(frozen=True)
class Stream:
    """A stream that keeps everything. ``subjects`` are NATS subjects."""

    name: str
    subjects: tuple[str, ...]


@dataclass(frozen=True)
class Durable:
    """What one service reads of one stream; the durable bears the service's name."""

    service: str
    stream: str
    events: tuple[type[ev.Event], ...]

    @property
    def subjects(self) -> tuple[str, ...]:
        return tuple(sorted(event.subject() for event in self.events))


def _subjects(stream: str) -> tuple[str, ...]:
    return tuple(sorted(event.subject() for event in ev.EVENTS if event.stream == stream))


def dead_letter(stream: str, subject: str) -> str:
    """The subject under which a message of a stream is kept that nobody could take, also of a type unknown by now."""
    return f"dead.{stream}.{subject}"


def _dead(*, private: bool) -> tuple[str, ...]:
    streams = {event.stream for event in ev.EVENTS if (event.stream in PRIVATE_STREAMS) == private}
    return tuple(sorted(dead_letter(stream, ">") for stream in streams))


STREAMS: tuple[Stream, ...] = (
    *(
        Stream(name, _subjects(name))
        for name in ("REGISTRY", *PRIVATE_STREAMS, "CONTESTS", "MODERATION", "SETTLEMENT", "BOARDS")
    ),
    Stream(DEAD_LETTERS, _dead(private=False)),
    Stream(DEAD_PRIVATE, _dead(private=True)),
    Stream(ADVISORIES, ("$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.>",)),
)

_AGENT = (ev.AgentRegistered, ev.AgentUpdated, ev.AgentClaimed, ev.AgentReleased)
_CONTEST = (ev.ContestOpened, ev.ContestRescheduled, ev.ContestCancelled, ev.ContestLocked, ev.LineupLocked)

DURABLES: tuple[Durable, ...] = (
    Durable("registry", "CONTESTS", (ev.LineupLocked, ev.TextRedacted, ev.ClockMoved)),
    Durable("registry", "MODERATION", (ev.ReasoningJudged, ev.AgentNameJudged)),
    Durable("contests", "REGISTRY", _AGENT),
    Durable("contests", "REGISTRY_KEYS", (ev.AgentKeyChanged,)),
    Durable("contests", "MODERATION_PRIVATE", (ev.RedactionOrdered,)),
    Durable("moderation", "REGISTRY", (*_AGENT, ev.AgentRedacted, ev.ModelMapped)),
    Durable("moderation", "REGISTRY_REVIEWS", (ev.ReviewRequested,)),
    Durable("moderation", "CONTESTS_PRIVATE", (ev.LineupSubmitted, ev.RedactedInContests)),
    Durable("moderation", "CONTESTS", (*_CONTEST, ev.ClockMoved)),
    Durable("moderation", "BOARDS", (ev.RedactedInBoards, ev.AgentRedactedInBoards)),
    Durable("moderation", "ERASURES", (ev.WordsErased, ev.AgentWordsErased)),
    Durable("settlement", "CONTESTS", (*_CONTEST, ev.ClockMoved)),
    Durable("boards", "REGISTRY", (*_AGENT, ev.AgentRedacted, ev.ModelMapped)),
    Durable("boards", "CONTESTS", (*_CONTEST, ev.TextRedacted, ev.ClockMoved)),
    Durable("boards", "MODERATION", (ev.ReasoningJudged, ev.ReasoningReleased, ev.AgentNameJudged, ev.ModelJudged)),
    Durable("boards", "SETTLEMENT", (ev.ScoresUpdated, ev.LineupSettled, ev.WeekSettled)),
)


def durables_of(service: str) -> tuple[Durable, ...]:
    """The durables that a service reads."""
    return tuple(durable for durable in DURABLES if durable.service == service)


def inbox_prefix(user: str) -> str:
    """Replies to a NATS user go under a prefix of its own, so that no other user can read them."""
    return f"_INBOX_{user}"


@dataclass(frozen=True)
class Permissions:
    """NATS subjects that a user may publish to and subscribe to.

    ``replies`` allows one answer to the reply subject of a request that was received.
    """

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    replies: bool = False


def permissions(service: str) -> Permissions:
    """The least that a service needs: its own events, its own durables, its own replies."""
    publish = [event.subject() for event in ev.EVENTS if event.owner == service]
    publish += [dead_letter(durable.stream, ">") for durable in durables_of(service)]
    for durable in durables_of(service):
        publish += [
            f"$JS.API.CONSUMER.MSG.NEXT.{durable.stream}.{service}",
            f"$JS.API.CONSUMER.INFO.{durable.stream}.{service}",
            f"$JS.ACK.{durable.stream}.{service}.>",
        ]
    subscribe = [f"{inbox_prefix(service)}.>"]
    asked = {"registry": (AGENT_BY_KEY,), "contests": (AGENT_CHANGED_NOW, KEY_CHANGED_NOW)}
    if service in asked:
        publish += [subject for other, subjects in asked.items() if other != service for subject in subjects]
        subscribe += asked[service]
    return Permissions(tuple(sorted(set(publish))), tuple(subscribe), replies=service in asked)
