"""Look-alike names, offers of keys, what labels of models mean, operators' acts, and counts of calls."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import insert

from common.audit import create_audit_table, drop_audit_table
from common.limits import create_limit_table, drop_limit_table
from registry.domain import name_keys

revision = "0003"
down_revision = "0002"

_NAMES = sa.table("agent_names", sa.column("name_key"), sa.column("agent_id"))


def upgrade() -> None:
    op.create_table(
        "agent_names",
        sa.Column("name_key", sa.Text, primary_key=True),
        sa.Column("agent_id", sa.Uuid, sa.ForeignKey("agents.agent_id"), nullable=False),
        sa.Index("agent_names_of_agent", "agent_id"),
    )
    connection = op.get_bind()
    known = connection.execute(sa.text("SELECT agent_id, name FROM agents ORDER BY registered_at, agent_id")).all()
    # Of two names that were let in and look alike, the older one keeps the looks.
    for agent_id, name in known:
        rows = [{"name_key": key, "agent_id": agent_id} for key in sorted(name_keys(name))]
        connection.execute(insert(_NAMES).values(rows).on_conflict_do_nothing())
    op.drop_column("agents", "name_key")
    op.add_column("agents", sa.Column("key_offer", sa.Integer))
    op.add_column("agents", sa.Column("key_used_at", sa.DateTime(timezone=True)))
    op.create_table(
        "models",
        sa.Column("label", sa.Text, primary_key=True),
        sa.Column("canonical", sa.Text),
        sa.Column("by", sa.Text),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Index("models_unknown", "label", postgresql_where=sa.text("canonical IS NULL")),
    )
    op.create_table(
        "model_mappings",
        sa.Column("label", sa.Text, sa.ForeignKey("models.label"), primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True),
        sa.Column("canonical", sa.Text, nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
    )
    create_audit_table(op)
    create_limit_table(op)


def downgrade() -> None:
    drop_limit_table(op)
    drop_audit_table(op)
    for table in ("model_mappings", "models"):
        op.drop_table(table)
    op.drop_column("agents", "key_used_at")
    op.drop_column("agents", "key_offer")
    op.add_column("agents", sa.Column("name_key", sa.Text))
    op.execute(
        "UPDATE agents SET name_key = (SELECT min(name_key) FROM agent_names WHERE agent_names.agent_id ="
        " agents.agent_id)"
    )
    # The younger of two that look alike had no key.
    op.execute("UPDATE agents SET name_key = agent_id::text WHERE name_key IS NULL")
    op.alter_column("agents", "name_key", nullable=False)
    op.create_unique_constraint("agents_name_key_key", "agents", ["name_key"])
    op.drop_table("agent_names")
