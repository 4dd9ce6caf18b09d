"""Which part of a file is sent, and under which name a browser saves it."""

import pytest

from app.web.downloads import Span, asked_span, disposition


@pytest.mark.parametrize(
    ("header", "span"),
    [
        pytest.param(None, None, id="no-range"),
        pytest.param("bytes=0-3", Span(0, 4), id="the-first-four"),
        pytest.param("bytes=8-", Span(8, 10), id="from-the-eighth"),
        pytest.param("bytes=-3", Span(7, 10), id="the-last-three"),
        pytest.param("bytes=-30", Span(0, 10), id="more-than-there-is-at-the-end"),
        pytest.param("bytes=4-400", Span(4, 10), id="beyond-the-end"),
        pytest.param("bytes=0-1,4-5", None, id="several-ranges-count-as-none"),
        pytest.param("lines=0-3", None, id="not-bytes"),
        pytest.param("bytes=5-2", None, id="backwards"),
        pytest.param("bytes=²-3", None, id="digits-of-another-kind"),
        pytest.param("bytes=" + "9" * 100 + "-", None, id="absurdly-long"),
    ],
)
def test_a_range_header_asks_for_a_span(header: str | None, span: Span | None) -> None:
    assert asked_span(header, 10) == span


@pytest.mark.parametrize("header", ["bytes=10-", "bytes=99-100", "bytes=-0"])
def test_a_range_outside_the_file_cannot_be_satisfied(header: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        asked_span(header, 10)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        pytest.param(
            "bundle.tar",
            "attachment; filename=\"bundle.tar\"; filename*=UTF-8''bundle.tar",
            id="plain",
        ),
        pytest.param(
            'a"b\r\nX: y',
            "attachment; filename=\"a_b__X: y\"; filename*=UTF-8''a%22b%0D%0AX%3A%20y",
            id="no-way-out-of-the-header",
        ),
        pytest.param(
            "übung.txt",
            "attachment; filename=\"_bung.txt\"; filename*=UTF-8''%C3%BCbung.txt",
            id="not-ascii",
        ),
        pytest.param(
            "\udc80", "attachment; filename=\"_\"; filename*=UTF-8''%3F", id="half-a-surrogate-pair"
        ),
    ],
)
def test_a_download_keeps_its_name_and_nothing_else(name: str, says: str) -> None:
    assert disposition(name) == says
