import json
import time
from pathlib import Path

import orjson
import pytest

from app.domain.redaction import keyed_fingerprint, redact_body, redact_json, redact_text
from app.domain.secret_names import is_secret_name
from app.domain.user_content import user_content

FINGERPRINT = keyed_fingerprint(b"a key of this test")
CASE = Path(__file__).parents[1] / "data" / "collected-with-secrets"
SECRETS = """
    AAAA1111 BBBB2222 CCCC3333 DDDD4444 EEEE5555 FFFF6666 GGGG7777 HHHH8888 IIII9999
    """.split()  # noqa: SIM905  (a word list reads best as words)


def text(body: str) -> str:
    return redact_text(body, fingerprint=FINGERPRINT)[0]


@pytest.mark.parametrize(
    "name",
    """
    api_key admin_api_key apiKey API-KEY ssl_keyfile_password hf_token HF_TOKEN
    token accessToken auth_tokens secret_key client_secret AWS_SECRET_ACCESS_KEY
    access_key private_key passphrase Authorization watermark_key watermark_key_b
    watermark_config cookie
    """.split(),  # noqa: SIM905  (a word list reads best as words),
)
def test_a_secret_is_known_by_its_name(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    """
    max_total_tokens token_usage num_tokens tokenizer_path
    bucket_time_to_first_token eos_token speculative_token_map cache_key sort_key
    prompt_tokens_details key NCCL_DEBUG ssl_keyfile ssl_certfile token_capacity
    tokenizer_metrics_custom_labels_header max_tokens routing_key
    watermark_context_window api_key_file image_token start_token
    """.split(),  # noqa: SIM905  (a word list reads best as words),
)
def test_what_only_sounds_like_a_secret_is_none(name: str) -> None:
    assert not is_secret_name(name)


def test_every_nested_copy_is_redacted_and_pointed_at() -> None:
    body = {
        "api_key": "sk-user-111",
        "max_total_tokens": 16384,
        "internal_states": [{"api_key": "sk-user-111", "admin_api_key": None}],
        "launch_command": "launch_server --api-key sk-user-111 --admin-api-key=adm --tp 2",
        "argv": ["--api-key", "sk-user-111", "--tp", "2"],
        "extra": '{"access_key":"AKIAEXAMPLE","bucket":"b"}',
        "proxy": "http://user:pw@proxy:3128/a?token=t1&b=2",
    }
    value, pointers = redact_json(body, fingerprint=FINGERPRINT)
    assert "sk-user-111" not in json.dumps(value)
    assert value["max_total_tokens"] == 16384
    assert value["internal_states"][0]["admin_api_key"] is None
    assert value["launch_command"].endswith("--tp 2")
    assert value["argv"][2:] == ["--tp", "2"]
    assert json.loads(value["extra"])["bucket"] == "b"
    assert value["proxy"].startswith("http://user:‹redacted:")
    assert value["proxy"].endswith("&b=2")
    assert pointers == (
        "/api_key",
        "/internal_states/0/api_key",
        "/launch_command",
        "/argv/1",
        "/extra",
        "/proxy",
    )


def test_the_same_secret_has_the_same_mark_under_one_key_only() -> None:
    mark, other = FINGERPRINT("secret"), keyed_fingerprint(b"another")("secret")
    assert FINGERPRINT("secret") == mark != other
    assert FINGERPRINT("secret2") != mark
    assert len(mark) == 8


def test_names_with_a_slash_keep_a_pointer_that_resolves() -> None:
    _, pointers = redact_json({"a/b~c": {"password": "x1"}}, fingerprint=FINGERPRINT)
    assert pointers == ("/a~1b~0c/password",)


def test_marks_of_the_server_and_of_ours_are_left_alone() -> None:
    once, _ = redact_json({"api_key": "s3", "watermark_key": "<redacted>"}, fingerprint=FINGERPRINT)
    twice, pointers = redact_json(once, fingerprint=FINGERPRINT)
    assert once == twice
    assert once["watermark_key"] == "<redacted>"
    assert pointers == ()


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        pytest.param("Authorization: Bearer abc.def-123", "Authorization: Bearer ‹", id="header"),
        pytest.param("curl -H 'Bearer 0123456789abcdef'", "curl -H 'Bearer ‹", id="bearer"),
        pytest.param("HF_TOKEN=hf_EEEE5555", "HF_TOKEN=‹", id="environ"),
        pytest.param("DB_PASSWORD=a,b;c d", "DB_PASSWORD=‹", id="environ-to-the-end"),
        pytest.param("--api-key=a&b;c --tp 2", "› --tp 2", id="flag-with-odd-characters"),
        pytest.param("['--api-key', 'sk1', '--tp']", "['--api-key', '‹", id="printed-argv"),
        pytest.param("using hf_abcdefgh12345678 here", "using ‹", id="hugging-face"),
        pytest.param("key sk-proj-a1b2c3d4e5", "key ‹", id="openai"),
        pytest.param("id AKIAIOSFODNN7EXAMPLE", "id ‹", id="aws"),
        pytest.param("ServerArgs(api_key='x9', tp=2)", "tp=2)", id="repr"),
        pytest.param('{\\"secret_key\\":\\"DDDD\\"}', '\\"secret_key\\":\\"‹', id="json-in-json"),
        pytest.param('{"api_key": "cut-off-he', '{"api_key": "‹', id="cut-off"),
        pytest.param("redis://:pw@host:1/0", "redis://:‹", id="password-only"),
        pytest.param("https://tok3n@host/", "https://‹", id="user-only"),
    ],
)
def test_a_secret_in_a_line_is_masked_and_the_rest_stays(line: str, kept: str) -> None:
    safe = text(line)
    assert kept in safe
    assert safe.count("‹redacted:") == 1


@pytest.mark.parametrize(
    "line",
    [
        "NCCL_DEBUG=INFO",
        "prompt_token_ids_len=70730, max_tokens=268",
        "Restart with --admin-api-key to enable.",
        "api_key=None, admin_api_key=null",
        'sglang:generation_tokens_total{model_name="m"} 12.0',
        "import hf_transformers from hf_overrides",
        "task-12345678 on disk-99999999",
        "Bearer authentication is off",
        "see https://docs.example/a@b",
    ],
)
def test_a_line_without_secrets_stays_as_it_is(line: str) -> None:
    assert text(line) == line


def test_a_body_without_secrets_comes_back_byte_for_byte() -> None:
    body = b'{ "a" : 12345678901234567890123, "b": "\xc3\xa9" }'
    assert redact_body(body, fingerprint=FINGERPRINT) == (body, ())


def test_our_own_credential_is_masked_wherever_it_is_echoed() -> None:
    safe, places = redact_body(
        b'{"message":"no user for plain-word"}', fingerprint=FINGERPRINT, secrets=["plain-word"]
    )
    assert b"plain-word" not in safe
    assert orjson.loads(safe)["message"].startswith("no user for ‹redacted:")
    assert places


def test_json_in_strings_in_json_does_not_exhaust_the_stack() -> None:
    text = '"api_key=s1"'
    for _ in range(9):
        text = "[" * 30 + orjson.dumps(text).decode() + "]" * 30
    safe, places = redact_body(text.encode(), fingerprint=FINGERPRINT)
    assert b"s1" not in safe
    assert len(places) == 1


def test_places_that_are_told_are_bounded_and_all_are_masked() -> None:
    safe, places = redact_body(b"api_key=s3cret\n" * 5000, fingerprint=FINGERPRINT)
    assert b"s3cret" not in safe
    assert len(places) == 1000


def test_a_body_that_is_no_utf_8_is_redacted_as_text() -> None:
    safe, places = redact_body(b"\xff\xfe\nHF_TOKEN=abc1\n\xff", fingerprint=FINGERPRINT)
    assert b"abc1" not in safe
    assert safe.startswith(b"\xff\xfe\n")
    assert places == ("line 2",)


@pytest.mark.parametrize(
    "unit",
    [
        "api_key=",
        "://",
        "://a@",
        "token ",
        "Bearer ",
        "sk-",
        "--api-key ",
        "?a",
        '"',
        "eyJa.",
        "'\\",
    ],
)
def test_redaction_takes_no_longer_than_the_text_is_long(unit: str) -> None:
    short, long = unit * 10_000 + " key=", unit * 40_000 + " key="
    text(short)
    taken = [min(_cpu_seconds(body) for _ in range(3)) for body in (short, long)]
    assert taken[1] < 0.05 + 12 * taken[0]


def _cpu_seconds(body: str) -> float:
    start = time.process_time()
    text(body)
    return time.process_time() - start


def test_nine_secrets_of_a_collected_folder_are_masked_and_their_names_kept() -> None:
    files = {file.name: file.read_bytes() for file in CASE.iterdir()}
    collected = ("server_info.json", "ps.txt", "environ.txt", "engine_crash.log", "url.txt")
    safe = b"\n".join(redact_body(files[name], fingerprint=FINGERPRINT)[0] for name in collected)
    told = safe.decode()
    assert not [secret for secret in SECRETS if secret in told]
    for kept in ("api_key", "--admin-api-key", "HF_TOKEN=", "NCCL_DEBUG=INFO", "70730", "ops:"):
        assert kept in told
    assert user_content(files["engine_crash.log"].decode()) == ("line 1",)


def test_a_schema_is_content_of_a_request_and_a_length_is_not() -> None:
    assert user_content("json={'properties': {'patientName': {}}}") == ("line 1",)
    assert user_content("a\nprompt='hello'") == ("line 2",)
    assert user_content("prompt_token_ids_len=70730 max_tokens=268 temperature=0.1") == ()
