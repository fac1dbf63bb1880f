"""What a contest asks of lineups besides roster and cap: nothing, of those that were opened before."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.add_column("contests", sa.Column("lineup_rules", JSONB, nullable=False, server_default="{}"))


def downgrade() -> None:
    op.drop_column("contests", "lineup_rules")
