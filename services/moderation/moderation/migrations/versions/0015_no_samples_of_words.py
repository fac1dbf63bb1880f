"""The planner keeps no samples of words, of their salts or of their hashes: they go for good with the text."""

from alembic import op

from common.migrate import keep_no_samples, keep_samples

revision = "0015"
down_revision = "0014"

WORDS = {
    "texts": ("text", "text_hash", "salt", "findings", "external_findings"),
    "judgements": ("text_hash", "note"),
    "notes": ("text_hash", "note"),
    "former_verdicts": ("text_hash", "findings"),
    "rerun_changes": ("findings",),
    "external_verdicts": ("text_hash",),
    "reviews": ("sentence",),
    "outbox": ("envelope",),
}


def upgrade() -> None:
    keep_no_samples(op, WORDS)


def downgrade() -> None:
    keep_samples(op, WORDS)
