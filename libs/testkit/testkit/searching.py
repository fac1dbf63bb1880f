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


def in_files(folder: Path, words: Iterable[str]) -> list[str]:
    """The files below a folder whose bytes hold any of the words, as ``path: word``."""
    wanted = list(words)
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            found += [f"{path.relative_to(folder)}: {word}" for word in wanted if word.encode() in content]
    return found
