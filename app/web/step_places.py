"""The page of the console where a next step is done, as a link for who may do it there."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from app.domain.places import Place
from app.web.dependencies import RANKS
from app.web.views.incidents import StepPlace


@dataclass(frozen=True, slots=True)
class _Where:
    """How a place is reached. *least*: the role it takes; *of*: what its route is about."""

    says: str
    route: str  # "": it stands on the incident's own page
    anchor: str = ""
    least: str = "operator"
    of: str = ""
    asks_target: bool = False  # it takes a registered target of the incident


_WHERE: Mapping[Place, _Where] = {
    "collect": _Where("Collect…", "", "#rung-bundle", asks_target=True),
    "ask once": _Where("Ask once…", "", "#confirm-probe", asks_target=True),
    "note": _Where("Add a note", "", "#note"),
    "record": _Where("Record…", "recording_form", of="incident_id", asks_target=True),
    "paste": _Where("Paste…", "payload_form", of="incident_id"),
    "ask for a replay": _Where("Replay…", "new_replay", of="incident_id"),
    "register": _Where("Register…", "new_target", least="admin"),
    "edit target": _Where("Edit the target", "edit_target", least="admin", of="target_id"),
    "replay": _Where("Open replay {}", "replay", "#then", least="reader", of="replay_id"),
}
_PLACES: Mapping[str, Place] = {one: one for one in get_args(Place)}


def place_of(
    step: Mapping[str, Any], about: Mapping[str, int | None], role: str, *, has_target: bool
) -> StepPlace | None:
    """Where *step* is done; None: not in the console, or not by *role*.

    *about*: ``incident_id`` and ``target_id``. A step that an older version kept names no place.
    """
    place = _PLACES.get(step.get("place") or "")
    if place is None:
        return None
    where = _WHERE[place]
    if RANKS.get(role, -1) < RANKS[where.least] or (where.asks_target and not has_target):
        return None
    number = {**about, "replay_id": step.get("place_id")}.get(where.of)
    if where.of and number is None:
        return None
    parameters = {where.of: number} if number is not None else {}
    return StepPlace(where.says.format(number), where.route, parameters, where.anchor)
