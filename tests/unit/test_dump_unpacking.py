"""Packed dumps: unpacked when they are honest, refused by what comes out when they are not."""

import gzip
import io
import random
import sys
import zipfile

import pytest

from app.domain.dumps import streams
from app.domain.dumps.unpacking import unpacked

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MIB = 1024 * 1024
MOST = 256 * MIB
CONTENT = bytes(range(256)) * 40


def zipped(**files: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "/"), content)
    return out.getvalue()


def test_what_is_not_packed_stays_itself() -> None:
    inside = unpacked(CONTENT, MOST)

    assert (inside.content, inside.wrapped) == (CONTENT, None)


@pytest.mark.parametrize(
    "packed",
    [
        gzip.compress(CONTENT),
        gzip.compress(CONTENT[:100]) + gzip.compress(CONTENT[100:]),
        gzip.compress(CONTENT) + bytes(512),
    ],
    ids=["one", "two-members", "padded"],
)
def test_gzip_is_unpacked_to_its_end(packed: bytes) -> None:
    inside = unpacked(packed, MOST)

    assert (inside.content, inside.wrapped, inside.truncated) == (CONTENT, "gzip", False)


def test_gzip_that_breaks_off_gives_what_came_before() -> None:
    noise = random.Random(1).randbytes(100_000)
    inside = unpacked(gzip.compress(noise)[:-500], MOST)

    assert inside.truncated
    assert noise.startswith(bytes(inside.content))
    assert len(inside.content) > 10_000


def test_gzip_of_nothing_but_a_header_is_damaged() -> None:
    inside = unpacked(gzip.compress(CONTENT)[:10] + b"\xff" * 40, MOST)

    assert inside.content == b""
    assert "damaged" in (inside.why_not or "")


@pytest.mark.parametrize(
    ("most", "why"),
    [(MOST, "more than 100 times its size"), (32 * MIB, "more than 32 MiB")],
    ids=["ratio", "size"],
)
def test_a_bomb_is_refused_by_what_comes_out(most: int, why: str) -> None:
    inside = unpacked(gzip.compress(bytes(80 * MIB), 9), most)

    assert inside.content == b""
    assert why in (inside.why_not or "")


def test_a_zip_of_one_file_is_that_file() -> None:
    inside = unpacked(zipped(folder__dump=CONTENT), MOST)

    assert (inside.content, inside.members) == (CONTENT, ("folder/dump",))


def test_a_zip_of_several_files_gives_the_one_that_is_asked_for() -> None:
    archive = zipped(a=b"first", b=CONTENT)

    several = unpacked(archive, MOST)
    assert several.members == ("a", "b")
    assert "2 files: each is to be read by itself" in (several.why_not or "")
    assert unpacked(archive, MOST, member=1).content == CONTENT
    assert "2 files only" in (unpacked(archive, MOST, member=2).why_not or "")


def test_links_in_a_zip_are_no_files() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        link = zipfile.ZipInfo("link")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")

    assert "no file in it" in (unpacked(out.getvalue(), MOST).why_not or "")


def test_a_zip_that_lies_is_damaged() -> None:
    assert "damaged" in (unpacked(zipped(a=CONTENT)[:-30], MOST).why_not or "")
    broken = bytearray(zipped(a=CONTENT))
    broken[40:60] = b"\xff" * 20
    assert "damaged" in (unpacked(bytes(broken), MOST).why_not or "")


def test_zstd_is_unpacked_to_its_end() -> None:
    packed = zstd.compress(CONTENT[:5000]) + zstd.compress(CONTENT[5000:])

    assert unpacked(packed, MOST).content == CONTENT
    assert unpacked(packed[:-9], MOST).truncated


def test_a_stream_that_fails_before_its_first_byte_raises() -> None:
    def fail(_: int) -> bytes:
        raise EOFError

    with pytest.raises(EOFError):
        streams.gathered(map(fail, [1]), 10, MOST)
