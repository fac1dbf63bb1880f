"""Stamps of roots by an RFC 3161 authority."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "stamps",
        sa.Column("contest", sa.Text, sa.ForeignKey("commitments.contest"), primary_key=True),
        sa.Column("stamped_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("response", sa.LargeBinary, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("stamps")
