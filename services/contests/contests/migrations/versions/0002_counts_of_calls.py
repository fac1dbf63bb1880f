"""Counts of calls, for the limits."""

from alembic import op

from common.limits import create_limit_table, drop_limit_table

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    create_limit_table(op)


def downgrade() -> None:
    drop_limit_table(op)
