"""What we send a target in confidence does not come back, however the target repeats it."""

import asyncio
import logging
from collections.abc import Iterator

import orjson
import pytest

from app.clients.target import TargetAddress, TargetClient
from app.domain.capture import Capture
from app.domain.endpoints import MODEL_INFO
from app.domain.redaction import keyed_fingerprint, redact_body
from app.errors import Rejected
from app.settings import Settings
from app.web import logs
from tests.integration.scripted_target import Behaviour, answers, scripted_target

FINGERPRINT = keyed_fingerprint(b"a key of this test")
TOKEN = "plain-token-of-ours"
ESCAPED = "".join(f"\\u{ord(char):04x}" for char in TOKEN)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(f'{{"a": ["{TOKEN}"]}}', id="plain"),
        pytest.param(f'{{"a": ["x {ESCAPED} y"]}}', id="in-escapes"),
        pytest.param(f'{{"{ESCAPED}": 1}}', id="as-a-name"),
        pytest.param(orjson.dumps({"a": f'{{"b": "{ESCAPED}"}}'}).decode(), id="in-json-in-json"),
    ],
)
def test_an_echo_is_masked_however_json_spells_it(body: str) -> None:
    safe, places = redact_body(body.encode(), fingerprint=FINGERPRINT, secrets=[TOKEN])

    assert TOKEN not in safe.decode()
    assert ESCAPED not in safe.decode()
    assert places


def asked(address: TargetAddress) -> Capture:
    async def run() -> Capture:
        async with TargetClient(address, fingerprint=FINGERPRINT) as client:
            return await client.ask(MODEL_INFO)

    return asyncio.run(run())


def test_half_of_an_echo_in_a_long_header_does_not_stay() -> None:
    echo = answers(headers=f"Server: {'x' * 190}{TOKEN}\r\n")
    with scripted_target({"/model_info": echo}) as target:
        told = asked(TargetAddress(target.base_url, TOKEN)).headers["server"]

    assert TOKEN[:6] not in told
    assert len(told) <= 200


def test_a_word_of_a_header_that_is_in_every_answer_destroys_no_evidence() -> None:
    said = b'{"colour": "blue", "one": 1, "secret": "shared-secret-1"}'
    headers = {"X-Route": "blue", "X-One": "1", "Authorization": "Basic shared-secret-1"}
    with scripted_target({"/model_info": answers(said, headers="Server: blue 1\r\n")}) as target:
        capture = asked(TargetAddress(target.base_url, headers=headers))

    assert orjson.loads(capture.body)["colour"] == "blue"
    assert orjson.loads(capture.body)["one"] == 1
    assert capture.headers["server"] == "blue 1"
    assert b"shared-secret-1" not in capture.body


@pytest.mark.parametrize(
    "name", ["Host", "host", "Content-Length", "Transfer-Encoding", "Expect", "Accept-Encoding"]
)
def test_the_headers_that_make_an_exchange_are_ours_alone(name: str) -> None:
    with pytest.raises(Rejected, match="own to send"):
        TargetAddress("http://127.0.0.1:1", headers={name: "x"})


def test_one_authorization_goes_out_and_the_token_wins() -> None:
    with scripted_target({"/model_info": answers()}) as target:
        asked(TargetAddress(target.base_url, TOKEN, headers={"authorization": "Basic abcdefgh"}))
    _, headers = target.asked[0]

    assert headers["authorization"] == f"Bearer {TOKEN}"


@pytest.mark.usefixtures("_logging_as_before")
def test_not_even_the_debug_log_tells_what_a_target_echoes(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    logs.configure(settings.model_copy(update={"log_level": "debug"}))
    echo: Behaviour = answers(headers=f"X-Echo: {TOKEN}\r\n")
    with scripted_target({"/model_info": echo}) as target:
        asked(TargetAddress(target.base_url, TOKEN))

    assert TOKEN not in capsys.readouterr().err


@pytest.fixture
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
