"""The migrated database is the one that the store describes."""

from __future__ import annotations

from typing import Any

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine

from common.audit import AUDIT
from common.db import BUS
from moderation.store import METADATA
from testkit.fixtures import Databases


def test_the_migrations_make_the_tables_that_the_store_describes(databases: Databases) -> None:
    def ours(item: Any, name: str | None, kind: str, reflected: bool, compared: Any) -> bool:
        return not (kind == "table" and name in {*BUS.tables, *AUDIT.tables, "alembic_version", "rate_limits"})

    engine = create_engine(databases.fresh("moderation"))
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"include_object": ours})
        assert compare_metadata(context, METADATA) == []
    engine.dispose()
