"""What is often found in the place of a dump, told by its first bytes."""

import codecs
import re

LOOKED_AT_BYTES = 4096
_WEB = (
    "web page (HTML)",
    (
        "Not a dump but a web page: it was saved in the place of the file, as a sign-in or error"
        " page is. Download the file itself."
    ),
)
_XML = (
    "XML",
    "Not a dump but XML, as a store of files answers with an error. Download the file itself.",
)
_BASE64 = (
    "base64",
    "Not a dump but a pickle in base64. Decode it first (base64 -d).",
)
_WIDE = (
    "text in UTF-16",
    "Not a dump but a text in UTF-16. Save it as UTF-8 if it holds requests.",
)
_OTHER = (
    (0, b"\x7fELF", "an ELF file", "It may be a coredump: see coredump inspect."),
    (257, b"ustar", "a tar archive", "Unpack it and name the dump in it."),
    (0, b"PK\x03\x04", "a zip archive inside another", "Unpack the outer one first."),
    (0, b"\x1f\x8b", "compressed twice", "Unpack it once."),
    (0, b"\x28\xb5\x2f\xfd", "compressed twice", "Unpack it once."),
    (0, b"\xfd7zXZ", "compressed with xz", "Unpack it first (xz -d)."),
    (0, b"BZh", "compressed with bzip2", "Unpack it first (bzip2 -d)."),
    (0, b"]\0\0", "compressed with lzma", "Unpack it first (xz -d --format=lzma)."),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive", "Unpack it and name the dump in it."),
    (0, b"version https://git-lfs", "a pointer of Git LFS", "Fetch the file (git lfs pull)."),
    (0, bytes(64), "zeros", "It begins with them: never written, or lost on its disk."),
    (0, b"%PDF", "a PDF", ""),
    (0, b"\x89PNG", "a picture", ""),
)  # Looked up now: a reader that is shut in can import nothing more.
_UTF8, _UTF16 = codecs.getdecoder("utf-8-sig"), codecs.getdecoder("utf-16")
_UTF8_PART = codecs.getincrementaldecoder("utf-8")
_HTML = re.compile(r"<(?:!doctype\s+html|html|head|body|meta|title|script|!--)", re.IGNORECASE)
_MARKUP = re.compile(r"<[?!a-z]", re.IGNORECASE)
# PROTO 2 to 5 in base64, and what follows it.
_ENCODED = re.compile(rb"gA[I-X][A-Za-z0-9+/\r\n]{12,}={0,2}\s*\Z")
_TEXT = re.compile(r"[^\x00-\x08\x0b\x0e-\x1f\x7f]+")


def mistaken(head: bytes) -> tuple[str, str] | None:
    """What a file that begins with *head* is, and why it is no dump; None where it may be one."""
    wide = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    start = (_UTF16 if wide else _UTF8)(head[:512], "replace")[0].lstrip()
    if _HTML.match(start):
        return _WEB
    if _MARKUP.match(start):
        return _XML
    if wide:
        return _WIDE
    if _ENCODED.match(head):
        return _BASE64
    for at, mark, kind, advice in _OTHER:
        if head[at : at + len(mark)] == mark:
            return kind, f"Not a dump but {kind}. {advice}".strip()
    return None


def is_text(head: bytes) -> bool:
    """Whether *head* begins a text, of whatever kind."""
    try:
        text = _UTF8_PART().decode(head)  # its end may be cut off
    except UnicodeDecodeError:
        return False
    return _TEXT.fullmatch(text) is not None
