"""How much of each lineup is still to play, and how far the games are."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    for column in ("to_play", "games"):
        op.add_column("provisional", sa.Column(column, JSONB, nullable=False, server_default=sa.text("'{}'")))


def downgrade() -> None:
    for column in ("games", "to_play"):
        op.drop_column("provisional", column)
