"""Judgements by people, the reviews that owners ask for, and which verdict a text is at."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "reviews",
        sa.Column("about", sa.Uuid, primary_key=True),
        sa.Column("pointers", JSONB, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("requested_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "judgements",
        sa.Column("position", sa.BigInteger, sa.Identity(always=True), primary_key=True),
        sa.Column("agent_id", sa.Uuid, nullable=False),
        sa.Column("lineup_id", sa.Uuid),
        sa.Column("revision", sa.Integer),
        sa.Column("pointer", sa.Text),
        sa.Column("text_hash", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("was", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("judged_by", sa.Text, nullable=False),
        sa.Column("judged_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.text("clock_timestamp()")),
        sa.Index("judgements_of_lineups", "lineup_id", postgresql_where=sa.text("lineup_id IS NOT NULL")),
        sa.Index("judgements_of_names", "agent_id", postgresql_where=sa.text("lineup_id IS NULL")),
    )
    for table in ("texts", "agents"):
        op.add_column(table, sa.Column("judged_by", sa.Text))
        op.add_column(table, sa.Column("reviewed", sa.Integer, nullable=False, server_default=sa.text("0")))
    op.add_column("texts", sa.Column("version", sa.Integer, nullable=False, server_default=sa.text("0")))
    op.add_column("agents", sa.Column("judged_at", sa.DateTime(timezone=True)))


def downgrade() -> None:
    op.drop_column("agents", "judged_at")
    op.drop_column("texts", "version")
    for table in ("agents", "texts"):
        op.drop_column(table, "reviewed")
        op.drop_column(table, "judged_by")
    op.drop_table("judgements")
    op.drop_table("reviews")
