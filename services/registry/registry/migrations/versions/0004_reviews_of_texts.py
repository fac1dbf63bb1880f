"""Reviews are asked for text by text, with a sentence, and answered; names are withheld for reasons."""

import json

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

from common import events as ev
from common.db import OUTBOX
from common.outbox import recorded

revision = "0004"
down_revision = "0003"

# A request used to be about all flagged texts of a lineup at once, and to be open as long as the judgement that it was
# about was the newest one.
_SPLIT = """
INSERT INTO reviews (agent_id, about, pointer, judged_version, version, requested_at, answered_at)
SELECT asked.agent_id, asked.about, field ->> 'pointer', asked.judged_version, asked.version, asked.requested_at,
    CASE WHEN asked.judged_version < reasonings.version THEN {now} END
FROM reviews AS asked
JOIN reasonings ON CAST(reasonings.lineup_id AS text) = asked.about
CROSS JOIN jsonb_array_elements(reasonings.fields) AS field
WHERE asked.pointer = '' AND field ->> 'state' = 'flagged';
DELETE FROM reviews WHERE pointer = '' AND about <> 'name';
"""
_ANSWERED = """
UPDATE reasonings SET fields = (
    SELECT jsonb_agg(
        CASE WHEN asked.version IS NULL THEN field ELSE field || jsonb_build_object('reviewed', asked.version) END
        ORDER BY place
    )
    FROM jsonb_array_elements(reasonings.fields) WITH ORDINALITY AS fields (field, place)
    LEFT JOIN reviews AS asked ON asked.about = CAST(reasonings.lineup_id AS text)
        AND asked.pointer = field ->> 'pointer' AND asked.answered_at IS NOT NULL
)
WHERE EXISTS (
    SELECT 1 FROM reviews WHERE about = CAST(reasonings.lineup_id AS text) AND answered_at IS NOT NULL
)
"""
_NAMES_ANSWERED = """
UPDATE reviews SET answered_at = {now}
FROM name_states
WHERE about = 'name' AND name_states.agent_id = reviews.agent_id AND judged_version < name_states.version;
UPDATE name_states SET reviewed = reviews.version
FROM reviews
WHERE about = 'name' AND reviews.agent_id = name_states.agent_id AND answered_at IS NOT NULL;
"""
# When exactly a person had looked was not kept: until now, at the latest.
_NOW = "date_trunc('second', transaction_timestamp())"
_OPEN = """
SELECT reviews.agent_id, lineups.lineup_id, lineups.contest, lineups.revision, reviews.version,
    min(reviews.judged_version) AS judged_version, min(reviews.requested_at) AS requested_at,
    array_agg(reviews.pointer ORDER BY reviews.pointer) AS pointers
FROM reviews LEFT JOIN lineups ON CAST(lineups.lineup_id AS text) = reviews.about
WHERE reviews.answered_at IS NULL AND (reviews.about = 'name' OR lineups.lineup_id IS NOT NULL)
GROUP BY reviews.agent_id, reviews.about, reviews.version, lineups.lineup_id
ORDER BY min(reviews.requested_at), reviews.agent_id, reviews.about
"""
_CLAIMED = """
SELECT agent_id, name, model, description, harness, provider, house, cohort, reference, owner_id, version
FROM agents WHERE owner_id IS NOT NULL ORDER BY registered_at, agent_id
"""


def upgrade() -> None:
    op.add_column("reviews", sa.Column("pointer", sa.Text, nullable=False, server_default=""))
    op.alter_column("reviews", "pointer", server_default=None)
    op.add_column("reviews", sa.Column("owner_id", sa.Uuid))
    op.add_column("reviews", sa.Column("sentence", sa.Text))
    op.add_column("reviews", sa.Column("answered_at", sa.DateTime(timezone=True)))
    op.drop_constraint("reviews_pkey", "reviews")
    op.create_primary_key("reviews_pkey", "reviews", ["agent_id", "about", "pointer"])
    op.add_column("name_states", sa.Column("reasons", JSONB, nullable=False, server_default=sa.text("'[]'")))
    op.add_column("name_states", sa.Column("reviewed", sa.Integer, nullable=False, server_default=sa.text("0")))
    op.execute(_SPLIT.format(now=_NOW))
    op.execute(_ANSWERED)
    op.execute(_NAMES_ANSWERED.format(now=_NOW))
    _tell_again()


def _tell_again() -> None:
    """Tell once more of open requests, for what moderation had not read of them lies in a stream that it reads no
    longer, and of claimed agents, for it kept nothing of claims.

    Whoever knows them ignores them, by their versions.
    """
    connection = op.get_bind()
    told = []
    for row in connection.execute(sa.text(_CLAIMED)):
        agent = ev.AgentUpdated(
            agent_id=row.agent_id,
            agent_name=row.name,
            model=row.model,
            description=row.description,
            harness=row.harness,
            provider=row.provider,
            marks=ev.Marks(house=row.house, cohort=row.cohort, reference=row.reference),
            claimed=True,
            owner_id=row.owner_id,
        )
        told.append(recorded(type(agent), agent.aggregate(), agent, row.version))
    for row in connection.execute(sa.text(_OPEN)):
        event = ev.ReviewRequested(
            agent_id=row.agent_id,
            lineup_id=row.lineup_id,
            contest=row.contest,
            revision=row.revision,
            pointers=tuple(row.pointers) if row.lineup_id else (),
            judged_version=row.judged_version,
            requested_at=row.requested_at,
        )
        told.append(recorded(type(event), event.aggregate(), event, row.version))
    for one in told:
        values = {"event_id": one.event_id, "subject": one.subject, "envelope": json.loads(one.envelope)}
        connection.execute(sa.insert(OUTBOX).values(values))


def downgrade() -> None:
    op.drop_column("name_states", "reviewed")
    op.drop_column("name_states", "reasons")
    op.execute(
        "DELETE FROM reviews AS one USING reviews AS other WHERE one.agent_id = other.agent_id "
        "AND one.about = other.about AND one.pointer > other.pointer"
    )
    op.drop_constraint("reviews_pkey", "reviews")
    op.create_primary_key("reviews_pkey", "reviews", ["agent_id", "about"])
    for column in ("answered_at", "sentence", "owner_id", "pointer"):
        op.drop_column("reviews", column)
