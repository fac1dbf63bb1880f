"""What a settlement version corrects, and whether a version was proven: old ones stay readable."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.add_column("settlements", sa.Column("corrected", JSONB))
    op.add_column("settlements", sa.Column("proven", sa.Boolean, nullable=False, server_default=sa.false()))
    # The version shown was proven when it was shown. Earlier ones of the same contest were shown before it.
    op.execute(
        sa.text(
            "UPDATE settlements SET proven = true FROM shown_settlements AS shown "
            "WHERE shown.contest = settlements.contest AND settlements.settlement <= shown.settlement "
            "AND settlements.arrived = settlements.expected"
        )
    )


def downgrade() -> None:
    op.drop_column("settlements", "proven")
    op.drop_column("settlements", "corrected")
