"""Lineups of reference strategies have row-weeks of their own.

Revision ID: 0003
"""

from alembic import op

revision = "0003"
down_revision = "0002"

_MAKE = """
INSERT INTO row_weeks (kind, key, contest, points, share, lineups, house, cohort, reference)
SELECT
  of.kind, of.key, r.contest, sum(r.points), sum(r.share), count(*), bool_and(r.house), bool_and(r.cohort), {mark}
FROM results r
JOIN shown_settlements s ON s.contest = r.contest AND s.settlement = r.settlement
CROSS JOIN LATERAL (VALUES ('model', r.model), ('cohort', r.model), ('agent', r.agent_id::text)) AS of (kind, key)
WHERE of.kind <> 'cohort' OR r.cohort
GROUP BY of.kind, of.key, r.contest{by}
"""


def _make_again(mark: str, by: str, *key: str) -> None:
    op.execute("DELETE FROM row_weeks")
    op.drop_constraint("row_weeks_pkey", "row_weeks", type_="primary")
    op.create_primary_key("row_weeks_pkey", "row_weeks", ["kind", "key", "contest", *key])
    op.execute(_MAKE.format(mark=mark, by=by))


def upgrade() -> None:
    _make_again("r.reference", ", r.reference", "reference")


def downgrade() -> None:
    _make_again("bool_and(r.reference)", "")
