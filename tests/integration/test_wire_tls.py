"""Replays to a target behind TLS: only to the certificate that is trusted."""

import asyncio
import ssl
import time
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from app.clients.answering import Sent
from app.clients.generate import Line
from app.clients.target import TargetAddress
from app.domain.replay.limits import Limits
from tests.integration.test_wire import WHOLE


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Key and certificate of 127.0.0.1 in one file, signed by itself."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "target")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "target.pem"
    pem, none = serialization.Encoding.PEM, serialization.NoEncryption()
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, none)
    file.write_bytes(private + made.public_bytes(pem))
    return file


async def _sent(certificate: Path, ca_pem: str | None) -> tuple[Sent, list[bytes]]:
    """How one request goes to a server with *certificate*, and what that server was asked."""
    context, asked = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), list[bytes]()
    context.load_cert_chain(certificate)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(WHOLE)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    address = TargetAddress(f"https://127.0.0.1:{port}", token="sk-FAKE-1", ca_pem=ca_pem)
    sent = Sent(began_at=time.monotonic())
    async with server, Line(address, Limits(request_seconds=5)) as line:
        await line.send("/generate", b"{}", sent)
    return sent, asked


def test_a_target_with_a_trusted_certificate_is_sent_to(certificate: Path) -> None:
    sent, asked = asyncio.run(_sent(certificate, certificate.read_text()))
    assert (sent.status, sent.error) == (200, None)
    assert b"Authorization: Bearer sk-FAKE-1\r\n" in asked[0]


def test_another_certificate_gets_no_request_and_no_key(certificate: Path) -> None:
    sent, asked = asyncio.run(_sent(certificate, None))
    assert (sent.status, sent.error) == (None, "tls-failed")
    assert "TLS failed" in (sent.says or "")
    assert asked == []
