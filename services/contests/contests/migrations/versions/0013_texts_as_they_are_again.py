"""What a submission is made of is stored as it is once more: 0012 had set its types anew, and with them its storage.

PostgreSQL then compressed each event of a submission, a quarter of what a lineup took it. 0012 keeps it by now; this
is for databases that ran it before.
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"

_COLUMNS = (("revisions", "body"), ("revisions", "salts"), ("outbox", "envelope"))


def upgrade() -> None:
    for table, column in _COLUMNS:
        op.execute(sa.text(f"ALTER TABLE {table} ALTER COLUMN {column} SET STORAGE EXTERNAL"))


def downgrade() -> None:
    """Nothing: 0012 leaves them so."""
