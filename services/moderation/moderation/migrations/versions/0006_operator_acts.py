"""What operators did."""

from alembic import op

from common.audit import create_audit_table, drop_audit_table

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    create_audit_table(op)


def downgrade() -> None:
    drop_audit_table(op)
