"""What leaves the house at T0: nothing to find the deployment, its people or its prompts by."""

import json
import string
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain import playbook as story
from app.domain.bundle import summarise
from app.domain.capture import Bundle
from app.domain.diagnosis import diagnose
from app.domain.plain_words import LEFT_OUT, PlainWords
from app.domain.report import draft
from app.domain.report_edits import Strike, Write, changed
from app.domain.report_parts import Source, Subject
from app.domain.sharing import Names, letter, shared_copy, told_outside

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
PLAIN = PlainWords(lambda _: "ab12cd34", {"decode-a": "target A"}, frozenset({"bertha"}))

_letters = st.text(string.ascii_lowercase, min_size=3, max_size=10)
_digits = st.text(string.digits, min_size=2, max_size=4)
_hosts = st.builds(lambda a, n, d: f"{a}-{n}.{d}.internal", _letters, _digits, _letters)
_addresses = st.ip_addresses().map(str)
_urls = st.builds(lambda host, path: f"https://{host}:8443/{path}", _hosts, _letters)
_paths = st.lists(_letters, min_size=2, max_size=4).map(lambda parts: "/srv/" + "/".join(parts))
_keys = st.text(string.ascii_letters + string.digits, min_size=20, max_size=40).filter(
    lambda key: any(char.isdigit() for char in key) and any(char.isupper() for char in key)
)
_rids = st.one_of(st.uuids().map(str), st.uuids().map(lambda one: one.hex))
_quoted = st.lists(_letters, min_size=3, max_size=6).map(lambda words: f'"{" ".join(words)} zq"')
SECRETS = st.one_of(_hosts, _addresses, _urls, _paths, _keys, _rids, _quoted)


def summary(secret: str) -> dict[str, Any]:
    """A summary with *secret* wherever a target could have put text."""
    claim = {
        "id": "queue-build-up",
        "says": f"14 requests wait at {secret}, ({secret}) and key={secret}.",
        "status": "supported",
        "level": "warn",
        "evidence": [{"artifact": f"{secret}.json", "at": secret, "value": secret}],
    }
    return {
        "base_url": f"http://{secret}",
        "collected_at": "2026-11-30T12:00:00Z",
        "version": secret,
        "model": {"model_path": f"/srv/{secret}/tiny-random", "served_model_name": None},
        "topology": {"tp_size": 8, "disaggregation_mode": secret, "dist_init_addr": secret},
        "health": {"verdict": "busy", "says": secret, "probes": []},
        "signals": [claim],
        "quiet": [{"id": "metrics-off", "says": secret, "evidence": []}],
        "not_checked": [{"id": "rank-skew", "why": secret}],
        "endpoints": [{"path": f"/{secret}", "outcome": "answered", "detail": secret}],
        "load": {"totals": {"running": 16, "waiting": 14}},
    }


def copy_with(secret: str) -> dict[str, Any]:
    subject = Subject(
        142, f"{secret} hangs on decode-a", "sev1", "open", NOON, targets=("decode-a",)
    )
    source = Source(219, "decode-a", f"/srv/{secret}", NOON, summary(secret))
    found = diagnose([source.placed])
    edits: dict[str, Any] = {}
    for change in (Write("best_guess", f"It is {secret}."), Write("next_steps", secret)):
        edits = changed(edits, change, {}, by=secret, at=NOON)
    drafted = draft(subject, [source], found, edits, at=NOON)["fields"]
    key = drafted["best_guess"][-1]["key"]
    edits = changed(edits, Strike(key, secret), drafted, by=secret, at=NOON)
    moments: list[tuple[datetime, story.Event]] = [
        (NOON, story.NoteAdded(secret)),
        (NOON, story.IncidentOpened(secret)),
        (NOON, story.StateChanged("open", secret)),
        (NOON, story.BundleCollected(219, secret, secret, secret, 7, 9, 41.2)),
        (NOON, story.StepFailed(secret, 1, secret)),
        (NOON, story.FactsChanged({"title": (secret, secret)})),
        (NOON, story.ArtifactAttached(1, secret, secret, 10, secret)),
        (NOON, story.ArtifactPurged(1, secret, secret)),
        (NOON, story.StepRequested(secret, 1, secret)),
        (NOON, story.StepCancelled(secret, 1, secret)),
    ]
    return shared_copy(
        draft(subject, [source], found, edits, at=NOON),
        moments,
        Names(("decode-a",), ("mira",), ("http://10.0.0.5:30000",)),
        fingerprint=lambda _: "ab12cd34",
        at=NOON,
    )


@settings(deadline=None, max_examples=60)  # the time is the machine's, not the sentence's
@given(SECRETS)
def test_no_secret_host_path_rid_or_quoted_text_is_in_a_share(secret: str) -> None:
    shared = json.dumps(copy_with(secret), ensure_ascii=False)

    assert secret not in shared
    assert secret.strip('"') not in shared


@pytest.mark.parametrize("kind", get_args(story.Event), ids=lambda kind: kind.__name__)
def test_every_kind_of_event_has_words_for_outside_but_sharing_itself(kind: type) -> None:
    given = {field.name: 7 if field.type in (int, float) else "Zebra4711" for field in fields(kind)}
    told = told_outside(kind(**given))

    assert (told is None) is (kind in (story.ReportShared, story.ShareRevoked))
    assert "Zebra4711" not in (told or "")


def test_a_state_of_ours_is_told_by_name() -> None:
    assert told_outside(story.StateChanged("open", "resolved")) == "Resolved."


def test_the_name_of_every_rule_may_leave_the_house() -> None:
    empty = summarise(Bundle("http://127.0.0.1:30000", NOON, ()))
    found = [*empty["signals"], *empty["quiet"], *empty["not_checked"]]

    assert len(found) > 10
    assert [one["id"] for one in found if PLAIN.told(one["id"]) != one["id"]] == []


def test_figures_the_model_and_the_shape_are_kept() -> None:
    copy = copy_with("10.1.2.3")

    [server] = copy["servers"]
    assert (server["model"], server["tp_size"], server["verdict"]) == ("tiny-random", 8, "busy")
    assert server["version"] is server["half"] is None
    assert copy["incident"]["title"] == f"{LEFT_OUT} hangs on target A"
    assert copy["incident"]["targets"] == ["target A"]
    assert copy["fields"]["checked"][1]["says"].startswith("14 requests wait at ")
    guess = copy["fields"]["best_guess"][-1]
    assert (guess["by"], guess["struck"]) == ("operator", "operator")
    assert "Bundle collected: 7 of 9 endpoints answered in 41.2 s." in [
        one["says"] for one in copy["timeline"]
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("decode-a hung for 31 minutes", "target A hung for 31 minutes", id="renamed"),
        pytest.param("decode-a.prod.example hung", f"{LEFT_OUT} hung", id="host-of-a-target"),
        pytest.param("Bertha's down, bertha.", f"{LEFT_OUT} down, {LEFT_OUT}.", id="hidden-word"),
        pytest.param("at 10.0.0.1 (10.0.0.2)", f"at {LEFT_OUT} ({LEFT_OUT})", id="addresses"),
        pytest.param("sglang 0.5.23", "sglang 0.5.23", id="a-version-has-three-parts"),
        pytest.param(
            "p99 TTFT 3.25 s, 12% of 5 GiB", "p99 TTFT 3.25 s, 12% of 5 GiB", id="figures"
        ),
        pytest.param("TP5 waits (48 210 of 48 211)", "TP5 waits (48 210 of 48 211)", id="a-rank"),
        pytest.param('it said "write a poem"', f"it said {LEFT_OUT}", id="quoted"),
        pytest.param("it said 'write a poem", f"it said {LEFT_OUT}", id="a-quote-that-never-ends"),
        pytest.param("run `rm -rf /`", f"run {LEFT_OUT}", id="a-command"),
        pytest.param("set `--enable-metrics`", "set --enable-metrics", id="a-known-flag"),
        pytest.param("rid 0123456789abcdef", "rid rid:ab12cd34", id="a-request-id"),
        pytest.param(
            "/health is up, /home is not", f"/health is up, {LEFT_OUT} is not", id="paths"
        ),
        pytest.param("key=abc, x@y.z a_b C0DE", f"{LEFT_OUT}", id="neighbours-are-joined"),
        pytest.param("don't say 1234567890", f"don't say {LEFT_OUT}", id="a-long-number"),
        pytest.param("你好 привет", LEFT_OUT, id="words-of-unknown-shape"),
        pytest.param("a\x00b\nc", "a b c", id="control-characters"),
    ],
)
def test_a_sentence_passes_word_by_word(text: str, told: str) -> None:
    assert PLAIN.told(text) == told


def test_the_one_letter_in_the_name_of_a_host_does_not_hide_the_article() -> None:
    names = Names(("decode-a",), (), ("http://decode-a.prod.example:30000",))
    plain = names.plain(str.upper, ())
    assert plain.told("A lock, or a kernel on decode-a.") == "A lock, or a kernel on target A."
    assert "decode" not in plain.told("It waits in decode, on prod.")


def test_a_key_of_plain_letters_after_its_flag_is_left_out_as_well() -> None:
    copy = copy_with("10.1.2.3")
    subject = Subject(1, "start with --api-key hunterhunter now", None, "open", NOON)
    told = shared_copy(
        draft(subject, [], {}, {}, at=NOON),
        [],
        Names((), (), ()),
        fingerprint=lambda _: "ab12cd34",
        at=NOON,
    )

    assert "hunterhunter" not in json.dumps(told)
    assert copy["tier"] == told["tier"] == "T0"


@pytest.mark.parametrize(
    ("position", "name"), [(0, "A"), (25, "Z"), (26, "A2"), (53, "B3")], ids=str
)
def test_targets_are_letters(position: int, name: str) -> None:
    assert letter(position) == name
