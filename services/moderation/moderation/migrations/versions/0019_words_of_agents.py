"""Agents' names and descriptions may go for good: no samples of names are kept, and redactions are of agents too."""

import sqlalchemy as sa
from alembic import op

from common.migrate import keep_no_samples, keep_samples

revision = "0019"
down_revision = "0018"

WORDS = {"agents": ("name", "findings")}


def upgrade() -> None:
    keep_no_samples(op, WORDS)
    for column in ("lineup_id", "revision", "contest"):
        op.alter_column("redactions", column, nullable=True)
    for column in ("registry_at", "moderation_at"):
        op.add_column("redactions", sa.Column(column, sa.DateTime(timezone=True)))
    op.execute("UPDATE redactions SET moderation_at = redacted_at")


def downgrade() -> None:
    op.execute("DELETE FROM redactions WHERE lineup_id IS NULL")
    for column in ("moderation_at", "registry_at"):
        op.drop_column("redactions", column)
    for column in ("contest", "revision", "lineup_id"):
        op.alter_column("redactions", column, nullable=False)
    keep_samples(op, WORDS)
