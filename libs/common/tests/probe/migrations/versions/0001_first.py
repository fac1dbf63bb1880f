"""The probe's tables."""

from alembic import op
from probe import METADATA

from common.migrate import create_bus_tables, drop_bus_tables

revision = "0001"
down_revision = None


def upgrade() -> None:
    create_bus_tables(op)
    METADATA.create_all(op.get_bind())


def downgrade() -> None:
    METADATA.drop_all(op.get_bind())
    drop_bus_tables(op)
