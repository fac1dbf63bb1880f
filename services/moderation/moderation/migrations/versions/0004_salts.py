"""Salts of texts, which go out with the texts that are released."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("texts", sa.Column("salt", sa.Text))


def downgrade() -> None:
    op.drop_column("texts", "salt")
