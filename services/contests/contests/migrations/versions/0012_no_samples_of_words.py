"""The planner keeps no samples of words, of their salts or of their hashes: they go for good with the text."""

from alembic import op

from common.migrate import keep_no_samples, keep_samples

revision = "0012"
down_revision = "0011"

WORDS = {
    "revisions": ("body", "salts"),
    "outbox": ("envelope",),
}


def upgrade() -> None:
    keep_no_samples(op, WORDS)


def downgrade() -> None:
    keep_samples(op, WORDS)
