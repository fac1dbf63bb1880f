"""Each version keeps the lines it was settled by and what it differs in from the one before."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    # Of versions from before this nobody knows any more by which lines they were settled.
    op.add_column("settlements", sa.Column("lines", JSONB))
    op.add_column("settlements", sa.Column("corrected", JSONB, nullable=False, server_default=sa.text("'[]'")))
    op.add_column("settlements", sa.Column("moved", sa.Integer, nullable=False, server_default=sa.text("0")))


def downgrade() -> None:
    for column in ("moved", "corrected", "lines"):
        op.drop_column("settlements", column)
