"""Agents' names may go for good: one that went comes back in no order of arrival, and no samples are kept of any."""

import sqlalchemy as sa
from alembic import op

from common.migrate import keep_no_samples, keep_samples

revision = "0012"
down_revision = "0011"

WORDS = {"agents": ("name",), "agent_names": ("name",)}


def upgrade() -> None:
    keep_no_samples(op, WORDS)
    for column in ("agent_version", "barred"):
        op.add_column("agent_names", sa.Column(column, sa.Integer, nullable=False, server_default=sa.text("0")))


def downgrade() -> None:
    for column in ("barred", "agent_version"):
        op.drop_column("agent_names", column)
    keep_samples(op, WORDS)
