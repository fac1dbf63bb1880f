"""What became of games after the lock that were not played as planned."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.add_column("games", sa.Column("became", sa.Text))
    op.add_column("games", sa.Column("resumed_at", sa.DateTime(timezone=True)))
    op.add_column("games", sa.Column("in_week", sa.Boolean))
    op.create_check_constraint(
        "games_became_check", "games", "became IN ('cancelled', 'postponed', 'abandoned', 'suspended')"
    )


def downgrade() -> None:
    for column in ("in_week", "resumed_at", "became"):
        op.drop_column("games", column)
