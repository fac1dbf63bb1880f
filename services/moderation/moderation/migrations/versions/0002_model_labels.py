"""Models' labels and their verdicts."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "models",
        sa.Column("model", sa.Text, primary_key=True),
        sa.Column("state", sa.Text),
        sa.Column("findings", JSONB, nullable=False, server_default=sa.text("'[]'")),
        sa.Column("pipeline", sa.Text),
        sa.Column("judged_at", sa.DateTime(timezone=True)),
        sa.Index("models_waiting", "model", postgresql_where=sa.text("state IS NULL")),
    )


def downgrade() -> None:
    op.drop_table("models")
