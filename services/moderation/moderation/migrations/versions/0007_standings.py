"""Each stage's verdict on a text beside the other's and the person's; verdicts that were replaced."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0007"
down_revision = "0006"

# What the pipeline had said where a person judged since: the first judgement says what it found.
_BEFORE_A_PERSON = """
UPDATE texts SET hand = state, hand_version = version, pipeline_state = coalesce(
    (SELECT was FROM judgements AS first WHERE first.lineup_id = texts.lineup_id AND first.revision = texts.revision
     AND first.pointer = texts.pointer ORDER BY position LIMIT 1), state)
WHERE judged_by IS NOT NULL
"""
_BEFORE_A_PERSON_OF_A_NAME = """
UPDATE agents SET pipeline_state = CASE WHEN findings = '[]' THEN 'cleared' ELSE 'flagged' END
WHERE judged_by IS NOT NULL AND state IS NOT NULL
"""


def upgrade() -> None:
    op.create_table(
        "former_verdicts",
        sa.Column("position", sa.BigInteger, sa.Identity(always=True), primary_key=True),
        sa.Column("lineup_id", sa.Uuid),
        sa.Column("revision", sa.Integer),
        sa.Column("pointer", sa.Text),
        sa.Column("agent_id", sa.Uuid),
        sa.Column("model", sa.Text),
        sa.Column("text_hash", sa.Text, nullable=False),
        sa.Column("stage", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("findings", JSONB, nullable=False),
        sa.Column("pipeline", sa.Text),
        sa.Column("judged_at", sa.DateTime(timezone=True)),
        sa.Column(
            "replaced_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.text("clock_timestamp()")
        ),
        sa.Index("former_verdicts_of_lineups", "lineup_id", postgresql_where=sa.text("lineup_id IS NOT NULL")),
        sa.Index("former_verdicts_of_names", "agent_id", postgresql_where=sa.text("agent_id IS NOT NULL")),
        sa.Index("former_verdicts_of_models", "model", postgresql_where=sa.text("model IS NOT NULL")),
    )
    for table in ("texts", "agents"):
        op.add_column(table, sa.Column("pipeline_state", sa.Text))
        op.add_column(table, sa.Column("pipeline_at", sa.DateTime(timezone=True)))
        kept = sa.table(table, *map(sa.column, ("state", "pipeline_state", "pipeline_at", "judged_at", "judged_by")))
        of_the_pipeline = {"pipeline_state": kept.c.state, "pipeline_at": kept.c.judged_at}
        op.execute(sa.update(kept).where(kept.c.judged_by.is_(None)).values(of_the_pipeline))
    for column in (
        sa.Column("asks_external", sa.Boolean, nullable=False, server_default=sa.text("false")),
        sa.Column("external_state", sa.Text),
        sa.Column("external_findings", JSONB, nullable=False, server_default=sa.text("'[]'")),
        sa.Column("external_version", sa.Text),
        sa.Column("external_at", sa.DateTime(timezone=True)),
        sa.Column("hand", sa.Text),
        sa.Column("hand_version", sa.Integer, nullable=False, server_default=sa.text("0")),
    ):
        op.add_column("texts", column)
    op.execute(sa.text(_BEFORE_A_PERSON))
    op.execute(sa.text(_BEFORE_A_PERSON_OF_A_NAME))
    op.add_column("models", sa.Column("told_version", sa.Integer, nullable=False, server_default=sa.text("0")))
    op.execute(sa.text("UPDATE models SET told_version = 1 WHERE state IS NOT NULL"))
    op.drop_index("texts_waiting", "texts")
    op.drop_index("agents_waiting", "agents")
    waiting = sa.text("pipeline_state IS NULL")
    op.create_index("texts_waiting", "texts", ["due_at", "accepted_at"], postgresql_where=waiting)
    op.create_index("agents_waiting", "agents", ["agent_id"], postgresql_where=waiting)


def downgrade() -> None:
    op.drop_index("agents_waiting", "agents")
    op.drop_index("texts_waiting", "texts")
    waiting = sa.text("state IS NULL")
    op.create_index("texts_waiting", "texts", ["due_at", "accepted_at"], postgresql_where=waiting)
    op.create_index("agents_waiting", "agents", ["agent_id"], postgresql_where=waiting)
    op.drop_column("models", "told_version")
    for column in (
        "hand_version",
        "hand",
        "external_at",
        "external_version",
        "external_findings",
        "external_state",
        "asks_external",
    ):
        op.drop_column("texts", column)
    for table in ("agents", "texts"):
        op.drop_column(table, "pipeline_at")
        op.drop_column(table, "pipeline_state")
    op.drop_table("former_verdicts")
