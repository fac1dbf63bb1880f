"""Owners ask for reviews text by text, with a sentence of their own."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0008"
down_revision = "0007"

_SPLIT = """
INSERT INTO reviews (about, pointer, version, requested_at)
SELECT about, jsonb_array_elements_text(CASE WHEN pointers = '[]' THEN '[""]' ELSE pointers END), version, requested_at
FROM reviews_of_lineups
"""
_JOIN = """
INSERT INTO reviews_of_lineups (about, pointers, version, requested_at)
SELECT about, coalesce(jsonb_agg(pointer) FILTER (WHERE pointer <> ''), '[]'), max(version), max(requested_at)
FROM reviews GROUP BY about
"""


def upgrade() -> None:
    op.rename_table("reviews", "reviews_of_lineups")
    op.execute("ALTER INDEX reviews_pkey RENAME TO reviews_of_lineups_pkey")
    op.create_table(
        "reviews",
        sa.Column("about", sa.Uuid, primary_key=True),
        sa.Column("pointer", sa.Text, primary_key=True),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("requested_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("sentence", sa.Text),
    )
    op.execute(_SPLIT)
    op.drop_table("reviews_of_lineups")


def downgrade() -> None:
    op.create_table(
        "reviews_of_lineups",
        sa.Column("about", sa.Uuid, primary_key=True),
        sa.Column("pointers", JSONB, nullable=False, server_default=sa.text("'[]'")),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("requested_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.execute(_JOIN)
    op.drop_table("reviews")
    op.rename_table("reviews_of_lineups", "reviews")
    op.execute("ALTER INDEX reviews_of_lineups_pkey RENAME TO reviews_pkey")
    op.alter_column("reviews", "pointers", server_default=None)
