"""The console's line to an agent: who is believed, what is bounded, what is passed through."""

import hashlib
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from app.agent.door.certificate import fingerprint, own_certificate
from app.clients import agent_line
from app.clients.agent import AgentAddress, AgentClient
from app.errors import Conflict, Damaged, Malformed, NotFound, Rejected, TooLarge, Unreachable
from app.protocol.messages import FileTaken, Info
from tests.integration import make
from tests.integration.agent_double import KEY, Asked, Double, agent_double
from tests.ports import free_port
from tests.waiting import BUSY

PIECE = 8 * 1024**2


def info(_: Asked) -> Info:
    return Info(
        agent_id="00000000000000a1",
        version="0.1",
        host="gpu-14",
        at=make.now(),
        started_at=make.now(),
        system="Linux",
    )


@pytest.fixture
def double() -> Iterator[Double]:
    with agent_double(Double(says={"GET /info": info})) as running:
        yield running


def client(double: Double, *, key: bytes = KEY, actor: str = "") -> AgentClient:
    return AgentClient(AgentAddress(double.url, None, key), actor=actor)


def test_an_agent_is_asked_by_its_own_name_on_behalf_of_a_person(double: Double) -> None:
    assert client(double, actor="mira é").info().host == "gpu-14"
    assert [(one.path, one.actor) for one in double.asked] == [("/info", "mira é")]


def test_an_agent_with_another_key_is_told_from_a_silent_one(double: Double) -> None:
    with pytest.raises(Unreachable, match="does not accept what this console signs"):
        client(double, key=bytes(32)).info()
    assert double.asked == []


def test_an_answer_that_is_not_signed_is_not_used(double: Double) -> None:
    def forged(_: Asked) -> Info:
        double.key = bytes(32)  # signs the answer with another key than the request had
        return info(_)

    double.says["GET /info"] = forged
    with pytest.raises(Unreachable, match="not signed with the key"):
        client(double).info()


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        pytest.param(404, "not-found", NotFound, id="not-found"),
        pytest.param(409, "conflict", Conflict, id="conflict"),
        pytest.param(422, "rejected", Rejected, id="rejected"),
        pytest.param(500, "error", Unreachable, id="its-mistake"),
        pytest.param(401, "unauthenticated", Unreachable, id="never-the-user's-own-sign-in"),
    ],
)
def test_the_words_of_a_refusal_pass_through(
    double: Double, status: int, code: str, kind: type[Exception]
) -> None:
    told = {"error": code, "detail": "py-spy is on it.", "fix": "Wait.", "command": "ps 1"}
    double.says["GET /info"] = lambda _: (status, told)
    with pytest.raises(kind) as caught:
        client(double).info()
    error = caught.value
    assert (error.what, error.fix, error.command) == ("py-spy is on it.", "Wait.", "ps 1")  # type: ignore[attr-defined]
    assert type(error) is kind


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"[]", id="another-shape"),
        pytest.param(b'{"agent_id": 7}', id="wrong-types"),
        pytest.param(b"\xff\xfe", id="not-text"),
    ],
)
def test_an_answer_that_is_no_message_is_refused(double: Double, said: bytes) -> None:
    double.says["GET /info"] = lambda _: said
    with pytest.raises(Malformed):
        client(double).info()


def test_an_answer_without_end_is_cut(double: Double) -> None:
    double.says["GET /info"] = lambda _: b"x" * (agent_line.MAX_ANSWER_BYTES + 1)
    with pytest.raises(TooLarge):
        client(double).info()


def test_a_slow_agent_is_given_up_at_the_deadline(double: Double) -> None:
    given_up = Event()

    def slow(_: Asked) -> Info:
        given_up.wait(100)
        return info(_)

    double.says["GET /info"] = slow
    began = time.monotonic()
    with pytest.raises(Unreachable, match="no whole answer in 3 s"):
        client(double).info()
    assert time.monotonic() - began < 3.0 * BUSY
    given_up.set()


def test_where_nobody_listens_it_is_said_so() -> None:
    address = AgentAddress(f"http://127.0.0.1:{free_port()}", "a1", KEY)
    with pytest.raises(Unreachable, match="Nothing listens there"):
        AgentClient(address).info()


@pytest.mark.parametrize(
    "size", [pytest.param(n, id=f"{n}-bytes") for n in (0, 1, PIECE, 2 * PIECE + 5)]
)
def test_a_file_comes_whole_in_pieces(double: Double, size: int) -> None:
    data = bytes(index % 251 for index in range(1000)) * (size // 1000 + 1)
    file = double.file(data[:size])
    pieces: list[bytes] = []
    client(double).download(file, pieces.append)
    assert b"".join(pieces) == data[:size]
    assert double.times(f"GET /artifacts/{file.id}") == -(-size // PIECE)


def test_bytes_that_are_not_those_that_were_hashed_are_refused(double: Double) -> None:
    file = double.file(b"honest")
    double.files[file.id] = b"forged"
    with pytest.raises(Damaged, match="not those that the agent hashed"):
        client(double).download(file, lambda _: None)


def test_a_file_that_breaks_off_is_refused(double: Double) -> None:
    file = double.file(b"honest")
    longer = FileTaken(**{**file.model_dump(), "size_bytes": 60})
    with pytest.raises(Damaged, match="broke off at byte 6"):
        client(double).download(longer, lambda _: None)


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[tuple[Double, str]]:
    """An agent behind https, and the fingerprint of its certificate."""
    certificate, key = own_certificate(tmp_path, "gpu-14")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with agent_double(Double(says={"GET /info": info}), context) as running:
        yield running, fingerprint(certificate)


def test_the_registered_certificate_is_believed(secure: tuple[Double, str]) -> None:
    double, registered = secure
    address = AgentAddress.read(double.url, KEY.hex(), registered)
    assert AgentClient(address).info().host == "gpu-14"


def test_another_certificate_is_sent_nothing_and_both_are_told(
    secure: tuple[Double, str],
) -> None:
    double, registered = secure
    other = hashlib.sha256(b"another").hexdigest()
    address = AgentAddress(double.url, double.agent_id, KEY, other)
    with pytest.raises(Unreachable, match="nothing was sent") as caught:
        AgentClient(address).info()
    assert registered in caught.value.detail
    assert other in caught.value.detail
    assert double.asked == []


@pytest.mark.parametrize(
    ("url", "key", "fingerprint", "says"),
    [
        pytest.param("http://10.0.0.5:8400", "ab" * 32, None, "by https only", id="plain-afar"),
        pytest.param("https://10.0.0.5:8400", "ab" * 32, None, "fingerprint", id="no-pin"),
        pytest.param("http://localhost:8400", "ab", None, "64 hex", id="short-key"),
        pytest.param("http://localhost:8400/x", "ab" * 32, None, "no path", id="a-path"),
        pytest.param("ftp://localhost", "ab" * 32, None, "Only http", id="other-scheme"),
        pytest.param("http://localhost@evil:1", "ab" * 32, None, "password", id="userinfo"),
    ],
)
def test_an_address_that_may_not_be_asked_is_refused(
    url: str, key: str, fingerprint: str | None, says: str
) -> None:
    with pytest.raises(Rejected) as caught:
        AgentAddress.read(url, key, fingerprint)
    assert says in caught.value.detail


def test_a_fingerprint_may_be_typed_with_colons_and_in_capitals() -> None:
    typed = ":".join(["AB"] * 32)
    address = AgentAddress.read("https://gpu-14:8400", "AB" * 32, typed)
    assert address.tls_fingerprint == "ab" * 32
