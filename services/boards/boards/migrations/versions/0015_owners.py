"""Whose agents stand behind a row, to be counted and never shown."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    # Unknown of agents claimed before: they are counted as nobody's until the registry speaks of them again.
    op.add_column("agents", sa.Column("owner_id", sa.Uuid()))


def downgrade() -> None:
    op.drop_column("agents", "owner_id")
