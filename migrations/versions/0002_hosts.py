"""Hosts with an agent, which servers a target is, and what was looked at there."""

import sqlalchemy as sa
import sqlmodel
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "host",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("name", sqlmodel.sql.sqltypes.AutoString(length=120), nullable=False),
        sa.Column("agent_url", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("agent_id", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("key_sealed", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("tls_fingerprint", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("embedded", sa.Boolean(), nullable=False),
        sa.Column("registered_by", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("registered_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("removed_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("heard_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("asked_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("problem", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("version", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("clock_offset_seconds", sa.Float(), nullable=True),
        sa.Column("info", sa.JSON(), nullable=True),
        sa.Column("processes", sa.JSON(), nullable=True),
        sa.Column("processes_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("preflight", sa.JSON(), nullable=True),
        sa.Column("preflight_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_host")),
        sa.UniqueConstraint("name", name=op.f("uq_host_name")),
    )
    op.create_table(
        "target_server",
        sa.Column("target_id", sa.Integer(), nullable=False),
        sa.Column("host_id", sa.Integer(), nullable=False),
        sa.Column("port", sa.Integer(), nullable=False),
        sa.Column("server_id", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("engine", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("confirmed_by", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("confirmed_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["host_id"], ["host.id"], name=op.f("fk_target_server_host_id_host")
        ),
        sa.ForeignKeyConstraint(
            ["target_id"], ["target.id"], name=op.f("fk_target_server_target_id_target")
        ),
        sa.PrimaryKeyConstraint("target_id", "host_id", "port", name=op.f("pk_target_server")),
    )
    with op.batch_alter_table("target_server", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_target_server_host_id"), ["host_id"], unique=False)

    op.create_table(
        "diagnostic",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("incident_id", sa.Integer(), nullable=False),
        sa.Column("target_id", sa.Integer(), nullable=True),
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("kind", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("state", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("says", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("asked_by", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("asked_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("finished_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("hosts", sa.JSON(), nullable=False),
        sa.Column("answer", sa.JSON(), nullable=True),
        sa.ForeignKeyConstraint(
            ["incident_id"], ["incident.id"], name=op.f("fk_diagnostic_incident_id_incident")
        ),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_diagnostic_job_id_job")),
        sa.ForeignKeyConstraint(
            ["target_id"], ["target.id"], name=op.f("fk_diagnostic_target_id_target")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_diagnostic")),
    )
    with op.batch_alter_table("diagnostic", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_diagnostic_incident_id"), ["incident_id"], unique=False
        )
        batch_op.create_index(batch_op.f("ix_diagnostic_job_id"), ["job_id"], unique=False)

    op.create_table(
        "diagnostic_item",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("diagnostic_id", sa.Integer(), nullable=False),
        sa.Column("host_id", sa.Integer(), nullable=True),
        sa.Column("host_name", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("process_id", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("pid", sa.Integer(), nullable=True),
        sa.Column("rank", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("sample", sa.Integer(), nullable=True),
        sa.Column("taken_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("seconds", sa.Float(), nullable=True),
        sa.Column("mode", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("exact", sa.Boolean(), nullable=True),
        sa.Column("artifact_id", sa.Integer(), nullable=True),
        sa.Column("state", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("kind", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("says", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("fix", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("command", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["artifact_id"], ["artifact.id"], name=op.f("fk_diagnostic_item_artifact_id_artifact")
        ),
        sa.ForeignKeyConstraint(
            ["diagnostic_id"],
            ["diagnostic.id"],
            name=op.f("fk_diagnostic_item_diagnostic_id_diagnostic"),
        ),
        sa.ForeignKeyConstraint(
            ["host_id"], ["host.id"], name=op.f("fk_diagnostic_item_host_id_host")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_diagnostic_item")),
    )
    with op.batch_alter_table("diagnostic_item", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_diagnostic_item_diagnostic_id"), ["diagnostic_id"], unique=False
        )


def downgrade() -> None:
    with op.batch_alter_table("diagnostic_item", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_diagnostic_item_diagnostic_id"))

    op.drop_table("diagnostic_item")
    with op.batch_alter_table("diagnostic", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_diagnostic_job_id"))
        batch_op.drop_index(batch_op.f("ix_diagnostic_incident_id"))

    op.drop_table("diagnostic")
    with op.batch_alter_table("target_server", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_target_server_host_id"))

    op.drop_table("target_server")
    op.drop_table("host")
