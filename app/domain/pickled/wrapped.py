"""What a file is instead of a pickle, by its first bytes."""

from app.domain.pickled.values import Buffer

_LOOK_BYTES = 512
_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ\x00": "xz",
    b"BZh": "bzip2",
}


def wrapper(buffer: Buffer) -> str | None:
    """gzip, zip, zstd, xz, bzip2, html or json; None for what may be a pickle."""
    head = buffer[:_LOOK_BYTES]
    for magic, name in _MAGIC.items():
        if head.startswith(magic):
            return name
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if text.startswith((b"<!doctype", b"<html", b"<head", b"<body", b"<?xml", b"<!--")):
        return "html"
    return "json" if text.startswith((b"{", b"[")) else None  # neither is an opcode
