"""Texts that went for good: which, why, and which stores are rid of them."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.create_table(
        "redactions",
        sa.Column("redaction_id", sa.Uuid, primary_key=True),
        sa.Column("lineup_id", sa.Uuid, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("pointer", sa.Text, nullable=False),
        sa.Column("contest", sa.Text, nullable=False),
        sa.Column("agent_id", sa.Uuid, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("ordered_by", sa.Text, nullable=False),
        sa.Column("redacted_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("contests_at", sa.DateTime(timezone=True)),
        sa.Column("told", sa.Boolean, nullable=False, server_default=sa.text("false")),
        sa.Column("boards_at", sa.DateTime(timezone=True)),
        sa.Column("streams_at", sa.DateTime(timezone=True)),
        sa.Column("looks", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("messages", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.UniqueConstraint("lineup_id", "revision", "pointer"),
    )
    op.add_column("texts", sa.Column("redacted_at", sa.DateTime(timezone=True)))


def downgrade() -> None:
    op.drop_column("texts", "redacted_at")
    op.drop_table("redactions")
