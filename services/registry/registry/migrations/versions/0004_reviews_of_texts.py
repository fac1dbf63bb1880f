"""Reviews are asked for text by text, with a sentence, and answered; names are withheld for reasons."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0004"
down_revision = "0003"

_SPLIT = """
INSERT INTO reviews (agent_id, about, pointer, judged_version, version, requested_at)
SELECT asked.agent_id, asked.about, field ->> 'pointer', asked.judged_version, asked.version, asked.requested_at
FROM reviews AS asked
JOIN reasonings ON CAST(reasonings.lineup_id AS text) = asked.about
CROSS JOIN jsonb_array_elements(reasonings.fields) AS field
WHERE asked.pointer = '' AND field ->> 'state' = 'flagged';
DELETE FROM reviews WHERE pointer = '' AND about <> 'name';
"""


def upgrade() -> None:
    op.add_column("reviews", sa.Column("pointer", sa.Text, nullable=False, server_default=""))
    op.alter_column("reviews", "pointer", server_default=None)
    op.add_column("reviews", sa.Column("owner_id", sa.Uuid))
    op.add_column("reviews", sa.Column("sentence", sa.Text))
    op.add_column("reviews", sa.Column("answered_at", sa.DateTime(timezone=True)))
    op.drop_constraint("reviews_pkey", "reviews")
    op.create_primary_key("reviews_pkey", "reviews", ["agent_id", "about", "pointer"])
    # A request used to be about all flagged texts of a lineup at once.
    op.execute(_SPLIT)
    op.add_column("name_states", sa.Column("reasons", JSONB, nullable=False, server_default=sa.text("'[]'")))
    op.add_column("name_states", sa.Column("reviewed", sa.Integer, nullable=False, server_default=sa.text("0")))


def downgrade() -> None:
    op.drop_column("name_states", "reviewed")
    op.drop_column("name_states", "reasons")
    op.execute(
        "DELETE FROM reviews AS one USING reviews AS other WHERE one.agent_id = other.agent_id "
        "AND one.about = other.about AND one.pointer > other.pointer"
    )
    op.drop_constraint("reviews_pkey", "reviews")
    op.create_primary_key("reviews_pkey", "reviews", ["agent_id", "about"])
    for column in ("answered_at", "sentence", "owner_id", "pointer"):
        op.drop_column("reviews", column)
