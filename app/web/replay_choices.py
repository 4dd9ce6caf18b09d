"""What the form that asks for a replay offers: files, targets with what stands against them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from sqlmodel import Session

from app.domain.claims import ProblemClass
from app.domain.dumps.choosing import read_choice
from app.domain.replay.options import DEFAULT_MOST_NEW_TOKENS, Mode, Options
from app.domain.replay.symptoms import Symptom, symptom_of
from app.errors import Malformed, NotFound
from app.store.dump_choices import count_chosen
from app.store.dumps import dump_of_artifact, foremost_dumps, get_dump
from app.store.evidence import get_artifact
from app.store.incidents import get_incident
from app.store.replay_guards import rival_of, to_confirm
from app.store.replays import Reference
from app.store.tables import Dump, Incident, Target
from app.store.targets import list_targets
from app.web.formats import visible
from app.web.views import Shell
from app.web.views.replay_form import (
    Given,
    NewReplayPage,
    OtherChoice,
    SourceTold,
    SymptomChoice,
    TargetChoice,
)

MOST_SOURCES = 20
MOST_COUNTED = 20_000  # requests of a dump in which a selection is counted
SYMPTOMS: Sequence[tuple[Symptom, str, str]] = (
    ("crash", "Crash", "the target goes away"),
    ("hang", "Hang", "it stops answering while it lives, or requests stay without an answer"),
    ("latency", "Latency", "answers take longer, on a server like the recorded one: say so below"),
    ("error", "Error", "it refuses or aborts what it could take"),
    ("output", "Output", "answers differ by more than batch size explains"),
)


class Asked(Protocol):
    """What the form holds so far; see ``replay_form.TypedReplay``."""

    dump: int | None
    artifact: int | None
    select: str
    target: int | None
    other: int | None
    symptom: Symptom | None
    reference: Reference
    mode: Mode
    trials: int
    request_seconds: float

    @property
    def options(self) -> Options: ...


def new_replay_page(
    session: Session, shell: Shell, incident_id: int, asked: Asked
) -> NewReplayPage:
    """The form with what was asked for so far; raises NotFound."""
    incident = get_incident(session, incident_id)
    source = _source(session, incident_id, asked)
    told, wrong = _counted(session, source, asked.select) if source else (None, None)
    choices = _targets(session, incident_id, asked)
    return NewReplayPage(
        shell=shell,
        incident_id=incident_id,
        source=told,
        sources=[] if told else _sources(session, incident_id),
        clean=[one for one in choices if one.level == "good"],
        others=[one for one in choices if one.level != "good"],
        side_b=[OtherChoice(one.id, one.name, one.says, one.id == asked.other) for one in choices],
        symptoms=_symptoms(incident, asked.symptom),
        given=_given(asked),
        wrong=wrong,
    )


def _source(session: Session, incident_id: int, asked: Asked) -> Dump | SourceTold | None:
    """The file that is named; None: none is."""
    if asked.dump is None and asked.artifact is None:
        return None
    dump = get_dump(session, asked.dump) if asked.dump is not None else None
    dump = dump or dump_of_artifact(session, asked.artifact or 0)
    if dump is not None:
        if dump.incident_id != incident_id:
            raise NotFound(f"Incident {incident_id} has no dump {dump.id}.")
        return dump
    artifact = get_artifact(session, asked.artifact or 0)
    if artifact.incident_id != incident_id:
        raise NotFound(f"Incident {incident_id} has no artifact {artifact.id}.")
    return SourceTold(None, artifact.id, visible(artifact.name), artifact.kind, None, None)


def _counted(
    session: Session, source: Dump | SourceTold, select: str
) -> tuple[SourceTold, str | None]:
    """The source with how many requests are meant, and why the selection means nothing."""
    if isinstance(source, SourceTold):
        return source, None
    assert source.id is not None
    total = source.requests_total
    if not select.strip():
        return _of_dump(source, total), None
    try:
        choice = read_choice(select)
    except Malformed as error:
        return _of_dump(source, None), error.detail
    if (total or 0) > MOST_COUNTED or choice is None:
        return _of_dump(source, None), None
    return _of_dump(source, count_chosen(session, source.id, choice).total), None


def _of_dump(dump: Dump, chosen: int | None) -> SourceTold:
    return SourceTold(
        dump.id,
        dump.artifact_id,
        visible(dump.name),
        visible(dump.says),
        dump.requests_total,
        chosen,
    )


def _sources(session: Session, incident_id: int) -> list[SourceTold]:
    """Files of the incident to choose from."""
    found = foremost_dumps(session, incident_id, limit=MOST_SOURCES)
    return [_of_dump(one, one.requests_total) for one in found if one.state == "ready"]


def _targets(session: Session, incident_id: int, asked: Asked) -> list[TargetChoice]:
    """The clean ones first; of those that were asked for stands so."""
    targets = list_targets(session)
    at_work = rival_of(session, targets) is not None  # most often not: then none is asked for alone
    told = [_target(session, incident_id, one, asked, at_work=at_work) for one in targets]
    ordered = sorted(told, key=lambda one: (one.refused is not None, one.level != "good", one.name))
    if asked.target is None and ordered and ordered[0].level == "good":
        first = ordered[0]
        ordered[0] = replace(first, chosen=True)
    return ordered


def _target(
    session: Session, incident_id: int, target: Target, asked: Asked, *, at_work: bool
) -> TargetChoice:
    refusal = to_confirm(session, incident_id, target)
    rival = rival_of(session, [target]) if at_work else None
    says = "clean"
    if refusal is not None:
        says = f"{refusal.says} Its name has to be typed before anything is sent."
    return TargetChoice(
        id=target.id or 0,
        name=visible(target.name),
        base_url=visible(target.base_url),
        level="good" if refusal is None else "warn",
        says=visible(says),
        seen=_seen(target),
        chosen=target.id == asked.target,
        refused=f"replay {rival.id} is at work on it" if rival else None,
    )


def _seen(target: Target) -> str:
    seen = target.seen or {}
    parts = [str(seen[name]) for name in ("verdict", "version", "model") if seen.get(name)]
    return visible(", ".join(parts)) or "never looked at"


def _symptoms(incident: Incident, chosen: Symptom | None) -> list[SymptomChoice]:
    known = incident.problem_class
    usual = symptom_of(ProblemClass(known) if known else None)
    return [
        SymptomChoice(value, name, says, value == (chosen or usual))
        for value, name, says in SYMPTOMS
    ]


def _given(asked: Asked) -> Given:
    options = asked.options
    window = options.window
    unusual = (
        options.sample < 1,
        options.window != Options().window,
        options.cut_gaps_to_seconds is not None,
        options.most_new_tokens != DEFAULT_MOST_NEW_TOKENS,
        options.ignore_eos,
        bool(options.allow),
        asked.reference != "faulty",
    )
    until, gaps = window.until_seconds, options.cut_gaps_to_seconds
    return Given(
        select=visible(asked.select),
        reference=asked.reference,
        mode=options.mode,
        speed=f"{options.speed:g}",
        parallel=options.parallel,
        trials=asked.trials,
        most_new_tokens=options.most_new_tokens,
        request_seconds=f"{asked.request_seconds:g}",
        ignore_eos=options.ignore_eos,
        same_setup=options.same_setup,
        from_seconds=f"{window.from_seconds:g}" if window.from_seconds else "",
        until_seconds="" if until is None else f"{until:g}",
        sample=f"{options.sample:g}",
        cut_gaps="" if gaps is None else f"{gaps:g}",
        media="media-addresses" in options.allow,
        code="custom-code" in options.allow,
        unusual=any(unusual),
    )
