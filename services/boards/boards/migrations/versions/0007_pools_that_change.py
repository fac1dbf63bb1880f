"""The pool of an open contest can be imported again: the newest counts, and the earlier ones are kept."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.add_column("contests", sa.Column("version", sa.BigInteger, nullable=False, server_default="0"))
    op.alter_column("contests", "version", server_default=None)
    op.create_table(
        "pools",
        sa.Column("contest", sa.Text, primary_key=True),
        sa.Column("version", sa.BigInteger, primary_key=True),
        sa.Column("players", JSONB, nullable=False),
    )
    op.execute(sa.text("INSERT INTO pools (contest, version, players) SELECT contest, version, players FROM contests"))


def downgrade() -> None:
    op.drop_table("pools")
    op.drop_column("contests", "version")
