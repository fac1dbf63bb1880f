"""The days that a contest covers, games that leave it, and contests that are called off."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0006"
down_revision = "0005"

# Contests from before cover Sundays and Mondays and whatever days their games are on; the middle game says the week.
_BACKFILL = """
UPDATE contests SET days = '{Sunday,Monday}'::text[] || (
        SELECT coalesce(array_agg(DISTINCT day), '{}')
        FROM (SELECT trim(to_char(kickoff AT TIME ZONE 'America/New_York', 'Day')) AS day
              FROM games WHERE games.contest = contests.contest) AS played
        WHERE day NOT IN ('Sunday', 'Monday')),
    sunday = (SELECT day + CASE WHEN ahead <= 4 THEN ahead ELSE ahead - 7 END
        FROM (SELECT day, (7 - extract(isodow FROM day)::int) % 7 AS ahead
              FROM (SELECT coalesce((
                        SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY kickoff)
                        FROM games WHERE games.contest = contests.contest), locks_at)
                    AT TIME ZONE 'America/New_York') AS at (middle), LATERAL (SELECT middle::date) AS of_it (day)
             ) AS found)
"""


def upgrade() -> None:
    op.add_column("contests", sa.Column("days", ARRAY(sa.Text)))
    op.add_column("contests", sa.Column("sunday", sa.Date))
    op.execute(sa.text(_BACKFILL))
    op.alter_column("contests", "days", nullable=False)
    op.alter_column("contests", "sunday", nullable=False)
    op.add_column("contests", sa.Column("cancelled_at", sa.DateTime(timezone=True)))
    op.add_column("contests", sa.Column("cancelled_because", sa.Text))
    op.drop_constraint("contests_state_check", "contests")
    op.create_check_constraint("contests_state_check", "contests", "state IN ('draft', 'open', 'locked', 'cancelled')")
    op.create_check_constraint(
        "contests_cancelled_check",
        "contests",
        "(state = 'cancelled') = (cancelled_at IS NOT NULL) AND (cancelled_at IS NULL) = (cancelled_because IS NULL)",
    )
    op.add_column("games", sa.Column("status", sa.Text, nullable=False, server_default="scheduled"))
    op.create_check_constraint("games_status_check", "games", "status IN ('scheduled', 'moved', 'cancelled')")


def downgrade() -> None:
    op.drop_column("games", "status")
    op.drop_constraint("contests_cancelled_check", "contests")
    op.drop_constraint("contests_state_check", "contests")
    op.create_check_constraint("contests_state_check", "contests", "state IN ('draft', 'open', 'locked')")
    for column in ("cancelled_because", "cancelled_at", "sunday", "days"):
        op.drop_column("contests", column)
