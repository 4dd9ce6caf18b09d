"""The agent's own certificate: made once, pinned by its fingerprint at registration.

It is made with the ``openssl`` command, because nothing that the agent installs can make one.
"""

import ssl
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from app.agent.touching.tools import find_tool, run_tool
from app.errors import Misconfigured

DAYS = "3650"  # the console pins the certificate itself; its dates protect nobody
_MAKE_SECONDS = 20.0
_BRING_YOUR_OWN = "Make a certificate elsewhere and name it with --tls-cert and --tls-key."


def own_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """Certificate and key in *folder*, made for *name* where they are missing.

    Raises Misconfigured where there is no ``openssl``.
    """
    certificate, key = folder / "tls-cert.pem", folder / "tls-key.pem"
    if not (certificate.exists() and key.exists()):
        with TemporaryDirectory(dir=folder) as made:  # 0700: the key is never open to others
            _make(Path(made), name)
            (Path(made) / "key.pem").replace(key)
            (Path(made) / "cert.pem").replace(certificate)
    return certificate, key


def fingerprint(certificate: Path) -> str:
    """SHA-256 of the first certificate in the PEM file, as DER: 64 hexadecimal digits."""
    try:
        pem = certificate.read_text()
        begin = pem.index("-----BEGIN CERTIFICATE-----")
        end = pem.index("-----END CERTIFICATE-----", begin)
        der = ssl.PEM_cert_to_DER_cert(pem[begin:end] + "-----END CERTIFICATE-----\n")
    except (OSError, ValueError) as error:
        raise Misconfigured(f"{certificate} holds no certificate: {error}.") from error
    return sha256(der).hexdigest()


def _make(folder: Path, name: str) -> None:
    openssl = find_tool("openssl")
    if openssl is None:
        raise Misconfigured(
            "There is no openssl command here, so the agent cannot make a certificate.",
            why="Off loopback it listens with TLS only.",
            fix=_BRING_YOUR_OWN,
        )
    argv = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    argv += ["-nodes", "-days", DAYS, "-subj", f"/CN={name[:64]}"]
    argv += ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    run = run_tool(argv, deadline_seconds=_MAKE_SECONDS)
    if run.status != 0:
        said = run.err.decode(errors="replace").strip().splitlines()[-1:]
        raise Misconfigured(
            f"openssl could not make a certificate: {' '.join(said) or run.status}.",
            fix=_BRING_YOUR_OWN,
        )
    (folder / "key.pem").chmod(0o600)
