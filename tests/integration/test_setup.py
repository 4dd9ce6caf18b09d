"""The first admin: one link, once, while there is nobody; or a password file."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine

from app.errors import Misconfigured, NotFound, Rejected
from app.main import create_app
from app.settings import Settings
from app.store import accounts, migrations, setup
from app.store.audit import CLI
from app.store.database import open_database, reading, writing
from app.store.stores import Stores
from tests.conftest import BASE_URL

NOW = datetime.now(UTC)
FORM = {"name": "mira", "password": "correct horse battery"}


@pytest.fixture
def nobody(settings: Settings) -> Iterator[TestClient]:
    """A browser at a console that has no user."""
    engine = open_database(settings.database)
    migrations.upgrade(engine)
    engine.dispose()
    with TestClient(create_app(settings), BASE_URL, follow_redirects=False) as client:
        client.headers["Sec-Fetch-Site"] = "same-origin"
        yield client


@pytest.fixture
def engine(nobody: TestClient) -> Engine:
    stores: Stores = nobody.app.state.stores  # type: ignore[attr-defined]
    return stores.engine


def _link(engine: Engine, at: datetime = NOW) -> str:
    with writing(engine) as session:
        token = setup.new_link(session, at=at)
    assert token is not None
    return token


def test_the_link_makes_an_admin_who_is_signed_in(nobody: TestClient, engine: Engine) -> None:
    path = f"/setup/{_link(engine)}"
    assert "This console has no user yet" in nobody.get(path).text

    answer = nobody.post(path, data=FORM)

    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert "1 user can sign in" in nobody.get("/settings").text


def test_the_link_works_once(nobody: TestClient, engine: Engine) -> None:
    path = f"/setup/{_link(engine)}"
    nobody.post(path, data=FORM)

    assert nobody.get(path).status_code == 404
    assert nobody.post(path, data={**FORM, "name": "eve"}).status_code == 404
    with reading(engine) as session:
        assert [user.name for user in accounts.list_users(session)] == ["mira"]


def test_wrong_used_and_expired_links_are_answered_alike(
    nobody: TestClient, engine: Engine
) -> None:
    expired = nobody.get(f"/setup/{_link(engine, NOW - timedelta(hours=25))}")
    wrong = nobody.get("/setup/nonsense")

    assert (expired.status_code, wrong.status_code) == (404, 404)
    assert "does not work" in wrong.text
    assert _but_the_clock(expired.text) == _but_the_clock(wrong.text)


def _but_the_clock(page: str) -> list[str]:
    return [line for line in page.splitlines() if 'id="clock"' not in line]


def test_a_new_start_makes_older_links_void(nobody: TestClient, engine: Engine) -> None:
    older, newer = _link(engine), _link(engine)

    assert nobody.get(f"/setup/{older}").status_code == 404
    assert nobody.get(f"/setup/{newer}").status_code == 200


def test_a_link_is_void_once_somebody_made_a_user_otherwise(engine: Engine) -> None:
    token = _link(engine)
    with writing(engine) as session:
        accounts.create_user(session, "lin", role="admin", password_hash="-", actor=CLI, at=NOW)
        assert setup.new_link(session, at=NOW) is None

    with reading(engine) as session, pytest.raises(NotFound):
        setup.check_link(session, token, at=NOW)


@pytest.mark.parametrize(
    ("form", "says"),
    [
        pytest.param({**FORM, "password": "short"}, "at least 12 characters", id="short"),
        pytest.param({**FORM, "name": "Mira Ä"}, "small letters", id="name"),
    ],
)
def test_a_refused_form_leaves_the_link_usable(
    nobody: TestClient, engine: Engine, form: dict[str, str], says: str
) -> None:
    path = f"/setup/{_link(engine)}"

    answer = nobody.post(path, data=form)

    assert answer.status_code == 422
    assert says in answer.text
    assert nobody.post(path, data=FORM).status_code == 303


def test_the_sign_in_page_tells_that_nobody_can_sign_in_yet(nobody: TestClient) -> None:
    assert "No user exists yet" in nobody.get("/login").text


def test_a_password_file_makes_the_user_admin_once(engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("a password from a file\n")

    assert setup.first_admin_from(engine, file, at=NOW) is True
    assert setup.first_admin_from(engine, file, at=NOW) is False
    with reading(engine) as session:
        assert accounts.get_user(session, "admin").role == "admin"


@pytest.mark.parametrize(
    ("content", "error"),
    [
        pytest.param(None, Misconfigured, id="missing"),
        pytest.param("short", Rejected, id="short"),
    ],
)
def test_an_unusable_password_file_makes_nobody(
    engine: Engine, tmp_path: Path, content: str | None, error: type[Exception]
) -> None:
    file = tmp_path / "password"
    if content:
        file.write_text(content)

    with pytest.raises(error):
        setup.first_admin_from(engine, file, at=NOW)
    with reading(engine) as session:
        assert not accounts.any_user(session)


def test_of_two_browsers_with_one_link_one_becomes_admin(any_stores: Stores) -> None:
    token = _link(any_stores.engine)

    def is_made(name: str) -> bool:
        try:
            with writing(any_stores.engine) as session:
                setup.use_link(session, token, name=name, password_hash="-", actor=CLI, at=NOW)
        except NotFound:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(is_made, ["a", "b", "c", "d"]))

    assert sum(made) == 1
