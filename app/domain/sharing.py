"""What of a report leaves the house at tier T0: the incident's shape, and nothing to find it by.

The shared copy is built from fields that are known to be safe, not by searching the report
for secrets. Targets are called "target A", people "operator", sentences pass word by word
(``plain_words``) after ``redaction`` has read them, notes stay inside.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from app.domain import playbook as story
from app.domain.claims import ProblemClass, Status
from app.domain.counting import counted
from app.domain.plain_words import PlainWords
from app.domain.redaction import Fingerprint, redact_text
from app.domain.report_entries import FIELDS
from app.domain.report_parts import rfc3339

Told = Callable[[str], str]

T0 = "T0"
STATES = ("open", "acknowledged", "mitigated", "resolved")

_MODEL = re.compile(r"[A-Za-z0-9][\w.+-]{0,79}")
_VERSION = re.compile(r"v?\d{1,3}(?:\.\d{1,3}){1,2}(?:\.?(?:post|rc|dev)\d{1,3})?")
_ARTIFACT = re.compile(r"(bundle|artifact|job) (\d{1,12})(?:/([\w.-]+))?")
_CAPTURE = re.compile(
    r"(ready|ping|health|health_generate|model_info|server_info|get_server_info|loads"
    r"|metrics|hicache|get_load)(?:_(?:all|core))?(?:_[12])?(?:\.(?:json|txt|prom))?"
)
_SERIES = re.compile(r"sglang:[a-z_]{1,60}")
_SIZES = ("tp_size", "dp_size", "pp_size", "ep_size")
_HALVES = ("prefill", "decode")
_VERDICTS = (
    "healthy", "busy", "wedged", "false green", "false red", "starting", "gone", "unknown",
)  # fmt: skip


@dataclass(frozen=True)
class Names:
    """What a shared copy must not carry in words: who acts, what is asked, and where it is."""

    targets: tuple[str, ...]
    people: tuple[str, ...]
    base_urls: tuple[str, ...]

    def plain(self, fingerprint: Fingerprint, models: Iterable[str]) -> PlainWords:
        """Reads sentences so that targets are letters and people are operators."""
        renamed = {name: name for name in models}
        renamed |= dict.fromkeys((one for one in self.people if one), "operator")
        renamed |= {name: f"target {letter(at)}" for at, name in enumerate(self.targets) if name}
        return PlainWords(fingerprint, renamed, self._parts_of_addresses())

    def _parts_of_addresses(self) -> frozenset[str]:
        """Words of host names and paths; one letter tells nothing, and "a" is in every sentence."""
        split = [urlsplit(url) for url in self.base_urls]
        words = [word for url in split for word in re.split(r"[./:-]", f"{url.netloc}{url.path}")]
        return frozenset(word.lower() for word in words if len(word) > 1 and not word.isdecimal())


def letter(position: int) -> str:
    """A, B … Z, A2, B2 …"""
    return chr(ord("A") + position % 26) + (str(position // 26 + 1) if position >= 26 else "")


def shared_copy(
    document: Mapping[str, Any],
    moments: Sequence[tuple[datetime, story.Event]],
    names: Names,
    *,
    fingerprint: Fingerprint,
    at: datetime,
) -> dict[str, Any]:
    """The T0 copy of a report and its timeline, frozen at *at*."""
    bundles = (document.get("facts") or {}).get("bundles") or {}
    models = [name for facts in bundles.values() if (name := _model(facts))]
    told = _scrubbed(names.plain(fingerprint, models))
    return {
        "tier": T0,
        "frozen_at": rfc3339(at),
        "revision": int(document["revision"]),
        "incident": _incident(document["incident"], told, names),
        "servers": [_server(name, facts) for name, facts in bundles.items()],
        "problem_class": _one_of(document["problem_class"], tuple(ProblemClass)),
        "fields": {
            name: [_entry(one, told) for one in document["fields"][name]] for name in FIELDS
        },
        "timeline": [
            {"at": rfc3339(when), "says": says}
            for when, event in moments
            if (says := told_outside(event))
        ],
    }


def _scrubbed(words: PlainWords) -> Told:
    """Redaction first, for a key made of plain letters; then word by word."""

    def told(text: str) -> str:
        safe, _ = redact_text(text, fingerprint=words.fingerprint)
        return words.told(safe)

    return told


def told_outside(event: story.Event) -> str | None:
    """One sentence of fixed words and figures; what people and targets said stays inside.

    None for what is about sharing itself.
    """
    match event:
        case story.ReportShared() | story.ShareRevoked():
            return None
        case story.IncidentOpened():
            return "The incident was opened."
        case story.StateChanged(after=after) if after in STATES:
            return f"{after.capitalize()}."
        case story.NoteAdded():
            return "A note was written. Notes stay inside."
        case story.BundleCollected(answered=answered, asked=asked, seconds=seconds):
            answers = f"{answered} of {counted(asked, 'endpoint')} answered in {seconds:.1f} s"
            return f"Bundle collected: {answers}."
        case story.ArtifactAttached(size_bytes=size_bytes):
            return f"A file of {size_bytes} bytes was attached."
        case story.ReportEdited(revision=revision):
            return f"The report was edited, revision {revision}."
        case _:
            return _OUTSIDE[type(event).__name__]


_OUTSIDE = {
    "StateChanged": "The state changed.",
    "FactsChanged": "Facts of the incident were set.",
    "StepRequested": "A step was asked for.",
    "StepFailed": "A step failed.",
    "StepCancelled": "A step was cancelled.",
    "ArtifactPurged": "The bytes of a file were purged.",
    "CoredumpTriggered": "A coredump was triggered.",
    "DiagnosticTaken": "Evidence was taken on a host.",
    "DiagnosticRefused": "Evidence was asked for on a host and not given.",
    "FindingMade": "Stacks or coredumps showed something.",
    "DumpRead": "A file of recorded requests was read.",
    "RecordingChanged": "Recording of requests at a target was switched, or may have been.",
    "ReplayEnded": "Recorded requests were replayed.",
    "ReplayTargetDied": "The target of a replay went away in the middle of it.",
}


def _incident(incident: Mapping[str, Any], told: Told, names: Names) -> dict[str, Any]:
    return {
        "number": int(incident["number"]),
        "title": told(str(incident["title"])),
        "severity": _one_of(incident["severity"], ("sev1", "sev2", "sev3", "sev4")),
        "state": _one_of(incident["state"], STATES),
        "targets": [f"target {letter(at)}" for at in range(len(names.targets))],
        **{name: incident[name] for name in ("opened_at", "started_at", "resolved_at")},
    }


def _server(bundle: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    topology = facts.get("topology") or {}
    health = facts.get("health") or {}
    version = str(facts.get("version") or "")
    return {
        "bundle": _artifact(bundle),
        "model": _model(facts),
        "version": version if _VERSION.fullmatch(version) else None,
        "verdict": _one_of(health.get("verdict"), _VERDICTS),
        "half": _one_of(topology.get("disaggregation_mode"), _HALVES),
        **{name: _count(topology.get(name)) for name in _SIZES},
    }


def _model(facts: Mapping[str, Any]) -> str | None:
    """The model's own name: of a path only the last part, of which a host tells nothing."""
    model = facts.get("model") or {}
    told = model.get("served_model_name") or model.get("model_path") or model.get("name") or ""
    name = str(told).rstrip("/").rpartition("/")[2]
    return name if _MODEL.fullmatch(name) else None


def _entry(entry: Mapping[str, Any], told: Told) -> dict[str, Any]:
    return {
        "what": told(str(entry["what"])) if entry["what"] else None,
        "says": told(str(entry["says"])),
        "telling": bool(entry["telling"]),
        "why": told(str(entry["why"])) if entry["why"] else None,
        "status": _one_of(entry["status"], tuple(Status)) or "unknown",
        "by": "operator" if entry["by"] else None,
        "struck": "operator" if entry["struck"] else None,
        "evidence": [chip for one in entry["evidence"] if (chip := _chip(one))],
    }


def _chip(evidence: Mapping[str, Any]) -> str | None:
    """The artifact's name; of the place in it no more than an engine's series, and a figure."""
    artifact = _artifact(str(evidence.get("artifact") or ""))
    if artifact is None:
        return None
    series = _SERIES.match(str(evidence.get("at") or ""))
    value = evidence.get("value")
    figure = isinstance(value, int | float) and not isinstance(value, bool)
    return " ".join(
        [artifact, *([series[0]] if series else []), *([f"= {value:g}"] if figure else [])]
    )


def _artifact(text: str) -> str | None:
    match = _ARTIFACT.fullmatch(text)
    if match is None:
        return None
    capture = match[3] if match[3] and _CAPTURE.fullmatch(match[3]) else None
    return " ".join(part for part in (match[1], match[2], capture) if part)


def _one_of(value: object, allowed: Sequence[str]) -> str | None:
    return next((str(one) for one in allowed if one == value), None)


def _count(value: object) -> int | None:
    known = isinstance(value, int) and not isinstance(value, bool) and 0 < value < 100_000
    return int(str(value)) if known else None
