"""One role and one database for each service on a PostgreSQL server, the embedded one or an existing one."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from urllib.parse import quote

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from embedded.errors import StackError


class Databases:
    """What an administrator does. ``address`` is a ``postgresql://`` address of a role that may make roles.

    Raises ``psycopg.OperationalError`` from every method when the server does not answer.
    """

    def __init__(self, address: str) -> None:
        self._address = address.replace("postgresql+psycopg://", "postgresql://", 1)
        parts = conninfo_to_dict(self._address)
        self._host = f"{parts.get('host', '127.0.0.1')}:{parts.get('port', 5432)}"
        self._passwords = {str(parts.get("user", "postgres")): str(parts.get("password", ""))}

    def answer(self) -> bool:
        """Whether the server answers a query."""
        try:
            with self._connect() as connection:
                connection.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def create_service_database(self, name: str, password: str | None = None) -> str:
        """One role and one database of the same name, which no other role can connect to. Idempotent.

        Returns the role's password, made up where none is given.
        """
        password = password or secrets.token_urlsafe(24)
        role = sql.Identifier(name)
        with self._connect() as connection:
            known = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (name,)).fetchone()
            connection.execute(
                sql.SQL("{} ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD {}").format(
                    sql.SQL("ALTER" if known else "CREATE"), role, sql.Literal(password)
                )
            )
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone():
                connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(role, role))
            # Every role may connect to every database until this is taken from PUBLIC.
            connection.execute(sql.SQL("REVOKE ALL ON DATABASE {}, postgres, template1 FROM PUBLIC").format(role))
        self._passwords[name] = password
        return password

    def clone(self, template: str, name: str) -> None:
        """Copy a database that nobody is connected to, with its owner. About 40 ms for a small one."""
        with self._connect() as connection:
            row = connection.execute(
                "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = %s", (template,)
            ).fetchone()
            if row is None:
                raise StackError(f"there is no database {template} to clone")
            connection.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {} OWNER {}").format(
                    sql.Identifier(name), sql.Identifier(template), sql.Identifier(row[0])
                )
            )
            connection.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(sql.Identifier(name)))

    def drop(self, name: str) -> None:
        """Drop a database, ending its sessions. Does nothing where there is none."""
        with self._connect() as connection:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def url(self, role: str, database: str | None = None) -> str:
        """SQLAlchemy's address of a database for a role; ``database`` defaults to the role's own."""
        password = quote(self._passwords[role], safe="")
        return f"postgresql+psycopg://{quote(role, safe='')}:{password}@{self._host}/{database or role}"

    @contextlib.contextmanager
    def _connect(self) -> Iterator[psycopg.Connection]:
        with contextlib.closing(psycopg.connect(self._address, autocommit=True, connect_timeout=5)) as connection:
            yield connection
