"""Agents, their keys' hashes, owners and claim links."""

import sqlalchemy as sa
from alembic import op

from common.migrate import create_bus_tables, drop_bus_tables

revision = "0001"
down_revision = None


def upgrade() -> None:
    create_bus_tables(op)
    op.create_table(
        "owners",
        sa.Column("owner_id", sa.Uuid, primary_key=True),
        sa.Column("word", sa.Text, nullable=False, unique=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "agents",
        sa.Column("agent_id", sa.Uuid, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("name_key", sa.Text, nullable=False, unique=True),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("description", sa.Text),
        sa.Column("harness", sa.Text),
        sa.Column("provider", sa.Text),
        sa.Column("house", sa.Boolean, nullable=False),
        sa.Column("cohort", sa.Boolean, nullable=False),
        sa.Column("reference", sa.Boolean, nullable=False),
        sa.Column("owner_id", sa.Uuid, sa.ForeignKey("owners.owner_id")),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("key_hash", sa.Text, nullable=False, unique=True),
        sa.Column("key_version", sa.Integer, nullable=False),
        sa.Column("registered_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "claim_links",
        sa.Column("token_hash", sa.Text, primary_key=True),
        sa.Column("agent_id", sa.Uuid, sa.ForeignKey("agents.agent_id"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True)),
        sa.Index("claim_links_of_agent", "agent_id"),
    )
    op.create_table(
        "answers",
        sa.Column("scope", sa.Text, primary_key=True),
        sa.Column("idempotency_hash", sa.Text, primary_key=True),
        sa.Column("request_hash", sa.Text, nullable=False),
        sa.Column("agent_id", sa.Uuid, sa.ForeignKey("agents.agent_id"), nullable=False),
        sa.Column("key_hash", sa.Text, nullable=False),
        sa.Column("answered_at", sa.DateTime(timezone=True), nullable=False),
        sa.Index("answers_by_age", "answered_at"),
    )


def downgrade() -> None:
    for table in ("answers", "claim_links", "agents", "owners"):
        op.drop_table(table)
    drop_bus_tables(op)
