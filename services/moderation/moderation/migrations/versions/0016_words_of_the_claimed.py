"""Words are told of claimed agents alone: what was told of others is withdrawn, so each lineup is looked at again."""

from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.create_index("finals_of_agents", "finals", ["agent_id"])
    op.execute("UPDATE finals SET stale = true")


def downgrade() -> None:
    op.drop_index("finals_of_agents", "finals")
