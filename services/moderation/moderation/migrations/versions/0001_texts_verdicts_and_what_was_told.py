"""Texts with their verdicts, contests, final revisions and what was told of them, agents' names."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

from common.migrate import create_bus_tables, drop_bus_tables

revision = "0001"
down_revision = None


def upgrade() -> None:
    create_bus_tables(op)
    op.create_table(
        "contests",
        sa.Column("contest", sa.Text, primary_key=True),
        sa.Column("names", JSONB(none_as_null=True)),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("locks_at", sa.DateTime(timezone=True)),
        sa.Column("locked_at", sa.DateTime(timezone=True)),
    )
    op.create_table(
        "texts",
        sa.Column("lineup_id", sa.Uuid, primary_key=True),
        sa.Column("revision", sa.Integer, primary_key=True),
        sa.Column("pointer", sa.Text, primary_key=True),
        sa.Column("contest", sa.Text, nullable=False),
        sa.Column("agent_id", sa.Uuid, nullable=False),
        sa.Column("accepted_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column(
            "received_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.text("clock_timestamp()")
        ),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("text_hash", sa.Text, nullable=False),
        sa.Column("state", sa.Text),
        sa.Column("findings", JSONB, nullable=False, server_default=sa.text("'[]'")),
        sa.Column("pipeline", sa.Text),
        sa.Column("judged_at", sa.DateTime(timezone=True)),
        sa.Index("texts_waiting", "due_at", "accepted_at", postgresql_where=sa.text("state IS NULL")),
        sa.Index("texts_withheld", "judged_at", postgresql_where=sa.text("state <> 'cleared'")),
    )
    op.create_table(
        "finals",
        sa.Column("lineup_id", sa.Uuid, primary_key=True),
        sa.Column("contest", sa.Text, nullable=False),
        sa.Column("agent_id", sa.Uuid, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("stale", sa.Boolean, nullable=False),
        sa.Column("said_version", sa.Integer, nullable=False),
        sa.Column("said_judged", sa.Text, nullable=False),
        sa.Column("said_released", sa.Text, nullable=False),
        sa.Index("finals_stale", "contest", "lineup_id", postgresql_where=sa.text("stale")),
    )
    op.create_table(
        "agents",
        sa.Column("agent_id", sa.Uuid, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("state", sa.Text),
        sa.Column("findings", JSONB, nullable=False, server_default=sa.text("'[]'")),
        sa.Column("pipeline", sa.Text),
        sa.Column("told_version", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Index("agents_waiting", "agent_id", postgresql_where=sa.text("state IS NULL")),
    )


def downgrade() -> None:
    for table in ("agents", "finals", "texts", "contests"):
        op.drop_table(table)
    drop_bus_tables(op)
