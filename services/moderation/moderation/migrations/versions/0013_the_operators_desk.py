"""Operators sign in to pages, note without judging, and take a judgement back."""

import sqlalchemy as sa
from alembic import op

from common.limits import create_limit_table, drop_limit_table

revision = "0013"
down_revision = "0012"

# Who had judged by hand before, as the rows before it tell.
_BEFORE = """
UPDATE judgements SET was_by = (
    SELECT former.judged_by FROM judgements AS former
    WHERE former.agent_id = judgements.agent_id AND former.lineup_id IS NOT DISTINCT FROM judgements.lineup_id
      AND former.pointer IS NOT DISTINCT FROM judgements.pointer AND former.text_hash = judgements.text_hash
      AND former.position < judgements.position
    ORDER BY former.position DESC LIMIT 1
)
"""


def upgrade() -> None:
    create_limit_table(op)
    op.create_table(
        "operator_sessions",
        sa.Column("token_hash", sa.Text, primary_key=True),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "notes",
        sa.Column("position", sa.BigInteger, sa.Identity(always=True), primary_key=True),
        sa.Column("agent_id", sa.Uuid, nullable=False),
        sa.Column("lineup_id", sa.Uuid),
        sa.Column("revision", sa.Integer),
        sa.Column("pointer", sa.Text),
        sa.Column("text_hash", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("noted_by", sa.Text, nullable=False),
        sa.Column("noted_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.text("clock_timestamp()")),
        sa.Index("notes_of_lineups", "lineup_id", postgresql_where=sa.text("lineup_id IS NOT NULL")),
        sa.Index("notes_of_names", "agent_id", postgresql_where=sa.text("lineup_id IS NULL")),
    )
    op.add_column("judgements", sa.Column("was_by", sa.Text))
    op.add_column("judgements", sa.Column("was_reviewed", sa.Integer, nullable=False, server_default=sa.text("0")))
    op.add_column("judgements", sa.Column("takes_back", sa.BigInteger))
    op.execute(_BEFORE)


def downgrade() -> None:
    for column in ("takes_back", "was_reviewed", "was_by"):
        op.drop_column("judgements", column)
    op.drop_table("notes")
    op.drop_table("operator_sessions")
    drop_limit_table(op)
