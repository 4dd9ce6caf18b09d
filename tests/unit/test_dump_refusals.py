"""Files that are no dump, or not all of one: named exactly, and salvaged as far as whole."""

import base64
import lzma

import pytest

from app.domain.dumps.trust import not_of_a_server
from tests.dump_layouts import pickled, read, read_value, record

MANY = {"server_args": None, "requests": [record(n) for n in range(40)]}


@pytest.mark.parametrize(
    ("content", "kind", "why"),
    [
        (b"", "empty file", "pickle the requests"),
        (b"<!DOCTYPE html><html>sign in", "web page (HTML)", "saved in the place of the file"),
        (b"  <html>", "web page (HTML)", "web page"),
        (b"\x7fELF" + bytes(60), "an ELF file", "coredump inspect"),
        (b"a" * 257 + b"ustar" + bytes(300), "a tar archive", "Unpack it"),
        (b"just some words", "text", "Not a dump but a text"),
        (b"rid,text\n1,hello\n", "text", "Not a dump but a text"),
        ("\ufeff<html>sign in".encode("utf-16-le"), "web page (HTML)", "web page"),
        ("\ufeff <!DOCTYPE html>".encode(), "web page (HTML)", "web page"),
        (b"<Error><Code>AccessDenied</Code></Error>", "XML", "Download the file itself"),
        ("\ufeff{}".encode("utf-16-be"), "text in UTF-16", "Save it as UTF-8"),
        (base64.b64encode(pickled([record()])), "base64", "Decode it first"),
        (lzma.compress(b"x", lzma.FORMAT_ALONE), "compressed with lzma", "Unpack it"),
        (bytes(4096), "zeros", "never written"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS", "git lfs pull"),
        (b"[2026-01-01 00:00:00] INFO nothing\n", "text", "neither JSON nor a request log"),
    ],
    ids=[
        "empty",
        "html",
        "html-indented",
        "elf",
        "tar",
        "words",
        "csv",
        "html-utf-16",
        "html-bom",
        "xml",
        "json-utf-16",
        "base64",
        "lzma",
        "zeros",
        "git-lfs",
        "log-of-something",
    ],
)
def test_what_is_no_dump_is_named(content: bytes, kind: str, why: str) -> None:
    requests, dump = read(content)

    assert (requests, dump.kind, dump.format) == ([], "unreadable", kind)
    assert why in dump.problems[0]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"server_args": None, "launch_command": "x"}, "its keys are server_args, launch_command"),
        ({}, "it has no keys"),
        ({"requests": {"a": 1}}, "The key requests holds a table, not a list."),
        ("words", "the file holds a text"),
        ([[[[]]]], "no request among its 1 record."),
    ],
    ids=["no-requests", "no-keys", "no-list", "text", "nested"],
)
def test_a_pickle_of_something_else_says_what_is_missing(value: object, why: str) -> None:
    _, dump = read_value(value)

    assert dump.kind == "unreadable"
    assert why in dump.problems[0]


def test_a_truncated_dump_gives_its_whole_requests_and_says_so() -> None:
    content = pickled(MANY)
    requests, dump = read(content[: len(content) // 2])

    assert (dump.kind, dump.truncated) == ("unreadable", True)
    assert 10 < len(requests) < 30
    assert dump.problems[0].startswith("Truncated: ")
    assert f" Salvaged: {len(requests)} whole requests." in dump.problems[0]
    assert [one.rid for one in requests] == [f"rid-{n}" for n in range(len(requests))]


def test_a_truncated_dump_of_thousands_keeps_those_that_were_appended_already() -> None:
    content = pickled([record(n) for n in range(2500)])
    requests, _ = read(content[:-1000])

    assert [one.index for one in requests] == list(range(len(requests)))
    assert 2480 < len(requests) < 2500


def test_data_after_the_end_are_refused_and_the_dump_before_is_read() -> None:
    requests, dump = read(pickled(MANY) + b"cos\nsystem\n(S'x'\ntR.")

    assert (dump.kind, dump.truncated, len(requests)) == ("unreadable", False, 40)
    assert dump.problems[0].startswith("Data after the end of the pickle: 20 bytes follow")


def test_a_dump_that_asks_for_a_call_of_python_is_refused_by_that_name() -> None:
    content = pickled(MANY).replace(
        b"N\x8c\x08requests", b"\x8c\x05posix\x8c\x06system\x93\x8c\x04true\x85R\x8c\x08requests"
    )
    content = content[:2] + content[11:]  # without its frame, whose length is another now
    requests, dump = read(content)

    assert dump.kind == "unreadable"
    assert dump.problems[0].startswith("Refused: it asks for posix.system, which no dump of a")
    assert "posix.system" in dump.blocked
    assert len(requests) in (0, 40)


@pytest.mark.parametrize(
    ("path", "refused"),
    [
        ("posix.system", True),
        ("builtins.eval", True),
        ("__builtin__.eval", True),
        ("collections._sys.modules", True),
        ("collections.OrderedDict", False),
        ("copyreg._reconstructor", False),
        ("sglang.srt.server_args.ServerArgs", False),
        ("transformers_modules.acme.Config", False),
        ("torch._utils._rebuild_tensor_v2", False),
        ("torch.float32", False),
        ("torch.hub.load", True),
        ("numpy.testing._private.utils.runstring", True),
        ("numpy._core.multiarray._reconstruct", False),
        ("pip._internal.main", True),
        ("pipeline.Thing", False),
    ],
)
def test_only_parts_of_python_that_do_something_are_refused(path: str, *, refused: bool) -> None:
    assert bool(not_of_a_server([path])) is refused


@pytest.mark.parametrize(
    "wrong",
    [{n: record(n) for n in range(3)}, {"other": [1], "more": record(1)}],
    ids=["table-of-requests", "one-record-in-a-table"],
)
def test_records_in_a_wrong_shape_are_salvaged(wrong: dict[object, object]) -> None:
    value = wrong if "other" in wrong else {"server_args": None, "requests": wrong}
    requests, dump = read_value(value)

    assert dump.kind == "unreadable"
    assert len(requests) == len([one for one in wrong.values() if isinstance(one, tuple)])
    assert "whole request" in dump.problems[0]


def test_problems_of_a_file_that_is_wrong_in_every_record_are_bounded() -> None:
    _, dump = read_value([record(1), *([7] * 500)])

    assert len(dump.problems) == 21
    assert dump.problems[-1] == "And 480 more like these."
