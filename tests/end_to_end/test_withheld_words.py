"""M2 on the whole stack: no page, call, event or database that others reach ever has a word that is withheld.

A season is played in which every text that anybody writes bears a marker of its own: each text field of each revision,
names, labels of models, what agents say of themselves, what operators note, what is refused, tried or sent too late.
Then everything that can be seen is searched for all markers at once: all that the public origin answers
(``testkit.asking`` derives what is asked from the services' routes, the rest is crawled), every message of every stream
and every row of every database, what the services log and measure. Where a marker may be follows from the rules alone
(:class:`Fate`), written here once more and not taken from the code. The salts that open the leaves of
the contests' commitments are looked for like the words that they open.

Facts then change: agents are claimed and released, words are flagged and cleared by hand, moderation comes back from an
outage. Everything is searched again under the fates that follow.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Any
from urllib.parse import quote, unquote
from uuid import UUID, uuid4

import pytest
from nats.js.errors import NotFoundError

from common import topology
from common.handles import handle
from house.season import Files, read_files, statistics_of
from mafl.client import PublicClient
from testkit import asking
from testkit.asking import Ask, Origin, Route
from testkit.contracts import ROOT
from testkit.fixtures import admin

from .whole_world import PRIVATE, World, a_stack, entry, kept, lineup_of

pytestmark = [pytest.mark.timeout(900), pytest.mark.rule("M2")]

SEASON, WEEKS = 2017, 10
CONTESTS = [f"{SEASON}-W{week:02}" for week in range(1, WEEKS + 1)]
*PLAYED, CANCELLED, UNCHECKED, OPEN = CONTESTS
"""Most weeks are settled; then one is called off, one is locked while moderation is away, and the last stays open."""

FLAGGED = (
    "The numbers are on https://evil.example/{}",
    "Write to {}@example.org for more.",
    "Call 212-555-0187 and ask for {}.",
    "What a shitty price, {}.",
    "Hidden\u200bwords around {}.",
    "His key is mafl_sk_{}Abc123Def456Ghi789.",
)
"""Texts that every version of the pipeline flags, each by another detector."""

SLOTS = 9
POINTERS = (
    *(f"/picks/{slot}/{words}" for slot in range(SLOTS) for words in ("rationale", "main_factor")),
    "/thesis",
)


# --- markers -------------------------------------------------------------------------------------

_SYLLABLES = ("ba", "lo", "mi", "ru", "ve", "to", "na", "pe", "si", "du")
_LOOKED_FOR = re.compile(rf"quor(?:{'|'.join(_SYLLABLES)}){{6}}x|[0-9a-f]{{64}}", re.I)
"""Markers, and the salts that open leaves."""
_HEXADECIMAL = re.compile(r"\\x([0-9a-f]{20,})")


def marker(number: int) -> str:
    """A word that nobody writes and that every detector lets pass."""
    return f"quor{''.join(_SYLLABLES[int(digit)] for digit in f'{number:06}')}x"


def search(text: str) -> set[str]:
    """What is looked for and is in a text, also as bytes that PostgreSQL or a URL writes otherwise."""
    found = {one.lower() for one in _LOOKED_FOR.findall(text)}
    if "%" in text:
        found |= {one.lower() for one in _LOOKED_FOR.findall(unquote(text, errors="replace"))}
    for bytes_ in _HEXADECIMAL.findall(text):
        found |= {
            one.lower() for one in _LOOKED_FOR.findall(bytes.fromhex(bytes_[: len(bytes_) // 2 * 2]).decode("latin-1"))
        }
    return found


class Fate(Enum):
    """Where a marker may be beside the databases of contests and moderation and the streams between them."""

    SHOWN = "is shown to everybody"
    OF_THE_UNCLAIMED = "cleared words of an agent that was never claimed: told to nobody before its claim"
    NAME = "a name that is not shown"
    LABEL = "a label of a model that is not shown"
    PROFILE = "what an agent says of itself, which nobody but it and its owner is shown"
    WITHDRAWN = "was published and is flagged or its agent released now: its event was told, nobody holds it any longer"
    WITHHELD = "is flagged, not checked, of a revision that is not final, or of a contest that is not locked"
    NOTED = "what an operator noted"
    REDACTED = "is gone for good: it is nowhere at all"
    REFUSED = "was never taken: it is nowhere at all"


MODERATION, REGISTRY = "stream MODERATION", "stream REGISTRY"
MAY_BE: Mapping[Fate, frozenset[str]] = {
    Fate.SHOWN: frozenset({"public", "metrics of boards", MODERATION, REGISTRY, "stream CONTESTS", "stream SETTLEMENT"})
    | frozenset({"database registry", "database boards", "database settlement"}),
    Fate.OF_THE_UNCLAIMED: frozenset(),
    Fate.NAME: frozenset({REGISTRY, MODERATION, "database registry", "database boards"}),
    Fate.LABEL: frozenset({REGISTRY, MODERATION, "stream CONTESTS", "stream SETTLEMENT"})
    | frozenset({"database registry", "database boards", "database settlement"}),
    Fate.PROFILE: frozenset({REGISTRY, "database registry"}),
    Fate.WITHDRAWN: frozenset({MODERATION}),
    Fate.WITHHELD: frozenset(),
    Fate.NOTED: frozenset(),
    Fate.REDACTED: frozenset(),
    Fate.REFUSED: frozenset(),
}
"""The places that may have a marker, by its fate."""
INSIDE = frozenset(
    {"database contests", "database moderation", *(f"stream {name}" for name in (*PRIVATE, *topology.PRIVATE_STREAMS))}
)
"""The places whose business the words are; none of them may have what was refused or redacted."""


# --- who plays -----------------------------------------------------------------------------------


@dataclass
class Player:
    """An agent. ``name`` and ``label`` may have a place for a marker; ``flags`` whether some of its texts are bad."""

    who: str
    name: str = "{}"
    label: str = "demo/{}"
    claimed: bool = True
    released: bool = False
    flags: bool = False
    plays: frozenset[str] = frozenset(CONTESTS)
    shown_name: bool = True
    shown_label: bool = True
    registered: bool = False


UNCLAIMED = frozenset({"una", "ursula", "lena"})


def players() -> list[Player]:
    """Those who play, as they are before anything changes."""
    return [
        Player("clara"),
        Player("flora", flags=True),
        Player("hanna", flags=True),
        Player("rita"),
        Player("una", claimed=False),
        Player("ursula", claimed=False, flags=True),
        Player("lena", claimed=False),
        Player("nils", name="{}.com", shown_name=False),
        Player("lara", label="openai/{}.bet", shown_label=False),
        Player("nora", plays=frozenset({CANCELLED, OPEN})),
        Player("vera", plays=frozenset({UNCHECKED, OPEN})),
    ]


@dataclass(frozen=True)
class Planted:
    """A marker: who wrote it and where it stands. ``what`` is a text's pointer, or what else it is.

    Of a text: ``final`` whether its revision is the last one, ``bad`` whether the pipeline flags it.
    """

    who: str
    what: str
    contest: str | None = None
    final: bool = True
    bad: bool = False

    @property
    def is_text(self) -> bool:
        return self.what.startswith("/")


@dataclass
class Season:
    """A season on a stack with all that was planted in it."""

    world: World
    files: Files
    field: dict[str, Player]
    planted: dict[str, Planted] = field(default_factory=dict)
    lineups: dict[tuple[str, str], str] = field(default_factory=dict)
    checked: bool = False
    """Whether moderation has come back, after the week that was locked without it."""
    by_hand: dict[str, str] = field(default_factory=dict)
    """What a person said of a marker's text: cleared or flagged."""
    redacted: set[tuple[str, str, str]] = field(default_factory=set)
    """Who wrote it, in which contest, under which pointer: all revisions are gone."""
    opens: dict[str, str] = field(default_factory=dict)
    """The marker of the text that each salt opens, also of salts that are no longer kept."""
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def plant(self, planted: Planted) -> str:
        made = marker(next(self._numbers))
        self.planted[made] = planted
        return made

    def fate(self, made: str) -> Fate:
        """What must be so now, by the rules."""
        one = self.planted[made]
        if one.what in ("refused", "note"):
            return Fate.REFUSED if one.what == "refused" else Fate.NOTED
        who = self.field[one.who]
        locked = {*PLAYED, UNCHECKED}
        if one.what == "profile":
            return Fate.PROFILE
        if one.what in ("name", "label"):
            judged = who.who != "vera" or self.checked
            plays = bool(who.plays & locked)  # A9: an agent with no locked lineup appears nowhere public.
            if one.what == "name":
                return Fate.SHOWN if who.claimed and who.shown_name and judged and plays else Fate.NAME
            return Fate.SHOWN if who.shown_label and judged and plays else Fate.LABEL
        if (one.who, one.contest, one.what) in self.redacted:
            return Fate.REDACTED
        if one.contest not in locked or not one.final:
            return Fate.WITHHELD
        if said := self.by_hand.get(made):
            cleared = said == "cleared"
            if not cleared:
                return Fate.WITHHELD if one.bad else Fate.WITHDRAWN
        else:
            cleared = not one.bad and (one.contest != UNCHECKED or self.checked)
        if not cleared:
            return Fate.WITHHELD
        if who.claimed:
            return Fate.SHOWN
        return Fate.WITHDRAWN if who.released else Fate.OF_THE_UNCLAIMED

    # How it is played.

    def register(self, who: str) -> None:
        player = self.field[who]
        planted = {what: self.plant(Planted(who, what)) for what in ("name", "label")}
        body = {
            "name": player.name.format(planted["name"]),
            "model": player.label.format(planted["label"]),
            **{text: f"I am {self.plant(Planted(who, 'profile'))}." for text in ("description", "harness", "provider")},
        }
        for bad in ({**body, "name": f"{self.plant(Planted(who, 'refused'))}/\u202e"}, {**body, "model": 7}):
            bad["description"] = f"I am {self.plant(Planted(who, 'refused'))}."
            answer = self.world.send(Ask("POST", "/api/v1/agents", (), json.dumps({**bad, "harness": None}).encode()))
            assert answer.status == 422, answer
        answer = self.world.send(Ask("POST", "/api/v1/agents", (), json.dumps(body).encode()))
        assert answer.status == 201, answer
        told = json.loads(answer.body)
        self.world.keys[who], self.world.ids[who] = told["api_key"], told["agent"]["id"]
        self.world.values |= {f"{who}-name": body["name"], f"{who}-label": body["model"]}
        player.registered = True

    def words(self, who: str, contest: str, *, final: bool, refused: bool = False) -> dict[str, str]:
        """Words for every text field, some of them bad; each bears a marker of its own."""
        made = {}
        week = CONTESTS.index(contest)
        # Three fields a week: in the weeks that are played each field is flagged, beside others that are not.
        bad = {POINTERS[(3 * week + more) % len(POINTERS)] for more in range(3)} if self.field[who].flags else set()
        for number, pointer in enumerate(POINTERS):
            what = "refused" if refused else pointer
            own = self.plant(Planted(who, what, contest, final, pointer in bad))
            if pointer in bad:
                made[pointer] = FLAGGED[(week + number) % len(FLAGGED)].format(own)
            elif pointer.endswith("main_factor"):
                made[pointer] = f"price and {own}"
            else:
                made[pointer] = f"Cheap, and the {own} defence is soft."
        return made

    def lineup(self, pool: list[dict[str, Any]], number: int, words: Mapping[str, str]) -> dict[str, Any]:
        body = lineup_of(pool, number)
        for slot, pick in enumerate(body["picks"]):
            for text in ("rationale", "main_factor"):
                pick[text] = words[f"/picks/{slot}/{text}"]
        return {**body, "thesis": words["/thesis"]}

    def enter(self, who: str, contest: str, pool: list[dict[str, Any]]) -> None:
        """A first revision and a final one, and between them all that is not taken."""
        number = list(self.field).index(who)
        key = str(uuid4())
        first = self.lineup(pool, number, self.words(who, contest, final=False))
        assert self.world.send(entry(who, first, contest, key=key)).status == 201
        for call, odd, other_key, status in (
            ("/check", {}, None, 200),
            ("", {"confidence": 7}, None, 422),
            ("", {}, key, 409),
        ):
            body = self.lineup(pool, number, self.words(who, contest, final=False, refused=True))
            answer = self.world.send(entry(who, {**body, **odd}, contest, key=other_key, call=call))
            assert answer.status == status, (status, answer)
        last = self.lineup(pool, number + 1, self.words(who, contest, final=True))
        answer = self.world.send(entry(who, last, contest))
        assert answer.status == 201, answer
        self.lineups[who, contest] = json.loads(answer.body)["lineup"]

    def too_late(self, who: str, contest: str, pool: list[dict[str, Any]]) -> None:
        body = self.lineup(pool, 1, self.words(who, contest, final=False, refused=True))
        assert self.world.send(entry(who, body, contest)).status == 409

    async def open(
        self, public: PublicClient, contest: str, without: frozenset[str] = frozenset()
    ) -> list[dict[str, Any]]:
        await self.world.operator.open(contest)
        await self.world.quiet(without)
        return [player.model_dump() for player in (await public.pool(contest)).players]

    def enter_all(self, contest: str, pool: list[dict[str, Any]]) -> None:
        for who, player in self.field.items():
            if contest in player.plays and player.registered:
                self.enter(who, contest, pool)


@pytest.fixture(scope="module")
async def season(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Season]:
    async with a_stack(tmp_path_factory.mktemp("stack")) as (stack, operator, public):
        world = World(stack, operator)
        made = Season(world, read_files(ROOT / "data", SEASON, WEEKS), {one.who: one for one in players()})
        await _played(made, public)
        yield made


async def _played(season: Season, public: PublicClient) -> None:
    """The season until its last contest is open, with moderation away since before the last lock."""
    world, operator = season.world, season.world.operator
    for week in range(1, WEEKS + 1):
        await operator.import_contests(season.files.pool, season=SEASON, week=week)
    contests = (await operator.operator_contests())["contests"]
    locks = {row["contest"]: datetime.fromisoformat(row["locks_at"]) for row in contests}
    await operator.move_clock(locks[CONTESTS[0]] - timedelta(hours=48))
    for who, player in season.field.items():
        if who != "vera":
            await asyncio.to_thread(season.register, who)
            if player.claimed:
                await operator.claim(world.ids[who], f"{who}@example.org")
    await world.quiet()
    for contest in PLAYED:
        if (now := locks[contest] - timedelta(hours=48)) > await operator.clock():
            await operator.move_clock(now)
        pool = await season.open(public, contest)
        await asyncio.to_thread(season.enter_all, contest, pool)
        await operator.move_clock(locks[contest])
        await operator.lock(contest)
        await asyncio.to_thread(season.too_late, "clara", contest, pool)
        await world.quiet()
        week = int(contest[-2:])
        await operator.move_clock(locks[contest] + timedelta(days=2))
        statistics = statistics_of(season.files, week, sunday_only=False)
        await operator.import_statistics(statistics, season=SEASON, week=week, final=True)
        await world.quiet()
        await operator.settle(contest)
    pool = await season.open(public, CANCELLED)
    await asyncio.to_thread(season.enter_all, CANCELLED, pool)
    await world.quiet()
    await operator.cancel(CANCELLED, "the league does not play")
    await world.quiet()
    # Moderation goes away: from here on nothing is checked, and nothing waits for it.
    away = frozenset({"moderation"})
    await world.stack.stop("moderation")
    await operator.move_clock(locks[UNCHECKED] - timedelta(hours=48))
    await asyncio.to_thread(season.register, "vera")
    await operator.claim(world.ids["vera"], "vera@example.org")
    pool = await season.open(public, UNCHECKED, away)
    await asyncio.to_thread(season.enter_all, UNCHECKED, pool)
    await operator.move_clock(locks[UNCHECKED])
    await operator.lock(UNCHECKED)
    await world.quiet(away)
    await operator.move_clock(max(locks[OPEN] - timedelta(hours=48), locks[UNCHECKED] + timedelta(days=2)))
    pool = await season.open(public, OPEN, away)
    await asyncio.to_thread(season.enter_all, OPEN, pool)
    await world.quiet(away)
    # One who owns an agent that never plays, for what owners are shown.
    body = json.dumps({"name": "Olga Outside", "model": "openai/gpt-5"}).encode()
    told = json.loads(world.send(Ask("POST", "/api/v1/agents", (), body)).body)
    world.keys["olga"], world.ids["olga"] = told["api_key"], told["agent"]["id"]
    assert [step.status for _, step in world.sign_in("olga@example.org")][-1] == 303
    assert [step.status for _, step in world.claim("olga@example.org", "olga")][-2:] == [303, 410]
    await world.quiet(away)


# --- looking everywhere ---------------------------------------------------------------------------


@dataclass
class Found:
    """The places in which each marker and salt is, with one way to see it there, and how much was looked at."""

    places: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    looked: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def look(self, place: str, how: str, text: str, asked: str = "") -> None:
        """Search a text; what stands in the question alone is no answer."""
        self.looked[place] += 1
        for one in search(text) - search(asked):
            self.places[one].setdefault(place, how)


async def everywhere(season: Season, away: frozenset[str] = frozenset()) -> Found:
    """Search all that there is."""
    found = Found()
    world = season.world
    await asyncio.to_thread(_public, season, found)
    async with admin(world.bus) as client:
        js = client.jetstream()
        for info in await js.streams_info():
            name, state = str(info.config.name), info.state
            for sequence in range(max(1, state.first_seq), state.last_seq + 1):
                try:
                    message = await js.get_msg(name, sequence)
                except NotFoundError:
                    continue
                text = f"{message.subject} {message.headers} {(message.data or b'').decode('latin-1')}"
                found.look(f"stream {name}", f"{message.subject} {sequence}", text)
    for service in topology.SERVICES:
        for table, rows in kept(world, service).items():
            for row in rows:
                found.look(f"database {service}", table, row)
        if service not in away:
            way = Origin("127.0.0.1", world.stack.ports[service])
            for path in asking.INSIDE:
                found.look(f"metrics of {service}", path, way.send(Ask("GET", path)).text)
            way.close()
    for log in (world.stack.state / "log").glob("*.log"):
        found.look("logs", log.name, log.read_text(errors="replace"))
    return found


def _public(season: Season, found: Found) -> None:
    """Ask everything of the public origin as nobody, as a stranger with a wrong key, as an agent and as an owner."""
    world = season.world
    world.values |= {"lineup": season.lineups["clara", PLAYED[0]], "used-key": str(uuid4())}
    ids, names = [], []
    for who, agent_id in world.ids.items():
        ids.append(agent_id)
        names += [handle(UUID(agent_id)), handle(UUID(agent_id), claimed=True)]
        names += [quote(world.values.get(f"{who}-name", who), safe="")]
    labels = [quote(world.values[f"{who}-label"]) for who in season.field]
    few = {"contest": (PLAYED[0], UNCHECKED), "agent_id": (world.ids["flora"],), "model": (labels[0],)}
    places = {
        **dict.fromkeys(("contest", "contest_id"), (*CONTESTS, "nonsense")),
        "agent_id": tuple(ids),
        "model": (*labels, "nonsense"),
        "/api/v1/agents/{name:path} name": (*names, "nonsense"),
        "/agents/{name:path} name": (*names, "nonsense"),
        "act": ("key", "release", "nonsense"),
        "file": ("style.css", "nonsense"),
    }
    few = {**places, **few, "contest_id": few["contest"]}
    few |= {f"{path} name": (names[1], names[0]) for path in ("/api/v1/agents/{name:path}", "/agents/{name:path}")}
    queries = {
        "metric": ("points", "share"),
        "season": (str(SEASON), "1999"),
        "page": ("1", "2"),
        "format": ("json", "csv", "xml"),
    }
    anything = ("<lineup>", "nonsense")

    def ask(one: Ask) -> asking.Answer:
        answer = world.send(one)
        assert answer.status < 500, (one.name, answer)
        text = f"{answer.status} {answer.reason} {answer.headers} {answer.text}"
        found.look("public", one.name, text, world.filled(one.target) + one.body.decode("latin-1"))
        return answer

    routes = [route for service in topology.SERVICES for route in asking.routes_of(service) if route.public]
    for route in routes:
        if route.methods & {"GET", "HEAD"}:
            for one in asking.plainly(route, places, anything):
                ask(one)
        for one in asking.asks_of(route, few, queries, anything):
            if not any("<etag>" in value for _, value in one.headers):
                ask(one)
        for who in ("a stranger's key", "olga", "olga@example.org"):
            for one in asking.plainly(route, few, anything, who):
                if not _changes(route, one):
                    ask(one)
    for who in ("nobody", "olga", "olga@example.org"):
        waiting, known = ["/"], {"/"}
        while waiting:
            answer = ask(Ask("GET", waiting.pop(0), (("Accept", "text/html"),), who=who))
            for link in answer.links(world.stack.public_url):
                if link not in known and "{" not in link and not re.search(r"mafl_(mail|claim)_", link):
                    known.add(link)
                    waiting.append(link)
        assert len(known) > 30, "the pages lead nowhere"


def _changes(route: Route, one: Ask) -> bool:
    """Whether a call in somebody's name may end the session or change the agent that goes on asking."""
    return one.method in ("POST", "PATCH", "PUT", "DELETE") and route.service == "registry"


def salts(season: Season) -> dict[str, str]:
    """The marker of the text that each salt opens, of all revisions."""
    rows = season.world.rows("moderation", "SELECT salt, text FROM texts WHERE salt IS NOT NULL AND text IS NOT NULL")
    season.opens |= {str(salt): made for salt, text in rows for made in search(text) if made in season.planted}
    return season.opens


def complaints(season: Season, found: Found) -> list[str]:
    """What is somewhere where it must not be, and what is not to be found where everybody must find it."""
    wrong = []
    opens = salts(season)
    for made, places in found.places.items():
        planted = opens.get(made, made)
        if planted not in season.planted:
            continue  # A hash, of which there are many.
        fate = season.fate(planted)
        allowed = MAY_BE[fate] if fate in (Fate.REFUSED, Fate.REDACTED) else MAY_BE[fate] | INSIDE
        # Whoever signs in as an owner may see what agents say of themselves; nobody of those who look owns one.
        wrong += [
            f"{season.planted[planted]} {fate.value}, and {'its salt' if made in opens else 'it'} is in {place}: {how}"
            for place, how in places.items()
            if place not in allowed
        ]
    for made in season.planted:
        if season.fate(made) is Fate.SHOWN and "public" not in found.places.get(made, {}):
            wrong.append(f"{season.planted[made]} must be shown, and nobody finds it")
    return wrong


def by_fate(season: Season, made: Iterable[str]) -> dict[Fate, list[str]]:
    listed: dict[Fate, list[str]] = {fate: [] for fate in Fate}
    for one in made:
        listed[season.fate(one)].append(one)
    return listed


# --- the tests, in their order ---------------------------------------------------------------------


@pytest.mark.rule("A5", "A9", "A10", "M1", "M3", "C8")
async def test_after_a_season_no_word_that_is_withheld_is_anywhere_but_where_it_is_kept(season: Season) -> None:
    found = await everywhere(season, frozenset({"moderation"}))
    assert complaints(season, found) == []
    # The looking could have seen them: what is shown was found, what is kept is where it is kept.
    fates = by_fate(season, season.planted)
    assert min(len(fates[fate]) for fate in Fate if fate not in (Fate.WITHDRAWN, Fate.NOTED, Fate.REDACTED)) >= 3
    flagged = {one.what for one in season.planted.values() if one.is_text and one.bad and one.contest in PLAYED}
    assert flagged == set(POINTERS), "every kind of field was flagged"
    for made in fates[Fate.WITHHELD]:
        assert "database contests" in found.places[made], season.planted[made]
        assert f"stream {PRIVATE[0]}" in found.places[made], season.planted[made]
    for made in fates[Fate.OF_THE_UNCLAIMED]:
        assert "database moderation" in found.places[made], season.planted[made]
    assert min(found.looked[place] for place in ("public", MODERATION, "database boards", "database settlement")) > 100
    assert set(salts(season)) & {one for one, places in found.places.items() if "public" in places}


@pytest.mark.rule("A5", "A10", "M3", "M4", "M6")
async def test_whoever_is_claimed_released_cleared_flagged_or_redacted_is_shown_or_gone_at_once(season: Season) -> None:
    world, operator = season.world, season.world.operator
    before = by_fate(season, season.planted)
    await world.stack.start("moderation")
    season.checked = True
    await world.quiet()
    await operator.release(world.ids["rita"])
    season.field["rita"].claimed, season.field["rita"].released = False, True
    await operator.claim(world.ids["lena"], "lena@example.org")
    season.field["lena"].claimed = True
    for made, one in list(season.planted.items()):
        # In one contest a person clears what of Hanna's was flagged, and in the next one flags all that was published.
        if one.who == "hanna" and one.is_text and one.final and one.contest in PLAYED[:2]:
            state = "cleared" if one.contest == PLAYED[0] else "flagged"
            if (state == "cleared") == one.bad:
                await _judge(season, made, state)
    gone = (("clara", PLAYED[2], "/thesis"), ("flora", PLAYED[0], POINTERS[0]), ("ursula", UNCHECKED, POINTERS[1]))
    salts(season)
    for who, contest, pointer in gone:
        await _redact(season, who, contest, pointer)
    await world.quiet()
    after = by_fate(season, season.planted)
    assert len(after[Fate.REDACTED]) == 2 * len(gone), "of both revisions"
    assert {*before[Fate.SHOWN]} - {*after[Fate.SHOWN]}
    assert {*after[Fate.SHOWN]} - {*before[Fate.SHOWN]}
    assert len(after[Fate.WITHDRAWN]) >= len(POINTERS) - 3
    found = await everywhere(season)
    assert complaints(season, found) == []
    # Only now is there something that the world once knew; what was told of it stays in the stream and nowhere else.
    for made in after[Fate.WITHDRAWN]:
        assert MODERATION in found.places[made], season.planted[made]
    for made in after[Fate.NOTED]:
        assert set(found.places[made]) == {"database moderation"}, found.places[made]


def test_the_search_sees_what_is_written_otherwise_and_complains_of_it(season: Season) -> None:
    (made, *_) = by_fate(season, season.planted)[Fate.WITHHELD]
    (unclaimed, *_) = by_fate(season, season.planted)[Fate.OF_THE_UNCLAIMED]
    (salt, *_) = (salt for salt, one in salts(season).items() if one == made)
    escaped = "".join(f"%{ord(letter):02x}" for letter in made)
    for written in (f"a{made.upper()}b", f"/x?q={escaped}", f"(\\x{made.encode().hex()})", f'{{"salt":"{salt}"}}'):
        found = Found()
        found.look("public", "an answer", written)
        assert any("an answer" in one for one in complaints(season, found)), written
    found = Found()
    found.look("database boards", "words", f"{made} {unclaimed}")
    complained = [one for one in complaints(season, found) if "database boards" in one]
    assert sorted("is flagged" in one for one in complained) == [False, True]
    assert sorted("never claimed" in one for one in complained) == [False, True]
    found = Found()
    found.look("public", "an echo", f"there is no {made}", asked=f"/agents/{made}")
    assert not [one for one in complaints(season, found) if "an echo" in one]


async def _judge(season: Season, made: str, state: str) -> None:
    one = season.planted[made]
    assert one.contest is not None
    lineup_id = season.lineups[one.who, one.contest]
    case = await season.world.operator.operate("GET", f"/moderation/lineups/{lineup_id}")
    (item,) = [item for item in case["items"] if item["pointer"] == one.what]
    note = season.plant(Planted("operator", "note"))
    await season.world.operator.judge(
        lineup_id=lineup_id, pointer=one.what, version=item["version"], state=state, note=f"Because of {note}.", by="me"
    )
    season.by_hand[made] = state


async def _redact(season: Season, who: str, contest: str, pointer: str) -> None:
    """Let a text go for good, of all its revisions, and wait until every store says that it is rid of it."""
    operator, note = season.world.operator, season.plant(Planted("operator", "note"))
    order = {"lineup_id": season.lineups[who, contest], "pointer": pointer, "reason": "decency"}
    await operator.operate("POST", "/moderation/redactions", body={**order, "note": f"Because of {note}.", "by": "me"})
    season.redacted.add((who, contest, pointer))
    deadline = time.monotonic() + 60
    while True:
        listed = (await operator.operate("GET", "/moderation/redactions"))["redactions"]
        made = [one for one in listed if one["lineup_id"] == order["lineup_id"]]
        if len(made) == 2 and all(one["done"] for one in made):
            return
        assert time.monotonic() < deadline, made
        await asyncio.sleep(0.1)
