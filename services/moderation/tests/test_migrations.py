"""The migrated database is the one that the store describes."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, select, text

from common import events as ev
from common.audit import AUDIT
from common.db import BUS
from common.migrate import upgrade
from moderation.store import AGENTS, CLAIMS, METADATA, MODELS, SET_ASIDE, TEXTS
from testkit.fixtures import Databases, Start

from .moderation_helpers import query, until


def test_the_migrations_make_the_tables_that_the_store_describes(databases: Databases) -> None:
    def ours(item: Any, name: str | None, kind: str, reflected: bool, compared: Any) -> bool:
        return not (kind == "table" and name in {*BUS.tables, *AUDIT.tables, "alembic_version", "rate_limits"})

    engine = create_engine(databases.fresh("moderation"))
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"include_object": ours})
        assert compare_metadata(context, METADATA) == []
    engine.dispose()


@pytest.mark.rule("M4")
async def test_what_could_not_be_judged_before_is_tried_again_and_claims_are_learnt(
    databases: Databases, start: Start
) -> None:
    url = databases.at("moderation", "0005")
    agent, fine = uuid4(), uuid4()
    engine = create_engine(url)
    with engine.begin() as connection:
        for statement in (
            "INSERT INTO contests (contest, names, version, locks_at) VALUES ('2017-W01', '[]', 1, now())",
            "INSERT INTO texts (lineup_id, revision, pointer, contest, agent_id, accepted_at, due_at, text, text_hash,"
            " state, pipeline, judged_at, version) VALUES"
            " (:agent, 1, '/thesis', '2017-W01', :agent, now(), now(), 'Volume.', 'h', 'unchecked', 'old', now(), 1),"
            " (:fine, 1, '/thesis', '2017-W01', :fine, now(), now(), 'Volume.', 'h', 'cleared', 'old', now(), 1)",
            "INSERT INTO agents (agent_id, name, version, state, pipeline, told_version) VALUES"
            " (:agent, 'Bob', 3, 'unchecked', 'old', 1), (:fine, 'Ann', 3, 'cleared', 'old', 1)",
            "INSERT INTO models (model, state, pipeline) VALUES ('m', 'unchecked', 'old'), ('n', 'cleared', 'old')",
        ):
            connection.execute(text(statement), {"agent": agent, "fine": fine})
    upgrade(url, "moderation")
    with engine.connect() as connection:
        aside = {row.kind: row for row in connection.execute(select(SET_ASIDE))}
    engine.dispose()
    assert aside.keys() == {"text", "name", "model"}
    assert (aside["text"].lineup_id, aside["name"].agent_id, aside["model"].model) == (agent, agent, "m")
    async with start("moderation", database_url=url) as service:

        async def tried() -> bool:
            columns = (TEXTS.c.state, AGENTS.c.state, MODELS.c.state)
            found = [row[0] for column in columns for row in await query(service, select(column))]
            return found == ["cleared"] * 6 and not await query(service, select(SET_ASIDE))

        await until(tried, patience=120)
        assert await query(service, select(CLAIMS)) == []
        # As registry tells of claimed agents once more, in the version that is known.
        await service.publish(ev.AgentUpdated(agent_id=agent, agent_name="Bob", model="m", claimed=True), version=3)
        await service.settle()
        assert [(row.agent_id, row.claimed) for row in await query(service, select(CLAIMS))] == [(agent, True)]
