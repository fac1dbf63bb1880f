"""What a submission is made of is never compressed: that took the database longer than all else of a row."""

from collections.abc import Callable
from importlib.resources import as_file, files

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine, text

from testkit.fixtures import Databases

TEXTS = {"revisions.body", "revisions.salts", "outbox.envelope"}
_AS_THEY_ARE = text(
    "SELECT attrelid::regclass || '.' || attname FROM pg_attribute"
    " WHERE attrelid IN ('revisions'::regclass, 'outbox'::regclass) AND attnum > 0 AND attstorage = 'e'"
)


def as_they_are(url: str, migrate: Callable[[Config, str], None], to: str, *before: str) -> set[str]:
    """Which columns are stored as they are after statements and then a migration."""
    engine = create_engine(url)
    try:
        with as_file(files("contests") / "migrations") as folder, engine.begin() as connection:
            for statement in before:
                connection.execute(text(statement))
            config = Config()
            config.set_main_option("script_location", str(folder).replace("%", "%%"))
            config.attributes["connection"] = connection
            migrate(config, to)
            return set(connection.execute(_AS_THEY_ARE).scalars())
    finally:
        engine.dispose()


@pytest.mark.parametrize("version", ["0012", "head"])
def test_texts_are_stored_as_they_are_whatever_else_is_said_of_their_columns(
    databases: Databases, version: str
) -> None:
    url = databases.fresh("contests")
    assert as_they_are(url, command.downgrade, "0011") == TEXTS
    assert as_they_are(url, command.upgrade, version) == TEXTS


def test_a_database_of_which_they_were_compressed_is_put_right(databases: Databases) -> None:
    url = databases.fresh("contests")
    compressed = [
        f"ALTER TABLE {table} ALTER COLUMN {column} SET STORAGE EXTENDED"
        for table, column in (name.split(".") for name in sorted(TEXTS))
    ]
    assert as_they_are(url, command.downgrade, "0012", *compressed) == set()
    assert as_they_are(url, command.upgrade, "head") == TEXTS
