import pytest

from app.clients.addresses import check_address, check_url
from app.errors import Rejected


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("http://host:30000/", "http://host:30000"),
        ("HTTPS://Host.Example/prefix/a/", "https://host.example/prefix/a"),
        ("http://10.0.0.4", "http://10.0.0.4"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("http://localhost.:1", "http://localhost:1"),
        ("http://bücher.example", "http://xn--bcher-kva.example"),
        ("http://under_score:80/p", "http://under_score:80/p"),
    ],
)
def test_a_url_becomes_a_base_url(url: str, base: str) -> None:
    assert check_url(url) == base


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "gopher://127.0.0.1:6379/_",
        "unix:///var/run/docker.sock",
        "//evil",
        "http:///x",
        "http://user:pass@host/",
        "http://a@127.0.0.1:80@evil/",
        "http://host#@evil/",
        "http://host\\@evil/",
        "http://127.0.0.1:6379/\r\nSET x 1",
        "HTTP://EXAMPLE.com:0/",
        "http://host:99999/",
        "http://host:/",
        "http://host:8a/",
        "http://[::1%25eth0]/",
        "http://[::1",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://127.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[fd00:ec2::254]/",
        "http://[::ffff:169.254.169.254]/",
        "http://0.0.0.0:22/",
        "http://metadata.google.internal/",
        "http://host/?a=1",
        "http://ho st/",
        "http://-host/",
        "http://a..b/",
        "http://" + "a" * 3000,
        "",
    ],
)
def test_what_must_not_be_asked_is_rejected_when_it_is_typed(url: str) -> None:
    with pytest.raises(Rejected):
        check_url(url)


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "169.254.0.1",
        "fe80::1",
        "fd00:ec2::254",
        "fd20:ce::254",
        "100.100.100.200",
        "168.63.129.16",
        "0.0.0.0",
        "::",
        "224.0.0.1",
        "ff02::1",
        "255.255.255.255",
        "::ffff:169.254.169.254",
        "::169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::1",
        "not an address",
    ],
)
def test_an_address_is_never_asked_in_whatever_form_it_comes(address: str) -> None:
    with pytest.raises(Rejected):
        check_address(address)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "10.1.2.3", "8.8.8.8", "fd00::1"])
def test_private_and_public_addresses_are_asked(address: str) -> None:
    check_address(address)


def test_allowed_targets_leave_out_all_others() -> None:
    allowed = ("10.0.0.0/8", "gpu-1.example", "::1")
    check_address("10.1.2.3", allowed)
    check_address("192.168.0.1", allowed, host="GPU-1.example")
    check_address("::1", allowed)
    with pytest.raises(Rejected, match="not among"):
        check_address("192.168.0.1", allowed, host="gpu-2.example")
    with pytest.raises(Rejected, match="never"):
        check_address("169.254.169.254", ("169.254.0.0/16",))


@pytest.mark.parametrize("host", ["[::ffff:0:169.254.169.254]", "[64:ff9b:1::a9fe:a9fe]"])
def test_a_metadata_address_is_found_in_translated_ones(host: str) -> None:
    with pytest.raises(Rejected, match="never asked"):
        check_url(f"http://{host}")


def test_a_path_is_spelled_so_that_it_can_be_sent() -> None:
    assert check_url("http://h/prä\u202efix/") == "http://h/pr%C3%A4%E2%80%AEfix"
    assert check_url("http://h/a%20b") == "http://h/a%20b"
