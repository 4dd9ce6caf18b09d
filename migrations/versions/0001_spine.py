"""The spine: people, targets, incidents, jobs, bundles, artifacts, reports and shares."""

import sqlalchemy as sa
import sqlmodel
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "api_token",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("name", sqlmodel.sql.sqltypes.AutoString(length=64), nullable=False),
        sa.Column("token_hash", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("role", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("created_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("created_by", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("last_used_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("revoked_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_token")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_api_token_token_hash")),
    )
    op.create_table(
        "audit_event",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("actor", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("action", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("subject", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.Column("address", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_event")),
    )
    with op.batch_alter_table("audit_event", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_audit_event_at"), ["at"], unique=False)

    op.create_table(
        "console_user",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("name", sqlmodel.sql.sqltypes.AutoString(length=64), nullable=False),
        sa.Column("password_hash", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("role", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("created_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("disabled_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_console_user")),
        sa.UniqueConstraint("name", name=op.f("uq_console_user_name")),
    )
    op.create_table(
        "idempotency",
        sa.Column("actor", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("key", sqlmodel.sql.sqltypes.AutoString(length=200), nullable=False),
        sa.Column("request_hash", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("answer", sa.JSON(), nullable=True),
        sa.Column("created_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("actor", "key", name=op.f("pk_idempotency")),
    )
    with op.batch_alter_table("idempotency", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_idempotency_created_at"), ["created_at"], unique=False)

    op.create_table(
        "incident",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("title", sqlmodel.sql.sqltypes.AutoString(length=300), nullable=False),
        sa.Column("severity", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("state", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("problem_class", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("problem_class_by", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("assignee", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("tags", sa.JSON(), nullable=False),
        sa.Column("opened_by", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("opened_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("started_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("acknowledged_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("mitigated_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("resolved_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("changed_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("verdict", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("headline", sa.JSON(), nullable=True),
        sa.Column("targets_told", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("artifact_count", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_incident")),
    )
    with op.batch_alter_table("incident", schema=None) as batch_op:
        batch_op.create_index("ix_incident_list", ["rank", "state", "assignee", "id"], unique=False)
        batch_op.create_index(
            "ix_incident_state_changed", ["state", "changed_at", "id"], unique=False
        )

    op.create_table(
        "login_throttle",
        sa.Column("subject", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("last_failed_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("subject", name=op.f("pk_login_throttle")),
    )
    op.create_table(
        "setup_link",
        sa.Column("token_hash", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("created_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("expires_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("used_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("pk_setup_link")),
    )
    op.create_table(
        "target",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("name", sqlmodel.sql.sqltypes.AutoString(length=120), nullable=False),
        sa.Column("base_url", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("engine", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("token_sealed", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("admin_token_sealed", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("headers_sealed", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("ca_pem", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("clean", sa.Boolean(), nullable=False),
        sa.Column("watch", sa.Boolean(), nullable=False),
        sa.Column("coredump_when_wedged", sa.Boolean(), nullable=False),
        sa.Column("labels", sa.JSON(), nullable=False),
        sa.Column("created_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("updated_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("deleted_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("last_bundle_id", sa.Integer(), nullable=True),
        sa.Column("last_healthy_bundle_id", sa.Integer(), nullable=True),
        sa.Column("seen", sa.JSON(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_target")),
        sa.UniqueConstraint("name", name=op.f("uq_target_name")),
    )
    op.create_table(
        "worker",
        sa.Column("executor_id", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("started_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("heard_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("executor_id", name=op.f("pk_worker")),
    )
    with op.batch_alter_table("worker", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_worker_heard_at"), ["heard_at"], unique=False)

    op.create_table(
        "artifact",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("incident_id", sa.Integer(), nullable=True),
        sa.Column("kind", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("name", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("sha256", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("media_type", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("tier", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("taken_by", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("taken_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("taken_from", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("covers_from", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("covers_to", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("verified_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("damaged_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("purged_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("purged_by", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("purge_reason", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.ForeignKeyConstraint(
            ["incident_id"], ["incident.id"], name=op.f("fk_artifact_incident_id_incident")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_artifact")),
    )
    with op.batch_alter_table("artifact", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_artifact_incident_id"), ["incident_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_artifact_sha256"), ["sha256"], unique=False)

    op.create_table(
        "incident_target",
        sa.Column("incident_id", sa.Integer(), nullable=False),
        sa.Column("target_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["incident_id"], ["incident.id"], name=op.f("fk_incident_target_incident_id_incident")
        ),
        sa.ForeignKeyConstraint(
            ["target_id"], ["target.id"], name=op.f("fk_incident_target_target_id_target")
        ),
        sa.PrimaryKeyConstraint("incident_id", "target_id", name=op.f("pk_incident_target")),
    )
    with op.batch_alter_table("incident_target", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_incident_target_target_id"), ["target_id"], unique=False
        )

    op.create_table(
        "job",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("key", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("kind", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("incident_id", sa.Integer(), nullable=True),
        sa.Column("target_id", sa.Integer(), nullable=True),
        sa.Column("partition", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("arguments", sa.JSON(), nullable=False),
        sa.Column("intrusive", sa.Boolean(), nullable=False),
        sa.Column("state", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("requested_by", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("created_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("enqueued_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("started_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("acted_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("finished_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("cancel_requested_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("cancel_requested_by", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("worker", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=True),
        sa.Column("says", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("reason", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("result", sa.JSON(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["incident_id"], ["incident.id"], name=op.f("fk_job_incident_id_incident")
        ),
        sa.ForeignKeyConstraint(["target_id"], ["target.id"], name=op.f("fk_job_target_id_target")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job")),
        sa.UniqueConstraint("key", name=op.f("uq_job_key")),
    )
    with op.batch_alter_table("job", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_job_incident_id"), ["incident_id"], unique=False)
        batch_op.create_index("ix_job_outbox", ["state", "enqueued_at"], unique=False)
        batch_op.create_index("ix_job_target_state", ["target_id", "state"], unique=False)

    op.create_table(
        "report",
        sa.Column("incident_id", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("edits", sa.JSON(), nullable=False),
        sa.Column("updated_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("updated_by", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.ForeignKeyConstraint(
            ["incident_id"], ["incident.id"], name=op.f("fk_report_incident_id_incident")
        ),
        sa.PrimaryKeyConstraint("incident_id", name=op.f("pk_report")),
    )
    op.create_table(
        "share",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("incident_id", sa.Integer(), nullable=False),
        sa.Column("token_hash", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("tier", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("password_hash", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("snapshot", sa.JSON(), nullable=False),
        sa.Column("created_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("created_by", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("expires_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("revoked_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("opened_count", sa.Integer(), nullable=False),
        sa.Column("last_opened_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.ForeignKeyConstraint(
            ["incident_id"], ["incident.id"], name=op.f("fk_share_incident_id_incident")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_share")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_share_token_hash")),
    )
    with op.batch_alter_table("share", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_share_incident_id"), ["incident_id"], unique=False)

    op.create_table(
        "timeline_event",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("incident_id", sa.Integer(), nullable=False),
        sa.Column("kind", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.Column("actor", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("occurred_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("recorded_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("system", sa.Boolean(), nullable=False),
        sa.Column("pinned_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("pinned_by", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.ForeignKeyConstraint(
            ["incident_id"], ["incident.id"], name=op.f("fk_timeline_event_incident_id_incident")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_timeline_event")),
    )
    with op.batch_alter_table("timeline_event", schema=None) as batch_op:
        batch_op.create_index(
            "ix_timeline_event_incident", ["incident_id", "occurred_at", "id"], unique=False
        )

    op.create_table(
        "web_session",
        sa.Column("token_hash", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("created_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("expires_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["console_user.id"], name=op.f("fk_web_session_user_id_console_user")
        ),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("pk_web_session")),
    )
    with op.batch_alter_table("web_session", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_web_session_expires_at"), ["expires_at"], unique=False)
        batch_op.create_index(batch_op.f("ix_web_session_user_id"), ["user_id"], unique=False)

    op.create_table(
        "bundle",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("incident_id", sa.Integer(), nullable=True),
        sa.Column("target_id", sa.Integer(), nullable=True),
        sa.Column("job_id", sa.Integer(), nullable=True),
        sa.Column("base_url", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("state", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("probe", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("interval_seconds", sa.Float(), nullable=False),
        sa.Column("collected_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("finished_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("artifact_id", sa.Integer(), nullable=True),
        sa.Column("verdict", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("healthy", sa.Boolean(), nullable=False),
        sa.Column("version", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("summary", sa.JSON(), nullable=True),
        sa.Column("made_by", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.ForeignKeyConstraint(
            ["incident_id"], ["incident.id"], name=op.f("fk_bundle_incident_id_incident")
        ),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_bundle_job_id_job")),
        sa.ForeignKeyConstraint(
            ["target_id"], ["target.id"], name=op.f("fk_bundle_target_id_target")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_bundle")),
    )
    with op.batch_alter_table("bundle", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_bundle_incident_id"), ["incident_id"], unique=False)
        batch_op.create_index("ix_bundle_target", ["target_id", "collected_at"], unique=False)

    op.create_table(
        "capture",
        sa.Column("bundle_id", sa.Integer(), nullable=False),
        sa.Column("name", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("path", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("outcome", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("started_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("seconds", sa.Float(), nullable=True),
        sa.Column("size_bytes", sa.Integer(), nullable=False),
        sa.Column("sha256", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("headers", sa.JSON(), nullable=False),
        sa.Column("detail", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("redacted", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["bundle_id"], ["bundle.id"], name=op.f("fk_capture_bundle_id_bundle")
        ),
        sa.PrimaryKeyConstraint("bundle_id", "name", name=op.f("pk_capture")),
    )
    with op.batch_alter_table("capture", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_capture_sha256"), ["sha256"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("capture", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_capture_sha256"))

    op.drop_table("capture")
    with op.batch_alter_table("bundle", schema=None) as batch_op:
        batch_op.drop_index("ix_bundle_target")
        batch_op.drop_index(batch_op.f("ix_bundle_incident_id"))

    op.drop_table("bundle")
    with op.batch_alter_table("web_session", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_web_session_user_id"))
        batch_op.drop_index(batch_op.f("ix_web_session_expires_at"))

    op.drop_table("web_session")
    with op.batch_alter_table("timeline_event", schema=None) as batch_op:
        batch_op.drop_index("ix_timeline_event_incident")

    op.drop_table("timeline_event")
    with op.batch_alter_table("share", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_share_incident_id"))

    op.drop_table("share")
    op.drop_table("report")
    with op.batch_alter_table("job", schema=None) as batch_op:
        batch_op.drop_index("ix_job_target_state")
        batch_op.drop_index("ix_job_outbox")
        batch_op.drop_index(batch_op.f("ix_job_incident_id"))

    op.drop_table("job")
    with op.batch_alter_table("incident_target", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_incident_target_target_id"))

    op.drop_table("incident_target")
    with op.batch_alter_table("artifact", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_artifact_sha256"))
        batch_op.drop_index(batch_op.f("ix_artifact_incident_id"))

    op.drop_table("artifact")
    with op.batch_alter_table("worker", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_worker_heard_at"))

    op.drop_table("worker")
    op.drop_table("target")
    op.drop_table("setup_link")
    op.drop_table("login_throttle")
    with op.batch_alter_table("incident", schema=None) as batch_op:
        batch_op.drop_index("ix_incident_state_changed")
        batch_op.drop_index("ix_incident_list")

    op.drop_table("incident")
    with op.batch_alter_table("idempotency", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_idempotency_created_at"))

    op.drop_table("idempotency")
    op.drop_table("console_user")
    with op.batch_alter_table("audit_event", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_audit_event_at"))

    op.drop_table("audit_event")
    op.drop_table("api_token")
