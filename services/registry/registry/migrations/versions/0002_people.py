"""People: the accounts that they sign in with, sessions, mailed links, and what their own page shows."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0002"
down_revision = "0001"


def _time(name: str) -> sa.Column:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False)


def upgrade() -> None:
    op.alter_column("owners", "word", nullable=True)
    op.add_column(
        "claim_links",
        # Links that were given out before live as long as new ones.
        sa.Column(
            "expires_at",
            sa.DateTime(timezone=True),
            nullable=False,
            server_default=sa.text("clock_timestamp() + interval '90 days'"),
        ),
    )
    op.alter_column("claim_links", "expires_at", server_default=None)
    op.create_table(
        "identities",
        sa.Column("known_as", sa.Text, primary_key=True),
        sa.Column("issuer", sa.Text, nullable=False),
        sa.Column("owner_id", sa.Uuid, sa.ForeignKey("owners.owner_id"), nullable=False),
        _time("created_at"),
    )
    op.create_table(
        "sessions",
        sa.Column("token_hash", sa.Text, primary_key=True),
        sa.Column("owner_id", sa.Uuid, sa.ForeignKey("owners.owner_id"), nullable=False),
        sa.Column("way", sa.Text, nullable=False),
        _time("created_at"),
        _time("seen_at"),
        _time("expires_at"),
        sa.Index("sessions_by_end", "expires_at"),
    )
    op.create_table(
        "sign_ins",
        sa.Column("state_hash", sa.Text, primary_key=True),
        sa.Column("browser_hash", sa.Text, nullable=False),
        sa.Column("provider", sa.Text, nullable=False),
        _time("created_at"),
        sa.Index("sign_ins_by_age", "created_at"),
    )
    op.create_table(
        "mail_links",
        sa.Column("token_hash", sa.Text, primary_key=True),
        sa.Column("browser_hash", sa.Text, nullable=False),
        sa.Column("known_as", sa.Text, nullable=False),
        _time("created_at"),
        sa.Index("mail_links_of_account", "known_as", "created_at"),
        sa.Index("mail_links_by_age", "created_at"),
    )
    op.create_table(
        "secrets",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
    op.create_table(
        "lineups",
        sa.Column("lineup_id", sa.Uuid, primary_key=True),
        sa.Column("agent_id", sa.Uuid, nullable=False),
        sa.Column("contest", sa.Text, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        _time("accepted_at"),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("slots", JSONB, nullable=False),
        sa.Index("lineups_of_agent", "agent_id", "contest"),
    )
    op.create_table(
        "reasonings",
        sa.Column("lineup_id", sa.Uuid, primary_key=True),
        sa.Column("agent_id", sa.Uuid, nullable=False),
        sa.Column("fields", JSONB, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Index("reasonings_of_agent", "agent_id"),
    )
    op.create_table(
        "name_states",
        sa.Column("agent_id", sa.Uuid, primary_key=True),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
    )
    op.create_table(
        "reviews",
        sa.Column("agent_id", sa.Uuid, sa.ForeignKey("agents.agent_id"), primary_key=True),
        sa.Column("about", sa.Text, primary_key=True),
        sa.Column("judged_version", sa.Integer, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        _time("requested_at"),
    )


def downgrade() -> None:
    for table in (
        *("reviews", "name_states", "reasonings", "lineups"),
        *("secrets", "mail_links", "sign_ins", "sessions", "identities"),
    ):
        op.drop_table(table)
    op.drop_column("claim_links", "expires_at")
    op.execute("UPDATE owners SET word = owner_id::text WHERE word IS NULL")
    op.alter_column("owners", "word", nullable=False)
