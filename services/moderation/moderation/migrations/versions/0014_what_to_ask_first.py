"""The texts that an external model may be asked about, found by their lineups and by their words."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    waits = sa.text("asks_external AND state = 'unchecked'")
    op.drop_index("texts_to_ask", "texts")
    op.create_index("texts_to_ask", "texts", ["contest", "lineup_id", "revision"], postgresql_where=waits)
    op.create_index("texts_to_ask_by_words", "texts", ["text_hash"], postgresql_where=waits)
    op.create_index("finals_of_contests", "finals", ["contest", "lineup_id"])


def downgrade() -> None:
    waits = sa.text("asks_external AND state = 'unchecked'")
    op.drop_index("finals_of_contests", "finals")
    op.drop_index("texts_to_ask_by_words", "texts")
    op.drop_index("texts_to_ask", "texts")
    op.create_index("texts_to_ask", "texts", ["contest", "text_hash"], postgresql_where=waits)
