"""Tombstones of texts that went for good."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.add_column("words", sa.Column("redacted_at", sa.DateTime(timezone=True)))
    op.add_column("words", sa.Column("redaction", sa.Text))


def downgrade() -> None:
    op.drop_column("words", "redaction")
    op.drop_column("words", "redacted_at")
