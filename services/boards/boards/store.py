"""Tables and all queries.

Two kinds of table. The *record* keeps what arrived, each fact by itself and in any order: agents, names, models'
labels, contests, schedules, locks, lineups, words, scores, results and settlements. The *boards*
(``shown_settlements``, ``row_weeks``) are made of the record alone and can be dropped and made again at any time.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    DateTime,
    Float,
    Integer,
    MetaData,
    Row,
    Select,
    Table,
    Text,
    and_,
    case,
    cast,
    delete,
    exists,
    false,
    func,
    literal,
    null,
    or_,
    select,
    text,
    tuple_,
    union_all,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.dialects.postgresql import UUID as PG_UUID
from sqlalchemy.ext.asyncio import AsyncConnection

from boards.beside import Part
from boards.domain import AgentCard, Kind, Labels, RowWeek
from common import events as ev
from common.db import adding_rows, as_rows, driver

METADATA = MetaData()

Query = Select[*tuple[Any, ...]]
Record = Row[*tuple[Any, ...]]
"""A row of a query; its attributes bear the columns' names."""


def _marks() -> tuple[Column[bool], ...]:
    return tuple(Column(mark, Boolean, nullable=False) for mark in ("house", "cohort", "reference"))


def _instant(name: str, *, nullable: bool = False) -> Column[datetime]:
    return Column(name, DateTime(timezone=True), nullable=nullable)


AGENTS = Table(
    "agents",
    METADATA,
    Column("agent_id", PG_UUID(as_uuid=True), primary_key=True),
    Column("version", BigInteger, nullable=False),
    Column("name", Text, nullable=False, index=True),
    Column("model", Text, nullable=False),
    Column("claimed", Boolean, nullable=False),
    # Counted and never shown: how many people stand behind a row.
    Column("owner_id", PG_UUID(as_uuid=True)),
    *_marks(),
)
AGENT_NAMES = Table(
    "agent_names",
    METADATA,
    Column("agent_id", PG_UUID(as_uuid=True), primary_key=True),
    Column("version", BigInteger, nullable=False),
    Column("name", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("agent_version", Integer, nullable=False, server_default=text("0")),
    Column("barred", Integer, nullable=False, server_default=text("0")),
)
"""Verdicts on agents' names, each on the name of a version of the agent's state; names of states older than
``barred`` are gone for good (M6) and come back in no order of arrival."""
MODEL_NAMES = Table(
    "model_names",
    METADATA,
    Column("model", Text, primary_key=True),
    Column("version", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
)
MODEL_MAPS = Table(
    "model_maps",
    METADATA,
    Column("label", Text, primary_key=True),
    Column("version", BigInteger, nullable=False),
    Column("canonical", Text, nullable=False),
    Column("catalogued", Boolean, nullable=False),
)
CONTESTS = Table(
    "contests",
    METADATA,
    Column("contest", Text, primary_key=True),
    Column("season", Integer, nullable=False, index=True),
    Column("week", Integer, nullable=False),
    _instant("opened_at"),
    Column("cap", BigInteger, nullable=False),
    Column("roster", JSONB, nullable=False),
    Column("ruleset", Text, nullable=False),
    Column("scoring", JSONB, nullable=False),
    Column("policies", JSONB, nullable=False, server_default="{}"),
    Column("lineup_rules", JSONB, nullable=False, server_default="{}"),
    Column("price_source", Text, nullable=False),
    Column("players", JSONB, nullable=False),
    Column("version", BigInteger, nullable=False),
)
"""A contest as it was opened last."""
POOLS = Table(
    "pools",
    METADATA,
    Column("contest", Text, primary_key=True),
    Column("version", BigInteger, primary_key=True),
    Column("players", JSONB, nullable=False),
)
"""Every pool that a contest has had: a lineup may hold a player who is not in the last one."""
SCHEDULES = Table(
    "schedules",
    METADATA,
    Column("contest", Text, primary_key=True),
    Column("version", BigInteger, nullable=False),
    _instant("locks_at"),
    Column("games", JSONB, nullable=False),
)
LOCKS = Table(
    "locks",
    METADATA,
    Column("contest", Text, primary_key=True),
    _instant("locked_at"),
    Column("entries", BigInteger, nullable=False),
)
CANCELLATIONS = Table(
    "cancellations",
    METADATA,
    Column("contest", Text, primary_key=True),
    _instant("cancelled_at"),
    Column("reason", Text, nullable=False),
)
LINEUPS = Table(
    "lineups",
    METADATA,
    Column("lineup_id", PG_UUID(as_uuid=True), primary_key=True),
    Column("contest", Text, nullable=False, index=True),
    Column("agent_id", PG_UUID(as_uuid=True), nullable=False, index=True),
    Column("revision", Integer, nullable=False),
    Column("model", Text, nullable=False, index=True),
    *_marks(),
    Column("picks", JSONB, nullable=False),
    Column("total_price", BigInteger, nullable=False),
    Column("projected_score", BigInteger, nullable=False),
    Column("confidence", Float(53), nullable=False),
    # What opens the lineup's leaves in its contest's commitment; none of what locked before there were any.
    _instant("accepted_at", nullable=True),
    Column("salt", Text),
)
WORDS = Table(
    "words",
    METADATA,
    Column("lineup_id", PG_UUID(as_uuid=True), primary_key=True),
    Column("pointer", Text, primary_key=True),
    Column("state_version", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("barred_version", BigInteger, nullable=False),
    Column("text_version", BigInteger, nullable=False),
    Column("text", Text),
    Column("salt", Text),
    # The tombstone of a text that went for good: with one, no event of any version brings the words back.
    _instant("redacted_at", nullable=True),
    Column("redaction", Text),
)
PROVISIONAL = Table(
    "provisional",
    METADATA,
    Column("contest", Text, primary_key=True),
    Column("part", Integer, primary_key=True, autoincrement=False),
    Column("parts", Integer, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("players", JSONB, nullable=False),
    Column("lineups", JSONB, nullable=False),
    # How many picks of each lineup wait for their game and are in one, and how far the games are.
    Column("to_play", JSONB, nullable=False, server_default=text("'{}'")),
    Column("games", JSONB, nullable=False, server_default=text("'{}'")),
)
RESULTS = Table(
    "results",
    METADATA,
    Column("contest", Text, primary_key=True),
    Column("settlement", Integer, primary_key=True),
    Column("lineup_id", PG_UUID(as_uuid=True), primary_key=True),
    Column("agent_id", PG_UUID(as_uuid=True), nullable=False, index=True),
    Column("model", Text, nullable=False),
    *_marks(),
    Column("points", BigInteger, nullable=False),
    Column("share", BigInteger, nullable=False),
    Column("regret", BigInteger, nullable=False),
    Column("picks", JSONB, nullable=False),
    # Among all lineups that the pool allowed; decimal digits, as the numbers may exceed 64 bits.
    Column("rank", Text),
    Column("tied", Text),
    Column("percentile", Integer),
)
SETTLEMENTS = Table(
    "settlements",
    METADATA,
    Column("contest", Text, primary_key=True),
    Column("settlement", Integer, primary_key=True),
    Column("arrived", BigInteger, nullable=False),
    Column("expected", BigInteger),
    Column("reason", Text),
    Column("scoring", Text),
    _instant("settled_at", nullable=True),
    Column("optimal", JSONB),
    Column("players", JSONB),
    Column("digest", Text),
    Column("feasible_lineups", Text),
    Column("no_ranks", Text),
    Column("corrected", JSONB),
    # Whether all of its results are here and have its digest.
    Column("proven", Boolean, nullable=False, server_default=false()),
)
SHOWN = Table(
    "shown_settlements",
    METADATA,
    Column("contest", Text, primary_key=True),
    Column("settlement", Integer, nullable=False),
)
ROW_WEEKS = Table(
    "row_weeks",
    METADATA,
    Column("kind", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("contest", Text, primary_key=True, index=True),
    Column("points", BigInteger, nullable=False),
    Column("share", BigInteger, nullable=False),
    Column("lineups", BigInteger, nullable=False),
    Column("house", Boolean, nullable=False),
    Column("cohort", Boolean, nullable=False),
    # Lineups of reference strategies are kept apart from those of agents that state the same label.
    Column("reference", Boolean, primary_key=True),
)

_CLEARED = ev.State.CLEARED.value
_FLAGGED = ev.State.FLAGGED.value


@dataclass(frozen=True, slots=True)
class Progress:
    """How much of a settlement version is here; ``expected`` is ``None`` until ``week.settled`` has come."""

    contest: str
    settlement: int
    arrived: int
    expected: int | None

    @property
    def complete(self) -> bool:
        return self.expected == self.arrived


@dataclass(frozen=True, slots=True)
class Provisional:
    """Points by player id and by lineup id while games are played, in hundredths.

    ``to_play`` is how many picks of a lineup wait for their game, and how many are in one; ``games`` how far each is.
    """

    players: dict[str, int]
    lineups: dict[str, int]
    to_play: dict[str, tuple[int, int]]
    games: dict[str, str]


@dataclass(frozen=True, slots=True)
class AgentWeeks:
    """An agent on the agent board and its settled weeks (none yet: empty)."""

    card: AgentCard
    weeks: tuple[RowWeek, ...]


def _of_marks(marks: ev.Marks) -> dict[str, bool]:
    return {"house": marks.house, "cohort": marks.cohort, "reference": marks.reference}


def _dumped(parts: Iterable[ev.Part]) -> list[dict[str, Any]]:
    return [part.model_dump(mode="json") for part in parts]


_NAME_CLEARED: ColumnElement[bool] = func.coalesce(
    and_(AGENT_NAMES.c.state == _CLEARED, AGENT_NAMES.c.name == AGENTS.c.name), False
)
_CARD = (
    AGENTS.c.agent_id,
    AGENTS.c.name,
    AGENTS.c.model,
    AGENTS.c.claimed,
    _NAME_CLEARED.label("name_cleared"),
    AGENTS.c.house,
    AGENTS.c.cohort,
    AGENTS.c.reference,
)
_CARDS = AGENTS.outerjoin(AGENT_NAMES, AGENT_NAMES.c.agent_id == AGENTS.c.agent_id)


def _card(row: Record) -> AgentCard:
    return AgentCard(
        agent_id=row.agent_id,
        name=row.name,
        model=row.model,
        claimed=row.claimed,
        name_cleared=row.name_cleared,
        house=row.house,
        cohort=row.cohort,
        reference=row.reference,
    )


_PUT_LINEUPS = f"{adding_rows(LINEUPS)} ON CONFLICT DO NOTHING"
_PROGRESS = (SETTLEMENTS.c.contest, SETTLEMENTS.c.settlement, SETTLEMENTS.c.arrived, SETTLEMENTS.c.expected)
# Add results, and count those that are new.
_PUT_RESULTS = """
WITH added AS ({} ON CONFLICT DO NOTHING RETURNING contest, settlement)
INSERT INTO settlements (contest, settlement, arrived)
SELECT contest, settlement, count(*) FROM added GROUP BY contest, settlement ORDER BY contest, settlement
ON CONFLICT (contest, settlement) DO UPDATE SET arrived = settlements.arrived + excluded.arrived
RETURNING {}
""".format(adding_rows(RESULTS), ", ".join(map(str, _PROGRESS)))
_PORTION = 2_000
"""Results that are read at a time."""


class Store:
    """Every query of boards, on one transaction's connection."""

    def __init__(self, connection: AsyncConnection) -> None:
        self.connection = connection

    # --- the record: each fact as it arrives ------------------------------------------------------

    async def put_agent(self, event: ev.AgentState, version: int) -> None:
        """Keep the newest version of an agent's state."""
        values = {
            "version": version,
            "name": event.agent_name,
            "model": event.model,
            "claimed": event.claimed,
            "owner_id": event.owner_id,
            **_of_marks(event.marks),
        }
        await self._newest(AGENTS, {"agent_id": event.agent_id}, values, "version")

    async def put_name(self, event: ev.AgentNameJudged, version: int) -> None:
        """Keep the newest verdict on an agent's name."""
        barred = select(AGENT_NAMES.c.barred).where(AGENT_NAMES.c.agent_id == event.agent_id).with_for_update()
        if event.agent_version < ((await self.connection.execute(barred)).scalar_one_or_none() or 0):
            return
        values = {"version": version, "name": event.agent_name, "state": event.state.value}
        values |= {"agent_version": event.agent_version}
        await self._newest(AGENT_NAMES, {"agent_id": event.agent_id}, values, "version")

    async def redact_name(self, event: ev.AgentRedacted) -> None:
        """Let an agent's name go: its neutral handle stands in the place, and no older state brings the name back."""
        old = update(AGENTS).where(AGENTS.c.agent_id == event.agent_id, AGENTS.c.version < event.before)
        await self.connection.execute(old.values(name=event.agent_name, version=event.before - 1))
        gone = {"name": event.agent_name, "state": ev.State.UNCHECKED.value, "agent_version": event.before}
        statement = insert(AGENT_NAMES).values(agent_id=event.agent_id, version=0, **gone, barred=event.before)
        stays = AGENT_NAMES.c.agent_version >= event.before
        news: dict[str, ColumnElement[Any]] = {
            name: case((stays, AGENT_NAMES.c[name]), else_=statement.excluded[name]) for name in gone
        }
        news["barred"] = func.greatest(AGENT_NAMES.c.barred, event.before)
        await self.connection.execute(statement.on_conflict_do_update(index_elements=["agent_id"], set_=news))

    async def put_model(self, event: ev.ModelJudged, version: int) -> None:
        """Keep the newest verdict on a model's label."""
        values = {"version": version, "state": event.state.value}
        await self._newest(MODEL_NAMES, {"model": event.model}, values, "version")

    async def put_mapping(self, event: ev.ModelMapped, version: int) -> None:
        """Keep the newest mapping of a model's label."""
        values = {"version": version, "canonical": event.canonical, "catalogued": event.by == "catalogue"}
        await self._newest(MODEL_MAPS, {"label": event.label}, values, "version")

    async def put_contest(self, event: ev.ContestOpened, version: int) -> None:
        """Keep a contest's rules, pool and schedule where no newer ones are here."""
        values = {
            "season": event.season,
            "week": event.week,
            "opened_at": event.opened_at,
            "cap": event.cap,
            "roster": _dumped(event.roster),
            "ruleset": event.ruleset,
            "scoring": event.scoring.model_dump(mode="json"),
            "policies": event.policies.model_dump(),
            "lineup_rules": event.lineup_rules.model_dump(exclude_none=True),
            "price_source": event.price_source,
            "players": _dumped(event.players),
            "version": version,
        }
        await self._newest(CONTESTS, {"contest": event.contest}, values, "version")
        pool = {"contest": event.contest, "version": version, "players": values["players"]}
        await self.connection.execute(insert(POOLS).values(pool).on_conflict_do_nothing())
        await self.put_schedule(event, version)

    async def put_schedule(self, event: ev.ContestOpened | ev.ContestRescheduled, version: int) -> None:
        """Keep the newest schedule of a contest."""
        values = {"version": version, "locks_at": event.locks_at, "games": _dumped(event.games)}
        await self._newest(SCHEDULES, {"contest": event.contest}, values, "version")

    async def put_cancellation(self, event: ev.ContestCancelled) -> None:
        """Keep that a contest was called off before its lock, and why."""
        values = {"contest": event.contest, "cancelled_at": event.cancelled_at, "reason": event.reason}
        await self.connection.execute(insert(CANCELLATIONS).values(values).on_conflict_do_nothing())

    async def put_lock(self, event: ev.ContestLocked) -> None:
        """Keep that a contest is locked."""
        statement = insert(LOCKS).values(contest=event.contest, locked_at=event.locked_at, entries=event.entries)
        await self.connection.execute(statement.on_conflict_do_nothing())

    async def put_lineups(self, events: Sequence[ev.LineupLocked]) -> None:
        """Keep locked lineups: picks and numbers."""
        rows = [
            {
                "lineup_id": event.lineup_id,
                "contest": event.contest,
                "agent_id": event.agent_id,
                "revision": event.revision,
                "model": event.model,
                **_of_marks(event.marks),
                "picks": event.picks,
                "total_price": event.total_price,
                "projected_score": event.projected_score,
                "confidence": event.confidence,
                "accepted_at": event.accepted_at,
                "salt": event.salt,
            }
            for event in sorted(events, key=lambda event: event.lineup_id)
        ]
        await (await driver(self.connection)).execute(_PUT_LINEUPS, [as_rows(rows)])

    async def put_states(self, event: ev.ReasoningJudged, version: int) -> None:
        """Keep the newest state of each text, and drop a text that is no longer cleared."""
        rows = [
            {
                "lineup_id": event.lineup_id,
                "pointer": field.pointer,
                "state_version": version,
                "state": field.state.value,
                "barred_version": version if field.state is not ev.State.CLEARED else 0,
                "text_version": 0,
                "text": None,
                "salt": None,
                "redacted_at": None,
                "redaction": None,
            }
            for field in event.fields
        ]
        await self._merge_words(rows)

    async def put_words(self, event: ev.ReasoningReleased, version: int) -> None:
        """Keep released words unless a newer event bars them; drop those that are withdrawn."""
        rows = [
            {
                "lineup_id": event.lineup_id,
                "pointer": words.pointer,
                "state_version": version,
                "state": _CLEARED,
                "barred_version": 0,
                "text_version": version,
                "text": words.text,
                "salt": words.salt,
                "redacted_at": None,
                "redaction": None,
            }
            for words in event.words
        ]
        rows += [
            {
                "lineup_id": event.lineup_id,
                "pointer": pointer,
                "state_version": 0,
                "state": ev.State.UNCHECKED.value,
                "barred_version": version,
                "text_version": 0,
                "text": None,
                "salt": None,
                "redacted_at": None,
                "redaction": None,
            }
            for pointer in event.withdrawn
        ]
        await self._merge_words(rows)

    async def put_redaction(self, event: ev.TextRedacted) -> None:
        """Keep a tombstone in a text's place, for good, and drop the text."""
        row = {
            "lineup_id": event.lineup_id,
            "pointer": event.pointer,
            "state_version": 0,
            "state": ev.State.UNCHECKED.value,
            "barred_version": 0,
            "text_version": 0,
            "text": None,
            "salt": None,
            "redacted_at": event.redacted_at,
            "redaction": event.reason.value,
        }
        await self._merge_words([row])

    async def _merge_words(self, rows: list[dict[str, Any]]) -> None:
        """Merge what two events say of a text so that their order does not matter.

        The newest state counts, the newest text counts, and a text stands only if it was released after the last
        event that barred it, and never where it has a tombstone; until then it is not even kept.
        """
        if not rows:
            return
        statement = insert(WORDS).values(rows)
        new = statement.excluded
        barred = func.greatest(WORDS.c.barred_version, new.barred_version)
        newer = new.text_version > WORDS.c.text_version
        text_version = func.greatest(WORDS.c.text_version, new.text_version)
        redacted_at = func.coalesce(WORDS.c.redacted_at, new.redacted_at)
        stands = and_(text_version > barred, redacted_at.is_(None))
        await self.connection.execute(
            statement.on_conflict_do_update(
                index_elements=[WORDS.c.lineup_id, WORDS.c.pointer],
                set_={
                    "state": case((new.state_version > WORDS.c.state_version, new.state), else_=WORDS.c.state),
                    "state_version": func.greatest(WORDS.c.state_version, new.state_version),
                    "barred_version": barred,
                    "text_version": text_version,
                    **{
                        name: case((stands, case((newer, new[name]), else_=WORDS.c[name])), else_=null())
                        for name in ("text", "salt")
                    },
                    "redacted_at": redacted_at,
                    "redaction": func.coalesce(WORDS.c.redaction, new.redaction),
                },
            )
        )

    async def put_provisional(self, event: ev.ScoresUpdated) -> None:
        """Keep the newest provisional scores of a contest, each part by itself."""
        values = {
            "sequence": event.sequence,
            "parts": event.parts,
            "players": {player.player_id: player.points for player in event.players},
            "lineups": {str(lineup.lineup_id): lineup.points for lineup in event.lineups},
            "to_play": {
                str(lineup.lineup_id): [lineup.waiting, lineup.playing]
                for lineup in event.lineups
                if lineup.waiting is not None
            },
            "games": {game.game_id: game.state for game in event.games},
        }
        await self._newest(PROVISIONAL, {"contest": event.contest, "part": event.part}, values, "sequence")

    async def put_results(self, events: Sequence[ev.LineupSettled]) -> list[Progress]:
        """Keep lineups' results under their versions; how much is here now of each that has got more."""
        rows = [
            {
                "contest": event.contest,
                "settlement": event.settlement,
                "lineup_id": event.lineup_id,
                "agent_id": event.agent_id,
                "model": event.model,
                **_of_marks(event.marks),
                "points": event.points,
                "share": event.share,
                "regret": event.regret,
                "picks": event.picks,
                "rank": event.rank,
                "tied": event.tied,
                "percentile": event.percentile,
            }
            for event in sorted(events, key=lambda event: (event.contest, event.settlement, event.lineup_id))
        ]
        found = await (await driver(self.connection)).execute(_PUT_RESULTS, [as_rows(rows)])
        return [Progress(*row) for row in await found.fetchall()]

    async def put_week(self, event: ev.WeekSettled) -> Progress:
        """Keep what a settlement version says of its week; how much of that version is here now."""
        values = {
            "expected": event.lineups,
            "reason": event.reason,
            "scoring": event.scoring,
            "settled_at": event.settled_at,
            "optimal": event.optimal.model_dump(mode="json"),
            "players": {player.player_id: player.points for player in event.players},
            "digest": event.digest,
            "feasible_lineups": event.feasible_lineups,
            "no_ranks": event.no_ranks,
            "corrected": _dumped(event.corrected),
        }
        statement = insert(SETTLEMENTS).values(contest=event.contest, settlement=event.settlement, arrived=0, **values)
        found = await self.connection.execute(
            statement.on_conflict_do_update(
                index_elements=[SETTLEMENTS.c.contest, SETTLEMENTS.c.settlement], set_=values
            ).returning(*_PROGRESS)
        )
        return Progress(*found.one())

    async def _newest(self, table: Table, key: dict[str, Any], values: dict[str, Any], version: str) -> None:
        statement = insert(table).values(**key, **values)
        await self.connection.execute(
            statement.on_conflict_do_update(
                index_elements=list(key), set_=values, where=table.c[version] < statement.excluded[version]
            )
        )

    # --- the boards: made of the record -----------------------------------------------------------

    async def show(self, contest: str, settlement: int) -> bool:
        """Let the boards show a settlement version, unless they show a newer one already."""
        statement = insert(SHOWN).values(contest=contest, settlement=settlement)
        shown = await self.connection.execute(
            statement.on_conflict_do_update(
                index_elements=[SHOWN.c.contest],
                set_={"settlement": settlement},
                where=SHOWN.c.settlement < settlement,
            ).returning(SHOWN.c.contest)
        )
        return shown.one_or_none() is not None

    async def make_row_weeks(self, contest: str | None = None) -> None:
        """Make the row-weeks of one contest, or of all, from the results under the versions shown."""
        of_contest = [ROW_WEEKS.c.contest == contest] if contest is not None else []
        await self.connection.execute(delete(ROW_WEEKS).where(*of_contest))
        of_shown = exists().where(SHOWN.c.contest == RESULTS.c.contest, SHOWN.c.settlement == RESULTS.c.settlement)
        chosen = [RESULTS.c.contest == contest] if contest is not None else []
        columns = ["kind", "key", "contest", "points", "share", "lineups", "house", "cohort", "reference"]
        await self.connection.execute(insert(ROW_WEEKS).from_select(columns, _pooled(of_shown, *chosen)))

    async def prove(self, contest: str, settlement: int) -> None:
        """Keep that a settlement version is whole and has its digest."""
        of_version = SETTLEMENTS.c.contest == contest, SETTLEMENTS.c.settlement == settlement
        await self.connection.execute(update(SETTLEMENTS).where(*of_version).values(proven=True))

    async def drop_boards(self) -> None:
        """Drop everything that is made of the record."""
        await self.connection.execute(delete(ROW_WEEKS))
        await self.connection.execute(delete(SHOWN))

    async def complete_settlements(self) -> list[tuple[str, int]]:
        """Contest and settlement version of each that is whole, newest version first."""
        rows = await self.connection.execute(
            select(SETTLEMENTS.c.contest, SETTLEMENTS.c.settlement)
            .where(SETTLEMENTS.c.arrived == SETTLEMENTS.c.expected)
            .order_by(SETTLEMENTS.c.contest, SETTLEMENTS.c.settlement.desc())
        )
        return [(contest, settlement) for contest, settlement in rows]

    async def settled(self, contest: str, settlement: int) -> Record:
        """A settlement version's week."""
        of_version = SETTLEMENTS.c.contest == contest, SETTLEMENTS.c.settlement == settlement
        return (await self.connection.execute(select(SETTLEMENTS).where(*of_version))).one()

    async def results(self, contest: str, settlement: int) -> AsyncIterator[Sequence[Record]]:
        """All results of a settlement version, portion by portion."""
        of_version = RESULTS.c.contest == contest, RESULTS.c.settlement == settlement
        statement = select(RESULTS).where(*of_version).order_by(RESULTS.c.lineup_id).limit(_PORTION)
        portion = (await self.connection.execute(statement)).all()
        while portion:
            yield portion
            after = RESULTS.c.lineup_id > portion[-1].lineup_id
            portion = (await self.connection.execute(statement.where(after))).all()

    async def shown(self) -> set[tuple[str, int]]:
        """The contests on the boards, each with the settlement version shown."""
        rows = await self.connection.execute(select(SHOWN.c.contest, SHOWN.c.settlement))
        return {(contest, settlement) for contest, settlement in rows}

    async def waiting_settlements(self) -> dict[tuple[str, int], datetime | None]:
        """Settlement versions that are newer than the one shown: not all here, or not what their digest says.

        By contest and version, with the time of settlement where ``week.settled`` has told it.
        """
        statement = (
            select(SETTLEMENTS.c.contest, SETTLEMENTS.c.settlement, SETTLEMENTS.c.settled_at)
            .select_from(SETTLEMENTS.outerjoin(SHOWN, SHOWN.c.contest == SETTLEMENTS.c.contest))
            .where(SETTLEMENTS.c.settlement > func.coalesce(SHOWN.c.settlement, 0))
        )
        rows = await self.connection.execute(statement)
        return {(row.contest, row.settlement): row.settled_at for row in rows}

    # --- reading ----------------------------------------------------------------------------------

    async def edition(self) -> tuple[int, ...]:
        """Numbers that change whenever what the boards show changes: versions only grow, and rows only come."""
        unsettled = LINEUPS.c.contest.not_in(select(SHOWN.c.contest))
        numbers = (
            select(func.count()).select_from(CONTESTS),
            select(func.count()).select_from(LOCKS),
            select(func.coalesce(func.sum(SHOWN.c.settlement), 0)),
            select(func.count()).select_from(AGENTS),
            select(func.coalesce(func.sum(AGENTS.c.version), 0)),
            select(func.count()).select_from(AGENT_NAMES),
            select(func.coalesce(func.sum(AGENT_NAMES.c.version), 0)),
            select(func.count()).select_from(MODEL_NAMES),
            select(func.coalesce(func.sum(MODEL_NAMES.c.version), 0)),
            select(func.count()).select_from(MODEL_MAPS),
            select(func.coalesce(func.sum(MODEL_MAPS.c.version), 0)),
            select(func.count()).select_from(LINEUPS).where(unsettled),
        )
        row = (await self.connection.execute(select(*(number.scalar_subquery() for number in numbers)))).one()
        return tuple(int(number) for number in row)

    async def last_settled_season(self) -> int | None:
        """The newest season of which the boards count a contest, or ``None``."""
        statement = select(func.max(CONTESTS.c.season)).join(SHOWN, SHOWN.c.contest == CONTESTS.c.contest)
        newest: int | None = (await self.connection.execute(statement)).scalar_one()
        return newest

    async def seasons(self) -> list[int]:
        """Seasons that have a contest, newest first."""
        statement = select(CONTESTS.c.season).distinct().order_by(CONTESTS.c.season.desc())
        return list((await self.connection.execute(statement)).scalars())

    async def settled_contests(self, season: int) -> list[str]:
        """The contests of a season that the boards count, ascending."""
        statement = select(SHOWN.c.contest).join(CONTESTS, CONTESTS.c.contest == SHOWN.c.contest)
        return sorted((await self.connection.execute(statement.where(CONTESTS.c.season == season))).scalars())

    async def model_weeks(self, season: int) -> list[RowWeek]:
        """The row-weeks of the model board and of the cohort table."""
        statement = (
            select(ROW_WEEKS)
            .join(CONTESTS, CONTESTS.c.contest == ROW_WEEKS.c.contest)
            .where(CONTESTS.c.season == season, ROW_WEEKS.c.kind.in_([Kind.MODEL.value, Kind.COHORT.value]))
        )
        return [_row_week(row, row.key) for row in await self.connection.execute(statement)]

    async def settled_edition(self, season: int) -> tuple[int, ...]:
        """Numbers that change whenever the settled results of a season change."""
        of_season = select(func.count(), func.coalesce(func.sum(SHOWN.c.settlement), 0)).join(
            CONTESTS, CONTESTS.c.contest == SHOWN.c.contest
        )
        row = (await self.connection.execute(of_season.where(CONTESTS.c.season == season))).one()
        return int(row[0]), int(row[1])

    async def parts(self, season: int) -> list[Part]:
        """Each agent's part of the rows of models and of the cohort, under the versions shown."""
        statement = (
            select(
                RESULTS.c.model,
                RESULTS.c.reference,
                RESULTS.c.cohort,
                cast(RESULTS.c.agent_id, Text).label("agent"),
                RESULTS.c.contest,
                cast(func.sum(RESULTS.c.points), BigInteger).label("points"),
                cast(func.sum(RESULTS.c.share), BigInteger).label("share"),
                func.count().label("lineups"),
            )
            .join(SHOWN, and_(SHOWN.c.contest == RESULTS.c.contest, SHOWN.c.settlement == RESULTS.c.settlement))
            .join(CONTESTS, CONTESTS.c.contest == RESULTS.c.contest)
            .where(CONTESTS.c.season == season)
            .group_by(RESULTS.c.model, RESULTS.c.reference, RESULTS.c.cohort, RESULTS.c.agent_id, RESULTS.c.contest)
        )
        found = []
        for row in await self.connection.execute(statement):
            for kind in (Kind.MODEL, Kind.COHORT) if row.cohort else (Kind.MODEL,):
                source = kind, row.model, row.reference
                found.append(Part(source, row.agent, row.contest, row.points, row.share, row.lineups))
        return found

    async def owners(self) -> dict[str, str]:
        """Who owns each agent that is claimed now and whose owner is known; ids as text."""
        statement = select(cast(AGENTS.c.agent_id, Text), cast(AGENTS.c.owner_id, Text)).where(
            AGENTS.c.claimed, AGENTS.c.owner_id.is_not(None)
        )
        return {row[0]: row[1] for row in await self.connection.execute(statement)}

    async def agent_weeks(self, season: int) -> list[AgentWeeks]:
        """The agents on the agent board of a season: claimed now, name cleared, with a locked lineup in it."""
        of_season = select(CONTESTS.c.contest).where(CONTESTS.c.season == season)
        waiting = select(LINEUPS.c.agent_id).where(
            LINEUPS.c.contest.in_(of_season),
            LINEUPS.c.contest.in_(select(LOCKS.c.contest)),
            LINEUPS.c.contest.not_in(select(SHOWN.c.contest)),
        )
        settled = select(cast(ROW_WEEKS.c.key, PG_UUID(as_uuid=True))).where(
            ROW_WEEKS.c.kind == Kind.AGENT.value, ROW_WEEKS.c.contest.in_(of_season)
        )
        entered = or_(AGENTS.c.agent_id.in_(waiting), AGENTS.c.agent_id.in_(settled))
        cards = {
            str(row.agent_id): _card(row)
            for row in await self.connection.execute(
                select(*_CARD).select_from(_CARDS).where(AGENTS.c.claimed, _NAME_CLEARED, entered)
            )
        }
        weeks: dict[str, list[RowWeek]] = {key: [] for key in cards}
        statement = (
            select(ROW_WEEKS)
            .join(CONTESTS, CONTESTS.c.contest == ROW_WEEKS.c.contest)
            .where(CONTESTS.c.season == season, ROW_WEEKS.c.kind == Kind.AGENT.value)
        )
        for row in await self.connection.execute(statement):
            if row.key in cards:
                weeks[row.key].append(_row_week(row, cards[row.key].name or ""))
        return [AgentWeeks(cards[key], tuple(weeks[key])) for key in cards]

    def _contests(self) -> Query:
        of_shown = and_(RESULTS.c.contest == SHOWN.c.contest, RESULTS.c.settlement == SHOWN.c.settlement)
        best = select(func.max(RESULTS.c.points)).where(of_shown).correlate(SHOWN).scalar_subquery()
        return (
            select(
                CONTESTS.c.contest,
                CONTESTS.c.season,
                CONTESTS.c.week,
                CONTESTS.c.ruleset,
                CONTESTS.c.cap,
                CONTESTS.c.price_source,
                func.jsonb_array_length(CONTESTS.c.players).label("pool"),
                SCHEDULES.c.locks_at,
                SCHEDULES.c.games,
                LOCKS.c.locked_at,
                LOCKS.c.entries,
                CANCELLATIONS.c.cancelled_at,
                CANCELLATIONS.c.reason.label("cancelled_because"),
                SHOWN.c.settlement,
                exists().where(PROVISIONAL.c.contest == CONTESTS.c.contest).label("scored"),
                best.label("best"),
                cast(SETTLEMENTS.c.optimal["points"].astext, BigInteger).label("optimum"),
            )
            .select_from(CONTESTS)
            .join(SCHEDULES, SCHEDULES.c.contest == CONTESTS.c.contest)
            .outerjoin(LOCKS, LOCKS.c.contest == CONTESTS.c.contest)
            .outerjoin(CANCELLATIONS, CANCELLATIONS.c.contest == CONTESTS.c.contest)
            .outerjoin(SHOWN, SHOWN.c.contest == CONTESTS.c.contest)
            .outerjoin(
                SETTLEMENTS,
                and_(SETTLEMENTS.c.contest == SHOWN.c.contest, SETTLEMENTS.c.settlement == SHOWN.c.settlement),
            )
        )

    async def contests(self, season: int | None = None) -> Sequence[Record]:
        """Contests without their pools, newest first: by lock time, then id."""
        statement = self._contests().order_by(SCHEDULES.c.locks_at.desc(), CONTESTS.c.contest.desc())
        if season is not None:
            statement = statement.where(CONTESTS.c.season == season)
        return (await self.connection.execute(statement)).all()

    async def contest(self, contest: str) -> Record | None:
        """One contest with its pool, roster and scoring, or ``None``."""
        statement = self._contests().add_columns(CONTESTS.c.players, CONTESTS.c.roster, CONTESTS.c.scoring)
        return (await self.connection.execute(statement.where(CONTESTS.c.contest == contest))).one_or_none()

    async def pools(self, contest: str) -> list[list[dict[str, Any]]]:
        """Every pool that a contest has had, the last one first."""
        statement = select(POOLS.c.players).where(POOLS.c.contest == contest).order_by(POOLS.c.version.desc())
        return list((await self.connection.execute(statement)).scalars())

    async def rules(self) -> Record | None:
        """The roster, cap, lineup rules, scoring and policies of the newest contest, ``None`` where none was opened."""
        columns = ("contest", "ruleset", "cap", "roster", "lineup_rules", "scoring", "policies")
        statement = select(*(CONTESTS.c[name] for name in columns)).order_by(
            CONTESTS.c.opened_at.desc(), CONTESTS.c.contest.desc()
        )
        return (await self.connection.execute(statement.limit(1))).one_or_none()

    async def settlement(self, contest: str, settlement: int | None = None) -> Record | None:
        """A settlement version of a contest, the one that the boards show where none is named, or ``None``.

        ``latest`` is the number of the one shown; a version that they have not shown yet is none.
        """
        statement = select(SETTLEMENTS, SHOWN.c.settlement.label("latest")).join(
            SHOWN, SHOWN.c.contest == SETTLEMENTS.c.contest
        )
        number = SHOWN.c.settlement if settlement is None else settlement
        wanted = SETTLEMENTS.c.contest == contest, SETTLEMENTS.c.settlement == number
        published = SETTLEMENTS.c.proven, SETTLEMENTS.c.settlement <= SHOWN.c.settlement
        return (await self.connection.execute(statement.where(*wanted, *published))).one_or_none()

    async def versions(self, contest: str | None = None) -> Sequence[Record]:
        """Every settlement version that the boards show or have shown, of one contest or of all, newest first.

        ``latest`` is the version shown, ``moved`` how many lineups score differently than under the version before,
        ``optimum_before`` what the best one then was.
        """
        before = SETTLEMENTS.alias("before")
        was = RESULTS.alias("was")
        moved = (
            select(func.count())
            .select_from(RESULTS)
            .join(
                was,
                and_(
                    was.c.contest == RESULTS.c.contest,
                    was.c.settlement == RESULTS.c.settlement - 1,
                    was.c.lineup_id == RESULTS.c.lineup_id,
                ),
            )
            .where(
                RESULTS.c.contest == SETTLEMENTS.c.contest,
                RESULTS.c.settlement == SETTLEMENTS.c.settlement,
                RESULTS.c.points != was.c.points,
            )
            .correlate(SETTLEMENTS)
            .scalar_subquery()
        )
        statement = (
            select(
                SETTLEMENTS.c.contest,
                SETTLEMENTS.c.settlement,
                SETTLEMENTS.c.reason,
                SETTLEMENTS.c.settled_at,
                SETTLEMENTS.c.digest,
                SETTLEMENTS.c.corrected,
                SETTLEMENTS.c.expected.label("lineups"),
                cast(SETTLEMENTS.c.optimal["points"].astext, BigInteger).label("optimum"),
                cast(before.c.optimal["points"].astext, BigInteger).label("optimum_before"),
                SHOWN.c.settlement.label("latest"),
                CONTESTS.c.season,
                CONTESTS.c.week,
                case((SETTLEMENTS.c.settlement > 1, moved), else_=0).label("moved"),
            )
            .select_from(SETTLEMENTS)
            .join(SHOWN, SHOWN.c.contest == SETTLEMENTS.c.contest)
            .join(CONTESTS, CONTESTS.c.contest == SETTLEMENTS.c.contest)
            .outerjoin(
                before,
                and_(before.c.contest == SETTLEMENTS.c.contest, before.c.settlement == SETTLEMENTS.c.settlement - 1),
            )
            .where(SETTLEMENTS.c.proven, SETTLEMENTS.c.settlement <= SHOWN.c.settlement)
            .order_by(SETTLEMENTS.c.settled_at.desc(), SETTLEMENTS.c.contest.desc(), SETTLEMENTS.c.settlement.desc())
        )
        if contest is not None:
            statement = statement.where(SETTLEMENTS.c.contest == contest)
        return (await self.connection.execute(statement)).all()

    async def moved_lineups(self, contest: str, settlement: int) -> Sequence[Record]:
        """The lineups whose points or rank differ from the version before, those that moved most first."""
        place = func.rank().over(partition_by=RESULTS.c.settlement, order_by=RESULTS.c.points.desc())
        told = ("settlement", "lineup_id", "agent_id", "model", "reference", "points", "share")
        both = (
            select(*(RESULTS.c[name] for name in told), place.label("place"))
            .where(RESULTS.c.contest == contest, RESULTS.c.settlement.in_([settlement - 1, settlement]))
            .cte("both")
        )
        before, after = both.alias("before"), both.alias("after")
        statement = (
            select(
                after.c.lineup_id,
                after.c.agent_id,
                after.c.model,
                after.c.reference,
                before.c.points.label("points_before"),
                after.c.points,
                before.c.share.label("share_before"),
                after.c.share,
                before.c.place.label("place_before"),
                after.c.place,
            )
            .join(before, before.c.lineup_id == after.c.lineup_id)
            .where(after.c.settlement == settlement, before.c.settlement == settlement - 1)
            .where(or_(after.c.points != before.c.points, after.c.place != before.c.place))
            .order_by(func.abs(after.c.points - before.c.points).desc(), after.c.place, after.c.lineup_id)
        )
        return (await self.connection.execute(statement)).all()

    async def weeks_under(self, contest: str, settlement: int) -> list[tuple[str, RowWeek]]:
        """The row-weeks that a settlement version makes, each with its key: a model as written, or an agent's id."""
        rows = await self.connection.execute(_pooled(RESULTS.c.contest == contest, RESULTS.c.settlement == settlement))
        return [(row.key, _row_week(row, row.key)) for row in rows]

    async def provisional(self, contest: str) -> Provisional | None:
        """The newest provisional scores of a contest, all of its parts together, or ``None``."""
        statement = select(PROVISIONAL).where(PROVISIONAL.c.contest == contest).order_by(PROVISIONAL.c.sequence)
        parts = (await self.connection.execute(statement)).all()
        if not parts:
            return None
        # While the parts of a new sequence come in, what they have not brought yet stands as it was.
        found = Provisional({}, {}, {}, {})
        for part in parts:
            if part.part <= parts[-1].parts:
                found.players.update(part.players)
                found.lineups.update(part.lineups)
                found.to_play.update({name: (waiting, on) for name, (waiting, on) in part.to_play.items()})
                found.games.update(part.games)
        return found

    async def live_editions(self, contests: Iterable[str]) -> dict[str, tuple[str, bool]]:
        """Of each locked contest a text that changes with its scores, and whether it is settled."""
        told = select(func.coalesce(func.sum(PROVISIONAL.c.sequence), 0)).where(
            PROVISIONAL.c.contest == LOCKS.c.contest
        )
        entered = select(func.count()).select_from(LINEUPS).where(LINEUPS.c.contest == LOCKS.c.contest)
        statement = (
            select(
                LOCKS.c.contest,
                SHOWN.c.settlement,
                told.scalar_subquery().label("told"),
                entered.scalar_subquery().label("entered"),
            )
            .outerjoin(SHOWN, SHOWN.c.contest == LOCKS.c.contest)
            .where(LOCKS.c.contest.in_(list(contests)))
        )
        return {
            row.contest: (f"{row.settlement or 0}-{row.told}-{row.entered}", row.settlement is not None)
            for row in await self.connection.execute(statement)
        }

    async def lineups(self, contest: str, settlement: int | None = None) -> Sequence[Record]:
        """The locked lineups of a contest, each with its result under a version, else the one shown (else ``None``)."""
        return (await self.connection.execute(_lineups(settlement).where(LINEUPS.c.contest == contest))).all()

    async def words(self, contest: str) -> dict[UUID, dict[str, Record]]:
        """State, text and salt of each text field of the lineups of agents who are claimed now, by lineup and pointer.

        The words of unclaimed agents do not leave the database; tombstones do, for they are no words.
        """
        statement = (
            select(
                WORDS.c.lineup_id,
                WORDS.c.pointer,
                WORDS.c.state,
                WORDS.c.text,
                WORDS.c.salt,
                WORDS.c.redacted_at,
                WORDS.c.redaction,
            )
            .join(LINEUPS, LINEUPS.c.lineup_id == WORDS.c.lineup_id)
            .outerjoin(AGENTS, AGENTS.c.agent_id == LINEUPS.c.agent_id)
            .where(LINEUPS.c.contest == contest, or_(AGENTS.c.claimed, WORDS.c.redacted_at.is_not(None)))
        )
        found: dict[UUID, dict[str, Record]] = {}
        for row in await self.connection.execute(statement):
            found.setdefault(row.lineup_id, {})[row.pointer] = row
        return found

    async def cards_of(self, contest: str) -> dict[UUID, AgentCard]:
        """What is known of the agents who entered a contest."""
        entered = select(LINEUPS.c.agent_id).where(LINEUPS.c.contest == contest)
        statement = select(*_CARD).select_from(_CARDS).where(AGENTS.c.agent_id.in_(entered))
        return {row.agent_id: _card(row) for row in await self.connection.execute(statement)}

    async def card_by_name(self, name: str) -> AgentCard | None:
        """The agent that is shown under a name and has a locked lineup, or ``None``."""
        locked = exists().where(LINEUPS.c.agent_id == AGENTS.c.agent_id, LINEUPS.c.contest == LOCKS.c.contest)
        statement = (
            select(*_CARD).select_from(_CARDS).where(AGENTS.c.name == name, AGENTS.c.claimed, _NAME_CLEARED, locked)
        )
        row = (await self.connection.execute(statement)).first()
        return _card(row) if row is not None else None

    async def agents_with_a_locked_lineup(self) -> list[UUID]:
        """The ids of all agents that may be shown at all."""
        statement = select(LINEUPS.c.agent_id).join(LOCKS, LOCKS.c.contest == LINEUPS.c.contest).distinct()
        return list((await self.connection.execute(statement)).scalars())

    async def card(self, agent_id: UUID) -> AgentCard:
        """What is known of an agent; the card of an agent whose registration has not arrived holds its id alone."""
        statement = select(*_CARD).select_from(_CARDS).where(AGENTS.c.agent_id == agent_id)
        row = (await self.connection.execute(statement)).one_or_none()
        return _card(row) if row is not None else AgentCard(agent_id)

    async def lineups_of(self, agent_id: UUID) -> Sequence[Record]:
        """An agent's locked lineups with their results, ascending contest."""
        statement = _lineups().where(LINEUPS.c.agent_id == agent_id)
        return sorted((await self.connection.execute(statement)).all(), key=lambda row: row.contest)

    async def model_history(self, spellings: Sequence[tuple[str, bool]]) -> Sequence[Record]:
        """Per contest: the locked lineups of a model and sums of their results.

        ``spellings`` are as :meth:`models` gives them.
        """
        base = _lineups().where(tuple_(LINEUPS.c.model, LINEUPS.c.reference).in_(spellings)).subquery()
        statement = select(
            base.c.contest,
            base.c.season,
            base.c.week,
            func.count().label("lineups"),
            func.count(base.c.points).label("settled"),
            func.sum(base.c.points).label("points"),
            func.sum(base.c.share).label("share"),
            func.count().filter(base.c.cohort).label("cohort_lineups"),
        ).group_by(base.c.contest, base.c.season, base.c.week)
        return sorted((await self.connection.execute(statement)).all(), key=lambda row: row.contest)

    async def labels(self) -> Labels:
        """What model labels stand for, and moderation's verdicts on them."""
        judged = (await self.connection.execute(select(MODEL_NAMES.c.model, MODEL_NAMES.c.state))).all()
        mapped = (await self.connection.execute(select(MODEL_MAPS))).all()
        return Labels(
            canonical={row.label: row.canonical for row in mapped},
            cleared=frozenset(row.model for row in judged if row.state == _CLEARED),
            flagged=frozenset(row.model for row in judged if row.state == _FLAGGED),
            catalogued=frozenset(row.canonical for row in mapped if row.catalogued),
        )

    async def models(self) -> list[tuple[str, bool]]:
        """Every model that a locked lineup carries, as written, and whether the lineup is a reference strategy's."""
        statement = select(LINEUPS.c.model, LINEUPS.c.reference).join(LOCKS, LOCKS.c.contest == LINEUPS.c.contest)
        return sorted((row.model, row.reference) for row in await self.connection.execute(statement.distinct()))


def _lineups(settlement: int | None = None) -> Query:
    """Locked lineups of contests that are known, with season, week and the result under a version or the one shown."""
    return (
        select(
            LINEUPS,
            CONTESTS.c.season,
            CONTESTS.c.week,
            RESULTS.c.points,
            RESULTS.c.share,
            RESULTS.c.regret,
            RESULTS.c.picks.label("settled_picks"),
            RESULTS.c.rank,
            RESULTS.c.tied,
            RESULTS.c.percentile,
            SETTLEMENTS.c.feasible_lineups,
        )
        .select_from(LINEUPS)
        .join(LOCKS, LOCKS.c.contest == LINEUPS.c.contest)
        .join(CONTESTS, CONTESTS.c.contest == LINEUPS.c.contest)
        .outerjoin(SHOWN, SHOWN.c.contest == LINEUPS.c.contest)
        .outerjoin(
            SETTLEMENTS,
            and_(SETTLEMENTS.c.contest == SHOWN.c.contest, SETTLEMENTS.c.settlement == SHOWN.c.settlement),
        )
        .outerjoin(
            RESULTS,
            and_(
                RESULTS.c.contest == LINEUPS.c.contest,
                RESULTS.c.settlement == (SHOWN.c.settlement if settlement is None else settlement),
                RESULTS.c.lineup_id == LINEUPS.c.lineup_id,
            ),
        )
    )


def _pooled(*where: ColumnElement[bool]) -> Any:
    """The row-weeks that some results make, by kind, key, contest and whether they are a reference strategy's."""

    def pooled(kind: Kind, key: ColumnElement[str], *of_kind: ColumnElement[bool]) -> Query:
        return (
            select(
                literal(kind.value, Text).label("kind"),
                key.label("key"),
                RESULTS.c.contest,
                cast(func.sum(RESULTS.c.points), BigInteger).label("points"),
                cast(func.sum(RESULTS.c.share), BigInteger).label("share"),
                func.count().label("lineups"),
                func.bool_and(RESULTS.c.house).label("house"),
                func.bool_and(RESULTS.c.cohort).label("cohort"),
                RESULTS.c.reference,
            )
            .where(*where, *of_kind)
            .group_by(key, RESULTS.c.contest, RESULTS.c.reference)
        )

    return union_all(
        pooled(Kind.MODEL, RESULTS.c.model),
        pooled(Kind.COHORT, RESULTS.c.model, RESULTS.c.cohort),
        pooled(Kind.AGENT, cast(RESULTS.c.agent_id, Text)),
    )


def _row_week(row: Record, name: str) -> RowWeek:
    return RowWeek(
        kind=Kind(row.kind),
        name=name,
        contest=row.contest,
        points=row.points,
        share=row.share,
        lineups=row.lineups,
        house=row.house,
        cohort=row.cohort,
        reference=row.reference,
    )
