"""Operators at the pages: they sign in with the operator's token and their name, for a day at most, and sign out.

One function a use case, in the caller's transaction. ``now`` is real time, also in a replay: a session is a person's.
The token opens the door; the name is what the list of acts keeps, and is taken at its word.
"""

from __future__ import annotations

import hmac
import secrets
from datetime import datetime, timedelta

from common import audit
from common.problems import Problem, Unauthorized
from moderation import desk, domain
from moderation.store import OperatorSession, Store

_SEEN_EVERY = timedelta(minutes=1)


class NameMissing(Problem):
    status = 422
    code = "name-missing"
    title = "Your name is missing"


async def sign_in(
    store: Store, who: str, presented: str, wanted: str, *, before: str | None, via: str, now: datetime
) -> str:
    """Sign in whoever presents the operator's token: the token of a new session. The session ``before`` ends.

    Raises ``Unauthorized``, ``NameMissing``.
    """
    # Compared first: nobody without the token learns what else is asked.
    if not hmac.compare_digest(presented.encode(), wanted.encode()):
        raise Unauthorized("This is not the operator's token.")
    name = " ".join(who.split())
    if not 1 <= len(name) <= desk.LONGEST_NAME or not name.isprintable():
        raise NameMissing(f"It has 1 to {desk.LONGEST_NAME} characters; the list of acts keeps it.")
    if before is not None:
        await store.end_session(domain.text_hash(before))
    token = secrets.token_urlsafe(32)
    await store.add_session(domain.text_hash(token), name, at=now, until=now + desk.SESSION_LIVES)
    await audit.record(store.connection, who=name, what="sign in", target="pages", after={"via": via})
    return token


async def refused(store: Store, *, via: str) -> None:
    """Note that somebody tried to sign in with another token. How often they may is the limit ``sign-ins``."""
    await audit.record(store.connection, who="somebody", what="sign in refused", target="pages", after={"via": via})


async def session(store: Store, token: str, *, now: datetime) -> OperatorSession | None:
    """Whom this session's token signs in, unless it ended, idled or ran out."""
    found = await store.session(domain.text_hash(token), now=now, seen_since=now - desk.SESSION_IDLES)
    if found is not None and now - found.seen_at > _SEEN_EVERY:
        await store.seen(found.token_hash, at=now)
    return found


async def sign_out(store: Store, session: OperatorSession, *, via: str) -> None:
    """End a session: its cookie is worth nothing from now on, wherever it is kept."""
    await store.end_session(session.token_hash)
    await audit.record(store.connection, who=session.who, what="sign out", target="pages", after={"via": via})


async def forget(store: Store, *, now: datetime) -> None:
    """Forget sessions that are over."""
    await store.forget_sessions(now=now, seen_since=now - desk.SESSION_IDLES)
