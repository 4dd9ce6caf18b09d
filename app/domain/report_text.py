"""The report as Markdown and as plain text: the twins of an incident's page."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.domain.markdown import escaped, fenced, visible
from app.domain.report_entries import FIELDS, Entry
from app.domain.report_parts import rfc3339
from app.domain.same_fault import SAYS

_FACTS = ("severity", "state", "started_at", "opened_at", "resolved_at")


@dataclass(frozen=True, slots=True)
class Line:
    """One moment of the timeline, as the twins tell it."""

    occurred_at: datetime
    actor: str
    says: str


def as_markdown(document: Mapping[str, Any], timeline: Sequence[Line]) -> str:
    """The report and its timeline in Markdown; what targets and people wrote is escaped."""
    incident = document["incident"]
    parts = [f"# Incident {incident['number']}: {escaped(incident['title'])}", ""]
    parts += [f"- {name}: {told}" for name, told in _heading(document, escaped)]
    for name, title in FIELDS.items():
        parts += ["", f"## {title}", ""]
        parts += [f"- {_markdown(entry)}" for entry in document["fields"][name]] or ["- not known"]
    if told := _elsewhere(document, escaped):
        parts += ["", "## The same fault in other incidents", "", SAYS, ""]
        parts += [f"- {line}" for line in told]
    parts += ["", "## Inputs", "", *_inputs_table(document)]
    parts += ["", "## Timeline", ""]
    parts += [_moment(line) for line in timeline] or ["- nothing yet"]
    return "\n".join(parts) + "\n"


def as_text(document: Mapping[str, Any], timeline: Sequence[Line]) -> str:
    """The same in plain text, one entry a line, for mail and terminals."""
    incident = document["incident"]
    parts = [f"Incident {incident['number']}: {_plain(incident['title'])}", ""]
    parts += [f"{name + ':':<14} {told}" for name, told in _heading(document, _plain)]
    for name, title in FIELDS.items():
        parts += ["", title.upper()]
        parts += [f"  {_text(entry)}" for entry in document["fields"][name]] or ["  not known"]
    if lines := _elsewhere(document, _plain):
        parts += ["", "THE SAME FAULT IN OTHER INCIDENTS", f"  {SAYS}"]
        parts += [f"  {line}" for line in lines]
    parts += ["", "INPUTS"]
    parts += [f"  {_plain(one['artifact'])}: {_plain(one['path'])}" for one in document["inputs"]]
    parts += ["", "TIMELINE"]
    parts += [
        f"  {rfc3339(line.occurred_at)}  {_plain(line.actor)}: {_plain(line.says)}"
        for line in timeline
    ]
    return "\n".join(parts) + "\n"


def chip(evidence: Mapping[str, Any]) -> str:
    """How evidence is named: the artifact and the place in it."""
    artifact = str(evidence.get("artifact") or "").replace("/", " ", 1)
    return " ".join(part for part in (artifact, str(evidence.get("at") or "")) if part)


def _heading(document: Mapping[str, Any], safe: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    incident = document["incident"]
    for name in _FACTS:
        yield name.removesuffix("_at"), safe(str(incident[name] or "not known"))
    yield "targets", safe(", ".join(incident["targets"]) or "none")
    yield "report", f"revision {document['revision']}, {document['generated_at']}"


def _elsewhere(document: Mapping[str, Any], safe: Callable[[str], str]) -> list[str]:
    """One line for each incident that has the fingerprint of a coredump of this one."""
    return [
        f"incident {one['number']}, {safe(one['title'])}, opened {one['opened_at']}, "
        f"{safe(one['problem_class'] or 'class not decided')}, {one['state']}"
        + (f" {one['ended_at']}" if one["ended_at"] else ", not over")
        + f" (diagnostic {one['diagnostic_id']}, fingerprint {safe(fault['fingerprint'])})"
        for fault in document.get("same_faults") or ()
        for one in fault["incidents"]
    ]


def _markdown(entry: Entry) -> str:
    says = escaped(_said(entry))
    if strike := entry["struck"]:
        says = f"~~{says}~~ struck by {escaped(strike['by'])}: {escaped(strike['reason'])}"
    chips = " ".join(escaped(f"[{chip(one)}]") for one in entry["evidence"])
    return " ".join(
        part for part in (f"**{entry['status']}**", says, _more(entry, escaped), chips) if part
    )


def _text(entry: Entry) -> str:
    says = _plain(_said(entry))
    if strike := entry["struck"]:
        says = f"(struck by {_plain(strike['by'])}: {_plain(strike['reason'])}) {says}"
    chips = " ".join(f"[{_plain(chip(one))}]" for one in entry["evidence"])
    parts = (f"{entry['status']:<12}", says, _more(entry, _plain), chips)
    return " ".join(part for part in parts if part)


def _said(entry: Entry) -> str:
    return f"{entry['what']}: {entry['says']}" if entry["what"] else str(entry["says"])


def _more(entry: Entry, safe: Callable[[str], str]) -> str:
    told = [safe(entry["why"])] if entry["why"] else []
    told += [f"Risk: {safe(entry['risk'])}"] if entry["risk"] else []
    if entry["by"]:
        when = f", {entry['written_at']}" if entry["written_at"] else ""
        told.append(f"(written by {safe(entry['by'])}{when})")
    return " ".join(told)


def _inputs_table(document: Mapping[str, Any]) -> list[str]:
    if not document["inputs"]:
        return ["No evidence has been collected yet."]
    rows = [
        f"| {escaped(one['artifact'])} | {escaped(one['kind'])} | {escaped(one['path'])} "
        f"| {one['collected_at']} |"
        for one in document["inputs"]
    ]
    return ["| artifact | kind | path | collected |", "| --- | --- | --- | --- |", *rows]


def _moment(line: Line) -> str:
    head = f"- {rfc3339(line.occurred_at)} {escaped(line.actor)}:"
    if "\n" not in line.says.strip():
        return f"{head} {escaped(line.says)}"
    block = "\n".join(f"  {one}" for one in fenced(line.says.strip()).split("\n"))
    return f"{head}\n\n{block}\n"


def _plain(text: str) -> str:
    return " ".join(visible(text).split())
