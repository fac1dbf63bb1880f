"""What people do: sign in, claim an agent, look after it. One function a use case, in the caller's transaction.

``now`` is real time here, also in a replay: sessions and links are a person's, not a season's.

The errors, beside their use::

    Problem
    ├── LinkUnknown        404   never given out, or a newer one has taken its place
    ├── LinkUsed           410   the agent is claimed, or the link was used
    ├── LinkExpired        410
    ├── NotYours           404   no agent of this owner
    ├── NothingToReview    409   nothing is withheld, or a review was asked for
    └── SentenceTooLong    422
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from common import events as ev
from common.outbox import emit
from common.problems import NotFound, Problem
from common.service import Runtime
from registry import commands, domain
from registry.domain import Agent
from registry.signin import Identity, Secrets
from registry.store import Field, LockedLineup, NameState, Review, Session, Store

_SEEN_EVERY = timedelta(minutes=5)
_PERSON = "person"


class LinkUnknown(NotFound):
    code = "claim-link-unknown"
    title = "This claim link is not known"


class LinkUsed(Problem):
    status = 410
    code = "claim-link-used"
    title = "This claim link has been used"


class LinkExpired(Problem):
    status = 410
    code = "claim-link-expired"
    title = "This claim link has expired"


class NotYours(NotFound):
    title = "You have no such agent"


class NothingToReview(Problem):
    status = 409
    code = "nothing-to-review"
    title = "There is nothing to review"


class SentenceTooLong(Problem):
    status = 422
    code = "sentence-too-long"
    title = "That is too long to be read"


@dataclass(frozen=True)
class Owned:
    """An agent as its owner sees it."""

    agent: Agent
    name: NameState
    lineups: Sequence[LockedLineup]

    @property
    def last(self) -> LockedLineup | None:
        return self.lineups[0] if self.lineups else None

    @property
    def withheld(self) -> Sequence[LockedLineup]:
        """Lineups with a text that is flagged or redacted, or that a review was asked for."""
        return [
            lineup
            for lineup in self.lineups
            if lineup.reviews or lineup.redacted or any(field.state == ev.State.FLAGGED for field in lineup.fields)
        ]


def asked(field: Field, review: Review | None) -> bool:
    """Whether a review of a flagged text was asked for that nobody has answered."""
    return field.state == ev.State.FLAGGED and review is not None and field.reviewed < review.version


def name_asked(name: NameState) -> bool:
    """Whether a review of a flagged name was asked for that nobody has answered."""
    return name.state == ev.State.FLAGGED and name.review is not None and name.reviewed < name.review.version


# --- signing in ----------------------------------------------------------------------------------


async def depart(store: Store, provider: str, browser: str, *, now: datetime) -> str:
    """A browser goes to a provider; the ``state`` that it must come back with."""
    state = secrets.token_urlsafe(32)
    await store.add_sign_in(domain.digest(state), domain.digest(browser), provider, at=now)
    return state


async def came_back(store: Store, provider: str, state: str, browser: str, *, now: datetime) -> bool:
    """Whether this browser went to this provider with this state a moment ago; the first time only."""
    return await store.take_sign_in(
        domain.digest(state), domain.digest(browser), provider, since=now - domain.SIGN_IN_TAKES_AT_MOST
    )


async def sign_in(
    store: Store, identity: Identity, keys: Secrets, *, way: str, before: str | None, now: datetime
) -> str:
    """Sign in whoever has proved to be ``identity``: the token of a new session. The session ``before`` ends."""
    return await _enter(store, keys.known_as(identity), identity.issuer, way=way, before=before, now=now)


async def _enter(store: Store, known_as: str, issuer: str, *, way: str, before: str | None, now: datetime) -> str:
    await store.serialise(_PERSON, known_as)
    owner_id = await store.owner_of(known_as)
    if owner_id is None:
        owner_id = commands.new_id()
        await store.add_person(owner_id, known_as, issuer, at=now)
    if before is not None:
        await store.end_session(domain.digest(before))
    token = secrets.token_urlsafe(32)
    await store.add_session(domain.digest(token), owner_id, way, at=now, until=now + domain.SESSION_LIVES)
    return token


async def session(store: Store, token: str, *, now: datetime) -> Session | None:
    """Who this session's token signs in, unless it ended, idled or ran out."""
    found = await store.session(domain.digest(token), now=now, seen_since=now - domain.SESSION_IDLES)
    if found is not None and now - found.seen_at > _SEEN_EVERY:
        await store.seen(found.token_hash, at=now)
    return found


async def sign_out(store: Store, token: str) -> None:
    """End a session: its cookie is worth nothing from now on, wherever it is kept."""
    await store.end_session(domain.digest(token))


async def ask_by_mail(store: Store, identity: Identity, keys: Secrets, browser: str, *, now: datetime) -> str | None:
    """The token of a link to mail, or ``None`` where enough links for this address are on their way."""
    known_as = keys.known_as(identity)
    await store.serialise(_PERSON, known_as)
    if await store.mail_links_of(known_as, since=now - domain.MAIL_LINK_LIVES) >= domain.MAIL_LINKS_AT_ONCE:
        return None
    token = domain.secret(domain.MAIL_PREFIX, secrets.token_bytes(32))
    await store.add_mail_link(domain.digest(token), domain.digest(browser), known_as, at=now)
    return token


async def not_mailed(store: Store, token: str) -> None:
    """A link could not be handed in: it counts for nothing."""
    await store.drop_mail_link(domain.digest(token))


async def mail_link(store: Store, token: str, browser: str, *, now: datetime) -> bool | None:
    """Whether a mailed link was asked for by this browser; ``None`` where it is used, expired or unknown."""
    link = await store.mail_link(domain.digest(token), since=now - domain.MAIL_LINK_LIVES)
    return None if link is None else link.browser_hash == domain.digest(browser)


async def sign_in_by_mail(
    store: Store, token: str, browser: str, *, issuer: str, way: str, before: str | None, now: datetime
) -> str | None:
    """Use a mailed link, in the browser that asked for it, once: the token of a new session, or ``None``."""
    known_as = await store.take_mail_link(
        domain.digest(token), domain.digest(browser), since=now - domain.MAIL_LINK_LIVES
    )
    return None if known_as is None else await _enter(store, known_as, issuer, way=way, before=before, now=now)


async def forget(store: Store, *, now: datetime) -> None:
    """Forget sessions, sign-ins and links that are over."""
    await store.forget_people(
        now=now,
        seen_since=now - domain.SESSION_IDLES,
        sign_ins_before=now - domain.SIGN_IN_TAKES_AT_MOST,
        links_before=now - domain.MAIL_LINK_LIVES,
    )


# --- claiming ------------------------------------------------------------------------------------


async def agent_to_claim(store: Store, token: str) -> Agent:
    """The agent behind a claim link that works. Raises ``LinkUnknown``, ``LinkUsed``, ``LinkExpired`` (A6)."""
    link = await store.link(domain.digest(token)) if domain.well_formed(token) else None
    if link is None:
        raise LinkUnknown("It may be incomplete, or a newer link has taken its place.")
    if link.used or link.agent.claimed:
        raise LinkUsed("The agent has been claimed. A claim link works once.")
    if link.expired:
        raise LinkExpired("The agent can make a new one with its API key.")
    return link.agent


async def claim(store: Store, token: str, owner_id: UUID, *, now: datetime) -> Agent:
    """Claim the agent behind a link for a person who is signed in and has agreed (A5).

    Of several people at once one gets it. Raises ``LinkUnknown``, ``LinkUsed``, ``LinkExpired``.
    """
    agent = await agent_to_claim(store, token)
    # Whoever comes second waits here, and then finds the agent claimed.
    await store.agent(agent.agent_id, for_update=True)
    agent = await agent_to_claim(store, token)
    return await commands.claimed_by(store, agent, owner_id, now=now)


async def new_claim_link(store: Store, presented: str, *, now: datetime) -> tuple[Agent, str]:
    """A new claim link for the agent that presents its key; the old link is dead.

    Raises ``Unauthorized``, ``AlreadyClaimed``.
    """
    agent = await commands.authenticated(store, presented, for_update=True)
    if agent.claimed:
        raise commands.AlreadyClaimed(f"{agent.name} has an owner, who has to release it first.")
    token = domain.secret(domain.CLAIM_PREFIX, secrets.token_bytes(32))
    await store.replace_link(agent.agent_id, domain.digest(token), at=now)
    return agent, token


# --- owners --------------------------------------------------------------------------------------


async def owned(store: Store, owner_id: UUID) -> Sequence[Owned]:
    """The agents of an owner, with what moderation says of them."""
    agents = await store.agents_of(owner_id)
    ids = [agent.agent_id for agent in agents]
    names, lineups = await store.name_states(ids), await store.lineups_of(ids)
    return [Owned(agent, names[agent.agent_id], lineups[agent.agent_id]) for agent in agents]


async def own(store: Store, owner_id: UUID, agent_id: UUID) -> Agent:
    """An agent of an owner, held for a change. Raises ``NotYours``, also for an agent of somebody else."""
    agent = await store.agent(agent_id, for_update=True)
    if agent is None or agent.owner_id != owner_id:
        raise NotYours("It may have been released, or it is somebody else's.")
    return agent


async def new_key(
    runtime: Runtime, owner_id: UUID, agent_id: UUID, *, admit: Callable[[Agent], Awaitable[None]]
) -> commands.Issued:
    """A new key for an own agent; the old one is dead, here and at contests. In transactions of its own.

    ``admit`` may refuse the agent first, once it is known to be the owner's. Raises ``NotYours``, and ``Unavailable``
    with the old key still good.
    """

    async def find(store: Store) -> Agent:
        return await own(store, owner_id, agent_id)

    async with runtime.database.transaction() as connection:
        agent = await find(Store(connection))
    await admit(agent)
    return await commands.renew(runtime, find)


async def release(store: Store, owner_id: UUID, agent_id: UUID) -> Agent:
    """Release an own agent: its name and its words are hidden from now on. Raises ``NotYours``."""
    agent = await own(store, owner_id, agent_id)
    return await commands.release(store, agent.agent_id)


async def ask_review(
    store: Store,
    owner_id: UUID,
    agent_id: UUID,
    lineup_id: UUID | None,
    pointer: str | None = None,
    *,
    sentence: str = "",
    now: datetime,
) -> ev.ReviewRequested:
    """Ask a person to look again at a flagged text of a lineup (all of them without ``pointer``), or (without a
    lineup) at the agent's flagged name. ``sentence`` is what the owner has to say for it.

    One open request for one text; after a person has answered it can be asked again. Raises ``NotYours``,
    ``NothingToReview``, ``SentenceTooLong``.
    """
    sentence = domain.one_line(sentence)
    if len(sentence) > domain.LONGEST_SENTENCE:
        raise SentenceTooLong(f"It has {len(sentence)} characters; {domain.LONGEST_SENTENCE} are read.")
    said = sentence or None
    await own(store, owner_id, agent_id)
    if lineup_id is None:
        name = (await store.name_states([agent_id]))[agent_id]
        wanted = [""] if name.state == ev.State.FLAGGED and not name_asked(name) else []
        judged, about = name.judged, domain.NAME
        event = ev.ReviewRequested(agent_id=agent_id, judged_version=judged, requested_at=now, sentence=said)
    else:
        lineups = (await store.lineups_of([agent_id], lineup_id=lineup_id))[agent_id]
        if not lineups:
            raise NotYours("This agent has no such lineup.")
        lineup = lineups[0]
        wanted = [
            field.pointer
            for field in lineup.fields
            if field.state == ev.State.FLAGGED
            and pointer in (None, field.pointer)
            and field.pointer not in lineup.redacted
            and not asked(field, lineup.reviews.get(field.pointer))
        ]
        judged, about = lineup.judged, str(lineup_id)
        event = ev.ReviewRequested(
            agent_id=agent_id,
            lineup_id=lineup_id,
            contest=lineup.contest,
            revision=lineup.revision,
            pointers=tuple(wanted),
            judged_version=judged,
            requested_at=now,
            sentence=said,
        )
    if not wanted:
        raise NothingToReview("It is not flagged, or a review of it has been asked for and nobody has looked yet.")
    version = await store.add_review(agent_id, owner_id, about, wanted, judged=judged, sentence=said, at=now)
    await emit(store.connection, event, version)
    return event
