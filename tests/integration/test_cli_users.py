"""Users and tokens from the command line, on the data folder itself."""

import json
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from app.store import accounts, api_tokens, passwords
from app.store.database import open_database, reading
from app.store.stores import Stores
from tests.integration.command_line import run, run_as_process


def test_the_first_user_can_be_made_before_the_console_ever_ran(tmp_path: Path) -> None:
    made = run_as_process(tmp_path / "new", "user", "create", "mira", "--role", "admin", "--json")

    assert made.returncode == 0, made.stderr
    password = json.loads(made.stdout)["password"]
    with reading(open_database(f"sqlite:///{tmp_path / 'new' / 'console.sqlite'}")) as session:
        user = accounts.get_user(session, "mira")
        assert user.role == "admin"
        assert passwords.fits(password, user.password_hash)


def test_a_password_comes_from_stdin_and_is_not_repeated(
    anybody: TestClient, stores: Stores
) -> None:
    folder = stores.settings.data_dir
    made = run(folder, "user", "create", "lin", "--password-stdin", stdin="a password of lin\n")

    assert made.returncode == 0, made.stderr
    assert made.stdout == "Created lin, reader.\n"
    form = {"name": "lin", "password": "a password of lin"}
    assert anybody.post("/login", data=form).status_code == 303  # while the console serves


def test_a_new_password_ends_the_sessions(operator: TestClient, stores: Stores) -> None:
    folder = stores.settings.data_dir
    changed = run(folder, "user", "password", "operator", "--generate")

    assert changed.returncode == 0, changed.stderr
    assert "shown this once" in changed.stdout
    assert operator.get("/settings").status_code == 303


def test_a_disabled_user_is_out_at_once(operator: TestClient, stores: Stores) -> None:
    assert run(stores.settings.data_dir, "user", "disable", "operator").returncode == 0

    assert operator.get("/settings").status_code == 303
    assert "operator" in run(stores.settings.data_dir, "user", "list").stdout


@pytest.mark.parametrize(
    ("arguments", "stdin", "says"),
    [
        pytest.param(("create", "lin", "--password-stdin"), "short\n", "at least 12", id="short"),
        pytest.param(("create", "Lin!"), "", "small letters", id="bad-name"),
        pytest.param(("create", "admin"), "", "already", id="taken"),
        pytest.param(("password", "nobody"), "", "no user", id="unknown"),
        pytest.param(("disable", "admin"), "", "last admin", id="last-admin"),
    ],
)
def test_what_cannot_be_done_is_told_with_exit_status_1(
    stores: Stores, arguments: tuple[str, ...], stdin: str, says: str
) -> None:
    answer = run(stores.settings.data_dir, "user", *arguments, stdin=stdin)

    assert answer.returncode == 1
    assert says in answer.stderr
    assert answer.stdout == ""
    assert "Traceback" not in answer.stderr


def test_a_role_that_is_none_is_a_mistake_of_usage(tmp_path: Path) -> None:
    assert run(tmp_path, "user", "create", "lin", "--role", "root").returncode == 2
    assert run(tmp_path, "token", "create", "--name", "ci").returncode == 2


def test_a_token_is_printed_once_as_json_and_works(anybody: TestClient, stores: Stores) -> None:
    folder = stores.settings.data_dir
    made = run(folder, "token", "create", "--name", "ci", "--role", "admin", "--json")
    bearer = {"Authorization": f"Bearer {json.loads(made.stdout)['token']}"}
    assert anybody.get("/api/v1/users", headers=bearer).status_code == 200

    listed = run(folder, "token", "list").stdout
    assert listed.split()[:3] == ["1", "ci", "admin"]

    assert run(folder, "token", "revoke", "1").returncode == 0
    assert anybody.get("/api/v1/users", headers=bearer).status_code == 401
    with reading(stores.engine) as session:
        assert api_tokens.list_tokens(session) == []
