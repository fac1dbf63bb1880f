"""The players that imports taught, to match later lists to; and how many pools an open contest has had."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    keys = [sa.Column(name, sa.Text, primary_key=True) for name in ("player_id", "name", "position", "team")]
    weeks = [sa.Column(name, sa.Integer, nullable=False) for name in ("season", "week")]
    op.create_table("known_players", *keys, *weeks)
    op.add_column("contests", sa.Column("pool", sa.Integer, nullable=False, server_default="1"))


def downgrade() -> None:
    op.drop_column("contests", "pool")
    op.drop_table("known_players")
