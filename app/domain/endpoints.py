"""Which endpoints make a bundle: why each is asked, what it costs, who may ask, since when.

Facts are of SGLang 0.4.6 to 0.5.23, read from its wheels and measured on 0.5.23. "Since" is
the first version seen to have a thing; between that and the one before nothing is claimed.
"""

from dataclasses import dataclass
from enum import StrEnum

KIB, MIB = 1024, 1024**2
# A deep probe of the Python ingress sleeps a second before it looks: a faster 200 is a flag.
DEEP_PROBE_SECONDS = 0.95


class Access(StrEnum):
    """Which credential an endpoint asks for."""

    OPEN = "open"  # exempt from the key since 0.4.6; none is sent
    NORMAL = "normal"  # the user key; the admin key is not accepted here
    ADMIN = "admin"  # the admin key, where the server has one


class Form(StrEnum):
    """What the body of a good answer is."""

    OBJECT = "object"  # a JSON object
    JSON = "json"  # any JSON
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One line of a bundle: asked at most once under this name."""

    name: str  # of the capture and of its file
    path: str
    why: str
    cost: str
    access: Access = Access.NORMAL
    form: Form = Form.OBJECT
    timeout_seconds: float = 5.0
    max_bytes: int = 4 * MIB
    replaces: str = ""  # asked only where the capture of that name was not offered


_LOADS_COST = "Reads a file under a lock; a scheduler frozen with it stops the whole HTTP process."
_PROBE_COST = "Makes the server generate one token; a failure turns /ready to 503."

READY = Endpoint(
    "ready", "/ready", "Does the HTTP process take requests?", "None.",
    Access.OPEN, Form.TEXT, max_bytes=64 * KIB,
)  # fmt: skip
MODEL_INFO = Endpoint("model_info", "/model_info", "Which model and weights?", "None.")
GET_MODEL_INFO = Endpoint(
    "get_model_info", "/get_model_info", "The same from servers up to 0.5.5.", "None.",
    replaces="model_info",
)  # fmt: skip
HICACHE = Endpoint(
    "hicache", "/hicache/storage-backend", "Is a KV cache store attached?", "None.", Access.ADMIN
)
METRICS_1 = Endpoint(
    "metrics_1", "/metrics", "Counters and latency, first scrape.", "None.",
    Access.OPEN, Form.TEXT, max_bytes=16 * MIB,
)  # fmt: skip
METRICS_2 = Endpoint(
    "metrics_2", "/metrics", "Counters and latency, second scrape.", "None.",
    Access.OPEN, Form.TEXT, max_bytes=16 * MIB,
)  # fmt: skip
SERVER_INFO = Endpoint(
    "server_info", "/server_info", "Version, launch flags, state of each DP rank.",
    "Waits for every scheduler, and later callers wait behind it.",
)  # fmt: skip
GET_SERVER_INFO = Endpoint(
    "get_server_info", "/get_server_info", "The same from servers up to 0.5.5.",
    "Waits for every scheduler, and later callers wait behind it.", replaces="server_info",
)  # fmt: skip
LOADS_ALL_1 = Endpoint(
    "loads_all_1", "/v1/loads?include=all", "What runs and waits on each DP rank.",
    _LOADS_COST, timeout_seconds=3.0,
)  # fmt: skip
LOADS_ALL_2 = Endpoint(
    "loads_all_2", "/v1/loads?include=all", "What runs and waits, a second time.",
    _LOADS_COST, timeout_seconds=3.0,
)  # fmt: skip
LOADS_CORE_1 = Endpoint(
    "loads_core_1", "/v1/loads?include=core,queues,disagg,spec",
    "The same without the sections that failed.", _LOADS_COST, timeout_seconds=3.0,
)  # fmt: skip
GET_LOAD = Endpoint(
    "get_load", "/get_load", "Load on servers from 0.4.9 to 0.5.17.", "Asks every scheduler.",
    form=Form.JSON, timeout_seconds=3.0, replaces="loads_all_1",
)  # fmt: skip
HEALTH = Endpoint(
    "health", "/health", "Does the server call itself healthy?", _PROBE_COST,
    Access.OPEN, Form.TEXT, max_bytes=64 * KIB,
)  # fmt: skip
HEALTH_GENERATE = Endpoint(
    "health_generate", "/health_generate", "Does a token come out?", _PROBE_COST,
    Access.OPEN, Form.TEXT, max_bytes=64 * KIB,
)  # fmt: skip

ENDPOINTS = (
    READY, MODEL_INFO, HICACHE, METRICS_1, GET_MODEL_INFO, SERVER_INFO, GET_SERVER_INFO,
    LOADS_ALL_1, LOADS_CORE_1, GET_LOAD, METRICS_2, LOADS_ALL_2, HEALTH, HEALTH_GENERATE,
)  # fmt: skip
BY_NAME = {endpoint.name: endpoint for endpoint in ENDPOINTS}


def file_name(name: str) -> str:
    """The file in a bundle's folder that holds the body of the capture called *name*."""
    endpoint = BY_NAME.get(name)
    return f"{name}.txt" if endpoint is None or endpoint.form is Form.TEXT else f"{name}.json"
