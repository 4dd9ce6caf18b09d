"""API: reports and their shares: reading, editing, sharing and revoking."""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from app.domain.claims import ProblemClass
from app.domain.report_edits import Change, ChooseClass, Strike, Write
from app.errors import Rejected
from app.store import shares
from app.store.incidents import get_incident
from app.store.reports import edit, report_of
from app.store.shares import WEEK_SECONDS, ShareTerms
from app.store.tables import Share
from app.web.api.same_faults import SameFaultOut
from app.web.dependencies import AppStores, Now, Operator, Reader, Reading, Writing
from app.web.idempotency import IdempotentRoute
from app.web.shares import link_to

router = APIRouter(prefix="/api/v1", tags=["reports"], route_class=IdempotentRoute)

StatusWord = Literal["established", "supported", "hypothesis", "unknown"]


class EvidenceOut(BaseModel):
    """A place in an artifact: ``bundle 219/loads_all_1.json`` at a JSON pointer, line or series."""

    artifact: str
    at: str
    value: Any = None


class StrikeOut(BaseModel):
    reason: str
    by: str
    at: datetime


class ClaimOut(BaseModel):
    """One claim. ``by`` null: a rule says it; otherwise the person who wrote it."""

    model_config = ConfigDict(extra="allow")

    key: str
    id: str
    says: str
    status: StatusWord
    evidence: list[EvidenceOut]
    by: str | None
    written_at: datetime | None
    struck: StrikeOut | None


class CheckOut(BaseModel):
    what: str
    result: str
    evidence: list[EvidenceOut]


class StepOut(BaseModel):
    text: str
    why: str | None
    risk: str | None
    by: str | None


class InputOut(BaseModel):
    model_config = ConfigDict(extra="allow")

    artifact: str
    kind: str
    path: str
    collected_at: datetime


class ReportOut(BaseModel):
    """The living report. ``problem_class`` null: the evidence does not decide it."""

    incident: dict[str, Any]
    revision: int
    inputs: list[InputOut]
    why_bundle_and_dump_not_enough: str | None
    problem_class: ProblemClass | None
    checked: list[CheckOut]
    strongest_signal: ClaimOut | None
    best_guess: ClaimOut | None
    ruled_out: list[ClaimOut]
    next_steps: list[StepOut]
    production_risk: str
    claims: list[ClaimOut]
    facts: dict[str, Any]
    unrecognised: list[str]
    generated_at: datetime
    fields: dict[str, list[ClaimOut]]
    same_faults: list[SameFaultOut]


class ClaimIn(BaseModel):
    """A claim by hand. Evidence: ``bundle 219/loads_all_1 /0/num_running_reqs``, one each."""

    model_config = ConfigDict(extra="forbid")

    says: str
    status: StatusWord = "hypothesis"
    evidence: list[str] = []


class StrikeIn(BaseModel):
    """A claim to take back, by its key, and what speaks against it."""

    model_config = ConfigDict(extra="forbid")

    key: str
    reason: str


def _as_claims(value: object) -> object:
    """One claim, a bare sentence, or a list of either."""
    listed = value if isinstance(value, list) else [value]
    return [{"says": one} if isinstance(one, str) else one for one in listed]


Claims = Annotated[list[ClaimIn], BeforeValidator(_as_claims)]


class ReportPatch(BaseModel):
    """What to write; claims are added, none is replaced. All is applied, or nothing."""

    model_config = ConfigDict(extra="forbid")

    revision: int | None = Field(None, description="Of the report that was read; 409 if older.")
    problem_class: ProblemClass | None = None
    problem_class_reason: str = ""
    checked: Claims = []
    strongest_signal: Claims = []
    best_guess: Claims = []
    ruled_out: Claims = []
    next_steps: Claims = []
    production_risk: Claims = []
    strike: list[StrikeIn] = []

    def changes(self) -> Iterator[Change]:
        """The changes in the order of the fields; null as problem class is "not decided"."""
        if "problem_class" in self.model_fields_set:
            yield ChooseClass(self.problem_class, self.problem_class_reason)
        for name in (
            "checked",
            "strongest_signal",
            "best_guess",
            "ruled_out",
            "next_steps",
            "production_risk",
        ):
            for claim in getattr(self, name):
                yield Write(name, claim.says, claim.status, tuple(claim.evidence))
        for strike in self.strike:
            yield Strike(strike.key, strike.reason)


class ShareIn(BaseModel):
    """A link lives 7 days unless told otherwise, 5 minutes to 30 days. Tiers: T0 only."""

    model_config = ConfigDict(extra="forbid")

    expires_in_seconds: int = WEEK_SECONDS
    password: str | None = None
    tier: str = "T0"


class ShareMade(BaseModel):
    """The link, told this once: only its hash is kept."""

    id: int
    url: str
    tier: str
    expires_at: datetime


class ShareOut(BaseModel):
    """A share without its link, which only its maker was told."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    incident_id: int
    tier: str
    created_at: datetime
    created_by: str
    expires_at: datetime
    revoked_at: datetime | None
    opened_count: int
    last_opened_at: datetime | None


class SharesOut(BaseModel):
    """The shares of one incident, newest first."""

    items: list[ShareOut]
    next_cursor: None = None


@router.get("/incidents/{incident_id}/report")
def read_report(incident_id: int, session: Reading, actor: Reader, now: Now) -> ReportOut:
    """The report as the evidence and its editors have it now."""
    incident = get_incident(session, incident_id)
    return ReportOut.model_validate(report_of(session, incident, at=now))


@router.patch("/incidents/{incident_id}/report")
def edit_report(
    incident_id: int, body: ReportPatch, session: Writing, actor: Operator, now: Now
) -> ReportOut:
    """Write claims, strike claims, choose the problem class; answers the report as it is then."""
    incident = get_incident(session, incident_id)
    changes = list(body.changes())
    if not changes:
        raise Rejected("The request changes nothing.", fix="Send at least one field of the report.")
    edit(session, incident, changes, revision=body.revision, actor=actor, at=now)
    return ReportOut.model_validate(report_of(session, incident, at=now))


@router.get("/incidents/{incident_id}/shares")
def list_shares(incident_id: int, session: Reading, actor: Reader) -> SharesOut:
    get_incident(session, incident_id)
    listed = shares.shares_of(session, incident_id)
    return SharesOut(items=[ShareOut.model_validate(one) for one in listed])


@router.get("/incidents/{incident_id}/shares/preview")
def preview_share(
    incident_id: int, session: Reading, stores: AppStores, actor: Reader, now: Now
) -> dict[str, Any]:
    """The T0 copy that a share made now would freeze: nothing else leaves the house."""
    return shares.copy_of(session, get_incident(session, incident_id), stores.vault, at=now)


@router.post("/incidents/{incident_id}/shares", status_code=201)
def make_share(  # noqa: PLR0913  (what it needs is asked for by name)
    request: Request,
    incident_id: int,
    *,
    body: ShareIn,
    session: Writing,
    stores: AppStores,
    actor: Operator,
    now: Now,
) -> ShareMade:
    """Freeze a T0 copy of the report under a secret link."""
    incident = get_incident(session, incident_id)
    terms = ShareTerms(body.expires_in_seconds, body.tier, body.password)
    share, token = shares.create(session, incident, terms, vault=stores.vault, actor=actor, at=now)
    return _made(share, link_to(request, stores, token))


@router.delete("/shares/{share_id}", status_code=204)
def revoke_share(share_id: int, session: Writing, actor: Operator, now: Now) -> Response:
    """Close the link for good. Once closed it stays so; asking again changes nothing."""
    shares.revoke(session, shares.get_share(session, share_id), actor=actor, at=now)
    return Response(status_code=204)


def _made(share: Share, url: str) -> ShareMade:
    assert share.id is not None
    return ShareMade(id=share.id, url=url, tier=share.tier, expires_at=share.expires_at)
