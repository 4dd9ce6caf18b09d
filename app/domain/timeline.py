"""The story of an incident in words: each event as one sentence."""

from dataclasses import dataclass
from typing import assert_never

from app.domain import playbook as story
from app.domain.counting import counted

SYSTEM = (story.StepRequested, story.StepCancelled)  # folded on the page unless asked for

STEP_NAMES = {
    "CollectBundle": "Collecting a bundle",
    "IngestDump": "Reading a dump",
    "RecordRequests": "Recording requests",
    "ReplayRequests": "Replaying requests",
    "Diagnose stacks": "Taking stacks",
    "Diagnose native stacks": "Taking native stacks",
    "Diagnose coredump": "Triggering a CUDA coredump",
    "Diagnose nccl ras": "Asking NCCL RAS",
    "Diagnose host facts": "Reading host facts",
    "Diagnose server dumps": "Copying the dumps of the server",
    "Diagnose cpu profile": "Recording a CPU profile",
    "Diagnose flight recorder": "Dumping the NCCL flight recorder",
}
FACT_NAMES = {"problem_class": "Problem class"}


@dataclass(frozen=True, slots=True)
class Link:
    """A chip beside a sentence: what it names, and the thing that it opens."""

    noun: str  # "bundle", "artifact", "diagnostic", "dump", "replay", "job", "report"
    id: int

    @property
    def label(self) -> str:
        return f"{self.noun} {self.id}"

    @property
    def key(self) -> str:
        """The name of the number in a URL: ``bundle_id``."""
        return f"{self.noun}_id"


def told(event: story.Event) -> str:
    """One sentence for the timeline and the report."""
    match event:
        case story.IncidentOpened(title=title):
            return f"Opened: {title}"
        case story.StateChanged(after=after):
            return f"{after.capitalize()}."
        case story.FactsChanged(changes=changes):
            return " ".join(_change(name, *values) for name, values in changes.items())
        case story.NoteAdded(text=text):
            return text
        case story.BundleCollected():
            return _collected(event)
        case story.CoredumpTriggered() | story.DiagnosticTaken() | story.DiagnosticRefused():
            return _told_diagnostic(event)
        case (
            story.FindingMade(says=says)
            | story.DumpRead(says=says)
            | story.RecordingChanged(says=says)
            | story.ReplayEnded(says=says)
            | story.ReplayTargetDied(says=says)
        ):
            return says
        case _:
            return _told_work(event)


def _told_diagnostic(
    event: story.CoredumpTriggered | story.DiagnosticTaken | story.DiagnosticRefused,
) -> str:
    match event:
        case story.CoredumpTriggered(host=host, process=process):
            return f"Sent the coredump trigger to {process} on {host}; whether it dumps is watched."
        case story.DiagnosticTaken(says=says):
            return says
        case story.DiagnosticRefused(kind=kind, hosts=hosts, reason=reason):
            where = f" on {', '.join(hosts)}" if hosts else ""
            return f"{_step(f'Diagnose {kind}')}{where} gave nothing: {reason}"
        case _:
            assert_never(event)


def _told_work(  # noqa: C901  (one row for each kind of event)
    event: story.StepRequested
    | story.StepFailed
    | story.StepCancelled
    | story.ArtifactAttached
    | story.ArtifactPurged
    | story.ReportEdited
    | story.ReportShared
    | story.ShareRevoked,
) -> str:
    match event:
        case story.StepRequested(step=step, target=target):
            return f"{work(step, target)} was asked for."
        case story.StepFailed(step=step, reason=reason):
            return f"{_step(step)} failed: {reason}"
        case story.StepCancelled(step=step, by=by):
            return f"{_step(step)} was cancelled by {by}."
        case story.ArtifactAttached(name=name, kind=kind):
            return f"Attached {name}, {kind}."
        case story.ArtifactPurged(name=name, reason=reason):
            return f"Purged the bytes of {name}: {reason}"
        case story.ReportEdited(fields=fields):
            return f"Edited the report: {', '.join(fields)}."
        case story.ReportShared(tier=tier, expires_at=expires_at):
            return f"Shared the report at {tier}, until {expires_at}."
        case story.ShareRevoked(share_id=share_id):
            return f"Revoked share {share_id}."
        case _:
            assert_never(event)


def link(event: story.Event) -> Link | None:
    """The thing that an event made or speaks of, if there is one to open."""
    match event:
        case story.BundleCollected(bundle_id=bundle_id):
            return Link("bundle", bundle_id)
        case (
            story.ArtifactAttached(artifact_id=artifact_id)
            | story.ArtifactPurged(artifact_id=artifact_id)
        ):
            return Link("artifact", artifact_id)
        case (
            story.CoredumpTriggered(diagnostic_id=diagnostic_id)
            | story.DiagnosticTaken(diagnostic_id=diagnostic_id)
            | story.DiagnosticRefused(diagnostic_id=diagnostic_id)
            | story.FindingMade(diagnostic_id=diagnostic_id)
        ):
            return Link("diagnostic", diagnostic_id)
        case story.DumpRead(dump_id=dump_id):
            return Link("dump", dump_id)
        case story.ReplayEnded(replay_id=replay_id) | story.ReplayTargetDied(replay_id=replay_id):
            return Link("replay", replay_id)
        case (
            story.StepRequested(job_id=job_id)
            | story.StepFailed(job_id=job_id)
            | story.StepCancelled(job_id=job_id)
            | story.RecordingChanged(job_id=job_id)
        ):
            return Link("job", job_id)
        case _:
            return None


def work(step: str, target: str | None) -> str:
    """What a step does, and with which target: "Collecting a bundle from decode-a"."""
    if target is None:
        return _step(step)
    return f"{_step(step)} {'to' if step == 'ReplayRequests' else 'from'} {target}"


def _step(name: str) -> str:
    return STEP_NAMES.get(name, name)


def _collected(event: story.BundleCollected) -> str:
    asked = counted(event.asked, "endpoint")
    return (
        f"Bundle of {event.target}: {event.says} "
        f"{event.answered} of {asked} answered in {event.seconds:.1f} s."
    )


def _change(name: str, before: str | None, after: str | None) -> str:
    label = FACT_NAMES.get(name, name.capitalize())
    if not after:
        return f"{label} cleared, was {before}."
    return f"{label} {after}, was {before}." if before else f"{label} {after}."
