"""Contests: pools, lineups and the lock."""

from fastapi import FastAPI

from common import audit
from common.limits import forget_old_counts, limits_of
from common.service import Service, create_app
from common.settings import Settings
from common.topology import AGENT_CHANGED_NOW, KEY_CHANGED_NOW
from contests import api
from contests.commands import KEYRING, keep_the_lock, take_change, take_key
from contests.consumers import HANDLERS
from contests.intake import is_pressed
from contests.settings import SigningSettings
from contests.stamps import STAMPING, stamp_roots


def app(settings: Settings | None = None) -> FastAPI:
    settings = settings or Settings()
    limits_of(settings)  # A wrong one stops the start, not the first call.
    signing = SigningSettings()
    keyring, stamping = signing.keyring(settings), signing.stamping()
    return create_app(
        Service(
            name="contests",
            package="contests",
            routers=(api.rush, api.router, api.operator, audit.routes("contests")),
            handlers=HANDLERS,
            tasks=(keep_the_lock, *((stamp_roots,) if stamping else ()), forget_old_counts),
            rpc={AGENT_CHANGED_NOW: take_change, KEY_CHANGED_NOW: take_key},
            state={KEYRING: keyring, STAMPING: stamping},
            pressed=is_pressed,
            hot=api.rush.routes,
            # A small table would be read whole, and so take longer the more agents have entered (C8).
            by_index=True,
        ),
        settings,
    )
