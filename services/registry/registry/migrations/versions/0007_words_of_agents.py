"""Names and descriptions may go for good: acts hold no names, and the planner keeps no samples of any."""

import sqlalchemy as sa
from alembic import op

from common.migrate import keep_no_samples, keep_samples

revision = "0007"
down_revision = "0006"

WORDS = {
    "agents": ("name", "description"),
    "agent_names": ("name_key",),
    "answers": ("request_hash",),
}


def upgrade() -> None:
    keep_no_samples(op, WORDS)
    # Whoever an act is about is its target; the name beside it was a copy that nothing could have taken away.
    op.execute("ALTER TABLE operator_acts DISABLE TRIGGER keep_operator_acts")
    op.execute("UPDATE operator_acts SET before = before - 'name', after = after - 'name' WHERE target LIKE 'agent/%'")
    op.execute("ALTER TABLE operator_acts ENABLE TRIGGER keep_operator_acts")
    op.add_column("agents", sa.Column("redacted_at", sa.DateTime(timezone=True)))
    op.add_column("agents", sa.Column("redaction", sa.Text))


def downgrade() -> None:
    op.drop_column("agents", "redaction")
    op.drop_column("agents", "redacted_at")
    keep_samples(op, WORDS)
