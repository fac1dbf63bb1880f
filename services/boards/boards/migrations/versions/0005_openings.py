"""What opens the leaves of lineups in their contests' commitments."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("lineups", sa.Column("accepted_at", sa.DateTime(timezone=True)))
    op.add_column("lineups", sa.Column("salt", sa.Text))
    op.add_column("words", sa.Column("salt", sa.Text))


def downgrade() -> None:
    op.drop_column("words", "salt")
    op.drop_column("lineups", "salt")
    op.drop_column("lineups", "accepted_at")
