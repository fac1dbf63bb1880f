"""What model labels stand for.

Revision ID: 0002
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "model_maps",
        sa.Column("label", sa.Text, primary_key=True),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("canonical", sa.Text, nullable=False),
        sa.Column("catalogued", sa.Boolean, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("model_maps")
