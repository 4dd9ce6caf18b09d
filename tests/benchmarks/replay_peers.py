"""The public replay scripts, for comparison: they are run where they lie, never kept here.

``REPLAY_SCRIPTS`` names a folder with ``replay_request_dump.py`` of SGLang and
``replay_trusted_request_dump.py`` of the incident skill, and with ``requests`` installed into it.
Both unpickle classes of SGLang: a package with nothing but these stands in for it.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = {
    "replay_request_dump.py": "SGLang's script",
    "replay_trusted_request_dump.py": "the skill's script",
}
_STAND_IN = {
    "sglang/__init__.py": "",
    "sglang/bench_serving.py": "def set_ulimit():\n    pass\n",
    "sglang/utils.py": "import traceback\nget_exception_traceback = traceback.format_exc\n",
    "sglang/srt/__init__.py": "",
    "sglang/srt/managers/__init__.py": "",
    "sglang/srt/managers/io_struct.py": """\
from dataclasses import dataclass, field


@dataclass
class GenerateReqInput:
    text: object = None
    input_ids: object = None
    input_embeds: object = None
    image_data: object = None
    video_data: object = None
    audio_data: object = None
    sampling_params: object = None
    rid: object = None
    return_logprob: object = False
    logprob_start_len: object = -1
    top_logprobs_num: object = 0
    token_ids_logprob: object = None
    return_text_in_logprobs: bool = False
    stream: bool = False
    log_metrics: bool = True
    modalities: object = None
    session_params: object = None
    lora_path: object = None
    custom_logit_processor: object = None
    return_hidden_states: object = False
    bootstrap_host: object = None
    bootstrap_port: object = None
    bootstrap_room: object = None
    priority: object = None
""",
}
_DUMP = """\
import pickle, sys
from sglang.srt.managers.io_struct import GenerateReqInput
path, count, per_second = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
requests = []
for index in range(count):
    at = 1_764_500_000.0 + index / per_second
    request = GenerateReqInput(
        rid=f"r{index}",
        text="word " * 800,
        input_ids=list(range(20_000, 21_000)),
        sampling_params={"max_new_tokens": 16, "temperature": 0.0},
        stream=True,
    )
    requests.append((request, {"meta_info": {"completion_tokens": 16}}, at, at + 0.3))
with open(path, "wb") as file:
    pickle.dump({"server_args": None, "requests": requests}, file)
"""


def script(name: str) -> Path:
    """Where the script lies; skips the test where it does not."""
    path = Path(os.environ.get("REPLAY_SCRIPTS", "")) / name
    if not os.environ.get("REPLAY_SCRIPTS") or not path.is_file():
        pytest.skip(f"REPLAY_SCRIPTS names no folder with {name}")
    return path


def stand_in(folder: Path) -> dict[str, str]:
    """The environment in which the scripts find their classes."""
    for name, text in _STAND_IN.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return {**os.environ, "PYTHONPATH": str(folder)}


def dump(folder: Path, count: int, per_second: float) -> Path:
    """A dump of so many requests that arrived evenly."""
    path = folder / f"{count}.pkl"
    subprocess.run(
        [sys.executable, "-c", _DUMP, str(path), str(count), str(per_second)],
        env=stand_in(folder),
        check=True,
    )
    return path


def command(name: str, port: int, path: Path, *, parallel: int, speed: float) -> list[str]:
    return [
        sys.executable, str(script(name)), "--host", "127.0.0.1", "--port", str(port),
        "--input-file", str(path), "--parallel", str(parallel), "--speed", str(speed),
    ]  # fmt: skip
