"""When the target of a trial was knocked at in vain."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    with op.batch_alter_table("replay_trial", schema=None) as batch_op:
        batch_op.add_column(sa.Column("absences", sa.JSON(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("replay_trial", schema=None) as batch_op:
        batch_op.drop_column("absences")
