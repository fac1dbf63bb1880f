"""Reruns of the pipeline over old text, and what each changed."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0012"
down_revision = "0011"

_NOW = sa.text("clock_timestamp()")


def upgrade() -> None:
    op.create_table(
        "reruns",
        sa.Column("rerun", sa.Uuid, primary_key=True),
        sa.Column("chosen", sa.Text, nullable=False),
        sa.Column("wanted", JSONB, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("why", sa.Text),
        sa.Column("pipeline", sa.Text),
        sa.Column("phase", sa.Text, nullable=False),
        sa.Column("after", JSONB(none_as_null=True)),
        sa.Column("total", sa.Integer),
        sa.Column("done", sa.Integer, nullable=False),
        sa.Column("counts", JSONB, nullable=False),
        sa.Column("detectors", JSONB, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False, server_default=_NOW),
        sa.Column("touched_at", sa.DateTime(timezone=True), nullable=False, server_default=_NOW),
        sa.Column("finished_at", sa.DateTime(timezone=True)),
        sa.Index("reruns_unfinished", "chosen", unique=True, postgresql_where=sa.text("state = 'running'")),
    )
    op.create_table(
        "rerun_changes",
        sa.Column("position", sa.BigInteger, sa.Identity(always=True), primary_key=True),
        sa.Column("rerun", sa.Uuid, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("contest", sa.Text),
        sa.Column("lineup_id", sa.Uuid),
        sa.Column("revision", sa.Integer),
        sa.Column("pointer", sa.Text),
        sa.Column("agent_id", sa.Uuid),
        sa.Column("model", sa.Text),
        sa.Column("was", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("newly", JSONB, nullable=False),
        sa.Column("no_longer", JSONB, nullable=False),
        sa.Column("findings", JSONB, nullable=False),
        sa.Index("rerun_changes_of", "rerun", "position"),
    )


def downgrade() -> None:
    op.drop_table("rerun_changes")
    op.drop_table("reruns")
