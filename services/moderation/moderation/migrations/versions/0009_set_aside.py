"""What the pipeline could not judge, and why."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

# What could not be judged before is tried again like everything that cannot be from now on. Why it could not was not
# kept; a detector that raised was the one way.
_BEFORE = """
INSERT INTO set_aside (kind, lineup_id, revision, pointer, cause, error, since)
SELECT 'text', lineup_id, revision, pointer, 'raised', 'unknown', coalesce(pipeline_at, clock_timestamp())
FROM texts WHERE pipeline_state = 'unchecked';
INSERT INTO set_aside (kind, agent_id, cause, error, since)
SELECT 'name', agent_id, 'raised', 'unknown', coalesce(pipeline_at, clock_timestamp())
FROM agents WHERE pipeline_state = 'unchecked';
INSERT INTO set_aside (kind, model, cause, error, since)
SELECT 'model', model, 'raised', 'unknown', coalesce(judged_at, clock_timestamp())
FROM models WHERE state = 'unchecked';
"""


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
    op.execute(_BEFORE)


def downgrade() -> None:
    op.drop_table("set_aside")
