"""Checking the connection to a target: one cheap GET that no scheduler is asked for."""

from datetime import datetime

from app.clients.target import TargetAddress, TargetClient
from app.domain.capture import Capture, Outcome
from app.domain.endpoints import GET_MODEL_INFO, MODEL_INFO
from app.store import database, targets
from app.store.stores import Stores
from app.store.vault import Vault
from app.web import formats

_WHY = {
    Outcome.REFUSED: "Nothing listens at this address.",
    Outcome.TIMEOUT: "Nothing came back in time.",
    Outcome.NO_ACCESS: "It answers, and the token is missing or not accepted.",
    Outcome.NOT_OFFERED: "Something answers, but it does not offer /model_info: not SGLang, or the "
    "path prefix is wrong.",
    Outcome.REJECTED: "It answers with something that is not a model's description.",
}


async def check_connection(address: TargetAddress, vault: Vault) -> Capture:
    """What ``/model_info`` said, or its older name where that is not offered."""
    async with TargetClient(address, fingerprint=vault.fingerprint) as client:
        capture = await client.ask(MODEL_INFO)
        if capture.outcome is Outcome.NOT_OFFERED:
            return await client.ask(GET_MODEL_INFO)
        return capture


def told(capture: Capture) -> str:
    """How the check ended, in words; it says nothing about health."""
    seconds = formats.span(capture.seconds)
    if capture.ok:
        return f"Answers in {seconds}. Whether it serves was not asked."
    return f"{_WHY.get(capture.outcome, '')} {capture.detail}".strip() or (
        f"Answered {capture.status} in {seconds}."
    )


async def check_and_note(stores: Stores, target_id: int, at: datetime) -> Capture:
    """Check the connection of a target and remember how that ended; raises NotFound."""
    with database.reading(stores.engine) as session:
        target = targets.get_target(session, target_id)
        address = targets.address(target, stores.vault, stores.settings)
    capture = await check_connection(address, stores.vault)
    with database.writing(stores.engine) as session:
        targets.note_check(session, target_id, told(capture), answers=capture.ok, at=at)
    return capture
