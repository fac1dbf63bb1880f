"""Words that go for good out of a service's own log: the outbox keeps what was published, and so kept them too."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY, TEXT
from sqlalchemy.ext.asyncio import AsyncConnection

from common.events import (
    AgentClaimed,
    AgentNameJudged,
    AgentRegistered,
    AgentReleased,
    AgentUpdated,
    Envelope,
    LineupSubmitted,
    ReasoningReleased,
    ReviewRequested,
)

WITH_WORDS = (LineupSubmitted, ReasoningReleased)
"""The events that carry the words of lineups: ``words``, each with its pointer, of one revision."""

AGENT_STATES = (AgentRegistered, AgentUpdated, AgentClaimed, AgentReleased)
"""The events that carry an agent's name and description."""

# A relay that has read a row holds this until it has published it: what is stripped after that goes out stripped.
_RELAY = text("SELECT pg_advisory_xact_lock(x'4F555442'::int)")

_STRIP = text(
    """
    UPDATE outbox SET envelope = jsonb_set(envelope, '{data,words}', (
        SELECT coalesce(jsonb_agg(word ORDER BY place), '[]'::jsonb)
        FROM jsonb_array_elements(envelope #> '{data,words}') WITH ORDINALITY AS said (word, place)
        WHERE NOT word ->> 'pointer' = ANY (:pointers)
    ))
    WHERE subject = :subject AND envelope ->> 'subject' = :about AND envelope #> '{data,revision}' = to_jsonb(:revision)
      AND EXISTS (
        SELECT FROM jsonb_array_elements(envelope #> '{data,words}') AS said (word)
        WHERE word ->> 'pointer' = ANY (:pointers)
      )
    """
).bindparams(bindparam("pointers", type_=ARRAY(TEXT)))

_COUNT = text(
    """
    SELECT count(*) FROM outbox, jsonb_array_elements(envelope #> '{data,words}') AS said (word)
    WHERE subject = :subject AND envelope ->> 'subject' = :about AND envelope #> '{data,revision}' = to_jsonb(:revision)
      AND word ->> 'pointer' = :pointer
    """
)


def _of(kind: type[LineupSubmitted | ReasoningReleased], lineup_id: UUID, revision: int) -> dict[str, object]:
    about = {LineupSubmitted: f"lineup/{lineup_id}", ReasoningReleased: f"reasoning/{lineup_id}"}[kind]
    return {"subject": kind.subject(), "about": about, "revision": revision}


async def strip_outbox(
    connection: AsyncConnection,
    kind: type[LineupSubmitted | ReasoningReleased],
    lineup_id: UUID,
    revision: int,
    pointers: Collection[str],
) -> int:
    """Take texts of a revision, with their salts, out of every recorded event of a kind; how many events changed.

    In the caller's transaction, which holds the relay back until it ends. Reads the whole outbox: it is done rarely.
    """
    await connection.execute(_RELAY)
    done = await connection.execute(_STRIP, {**_of(kind, lineup_id, revision), "pointers": list(pointers)})
    return int(done.rowcount)


async def recorded_with_words(
    connection: AsyncConnection,
    kind: type[LineupSubmitted | ReasoningReleased],
    lineup_id: UUID,
    revision: int,
    pointer: str,
) -> int:
    """How many recorded events of a kind hold a text."""
    found = await connection.execute(_COUNT, {**_of(kind, lineup_id, revision), "pointer": pointer})
    return int(found.scalar_one())


_STRIP_SENTENCES = text(
    """
    UPDATE outbox SET envelope = jsonb_set(envelope, '{data,sentence}', 'null')
    WHERE subject = :subject AND envelope ->> 'subject' = :about AND envelope #> '{data,pointers}' ? :pointer
    """
)


async def strip_sentences(connection: AsyncConnection, lineup_id: UUID, pointer: str) -> int:
    """Take what owners had to say for a text out of every recorded request for a review of it: it may quote the text.

    As :func:`strip_outbox`.
    """
    await connection.execute(_RELAY)
    of = {"subject": ReviewRequested.subject(), "about": f"review/{lineup_id}", "pointer": pointer}
    return int((await connection.execute(_STRIP_SENTENCES, of)).rowcount)


_STRIP_AGENT = text(
    """
    UPDATE outbox SET envelope = jsonb_set(jsonb_set(envelope,
        '{data,agent_name}', CASE WHEN :named THEN to_jsonb(CAST(:handle AS text))
                                  ELSE envelope #> '{data,agent_name}' END),
        '{data,description}', CASE WHEN :described THEN 'null' ELSE envelope #> '{data,description}' END)
    WHERE envelope ->> 'subject' = :about AND subject = ANY (:subjects)
    RETURNING envelope
    """
).bindparams(bindparam("subjects", type_=ARRAY(TEXT)))
_STRIP_NAME = text(
    """
    UPDATE outbox SET envelope = jsonb_set(envelope, '{data,agent_name}', to_jsonb(CAST(:handle AS text)))
    WHERE subject = :subject AND envelope ->> 'subject' = :about
      AND coalesce(CAST(envelope #>> '{data,agent_version}' AS integer), 0) < :before
    """
)
_STRIP_NAME_SENTENCES = text(
    """
    UPDATE outbox SET envelope = jsonb_set(envelope, '{data,sentence}', 'null')
    WHERE subject = :subject AND envelope ->> 'subject' = :about
    """
)


async def strip_agent(
    connection: AsyncConnection, agent_id: UUID, handle: str, fields: Collection[str]
) -> Sequence[Envelope]:
    """Take an agent's name and description out of every recorded state of it, and what owners said for the name.

    Returns the states as they are now, in the order of their versions. As :func:`strip_outbox`.
    """
    await connection.execute(_RELAY)
    asked: dict[str, Any] = {
        "about": f"agent/{agent_id}",
        "subjects": [kind.subject() for kind in AGENT_STATES],
        "handle": handle,
    }
    asked |= {"named": "name" in fields, "described": "description" in fields}
    states = (await connection.execute(_STRIP_AGENT, asked)).scalars().all()
    if "name" in fields:
        of = {"subject": ReviewRequested.subject(), "about": f"review/{agent_id}"}
        await connection.execute(_STRIP_NAME_SENTENCES, of)
    return sorted(map(Envelope.model_validate, states), key=lambda state: state.aggregateversion)


async def strip_name(connection: AsyncConnection, agent_id: UUID, handle: str, before: int) -> int:
    """Take an agent's name out of every recorded verdict on it that is older than a state of the agent; how many."""
    await connection.execute(_RELAY)
    of = {"subject": AgentNameJudged.subject(), "about": f"agent-name/{agent_id}", "handle": handle, "before": before}
    return int((await connection.execute(_STRIP_NAME, of)).rowcount)
