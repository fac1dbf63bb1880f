"""Intake's commits no longer wait for each other: a NOTIFY holds a lock until its commit has reached the disk.

Whoever takes submissions wakes the relay itself. And a revision is one row, not one and two more of its long texts:
half a page holds what a usual lineup takes; one index does what two did.
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

_TRIGGER = """
CREATE OR REPLACE TRIGGER outbox_notify AFTER INSERT ON outbox FOR EACH STATEMENT {} EXECUTE FUNCTION outbox_notify()
"""


def _index_by(*names: str) -> None:
    of_old = "_".join(("revisions", *reversed(names), "idempotency_key", "key"))
    op.drop_constraint(of_old, "revisions")
    op.create_unique_constraint(None, "revisions", [*names, "idempotency_key"])


def upgrade() -> None:
    op.execute(sa.text(_TRIGGER.format("WHEN (current_setting('mafl.wakes', true) IS DISTINCT FROM 'itself')")))
    op.execute(sa.text("ALTER TABLE revisions SET (toast_tuple_target = 8160)"))
    _index_by("contest", "agent_id")
    op.drop_index("revisions_of_contest", "revisions")


def downgrade() -> None:
    op.create_index("revisions_of_contest", "revisions", ["contest"])
    _index_by("agent_id", "contest")
    op.execute(sa.text("ALTER TABLE revisions RESET (toast_tuple_target)"))
    op.execute(sa.text(_TRIGGER.format("")))
