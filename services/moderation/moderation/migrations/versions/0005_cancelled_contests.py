"""Contests that were called off: their texts wait for nothing."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("contests", sa.Column("cancelled_at", sa.DateTime(timezone=True)))


def downgrade() -> None:
    op.drop_column("contests", "cancelled_at")
