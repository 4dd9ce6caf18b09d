"""Dumps with a row for each of their requests, and uploads that come in pieces."""

import sqlalchemy as sa
import sqlmodel
from alembic import op

revision = "0004"
down_revision = "0003"


def _key() -> "sa.Column[int]":
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    return sa.Column("id", number, autoincrement=True, nullable=False)


def upgrade() -> None:
    op.create_table(
        "dump",
        _key(),
        sa.Column("incident_id", sa.Integer(), nullable=False),
        sa.Column("artifact_id", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.Integer(), nullable=True),
        sa.Column("sha256", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("name", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("state", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("kind", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("says", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("added_by", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("added_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("read_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("requests_total", sa.Integer(), nullable=True),
        sa.Column("finished", sa.Integer(), nullable=True),
        sa.Column("unfinished", sa.Integer(), nullable=True),
        sa.Column("aborted", sa.Integer(), nullable=True),
        sa.Column("sglang_version", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("model_path", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("first_at", sa.Float(), nullable=True),
        sa.Column("last_at", sa.Float(), nullable=True),
        sa.Column("document", sa.JSON(), nullable=True),
        sa.Column("spread", sa.JSON(), nullable=True),
        sa.ForeignKeyConstraint(
            ["artifact_id"], ["artifact.id"], name=op.f("fk_dump_artifact_id_artifact")
        ),
        sa.ForeignKeyConstraint(
            ["incident_id"], ["incident.id"], name=op.f("fk_dump_incident_id_incident")
        ),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_dump_job_id_job")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dump")),
        sa.UniqueConstraint("artifact_id", name=op.f("uq_dump_artifact_id")),
    )
    with op.batch_alter_table("dump", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_dump_incident_id"), ["incident_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_dump_job_id"), ["job_id"], unique=False)
    _requests()
    _uploads()


def _requests() -> None:
    op.create_table(
        "dump_request",
        sa.Column("dump_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("rid", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("state", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("endpoint", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("prompt_tokens", sa.BigInteger(), nullable=True),
        sa.Column("completion_tokens", sa.BigInteger(), nullable=True),
        sa.Column("cached_tokens", sa.BigInteger(), nullable=True),
        sa.Column("prompt_characters", sa.BigInteger(), nullable=True),
        sa.Column("stream", sa.Boolean(), nullable=True),
        sa.Column("started_at", sa.Float(), nullable=True),
        sa.Column("finished_at", sa.Float(), nullable=True),
        sa.Column("elapsed_seconds", sa.Float(), nullable=True),
        sa.Column("finish_reason", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("sampling", sa.Text(), nullable=False),
        sa.Column("features", sa.Text(), nullable=False),
        sa.Column("problems", sa.Text(), nullable=False),
        sa.Column("suspect_rank", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(
            ["dump_id"], ["dump.id"], name=op.f("fk_dump_request_dump_id_dump")
        ),
        sa.PrimaryKeyConstraint("dump_id", "position", name=op.f("pk_dump_request")),
    )
    with op.batch_alter_table("dump_request", schema=None) as batch_op:
        for name, columns in {
            "state": ["dump_id", "state", "position"],
            "prompt": ["dump_id", "prompt_tokens", "position"],
            "completion": ["dump_id", "completion_tokens", "position"],
            "started": ["dump_id", "started_at", "position"],
            "elapsed": ["dump_id", "elapsed_seconds", "position"],
            "rid": ["dump_id", "rid"],
        }.items():
            batch_op.create_index(f"ix_dump_request_{name}", columns, unique=False)
        batch_op.create_index(
            "ix_dump_request_suspect",
            ["dump_id", "suspect_rank"],
            unique=False,
            sqlite_where=sa.text("suspect_rank IS NOT NULL"),
            postgresql_where=sa.text("suspect_rank IS NOT NULL"),
        )


def _uploads() -> None:
    op.create_table(
        "upload",
        _key(),
        sa.Column("incident_id", sa.Integer(), nullable=False),
        sa.Column("file", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("name", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("media_type", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("tier", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("sha256", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("sealed_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("artifact_id", sa.Integer(), nullable=True),
        sa.Column("begun_by", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("begun_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("touched_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["artifact_id"], ["artifact.id"], name=op.f("fk_upload_artifact_id_artifact")
        ),
        sa.ForeignKeyConstraint(
            ["incident_id"], ["incident.id"], name=op.f("fk_upload_incident_id_incident")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_upload")),
        sa.UniqueConstraint("file", name=op.f("uq_upload_file")),
    )
    with op.batch_alter_table("upload", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_upload_incident_id"), ["incident_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_upload_touched_at"), ["touched_at"], unique=False)


def downgrade() -> None:
    op.drop_table("upload")
    op.drop_table("dump_request")
    op.drop_table("dump")
