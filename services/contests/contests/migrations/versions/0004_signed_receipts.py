"""Receipts are signed and salted; the leaves of a commitment have a salt each."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

# A revision that came before has no signature, but salts: without them its texts could be guessed from their
# leaves. Two random UUIDs are 32 bytes, 244 bits of them random.
_SALTS_FOR_OLD_REVISIONS = """
ALTER TABLE revisions DISABLE TRIGGER keep_revisions;
UPDATE revisions SET salts = (
    SELECT string_agg(uuid_send(gen_random_uuid()), ''::bytea)
    FROM generate_series(1, 2 * (2 + 2 * jsonb_array_length(picks))) AS half(number)
    WHERE revisions.lineup_id IS NOT NULL
);
ALTER TABLE revisions ENABLE TRIGGER keep_revisions;
"""


def upgrade() -> None:
    op.add_column("revisions", sa.Column("salts", sa.LargeBinary))
    op.add_column("revisions", sa.Column("signature", sa.LargeBinary))
    op.add_column("revisions", sa.Column("key_id", sa.Text))
    op.execute(sa.text(_SALTS_FOR_OLD_REVISIONS.replace("::", "\\:\\:")))
    op.alter_column("revisions", "salts", nullable=False)


def downgrade() -> None:
    for name in ("salts", "signature", "key_id"):
        op.drop_column("revisions", name)
