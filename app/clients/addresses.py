"""Which URLs may be asked, and which addresses they may lead to.

The console can be told to ask any URL, so it must not become a way to the metadata service
of a cloud. The name is checked when it is typed; the address when it is connected to.
"""

import ipaddress
import re
from collections.abc import Sequence
from urllib.parse import SplitResult, quote, urlsplit

from app.errors import Rejected

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_METADATA = frozenset(
    ipaddress.ip_address(text)
    for text in (
        "169.254.169.254",  # AWS, Azure, GCP and most others
        "fd00:ec2::254",  # AWS over IPv6
        "fd20:ce::254",  # GCP over IPv6
        "100.100.100.200",  # Alibaba
        "192.0.0.192",  # Oracle
        "168.63.129.16",  # Azure's wire server
    )
)
_METADATA_NAMES = frozenset(("metadata.google.internal", "metadata", "instance-data"))
_ENDS_IN_IPV4 = tuple(
    ipaddress.ip_network(text)
    for text in (
        "64:ff9b::/96",  # NAT64, RFC 6052
        "64:ff9b:1::/48",  # NAT64 of one network, RFC 8215
        "::ffff:0:0:0/96",  # translated, RFC 2765
    )
)
_ODD = re.compile(r"[\x00-\x20\x7f\\]")
_LABEL = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)")
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]*|\d+")


def check_url(url: str) -> str:
    """*url* as a base URL: no slash at the end, the path prefix kept; raises Rejected."""
    if _ODD.search(url) or len(url) > 2048:
        raise Rejected("The URL has characters that no URL has.", fix="Copy it once more.")
    parts = _split(url)
    if parts.scheme not in ("http", "https"):
        raise Rejected("Only http:// and https:// URLs are asked.")
    if "@" in parts.netloc:
        raise Rejected(
            "The URL holds a user or password.", fix="Give the token in its own field instead."
        )
    if parts.query or parts.fragment or "?" in url or "#" in url:
        raise Rejected("A base URL has no ? and no #.")
    host = _host(parts)
    port = _port(parts)
    shown = f"[{host}]" if ":" in host else host
    path = quote(parts.path.rstrip("/"), safe="/%:@!$&'()*+,;=~")
    return f"{parts.scheme}://{shown}{port}{path}"


def check_address(address: str, allowed: Sequence[str] = (), *, host: str = "") -> None:
    """Raises Rejected where a connection to *address* must not be made.

    Link-local, metadata, multicast and unspecified addresses never, in whatever form they are
    wrapped. *allowed* are networks and host names; empty allows all others.
    """
    try:
        ip = _unwrapped(ipaddress.ip_address(address))
    except ValueError as error:
        raise Rejected(f"{address} is not an address.") from error
    if ip in _METADATA or ip.is_link_local or ip.is_multicast or ip.is_unspecified:
        raise Rejected(f"{ip} is never asked: link-local, metadata, multicast or unspecified.")
    if ip == ipaddress.ip_address("255.255.255.255"):
        raise Rejected(f"{ip} is the broadcast address.")
    if allowed and not any(_allows(word, ip, host) for word in allowed):
        raise Rejected(
            f"{host or ip} is not among the targets allowed here.",
            fix="INCIDENT_CONSOLE_ALLOWED_TARGETS names them.",
        )


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError as error:
        raise Rejected(f"Not a URL: {error}.") from error


def _host(parts: SplitResult) -> str:
    """The host in lower case; an address in it is checked at once."""
    host = (parts.hostname or "").rstrip(".")
    if "[" in parts.netloc or ":" in host:
        if "%" in host:
            raise Rejected("An address with a zone is not asked.")
        check_address(host)
        return host
    try:
        host = host.encode("idna").decode("ascii") if not host.isascii() else host
    except UnicodeError as error:
        raise Rejected("The URL's host is not a name.") from error
    labels = host.split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise Rejected("The URL has no host that could be looked up.")
    if host in _METADATA_NAMES:
        raise Rejected(f"{host} is never asked: the metadata service of a cloud.")
    if _NUMBER.fullmatch(labels[-1]):
        check_address(host)  # 2130706433, 0x7f.1 and 127.1 are no addresses here
    return host


def _port(parts: SplitResult) -> str:
    try:
        port = parts.port
    except ValueError as error:
        raise Rejected("The URL's port is not a number from 1 to 65535.") from error
    if port == 0 or parts.netloc.endswith(":"):
        raise Rejected("The URL's port is not a number from 1 to 65535.")
    return "" if port is None else f":{port}"


def _unwrapped(ip: Address) -> Address:
    """The IPv4 address inside an IPv6 one, however it is wrapped."""
    if isinstance(ip, ipaddress.IPv4Address):
        return ip
    if any(ip in network for network in _ENDS_IN_IPV4):
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    if ip.teredo is not None:
        return ip.teredo[1]
    return ip.ipv4_mapped or ip.sixtofour or _compatible(ip)


def _compatible(ip: ipaddress.IPv6Address) -> Address:
    """``::a.b.c.d``, the oldest wrapping; ``::`` and ``::1`` are addresses of their own."""
    number = int(ip)
    return ipaddress.IPv4Address(number) if 1 < number <= 0xFFFFFFFF else ip


def _allows(word: str, ip: Address, host: str) -> bool:
    if "/" in word:
        return ip in ipaddress.ip_network(word, strict=False)
    return word.lower().strip("[]") in (host.lower(), str(ip))
