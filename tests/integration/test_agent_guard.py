"""Nobody has the agent do anything without its key, and nothing twice."""

import json
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from app.agent.main import create_agent
from app.agent.parts import Agent
from app.protocol import signing
from app.protocol.signing import Signed

INFO = "/agent/v1/info"
STACKS = "/agent/v1/stacks"
OTHER_KEY = bytes(32)


@dataclass(frozen=True)
class Request:
    """A request before and after it is signed."""

    signed: Signed
    key: bytes
    method: str = "GET"
    target: str = INFO
    body: bytes = b""
    signature: str | None = None  # of another request

    def headers(self) -> dict[str, str]:
        made = self.signed.headers(self.key, self.method, self.target, self.body)
        return made | ({signing.SIGNATURE: self.signature} if self.signature else {})


def _request(
    agent: Agent, *, method: str = "GET", target: str = INFO, body: bytes = b""
) -> Request:
    signed = Signed(agent.agent_id, int(time.time()), secrets.token_hex(16), "ada")
    return Request(signed, agent.key, method, target, body)


def _send(client: TestClient, request: Request, **headers: str) -> httpx.Response:
    answer: httpx.Response = client.request(
        request.method,
        request.target,
        content=request.body,
        headers=request.headers() | headers | {"content-type": "application/json"},
    )
    return answer


def _ledger(agent: Agent) -> list[dict[str, object]]:
    path = agent.state.folder / "ledger.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def app(tmp_path: Path) -> FastAPI:
    return create_agent(tmp_path / "agent")


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, client=("127.0.0.1", 50_000)) as client:
        yield client


@pytest.fixture
def agent(app: FastAPI) -> Agent:
    agent: Agent = app.state.agent
    return agent


def test_a_signed_request_is_answered_and_the_answer_is_signed(
    client: TestClient, agent: Agent
) -> None:
    request = _request(agent)
    answer = _send(client, request)

    assert answer.status_code == 200
    assert answer.json()["agent_id"] == agent.agent_id
    right = signing.answer_signature(agent.key, request.signed.nonce, 200, answer.content)
    assert answer.headers[signing.SIGNATURE] == right


def test_a_refusal_of_the_application_is_signed_too(client: TestClient, agent: Agent) -> None:
    request = _request(agent, target=f"/agent/v1/artifacts/{'0' * 32}")
    answer = _send(client, request)

    assert answer.status_code == 404
    assert answer.json()["error"] == "not-found"
    right = signing.answer_signature(agent.key, request.signed.nonce, 404, answer.content)
    assert answer.headers[signing.SIGNATURE] == right


@pytest.mark.parametrize("error", [RuntimeError("tops3cret"), KeyError("tops3cret")], ids=repr)
def test_a_mistake_of_ours_is_a_signed_answer_without_its_inside(
    app: FastAPI,
    client: TestClient,
    agent: Agent,
    error: Exception,
    capsys: pytest.CaptureFixture[str],
) -> None:
    @app.get("/agent/v1/mistaken")
    def mistaken() -> None:
        raise error

    request = _request(agent, target="/agent/v1/mistaken")
    answer = _send(client, request)

    assert answer.status_code == 500
    assert answer.json()["detail"] == "The agent made a mistake and could not finish this."
    assert "tops3cret" not in answer.text
    right = signing.answer_signature(agent.key, request.signed.nonce, 500, answer.content)
    assert answer.headers[signing.SIGNATURE] == right
    assert "tops3cret" in capsys.readouterr().out, "the log has it"


def _late(request: Request) -> Request:
    return replace(request, signed=replace(request.signed, time=int(time.time()) - 90))


def _early(request: Request) -> Request:
    return replace(request, signed=replace(request.signed, time=int(time.time()) + 90))


def _foreign(request: Request) -> Request:
    return replace(request, signed=replace(request.signed, agent_id="0" * 16))


def _other_key(request: Request) -> Request:
    return replace(request, key=OTHER_KEY)


def _signature_of(request: Request) -> str:
    return request.headers()[signing.SIGNATURE]


def _other_method(request: Request) -> Request:
    return replace(request, signature=_signature_of(replace(request, method="POST")))


def _other_path(request: Request) -> Request:
    return replace(request, signature=_signature_of(replace(request, target="/agent/v1/ras")))


def _other_query(request: Request) -> Request:
    return replace(request, signature=_signature_of(request), target=f"{INFO}?a=1")


def _other_body(request: Request) -> Request:
    return replace(request, signature=_signature_of(request), body=b"{}")


def _other_actor(request: Request) -> Request:
    eve = replace(request.signed, actor="eve")
    return replace(request, signature=_signature_of(request), signed=eve)


def _other_nonce(request: Request) -> Request:
    fresh = replace(request.signed, nonce=secrets.token_hex(16))
    return replace(request, signature=_signature_of(request), signed=fresh)


def _newer_time(request: Request) -> Request:
    later = replace(request.signed, time=request.signed.time + 1)
    return replace(request, signature=_signature_of(request), signed=later)


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        pytest.param(_late, "clock-off", id="late"),
        pytest.param(_early, "clock-off", id="early"),
        pytest.param(_foreign, "agent-unknown", id="for-another-agent"),
        pytest.param(_other_key, "signature-wrong", id="wrong-key"),
        pytest.param(_other_method, "signature-wrong", id="method-altered"),
        pytest.param(_other_path, "signature-wrong", id="path-altered"),
        pytest.param(_other_query, "signature-wrong", id="query-altered"),
        pytest.param(_other_body, "signature-wrong", id="body-altered"),
        pytest.param(_other_actor, "signature-wrong", id="actor-altered"),
        pytest.param(_other_nonce, "signature-wrong", id="nonce-altered"),
        pytest.param(_newer_time, "signature-wrong", id="time-altered"),
    ],
)
def test_what_is_not_as_it_was_signed_is_refused(
    client: TestClient, agent: Agent, spoil: Callable[[Request], Request], code: str
) -> None:
    request = spoil(_request(agent))
    answer = _send(client, request)

    assert answer.status_code == 401
    assert answer.json()["error"] == code
    assert signing.SIGNATURE not in answer.headers
    right = signing.request_signature(
        agent.key, request.signed, request.method, request.target, request.body
    )
    assert right not in answer.text
    assert [line["result"] for line in _ledger(agent)] == [code]


@pytest.mark.parametrize("missing", [signing.AGENT, signing.TIME, signing.NONCE, signing.SIGNATURE])
def test_a_request_without_one_of_its_parts_is_refused(
    client: TestClient, agent: Agent, missing: str
) -> None:
    headers = _request(agent).headers()
    del headers[missing]
    answer = client.get(INFO, headers=headers)

    assert (answer.status_code, answer.json()["error"]) == (401, "signature-missing")


@pytest.mark.parametrize("time_told", ["", "-5", "1e9", "٣", "9" * 4000])
def test_a_time_that_is_none_is_refused(client: TestClient, agent: Agent, time_told: str) -> None:
    headers = {**_request(agent).headers(), signing.TIME: time_told}
    raw = {name: value.encode() for name, value in headers.items()}

    assert client.get(INFO, headers=raw).status_code == 401


def test_a_replayed_request_is_refused(client: TestClient, agent: Agent) -> None:
    request = _request(agent)

    assert _send(client, request).status_code == 200
    again = _send(client, request)
    assert (again.status_code, again.json()["error"]) == (401, "replayed")


def test_a_request_is_not_taken_again_after_a_restart(tmp_path: Path) -> None:
    first = create_agent(tmp_path / "agent")
    request = _request(first.state.agent)
    with TestClient(first) as client:
        assert _send(client, request).status_code == 200

    second = create_agent(tmp_path / "agent")
    with TestClient(second) as client:
        again = _send(client, request)
        fresh = _send(client, _request(second.state.agent))

    assert second.state.agent.agent_id == first.state.agent.agent_id
    assert (again.status_code, again.json()["error"]) == (401, "replayed")
    assert fresh.status_code == 200


@pytest.mark.parametrize("path", ["/agent/v1/alive", INFO, STACKS])
def test_a_browser_is_never_let_in(client: TestClient, agent: Agent, path: str) -> None:
    answer = _send(client, _request(agent, target=path), origin="null")

    assert (answer.status_code, answer.json()["error"]) == (403, "origin-refused")


def test_a_body_beyond_the_limit_is_refused(client: TestClient, agent: Agent) -> None:
    request = _request(agent, method="POST", target=STACKS, body=b"x" * (256 * 1024 + 1))
    told = _send(client, request)
    untold = client.post(
        STACKS, content=(b"x" * 65_536 for _ in range(5)), headers=request.headers()
    )

    assert (told.status_code, told.json()["error"]) == (413, "body-too-large")
    assert (untold.status_code, untold.json()["error"]) == (413, "body-too-large")


def test_only_a_sign_of_life_is_given_to_everybody(client: TestClient) -> None:
    answer = client.get("/agent/v1/alive")

    assert (answer.status_code, answer.json()["alive"]) == (200, True)
    assert client.post("/agent/v1/alive").status_code == 401
    for path in ("/", "/docs", "/openapi.json", "/agent/v1/alive/", "/agent/v1/processes"):
        assert client.get(path, follow_redirects=False).status_code == 401


def test_metrics_are_given_to_loopback_and_to_who_signs(app: FastAPI, agent: Agent) -> None:
    with TestClient(app, client=("127.0.0.1", 1)) as near:
        near.get(INFO)
        told = near.get("/agent/v1/metrics")
        assert 'incident_agent_refused_total{reason="signature-missing"} 1.0' in told.text
    far = TestClient(app, client=("192.0.2.7", 1))
    assert far.get("/agent/v1/metrics").status_code == 401
    assert _send(far, _request(agent, target="/agent/v1/metrics")).status_code == 200


def test_refused_requests_do_not_flood_the_ledger(client: TestClient, agent: Agent) -> None:
    for _ in range(50):
        client.get(INFO)

    assert [line["result"] for line in _ledger(agent)] == ["signature-missing"]


def test_a_websocket_is_closed(client: TestClient) -> None:
    with pytest.raises(WebSocketDisconnect), client.websocket_connect(INFO):
        pass


def test_a_file_is_given_in_pieces_that_are_signed(client: TestClient, agent: Agent) -> None:
    data = secrets.token_bytes(9 * 1024**2)
    taken = agent.files.keep(data, name="tp0.json", kind="stacks")
    target = f"/agent/v1/artifacts/{taken.id}"

    def piece(asked: str) -> httpx.Response:
        request = _request(agent, target=target)
        answer = _send(client, request, range=asked)
        right = signing.answer_signature(
            agent.key, request.signed.nonce, answer.status_code, answer.content
        )
        assert answer.headers[signing.SIGNATURE] == right
        return answer

    first, rest = piece("bytes=0-"), piece(f"bytes={8 * 1024**2}-99999999999")

    assert first.content + rest.content == data
    assert first.status_code == rest.status_code == 206
    assert first.headers["content-range"] == f"bytes 0-{8 * 1024**2 - 1}/{len(data)}"
    assert piece("bytes=5-6").content == data[5:7]
    assert piece(f"bytes={len(data)}-").status_code == 416
    assert piece("bytes=1-2,4-5").status_code == 422
    assert _send(client, _request(agent, target=target)).status_code == 413


def test_a_download_is_written_down_once_with_who_asked(client: TestClient, agent: Agent) -> None:
    taken = agent.files.keep(b"12345", name="a", kind="stacks")
    request = _request(agent, target=f"/agent/v1/artifacts/{taken.id}")
    _send(client, request, range="bytes=0-2")
    _send(client, _request(agent, target=request.target), range="bytes=3-4")

    asked, done = _ledger(agent)
    assert (asked["who"], asked["what"], asked["result"]) == ("ada", "download", "asked")
    assert (done["request_id"], done["result"]) == (request.signed.nonce, "done")
    assert done["sha256"] == [taken.sha256]


@pytest.fixture
def full_disk(app: FastAPI, agent: Agent) -> None:
    """The ledger and the nonces cannot be written any more."""
    agent.files.keep(b"12345", name="kept before", kind="stacks")
    for name in ("ledger.jsonl", "nonces.jsonl"):
        (agent.state.folder / name).unlink(missing_ok=True)
        (agent.state.folder / name).symlink_to("/dev/full")


@pytest.mark.usefixtures("full_disk")
def test_on_a_full_disk_what_is_there_is_still_given_and_nothing_is_begun(
    client: TestClient, agent: Agent
) -> None:
    [taken] = agent.files.listing()
    body = b'{"process_ids": ["1.1"]}'
    asked = _request(agent, target=f"/agent/v1/artifacts/{taken.id}")

    assert _send(client, asked).content == b"12345"
    assert _send(client, asked).json()["error"] == "replayed"
    refused = _send(client, _request(agent, method="POST", target=STACKS, body=body))
    assert (refused.status_code, refused.json()["error"]) == (507, "no-space")
