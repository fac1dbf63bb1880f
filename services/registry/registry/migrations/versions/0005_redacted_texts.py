"""Texts whose words are gone for good."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "redacted_texts",
        sa.Column("lineup_id", sa.Uuid, primary_key=True),
        sa.Column("pointer", sa.Text, primary_key=True),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("redacted_at", sa.DateTime(timezone=True), nullable=False),
    )


def downgrade() -> None:
    op.drop_table("redacted_texts")
