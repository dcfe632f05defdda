"""Addresses: where a connection of a found set would lead, as approvals name it."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Network, ip_address
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from fast_agent.text.environment import UnsetVariableError, expand, has_variable
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping
    from ipaddress import IPv6Address

    from fast_agent.trust.effect import Effect

THIS_MACHINE: Final = "this machine"
PRIVATE_NETWORK: Final = "private network"

IN_VARIABLE: Final = "the address is in a variable of your environment"
UNREADABLE: Final = "it is not an address this program connects to"

_PORTS: Final = {"http": 80, "https": 443, "postgres": 5432, "postgresql": 5432}
_VARIABLE_ADDRESS: Final = re.compile(r"(?:\$\{[^{}]*\}|[^:/?#$])*(?:://(?:\$\{[^{}]*\}|[^/?#])*)?")
_TRANSLATED: Final = tuple(
    IPv6Network(one) for one in ("::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48")
)
"""IPv6 networks whose last 32 bits are an IPv4 address that a gateway connects to (RFC 4291, 6052,
7915, 8215)."""
_LOCAL_NAMES: Final = (".localhost", ".local", ".internal", ".lan", ".home.arpa", ".intranet")


def shown_address(address: str) -> str:
    """Return an address without user name, password and query, which may hold a token."""
    parts = urlsplit(address)
    host = parts.hostname or ""
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{host}{port}{parts.path}"


@frozen
class Address:
    """An address of the web.

    Args:
        scheme: `http` or `https`; empty where variables are in the address.
        host: In lower case, without brackets; where variables are in it, all that was written up
            to the path.
        port: The port; empty where variables are in the address.
        place: `THIS_MACHINE`, `PRIVATE_NETWORK`, or empty.
        notes: Lines for people.
        refusal: Why it cannot be approved; None if it can.
    """

    scheme: str
    host: str
    port: str
    place: str = ""
    notes: tuple[str, ...] = ()
    refusal: str | None = None

    @property
    def terms(self) -> tuple[str, str, str]:
        """Scheme, host and port."""
        return self.scheme, self.host, self.port

    def __str__(self) -> str:
        """Return it as approvals name it: `https://host`, `http://127.0.0.1:80 (this machine)`."""
        if not self.scheme:
            return self.host
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if str(_PORTS.get(self.scheme)) == self.port else f":{self.port}"
        place = f" ({self.place})" if self.place else ""
        return f"{self.scheme}://{host}{port}{place}"


def address_of(text: str) -> Address:
    """Take an address apart; what is in its path and query is left out.

    Args:
        text: As written, with `${NAME}` in it.
    """
    text = text.strip()
    if has_variable(text):
        found = _VARIABLE_ADDRESS.match(text)
        head = found[0] if found else text
        if has_variable(head) or "://" not in head:
            shown = head.rpartition("@")[2] if "@" in head else head
            return Address("", shown or text, "", notes=(IN_VARIABLE,))
        text = head
    if "\\" in text or any(ord(one) <= 32 or ord(one) == 127 for one in text):
        return Address("", repr(text), "", refusal=UNREADABLE)
    try:
        parts = urlsplit(text)
        scheme, host, port = parts.scheme.lower(), (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        scheme, host, port = "", "", None
    usual = _PORTS.get(scheme)
    if usual is None or not host:
        return Address("", text.partition("?")[0], "", refusal=UNREADABLE)
    return Address(scheme, host.lower(), str(port or usual), place_of_host(host))


def place_of_host(host: str) -> str:
    """Return what a host is if it is not public: this machine, or in a private network."""
    name = host.lower().rstrip(".")
    try:
        address = ip_address(name.partition("%")[0])
    except ValueError:
        if name == "localhost" or name.endswith(".localhost") or _is_number(name):
            return THIS_MACHINE
        return PRIVATE_NETWORK if "." not in name or name.endswith(_LOCAL_NAMES) else ""
    if address.version == 6:
        address = _ipv4_within(address) or address
    if address.is_loopback or address.is_unspecified:
        return THIS_MACHINE
    return "" if address.is_global and not address.is_multicast else PRIVATE_NETWORK


def _ipv4_within(address: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address that an IPv6 address embeds."""
    if address.ipv4_mapped or address.sixtofour:
        return address.ipv4_mapped or address.sixtofour
    if int(address) > 1 and any(address in network for network in _TRANSLATED):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return None


def origin_in(effect: Effect, environ: Mapping[str, str]) -> tuple[str, str, str] | None:
    """Return where a `connect` effect that was approved leads in this run.

    Args:
        effect: The effect. Its address may be in a variable, whose value is looked up now.
        environ: The environment.

    Returns:
        Scheme, host and port; None where the address cannot be read.
    """
    if len(effect.terms) != 3:
        return None
    scheme, host, port = effect.terms
    if scheme:
        return scheme, host, port
    try:
        value = expand(host, environ)
    except UnsetVariableError:
        return None
    if has_variable(value):
        return None
    found = address_of(value)
    return found.terms if found.scheme else None


def fits_host(pattern: str, host: str) -> bool:
    """Return whether a host is the one named, or one below `*.name`."""
    pattern, host = pattern.lower().rstrip("."), host.lower().rstrip(".")
    if pattern.startswith("*."):
        return host.endswith(pattern[1:]) and len(host) > len(pattern) - 1
    return host == pattern


def _is_number(name: str) -> bool:
    """Return whether a host is an address in an old spelling, such as `2130706433` or `0x7f.1`."""
    return all(re.fullmatch(r"\d+|0x[0-9a-f]*", part) for part in name.split("."))
