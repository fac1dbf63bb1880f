"""A stack on an address of its own, whoever is on it, and all that can be seen of it: by asking, in its streams and
in its databases. For tests that look for what must not be seen."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from nats.js.errors import NotFoundError
from psycopg import sql

from common import events as ev
from common import limits, topology
from embedded.nats import Nats
from embedded.stack import Ports, Stack, StackOptions
from mafl.client import PublicClient
from mafl.operator import OperatorClient
from testkit import asking
from testkit.asking import Answer, Ask, Origin
from testkit.fixtures import admin

PUBLIC_BIND = "127.0.0.2"
PRIVATE = (ev.LineupSubmitted.stream,)
"""Streams that moderation alone may read; see ``topology.permissions`` and the tests of NATS."""
WIDE_LIMITS = json.dumps({limit.name: "60000000/600" for limit in limits.USUAL})
"""So many calls that what is left is always the same number: each call is one, and it is back at once."""


@contextlib.asynccontextmanager
async def a_stack(state: Path) -> AsyncIterator[tuple[Stack, OperatorClient, PublicClient]]:
    """A stack with a replay clock and limits that nobody comes near, who operates it, and a stranger."""
    options = StackOptions(
        state=state,
        ports=Ports.free(),
        bind=PUBLIC_BIND,
        clock="replay",
        durable=False,
        environment={"MAFL_LIMITS": WIDE_LIMITS},
    )
    async with Stack(options) as stack:
        operator = OperatorClient(stack.operator_url, token=stack.operator_token)
        async with operator, PublicClient(stack.public_url) as public:
            yield stack, operator, public


@dataclass(frozen=True)
class Member:
    """Somebody who plays. ``owner`` is a mail address; ``played`` whether it was in the week before."""

    name: str
    model: str = "openai/gpt-5"
    owner: str | None = None
    marks: Mapping[str, bool] = field(default_factory=dict)
    played: bool = True


@dataclass
class World:
    """The stack and everybody on it. ``keys`` and ``ids`` are agents' by name, ``sessions`` owners' cookies."""

    stack: Stack
    operator: OperatorClient
    keys: dict[str, str] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    sessions: dict[str, str] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    pool: list[dict[str, Any]] = field(default_factory=list)
    keeps_link_of: str = ""
    """Of whom the newest claim link is kept, unused."""
    _ways: dict[str, Origin] = field(default_factory=dict)

    @property
    def bus(self) -> Nats:
        assert self.stack._bus is not None
        return self.stack._bus

    def filled(self, text: str) -> str:
        """A text of a request with the world's values in it."""
        return re.sub(r"<([a-z-]+)>", lambda found: self.values.get(found[1], found[0]), text)

    def send(self, ask: Ask, source: str = "127.0.0.9") -> Answer:
        """Ask the public origin, with the credentials of who asks; what the answer gives of keys is kept."""
        way = self._ways.setdefault(source, Origin(PUBLIC_BIND, self.stack.ports["public"], source))
        filled = Ask(
            ask.method,
            self.filled(ask.target),
            tuple((name, self.filled(value)) for name, value in ask.headers),
            self.filled(ask.body.decode("latin-1")).encode("latin-1") if len(ask.body) < 9_999 else ask.body,
            version=ask.version,
        )
        answer = way.send(filled, self._credentials(ask))
        self._learn(ask, answer)
        return answer

    def _credentials(self, ask: Ask) -> asking.Headers:
        given = {name.lower() for name, _ in ask.headers}
        if ask.who in self.keys and "authorization" not in given:
            return (("Authorization", f"Bearer {self.keys[ask.who]}"),)
        if ask.who in self.sessions and "cookie" not in given:
            return (("Cookie", self.sessions[ask.who]),)
        if ask.who == "a stranger's key":
            return (("Authorization", f"Bearer mafl_sk_{'0' * 49}"),)
        return ()

    def _learn(self, ask: Ask, answer: Answer) -> None:
        """Whoever gets a new key goes on with it; the one claim link that stays unused is the newest."""
        link = re.search(r"mafl_claim_[0-9A-Za-z]{40,}", answer.text)
        if link is not None and ask.who == self.keeps_link_of:
            self.values["claim"] = link[0]
        key = re.search(r"mafl_sk_[0-9A-Za-z]{49}", answer.text)
        if key is None:
            return
        if ask.who in self.keys:
            self.keys[ask.who] = key[0]
        elif told := re.fullmatch(r"/me/agents/(.+)/key", self.filled(ask.path)):
            (name,) = [name for name, agent_id in self.ids.items() if agent_id == told[1]]
            self.keys[name] = key[0]

    # A person at a browser.

    def csrf(self, page: Answer) -> str:
        found = re.search(r'name="csrf" value="([^"]+)"', page.text)
        assert found is not None, page
        return found[1]

    def form(self, target: str, csrf: str, who: str, cookie: str = "", **fields: str) -> Ask:
        body = "&".join(f"{name}={value}" for name, value in {"csrf": csrf, **fields}.items())
        headers = (
            ("Content-Type", "application/x-www-form-urlencoded"),
            ("Origin", self.stack.public_url),
            *((("Cookie", cookie),) if cookie else ()),
        )
        told = ", ".join(f"{name}={value}" for name, value in fields.items())
        return Ask("POST", target, headers, body.encode(), who, label=f"the form of {target} with {told or 'nothing'}")

    def sign_in(self, owner: str) -> Iterable[tuple[str, Answer]]:
        """Sign an owner in by a mailed link; each answer on the way, by what was done."""
        self.sessions.pop(owner, None)
        page = self.send(Ask("GET", "/signin"))
        browser = f"mafl-browser={page.cookies['mafl-browser']}"
        yield "opens the page to sign in", page
        for mail in (self.stack.state / "outbox").glob("*.eml"):
            mail.unlink()
        address = owner.replace("@", "%40")
        mailed = self.send(self.form("/signin/mail", self.csrf(page), owner, browser, address=address))
        yield "asks for a link", mailed
        (mail,) = (self.stack.state / "outbox").glob("*.eml")
        link = re.search(r"/signin/mail/\S+", mail.read_text())
        assert link is not None
        opened = self.send(Ask("GET", link[0], (("Cookie", browser),)))
        yield "opens the link", opened
        entered = self.send(self.form(link[0], self.csrf(opened), owner, browser))
        yield "uses the link", entered
        self.sessions[owner] = "; ".join(f"{name}={value}" for name, value in entered.cookies.items())

    def claim(self, owner: str, name: str) -> Iterable[tuple[str, Answer]]:
        """Claim an agent by a new link, signed in."""
        made = self.send(Ask("POST", "/api/v1/agents/me/claim-link", who=name))
        yield "its agent makes a link", made
        link = json.loads(made.body)["claim_url"].removeprefix(self.stack.public_url)
        self.values["used-claim"] = link.removeprefix("/claim/")
        yield "a stranger opens it", self.send(Ask("GET", link))
        page = self.send(Ask("GET", link, who=owner))
        yield "opens it", page
        yield "does not agree", self.send(self.form(link, self.csrf(page), owner))
        yield "claims", self.send(self.form(link, self.csrf(page), owner, consent="yes"))
        yield "opens it again", self.send(Ask("GET", link, who=owner))

    # What is there.

    async def quiet(self, without: frozenset[str] = frozenset()) -> None:
        """Wait until everything that was told is taken, everywhere, and nothing follows from it.

        ``without``: services that are stopped, for which nobody waits.
        """
        deadline, before, seen = time.monotonic() + 60, None, 0
        async with admin(self.bus) as client:
            js = client.jetstream()
            while seen < 4:
                durables = [
                    await js.consumer_info(one.stream, one.service)
                    for one in topology.DURABLES
                    if one.service not in without
                ]
                waiting = sum((one.num_pending or 0) + (one.num_ack_pending or 0) for one in durables)
                waiting += sum(
                    self.rows(service, "SELECT count(*) FROM outbox WHERE published_at IS NULL")[0][0]
                    for service in topology.SERVICES
                )
                if "moderation" not in without:
                    backlog = await self.operator.operate("GET", "/moderation/backlog")
                    waiting += backlog["texts"] + backlog["names"] + backlog["models"]
                now = [(await js.stream_info(one.name)).state.last_seq for one in topology.STREAMS]
                seen = seen + 1 if not waiting and now == before else 0
                before = now
                assert time.monotonic() < deadline, f"{waiting} events and texts still wait"
                await asyncio.sleep(0.05)

    def connect(self, service: str) -> psycopg.Connection[Any]:
        """The database of a service, as its own role."""
        passwords = json.loads((self.stack.state / "secrets.json").read_text())["databases"]
        return psycopg.connect(
            host="127.0.0.1",
            port=self.stack.ports["postgres"],
            user=service,
            password=passwords[service],
            dbname=service,
        )

    def rows(self, service: str, query: str) -> list[Any]:
        with self.connect(service) as connection:
            return connection.execute(query.encode()).fetchall()


def lineup_of(pool: list[dict[str, Any]], number: int, words: str = "") -> dict[str, Any]:
    """A legal lineup of cheap players, another one for each number."""
    slots = {
        "QB": "QB",
        "RB1": "RB",
        "RB2": "RB",
        "WR1": "WR",
        "WR2": "WR",
        "WR3": "WR",
        "TE": "TE",
        "FLEX": "WR",
        "DST": "DST",
    }
    cheap: dict[str, list[str]] = {}
    for player in sorted(pool, key=lambda one: (one["price"], one["player_id"])):
        cheap.setdefault(player["positions"][0], []).append(player["player_id"])
    return {
        "picks": [
            {
                "slot": slot,
                "player_id": cheap[position].pop(number % 9),
                "rationale": f"Cheap, says {number}. {words}",
                "confidence": 0.25,
                "main_factor": "price",
            }
            for slot, position in slots.items()
        ],
        "thesis": f"Nine cheap starters, for the {number}th time. {words}",
        "projected_score": 80.25 + number,
        "confidence": 0.5,
    }


def entry(who: str, body: Any, contest: str, key: str | None = None, call: str = "") -> Ask:
    headers = (("Content-Type", "application/json"), *((("Idempotency-Key", key),) if key else ()))
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Ask("POST", f"/api/v1/contests/{contest}/lineups{call}", headers, content, who)


async def told(world: World) -> dict[str, Any]:
    """Every stream but moderation's private one, to the byte: messages, headers, counts, sizes, and every durable."""
    found: dict[str, Any] = {}
    async with admin(world.bus) as client:
        js = client.jetstream()
        for info in await js.streams_info():
            name, state = str(info.config.name), info.state
            if name in PRIVATE:
                continue
            found[name] = (state.messages, state.bytes, state.first_seq, state.last_seq, state.consumer_count)
            for sequence in range(max(1, state.first_seq), state.last_seq + 1):
                try:
                    message = await js.get_msg(name, sequence)
                except NotFoundError:
                    found[f"{name} {sequence}"] = None
                    continue
                found[f"{name} {sequence}"] = (message.subject, message.headers, message.data, str(message.time))
        for durable in topology.DURABLES:
            if durable.stream not in PRIVATE:
                one = await js.consumer_info(durable.stream, durable.service)
                assert one.delivered is not None
                found[f"{durable}"] = (one.delivered.stream_seq, one.num_pending, one.num_redelivered)
    return found


def kept(world: World, service: str) -> dict[str, list[str]]:
    """Every row of every table of a service, as PostgreSQL writes it."""
    with world.connect(service) as connection:
        tables = connection.execute(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        return {
            table: sorted(
                row
                for (row,) in connection.execute(
                    sql.SQL("SELECT t::text FROM {} t").format(sql.Identifier(schema, table))
                )
            )
            for schema, table in tables
        }
