"""Where a lineup stands among all that its pool allowed. Results that arrived before this have no ranks."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    for name, kind in (("rank", sa.Text), ("tied", sa.Text), ("percentile", sa.Integer)):
        op.add_column("results", sa.Column(name, kind))
    for name in ("feasible_lineups", "no_ranks"):
        op.add_column("settlements", sa.Column(name, sa.Text))


def downgrade() -> None:
    for name in ("no_ranks", "feasible_lineups"):
        op.drop_column("settlements", name)
    for name in ("percentile", "tied", "rank"):
        op.drop_column("results", name)
