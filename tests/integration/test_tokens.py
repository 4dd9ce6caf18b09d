"""Users and tokens over the API."""

from fastapi.testclient import TestClient


def test_an_admin_makes_lists_and_revokes_tokens(admin: TestClient, anybody: TestClient) -> None:
    made = admin.post("/api/v1/tokens", json={"name": "pager", "role": "reader"})
    assert made.status_code == 201
    assert len(made.json()["token"]) >= 43  # 256 bits in base64

    bearer = {"Authorization": f"Bearer {made.json()['token']}"}
    assert anybody.get("/settings", headers=bearer).status_code == 200
    [listed] = admin.get("/api/v1/tokens").json()["items"]
    assert listed["name"] == "pager"
    assert listed["last_used_at"] is not None
    assert "token" not in listed
    assert "token_hash" not in listed

    assert admin.delete(f"/api/v1/tokens/{listed['id']}").status_code == 204
    assert admin.get("/api/v1/tokens").json() == {"items": [], "next_cursor": None}
    assert admin.delete("/api/v1/tokens/999").status_code == 404


def test_lists_are_paged_by_a_cursor(admin: TestClient) -> None:
    for number in range(5):
        admin.post("/api/v1/tokens", json={"name": f"t{number}", "role": "reader"})

    pages = [admin.get("/api/v1/tokens?limit=2").json()]
    while cursor := pages[-1]["next_cursor"]:
        pages.append(admin.get(f"/api/v1/tokens?limit=2&cursor={cursor}").json())

    assert [[item["name"] for item in page["items"]] for page in pages] == [
        ["t4", "t3"],
        ["t2", "t1"],
        ["t0"],
    ]


def test_users_are_paged_by_name(admin: TestClient) -> None:
    first = admin.get("/api/v1/users?limit=2").json()
    rest = admin.get(f"/api/v1/users?limit=2&cursor={first['next_cursor']}").json()

    assert [user["name"] for user in first["items"] + rest["items"]] == [
        "admin",
        "operator",
        "reader",
    ]
    assert rest["next_cursor"] is None


def test_a_foreign_cursor_is_refused_in_words(admin: TestClient) -> None:
    for cursor in ("nonsense", "WyJ4Il0", "bnVsbA"):
        answer = admin.get(f"/api/v1/audit?cursor={cursor}")
        assert answer.status_code == 422
        assert answer.json()["error"] == "malformed"


def test_a_user_made_without_password_gets_one_that_works(
    admin: TestClient, anybody: TestClient
) -> None:
    made = admin.post("/api/v1/users", json={"name": "lin", "role": "operator"}).json()

    answer = anybody.post("/login", data={"name": "lin", "password": made["password"]})
    assert answer.status_code == 303


def test_a_password_that_was_given_is_not_told_back(admin: TestClient) -> None:
    new = {"name": "lin", "role": "operator", "password": "a password of lin"}
    answer = admin.post("/api/v1/users", json=new)

    assert answer.status_code == 201
    assert answer.json()["password"] is None
    assert admin.post("/api/v1/users", json=new).status_code == 409


def test_an_unknown_role_is_refused(admin: TestClient) -> None:
    answer = admin.post("/api/v1/tokens", json={"name": "pager", "role": "root"})

    assert answer.status_code == 422
    assert "role" in answer.json()["detail"]


def test_a_name_with_markup_is_shown_as_text(admin: TestClient) -> None:
    admin.post("/api/v1/tokens", json={"name": "<img src=x onerror=alert(1)>", "role": "reader"})

    page = admin.get("/settings").text
    assert "<img src=x" not in page
    assert "&lt;img src=x onerror" in page
