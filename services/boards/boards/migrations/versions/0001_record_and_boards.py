"""The record as it arrives, and the boards that are made of it.

Revision ID: 0001
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB, UUID

from common.migrate import create_bus_tables, drop_bus_tables

revision = "0001"
down_revision = None

_AGENT_MARKS = ("house", "cohort", "reference")


def _marks() -> list[sa.Column[bool]]:
    return [sa.Column(mark, sa.Boolean, nullable=False) for mark in _AGENT_MARKS]


def upgrade() -> None:
    create_bus_tables(op)
    op.create_table(
        "agents",
        sa.Column("agent_id", UUID(as_uuid=True), primary_key=True),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("name", sa.Text, nullable=False, index=True),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("claimed", sa.Boolean, nullable=False),
        *_marks(),
    )
    op.create_table(
        "agent_names",
        sa.Column("agent_id", UUID(as_uuid=True), primary_key=True),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
    )
    op.create_table(
        "model_names",
        sa.Column("model", sa.Text, primary_key=True),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
    )
    op.create_table(
        "contests",
        sa.Column("contest", sa.Text, primary_key=True),
        sa.Column("season", sa.Integer, nullable=False, index=True),
        sa.Column("week", sa.Integer, nullable=False),
        sa.Column("opened_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("cap", sa.BigInteger, nullable=False),
        sa.Column("roster", JSONB, nullable=False),
        sa.Column("ruleset", sa.Text, nullable=False),
        sa.Column("scoring", JSONB, nullable=False),
        sa.Column("price_source", sa.Text, nullable=False),
        sa.Column("players", JSONB, nullable=False),
    )
    op.create_table(
        "schedules",
        sa.Column("contest", sa.Text, primary_key=True),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("locks_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("games", JSONB, nullable=False),
    )
    op.create_table(
        "locks",
        sa.Column("contest", sa.Text, primary_key=True),
        sa.Column("locked_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("entries", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "lineups",
        sa.Column("lineup_id", UUID(as_uuid=True), primary_key=True),
        sa.Column("contest", sa.Text, nullable=False, index=True),
        sa.Column("agent_id", UUID(as_uuid=True), nullable=False, index=True),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("model", sa.Text, nullable=False, index=True),
        *_marks(),
        sa.Column("picks", JSONB, nullable=False),
        sa.Column("total_price", sa.BigInteger, nullable=False),
        sa.Column("projected_score", sa.BigInteger, nullable=False),
        sa.Column("confidence", sa.Float(53), nullable=False),
    )
    op.create_table(
        "words",
        sa.Column("lineup_id", UUID(as_uuid=True), primary_key=True),
        sa.Column("pointer", sa.Text, primary_key=True),
        sa.Column("state_version", sa.BigInteger, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("barred_version", sa.BigInteger, nullable=False),
        sa.Column("text_version", sa.BigInteger, nullable=False),
        sa.Column("text", sa.Text),
    )
    op.create_table(
        "provisional",
        sa.Column("contest", sa.Text, primary_key=True),
        sa.Column("part", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("parts", sa.Integer, nullable=False),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("players", JSONB, nullable=False),
        sa.Column("lineups", JSONB, nullable=False),
    )
    op.create_table(
        "results",
        sa.Column("contest", sa.Text, primary_key=True),
        sa.Column("settlement", sa.Integer, primary_key=True),
        sa.Column("lineup_id", UUID(as_uuid=True), primary_key=True),
        sa.Column("agent_id", UUID(as_uuid=True), nullable=False, index=True),
        sa.Column("model", sa.Text, nullable=False),
        *_marks(),
        sa.Column("points", sa.BigInteger, nullable=False),
        sa.Column("share", sa.BigInteger, nullable=False),
        sa.Column("regret", sa.BigInteger, nullable=False),
        sa.Column("picks", JSONB, nullable=False),
    )
    op.create_table(
        "settlements",
        sa.Column("contest", sa.Text, primary_key=True),
        sa.Column("settlement", sa.Integer, primary_key=True),
        sa.Column("arrived", sa.BigInteger, nullable=False),
        sa.Column("expected", sa.BigInteger),
        sa.Column("reason", sa.Text),
        sa.Column("scoring", sa.Text),
        sa.Column("settled_at", sa.DateTime(timezone=True)),
        sa.Column("optimal", JSONB),
        sa.Column("players", JSONB),
        sa.Column("digest", sa.Text),
    )
    op.create_table(
        "shown_settlements",
        sa.Column("contest", sa.Text, primary_key=True),
        sa.Column("settlement", sa.Integer, nullable=False),
    )
    op.create_table(
        "row_weeks",
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("contest", sa.Text, primary_key=True, index=True),
        sa.Column("points", sa.BigInteger, nullable=False),
        sa.Column("share", sa.BigInteger, nullable=False),
        sa.Column("lineups", sa.BigInteger, nullable=False),
        *_marks(),
    )


def downgrade() -> None:
    for table in (
        "row_weeks",
        "shown_settlements",
        "settlements",
        "results",
        "provisional",
        "words",
        "lineups",
        "locks",
        "schedules",
        "contests",
        "model_names",
        "agent_names",
        "agents",
    ):
        op.drop_table(table)
    drop_bus_tables(op)
