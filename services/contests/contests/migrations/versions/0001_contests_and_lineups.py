"""Contests with their games and pools, agents as the registry tells of them, lineups and their revisions."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from common.migrate import create_bus_tables, drop_bus_tables

revision = "0001"
down_revision = None

_KEEP_REVISIONS = """
CREATE FUNCTION keep_revisions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a revision is never changed or removed';
END $$;
CREATE TRIGGER keep_revisions BEFORE UPDATE OR DELETE OR TRUNCATE ON revisions
    FOR EACH STATEMENT EXECUTE FUNCTION keep_revisions();
"""


def upgrade() -> None:
    create_bus_tables(op)
    op.create_table(
        "contests",
        sa.Column("contest", sa.Text, primary_key=True),
        sa.Column("season", sa.Integer, nullable=False),
        sa.Column("week", sa.Integer, nullable=False),
        sa.Column("state", sa.Text, sa.CheckConstraint("state IN ('draft', 'open', 'locked')"), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("rules", sa.JSON, nullable=False),
        sa.Column("price_source", sa.Text, nullable=False),
        sa.Column("opened_at", sa.DateTime(timezone=True)),
        sa.Column("locks_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("locked_at", sa.DateTime(timezone=True)),
        sa.Column("entries", sa.Integer),
        sa.Index("contests_by_lock", "state", "locks_at"),
    )
    op.create_table(
        "games",
        sa.Column("contest", sa.Text, sa.ForeignKey("contests.contest"), primary_key=True),
        sa.Column("game_id", sa.Text, primary_key=True),
        sa.Column("away", sa.Text, nullable=False),
        sa.Column("home", sa.Text, nullable=False),
        sa.Column("kickoff", sa.DateTime(timezone=True), nullable=False),
        sa.Column("kickoff_zone", sa.Text, nullable=False),
    )
    op.create_table(
        "players",
        sa.Column("contest", sa.Text, primary_key=True),
        sa.Column("player_id", sa.Text, primary_key=True),
        sa.Column("player_name", sa.Text, nullable=False),
        sa.Column("positions", ARRAY(sa.Text), nullable=False),
        sa.Column("team", sa.Text, nullable=False),
        sa.Column("opponent", sa.Text, nullable=False),
        sa.Column("game_id", sa.Text, nullable=False),
        sa.Column("price", sa.Integer, sa.CheckConstraint("price > 0"), nullable=False),
        sa.ForeignKeyConstraint(["contest", "game_id"], ["games.contest", "games.game_id"]),
    )
    op.create_table(
        "agents",
        sa.Column("agent_id", sa.Uuid, primary_key=True),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("house", sa.Boolean, nullable=False),
        sa.Column("cohort", sa.Boolean, nullable=False),
        sa.Column("reference", sa.Boolean, nullable=False),
    )
    op.create_table(
        "agent_keys",
        sa.Column("agent_id", sa.Uuid, primary_key=True),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("key_hash", sa.Text, nullable=False),
        sa.Index("agent_keys_by_hash", "key_hash"),
    )
    op.create_table(
        "lineups",
        sa.Column("lineup_id", sa.Uuid, primary_key=True),
        sa.Column("contest", sa.Text, sa.ForeignKey("contests.contest"), nullable=False),
        sa.Column("agent_id", sa.Uuid, nullable=False),
        sa.UniqueConstraint("contest", "agent_id"),
    )
    op.create_table(
        "revisions",
        sa.Column("lineup_id", sa.Uuid, sa.ForeignKey("lineups.lineup_id"), primary_key=True),
        sa.Column("revision", sa.Integer, primary_key=True),
        sa.Column("contest", sa.Text, nullable=False),
        sa.Column("agent_id", sa.Uuid, nullable=False),
        sa.Column("idempotency_key", sa.Text),
        sa.Column("accepted_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("locks_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("house", sa.Boolean, nullable=False),
        sa.Column("cohort", sa.Boolean, nullable=False),
        sa.Column("reference", sa.Boolean, nullable=False),
        sa.Column("picks", JSONB, nullable=False),
        sa.Column("total_price", sa.Integer, nullable=False),
        sa.Column("projected_score", sa.Integer, nullable=False),
        sa.Column("confidence", sa.Double, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("receipt", sa.Text, nullable=False),
        sa.CheckConstraint("accepted_at < locks_at", name="accepted_before_the_lock"),
        sa.UniqueConstraint("agent_id", "contest", "idempotency_key"),
        sa.Index("revisions_of_contest", "contest"),
    )
    op.execute(sa.text(_KEEP_REVISIONS))


def downgrade() -> None:
    op.execute(sa.text("DROP TRIGGER keep_revisions ON revisions; DROP FUNCTION keep_revisions();"))
    for table in ("revisions", "lineups", "agent_keys", "agents", "players", "games", "contests"):
        op.drop_table(table)
    drop_bus_tables(op)
