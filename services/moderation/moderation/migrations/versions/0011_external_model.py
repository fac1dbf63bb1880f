"""What an external model was asked and answered, its breaker and what was spent on it; who is claimed."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.create_table(
        "claims",
        sa.Column("agent_id", sa.Uuid, primary_key=True),
        sa.Column("claimed", sa.Boolean, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
    )
    op.create_table(
        "external_verdicts",
        sa.Column("asker", sa.Text, primary_key=True),
        sa.Column("scope", sa.Text, primary_key=True),
        sa.Column("text_hash", sa.Text, primary_key=True),
        sa.Column("state", sa.Text),
        sa.Column("rules", JSONB, nullable=False, server_default=sa.text("'[]'")),
        sa.Column("scores", JSONB, nullable=False, server_default=sa.text("'{}'")),
        sa.Column("model", sa.Text),
        sa.Column("answered_at", sa.DateTime(timezone=True)),
        sa.Column("attempts", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("cause", sa.Text),
        sa.Column("alone", sa.Boolean, nullable=False, server_default=sa.text("false")),
        sa.Column("ask_after", sa.DateTime(timezone=True)),
        sa.Column("lease", sa.Uuid),
        sa.Column("leased_until", sa.DateTime(timezone=True)),
    )
    op.create_table(
        "external_state",
        sa.Column("asker", sa.Text, primary_key=True),
        sa.Column("failures", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("open_until", sa.DateTime(timezone=True)),
        sa.Column("probe_until", sa.DateTime(timezone=True)),
    )
    op.create_table(
        "external_spent",
        sa.Column("period", sa.Text, primary_key=True),
        sa.Column("begins_at", sa.DateTime(timezone=True), primary_key=True),
        sa.Column("requests", sa.BigInteger, nullable=False),
        sa.Column("texts", sa.BigInteger, nullable=False),
        sa.Column("tokens", sa.BigInteger, nullable=False),
    )
    waits = sa.text("asks_external AND state = 'unchecked'")
    op.create_index("texts_to_ask", "texts", ["contest", "text_hash"], postgresql_where=waits)


def downgrade() -> None:
    op.drop_index("texts_to_ask", "texts")
    for table in ("external_spent", "external_state", "external_verdicts", "claims"):
        op.drop_table(table)
