"""C8 on the whole stack: before the lock, a world with entries and one without look the same to everybody else.

One stack is both worlds, one after the other, with a clock that stands still: first nobody has entered the open
contest, then several agents have, with revisions, refusals, checks, retries and flagged words, and nothing else has
happened. So both worlds have the same agents, keys and ids, and what is seen must be the same bytes. Asking alone must
change no answer either: the second world was asked everything before, and any such change would be a difference. What
is asked is derived from the services' routes and the pages' links (``testkit.asking``), so that a new call is asked
without being listed.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import psutil
import pytest

from common import topology
from common.handles import handle
from embedded.stack import read_state
from house.season import read_files, statistics_of
from mafl.client import PublicClient
from testkit import asking
from testkit.asking import Answer, Ask, Origin, Route, comparable
from testkit.contracts import ROOT

from .whole_world import PRIVATE, PUBLIC_BIND, Member, World, a_stack, entry, kept, lineup_of, told

LOCKED, OPEN, DRAFT = "2017-W03", "2017-W04", "2017-W05"
pytestmark = pytest.mark.timeout(600)


ENTRANTS = (
    Member("Ann's Arm", owner="ann@example.org"),
    Member("Nameless Nick", "anthropic/claude-opus-5"),
    Member("House Harry", marks={"house": True}),
    Member("Cohort Cora", "demo/aurora-1", marks={"cohort": True}),
    Member("Reference Rhea", "reference/price-greedy", marks={"reference": True}),
    Member("First Timer", "demo/never-seen-before", played=False),
)
"""Those who enter the open contest in the second world."""
OUTSIDERS = (
    Member("Olga Outside", owner="olga@example.org"),
    Member("New Ned", played=False),
)
"""Those who never do."""
OWNERS = {member.owner: member for member in (*ENTRANTS, *OUTSIDERS) if member.owner}

PLACES = {
    "contest": (OPEN, LOCKED, DRAFT, "2031-W01", "nonsense"),
    "contest_id": (OPEN, LOCKED, DRAFT, "2031-W01", "nonsense"),
    "agent_id": ("<entrant>", "<outsider>", "00000000-0000-0000-0000-000000000000", "nonsense"),
    "model": ("openai/gpt-5", "demo/never-seen-before", "nonsense"),
    "token": ("<claim>", "<used-claim>", "mafl_claim_nonsense"),
    "file": ("style.css", "countdown.js", "mark.svg", "nonsense"),
    "act": ("key", "release", "nonsense"),
    "rest": ("nonsense", "<lineup>"),
    "/signin/static/{name} name": ("style.css", "nonsense"),
    "/signin/with/{name} name": ("mail", "nonsense"),
    "/signin/callback/{name} name": ("nonsense",),
}
"""What stands in the places of paths; where a name is not here, everything of :data:`ANYTHING` does."""
QUERIES = {
    "metric": ("points", "share", "nonsense"),
    "season": ("2017", "1999", "nonsense"),
    "page": ("2", "0"),
    "format": ("json", "csv", "xml"),
    "state": ("nonsense",),
    "code": ("nonsense",),
    "error": ("nonsense",),
    "iss": ("nonsense",),
}
ANYTHING = (
    *(OPEN, "<entrant>", "<lineup>", "<entrant-handle>", "<unclaimed-handle>"),
    *("Ann's%20Arm", "Nameless%20Nick", "First%20Timer", "nonsense"),
)


# --- a stack with a past ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """A week is settled, the next one is open without an entry, another one is a draft."""
    async with a_stack(tmp_path_factory.mktemp("stack")) as (stack, operator, public):
        made = World(stack, operator, keeps_link_of="New Ned")
        await _past(made, public)
        yield made


async def _past(world: World, public: PublicClient) -> None:
    files = read_files(ROOT / "data", 2017, 5)
    for week in (3, 4, 5):
        await world.operator.import_contests(files.pool, season=2017, week=week)
    locks = {
        row["contest"]: datetime.fromisoformat(row["locks_at"])
        for row in (await world.operator.operator_contests())["contests"]
    }
    await world.operator.move_clock(locks[LOCKED] - timedelta(hours=48))
    await world.operator.open(LOCKED)
    for member in (*ENTRANTS, *OUTSIDERS):
        body = json.dumps({"name": member.name, "model": member.model}).encode()
        answer = json.loads(world.send(Ask("POST", "/api/v1/agents", (), body)).body)
        world.keys[member.name], world.ids[member.name] = answer["api_key"], answer["agent"]["id"]
        if member.marks:
            await world.operator.mark(answer["agent"]["id"], **member.marks)
    for owner, member in OWNERS.items():
        steps = [*world.sign_in(owner), *world.claim(owner, member.name)]
        assert [answer.status for _, answer in steps][-2:] == [303, 410], steps[-2:]
    await world.quiet()
    pool = [player.model_dump() for player in (await public.pool(LOCKED)).players]
    for number, member in enumerate((*ENTRANTS, *OUTSIDERS)):
        if member.played:
            entered = world.send(_entry(member.name, lineup_of(pool, number), LOCKED))
            assert entered.status == 201, entered
    await world.operator.move_clock(locks[LOCKED])
    await world.operator.lock(LOCKED)
    await world.quiet()
    await world.operator.move_clock(locks[LOCKED] + timedelta(days=2))
    await world.operator.import_statistics(statistics_of(files, 3, sunday_only=False), season=2017, week=3, final=True)
    await world.quiet()
    await world.operator.settle(LOCKED)
    await world.operator.move_clock(locks[OPEN] - timedelta(hours=48))
    await world.operator.open(OPEN)
    await world.quiet()
    world.pool = [player.model_dump() for player in (await public.pool(OPEN)).players]
    world.send(Ask("POST", "/api/v1/agents/me/claim-link", who="New Ned"))
    world.values |= {
        "entrant": world.ids["Ann's Arm"],
        "unclaimed": world.ids["Nameless Nick"],
        "outsider": world.ids["Olga Outside"],
        "entrant-handle": handle(UUID(world.ids["Ann's Arm"])),
        "unclaimed-handle": handle(UUID(world.ids["Nameless Nick"])),
    }


def _entry(who: str, body: Any, contest: str = OPEN, key: str | None = None, call: str = "") -> Ask:
    return entry(who, body, contest, key, call)


def enter(world: World) -> dict[str, str]:
    """The one difference: entries with all that goes with them. Lineups by agent."""
    made: dict[str, str] = {}
    used = world.values["used-key"]
    for number, member in enumerate(ENTRANTS):
        source = f"127.0.0.{20 + number}"
        for words in ("", "Smash spot.", "Write to pick.me@example.org or https://example.org.", "You fucking idiot."):
            body = lineup_of(world.pool, number + len(words), words)
            first = world.send(_entry(member.name, body, key=f"{used}-{number}-{len(words)}"), source)
            assert first.status == 201, first
            made[member.name] = json.loads(first.body)["lineup"]
            again = world.send(_entry(member.name, body, key=f"{used}-{number}-{len(words)}"), source)
            assert again.body == first.body
            assert world.send(_entry(member.name, body, call="/check"), source).status == 200
            assert (
                world.send(
                    _entry(member.name, {"picks": body["picks"]}, key=f"{used}-{number}-{len(words)}"), source
                ).status
                == 422
            )
            other = lineup_of(world.pool, number + 1, "another")
            assert world.send(_entry(member.name, other, key=f"{used}-{number}-{len(words)}"), source).status == 409
        assert world.send(_entry(member.name, b"no json"), source).status == 422
        assert world.send(_entry(member.name, b" " * 1_000_000), source).status == 413
        for own in ("mine", "mine/revisions"):
            assert (
                world.send(Ask("GET", f"/api/v1/contests/{OPEN}/lineups/{own}", who=member.name), source).status == 200
            )
    again = lineup_of(world.pool, 0, "")
    assert world.send(_entry("Ann's Arm", again, key=used), "127.0.0.20").status == 201
    return made


# --- what is seen -------------------------------------------------------------------------------------


Seen = dict[str, Answer]


class Looker:
    """Asks a world everything, and keeps what is seen."""

    def __init__(self, world: World, routes: Iterable[Route]) -> None:
        self.world = world
        self.routes = list(routes)
        self.seen: Seen = {}
        self.asked: set[tuple[str, str]] = set()
        self._times: Counter[str] = Counter()
        self._moment = {name: world.values[name] for name in ("lineup", "used-key")}

    def ask(self, ask: Ask) -> Answer:
        answer = self.world.send(ask)
        if ("If-None-Match", 'W/"0", "<etag>"') in ask.headers or ("If-Range", "<etag>") in ask.headers:
            raise AssertionError("the tag is filled in by conditional()")
        self._keep(ask.name, answer)
        self.asked.add((ask.method, self.world.filled(ask.path)))
        return answer

    def _keep(self, name: str, answer: Answer) -> None:
        assert answer.status < 500, (name, answer)
        # What is asked again later may be answered otherwise, in both worlds alike.
        times = self._times[name] = self._times[name] + 1
        self.seen[f"{name} #{times}" if times > 1 else name] = comparable(answer, self._moment)

    def conditional(self, ask: Ask) -> None:
        """A request with the tag that the plain one is answered with in it, where there is one."""
        if not any("<etag>" in value for _, value in ask.headers):
            self.ask(ask)
            return
        plain = self.world.send(Ask(ask.method, ask.target))
        self.world.values["etag"] = (plain.header("etag") or '"none"').strip('W/"')
        self._keep(ask.name, self.world.send(ask))

    def journeys(self) -> None:
        """What owners do, each through to its end and back: the agents are then owned as they were."""
        for owner, member in OWNERS.items():
            mine, other = world_ids(self.world, member)
            steps = list(self.world.sign_in(owner))
            page = self.ask(Ask("GET", "/me", who=owner))
            csrf = self.world.csrf(page)
            for target in (mine, other):
                for fields in ({}, {"lineup": "<lineup>"}, {"lineup": "nonsense"}):
                    self.ask(self._form(f"/me/agents/{target}/review", csrf, owner, **fields))
                for act in ("key", "release"):
                    self.ask(Ask("GET", f"/me/agents/{target}/{act}", who=owner))
                self.ask(self._form(f"/me/agents/{target}/key", csrf, owner))
            self.ask(self._form(f"/me/agents/{other}/release", csrf, owner))
            self.ask(self._form(f"/me/agents/{mine}/release", csrf, owner))
            self.ask(Ask("GET", "/me", who=owner))
            steps += self.world.claim(owner, member.name)
            for number, (step, answer) in enumerate(steps):
                self._keep(f"{owner} {number} {step}", answer)
            self.asked |= {("POST", "/signin/mail"), ("POST", "/signin/mail/token"), ("POST", "/claim/token")}

    def _form(self, target: str, csrf: str, owner: str, **fields: str) -> Ask:
        return self.world.form(target, csrf, owner, **fields)

    def everything(self) -> None:
        """Every route in every way, then whatever the pages lead to, then the end of the sessions."""
        for route in self.routes:
            for ask in asking.asks_of(route, PLACES, QUERIES, ANYTHING):
                self.conditional(ask)
            for who in ("a stranger's key", *(member.name for member in OUTSIDERS), *OWNERS, *self._entrants(route)):
                for ask in asking.plainly(route, PLACES, ANYTHING, who):
                    if not _changes_owners(ask):
                        self.ask(ask)
        for who in ("nobody", *OWNERS):
            self._crawl(who)
        for contest in (OPEN, LOCKED, DRAFT):
            legal = lineup_of(self.world.pool, 3)
            for bad in (legal, {**legal, "picks": legal["picks"][1:]}, {**legal, "thesis": ""}):
                self.ask(_entry("Olga Outside", bad, contest, call="/check"))
                self.ask(_entry("Olga Outside", b" " * 600_000, contest))
                if bad is not legal or contest != OPEN:
                    self.ask(_entry("Olga Outside", bad, contest, key="<used-key>"))
        for owner in OWNERS:
            csrf = self.world.csrf(self.ask(Ask("GET", "/me", who=owner)))
            self.ask(self._form("/signin/out", csrf, owner))
            self.ask(Ask("GET", "/me", who=owner))

    def _entrants(self, route: Route) -> tuple[str, ...]:
        """Those who enter may see their own entries; every other call answers them as if they had none."""
        return () if route.service == "contests" and route.reads_key else ("Ann's Arm", "First Timer")

    def _crawl(self, who: str) -> None:
        waiting, known = ["/"], {"/"}
        for page in ("/me", "/signin", "/skill.md", "/llms.txt", *(route.path for route in self.routes)):
            if "{" not in page and page not in known:
                waiting.append(page)
                known.add(page)
        while waiting:
            answer = self.ask(Ask("GET", waiting.pop(0), (("Accept", "text/html"),), who=who))
            for link in answer.links(self.world.stack.public_url):
                if link not in known and "{" not in link and not re.search(r"mafl_(mail|claim)_", link):
                    known.add(link)
                    waiting.append(link)
        assert len(known) > 30, "the pages lead nowhere"


def world_ids(world: World, member: Member) -> tuple[str, str]:
    """The paths' ids of an owner's own agent and of the other owner's."""
    names = [one.name for one in OWNERS.values()]
    other = next(name for name in names if name != member.name)
    return world.ids[member.name], world.ids[other]


def _changes_owners(ask: Ask) -> bool:
    """Whether a session may end by it: those are asked in their order, in the journeys."""
    return ask.method == "POST" and ask.target.startswith("/signin/out")


async def look(world: World, routes: Iterable[Route]) -> Looker:
    """Everything that the public can see of a world."""
    looker = Looker(world, routes)
    await asyncio.to_thread(looker.journeys)
    await world.quiet()
    await asyncio.to_thread(looker.everything)
    return looker


def differences(one: Seen, other: Seen) -> list[str]:
    """The names of what is not the same, with the first place where it differs."""
    found = []
    for name in dict.fromkeys((*one, *other)):
        if name not in one or name not in other:
            found.append(f"{name}: asked in one world alone")
        elif one[name] != other[name]:
            mine, others = repr(one[name]), repr(other[name])
            at = next(
                (n for n, (a, b) in enumerate(zip(mine, others, strict=False)) if a != b), min(len(mine), len(others))
            )
            found.append(f"{name}: …{mine[max(0, at - 80) : at + 80]}… / …{others[max(0, at - 80) : at + 80]}…")
    return found


# --- the tests ----------------------------------------------------------------------------------------


@dataclass
class Worlds:
    """What was seen of each world, and what was kept and told in it by whom."""

    world: World
    routes: list[Route]
    without: Looker
    entered: Looker
    kept: list[dict[str, Any]]
    told: list[dict[str, Any]]
    operators: list[dict[str, str]]
    lineups: dict[str, str]


@pytest.fixture(scope="module")
async def worlds(world: World) -> Worlds:
    """Both worlds of one stack, one after the other."""
    routes = [route for service in topology.SERVICES for route in asking.routes_of(service)]
    public = [route for route in routes if route.public]
    world.values |= {"lineup": str(uuid4()), "used-key": str(uuid4())}
    without = await look(world, public)
    await world.quiet()
    snapshots: list[tuple[dict[str, Any], dict[str, Any], dict[str, str]]] = []

    async def snapshot() -> None:
        operators = await asyncio.to_thread(of_operators, world, routes)
        snapshots.append((await told(world), {name: kept(world, name) for name in topology.SERVICES}, operators))

    await snapshot()
    world.values["used-key"] = str(uuid4())
    lineups = await asyncio.to_thread(enter, world)
    world.values["lineup"] = lineups["Ann's Arm"]
    await world.quiet()
    await snapshot()
    entered = await look(world, public)
    return Worlds(
        world,
        routes,
        without,
        entered,
        [kept for _, kept, _ in snapshots],
        [told for told, _, _ in snapshots],
        [one for _, _, one in snapshots],
        lineups,
    )


def of_operators(world: World, routes: Iterable[Route]) -> dict[str, str]:
    """What operators may read: every call of theirs that reads, by every service, at their own addresses."""
    found = {}
    token = (("Authorization", f"Bearer {world.stack.operator_token}"),)
    for route in routes:
        if route.public or "GET" not in route.methods:
            continue
        inside = route.path in asking.INSIDE
        port = world.stack.ports[route.service if inside else "operator"]
        places = {**PLACES, "contest": (OPEN,), "contest_id": (OPEN,), "lineup_id": ("<lineup>",)}
        for ask in asking.plainly(route, places, ("nonsense", "1")):
            if ask.method == "GET":
                way = Origin("127.0.0.1", port)
                answer = way.send(Ask("GET", world.filled(ask.target)), token)
                way.close()
                found[f"{route.service}: {ask.target}"] = f"{answer.status} {answer.text}"
    return found


@pytest.mark.rule("C8")
def test_no_answer_to_anybody_else_depends_on_the_entries_of_an_open_contest(worlds: Worlds) -> None:
    assert differences(worlds.without.seen, worlds.entered.seen) == []


@pytest.mark.rule("C8")
def test_every_public_route_was_asked_and_answered_in_more_ways_than_one(worlds: Worlds) -> None:
    asked = worlds.entered.asked
    unasked = [
        (method, route.path)
        for route in worlds.routes
        for method in route.methods
        if route.public and not any(method == one and route.pattern.fullmatch(path) for one, path in asked)
    ]
    assert unasked == []
    statuses = {answer.status for answer in worlds.entered.seen.values()}
    assert statuses >= {200, 201, 206, 302, 303, 304, 401, 403, 404, 405, 409, 410, 413, 422}


@pytest.mark.rule("C8")
def test_no_stream_that_another_service_reads_was_told_anything_of_the_entries(worlds: Worlds) -> None:
    before, after = worlds.told
    assert {name: value for name, value in after.items() if before.get(name) != value} == {}
    assert before.keys() == after.keys()
    readers = {durable.service for durable in topology.DURABLES if durable.stream in PRIVATE}
    assert readers == {"moderation"}
    for service in set(topology.SERVICES) - readers:
        granted = topology.permissions(service)
        assert not [
            subject for subject in granted.subscribe if subject in (">", "$JS.>") or "lineup.submitted" in subject
        ]
        assert not [subject for subject in granted.publish if PRIVATE[0] in subject]


@pytest.mark.rule("C8")
@pytest.mark.parametrize("service", sorted(set(topology.SERVICES) - {"contests", "moderation"}))
def test_no_database_but_those_of_contests_and_moderation_holds_anything_of_the_entries(
    worlds: Worlds, service: str
) -> None:
    before, after = (kept[service] for kept in worlds.kept)
    assert before.keys() == after.keys()
    assert {table for table in before if before[table] != after[table]} == set()
    assert sum(map(len, after.values())) > 20, "it knows the week before"


@pytest.mark.rule("C8")
def test_the_entries_are_in_the_databases_of_contests_and_moderation(worlds: Worlds) -> None:
    """What the other tests do not find is really there to be found."""
    for service, table in (("contests", "revisions"), ("moderation", "texts")):
        before, after = (kept[service] for kept in worlds.kept)
        new = "\n".join(set(after[table]) - set(before[table]))
        assert set(worlds.lineups.values()) <= set(re.findall(r"[0-9a-f-]{36}", new)), service


@pytest.mark.rule("C8")
def test_an_operator_sees_totals_and_no_agent_among_them(worlds: Worlds) -> None:
    before, after = worlds.operators
    assert before.keys() == after.keys()
    changed = {name for name in before if before[name] != after[name] and not name.endswith(asking.INSIDE)}
    assert changed == {"contests: /operator/api/v1/contests"}
    entries = {row["contest"]: (row.pop("lineups"), row.pop("revisions")) for row in _totals(after)}
    assert entries[OPEN] == (len(ENTRANTS), 4 * len(ENTRANTS) + 1)
    assert [row | {"lineups": 0, "revisions": 0} for row in _totals(before)] == [
        row | {"lineups": 0, "revisions": 0} for row in _totals(after)
    ]
    words = [*worlds.world.ids.values(), *worlds.lineups.values(), *(member.name for member in ENTRANTS)]
    words += [*worlds.world.keys.values(), *(player["player_id"] for player in worlds.world.pool)]
    for name in after:
        found = {word for word in words if word in after[name]} - {word for word in words if word in before[name]}
        assert found == set(), name
        if name.endswith(asking.INSIDE):
            assert not [word for word in words if word in after[name]], name


def _totals(seen: Mapping[str, str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(seen["contests: /operator/api/v1/contests"].partition(" ")[2])["contests"]
    return found


def _ways_around(path: str, port: int) -> Iterable[Ask]:
    """An operator's path in every writing that a gateway and a service may read differently."""
    below = path.removeprefix("/")
    first = f"%{ord(below[0]):02x}{below[1:]}"
    spellings = (
        *(path, f"/{path}", f"//{path}", f"/.{path}", f"/x/..{path}", f"/%2e{path}", f"/x/%2e%2e{path}", f"/{first}"),
        *(f"{path}/", f"{path}//", f"{path}.", f"{path}/.", f"{path}%20", f"{path}%00", f"{path};x", f"{path}%2f"),
        *(
            f"{path}?",
            f"{path}%3f",
            f"{path}%23",
            f"{path}.json",
            f"{path}\\",
            f"\\{below}",
            f"/%5c{below}",
            f"%2f{below}",
        ),
        *(
            path.upper(),
            path.title(),
            path.replace("/", "%2f"),
            "/" + below.replace("/", "%2f"),
            path.replace("/", "//"),
        ),
        *(
            f"/skill.md/..{path}",
            f"/api/v1/contests/..%2f..%2f..%2f{below}",
            f"/api/v1/contests/%2e%2e/%2e%2e/%2e%2e{path}",
        ),
        *(f"/claim/..%2f{below}", f"/me/..{path}", f"/static/..%2f..%2f{below}", f"/signin/static/..%2f..%2f{below}"),
        *(
            f"/{below}".replace("e", "%65"),
            f"/%25{ord(below[0]):02x}{below[1:]}",
            f"/%ef%bc%8f{below}",
        ),
    )
    for spelling in spellings:
        yield Ask("GET", spelling)
    for version in ("HTTP/1.1", "HTTP/1.0"):
        for authority in (f"{PUBLIC_BIND}:{port}", f"127.0.0.1:{port}", "localhost", "operator"):
            yield Ask("GET", f"http://{authority}{path}", version=version)
            yield Ask("GET", path, (("Host", authority),), version=version)
            yield Ask("GET", f"https://user@{authority}{path}", version=version)
    for header in (
        "X-Original-URL",
        "X-Rewrite-URL",
        "X-Forwarded-Uri",
        "X-Forwarded-Path",
        "X-Forwarded-Prefix",
        "Forwarded",
    ):
        yield Ask("GET", "/", ((header, path),))
        yield Ask("GET", "/api/v1/contests", ((header, path),))
    for name, value in (
        ("X-Forwarded-For", "127.0.0.1"),
        ("X-Real-IP", "127.0.0.1"),
        ("X-Forwarded-Host", "127.0.0.1"),
        ("X-HTTP-Method-Override", "GET"),
        ("Upgrade", "h2c"),
        ("Connection", "Upgrade, HTTP2-Settings"),
    ):
        yield Ask("GET", path, ((name, value),))
    for method in ("HEAD", "POST", "PUT", "OPTIONS", "PROPFIND"):
        yield Ask(method, path, (("X-HTTP-Method-Override", "GET"),))


@pytest.mark.rule("C8")
async def test_what_is_the_operators_alone_cannot_be_reached_from_the_public_origin(worlds: Worlds) -> None:
    """Metrics, readiness and operators' calls, in every writing, with the operator's own token."""
    world = worlds.world
    token = (("Authorization", f"Bearer {world.stack.operator_token}"),)
    way = Origin(PUBLIC_BIND, world.stack.ports["public"])
    paths = {route.path for route in worlds.routes if not route.public and "GET" in route.methods}
    paths = {asking.filled(path, PLACES, ("nonsense",))[0] for path in paths}
    assert {"/metrics", "/readyz", "/healthz", "/operator/api/v1/contests"} <= paths
    marks = re.compile(r"# HELP|mafl_\w+_total|\"faults\"|\"alive\"|\"revisions\"|\"oldest_seconds\"|\"acts\"|owner_id")

    def ask_all() -> list[str]:
        got_in = []
        for path in sorted(paths):
            odd = path in ("/metrics", "/readyz", "/operator/api/v1/contests")
            for ask in _ways_around(path, world.stack.ports["operator"]) if odd else (Ask("GET", path),):
                answer = way.send(ask, token)
                inside = marks.search(answer.text) or answer.status >= 500
                # Where the address itself is the public's the public's own page is right.
                plain = ask.path in ("/", "/api/v1/contests")
                if inside or not (plain or answer.status in (301, 302, 307, 308, 400, 401, 404, 405)):
                    got_in.append(f"{ask.name}: {answer.status} {answer.text[:200]}")
        return got_in

    assert await asyncio.to_thread(ask_all) == []


@pytest.mark.rule("C8")
def test_nothing_but_the_public_origin_listens_anywhere_but_on_loopbacks_first_address(worlds: Worlds) -> None:
    stack = worlds.world.stack
    state = read_state(stack.state)
    assert state is not None
    listening: dict[str, set[tuple[str, int]]] = {}
    for name, process in state.processes.items():
        family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        for one in family:
            for connection in one.net_connections("inet"):
                if connection.status == "LISTEN":
                    listening.setdefault(name, set()).add((connection.laddr.ip, connection.laddr.port))
    assert listening.pop("caddy") == {(PUBLIC_BIND, stack.ports["public"]), ("127.0.0.1", stack.ports["operator"])}
    assert {host for addresses in listening.values() for host, _ in addresses} == {"127.0.0.1"}
    assert {*topology.SERVICES, "postgres", "nats"} <= listening.keys()


@pytest.mark.rule("C8", "M1")
async def test_at_the_lock_all_of_it_is_there_so_that_the_tests_before_could_have_seen_it(worlds: Worlds) -> None:
    """Last: from here on the two worlds differ for everybody."""
    world = worlds.world
    lock = datetime.fromisoformat(_totals(worlds.operators[1])[1]["locks_at"])
    await world.operator.move_clock(lock)
    await world.quiet()
    after = Looker(world, [route for route in worlds.routes if route.public and route.service == "boards"])
    path = f"/api/v1/contests/{OPEN}/lineups"
    shown = await asyncio.to_thread(after.ask, Ask("GET", path))
    assert {lineup["lineup"] for lineup in json.loads(shown.body)["lineups"]} == set(worlds.lineups.values())
    assert worlds.entered.seen[f"nobody: GET {path} HTTP/1.1"].status == 409
    told_before, told_after = worlds.told[1], await told(world)
    assert sum(1 for name in told_after if name.startswith("CONTESTS ")) - sum(
        1 for name in told_before if name.startswith("CONTESTS ")
    ) == 2 + len(ENTRANTS), "the clock, the lock, and a locked lineup for each"
