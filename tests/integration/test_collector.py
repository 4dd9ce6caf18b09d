import asyncio
import socketserver
import threading
import time
from collections.abc import Sequence

import orjson
import pytest

from app.clients.collector import Collection, collect
from app.clients.target import TargetAddress, TargetClient
from app.domain.capture import Bundle, Capture, Outcome
from app.domain.endpoints import METRICS_1, MODEL_INFO, SERVER_INFO, Access, Endpoint, Form
from app.domain.ingress import ingress
from app.domain.phases import Ask, Phase, Plan
from app.domain.redaction import keyed_fingerprint
from app.errors import Rejected
from tests.integration.scripted_target import (
    Behaviour,
    answers,
    hangs,
    resets,
    says,
    scripted_target,
)
from tests.integration.shared_tools import capture_server
from tests.waiting import BUSY

FINGERPRINT = keyed_fingerprint(b"a key of this test")
QUICK = Plan(probe="never", interval_seconds=0.1, deadline_seconds=10)
JSON = {
    "/ready": answers(b""),
    "/model_info": answers(b'{"model_path":"m"}'),
    "/metrics": answers(b"sglang:num_running_reqs 1\n"),
    "/hicache/storage-backend": answers(b"{}"),
    "/server_info": answers(b'{"version":"0.5.23","frontend":"python"}'),
    "/v1/loads": answers(b'{"loads":[]}'),
}


def undecided(_: Sequence[Capture]) -> str:
    return "unknown"


def collected(address: TargetAddress | str, plan: Plan = QUICK) -> Bundle:
    """The bundle of the target at *address*, with nothing but silence from the verdict."""
    where = TargetAddress(address) if isinstance(address, str) else address

    async def run() -> Bundle:
        async with TargetClient(where, fingerprint=FINGERPRINT) as client:
            return await collect(client, plan, decide=undecided)

    return asyncio.run(run())


def asked_once(base_url: str, endpoint: Endpoint, *, timeout_seconds: float = 2.0) -> Capture:
    async def run() -> Capture:
        async with TargetClient(TargetAddress(base_url), fingerprint=FINGERPRINT) as client:
            return await client.ask(endpoint, timeout_seconds=timeout_seconds)

    return asyncio.run(run())


def outcomes(bundle: Bundle) -> dict[str, str]:
    return {one.name: one.outcome.value for one in bundle.captures}


def test_a_whole_bundle_is_collected_in_phases_and_nothing_is_asked_twice() -> None:
    with scripted_target(JSON) as target:
        bundle = collected(target.base_url)
    assert set(target.paths()[:4]) == {
        "/ready",
        "/model_info",
        "/metrics",
        "/hicache/storage-backend",
    }
    assert target.paths()[4:] == [
        "/server_info",
        "/v1/loads?include=all",
        "/metrics",
        "/v1/loads?include=all",
    ]
    assert [one.name for one in bundle.captures if one.outcome is Outcome.NOT_ASKED] == [
        "health",
        "health_generate",
    ]
    first, second = bundle.capture("metrics_1"), bundle.capture("metrics_2")
    assert first
    assert second
    assert first.started_at
    assert second.started_at
    assert (second.started_at - first.started_at).total_seconds() >= 0.1
    assert bundle.base_url == target.base_url


def test_each_credential_goes_only_where_it_belongs() -> None:
    address_of = {"/metrics": None, "/ready": None, "/model_info": "Bearer user-1"}
    with scripted_target(JSON) as target:
        plan = Plan("always", 0, 60)
        collected(TargetAddress(target.base_url, "user-1", "admin-1", {"X-Gate": "g"}), plan)
    sent = {path.partition("?")[0]: headers for path, headers in target.asked}
    credentials = {path: headers.get("authorization") for path, headers in sent.items()}
    assert credentials == {
        **address_of,
        "/server_info": "Bearer user-1",
        "/v1/loads": "Bearer user-1",
        "/hicache/storage-backend": "Bearer admin-1",
        "/health_generate": None,
        "/health": None,
    }
    assert {headers["accept-encoding"] for headers in sent.values()} == {"identity"}
    assert {headers["x-gate"] for headers in sent.values()} == {"g"}


def test_a_redirect_is_not_followed_and_takes_no_credential_with_it() -> None:
    with scripted_target({}) as elsewhere:
        there = f"Location: {elsewhere.base_url}/stolen?token=user-secret-1\r\n"
        moved = answers(b"", status="302 Found", headers=there)
        with scripted_target({}, otherwise=moved) as target:
            bundle = collected(TargetAddress(target.base_url, "user-secret-1", "admin-secret-1"))
    assert elsewhere.asked == []
    first = bundle.capture("model_info")
    assert first
    assert first.outcome is Outcome.REJECTED
    assert elsewhere.base_url in first.detail
    assert "user-secret-1" not in repr(bundle)


def test_a_secret_is_gone_before_the_capture_is_seen() -> None:
    leaky = {
        "api_key": "sk-live-AAAA1111",
        "internal_states": [{"admin_api_key": "adm-BBBB2222"}],
        "launch_command": "launch_server --api-key sk-live-AAAA1111",
    }
    with scripted_target({**JSON, "/server_info": answers(orjson.dumps(leaky))}) as target:
        bundle = collected(target.base_url)
    info = bundle.capture("server_info")
    assert info
    assert b"AAAA1111" not in info.body
    assert b"BBBB2222" not in info.body
    assert set(info.redacted) == {
        "/api_key",
        "/internal_states/0/admin_api_key",
        "/launch_command",
    }


def test_a_credential_that_is_echoed_is_masked_in_body_header_and_detail() -> None:
    echo = answers(b"you sent plain-word", headers="Server: plain-word\r\n")
    with scripted_target(JSON | {"/model_info": echo}) as target:
        bundle = collected(TargetAddress(target.base_url, "plain-word"))
    assert "plain-word" not in repr(bundle)


ONE_BAD: dict[str, tuple[Behaviour, Outcome]] = {
    "hang": (hangs, Outcome.TIMEOUT),
    "reset": (resets, Outcome.ERROR),
    "closes-without-a-word": (says(b""), Outcome.ERROR),
    "not-json": (answers(b"<html>"), Outcome.REJECTED),
    "deep": (answers(b"[" * 100_000), Outcome.REJECTED),
    "lone-surrogate": (answers(b'{"version":"\\ud800"}'), Outcome.REJECTED),
    "wrong-types": (answers(b'{"version":[],"internal_states":5}'), Outcome.ANSWERED),
    "http-0.9": (says(b"hello"), Outcome.ERROR),
    "short-body": (says(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort"), Outcome.ERROR),
    "drip": (says(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n", then=b"x"), Outcome.TIMEOUT),
    "slow-header": (says(b"HTTP/1.1 200 OK\r\nX: ", then=b"a"), Outcome.TIMEOUT),
    "endless": (
        says(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            then=b"80000\r\n" + b"x" * 0x80000 + b"\r\n",
            every=0,
        ),
        Outcome.REJECTED,
    ),
    "huge-header": (says(b"HTTP/1.1 200 OK\r\nX: " + b"a" * 5_000_000), Outcome.REJECTED),
    "gzip": (answers(b"x", headers="Content-Encoding: gzip\r\n"), Outcome.REJECTED),
    "gateway": (answers(b"<html>", status="502 Bad Gateway"), Outcome.ANSWERED),
}


@pytest.mark.parametrize("kind", ONE_BAD)
def test_one_bad_endpoint_spoils_nothing_else(kind: str) -> None:
    behaviour, outcome = ONE_BAD[kind]
    uses_it_up = kind in ("hang", "drip", "slow-header")
    plan = Plan("never", 0, 1.5 if uses_it_up else 1.5 * BUSY)
    with scripted_target(JSON | {"/server_info": behaviour}) as target:
        start = time.monotonic()
        bundle = collected(target.base_url, plan)
        taken = time.monotonic() - start
    ended = {name: outcome for name, outcome in outcomes(bundle).items() if outcome != "not asked"}
    assert ended.pop("server_info") == outcome.value
    if not uses_it_up:
        assert set(ended.values()) == {"answered"}
        assert len(ended) == 7
    assert taken < 1.5 * BUSY


def test_a_phase_takes_as_long_as_its_slowest_endpoint() -> None:
    slow = {
        "/ready": answers(b"", delay=0.6),
        "/model_info": answers(b"{}", delay=1.8),
        "/metrics": answers(b"", delay=1.2),
        "/hicache/storage-backend": answers(b"{}", delay=1.5),
    }
    with scripted_target(slow) as target:

        async def run() -> float:
            async with TargetClient(TargetAddress(target.base_url), fingerprint=FINGERPRINT) as one:
                collection = Collection(one, QUICK, decide=undecided)
                phase = collection.next_phase()
                assert phase
                await collection.run(phase)
                return collection.spent_seconds

        assert asyncio.run(run()) < 5, "one after another they would take 5.1 s"


@pytest.mark.parametrize("behaviour", [hangs, says(b"HTTP/1.1 200 OK\r\n", then=b"X: y\r\n")])
def test_the_whole_collection_keeps_its_deadline(behaviour: Behaviour) -> None:
    with scripted_target({}, otherwise=behaviour) as target:
        start = time.monotonic()
        bundle = collected(target.base_url, Plan("always", 5, 1.0))
        taken = time.monotonic() - start
    assert taken < 1.0 * BUSY
    assert {"timeout", "not asked"} == set(outcomes(bundle).values())
    assert "of the deadline" in next(
        one.detail for one in bundle.captures if one.name == "health_generate"
    )


def test_a_probe_that_would_be_too_short_is_not_sent() -> None:
    with scripted_target(JSON) as target:
        bundle = collected(target.base_url, Plan("auto", 0, 10))
    assert not [path for path in target.paths() if path.startswith("/health")]
    probe = bundle.capture("health_generate")
    assert probe
    assert "needs 22 s" in probe.detail


def test_a_probe_is_sent_once_and_last() -> None:
    with scripted_target(JSON | {"/health_generate": answers(b"")}) as target:
        bundle = collected(target.base_url, Plan("auto", 0, 45))
    assert target.paths()[-1] == "/health_generate"
    assert len([path for path in target.paths() if path.startswith("/health")]) == 1
    assert outcomes(bundle)["health"] == "not asked"


def test_a_port_on_which_nothing_listens_refuses() -> None:
    with scripted_target({}) as target:
        pass
    bundle = collected(target.base_url)
    assert set(outcomes(bundle).values()) == {"refused", "not asked"}
    assert [one for one in bundle.captures if one.name == "metrics_2"] == []


def test_a_name_with_several_addresses_is_reached_at_the_one_that_listens() -> None:
    with scripted_target(JSON) as target:
        bundle = collected(f"http://localhost:{target.port}")
    assert outcomes(bundle)["model_info"] == "answered"


def test_a_name_that_nobody_knows_is_an_error_of_each_endpoint() -> None:
    capture = asked_once("http://no-such-host.invalid", MODEL_INFO, timeout_seconds=10)
    assert (capture.outcome, capture.status) == (Outcome.ERROR, None)
    assert "no-such-host.invalid" in capture.detail


class _NoTls(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        self.request.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def test_a_server_without_tls_is_an_error_of_each_endpoint() -> None:
    with socketserver.TCPServer(("127.0.0.1", 0), _NoTls) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        capture = asked_once(f"https://127.0.0.1:{server.server_address[1]}", MODEL_INFO)
    assert capture.outcome is Outcome.ERROR
    assert capture.detail.startswith("TLS failed")


def test_a_forbidden_address_is_not_connected_to_whatever_its_name() -> None:
    with scripted_target(JSON) as target:
        where = TargetAddress(target.base_url, "user-1", allowed=("10.0.0.0/8",))
        bundle = collected(where)
    assert target.asked == []
    assert set(outcomes(bundle).values()) == {"rejected", "not asked"}


def test_a_timeout_says_how_far_the_answer_came() -> None:
    async def slow(writer: asyncio.StreamWriter) -> None:
        await says(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab")(writer)
        await hangs(writer)

    with scripted_target({"/metrics": slow, "/model_info": hangs}) as target:
        metrics = asked_once(target.base_url, METRICS_1)
        model = asked_once(target.base_url, MODEL_INFO)
    assert (metrics.outcome, metrics.status, metrics.body) == (Outcome.TIMEOUT, 200, b"ab")
    assert metrics.detail == "The answer began and did not end in 2 s."
    assert model.detail == "No answer in 2 s."


def test_an_answer_over_its_cap_keeps_its_head_and_says_so() -> None:
    small = Endpoint("metrics_1", "/m", "", "", Access.OPEN, Form.TEXT, max_bytes=100_000)
    with scripted_target({"/m": answers(b"x" * 300_000)}) as target:
        capture = asked_once(target.base_url, small, timeout_seconds=50)
    assert capture.outcome is Outcome.REJECTED
    assert len(capture.body) == 65_536
    assert "More than 97 KiB" in capture.detail


@pytest.mark.parametrize(
    "given",
    [
        {"token": "a\r\nX: y"},
        {"admin_token": "ümlaut"},
        {"headers": {"X-A": "a\nb"}},
        {"headers": {"X A": "b"}},
        {"base_url": "http://169.254.169.254/"},
    ],
    ids=str,
)
def test_an_address_that_cannot_be_sent_safely_is_rejected(given: dict[str, object]) -> None:
    with pytest.raises(Rejected):
        TargetAddress(**{"base_url": "http://127.0.0.1:1", **given})  # type: ignore[arg-type]


def test_a_ca_file_without_certificate_is_rejected() -> None:
    with pytest.raises(Rejected, match="CA file"):
        TargetClient(TargetAddress("https://h", ca_pem="no pem"), fingerprint=FINGERPRINT)


def test_tokens_are_not_in_what_is_printed_of_an_address() -> None:
    shown = repr(TargetAddress("http://h", "user-1", "admin-1", {"X": "secret-1"}, "pem-1"))
    assert not [word for word in ("user-1", "admin-1", "secret-1", "pem-1") if word in shown]


def test_captures_made_before_a_cut_are_not_made_again() -> None:
    with scripted_target(JSON) as target:
        whole = collected(target.base_url)
        target.asked.clear()
        done = {one.name: one for one in whole.captures[:5]}
        landed: list[str] = []
        started: list[Ask] = []

        async def run() -> Bundle:
            async with TargetClient(TargetAddress(target.base_url), fingerprint=FINGERPRINT) as one:
                return await collect(
                    one,
                    QUICK,
                    done=done,
                    landed=lambda capture: landed.append(capture.name),
                    started=started.append,
                    decide=undecided,
                )

        resumed = asyncio.run(run())
    assert target.paths() == ["/v1/loads?include=all", "/metrics", "/v1/loads?include=all"]
    assert [ask.endpoint.name for ask in started] == ["loads_all_1", "metrics_2", "loads_all_2"]
    assert landed == ["loads_all_1", "metrics_2", "loads_all_2", "health", "health_generate"]
    assert outcomes(resumed) == outcomes(whole)


def test_a_target_frozen_as_a_whole_is_asked_little_and_named() -> None:
    with capture_server("sigstop_scheduler", "--unknown-hangs") as base_url:
        bundle = collected(base_url, Plan("never", 0.1, 1))
    ended = outcomes(bundle)
    assert ended["server_info"] == "timeout"
    assert ended["ready"] == "answered"
    assert "get_server_info" not in ended


@pytest.mark.parametrize(
    ("scenario", "serves", "ended"),
    [
        pytest.param("idle_fresh", "python", {"hicache": "no access"}, id="idle"),
        pytest.param("under_load", "python", {"metrics_2": "answered"}, id="load"),
        pytest.param("tp2_keys_none", "python", {"server_info": "no access"}, id="no-key"),
        pytest.param("tp2_keys_user", "python", {"server_info": "answered"}, id="user-key"),
        pytest.param("tp2_keys_admin", "python", {"hicache": "answered"}, id="admin-key"),
        pytest.param("tp2_keys_wrong", "python", {"loads_all_1": "no access"}, id="wrong-key"),
        pytest.param("tp2_tp1_stopped_user", "python", {"ready": "answered"}, id="rank-stopped"),
        pytest.param("rust_idle", "rust", {"ready": "not offered"}, id="rust-idle"),
        pytest.param("rust_busy", "rust", {"loads_all_2": "answered"}, id="rust-busy"),
    ],
)
def test_a_captured_server_is_collected(scenario: str, serves: str, ended: dict[str, str]) -> None:
    with capture_server(scenario) as base_url:
        bundle = collected(base_url)
    assert ingress({one.name: one for one in bundle.captures}) == serves
    assert ended.items() <= outcomes(bundle).items()
    body = b"".join(one.body for one in bundle.captures)
    assert b"sk-user-111" not in body
    assert b"sk-admin-222" not in body


def test_the_first_phase_names_what_is_about_to_be_asked() -> None:
    with scripted_target(JSON) as target:

        async def run() -> tuple[Phase | None, list[str]]:
            async with TargetClient(TargetAddress(target.base_url), fingerprint=FINGERPRINT) as one:
                names: list[str] = []
                collection = Collection(
                    one,
                    QUICK,
                    decide=undecided,
                    started=lambda ask: names.append(ask.endpoint.name),
                )
                first = collection.next_phase()
                assert first
                await collection.run(first)
                return collection.next_phase(), names

        phase, names = asyncio.run(run())
    assert names == ["ready", "model_info", "metrics_1", "hicache"]
    assert phase
    assert [ask.endpoint for ask in phase.asks] == [SERVER_INFO]
