"""Contests that were called off before their lock."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "cancellations",
        sa.Column("contest", sa.Text, primary_key=True),
        sa.Column("cancelled_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("cancellations")
