"""The pool of an open contest can be imported again: which one is kept, and by which one the contest locked."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("contests", sa.Column("opened_version", sa.Integer, nullable=False, server_default="0"))
    op.add_column("contests", sa.Column("locked_pool", sa.Integer, nullable=False, server_default="1"))


def downgrade() -> None:
    op.drop_column("contests", "locked_pool")
    op.drop_column("contests", "opened_version")
