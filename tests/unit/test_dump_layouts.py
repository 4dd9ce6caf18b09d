"""Every layout that SGLang has written since 0.4.6 gives the same requests."""

from typing import Any

import pytest

from tests.dump_layouts import (
    CREATED,
    EmbeddingReqInput,
    Foreign,
    ServerArgs,
    Struct,
    answer,
    asked,
    pickled,
    read,
    read_value,
    record,
)

RECORDS = [record(1), record(2, {}, stream=True)]
CONFIG = {"model_path": "/models/m", "tp_size": 8, "dp_size": 2, "api_key": "sk-FAKE-1", "port": 1}
COMMAND = "python -m sglang.launch_server --model-path /models/m --tp 4 --api-key sk-FAKE-1"


@pytest.mark.parametrize(
    ("value", "kind", "told"),
    [
        (RECORDS, "request dump", "list of requests"),
        ({"server_args": ServerArgs(**CONFIG), "requests": RECORDS}, "crash dump", "0.4.9"),
        ({"server_args": None, "requests": RECORDS[:1]}, "request dump", "None"),
        (
            {"server_args": ServerArgs(**CONFIG), "requests": RECORDS, "launch_command": COMMAND},
            "crash dump",
            "0.5.9",
        ),
        (
            {
                "server_args": Struct(CONFIG, {"_input_frozen": False}),
                "config_updates": [("tokenizer", {"load_format": "auto"})],
                "resolved_config": CONFIG,
                "requests": RECORDS,
            },
            "request dump",
            "0.5.17",
        ),
        (
            {
                "server_args": CONFIG,
                "config_updates": [],
                "resolved_config": None,
                "requests": RECORDS,
                "launch_command": COMMAND,
            },
            "crash dump",
            "a table, as with watermarks",
        ),
    ],
    ids=["list", "object", "none", "launch-command", "struct", "table"],
)
@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_each_layout_is_named_and_gives_its_requests(
    value: Any, kind: str, told: str, protocol: int
) -> None:
    requests, dump = read_value(value, protocol)

    assert dump.kind == kind
    assert told in dump.format
    assert [request.rid for request in requests] == [f"rid-{n + 1}" for n in range(len(requests))]
    assert [request.state for request in requests] == ["finished", "unfinished"][: len(requests)]


@pytest.mark.parametrize(
    "arguments",
    [
        ServerArgs(**CONFIG),
        Struct(CONFIG, {}),
        Struct(tuple(CONFIG.values())),
        CONFIG,
        None,
    ],
    ids=["object", "struct-of-fields", "struct-of-values", "table", "none"],
)
def test_the_server_is_told_whatever_shape_its_arguments_have(arguments: Any) -> None:
    _, dump = read_value({"server_args": arguments, "resolved_config": CONFIG, "requests": RECORDS})

    assert dump.server.model_path == "/models/m"
    assert dump.server.topology is not None
    assert (dump.server.topology["tp_size"], dump.server.topology["dp_size"]) == (8, 2)


def test_values_without_names_stay_unknown() -> None:
    _, dump = read_value({"server_args": Struct(("/models/m", 8)), "requests": RECORDS})

    assert dump.server.model_path is None
    assert dump.server.topology is None


def test_a_command_line_tells_the_server_where_nothing_else_does() -> None:
    _, dump = read_value({"server_args": None, "requests": RECORDS, "launch_command": COMMAND})

    assert dump.server.model_path == "/models/m"
    assert dump.server.topology is not None
    assert dump.server.topology["tp_size"] == 4


def test_secrets_of_the_server_become_marks_wherever_they_stand() -> None:
    _, dump = read_value(
        {
            "server_args": ServerArgs(**CONFIG),
            "resolved_config": CONFIG,
            "requests": RECORDS,
            "launch_command": COMMAND,
        }
    )

    assert "sk-FAKE-1" not in repr(dump)
    assert "--api-key ‹redacted:" in (dump.server.launch_command or "")
    assert set(dump.server.redacted) == {"/server_args/api_key", "/launch_command"}


@pytest.mark.parametrize(
    "between",
    [" ", "=", "\t", "\n", "\0", " " * 20],
    ids=["space", "equals", "tab", "line", "nul", "many"],
)
def test_a_key_of_the_launch_command_is_found_however_it_is_set_apart(between: str) -> None:
    command = f"python -m sglang.launch_server --admin-api-key{between}abcd1234 --tp 2"
    _, dump = read_value({"requests": RECORDS, "launch_command": command})

    assert "abcd1234" not in repr(dump)
    assert (dump.server.launch_command or "").endswith("› --tp 2")


def test_a_class_of_a_models_own_code_keeps_nobody_from_reading_the_requests() -> None:
    arguments = ServerArgs(model_path="/m", model_config=Foreign(hidden=64))
    requests, dump = read_value({"server_args": arguments, "requests": RECORDS})

    assert len(requests) == 2
    assert dump.blocked[1] == "transformers_modules.acme.configuration_acme.AcmeConfig"


def test_embeddings_and_batches_are_told_apart_from_generation() -> None:
    embedding = EmbeddingReqInput(rid=["e"], text=[["question", "answer"]])
    told = {"embedding": [0.1, 0.2], "meta_info": {"prompt_tokens": 5}}
    requests, _ = read_value(
        [
            (embedding, told, CREATED, CREATED + 1),
            record(2, text=["one", "two"], rid=["a", "b"], batch_size=2),
            record(3, input_ids=[[1, 2], [3]], text=None, output={}),
        ]
    )

    assert [one.endpoint for one in requests] == ["/encode", "/generate", "/generate"]
    assert requests[0].rid == "e"
    assert requests[0].state == "finished"
    assert [one.features for one in requests] == [("embedding",), ("batch",), ("batch",)]
    assert requests[2].prompt_tokens == 3
    assert requests[1].prompt_characters == 6


@pytest.mark.parametrize("kind", [list, tuple])
def test_token_ids_count_in_either_kind(kind: type) -> None:
    requests, _ = read_value([record(1, {}, text=None, input_ids=kind(range(900)))])

    assert requests[0].prompt_tokens == 900


def test_a_crash_dump_of_old_servers_is_told_by_its_name_when_all_had_finished() -> None:
    content = pickled({"server_args": None, "requests": RECORDS[:1]})

    assert read(content, "crash_dump_2026-01-01_00-00-00.pkl")[1].kind == "crash dump"
    unnamed = read(content)[1]
    assert unnamed.kind == "request dump"
    assert "looks the same" in unnamed.problems[0]


def test_a_plain_table_is_a_request_as_well() -> None:
    requests, _ = read_value([({"rid": "r", "text": "hello"}, answer(), CREATED, CREATED + 1)])

    assert requests[0].rid == "r"
    assert requests[0].prompt_characters == 5


def test_a_dump_without_requests_is_a_dump_of_none() -> None:
    requests, dump = read_value({"server_args": None, "requests": []})

    assert (requests, dump.kind, dump.problems) == ([], "request dump", ())


def test_what_a_dump_holds_is_what_unpickling_gives() -> None:
    ids = [7, 70_000, 3] * 400
    payload = asked(3, input_ids=ids, text="ü" * 3000, image_data=["https://x/y.png"])
    requests, _ = read_value([(payload, answer(), CREATED, CREATED + 2.25)])
    request = requests[0]

    assert list(request.payload) == list(payload.__dict__)
    assert list(request.payload["input_ids"]) == ids
    assert str(request.payload["text"]) == "ü" * 3000
    assert request.payload["image_data"] == ["https://x/y.png"]
    assert request.output["meta_info"] == answer()["meta_info"]
    assert list(request.output["output_ids"]) == [5, 6, 7]
    assert (request.started_at, request.finished_at) == (CREATED, CREATED + 2.25)
    assert request.prompt_characters == 3000
    assert request.sampling == {"temperature": 0.5, "max_new_tokens": 16}
