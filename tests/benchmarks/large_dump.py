"""A request dump of any size, written a request at a time: 8.3 kB each, as SGLang pickles them.

Every request has its attributes, sampling parameters, about 1 000 token ids as a tuple, 4 kB of
text, an answer and its times; protocol 4, in frames, with the keys in the memo.
"""

import io
import pickle
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

_MODULE = "sglang.srt.managers.io_struct"
_IDS = 1_000
_TEXT_CHARACTERS = 4_000
_BATCH = 1_000  # requests between MARK and APPENDS
_FRAME_REQUESTS = 8

_NONE = [
    "input_embeds",
    "image_data",
    "video_data",
    "audio_data",
    "mm_hashes",
    "video_config",
    "watermark",
    "token_ids_logprob",
    "modalities",
    "session_params",
    "lora_path",
    "lora_id",
    "custom_logit_processor",
    "positional_embed_overrides",
    "bootstrap_host",
    "bootstrap_port",
    "bootstrap_room",
    "bootstrap_pair_key",
    "decode_tp_size",
    "routed_dp_rank",
    "data_parallel_rank",
    "routing_key",
    "conversation_id",
    "max_thinking_tokens",
    "priority",
    "extra_key",
    "custom_labels",
    "external_trace_header",
    "received_time",
    "need_wait_for_mm_inputs",
    "num_items_assigned",
    "encoder_urls",
    "max_dynamic_patch",
    "min_dynamic_patch",
    "images_config",
    "mm_processor_kwargs",
    "cache_salt",
    "kv_hints",
    "session_id",
    "http_worker_ipc",
]
_FALSE = [
    "use_audio_in_video",
    "return_logprob",
    "return_sampling_mask",
    "return_text_in_logprobs",
    "return_hidden_states",
    "return_routed_experts",
    "return_indexer_topk",
    "background",
    "require_reasoning",
    "no_logs",
    "return_bytes",
    "return_entropy",
    "return_prompt_token_ids",
]
_USUAL: dict[str, object] = {
    **dict.fromkeys(_NONE),
    **dict.fromkeys(_FALSE, False),
    "logprob_start_len": -1,
    "top_logprobs_num": 0,
    "log_metrics": True,
    "is_single": True,
    "batch_size": 1,
    "parallel_sample_num": 1,
}


class GenerateReqInput:
    """Its pickle names SGLang's class, so that unpickling for real needs ``sglang_named()``."""

    def __init__(self, **attributes: object) -> None:
        self.__dict__.update(attributes)


GenerateReqInput.__module__ = _MODULE


@contextmanager
def sglang_named() -> Iterator[None]:
    """For as long as it lasts, the name of SGLang's class is that of the one above."""
    parts = _MODULE.split(".")
    names = [".".join(parts[: count + 1]) for count in range(len(parts))]
    sys.modules.update({name: ModuleType(name) for name in names})
    sys.modules[_MODULE].GenerateReqInput = GenerateReqInput  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for name in names:
            del sys.modules[name]


def write_dump(path: Path, requests: int) -> int:
    """Write a dump with that many requests to *path*; its size in bytes."""
    with sglang_named(), path.open("wb") as file:
        bodies = _bodies(random.Random(requests), requests)
        file.write(b"\x80\x04}\x94(\x8c\x0bserver_args\x94N\x8c\x08requests\x94]\x94")
        for start in range(0, requests, _BATCH):
            batch = range(start, min(start + _BATCH, requests))
            file.write(b"(")
            for first in batch[::_FRAME_REQUESTS]:
                many = min(_FRAME_REQUESTS, batch.stop - first)
                frame = b"".join(next(bodies) for _ in range(many))
                file.write(b"\x95" + len(frame).to_bytes(8, "little") + frame)
            file.write(b"e")
        file.write(b"u.")
        return file.tell()


def _bodies(chance: random.Random, requests: int) -> Iterator[bytes]:
    """The pickle of each request, without its header and STOP.

    The memo always is that of the first request: one request refers to nothing of the others but
    the keys, and nothing in it is there twice.
    """
    out = io.BytesIO()
    pickler = pickle.Pickler(out, 4)
    above = [object() for _ in range(4)]  # the dict, its two keys and the list have numbers
    memo = {id(one): (number, one) for number, one in enumerate(above)}
    for number in range(requests):
        pickler.memo = memo
        pickler.dump(_record(chance, number))
        if number == 0:
            memo = pickler.memo.copy()
        yield out.getvalue()[11:-1]  # PROTO and FRAME
        out.seek(0)
        out.truncate()


def _record(chance: random.Random, number: int) -> tuple[object, ...]:
    started_at = 1_796_000_000.0 + number / 8
    asked = chance.randrange(_IDS - 50, _IDS + 50)
    words = [f"{chance.getrandbits(28):07x}" for _ in range(_TEXT_CHARACTERS // 8)]
    attributes = {
        **_USUAL,
        "text": " ".join(words),
        "input_ids": tuple(chance.choices(range(152_000), k=asked)),
        "sampling_params": {"max_new_tokens": chance.randrange(1, 2048), "temperature": 0.7},
        "rid": f"{chance.getrandbits(128):032x}",
        "stream": number % 2 == 0,
    }
    meta = {
        "id": f"{chance.getrandbits(128):032x}",
        "finish_reason": {"type": "length", "length": 8},
        "prompt_tokens": asked,
        "completion_tokens": 8,
        "cached_tokens": 0,
        "weight_version": "default",
        "e2e_latency": chance.random(),
        "queue_time": chance.random(),
    }
    output = {"text": f"answer {number}", "output_ids": list(range(300, 308)), "meta_info": meta}
    request = GenerateReqInput(**attributes)
    return request, output, started_at, started_at + chance.random()
