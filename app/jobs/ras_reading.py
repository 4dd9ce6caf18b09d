"""NCCL's answers are taken and told, and stacks of about the same time compared anew with them."""

from datetime import UTC, datetime

from app.domain.ras.told import told
from app.domain.ras_findings import ras_findings
from app.jobs.comparing import compare_anew
from app.jobs.host_looks import look_at_hosts
from app.jobs.looking import Look
from app.jobs.ras_answers import names_in, ras_of
from app.store import findings
from app.store.database import reading, writing
from app.store.near_looks import near_looks

RAS = "ras"  # in the answer: what was read
_STACKS = ("stacks", "native stacks")


def take_ras(look: Look) -> bool:
    """Ask every host, then tell what their answers say together; False: nothing is left."""
    look_at_hosts(look)
    after = Look.open(look.work)
    if any(one.artifact_id is not None for one in after.items):
        _conclude(after)
        _sharpen(after)
    return False


def _conclude(look: Look) -> None:
    document = told(ras_of(look, names_in(look)))
    conclusion, at = ras_findings(document), datetime.now(UTC)
    with writing(look.work.stores.engine) as session:
        findings.make_of_it(session, look.work.attempt, conclusion, at=at, **{RAS: document})


def _sharpen(look: Look) -> None:
    """One that is still taken compares by itself, with what is here by then."""
    with reading(look.work.stores.engine) as session:
        rows = near_looks(session, look.diagnostic, _STACKS)
    done = next((row for row in rows if row.state == "done"), None)
    if done is not None:
        compare_anew(look, done)
