"""Texts that go for good, the one exception to the rule that a revision is never changed."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

# What a revision may become is written out here and held for every row, whoever asks: with each text that has a
# tombstone null in the body, its salt zero, and nothing else another. Leaves stand in the order of their pointers by
# code points, which is that of collation C, the leaf of the picks (the empty pointer) first.
_KEEP_REVISIONS = """
DROP TRIGGER keep_revisions ON revisions;
CREATE FUNCTION redact_revisions() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    wanted revisions%ROWTYPE := OLD;
    body jsonb := OLD.body::jsonb;
    pointers text[];
    tombstone record;
    place integer;
BEGIN
    SELECT array_agg(pointer ORDER BY pointer COLLATE "C") INTO pointers FROM (
        SELECT '' UNION ALL SELECT '/thesis'
        UNION ALL
        SELECT '/picks/' || pick || '/' || name
        FROM generate_series(0, jsonb_array_length(OLD.picks) - 1) AS pick,
            unnest('{rationale,main_factor}'::text[]) AS name
    ) AS leaf (pointer);
    FOR tombstone IN
        SELECT pointer FROM redactions WHERE lineup_id = OLD.lineup_id AND redactions.revision = OLD.revision
    LOOP
        place := array_position(pointers, tombstone.pointer);
        body := jsonb_set(body, string_to_array(substr(tombstone.pointer, 2), '/'), 'null', false);
        wanted.salts := overlay(
            wanted.salts PLACING decode(repeat('00', 32), 'hex') FROM 32 * (place - 1) + 1 FOR 32
        );
    END LOOP;
    wanted.body := NEW.body;
    IF NEW.body::jsonb IS DISTINCT FROM body OR NEW IS DISTINCT FROM wanted THEN
        RAISE EXCEPTION 'a revision is never changed or removed; a text that is redacted leaves it, and nothing else';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER redact_revisions BEFORE UPDATE ON revisions FOR EACH ROW EXECUTE FUNCTION redact_revisions();
CREATE TRIGGER keep_revisions BEFORE DELETE OR TRUNCATE ON revisions
    FOR EACH STATEMENT EXECUTE FUNCTION keep_revisions();
CREATE FUNCTION keep_redactions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a tombstone is never changed or removed';
END $$;
CREATE TRIGGER keep_redactions BEFORE UPDATE OR DELETE OR TRUNCATE ON redactions
    FOR EACH STATEMENT EXECUTE FUNCTION keep_redactions();
"""


def upgrade() -> None:
    op.create_table(
        "redactions",
        sa.Column("lineup_id", sa.Uuid, primary_key=True),
        sa.Column("revision", sa.Integer, primary_key=True),
        sa.Column("pointer", sa.Text, primary_key=True),
        sa.Column("redaction_id", sa.Uuid, nullable=False),
        sa.Column("contest", sa.Text, nullable=False),
        sa.Column("agent_id", sa.Uuid, nullable=False),
        sa.Column("leaf", sa.LargeBinary, sa.CheckConstraint("length(leaf) = 32"), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("redacted_at", sa.DateTime(timezone=True), nullable=False),
        sa.Index("redactions_of_contest", "contest"),
    )
    op.execute(sa.text(_KEEP_REVISIONS.replace("::", "\\:\\:").replace(":=", "\\:=")))


def downgrade() -> None:
    op.execute(sa.text("DROP TRIGGER redact_revisions ON revisions; DROP FUNCTION redact_revisions();"))
    op.execute(sa.text("DROP TRIGGER keep_revisions ON revisions;"))
    op.execute(
        sa.text(
            "CREATE TRIGGER keep_revisions BEFORE UPDATE OR DELETE OR TRUNCATE ON revisions "
            "FOR EACH STATEMENT EXECUTE FUNCTION keep_revisions();"
        )
    )
    op.drop_table("redactions")
    op.execute(sa.text("DROP FUNCTION keep_redactions();"))
