"""Contests that were called off, and the version at which a contest locked."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    # Of contests that locked before this, whatever schedule arrived counts.
    op.add_column("contests", sa.Column("locked_version", sa.Integer))
    op.add_column("contests", sa.Column("cancelled_because", sa.Text))


def downgrade() -> None:
    op.drop_column("contests", "cancelled_because")
    op.drop_column("contests", "locked_version")
