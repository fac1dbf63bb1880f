"""The migrated database is the one that the store describes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, delete, select, text

from boards.store import METADATA, ROW_WEEKS
from common.audit import AUDIT
from common.db import BUS
from testkit.fixtures import Databases, Start


def test_the_migrations_make_the_tables_that_the_store_describes(databases: Databases) -> None:
    def ours(item: Any, name: str | None, kind: str, reflected: bool, compared: Any) -> bool:
        return not (kind == "table" and name in {*BUS.tables, *AUDIT.tables, "alembic_version"})

    engine = create_engine(databases.fresh("boards"))
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"include_object": ours})
        assert compare_metadata(context, METADATA) == []
    engine.dispose()


@pytest.mark.rule("B7")
async def test_row_weeks_made_by_a_migration_are_those_that_the_store_makes(
    start: Start, script: ModuleType, tell: Callable[..., Awaitable[Any]]
) -> None:
    agents = [
        script.Agent("alice", "reference/price-greedy"),
        script.Agent("greedy", "reference/price-greedy", marks=script.REFERENCE),
        script.Agent("house", "m", marks=script.COHORT),
    ]
    migration = import_module("boards.migrations.versions.0003_reference_rows")
    async with start("boards") as service:
        for number in (1, 2):
            await tell(service, script.Week(number).told(agents, words=False))
        async with service.runtime.database.transaction() as connection:

            async def rows() -> set[tuple[Any, ...]]:
                return {tuple(row) for row in await connection.execute(select(ROW_WEEKS))}

            before = await rows()
            assert len(before) == 14, "two models, one of them twice, the cohort and three agents, in two weeks"
            await connection.execute(delete(ROW_WEEKS))
            await connection.execute(text(migration._MAKE.format(mark="r.reference", by=", r.reference")))
            assert await rows() == before
