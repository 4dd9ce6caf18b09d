"""What a signature is over, and what counts as one."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.protocol import signing
from app.protocol.signing import Signed

KEY = bytes(range(32))
ASKED = Signed("1f2e3d4c5b6a7988", 1_764_480_000, "0" * 32, "mira")


def test_a_request_reads_back_as_it_was_signed() -> None:
    headers = ASKED.headers(KEY, "GET", "/agent/v1/info", b"")

    assert signing.read(headers) == (ASKED, headers[signing.SIGNATURE])


@given(st.text(max_size=60))
def test_any_name_of_a_person_fits_into_a_header(actor: str) -> None:
    try:
        actor.encode()
    except UnicodeEncodeError:
        return
    headers = replace(ASKED, actor=actor).headers(KEY, "GET", "/", b"")
    read = signing.read(headers)

    assert headers[signing.ACTOR].isascii()
    assert headers[signing.ACTOR].isprintable()
    assert read is not None
    assert read[0].actor == actor


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(("GET", "/a", b"b"), ("GET", "/ab", b""), id="target-and-body"),
        pytest.param(("GET", "/a?b", b""), ("GET", "/a", b"b"), id="query-and-body"),
        pytest.param(("GET", "/", b""), ("POST", "/", b""), id="method"),
    ],
)
def test_no_part_can_be_moved_into_another(
    one: tuple[str, str, bytes], other: tuple[str, str, bytes]
) -> None:
    assert signing.request_signature(KEY, ASKED, *one) != signing.request_signature(
        KEY, ASKED, *other
    )


def test_a_name_cannot_be_moved_into_the_nonce() -> None:
    moved = replace(ASKED, nonce=ASKED.nonce + "m", actor="ira")

    assert signing.request_signature(KEY, ASKED, "GET", "/", b"") != signing.request_signature(
        KEY, moved, "GET", "/", b""
    )


def test_an_answer_is_over_its_request_its_status_and_its_body() -> None:
    right = signing.answer_signature(KEY, "n", 200, b"x")
    others = [("m", 200, b"x"), ("n", 201, b"x"), ("n", 200, b"y")]

    assert right not in {signing.answer_signature(KEY, *other) for other in others}
    assert right != signing.answer_signature(bytes(32), "n", 200, b"x")
