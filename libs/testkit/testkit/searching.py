"""Looking for words everywhere that they could be: each table of a database, each file of a server, each answer."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import psycopg
from psycopg import sql


def in_database(url: str, words: Iterable[str]) -> list[str]:
    """The tables whose rows hold any of the words, read whole, as ``table: word``."""
    wanted = list(words)
    found = []
    with psycopg.connect(url.replace("postgresql+psycopg://", "postgresql://", 1)) as connection:
        tables = connection.execute(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        assert tables
        for schema, table in tables:
            rows = connection.execute(
                sql.SQL("SELECT row_to_json(t)::text, t::text FROM {} AS t").format(sql.Identifier(schema, table))
            ).fetchall()
            whole = "\n".join(part for row in rows for part in row)
            found += [f"{table}: {word}" for word in wanted if word in whole]
    return found


def columns_with(url: str, words: Iterable[str]) -> dict[tuple[str, str], int | None]:
    """The columns of which a row holds any of the words, by table and name, each with the target of its statistics:
    None where the server's default holds, 0 where no sample is ever taken."""
    wanted = list(words)
    found = {}
    with psycopg.connect(url.replace("postgresql+psycopg://", "postgresql://", 1)) as connection:
        columns = connection.execute(
            "SELECT c.relname, a.attname, a.attstattarget FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid"
            " WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped"
        ).fetchall()
        assert columns
        for table, column, target in columns:
            query = sql.SQL(
                "SELECT FROM {table} WHERE EXISTS"
                " (SELECT FROM unnest(%s::text[]) AS word WHERE strpos({table}.{column}::text, word) > 0) LIMIT 1"
            ).format(table=sql.Identifier(table), column=sql.Identifier(column))
            if connection.execute(query, (wanted,)).rowcount:
                found[table, column] = target
    return found


def in_samples(url: str, words: Iterable[str]) -> list[str]:
    """The columns of which the planner keeps a sample with any of the words, as ``table.column: word``.

    ``url`` is a superuser's: nobody else may read ``pg_statistic`` itself.
    """
    with psycopg.connect(url) as connection:
        samples = connection.execute(
            "SELECT s.starelid::regclass::text, a.attname, concat_ws(' ', s.stavalues1::text, s.stavalues2::text,"
            " s.stavalues3::text, s.stavalues4::text, s.stavalues5::text)"
            " FROM pg_statistic s JOIN pg_attribute a ON a.attrelid = s.starelid AND a.attnum = s.staattnum"
        ).fetchall()
    assert samples
    return [f"{table}.{column}: {word}" for table, column, kept in samples for word in words if word in kept]


def in_files(folder: Path, words: Iterable[str]) -> list[str]:
    """The files below a folder whose bytes hold any of the words, as ``path: word``."""
    wanted = list(words)
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            found += [f"{path.relative_to(folder)}: {word}" for word in wanted if word.encode() in content]
    return found
