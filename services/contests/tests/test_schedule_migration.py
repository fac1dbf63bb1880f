"""Contests from before games could leave them learn which days and which week they cover."""

from datetime import UTC, datetime, timedelta
from importlib.resources import as_file, files

import psycopg
import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine, pool
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateTable

from contests.domain import sunday_of
from contests.store import METADATA
from testkit.fixtures import Databases

WEEKS = {
    "2017-W04": (["2017-10-01T13:30", "2017-10-01T17:00", "2017-10-03T00:30"], ["Sunday", "Monday"]),
    # One in the morning in UTC is still the evening before, US Eastern; a Thursday and a Saturday are kept.
    "2020-W15": (["2020-12-18T01:20", "2020-12-19T21:30", "2020-12-20T18:00"], ["Sunday", "Monday", "Saturday"]),
    "2023-W16": (["2023-12-25T18:00", "2023-12-25T21:30", "2023-12-26T01:15"], ["Sunday", "Monday"]),
    "2024-W17": (["2024-12-25T18:00"], ["Sunday", "Monday", "Wednesday"]),
    "2020-W05": (["2020-10-13T23:00"], ["Sunday", "Monday", "Tuesday"]),
}


def migrate(url: str, to: str) -> None:
    with as_file(files("contests") / "migrations") as folder:
        config = Config()
        config.set_main_option("script_location", str(folder).replace("%", "%%"))
        engine = create_engine(url, poolclass=pool.NullPool)
        with engine.begin() as connection:
            config.attributes["connection"] = connection
            (command.downgrade if to != "head" else command.upgrade)(config, to)
        engine.dispose()


@pytest.mark.rule("C1")
def test_an_older_contest_covers_the_days_of_its_games_in_their_week(databases: Databases) -> None:
    url = databases.fresh("contests")
    plain = url.replace("+psycopg", "")
    migrate(url, "0005")
    with psycopg.connect(plain) as connection:
        for contest, (kickoffs, _) in WEEKS.items():
            connection.execute(
                "INSERT INTO contests (contest, season, week, state, version, rules, price_source, locks_at)"
                " VALUES (%s, 2017, 1, 'draft', 0, '{}', '', %s)",
                [contest, kickoffs[0] + "Z"],
            )
            for number, kickoff in enumerate(kickoffs):
                connection.execute(
                    "INSERT INTO games (contest, game_id, away, home, kickoff, kickoff_zone)"
                    " VALUES (%s, %s, 'A', 'B', %s, 'UTC')",
                    [contest, str(number), kickoff + "Z"],
                )
    migrate(url, "head")
    with psycopg.connect(plain) as connection:
        found = {row[0]: row for row in connection.execute("SELECT contest, days, sunday FROM contests").fetchall()}
        statuses = {row[0] for row in connection.execute("SELECT status FROM games").fetchall()}
    assert statuses == {"scheduled"}
    for contest, (kickoffs, days) in WEEKS.items():
        times = [datetime.fromisoformat(kickoff).replace(tzinfo=UTC) for kickoff in kickoffs]
        assert found[contest][2] == sunday_of(times), contest
        expected = {"Thursday", *days} if contest == "2020-W15" else set(days)
        assert set(found[contest][1]) == expected, contest
        assert found[contest][2].weekday() == 6
        assert all(abs(at.date() - found[contest][2]) <= timedelta(days=5) for at in times)


def test_the_migrated_database_has_the_columns_that_the_store_describes(databases: Databases) -> None:
    with psycopg.connect(databases.fresh("contests").replace("+psycopg", "")) as connection:
        for table in METADATA.sorted_tables:
            rows = connection.execute(
                "SELECT column_name, is_nullable FROM information_schema.columns"
                " WHERE table_schema = 'public' AND table_name = %s",
                [table.name],
            ).fetchall()
            described = {(column.name, "YES" if column.nullable else "NO") for column in table.columns}
            assert set(rows) == described, CreateTable(table).compile(dialect=postgresql.dialect())
