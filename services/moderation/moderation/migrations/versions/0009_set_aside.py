"""What the pipeline could not judge, and why."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.create_table(
        "set_aside",
        sa.Column("position", sa.BigInteger, sa.Identity(always=True), primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("lineup_id", sa.Uuid),
        sa.Column("revision", sa.Integer),
        sa.Column("pointer", sa.Text),
        sa.Column("agent_id", sa.Uuid),
        sa.Column("model", sa.Text),
        sa.Column("cause", sa.Text, nullable=False),
        sa.Column("detector", sa.Text),
        sa.Column("error", sa.Text, nullable=False),
        sa.Column("pipeline", sa.Text),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False, server_default=sa.text("clock_timestamp()")),
        sa.Index(
            "set_aside_texts",
            "lineup_id",
            "revision",
            "pointer",
            unique=True,
            postgresql_where=sa.text("kind = 'text'"),
        ),
        sa.Index("set_aside_names", "agent_id", unique=True, postgresql_where=sa.text("kind = 'name'")),
        sa.Index("set_aside_models", "model", unique=True, postgresql_where=sa.text("kind = 'model'")),
    )


def downgrade() -> None:
    op.drop_table("set_aside")
