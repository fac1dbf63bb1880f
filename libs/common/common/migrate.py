"""Migrations: each service's Alembic folder, run at start-up under an advisory lock.

The first migration of every service calls :func:`create_bus_tables`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib import resources
from typing import Any

from alembic import command, context
from alembic.config import Config
from alembic.operations import Operations
from sqlalchemy import Connection, MetaData, create_engine, pool, text

from common.db import BUS

_LOCK = 0x4D41464C  # "MAFL": one migration at a time in a database, whatever the number of copies

_NOTIFY = """
CREATE FUNCTION outbox_notify() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('outbox', '');
    RETURN NULL;
END $$;
CREATE TRIGGER outbox_notify AFTER INSERT ON outbox FOR EACH STATEMENT EXECUTE FUNCTION outbox_notify();
"""


_STORAGE = {"p": "PLAIN", "m": "MAIN", "e": "EXTERNAL", "x": "EXTENDED"}


def create_bus_tables(op: Operations | Any) -> None:
    """Create outbox (with its NOTIFY trigger), inbox and replay clock. ``op`` is ``alembic.op``."""
    BUS.create_all(op.get_bind())
    op.execute(text(_NOTIFY))


def drop_bus_tables(op: Operations | Any) -> None:
    """Undo :func:`create_bus_tables`."""
    op.execute(text("DROP TRIGGER outbox_notify ON outbox; DROP FUNCTION outbox_notify();"))
    BUS.drop_all(op.get_bind())


def keep_no_samples(op: Operations | Any, columns: Mapping[str, Collection[str]]) -> None:
    """Let the planner never take samples of what is in ``columns`` (by table), and let go of those that it has.

    Words that go for good would else stay in ``pg_statistic``. For columns by which nothing is chosen or joined where
    speed matters: the planner then guesses. Takes each table for a moment and rewrites none.
    """
    described = text(
        "SELECT format_type(atttypid, atttypmod), CAST(attstorage AS text) FROM pg_attribute"
        " WHERE attrelid = to_regclass(:table) AND attname = :name AND NOT attisdropped"
    )
    for table, names in columns.items():
        for name in names:
            kind, storage = op.get_bind().execute(described, {"table": table, "name": name}).one()
            # Samples are taken away with a column's type, even where the new one is the same; any other way to be rid
            # of them takes a superuser, or PostgreSQL 18. How it is stored goes with the type too, and is said again.
            op.execute(text(f"ALTER TABLE {table} ALTER COLUMN {name} SET STATISTICS 0"))
            op.execute(text(f"ALTER TABLE {table} ALTER COLUMN {name} TYPE {kind}"))
            op.execute(text(f"ALTER TABLE {table} ALTER COLUMN {name} SET STORAGE {_STORAGE[storage]}"))


def keep_samples(op: Operations | Any, columns: Mapping[str, Collection[str]]) -> None:
    """Undo :func:`keep_no_samples`."""
    for table, names in columns.items():
        for name in names:
            op.execute(text(f"ALTER TABLE {table} ALTER COLUMN {name} SET STATISTICS DEFAULT"))


def upgrade(url: str, package: str, revision: str = "head") -> None:
    """Bring a service's database to its newest schema, or up to a ``revision``. Blocks; call it before the service
    takes work.

    ``package`` is the service's package, whose ``migrations`` folder is used.
    """
    with resources.as_file(resources.files(package) / "migrations") as folder:
        config = Config()
        config.set_main_option("script_location", str(folder).replace("%", "%%"))
        engine = create_engine(url, poolclass=pool.NullPool, connect_args={"connect_timeout": 5})
        try:
            with engine.begin() as connection:
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
                config.attributes["connection"] = connection
                command.upgrade(config, revision)
        finally:
            engine.dispose()


def run_env(metadata: MetaData) -> None:
    """The whole of a service's ``migrations/env.py``: run on the connection that :func:`upgrade` holds."""
    connection: Connection = context.config.attributes["connection"]
    context.configure(connection=connection, target_metadata=metadata, transaction_per_migration=False)
    context.run_migrations()
