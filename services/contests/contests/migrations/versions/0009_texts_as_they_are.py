"""What a submission is made of is stored as it is: compressing it took the database longer than all else of it.

A lineup then takes some six kilobytes more. Rows that are there already stay as they are.
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

_COLUMNS = (("revisions", "body"), ("revisions", "salts"), ("outbox", "envelope"))


def upgrade() -> None:
    for table, column in _COLUMNS:
        op.execute(sa.text(f"ALTER TABLE {table} ALTER COLUMN {column} SET STORAGE EXTERNAL"))


def downgrade() -> None:
    for table, column in _COLUMNS:
        op.execute(sa.text(f"ALTER TABLE {table} ALTER COLUMN {column} SET STORAGE EXTENDED"))
