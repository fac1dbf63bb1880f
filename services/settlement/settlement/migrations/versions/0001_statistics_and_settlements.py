"""Contests and lineups as they were locked, statistics, settlement versions and their results."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

from common.migrate import create_bus_tables, drop_bus_tables

revision = "0001"
down_revision = None


def upgrade() -> None:
    create_bus_tables(op)
    op.create_table(
        "contests",
        sa.Column("contest", sa.Text, primary_key=True),
        sa.Column("season", sa.Integer),
        sa.Column("week", sa.Integer),
        sa.Column("opened", JSONB),
        sa.Column("games", JSONB),
        sa.Column("games_version", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("locked_at", sa.DateTime(timezone=True)),
        sa.Column("entries", sa.Integer),
        sa.Column("scores_sequence", sa.Integer, nullable=False, server_default=sa.text("0")),
    )
    op.create_index("contests_of_week", "contests", ["season", "week"])
    op.create_table(
        "lineups",
        sa.Column("lineup_id", sa.Uuid, primary_key=True),
        sa.Column("contest", sa.Text, nullable=False),
        sa.Column("agent_id", sa.Uuid, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("marks", JSONB, nullable=False),
        sa.Column("picks", JSONB, nullable=False),
    )
    op.create_index("lineups_of_contest", "lineups", ["contest"])
    op.create_table(
        "statistics",
        sa.Column("season", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("week", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("player_id", sa.Text, primary_key=True),
        sa.Column("line", JSONB, nullable=False),
    )
    op.create_table(
        "statistics_weeks",
        sa.Column("season", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("week", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("final", sa.Boolean, nullable=False),
        sa.Column("imports", sa.Integer, nullable=False),
        sa.Column("imported_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "settlements",
        sa.Column("contest", sa.Text, primary_key=True),
        sa.Column("settlement", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("scoring", sa.Text, nullable=False),
        sa.Column("settled_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("optimal", JSONB, nullable=False),
        sa.Column("players", JSONB, nullable=False),
        sa.Column("lineups", sa.Integer, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
    )
    op.create_table(
        "results",
        sa.Column("contest", sa.Text, primary_key=True),
        sa.Column("settlement", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("lineup_id", sa.Uuid, primary_key=True),
        sa.Column("agent_id", sa.Uuid, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("marks", JSONB, nullable=False),
        sa.Column("points", sa.Integer, nullable=False),
        sa.Column("share", sa.BigInteger, nullable=False),
        sa.Column("regret", sa.Integer, nullable=False),
        sa.Column("picks", JSONB, nullable=False),
        sa.ForeignKeyConstraint(["contest", "settlement"], ["settlements.contest", "settlements.settlement"]),
    )


def downgrade() -> None:
    for table in ("results", "settlements", "statistics_weeks", "statistics", "lineups", "contests"):
        op.drop_table(table)
    drop_bus_tables(op)
