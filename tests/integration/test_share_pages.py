"""Share links: previewed, told once, frozen, revoked, and silent about all that is not there."""

import re
from datetime import timedelta

import pytest
from fastapi.testclient import TestClient
from sqlmodel import select

from app.domain.playbook import NoteAdded
from app.store import timeline
from app.store.database import writing
from app.store.stores import Stores
from app.store.tables import AuditEvent, Share
from app.web.share_gate import FREE_FAILURES, MOST_ADDRESSES, WINDOW, ShareGate
from tests.integration import make

STRICT = {
    "x-robots-tag": "noindex, nofollow, noarchive",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
}


@pytest.fixture
def number(stores: Stores) -> int:
    return make.incident(stores, "gpu-14.prod.example hangs")


def made(operator: TestClient, number: int, **terms: str) -> str:
    """The path of a new link, made as a person would: preview first."""
    preview = operator.get(f"/reports/{number}/shares").text
    seal = re.search(r'name="seal" value="([0-9a-f]{64})"', preview)
    assert seal
    page = operator.post(f"/reports/{number}/shares", data={"seal": seal[1], **terms})
    assert page.status_code == 201
    link = re.search(r'value="http://127\.0\.0\.1(/s/[\w-]{43})"', page.text)
    assert link
    return link[1]


def article(page: str) -> str:
    found = re.search(r"<article.*</article>", page, re.DOTALL)
    assert found
    # The preview is read a moment before the link is made, and has no expiry yet.
    told = re.sub(r"<span>(frozen|link expires).*?</span>", "", found[0], flags=re.DOTALL)
    told = re.sub(r"(</?)h1\b", r"\1h2", told)  # a page has one h1; the preview's has its own
    return re.sub(r"\s+", " ", told)


def test_the_link_opens_what_the_preview_showed_without_signing_in(
    operator: TestClient, anybody: TestClient, number: int
) -> None:
    preview = operator.get(f"/reports/{number}/shares").text

    shared = anybody.get(made(operator, number))

    assert shared.status_code == 200
    assert article(shared.text) == article(preview)
    assert "gpu-14" not in shared.text
    assert "<script" not in shared.text
    assert "set-cookie" not in shared.headers
    assert {name: shared.headers[name] for name in STRICT} == STRICT


def test_the_copy_is_frozen(
    operator: TestClient, anybody: TestClient, stores: Stores, number: int
) -> None:
    link = made(operator, number)
    before = anybody.get(link).text
    with writing(stores.engine) as session:
        note = NoteAdded("later")
        timeline.record(session, note, incident_id=number, actor=make.MIRA, at=make.now())
    operator.post(
        f"/reports/{number}/fields/best_guess",
        data={"revision": "0", "says": "Written later.", "status": "hypothesis"},
    )

    assert anybody.get(link).text == before


def test_a_link_is_not_made_of_what_nobody_saw(
    operator: TestClient, stores: Stores, number: int
) -> None:
    preview = operator.get(f"/reports/{number}/shares").text
    seal = re.search(r'name="seal" value="([0-9a-f]{64})"', preview)
    assert seal
    with writing(stores.engine) as session:
        timeline.record(session, NoteAdded("x"), incident_id=number, actor=make.MIRA, at=make.now())

    answer = operator.post(f"/reports/{number}/shares", data={"seal": seal[1]})

    assert answer.status_code == 409
    with writing(stores.engine) as session:
        assert session.exec(select(Share)).all() == []


def test_only_the_hash_of_the_link_is_kept(
    operator: TestClient, stores: Stores, number: int
) -> None:
    link = made(operator, number)

    with writing(stores.engine) as session:
        [share] = session.exec(select(Share)).all()
    assert len(share.token_hash) == 64
    assert link.removeprefix("/s/") not in repr(share)
    assert link not in operator.get(f"/reports/{number}/shares").text


def test_wrong_expired_revoked_and_malformed_links_are_answered_alike(
    operator: TestClient, anybody: TestClient, stores: Stores, number: int
) -> None:
    expired, revoked = made(operator, number), made(operator, number)
    with writing(stores.engine) as session:
        first, second = session.exec(select(Share).order_by(Share.token_hash)).all()
        first.expires_at = make.now() - timedelta(seconds=1)
        second.revoked_at = make.now()

    paths = (
        expired,
        revoked,
        f"/s/{'x' * 43}",
        "/s/short",
        "/s/%00%ff",
        "/s/a/b",
        "/s/",
        f"/s/{'y' * 5000}",
    )
    answers = [anybody.get(path) for path in paths]

    assert {answer.status_code for answer in answers} == {404}
    assert len({answer.text for answer in answers}) == 1
    kept = [{name: one.headers[name] for name in STRICT} for one in answers]
    assert kept == [STRICT] * len(answers)


def test_each_opening_is_counted_and_a_revoked_link_opens_no_more(
    operator: TestClient, anybody: TestClient, stores: Stores, number: int
) -> None:
    link = made(operator, number)
    anybody.get(link)
    anybody.get(link)

    assert "opened 2 times" in operator.get(f"/reports/{number}/shares").text
    assert operator.post("/shares/1/revoke").status_code == 303
    assert anybody.get(link).status_code == 404
    with writing(stores.engine) as session:
        kinds = [one.kind for one in timeline.timeline(session, number)]
        actions = [one.action for one in session.exec(select(AuditEvent))]
    assert kinds == ["ShareRevoked", "ReportShared"]
    assert [one for one in actions if "share" in one] == ["share.create", "share.revoke"]


def test_a_password_is_asked_for_and_never_kept(
    operator: TestClient, anybody: TestClient, stores: Stores, number: int
) -> None:
    link = made(operator, number, password="tell nobody this")

    asked = anybody.get(link)
    refused = anybody.post(link, data={"password": "tell nobody that"})
    opened = anybody.post(link, data={"password": "tell nobody this"})

    assert (asked.status_code, refused.status_code, opened.status_code) == (200, 403, 200)
    assert "shared copy, read only" not in asked.text + refused.text
    assert "shared copy, read only" in opened.text
    assert {name: refused.headers[name] for name in STRICT} == STRICT
    with writing(stores.engine) as session:
        [share] = session.exec(select(Share)).all()
    assert share.password_hash
    assert share.password_hash.startswith("$argon2")
    assert share.opened_count == 1


def test_a_short_password_makes_no_link(operator: TestClient, number: int) -> None:
    preview = operator.get(f"/reports/{number}/shares").text
    seal = re.search(r'name="seal" value="([0-9a-f]{64})"', preview)
    assert seal

    form = {"seal": seal[1], "password": "short"}
    assert operator.post(f"/reports/{number}/shares", data=form).status_code == 422


def test_a_reader_may_look_at_the_preview_and_make_nothing(
    reader: TestClient, operator: TestClient, number: int
) -> None:
    made(operator, number)

    assert "Make the link</button>" not in reader.get(f"/reports/{number}/shares").text
    assert reader.post(f"/reports/{number}/shares", data={"seal": "x"}).status_code == 403
    assert reader.post("/shares/1/revoke").status_code == 403


def test_whoever_tries_many_links_is_told_to_wait(anybody: TestClient) -> None:
    answers = [anybody.get(f"/s/{at}").status_code for at in range(FREE_FAILURES + 1)]

    assert answers == [*[404] * FREE_FAILURES, 429]


def test_the_gate_forgets_after_its_window_and_holds_few_addresses() -> None:
    gate = ShareGate()
    for at in range(MOST_ADDRESSES + 5):
        gate.failed(f"10.0.{at // 256}.{at % 256}", at=make.NOON)
    for _ in range(FREE_FAILURES):
        gate.failed("10.9.9.9", at=make.NOON)

    gate.check("10.9.9.9", at=make.NOON + WINDOW)
    assert len(gate._failures) == MOST_ADDRESSES
