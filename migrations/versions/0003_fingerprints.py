"""The fingerprint of a coredump, so that the same fault is found in other incidents."""

import sqlalchemy as sa
import sqlmodel
from alembic import op

revision = "0003"
down_revision = "0002"

_ROWS_AT_ONCE = 100  # a document of a dump may have some hundred kB


def upgrade() -> None:
    with op.batch_alter_table("diagnostic_item", schema=None) as batch_op:
        batch_op.add_column(
            sa.Column("fingerprint", sqlmodel.sql.sqltypes.AutoString(length=16), nullable=True)
        )
        batch_op.create_index(
            batch_op.f("ix_diagnostic_item_fingerprint"), ["fingerprint"], unique=False
        )
    _fill()


def _fill() -> None:
    """Take over the fingerprints of dumps that were read before this column was there."""
    item = sa.table(
        "diagnostic_item",
        sa.column("id", sa.Integer),
        sa.column("kind", sa.String),
        sa.column("detail", sa.JSON),
        sa.column("fingerprint", sa.String),
    )
    connection, last = op.get_bind(), 0
    while rows := connection.execute(
        sa.select(item.c.id, item.c.detail)
        .where(item.c.id > last, item.c.kind == "coredump")
        .order_by(item.c.id)
        .limit(_ROWS_AT_ONCE)
    ).all():
        for number, detail in rows:
            told = ((detail or {}).get("inspected") or {}).get("fingerprint")
            if told:
                connection.execute(
                    sa.update(item).where(item.c.id == number).values(fingerprint=told[:16])
                )
            last = number


def downgrade() -> None:
    with op.batch_alter_table("diagnostic_item", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_diagnostic_item_fingerprint"))
        batch_op.drop_column("fingerprint")
