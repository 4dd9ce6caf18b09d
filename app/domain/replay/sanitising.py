"""A recorded request as a target can be given it: nothing of the old server, nothing that acts.

Everything taken out, changed or added is told, field by field.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.domain.dumps.features import is_set
from app.domain.dumps.recorded import RecordedRequest
from app.domain.dumps.redacted import Plain, unsayable
from app.domain.pickled.values import ints_of
from app.domain.replay.accepted import (
    BOOKKEEPING,
    CUSTOM_CODE,
    ENCODE,
    FORBIDDEN,
    GENERATE,
    NOTHING_SAID,
    OF_SHAPES,
    UNSEEN,
    USUALLY_ON,
    knows,
)
from app.domain.replay.media import FIELDS, Media
from app.domain.replay.options import Options, TargetFacts, Version, release
from app.domain.replay.sampling import Sampling
from app.domain.replay.synthetic import is_shape, prompt_of

_PROMPTS = ("text", "input_ids", "input_embeds")
_NATIVE: Mapping[str, Mapping[str, Version]] = {"/generate": GENERATE, "/encode": ENCODE}
# What a shape (T0) tells of a request by its features alone, and what becomes of it.
_NOT_KEPT = {
    "lora": "lora_path: not kept, sent without",
    "session": "session_params: not kept, sent without",
    "structured": "sampling_params: its schema or grammar was not kept, sent without",
    "batch": "a batch: sent as one prompt",
    "custom-processor": "custom_logit_processor: not kept, sent without",
    "input-embeds": "input_embeds: not kept, token ids took their place",
}
_UNSEEN = UNSEEN | {NOTHING_SAID}
# What is told of changes that the model sees nothing of, or first when it is to stop.
_ABOUT_FORM = re.compile(
    r"\w+: the prompt is there twice|\w+: an object became a plain URL|\S+ignore_eos: set"
    r"|\S+: (?:capped at \d+|pinned to the recorded length|the length is pinned)"
)


@dataclass(frozen=True, slots=True)
class Sanitised:
    """What goes to *path*; *stripped* tells what was done to it."""

    path: str
    body: dict[str, Any]
    stripped: tuple[str, ...]

    @property
    def asks_the_same(self) -> bool:
        """Whether the same tokens should come, as far as neither answer has ended."""
        return all(one in _UNSEEN or _ABOUT_FORM.fullmatch(one) for one in self.stripped)


@dataclass(frozen=True, slots=True)
class Unfit:
    """Why a request cannot be sent, as the end of the sentence "It is left out: …"."""

    why: str


def sanitised(request: RecordedRequest, options: Options, target: TargetFacts) -> Sanitised | Unfit:
    """*request* as *target* accepts it, or why it cannot be sent there."""
    if why := _not_there(request, target):
        return Unfit(why)
    work = _Work(request, options, target)
    native = _NATIVE.get(request.endpoint)
    unfit = work.openai() if native is None else work.native(native)
    unfit = unfit or work.media.unfit
    if unfit:
        return Unfit(unfit)
    return Sanitised(request.endpoint, work.body, tuple(work.told))


def _not_there(request: RecordedRequest, target: TargetFacts) -> str | None:
    if "health-check" in request.features:
        return "it is a health probe that the server sent itself"
    if request.endpoint == "/encode" and target.is_generation:
        return "it is for an embedding, and the target generates"
    if request.endpoint != "/encode" and target.is_generation is False:
        return "it asks for text, and the target makes embeddings"
    if target.frontend == "rust" and request.endpoint == "/encode":
        return "the Rust frontend has no /encode"
    if target.frontend == "rust" and "lora" in request.features:
        return "the Rust frontend takes no adapters"
    return None


class _Work:
    """One request on its way to a body."""

    def __init__(self, request: RecordedRequest, options: Options, target: TargetFacts) -> None:
        self.body: dict[str, Any] = {}
        self.told: dict[str, None] = {}
        self.media = Media(addresses_allowed="media-addresses" in options.allow)
        self._request, self._options, self._target = request, options, target
        self._version = release(target.version)
        self._code_allowed = "custom-code" in options.allow

    def native(self, accepted: Mapping[str, Version]) -> str | None:
        """Fill the body for a route of SGLang's own; returns why that is not possible."""
        for name, value in self._payload().items():
            if name in BOOKKEEPING or name in OF_SHAPES:
                continue
            if name == "sampling_params" and accepted is ENCODE:
                continue  # an embedding has none, though records of it carry a default
            since = accepted.get(name)
            if value is None or since is None or (name in CUSTOM_CODE and not self._code_allowed):
                self._strip(name, value)
            elif not knows(since, self._version):
                self._tell(f"{name}: {self._target.version} does not know it")
            else:
                self._put(name, value)
        if accepted is GENERATE:
            self._sampling_of_native()
        return self._prompt()

    def openai(self) -> str | None:
        """Fill the body for an OpenAI route, whose parameters stand beside the prompt."""
        for name, value in self._payload().items():
            if name in BOOKKEEPING or name in OF_SHAPES:
                continue
            if name == "sampling_params":
                continue  # reading made it of what stands beside it
            is_code = name in CUSTOM_CODE and not self._code_allowed
            if value is None or name in FORBIDDEN or is_code:
                self._strip(name, value)
            else:
                self._put(name, value)
        sampling = Sampling(self._options, self._version, self._request)
        self.body = sampling.beside_prompt(self.body)
        self._tell(*sampling.told)
        if self.body.get("messages") or self.body.get("prompt"):
            return None
        if not is_shape(self._request.payload):
            return "its prompt is not in the file"
        if self._request.endpoint != "/v1/completions":
            return f"only its shape was kept, and {self._request.endpoint} takes words"
        return self._synthetic("prompt")

    def _payload(self) -> Mapping[str, Any]:
        """With the name that OpenAI's embeddings have for the prompt in SGLang's words."""
        payload = self._request.payload
        if self._request.endpoint != "/encode" or "input" not in payload:
            return payload
        name = "text" if ints_of(payload["input"]) is None else "input_ids"
        self._tell(f"input: sent as {name} to /encode")
        return {name: payload["input"], **{k: v for k, v in payload.items() if k != "input"}}

    def _put(self, name: str, value: object) -> None:
        """Take a field into the body, with its media made harmless."""
        ids = ints_of(value)  # most of a dump is token ids: not looked at one by one
        plain = Plain().of(value) if ids is None else list(ids)
        if name in FIELDS:
            plain = self.media.of(name, plain)
        elif name == "messages" and isinstance(plain, list):
            plain = self.media.messages(plain)
        if ids is None and name not in (*FIELDS, "sampling_params") and unsayable(plain):
            self._tell(f"{name}: JSON cannot say it")
            return
        self._tell(*self.media.told)
        self.body[name] = plain

    def _sampling_of_native(self) -> None:
        sampling = Sampling(self._options, self._version, self._request)
        self.body["sampling_params"] = sampling.of(self.body.get("sampling_params"))
        self._tell(*sampling.told)

    def _prompt(self) -> str | None:
        """Exactly one prompt: the ids, which say exactly what was asked, before the text."""
        if is_shape(self._request.payload) and not any(map(self.body.get, _PROMPTS)):
            return self._synthetic("input_ids")
        if self.body.get("input_embeds") is None:
            self.body.pop("input_embeds", None)
        spare = "input_ids" if any(map(self.body.get, FIELDS)) else "text"
        if self.body.get("text") and self.body.get("input_ids"):
            self._tell(f"{spare}: the prompt is there twice")
            del self.body[spare]
        if not any(_is_prompt(name, self.body.get(name)) for name in _PROMPTS):
            return "its prompt is not in the file, or is an object that cannot be sent"
        return None

    def _synthetic(self, field: str) -> str | None:
        payload = self._request.payload
        ids = prompt_of(payload, self._request.index, self._target.vocab_size)
        if ids is None:
            return "only its shape was kept, and that does not tell how long its prompt was"
        self.body[field] = ids
        self._tell(f"{field}: made up, as only the shape was kept")
        if payload.get("prompt_tokens") is None:
            self._tell(f"{field}: as long as its characters let guess")
        media = (f"{name}: not kept, sent without" for name in FIELDS if f"{name}_count" in payload)
        self._tell(*media, *(_NOT_KEPT[one] for one in self._request.features if one in _NOT_KEPT))
        return None

    def _strip(self, name: str, value: object) -> None:
        """Tell of a field that is left out; all that say no more than that they are off at once."""
        is_number = isinstance(value, int) and not isinstance(value, bool)
        says = name not in USUALLY_ON and (is_number or is_set(value))
        self._tell(name if says else NOTHING_SAID)

    def _tell(self, *told: str) -> None:
        self.told.update(dict.fromkeys(told))


def _is_prompt(name: str, value: Any) -> bool:  # noqa: ANN401
    """Whether *value* is what SGLang takes in the field: text, ids, embeddings, or several."""
    if isinstance(value, list) and value:
        inner = value[0]
        if isinstance(inner, list) and inner:
            inner = inner[0]
        if isinstance(inner, list) and inner:
            inner = inner[0]
        return isinstance(inner, str if name == "text" else int | float)
    return name == "text" and isinstance(value, str) and bool(value)
