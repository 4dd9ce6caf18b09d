"""What changed between two bundles of one target, most suspect first.

Version and image first, then launch flags, then effective settings, then runtime figures.
Values that differ between any two starts are folded away. Secrets are compared by their
fingerprints and only said to have changed.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from app.domain.answers import read_answers
from app.domain.capture import Bundle
from app.domain.figures import table
from app.domain.launch import flags_of
from app.domain.loads import read_loads
from app.domain.secret_names import is_secret_name
from app.domain.settings_order import LOW_SUSPICION, VOLATILE, rank_of, why_of

Entry = dict[str, Any]

SECTIONS = ("version", "launch flags", "settings", "runtime")
_MISSING = object()
_VERSION = (
    "version",
    "frontend",
    "model_path",
    "served_model_name",
    "weight_version",
    "revision",
    "load_format",
    "quantization",
    "dtype",
    "kv_cache_dtype",
)
# Told by /server_info beside the settings; they are figures of this run.
_RUNTIME = ("max_total_num_tokens", "max_req_input_len", "status")
_NO_SETTING = frozenset(("internal_states", "launch_command", "env_vars", *_RUNTIME, *_VERSION))
_LONGEST_VALUE = 300
_MASKED_CHANGE = "changed (masked)"


def diff(before: Bundle, after: Bundle) -> dict[str, Any]:
    """Changes from *before* to *after*: ``changes``, ``low_suspicion`` and ``volatile``.

    ``alike`` counts the values that are the same. ``not_compared`` names the sections that one
    of the bundles does not tell: their absence is no change.
    """
    old, new = _told(before), _told(after)
    # Two endpoints tell the identity: what one bundle did not tell has not gone away.
    both = old["version"].keys() & new["version"].keys()
    old["version"], new["version"] = (
        {name: told["version"][name] for name in both} for told in (old, new)
    )
    entries: list[Entry] = []
    alike, not_compared = 0, []
    for section in SECTIONS:
        if not old[section] or not new[section]:
            not_compared.append(section)
            continue
        changed = list(_changes(section, old[section], new[section]))
        seen = {_leaf(one["name"]) for one in entries}
        # A flag and the setting that it sets are one change: the flag is what somebody typed.
        entries += [one for one in changed if section != "settings" or one["name"] not in seen]
        alike += len(old[section].keys() | new[section].keys()) - len(changed)
    return {
        "before": {"collected_at": before.collected_at.isoformat(), "base_url": before.base_url},
        "after": {"collected_at": after.collected_at.isoformat(), "base_url": after.base_url},
        "alike": alike,
        "not_compared": not_compared,
        **_folded(entries),
    }


def _folded(entries: list[Entry]) -> dict[str, list[Entry]]:
    """Entries by how much they are worth reading, each list most suspect first."""
    entries = sorted(
        entries, key=lambda one: (SECTIONS.index(one["section"]), rank_of(one["name"]))
    )
    folded: dict[str, list[Entry]] = {"changes": [], "low_suspicion": [], "volatile": []}
    for entry in entries:
        folded[_fold(_leaf(entry["name"]))].append(entry)
    return folded


def _fold(setting: str) -> str:
    if setting in VOLATILE:
        return "volatile"
    return "low_suspicion" if setting in LOW_SUSPICION else "changes"


def _leaf(name: str) -> str:
    """The setting that a flag or a nested name is about: ``--nccl-port`` is ``nccl_port``."""
    return name.partition(".")[0].removeprefix("--").replace("-", "_")


def _told(bundle: Bundle) -> dict[str, dict[str, Any]]:
    """What *bundle* tells by section; empty where the endpoint was not answered."""
    answers = read_answers(bundle)
    named = answers.first("server_info", "get_server_info")
    info = table(named[1]) if named else {}
    live = answers.first("model_info", "get_model_info")
    model = table(live[1]) if live else {}
    identity = {name: info[name] for name in _VERSION if name in info}
    identity |= {name: model[name] for name in _VERSION if name in model}
    command = info.get("launch_command")
    settings = {name: value for name, value in info.items() if name not in _NO_SETTING}
    return {
        "version": identity,
        "launch flags": dict(flags_of(command)) if isinstance(command, str) else {},
        "settings": dict(_flat(settings)),
        "runtime": _runtime(answers.values, info),
    }


def _flat(settings: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """Settings by name; those inside an object get dotted names: ``cuda_graph_config.decode``."""
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            yield from ((f"{name}.{inner}", one) for inner, one in value.items())
        else:
            yield name, value


def _runtime(values: Mapping[str, Any], info: Mapping[str, Any]) -> dict[str, Any]:
    """Figures of the run that should be the same after a restart with the same settings."""
    told = {name: info[name] for name in _RUNTIME if name in info}
    named = next((name for name in ("loads_all_2", "loads_all_1") if name in values), None)
    loads = read_loads(named, values[named]) if named else None
    for rank in loads.ranks if loads else ():
        memory = table(rank.memory)
        told |= {f"DP{rank.dp_rank} {name}": memory[name] for name in memory}
        if rank.max_running is not None:
            told[f"DP{rank.dp_rank} max_running_requests"] = rank.max_running
    if loads and loads.ranks:
        told["DP ranks"] = len(loads.ranks)
    return told


def _changes(section: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterable[Entry]:
    for name in old.keys() | new.keys():
        before, after = old.get(name, _MISSING), new.get(name, _MISSING)
        if before == after:
            continue
        secret = is_secret_name(_leaf(name))
        yield {
            "section": section,
            "name": name,
            "before": _shown(before, secret=secret),
            "after": _MASKED_CHANGE if secret and after is not _MISSING else _shown(after),
            "why": why_of(section, name),
        }


def _shown(value: object, *, secret: bool = False) -> Any:  # noqa: ANN401 - plain JSON
    """A value for reading: "not set" where it is absent, never a secret, never long."""
    if value is _MISSING:
        return "not set"
    if secret:
        return "set (masked)" if value else value
    if isinstance(value, str | list | Mapping) and len(str(value)) > _LONGEST_VALUE:
        return f"{str(value)[:_LONGEST_VALUE]}…"
    return value
