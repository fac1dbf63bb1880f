"""The migrated database is the one that the store describes."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID, uuid4

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, create_engine, select, text

from common import events as ev
from common.audit import AUDIT
from common.db import BUS, OUTBOX
from common.migrate import upgrade
from registry import people
from registry.store import METADATA, Store
from testkit.fixtures import Databases, Start


def test_the_migrations_make_the_tables_that_the_store_describes(databases: Databases) -> None:
    def ours(item: Any, name: str | None, kind: str, reflected: bool, compared: Any) -> bool:
        return not (kind == "table" and name in {*BUS.tables, *AUDIT.tables, "alembic_version", "rate_limits"})

    engine = create_engine(databases.fresh("registry"))
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"include_object": ours})
        assert compare_metadata(context, METADATA) == []
    engine.dispose()


AGENT, OWNER = uuid4(), uuid4()
ANSWERED, OPEN = uuid4(), uuid4()


def _asked_before(engine: Engine) -> None:
    """An agent with a review of its name and of one lineup that are answered, and one of another that is not."""
    values: dict[str, Any] = {"agent": AGENT, "owner": OWNER}
    fields = [
        {"pointer": "/thesis", "state": "flagged", "reasons": ["links"]},
        {"pointer": "/picks/0/rationale", "state": "cleared", "reasons": []},
    ]
    with engine.begin() as connection:
        for statement in (
            "INSERT INTO owners (owner_id, word, created_at) VALUES (:owner, 'Ann', now())",
            "INSERT INTO agents (agent_id, name, model, house, cohort, reference, owner_id, version, key_hash,"
            " key_version, registered_at) VALUES (:agent, 'Bob', 'm', false, true, false, :owner, 3, 'x', 1, now())",
            "INSERT INTO agents (agent_id, name, model, house, cohort, reference, version, key_hash, key_version,"
            " registered_at) VALUES (gen_random_uuid(), 'Eve', 'm', false, false, false, 1, 'y', 1, now())",
            "INSERT INTO name_states VALUES (:agent, 'flagged', 2)",
            "INSERT INTO reviews VALUES (:agent, 'name', 1, 4, '2026-10-01T00:00Z')",
        ):
            connection.execute(text(statement), values)
        for lineup, judged in ((ANSWERED, 2), (OPEN, 1)):
            about = {**values, "lineup": lineup, "fields": json.dumps(fields), "judged": judged, "about": str(lineup)}
            for statement in (
                "INSERT INTO lineups VALUES (:lineup, :agent, '2026-W01', 7, now(), 'm', '[\"QB\"]')",
                "INSERT INTO reasonings VALUES (:lineup, :agent, :fields, :judged)",
                "INSERT INTO reviews VALUES (:agent, :about, 1, 5, '2026-10-02T00:00Z')",
            ):
                connection.execute(text(statement), about)


@pytest.mark.rule("M4")
async def test_reviews_that_were_answered_before_stay_answered_and_open_ones_stay_open(
    databases: Databases, start: Start
) -> None:
    url = databases.at("registry", "0003")
    engine = create_engine(url)
    _asked_before(engine)
    upgrade(url, "registry")
    engine.dispose()
    async with start("registry", database_url=url) as service:
        async with service.runtime.database.transaction() as connection:
            store = Store(connection)
            name = (await store.name_states([AGENT]))[AGENT]
            lineups = {lineup.lineup_id: lineup for lineup in (await store.lineups_of([AGENT]))[AGENT]}

        def asked(lineup: UUID) -> dict[str, bool]:
            of = lineups[lineup]
            return {field.pointer: people.asked(field, of.reviews.get(field.pointer)) for field in of.fields}

        assert asked(ANSWERED) == {"/thesis": False, "/picks/0/rationale": False}
        assert asked(OPEN) == {"/thesis": True, "/picks/0/rationale": False}
        assert not people.name_asked(name)
        answered = lineups[ANSWERED].reviews["/thesis"].answered_at
        assert answered is not None
        assert name.review is not None
        assert name.review.answered_at is not None
        assert lineups[OPEN].reviews["/thesis"].answered_at is None
        async with service.runtime.database.transaction() as connection:
            asking = await people.ask_review(Store(connection), OWNER, AGENT, ANSWERED, now=answered)
        assert asking.pointers == ("/thesis",)


@pytest.mark.rule("M4")
def test_open_requests_and_claimed_agents_are_told_of_once_more(databases: Databases) -> None:
    url = databases.at("registry", "0003")
    engine = create_engine(url)
    _asked_before(engine)
    upgrade(url, "registry")
    with engine.connect() as connection:
        told = [row.envelope for row in connection.execute(select(OUTBOX).order_by(OUTBOX.c.position))]
    engine.dispose()
    assert [(one["type"], one["aggregateversion"]) for one in told] == [
        (ev.AgentUpdated.subject(), 3),
        (ev.ReviewRequested.subject(), 5),
    ]
    agent, request = told[0]["data"], told[1]["data"]
    assert ev.AgentUpdated.model_validate(agent) == ev.AgentUpdated(
        agent_id=AGENT, agent_name="Bob", model="m", marks=ev.Marks(cohort=True), claimed=True, owner_id=OWNER
    )
    assert {key: request[key] for key in ("agent_id", "lineup_id", "contest", "revision", "pointers")} == {
        "agent_id": str(AGENT),
        "lineup_id": str(OPEN),
        "contest": "2026-W01",
        "revision": 7,
        "pointers": ["/thesis"],
    }
