"""Bundles as folders and archives: ours written and read, those of incident_artifact_tool read."""

import io
import os
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import orjson

from app.clients.archives import Files, files_in, files_of
from app.clients.foreign_bundle import foreign_bundle
from app.clients.manifest import bundle_from, manifest_of
from app.domain.capture import Bundle, Capture
from app.domain.endpoints import file_name
from app.domain.plain_json import read_json
from app.domain.redaction import Fingerprint, redact_body, redact_text
from app.errors import Conflict, Malformed

MANIFEST = "manifest.json"
_SAME_TIME = (1980, 1, 1, 0, 0, 0)  # so that the same bundle is the same archive, byte for byte


def default_folder(now: datetime) -> Path:
    """Where a bundle goes when nobody says where."""
    return Path(f"incident-bundle-{now.astimezone(UTC):%Y%m%dT%H%M%SZ}")


def check_new(folder: Path) -> None:
    """Raises Conflict unless *folder* is empty or not there."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Conflict(f"{folder} is there and not empty.", fix="Name another folder with --out.")


def write_folder(bundle: Bundle, folder: Path) -> None:
    """Write *bundle* into *folder*, readable by its owner alone; raises Conflict if it is not new.

    The manifest comes last: a folder with one is whole.
    """
    check_new(folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, body in _files(bundle):
        descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(body)


def write_archive(bundle: Bundle) -> bytes:
    """*bundle* as a zip; the same bundle gives the same bytes."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, body in _files(bundle):
            entry = zipfile.ZipInfo(name, _SAME_TIME)
            entry.external_attr = 0o600 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            opened.writestr(entry, body)
    return archive.getvalue()


def read(path: Path, *, fingerprint: Fingerprint) -> Bundle:
    """The bundle at *path*, a folder or archive; raises NotFound, Malformed or TooLarge.

    Bodies are redacted again: another tool may have written them.
    """
    return _bundle(files_in(path), fingerprint)


def read_archive(archive: IO[bytes], *, fingerprint: Fingerprint) -> Bundle:
    """The bundle in an open archive; raises Malformed or TooLarge."""
    return _bundle(files_of(archive), fingerprint)


def _files(bundle: Bundle) -> Iterator[tuple[str, bytes]]:
    for capture in bundle.captures:
        if capture.body:
            yield file_name(capture.name), capture.body
    yield MANIFEST, orjson.dumps(manifest_of(bundle), option=orjson.OPT_INDENT_2) + b"\n"


def _bundle(files: Files, fingerprint: Fingerprint) -> Bundle:
    if MANIFEST in files.contents:
        bundle = bundle_from(_object(files, MANIFEST), files)
    elif "metadata.json" in files.contents:
        bundle = foreign_bundle(_object(files, "metadata.json"), files)
    else:
        raise Malformed(
            "Not a bundle: it has no manifest.json and no metadata.json.",
            fix="Bundles are made by `bundle collect` and by incident_artifact_tool.",
        )
    captures = tuple(_redacted(capture, fingerprint) for capture in bundle.captures)
    base_url, _ = redact_text(bundle.base_url, fingerprint=fingerprint)
    problems = (*bundle.problems, *files.problems)
    return replace(bundle, base_url=base_url, captures=captures, problems=problems)


def _object(files: Files, name: str) -> dict[str, Any]:
    value = read_json(files.contents[name])
    if not isinstance(value, dict):
        raise Malformed(f"{name} holds no JSON object.")
    return value


def _redacted(capture: Capture, fingerprint: Fingerprint) -> Capture:
    body, places = redact_body(capture.body, fingerprint=fingerprint)
    detail, _ = redact_text(capture.detail, fingerprint=fingerprint)
    redacted = tuple(dict.fromkeys((*capture.redacted, *places)))
    return replace(capture, body=body, detail=detail, redacted=redacted)
