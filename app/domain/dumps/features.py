"""What sets a request apart from plain text in, text out: kebab-case words, in a fixed order."""

from collections.abc import Iterator, Mapping
from typing import Any

FEATURES = (
    "multimodal", "lora", "session", "structured", "logprobs", "batch", "embedding",
    "several-samples", "custom-processor", "bootstrap", "priority", "input-embeds",
    "hidden-states", "routed", "reasoning", "watermark", "background", "health-check",
)  # fmt: skip

# Any of these fields, when it is set, is the feature.
_FIELDS = (
    ("multimodal", ("image_data", "video_data", "audio_data")),
    ("lora", ("lora_path", "lora_id")),
    ("session", ("session_params", "session_id")),
    ("logprobs", ("return_logprob", "logprobs", "top_logprobs")),
    ("custom-processor", ("custom_logit_processor",)),
    ("bootstrap", ("bootstrap_room", "bootstrap_host")),
    ("input-embeds", ("input_embeds",)),
    ("hidden-states", ("return_hidden_states",)),
    ("reasoning", ("require_reasoning", "reasoning_effort")),
    ("watermark", ("watermark",)),
    ("background", ("background",)),
    ("structured", ("response_format", "tools")),
)
# A rank or a priority of 0 is one too.
_NUMBERS = (
    ("priority", ("priority",)),
    ("routed", ("routed_dp_rank", "data_parallel_rank", "disagg_prefill_dp_rank")),
)
_NAMES = {name: feature for feature, names in _FIELDS for name in names}
_NUMBER_NAMES = {name: feature for feature, names in _NUMBERS for name in names}
_NO_NUMBERS = (None,) * len(_NUMBER_NAMES)
_STRUCTURED = ("json_schema", "regex", "ebnf", "structural_tag")
_ORDER = {feature: place for place, feature in enumerate(FEATURES)}
_HEALTH_CHECK = "HEALTH_CHECK"  # how SGLang names the requests of its own health route


def features_of(payload: Mapping[str, Any], *, batch: bool, embedding: bool) -> tuple[str, ...]:
    """The features of a request with the fields *payload*."""
    get = payload.get
    found: set[str] = set()
    if any(map(get, _NAMES)):  # nearly always not; and map asks faster than a loop
        found.update(feature for name, feature in _NAMES.items() if is_set(get(name)))
    if tuple(map(get, _NUMBER_NAMES)) != _NO_NUMBERS:
        found.update(feature for name, feature in _NUMBER_NAMES.items() if get(name) is not None)
    found.update(_of_sampling(get("sampling_params") or payload))
    if batch:
        found.add("batch")
    if embedding:
        found.add("embedding")
    if isinstance(rid := get("rid"), str) and rid.startswith(_HEALTH_CHECK):
        found.add("health-check")
    return tuple(sorted(found, key=_ORDER.__getitem__)) if found else ()


def _of_sampling(sampling: object) -> Iterator[str]:
    if isinstance(sampling, dict):
        if any(map(sampling.get, _STRUCTURED)):
            yield "structured"
        if isinstance(samples := sampling.get("n"), int) and samples > 1:
            yield "several-samples"


def is_set(value: object) -> bool:
    """Whether a field says anything: it is not off, empty, or a batch's list of nothing."""
    if type(value) is list or type(value) is tuple:
        return any(one is not None and one is not False for one in value)
    return bool(value)
