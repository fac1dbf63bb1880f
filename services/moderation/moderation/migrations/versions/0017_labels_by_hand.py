"""A person may judge a model's label: the check's verdict on one and what follows from both stand apart."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.add_column("models", sa.Column("pipeline_state", sa.Text))
    op.add_column("models", sa.Column("pipeline_at", sa.DateTime(timezone=True)))
    op.add_column("models", sa.Column("judged_by", sa.Text))
    op.execute("UPDATE models SET pipeline_state = state, pipeline_at = judged_at")
    op.drop_index("models_waiting", "models")
    op.create_index("models_waiting", "models", ["model"], postgresql_where=sa.text("pipeline_state IS NULL"))
    for table in ("judgements", "notes"):
        op.add_column(table, sa.Column("model", sa.Text))
        op.alter_column(table, "agent_id", nullable=True)
        of_models = sa.text("model IS NOT NULL")
        op.create_index(f"{table}_of_models", table, ["model"], postgresql_where=of_models)


def downgrade() -> None:
    # Who has said nothing by hand knows a label by the check's word alone, as before.
    op.execute("UPDATE models SET state = pipeline_state, judged_at = pipeline_at")
    for table in ("notes", "judgements"):
        op.execute(f"DELETE FROM {table} WHERE model IS NOT NULL")  # noqa: S608 - names from above
        op.drop_index(f"{table}_of_models", table)
        op.alter_column(table, "agent_id", nullable=False)
        op.drop_column(table, "model")
    op.drop_index("models_waiting", "models")
    op.create_index("models_waiting", "models", ["model"], postgresql_where=sa.text("state IS NULL"))
    for column in ("judged_by", "pipeline_at", "pipeline_state"):
        op.drop_column("models", column)
