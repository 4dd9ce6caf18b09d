"""The key file and what is sealed with it."""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.errors import Misconfigured
from app.store.vault import Vault


def test_the_key_is_made_once_and_is_its_owners_alone(tmp_path: Path) -> None:
    key_file = tmp_path / "secret.key"
    sealed = Vault.open(key_file).seal("sk-live-1")
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert Vault.open(key_file).unseal(sealed) == "sk-live-1"
    assert [path.name for path in tmp_path.iterdir()] == ["secret.key"]


def test_starts_in_the_same_moment_agree_on_one_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        vaults = list(pool.map(lambda _: Vault.open(tmp_path / "secret.key"), range(16)))
    assert len({vault.fingerprint("token") for vault in vaults}) == 1


def test_what_another_key_sealed_is_said_so(tmp_path: Path) -> None:
    sealed = Vault.open(tmp_path / "former.key").seal("sk-live-1")
    with pytest.raises(Misconfigured, match="not sealed with the key") as raised:
        Vault.open(tmp_path / "present.key").unseal(sealed)
    assert "sk-live-1" not in raised.value.detail


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"hunter2", id="a-password"),
        pytest.param(b"\x00" * 44, id="binary"),
    ],
)
def test_a_file_that_is_no_key_is_refused(tmp_path: Path, content: bytes) -> None:
    key_file = tmp_path / "secret.key"
    key_file.write_bytes(content)
    with pytest.raises(Misconfigured, match="does not hold a key"):
        Vault.open(key_file)


def test_a_fingerprint_tells_equal_from_different_and_only_here(tmp_path: Path) -> None:
    here, elsewhere = Vault.open(tmp_path / "a.key"), Vault.open(tmp_path / "b.key")
    assert here.fingerprint("one") == here.fingerprint("one")
    assert here.fingerprint("one") != here.fingerprint("two")
    assert here.fingerprint("one") != elsewhere.fingerprint("one")
    assert len(here.fingerprint("one")) == 8


def test_a_vault_does_not_show_its_key(tmp_path: Path) -> None:
    vault = Vault.open(tmp_path / "secret.key")
    assert (tmp_path / "secret.key").read_text().strip() not in repr(vault)
