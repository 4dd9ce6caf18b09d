"""Replays, their trials and how each request went."""

import sqlalchemy as sa
import sqlmodel
from alembic import op

revision = "0006"
down_revision = "0005"


def _key() -> "sa.Column[int]":
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    return sa.Column("id", number, autoincrement=True, nullable=False)


def upgrade() -> None:
    _replays()
    _trials()
    _outcomes()


def _replays() -> None:
    op.create_table(
        "replay",
        _key(),
        sa.Column("incident_id", sa.Integer(), nullable=False),
        sa.Column("artifact_id", sa.Integer(), nullable=False),
        sa.Column("dump_id", sa.Integer(), nullable=True),
        sa.Column("job_id", sa.Integer(), nullable=True),
        sa.Column("target_id", sa.Integer(), nullable=False),
        sa.Column("other_target_id", sa.Integer(), nullable=True),
        sa.Column("selection", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.Column("symptom", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("symptom_by", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("trials_wanted", sa.Integer(), nullable=False),
        sa.Column("request_seconds", sa.Float(), nullable=False),
        sa.Column("reference", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("state", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("says", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("asked_by", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("asked_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=False),
        sa.Column("confirmed", sa.JSON(), nullable=False),
        sa.Column("started_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("finished_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("planned", sa.Integer(), nullable=True),
        sa.Column("total", sa.Integer(), nullable=True),
        sa.Column("sent", sa.Integer(), nullable=False),
        sa.Column("completed", sa.Integer(), nullable=False),
        sa.Column("failed", sa.Integer(), nullable=False),
        sa.Column("plans", sa.JSON(), nullable=True),
        sa.Column("verdict", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("why", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("summary", sa.JSON(), nullable=True),
        sa.Column("found", sa.JSON(), nullable=True),
        sa.Column("outcomes_artifact_id", sa.Integer(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["artifact_id"], ["artifact.id"], name=op.f("fk_replay_artifact_id_artifact")
        ),
        sa.ForeignKeyConstraint(["dump_id"], ["dump.id"], name=op.f("fk_replay_dump_id_dump")),
        sa.ForeignKeyConstraint(
            ["incident_id"], ["incident.id"], name=op.f("fk_replay_incident_id_incident")
        ),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_replay_job_id_job")),
        sa.ForeignKeyConstraint(
            ["other_target_id"], ["target.id"], name=op.f("fk_replay_other_target_id_target")
        ),
        sa.ForeignKeyConstraint(
            ["outcomes_artifact_id"],
            ["artifact.id"],
            name=op.f("fk_replay_outcomes_artifact_id_artifact"),
        ),
        sa.ForeignKeyConstraint(
            ["target_id"], ["target.id"], name=op.f("fk_replay_target_id_target")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_replay")),
    )
    with op.batch_alter_table("replay", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_replay_dump_id"), ["dump_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_replay_incident_id"), ["incident_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_replay_job_id"), ["job_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_replay_target_id"), ["target_id"], unique=False)


def _trials() -> None:
    op.create_table(
        "replay_trial",
        _key(),
        sa.Column("replay_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("side", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("target_id", sa.Integer(), nullable=False),
        sa.Column("state", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("started_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("finished_at", sqlmodel.sql.sqltypes.UTCDateTime(), nullable=True),
        sa.Column("planned", sa.Integer(), nullable=True),
        sa.Column("sent", sa.Integer(), nullable=False),
        sa.Column("completed", sa.Integer(), nullable=False),
        sa.Column("failed", sa.Integer(), nullable=False),
        sa.Column("errors", sa.JSON(), nullable=False),
        sa.Column("reached", sa.Boolean(), nullable=False),
        sa.Column("after", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("resumed", sa.Integer(), nullable=False),
        sa.Column("bundle_before_id", sa.Integer(), nullable=True),
        sa.Column("bundle_during_id", sa.Integer(), nullable=True),
        sa.Column("bundle_after_id", sa.Integer(), nullable=True),
        sa.Column("strangers", sa.JSON(), nullable=True),
        sa.Column("died", sa.JSON(), nullable=True),
        sa.Column("recipe", sa.JSON(), nullable=True),
        sa.Column("lateness_ms", sa.JSON(), nullable=True),
        sa.Column("says", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.ForeignKeyConstraint(
            ["bundle_after_id"], ["bundle.id"], name=op.f("fk_replay_trial_bundle_after_id_bundle")
        ),
        sa.ForeignKeyConstraint(
            ["bundle_before_id"],
            ["bundle.id"],
            name=op.f("fk_replay_trial_bundle_before_id_bundle"),
        ),
        sa.ForeignKeyConstraint(
            ["bundle_during_id"],
            ["bundle.id"],
            name=op.f("fk_replay_trial_bundle_during_id_bundle"),
        ),
        sa.ForeignKeyConstraint(
            ["replay_id"], ["replay.id"], name=op.f("fk_replay_trial_replay_id_replay")
        ),
        sa.ForeignKeyConstraint(
            ["target_id"], ["target.id"], name=op.f("fk_replay_trial_target_id_target")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_replay_trial")),
        sa.UniqueConstraint("replay_id", "number", name=op.f("uq_replay_trial_replay_id_number")),
    )


def _outcomes() -> None:
    op.create_table(
        "replay_outcome",
        sa.Column("replay_id", sa.Integer(), nullable=False),
        sa.Column("trial", sa.Integer(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("state", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("error", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("rid", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("says", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("sent_at", sa.Float(), nullable=True),
        sa.Column("due_seconds", sa.Float(), nullable=False),
        sa.Column("lateness_ms", sa.Float(), nullable=True),
        sa.Column("lag_ms", sa.Float(), nullable=True),
        sa.Column("ttft_seconds", sa.Float(), nullable=True),
        sa.Column("e2e_seconds", sa.Float(), nullable=True),
        sa.Column("prompt_tokens", sa.BigInteger(), nullable=True),
        sa.Column("completion_tokens", sa.BigInteger(), nullable=True),
        sa.Column("cached_tokens", sa.BigInteger(), nullable=True),
        sa.Column("finish_reason", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("output_characters", sa.BigInteger(), nullable=True),
        sa.Column("output_hash", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("inter_token_p50_ms", sa.Float(), nullable=True),
        sa.Column("inter_token_p99_ms", sa.Float(), nullable=True),
        sa.Column("frames", sa.Integer(), nullable=False),
        sa.Column("compared_tokens", sa.Integer(), nullable=False),
        sa.Column("first_divergent_token", sa.Integer(), nullable=True),
        sa.Column("logprob_gap", sa.Float(), nullable=True),
        sa.Column("recorded_state", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("recorded_prompt_tokens", sa.BigInteger(), nullable=True),
        sa.Column("recorded_completion_tokens", sa.BigInteger(), nullable=True),
        sa.Column("recorded_cached_tokens", sa.BigInteger(), nullable=True),
        sa.Column("recorded_ttft_seconds", sa.Float(), nullable=True),
        sa.Column("recorded_e2e_seconds", sa.Float(), nullable=True),
        sa.Column("recorded_finish_reason", sqlmodel.sql.sqltypes.AutoString(), nullable=True),
        sa.Column("recorded_greedy", sa.Boolean(), nullable=True),
        sa.ForeignKeyConstraint(
            ["replay_id"], ["replay.id"], name=op.f("fk_replay_outcome_replay_id_replay")
        ),
        sa.PrimaryKeyConstraint("replay_id", "trial", "position", name=op.f("pk_replay_outcome")),
    )
    with op.batch_alter_table("replay_outcome", schema=None) as batch_op:
        batch_op.create_index(
            "ix_replay_outcome_error", ["replay_id", "error", "trial", "position"], unique=False
        )
        batch_op.create_index(
            "ix_replay_outcome_state", ["replay_id", "state", "trial", "position"], unique=False
        )


def downgrade() -> None:
    op.drop_table("replay_outcome")
    op.drop_table("replay_trial")
    op.drop_table("replay")
