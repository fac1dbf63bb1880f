"""Operators see which pick a text is about: picks as the lock told them, and the names of the pool's players.

Of contests that were opened or locked before, neither is known here: their texts keep the pointer alone.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    op.add_column("contests", sa.Column("players", JSONB(none_as_null=True)))
    op.add_column("finals", sa.Column("picks", JSONB(none_as_null=True)))


def downgrade() -> None:
    op.drop_column("finals", "picks")
    op.drop_column("contests", "players")
