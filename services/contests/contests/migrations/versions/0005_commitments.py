"""What contests commit to at their locks."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_KEEP = """
CREATE FUNCTION keep_commitments() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a commitment is never changed or removed';
END $$;
CREATE TRIGGER keep_commitments BEFORE UPDATE OR DELETE OR TRUNCATE ON commitments
    FOR EACH STATEMENT EXECUTE FUNCTION keep_commitments();
CREATE TRIGGER keep_leaves BEFORE UPDATE OR DELETE OR TRUNCATE ON leaves
    FOR EACH STATEMENT EXECUTE FUNCTION keep_commitments();
"""


def upgrade() -> None:
    op.create_table(
        "commitments",
        sa.Column("contest", sa.Text, sa.ForeignKey("contests.contest"), primary_key=True),
        sa.Column("locked_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("entries", sa.Integer, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("root", sa.LargeBinary, sa.CheckConstraint("length(root) = 32"), nullable=False),
        sa.Column("signature", sa.LargeBinary, sa.CheckConstraint("length(signature) = 64"), nullable=False),
        sa.Column("key_id", sa.Text, nullable=False),
    )
    op.create_table(
        "leaves",
        sa.Column("contest", sa.Text, sa.ForeignKey("commitments.contest"), primary_key=True),
        sa.Column("hashes", sa.LargeBinary, nullable=False),
    )
    op.execute(sa.text(_KEEP))


def downgrade() -> None:
    op.drop_table("leaves")
    op.drop_table("commitments")
    op.execute(sa.text("DROP FUNCTION keep_commitments();"))
