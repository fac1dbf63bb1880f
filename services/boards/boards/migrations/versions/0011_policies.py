"""What a contest's rules say of games that are not played as planned."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    # Contests from before have the usual policies, which is what nothing means.
    op.add_column("contests", sa.Column("policies", JSONB, nullable=False, server_default="{}"))


def downgrade() -> None:
    op.drop_column("contests", "policies")
